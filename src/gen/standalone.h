// The plain C signature of an op: what an exported kernel offers and a foreign one must have.
//
//     int bias_relu(const uint16_t *x, const uint16_t *bias, uint16_t *y, int64_t P, int64_t D);
//
// Tensors in the order of the definition (contiguous, row-major; inputs const), then the sizes that
// are not params, in order of first appearance. It returns 0 on success. A foreign kernel may
// return void instead, and use _Float16 for uint16_t.

#ifndef KG_GEN_STANDALONE_H
#define KG_GEN_STANDALONE_H

#include "gen/choice.h"

// One readable C file with the kernels of every group and the plain entry, named like the op. It
// compiles alone; with -fopenmp it uses all cores. For contiguous problems.
bool kg_gen_standalone_host(const struct kg_problem *problem, const struct kg_choice *choice,
                            const struct kg_device_facts *facts, struct kg_text *source);

// The kernels of every group for CUDA in one file, named like the op, with comments that describe
// the launches for this problem. gen/cuda/declared.h reads these comments.
bool kg_gen_standalone_cuda(const struct kg_problem *problem, const struct kg_choice *choice,
                            const struct kg_device_facts *facts, struct kg_text *source);

// The same file, for nvcc, with host functions around the launches of this problem:
//
//     cudaError_t softmax_launch(const uint16_t *x, uint16_t *y, int64_t P, int64_t D, void
//     *scratch,
//                                size_t scratch_bytes, cudaStream_t stream);
//     size_t softmax_scratch_bytes(int64_t P, int64_t D);
bool kg_gen_launcher_cuda(const struct kg_problem *problem, const struct kg_choice *choice,
                          const struct kg_device_facts *facts, struct kg_text *source);

// One Python module with Triton kernels and a function, named like the op, that takes tensors of
// every dtype and of all strides. It holds kernels for all combinations of dtypes that the
// definition allows; of the problem it takes params, and of the choice nothing.
bool kg_gen_standalone_triton(const struct kg_problem *problem, const struct kg_choice *choice,
                              const struct kg_device_facts *facts, struct kg_text *source);

// `code` (of `path`, shown in compiler messages) followed by a wrapper that makes its function a
// kernel called `entry` for the host backend.
bool kg_gen_foreign(const struct kg_op *instance, const char *path, const char *code,
                    const char *entry, struct kg_text *source);

#endif
