// Random expressions, written straight as text and typed by construction: there is one function per
// kind of value, and each only calls those that give what it needs.

#include "property/random_maker.h"

#include <stdio.h>
#include <string.h>

// With what stays inside a dimension that both indices run over, outer and own: "i - j" for j <= i.
static const struct {
    const char *text;
    const char *inside;
} relations[] = {{"<=", "%1$s - %2$s"},
                 {"<", "%1$s - %2$s - 1"},
                 {">=", "%2$s - %1$s"},
                 {">", "%2$s - %1$s - 1"}};

// A visible index that runs over `dim`; NULL: none.
static const struct random_index *matching_index(struct random_maker *maker, int dim)
{
    int count = 0, chosen;
    for (int i = 0; i < maker->index_count; i++)
        count += maker->indices[i].dim == dim;
    if (count == 0)
        return NULL;
    chosen = random_below(maker, count);
    for (int i = 0; i < maker->index_count; i++)
        if (maker->indices[i].dim == dim && chosen-- == 0)
            return &maker->indices[i];
    return NULL;
}

static const struct random_tensor *any_tensor(struct random_maker *maker, enum random_value value,
                                              bool input)
{
    const struct random_tensor *found = NULL;
    int count = 0;
    for (int i = 0; i < maker->tensor_count; i++)
        if (maker->tensors[i].value == value && (!input || maker->tensors[i].input) &&
            random_below(maker, ++count) == 0)
            found = &maker->tensors[i];
    return found;
}

// An integer tensor's element with plain subscripts, for use as one; false when there is none.
static bool gather(struct random_maker *maker, struct kg_text *text)
{
    const struct random_tensor *tensor = any_tensor(maker, INTEGER, true);
    const struct random_index *indices[4];
    if (!tensor)
        return false;
    for (int d = 0; d < tensor->rank; d++)
        if (!(indices[d] = matching_index(maker, tensor->dims[d])))
            return false;
    kg_text_format(text, "%s[", tensor->name);
    for (int d = 0; d < tensor->rank; d++)
        kg_text_format(text, d ? ", %s" : "%s", indices[d]->name);
    kg_text_add(text, "]");
    return true;
}

// Anything affine; true when it may leave the dimension.
static bool wild_subscript(struct random_maker *maker, struct kg_text *text)
{
    if (maker->index_count == 0) {
        kg_text_format(text, "%d", random_below(maker, 3));
        return true;
    }
    const struct random_index *a = &maker->indices[random_below(maker, maker->index_count)];
    const struct random_index *b = &maker->indices[random_below(maker, maker->index_count)];
    static const char *const forms[] = {"%s + 1",     "%s - 1", "2*%s - 1",  "%s*S + %s - 1",
                                        "%s - %s",    "-%s",    "%s/2 + %s", "%s + (%s + 1) % S",
                                        "3 - %s - %s"};
    int form = random_below(maker, (int)(sizeof forms / sizeof forms[0]));
    for (const char *at = forms[form], *name = a->name; *at; at++) {
        if (at[0] == '%' && at[1] == 's') {
            kg_text_add(text, name);
            name = b->name;
            at++;
        } else {
            kg_text_add_bytes(text, at, 1);
        }
    }
    return true;
}

