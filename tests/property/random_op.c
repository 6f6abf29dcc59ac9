// Random definitions. Expressions are written straight as text, typed by construction: there is one
// function per kind of value, and each only calls those that give what it needs.

#include "property/random_op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ITERATIONS 20000 // of one statement
#define MOST_INDICES 8        // visible at once
#define MOST_DIMS 10
#define MOST_TENSORS 12

enum value { FLOAT, INTEGER, BOOL };

// With what stays inside a dimension that both indices run over, outer and own: "i - j" for j <= i.
static const struct {
    const char *text;
    const char *inside;
} relations[] = {{"<=", "%1$s - %2$s"},
                 {"<", "%1$s - %2$s - 1"},
                 {">=", "%2$s - %1$s"},
                 {">", "%2$s - %1$s - 1"}};

// What a dimension can be: a size, or an expression of sizes.
struct dim {
    char text[24];
    int64_t extent;
    int base; // a plain size: its number; else -1
};

struct tensor {
    char name[16];
    const char *type;
    enum value value;
    bool input;
    int rank;
    int dims[4]; // into maker.dims
};

struct index {
    char name[16];
    int dim;
    int relation; // to `outer`: into relations; -1: none
    char outer[16];
};

struct maker {
    uint64_t state;
    bool stable;
    int dim_count;
    struct dim dims[MOST_DIMS];
    int tensor_count;
    struct tensor tensors[MOST_TENSORS];
    int index_count; // visible
    struct index indices[MOST_INDICES];
    int index_names;    // used in this statement
    int64_t iterations; // of the visible indices
    int budget;         // terms this statement may still have
};

