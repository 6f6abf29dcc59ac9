// Statements in the body of a bundle's function that say something of its tensors.

#include "export/check/function_checks.h"

#include "export/check/bundle_readers.h"

#include <string.h>

static const struct kg_python_tokens *tokens_of(const struct kg_stated *stated)
{
    return &stated->source->lines.tokens;
}

static struct kg_stated_tensor *tensor_at(struct kg_stated *stated, int token)
{
    if (tokens_of(stated)->tokens[token].kind != KG_PYTHON_NAME)
        return NULL;
    char *word = kg_python_word(stated->facts->arena, tokens_of(stated), token);
    return word ? kg_stated_find(stated, word) : NULL;
}

static void set_rank(struct kg_stated *stated, struct kg_stated_tensor *tensor,
                     struct kg_python_range range)
{
    double rank;
    tensor->rank_place = kg_python_place_of(tokens_of(stated), range);
    if (!kg_bundle_number(stated->facts->arena, tokens_of(stated), range, &rank))
        tensor->rank = -2;
    else if (rank >= 0 && rank <= KG_MAX_RANK)
        tensor->rank = (int)rank;
    else
        tensor->rank = rank < 0 ? -1 : -2;
}

static void set_dtype(struct kg_stated *stated, struct kg_stated_tensor *tensor,
                      struct kg_python_range range)
{
    tensor->dtype = kg_stated_dtype(stated, tokens_of(stated), range);
    tensor->is_dtype_opaque = !tensor->dtype;
    tensor->dtype_place = kg_python_place_of(tokens_of(stated), range);
}

static void set_packed(struct kg_stated *stated, struct kg_stated_tensor *tensor,
                       struct kg_python_range tuple)
{
    kg_stated_pack(tensor, kg_python_place_of(tokens_of(stated), tuple));
    kg_stated_shape(stated, tensor, tokens_of(stated), tuple, true);
}

// ---- Calls of the emitted helpers

static bool read_check(struct kg_stated *stated, struct kg_python_range range)
{
    const struct kg_python_tokens *tokens = tokens_of(stated);
    struct kg_python_range callee, inside, parts[8];
    if (!kg_python_call(tokens, range, &callee, &inside))
        return false;
    bool is_shape = kg_python_is(tokens, callee.first, "_check_shape");
    bool is_packed = kg_python_is(tokens, callee.first, "_check_packed");
    if (!is_shape && !is_packed && !kg_python_is(tokens, callee.first, "_check"))
        return false;
    int count = kg_python_split(tokens, inside, 8, parts);
    struct kg_stated_tensor *tensor =
        count >= 3 && parts[1].end == parts[1].first + 1 ? tensor_at(stated, parts[1].first) : NULL;
    if (!tensor)
        return true;
    if (is_packed) {
        set_packed(stated, tensor, parts[2]);
    } else if (is_shape) {
        kg_stated_shape(stated, tensor, tokens, parts[2], false);
    } else {
        set_rank(stated, tensor, parts[2]);
        if (count >= 4)
            set_dtype(stated, tensor, parts[3]);
    }
    return true;
}

// ---- Conditions

// "x.dim()", "x.ndim", "len(x.shape)": the tensor, and what of it.
enum aspect { NOTHING, DTYPE, RANK, SHAPE, EXTENT, ELEMENTS };

static enum aspect aspect_of(struct kg_stated *stated, struct kg_python_range range,
                             struct kg_stated_tensor **tensor, int *dimension)
{
    const struct kg_python_tokens *tokens = tokens_of(stated);
    struct kg_python_range callee, inside;
    bool is_length = kg_python_is(tokens, range.first, "len");
    if ((is_length || kg_python_is(tokens, range.first, "tuple") ||
         kg_python_is(tokens, range.first, "list")) &&
        kg_python_call(tokens, range, &callee, &inside))
        range = inside;
    *tensor = range.end - range.first >= 3 ? tensor_at(stated, range.first) : NULL;
    if (!*tensor || !kg_python_is(tokens, range.first + 1, "."))
        return NOTHING;
    int word = range.first + 2, count = range.end - word;
    double number;
    if (kg_python_is(tokens, word, "dtype"))
        return DTYPE;
    if (kg_python_is(tokens, word, "dim") || kg_python_is(tokens, word, "ndim"))
        return RANK;
    if (kg_python_is(tokens, word, "numel"))
        return ELEMENTS;
    bool is_shape = kg_python_is(tokens, word, "shape");
    if (!is_shape && !kg_python_is(tokens, word, "size"))
        return NOTHING;
    if (count == (is_shape ? 1 : 3))
        return is_length ? RANK : SHAPE;
    struct kg_python_range index = {word + 2, range.end - 1};
    if (count < 4 || kg_python_close(tokens, word + 1, range.end) != range.end ||
        !kg_bundle_number(stated->facts->arena, tokens, index, &number))
        return NOTHING;
    if (number < 0)
        number += (*tensor)->rank >= 0 ? (*tensor)->rank : -KG_MAX_RANK;
    *dimension = number >= 0 && number < KG_MAX_RANK ? (int)number : -1;
    return EXTENT;
}

