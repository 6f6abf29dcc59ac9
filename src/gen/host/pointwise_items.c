// Items of the pointwise family: blocks of the inner axis times the other axes, and how a range of
// them is walked.
//
// The coordinates of the first item are divided out of its number; from there on they are counted.
// A division of 64 bits takes up to 20 cycles, and an item with three axes had three of them: as
// much as copying 200 elements.

#include "gen/host/pointwise.h"

// The length of an axis with all that merged into it: "P * D".
static void print_length(struct kg_text *text, const struct kg_pointwise *pointwise, int axis)
{
    const struct kg_nest *nest = kg_group_nest(pointwise->group, 0);
    int first = axis;
    while (first > 0 && pointwise->merged[first - 1])
        first--;
    for (int i = first; i <= axis; i++) {
        kg_text_add(text, i > first ? " * " : "");
        kg_emit_axis_end(text, nest->axes[i]);
    }
}

// Does the axis belong to the numbers of items?
static bool is_counted(const struct kg_pointwise *pointwise, int axis)
{
    return !pointwise->merged[axis];
}

static bool is_cut(const struct kg_pointwise *pointwise, int axis)
{
    return axis == pointwise->inner || axis == pointwise->tiled;
}

// The counted axis before this one; -1: it is the outermost.
static int find_outer(const struct kg_pointwise *pointwise, int axis)
{
    do
        axis--;
    while (axis >= 0 && !is_counted(pointwise, axis));
    return axis;
}

// Steps of an axis among the items: "kg_ceildiv_i64(P * D, BLOCK)".
static void print_count(struct kg_text *text, const struct kg_pointwise *pointwise, int axis)
{
    kg_text_add(text, is_cut(pointwise, axis) ? "kg_ceildiv_i64(" : "");
    print_length(text, pointwise, axis);
    kg_text_add(text, is_cut(pointwise, axis) ? ", BLOCK)" : "");
}

void kg_pointwise_emit_declarations(const struct kg_pointwise *pointwise)
{
    kg_text_format(pointwise->text, "    enum { BLOCK = %lld, STAGE = %lld };\n",
                   (long long)pointwise->block, (long long)pointwise->stage);
    if (pointwise->ways > 1)
        kg_text_format(pointwise->text, "    enum { WAYS = %lld };\n", (long long)pointwise->ways);
    if (pointwise->step > 1)
        kg_text_format(pointwise->text, "    enum { STEP = %lld };\n", (long long)pointwise->step);
    kg_emit_host_bindings(pointwise->text, pointwise->group, false);
}

void kg_pointwise_emit_entries(const struct kg_pointwise *pointwise)
{
    struct kg_text *text = pointwise->text;
    const char *entry = pointwise->entry;
    kg_text_format(text, "int64_t %s_items(const struct kg_host_call *call, int phase)\n{\n",
                   entry);
    kg_pointwise_emit_declarations(pointwise);
    kg_text_add(text, "    if (phase > 0)\n        return -1;\n    return ");
    const char *times = "";
    for (int axis = 0; axis < pointwise->axes; axis++) {
        if (!is_counted(pointwise, axis))
            continue;
        kg_text_add(text, times);
        print_count(text, pointwise, axis);
        times = " * ";
    }
    kg_text_add(text, pointwise->axes ? "" : "1");
    kg_text_add(text, ";\n}\n\n");
    kg_text_format(
        text, "int64_t %s_bytes(const struct kg_host_call *call, int kind)\n{\n    (void)call;\n",
        entry);
    kg_pointwise_emit_declarations(pointwise);
    kg_text_add(text, "    if (kind != KG_HOST_GRAIN)\n        return 0;\n"
                      "    return 1 + KG_HOST_WORK / (1");
    if (pointwise->inner >= 0) {
        kg_text_add(text, " + kg_min_i64(BLOCK, ");
        print_length(text, pointwise, pointwise->inner);
        kg_text_add(text, pointwise->tiled >= 0 ? ") * BLOCK" : ")");
    }
    kg_text_add(text, ");\n}\n\n");
}

// The coordinate that items count: "i2", or "block3" of an axis in blocks.
static const char *prefix_of(const struct kg_pointwise *pointwise, int axis)
{
    return is_cut(pointwise, axis) ? "block" : "i";
}

// Coordinates of the item with the number `rest`, which is used up.
static void emit_start(struct kg_pointwise *pointwise)
{
    struct kg_text *text = pointwise->text, count = {0};
    for (int axis = pointwise->inner; axis >= 0; axis = find_outer(pointwise, axis)) {
        const char *prefix = prefix_of(pointwise, axis);
        if (find_outer(pointwise, axis) < 0) {
            kg_emit_line(text, pointwise->level, "int64_t %s%d = rest;", prefix, axis);
            break;
        }
        kg_text_cut(&count, 0);
        print_count(&count, pointwise, axis);
        kg_emit_line(text, pointwise->level, "const int64_t count%d = %s;", axis,
                     kg_text_string(&count));
        kg_emit_line(text, pointwise->level, "int64_t %s%d = rest %% count%d;", prefix, axis, axis);
        kg_emit_line(text, pointwise->level, "rest /= count%d;", axis);
    }
    text->failed |= count.failed;
    kg_text_free(&count);
}

