// Which functions of a group may be computed with reduced accuracy: see kg_group_narrow.
//
// Every value is classified by the error that such a function causes in it. A relative error keeps
// its size through products, quotients and sums of non-negative values; differences and most
// functions may amplify it. An error that is small only in absolute terms must not be multiplied by
// large numbers.

#include "gen/shared/axes.h"
#include "gen/shared/emit.h"

#include <math.h>

enum error {
    ERROR_NONE,
    ERROR_RELATIVE, // about as large as the function's relative error
    ERROR_SMALL,    // that, or below what f16 distinguishes from 0
    ERROR_ANY,
};

struct judgement {
    enum error error;
    bool negative; // may be negative
};

struct judge {
    const struct kg_group *group;
    enum kg_function function;           // with reduced accuracy
    struct judgement made[KG_MAX_NESTS]; // by position in the group
};

static struct judgement judge_value(const struct judge *judge, const struct kg_expr *expr);

static struct judgement worse(struct judgement a, struct judgement b)
{
    return (struct judgement){a.error > b.error ? a.error : b.error, a.negative || b.negative};
}

// Whether the maximum of some values is subtracted (softmax). Then 0 may replace results below the
// normal numbers, because one of the values becomes 1.
static bool is_below_largest(const struct judge *judge, const struct kg_expr *power)
{
    if (power->kind != KG_EXPR_CALL || power->function != KG_FN_SUB ||
        power->arguments[1]->kind != KG_EXPR_READ)
        return false;
    const struct kg_group *group = judge->group;
    int maker = kg_group_maker(group, power->arguments[1]->tensor);
    if (maker < 0)
        return false;
    const struct kg_nest *nest = kg_group_nest(group, maker);
    return nest->has_reduce && nest->reduce == KG_REDUCE_MAX;
}

static bool is_few(const struct kg_expr *expr)
{
    return expr->kind == KG_EXPR_NUMBER &&
           fabs(expr->is_integer ? (double)expr->integer : expr->number) <= 8;
}

static struct judgement judge_call(const struct judge *judge, const struct kg_expr *expr)
{
    const struct judgement lost = {ERROR_ANY, true};
    struct judgement all = {ERROR_NONE, false}, first = all;
    for (int i = 0; i < expr->argument_count; i++) {
        struct judgement argument = judge_value(judge, expr->arguments[i]);
        first = i == 0 ? argument : first;
        all = worse(all, argument);
    }
    if (expr->function == judge->function) {
        bool is_exp = expr->function == KG_FN_EXP;
        if (all.error != ERROR_NONE || expr->type != KG_TYPE_F32 ||
            (is_exp && !is_below_largest(judge, expr->arguments[0])))
            return lost;
        bool tails = expr->function == KG_FN_GELU || expr->function == KG_FN_GELU_TANH;
        return (struct judgement){tails ? ERROR_SMALL : ERROR_RELATIVE,
                                  !is_exp && expr->function != KG_FN_SIGMOID};
    }
    switch (expr->function) {
    case KG_FN_MUL:
        return all.error == ERROR_SMALL && !is_few(expr->arguments[0]) &&
                       !is_few(expr->arguments[1])
                   ? lost
                   : all;
    case KG_FN_DIV:
        return all.error == ERROR_SMALL ? lost : all;
    case KG_FN_ADD:
        return all.error != ERROR_NONE && all.negative ? lost : all;
    case KG_FN_WHERE:
        return first.error != ERROR_NONE ? lost : all;
    default:
        return all.error != ERROR_NONE ? lost : (struct judgement){ERROR_NONE, true};
    }
}

static struct judgement judge_value(const struct judge *judge, const struct kg_expr *expr)
{
    struct judgement value = {ERROR_NONE, true};
    switch (expr->kind) {
    case KG_EXPR_NUMBER:
        value.negative = expr->is_integer ? expr->integer < 0 : !(expr->number >= 0.0);
        return value;
    case KG_EXPR_READ:
        if (kg_group_maker(judge->group, expr->tensor) < 0)
            return value;
        value = judge->made[kg_group_maker(judge->group, expr->tensor)];
        if (expr->pad)
            value.negative = true;
        return value;
    case KG_EXPR_CALL:
        return judge_call(judge, expr);
    case KG_EXPR_CAST:
        value = judge_value(judge, expr->arguments[0]);
        return value.error == ERROR_NONE ? value : (struct judgement){ERROR_ANY, true};
    default: // the bodies of nests hold no reductions
        return value;
    }
}

static struct judgement judge_nest(const struct judge *judge, const struct kg_nest *nest)
{
    struct judgement value = judge_value(judge, nest->body);
    bool is_sum = nest->reduce == KG_REDUCE_SUM || nest->reduce == KG_REDUCE_MEAN;
    bool selects = nest->reduce == KG_REDUCE_MAX || nest->reduce == KG_REDUCE_MIN;
    if (!nest->has_reduce || value.error == ERROR_NONE || selects || (is_sum && !value.negative))
        return value;
    return (struct judgement){ERROR_ANY, true};
}

static bool is_narrow(const struct kg_group *group, enum kg_function function)
{
    struct judge judge = {.group = group, .function = function};
    bool any = false;
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(group, i);
        judge.made[i] = judge_nest(&judge, nest);
        enum kg_dtype dtype = kg_emit_tensor_dtype(nest->output);
        // An intermediate that is rounded is read again: rounding would amplify the error.
        bool is_rounded = nest->output->role == KG_ROLE_OUTPUT && kg_dtype_is_narrow_float(dtype);
        bool is_stored = !kg_group_is_private(group, nest->output);
        if (judge.made[i].error == ERROR_ANY ||
            (judge.made[i].error != ERROR_NONE && is_stored && !is_rounded))
            return false;
        any |= judge.made[i].error != ERROR_NONE;
    }
    return any;
}

uint64_t kg_group_narrow(const struct kg_group *group)
{
    static const enum kg_function functions[] = {KG_FN_EXP, KG_FN_GELU, KG_FN_GELU_TANH,
                                                 KG_FN_SIGMOID, KG_FN_SILU};
    _Static_assert(KG_FUNCTION_COUNT <= 64, "a bit for each function");
    uint64_t narrow = 0;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (is_narrow(group, functions[i]))
            narrow |= (uint64_t)1 << functions[i];
    return narrow;
}
