// Kernels under tools that see what results do not show: accesses outside tensors and outside a
// kernel's own memory, races, undefined behaviour. On GPUs these are the tools of NVIDIA's
// compute-sanitizer, on the host the sanitizers of the C compiler. A program of its own
// (kernelgen-worker) runs the kernel on the gate's cases under each of them; docs/verified.md.

#ifndef KG_FLOW_SANITIZE_H
#define KG_FLOW_SANITIZE_H

#include "flow/request.h"

// Does nothing unless the session sanitizes and the gate has passed what is to be run: the kernels
// of a choice, or of the file `path` if that is not NULL. A finding is the verdict's reason, and it
// has not passed then; else the verdict says which tools found nothing. KG_ERROR_MISSING if a tool
// is not installed.
enum kg_status kg_flow_sanitize(const struct kg_request *request, const char *choice,
                                const char *path, struct kg_verdict *verdict,
                                struct kg_error *error);

#endif
