// Functions of a file: their rules, and writing calls out. A body takes copies of the arguments, as
// an expression is a tree; so what a call makes is bounded, for an op and for a file, and nested
// calls that double their argument each time end there.

#include "lang/functions.h"

#include "lang/check.h"
#include "lang/words.h"

#include <string.h>

#define MOST_EXPANDED (1 << 18) // terms made by the calls of one file
#define DEEPEST_CALLS                                                                              \
    (2 * KG_MAX_DEPTH) // of copies in copies; what is made is no deeper than
                       // KG_MAX_DEPTH

// ---- Rules

static struct kg_syntax_function *find_function(const struct kg_syntax_file *file, const char *name)
{
    for (struct kg_syntax_function *f = file->functions; f; f = f->next)
        if (strcmp(f->name->text, name) == 0)
            return f;
    return NULL;
}

static int find_parameter(const struct kg_syntax_function *function, const char *name)
{
    for (int i = 0; i < function->parameter_count; i++)
        if (strcmp(function->parameters[i]->text, name) == 0)
            return i;
    return -1;
}

// What the language itself calls by this name.
static bool is_taken(const char *name)
{
    size_t length = strlen(name);
    return kg_function_find(name, length) != KG_FUNCTION_COUNT ||
           kg_reduce_find(name, length) != KG_REDUCE_COUNT || strcmp(name, "cast") == 0 ||
           strcmp(name, "pad") == 0;
}

static void check_head(struct kg_lang_job *job, const struct kg_syntax_file *file,
                       const struct kg_syntax_function *function)
{
    const struct kg_token *name = function->name;
    kg_lang_check_name(job, name, "a function");
    if (is_taken(name->text))
        kg_lang_fail(job, name->span, "help: choose another name",
                     "\"%s\" is a function of the language", name->text);
    const struct kg_syntax_function *first = find_function(file, name->text);
    if (first != function)
        kg_lang_fail(job, name->span, "help: choose another name",
                     "a second function \"%s\"; the first is on line %d", name->text,
                     first->name->span.line);
    for (int i = 0; i < function->parameter_count; i++) {
        const struct kg_token *parameter = function->parameters[i];
        kg_lang_check_name(job, parameter, "a parameter");
        if (find_parameter(function, parameter->text) != i)
            kg_lang_fail(job, parameter->span, NULL, "\"%s\" twice", parameter->text);
    }
}

// "f(x, y)"
static const char *show_head(struct kg_lang_job *job, const struct kg_syntax_function *function)
{
    const char *text = kg_lang_format(job, "%s(", function->name->text);
    for (int i = 0; i < function->parameter_count; i++)
        text = kg_lang_format(job, "%s%s%s", text, i ? ", " : "", function->parameters[i]->text);
    return kg_lang_format(job, "%s)", text);
}

// A call of a file's function, seen from an op or from the body of `caller`.
static void check_call(struct kg_lang_job *job, const struct kg_syntax_function *function,
                       const struct kg_syntax_function *caller, const struct kg_node *call)
{
    const char *name = function->name->text;
    if (function == caller)
        kg_lang_fail(job, call->span,
                     "help: there is no recursion; a running result is a scan in an op, as in "
                     "sum(j <= i) x[j]",
                     "\"%s\" calls itself", name);
    if (!function->is_checked || function->keyword->offset > call->token->offset)
        kg_lang_fail(job, call->token->span, "help: move its definition up",
                     "\"%s\" is called before it is defined, on line %d", name,
                     function->name->span.line);
    if (call->argument_count != function->parameter_count)
        kg_lang_fail(job, call->span,
                     kg_lang_format(job, "help: it is fn %s, on line %d", show_head(job, function),
                                    function->name->span.line),
                     "%s() takes %d argument%s, not %d", name, function->parameter_count,
                     function->parameter_count == 1 ? "" : "s", call->argument_count);
}

static void check_body(struct kg_lang_job *job, const struct kg_syntax_file *file,
                       const struct kg_syntax_function *function, const struct kg_node *node);

_Noreturn static void fail_unknown(struct kg_lang_job *job, const struct kg_syntax_file *file,
                                   const struct kg_node *call)
{
    const char *names[KG_FUNCTION_COUNT + KG_MAX_FUNCTIONS];
    size_t count = 0;
    for (int i = 0; i < KG_FUNCTION_COUNT; i++)
        if (!kg_functions[i].is_operator)
            names[count++] = kg_functions[i].name;
    for (const struct kg_syntax_function *f = file->functions; f; f = f->next)
        names[count++] = f->name->text;
    struct kg_foreign_names at_hand = {.last = NULL};
    const struct kg_node *argument = call->arguments;
    for (int i = 0; i < 3 && argument; i++, argument = argument->next)
        at_hand.arguments[i] = kg_lang_slice(job, argument->span);
    const char *name = call->token->text;
    const char *foreign = kg_lang_foreign(job, KG_FOREIGN_FUNCTION, name, &at_hand);
    kg_lang_fail(job, call->token->span,
                 foreign ? foreign : kg_lang_suggest(job, name, names, count, NULL),
                 "unknown function \"%s\"", name);
}

