// Reductions in Triton kernels: see triton_fold.h.

#include "gen/triton/triton_fold.h"

#include <string.h>

static bool is_real(enum kg_type type)
{
    return type == KG_TYPE_F32 || type == KG_TYPE_F64;
}

const char *kg_triton_neutral(enum kg_reduce reduce, enum kg_type type)
{
    switch (reduce) {
    case KG_REDUCE_PROD:
        return is_real(type) ? "1.0" : "1";
    case KG_REDUCE_MAX:
    case KG_REDUCE_ARGMAX:
        return is_real(type) ? "float(\"-inf\")" : "-9223372036854775808";
    case KG_REDUCE_MIN:
    case KG_REDUCE_ARGMIN:
        return is_real(type) ? "float(\"inf\")" : "9223372036854775807";
    case KG_REDUCE_ALL:
        return "1";
    case KG_REDUCE_ANY:
        return "0";
    default:
        return is_real(type) ? "0.0" : "0";
    }
}

struct kg_triton_fold kg_triton_fold_of(const struct kg_nest *nest)
{
    enum kg_type body = nest->body->type;
    struct kg_triton_fold fold = {.nest = nest, .type = body, .along = -1, .shape = ""};
    if (nest->reduce == KG_REDUCE_MEAN && !is_real(body))
        fold.type = KG_TYPE_F32;
    else if (body == KG_TYPE_BOOL)
        fold.type = KG_TYPE_I64;
    switch (nest->reduce) {
    case KG_REDUCE_ARGMAX:
    case KG_REDUCE_ARGMIN:
        fold.result = KG_TYPE_I64;
        break;
    case KG_REDUCE_ANY:
    case KG_REDUCE_ALL:
        fold.result = KG_TYPE_BOOL;
        break;
    default:
        fold.result = fold.type;
    }
    return fold;
}

static bool has_relation(const struct kg_nest *nest)
{
    for (int i = nest->output_axes; i < nest->axis_count; i++)
        if (nest->axes[i]->relation != KG_RELATION_NONE)
            return true;
    return false;
}

static const char *storage(const struct kg_triton_fold *fold)
{
    bool truth = fold->nest->reduce == KG_REDUCE_ANY || fold->nest->reduce == KG_REDUCE_ALL;
    return truth ? "tl.int32" : kg_triton_type(fold->type);
}

static const char *full(struct kg_triton_kernel *kernel, const struct kg_triton_fold *fold,
                        const char *value, const char *type)
{
    return kg_triton_format(kernel, "tl.full(%s, %s, %s)", *fold->shape ? fold->shape : "()", value,
                            type);
}

void kg_triton_fold_begin(struct kg_triton_kernel *kernel, struct kg_triton_fold *fold)
{
    enum kg_reduce reduce = fold->nest->reduce;
    fold->total = kg_triton_fresh(kernel, "total");
    kg_triton_line(kernel, "%s = %s", fold->total,
                   full(kernel, fold, kg_triton_neutral(reduce, fold->type), storage(fold)));
    if (kg_reduces[reduce].is_argument) {
        fold->place = kg_triton_fresh(kernel, "place");
        kg_triton_line(kernel, "%s = %s", fold->place, full(kernel, fold, "-1", "INDEX"));
    }
    if (reduce == KG_REDUCE_MEAN && has_relation(fold->nest)) {
        fold->count = kg_triton_fresh(kernel, "count");
        kg_triton_line(kernel, "%s = %s", fold->count,
                       full(kernel, fold, "0.0", kg_triton_type(fold->type)));
    }
}

// The place of the current element: of one index its value, of several the row-major position.
static const char *place_now(struct kg_triton_kernel *kernel, const struct kg_nest *nest)
{
    int first = nest->output_axes;
    if (nest->axis_count == first + 1)
        return kernel->axes[first].name;
    const char *place = NULL;
    for (int i = first; i < nest->axis_count; i++) {
        const char *begin = kg_triton_begin_of(kernel, nest->axes[i]);
        const char *axis = kernel->axes[i].name;
        if (strcmp(begin, "0") != 0)
            axis = kg_triton_format(kernel, "(%s - %s)", axis, begin);
        place = place ? kg_triton_format(kernel, "%s * %s + %s", kg_triton_operand(kernel, place),
                                         kg_triton_extent(kernel, nest->axes[i]), axis)
                      : axis;
    }
    return place;
}

static void step_argument(struct kg_triton_kernel *kernel, const struct kg_triton_fold *fold,
                          const char *value, const char *valid)
{
    const char *better = kg_triton_fresh(kernel, "better");
    const char *sign = fold->nest->reduce == KG_REDUCE_ARGMAX ? ">" : "<";
    // The first wins among equals, a NaN over everything else.
    if (is_real(fold->type))
        kg_triton_line(kernel, "%s = (%s < 0) | (%s %s %s) | ((%s != %s) & (%s == %s))", better,
                       fold->place, value, sign, fold->total, value, value, fold->total,
                       fold->total);
    else
        kg_triton_line(kernel, "%s = (%s < 0) | (%s %s %s)", better, fold->place, value, sign,
                       fold->total);
    if (valid)
        kg_triton_line(kernel, "%s = %s & %s", better, better, valid);
    kg_triton_line(kernel, "%s = tl.where(%s, %s, %s)", fold->total, better, value, fold->total);
    kg_triton_line(kernel, "%s = tl.where(%s, tl.cast(%s, INDEX), %s)", fold->place, better,
                   place_now(kernel, fold->nest), fold->place);
}

