// The tensors of a problem in a device's memory, to time kernels with. What moves bytes is the
// device: they may be gigabytes.
//
// `tensors` is inputs, then outputs, as kernels take them.

#ifndef KG_TUNE_TENSORS_H
#define KG_TUNE_TENSORS_H

#include "analyze/problem.h"
#include "device/device.h"

// Allocates; on failure the rest is NULL. Inputs are filled.
enum kg_status kg_tensors_make_inputs(struct kg_device *device, const struct kg_problem *problem,
                                      void **tensors, struct kg_error *error);
enum kg_status kg_tensors_make_outputs(struct kg_device *device, const struct kg_problem *problem,
                                       void **tensors, struct kg_error *error);
// Gives inputs values that the definition allows, the same ones every time. Large inputs repeat a
// window of values.
enum kg_status kg_tensors_fill_inputs(struct kg_device *device, const struct kg_problem *problem,
                                      void *const *tensors, struct kg_error *error);
// Fills outputs with bytes that no kernel would write.
enum kg_status kg_tensors_poison(struct kg_device *device, const struct kg_problem *problem,
                                 void *const *tensors, struct kg_error *error);
// A checksum of all outputs.
enum kg_status kg_tensors_digest(struct kg_device *device, const struct kg_problem *problem,
                                 void *const *tensors, uint64_t *sum, struct kg_error *error);
// Releases, and sets to NULL, what is there.
void kg_tensors_release_inputs(struct kg_device *device, const struct kg_problem *problem,
                               void **tensors);
void kg_tensors_release_outputs(struct kg_device *device, const struct kg_problem *problem,
                                void **tensors);

#endif
