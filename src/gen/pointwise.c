// The family of element-wise formulas: a chain of nests over the same output axes, none of them a
// reduction. Values pass from nest to nest in registers; each element is read and written once.
//
// When tensors are contiguous, neighbouring axes that every tensor either walks together or leaves
// alone become one, so that most formulas are a single long loop. Items are blocks of the inner
// axis times the other axes. With `stream`, a short piece of the result is computed into a buffer
// in L1 and leaves by non-temporal stores, which do not read the line they overwrite: a third less
// traffic once outputs are larger than the last-level cache. With `tile`, two axes are walked in
// square tiles, for reads that are contiguous along another axis than the output (transposes).

#include "gen/emit.h"
#include "gen/families.h"

#include <string.h>

enum { BLOCK, STREAM, TILE, PARAMETERS };

struct pointwise {
    struct kg_text *text;
    const struct kg_group *group;
    const char *entry;
    struct kg_emit_names names;
    int axes;                    // of every nest
    int inner;                   // the axis of the inner loop; -1: a scalar formula
    int tiled;                   // the other axis of the tiles; -1: none
    bool merged[KG_MAX_INDICES]; // this axis is part of the next one
    int64_t block;
    int64_t stage;          // elements of a streamed piece
    bool stream;            // stores go to the stage
    const char *inner_name; // of the inner axis, where it is not "i<axis>"
    int level;
};

// What makes a chain

static const struct kg_nest *nest_at(const struct kg_group *group, int i)
{
    return group->problem->nests[group->first + i];
}

// The position in the group of the nest that makes `tensor`, if before `limit`; else -1.
static int producer(const struct kg_group *group, const struct kg_tensor *tensor, int limit)
{
    for (int i = 0; i < limit; i++)
        if (nest_at(group, i)->output == tensor)
            return i;
    return -1;
}

static bool is_bare(const struct kg_access *access, int dim, int axis)
{
    const struct kg_expr *subscript = access->map[dim].subscript;
    return subscript->kind == KG_EXPR_INDEX && subscript->index->id == axis;
}

static bool is_identity(const struct kg_nest *nest, const struct kg_access *access)
{
    if (access->read->pad || access->tensor->rank != nest->output_axes)
        return false;
    for (int dim = 0; dim < access->tensor->rank; dim++)
        if (!is_bare(access, dim, dim))
            return false;
    return true;
}

static bool same_axes(const struct kg_nest *a, const struct kg_nest *b)
{
    if (a->output_axes != b->output_axes)
        return false;
    for (int i = 0; i < a->output_axes; i++)
        if (!kg_size_same(a->axes[i]->end, b->axes[i]->end))
            return false;
    return true;
}

// Why nest `i` cannot be part of the chain; NULL when it can.
static const char *obstacle(const struct kg_group *group, int i)
{
    const struct kg_nest *nest = nest_at(group, i);
    if (nest->has_reduce)
        return "it reduces";
    if (!same_axes(nest, nest_at(group, 0)))
        return "its axes differ from those before";
    if (kg_dtypes[kg_emit_tensor_dtype(nest->output)].bits < 8)
        return "its elements share bytes";
    for (int j = 0; j < nest->access_count; j++)
        if (producer(group, nest->accesses[j].tensor, i) >= 0 &&
            !is_identity(nest, &nest->accesses[j]))
            return "it reads other elements of a value made in the same loop";
    return NULL;
}

// The family

static bool applicable(const struct kg_group *group, const struct kg_device_facts *facts,
                       enum kg_target target, struct kg_text *reason)
{
    (void)facts;
    if (target != KG_TARGET_HOST) {
        kg_text_add(reason, "it makes host code only");
        return false;
    }
    for (int i = 0; i < group->count; i++) {
        const char *why = obstacle(group, i);
        if (why) {
            kg_text_format(reason, "%s: %s", nest_at(group, i)->output->name, why);
            return false;
        }
    }
    return true;
}