// The type of a cast: type variables belong to ops.
static void check_dtype(struct kg_lang_job *job, const struct kg_node *type)
{
    const char *name = type->token->text;
    if (type->kind != KG_NODE_NAME || kg_dtype_find(name, strlen(name)) != KG_DTYPE_COUNT)
        return; // what is no name is refused where the call is written out
    const char *here = kg_lang_foreign_type(job, name, "help: it is called ", " here");
    kg_lang_fail(job, type->span, here ? here : "expected a dtype such as f32",
                 "unknown dtype \"%s\"", name);
}

static void check_any_call(struct kg_lang_job *job, const struct kg_syntax_file *file,
                           const struct kg_syntax_function *caller, const struct kg_node *call)
{
    const char *name = call->token->text;
    const struct kg_node *argument = call->arguments;
    const struct kg_syntax_function *called = find_function(file, name);
    enum kg_function function = kg_function_find(name, strlen(name));
    if (called)
        check_call(job, called, caller, call);
    else if (strcmp(name, "pad") == 0)
        kg_lang_fail(job, call->span, "help: pad where the function is called",
                     "a function cannot read tensors");
    else if (!is_taken(name))
        fail_unknown(job, file, call);
    else if (function != KG_FUNCTION_COUNT)
        kg_lang_check_arity(job, call, function);
    else if (strcmp(name, "cast") == 0 && argument) {
        check_dtype(job, argument);
        argument = argument->next;
    }
    for (; argument; argument = argument->next)
        check_body(job, file, caller, argument);
}

static void check_body_name(struct kg_lang_job *job, const struct kg_syntax_function *function,
                            const struct kg_node *node)
{
    const char *names[KG_MAX_PARAMETERS + 8];
    size_t count = 0;
    for (int i = 0; i < function->parameter_count; i++)
        names[count++] = function->parameters[i]->text;
    for (const struct kg_constant *constant = kg_constants; constant->name; constant++)
        names[count++] = constant->name;
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], node->token->text) == 0)
            return;
    kg_lang_fail(job, node->span,
                 kg_lang_suggest(job, node->token->text, names, count,
                                 "help: a function knows its parameters only; make it one of them"),
                 "unknown name \"%s\"", node->token->text);
}

static void check_body(struct kg_lang_job *job, const struct kg_syntax_file *file,
                       const struct kg_syntax_function *function, const struct kg_node *node)
{
    if (node->kind == KG_NODE_NAME)
        check_body_name(job, function, node);
    if (node->kind == KG_NODE_CALL) {
        check_any_call(job, file, function, node);
        return;
    }
    for (const struct kg_node *n = node->arguments; n; n = n->next)
        check_body(job, file, function, n);
}

void kg_lang_check_functions(struct kg_lang_job *job, const struct kg_syntax_file *file)
{
    for (struct kg_syntax_function *f = file->functions; f; f = f->next) {
        check_head(job, file, f);
        check_body(job, file, f, f->body);
        f->is_checked = true;
    }
}

// ---- Writing calls out

struct expansion {
    struct kg_lang_job *job;
    const struct kg_syntax_file *file;
    const struct kg_syntax_op *op;
    int made;   // terms, for this op
    int *terms; // for the file
    int depth;
};

// The body that is being copied: of which function, and for which call.
struct frame {
    const struct kg_syntax_function *function;
    struct kg_node *arguments[KG_MAX_PARAMETERS]; // written out
    const struct kg_expansion *origin;
};

// `frame` NULL: from the op itself.
static struct kg_node *copy(struct expansion *x, const struct kg_node *from,
                            const struct frame *frame);

static const struct kg_expansion *new_origin(struct expansion *x, struct kg_span place,
                                             const char *note)
{
    struct kg_expansion *origin = KG_LANG_NEW(x->job, struct kg_expansion);
    origin->note = note;
    origin->place = place;
    return origin;
}

static struct kg_span place_of(const struct kg_node *node, const struct frame *frame)
{
    struct kg_span place = node->span;
    if (frame)
        place.origin = frame->origin;
    return place;
}

static void count_term(struct expansion *x, struct kg_span place)
{
    bool is_file = ++*x->terms > MOST_EXPANDED;
    if (++x->made > KG_MAX_NODES || is_file)
        kg_lang_fail(x->job, place,
                     "help: a function copies an argument to wherever it uses it; compute the "
                     "argument in a statement of its own",
                     "%s of more than %d terms, with its functions written out",
                     is_file ? "a file" : "an op", is_file ? MOST_EXPANDED : KG_MAX_NODES);
}

