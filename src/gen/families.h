// All families; gen/targets.c lists those of each target.

#ifndef KG_GEN_FAMILIES_H
#define KG_GEN_FAMILIES_H

#include "gen/family.h"

extern const struct kg_family kg_host_contract;
extern const struct kg_family kg_host_rowwise;
extern const struct kg_family kg_host_reduce;
extern const struct kg_family kg_host_scan;
extern const struct kg_family kg_host_window;
extern const struct kg_family kg_host_pointwise;
extern const struct kg_family kg_host_direct;

extern const struct kg_family kg_cuda_contract_wgmma_f32;
extern const struct kg_family kg_cuda_contract_wgmma;
extern const struct kg_family kg_cuda_contract_thin;
extern const struct kg_family kg_cuda_contract_mma;
extern const struct kg_family kg_cuda_contract_mma_i8;
extern const struct kg_family kg_cuda_contract_scaled;
extern const struct kg_family kg_cuda_contract_scaled_wgmma;
extern const struct kg_family kg_cuda_contract_packed;
extern const struct kg_family kg_cuda_contract_tile;
extern const struct kg_family kg_cuda_reduce;
extern const struct kg_family kg_cuda_rowwise;
extern const struct kg_family kg_cuda_scan;
extern const struct kg_family kg_cuda_pointwise;
extern const struct kg_family kg_cuda_direct;

extern const struct kg_family kg_triton_contract;
extern const struct kg_family kg_triton_reduce;
extern const struct kg_family kg_triton_rowwise;
extern const struct kg_family kg_triton_scan;
extern const struct kg_family kg_triton_pointwise;
extern const struct kg_family kg_triton_plain;

#endif
