// Signatures: which name of the new op stands for which of the old one, and what callers notice.

#include "lang/difference_job.h"

#include "lang/check.h"
#include "lang/panels.h"

#include <stdio.h>
#include <string.h>

static struct kg_tensor *find_tensor(const struct kg_op *op, const struct kg_tensor *like)
{
    struct kg_tensor *found = kg_lang_find_tensor(op, like->name);
    return found && found->role == like->role ? found : NULL;
}

static int first_of(const struct kg_op *op, enum kg_role role)
{
    return role == KG_ROLE_INPUT ? 0 : op->input_count;
}

static int count_of(const struct kg_op *op, enum kg_role role)
{
    return role == KG_ROLE_INPUT ? op->input_count : op->output_count;
}

// By name; with as many tensors as before, one whose name is gone is the one now in its place.
static void match_tensors(struct kg_comparison *comparison, enum kg_role role)
{
    const struct kg_op *before = comparison->before, *after = comparison->after;
    int first = first_of(before, role), count = count_of(before, role);
    for (int i = 0; i < count; i++) {
        const struct kg_tensor *old = before->tensors[first + i];
        const struct kg_tensor *new = find_tensor(after, old);
        if (!new &&count == count_of(after, role)) {
            new = after->tensors[first_of(after, role) + i];
            new = find_tensor(before, new) ? NULL : new;
        }
        comparison->tensors[old->id] = new;
    }
}

static bool was_matched(const struct kg_comparison *comparison, const struct kg_tensor *new)
{
    for (int i = 0; i < comparison->before->input_count + comparison->before->output_count; i++)
        if (comparison->tensors[i] == new)
            return true;
    return false;
}

// A size whose name is gone is the one that now stands alone in its dimension.
static void match_sizes(struct kg_comparison *comparison, const struct kg_tensor *old,
                        const struct kg_tensor *new)
{
    int rank = kg_lang_declared_rank(old);
    for (int d = 0; d < rank && rank == kg_lang_declared_rank(new); d++) {
        const struct kg_expr *one = kg_lang_declared_dim(old, d);
        const struct kg_expr *other = kg_lang_declared_dim(new, d);
        if (one->kind == KG_EXPR_SIZE && other->kind == KG_EXPR_SIZE &&
            one->size->is_param == other->size->is_param && !comparison->sizes[one->size->id] &&
            !kg_lang_find_size(comparison->before, other->size->name))
            comparison->sizes[one->size->id] = other->size;
    }
}

static void match_typevars(struct kg_comparison *comparison, const struct kg_tensor *old,
                           const struct kg_tensor *new)
{
    const struct kg_typevar *one = old->type.variable, *other = new->type.variable;
    if (one && other && !comparison->typevars[one->id] &&
        !kg_lang_find_typevar(comparison->before, other->name))
        comparison->typevars[one->id] = other;
}

static const struct kg_size *find_size(const struct kg_op *op, const struct kg_size *like)
{
    const struct kg_size *found = kg_lang_find_size(op, like->name);
    return found && found->is_param == like->is_param ? found : NULL;
}

// The next param from `*place` on that the other op does not have; NULL: none.
static const struct kg_size *next_lost(const struct kg_op *op, const struct kg_op *other,
                                       int *place)
{
    while (*place < op->size_count) {
        const struct kg_size *size = op->sizes[(*place)++];
        if (size->is_param && !find_size(other, size))
            return size;
    }
    return NULL;
}

// As many params are gone as are new: they have other names, in the same order.
static void match_params(struct kg_comparison *comparison)
{
    const struct kg_op *before = comparison->before, *after = comparison->after;
    int gone = 0, fresh = 0, place = 0;
    while (next_lost(before, after, &place))
        gone++;
    for (place = 0; next_lost(after, before, &place);)
        fresh++;
    const struct kg_size *old;
    int other = 0;
    for (place = 0; gone == fresh && (old = next_lost(before, after, &place));)
        comparison->sizes[old->id] = next_lost(after, before, &other);
}

void kg_difference_match_names(struct kg_comparison *comparison)
{
    const struct kg_op *before = comparison->before, *after = comparison->after;
    match_tensors(comparison, KG_ROLE_INPUT);
    match_tensors(comparison, KG_ROLE_OUTPUT);
    for (int i = 0; i < before->size_count; i++)
        comparison->sizes[i] = find_size(after, before->sizes[i]);
    match_params(comparison);
    for (int i = 0; i < before->typevar_count; i++)
        comparison->typevars[i] = kg_lang_find_typevar(after, before->typevars[i]->name);
    for (int i = 0; i < before->input_count + before->output_count; i++)
        if (comparison->tensors[i]) {
            match_sizes(comparison, before->tensors[i], comparison->tensors[i]);
            match_typevars(comparison, before->tensors[i], comparison->tensors[i]);
        }
}

