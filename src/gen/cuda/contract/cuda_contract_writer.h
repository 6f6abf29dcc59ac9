// What writes methods of the job (cuda_contract_emit.c), and of structs beside it.

#ifndef KG_GEN_CUDA_CONTRACT_WRITER_H
#define KG_GEN_CUDA_CONTRACT_WRITER_H

#include "gen/cuda/contract/cuda_contract.h"
#include "gen/shared/emit.h"

struct kg_contract_writer {
    const struct kg_cuda_contract_plan *plan;
    struct kg_code *code;
    struct kg_emit_names names;
};

struct kg_contract_writer kg_contract_writer_make(const struct kg_cuda_contract_plan *plan,
                                                  struct kg_code *code);
// Inside a method of a struct that has the kernel's arguments as its member `given`: declares them.
void kg_contract_unpack(struct kg_contract_writer *writer);
// Declares the axes of one role (batch, M, N or K); `position` is their linear index.
void kg_contract_emit_axes(struct kg_contract_writer *writer, enum kg_contract_role part,
                           const char *position);

#endif
