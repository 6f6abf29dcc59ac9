// The epilogue of a product: which statement is stored last, and which of its reads are per row,
// per column or per element. Threads load those early, during the main loop, and once for each row
// or column.

#include "gen/cuda/contract/cuda_contract.h"
#include "gen/shared/axes.h"
#include "gen/shared/emit.h"

static const struct kg_nest *nest_at(const struct kg_cuda_contract_plan *plan, int i)
{
    return plan->group->problem->nests[plan->group->first + i];
}

static bool is_stored(const struct kg_cuda_contract_plan *plan, int i)
{
    return !kg_group_is_private(plan->group, nest_at(plan, i)->output);
}

int kg_cuda_contract_last(const struct kg_cuda_contract_plan *plan)
{
    int last = plan->group->count - 1;
    while (last > 0 && !is_stored(plan, last))
        last--;
    return last;
}

bool kg_cuda_contract_has_epilogue(const struct kg_cuda_contract_plan *plan)
{
    return kg_cuda_contract_last(plan) > 0;
}

const struct kg_tensor *kg_cuda_contract_output(const struct kg_cuda_contract_plan *plan)
{
    return nest_at(plan, kg_cuda_contract_last(plan))->output;
}

static bool has_stride(const struct kg_cuda_contract_plan *plan, enum kg_contract_role role)
{
    const struct kg_contract *contract = &plan->contract;
    int count = contract->axis_count[role];
    for (int i = 1; i < count; i++)
        if (contract->axes[role][i] != contract->axes[role][i - 1] + 1)
            return false;
    return count <= 1 || plan->group->problem->contiguous;
}

bool kg_cuda_contract_output_has_strides(const struct kg_cuda_contract_plan *plan)
{
    return has_stride(plan, KG_CONTRACT_M) && has_stride(plan, KG_CONTRACT_N);
}

// ---- Reads ----

// Whether the read depends on the axes of a role (M or N).
static bool moves(const struct kg_cuda_contract_plan *plan, const struct kg_access *access,
                  enum kg_contract_role part)
{
    const struct kg_contract *contract = &plan->contract;
    for (int i = 0; i < contract->axis_count[part]; i++)
        for (int dim = 0; dim < access->tensor->rank; dim++)
            if (access->map[dim].coefficient[contract->axes[part][i]] != 0)
                return true;
    return false;
}

// Whether adjacent columns are adjacent in memory, two bytes each, as far as subscripts tell.
static bool is_in_pairs(const struct kg_cuda_contract_plan *plan, const struct kg_access *access)
{
    const struct kg_contract *contract = &plan->contract;
    int last = access->tensor->rank - 1, axis = contract->axes[KG_CONTRACT_N][0];
    if (contract->axis_count[KG_CONTRACT_N] != 1 || !kg_axes_from_zero(contract->nest->axes[axis]))
        return false;
    for (int dim = 0; dim <= last; dim++)
        if (access->map[dim].offset != 0 || access->map[dim].base ||
            access->map[dim].coefficient[axis] != (dim == last))
            return false;
    return kg_dtype_is_half(kg_emit_tensor_dtype(access->tensor));
}

static bool find_scope(const struct kg_cuda_contract_plan *plan, const struct kg_access *access,
                       enum kg_cuda_contract_epilogue_scope *scope)
{
    bool row = moves(plan, access, KG_CONTRACT_M), column = moves(plan, access, KG_CONTRACT_N);
    *scope = row && column ? KG_EPILOGUE_PER_ELEMENT
             : column      ? KG_EPILOGUE_PER_COLUMN
                           : KG_EPILOGUE_PER_ROW;
    if (kg_group_maker(plan->group, access->tensor) >= 0 || access->read->pad ||
        kg_dtype_is_packed(kg_emit_tensor_dtype(access->tensor)))
        return false;
    for (int dim = 0; dim < access->tensor->rank; dim++)
        if (!access->map[dim].is_affine)
            return false;
    return *scope != KG_EPILOGUE_PER_ELEMENT || is_in_pairs(plan, access);
}

