// Reading a nest as a matrix product: the body is split into factors, the factors are assigned to
// two operands so that they share as few output axes as possible, and every axis gets its role.

#include "gen/shared/contract_operands.h"

#include "gen/shared/emit.h"

#include <string.h>

struct factors {
    int count;
    struct kg_contract_factor list[KG_CONTRACT_FACTORS];
    unsigned uses[KG_CONTRACT_FACTORS]; // axes, one bit each
    bool negative;
    bool overflow;
};

static bool is_real(enum kg_type type)
{
    return type == KG_TYPE_F32 || type == KG_TYPE_F64;
}

static unsigned axes_of(const struct kg_nest *nest, const struct kg_expr *expr)
{
    unsigned uses = 0;
    for (int axis = 0; axis < nest->axis_count; axis++)
        if (kg_expr_uses(expr, axis, true))
            uses |= 1u << axis;
    return uses;
}

// Whether this is a cast that changes no value on its way to `type`: one from f64 to f32 does.
static bool is_widening(const struct kg_expr *expr, enum kg_type type)
{
    if (expr->kind != KG_EXPR_CAST || !kg_dtype_is_computed(expr->cast.dtype))
        return false;
    enum kg_type from = expr->arguments[0]->type;
    return is_real(expr->type) && is_real(type) && is_real(from) &&
           (from == expr->type || from == KG_TYPE_F32);
}

// Whether this is a cast to the dtype that the value has in memory: it changes nothing.
static bool is_kept_in(const struct kg_expr *expr)
{
    const struct kg_expr *read = expr->kind == KG_EXPR_CAST ? expr->arguments[0] : NULL;
    return read && read->kind == KG_EXPR_READ && read->type == expr->type && !read->pad &&
           kg_emit_tensor_dtype(read->tensor) == expr->cast.dtype;
}

// Splits a product into its factors, if it is computed in floating point or, for integers, in the
// type of the whole: an inner product of narrower integers may wrap.
static void take_apart(const struct kg_nest *nest, const struct kg_expr *expr, bool divides,
                       struct factors *factors)
{
    enum kg_type type = nest->body->type;
    if (is_widening(expr, type) || is_kept_in(expr)) {
        take_apart(nest, expr->arguments[0], divides, factors);
        return;
    }
    if (expr->kind == KG_EXPR_CALL && (is_real(expr->type) || expr->type == type)) {
        bool quotient = expr->function == KG_FN_DIV && is_real(expr->type);
        if (expr->function == KG_FN_MUL || quotient) {
            take_apart(nest, expr->arguments[0], divides, factors);
            take_apart(nest, expr->arguments[1], divides != quotient, factors);
            return;
        }
        if (expr->function == KG_FN_NEG) {
            factors->negative = !factors->negative;
            take_apart(nest, expr->arguments[0], divides, factors);
            return;
        }
    }
    if (factors->count == KG_CONTRACT_FACTORS) {
        factors->overflow = true;
        return;
    }
    factors->uses[factors->count] = axes_of(nest, expr);
    factors->list[factors->count++] = (struct kg_contract_factor){expr, divides};
}

static bool reads_memory(const struct kg_expr *expr)
{
    if (expr->kind == KG_EXPR_READ)
        return true;
    for (int i = 0; i < expr->argument_count; i++)
        if (reads_memory(expr->arguments[i]))
            return true;
    return false;
}

// The access of a factor that is a matrix in memory, or NULL.
static const struct kg_access *plain_access(const struct kg_nest *nest,
                                            const struct kg_contract_factor *factor)
{
    const struct kg_expr *expr = factor->expr;
    if (expr->kind != KG_EXPR_READ || expr->pad || factor->divides ||
        expr->type != nest->body->type)
        return NULL;
    enum kg_dtype dtype = kg_emit_tensor_dtype(expr->tensor);
    bool single = nest->body->type == KG_TYPE_F32;
    if (kg_dtypes[dtype].bits != (single ? 32 : 64) && !(single && kg_dtype_is_half(dtype)))
        return NULL;
    const struct kg_access *access = kg_nest_access(nest, expr);
    for (int dim = 0; dim < access->tensor->rank; dim++)
        if (!access->map[dim].is_affine)
            return NULL;
    return access;
}