// What stands in "math.prod(...)".
static bool find_product(const struct kg_python_tokens *tokens, struct kg_python_range range,
                         struct kg_python_range *shape)
{
    for (int i = range.first; i + 1 < range.end; i++)
        if (kg_python_is(tokens, i, "prod") && kg_python_is(tokens, i + 1, "(")) {
            *shape = (struct kg_python_range){i + 2, kg_python_close(tokens, i + 1, range.end) - 1};
            return shape->end > shape->first;
        }
    return false;
}

static void read_comparison(struct kg_stated *stated, struct kg_python_range left,
                            struct kg_python_range right)
{
    const struct kg_python_tokens *tokens = tokens_of(stated);
    struct kg_stated_tensor *tensor;
    struct kg_python_range product;
    int dimension = -1;
    switch (aspect_of(stated, left, &tensor, &dimension)) {
    case DTYPE:
        set_dtype(stated, tensor, right);
        break;
    case RANK:
        set_rank(stated, tensor, right);
        break;
    case SHAPE:
        kg_stated_shape(stated, tensor, tokens, right, true);
        break;
    case EXTENT:
        kg_stated_extent(stated, tensor, dimension, kg_stated_size(stated, tokens, right),
                         kg_python_place_of(tokens, right));
        break;
    case ELEMENTS:
        if (find_product(tokens, right, &product))
            set_packed(stated, tensor, product);
        break;
    default:
        break;
    }
}

// One part of a condition: what must hold if it is an assertion, what must not before a `raise`.
static void read_clause(struct kg_stated *stated, struct kg_python_range clause, bool must_hold)
{
    const struct kg_python_tokens *tokens = tokens_of(stated);
    clause = kg_python_bare(tokens, clause);
    int sign = kg_python_find(tokens, clause, must_hold ? "==" : "!="), width = 1;
    if (sign < 0) {
        sign = kg_python_find(tokens, clause, "in");
        bool is_negated = sign > clause.first && kg_python_is(tokens, sign - 1, "not");
        if (sign < 0 || is_negated == must_hold)
            return;
        width = 1;
        if (is_negated) {
            sign--;
            width = 2;
        }
    }
    read_comparison(stated, (struct kg_python_range){clause.first, sign},
                    (struct kg_python_range){sign + width, clause.end});
}

static void read_condition(struct kg_stated *stated, struct kg_python_range range, bool must_hold)
{
    const struct kg_python_tokens *tokens = tokens_of(stated);
    range = kg_python_bare(tokens, range);
    while (range.first < range.end) {
        int next = kg_python_find(tokens, range, must_hold ? "and" : "or");
        int end = next >= 0 ? next : range.end;
        read_clause(stated, (struct kg_python_range){range.first, end}, must_hold);
        range.first = end + 1;
    }
}

static bool raises(const struct kg_python_lines *lines, int line, int colon)
{
    struct kg_python_range range = lines->lines[line].range;
    if (colon + 1 < range.end)
        return kg_python_is(&lines->tokens, colon + 1, "raise");
    return line + 1 < lines->count &&
           kg_python_is(&lines->tokens, lines->lines[line + 1].range.first, "raise");
}

static bool read_test(struct kg_stated *stated, int line)
{
    const struct kg_python_lines *lines = &stated->source->lines;
    const struct kg_python_tokens *tokens = &lines->tokens;
    struct kg_python_range range = lines->lines[line].range;
    bool is_assertion = kg_python_is(tokens, range.first, "assert");
    if (!is_assertion && !kg_python_is(tokens, range.first, "if") &&
        !kg_python_is(tokens, range.first, "elif"))
        return false;
    int end = kg_python_find(tokens, range, is_assertion ? "," : ":");
    struct kg_python_range condition = {range.first + 1, end >= 0 ? end : range.end};
    if (is_assertion || (end >= 0 && raises(lines, line, end)))
        read_condition(stated, condition, is_assertion);
    return true;
}

// ---- Assignments

