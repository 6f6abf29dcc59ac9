// A built choice with the launches and arguments computed for one problem, so that a run costs
// little more than the launches.

#ifndef KG_GEN_PREPARED_H
#define KG_GEN_PREPARED_H

#include "gen/built.h"

struct kg_prepared;

// Refers to `built` and copies what it needs of the problem.
enum kg_status kg_prepared_make(const struct kg_built *built, const struct kg_problem *problem,
                                struct kg_prepared **prepared, struct kg_error *error);
// The same at other sizes than `like`, of the same `built`: what does not depend on sizes is
// copied.
enum kg_status kg_prepared_make_like(const struct kg_prepared *like, const struct kg_built *built,
                                     const struct kg_problem *problem,
                                     struct kg_prepared **prepared, struct kg_error *error);
void kg_prepared_free(struct kg_prepared *prepared);

// Bytes of memory for intermediates between kernels and for the kernels' scratch.
size_t kg_prepared_workspace(const struct kg_prepared *prepared);

// Of one kernel, see kg_backend; 0: unknown.
int64_t kg_prepared_ranges(const struct kg_prepared *prepared, int kernel);

// Runs every kernel in order. `tensors`: inputs then outputs, by tensor id, device memory;
// `workspace` as large as kg_prepared_workspace says, 64-byte aligned. Any number of threads may
// run one `prepared` as long as workspaces and outputs differ.
enum kg_status kg_prepared_run(const struct kg_prepared *prepared, void *const *tensors,
                               void *workspace, void *stream, struct kg_error *error);
// Updates a graph in which a run was recorded to the arguments of this run. After a failure it must
// be renewed before it is replayed: see kg_backend.
enum kg_status kg_prepared_renew(const struct kg_prepared *prepared, void *const *tensors,
                                 void *workspace, struct kg_graph *graph, struct kg_error *error);

#endif
