// Instances: a deep copy of an op with dtypes and params bound and every expression typed.

#include "lang/lang.h"
#include "lang/types.h"

#include <math.h>
#include <string.h>

#define MAX_PARAM ((int64_t)1 << 48)

enum { COPIED_ORIGINS = 128 };

// Expressions that are close together share what they came from.
struct copied_origin {
    const struct kg_expansion *from;
    const struct kg_expansion *to;
};

struct instantiation {
    struct kg_lang_job job;
    const struct kg_op *from;
    struct kg_op *to;
    const struct kg_bindings *bindings;
    struct kg_index *indices[KG_MAX_INDICES]; // of the current statement, by id
    struct copied_origin origins[COPIED_ORIGINS];
};

static const struct kg_expr *copy_expr(struct instantiation *s, const struct kg_expr *from);

void kg_lang_default_bindings(const struct kg_op *op, struct kg_bindings *bindings)
{
    memset(bindings, 0, sizeof *bindings);
    for (int i = 0; i < op->typevar_count; i++)
        bindings->dtypes[i] = op->is_instance ? op->bound[i] : op->typevars[i]->allowed[0];
    for (int i = 0; i < op->size_count; i++) {
        bindings->values[i] = op->sizes[i]->value;
        bindings->reals[i] = op->sizes[i]->real;
    }
}

static void bind_typevars(struct instantiation *s)
{
    const struct kg_op *from = s->from;
    struct kg_op *to = s->to;
    for (int i = 0; i < from->typevar_count; i++) {
        const struct kg_typevar *variable = from->typevars[i];
        struct kg_text list = {0};
        bool allowed = false;
        for (int j = 0; j < variable->count; j++) {
            kg_text_format(&list, " %s", kg_dtypes[variable->allowed[j]].name);
            allowed |= variable->allowed[j] == s->bindings->dtypes[i];
        }
        const char *names = kg_lang_format(&s->job, "%s", kg_text_string(&list));
        kg_text_free(&list);
        enum kg_dtype dtype = s->bindings->dtypes[i];
        if (!allowed)
            kg_lang_fail_plain(&s->job, KG_ERROR_ARGUMENT, "%s: %s cannot be %s; expected one of%s",
                               from->name, variable->name,
                               dtype < KG_DTYPE_COUNT ? kg_dtypes[dtype].name : "that", names);
        struct kg_typevar *copy = KG_LANG_NEW(&s->job, struct kg_typevar);
        *copy = *variable;
        to->typevars[i] = copy;
        to->bound[i] = dtype;
    }
}

static void bind_sizes(struct instantiation *s)
{
    for (int i = 0; i < s->from->size_count; i++) {
        struct kg_size *size = KG_LANG_NEW(&s->job, struct kg_size);
        *size = *s->from->sizes[i];
        s->to->sizes[i] = size;
        if (!size->is_param)
            continue;
        size->value = size->is_real ? 0 : s->bindings->values[i];
        size->real = size->is_real ? s->bindings->reals[i] : (double)size->value;
        if (size->value > MAX_PARAM || size->value < -MAX_PARAM || isnan(size->real))
            kg_lang_fail_plain(&s->job, KG_ERROR_ARGUMENT,
                               "%s: the value of the param %s is out of range", s->from->name,
                               size->name);
    }
}

static struct kg_type_name bind_type(struct instantiation *s, struct kg_type_name type)
{
    if (type.variable)
        type.dtype = s->to->bound[type.variable->id];
    type.variable = NULL;
    return type;
}

static const struct kg_expansion *copy_origin(struct instantiation *s,
                                              const struct kg_expansion *from)
{
    if (!from)
        return NULL;
    struct copied_origin *copied = &s->origins[(uintptr_t)from / sizeof *from % COPIED_ORIGINS];
    if (copied->from == from)
        return copied->to;
    struct kg_expansion *origin = KG_LANG_NEW(&s->job, struct kg_expansion);
    *origin = *from;
    origin->note = kg_lang_copy(&s->job, from->note, strlen(from->note));
    origin->place.origin = copy_origin(s, from->place.origin);
    *copied = (struct copied_origin){from, origin};
    return origin;
}

// Dimensions are shared by the indices that run over them: copied once.
static const struct kg_expr *copy_dimension(struct instantiation *s, const struct kg_expr *from)
{
    if (!from)
        return NULL;
    for (int t = 0; t < s->to->tensor_count; t++) {
        const struct kg_tensor *old = s->from->tensors[t], *new = s->to->tensors[t];
        if (old->panel_rows == from && new->panel_rows)
            return new->panel_rows;
        if (old->panel_columns == from && new->panel_columns)
            return new->panel_columns;
        for (int d = 0; d < new->rank; d++)
            if (old->dims[d] == from && new->dims[d])
                return new->dims[d];
    }
    return copy_expr(s, from);
}

