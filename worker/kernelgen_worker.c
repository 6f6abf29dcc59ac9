// kernelgen-worker: does for the library what a process has to do that never used a GPU's driver.
// The library starts it, and nobody else: flow/errand.h.

#include "flow/errand.h"

int main(int argc, char **argv)
{
    kg_errand_serve(argc, argv);
}
