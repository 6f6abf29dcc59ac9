// Fills tensors with values of a class. The elements of a large tensor are taken from a table of
// drawn values, at places that are hashes of the element's number: drawing a value takes about a
// hundred nanoseconds, taking one from the table less than three.

#include "verify/inputs.h"

#include "verify/gate.h"
#include "verify/input_values.h"
#include "verify/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_BITS 16
#define TABLE_LENGTH ((size_t)1 << TABLE_BITS)
#define HASHED_AT_ONCE (64 / TABLE_BITS)       // entries that one random number selects
#define TABLE_FROM ((int64_t)16 << TABLE_BITS) // elements of a tensor that make a table worth it
#define RUN 256                                // elements that are selected, then copied
#define MOST_SCALARS 2                         // elements of a tensor
#define MOST_SELECTED 4096 // special elements of a tensor of which few elements are read
#define MOST_HIDDEN 24     // and of one whose elements other values may hide
// Special values of one tensor alone are negative, then positive; where other values may hide an
// element, one of them in two rounds, a few in two more; where few elements are read, both in a
// third.
#define SIGNS 2
#define HIDDEN_ROUNDS 4
#define SELECTED_ROUNDS 3
#define ROUNDS (HIDDEN_ROUNDS * SELECTED_ROUNDS) // until all come again

const char *const kg_input_class_names[KG_INPUT_CLASS_COUNT] = {
    [KG_INPUT_NORMAL] = "normal values",
    [KG_INPUT_ZERO] = "zeros",
    [KG_INPUT_DENORMAL] = "denormals",
    [KG_INPUT_TINY] = "denormals beside normal values",
    [KG_INPUT_HUGE] = "huge values",
    [KG_INPUT_NAN] = "some NaN",
    [KG_INPUT_INFINITE] = "some infinities",
    [KG_INPUT_ROWS] = "rows of infinities and NaN",
    [KG_INPUT_TIES] = "many equal values",
    [KG_INPUT_HALVES] = "halves between narrower floats",
    [KG_INPUT_WHOLE] = "small whole numbers",
    [KG_INPUT_LIMITS] = "limits of integers",
    [KG_INPUT_OUTSIDE] = "indices outside",
    [KG_INPUT_LARGE] = "some huge values",
    [KG_INPUT_CLOSE] = "values far from zero and close together",
};

static bool reaches_infinity(const struct kg_range *range)
{
    return !range->given || isinf(range->low) || isinf(range->high);
}

bool kg_inputs_class_applies(const struct kg_op *op, enum kg_input_class class)
{
    int floats = 0, integers = 0, indices = 0, searched = 0, narrowed = 0, others = 0;
    int unlimited = 0, infinite = 0;
    for (int i = 0; i < op->input_count; i++) {
        enum kg_dtype dtype = op->tensors[i]->type.dtype;
        struct kg_input_uses uses;
        kg_input_uses_find(op, NULL, i, &uses);
        bool is_float = kg_dtypes[dtype].is_float;
        floats += is_float;
        indices += uses.is_index;
        others += !is_float && !uses.is_index;
        unlimited += is_float && !op->goal.ranges[i].given;
        infinite += is_float && reaches_infinity(&op->goal.ranges[i]);
        integers += !is_float && !uses.is_index && !kg_dtype_is_truth(dtype);
        searched += uses.searched != 0;
        narrowed += uses.narrower != 0;
    }
    switch (class) {
    case KG_INPUT_NORMAL:
        return true;
    case KG_INPUT_ZERO:
        return floats + others > 0;
    case KG_INPUT_HUGE:
    case KG_INPUT_TIES:
    case KG_INPUT_WHOLE:
        return floats + integers > 0;
    case KG_INPUT_TINY:
        return floats > 1;
    case KG_INPUT_NAN:
        return unlimited > 0;
    case KG_INPUT_INFINITE:
        return infinite > 0;
    case KG_INPUT_ROWS:
        return searched > 0;
    case KG_INPUT_HALVES:
        return narrowed > 0;
    case KG_INPUT_LIMITS:
        return integers > 0;
    case KG_INPUT_OUTSIDE:
        return indices > 0;
    default: // denormals, a few huge values, close ones
        return floats > 0;
    }
}

// ---- One element after the other

static void draw(const struct kg_input_source *source, uint64_t number, struct kg_random *random,
                 void *data, size_t at)
{
    if (kg_dtypes[source->dtype].is_float)
        kg_dtype_store(source->dtype, data, at, kg_input_real(source, random));
    else
        kg_dtype_store_integer(source->dtype, data, at, kg_input_integer(source, number, random));
}

