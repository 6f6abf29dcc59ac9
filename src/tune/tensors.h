// The tensors of a problem in a device's memory, for timing kernels. The device moves their bytes
// itself, because they may be gigabytes.
//
// `tensors` holds inputs, then outputs, in the order in which kernels take them.

#ifndef KG_TUNE_TENSORS_H
#define KG_TUNE_TENSORS_H

#include "analyze/problem.h"
#include "device/device.h"

// Allocates the tensors and fills the inputs. On failure the missing ones are NULL.
enum kg_status kg_tensors_make_inputs(struct kg_device *device, const struct kg_problem *problem,
                                      void **tensors, struct kg_error *error);
enum kg_status kg_tensors_make_outputs(struct kg_device *device, const struct kg_problem *problem,
                                       void **tensors, struct kg_error *error);
// Fills the inputs with values that the definition allows, the same values every time. Large inputs
// repeat a window of values.
enum kg_status kg_tensors_fill_inputs(struct kg_device *device, const struct kg_problem *problem,
                                      void *const *tensors, struct kg_error *error);
// Fills the outputs with bytes that no kernel would write.
enum kg_status kg_tensors_poison(struct kg_device *device, const struct kg_problem *problem,
                                 void *const *tensors, struct kg_error *error);
// A checksum of all outputs.
enum kg_status kg_tensors_digest(struct kg_device *device, const struct kg_problem *problem,
                                 void *const *tensors, uint64_t *sum, struct kg_error *error);
// Releases the tensors that are not NULL, and sets them to NULL.
void kg_tensors_release_inputs(struct kg_device *device, const struct kg_problem *problem,
                               void **tensors);
void kg_tensors_release_outputs(struct kg_device *device, const struct kg_problem *problem,
                                void **tensors);

#endif