// True when it may leave the dimension.
static bool subscript(struct random_maker *maker, struct kg_text *text, int dim)
{
    const struct random_index *index = matching_index(maker, dim);
    if (random_chance(maker, 6) && gather(maker, text))
        return false;
    if (!index || random_chance(maker, 10))
        return wild_subscript(maker, text);
    if (index->relation >= 0 && random_chance(maker, 30)) {
        // Only the right one is safe. The others may be refused, but never wrongly accepted.
        int form = maker->stable ? index->relation : random_below(maker, 4);
        char subtraction[64];
        snprintf(subtraction, sizeof subtraction, relations[form].inside, index->outer,
                 index->name);
        kg_text_add(text, subtraction);
        return false;
    }
    if (index->relation >= 0 && !maker->stable && random_chance(maker, 30)) { // so may these
        kg_text_format(text, random_chance(maker, 50) ? "%s - 1" : "%s + 1", index->outer);
        return false;
    }
    switch (random_below(maker, 16)) {
    case 0:
        if (maker->dims[dim].base < 0) // ceil() cannot stand in a subscript
            break;
        kg_text_format(text, "%s - 1 - %s", maker->dims[dim].text, index->name);
        return false;
    case 1:
        if (maker->dims[dim].base < 0)
            break;
        kg_text_format(text, "(%s + S) %% %s", index->name, maker->dims[dim].text);
        return false;
    case 2:
        kg_text_format(text, "%s/S", index->name);
        return false;
    default:
        break;
    }
    kg_text_add(text, index->name);
    return false;
}

// A subscript that stays inside the dimension: what is packed cannot be padded, and its rows and
// columns cannot be gathered.
static void inner_subscript(struct random_maker *maker, struct kg_text *text, int dim)
{
    const struct random_index *index = matching_index(maker, dim);
    bool has_size = maker->dims[dim].base >= 0; // ceil() cannot stand in a subscript
    switch (random_below(maker, 4)) {
    case 0:
        if (index && has_size)
            kg_text_format(text, "%s - 1 - %s", maker->dims[dim].text, index->name);
        break;
    case 1:
        if (index)
            kg_text_format(text, "%s/S", index->name);
        break;
    default:
        break;
    }
    if (text->length == 0)
        kg_text_add(text, index ? index->name : "0");
}

// True when it may leave the dimension.
static bool subscript_of(struct random_maker *maker, struct kg_text *text,
                         const struct random_tensor *tensor, int d)
{
    if (!tensor->packed)
        return subscript(maker, text, tensor->dims[d]);
    struct kg_text inside = {0};
    bool may_leave = d < tensor->rank - 2 && subscript(maker, &inside, tensor->dims[d]);
    if (d >= tensor->rank - 2 || may_leave) {
        kg_text_cut(&inside, 0);
        inner_subscript(maker, &inside, tensor->dims[d]);
    }
    kg_text_add(text, kg_text_string(&inside));
    kg_text_free(&inside);
    return false;
}

// tensor[...]; subscript `fixed` (-1: none) is the bare index `name`.
static void read_with(struct random_maker *maker, struct kg_text *text,
                      const struct random_tensor *tensor, int fixed, const char *name)
{
    struct kg_text subscripts = {0};
    bool pad = false; // left out at times, when definitions may be refused
    maker->budget--;
    for (int d = 0; d < tensor->rank; d++) {
        kg_text_add(&subscripts, d ? ", " : "");
        if (d == fixed)
            kg_text_add(&subscripts, name);
        else
            pad |= subscript_of(maker, &subscripts, tensor, d);
    }
    pad = random_chance(maker, 3) || (pad && (maker->stable || !random_chance(maker, 5)));
    pad = pad && !tensor->packed;
    kg_text_format(text, "%s%s[%s]", pad ? "pad(" : "", tensor->name, kg_text_string(&subscripts));
    static const char *const values[] = {"0", "1", "-1", "0.5", "-2.25"};
    if (pad && tensor->value == FLOAT)
        kg_text_format(text, ", %s)",
                       !maker->stable && random_chance(maker, 20) ? "-inf"
                                                                  : RANDOM_PICK(maker, values));
    else if (pad)
        kg_text_add(text, tensor->value == BOOL ? ", true)" : ", 3)");
    kg_text_free(&subscripts);
}

static void read_input(struct random_maker *maker, struct kg_text *text, enum random_value value)
{
    const struct random_tensor *tensor = any_tensor(maker, value, true);
    if (tensor)
        read_with(maker, text, tensor, -1, NULL);
    else
        kg_text_add(text, value == FLOAT ? "0.5" : value == INTEGER ? "2" : "true");
}

