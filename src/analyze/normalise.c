// Turns the statements of an instance into nests: every reduction that is not a whole right-hand
// side is hoisted into a separate nest before its user. Nothing here depends on concrete sizes, so
// all problems of an instance have the same nests.

#include "analyze/analyze.h"

#include <string.h>

// An index of the statement inside the nest that is built: axis + shift.
struct binding {
    const struct kg_index *index; // the statement's index; NULL: not visible here
    const struct kg_index *axis;
    const struct kg_expr *shift; // NULL: 0
};

struct nest_scope {
    struct binding map[KG_MAX_INDICES]; // by the statement's index ids
    // The nest also runs over elements that a relation of its user leaves out. Their values are
    // never used, but reading them must be safe.
    bool guard;
};

struct builder {
    struct kg_problem *problem;
    const struct kg_op *op;
    const struct kg_statement *statement;
    // Outputs that are read later: the local copy to read instead.
    const struct kg_tensor *replaced[KG_MAX_TENSORS];
    int hoisted;            // of the current statement
    struct kg_nest **nests; // the problem's, writable
    enum kg_status status;
    struct kg_error *error;
};

static const struct kg_expr *fail_memory(struct builder *builder)
{
    if (builder->status == KG_OK)
        builder->status = kg_error_memory(builder->error, "nests of a problem");
    return NULL;
}

static struct kg_expr *make_expr(struct builder *builder, enum kg_expr_kind kind, enum kg_type type,
                                 struct kg_span span, int arguments)
{
    struct kg_arena *arena = &builder->problem->arena;
    struct kg_expr *expr = KG_NEW(arena, struct kg_expr);
    const struct kg_expr **list = KG_NEW_ARRAY(arena, arguments, const struct kg_expr *);
    if (!expr || !list) {
        fail_memory(builder);
        return NULL;
    }
    expr->kind = kind;
    expr->type = type;
    expr->span = span;
    expr->arguments = list;
    expr->argument_count = arguments;
    return expr;
}

static const struct kg_expr *make_binary(struct builder *builder, enum kg_function function,
                                         const struct kg_expr *a, const struct kg_expr *b)
{
    struct kg_expr *expr =
        a && b ? make_expr(builder, KG_EXPR_CALL, KG_TYPE_I64, a->span, 2) : NULL;
    if (!expr)
        return NULL;
    expr->function = function;
    expr->arguments[0] = a;
    expr->arguments[1] = b;
    return expr;
}

static const struct kg_expr *make_index(struct builder *builder, const struct kg_index *axis)
{
    struct kg_expr *expr = make_expr(builder, KG_EXPR_INDEX, KG_TYPE_I64, axis->span, 0);
    if (expr)
        expr->index = axis;
    return expr;
}

static const struct kg_expr *make_zero(struct builder *builder, enum kg_type type,
                                       struct kg_span span)
{
    struct kg_expr *expr = make_expr(builder, KG_EXPR_NUMBER, type, span, 0);
    if (expr)
        expr->is_integer = true;
    return expr;
}

static const struct kg_expr *index_value(struct builder *builder, const struct binding *binding)
{
    const struct kg_expr *axis = make_index(builder, binding->axis);
    return binding->shift ? make_binary(builder, KG_FN_ADD, axis, binding->shift) : axis;
}

// Room for one more nest and the tensor it may add.
static bool has_room(struct builder *builder)
{
    if (builder->problem->nest_count < KG_MAX_NESTS)
        return true;
    builder->status = kg_error_set(builder->error, KG_ERROR_UNSUPPORTED,
                                   "op %s has more than %d statements and inner reductions",
                                   builder->op->name, KG_MAX_NESTS);
    return false;
}

static bool name_is_taken(const struct kg_problem *problem, const char *name)
{
    for (int i = 0; i < problem->tensor_count; i++)
        if (strcmp(problem->tensors[i]->name, name) == 0)
            return true;
    for (int i = 0; i < problem->op->size_count; i++)
        if (strcmp(problem->op->sizes[i]->name, name) == 0)
            return true;
    return false;
}

