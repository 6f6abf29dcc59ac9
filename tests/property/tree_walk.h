// A second opinion on what a definition means: a tree-walking evaluator written from
// docs/language.md, as plainly as possible, sharing nothing with src/verify and src/gen.

#ifndef KG_TESTS_TREE_WALK_H
#define KG_TESTS_TREE_WALK_H

#include "analyze/problem.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>

// Every element is held as what it is: an integer (bool too) or a real.
struct value {
    bool is_real;
    double real;
    int64_t integer;
};

struct machine {
    const struct kg_problem *problem;
    bool narrow;                          // round every f32 operation to float
    struct value *memory[KG_MAX_TENSORS]; // dense, row-major
    int64_t index[KG_MAX_INDICES];        // by id
};

static struct value eval(struct machine *machine, const struct kg_expr *expr);

static struct value whole(int64_t integer)
{
    return (struct value){.integer = integer};
}

static struct value real(const struct machine *machine, enum kg_type type, double x)
{
    if (machine->narrow && type == KG_TYPE_F32)
        x = (double)(float)x;
    return (struct value){.is_real = true, .real = x};
}

static double as_real(struct value value)
{
    return value.is_real ? value.real : (double)value.integer;
}

static int64_t size_of(const struct machine *machine, const struct kg_expr *expr, int64_t otherwise)
{
    int64_t value = otherwise;
    if (expr && kg_lang_size_value(expr, machine->problem->sizes, &value, NULL) != KG_OK)
        CHECK(false);
    return value;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    if (b == 0)
        return 0;
    if (b == -1)
        return (int64_t)(0 - (uint64_t)a);
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

static struct value call_integer(enum kg_function function, int64_t a, int64_t b)
{
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    switch (function) {
    case KG_FN_ADD:
        return whole((int64_t)(x + y));
    case KG_FN_SUB:
        return whole((int64_t)(x - y));
    case KG_FN_MUL:
        return whole((int64_t)(x * y));
    case KG_FN_DIV:
        return whole(floor_div(a, b));
    case KG_FN_MOD:
        return whole(b == 0 ? 0 : (int64_t)(x - (uint64_t)floor_div(a, b) * y));
    case KG_FN_NEG:
        return whole((int64_t)(0 - x));
    case KG_FN_ABS:
        return whole(a < 0 ? (int64_t)(0 - x) : a);
    case KG_FN_RELU:
        return whole(a < 0 ? 0 : a);
    case KG_FN_SIGN:
        return whole(a > 0 ? 1 : a < 0 ? -1 : 0);
    case KG_FN_MIN:
        return whole(a < b ? a : b);
    case KG_FN_MAX:
        return whole(a > b ? a : b);
    case KG_FN_BIT_AND:
        return whole((int64_t)(x & y));
    case KG_FN_BIT_OR:
        return whole((int64_t)(x | y));
    case KG_FN_BIT_XOR:
        return whole((int64_t)((x | y) - (x & y)));
    case KG_FN_BIT_NOT:
        return whole(-1 - a);
    case KG_FN_SHIFT_LEFT:
        for (int64_t i = 0; i < 64 && (b < 0 || i < b); i++)
            x *= 2;
        return whole((int64_t)x);
    case KG_FN_SHIFT_RIGHT:
        for (int64_t i = 0; i < 64 && (b < 0 || i < b); i++)
            a = floor_div(a, 2);
        return whole(a);
    default: // floor, ceil, round
        return whole(a);
    }
}

static double call_real(enum kg_function function, double x, double y)
{
    switch (function) {
    case KG_FN_ADD:
        return x + y;
    case KG_FN_SUB:
        return x - y;
    case KG_FN_MUL:
        return x * y;
    case KG_FN_DIV:
        return x / y;
    case KG_FN_MOD:
        return x - y * floor(x / y);
    case KG_FN_NEG:
        return -x;
    case KG_FN_RELU:
        return x < 0 ? 0 : x;
    case KG_FN_GELU:
        return x / 2 * (1 + erf(x / sqrt(2)));
    case KG_FN_GELU_TANH:
        return x / 2 * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case KG_FN_SIGMOID:
        return 1 / (1 + exp(-x));
    case KG_FN_SILU:
        return x / (1 + exp(-x));
    case KG_FN_TANH:
        return tanh(x);
    case KG_FN_EXP:
        return exp(x);
    case KG_FN_EXP2:
        return exp2(x);
    case KG_FN_EXPM1:
        return expm1(x);
    case KG_FN_LOG:
        return log(x);
    case KG_FN_LOG2:
        return log2(x);
    case KG_FN_LOG1P:
        return log1p(x);
    case KG_FN_SQRT:
        return sqrt(x);
    case KG_FN_RSQRT:
        return 1 / sqrt(x);
    case KG_FN_ABS:
        return fabs(x);
    case KG_FN_FLOOR:
        return floor(x);
    case KG_FN_CEIL:
        return ceil(x);
    case KG_FN_ROUND:
        return nearbyint(x);
    case KG_FN_MIN:
        return isnan(x) || isnan(y) ? NAN : x < y ? x : y;
    case KG_FN_MAX:
        return isnan(x) || isnan(y) ? NAN : x > y ? x : y;
    case KG_FN_POW:
        return pow(x, y);
    case KG_FN_ERF:
        return erf(x);
    case KG_FN_SIN:
        return sin(x);
    case KG_FN_COS:
        return cos(x);
    case KG_FN_SOFTPLUS:
        return (x > 0 ? x : x == x ? 0 : x) + log1p(exp(-fabs(x)));
    case KG_FN_SIGN:
        return x > 0 ? 1 : x < 0 ? -1 : 0;
    default:
        CHECK(false);
        return 0;
    }
}

static bool compare(enum kg_function function, struct value a, struct value b)
{
    bool reals = a.is_real || b.is_real;
    double x = as_real(a), y = as_real(b);
    switch (function) {
    case KG_FN_LT:
        return reals ? x < y : a.integer < b.integer;
    case KG_FN_LE:
        return reals ? x <= y : a.integer <= b.integer;
    case KG_FN_GT:
        return reals ? x > y : a.integer > b.integer;
    case KG_FN_GE:
        return reals ? x >= y : a.integer >= b.integer;
    case KG_FN_EQ:
        return reals ? x == y : a.integer == b.integer;
    case KG_FN_NE:
        return reals ? x != y : a.integer != b.integer;
    default:
        return a.is_real && isnan(a.real);
    }
}

static struct value eval_call(struct machine *machine, const struct kg_expr *expr)
{
    struct value a = eval(machine, expr->arguments[0]), b = a;
    if (expr->argument_count > 1)
        b = eval(machine, expr->arguments[1]);
    switch (expr->function) {
    case KG_FN_WHERE: {
        struct value chosen = a.integer ? b : eval(machine, expr->arguments[2]);
        bool wanted = expr->type == KG_TYPE_F32 || expr->type == KG_TYPE_F64;
        return wanted ? real(machine, expr->type, as_real(chosen)) : chosen;
    }
    case KG_FN_AND:
        return whole(a.integer && b.integer);
    case KG_FN_OR:
        return whole(a.integer || b.integer);
    case KG_FN_NOT:
        return whole(!a.integer);
    default:
        break;
    }
    if (kg_functions[expr->function].rule == KG_RULE_COMPARE)
        return whole(compare(expr->function, a, b));
    if (expr->type == KG_TYPE_I64)
        return call_integer(expr->function, a.integer, b.integer);
    return real(machine, expr->type, call_real(expr->function, as_real(a), as_real(b)));
}

static int64_t wrapped(enum kg_dtype dtype, int64_t x)
{
    switch (dtype) {
    case KG_I16:
        return (int16_t)x;
    case KG_U16:
        return (uint16_t)x;
    case KG_U32:
        return (uint32_t)x;
    case KG_I8:
        return (int8_t)x;
    case KG_U8:
        return (uint8_t)x;
    case KG_I32:
        return (int32_t)x;
    case KG_U4:
        return x & 15;
    case KG_I4:
        return ((x & 15) ^ 8) - 8;
    default:
        return x;
    }
}

static struct value eval_cast(struct machine *machine, const struct kg_expr *expr)
{
    struct value x = eval(machine, expr->arguments[0]);
    enum kg_dtype dtype = expr->cast.dtype;
    if (dtype == KG_F32 && expr->arguments[0]->type == KG_TYPE_F32)
        return x; // computed in f32 already
    if (kg_dtypes[dtype].is_float)
        return real(machine, expr->type, kg_dtype_round(dtype, as_real(x)));
    if (dtype == KG_BOOL)
        return whole(x.is_real ? x.real != 0 : x.integer != 0);
    if (x.is_real)
        x.integer = isnan(x.real)       ? 0
                    : x.real >= 0x1p63  ? INT64_MAX
                    : x.real <= -0x1p63 ? INT64_MIN
                                        : (int64_t)x.real;
    return whole(wrapped(dtype, x.integer));
}

static struct value eval_read(struct machine *machine, const struct kg_expr *expr)
{
    const struct kg_tensor *tensor = expr->tensor;
    int64_t place = 0;
    for (int d = 0; d < tensor->rank; d++) {
        int64_t at = eval(machine, expr->arguments[d]).integer;
        int64_t size = size_of(machine, tensor->dims[d], 0);
        if (expr->pad && (at < 0 || at >= size)) {
            struct value outside = eval(machine, expr->pad);
            bool wanted = tensor->compute == KG_TYPE_F32 || tensor->compute == KG_TYPE_F64;
            return wanted ? real(machine, tensor->compute, as_real(outside)) : outside;
        }
        at = at >= size ? size - 1 : at < 0 ? 0 : at; // gathers are clamped
        place = place * size + at;
    }
    return machine->memory[tensor->id][place];
}

// A reduction in progress. Sums go to several lanes in turn, as those of any decent kernel: one
// lane alone would add up equal rounding errors of equal terms.
#define LANES 8

struct folding {
    enum kg_reduce reduce;
    enum kg_type type;
    struct value lanes[LANES]; // reals
    struct value total;
    struct value best; // argmax
    int64_t count;
};

static void fold(struct machine *machine, struct folding *f, struct value x, int64_t position)
{
    bool reals = f->type == KG_TYPE_F32 || f->type == KG_TYPE_F64;
    bool largest = f->reduce == KG_REDUCE_ARGMAX;
    switch (f->reduce) {
    case KG_REDUCE_SUM:
    case KG_REDUCE_MEAN:
        if (reals) {
            struct value *lane = &f->lanes[f->count % LANES];
            *lane = real(machine, f->type, lane->real + as_real(x));
        } else {
            f->total = call_integer(KG_FN_ADD, f->total.integer, x.integer);
        }
        break;
    case KG_REDUCE_PROD:
        f->total = reals ? real(machine, f->type, f->total.real * as_real(x))
                         : call_integer(KG_FN_MUL, f->total.integer, x.integer);
        break;
    case KG_REDUCE_MAX:
        f->total = reals ? real(machine, f->type, call_real(KG_FN_MAX, f->total.real, as_real(x)))
                         : call_integer(KG_FN_MAX, f->total.integer, x.integer);
        break;
    case KG_REDUCE_MIN:
        f->total = reals ? real(machine, f->type, call_real(KG_FN_MIN, f->total.real, as_real(x)))
                         : call_integer(KG_FN_MIN, f->total.integer, x.integer);
        break;
    case KG_REDUCE_ANY:
        f->total.integer |= x.integer != 0;
        break;
    case KG_REDUCE_ALL:
        f->total.integer &= x.integer != 0;
        break;
    default: {
        bool nan = x.is_real && isnan(x.real), had = f->best.is_real && isnan(f->best.real);
        bool better =
            f->count == 0 || (!had && (nan || compare(largest ? KG_FN_GT : KG_FN_LT, x, f->best)));
        if (better) {
            f->best = x;
            f->total = whole(position);
        }
        break;
    }
    }
    f->count++;
}

static bool related(struct machine *machine, const struct kg_index *index)
{
    if (index->relation == KG_RELATION_NONE)
        return true;
    int64_t bound = eval(machine, index->bound).integer, at = machine->index[index->id];
    return index->relation == KG_RELATION_LE   ? at <= bound
           : index->relation == KG_RELATION_LT ? at < bound
           : index->relation == KG_RELATION_GE ? at >= bound
                                               : at > bound;
}

// What argmax gives for the current values of its indices.
static int64_t place_of(struct machine *machine, const struct kg_expr *expr)
{
    int64_t place = 0;
    if (expr->index_count == 1)
        return machine->index[expr->indices[0]->id];
    for (int i = 0; i < expr->index_count; i++) {
        const struct kg_index *index = expr->indices[i];
        int64_t begin = size_of(machine, index->begin, 0);
        place =
            place * (size_of(machine, index->end, 0) - begin) + machine->index[index->id] - begin;
    }
    return place;
}

static void walk(struct machine *machine, const struct kg_expr *expr, int level, struct folding *f)
{
    if (level == expr->index_count) {
        for (int i = 0; i < expr->index_count; i++)
            if (!related(machine, expr->indices[i]))
                return;
        fold(machine, f, eval(machine, expr->arguments[0]), place_of(machine, expr));
        return;
    }
    const struct kg_index *index = expr->indices[level];
    int64_t end = size_of(machine, index->end, 0);
    for (int64_t i = size_of(machine, index->begin, 0); i < end; i++) {
        machine->index[index->id] = i;
        walk(machine, expr, level + 1, f);
    }
}

static struct value eval_reduce(struct machine *machine, const struct kg_expr *expr)
{
    struct folding f = {.reduce = expr->reduce, .type = expr->type};
    bool reals = expr->type == KG_TYPE_F32 || expr->type == KG_TYPE_F64;
    f.total.is_real = reals;
    switch (expr->reduce) {
    case KG_REDUCE_PROD:
    case KG_REDUCE_ALL:
        f.total = (struct value){reals, 1, 1};
        break;
    case KG_REDUCE_MAX:
        f.total = (struct value){reals, -INFINITY, INT64_MIN};
        break;
    case KG_REDUCE_MIN:
        f.total = (struct value){reals, INFINITY, INT64_MAX};
        break;
    case KG_REDUCE_ARGMAX:
    case KG_REDUCE_ARGMIN:
        f.total = whole(-1);
        break;
    default:
        break;
    }
    walk(machine, expr, 0, &f);
    bool sums = expr->reduce == KG_REDUCE_SUM || expr->reduce == KG_REDUCE_MEAN;
    for (int i = 0; i < LANES && reals && sums; i++)
        f.total = real(machine, expr->type, f.total.real + f.lanes[i].real);
    if (expr->reduce == KG_REDUCE_MEAN)
        f.total = real(machine, expr->type, f.count ? f.total.real / (double)f.count : NAN);
    return f.total;
}

static struct value eval(struct machine *machine, const struct kg_expr *expr)
{
    switch (expr->kind) {
    case KG_EXPR_NUMBER:
        if (expr->type == KG_TYPE_F32 || expr->type == KG_TYPE_F64)
            return real(machine, expr->type,
                        expr->is_integer ? (double)expr->integer : expr->number);
        return whole(expr->integer);
    case KG_EXPR_SIZE:
        return whole(machine->problem->sizes[expr->size->id]);
    case KG_EXPR_INDEX:
        return whole(machine->index[expr->index->id]);
    case KG_EXPR_READ:
        return eval_read(machine, expr);
    case KG_EXPR_CALL:
        return eval_call(machine, expr);
    case KG_EXPR_CAST:
        return eval_cast(machine, expr);
    case KG_EXPR_REDUCE:
        return eval_reduce(machine, expr);
    }
    return whole(0);
}

static bool mentions_tensor(const struct kg_expr *expr, const struct kg_tensor *tensor)
{
    bool found = expr->kind == KG_EXPR_READ && expr->tensor == tensor;
    for (int i = 0; i < expr->argument_count && !found; i++)
        found = mentions_tensor(expr->arguments[i], tensor);
    return found || (expr->pad && mentions_tensor(expr->pad, tensor));
}

// The type of the value that a statement leaves: f64 is not rounded to f32 on its way to an output
// that no statement reads.
static enum kg_type stored_from(const struct kg_op *op, const struct kg_statement *statement)
{
    bool is_read = statement->tensor->role != KG_ROLE_OUTPUT;
    for (int i = 0; i < op->statement_count && !is_read; i++)
        is_read = mentions_tensor(op->statements[i]->value, statement->tensor);
    return !is_read && statement->value->type == KG_TYPE_F64 ? KG_TYPE_F64
                                                             : statement->tensor->compute;
}

static void run_statement(struct machine *machine, const struct kg_statement *statement)
{
    const struct kg_tensor *tensor = statement->tensor;
    int64_t shape[KG_MAX_RANK], count = 1;
    for (int d = 0; d < tensor->rank; d++)
        count *= shape[d] = size_of(machine, tensor->dims[d], 0);
    machine->memory[tensor->id] = calloc((size_t)count + 1, sizeof(struct value));
    for (int64_t n = 0; n < count; n++) {
        int64_t rest = n;
        for (int d = tensor->rank - 1; d >= 0; d--) {
            machine->index[statement->indices[d]->id] = rest % shape[d];
            rest /= shape[d];
        }
        struct value value = eval(machine, statement->value);
        enum kg_type type = stored_from(machine->problem->op, statement);
        bool wanted = type == KG_TYPE_F32 || type == KG_TYPE_F64;
        if (!value.is_real && tensor->role == KG_ROLE_OUTPUT)
            value.integer = wrapped(tensor->type.dtype, value.integer);
        machine->memory[tensor->id][n] = wanted ? real(machine, type, as_real(value)) : value;
    }
}

static void run_all(struct machine *machine, void *const *inputs)
{
    const struct kg_op *op = machine->problem->op;
    for (int i = 0; i < op->input_count; i++) {
        enum kg_dtype dtype = op->tensors[i]->type.dtype;
        int64_t count = machine->problem->layouts[i].elements;
        machine->memory[i] = calloc((size_t)count + 1, sizeof(struct value));
        for (int64_t n = 0; n < count; n++)
            machine->memory[i][n] =
                kg_dtypes[dtype].is_float
                    ? (struct value){true, kg_dtype_load(dtype, inputs[i], (size_t)n), 0}
                    : whole(kg_dtype_load_integer(dtype, inputs[i], (size_t)n));
    }
    for (int i = 0; i < op->statement_count; i++)
        run_statement(machine, op->statements[i]);
}

static void free_memory(struct machine *machine)
{
    for (int i = 0; i < KG_MAX_TENSORS; i++)
        free(machine->memory[i]);
}

#endif
