// The addresses of elements: subscripts, offsets, loads and stores. Index arithmetic is plain C,
// because analysis has proved that every subscript is within its tensor; only gathers are clamped.

#include "gen/shared/emit.h"

#include <assert.h>
#include <string.h>

struct place {
    struct kg_text *text;
    const struct kg_nest *nest; // NULL for size expressions
    const struct kg_emit_names *names;
};

static void print_index(const struct place *place, const struct kg_expr *expr, bool enclosed);

static void print_infix(const struct place *place, const struct kg_expr *expr, const char *sign,
                        bool enclosed)
{
    bool sum = expr->function == KG_FN_ADD || expr->function == KG_FN_SUB;
    const struct kg_expr *left = expr->arguments[0], *right = expr->arguments[1];
    // Products bind tighter than sums, and sums associate to the left; everything else gets
    // parentheses.
    bool product = right->kind == KG_EXPR_CALL && right->function == KG_FN_MUL;
    kg_text_add(place->text, enclosed ? "(" : "");
    print_index(place, left, !sum);
    kg_text_format(place->text, " %s ", sign);
    print_index(place, right, !(sum && product));
    kg_text_add(place->text, enclosed ? ")" : "");
}

bool kg_emit_split(struct kg_text *text, const struct kg_expr *expr,
                   const struct kg_emit_names *names)
{
    const struct kg_split *split = names ? &names->split : NULL;
    if (!split || split->step == 0)
        return false;
    const int64_t divisor = kg_split_divisor(expr, split->axis);
    if (divisor == 0 || split->step % divisor != 0)
        return false;
    if (divisor == split->step)
        kg_text_add(text, expr->function == KG_FN_MOD ? "lane" : "run");
    else if (expr->function == KG_FN_MOD)
        kg_text_format(text, "(lane %% %lld)", (long long)divisor);
    else
        kg_text_format(text, "(run * %lld + lane / %lld)", (long long)(split->step / divisor),
                       (long long)divisor);
    return true;
}

static void print_index_call(const struct place *place, const struct kg_expr *expr, bool enclosed)
{
    static const char *const signs[KG_FUNCTION_COUNT] = {
        [KG_FN_ADD] = "+", [KG_FN_SUB] = "-", [KG_FN_MUL] = "*",
        [KG_FN_DIV] = "/", [KG_FN_MOD] = "%",
    };
    bool divides = expr->function == KG_FN_DIV || expr->function == KG_FN_MOD;
    if (kg_emit_split(place->text, expr, place->names))
        return;
    if (signs[expr->function] &&
        (!divides || (kg_expr_is_natural(expr) && expr->arguments[1]->kind == KG_EXPR_NUMBER))) {
        print_infix(place, expr, signs[expr->function], enclosed);
        return;
    }
    if (expr->function == KG_FN_NEG) {
        kg_text_add(place->text, "(-");
        print_index(place, expr->arguments[0], true);
        kg_text_add(place->text, ")");
        return;
    }
    const char *name = kg_functions[expr->function].name;
    if (divides)
        name = expr->function == KG_FN_DIV ? "div" : "mod";
    else if (expr->function == KG_FN_CEILDIV)
        name = "ceildiv";
    kg_text_format(place->text, "kg_%s_i64(", name);
    for (int i = 0; i < expr->argument_count; i++) {
        kg_text_add(place->text, i > 0 ? ", " : "");
        print_index(place, expr->arguments[i], false);
    }
    kg_text_add(place->text, ")");
}

// An index or size expression without reads. `enclosed`: sums and products need parentheses.
static void print_index(const struct place *place, const struct kg_expr *expr, bool enclosed)
{
    switch (expr->kind) {
    case KG_EXPR_NUMBER:
        kg_text_format(place->text, expr->integer < 0 ? "(%lld)" : "%lld",
                       (long long)expr->integer);
        return;
    case KG_EXPR_SIZE:
        kg_emit_name(place->text, expr->size->name);
        return;
    case KG_EXPR_INDEX:
        kg_emit_expr(place->text, place->nest, expr, place->names);
        return;
    case KG_EXPR_CALL:
        print_index_call(place, expr, enclosed);
        return;
    default: // a read: gathers print their subscripts as values
        kg_emit_value(place->text, place->nest, expr, KG_TYPE_I64, place->names);
        return;
    }
}

