// Replaying a small plan's executions as graphs: if the device finishes before the host has
// launched everything, a replay costs less than the launches.

#ifndef KG_FLOW_REPLAYING_H
#define KG_FLOW_REPLAYING_H

#include "gen/prepared.h"

struct kg_replay;

// False if launches are as fast: the problem is not small, or the device has no such graphs.
bool kg_replay_pays(const struct kg_device *device, const struct kg_problem *problem);
// For executions of a problem of this op for which it pays. NULL: out of memory. The device,
// `prepared` and the kernels outlive it.
struct kg_replay *kg_replay_create(struct kg_device *device, const struct kg_op *op,
                                   const struct kg_prepared *prepared);
void kg_replay_destroy(struct kg_replay *replay);

// An execution, as by kg_prepared_run. False: nothing was done, and it has to be launched. Any
// number of threads may call it at once; none waits.
bool kg_replay_run(struct kg_replay *replay, void *const *tensors, void *workspace, void *stream,
                   enum kg_status *status, struct kg_error *error);
// Whether the last execution in the stream was a replay. For tests and benches, while no other
// thread executes.
bool kg_replay_is_ready(struct kg_replay *replay, const void *stream);

#endif
