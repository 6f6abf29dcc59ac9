// What all families for CUDA share: the frame around their code, and the shape of their launches.

#ifndef KG_GEN_CUDA_FRAME_H
#define KG_GEN_CUDA_FRAME_H

#include "gen/shared/code.h"
#include "gen/shared/emit.h"
#include "gen/shared/fold.h"

// The heading and the prelude.
void kg_cuda_opening(struct kg_text *text, const struct kg_group *group, const char *family,
                     const struct kg_config *config, const struct kg_space *space);
// Opens function number `number` of the kernel `entry`, with the arguments of gen/arguments.h and,
// for contiguous tensors, their strides as constants. It runs in blocks of at most `threads`
// threads; `registers` each at most, 0: as many as the compiler likes.
void kg_cuda_open_function(struct kg_code *code, const struct kg_group *group, const char *entry,
                           int number, int threads, int registers);
// The same with tensor maps behind the arguments: map_0, map_1, ... of the type of tensor_map.cuh,
// whose text stands before.
void kg_cuda_open_function_with_maps(struct kg_code *code, const struct kg_group *group,
                                     const char *entry, int number, int threads, int registers,
                                     int maps);
// The same code compiled for several cases: opens the body all of them share, a template over truth
// values ("bool WHOLE, bool HELD"); then, after it was closed, one function for each case
// ("true, false").
void kg_cuda_open_body(struct kg_code *code, const struct kg_group *group, const char *entry,
                       const char *cases);
void kg_cuda_function(struct kg_code *code, const struct kg_group *group, const char *entry,
                      int number, int threads, int registers, const char *values);
// The same where a kernel has several bodies, each with a name of its own, or where strides are
// counted in another type than int64_t.
void kg_cuda_open_body_in(struct kg_code *code, const struct kg_group *group, const char *body,
                          const char *cases, const char *integer);
// Its functions wait for what was launched before them.
void kg_cuda_waiting_function(struct kg_code *code, const struct kg_group *group, const char *entry,
                              int number, int threads, int registers, const char *body,
                              const char *values);
// The same for a body that has the next launch start (kg_start_next_of_few) itself.
void kg_cuda_starting_function(struct kg_code *code, const struct kg_group *group,
                               const char *entry, int number, int threads, int registers,
                               const char *body, const char *values);
// Calls a body from another one, or from itself for other cases.
void kg_cuda_call_body(struct kg_code *code, const struct kg_group *group, const char *body,
                       const char *values);
// Small problems take less time than the pause between two launches: theirs may start before what
// is before them has ended. Those of kg_cuda_waiting_function and kg_cuda_starting_function wait.
void kg_cuda_start_early(const struct kg_group *group, const struct kg_device_facts *facts,
                         struct kg_grids *grids);
// A whole kernel that has nothing to do.
void kg_cuda_nothing(struct kg_code *code, const struct kg_group *group, const char *entry);

// Declares the axes as the digits of a linear index, which `rest` names while they are found. In 32
// bits where these count all elements, and those of a tile beyond them: such divisions have no
// branches, so compilers divide once for all elements of a line, and load several at a time.
void kg_cuda_axes(struct kg_code *code, const struct kg_nest *nest, const int *axes, int count,
                  const char *rest, const char *linear);
// The axes from `first` to `last`.
void kg_cuda_axes_between(struct kg_code *code, const struct kg_nest *nest, int first, int last,
                          const char *rest, const char *linear);
// The same where those from `run` on are gone through as one, of `length` elements: its index, plus
// `lane`, is that of the last one.
void kg_cuda_run_axes(struct kg_code *code, const struct kg_nest *nest, int first, int run,
                      int last, const char *linear, const char *lane);

// Whether 32 bits count the elements of all tensors, gaps between them included.
bool kg_cuda_fits_int(const struct kg_group *group);
// False, with the reason, for groups that no kernel for CUDA can take.
bool kg_cuda_fits(const struct kg_group *group, struct kg_text *reason);

// The struct of lanes.cuh that folds values of the reduction; places have the type `place`.
void kg_cuda_fold(struct kg_text *text, const struct kg_fold *fold, const char *place);
// The one that folds the values whose places are found.
void kg_cuda_fold_values(struct kg_text *text, const struct kg_fold *fold);

// Which lines the L2 replaces when a kernel needs room: those of loads with evict_first before what
// other kernels wrote, those of loads with evict_last after what this kernel writes.
enum kg_cuda_evict { KG_CUDA_EVICT_NORMAL, KG_CUDA_EVICT_FIRST, KG_CUDA_EVICT_LAST };
// Whether the access finds each element of its tensor once: nothing is lost if caches do not keep
// it.
bool kg_cuda_reads_once(const struct kg_nest *nest, const struct kg_access *access);
// Bytes of the access's tensor if so; else 0.
double kg_cuda_once_bytes(const struct kg_group *group, const struct kg_nest *nest,
                          const struct kg_access *access);

// Adds the parameter every family has: the most registers a thread may use; 0: no limit.
void kg_cuda_space_registers(struct kg_space *space);

// Whether vectors of `vector` elements along the last dimension begin at multiples of it, as far as
// strides tell: of the dimensions in `dims`, a bit each.
bool kg_cuda_is_whole(const struct kg_problem *problem, const struct kg_tensor *tensor,
                      unsigned dims, int vector);
// What such vectors have to be aligned to, in bytes.
int kg_cuda_alignment(const struct kg_tensor *tensor, int vector);
// Raises `*alignment` to that. False, where such vectors of a tensor whose last `inner` dimensions
// are gone through as one do not begin at multiples of theirs.
bool kg_cuda_raise_alignment(const struct kg_problem *problem, const struct kg_tensor *tensor,
                             int inner, int vector, int *alignment);

int64_t kg_ceil_div(int64_t a, int64_t b);
// The smallest power of two that is no less.
int64_t kg_power_of_two(int64_t value);

#endif