_Noreturn static void fail_depth(struct expansion *x, struct kg_span place)
{
    kg_lang_fail(x->job, place, "help: give a part of it a name of its own",
                 "an expression nested deeper than %d levels, with its functions written out",
                 KG_MAX_DEPTH);
}

// Copies the list of arguments; gives the depth of the deepest.
static int copy_arguments(struct expansion *x, const struct kg_node *from,
                          const struct frame *frame, struct kg_node **link)
{
    int depth = 0;
    for (; from; from = from->next) {
        *link = copy(x, from, frame);
        depth = (*link)->depth > depth ? (*link)->depth : depth;
        link = &(*link)->next;
    }
    return depth;
}

static struct kg_binder *copy_binders(struct expansion *x, const struct kg_binder *from,
                                      const struct frame *frame)
{
    struct kg_binder *first = NULL, **link = &first;
    for (; from; from = from->next) {
        struct kg_binder *binder = KG_LANG_NEW(x->job, struct kg_binder);
        *binder = *from;
        binder->bound = from->bound ? copy(x, from->bound, frame) : NULL;
        *link = binder;
        link = &binder->next;
    }
    return first;
}

static struct kg_node *copy_node(struct expansion *x, const struct kg_node *from,
                                 const struct frame *frame)
{
    struct kg_node *node = KG_LANG_NEW(x->job, struct kg_node);
    *node = *from;
    node->next = node->arguments = NULL;
    if (frame)
        node->span = place_of(from, frame);
    count_term(x, node->span);
    node->binders = copy_binders(x, from->binders, frame);
    int depth = copy_arguments(x, from->arguments, frame, &node->arguments) + 1;
    for (const struct kg_binder *b = node->binders; b; b = b->next)
        if (b->bound && b->bound->depth >= depth)
            depth = b->bound->depth + 1;
    node->depth = depth;
    if (node->depth > KG_MAX_DEPTH)
        fail_depth(x, node->span);
    return node;
}

// An argument in the place of a parameter: what is wrong with it may be so only there.
static struct kg_node *copy_argument(struct expansion *x, const struct kg_node *parameter,
                                     const struct frame *frame, const struct kg_node *argument)
{
    struct kg_node *node = copy(x, argument, NULL);
    const char *note = kg_lang_format(x->job, "it is \"%s\" of %s() here", parameter->token->text,
                                      frame->function->name->text);
    node->span.origin = new_origin(x, place_of(parameter, frame), note);
    return node;
}

static struct kg_node *copy_body(struct expansion *x, struct kg_syntax_function *function,
                                 const struct kg_node *call, const struct frame *caller)
{
    struct frame frame = {.function = function};
    struct kg_node *arguments = NULL;
    count_term(x, place_of(call, caller));
    copy_arguments(x, call->arguments, caller, &arguments);
    for (int i = 0; arguments; i++, arguments = arguments->next)
        frame.arguments[i] = arguments;
    frame.origin = new_origin(x, place_of(call, caller),
                              kg_lang_format(x->job, "%s() is called here", function->name->text));
    function->user = x->op;
    return copy(x, function->body, &frame);
}

static struct kg_node *copy(struct expansion *x, const struct kg_node *from,
                            const struct frame *frame)
{
    if (++x->depth > DEEPEST_CALLS)
        fail_depth(x, place_of(from, frame));
    struct kg_syntax_function *called =
        from->kind == KG_NODE_CALL ? find_function(x->file, from->token->text) : NULL;
    int parameter = frame && from->kind == KG_NODE_NAME
                        ? find_parameter(frame->function, from->token->text)
                        : -1;
    struct kg_node *node;
    if (called) {
        check_call(x->job, called, NULL, from);
        node = copy_body(x, called, from, frame);
    } else if (parameter >= 0) {
        node = copy_argument(x, from, frame, frame->arguments[parameter]);
    } else {
        node = copy_node(x, from, frame);
    }
    x->depth--;
    return node;
}

static bool calls_function(const struct kg_syntax_file *file, const struct kg_node *node)
{
    if (node->kind == KG_NODE_CALL && find_function(file, node->token->text))
        return true;
    for (const struct kg_binder *b = node->binders; b; b = b->next)
        if (b->bound && calls_function(file, b->bound))
            return true;
    for (const struct kg_node *n = node->arguments; n; n = n->next)
        if (calls_function(file, n))
            return true;
    return false;
}

void kg_lang_expand_functions(struct kg_lang_job *job, const struct kg_syntax_file *file,
                              struct kg_syntax_op *op, int *terms)
{
    struct expansion x = {.job = job, .file = file, .op = op, .terms = terms};
    for (struct kg_syntax_statement *s = op->statements; s && file->functions; s = s->next)
        if (calls_function(file, s->value))
            s->value = copy(&x, s->value, NULL);
}
