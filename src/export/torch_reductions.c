// Reductions: einsum for sums of products that broadcasting would blow up, running operations for
// scans, and PyTorch's reductions of the last dimensions otherwise.

#include "export/torch_writer.h"

#include <ctype.h>
#include <string.h>

#define MAX_FACTORS 8

static bool mentions(const struct kg_expr *expr, const struct kg_index *index)
{
    if (expr->kind == KG_EXPR_INDEX)
        return expr->index == index;
    for (int i = 0; i < expr->argument_count; i++)
        if (mentions(expr->arguments[i], index))
            return true;
    for (int i = 0; i < expr->index_count; i++)
        if (expr->indices[i]->bound && mentions(expr->indices[i]->bound, index))
            return true;
    return expr->pad && mentions(expr->pad, index);
}

// The frame of a reduction's body: its indices behind the outer ones.
static struct kg_torch_frame inner_frame(struct kg_torch_writer *writer,
                                         const struct kg_torch_frame *frame,
                                         const struct kg_expr *expr)
{
    struct kg_torch_frame inner = *frame;
    for (int i = 0; i < expr->index_count; i++) {
        if (inner.count == KG_MAX_INDICES) {
            writer->failed = true;
            break;
        }
        inner.indices[inner.count++] = expr->indices[i];
    }
    return inner;
}

// ---- Sums of products

struct product {
    int count;
    struct kg_torch_value factors[MAX_FACTORS];
    const struct kg_expr *exprs[MAX_FACTORS];
};

static int factors_of(const struct kg_expr *expr)
{
    bool is_product = expr->kind == KG_EXPR_CALL && expr->function == KG_FN_MUL;
    return is_product ? factors_of(expr->arguments[0]) + factors_of(expr->arguments[1]) : 1;
}

static bool is_product(const struct kg_expr *expr)
{
    return factors_of(expr) >= 2 && factors_of(expr) <= MAX_FACTORS;
}

static void split(const struct kg_expr *expr, struct product *product)
{
    if (expr->kind == KG_EXPR_CALL && expr->function == KG_FN_MUL) {
        split(expr->arguments[0], product);
        split(expr->arguments[1], product);
    } else {
        product->exprs[product->count++] = expr;
    }
}

// Integers of at most 16 bits: their products are summed exactly in f64.
static bool is_short_integer(const struct kg_torch_writer *writer, const struct kg_expr *expr)
{
    struct kg_dtype_set set;
    if (expr->kind != KG_EXPR_READ || expr->tensor->role != KG_ROLE_INPUT)
        return false;
    kg_torch_dtypes(writer->generic, writer->op, expr->tensor->id, &set);
    for (int i = 0; i < set.count; i++)
        if (kg_dtypes[set.dtypes[i]].bits > 16)
            return false;
    return true;
}

// Would multiplying take an array larger than its factors, and does einsum know all indices?
static bool suits_einsum(const struct product *product, int outer, int inner)
{
    int joined = 0, axes[KG_MAX_INDICES], largest = 0, tensors = 0, reduced = 0;
    for (int i = 0; i < product->count; i++) {
        const struct kg_torch_value *factor = &product->factors[i];
        kg_torch_join(factor, &joined, axes);
        largest = factor->axis_count > largest ? factor->axis_count : largest;
        tensors += factor->axis_count > 0;
    }
    for (int i = 0; i < joined; i++)
        reduced += axes[i] >= outer;
    return tensors >= 2 && joined > largest && reduced == inner - outer;
}

static void choose_letters(const struct kg_torch_frame *frame, char *letters)
{
    bool used[128] = {0};
    for (int i = 0; i < frame->count; i++) {
        const char *name = frame->indices[i]->name;
        char letter = isalpha((unsigned char)name[0]) ? name[0] : 'a';
        for (int tried = 0; used[(int)letter] && tried < 52; tried++)
            letter = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[tried];
        used[(int)letter] = true;
        letters[i] = letter;
    }
}

static bool all_raw(struct kg_torch_writer *writer, const struct product *product)
{
    const struct kg_tensor *raw = product->factors[0].raw;
    for (int i = 0; i < product->count; i++)
        if (!raw || !product->factors[i].raw ||
            strcmp(kg_torch_dtype_text(writer, product->factors[i].raw->id),
                   kg_torch_dtype_text(writer, raw->id)) != 0)
            return false;
    return true;
}

