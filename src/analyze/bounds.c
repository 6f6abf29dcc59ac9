// Refuses reads outside a tensor, and places of argmax and argmin that their output cannot hold,
// before any kernel exists. It works on the instance as written, not
// on the nests, so that messages show the user's text.
//
// A reduction inside an expression becomes a nest over the indices it uses, and is checked over
// exactly those. Other indices do not protect it, neither by having no value nor by a relation.
// hoist() and guard_read() in normalise.c rely on this.

#include "analyze/analyze.h"

#include "lang/panels.h"

#include <string.h>

struct checker {
    const struct kg_problem *problem;
    const struct kg_statement *statement;
    struct kg_error *error;
};

// The position of an expression.
struct place {
    struct kg_scope scope;
    bool silent; // the definition evaluates nothing here, because some index takes no value
    bool idle;   // the nest evaluates nothing either, though it ignores outer relations
};

static void print_reach(struct kg_text *text, const struct kg_interval *interval)
{
    if (!interval->known)
        kg_text_add(text, "has no bound that can be proved");
    else if (interval->low == interval->high)
        kg_text_format(text, "is %lld", (long long)interval->low);
    else
        kg_text_format(text, "runs over %lld..%lld", (long long)interval->low,
                       (long long)interval->high);
}

// " where i runs over 0..7"
static void print_indices(struct kg_text *text, const struct kg_scope *scope,
                          const struct kg_expr *subscript)
{
    bool used[KG_MAX_INDICES] = {false};
    kg_analyze_used(subscript, used);
    const char *before = " where ";
    for (int i = 0; i < scope->count && subscript->kind != KG_EXPR_INDEX; i++) {
        int id = scope->order[i]->id;
        if (!used[id])
            continue;
        kg_text_format(text, "%s%s runs over %lld..%lld", before, scope->order[i]->name,
                       (long long)scope->low[id], (long long)scope->high[id]);
        before = ", ";
    }
}