bool kg_difference_same_type(const struct kg_comparison *comparison,
                             const struct kg_type_name *before, const struct kg_type_name *after)
{
    if (before->variable)
        return after->variable && comparison->typevars[before->variable->id] == after->variable;
    return !after->variable && before->dtype == after->dtype;
}

// ---- Tensors

// "x: T[P, D]"
static struct kg_difference_side side_of_tensor(struct kg_comparison *comparison,
                                                const struct kg_tensor *tensor)
{
    struct kg_text text = {0};
    kg_lang_print_tensor(&text, tensor);
    return (struct kg_difference_side){tensor->span, kg_difference_keep(comparison, &text)};
}

static void compare_tensor(struct kg_comparison *comparison, const char *role,
                           const struct kg_tensor *old, const struct kg_tensor *new)
{
    bool name = strcmp(old->name, new->name) != 0;
    bool type = !kg_difference_same_type(comparison, &old->type, &new->type);
    bool packing = !old->panel_rows != !new->panel_rows;
    int rank = kg_lang_declared_rank(old);
    bool shape = rank != kg_lang_declared_rank(new);
    for (int d = 0; d < rank && !shape; d++)
        shape = !kg_difference_same_size(comparison, kg_lang_declared_dim(old, d),
                                         kg_lang_declared_dim(new, d));
    if (!name && !type && !shape && !packing)
        return;
    const char *const words[] = {"name", "dtype", "shape", "packing"};
    const bool differ[] = {name, type, shape, packing};
    char what[64] = "";
    size_t length = 0;
    for (int i = 0; i < 4; i++)
        if (differ[i])
            length += (size_t)snprintf(what + length, sizeof what - length, "%s%s",
                                       length ? " and " : "", words[i]);
    kg_difference_add(comparison, KG_DIFFERENCE_INTERFACE, side_of_tensor(comparison, old),
                      side_of_tensor(comparison, new), "%s of %s %s", what, role, old->name);
}

// "x, bias"
static struct kg_difference_side side_of_list(struct kg_comparison *comparison,
                                              const struct kg_op *op, enum kg_role role)
{
    struct kg_text text = {0};
    int first = first_of(op, role);
    for (int i = 0; i < count_of(op, role); i++)
        kg_text_format(&text, "%s%s", i ? ", " : "", op->tensors[first + i]->name);
    struct kg_span span = count_of(op, role) ? op->tensors[first]->span : op->span;
    return (struct kg_difference_side){span, kg_difference_keep(comparison, &text)};
}

static void compare_tensors(struct kg_comparison *comparison, enum kg_role role, const char *word)
{
    const struct kg_op *before = comparison->before, *after = comparison->after;
    const struct kg_difference_side nothing = {0};
    int first = first_of(before, role), begin = first_of(after, role), last = -1;
    bool in_order = true;
    for (int i = first; i < first + count_of(before, role); i++) {
        const struct kg_tensor *old = before->tensors[i], *new = comparison->tensors[i];
        if (!new) {
            kg_difference_add(comparison, KG_DIFFERENCE_INTERFACE, side_of_tensor(comparison, old),
                              nothing, "%s %s is gone", word, old->name);
            continue;
        }
        compare_tensor(comparison, word, old, new);
        in_order &= new->id > last;
        last = new->id;
    }
    for (int i = begin; i < begin + count_of(after, role); i++)
        if (!was_matched(comparison, after->tensors[i]))
            kg_difference_add(comparison, KG_DIFFERENCE_INTERFACE, nothing,
                              side_of_tensor(comparison, after->tensors[i]), "%s %s is new", word,
                              after->tensors[i]->name);
    if (!in_order)
        kg_difference_add(comparison, KG_DIFFERENCE_INTERFACE,
                          side_of_list(comparison, before, role),
                          side_of_list(comparison, after, role), "order of the %ss", word);
}

// ---- dtypes, sizes and params