static struct kg_torch_value einsum(struct kg_torch_writer *writer,
                                    const struct kg_torch_frame *inner, int outer,
                                    const struct kg_expr *expr, struct product *product,
                                    bool keep_raw)
{
    char letters[KG_MAX_INDICES];
    struct kg_text formula = {0}, list = {0};
    struct kg_torch_value sum = {.level = PYTHON_PRIMARY, .type = expr->type}, all = {0};
    // GPUs multiply no matrices of integers; the reference runs where that is possible.
    bool by_floats = expr->type == KG_TYPE_I64 && !writer->is_reference;
    bool keep = keep_raw && all_raw(writer, product);
    const struct kg_tensor *raw = product->factors[0].raw;
    choose_letters(inner, letters);
    for (int i = 0; i < product->count; i++) {
        struct kg_torch_value *factor = &product->factors[i];
        if (factor->axis_count == 0)
            continue;
        if (!keep)
            kg_torch_convert(writer, factor, by_floats ? KG_TYPE_F64 : expr->type);
        kg_text_add(&formula, formula.length ? "," : "");
        for (int a = 0; a < factor->axis_count; a++)
            kg_text_format(&formula, "%c", letters[factor->axes[a]]);
        kg_text_format(&list, ", %s", factor->text);
        kg_torch_join(factor, &all.axis_count, all.axes);
    }
    kg_text_add(&formula, "->");
    for (int i = 0; i < all.axis_count && all.axes[i] < outer; i++) {
        sum.axes[sum.axis_count++] = all.axes[i];
        kg_text_format(&formula, "%c", letters[all.axes[i]]);
    }
    sum.text = kg_torch_format(writer, "torch.einsum(\"%s\"%s)%s", kg_text_string(&formula),
                               kg_text_string(&list), by_floats ? ".long()" : "");
    sum.raw = keep ? raw : NULL;
    for (int i = 0; i < product->count; i++)
        if (product->factors[i].axis_count == 0) {
            kg_torch_convert(writer, &product->factors[i], expr->type);
            sum =
                kg_torch_binary(writer, sum, "*", product->factors[i], PYTHON_PRODUCT, expr->type);
        }
    writer->failed |= formula.failed || list.failed;
    kg_text_free(&formula);
    kg_text_free(&list);
    return sum;
}

// True when `*value` is the sum; otherwise it is the product, which is still to be summed.
static bool sum_of_products(struct kg_torch_writer *writer, const struct kg_torch_frame *inner,
                            int outer, const struct kg_expr *expr, bool keep_raw,
                            struct kg_torch_value *value)
{
    struct product product = {0};
    bool is_short = true;
    const struct kg_expr *body = expr->arguments[0];
    split(body, &product);
    for (int i = 0; i < product.count; i++) {
        product.factors[i] = kg_torch_expression(writer, inner, product.exprs[i]);
        is_short &= is_short_integer(writer, product.exprs[i]);
    }
    if ((expr->type != KG_TYPE_I64 || is_short || writer->is_reference) &&
        suits_einsum(&product, outer, inner->count)) {
        *value = einsum(writer, inner, outer, expr, &product, keep_raw);
        return true;
    }
    for (int i = 0; i < product.count; i++) {
        kg_torch_sort(writer, &product.factors[i]);
        kg_torch_convert(writer, &product.factors[i], body->type);
        *value =
            i ? kg_torch_binary(writer, *value, "*", product.factors[i], PYTHON_PRODUCT, body->type)
              : product.factors[i];
    }
    return false;
}

// ---- Reductions of the last dimensions

static const char *dims_of(struct kg_torch_writer *writer, int reduced)
{
    struct kg_text text = {0};
    for (int i = reduced; i > 0; i--)
        kg_text_format(&text, "%s-%d", i == reduced ? "" : ", ", i);
    const char *copy = kg_torch_format(writer, "%s", kg_text_string(&text));
    writer->failed |= text.failed;
    kg_text_free(&text);
    return copy;
}

