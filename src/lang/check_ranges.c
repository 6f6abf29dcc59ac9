// Ranges of inputs, `verify x in 0..1`: what the accuracy gate may draw. A range must hold values
// of every dtype that its input may have.

#include "lang/check.h"
#include "lang/lang.h"

#include <math.h>
#include <string.h>

// The next value of a float dtype that is not below `value`.
static double round_up(enum kg_dtype dtype, double value)
{
    const struct kg_dtype_info *info = &kg_dtypes[dtype];
    if (isinf(value))
        return value;
    double near = kg_dtype_round(dtype, value);
    if (near >= value)
        return near;
    // Towards 0 from a power of two the next value is half a step away.
    double step = info->smallest * info->epsilon;
    if (fabs(near) > info->smallest)
        step = ldexp(info->epsilon, ilogb(near));
    double next = kg_dtype_round(dtype, near + step / 2);
    return next > near ? next : kg_dtype_round(dtype, near + step);
}

bool kg_lang_range_of(const struct kg_range *range, enum kg_dtype dtype, double *low, double *high)
{
    *low = range->low;
    *high = range->high;
    const struct kg_dtype_info *info = &kg_dtypes[dtype];
    if (info->is_float) {
        *low = round_up(dtype, range->low);
        *high = -round_up(dtype, -range->high);
    }
    if (info->is_float && !info->has_infinity) {
        *low = fmax(*low, -info->largest);
        *high = fmin(*high, info->largest);
    }
    return *low <= *high;
}

static struct kg_tensor *find_input(struct kg_check *check, const struct kg_token *name)
{
    const struct kg_op *op = check->op;
    struct kg_tensor *tensor = kg_lang_find_tensor(op, name->text);
    const char *names[KG_MAX_TENSORS];
    for (int i = 0; i < op->input_count; i++)
        names[i] = op->tensors[i]->name;
    if (!tensor)
        kg_lang_fail(check->job, name->span,
                     kg_lang_suggest(check->job, name->text, names, (size_t)op->input_count,
                                     "expected an input of the op"),
                     "unknown input \"%s\"", name->text);
    if (tensor->role != KG_ROLE_INPUT)
        kg_lang_fail(check->job, name->span, "expected an input of the op",
                     "\"%s\" is %s: its values follow from the inputs", name->text,
                     tensor->role == KG_ROLE_OUTPUT ? "an output" : "an intermediate");
    if (check->op->goal.ranges[tensor->id].given)
        kg_lang_fail(check->job, name->span, NULL, "a second range for \"%s\"", name->text);
    return tensor;
}

static double value_of(const struct kg_syntax_end *end)
{
    double value = end->token->kind == KG_TOKEN_NAME ? (double)INFINITY : end->token->number;
    return end->is_negative ? -value : value;
}

// An end of a range of integers; without one, that of the dtypes.
static int64_t integer_of(const struct kg_syntax_end *end)
{
    if (end->token->kind == KG_TOKEN_NAME)
        return end->is_negative ? INT64_MIN : INT64_MAX;
    return end->is_negative ? -end->token->integer : end->token->integer;
}

static void check_end(struct kg_check *check, const struct kg_tensor *tensor, enum kg_dtype dtype,
                      const struct kg_syntax_end *end)
{
    const struct kg_dtype_info *info = &kg_dtypes[dtype];
    double value = value_of(end), least = info->is_float ? -info->largest : info->smallest;
    if (end->token->kind == KG_TOKEN_NAME)
        return;
    if (!info->is_float && end->token->kind == KG_TOKEN_REAL)
        kg_lang_fail(check->job, end->token->span, "expected a whole number or inf",
                     "\"%s\" may be %s, whose values are whole numbers", tensor->name, info->name);
    if (value < least || value > info->largest)
        kg_lang_fail(check->job, end->token->span, "help: write inf or -inf for no limit",
                     "\"%s\" may be %s, which reaches from %.17g to %.17g", tensor->name,
                     info->name, least, info->largest);
}

static void check_dtype(struct kg_check *check, const struct kg_tensor *tensor, enum kg_dtype dtype,
                        const struct kg_syntax_range *from, const struct kg_range *range)
{
    double low, high;
    check_end(check, tensor, dtype, &from->low);
    check_end(check, tensor, dtype, &from->high);
    if (!kg_lang_range_of(range, dtype, &low, &high))
        kg_lang_fail(check->job, from->span, "help: widen the range",
                     "\"%s\" may be %s, which has no value in this range", tensor->name,
                     kg_dtypes[dtype].name);
}

static void check_range(struct kg_check *check, const struct kg_syntax_range *from)
{
    const struct kg_tensor *tensor = find_input(check, from->name);
    struct kg_range *range = &check->op->goal.ranges[tensor->id];
    *range = (struct kg_range){true,
                               value_of(&from->low),
                               value_of(&from->high),
                               integer_of(&from->low),
                               integer_of(&from->high),
                               from->name->span};
    if (range->low > range->high || (isinf(range->low) && range->low == range->high))
        kg_lang_fail(check->job, from->span, "help: the smaller end stands first, as in -1..1",
                     "an empty range");
    if (!tensor->type.variable) {
        check_dtype(check, tensor, tensor->type.dtype, from, range);
        return;
    }
    for (int i = 0; i < tensor->type.variable->count; i++)
        check_dtype(check, tensor, tensor->type.variable->allowed[i], from, range);
}

void kg_lang_check_ranges(struct kg_check *check)
{
    for (const struct kg_syntax_range *r = check->syntax->goal.ranges; r; r = r->next)
        check_range(check, r);
}