// A new local tensor "<statement tensor>_<n>" with these dims.
static const struct kg_tensor *make_local(struct builder *builder, enum kg_type compute,
                                          struct kg_span span, int rank,
                                          const struct kg_expr *const *dims)
{
    struct kg_problem *problem = builder->problem;
    if (!has_room(builder))
        return NULL;
    struct kg_tensor *tensor = KG_NEW(&problem->arena, struct kg_tensor);
    char *name;
    do
        name = kg_arena_format(&problem->arena, "%s_%d", builder->statement->tensor->name,
                               ++builder->hoisted);
    while (name && name_is_taken(problem, name));
    if (!tensor || !name) {
        fail_memory(builder);
        return NULL;
    }
    tensor->name = name;
    tensor->span = span;
    tensor->id = problem->tensor_count;
    tensor->role = KG_ROLE_LOCAL;
    tensor->compute = compute;
    tensor->memory = kg_type_dtype(compute);
    tensor->rank = rank;
    memcpy(tensor->dims, dims, (size_t)rank * sizeof *dims);
    problem->tensors[problem->tensor_count++] = tensor;
    return tensor;
}

static struct kg_nest *make_nest(struct builder *builder)
{
    struct kg_nest *nest = KG_NEW(&builder->problem->arena, struct kg_nest);
    if (!nest)
        fail_memory(builder);
    return nest;
}

// Appends a nest whose body is complete; the nests that it reads from precede it.
static bool add_nest(struct builder *builder, struct kg_nest *nest, const struct kg_tensor *output)
{
    struct kg_problem *problem = builder->problem;
    if (!has_room(builder))
        return false;
    builder->status = kg_analyze_accesses(&problem->arena, nest, builder->error);
    if (builder->status != KG_OK)
        return false;
    nest->output = output;
    nest->id = problem->nest_count;
    builder->nests[nest->id] = nest;
    problem->nests[problem->nest_count++] = nest;
    return true;
}

static struct kg_index *make_axis(struct builder *builder, struct kg_nest *nest,
                                  const struct kg_index *index)
{
    struct kg_index *axis = KG_NEW(&builder->problem->arena, struct kg_index);
    if (!axis) {
        fail_memory(builder);
        return NULL;
    }
    *axis = *index;
    axis->id = nest->axis_count;
    nest->axes[nest->axis_count++] = axis;
    return axis;
}

// Output axes run from 0: an index with a `begin` is shifted.
static bool bind_output_axis(struct builder *builder, struct nest_scope *scope,
                             struct kg_nest *nest, const struct kg_index *index)
{
    struct kg_index *axis = make_axis(builder, nest, index);
    if (!axis)
        return false;
    axis->begin = NULL;
    axis->written = false;
    if (index->begin)
        axis->end = make_binary(builder, KG_FN_SUB, index->end, index->begin);
    axis->relation = KG_RELATION_NONE;
    axis->bound = NULL;
    nest->output_axes++;
    scope->map[index->id] = (struct binding){index, axis, index->begin};
    return axis->end != NULL;
}

static const struct kg_expr *rewrite(struct builder *builder, const struct nest_scope *scope,
                                     const struct kg_expr *expr);

static bool bind_reduced_axes(struct builder *builder, struct nest_scope *scope,
                              struct kg_nest *nest, const struct kg_expr *reduce)
{
    nest->has_reduce = true;
    nest->reduce = reduce->reduce;
    for (int i = 0; i < reduce->index_count; i++) {
        const struct kg_index *index = reduce->indices[i];
        struct kg_index *axis = make_axis(builder, nest, index);
        if (!axis)
            return false;
        if (index->bound && !(axis->bound = rewrite(builder, scope, index->bound)))
            return false;
        scope->map[index->id] = (struct binding){index, axis, NULL};
    }
    return true;
}