// Moves to the next element of the layout, in row-major order.
static void step(const struct kg_layout *layout, int rank, int64_t *place)
{
    for (int d = rank - 1; d >= 0 && ++place[d] == layout->shape[d]; d--)
        place[d] = 0;
}

static size_t offset_of(const struct kg_layout *layout, int rank, const int64_t *place)
{
    int64_t at = 0;
    for (int d = 0; d < rank; d++)
        at += place[d] * layout->stride[d];
    return (size_t)at;
}

static void fill_small(const struct kg_input_source *source, const struct kg_layout *layout,
                       int rank, int64_t count, struct kg_random *random, void *data)
{
    int64_t place[KG_MAX_RANK] = {0};
    for (int64_t i = 0; i < count; i++) {
        draw(source, (uint64_t)i, random, data, offset_of(layout, rank, place));
        step(layout, rank, place);
    }
}

// ---- By a table

struct table {
    const struct kg_input_source *source;
    uint64_t seed;
    void *values; // TABLE_LENGTH elements as they are stored, 4-bit ones in bytes; NULL: no memory
};

// One entry, from random numbers of its own: it can be drawn without the others.
static void draw_entry(const struct table *table, size_t entry, void *data, size_t at)
{
    struct kg_random random = kg_random_make(table->seed, entry);
    draw(table->source, entry, &random, data, at);
}

static void make_table(struct table *table)
{
    enum kg_dtype dtype = table->source->dtype;
    bool packed = kg_dtype_is_packed(dtype);
    table->values = malloc(packed ? TABLE_LENGTH : kg_dtype_bytes(dtype, TABLE_LENGTH));
    for (size_t i = 0; i < TABLE_LENGTH && table->values; i++) {
        unsigned char pair = 0;
        draw_entry(table, i, packed ? &pair : table->values, packed ? 0 : i);
        if (packed)
            ((unsigned char *)table->values)[i] = pair;
    }
}

// The entries of elements `first` and following; `first` is a multiple of HASHED_AT_ONCE.
static void select_entries(uint64_t seed, int64_t first, uint16_t entries[RUN])
{
    struct kg_random random = kg_random_at(seed, (uint64_t)first / HASHED_AT_ONCE);
    for (int i = 0; i < RUN; i += HASHED_AT_ONCE) {
        uint64_t bits = kg_random_next(&random);
        for (int part = 0; part < HASHED_AT_ONCE; part++)
            entries[i + part] = (uint16_t)(bits >> part * TABLE_BITS);
    }
}

#define COPY_AS(type)                                                                              \
    for (int64_t i = 0; i < count; i++)                                                            \
    ((type *)data)[at + i * stride] = ((const type *)table->values)[entries[i]]

static void copy_entries(const struct table *table, const uint16_t *entries, int64_t count,
                         void *data, int64_t at, int64_t stride)
{
    switch (table->values ? kg_dtypes[table->source->dtype].bits : 0) {
    case 8:
        COPY_AS(uint8_t);
        return;
    case 16:
        COPY_AS(uint16_t);
        return;
    case 32:
        COPY_AS(uint32_t);
        return;
    case 64:
        COPY_AS(uint64_t);
        return;
    case 4: {
        const unsigned char *values = table->values;
        if (stride == 1 && at % 2 == 0 && count % 2 == 0) {
            for (int64_t i = 0; i < count; i += 2)
                ((unsigned char *)data)[(at + i) / 2] =
                    (unsigned char)(values[entries[i]] | values[entries[i + 1]] << 4);
            return;
        }
        for (int64_t i = 0; i < count; i++)
            kg_dtype_store_integer(table->source->dtype, data, (size_t)(at + i * stride),
                                   values[entries[i]]);
        return;
    }
    default:
        for (int64_t i = 0; i < count; i++)
            draw_entry(table, entries[i], data, (size_t)(at + i * stride));
    }
}

// Row by row; a contiguous tensor is one row. Rows begin at numbers that the hash takes together.
static void fill_large(const struct table *table, const struct kg_layout *layout, int rank,
                       int64_t count, void *data)
{
    bool single = layout->contiguous || rank == 0;
    int64_t length = single ? count : layout->shape[rank - 1];
    int64_t stride = single ? 1 : layout->stride[rank - 1];
    int64_t room = (length + RUN - 1) / RUN * RUN, place[KG_MAX_RANK] = {0};
    uint16_t entries[RUN];
    for (int64_t row = 0; row * length < count; row++) {
        int64_t base = single ? 0 : (int64_t)offset_of(layout, rank - 1, place);
        int64_t end = count - row * length < length ? count - row * length : length;
        for (int64_t i = 0; i < end; i += RUN) {
            select_entries(table->seed, row * room + i, entries);
            copy_entries(table, entries, end - i < RUN ? end - i : RUN, data, base + i * stride,
                         stride);
        }
        step(layout, rank - 1, place);
    }
}