// The body of a reduction: starts with a read that has `index` as a bare subscript when `read` is
// given, so that its range need not be written.
static void write_body(struct random_maker *maker, struct kg_text *text, enum random_value value,
                       const char *reduction, const struct random_tensor *read, int fixed,
                       const char *name, int depth)
{
    bool argument = strncmp(reduction, "arg", 3) == 0, bare = argument && maker->stable;
    bool product = strcmp(reduction, "prod") == 0;
    kg_text_add(text, product ? "(1.0 + 0.125*tanh(" : "(");
    if (read)
        read_with(maker, text, read, fixed, name);
    else if (bare)
        read_input(maker, text, FLOAT);
    else
        random_expression(maker, text, value, depth - 1);
    if (read && !bare && value != BOOL && random_chance(maker, 60)) {
        kg_text_add(text, random_chance(maker, 60) ? " * " : " + ");
        random_expression(maker, text, value, depth - 1);
    }
    kg_text_add(text, product ? "))" : ")");
}

bool random_reduction(struct random_maker *maker, struct kg_text *text, enum random_value value,
                      int depth)
{
    static const char *const floats[] = {"sum", "sum", "sum", "max", "min", "mean", "prod"};
    static const char *const integers[] = {"sum", "argmax", "argmin", "sum"};
    static const char *const bools[] = {"any", "all"};
    const char *name = value == FLOAT     ? RANDOM_PICK(maker, floats)
                       : value == INTEGER ? RANDOM_PICK(maker, integers)
                                          : RANDOM_PICK(maker, bools);
    bool argument = strncmp(name, "arg", 3) == 0;
    enum random_value inner = argument ? FLOAT : value;
    const struct random_tensor *read =
        random_chance(maker, 70) ? any_tensor(maker, inner, argument) : NULL;
    int fixed = -1, dim = random_below(maker, maker->dim_count);
    if (read && read->rank > 0) {
        fixed = random_below(maker, read->rank);
        dim = read->dims[fixed];
    } else {
        read = NULL;
    }
    const struct random_index *outer = random_chance(maker, 25) ? matching_index(maker, dim) : NULL;
    if (!random_has_room(maker, dim))
        return false;
    int visible = maker->index_count;
    int64_t iterations = maker->iterations;
    struct random_index *index = random_push_index(maker, dim);
    const char *own = index->name;
    kg_text_format(text, "%s(%s", name, own);
    if (outer) {
        index->relation = random_below(maker, 4);
        memcpy(index->outer, outer->name, sizeof index->outer);
        kg_text_format(text, " %s %s", relations[index->relation].text, outer->name);
    } else if (!read)
        kg_text_format(text, " in %d..%s", random_chance(maker, 15), maker->dims[dim].text);
    int second = random_below(maker, maker->dim_count);
    if (random_chance(maker, 15) && random_has_room(maker, second))
        kg_text_format(text, ", %s in 0..%s", random_push_index(maker, second)->name,
                       maker->dims[second].text);
    kg_text_add(text, ") ");
    write_body(maker, text, inner, name, read, fixed, own, depth);
    maker->index_count = visible;
    maker->iterations = iterations;
    return true;
}

// A sliding window or a matrix product, as people write them.
static bool idiom(struct random_maker *maker, struct kg_text *text)
{
    const struct random_tensor *a = any_tensor(maker, FLOAT, false),
                               *b = any_tensor(maker, FLOAT, false);
    int visible = maker->index_count;
    int64_t iterations = maker->iterations;
    if (!a || !b || a->rank == 0 || b->rank == 0)
        return false;
    int left = random_below(maker, a->rank), right = -1;
    for (int d = 0; d < b->rank; d++)
        if (b->dims[d] == a->dims[left])
            right = d;
    if (right < 0 || !random_has_room(maker, a->dims[left]))
        return false;
    const char *name = random_push_index(maker, a->dims[left])->name;
    kg_text_format(text, "(sum(%s) ", name);
    read_with(maker, text, a, left, name);
    kg_text_add(text, " * ");
    read_with(maker, text, b, right, name);
    kg_text_add(text, ")");
    maker->index_count = visible;
    maker->iterations = iterations;
    return true;
}

