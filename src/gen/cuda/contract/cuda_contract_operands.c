// How the operands of a product lie in memory: see cuda_contract.h.

#include "gen/cuda/contract/cuda_contract.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/shared/axes.h"

enum { ACCESS = 16 };

static bool uses_axes(const struct kg_contract *contract, const struct kg_expr *expr,
                      enum kg_contract_role part)
{
    for (int i = 0; i < contract->axis_count[part]; i++)
        if (kg_expr_uses(expr, contract->axes[part][i], true))
            return true;
    return false;
}

// The read that is the operand, if it is a single one whose subscripts are affine; else NULL.
static const struct kg_access *plain_read(const struct kg_contract *contract, int operand)
{
    const struct kg_contract_factor *factor = &contract->operands[operand].factors[0];
    const struct kg_expr *expr = factor->expr;
    if (contract->operands[operand].count != 1 || factor->divides || expr->kind != KG_EXPR_READ ||
        expr->pad || expr->type != contract->type ||
        kg_dtype_is_packed(kg_emit_tensor_dtype(expr->tensor)))
        return NULL;
    const struct kg_access *access = kg_nest_access(contract->nest, expr);
    for (int dim = 0; dim < access->tensor->rank; dim++)
        if (!access->map[dim].is_affine)
            return NULL;
    return access;
}

void kg_cuda_contract_read_operands(struct kg_cuda_contract_plan *plan)
{
    const struct kg_contract *contract = &plan->contract;
    for (int operand = 0; operand < 2; operand++) {
        const struct kg_access *access = plan->plain[operand] = plain_read(contract, operand);
        plan->k_major[operand] = contract->operands[operand].k_major;
        if (!kg_scaled_operand_read(contract, operand, &plan->scaled[operand], NULL))
            plan->scaled[operand].element = NULL;
        if (!access || access->tensor->rank == 0)
            continue;
        const struct kg_expr *last = access->map[access->tensor->rank - 1].subscript;
        enum kg_contract_role lines = operand ? KG_CONTRACT_N : KG_CONTRACT_M;
        plan->k_major[operand] =
            uses_axes(contract, last, KG_CONTRACT_K) && !uses_axes(contract, last, lines);
    }
}

enum kg_dtype kg_cuda_contract_dtype(const struct kg_cuda_contract_plan *plan, int operand)
{
    return plan->plain[operand] ? kg_emit_tensor_dtype(plan->plain[operand]->tensor)
                                : kg_type_dtype(plan->contract.type);
}

// Vectors run along one axis: the last one of K if the operand is K-major, else of M (or N). They
// are aligned if the last subscript is that axis alone and no other subscript depends on it.
bool kg_cuda_contract_is_whole(const struct kg_cuda_contract_plan *plan, int operand)
{
    const struct kg_access *access = plan->plain[operand];
    return kg_cuda_contract_is_whole_in(
        plan, operand, ACCESS / (kg_dtypes[kg_emit_tensor_dtype(access->tensor)].bits / 8));
}

bool kg_cuda_contract_is_whole_in(const struct kg_cuda_contract_plan *plan, int operand, int vector)
{
    const struct kg_contract *contract = &plan->contract;
    const struct kg_access *access = plan->plain[operand];
    enum kg_contract_role part = plan->k_major[operand] ? KG_CONTRACT_K
                                 : operand              ? KG_CONTRACT_N
                                                        : KG_CONTRACT_M;
    int last = access->tensor->rank - 1, count = contract->axis_count[part];
    if (last < 0 || count == 0)
        return false;
    int axis = contract->axes[part][count - 1];
    const struct kg_expr *subscript = access->map[last].subscript;
    if (subscript->kind != KG_EXPR_INDEX || subscript->index->id != axis ||
        !kg_axes_from_zero(contract->nest->axes[axis]) ||
        contract->nest->extent[axis] % vector != 0)
        return false;
    for (int dim = 0; dim < last; dim++)
        if (access->map[dim].coefficient[axis] != 0)
            return false;
    return kg_cuda_is_whole(plan->group->problem, access->tensor, ~0u, vector);
}
