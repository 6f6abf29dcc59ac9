// The judge of memory-bound kernels: the best streaming copy this machine can do, all cores.

#ifndef KG_BENCH_COPY_H
#define KG_BENCH_COPY_H

#include <stddef.h>

struct copier; // a pool of threads that copy

struct copier *copier_create(int threads);
void copier_destroy(struct copier *copier);
// Copies with non-temporal stores where the machine has them. Both sides 64-byte aligned.
void copier_run(struct copier *copier, void *to, const void *from, size_t bytes);

#endif