// Does this access let axes `axis` and `axis + 1` become one? Either it uses neither, or it walks
// both in the order of memory.
static bool allows_merge(const struct kg_nest *nest, const struct kg_access *access, int axis)
{
    int first = -1, uses = 0;
    for (int dim = 0; dim < access->tensor->rank; dim++) {
        const struct kg_expr *subscript = access->map[dim].subscript;
        bool left = kg_expr_uses(subscript, axis, false);
        bool right = kg_expr_uses(subscript, axis + 1, false);
        uses += left + right;
        if (left && first < 0)
            first = dim;
    }
    if (uses == 0)
        return true;
    return uses == 2 && first >= 0 && first + 1 < access->tensor->rank && !access->read->pad &&
           is_bare(access, first, axis) && is_bare(access, first + 1, axis + 1) &&
           kg_size_same(nest->axes[axis + 1]->end, access->tensor->dims[first + 1]);
}

static bool can_merge(const struct kg_group *group, int axis)
{
    if (!group->problem->contiguous)
        return false;
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = nest_at(group, i);
        if (kg_expr_uses(nest->body, axis, false) || kg_expr_uses(nest->body, axis + 1, false))
            return false;
        for (int j = 0; j < nest->access_count; j++)
            if (producer(group, nest->accesses[j].tensor, i) < 0 &&
                !allows_merge(nest, &nest->accesses[j], axis))
                return false;
    }
    return true;
}

// The axis along which some read is contiguous, other than the inner one; -1: none.
static int crossing_axis(const struct kg_group *group)
{
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = nest_at(group, i);
        for (int j = 0; j < nest->access_count; j++) {
            const struct kg_access *access = &nest->accesses[j];
            int last = access->tensor->rank - 1;
            if (last < 1 || producer(group, access->tensor, i) >= 0)
                continue;
            bool inner = false;
            for (int dim = 0; dim < last; dim++)
                inner |= is_bare(access, dim, nest->output_axes - 1);
            for (int axis = 0; inner && axis < nest->output_axes - 1; axis++)
                if (is_bare(access, last, axis))
                    return axis;
        }
    }
    return -1;
}

static void space(const struct kg_group *group, const struct kg_device_facts *facts,
                  enum kg_target target, struct kg_space *space)
{
    (void)facts, (void)target;
    static const int64_t blocks[] = {16384, 4096, 65536, 262144, 1024};
    static const int64_t streams[] = {0, 64, 256, 1024};
    static const int64_t tiles[] = {0, 16, 32, 64};
    *space = (struct kg_space){0};
    kg_space_add(space, "block", 5, blocks);
    kg_space_add(space, "stream", group->problem->contiguous ? 4 : 1, streams);
    kg_space_add(space, "tile", crossing_axis(group) >= 0 ? 4 : 1, tiles);
}

// Elements of the inner loop after merging.
static int64_t inner_length(const struct kg_group *group)
{
    const struct kg_nest *nest = nest_at(group, 0);
    int axis = nest->output_axes - 1;
    int64_t length = axis >= 0 ? nest->extent[axis] : 1;
    while (axis > 0 && can_merge(group, axis - 1))
        length *= nest->extent[--axis];
    return length;
}

static bool valid(const struct kg_group *group, const struct kg_device_facts *facts,
                  enum kg_target target, const struct kg_config *config, struct kg_text *reason)
{
    (void)facts, (void)target;
    if (config->value[STREAM] && config->value[TILE]) {
        kg_text_add(reason, "tiles are narrower than a stream of stores needs");
        return false;
    }
    if (config->value[TILE] && config->value[BLOCK] != 4096) {
        kg_text_add(reason, "tiles cut the inner axis themselves: block does not count");
        return false;
    }
    int64_t length = inner_length(group);
    if (config->value[BLOCK] > 1024 && config->value[BLOCK] / 4 >= length && !config->value[TILE]) {
        kg_text_add(reason, "the block is longer than the inner axis");
        return false;
    }
    return true;
}

static int64_t written_bytes(const struct kg_group *group)
{
    int64_t bytes = 0;
    for (int i = 0; i < group->count; i++) {
        const struct kg_tensor *output = nest_at(group, i)->output;
        if (!kg_group_is_private(group, output))
            bytes += (int64_t)kg_dtype_bytes(kg_emit_tensor_dtype(output),
                                             (size_t)group->problem->layouts[output->id].elements);
    }
    return bytes;
}