static const char *body_of(struct kg_triton_kernel *kernel, const struct kg_triton_fold *fold)
{
    bool truth = fold->nest->reduce == KG_REDUCE_ANY || fold->nest->reduce == KG_REDUCE_ALL;
    const char *text = kg_triton_value(kernel, fold->nest->body, truth ? KG_TYPE_BOOL : fold->type);
    return truth ? kg_triton_format(kernel, "(%s).to(tl.int32)", text) : text;
}

void kg_triton_fold_once(struct kg_triton_kernel *kernel, struct kg_triton_fold *fold,
                         const char *valid)
{
    if (kg_reduces[fold->nest->reduce].is_argument) {
        kg_triton_fold_begin(kernel, fold);
        kg_triton_fold_step(kernel, fold, valid);
        return;
    }
    const char *value = body_of(kernel, fold);
    fold->total = kg_triton_format(kernel, "tl.where(%s, %s, %s)", valid, value,
                                   kg_triton_neutral(fold->nest->reduce, fold->type));
}

void kg_triton_fold_step(struct kg_triton_kernel *kernel, const struct kg_triton_fold *fold,
                         const char *valid)
{
    const struct kg_nest *nest = fold->nest;
    const char *value = body_of(kernel, fold);
    if (kg_reduces[nest->reduce].is_argument) {
        const char *name = kg_triton_fresh(kernel, "value");
        kg_triton_line(kernel, "%s = %s", name, value);
        step_argument(kernel, fold, name, valid);
        return;
    }
    if (valid)
        value = kg_triton_format(kernel, "tl.where(%s, %s, %s)", valid, value,
                                 kg_triton_neutral(nest->reduce, fold->type));
    const char *total = fold->total;
    switch (nest->reduce) {
    case KG_REDUCE_PROD:
        kg_triton_line(kernel, "%s *= %s", total, value);
        break;
    case KG_REDUCE_MAX:
    case KG_REDUCE_MIN:
        kg_triton_line(kernel, "%s = %s%s(%s, %s)", total, is_real(fold->type) ? "_" : "tl.",
                       nest->reduce == KG_REDUCE_MAX ? "maximum" : "minimum", total, value);
        break;
    case KG_REDUCE_ANY:
        kg_triton_line(kernel, "%s = %s | %s", total, total, value);
        break;
    case KG_REDUCE_ALL:
        kg_triton_line(kernel, "%s = %s & %s", total, total, value);
        break;
    default:
        kg_triton_line(kernel, "%s += %s", total, value);
    }
    if (fold->count)
        kg_triton_line(kernel, "%s += tl.where(%s, 1.0, 0.0)", fold->count, valid);
}

// One of the helpers that reduce a dimension of a tile, or a function of Triton.
static const char *along(struct kg_triton_kernel *kernel, const struct kg_triton_fold *fold,
                         const char *function, const char *value)
{
    if (fold->along < 0)
        return value;
    return kg_triton_format(kernel, "%s(%s, %d%s)", function, value, fold->along,
                            fold->keeps ? ", keep_dims=True" : "");
}

static const char *counted(struct kg_triton_kernel *kernel, const struct kg_triton_fold *fold)
{
    if (fold->count)
        return along(kernel, fold, "tl.sum", fold->count);
    const char *product = NULL;
    for (int i = fold->nest->output_axes; i < fold->nest->axis_count; i++) {
        const char *extent = kg_triton_extent(kernel, fold->nest->axes[i]);
        product = product ? kg_triton_format(kernel, "%s * %s", product, extent) : extent;
    }
    return kg_triton_format(kernel, "tl.cast(%s, %s)", product, kg_triton_type(fold->type));
}

const char *kg_triton_fold_total(struct kg_triton_kernel *kernel, const struct kg_triton_fold *fold)
{
    bool real = is_real(fold->type);
    switch (fold->nest->reduce) {
    case KG_REDUCE_PROD:
        return along(kernel, fold, "_product", fold->total);
    case KG_REDUCE_MAX:
    case KG_REDUCE_ARGMAX:
        return along(kernel, fold, real ? "_largest" : "tl.max", fold->total);
    case KG_REDUCE_MIN:
    case KG_REDUCE_ARGMIN:
        return along(kernel, fold, real ? "_smallest" : "tl.min", fold->total);
    case KG_REDUCE_ANY:
        return along(kernel, fold, "tl.max", fold->total);
    case KG_REDUCE_ALL:
        return along(kernel, fold, "tl.min", fold->total);
    default:
        return along(kernel, fold, "tl.sum", fold->total);
    }
}

const char *kg_triton_fold_place(struct kg_triton_kernel *kernel, const struct kg_triton_fold *fold,
                                 const char *best)
{
    if (fold->along < 0)
        return kg_triton_format(kernel, "%s.to(tl.int64)", fold->place);
    return kg_triton_format(kernel, "_first_place(%s, %s, %s, %d%s).to(tl.int64)", fold->total,
                            fold->place, best, fold->along, fold->keeps ? ", keep_dims=True" : "");
}

const char *kg_triton_fold_end(struct kg_triton_kernel *kernel, const struct kg_triton_fold *fold)
{
    const char *total = kg_triton_fold_total(kernel, fold);
    switch (fold->nest->reduce) {
    case KG_REDUCE_ANY:
    case KG_REDUCE_ALL:
        return kg_triton_format(kernel, "%s != 0", total);
    case KG_REDUCE_ARGMAX:
    case KG_REDUCE_ARGMIN:
        return kg_triton_fold_place(kernel, fold, total);
    case KG_REDUCE_MEAN:
        return kg_triton_format(kernel, "%s / %s", total, counted(kernel, fold));
    default:
        return total;
    }
}