// "T in f16 bf16"
static struct kg_difference_side side_of_typevar(struct kg_comparison *comparison,
                                                 const struct kg_typevar *variable)
{
    struct kg_text text = {0};
    kg_text_format(&text, "%s in", variable->name);
    for (int i = 0; i < variable->count; i++)
        kg_text_format(&text, " %s", kg_dtypes[variable->allowed[i]].name);
    return (struct kg_difference_side){variable->span, kg_difference_keep(comparison, &text)};
}

static void compare_typevars(struct kg_comparison *comparison)
{
    const struct kg_op *before = comparison->before, *after = comparison->after;
    const struct kg_difference_side nothing = {0};
    unsigned seen = 0; // of the new op, a bit each
    for (int i = 0; i < before->typevar_count; i++) {
        const struct kg_typevar *old = before->typevars[i], *new = comparison->typevars[i];
        struct kg_difference_side side = side_of_typevar(comparison, old);
        seen |= new ? 1u << new->id : 0;
        if (!new)
            kg_difference_add(comparison, KG_DIFFERENCE_INTERFACE, side, nothing,
                              "dtype variable %s is gone", old->name);
        else if (strcmp(old->name, new->name) != 0 || old->count != new->count ||
                 memcmp(old->allowed, new->allowed, (size_t)old->count * sizeof *old->allowed) != 0)
            kg_difference_add(comparison, KG_DIFFERENCE_INTERFACE, side,
                              side_of_typevar(comparison, new), "dtype variable %s", old->name);
    }
    for (int i = 0; i < after->typevar_count; i++)
        if (!(seen & 1u << i))
            kg_difference_add(comparison, KG_DIFFERENCE_INTERFACE, nothing,
                              side_of_typevar(comparison, after->typevars[i]),
                              "dtype variable %s is new", after->typevars[i]->name);
}

// "G = 128"; of a size its name
static struct kg_difference_side side_of_size(struct kg_comparison *comparison,
                                              const struct kg_size *size)
{
    struct kg_text text = {0};
    const struct kg_expr number = {.kind = KG_EXPR_NUMBER,
                                   .is_integer = !size->is_real,
                                   .integer = size->value,
                                   .number = size->real};
    kg_text_add(&text, size->name);
    if (size->is_param) {
        kg_text_add(&text, " = ");
        kg_lang_print_expr(&text, &number);
    }
    return (struct kg_difference_side){size->span, kg_difference_keep(comparison, &text)};
}

// A size that is gone or new shows in the shapes; a param does not.
static void compare_size(struct kg_comparison *comparison, const struct kg_size *old,
                         const struct kg_size *new)
{
    const struct kg_difference_side nothing = {0};
    struct kg_difference_side side = side_of_size(comparison, old);
    const char *word = old->is_param ? "param" : "size";
    if (!new && old->is_param)
        kg_difference_add(comparison, KG_DIFFERENCE_INTERFACE, side, nothing, "param %s is gone",
                          old->name);
    if (!new)
        return;
    struct kg_difference_side other = side_of_size(comparison, new);
    if (strcmp(old->name, new->name) != 0)
        kg_difference_add(comparison, KG_DIFFERENCE_INTERFACE, side, other, "name of %s %s", word,
                          old->name);
    if (old->is_param && strcmp(side.text + strlen(old->name), other.text + strlen(new->name)) != 0)
        kg_difference_add(comparison, KG_DIFFERENCE_PARAMETER, side, other, "default of %s",
                          old->name);
}

static void compare_sizes(struct kg_comparison *comparison)
{
    const struct kg_op *before = comparison->before, *after = comparison->after;
    const struct kg_difference_side nothing = {0};
    bool seen[KG_MAX_SIZES] = {0};
    for (int i = 0; i < before->size_count; i++) {
        const struct kg_size *new = comparison->sizes[i];
        compare_size(comparison, before->sizes[i], new);
        if (new)
            seen[new->id] = true;
    }
    for (int i = 0; i < after->size_count; i++)
        if (!seen[i] && after->sizes[i]->is_param)
            kg_difference_add(comparison, KG_DIFFERENCE_INTERFACE, nothing,
                              side_of_size(comparison, after->sizes[i]), "param %s is new",
                              after->sizes[i]->name);
}

void kg_difference_of_signatures(struct kg_comparison *comparison)
{
    compare_tensors(comparison, KG_ROLE_INPUT, "input");
    compare_tensors(comparison, KG_ROLE_OUTPUT, "output");
    compare_typevars(comparison);
    compare_sizes(comparison);
}