static void guess(const struct kg_group *group, const struct kg_device_facts *facts,
                  enum kg_target target, struct kg_config *config)
{
    (void)target;
    *config = (struct kg_config){{16384, 0, 0}};
    int64_t length = inner_length(group);
    if (crossing_axis(group) >= 0)
        *config = (struct kg_config){{4096, 0, 32}};
    else if (group->problem->contiguous && length >= 256)
        config->value[STREAM] = written_bytes(group) > facts->cache[3] ? 64 : 0;
    while (config->value[BLOCK] > 1024 && config->value[BLOCK] / 4 >= length)
        config->value[BLOCK] /= 4;
}

static double bound(const struct kg_group *group, const struct kg_device_facts *facts,
                    enum kg_target target, const struct kg_config *config)
{
    (void)target, (void)config;
    return kg_group_bound(group, facts);
}

// Emission

// Bits of the dimensions that count in an offset: those of axes merged into the next do not.
static unsigned counted_dims(const struct pointwise *pointwise, const struct kg_access *access)
{
    unsigned dims = 0;
    for (int dim = 0; dim < access->tensor->rank; dim++) {
        bool skipped = false;
        for (int axis = 0; axis < pointwise->axes; axis++)
            skipped |= pointwise->merged[axis] && is_bare(access, dim, axis);
        dims |= (unsigned)!skipped << dim;
    }
    return dims;
}

static void print_value_name(struct kg_text *text, const struct pointwise *pointwise, int position)
{
    const struct kg_tensor *output = nest_at(pointwise->group, position)->output;
    if (kg_group_is_private(pointwise->group, output))
        kg_emit_name(text, output->name);
    else
        kg_text_format(text, "v%d", position);
}

static void print_axis(void *user, struct kg_text *text, int axis)
{
    const struct pointwise *pointwise = user;
    if (axis == pointwise->inner && pointwise->inner_name)
        kg_text_add(text, pointwise->inner_name);
    else
        kg_text_format(text, "i%d", axis);
}

// Reads of values made in the same loop are names; merged axes drop out of the other offsets.
static bool read_value(void *user, struct kg_text *text, const struct kg_access *access)
{
    const struct pointwise *pointwise = user;
    int made = producer(pointwise->group, access->tensor, pointwise->group->count);
    if (made >= 0) {
        print_value_name(text, pointwise, made);
        return true;
    }
    unsigned dims = counted_dims(pointwise, access);
    if (access->tensor->rank == 0 || dims == (1u << access->tensor->rank) - 1)
        return false;
    struct kg_text base = {0}, offset = {0};
    kg_emit_name(&base, access->tensor->name);
    kg_emit_offset_part(&offset, nest_at(pointwise->group, 0), access, dims, &pointwise->names);
    kg_emit_load_at(text, access->tensor, kg_text_string(&base), kg_text_string(&offset));
    text->failed |= base.failed | offset.failed;
    kg_text_free(&base);
    kg_text_free(&offset);
    return true;
}

// The length of an axis with all that merged into it: "P * D".
static void print_length(struct kg_text *text, const struct pointwise *pointwise, int axis)
{
    const struct kg_nest *nest = nest_at(pointwise->group, 0);
    int first = axis;
    while (first > 0 && pointwise->merged[first - 1])
        first--;
    for (int i = first; i <= axis; i++) {
        kg_text_add(text, i > first ? " * " : "");
        kg_emit_axis_end(text, nest->axes[i]);
    }
}

static unsigned output_dims(const struct pointwise *pointwise)
{
    unsigned dims = 0;
    for (int axis = 0; axis < pointwise->axes; axis++)
        dims |= (unsigned)!pointwise->merged[axis] << axis;
    return dims;
}

// The store of nest `position`: to its tensor, or with `stream` to its piece in the buffer.
static void emit_store(const struct pointwise *pointwise, int position, const char *value)
{
    const struct kg_nest *nest = nest_at(pointwise->group, position);
    struct kg_text base = {0}, offset = {0}, store = {0};
    if (pointwise->stream) {
        kg_text_format(&base, "stage%d", position);
        kg_text_add(&offset, "lane");
    } else {
        kg_emit_name(&base, nest->output->name);
        kg_emit_output_offset_part(&offset, nest, output_dims(pointwise), &pointwise->names);
    }
    kg_emit_store_at(&store, nest->output, kg_text_string(&base), kg_text_string(&offset),
                     nest->body->type, value);
    kg_emit_line(pointwise->text, pointwise->level, "%s", kg_text_string(&store));
    pointwise->text->failed |= base.failed | offset.failed | store.failed;
    kg_text_free(&base);
    kg_text_free(&offset);
    kg_text_free(&store);
}

