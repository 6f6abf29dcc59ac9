// Random definitions: sizes and tensors, then statements over them.

#include "property/random_op.h"

#include "property/random_maker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t draw(struct random_maker *maker) // splitmix64
{
    uint64_t z = maker->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int random_below(struct random_maker *maker, int count)
{
    return (int)(draw(maker) % (uint64_t)count);
}

bool random_chance(struct random_maker *maker, int percent)
{
    return random_below(maker, 100) < percent;
}

bool random_has_room(const struct random_maker *maker, int dim)
{
    int64_t extent = maker->dims[dim].extent;
    return maker->index_count < RANDOM_MOST_INDICES - 1 && maker->index_names < 12 &&
           maker->iterations * (extent > 0 ? extent : 1) <= RANDOM_MOST_ITERATIONS;
}

struct random_index *random_push_index(struct random_maker *maker, int dim)
{
    struct random_index *index = &maker->indices[maker->index_count++];
    snprintf(index->name, sizeof index->name, "j%d", maker->index_names++);
    index->dim = dim;
    index->relation = -1;
    if (maker->dims[dim].extent > 0)
        maker->iterations *= maker->dims[dim].extent;
    return index;
}

static void add_dim(struct random_maker *maker, int base, int64_t extent, const char *format,
                    const char *name)
{
    struct random_dim *dim = &maker->dims[maker->dim_count++];
    dim->base = base;
    dim->extent = extent;
    size_t used = 0;
    for (; *format && used + 4 < sizeof dim->text; format++) // '@' stands for the size
        dim->text[used++] = *format == '@' ? name[0] : *format;
    dim->text[used] = '\0';
}

// One to four sizes and a few dimensions made of them.
static int make_dims(struct random_maker *maker, struct random_op *op)
{
    static const int64_t values[] = {0, 1, 1, 2, 3, 4, 5, 5, 7, 8, 9, 16, 17, 33};
    static const char *const names[] = {"A", "B", "C", "D"};
    int count = 1 + random_below(maker, 4);
    int64_t all = 1;
    for (int i = 0; i < count; i++) {
        int64_t value = RANDOM_PICK(maker, values);
        if (value == 0 && random_chance(maker, 60))
            value = 6;
        while (all * (value > 0 ? value : 1) > 2000)
            value /= 2;
        all *= value > 0 ? value : 1;
        add_dim(maker, i, value, "@", names[i]);
        kg_text_format(&op->sizes, "%s%s=%d", i ? " " : "", names[i], (int)value);
    }
    for (int i = 0; i < count; i++) {
        int64_t extent = maker->dims[i].extent;
        switch (random_below(maker, 8)) {
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

static struct random_tensor *add_tensor(struct random_maker *maker, const char *prefix,
                                        enum random_value value, int rank)
{
    static const char *const floats[] = {"T",   "T",    "T",   "T",      "f32",
                                         "f16", "bf16", "f64", "f8e4m3", "f8e5m2"};
    static const char *const integers[] = {"i32", "i64", "i8", "u8", "i16",
                                           "u16", "u32", "u4", "i4"};
    struct random_tensor *tensor = &maker->tensors[maker->tensor_count];
    *tensor = (struct random_tensor){.value = value, .rank = rank};
    snprintf(tensor->name, sizeof tensor->name, "%s%d", prefix, maker->tensor_count);
    tensor->type = value == FLOAT ? RANDOM_PICK(maker, floats) : value == BOOL ? "bool" : NULL;
    if (value == INTEGER) // no output is packed: halves of a byte cannot be written apart
        tensor->type = integers[random_below(maker, prefix[0] == 'x' ? 9 : 7)];
    for (int d = 0; d < rank; d++)
        tensor->dims[d] = random_below(maker, maker->dim_count);
    return tensor;
}

static enum random_value any_kind(struct random_maker *maker, int floats)
{
    return random_chance(maker, floats) ? FLOAT : random_chance(maker, 65) ? INTEGER : BOOL;
}

// The first holds every size, so that sizes can be inferred.
static void make_inputs(struct random_maker *maker, int sizes)
{
    int count = 1 + random_below(maker, 3);
    for (int i = 0; i < count; i++) {
        struct random_tensor *tensor = add_tensor(maker, "x", i == 0 ? FLOAT : any_kind(maker, 65),
                                                  i == 0 ? sizes : random_below(maker, 5));
        for (int d = 0; i == 0 && d < sizes; d++)
            tensor->dims[d] = d;
        int64_t elements = 1;
        for (int d = 0; d < tensor->rank; d++) { // keep it small
            elements *= maker->dims[tensor->dims[d]].extent;
            if (i > 0 && elements > 2000)
                tensor->rank = d;
        }
        tensor->input = true;
        tensor->packed = i > 0 && tensor->rank >= 2 && random_chance(maker, 15);
        if (tensor->packed) {
            tensor->value = INTEGER;
            tensor->type = random_chance(maker, 50) ? "u4" : "i4";
        }
        for (int d = 0; tensor->packed && d < tensor->rank; d++)
            tensor->packed = maker->dims[tensor->dims[d]].extent > 0; // it has a first element
        maker->tensor_count++;
    }
}

static void make_statement(struct random_maker *maker, struct random_op *op, bool output)
{
    struct random_tensor *tensor =
        add_tensor(maker, output ? "y" : "v", any_kind(maker, 75), random_below(maker, 5));
    maker->index_count = maker->index_names = 0;
    maker->iterations = 1;
    maker->budget = 12;
    kg_text_format(&op->body, "    %s[", tensor->name);
    for (int d = 0; d < tensor->rank; d++) {
        if (!random_has_room(maker, tensor->dims[d])) {
            tensor->rank = d;
            break;
        }
        kg_text_format(&op->body, d ? ", %s" : "%s",
                       random_push_index(maker, tensor->dims[d])->name);
        // A local's dimension is told by its index; an output's by the signature.
        if (!output)
            kg_text_format(&op->body, " in 0..%s", maker->dims[tensor->dims[d]].text);
    }
    kg_text_add(&op->body, "] = ");
    size_t start = op->body.length;
    bool whole = random_chance(maker, 40) && random_reduction(maker, &op->body, tensor->value, 3);
    if (!whole) {
        kg_text_cut(&op->body, start);
        random_expression(maker, &op->body, tensor->value, 4);
    }
    kg_text_add(&op->body, "\n");
    op->iterations += maker->iterations;
    maker->tensor_count++;
}

static void write_signature(struct random_maker *maker, struct kg_text *text, bool inputs)
{
    bool first = true;
    for (int i = 0; i < maker->tensor_count; i++) {
        const struct random_tensor *tensor = &maker->tensors[i];
        if (tensor->name[0] != (inputs ? 'x' : 'y'))
            continue;
        kg_text_format(text, "%s%s: %s%s[", first ? "" : ", ", tensor->name,
                       tensor->packed ? "packed " : "", tensor->type);
        for (int d = 0; d < tensor->rank; d++)
            kg_text_format(text, d ? ", %s" : "%s", maker->dims[tensor->dims[d]].text);
        kg_text_add(text, "]");
        first = false;
    }
}

void random_op_make(struct random_op *op, uint64_t seed, enum random_kind kind)
{
    static const char *const types[] = {"f32", "f16", "bf16", "f64", "f8e4m3", "f8e5m2"};
    struct random_maker maker = {.state = seed, .stable = kind == RANDOM_STABLE};
    struct kg_text *texts[] = {&op->head, &op->body, &op->text, &op->sizes};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        kg_text_cut(texts[i], 0);
    op->seed = seed;
    op->iterations = 0;
    make_inputs(&maker, make_dims(&maker, op));
    int locals = random_below(&maker, 3), outputs = 1 + random_below(&maker, 2);
    while (locals + outputs > 0) {
        bool output = outputs > 0 && (locals == 0 || random_chance(&maker, 30));
        make_statement(&maker, op, output);
        *(output ? &outputs : &locals) -= 1;
    }
    kg_text_format(&op->sizes, " T=%s", RANDOM_PICK(&maker, types));
    kg_text_add(&op->head, "op random(");
    write_signature(&maker, &op->head, true);
    kg_text_add(&op->head, ") -> (");
    write_signature(&maker, &op->head, false);
    kg_text_add(&op->head,
                ")\nparam S = 2, eps = 0.375\nwhere T in f32 f16 bf16 f64 f8e4m3 f8e5m2\n{\n");
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