static uint64_t draw(struct maker *maker) // splitmix64
{
    uint64_t z = maker->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int below(struct maker *maker, int count)
{
    return (int)(draw(maker) % (uint64_t)count);
}

static bool chance(struct maker *maker, int percent)
{
    return below(maker, 100) < percent;
}

#define PICK(maker, list) ((list)[below((maker), (int)(sizeof(list) / sizeof((list)[0])))])

// A visible index that runs over `dim`; NULL: none.
static const struct index *matching_index(struct maker *maker, int dim)
{
    int count = 0, chosen;
    for (int i = 0; i < maker->index_count; i++)
        count += maker->indices[i].dim == dim;
    if (count == 0)
        return NULL;
    chosen = below(maker, count);
    for (int i = 0; i < maker->index_count; i++)
        if (maker->indices[i].dim == dim && chosen-- == 0)
            return &maker->indices[i];
    return NULL;
}

static const struct tensor *any_tensor(struct maker *maker, enum value value, bool input)
{
    const struct tensor *found = NULL;
    int count = 0;
    for (int i = 0; i < maker->tensor_count; i++)
        if (maker->tensors[i].value == value && (!input || maker->tensors[i].input) &&
            below(maker, ++count) == 0)
            found = &maker->tensors[i];
    return found;
}

// An integer tensor's element with plain subscripts, for use as one; false when there is none.
static bool gather(struct maker *maker, struct kg_text *text)
{
    const struct tensor *tensor = any_tensor(maker, INTEGER, true);
    const struct index *indices[4];
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
static bool wild_subscript(struct maker *maker, struct kg_text *text)
{
    if (maker->index_count == 0) {
        kg_text_format(text, "%d", below(maker, 3));
        return true;
    }
    const struct index *a = &maker->indices[below(maker, maker->index_count)];
    const struct index *b = &maker->indices[below(maker, maker->index_count)];
    static const char *const forms[] = {"%s + 1",     "%s - 1", "2*%s - 1",  "%s*S + %s - 1",
                                        "%s - %s",    "-%s",    "%s/2 + %s", "%s + (%s + 1) % S",
                                        "3 - %s - %s"};
    int form = below(maker, (int)(sizeof forms / sizeof forms[0]));
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
static bool subscript(struct maker *maker, struct kg_text *text, int dim)
{
    const struct index *index = matching_index(maker, dim);
    if (chance(maker, 6) && gather(maker, text))
        return false;
    if (!index || chance(maker, 10))
        return wild_subscript(maker, text);
    if (index->relation >= 0 && chance(maker, 30)) {
        // Only the right one is safe. The others may be refused, but never wrongly accepted.
        int form = maker->stable ? index->relation : below(maker, 4);
        char subtraction[64];
        snprintf(subtraction, sizeof subtraction, relations[form].inside, index->outer,
                 index->name);
        kg_text_add(text, subtraction);
        return false;
    }
    if (index->relation >= 0 && !maker->stable && chance(maker, 30)) { // so may these
        kg_text_format(text, chance(maker, 50) ? "%s - 1" : "%s + 1", index->outer);
        return false;
    }
    switch (below(maker, 16)) {
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

// tensor[...]; subscript `fixed` (-1: none) is the bare index `name`.
static void read_with(struct maker *maker, struct kg_text *text, const struct tensor *tensor,
                      int fixed, const char *name)
{
    struct kg_text subscripts = {0};
    bool pad = false; // left out at times, when definitions may be refused
    maker->budget--;
    for (int d = 0; d < tensor->rank; d++) {
        kg_text_add(&subscripts, d ? ", " : "");
        if (d == fixed)
            kg_text_add(&subscripts, name);
        else
            pad |= subscript(maker, &subscripts, tensor->dims[d]);
    }
    pad = chance(maker, 3) || (pad && (maker->stable || !chance(maker, 5)));
    kg_text_format(text, "%s%s[%s]", pad ? "pad(" : "", tensor->name, kg_text_string(&subscripts));
    static const char *const values[] = {"0", "1", "-1", "0.5", "-2.25"};
    if (pad && tensor->value == FLOAT)
        kg_text_format(text, ", %s)",
                       !maker->stable && chance(maker, 20) ? "-inf" : PICK(maker, values));
    else if (pad)
        kg_text_add(text, tensor->value == BOOL ? ", true)" : ", 3)");
    kg_text_free(&subscripts);
}

static void read_input(struct maker *maker, struct kg_text *text, enum value value)
{
    const struct tensor *tensor = any_tensor(maker, value, true);
    if (tensor)
        read_with(maker, text, tensor, -1, NULL);
    else
        kg_text_add(text, value == FLOAT ? "0.5" : value == INTEGER ? "2" : "true");
}

static void write_value(struct maker *maker, struct kg_text *text, enum value value, int depth);

// May an index over this dimension be added?
static bool has_room(const struct maker *maker, int dim)
{
    int64_t extent = maker->dims[dim].extent;
    return maker->index_count < MOST_INDICES - 1 && maker->index_names < 12 &&
           maker->iterations * (extent > 0 ? extent : 1) <= MOST_ITERATIONS;
}

static struct index *push_index(struct maker *maker, int dim)
{
    struct index *index = &maker->indices[maker->index_count++];
    snprintf(index->name, sizeof index->name, "j%d", maker->index_names++);
    index->dim = dim;
    index->relation = -1;
    if (maker->dims[dim].extent > 0)
        maker->iterations *= maker->dims[dim].extent;
    return index;
}

// The body of a reduction: starts with a read that has `index` as a bare subscript when `read` is
// given, so that its range need not be written.
static void write_body(struct maker *maker, struct kg_text *text, enum value value,
                       const char *reduction, const struct tensor *read, int fixed,
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
        write_value(maker, text, value, depth - 1);
    if (read && !bare && value != BOOL && chance(maker, 60)) {
        kg_text_add(text, chance(maker, 60) ? " * " : " + ");
        write_value(maker, text, value, depth - 1);
    }
    kg_text_add(text, product ? "))" : ")");
}

// "sum(k) (...)" and all its relatives; false when there is no room. The caller puts parentheses.
static bool reduction(struct maker *maker, struct kg_text *text, enum value value, int depth)
{
    static const char *const floats[] = {"sum", "sum", "sum", "max", "min", "mean", "prod"};
    static const char *const integers[] = {"sum", "argmax", "argmin", "sum"};
    static const char *const bools[] = {"any", "all"};
    const char *name = value == FLOAT     ? PICK(maker, floats)
                       : value == INTEGER ? PICK(maker, integers)
                                          : PICK(maker, bools);
    bool argument = strncmp(name, "arg", 3) == 0;
    enum value inner = argument ? FLOAT : value;
    const struct tensor *read = chance(maker, 70) ? any_tensor(maker, inner, argument) : NULL;
    int fixed = -1, dim = below(maker, maker->dim_count);
    if (read && read->rank > 0) {
        fixed = below(maker, read->rank);
        dim = read->dims[fixed];
    } else {
        read = NULL;
    }
    const struct index *outer = chance(maker, 25) ? matching_index(maker, dim) : NULL;
    if (!has_room(maker, dim))
        return false;
    int visible = maker->index_count;
    int64_t iterations = maker->iterations;
    struct index *index = push_index(maker, dim);
    const char *own = index->name;
    kg_text_format(text, "%s(%s", name, own);
    if (outer) {
        index->relation = below(maker, 4);
        memcpy(index->outer, outer->name, sizeof index->outer);
        kg_text_format(text, " %s %s", relations[index->relation].text, outer->name);
    } else if (!read)
        kg_text_format(text, " in %d..%s", chance(maker, 15), maker->dims[dim].text);
    int second = below(maker, maker->dim_count);
    if (!argument && chance(maker, 15) && has_room(maker, second))
        kg_text_format(text, ", %s in 0..%s", push_index(maker, second)->name,
                       maker->dims[second].text);
    kg_text_add(text, ") ");
    write_body(maker, text, inner, name, read, fixed, own, depth);
    maker->index_count = visible;
    maker->iterations = iterations;
    return true;
}

// A sliding window or a matrix product, as people write them.
static bool idiom(struct maker *maker, struct kg_text *text)
{
    const struct tensor *a = any_tensor(maker, FLOAT, false), *b = any_tensor(maker, FLOAT, false);
    int visible = maker->index_count;
    int64_t iterations = maker->iterations;
    if (!a || !b || a->rank == 0 || b->rank == 0)
        return false;
    int left = below(maker, a->rank), right = -1;
    for (int d = 0; d < b->rank; d++)
        if (b->dims[d] == a->dims[left])
            right = d;
    if (right < 0 || !has_room(maker, a->dims[left]))
        return false;
    const char *name = push_index(maker, a->dims[left])->name;
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
static void write_call(struct maker *maker, struct kg_text *text, int depth)
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
    int count = (int)(sizeof calls / sizeof calls[0]), chosen = below(maker, count);
    while (maker->stable && !calls[chosen].before)
        chosen = below(maker, count);
    kg_text_format(text, "%s(%s", calls[chosen].name, maker->stable ? calls[chosen].before : "");
    // ceil(a/b) of integers is refused; a float is meant.
    kg_text_add(text, strcmp(calls[chosen].name, "ceil") == 0 ? "0.5 + " : "");
    write_value(maker, text, FLOAT, depth - 1);
    kg_text_format(text, "%s)", maker->stable ? calls[chosen].behind : "");
}

static void write_binary(struct maker *maker, struct kg_text *text, enum value value, int depth)
{
    static const char *const operators[] = {" + ", " - ", " * "};
    // Without parentheses the text means something else, just as well typed.
    bool parentheses = chance(maker, 70);
    bool divides = value == INTEGER && chance(maker, 50);
    kg_text_add(text, parentheses ? "(" : "");
    kg_text_add(text, divides ? "(1 + " : ""); // a quotient of two literals is refused
    write_value(maker, text, value, depth - 1);
    if (value == FLOAT && chance(maker, 15)) {
        kg_text_add(text, maker->stable ? " / (1.0 + abs(" : " / (");
        write_value(maker, text, FLOAT, depth - 1);
        kg_text_add(text, maker->stable ? "))" : ")");
    } else if (divides) {
        static const char *const constants[] = {") / 3", ") % 5", ") * 3", ") / S", ") % S"};
        kg_text_add(text, PICK(maker, constants));
    } else {
        kg_text_add(text, operators[below(maker, value == INTEGER ? 2 : 3)]);
        write_value(maker, text, value, depth - 1);
    }
    kg_text_add(text, parentheses ? ")" : "");
}

static void write_where(struct maker *maker, struct kg_text *text, enum value value, int depth)
{
    kg_text_add(text, "where(");
    write_value(maker, text, BOOL, depth - 1);
    kg_text_add(text, ", ");
    write_value(maker, text, value, depth - 1);
    kg_text_add(text, ", ");
    write_value(maker, text, value, depth - 1);
    kg_text_add(text, ")");
}

static void write_pair(struct maker *maker, struct kg_text *text, enum value value,
                       const char *name, int depth)
{
    kg_text_format(text, "%s(", name);
    write_value(maker, text, value, depth - 1);
    kg_text_add(text, ", ");
    write_value(maker, text, value, depth - 1);
    kg_text_add(text, ")");
}

static void write_float_leaf(struct maker *maker, struct kg_text *text)
{
    static const char *const numbers[] = {"0.5", "1.0", "2.0", "-1.5", "0.125", "1e-3", "eps"};
    const struct tensor *tensor = any_tensor(maker, FLOAT, false);
    if (tensor && chance(maker, 85))
        read_with(maker, text, tensor, -1, NULL);
    else if (maker->index_count > 0 && chance(maker, 30))
        kg_text_format(text, "(0.25*%s)", maker->indices[below(maker, maker->index_count)].name);
    else
        kg_text_add(text, !maker->stable && chance(maker, 10) ? "inf" : PICK(maker, numbers));
}

static void write_float(struct maker *maker, struct kg_text *text, int depth)
{
    if (depth <= 0 || maker->budget <= 0) {
        write_float_leaf(maker, text);
        return;
    }
    switch (below(maker, 16)) {
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
        write_pair(maker, text, FLOAT, chance(maker, 50) ? "max" : "min", depth);
        return;
    case 8:
        kg_text_add(text, "(-");
        write_value(maker, text, FLOAT, depth - 1);
        kg_text_add(text, ")");
        return;
    case 9:
        kg_text_add(text, maker->stable ? "pow(abs(" : "pow(");
        write_value(maker, text, FLOAT, depth - 1);
        kg_text_add(text, maker->stable ? ") + 0.5, 1.5)" : ", 2.0)");
        return;
    case 10:
        kg_text_format(text, "cast(%s, ", chance(maker, 70) ? "f32" : "f64");
        write_value(maker, text, (enum value)below(maker, 3), depth - 1);
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
        bool made = reduction(maker, &inner, FLOAT, depth);
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

static void write_integer(struct maker *maker, struct kg_text *text, int depth)
{
    if (depth > 0 && maker->budget > 0)
        switch (below(maker, 8)) {
        case 0:
        case 1:
            write_binary(maker, text, INTEGER, depth);
            return;
        case 2:
            write_where(maker, text, INTEGER, depth);
            return;
        case 3:
            write_pair(maker, text, INTEGER, chance(maker, 50) ? "max" : "min", depth);
            return;
        case 4:
            kg_text_format(text, "%s(", chance(maker, 50) ? "abs" : "relu");
            write_value(maker, text, INTEGER, depth - 1);
            kg_text_add(text, ")");
            return;
        case 5:
            kg_text_add(text, "cast(i32, ");
            write_value(maker, text, BOOL, depth - 1);
            kg_text_add(text, ")");
            return;
        case 6: {
            size_t start = text->length;
            kg_text_add(text, "(");
            if (reduction(maker, text, INTEGER, depth)) {
                kg_text_add(text, ")");
                return;
            }
            kg_text_cut(text, start);
            break;
        }
        default:
            break;
        }
    const struct tensor *tensor = any_tensor(maker, INTEGER, false);
    if (tensor && chance(maker, 60))
        read_with(maker, text, tensor, -1, NULL);
    else if (maker->index_count > 0 && chance(maker, 70))
        kg_text_add(text, maker->indices[below(maker, maker->index_count)].name);
    else
        kg_text_format(text, chance(maker, 30) ? "A" : "%d", below(maker, 9));
}

static void write_comparison(struct maker *maker, struct kg_text *text, int depth)
{
    static const char *const operators[] = {" < ", " <= ", " > ", " >= ", " == ", " != "};
    kg_text_add(text, "(");
    if (chance(maker, 50)) {
        write_value(maker, text, INTEGER, depth - 1);
        kg_text_add(text, PICK(maker, operators));
        write_value(maker, text, INTEGER, depth - 1);
    } else if (maker->stable) { // what is stored is exact
        read_input(maker, text, FLOAT);
        kg_text_format(text, "%s0.5", PICK(maker, operators));
    } else {
        write_value(maker, text, FLOAT, depth - 1);
        kg_text_add(text, PICK(maker, operators));
        write_value(maker, text, FLOAT, depth - 1);
    }
    kg_text_add(text, ")");
}

static void write_bool(struct maker *maker, struct kg_text *text, int depth)
{
    const struct tensor *tensor = any_tensor(maker, BOOL, false);
    size_t start = text->length;
    if (depth > 0 && maker->budget > 0)
        switch (below(maker, 7)) {
        case 0:
            kg_text_add(text, "(");
            write_value(maker, text, BOOL, depth - 1);
            kg_text_add(text, chance(maker, 50) ? " && " : " || ");
            write_value(maker, text, BOOL, depth - 1);
            kg_text_add(text, ")");
            return;
        case 1:
            kg_text_add(text, "!");
            write_value(maker, text, BOOL, depth - 1);
            return;
        case 2:
            kg_text_add(text, "isnan(");
            if (maker->stable)
                read_input(maker, text, FLOAT);
            else
                write_value(maker, text, FLOAT, depth - 1);
            kg_text_add(text, ")");
            return;
        case 3:
            kg_text_add(text, "(");
            if (reduction(maker, text, BOOL, depth)) {
                kg_text_add(text, ")");
                return;
            }
            kg_text_cut(text, start);
            break;
        default:
            write_comparison(maker, text, depth);
            return;
        }
    if (tensor && chance(maker, 70))
        read_with(maker, text, tensor, -1, NULL);
    else
        kg_text_add(text, chance(maker, 50) ? "true" : "false");
}

static void write_value(struct maker *maker, struct kg_text *text, enum value value, int depth)
{
    maker->budget--;
    if (value == FLOAT)
        write_float(maker, text, depth);
    else if (value == INTEGER)
        write_integer(maker, text, depth);
    else
        write_bool(maker, text, depth);
}

static void add_dim(struct maker *maker, int base, int64_t extent, const char *format,
                    const char *name)
{
    struct dim *dim = &maker->dims[maker->dim_count++];
    dim->base = base;
    dim->extent = extent;
    size_t used = 0;
    for (; *format && used + 4 < sizeof dim->text; format++) // '@' stands for the size
        dim->text[used++] = *format == '@' ? name[0] : *format;
    dim->text[used] = '\0';
}

// One to four sizes and a few dimensions made of them.
static int make_dims(struct maker *maker, struct random_op *op)
{
    static const int64_t values[] = {0, 1, 1, 2, 3, 4, 5, 5, 7, 8, 9, 16, 17, 33};
    static const char *const names[] = {"A", "B", "C", "D"};
    int count = 1 + below(maker, 4);
    int64_t all = 1;
    for (int i = 0; i < count; i++) {
        int64_t value = PICK(maker, values);
        if (value == 0 && chance(maker, 60))
            value = 6;
        while (all * (value > 0 ? value : 1) > 2000)
            value /= 2;
        all *= value > 0 ? value : 1;
        add_dim(maker, i, value, "@", names[i]);
        kg_text_format(&op->sizes, "%s%s=%d", i ? " " : "", names[i], (int)value);
    }
    for (int i = 0; i < count; i++) {
        int64_t extent = maker->dims[i].extent;
        switch (below(maker, 8)) {
        case 0:
            add_dim(maker, -1, (extent + 1) / 2, "ceil(@/S)", names[i]);
            break;
        case 1:
            add_dim(maker, -1, extent + 1, "@ + 1", names[i]);
            break;
        case 2:
            add_dim(maker, -1, 2 * extent, "2*@", names[i]);
            break;
        case 3:
            add_dim(maker, -1, 3, "3", "3");
            break;
        default:
            break;
        }
    }
    return count;
}

static struct tensor *add_tensor(struct maker *maker, const char *prefix, enum value value,
                                 int rank)
{
    static const char *const floats[] = {"T", "T", "T", "f32", "f16", "bf16", "f64"};
    static const char *const integers[] = {"i32", "i64", "i8", "u8", "i32", "u4", "i4"};
    struct tensor *tensor = &maker->tensors[maker->tensor_count];
    *tensor = (struct tensor){.value = value, .rank = rank};
    snprintf(tensor->name, sizeof tensor->name, "%s%d", prefix, maker->tensor_count);
    tensor->type = value == FLOAT ? PICK(maker, floats) : value == BOOL ? "bool" : NULL;
    if (value == INTEGER) // no output is packed: halves of a byte cannot be written apart
        tensor->type = integers[below(maker, prefix[0] == 'x' ? 7 : 5)];
    for (int d = 0; d < rank; d++)
        tensor->dims[d] = below(maker, maker->dim_count);
    return tensor;
}

static enum value any_kind(struct maker *maker, int floats)
{
    return chance(maker, floats) ? FLOAT : chance(maker, 65) ? INTEGER : BOOL;
}

// The first holds every size, so that sizes can be inferred.
static void make_inputs(struct maker *maker, int sizes)
{
    int count = 1 + below(maker, 3);
    for (int i = 0; i < count; i++) {
        struct tensor *tensor = add_tensor(maker, "x", i == 0 ? FLOAT : any_kind(maker, 65),
                                           i == 0 ? sizes : below(maker, 5));
        for (int d = 0; i == 0 && d < sizes; d++)
            tensor->dims[d] = d;
        int64_t elements = 1;
        for (int d = 0; d < tensor->rank; d++) { // keep it small
            elements *= maker->dims[tensor->dims[d]].extent;
            if (i > 0 && elements > 2000)
                tensor->rank = d;
        }
        tensor->input = true;
        maker->tensor_count++;
    }
}

static void make_statement(struct maker *maker, struct random_op *op, bool output)
{
    struct tensor *tensor =
        add_tensor(maker, output ? "y" : "v", any_kind(maker, 75), below(maker, 5));
    maker->index_count = maker->index_names = 0;
    maker->iterations = 1;
    maker->budget = 12;
    kg_text_format(&op->body, "    %s[", tensor->name);
    for (int d = 0; d < tensor->rank; d++) {
        if (!has_room(maker, tensor->dims[d])) {
            tensor->rank = d;
            break;
        }
        kg_text_format(&op->body, d ? ", %s" : "%s", push_index(maker, tensor->dims[d])->name);
        // A local's dimension is told by its index; an output's by the signature.
        if (!output)
            kg_text_format(&op->body, " in 0..%s", maker->dims[tensor->dims[d]].text);
    }
    kg_text_add(&op->body, "] = ");
    size_t start = op->body.length;
    bool whole = chance(maker, 40) && reduction(maker, &op->body, tensor->value, 3);
    if (!whole) {
        kg_text_cut(&op->body, start);
        write_value(maker, &op->body, tensor->value, 4);
    }
    kg_text_add(&op->body, "\n");
    op->iterations += maker->iterations;
    maker->tensor_count++;
}

static void write_signature(struct maker *maker, struct kg_text *text, bool inputs)
{
    bool first = true;
    for (int i = 0; i < maker->tensor_count; i++) {
        const struct tensor *tensor = &maker->tensors[i];
        if (tensor->name[0] != (inputs ? 'x' : 'y'))
            continue;
        kg_text_format(text, "%s%s: %s[", first ? "" : ", ", tensor->name, tensor->type);
        for (int d = 0; d < tensor->rank; d++)
            kg_text_format(text, d ? ", %s" : "%s", maker->dims[tensor->dims[d]].text);
        kg_text_add(text, "]");
        first = false;
    }
}

void random_op_make(struct random_op *op, uint64_t seed, enum random_kind kind)
{
    static const char *const types[] = {"f32", "f16", "bf16", "f64"};
    struct maker maker = {.state = seed, .stable = kind == RANDOM_STABLE};
    struct kg_text *texts[] = {&op->head, &op->body, &op->text, &op->sizes};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        kg_text_cut(texts[i], 0);
    op->seed = seed;
    op->iterations = 0;
    make_inputs(&maker, make_dims(&maker, op));
    int locals = below(&maker, 3), outputs = 1 + below(&maker, 2);
    while (locals + outputs > 0) {
        bool output = outputs > 0 && (locals == 0 || chance(&maker, 30));
        make_statement(&maker, op, output);
        *(output ? &outputs : &locals) -= 1;
    }
    kg_text_format(&op->sizes, " T=%s", PICK(&maker, types));
    kg_text_add(&op->head, "op random(");
    write_signature(&maker, &op->head, true);
    kg_text_add(&op->head, ") -> (");
    write_signature(&maker, &op->head, false);
    kg_text_add(&op->head, ")\nparam S = 2, eps = 0.375\nwhere T in f32 f16 bf16 f64\n{\n");
    kg_text_format(&op->text, "%s%s}\n", kg_text_string(&op->head), kg_text_string(&op->body));
}

void random_op_free(struct random_op *op)
{
    kg_text_free(&op->head);
    kg_text_free(&op->body);
    kg_text_free(&op->text);
    kg_text_free(&op->sizes);
}

uint64_t random_seed(uint64_t otherwise)
{
    const char *given = getenv("KG_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : otherwise;
    printf("KG_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}
