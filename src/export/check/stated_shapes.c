// What a text states of its tensors, and the statements that this makes.

#include "export/check/stated_shapes.h"

#include "base/text.h"
#include "export/check/stated_sizes.h"
#include "export/python_names.h"

#include <stdlib.h>
#include <string.h>

#define FREE_ORDER 1000    // of sizes that are no input's dimension
#define OUTPUT_ORDER 10000 // an output may have any name, and names no size

void kg_stated_open(struct kg_stated *stated, struct kg_bundle_facts *facts, int role,
                    const struct kg_bundle_source *source, bool is_code)
{
    *stated = (struct kg_stated){
        .facts = facts, .source = source, .role = role, .is_code = is_code, .tensor_count = 0};
}

struct kg_stated_tensor *kg_stated_find(struct kg_stated *stated, const char *name)
{
    for (int i = 0; i < stated->tensor_count; i++)
        if (strcmp(stated->tensors[i].name, name) == 0)
            return &stated->tensors[i];
    return NULL;
}

struct kg_stated_tensor *kg_stated_add(struct kg_stated *stated, const char *name, bool is_output)
{
    int id = stated->tensor_count;
    if (!name || id == 2 * KG_MAX_TENSORS)
        return NULL;
    struct kg_stated_tensor *tensor = &stated->tensors[stated->tensor_count++];
    *tensor = (struct kg_stated_tensor){.name = name, .is_output = is_output, .rank = -1};
    for (int d = 0; d < KG_MAX_RANK; d++)
        tensor->extents[d].variable = (struct kg_size_variable){
            .name = kg_arena_format(stated->facts->arena, "%s.%d", name, d),
            .order = id * KG_MAX_RANK + d + (is_output ? OUTPUT_ORDER : 0),
        };
    return tensor;
}

void kg_stated_pack(struct kg_stated_tensor *tensor, struct kg_python_place place)
{
    tensor->packed_place = place;
    if (!tensor->is_packed)
        for (int d = 0; d < KG_MAX_RANK; d++)
            tensor->extents[d].variable.order += OUTPUT_ORDER;
    tensor->is_packed = true;
}

// ---- Names

void kg_stated_bind(struct kg_stated *stated, const char *name, const struct kg_size_tree *tree,
                    const char *dtype)
{
    const struct kg_stated_name *known = name ? kg_stated_name(stated, name) : NULL;
    int at = known ? (int)(known - stated->names) : stated->name_count;
    if (!name || at == KG_STATED_NAMES)
        return;
    stated->name_count += !known;
    stated->names[at] = (struct kg_stated_name){name, tree, dtype};
}

const struct kg_stated_name *kg_stated_name(const struct kg_stated *stated, const char *name)
{
    for (int i = 0; i < stated->name_count; i++)
        if (strcmp(stated->names[i].name, name) == 0)
            return &stated->names[i];
    return NULL;
}

static const struct kg_size_tree *of_variable(struct kg_stated *stated,
                                              struct kg_size_variable *variable)
{
    struct kg_size_tree *tree = KG_NEW(stated->facts->arena, struct kg_size_tree);
    if (tree)
        *tree = (struct kg_size_tree){.kind = KG_SIZE_VARIABLE, .variable = variable};
    return tree;
}

const struct kg_size_tree *kg_stated_integer(struct kg_stated *stated, int64_t value)
{
    struct kg_size_tree *tree = KG_NEW(stated->facts->arena, struct kg_size_tree);
    if (tree)
        *tree = (struct kg_size_tree){.kind = KG_SIZE_NUMBER, .number = value};
    return tree;
}

static const struct kg_size_tree *add_variable(struct kg_stated *stated, const char *name)
{
    struct kg_size_variable *variable = KG_NEW(stated->facts->arena, struct kg_size_variable);
    if (!variable)
        return NULL;
    *variable = (struct kg_size_variable){.name = name, .order = FREE_ORDER + stated->name_count};
    const struct kg_size_tree *tree = of_variable(stated, variable);
    kg_stated_bind(stated, name, tree, NULL);
    return tree;
}

const struct kg_size_tree *kg_stated_variable(struct kg_stated *stated, const char *name)
{
    const struct kg_stated_name *known = kg_stated_name(stated, name);
    if (known)
        return known->tree;
    return stated->takes_new_names ? add_variable(stated, name) : NULL;
}

const struct kg_size_tree *kg_stated_dimension(struct kg_stated *stated,
                                               struct kg_stated_tensor *tensor, int dimension)
{
    return dimension < 0 || dimension >= KG_MAX_RANK
               ? NULL
               : of_variable(stated, &tensor->extents[dimension].variable);
}

// ---- Dtypes