static bool is_read_later(const struct kg_group *group, int position)
{
    for (int i = position + 1; i < group->count; i++)
        for (int j = 0; j < nest_at(group, i)->access_count; j++)
            if (nest_at(group, i)->accesses[j].tensor == nest_at(group, position)->output)
                return true;
    return false;
}

// All nests at one point of the axes.
static void emit_element(const struct pointwise *pointwise)
{
    const struct kg_group *group = pointwise->group;
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = nest_at(group, i);
        bool stored = !kg_group_is_private(group, nest->output), read = is_read_later(group, i);
        struct kg_text value = {0}, name = {0};
        kg_emit_value(&value, nest, nest->body, nest->body->type, &pointwise->names);
        print_value_name(&name, pointwise, i);
        // A name also keeps lines short.
        bool named = read || !stored || value.length > 60;
        if (named)
            kg_emit_line(pointwise->text, pointwise->level, "const %s %s = %s;",
                         kg_emit_type(nest->body->type), kg_text_string(&name),
                         kg_text_string(&value));
        if (!named) {
            kg_text_cut(&value, 0);
            kg_emit_expr(&value, nest, nest->body, &pointwise->names);
        }
        if (stored)
            emit_store(pointwise, i, kg_text_string(named ? &name : &value));
        pointwise->text->failed |= value.failed | name.failed;
        kg_text_free(&value);
        kg_text_free(&name);
    }
}

static void close_loops(struct pointwise *pointwise, int count)
{
    for (int i = 0; i < count; i++)
        kg_emit_line(pointwise->text, --pointwise->level, "}");
}

// Declares the buffer of every stored value, and where it goes.
static void emit_stages(const struct pointwise *pointwise)
{
    const struct kg_group *group = pointwise->group;
    for (int i = 0; i < group->count; i++) {
        const struct kg_nest *nest = nest_at(group, i);
        if (kg_group_is_private(group, nest->output))
            continue;
        kg_emit_line(pointwise->text, pointwise->level,
                     "%s stage%d[STAGE] __attribute__((aligned(KG_LINE)));",
                     kg_emit_tensor_storage(nest->output), i);
    }
}

// "y + i0 * y_s0 + i1" for nest `position`.
static void print_target(struct kg_text *text, const struct pointwise *pointwise, int position)
{
    const struct kg_nest *nest = nest_at(pointwise->group, position);
    kg_emit_name(text, nest->output->name);
    kg_text_add(text, " + ");
    kg_emit_output_offset_part(text, nest, output_dims(pointwise), &pointwise->names);
}

static int first_stored(const struct kg_group *group)
{
    int i = 0;
    while (kg_group_is_private(group, nest_at(group, i)->output))
        i++;
    return i;
}

// Pieces of STAGE elements, whole lines of the first output; what is left at either end is stored
// as usual.
static void emit_streamed(struct pointwise *pointwise)
{
    const struct kg_group *group = pointwise->group;
    struct kg_text *text = pointwise->text, target = {0};
    int inner = pointwise->inner, leader = first_stored(group);
    const char *storage = kg_emit_tensor_storage(nest_at(group, leader)->output);
    kg_emit_line(text, pointwise->level, "int64_t next = first;");
    kg_emit_line(text, pointwise->level++, "while (next < stop) {");
    pointwise->inner_name = "next";
    print_target(&target, pointwise, leader);
    pointwise->inner_name = NULL;
    kg_emit_line(text, pointwise->level, "const int64_t past = kg_past_line(%s, sizeof(%s));",
                 kg_text_string(&target), storage);
    kg_emit_line(text, pointwise->level++, "if (past > 0 || stop - next < STAGE) {");
    kg_emit_line(text, pointwise->level,
                 "const int64_t limit = kg_min_i64(stop, next + STAGE - past);");
    kg_emit_line(text, pointwise->level++, "for (int64_t i%d = next; i%d < limit; i%d++) {", inner,
                 inner, inner);
    pointwise->stream = false;
    emit_element(pointwise);
    pointwise->stream = true;
    close_loops(pointwise, 1);
    kg_emit_line(text, pointwise->level, "next = limit;");
    kg_emit_line(text, pointwise->level, "continue;");
    close_loops(pointwise, 1);
    emit_stages(pointwise);
    kg_emit_line(text, pointwise->level++, "for (int64_t lane = 0; lane < STAGE; lane++) {");
    kg_emit_line(text, pointwise->level, "const int64_t i%d = next + lane;", inner);
    emit_element(pointwise);
    close_loops(pointwise, 1);
    for (int i = 0; i < group->count; i++) {
        if (kg_group_is_private(group, nest_at(group, i)->output))
            continue;
        kg_text_cut(&target, 0);
        pointwise->inner_name = "next";
        print_target(&target, pointwise, i);
        pointwise->inner_name = NULL;
        kg_emit_line(text, pointwise->level, "%s(%s, stage%d, sizeof stage%d);",
                     i == leader ? "kg_stream_lines" : "kg_stream", kg_text_string(&target), i, i);
    }
    kg_emit_line(text, pointwise->level, "next += STAGE;");
    close_loops(pointwise, 1);
    text->failed |= target.failed;
    kg_text_free(&target);
}