// torch.empty((P, D), dtype=T, device=device), x.new_empty((P, D)), torch.empty_like(x), and _empty
// of emitted modules
static bool read_allocation(struct kg_stated *stated, const char *name,
                            struct kg_python_range value)
{
    static const char *const makers[] = {"empty",     "zeros",     "ones",     "full",    "_empty",
                                         "new_empty", "new_zeros", "new_full", "new_ones"};
    const struct kg_python_tokens *tokens = tokens_of(stated);
    struct kg_python_range callee, inside, parts[8];
    if (!kg_python_call(tokens, value, &callee, &inside))
        return false;
    bool is_maker = false;
    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++)
        is_maker |= kg_python_is(tokens, callee.end - 1, makers[i]);
    int count = is_maker ? kg_python_split(tokens, inside, 8, parts) : 0;
    struct kg_stated_tensor *tensor = count > 0 ? kg_stated_find(stated, name) : NULL;
    if (count > 0 && !tensor)
        tensor = kg_stated_add(stated, name, true);
    if (count <= 0 || !tensor || !tensor->is_output)
        return false;
    kg_stated_shape(stated, tensor, tokens, parts[0], true);
    for (int i = 1; i < count; i++)
        if (kg_python_is(tokens, parts[i].first, "dtype") &&
            kg_python_is(tokens, parts[i].first + 1, "="))
            set_dtype(stated, tensor, (struct kg_python_range){parts[i].first + 2, parts[i].end});
    return true;
}

// P, _ = x.shape
static bool read_unpacking(struct kg_stated *stated, struct kg_python_range target,
                           struct kg_python_range value)
{
    const struct kg_python_tokens *tokens = tokens_of(stated);
    struct kg_python_range parts[KG_MAX_RANK];
    struct kg_stated_tensor *tensor;
    int dimension = -1;
    if (aspect_of(stated, value, &tensor, &dimension) != SHAPE)
        return false;
    int count = kg_python_split(tokens, kg_python_bare(tokens, target), KG_MAX_RANK, parts);
    bool is_one = target.end == target.first + 1;
    for (int d = 0; d < count && !is_one; d++) {
        const char *name = kg_python_word(stated->facts->arena, tokens, parts[d].first);
        if (!name || strcmp(name, "_") == 0)
            continue;
        const struct kg_size_tree *tree = kg_stated_dimension(stated, tensor, d);
        kg_stated_extent(stated, tensor, d, tree, kg_python_place_of(tokens, parts[d]));
        kg_stated_bind(stated, name, tree, NULL);
    }
    return true;
}

static void read_assignment(struct kg_stated *stated, struct kg_python_range target,
                            struct kg_python_range value)
{
    const struct kg_python_tokens *tokens = tokens_of(stated);
    if (read_unpacking(stated, target, value) || target.end != target.first + 1)
        return;
    const char *name = kg_python_word(stated->facts->arena, tokens, target.first);
    if (!name || read_allocation(stated, name, value))
        return;
    struct kg_stated_tensor *tensor;
    int dimension = -1;
    const struct kg_size_tree *tree = kg_stated_size(stated, tokens, value);
    if (aspect_of(stated, value, &tensor, &dimension) == EXTENT && tree)
        kg_stated_extent(stated, tensor, dimension, tree, kg_python_place_of(tokens, value));
    kg_stated_bind(stated, name, tree, tree ? NULL : kg_stated_dtype(stated, tokens, value));
}

// ---- Results

// What is returned are the outputs, in this order; what else was allocated is the function's own.
static void read_return(struct kg_stated *stated, struct kg_python_range value)
{
    const struct kg_python_tokens *tokens = tokens_of(stated);
    struct kg_python_range parts[KG_MAX_TENSORS];
    value = kg_python_bare(tokens, value);
    int count = kg_python_split(tokens, value, KG_MAX_TENSORS, parts);
    struct kg_stated_tensor *outputs[KG_MAX_TENSORS] = {0};
    bool are_names = count > 0;
    for (int i = 0; i < count; i++) {
        struct kg_stated_tensor *tensor =
            parts[i].end == parts[i].first + 1 ? tensor_at(stated, parts[i].first) : NULL;
        outputs[i] = tensor;
        are_names &= tensor && tensor->is_output;
    }
    if (count > 1 || are_names) {
        const char *number = kg_arena_format(stated->facts->arena, "%d", count);
        kg_bundle_state(stated->facts,
                        (struct kg_bundle_statement){.fact = KG_FACT_OUTPUT_COUNT,
                                                     .value = number,
                                                     .shown = number,
                                                     .role = stated->role,
                                                     .is_code = true,
                                                     .place = kg_python_place_of(tokens, value)});
    }
    stated->output_count = 0;
    for (int i = 0; i < count && are_names; i++)
        kg_stated_gives(stated, outputs[i]);
}

void kg_bundle_read_statement(struct kg_stated *stated, int line)
{
    const struct kg_python_tokens *tokens = tokens_of(stated);
    struct kg_python_range range = stated->source->lines.lines[line].range, target, value;
    if (range.end <= range.first || read_test(stated, line) || read_check(stated, range))
        return;
    if (kg_python_is(tokens, range.first, "return") && range.end > range.first + 1)
        read_return(stated, (struct kg_python_range){range.first + 1, range.end});
    else if (kg_python_assigns(tokens, range, &target, &value))
        read_assignment(stated, target, value);
}
