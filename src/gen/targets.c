// The table of targets, and the families of each; those of Triton stand in gen/triton.

#include "gen/target.h"

#include "gen/families.h"
#include "gen/standalone.h"

#include <string.h>

static const struct kg_family *const host_families[] = {
    &kg_host_contract,  // sums of products of two operands
    &kg_host_rowwise,   // several statements over the same rows
    &kg_host_reduce,    // one reduction
    &kg_host_scan,      // running totals
    &kg_host_window,    // windows that move along rows
    &kg_host_pointwise, // chains of element-wise formulas
    &kg_host_direct,    // anything else, one nest at a time
    NULL,
};

static const struct kg_family *const cuda_families[] = {
    &kg_cuda_contract_packed,       // sums of products of two operands: packed weights by mma.sync,
    &kg_cuda_contract_scaled_wgmma, // quantised weights by wgmma,
    &kg_cuda_contract_scaled,       // such weights by mma.sync,
    &kg_cuda_contract_wgmma_f32,    // f32 as sums of bf16,
    &kg_cuda_contract_wgmma,        // 16-bit operands by wgmma,
    &kg_cuda_contract_thin,         // a few rows or columns,
    &kg_cuda_contract_mma,          // 16-bit operands by mma.sync,
    &kg_cuda_contract_mma_i8,       // 8-bit integers, exactly,
    &kg_cuda_contract_tile,         // any, by multiplications and additions
    &kg_cuda_reduce,                // one reduction, by column or of long rows
    &kg_cuda_rowwise,               // reductions by row, and what belongs to them
    &kg_cuda_scan,                  // running totals
    &kg_cuda_pointwise,             // chains of element-wise formulas
    &kg_cuda_direct,                // anything else, one nest at a time
    NULL,
};

const struct kg_target kg_target_host = {
    .name = "host",
    .families = host_families,
    .plain = &kg_host_direct,
    .suffix = ".c",
    .standalone = kg_gen_standalone_host,
    .small_bytes = 64 << 10, // two cores of an AMD EPYC
    .small_operations = 130e3,
};

const struct kg_target kg_target_cuda = {
    .name = "cuda",
    .families = cuda_families,
    .plain = &kg_cuda_direct,
    .suffix = ".cu",
    .standalone = kg_gen_standalone_cuda,
    .launcher = kg_gen_launcher_cuda,
    .small_bytes = 18 << 10, // an H100
    .small_operations = 32e3,
    .has_assembly = true,
};

static const struct kg_target *const targets[] = {&kg_target_host, &kg_target_cuda,
                                                  &kg_target_triton};

const struct kg_target *kg_target_find(const char *name)
{
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++)
        if (strcmp(targets[i]->name, name) == 0)
            return targets[i];
    return NULL;
}

const struct kg_target *kg_target_of(const struct kg_device *device)
{
    return kg_target_find(device->backend->name);
}