// Every function of the language that gives a float. The stable spellings keep arguments in tame
// places.
static void write_call(struct random_maker *maker, struct kg_text *text, int depth)
{
    static const struct {
        const char *name;
        const char *before; // stable: what stands around the argument
        const char *behind;
    } calls[] = {
        {"relu", "", ""},
        {"gelu", "", ""},
        {"gelu_tanh", "", ""},
        {"sigmoid", "", ""},
        {"silu", "", ""},
        {"tanh", "", ""},
        {"erf", "", ""},
        {"softplus", "", ""},
        {"abs", "", ""},
        {"exp", "tanh(", ")"},
        {"exp2", "tanh(", ")"},
        {"expm1", "tanh(", ")"},
        {"sin", "tanh(", ")"},
        {"cos", "tanh(", ")"},
        {"log", "abs(", ") + 1.0"},
        {"log2", "abs(", ") + 1.0"},
        {"log1p", "abs(", ")"},
        {"sqrt", "abs(", ") + 0.25"},
        {"rsqrt", "abs(", ") + 1.0"},
        {"floor", NULL, NULL},
        {"ceil", NULL, NULL},
        {"round", NULL, NULL},
        {"sign", NULL, NULL},
    };
    int count = (int)(sizeof calls / sizeof calls[0]), chosen = random_below(maker, count);
    while (maker->stable && !calls[chosen].before)
        chosen = random_below(maker, count);
    kg_text_format(text, "%s(%s", calls[chosen].name, maker->stable ? calls[chosen].before : "");
    // ceil(a/b) of integers is refused; a float is meant.
    kg_text_add(text, strcmp(calls[chosen].name, "ceil") == 0 ? "0.5 + " : "");
    random_expression(maker, text, FLOAT, depth - 1);
    kg_text_format(text, "%s)", maker->stable ? calls[chosen].behind : "");
}

static void write_binary(struct random_maker *maker, struct kg_text *text, enum random_value value,
                         int depth)
{
    static const char *const operators[] = {" + ", " - ", " * "};
    // Without parentheses the text means something else, just as well typed.
    bool parentheses = random_chance(maker, 70);
    bool divides = value == INTEGER && random_chance(maker, 50);
    kg_text_add(text, parentheses ? "(" : "");
    kg_text_add(text, divides ? "(1 + " : ""); // a quotient of two literals is refused
    random_expression(maker, text, value, depth - 1);
    if (value == FLOAT && random_chance(maker, 15)) {
        kg_text_add(text, maker->stable ? " / (1.0 + abs(" : " / (");
        random_expression(maker, text, FLOAT, depth - 1);
        kg_text_add(text, maker->stable ? "))" : ")");
    } else if (divides) {
        static const char *const constants[] = {") / 3", ") % 5", ") * 3", ") / S", ") % S"};
        kg_text_add(text, RANDOM_PICK(maker, constants));
    } else {
        kg_text_add(text, operators[random_below(maker, value == INTEGER ? 2 : 3)]);
        random_expression(maker, text, value, depth - 1);
    }
    kg_text_add(text, parentheses ? ")" : "");
}

static void write_bits(struct random_maker *maker, struct kg_text *text, int depth)
{
    static const char *const operators[] = {" & ", " | ", " ^ ", " << ", " >> "};
    bool parentheses = random_chance(maker, 70);
    kg_text_add(text, parentheses ? "(" : "");
    kg_text_add(text, random_chance(maker, 20) ? "~" : "");
    random_expression(maker, text, INTEGER, depth - 1);
    kg_text_add(text, RANDOM_PICK(maker, operators));
    random_expression(maker, text, INTEGER, depth - 1);
    kg_text_add(text, parentheses ? ")" : "");
}

