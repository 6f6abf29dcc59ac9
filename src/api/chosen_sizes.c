// See chosen_sizes.h.

#include "api/chosen_sizes.h"

#include "lang/lang.h"
#include "verify/case_sizes.h"

#include <string.h>

#define MOST_EXPONENT 23
#define MOST_BYTES 2e8 // of all tensors
#define MOST_OPERATIONS 2e10
#define WINDOW 3
#define LONG 1024

void kg_take_goal_sizes(const struct kg_op *op, int64_t *sizes)
{
    const struct kg_shapes *shapes = op->goal.tune.row_count ? &op->goal.tune : &op->goal.verify;
    int row = op->goal.tune.row_count ? 0 : kg_lang_largest_row(shapes);
    for (int i = 0; i < shapes->size_count && row >= 0; i++) {
        int64_t *size = &sizes[shapes->sizes[i]->id];
        if (*size < 0)
            *size = shapes->rows[row * shapes->size_count + i];
    }
}

static bool is_missing(const struct kg_op *op, const int64_t *sizes, int size)
{
    return !op->sizes[size]->is_param && sizes[size] < 0;
}

// Does a dimension become smaller when this size grows? It is the length of a window then, or a
// step, and no window is as long as what it is moved over.
static bool is_window(const struct kg_op *op, int size)
{
    int64_t sizes[KG_MAX_SIZES], before, after;
    for (int i = 0; i < op->size_count; i++)
        sizes[i] = LONG;
    for (int t = 0; t < op->tensor_count; t++)
        for (int d = 0; d < op->tensors[t]->rank; d++) {
            sizes[size] = 3;
            bool known =
                kg_lang_size_signed(op->tensors[t]->dims[d], sizes, &before, NULL) == KG_OK;
            sizes[size] = 5;
            known &= kg_lang_size_signed(op->tensors[t]->dims[d], sizes, &after, NULL) == KG_OK;
            sizes[size] = LONG;
            if (known && after < before)
                return true;
        }
    return false;
}

static bool is_moderate(const struct kg_op *instance, const int64_t *sizes)
{
    struct kg_problem *problem;
    double bytes = 0;
    if (kg_problem_make(instance, sizes, NULL, &problem, NULL) != KG_OK)
        return false;
    for (int i = 0; i < instance->input_count + instance->output_count; i++)
        bytes += (double)problem->layouts[i].bytes;
    bool moderate = bytes <= MOST_BYTES && problem->operations <= MOST_OPERATIONS;
    kg_problem_free(problem);
    return moderate;
}

// All missing sizes at 2^exponent, but for windows. `mends`: or what the definition demands
// instead.
static bool try_exponent(const struct kg_op *instance, const bool *window, uint32_t given,
                         int exponent, bool mends, int64_t *sizes)
{
    int64_t tried[KG_MAX_SIZES] = {0}, wanted[KG_MAX_SIZES];
    struct kg_random random = kg_random_make(1, 1); // the same sizes every time
    for (int i = 0; i < instance->size_count; i++)
        tried[i] = given >> i & 1 ? sizes[i] : window[i] ? WINDOW : (int64_t)1 << exponent;
    memcpy(wanted, tried, sizeof wanted);
    if (!kg_sizes_mend(instance, tried, given, &random) || !is_moderate(instance, tried) ||
        (!mends && memcmp(wanted, tried, sizeof wanted) != 0))
        return false;
    memcpy(sizes, tried, sizeof tried);
    return true;
}

static enum kg_status none_found(const struct kg_op *op, const int64_t *sizes,
                                 struct kg_error *error)
{
    struct kg_text names = {0};
    int count = 0;
    for (int i = 0; i < op->size_count; i++)
        if (is_missing(op, sizes, i))
            kg_text_format(&names, "%s%s", count++ ? ", " : "", op->sizes[i]->name);
    enum kg_status status =
        kg_error_set(error, KG_ERROR_SHAPE,
                     "size%s %s of op %s %s not given, and none %s found that the definition "
                     "allows; a 'tune' row in its goal can give them",
                     count == 1 ? "" : "s", kg_text_string(&names), op->name,
                     count == 1 ? "is" : "are", count == 1 ? "was" : "were");
    kg_text_free(&names);
    return status;
}

enum kg_status kg_choose_sizes(const struct kg_op *instance, int64_t *sizes, struct kg_error *error)
{
    bool window[KG_MAX_SIZES] = {false};
    uint32_t given = 0;
    for (int i = 0; i < instance->size_count; i++) {
        given |= (uint32_t)!is_missing(instance, sizes, i) << i;
        window[i] = is_missing(instance, sizes, i) && is_window(instance, i);
    }
    if (given == (uint32_t)(((uint64_t)1 << instance->size_count) - 1))
        return KG_OK;
    for (int mends = 0; mends < 2; mends++)
        for (int exponent = MOST_EXPONENT; exponent >= 0; exponent--)
            if (try_exponent(instance, window, given, exponent, mends, sizes))
                return KG_OK;
    return none_found(instance, sizes, error);
}