const char *kg_stated_dtype_named(const char *name, bool *is_packed)
{
    for (int d = 0; d < KG_DTYPE_COUNT; d++) {
        if (strcmp(kg_dtypes[d].name, name) != 0)
            continue;
        *is_packed |= kg_dtype_is_packed((enum kg_dtype)d);
        return kg_torch_dtype((enum kg_dtype)d) + strlen("torch.");
    }
    return NULL;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *kg_stated_dtype_set(struct kg_arena *arena, const char **names, int count)
{
    struct kg_text text = {0};
    qsort(names, (size_t)count, sizeof *names, compare);
    for (int i = 0; i < count; i++)
        if (i == 0 || strcmp(names[i], names[i - 1]) != 0)
            kg_text_format(&text, "%s%s", i ? "|" : "", names[i]);
    char *copy = text.failed ? NULL : kg_arena_copy(arena, kg_text_string(&text), text.length);
    arena->failed |= text.failed;
    kg_text_free(&text);
    return copy;
}

// "x.dtype", "torch.float16", "float16" (imported), or a name that is bound to one of them.
static const char *single_dtype(struct kg_stated *stated, const struct kg_python_tokens *tokens,
                                struct kg_python_range range)
{
    struct kg_arena *arena = stated->facts->arena;
    int count = range.end - range.first;
    if (count < 1 || tokens->tokens[range.end - 1].kind != KG_PYTHON_NAME)
        return NULL;
    char *last = kg_python_word(arena, tokens, range.end - 1);
    char *first = kg_python_word(arena, tokens, range.first);
    if (!first || !last)
        return NULL;
    const struct kg_stated_name *known = count == 1 ? kg_stated_name(stated, first) : NULL;
    if (known)
        return known->dtype;
    if (count == 3 && strcmp(last, "dtype") == 0 && kg_stated_find(stated, first))
        return kg_arena_format(arena, "like %s", first);
    for (int d = 0; d < KG_DTYPE_COUNT; d++)
        if (strcmp(kg_torch_dtype((enum kg_dtype)d) + strlen("torch."), last) == 0)
            return last;
    return NULL;
}

const char *kg_stated_dtype(struct kg_stated *stated, const struct kg_python_tokens *tokens,
                            struct kg_python_range range)
{
    struct kg_python_range parts[KG_DTYPE_COUNT], inside = kg_python_bare(tokens, range);
    const char *names[KG_DTYPE_COUNT];
    bool is_list = kg_python_is(tokens, range.first, "[") || kg_python_is(tokens, range.first, "{");
    if (is_list && kg_python_close(tokens, range.first, range.end) == range.end)
        inside = (struct kg_python_range){range.first + 1, range.end - 1};
    int count = kg_python_split(tokens, inside, KG_DTYPE_COUNT, parts);
    for (int i = 0; i < count; i++) {
        names[i] = single_dtype(stated, tokens, parts[i]);
        if (!names[i])
            return NULL;
    }
    return count < 1 ? NULL : kg_stated_dtype_set(stated->facts->arena, names, count);
}

// ---- Shapes

void kg_stated_extent(struct kg_stated *stated, struct kg_stated_tensor *tensor, int dimension,
                      const struct kg_size_tree *tree, struct kg_python_place place)
{
    (void)stated;
    if (dimension < 0 || dimension >= KG_MAX_RANK)
        return;
    struct kg_stated_extent *extent = &tensor->extents[dimension];
    struct kg_size_variable *root = kg_size_root(&extent->variable);
    extent->place = place;
    if (!tree)
        tensor->are_extents_opaque = true;
    else if (tree->kind == KG_SIZE_VARIABLE && !kg_size_root(tree->variable)->value)
        kg_size_join(&extent->variable, tree->variable);
    else if (kg_size_root(&extent->variable) == root && !root->value)
        root->value = tree;
    extent->tree = tree;
}

void kg_stated_shape(struct kg_stated *stated, struct kg_stated_tensor *tensor,
                     const struct kg_python_tokens *tokens, struct kg_python_range tuple,
                     bool sets_rank)
{
    struct kg_python_range parts[KG_MAX_RANK], inside = {tuple.first + 1, tuple.end - 1};
    bool is_tuple =
        tuple.end - tuple.first >= 2 &&
        (kg_python_is(tokens, tuple.first, "(") || kg_python_is(tokens, tuple.first, "[")) &&
        kg_python_close(tokens, tuple.first, tuple.end) == tuple.end;
    int count = is_tuple ? kg_python_split(tokens, inside, KG_MAX_RANK, parts) : -1;
    if (count < 0) {
        tensor->are_extents_opaque = true;
        if (tensor->rank == -1)
            tensor->rank = -2;
        return;
    }
    if (sets_rank && tensor->rank == -1) {
        tensor->rank = count;
        tensor->rank_place = kg_python_place_of(tokens, tuple);
    }
    for (int d = 0; d < count; d++)
        kg_stated_extent(stated, tensor, d, kg_stated_size(stated, tokens, parts[d]),
                         kg_python_place_of(tokens, parts[d]));
}

// ---- Statements

static const char *worth(struct kg_stated *stated, struct kg_stated_tensor *tensor, int dimension)
{
    struct kg_size_tree tree = {.kind = KG_SIZE_VARIABLE,
                                .variable = &tensor->extents[dimension].variable};
    const struct kg_size_tree *said = tensor->extents[dimension].tree;
    long long values[KG_SIZE_TRIALS];
    for (int t = 0; t < KG_SIZE_TRIALS; t++) {
        int steps = KG_SIZE_STEPS;
        values[t] = kg_size_evaluate(said ? said : &tree, t, &steps);
        if (steps < 0)
            return NULL;
    }
    return kg_arena_format(stated->facts->arena, "%llx %llx %llx %llx", values[0], values[1],
                           values[2], values[3]);
}

static void say(struct kg_stated *stated, enum kg_bundle_fact fact, const char *subject,
                const char *value, const char *shown, struct kg_python_place place)
{
    kg_bundle_state(stated->facts, (struct kg_bundle_statement){
                                       .fact = fact,
                                       .subject = subject,
                                       .value = value,
                                       .shown = shown,
                                       .role = stated->role,
                                       .is_code = stated->is_code,
                                       .place = place,
                                   });
}

static const char *shown(struct kg_stated *stated, struct kg_python_place place)
{
    return kg_bundle_shown(stated->facts, stated->source, place);
}

// Where nothing is said of a dimension, any extent will do.
static void publish_extents(struct kg_stated *stated, struct kg_stated_tensor *tensor)
{
    struct kg_arena *arena = stated->facts->arena;
    for (int d = 0; d < tensor->rank && d < KG_MAX_RANK; d++) {
        const struct kg_stated_extent *extent = &tensor->extents[d];
        bool is_said = extent->place.length > 0;
        say(stated, KG_FACT_EXTENT, kg_arena_format(arena, "%s, dimension %d", tensor->name, d),
            tensor->are_extents_opaque ? NULL : worth(stated, tensor, d),
            is_said ? shown(stated, extent->place) : "anything",
            is_said ? extent->place : tensor->rank_place);
    }
}

static void publish_input(struct kg_stated *stated, struct kg_stated_tensor *tensor)
{
    struct kg_arena *arena = stated->facts->arena;
    if (tensor->dtype || tensor->is_dtype_opaque)
        say(stated, KG_FACT_DTYPE, tensor->name, tensor->is_dtype_opaque ? NULL : tensor->dtype,
            shown(stated, tensor->dtype_place), tensor->dtype_place);
    if (tensor->is_packed)
        say(stated, KG_FACT_PACKED, tensor->name, "packed", "two elements a byte",
            tensor->packed_place);
    if (tensor->rank != -1)
        say(stated, KG_FACT_RANK, tensor->name,
            tensor->rank < 0 ? NULL : kg_arena_format(arena, "%d", tensor->rank),
            kg_arena_format(arena, "%d", tensor->rank), tensor->rank_place);
    publish_extents(stated, tensor);
}

static void publish_output(struct kg_stated *stated, struct kg_stated_tensor *tensor, int number)
{
    struct kg_arena *arena = stated->facts->arena;
    const char *subject = kg_arena_format(arena, "%d", number);
    if (tensor->dtype || tensor->is_dtype_opaque)
        say(stated, KG_FACT_OUTPUT_DTYPE, subject, tensor->is_dtype_opaque ? NULL : tensor->dtype,
            shown(stated, tensor->dtype_place), tensor->dtype_place);
    if (tensor->rank == -1)
        return;
    struct kg_text value = {0};
    bool is_known = tensor->rank >= 0 && !tensor->are_extents_opaque;
    for (int d = 0; d < tensor->rank && is_known; d++) {
        const char *extent = worth(stated, tensor, d);
        is_known = extent;
        kg_text_format(&value, "%s, ", extent ? extent : "");
    }
    const char *copy = kg_arena_copy(arena, kg_text_string(&value), value.length);
    arena->failed |= value.failed;
    kg_text_free(&value);
    say(stated, KG_FACT_OUTPUT_SHAPE, subject, is_known ? copy : NULL,
        shown(stated, tensor->rank_place), tensor->rank_place);
}

void kg_stated_gives(struct kg_stated *stated, const struct kg_stated_tensor *tensor)
{
    if (stated->output_count < KG_MAX_TENSORS)
        stated->outputs[stated->output_count++] = (int)(tensor - stated->tensors);
}

void kg_stated_publish(struct kg_stated *stated)
{
    for (int i = 0; i < stated->tensor_count; i++)
        if (!stated->tensors[i].is_output)
            publish_input(stated, &stated->tensors[i]);
    for (int i = 0; i < stated->output_count; i++)
        publish_output(stated, &stated->tensors[stated->outputs[i]], i + 1);
}