// The cost of assigning the factors in `mask` to B and the others to A; -1: impossible. Batch axes
// are outer loops, and computed operands have to be packed.
static int cost_of(const struct kg_nest *nest, const struct factors *factors, unsigned mask)
{
    unsigned uses[2] = {0, 0}, outputs = (1u << nest->output_axes) - 1;
    int members[2] = {0, 0}, plain = 0;
    for (int i = 0; i < factors->count; i++) {
        int operand = mask >> i & 1;
        uses[operand] |= factors->uses[i];
        members[operand]++;
        plain += plain_access(nest, &factors->list[i]) != NULL;
    }
    if (!(uses[0] & ~outputs) || !(uses[1] & ~outputs))
        return -1;
    plain -= members[0] > 1 ? members[0] : 0;
    plain -= members[1] > 1 ? members[1] : 0;
    return 100 * __builtin_popcount(uses[0] & uses[1] & outputs) - plain + 50;
}

static bool deal(const struct kg_nest *nest, const struct factors *factors, unsigned *best)
{
    int least = -1;
    for (unsigned mask = 1; mask + 1 < 1u << factors->count; mask++) {
        int cost = cost_of(nest, factors, mask);
        if (cost >= 0 && (least < 0 || cost < least)) {
            least = cost;
            *best = mask;
        }
    }
    return least >= 0;
}

// Output axes that choose one of several matrices of quantised weights by an index from memory:
// the j of w[e[m, j], k, n]. Where such an axis changes, all of the matrix does, so it is of the
// batch even if only one operand has it.
static unsigned choosing_axes(const struct kg_nest *nest, const struct kg_expr *expr)
{
    enum { MOST_BITS = 8 };
    unsigned outputs = (1u << nest->output_axes) - 1, chosen = 0, plain = 0;
    for (int i = 0; i < expr->argument_count; i++)
        chosen |= choosing_axes(nest, expr->arguments[i]);
    if (expr->kind != KG_EXPR_READ ||
        kg_dtypes[kg_emit_tensor_dtype(expr->tensor)].bits > MOST_BITS)
        return chosen;
    unsigned by_index = 0;
    for (int i = 0; i < expr->argument_count; i++)
        *(reads_memory(expr->arguments[i]) ? &by_index : &plain) |=
            axes_of(nest, expr->arguments[i]);
    return plain & outputs & ~by_index ? chosen | (by_index & outputs & ~plain) : chosen;
}

static void name_axes(struct kg_contract *contract, const unsigned uses[2])
{
    unsigned chosen = choosing_axes(contract->nest, contract->nest->body);
    for (int axis = 0; axis < contract->nest->axis_count; axis++) {
        bool a = uses[0] >> axis & 1, b = uses[1] >> axis & 1;
        enum kg_contract_role role = axis >= contract->nest->output_axes ? KG_CONTRACT_K
                                     : a == b || chosen >> axis & 1      ? KG_CONTRACT_BATCH
                                     : a                                 ? KG_CONTRACT_M
                                                                         : KG_CONTRACT_N;
        contract->axes[role][contract->axis_count[role]++] = axis;
    }
}

// Whether the last subscript of a read with axes of both roles runs along K.
static bool is_k_major(const struct kg_contract *contract, unsigned rows,
                       const struct kg_expr *expr)
{
    unsigned outputs = (1u << contract->nest->output_axes) - 1;
    if (expr->kind == KG_EXPR_READ && expr->argument_count > 0) {
        unsigned all = axes_of(contract->nest, expr);
        unsigned last = axes_of(contract->nest, expr->arguments[expr->argument_count - 1]);
        if ((all & rows) && (all & ~outputs))
            return (last & ~outputs) && !(last & rows);
        return !(all & rows) && (all & ~outputs);
    }
    for (int i = 0; i < expr->argument_count; i++)
        if (is_k_major(contract, rows, expr->arguments[i]))
            return true;
    return false;
}

