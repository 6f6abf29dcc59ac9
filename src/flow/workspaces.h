// Memory for intermediates between kernels: one piece per execution under way, kept for the next.

#ifndef KG_FLOW_WORKSPACES_H
#define KG_FLOW_WORKSPACES_H

#include "device/device.h"

struct kg_workspaces;

// Pieces of `bytes` each. The device outlives them.
struct kg_workspaces *kg_workspaces_create(struct kg_device *device, size_t bytes);
void kg_workspaces_destroy(struct kg_workspaces *workspaces);

// A piece nobody else holds; NULL with KG_OK when bytes is 0. Thread-safe, like the return. Where
// work goes on after a launch, a piece that comes back is in use until its stream has done with it:
// it is given out again to the same stream only, which works in order.
enum kg_status kg_workspaces_take(struct kg_workspaces *workspaces, const void *stream,
                                  void **memory, struct kg_error *error);
void kg_workspaces_return(struct kg_workspaces *workspaces, const void *stream, void *memory);

#endif
