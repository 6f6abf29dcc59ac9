// The program kernelgen-worker: one job for the library that started it (flow/worker_job.h). A tool
// that starts the program itself passes on no socket: with two arguments, the job comes from the
// first file and the answer goes to the second (flow/sanitize.h).

#ifndef KG_FLOW_WORKER_SERVE_H
#define KG_FLOW_WORKER_SERVE_H

// The main function of the program.
_Noreturn void kg_worker_serve(int argc, char **argv);

#endif