static void write_where(struct random_maker *maker, struct kg_text *text, enum random_value value,
                        int depth)
{
    kg_text_add(text, "where(");
    random_expression(maker, text, BOOL, depth - 1);
    kg_text_add(text, ", ");
    random_expression(maker, text, value, depth - 1);
    kg_text_add(text, ", ");
    random_expression(maker, text, value, depth - 1);
    kg_text_add(text, ")");
}

static void write_pair(struct random_maker *maker, struct kg_text *text, enum random_value value,
                       const char *name, int depth)
{
    kg_text_format(text, "%s(", name);
    random_expression(maker, text, value, depth - 1);
    kg_text_add(text, ", ");
    random_expression(maker, text, value, depth - 1);
    kg_text_add(text, ")");
}

static void write_float_leaf(struct random_maker *maker, struct kg_text *text)
{
    static const char *const numbers[] = {"0.5", "1.0", "2.0", "-1.5", "0.125", "1e-3", "eps"};
    const struct random_tensor *tensor = any_tensor(maker, FLOAT, false);
    if (tensor && random_chance(maker, 85))
        read_with(maker, text, tensor, -1, NULL);
    else if (maker->index_count > 0 && random_chance(maker, 30))
        kg_text_format(text, "(0.25*%s)",
                       maker->indices[random_below(maker, maker->index_count)].name);
    else
        kg_text_add(text, !maker->stable && random_chance(maker, 10) ? "inf"
                                                                     : RANDOM_PICK(maker, numbers));
}

static void write_float(struct random_maker *maker, struct kg_text *text, int depth)
{
    if (depth <= 0 || maker->budget <= 0) {
        write_float_leaf(maker, text);
        return;
    }
    switch (random_below(maker, 16)) {
    case 0:
    case 1:
        write_call(maker, text, depth);
        return;
    case 2:
    case 3:
    case 4:
    case 5:
        write_binary(maker, text, FLOAT, depth);
        return;
    case 6:
        write_where(maker, text, FLOAT, depth);
        return;
    case 7:
        write_pair(maker, text, FLOAT, random_chance(maker, 50) ? "max" : "min", depth);
        return;
    case 8:
        kg_text_add(text, "(-");
        random_expression(maker, text, FLOAT, depth - 1);
        kg_text_add(text, ")");
        return;
    case 9:
        kg_text_add(text, maker->stable ? "pow(abs(" : "pow(");
        random_expression(maker, text, FLOAT, depth - 1);
        kg_text_add(text, maker->stable ? ") + 0.5, 1.5)" : ", 2.0)");
        return;
    case 10:
        kg_text_format(text, "cast(%s, ", random_chance(maker, 70) ? "f32" : "f64");
        random_expression(maker, text, (enum random_value)random_below(maker, 3), depth - 1);
        kg_text_add(text, ")");
        return;
    case 11:
    case 12:
        if (idiom(maker, text))
            return;
        break;
    case 13:
    case 14: {
        struct kg_text inner = {0};
        bool made = random_reduction(maker, &inner, FLOAT, depth);
        if (made)
            kg_text_format(text, "(%s)", kg_text_string(&inner));
        kg_text_free(&inner);
        if (made)
            return;
        break;
    }
    default:
        break;
    }
    write_float_leaf(maker, text);
}

