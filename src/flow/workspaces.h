// Memory for intermediates between kernels: one buffer per concurrent execution, kept for reuse.

#ifndef KG_FLOW_WORKSPACES_H
#define KG_FLOW_WORKSPACES_H

#include "device/device.h"

struct kg_workspaces;

// Buffers of `bytes` each. The device outlives them.
struct kg_workspaces *kg_workspaces_create(struct kg_device *device, size_t bytes);
void kg_workspaces_destroy(struct kg_workspaces *workspaces);

// A buffer that no other execution uses; NULL with KG_OK if bytes is 0. Thread-safe, like the
// return. On devices that run asynchronously a returned buffer may be in use until its stream has
// finished: only the same stream, which works in order, gets it again.
enum kg_status kg_workspaces_take(struct kg_workspaces *workspaces, const void *stream,
                                  void **memory, struct kg_error *error);
void kg_workspaces_return(struct kg_workspaces *workspaces, const void *stream, void *memory);

#endif
