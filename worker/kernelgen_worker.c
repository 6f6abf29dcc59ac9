// kernelgen-worker: does for the library what a process has to do that never used a GPU's driver.
// The library starts it, and nobody else: flow/worker_serve.h.

#include "flow/worker_serve.h"

int main(int argc, char **argv)
{
    kg_worker_serve(argc, argv);
}