static const struct {
    const char *method;          // of PyTorch
    enum kg_torch_helper helper; // instead, as PyTorch refuses to reduce nothing
    const char *helper_name;
    const char *neutral, *neutral_integer;
} reductions[KG_REDUCE_COUNT] = {
    [KG_REDUCE_SUM] = {"sum", HELPER_COUNT, NULL, "0", "0"},
    [KG_REDUCE_PROD] = {"prod", HELPER_COUNT, NULL, "1", "1"},
    [KG_REDUCE_MAX] = {NULL, HELPER_LARGEST, "_largest", "float(\"-inf\")", "-(2**63)"},
    [KG_REDUCE_MIN] = {NULL, HELPER_SMALLEST, "_smallest", "float(\"inf\")", "2**63 - 1"},
    [KG_REDUCE_MEAN] = {"mean", HELPER_COUNT, NULL, "0", "0"},
    [KG_REDUCE_ARGMAX] = {NULL, HELPER_FIRST_LARGEST, "_first_largest", "float(\"-inf\")",
                          "-(2**63)"},
    [KG_REDUCE_ARGMIN] = {NULL, HELPER_FIRST_SMALLEST, "_first_smallest", "float(\"inf\")",
                          "2**63 - 1"},
    [KG_REDUCE_ANY] = {"any", HELPER_COUNT, NULL, "False", "False"},
    [KG_REDUCE_ALL] = {"all", HELPER_COUNT, NULL, "True", "True"},
};

// Reduces the last `reduced` dimensions of a value that has `outer` others.
static const char *reduce_text(struct kg_torch_writer *writer, enum kg_reduce reduce,
                               const struct kg_torch_value *body, int outer, int reduced)
{
    const char *text = kg_torch_at(writer, body, PYTHON_PRIMARY);
    const char *method = reductions[reduce].method;
    const char *dims = dims_of(writer, reduced);
    if (reductions[reduce].helper_name) {
        kg_torch_use(writer, reductions[reduce].helper);
        if (kg_reduces[reduce].is_argument)
            return kg_torch_format(writer, "%s(%s, %d)", reductions[reduce].helper_name, body->text,
                                   reduced);
        return kg_torch_format(writer, "%s(%s, %s)", reductions[reduce].helper_name, body->text,
                               reduced == 1 ? "-1" : kg_torch_format(writer, "(%s)", dims));
    }
    if (outer == 0)
        return kg_torch_format(writer, "%s.%s()", text, method);
    if (reduced > 1 && reduce == KG_REDUCE_PROD)
        return kg_torch_format(writer, "%s.flatten(-%d).%s(dim=-1)", text, reduced, method);
    if (reduced > 1)
        return kg_torch_format(writer, "%s.%s(dim=(%s))", text, method, dims);
    return kg_torch_format(writer, "%s.%s(dim=-1)", text, method);
}

static void prepare_body(struct kg_torch_writer *writer, const struct kg_expr *expr,
                         struct kg_torch_value *body)
{
    enum kg_reduce reduce = expr->reduce;
    bool compares =
        reduce == KG_REDUCE_MAX || reduce == KG_REDUCE_MIN || kg_reduces[reduce].is_argument;
    if (reduce == KG_REDUCE_ANY || reduce == KG_REDUCE_ALL)
        return;
    if (compares && body->raw)
        return;
    if (compares && kg_reduces[reduce].is_argument)
        kg_torch_convert(writer, body, body->type == KG_TYPE_BOOL ? KG_TYPE_I64 : body->type);
    else if (!(reduce == KG_REDUCE_SUM && body->type == KG_TYPE_BOOL))
        kg_torch_convert(writer, body, expr->type);
}

static const char *relation_sign(enum kg_relation relation)
{
    static const char *const signs[] = {"", "<=", "<", ">=", ">"};
    return signs[relation];
}

// The indices of a reduction as far as their relations hold; false when it has none.
static bool mask_of(struct kg_torch_writer *writer, const struct kg_torch_frame *frame,
                    const struct kg_torch_frame *inner, const struct kg_expr *expr,
                    struct kg_torch_value *mask)
{
    bool found = false;
    for (int i = 0; i < expr->index_count; i++) {
        const struct kg_index *index = expr->indices[i];
        if (index->relation == KG_RELATION_NONE)
            continue;
        struct kg_torch_value bound = kg_torch_expression(writer, frame, index->bound);
        kg_torch_sort(writer, &bound);
        struct kg_torch_value holds =
            kg_torch_binary(writer, kg_torch_index(writer, inner, index),
                            relation_sign(index->relation), bound, PYTHON_COMPARE, KG_TYPE_BOOL);
        *mask = found ? kg_torch_binary(writer, *mask, "&", holds, PYTHON_BIT_AND, KG_TYPE_BOOL)
                      : holds;
        found = true;
    }
    return found;
}

