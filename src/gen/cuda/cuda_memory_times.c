#include "gen/cuda/cuda_memory_times.h"

const struct kg_cuda_memory_times kg_cuda_memory_times = {
    .launch = 2.5e-6,
    .next = 2.0e-6,
    .dispatch = 1.2e-9,
    .start = 0.6e-6,
    .trip = 1.0,
    .near = 0.35,
    .meeting = 0.06e-6,
    .clusters = 0.8e-6,
    .access = 1.1e-9,
    .step = 0.15e-9,
    .memory = 0.88,
    .cached = 1.3,
    .drain = 0.5,
    .uneven = 0.3,
    .tail = 0.5,
    .sharp = 5,
};
