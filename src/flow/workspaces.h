// Memory for intermediates between kernels: one buffer per concurrent execution, kept for reuse.
// Where executions need more and more, buffers double, so that few are allocated.

#ifndef KG_FLOW_WORKSPACES_H
#define KG_FLOW_WORKSPACES_H

#include "device/device.h"

struct kg_workspaces;

struct kg_buffer {
    void *memory;
    size_t bytes;
};

// The device outlives them.
struct kg_workspaces *kg_workspaces_create(struct kg_device *device);
void kg_workspaces_destroy(struct kg_workspaces *workspaces);

// A buffer of at least `bytes` that no other execution uses; without memory if `bytes` is 0.
// Thread-safe, like the return. On devices that run asynchronously a returned buffer may be in use
// until its stream has finished: only the same stream, which works in order, gets it again.
enum kg_status kg_workspaces_take(struct kg_workspaces *workspaces, const void *stream,
                                  size_t bytes, struct kg_buffer *buffer, struct kg_error *error);
void kg_workspaces_return(struct kg_workspaces *workspaces, const void *stream,
                          struct kg_buffer buffer);

#endif