// Where the item's block of an axis begins and ends.
static void emit_range(struct kg_pointwise *pointwise, int axis, const char *low, const char *high)
{
    struct kg_text length = {0};
    print_length(&length, pointwise, axis);
    kg_emit_line(pointwise->text, pointwise->level, "const int64_t %s = block%d * BLOCK;", low,
                 axis);
    kg_emit_line(pointwise->text, pointwise->level,
                 "const int64_t %s = kg_min_i64(%s + BLOCK, %s);", high, low,
                 kg_text_string(&length));
    pointwise->text->failed |= length.failed;
    kg_text_free(&length);
}

void kg_pointwise_open_items(struct kg_pointwise *pointwise)
{
    if (pointwise->inner >= 0) {
        kg_emit_line(pointwise->text, pointwise->level, "int64_t rest = begin;");
        emit_start(pointwise);
    }
    kg_emit_line(pointwise->text, pointwise->level++,
                 "for (int64_t left = end - begin; left > 0; left--) {");
    if (pointwise->inner >= 0)
        emit_range(pointwise, pointwise->inner, "first", "stop");
    if (pointwise->tiled >= 0)
        emit_range(pointwise, pointwise->tiled, "low", "high");
}

void kg_pointwise_close_items(struct kg_pointwise *pointwise)
{
    struct kg_text *text = pointwise->text;
    for (int axis = pointwise->inner; axis >= 0; axis = find_outer(pointwise, axis)) {
        const char *prefix = prefix_of(pointwise, axis);
        if (find_outer(pointwise, axis) < 0) {
            kg_emit_line(text, pointwise->level, "%s%d++;", prefix, axis);
            break;
        }
        kg_emit_line(text, pointwise->level, "if (++%s%d < count%d)", prefix, axis, axis);
        kg_emit_line(text, pointwise->level + 1, "continue;");
        kg_emit_line(text, pointwise->level, "%s%d = 0;", prefix, axis);
    }
    kg_emit_line(text, --pointwise->level, "}");
}

// Is the axis a coordinate of items beside the inner one?
static bool is_outer(const struct kg_pointwise *pointwise, int axis)
{
    return is_counted(pointwise, axis) && !is_cut(pointwise, axis);
}

// Items of a range that lie a share of it apart, so that the hardware follows several runs of
// memory at once: it stops fetching ahead at the end of each page, and waits for the first lines of
// the next one while the other runs go on.
void kg_pointwise_open_ways(struct kg_pointwise *pointwise)
{
    struct kg_text *text = pointwise->text;
    const int inner = pointwise->inner, level = pointwise->level;
    kg_emit_line(text, level, "const int64_t share = kg_ceildiv_i64(end - begin, WAYS);");
    kg_emit_line(text, level, "for (int64_t turn = 0; turn < share; turn++) {");
    for (int axis = 0; axis < inner; axis++)
        if (is_outer(pointwise, axis))
            kg_emit_line(text, level + 1, "int64_t at%d[WAYS];", axis);
    kg_emit_line(text, level + 1, "int64_t nexts[WAYS], stops[WAYS];");
    kg_emit_line(text, level + 1, "for (int way = 0; way < WAYS; way++) {");
    kg_emit_line(text, level + 2, "const int64_t item = begin + way * share + turn;");
    kg_emit_line(text, level + 2, "int64_t rest = kg_min_i64(item, end - 1);");
    pointwise->level = level + 2;
    emit_start(pointwise);
    emit_range(pointwise, inner, "first", "stop");
    for (int axis = 0; axis < inner; axis++)
        if (is_outer(pointwise, axis))
            kg_emit_line(text, level + 2, "at%d[way] = i%d;", axis, axis);
    kg_emit_line(text, level + 2, "nexts[way] = item < end ? first : stop;");
    kg_emit_line(text, level + 2, "stops[way] = stop;");
    kg_emit_line(text, level + 1, "}");
    kg_emit_line(text, level + 1, "for (bool more = true; more;) {");
    kg_emit_line(text, level + 2, "more = false;");
    kg_emit_line(text, level + 2, "for (int way = 0; way < WAYS; way++) {");
    pointwise->level = level + 3;
    kg_emit_line(text, level + 3, "int64_t next = nexts[way];");
    kg_emit_line(text, level + 3, "const int64_t stop = stops[way];");
    for (int axis = 0; axis < inner; axis++)
        if (is_outer(pointwise, axis))
            kg_emit_line(text, level + 3, "const int64_t i%d = at%d[way];", axis, axis);
    kg_emit_line(text, level + 3, "if (next >= stop)");
    kg_emit_line(text, level + 4, "continue;");
}

void kg_pointwise_close_ways(struct kg_pointwise *pointwise)
{
    kg_emit_line(pointwise->text, pointwise->level, "nexts[way] = next;");
    kg_emit_line(pointwise->text, pointwise->level, "more |= next < stop;");
    for (int i = 0; i < 3; i++)
        kg_emit_line(pointwise->text, --pointwise->level, "}");
}