// ---- Special values over what is there

// `sign` is 1 or -1, or 0 for either.
static double special(const struct kg_input_source *source, int sign, struct kg_random *random)
{
    int drawn = kg_random_next(random) & 1 ? 1 : -1;
    sign = sign ? sign : drawn;
    if (source->class == KG_INPUT_LARGE) // two of them may be added up
        return sign * kg_dtypes[source->dtype].largest * kg_random_between(random, 0.26, 0.45);
    return source->class == KG_INPUT_NAN ? NAN : sign * (double)INFINITY;
}

static int count_floats(const struct kg_op *op)
{
    int floats = 0;
    for (int i = 0; i < op->input_count; i++)
        floats += kg_dtypes[op->tensors[i]->type.dtype].is_float;
    return floats;
}

uint64_t kg_inputs_seed(const struct kg_op *op, uint64_t seed, int turn)
{
    uint64_t turns = ((uint64_t)count_floats(op) + 1) * ROUNDS;
    return seed - seed % turns + (uint64_t)turn % turns;
}

// Which tensor of floats is special alone; as many as there are: all are, a little.
static uint64_t turn_of(const struct kg_op *op, uint64_t seed)
{
    return seed % ((uint64_t)count_floats(op) + 1);
}

static uint64_t round_of(const struct kg_op *op, uint64_t seed)
{
    return seed / ((uint64_t)count_floats(op) + 1) % ROUNDS;
}

static bool is_alone(const struct kg_op *op, const struct kg_input_source *source, uint64_t seed)
{
    return turn_of(op, seed) == (uint64_t)source->before;
}

static int rounds_of(const struct kg_input_uses *uses)
{
    return uses->selected ? SELECTED_ROUNDS : uses->hidden ? HIDDEN_ROUNDS : SIGNS;
}

// An infinity shows in a result only where no infinity of the other sign meets it, and where no
// search or sum has made everything NaN: special values of one tensor alone have one sign.
static int special_sign(const struct kg_op *op, const struct kg_input_source *source, uint64_t seed)
{
    uint64_t round = round_of(op, seed) % (uint64_t)rounds_of(&source->uses);
    if (!is_alone(op, source, seed) || (source->uses.selected && round == 2))
        return 0;
    return round % SIGNS == 0 ? -1 : 1;
}

int kg_inputs_special_turns(const struct kg_op *op, bool selective, int *turns)
{
    int count = 0, floats = 0, all = count_floats(op);
    for (int i = 0; i < op->input_count; i++) {
        if (!kg_dtypes[op->tensors[i]->type.dtype].is_float)
            continue;
        struct kg_input_uses uses;
        kg_input_uses_find(op, NULL, i, &uses);
        int first = !selective || uses.selected ? 0 : SIGNS; // no round, if it is not hidden either
        for (int round = first; round < rounds_of(&uses); round++)
            turns[count++] = floats + round * (all + 1);
        floats++;
    }
    if (!selective)
        turns[count++] = all;
    return count;
}

static int64_t at_least_one(int64_t count, int64_t most)
{
    return count < 1 ? 1 : count > most ? most : count;
}

// How many elements of the input are special: see kg_inputs_seed. A few are at least one, and
// beyond that at most one in sixteen, so that most results stay ordinary. Where few elements are
// read, or count, more of them must be special for one to show.
static int64_t count_special(const struct kg_op *op, const struct kg_input_source *source,
                             uint64_t seed, int64_t elements)
{
    if (source->uses.selected && is_alone(op, source, seed))
        return at_least_one(elements / 4, MOST_SELECTED);
    if (source->class == KG_INPUT_NAN || turn_of(op, seed) == (uint64_t)count_floats(op))
        return at_least_one(elements / 16, 6);
    if (!is_alone(op, source, seed))
        return 0;
    bool several = source->uses.hidden && round_of(op, seed) % HIDDEN_ROUNDS >= SIGNS;
    return several ? at_least_one(elements / 16, MOST_HIDDEN) : 1;
}

