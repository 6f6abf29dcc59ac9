// The constants of the time model of matrix products, fitted to cold times. ..._of_all: 632 of
// configs drawn from the whole spaces of 14 shapes and 1614 of 146 races of listed shapes, f16 on
// an H100 (80 GB, SXM5, driver 580), and 1027 of 148 shapes that seeds drew, f16 and bf16 on an
// H200; sector_line: 28 races of odd lines, there. ..._of_best: 1155 of the races of listed shapes.
// docs/model.md says how well the result
// orders shapes that it was not fitted to.

#include "gen/cuda/contract/cuda_contract_times.h"

// Of mma and of lines of odd length: the races behind ..._of_best have neither.
#define OF_BOTH                                                                                    \
    .unaligned_store = 3.32, .element_store = 0.144e-9, .sector_line = 0.0208e-6,                  \
    .mma_share = 0.377, .mma_fragments = 131e9, .mma_unaligned = 2.89, .mma_narrow = 7.16,         \
    .mma_registers = 14.4, .mma_copy = 0.0365e-6, .mma_vector = 0.517e-6, .mma_store = 80.2e-12,   \
    .mma_unaligned_store = 9.92

const struct kg_cuda_contract_times kg_cuda_contract_times_of_all = {
    .launch = 5.52e-6,
    .fitted_units = 132,
    .fitted_bandwidth = 3.35e12,
    .shared_rate = 133e9,
    .l2_rate = 121e9,
    .l2_latency = 0.923e-6,
    .memory_latency = 0.115e-6,
    .bandwidth_share = 0.871,
    .memory_start = 0.0677e-6,
    .streamed_saving = 3.13e-6,
    .reread_share = 0.228,
    .exposed_latency = 0.000252,
    .tile_end = 0.00565e-6,
    .tile_store = 0.33e-6,
    .cluster_fold = 0.944e-6,
    .cluster_fold_tile = 2.57e-6,
    .cluster_next = 0.375e-6,
    .cluster_barrier = 0.164e-6,
    .clustered_units = 0.91,
    .exposed_end = 0.698,
    .fold_launch = 2.59e-6,
    .fold_bandwidth = 0.411,
    .overlap_loss = 0.382,
    .busy_stages = 1.97,
    .matrix_share = 0.847,
    .full_columns = 50.6,
    .operand_read = 0.153e-12,
    .unaligned_copy = 1.33,
    .unaligned_reread = 9.22,
    .pair_m = 0.000255,
    .pair_n = 0.015,
    .stream_k_flag = 4.8e-6,
    .stream_k_tile = 4.35e-6,
    OF_BOTH,
};

const struct kg_cuda_contract_times kg_cuda_contract_times_of_best = {
    .launch = 3.92e-6,
    .fitted_units = 132,
    .fitted_bandwidth = 3.35e12,
    .shared_rate = 92.5e9,
    .l2_rate = 92.5e9,
    .l2_latency = 1.45e-6,
    .memory_latency = 0.21e-6,
    .bandwidth_share = 0.773,
    .memory_start = 1.43e-6,
    .streamed_saving = 3.4e-6,
    .reread_share = 0.092,
    .exposed_latency = 0.063,
    .tile_end = 0.29e-6,
    .tile_store = 1.19e-6,
    .cluster_fold = 1.17e-6,
    .cluster_fold_tile = 2.15e-6,
    .cluster_next = 0.19e-6,
    .cluster_barrier = 0.332e-6,
    .clustered_units = 0.91,
    .exposed_end = 1.23,
    .fold_launch = 4.16e-6,
    .fold_bandwidth = 0.52,
    .overlap_loss = 0.134,
    .busy_stages = 1.45,
    .matrix_share = 0.897,
    .full_columns = 92,
    .operand_read = 0.856e-12,
    .unaligned_copy = 1.13,
    .unaligned_reread = 23.1,
    .pair_m = 0.00315,
    .pair_n = 0.0186,
    .stream_k_flag = 2.2e-6,
    .stream_k_tile = 3.3e-6,
    OF_BOTH,
};