int kg_cuda_contract_epilogue_reads(const struct kg_cuda_contract_plan *plan,
                                    struct kg_cuda_contract_epilogue_read *list)
{
    int count = 0, per_element = 0;
    for (int i = 1; i <= kg_cuda_contract_last(plan); i++) {
        const struct kg_nest *nest = nest_at(plan, i);
        for (int j = 0; j < nest->access_count && count < KG_CONTRACT_EPILOGUE_READS; j++) {
            enum kg_cuda_contract_epilogue_scope scope;
            if (!find_scope(plan, &nest->accesses[j], &scope))
                continue;
            per_element += scope == KG_EPILOGUE_PER_ELEMENT;
            if (scope != KG_EPILOGUE_PER_ELEMENT || per_element == 1) // threads keep one
                list[count++] =
                    (struct kg_cuda_contract_epilogue_read){nest, &nest->accesses[j], scope};
        }
    }
    return count;
}

int kg_cuda_contract_find_epilogue_read(const struct kg_cuda_contract_plan *plan,
                                        const struct kg_access *access)
{
    struct kg_cuda_contract_epilogue_read list[KG_CONTRACT_EPILOGUE_READS];
    int count = kg_cuda_contract_epilogue_reads(plan, list);
    while (count > 0 && list[count - 1].access != access)
        count--;
    return count - 1;
}

int kg_cuda_contract_epilogue_registers(const struct kg_cuda_contract_plan *plan, int rows,
                                        int columns)
{
    enum { PER_ELEMENT = 24 }; // the values of one store chunk and their addresses
    struct kg_cuda_contract_epilogue_read list[KG_CONTRACT_EPILOGUE_READS];
    int count = kg_cuda_contract_epilogue_reads(plan, list), registers = 0;
    for (int i = 0; i < count; i++) {
        int bits = kg_dtypes[kg_emit_tensor_dtype(list[i].access->tensor)].bits;
        bool by_column = (list[i].scope == KG_EPILOGUE_PER_COLUMN) != (plan->config.swap == 1);
        if (list[i].scope == KG_EPILOGUE_PER_ELEMENT)
            registers += plan->config.swap ? 0 : PER_ELEMENT;
        else
            registers +=
                by_column ? (columns + 63) / 64 * ((bits + 15) / 16) : rows * ((bits + 31) / 32);
    }
    return registers;
}

// ---- What the epilogue needs ----

// Whether the statement uses an index, or reads something that is not in the list.
static bool needs_position(const struct kg_cuda_contract_plan *plan, const struct kg_nest *nest)
{
    for (int axis = 0; axis < nest->output_axes; axis++)
        if (kg_expr_uses(nest->body, axis, false))
            return true;
    for (int i = 0; i < nest->access_count; i++)
        if (kg_group_maker(plan->group, nest->accesses[i].tensor) < 0 &&
            kg_cuda_contract_find_epilogue_read(plan, &nest->accesses[i]) < 0)
            return true;
    return false;
}

bool kg_cuda_contract_epilogue_uses_position(const struct kg_cuda_contract_plan *plan)
{
    int last = kg_cuda_contract_last(plan);
    for (int i = 0; i < last; i++)
        if (is_stored(plan, i) || needs_position(plan, nest_at(plan, i + 1)))
            return true;
    return false;
}

bool kg_cuda_contract_epilogue_is_heavy(const struct kg_cuda_contract_plan *plan)
{
    double functions = 0;
    for (int i = 1; i <= kg_cuda_contract_last(plan); i++)
        functions += nest_at(plan, i)->transcendentals;
    return kg_cuda_contract_epilogue_uses_position(plan) ||
           (functions > 0 && kg_group_narrow(plan->group) == 0);
}