// The new copy of an index. Its bound may name only indices made before it.
static struct kg_index *copy_index(struct instantiation *s, const struct kg_index *from)
{
    struct kg_index *index = KG_LANG_NEW(&s->job, struct kg_index);
    *index = *from;
    index->begin = copy_dimension(s, from->begin);
    index->end = copy_dimension(s, from->end);
    index->bound = from->bound ? copy_expr(s, from->bound) : NULL;
    s->indices[from->id] = index;
    return index;
}

// A size stays symbolic; a param becomes its number.
static void copy_size(struct instantiation *s, struct kg_expr *expr)
{
    const struct kg_size *size = s->to->sizes[expr->size->id];
    expr->size = size;
    expr->type = KG_TYPE_I64;
    if (!size->is_param)
        return;
    expr->kind = KG_EXPR_NUMBER;
    expr->is_integer = !size->is_real;
    expr->integer = size->value;
    expr->number = size->real;
    expr->type = size->is_real ? KG_TYPE_F32 : KG_TYPE_I64;
}

static void copy_read(struct instantiation *s, struct kg_expr *expr)
{
    expr->tensor = s->to->tensors[expr->tensor->id];
    expr->type = expr->tensor->compute;
    for (int i = 0; i < expr->argument_count; i++)
        kg_lang_check_integer(&s->job, expr->arguments[i]);
    if (expr->pad) {
        expr->pad = copy_expr(s, expr->pad);
        kg_lang_check_pad(&s->job, expr, (struct kg_expr *)expr->pad);
    }
}

static const struct kg_expr *copy_expr(struct instantiation *s, const struct kg_expr *from)
{
    struct kg_expr *expr = KG_LANG_NEW(&s->job, struct kg_expr);
    *expr = *from;
    expr->span.origin = copy_origin(s, from->span.origin);
    if (from->kind == KG_EXPR_REDUCE) {
        expr->indices = KG_LANG_NEW_ARRAY(&s->job, from->index_count, const struct kg_index *);
        for (int i = 0; i < from->index_count; i++)
            expr->indices[i] = copy_index(s, from->indices[i]);
    }
    if (from->argument_count > 0)
        expr->arguments = KG_LANG_NEW_ARRAY(&s->job, from->argument_count, const struct kg_expr *);
    for (int i = 0; i < from->argument_count; i++)
        expr->arguments[i] = copy_expr(s, from->arguments[i]);
    switch (expr->kind) {
    case KG_EXPR_NUMBER:
        if (expr->type != KG_TYPE_BOOL)
            expr->type = expr->is_integer ? KG_TYPE_I64 : KG_TYPE_F32;
        break;
    case KG_EXPR_SIZE:
        copy_size(s, expr);
        break;
    case KG_EXPR_INDEX:
        expr->index = s->indices[expr->index->id];
        expr->type = KG_TYPE_I64;
        break;
    case KG_EXPR_READ:
        copy_read(s, expr);
        break;
    case KG_EXPR_CAST:
        expr->cast = bind_type(s, expr->cast);
        kg_lang_type_expr(&s->job, expr);
        break;
    case KG_EXPR_CALL:
    case KG_EXPR_REDUCE:
        kg_lang_type_expr(&s->job, expr);
        break;
    }
    return expr;
}

static void copy_tensor(struct instantiation *s, const struct kg_tensor *from)
{
    struct kg_tensor *tensor = KG_LANG_NEW(&s->job, struct kg_tensor);
    *tensor = *from;
    s->to->tensors[s->to->tensor_count++] = tensor;
    memset(tensor->dims, 0, sizeof tensor->dims);
    tensor->panel_rows = tensor->panel_columns = NULL;
    if (from->role == KG_ROLE_LOCAL)
        return; // completed by its statement
    tensor->type = bind_type(s, from->type);
    tensor->compute = kg_dtypes[tensor->type.dtype].compute;
    for (int d = 0; d < from->rank; d++)
        tensor->dims[d] = copy_dimension(s, from->dims[d]);
    tensor->panel_rows = copy_dimension(s, from->panel_rows);
    tensor->panel_columns = copy_dimension(s, from->panel_columns);
}