// Each axis of `a` equals that of `b`, and so do reduction and body.
static bool same_nest(const struct kg_nest *a, const struct kg_nest *b)
{
    if (a->output_axes != b->output_axes || a->axis_count != b->axis_count ||
        a->has_reduce != b->has_reduce || a->reduce != b->reduce)
        return false;
    for (int i = 0; i < a->axis_count; i++) {
        const struct kg_index *x = a->axes[i], *y = b->axes[i];
        const struct kg_expr *pairs[][2] = {
            {x->begin, y->begin}, {x->end, y->end}, {x->bound, y->bound}};
        if (x->relation != y->relation)
            return false;
        for (size_t j = 0; j < sizeof pairs / sizeof pairs[0]; j++)
            if (pairs[j][0] && pairs[j][1] ? !kg_analyze_equal(pairs[j][0], pairs[j][1])
                                           : pairs[j][0] != pairs[j][1])
                return false;
    }
    return kg_analyze_equal(a->body, b->body);
}

// The intermediate that already contains the result of `nest`, or NULL.
static const struct kg_tensor *find_shared(const struct kg_problem *problem,
                                           const struct kg_nest *nest, enum kg_type compute)
{
    for (int i = 0; i < problem->nest_count; i++) {
        const struct kg_tensor *output = problem->nests[i]->output;
        if (output->role == KG_ROLE_LOCAL && output->compute == compute &&
            output->memory == kg_type_dtype(compute) && same_nest(problem->nests[i], nest))
            return output;
    }
    return NULL;
}

// Ids of the indices that the reduction takes from its user, in the order of the user's axes.
static int free_indices(const struct nest_scope *scope, const struct kg_expr *reduce,
                        int ids[KG_MAX_INDICES])
{
    bool used[KG_MAX_INDICES] = {false};
    int count = 0;
    kg_analyze_used(reduce, used);
    for (int axis = 0; axis < KG_MAX_INDICES; axis++)
        for (int id = 0; id < KG_MAX_INDICES; id++)
            if (used[id] && scope->map[id].index && scope->map[id].axis->id == axis)
                ids[count++] = id;
    return count;
}

// The element of a hoisted tensor that its user reads. Output axes run from 0 in both nests;
// reduced axes of the user keep their `begin`.
static const struct kg_expr *read_hoisted(struct builder *builder, const struct nest_scope *scope,
                                          const struct kg_tensor *tensor, struct kg_span span,
                                          const int *ids)
{
    struct kg_expr *read = make_expr(builder, KG_EXPR_READ, tensor->compute, span, tensor->rank);
    if (!read)
        return NULL;
    read->tensor = tensor;
    for (int i = 0; i < tensor->rank; i++) {
        const struct kg_index *axis = scope->map[ids[i]].axis;
        const struct kg_expr *subscript = make_index(builder, axis);
        if (axis->begin)
            subscript = make_binary(builder, KG_FN_SUB, subscript, axis->begin);
        if (!subscript)
            return NULL;
        read->arguments[i] = subscript;
    }
    return read;
}

// Makes the nest of an inner reduction, unless an equal one exists, and returns the read that
// replaces it in the user's body.
static const struct kg_expr *hoist(struct builder *builder, const struct nest_scope *user,
                                   const struct kg_expr *reduce)
{
    int ids[KG_MAX_INDICES];
    int rank = free_indices(user, reduce, ids);
    if (rank > KG_MAX_RANK) {
        struct kg_text text = {0};
        kg_lang_print_expr(&text, reduce);
        builder->status = kg_error_set(builder->error, KG_ERROR_UNSUPPORTED,
                                       "line %d: %s depends on %d indices, at most %d are possible",
                                       reduce->span.line, kg_text_string(&text), rank, KG_MAX_RANK);
        kg_text_free(&text);
        return NULL;
    }
    struct kg_nest *nest = make_nest(builder);
    if (!nest)
        return NULL;
    struct nest_scope scope = {0};
    const struct kg_expr *dims[KG_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        const struct kg_index *index = user->map[ids[i]].index;
        if (!bind_output_axis(builder, &scope, nest, index))
            return NULL;
        dims[i] = nest->axes[i]->end;
        scope.guard = scope.guard || index->relation != KG_RELATION_NONE;
    }
    if (!bind_reduced_axes(builder, &scope, nest, reduce) ||
        !(nest->body = rewrite(builder, &scope, reduce->arguments[0])))
        return NULL;
    const struct kg_tensor *tensor = find_shared(builder->problem, nest, reduce->type);
    if (!tensor) {
        tensor = make_local(builder, reduce->type, reduce->span, rank, dims);
        if (!tensor || !add_nest(builder, nest, tensor))
            return NULL;
    }
    return read_hoisted(builder, user, tensor, reduce->span, ids);
}