void kg_emit_size(struct kg_text *text, const struct kg_expr *expr)
{
    struct place place = {text, NULL, NULL};
    print_index(&place, expr, true);
}

void kg_emit_index(struct kg_text *text, const struct kg_nest *nest, const struct kg_expr *expr,
                   const struct kg_emit_names *names)
{
    struct place place = {text, nest, names};
    print_index(&place, expr, true);
}

void kg_emit_axis_begin(struct kg_text *text, const struct kg_index *axis)
{
    if (axis->begin)
        kg_emit_size(text, axis->begin);
    else
        kg_text_add(text, "0");
}

void kg_emit_axis_end(struct kg_text *text, const struct kg_index *axis)
{
    kg_emit_size(text, axis->end);
}

static void print_subscript(const struct place *place, const struct kg_access *access, int dim,
                            bool enclosed)
{
    const struct kg_affine *map = &access->map[dim];
    if (!map->is_gather) {
        print_index(place, map->subscript, enclosed);
        return;
    }
    if (access->read->pad) { // guarded as a whole instead
        kg_emit_expr(place->text, place->nest, map->subscript, place->names);
        return;
    }
    if (place->names && place->names->place &&
        place->names->place(place->names->user, place->text, access, dim))
        return;
    kg_text_add(place->text, "kg_clamp(");
    kg_emit_value(place->text, place->nest, map->subscript, KG_TYPE_I64, place->names);
    kg_text_add(place->text, ", ");
    kg_emit_size(place->text, access->tensor->dims[dim]);
    kg_text_add(place->text, ")");
}

void kg_emit_subscript(struct kg_text *text, const struct kg_nest *nest,
                       const struct kg_access *access, int dim, const struct kg_emit_names *names)
{
    struct place place = {text, nest, names};
    print_subscript(&place, access, dim, true);
}

static void print_stride(const struct place *place, const struct kg_tensor *tensor, int dim)
{
    kg_text_add(place->text, " * ");
    kg_emit_name(place->text, tensor->name);
    kg_text_format(place->text, "_s%d", dim);
}

static bool has_stride(const struct place *place, const struct kg_tensor *tensor, int dim)
{
    return dim + 1 < tensor->rank || !place->names || !place->names->contiguous;
}

void kg_emit_offset_part(struct kg_text *text, const struct kg_nest *nest,
                         const struct kg_access *access, unsigned dims,
                         const struct kg_emit_names *names)
{
    struct place place = {text, nest, names};
    const struct kg_tensor *tensor = access->tensor;
    size_t before = text->length;
    for (int dim = 0; dim < tensor->rank; dim++) {
        const struct kg_expr *subscript = access->map[dim].subscript;
        bool zero = subscript->kind == KG_EXPR_NUMBER && subscript->integer == 0;
        if (zero || !(dims >> dim & 1))
            continue;
        bool strided = has_stride(&place, tensor, dim);
        kg_text_add(text, text->length > before ? " + " : "");
        print_subscript(&place, access, dim, strided);
        if (strided)
            print_stride(&place, tensor, dim);
    }
    if (text->length == before)
        kg_text_add(text, "0");
}

void kg_emit_offset(struct kg_text *text, const struct kg_nest *nest,
                    const struct kg_access *access, const struct kg_emit_names *names)
{
    kg_emit_offset_part(text, nest, access, ~0u, names);
}

void kg_emit_output_offset_part(struct kg_text *text, const struct kg_nest *nest, unsigned dims,
                                const struct kg_emit_names *names)
{
    struct place place = {text, nest, names};
    size_t before = text->length;
    for (int dim = 0; dim < nest->output_axes; dim++) {
        struct kg_expr axis = {
            .kind = KG_EXPR_INDEX, .type = KG_TYPE_I64, .index = nest->axes[dim]};
        if (!(dims >> dim & 1))
            continue;
        kg_text_add(text, text->length > before ? " + " : "");
        kg_emit_expr(text, nest, &axis, names);
        if (has_stride(&place, nest->output, dim))
            print_stride(&place, nest->output, dim);
    }
    if (text->length == before)
        kg_text_add(text, "0");
}

