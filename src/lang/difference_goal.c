// Goals, by what they ask for: what is not written has its default.

#include "lang/difference_job.h"

#include <string.h>

static struct kg_difference_side side(struct kg_comparison *comparison, struct kg_span span,
                                      struct kg_text *text)
{
    const char *kept = kg_difference_keep(comparison, text);
    return (struct kg_difference_side){span, span.line ? kept : NULL};
}

static void print_number(struct kg_text *text, double number)
{
    const struct kg_expr expr = {.kind = KG_EXPR_NUMBER, .number = number};
    kg_lang_print_expr(text, &expr);
}

// ---- Baseline, speed-up, rounds

static bool same_text(const char *one, const char *other)
{
    return one && other ? strcmp(one, other) == 0 : one == other;
}

static struct kg_difference_side side_of_baseline(struct kg_comparison *comparison,
                                                  const struct kg_goal *goal)
{
    struct kg_text text = {0};
    if (goal->baseline)
        kg_text_format(&text, "baseline %s \"%s\"", goal->baseline_kind, goal->baseline);
    return side(comparison, goal->baseline_span, &text);
}

static struct kg_difference_side side_of_number(struct kg_comparison *comparison,
                                                struct kg_span span, const char *keyword,
                                                double number)
{
    struct kg_text text = {0};
    kg_text_format(&text, "%s %.9g", keyword, number);
    return side(comparison, span, &text);
}

static void compare_numbers(struct kg_comparison *comparison)
{
    const struct kg_goal *old = &comparison->before->goal, *new = &comparison->after->goal;
    if (!same_text(old->baseline_kind, new->baseline_kind) ||
        !same_text(old->baseline, new->baseline))
        kg_difference_add(comparison, KG_DIFFERENCE_GOAL, side_of_baseline(comparison, old),
                          side_of_baseline(comparison, new), "baseline");
    if (memcmp(&old->speedup, &new->speedup, sizeof old->speedup) != 0)
        kg_difference_add(comparison, KG_DIFFERENCE_GOAL,
                          side_of_number(comparison, old->speedup_span, "speedup", old->speedup),
                          side_of_number(comparison, new->speedup_span, "speedup", new->speedup),
                          "speed-up");
    if (old->rounds != new->rounds)
        kg_difference_add(comparison, KG_DIFFERENCE_GOAL,
                          side_of_number(comparison, old->rounds_span, "rounds", old->rounds),
                          side_of_number(comparison, new->rounds_span, "rounds", new->rounds),
                          "rounds");
}

// ---- Tolerances

static struct kg_difference_side side_of_tolerance(struct kg_comparison *comparison, int dtype,
                                                   const struct kg_tolerance *tolerance)
{
    struct kg_text text = {0};
    kg_text_format(&text, "tolerance %s ", kg_dtypes[dtype].name);
    print_number(&text, tolerance->relative);
    kg_text_add(&text, " ");
    print_number(&text, tolerance->absolute);
    return side(comparison, tolerance->span, &text);
}

static void compare_tolerances(struct kg_comparison *comparison)
{
    for (int dtype = 0; dtype < KG_DTYPE_COUNT; dtype++) {
        const struct kg_tolerance *old = &comparison->before->goal.tolerance[dtype];
        const struct kg_tolerance *new = &comparison->after->goal.tolerance[dtype];
        bool differ = old->given != new->given ||
                      memcmp(&old->relative, &new->relative, sizeof old->relative) != 0 ||
                      memcmp(&old->absolute, &new->absolute, sizeof old->absolute) != 0;
        if (differ)
            kg_difference_add(comparison, KG_DIFFERENCE_GOAL,
                              side_of_tolerance(comparison, dtype, old),
                              side_of_tolerance(comparison, dtype, new), "tolerance of %s",
                              kg_dtypes[dtype].name);
    }
}

// ---- Rows of sizes

// Where the new rows have what stands in a column of the old ones; -1: nowhere.
static int find_column(const struct kg_comparison *comparison, const struct kg_shapes *old,
                       const struct kg_shapes *new, int column)
{
    for (int i = 0; i < new->size_count; i++)
        if (comparison->sizes[old->sizes[column]->id] == new->sizes[i])
            return i;
    return -1;
}

static bool same_shapes(const struct kg_comparison *comparison, const struct kg_shapes *old,
                        const struct kg_shapes *new)
{
    if (old->row_count != new->row_count || old->size_count != new->size_count)
        return false;
    for (int i = 0; i < old->size_count; i++) {
        int column = find_column(comparison, old, new, i);
        for (int r = 0; r < old->row_count; r++)
            if (column < 0 ||
                old->rows[r * old->size_count + i] != new->rows[r * new->size_count + column])
                return false;
    }
    return true;
}

static struct kg_difference_side side_of_shapes(struct kg_comparison *comparison,
                                                const char *keyword, const struct kg_shapes *shapes)
{
    struct kg_text text = {0};
    kg_text_add(&text, keyword);
    for (int i = 0; i < shapes->size_count; i++)
        kg_text_format(&text, " %s", shapes->sizes[i]->name);
    kg_text_add(&text, " =");
    for (int r = 0; r < shapes->row_count; r++) {
        kg_text_add(&text, r ? "," : "");
        for (int i = 0; i < shapes->size_count; i++)
            kg_text_format(&text, " %lld", (long long)shapes->rows[r * shapes->size_count + i]);
    }
    return side(comparison, shapes->span, &text);
}

static void compare_shapes(struct kg_comparison *comparison, const char *keyword,
                           const struct kg_shapes *old, const struct kg_shapes *new)
{
    if (!same_shapes(comparison, old, new))
        kg_difference_add(comparison, KG_DIFFERENCE_GOAL, side_of_shapes(comparison, keyword, old),
                          side_of_shapes(comparison, keyword, new), "sizes to %s", keyword);
}

// ---- Ranges of inputs

static struct kg_difference_side side_of_range(struct kg_comparison *comparison,
                                               const struct kg_tensor *tensor,
                                               const struct kg_range *range)
{
    struct kg_text text = {0};
    kg_text_format(&text, "verify %s in ", tensor->name);
    print_number(&text, range->low);
    kg_text_add(&text, "..");
    print_number(&text, range->high);
    return side(comparison, range->span, &text);
}

static void compare_ranges(struct kg_comparison *comparison)
{
    for (int i = 0; i < comparison->before->input_count; i++) {
        const struct kg_tensor *new = comparison->tensors[i];
        if (!new) // the input is gone
            continue;
        const struct kg_range *old = &comparison->before->goal.ranges[i];
        const struct kg_range *other = &comparison->after->goal.ranges[new->id];
        bool differ = old->given != other->given ||
                      memcmp(&old->low, &other->low, sizeof old->low) != 0 ||
                      memcmp(&old->high, &other->high, sizeof old->high) != 0 ||
                      old->least != other->least || old->most != other->most;
        if (differ)
            kg_difference_add(comparison, KG_DIFFERENCE_GOAL,
                              side_of_range(comparison, comparison->before->tensors[i], old),
                              side_of_range(comparison, new, other), "range of input %s",
                              comparison->before->tensors[i]->name);
    }
}

void kg_difference_of_goals(struct kg_comparison *comparison)
{
    const struct kg_goal *old = &comparison->before->goal, *new = &comparison->after->goal;
    compare_numbers(comparison);
    compare_tolerances(comparison);
    compare_shapes(comparison, "verify", &old->verify, &new->verify);
    compare_shapes(comparison, "tune", &old->tune, &new->tune);
    compare_ranges(comparison);
}