// Is the read inside its tensor without considering relations? Every subscript must be an index
// that runs over exactly that dimension, or a gather, which is clamped. `clamped` tells whether
// there is a gather.
static bool is_inside(const struct kg_expr *read, bool *clamped)
{
    bool inside = true;
    *clamped = false;
    for (int i = 0; i < read->argument_count; i++) {
        const struct kg_expr *subscript = read->arguments[i];
        if (kg_analyze_reads(subscript))
            *clamped = true;
        else if (subscript->kind != KG_EXPR_INDEX ||
                 !kg_analyze_equal(subscript->index->end, read->tensor->dims[i]))
            inside = false;
    }
    return inside;
}

// Pads a read that its nest makes for elements which the definition does not read.
static void guard_read(struct builder *builder, const struct kg_expr *original,
                       struct kg_expr *read)
{
    bool clamped;
    if (read->pad || is_inside(original, &clamped))
        return;
    if (clamped) { // pad() would change what the clamped subscript reads
        struct kg_text text = {0};
        kg_lang_print_expr(&text, original);
        builder->status = kg_error_set(
            builder->error, KG_ERROR_UNSUPPORTED,
            "line %d: %s is a gather inside a reduction inside a scan; give the inner reduction a "
            "statement of its own",
            original->span.line, kg_text_string(&text));
        kg_text_free(&text);
        return;
    }
    read->pad = make_zero(builder, read->type, read->span);
}

static const struct kg_expr *rewrite(struct builder *builder, const struct nest_scope *scope,
                                     const struct kg_expr *expr)
{
    switch (expr->kind) {
    case KG_EXPR_NUMBER:
    case KG_EXPR_SIZE:
        return expr;
    case KG_EXPR_INDEX:
        return index_value(builder, &scope->map[expr->index->id]);
    case KG_EXPR_REDUCE:
        return hoist(builder, scope, expr);
    default:
        break;
    }
    struct kg_expr *copy =
        make_expr(builder, expr->kind, expr->type, expr->span, expr->argument_count);
    if (!copy)
        return NULL;
    const struct kg_expr **arguments = copy->arguments;
    *copy = *expr;
    copy->arguments = arguments;
    for (int i = 0; i < expr->argument_count; i++)
        if (!(arguments[i] = rewrite(builder, scope, expr->arguments[i])))
            return NULL;
    if (expr->kind == KG_EXPR_READ) {
        const struct kg_tensor *local_copy = builder->replaced[expr->tensor->id];
        copy->tensor = local_copy ? local_copy : expr->tensor;
        if (expr->pad && !(copy->pad = rewrite(builder, scope, expr->pad)))
            return NULL;
        if (scope->guard)
            guard_read(builder, expr, copy);
    }
    return builder->status == KG_OK ? copy : NULL;
}

static bool reads_tensor(const struct kg_expr *expr, const struct kg_tensor *tensor)
{
    if (expr->kind == KG_EXPR_READ &&
        (expr->tensor == tensor || (expr->pad && reads_tensor(expr->pad, tensor))))
        return true;
    for (int i = 0; i < expr->index_count; i++)
        if (expr->indices[i]->bound && reads_tensor(expr->indices[i]->bound, tensor))
            return true;
    for (int i = 0; i < expr->argument_count; i++)
        if (reads_tensor(expr->arguments[i], tensor))
            return true;
    return false;
}