static void emit_item(struct pointwise *pointwise)
{
    struct kg_text *text = pointwise->text;
    int inner = pointwise->inner, tiled = pointwise->tiled;
    if (pointwise->stream) {
        emit_streamed(pointwise);
        return;
    }
    if (tiled >= 0)
        kg_emit_line(text, pointwise->level++, "for (int64_t i%d = low; i%d < high; i%d++) {",
                     tiled, tiled, tiled);
    if (inner >= 0)
        kg_emit_line(text, pointwise->level++, "for (int64_t i%d = first; i%d < stop; i%d++) {",
                     inner, inner, inner);
    emit_element(pointwise);
    close_loops(pointwise, (tiled >= 0) + (inner >= 0));
}

// Where the item's part of an axis begins and ends; blocks of `size` (a name).
static void emit_range(struct pointwise *pointwise, int axis, const char *size, const char *low,
                       const char *high)
{
    struct kg_text length = {0};
    print_length(&length, pointwise, axis);
    const char *all = kg_text_string(&length);
    kg_emit_line(pointwise->text, pointwise->level,
                 "const int64_t %s = rest %% kg_ceildiv_i64(%s, %s) * %s;", low, all, size, size);
    kg_emit_line(pointwise->text, pointwise->level, "const int64_t %s = kg_min_i64(%s + %s, %s);",
                 high, low, size, all);
    kg_emit_line(pointwise->text, pointwise->level, "rest /= kg_ceildiv_i64(%s, %s);", all, size);
    pointwise->text->failed |= length.failed;
    kg_text_free(&length);
}

// No axis before this one, or they are all part of it.
static bool is_outermost(const struct pointwise *pointwise, int axis)
{
    for (int i = 0; i < axis; i++)
        if (!pointwise->merged[i])
            return false;
    return true;
}

static void emit_coordinates(struct pointwise *pointwise)
{
    struct kg_text *text = pointwise->text, length = {0};
    if (pointwise->inner < 0)
        return;
    kg_emit_line(text, pointwise->level, "int64_t rest = item;");
    emit_range(pointwise, pointwise->inner, "BLOCK", "first", "stop");
    for (int axis = pointwise->inner - 1; axis >= 0; axis--) {
        if (pointwise->merged[axis])
            continue;
        if (axis == pointwise->tiled) {
            emit_range(pointwise, axis, "BLOCK", "low", "high");
            continue;
        }
        if (is_outermost(pointwise, axis)) {
            kg_emit_line(text, pointwise->level, "const int64_t i%d = rest;", axis);
            break;
        }
        kg_text_cut(&length, 0);
        print_length(&length, pointwise, axis);
        bool product = axis > 0 && pointwise->merged[axis - 1];
        kg_emit_line(text, pointwise->level,
                     product ? "const int64_t i%d = rest %% (%s);"
                             : "const int64_t i%d = rest %% %s;",
                     axis, kg_text_string(&length));
        kg_emit_line(text, pointwise->level, product ? "rest /= (%s);" : "rest /= %s;",
                     kg_text_string(&length));
    }
    text->failed |= length.failed;
    kg_text_free(&length);
}