static void copy_statement(struct instantiation *s, const struct kg_statement *from)
{
    struct kg_statement *statement = KG_LANG_NEW(&s->job, struct kg_statement);
    struct kg_tensor *tensor = s->to->tensors[from->tensor->id];
    *statement = *from;
    statement->tensor = tensor;
    for (int i = 0; i < from->index_count; i++)
        statement->indices[i] = copy_index(s, from->indices[i]);
    statement->value = copy_expr(s, from->value);
    if (tensor->role == KG_ROLE_LOCAL) {
        tensor->compute = statement->value->type;
        tensor->type.dtype = kg_type_dtype(tensor->compute);
        for (int d = 0; d < tensor->rank; d++)
            tensor->dims[d] = statement->indices[d]->end;
    } else {
        kg_lang_check_store(&s->job, tensor, (struct kg_expr *)statement->value);
    }
    s->to->statements[s->to->statement_count++] = statement;
}

static void copy_shapes(struct instantiation *s, struct kg_shapes *shapes)
{
    for (int i = 0; i < shapes->size_count; i++)
        shapes->sizes[i] = s->to->sizes[shapes->sizes[i]->id];
    size_t count = (size_t)shapes->row_count * (size_t)shapes->size_count;
    int64_t *rows = KG_LANG_NEW_ARRAY(&s->job, count, int64_t);
    if (count > 0)
        memcpy(rows, shapes->rows, count * sizeof *rows);
    shapes->rows = rows;
}

static const char *copy_text(struct instantiation *s, const char *text)
{
    return text ? kg_lang_copy(&s->job, text, strlen(text)) : NULL;
}

static const struct kg_piece *copy_pieces(struct instantiation *s, const struct kg_op *from)
{
    struct kg_piece *pieces = KG_LANG_NEW_ARRAY(&s->job, from->piece_count, struct kg_piece);
    memcpy(pieces, from->pieces, (size_t)from->piece_count * sizeof *pieces);
    return pieces;
}

static void instantiate(struct kg_lang_job *job, void *user)
{
    struct instantiation *s = user;
    const struct kg_op *from = s->from;
    struct kg_op *to = s->to = KG_LANG_NEW(job, struct kg_op);
    *to = *from;
    to->is_instance = true;
    to->tensor_count = to->statement_count = 0;
    bind_typevars(s);
    bind_sizes(s);
    for (int i = 0; i < from->tensor_count; i++)
        copy_tensor(s, from->tensors[i]);
    for (int i = 0; i < from->statement_count; i++)
        copy_statement(s, from->statements[i]);
    kg_lang_set_local_dtypes(to);
    copy_shapes(s, &to->goal.verify);
    copy_shapes(s, &to->goal.tune);
    to->name = copy_text(s, from->name);
    to->description = copy_text(s, from->description);
    to->source = copy_text(s, from->source);
    to->file = copy_text(s, from->file);
    to->warnings = copy_text(s, from->warnings);
    to->pieces = copy_pieces(s, from);
    to->goal.baseline_kind = copy_text(s, from->goal.baseline_kind);
    to->goal.baseline = copy_text(s, from->goal.baseline);
}

// " (with T = i32)" when dtypes other than the defaults were asked for.
static void tell_bindings(struct instantiation *s)
{
    struct kg_text text = {0};
    for (int i = 0; i < s->from->typevar_count; i++) {
        const struct kg_typevar *variable = s->from->typevars[i];
        enum kg_dtype dtype = s->bindings->dtypes[i];
        if (dtype < KG_DTYPE_COUNT && dtype != variable->allowed[0])
            kg_text_format(&text, "%s%s = %s", text.length ? ", " : " (with ", variable->name,
                           kg_dtypes[dtype].name);
    }
    if (text.length > 0)
        kg_text_add(&text, ")");
    const char *copy = kg_arena_copy(s->job.arena, kg_text_string(&text), text.length);
    s->job.remark = copy ? copy : "";
    kg_text_free(&text);
}

enum kg_status kg_lang_instantiate(struct kg_arena *arena, const struct kg_op *op,
                                   const struct kg_bindings *bindings, struct kg_op **instance,
                                   struct kg_error *error)
{
    struct instantiation s = {.from = op, .bindings = bindings};
    s.job.arena = arena;
    s.job.error = error;
    s.job.source = kg_lang_source_of(op);
    tell_bindings(&s);
    *instance = NULL;
    if (kg_lang_run(&s.job, instantiate, &s) == KG_OK)
        *instance = s.to;
    return s.job.status;
}