static void complete_side(struct kg_contract *contract, int index)
{
    struct kg_contract_operand *operand = &contract->operands[index];
    enum kg_contract_role role = index ? KG_CONTRACT_N : KG_CONTRACT_M;
    unsigned rows = 0;
    for (int i = 0; i < contract->axis_count[role]; i++)
        rows |= 1u << contract->axes[role][i];
    if (operand->count == 1)
        operand->plain = plain_access(contract->nest, &operand->factors[0]);
    // The read with the largest axes decides: a scale per row does not.
    int largest = -1;
    for (int i = 0; i < operand->count; i++) {
        unsigned uses = axes_of(contract->nest, operand->factors[i].expr);
        if (__builtin_popcount(uses) <= largest)
            continue;
        largest = __builtin_popcount(uses);
        operand->k_major = is_k_major(contract, rows, operand->factors[i].expr);
    }
}

// Only one dtype is widened in registers: B's, if both operands are narrow and differ. When there
// are few rows, they are usually those of A.
static void settle_half(struct kg_contract *contract)
{
    contract->half = KG_F32;
    for (int index = 1; index >= 0; index--) {
        struct kg_contract_operand *operand = &contract->operands[index];
        enum kg_dtype dtype =
            operand->plain ? kg_emit_tensor_dtype(operand->plain->tensor) : KG_F32;
        if (!kg_dtype_is_half(dtype))
            continue;
        if (contract->half == KG_F32)
            contract->half = dtype;
        if (contract->half != dtype)
            operand->plain = NULL;
        else
            operand->halves = true;
    }
}

static bool refuse(struct kg_text *reason, const char *why)
{
    if (reason)
        kg_text_add(reason, why);
    return false;
}

static bool check_nest(const struct kg_nest *nest, struct kg_text *reason)
{
    if (!nest->has_reduce || nest->reduce != KG_REDUCE_SUM)
        return refuse(reason, "it is not a sum");
    if (nest->class != KG_CLASS_CONTRACT && nest->class != KG_CLASS_WINDOW)
        return refuse(reason, "no element is used with many others");
    for (int axis = nest->output_axes; axis < nest->axis_count; axis++)
        if (nest->axes[axis]->relation != KG_RELATION_NONE)
            return refuse(reason, "the range of the sum depends on the output");
    if (!is_real(nest->body->type) && nest->body->type != KG_TYPE_I64)
        return refuse(reason, "it adds up truth values");
    if (kg_dtype_is_packed(kg_emit_tensor_dtype(nest->output)))
        return refuse(reason, "elements of the output share bytes");
    return true;
}

static bool read_product(struct kg_contract *contract, struct kg_text *reason)
{
    const struct kg_nest *nest = contract->nest;
    struct factors all = {0}, factors = {0};
    take_apart(nest, nest->body, false, &all);
    for (int i = 0; i < all.count; i++) {
        if (all.uses[i] == 0 && !reads_memory(all.list[i].expr)) {
            contract->constants[contract->constant_count++] = all.list[i];
            continue;
        }
        factors.uses[factors.count] = all.uses[i];
        factors.list[factors.count++] = all.list[i];
    }
    contract->negative = all.negative;
    unsigned mask = 0, uses[2] = {0, 0};
    if (all.overflow || factors.count < 2 || !deal(nest, &factors, &mask))
        return refuse(reason, "the body is not a product of two operands");
    // B is the operand with the last output axis: results are adjacent along it.
    for (int i = 0; i < factors.count; i++)
        uses[mask >> i & 1] |= factors.uses[i];
    unsigned last = nest->output_axes > 0 ? 1u << (nest->output_axes - 1) : 0;
    bool swap = (uses[0] & last) && !(uses[1] & last);
    for (int i = 0; i < factors.count; i++) {
        struct kg_contract_operand *operand = &contract->operands[(mask >> i & 1) != swap];
        operand->factors[operand->count++] = factors.list[i];
    }
    name_axes(contract, (unsigned[2]){uses[swap], uses[!swap]});
    bool vector =
        contract->axis_count[KG_CONTRACT_M] == 0 || contract->axis_count[KG_CONTRACT_N] == 0;
    if (vector && nest->class == KG_CLASS_WINDOW)
        return refuse(reason, "one operand of the product has no axes of its own");
    if (vector && !((uses[0] ^ uses[1]) & last))
        return refuse(reason, "both operands have the last axis of the output");
    complete_side(contract, 0);
    complete_side(contract, 1);
    settle_half(contract);
    return true;
}