static enum kg_status fail(const struct checker *check, const struct kg_expr *read,
                           struct kg_span span, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// The place of `span`, with `read` and what is said of it, which goes on after the first newline
// below the line.
static enum kg_status fail(const struct checker *check, const struct kg_expr *read,
                           struct kg_span span, const char *format, ...)
{
    struct kg_text where = {0}, message = {0}, text = {0};
    va_list arguments;
    kg_lang_print_expr(&where, read);
    kg_text_add(&message, kg_text_string(&where));
    va_start(arguments, format);
    kg_text_vformat(&message, format, arguments);
    va_end(arguments);
    char *rest = message.data ? strchr(message.data, '\n') : NULL;
    if (rest)
        *rest++ = '\0';
    kg_lang_show_error(&text, check->problem->op, span, kg_text_string(&message));
    kg_text_add(&text, rest ? rest : "");
    enum kg_status status =
        text.failed ? kg_error_memory(check->error, "a diagnostic")
                    : kg_error_set(check->error, KG_ERROR_SHAPE, "%s", kg_text_string(&text));
    kg_text_free(&where);
    kg_text_free(&message);
    kg_text_free(&text);
    return status;
}

static enum kg_status refuse(const struct checker *check, const struct place *place,
                             const struct kg_expr *read, const struct kg_expr *subscript,
                             int dimension, const struct kg_interval *interval, int64_t size)
{
    const char *name = read->tensor->name;
    const bool is_packed = read->tensor->panel_rows; // which cannot be padded
    struct kg_text where = {0}, reach = {0};
    kg_lang_print_expr(&where, read);
    kg_lang_print_expr(&reach, subscript);
    kg_text_add(&reach, " ");
    print_reach(&reach, interval);
    if (interval->known)
        print_indices(&reach, &place->scope, subscript);
    enum kg_status status = fail(
        check, read, subscript->span,
        " reads outside %s\n"
        "dimension %d of %s has %lld element%s, but subscript %s\n"
        "help: %s%s%s",
        name, dimension, name, (long long)size, size == 1 ? "" : "s", kg_text_string(&reach),
        is_packed ? "" : "pad(", is_packed ? "" : kg_text_string(&where),
        is_packed ? "let the index run over less"
                  : ", value) gives what lies outside a value; or let the index run over less");
    kg_text_free(&where);
    kg_text_free(&reach);
    return status;
}

static enum kg_status refuse_gather(const struct checker *check, const struct kg_expr *read,
                                    int dimension)
{
    return fail(check, read, read->span,
                " gathers from dimension %d of %s, which is empty\n"
                "help: bind a size above 0, or pad the read",
                dimension, read->tensor->name);
}

// The least and the largest that argmax gives: values of its index, or positions among several.
static enum kg_status find_places(const struct checker *check, const struct kg_expr *reduce,
                                  double *least, double *most)
{
    double count = 1, first = 0;
    for (int i = 0; i < reduce->index_count; i++) {
        const struct kg_index *index = reduce->indices[i];
        int64_t begin = 0, end = 0;
        enum kg_status status =
            kg_lang_size_value(index->end, check->problem->sizes, &end, check->error);
        if (index->begin && status == KG_OK)
            status = kg_lang_size_value(index->begin, check->problem->sizes, &begin, check->error);
        if (status != KG_OK)
            return status;
        count *= end > begin ? (double)(end - begin) : 0;
        first = (double)begin;
    }
    *least = reduce->index_count == 1 ? first : 0;
    *most = *least + count - 1;
    return KG_OK;
}

static enum kg_status check_places(const struct checker *check, const struct kg_expr *reduce)
{
    const struct kg_tensor *tensor = check->statement->tensor;
    bool is_stored = reduce == check->statement->value && tensor->role == KG_ROLE_OUTPUT &&
                     tensor->compute == KG_TYPE_I64;
    const struct kg_dtype_info *held = &kg_dtypes[is_stored ? tensor->type.dtype : KG_I64];
    double least, most;
    enum kg_status status = find_places(check, reduce, &least, &most);
    if (status != KG_OK || most <= held->largest)
        return status;
    struct kg_text statement = {0};
    kg_lang_print_statement(&statement, check->statement);
    status = kg_error_set(check->error, KG_ERROR_SHAPE,
                          "line %d: %s gives places from %.0f to %.0f, and %s holds %.0f to %.0f\n"
                          "  in        %s\n"
                          "  hint      %s",
                          reduce->span.line, kg_reduces[reduce->reduce].name, least, most,
                          held->name, held->smallest, held->largest, kg_text_string(&statement),
                          held->bits < 64 ? "give the output a wider integer dtype, such as i64"
                                          : "take fewer indices or smaller ranges");
    kg_text_free(&statement);
    return status;
}

static enum kg_status check_expr(const struct checker *check, const struct place *place,
                                 const struct kg_expr *expr);

// `size`: what that dimension has; of a packed input rows or columns, not panels.
static enum kg_status check_subscript(const struct checker *check, const struct place *place,
                                      const struct kg_expr *read, const struct kg_expr *subscript,
                                      int dimension, int64_t size)
{
    // With larger offsets, kernels could overflow when they compute an address.
    const int64_t far = (int64_t)1 << 60;
    struct kg_interval interval = kg_scope_interval(&place->scope, subscript);
    if (interval.gather)
        return size == 0 && !read->pad && !place->idle ? refuse_gather(check, read, dimension)
                                                       : KG_OK;
    if (place->silent)
        return KG_OK;
    if (!interval.known || interval.low < -far || interval.high > far ||
        (!read->pad && (interval.low < 0 || interval.high >= size)))
        return refuse(check, place, read, subscript, dimension, &interval, size);
    return KG_OK;
}

static enum kg_status check_subscripts(const struct checker *check, const struct place *place,
                                       const struct kg_expr *read)
{
    const struct kg_tensor *tensor = read->tensor;
    const int64_t *shape = check->problem->layouts[tensor->id].shape;
    const struct kg_expr *subscripts[KG_MAX_RANK];
    bool is_declared = kg_lang_declared_subscripts(read, subscripts);
    int rank = is_declared ? kg_lang_declared_rank(tensor) : tensor->rank;
    enum kg_status status = KG_OK;
    for (int i = 0; i < rank && status == KG_OK; i++) {
        int64_t size = shape[i];
        if (tensor->panel_rows && is_declared)
            status = kg_lang_size_value(kg_lang_declared_dim(tensor, i), check->problem->sizes,
                                        &size, check->error);
        if (status == KG_OK)
            status = check_subscript(check, place, read, subscripts[i], i, size);
    }
    return status;
}

static bool takes_no_value(const struct kg_scope *scope, const bool used[KG_MAX_INDICES])
{
    for (int i = 0; i < scope->count; i++) {
        int id = scope->order[i]->id;
        if (used[id] && scope->low[id] > scope->high[id])
            return true;
    }
    return false;
}

// Adds the used indices of `from`; with `alone` each has its own range without relations.
static enum kg_status push_used(const struct kg_scope *from, const bool used[KG_MAX_INDICES],
                                bool alone, struct kg_scope *scope, struct kg_error *error)
{
    enum kg_status status = KG_OK;
    *scope = (struct kg_scope){.sizes = from->sizes};
    for (int i = 0; i < from->count && status == KG_OK; i++) {
        struct kg_index index = *from->order[i];
        if (alone)
            index.relation = KG_RELATION_NONE;
        if (!used[index.id])
            continue;
        status = kg_scope_push(scope, &index, error);
        if (status == KG_OK)
            scope->order[scope->count - 1] = from->order[i];
    }
    return status;
}

// The scope inside the nest that a reduction becomes: the indices it uses, each over its whole
// range. If one of them has a relation, the nest guards its reads itself, so that all relations of
// the definition may be assumed.
static enum kg_status enter_nest(const struct kg_scope *outer, const bool used[KG_MAX_INDICES],
                                 struct kg_scope *scope, struct kg_error *error)
{
    for (int i = 0; i < outer->count; i++)
        if (used[outer->order[i]->id] && outer->order[i]->relation != KG_RELATION_NONE) {
            *scope = *outer;
            return KG_OK;
        }
    return push_used(outer, used, false, scope, error);
}

static enum kg_status settle(const struct checker *check, const bool used[KG_MAX_INDICES],
                             struct place *place)
{
    struct kg_scope alone;
    enum kg_status status = push_used(&place->scope, used, true, &alone, check->error);
    place->idle = takes_no_value(&alone, used);
    place->silent = takes_no_value(&place->scope, used);
    return status;
}

static enum kg_status check_reduce(const struct checker *check, const struct place *outer,
                                   const struct kg_expr *reduce)
{
    struct place place = {.silent = false};
    bool used[KG_MAX_INDICES] = {false};
    if (kg_reduces[reduce->reduce].is_argument) {
        enum kg_status held = check_places(check, reduce);
        if (held != KG_OK)
            return held;
    }
    kg_analyze_used(reduce, used);
    for (int i = 0; reduce == check->statement->value && i < outer->scope.count; i++)
        used[outer->scope.order[i]->id] = true; // remains, over all output axes
    enum kg_status status = enter_nest(&outer->scope, used, &place.scope, check->error);
    for (int i = 0; i < reduce->index_count && status == KG_OK; i++) {
        const struct kg_index *index = reduce->indices[i];
        status = settle(check, used, &place);
        if (index->bound && status == KG_OK)
            status = check_expr(check, &place, index->bound);
        used[index->id] = true;
        if (status == KG_OK)
            status = kg_scope_push(&place.scope, index, check->error);
    }
    if (status == KG_OK)
        status = settle(check, used, &place);
    return status == KG_OK ? check_expr(check, &place, reduce->arguments[0]) : status;
}

static enum kg_status check_expr(const struct checker *check, const struct place *place,
                                 const struct kg_expr *expr)
{
    if (expr->kind == KG_EXPR_REDUCE)
        return check_reduce(check, place, expr);
    enum kg_status status = KG_OK;
    for (int i = 0; i < expr->argument_count && status == KG_OK; i++)
        status = check_expr(check, place, expr->arguments[i]);
    if (expr->kind != KG_EXPR_READ)
        return status;
    if (expr->pad && status == KG_OK)
        status = check_expr(check, place, expr->pad);
    return status == KG_OK ? check_subscripts(check, place, expr) : status;
}

static enum kg_status check_statement(const struct checker *check)
{
    struct place place = {.scope = {.sizes = check->problem->sizes}};
    bool outputs[KG_MAX_INDICES] = {false};
    enum kg_status status = KG_OK;
    for (int i = 0; i < check->statement->index_count && status == KG_OK; i++) {
        outputs[check->statement->indices[i]->id] = true;
        status = kg_scope_push(&place.scope, check->statement->indices[i], check->error);
    }
    if (status == KG_OK)
        status = settle(check, outputs, &place);
    return status == KG_OK ? check_expr(check, &place, check->statement->value) : status;
}

// Does the index run over whole dimensions of its size, which has a value whatever it is?
static bool is_whole(const struct kg_index *index)
{
    return !index->begin && index->relation == KG_RELATION_NONE &&
           (index->end->kind == KG_EXPR_SIZE || index->end->kind == KG_EXPR_NUMBER);
}

static bool reads_inside(const struct kg_expr *read)
{
    const struct kg_expr *subscripts[KG_MAX_RANK];
    bool is_inside = !read->pad && kg_lang_declared_subscripts(read, subscripts);
    for (int i = 0; is_inside && i < kg_lang_declared_rank(read->tensor); i++)
        is_inside =
            subscripts[i]->kind == KG_EXPR_INDEX && is_whole(subscripts[i]->index) &&
            kg_analyze_equal(subscripts[i]->index->end, kg_lang_declared_dim(read->tensor, i));
    return is_inside;
}

// Is every subscript an index that runs over exactly its dimension?
static bool stays_inside(const struct kg_expr *expr)
{
    const bool is_reduce = expr->kind == KG_EXPR_REDUCE;
    if (expr->kind == KG_EXPR_READ)
        return reads_inside(expr);
    if (is_reduce && kg_reduces[expr->reduce].is_argument)
        return false;
    for (int i = 0; is_reduce && i < expr->index_count; i++)
        if (!is_whole(expr->indices[i]))
            return false;
    for (int i = 0; i < expr->argument_count; i++)
        if (!stays_inside(expr->arguments[i]))
            return false;
    return true;
}

void kg_analyze_inside(struct kg_problem *problem)
{
    for (int i = 0; i < problem->op->statement_count; i++) {
        const struct kg_statement *statement = problem->op->statements[i];
        problem->is_inside[i] = stays_inside(statement->value);
        for (int k = 0; k < statement->index_count; k++)
            problem->is_inside[i] &= is_whole(statement->indices[k]);
    }
}

enum kg_status kg_analyze_bounds(const struct kg_problem *problem, struct kg_error *error)
{
    enum kg_status status = KG_OK;
    for (int i = 0; i < problem->op->statement_count && status == KG_OK; i++) {
        struct checker check = {problem, problem->op->statements[i], error};
        if (!problem->is_inside[i])
            status = check_statement(&check);
    }
    return status;
}