// Starts the nest that defines every element of the statement's tensor.
static struct kg_nest *make_statement_nest(struct builder *builder, struct nest_scope *scope)
{
    struct kg_nest *nest = make_nest(builder);
    for (int i = 0; nest && i < builder->statement->index_count; i++)
        if (!bind_output_axis(builder, scope, nest, builder->statement->indices[i]))
            return NULL;
    return nest;
}

// to[...] = from[...], for the tensor of the current statement or its local copy. With `narrow` the
// value is first wrapped to what an element of that dtype can hold.
static bool add_copy(struct builder *builder, const struct kg_tensor *from,
                     const struct kg_tensor *to, const struct kg_type_name *narrow)
{
    struct nest_scope scope = {0};
    struct kg_span span = builder->statement->span;
    struct kg_nest *nest = make_statement_nest(builder, &scope);
    int ids[KG_MAX_RANK];
    for (int i = 0; i < from->rank; i++)
        ids[i] = builder->statement->indices[i]->id;
    if (!nest || !(nest->body = read_hoisted(builder, &scope, from, span, ids)))
        return false;
    if (narrow) {
        struct kg_expr *cast = make_expr(builder, KG_EXPR_CAST, from->compute, span, 1);
        if (!cast)
            return false;
        cast->cast = *narrow;
        cast->arguments[0] = nest->body;
        nest->body = cast;
    }
    return add_nest(builder, nest, to);
}

static bool is_read_later(const struct builder *builder, int statement)
{
    const struct kg_tensor *tensor = builder->op->statements[statement]->tensor;
    for (int i = statement + 1; i < builder->op->statement_count; i++)
        if (reads_tensor(builder->op->statements[i]->value, tensor))
            return true;
    return false;
}

// A local with the shape and the compute type of an output.
static const struct kg_tensor *make_local_copy(struct builder *builder,
                                               const struct kg_tensor *output)
{
    return make_local(builder, output->compute, output->span, output->rank, output->dims);
}

// Defines an output that is read later: `nest` fills a local, which later statements read and which
// is copied to the output. Floats are rounded only by the copy; integers wrap before they are read,
// as they do when stored.
static void add_output_that_is_read(struct builder *builder, struct kg_nest *nest)
{
    const struct kg_tensor *output = builder->statement->tensor;
    const struct kg_tensor *local_copy = make_local_copy(builder, output), *wrapped = local_copy;
    if (!local_copy || !add_nest(builder, nest, local_copy))
        return;
    if (output->compute == KG_TYPE_I64 && !kg_dtype_is_computed(output->type.dtype))
        if (!(wrapped = make_local_copy(builder, output)) ||
            !add_copy(builder, local_copy, wrapped, &output->type))
            return;
    builder->replaced[output->id] = wrapped;
    add_copy(builder, wrapped, output, NULL);
}

static void add_statement(struct builder *builder, int number)
{
    const struct kg_statement *statement = builder->op->statements[number];
    const struct kg_expr *value = statement->value;
    struct nest_scope scope = {0};
    builder->statement = statement;
    builder->hoisted = 0;
    struct kg_nest *nest = make_statement_nest(builder, &scope);
    if (!nest)
        return;
    if (value->kind == KG_EXPR_REDUCE) {
        if (!bind_reduced_axes(builder, &scope, nest, value))
            return;
        value = value->arguments[0];
    }
    if (!(nest->body = rewrite(builder, &scope, value)))
        return;
    if (statement->tensor->role == KG_ROLE_OUTPUT && is_read_later(builder, number))
        add_output_that_is_read(builder, nest);
    else
        add_nest(builder, nest, statement->tensor);
}

enum kg_status kg_analyze_normalise(struct kg_problem *problem, struct kg_nest **nests,
                                    struct kg_error *error)
{
    struct builder builder = {
        .problem = problem, .op = problem->op, .nests = nests, .error = error};
    for (int i = 0; i < builder.op->tensor_count; i++)
        problem->tensors[problem->tensor_count++] = builder.op->tensors[i];
    for (int i = 0; i < builder.op->statement_count && builder.status == KG_OK; i++)
        add_statement(&builder, i);
    return builder.status;
}