// What every function starts with.
static void emit_declarations(const struct pointwise *pointwise)
{
    kg_text_format(pointwise->text, "    enum { BLOCK = %lld, STAGE = %lld };\n",
                   (long long)pointwise->block, (long long)pointwise->stage);
    kg_emit_host_bindings(pointwise->text, pointwise->group, false);
}

static void emit_entries(const struct pointwise *pointwise)
{
    struct kg_text *text = pointwise->text;
    const char *entry = pointwise->entry;
    kg_text_format(text, "int64_t %s_items(const struct kg_host_call *call, int phase)\n{\n",
                   entry);
    emit_declarations(pointwise);
    kg_text_add(text, "    if (phase > 0)\n        return -1;\n    return ");
    const char *times = "";
    for (int axis = 0; axis < pointwise->axes; axis++) {
        bool cut = axis == pointwise->inner || axis == pointwise->tiled;
        if (pointwise->merged[axis])
            continue;
        kg_text_format(text, cut ? "%skg_ceildiv_i64(" : "%s", times);
        print_length(text, pointwise, axis);
        kg_text_add(text, cut ? ", BLOCK)" : "");
        times = " * ";
    }
    kg_text_add(text, pointwise->axes ? "" : "1");
    kg_text_add(text, ";\n}\n\n");
    kg_text_format(text, "int64_t %s_bytes(const struct kg_host_call *call, int kind)\n{\n", entry);
    emit_declarations(pointwise);
    kg_text_add(text, "    if (kind != KG_HOST_GRAIN)\n        return 0;\n"
                      "    return 1 + KG_HOST_WORK / (1");
    if (pointwise->inner >= 0) {
        kg_text_add(text, " + kg_min_i64(BLOCK, ");
        print_length(text, pointwise, pointwise->inner);
        kg_text_add(text, pointwise->tiled >= 0 ? ") * BLOCK" : ")");
    }
    kg_text_add(text, ");\n}\n\n");
}

static void emit_run(struct pointwise *pointwise)
{
    struct kg_text *text = pointwise->text;
    kg_text_format(text,
                   "void %s_run(const struct kg_host_call *call, int phase, int64_t begin, "
                   "int64_t end)\n{\n    (void)phase;\n",
                   pointwise->entry);
    emit_declarations(pointwise);
    pointwise->level = 1;
    kg_emit_line(text, pointwise->level++, "for (int64_t item = begin; item < end; item++) {");
    emit_coordinates(pointwise);
    emit_item(pointwise);
    close_loops(pointwise, 1);
    if (pointwise->stream)
        kg_emit_line(text, pointwise->level, "kg_stream_end();");
    kg_text_add(text, "}\n");
}

static bool emit(const struct kg_group *group, const struct kg_device_facts *facts,
                 enum kg_target target, const struct kg_config *config, const char *entry,
                 struct kg_text *source)
{
    struct kg_space values;
    space(group, facts, target, &values);
    bool stored = false;
    for (int i = 0; i < group->count; i++)
        stored |= !kg_group_is_private(group, nest_at(group, i)->output);
    kg_emit_host_opening(source, group, "pointwise", config, &values);
    if (!stored) { // nobody reads what it makes
        kg_emit_host_nothing(source, entry);
        return !source->failed;
    }
    struct pointwise pointwise = {
        .text = source,
        .group = group,
        .entry = entry,
        .axes = nest_at(group, 0)->output_axes,
        .tiled = config->value[TILE] ? crossing_axis(group) : -1,
        .block = config->value[config->value[TILE] ? TILE : BLOCK],
        .stage = config->value[STREAM],
        .stream = config->value[STREAM] > 0 && nest_at(group, 0)->output_axes > 0,
    };
    pointwise.names = (struct kg_emit_names){.user = &pointwise,
                                             .axis = print_axis,
                                             .contiguous = group->problem->contiguous,
                                             .read = read_value};
    pointwise.inner = pointwise.axes - 1;
    for (int axis = 0; axis + 1 < pointwise.axes; axis++)
        pointwise.merged[axis] = can_merge(group, axis);
    emit_entries(&pointwise);
    emit_run(&pointwise);
    return !source->failed;
}

const struct kg_family kg_family_pointwise = {
    .name = "pointwise",
    .summary = "element-wise formulas and gathers, chained in one loop",
    .applicable = applicable,
    .space = space,
    .valid = valid,
    .guess = guess,
    .bound = bound,
    .emit = emit,
};