static struct kg_torch_value masked(struct kg_torch_writer *writer, const struct kg_expr *expr,
                                    struct kg_torch_value mask, struct kg_torch_value body)
{
    bool is_float = body.type == KG_TYPE_F32 || body.type == KG_TYPE_F64;
    const char *neutral =
        is_float ? reductions[expr->reduce].neutral : reductions[expr->reduce].neutral_integer;
    enum kg_type type = body.type;
    const struct kg_tensor *raw = body.raw;
    struct kg_torch_value arguments[3] = {mask, body, kg_torch_scalar(neutral, PYTHON_UNARY, type)};
    if (body.scalar) {
        arguments[1] =
            (struct kg_torch_value){.text = kg_torch_format(writer, "torch.tensor(%s)", body.text),
                                    .level = PYTHON_PRIMARY,
                                    .type = type};
    }
    struct kg_torch_value result = kg_torch_call(writer, "torch.where", 3, arguments, type);
    result.raw = raw;
    return result;
}

static struct kg_torch_value reduce_plainly(struct kg_torch_writer *writer,
                                            const struct kg_torch_frame *frame,
                                            const struct kg_expr *expr, bool keep_raw)
{
    struct kg_torch_frame inner = inner_frame(writer, frame, expr);
    struct kg_torch_value body, mask;
    bool is_masked = mask_of(writer, frame, &inner, expr, &mask);
    const struct kg_expr *inside = expr->arguments[0];
    if (expr->reduce == KG_REDUCE_SUM && !is_masked && is_product(inside)) {
        if (sum_of_products(writer, &inner, frame->count, expr, keep_raw, &body))
            return body;
    } else {
        body = kg_torch_expression(writer, &inner, inside);
        kg_torch_sort(writer, &body);
    }
    prepare_body(writer, expr, &body);
    if (is_masked)
        body = masked(writer, expr, mask, body);
    // All reduced dimensions, behind those of the frame that the body has.
    int axes[KG_MAX_INDICES], outer = 0, count;
    for (int i = 0; i < body.axis_count; i++)
        if (body.axes[i] < frame->count)
            axes[outer++] = body.axes[i];
    count = outer;
    for (int i = frame->count; i < inner.count; i++)
        axes[count++] = i;
    kg_torch_expand(writer, &inner, &body, count, axes);
    struct kg_torch_value result = {.level = PYTHON_PRIMARY, .type = expr->type};
    bool is_masked_mean = is_masked && expr->reduce == KG_REDUCE_MEAN;
    result.text = reduce_text(writer, is_masked_mean ? KG_REDUCE_SUM : expr->reduce, &body, outer,
                              count - outer);
    result.axis_count = outer;
    memcpy(result.axes, axes, sizeof axes);
    if (expr->reduce == KG_REDUCE_MAX || expr->reduce == KG_REDUCE_MIN)
        result.raw = body.raw;
    if (is_masked_mean) {
        struct kg_torch_value number = {.level = PYTHON_PRIMARY, .type = KG_TYPE_I64};
        kg_torch_expand(writer, &inner, &mask, count, axes);
        number.text = reduce_text(writer, KG_REDUCE_SUM, &mask, outer, count - outer);
        number.axis_count = outer;
        memcpy(number.axes, axes, sizeof axes);
        result = kg_torch_binary(writer, result, "/", number, PYTHON_PRODUCT, expr->type);
    }
    const struct kg_index *only = expr->indices[0];
    if (kg_reduces[expr->reduce].is_argument && expr->index_count == 1 && only->begin &&
        !(only->begin->kind == KG_EXPR_NUMBER && only->begin->integer == 0))
        result = kg_torch_binary(
            writer, result, "+",
            kg_torch_scalar(kg_torch_size_text(writer, only->begin), PYTHON_ANY, KG_TYPE_I64),
            PYTHON_SUM, KG_TYPE_I64);
    return result;
}

// ---- Scans

// The slot of the index that bounds a scan whose body knows only the running index, over the same
// range; -1: it is no such scan.
static int bounding_slot(struct kg_torch_writer *writer, const struct kg_torch_frame *frame,
                         const struct kg_expr *expr)
{
    const struct kg_index *index = expr->indices[0];
    if (expr->index_count != 1 || index->relation == KG_RELATION_NONE ||
        index->bound->kind != KG_EXPR_INDEX || kg_reduces[expr->reduce].is_argument)
        return -1;
    const struct kg_index *by = index->bound->index;
    bool same_range =
        strcmp(kg_torch_extent(writer, by), kg_torch_size_text(writer, index->end)) == 0 &&
        strcmp(kg_torch_extent(writer, index), kg_torch_extent(writer, by)) == 0;
    bool is_mean = expr->reduce == KG_REDUCE_MEAN;
    if (!same_range || mentions(expr->arguments[0], by) || !mentions(expr->arguments[0], index) ||
        (is_mean && index->relation != KG_RELATION_LE))
        return -1;
    return kg_torch_slot(frame, by);
}