static bool is_made_here(const struct kg_group *group, const struct kg_tensor *tensor, int before)
{
    for (int i = 0; i < before; i++)
        if (group->problem->nests[group->first + i]->output == tensor)
            return true;
    return false;
}

static bool is_identity(const struct kg_nest *nest, const struct kg_access *access)
{
    if (access->read->pad || access->tensor->rank != nest->output_axes)
        return false;
    for (int dim = 0; dim < access->tensor->rank; dim++) {
        const struct kg_expr *subscript = access->map[dim].subscript;
        if (subscript->kind != KG_EXPR_INDEX || subscript->index->id != dim)
            return false;
    }
    return true;
}

// Whether nest `i` of the group can be computed element by element from the sums.
static bool check_follower(const struct kg_group *group, int i, struct kg_text *reason)
{
    const struct kg_nest *first = group->problem->nests[group->first];
    const struct kg_nest *nest = group->problem->nests[group->first + i];
    if (nest->has_reduce || nest->output_axes != first->output_axes)
        return refuse(reason, "what follows is not element by element");
    for (int axis = 0; axis < nest->output_axes; axis++)
        if (!kg_size_same(nest->axes[axis]->end, first->axes[axis]->end))
            return refuse(reason, "what follows runs over other axes");
    if (kg_dtype_is_packed(kg_emit_tensor_dtype(nest->output)))
        return refuse(reason, "elements of an output share bytes");
    bool joined = false;
    for (int j = 0; j < nest->access_count; j++) {
        if (!is_made_here(group, nest->accesses[j].tensor, i))
            continue;
        if (!is_identity(nest, &nest->accesses[j]))
            return refuse(reason, "what follows reads other elements of the result");
        joined = true;
    }
    return joined || refuse(reason, "what follows does not use the result");
}

bool kg_contract_read(const struct kg_group *group, struct kg_contract *contract,
                      struct kg_text *reason)
{
    *contract = (struct kg_contract){
        .group = group,
        .nest = group->problem->nests[group->first],
    };
    contract->type = contract->nest->body->type;
    if (!check_nest(contract->nest, reason) || !read_product(contract, reason))
        return false;
    for (int i = 1; i < group->count; i++)
        if (!check_follower(group, i, reason))
            return false;
    return true;
}

static unsigned batch_axes(const struct kg_contract *contract)
{
    unsigned batch = 0;
    for (int i = 0; i < contract->axis_count[KG_CONTRACT_BATCH]; i++)
        batch |= 1u << contract->axes[KG_CONTRACT_BATCH][i];
    return batch;
}

bool kg_contract_uses_batch(const struct kg_contract *contract, const struct kg_expr *expr)
{
    return (axes_of(contract->nest, expr) & batch_axes(contract)) != 0;
}

bool kg_contract_is_of_batch(const struct kg_contract *contract, const struct kg_expr *expr)
{
    return kg_contract_uses_batch(contract, expr) &&
           (axes_of(contract->nest, expr) & ~batch_axes(contract)) == 0;
}

bool kg_contract_is_in(const struct kg_group *group)
{
    for (int i = 0; i < group->count; i++) {
        const struct kg_group alone = {group->problem, group->first + i, 1};
        struct kg_contract contract;
        if (kg_contract_read(&alone, &contract, NULL) && contract.axis_count[KG_CONTRACT_M] > 0 &&
            contract.axis_count[KG_CONTRACT_N] > 0)
            return true;
    }
    return false;
}

int kg_contract_lanes(const struct kg_contract *contract, const struct kg_device_facts *facts)
{
    int bytes = contract->type == KG_TYPE_F32 ? 4 : 8;
    int vector = facts->vector_bytes >= 64 ? 64 : facts->vector_bytes >= 32 ? 32 : 16;
    return vector / bytes;
}

int kg_contract_registers(const struct kg_device_facts *facts)
{
    bool x86 = strstr(facts->isa, "x86") != NULL;
    return facts->vector_bytes >= 64 || !x86 ? 32 : 16;
}

bool kg_contract_pairs(const struct kg_contract *contract, const struct kg_device_facts *facts)
{
    return contract->operands[0].halves && contract->operands[1].halves &&
           facts->vector_bytes >= 64 &&
           strstr(facts->isa, contract->half == KG_BF16 ? "amx_bf16" : "amx_fp16");
}
