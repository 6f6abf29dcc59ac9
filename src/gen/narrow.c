// Which groups may take exponentials that are a few units of 2^-18 off: see kg_group_is_narrow.
//
// Every value is judged by what such an error becomes in it. A relative error stays what it is
// through products, quotients, and sums of what is not negative; differences and most functions
// may make it any size.

#include "gen/axes.h"
#include "gen/emit.h"

enum error {
    ERROR_NONE,
    ERROR_RELATIVE, // as large as that of an exponential, or a few times that
    ERROR_ANY,
};

struct judgement {
    enum error error;
    bool negative; // may be
};

struct judge {
    const struct kg_group *group;
    struct judgement made[KG_MAX_NESTS]; // by position in the group
};

static struct judgement judge_value(const struct judge *judge, const struct kg_expr *expr);

static struct judgement worse(struct judgement a, struct judgement b)
{
    return (struct judgement){a.error > b.error ? a.error : b.error, a.negative || b.negative};
}

// Is the largest of some values subtracted? Then 0 stands for results below the normal numbers:
// beside them there is a 1.
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

static struct judgement judge_call(const struct judge *judge, const struct kg_expr *expr)
{
    const struct judgement lost = {ERROR_ANY, true};
    struct judgement all = {ERROR_NONE, false}, first = all;
    for (int i = 0; i < expr->argument_count; i++) {
        struct judgement argument = judge_value(judge, expr->arguments[i]);
        first = i == 0 ? argument : first;
        all = worse(all, argument);
    }
    switch (expr->function) {
    case KG_FN_EXP:
        if (all.error != ERROR_NONE || expr->type != KG_TYPE_F32 ||
            !is_below_largest(judge, expr->arguments[0]))
            return lost;
        return (struct judgement){ERROR_RELATIVE, false};
    case KG_FN_MUL:
    case KG_FN_DIV:
        return all;
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

bool kg_group_is_narrow(const struct kg_group *group)
{
    struct judge judge = {.group = group};
    bool any = false;
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(group, i);
        judge.made[i] = judge_nest(&judge, nest);
        enum kg_dtype dtype = kg_emit_tensor_dtype(nest->output);
        bool is_narrow = dtype == KG_F16 || dtype == KG_BF16;
        bool is_stored = !kg_group_is_private(group, nest->output);
        if (judge.made[i].error == ERROR_ANY ||
            (judge.made[i].error == ERROR_RELATIVE && is_stored && !is_narrow))
            return false;
        any |= judge.made[i].error == ERROR_RELATIVE;
    }
    return any;
}