static void write_integer(struct random_maker *maker, struct kg_text *text, int depth)
{
    if (depth > 0 && maker->budget > 0)
        switch (random_below(maker, 9)) {
        case 0:
        case 1:
            write_binary(maker, text, INTEGER, depth);
            return;
        case 7:
            write_bits(maker, text, depth);
            return;
        case 2:
            write_where(maker, text, INTEGER, depth);
            return;
        case 3:
            write_pair(maker, text, INTEGER, random_chance(maker, 50) ? "max" : "min", depth);
            return;
        case 4:
            kg_text_format(text, "%s(", random_chance(maker, 50) ? "abs" : "relu");
            random_expression(maker, text, INTEGER, depth - 1);
            kg_text_add(text, ")");
            return;
        case 5:
            kg_text_add(text, "cast(i32, ");
            random_expression(maker, text, BOOL, depth - 1);
            kg_text_add(text, ")");
            return;
        case 6: {
            size_t start = text->length;
            kg_text_add(text, "(");
            if (random_reduction(maker, text, INTEGER, depth)) {
                kg_text_add(text, ")");
                return;
            }
            kg_text_cut(text, start);
            break;
        }
        default:
            break;
        }
    const struct random_tensor *tensor = any_tensor(maker, INTEGER, false);
    if (tensor && random_chance(maker, 60))
        read_with(maker, text, tensor, -1, NULL);
    else if (maker->index_count > 0 && random_chance(maker, 70))
        kg_text_add(text, maker->indices[random_below(maker, maker->index_count)].name);
    else
        kg_text_format(text, random_chance(maker, 30) ? "A" : "%d", random_below(maker, 9));
}

static void write_comparison(struct random_maker *maker, struct kg_text *text, int depth)
{
    static const char *const operators[] = {" < ", " <= ", " > ", " >= ", " == ", " != "};
    kg_text_add(text, "(");
    if (random_chance(maker, 50)) {
        random_expression(maker, text, INTEGER, depth - 1);
        kg_text_add(text, RANDOM_PICK(maker, operators));
        random_expression(maker, text, INTEGER, depth - 1);
    } else if (maker->stable) { // what is stored is exact
        read_input(maker, text, FLOAT);
        kg_text_format(text, "%s0.5", RANDOM_PICK(maker, operators));
    } else {
        random_expression(maker, text, FLOAT, depth - 1);
        kg_text_add(text, RANDOM_PICK(maker, operators));
        random_expression(maker, text, FLOAT, depth - 1);
    }
    kg_text_add(text, ")");
}

static void write_bool(struct random_maker *maker, struct kg_text *text, int depth)
{
    const struct random_tensor *tensor = any_tensor(maker, BOOL, false);
    size_t start = text->length;
    if (depth > 0 && maker->budget > 0)
        switch (random_below(maker, 7)) {
        case 0:
            kg_text_add(text, "(");
            random_expression(maker, text, BOOL, depth - 1);
            kg_text_add(text, random_chance(maker, 50) ? " && " : " || ");
            random_expression(maker, text, BOOL, depth - 1);
            kg_text_add(text, ")");
            return;
        case 1:
            kg_text_add(text, "!");
            random_expression(maker, text, BOOL, depth - 1);
            return;
        case 2:
            kg_text_add(text, "isnan(");
            if (maker->stable)
                read_input(maker, text, FLOAT);
            else
                random_expression(maker, text, FLOAT, depth - 1);
            kg_text_add(text, ")");
            return;
        case 3:
            kg_text_add(text, "(");
            if (random_reduction(maker, text, BOOL, depth)) {
                kg_text_add(text, ")");
                return;
            }
            kg_text_cut(text, start);
            break;
        default:
            write_comparison(maker, text, depth);
            return;
        }
    if (tensor && random_chance(maker, 70))
        read_with(maker, text, tensor, -1, NULL);
    else
        kg_text_add(text, random_chance(maker, 50) ? "true" : "false");
}

void random_expression(struct random_maker *maker, struct kg_text *text, enum random_value value,
                       int depth)
{
    maker->budget--;
    if (value == FLOAT)
        write_float(maker, text, depth);
    else if (value == INTEGER)
        write_integer(maker, text, depth);
    else
        write_bool(maker, text, depth);
}