void kg_emit_output_offset(struct kg_text *text, const struct kg_nest *nest,
                           const struct kg_emit_names *names)
{
    kg_emit_output_offset_part(text, nest, ~0u, names);
}

bool kg_emit_inside(struct kg_text *text, const struct kg_nest *nest,
                    const struct kg_access *access, const struct kg_emit_names *names)
{
    struct place place = {text, nest, names};
    bool any = false;
    for (int dim = 0; dim < access->tensor->rank; dim++) {
        if (kg_access_covers(nest, access, dim))
            continue;
        kg_text_add(text, any ? " && kg_inside(" : "kg_inside(");
        print_subscript(&place, access, dim, false);
        kg_text_add(text, ", ");
        kg_emit_size(text, access->tensor->dims[dim]);
        kg_text_add(text, ")");
        any = true;
    }
    return any;
}

// Narrow floats and packed elements are read and written by functions of the prelude; C's own
// conversions do the rest.
void kg_emit_load_at(struct kg_text *text, const struct kg_tensor *tensor, const char *base,
                     const char *offset)
{
    enum kg_dtype dtype = kg_emit_tensor_dtype(tensor);
    if (kg_dtype_is_in_c(dtype))
        kg_text_format(text, "%s[%s]", base, offset);
    else
        kg_text_format(text, "kg_load_%s(%s, %s)", kg_dtypes[dtype].name, base, offset);
}

void kg_emit_store_at(struct kg_text *text, const struct kg_tensor *tensor, const char *base,
                      const char *offset, enum kg_type type, const char *value)
{
    enum kg_dtype dtype = kg_emit_tensor_dtype(tensor);
    enum kg_type to = kg_dtypes[dtype].compute;
    // Conversion through f32 would round f64 and large integers twice.
    bool wide = kg_dtype_is_narrow_float(dtype) && (type == KG_TYPE_F64 || type == KG_TYPE_I64);
    if (kg_dtype_is_in_c(dtype)) {
        bool narrow = kg_dtypes[dtype].bits < 64 && to == KG_TYPE_I64;
        kg_text_format(text, narrow ? "%s[%s] = (%s)" : "%s[%s] = ", base, offset,
                       kg_emit_storage(dtype));
        kg_emit_convert(text, type, to, value);
        kg_text_add(text, ";");
        return;
    }
    kg_text_format(text, "kg_store_%s%s(%s, %s, ", kg_dtypes[dtype].name, wide ? "_f64" : "", base,
                   offset);
    kg_emit_convert(text, type, wide ? KG_TYPE_F64 : to, value);
    kg_text_add(text, ");");
}

void kg_emit_store(struct kg_text *text, const struct kg_nest *nest,
                   const struct kg_emit_names *names, enum kg_type type, const char *value)
{
    struct kg_text base = {0}, offset = {0};
    kg_emit_name(&base, nest->output->name);
    kg_emit_output_offset(&offset, nest, names);
    kg_emit_store_at(text, nest->output, kg_text_string(&base), kg_text_string(&offset), type,
                     value);
    text->failed |= base.failed | offset.failed;
    kg_text_free(&base);
    kg_text_free(&offset);
}

void kg_emit_load(struct kg_text *text, const struct kg_nest *nest, const struct kg_access *access,
                  const struct kg_emit_names *names)
{
    struct kg_text base = {0}, offset = {0};
    const struct kg_expr *pad = access->read->pad;
    size_t before = text->length;
    kg_text_add(text, pad ? "(" : "");
    bool guarded = pad && kg_emit_inside(text, nest, access, names);
    if (pad && !guarded)
        kg_text_cut(text, before);
    kg_text_add(text, guarded ? " ? " : "");
    kg_emit_name(&base, access->tensor->name);
    kg_emit_offset(&offset, nest, access, names);
    kg_emit_load_at(text, access->tensor, kg_text_string(&base), kg_text_string(&offset));
    if (guarded) {
        kg_text_add(text, " : ");
        kg_emit_value(text, nest, pad, access->read->type, names);
        kg_text_add(text, ")");
    }
    text->failed |= base.failed | offset.failed;
    kg_text_free(&base);
    kg_text_free(&offset);
}
