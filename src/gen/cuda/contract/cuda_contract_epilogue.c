// What is done with the sums of a product on their way out, as far as threads have to know: which
// statement is stored last, and what of what is read belongs to a whole row, to a whole column, or
// to a sum alone. That is read apart from the rest, early and no more often than needed.

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

// ---- Reads ----

// Whether the axes of a part move the read.
static bool moves(const struct kg_cuda_contract_plan *plan, const struct kg_access *access,
                  enum kg_contract_part part)
{
    const struct kg_contract *contract = &plan->contract;
    for (int i = 0; i < contract->axis_count[part]; i++)
        for (int dim = 0; dim < access->tensor->rank; dim++)
            if (access->map[dim].coefficient[contract->axes[part][i]] != 0)
                return true;
    return false;
}

// Whether neighbouring columns are neighbours in memory, of two bytes each, as far as that does not
// depend on strides.
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

static bool find_owner(const struct kg_cuda_contract_plan *plan, const struct kg_access *access,
                       enum kg_cuda_contract_epilogue_scope *owner)
{
    bool row = moves(plan, access, KG_CONTRACT_M), column = moves(plan, access, KG_CONTRACT_N);
    *owner = row && column ? KG_EPILOGUE_PER_ELEMENT
             : column      ? KG_EPILOGUE_PER_COLUMN
                           : KG_EPILOGUE_PER_ROW;
    if (kg_group_maker(plan->group, access->tensor) >= 0 || access->read->pad ||
        kg_dtype_is_packed(kg_emit_tensor_dtype(access->tensor)))
        return false;
    for (int dim = 0; dim < access->tensor->rank; dim++)
        if (!access->map[dim].is_affine)
            return false;
    return *owner != KG_EPILOGUE_PER_ELEMENT || is_in_pairs(plan, access);
}

int kg_cuda_contract_epilogue_reads(const struct kg_cuda_contract_plan *plan,
                                    struct kg_cuda_contract_epilogue_read *list)
{
    int count = 0, of_sums = 0;
    for (int i = 1; i <= kg_cuda_contract_last(plan); i++) {
        const struct kg_nest *nest = nest_at(plan, i);
        for (int j = 0; j < nest->access_count && count < KG_CONTRACT_EPILOGUE_READS; j++) {
            enum kg_cuda_contract_epilogue_scope owner;
            if (!find_owner(plan, &nest->accesses[j], &owner))
                continue;
            of_sums += owner == KG_EPILOGUE_PER_ELEMENT;
            if (owner != KG_EPILOGUE_PER_ELEMENT || of_sums == 1) // one is held
                list[count++] =
                    (struct kg_cuda_contract_epilogue_read){nest, &nest->accesses[j], owner};
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
    enum { OF_SUMS = 24 }; // those of a piece, and where they are
    struct kg_cuda_contract_epilogue_read list[KG_CONTRACT_EPILOGUE_READS];
    int count = kg_cuda_contract_epilogue_reads(plan, list), registers = 0;
    for (int i = 0; i < count; i++) {
        int bits = kg_dtypes[kg_emit_tensor_dtype(list[i].access->tensor)].bits;
        bool by_column = (list[i].owner == KG_EPILOGUE_PER_COLUMN) != (plan->set.swap == 1);
        if (list[i].owner == KG_EPILOGUE_PER_ELEMENT)
            registers += plan->set.swap ? 0 : OF_SUMS;
        else
            registers +=
                by_column ? (columns + 63) / 64 * ((bits + 15) / 16) : rows * ((bits + 31) / 32);
    }
    return registers;
}

// ---- What it takes ----

// Whether the statement looks at where it is.
static bool looks(const struct kg_cuda_contract_plan *plan, const struct kg_nest *nest)
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
        if (is_stored(plan, i) || looks(plan, nest_at(plan, i + 1)))
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