static struct kg_torch_value scan(struct kg_torch_writer *writer,
                                  const struct kg_torch_frame *frame, const struct kg_expr *expr,
                                  int slot)
{
    static const char *const running[KG_REDUCE_COUNT] = {
        [KG_REDUCE_SUM] = "torch.cumsum(%s, dim=%d)",
        [KG_REDUCE_MEAN] = "torch.cumsum(%s, dim=%d)",
        [KG_REDUCE_PROD] = "torch.cumprod(%s, dim=%d)",
        [KG_REDUCE_MAX] = "torch.cummax(%s, dim=%d).values",
        [KG_REDUCE_MIN] = "torch.cummin(%s, dim=%d).values",
        [KG_REDUCE_ANY] = "torch.cumsum(%s, dim=%d)",
        [KG_REDUCE_ALL] = "torch.cumprod(%s, dim=%d)",
    };
    const struct kg_index *index = expr->indices[0];
    struct kg_torch_frame inner = *frame;
    inner.indices[slot] = index;
    struct kg_torch_value body = kg_torch_expression(writer, &inner, expr->arguments[0]);
    kg_torch_sort(writer, &body);
    bool of_truth = expr->reduce == KG_REDUCE_ANY || expr->reduce == KG_REDUCE_ALL;
    kg_torch_convert(writer, &body, of_truth ? KG_TYPE_I64 : expr->type);
    int dim = -1;
    for (int i = 0; i < body.axis_count; i++)
        if (body.axes[i] == slot)
            dim = i - body.axis_count;
    bool backwards = index->relation == KG_RELATION_GE || index->relation == KG_RELATION_GT;
    bool exclusive = index->relation == KG_RELATION_LT || index->relation == KG_RELATION_GT;
    bool is_float = expr->type == KG_TYPE_F32 || expr->type == KG_TYPE_F64;
    const char *neutral = expr->reduce == KG_REDUCE_ALL   ? "1"
                          : expr->reduce == KG_REDUCE_ANY ? "0"
                          : is_float                      ? reductions[expr->reduce].neutral
                                     : reductions[expr->reduce].neutral_integer;
    const char *text = body.text;
    if (backwards)
        text =
            kg_torch_format(writer, "%s.flip(%d)", kg_torch_at(writer, &body, PYTHON_PRIMARY), dim);
    if (exclusive) {
        kg_torch_use(writer, HELPER_SHIFTED);
        text = kg_torch_format(writer, "_shifted(%s, %d, %s)", text, dim, neutral);
    }
    const char *format = running[expr->reduce];
    const char *behind = strrchr(format, ')') + 1;
    int length = (int)(strstr(format, "%s") - format);
    text = kg_torch_format(writer, "%.*s%s, dim=%d)%s", length, format, text, dim, behind);
    body.text = backwards ? kg_torch_format(writer, "%s.flip(%d)", text, dim) : text;
    body.level = PYTHON_PRIMARY;
    body.is_view = false;
    body.type = of_truth ? KG_TYPE_I64 : expr->type;
    if (of_truth)
        return kg_torch_binary(writer, body, ">", kg_torch_scalar("0", PYTHON_PRIMARY, KG_TYPE_I64),
                               PYTHON_COMPARE, KG_TYPE_BOOL);
    if (expr->reduce != KG_REDUCE_MEAN)
        return body;
    struct kg_torch_value number =
        kg_torch_binary(writer, kg_torch_index(writer, frame, index->bound->index), "+",
                        kg_torch_scalar("1", PYTHON_PRIMARY, KG_TYPE_I64), PYTHON_SUM, KG_TYPE_I64);
    return kg_torch_binary(writer, body, "/", number, PYTHON_PRODUCT, expr->type);
}

struct kg_torch_value kg_torch_reduction(struct kg_torch_writer *writer,
                                         const struct kg_torch_frame *frame,
                                         const struct kg_expr *expr)
{
    bool keep_raw = writer->keep_raw; // is for this sum, not for those in its body
    int slot = bounding_slot(writer, frame, expr);
    writer->keep_raw = false;
    return slot >= 0 ? scan(writer, frame, expr, slot)
                     : reduce_plainly(writer, frame, expr, keep_raw);
}
