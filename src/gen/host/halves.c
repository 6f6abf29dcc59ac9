// Buffers of converted f16: see halves.h.

#include "gen/host/halves.h"

#include "gen/shared/pointwise_chain.h"

// Do the lanes read neighbours in memory?
static bool is_half(const struct kg_group *group, const struct kg_access *access, int axis)
{
    int last = access->tensor->rank - 1;
    if (kg_emit_tensor_dtype(access->tensor) != KG_F16 || !group->problem->contiguous ||
        access->read->pad || kg_group_maker(group, access->tensor) >= 0 || last < 0 ||
        !kg_pointwise_bare(access, last, axis))
        return false;
    for (int dim = 0; dim < last; dim++)
        if (kg_expr_uses(access->map[dim].subscript, axis, true))
            return false;
    return true;
}

// The position of the nest that is computed in place of this read, which follows its axes; -1:
// there is none.
static int inlined(const struct kg_values *values, const struct kg_access *access)
{
    int maker = kg_group_maker(values->group, access->tensor);
    if (maker < 0 || values->locals[maker] || !kg_group_is_private(values->group, access->tensor))
        return -1;
    return maker;
}

// Adds the nests that are computed for this one. False: one of them at other places than its own.
static bool add_nests(const struct kg_values *values, int position, uint64_t *nests)
{
    const struct kg_nest *nest = kg_group_nest(values->group, position);
    if (*nests >> position & 1) // has been looked at
        return true;
    *nests |= (uint64_t)1 << position;
    for (int i = 0; i < nest->access_count; i++) {
        int maker = inlined(values, &nest->accesses[i]);
        if (maker >= 0 && (!kg_axes_identity(&nest->accesses[i]) || nest->accesses[i].read->pad ||
                           !add_nests(values, maker, nests)))
            return false;
    }
    return true;
}

static uint64_t nests_of(const struct kg_values *values, int position)
{
    uint64_t nests = 0;
    return add_nests(values, position, &nests) ? nests : (uint64_t)1 << position;
}

static bool reads_halves(const struct kg_group *group, uint64_t nests, int axis)
{
    for (int i = 0; i < group->count; i++)
        for (int j = 0; nests >> i & 1 && j < kg_group_nest(group, i)->access_count; j++)
            if (is_half(group, &kg_group_nest(group, i)->accesses[j], axis))
                return true;
    return false;
}

bool kg_halves_are_read(const struct kg_values *values, int position, int axis)
{
    return reads_halves(values->group, nests_of(values, position), axis);
}

// The number of the buffer of an access: that of the first one that reads the same.
static int number_of(const struct kg_halves *halves, const struct kg_access *access)
{
    for (int i = 0; i < halves->group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(halves->group, i);
        for (int j = 0; halves->nests >> i & 1 && j < nest->access_count; j++)
            if (is_half(halves->group, &nest->accesses[j], halves->axis) &&
                (access == &nest->accesses[j] || kg_access_same(access, &nest->accesses[j])))
                return (halves->stream * KG_MAX_NESTS + i) * KG_MAX_ACCESSES + j;
    }
    return -1;
}

// Declares the buffer with this number and fills it.
static void fill(struct kg_code *code, const struct kg_values *values, const struct kg_nest *nest,
                 const struct kg_access *access, int number, const char *lanes)
{
    kg_code_line(code, "float wide%d[%s] __attribute__((aligned(KG_LINE)));", number, lanes);
    kg_code_begin(code);
    kg_text_add(code->text, "kg_widen_f16(");
    kg_emit_name(code->text, access->tensor->name);
    kg_text_add(code->text, " + ");
    kg_values_access(code->text, values, nest, access);
    kg_text_format(code->text, ", wide%d, %s);", number, lanes);
    kg_code_end(code);
}

void kg_halves_fill(struct kg_code *code, struct kg_halves *halves, const struct kg_values *values,
                    int position, const char *first, const char *lanes)
{
    struct kg_values at = *values;
    uint64_t nests = nests_of(values, position) & ~halves->nests;
    at.axes[halves->axis] = first;
    at.read = NULL;
    halves->nests |= nests;
    for (int i = 0; i < values->group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(values->group, i);
        for (int j = 0; nests >> i & 1 && j < nest->access_count; j++) {
            int own = (halves->stream * KG_MAX_NESTS + i) * KG_MAX_ACCESSES + j;
            if (is_half(values->group, &nest->accesses[j], halves->axis) &&
                number_of(halves, &nest->accesses[j]) == own)
                fill(code, &at, nest, &nest->accesses[j], own, lanes);
        }
    }
}

static bool is_filled(const struct kg_halves *halves, const struct kg_access *access)
{
    for (int i = 0; i < halves->group->count; i++)
        for (int j = 0; halves->nests >> i & 1 && j < kg_group_nest(halves->group, i)->access_count;
             j++)
            if (access == &kg_group_nest(halves->group, i)->accesses[j])
                return is_half(halves->group, access, halves->axis);
    return false;
}

bool kg_halves_read(void *user, struct kg_text *text, const struct kg_access *access)
{
    const struct kg_halves *halves = user;
    if (!is_filled(halves, access))
        return false;
    kg_text_format(text, "wide%d[lane]", number_of(halves, access));
    return true;
}

bool kg_halves_are_stored(const struct kg_group *group, int position, int axis)
{
    const struct kg_nest *nest = kg_group_nest(group, position);
    return kg_emit_tensor_dtype(nest->output) == KG_F16 && group->problem->contiguous &&
           nest->body->type == KG_TYPE_F32 && nest->output_axes - 1 == axis &&
           !kg_group_is_private(group, nest->output);
}