static void sprinkle(const struct kg_input_source *source, const struct kg_layout *layout, int rank,
                     int64_t count, int sign, struct kg_random *random, void *data)
{
    for (int64_t i = 0; i < count && layout->elements > 0; i++) {
        int64_t place[KG_MAX_RANK];
        for (int d = 0; d < rank; d++)
            place[d] = (int64_t)kg_random_below(random, (uint64_t)layout->shape[d]);
        double value = special(source, sign, random);
        if (!kg_input_allowed(source, value))
            value = -value;
        if (kg_input_allowed(source, value))
            kg_dtype_store(source->dtype, data, offset_of(layout, rank, place), value);
    }
}

// Every other row, along the dimensions that are searched, holds one value: in turn the infinity
// where the search begins, NaN, and the other infinity. A tensor of one row has the first.
static void fill_rows(const struct kg_input_source *source, const struct kg_layout *layout,
                      int rank, void *data)
{
    const double beginning = source->uses.for_least ? INFINITY : -INFINITY;
    const double values[] = {beginning, NAN, -beginning};
    int64_t place[KG_MAX_RANK] = {0};
    for (int64_t i = 0; i < layout->elements; i++, step(layout, rank, place)) {
        int64_t row = 0;
        for (int d = 0; d < rank; d++)
            if (!(source->uses.searched >> d & 1))
                row = row * layout->shape[d] + place[d];
        if (row % 2 == 0 && kg_input_allowed(source, values[row / 2 % 3]))
            kg_dtype_store(source->dtype, data, offset_of(layout, rank, place),
                           values[row / 2 % 3]);
    }
}

// Scalars and the like have zeros of both signs, in turn.
static void fill_zeros(const struct kg_input_source *source, const struct kg_layout *layout,
                       int rank, uint64_t turn, void *data)
{
    int64_t place[KG_MAX_RANK] = {0};
    for (int64_t i = 0; i < layout->elements; i++, step(layout, rank, place)) {
        bool negative = (turn + (uint64_t)source->before + (uint64_t)i) % 2 == 0;
        if (kg_input_allowed(source, 0))
            kg_dtype_store(source->dtype, data, offset_of(layout, rank, place),
                           negative ? -0.0 : 0.0);
    }
}

// The first `count` elements.
static void fill(const struct kg_problem *problem, int tensor, enum kg_input_class class,
                 uint64_t seed, int64_t count, void *data)
{
    const struct kg_layout *layout = &problem->layouts[tensor];
    int rank = problem->op->tensors[tensor]->rank;
    struct kg_random random = kg_random_make(seed, (uint64_t)tensor);
    struct kg_input_source source = kg_input_source_make(problem, tensor, class);
    if (class == KG_INPUT_CLOSE) {
        bool huge = (turn_of(problem->op, seed) + (uint64_t)source.before) % 2 == 0;
        source.centre =
            kg_input_confine(&source, kg_input_centre(source.dtype, huge, &random), &random);
    }
    source.is_ordinary = (turn_of(problem->op, seed) + (uint64_t)source.before) % 2 == 1;
    if (layout->elements < TABLE_FROM) {
        fill_small(&source, layout, rank, count, &random, data);
    } else {
        struct table table = {.source = &source, .seed = kg_random_next(&random)};
        make_table(&table);
        fill_large(&table, layout, rank, count, data);
        free(table.values);
    }
    if (!kg_dtypes[source.dtype].is_float)
        return;
    if (class == KG_INPUT_NAN || class == KG_INPUT_INFINITE || class == KG_INPUT_LARGE)
        sprinkle(&source, layout, rank, count_special(problem->op, &source, seed, layout->elements),
                 special_sign(problem->op, &source, seed), &random, data);
    if (class == KG_INPUT_ZERO && layout->elements <= MOST_SCALARS)
        fill_zeros(&source, layout, rank, turn_of(problem->op, seed), data);
    // Rows of all factors at once would make every result NaN.
    bool in_turn = !source.uses.combined || is_alone(problem->op, &source, seed);
    if (class == KG_INPUT_ROWS && source.uses.searched && in_turn)
        fill_rows(&source, layout, rank, data);
}

void kg_inputs_fill(const struct kg_problem *problem, int tensor, enum kg_input_class class,
                    uint64_t seed, void *data)
{
    fill(problem, tensor, class, seed, problem->layouts[tensor].elements, data);
}

void kg_verify_fill(const struct kg_problem *problem, int tensor, uint64_t seed, void *data)
{
    kg_inputs_fill(problem, tensor, KG_INPUT_NORMAL, seed, data);
}

void kg_verify_fill_some(const struct kg_problem *problem, int tensor, uint64_t seed, int64_t count,
                         void *data)
{
    int64_t all = problem->layouts[tensor].elements;
    fill(problem, tensor, KG_INPUT_NORMAL, seed, count < all ? count : all, data);
}
