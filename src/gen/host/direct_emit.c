// The functions of a direct kernel for the host: how many items there are, and the loop over them.

#include "gen/host/direct.h"

static void emit_declarations(const struct kg_direct *direct)
{
    kg_text_format(direct->text, "    enum { BLOCK = %lld, LANES = %lld };\n",
                   (long long)direct->block, (long long)direct->lanes);
    kg_emit_host_bindings(direct->text, direct->group, false);
}

static void emit_total(const struct kg_direct *direct)
{
    const struct kg_nest *nest = direct->nest;
    struct kg_text *text = direct->text;
    kg_text_format(text, "static int64_t %s_total(const struct kg_host_call *call)\n{\n",
                   direct->entry);
    emit_declarations(direct);
    kg_text_add(text, "    return ");
    const char *times = "";
    for (int i = 0; i < nest->output_axes; i++) {
        if (i == direct->scanned)
            continue;
        kg_text_format(text, i == direct->inner ? "%skg_ceildiv_i64(" : "%s", times);
        kg_emit_axis_end(text, nest->axes[i]);
        kg_text_add(text, i == direct->inner ? ", BLOCK)" : "");
        times = " * ";
    }
    kg_text_add(text, *times ? "" : "1");
    kg_text_add(text, ";\n}\n\n");
}

static void emit_entries(const struct kg_direct *direct)
{
    struct kg_text *text = direct->text;
    const char *entry = direct->entry;
    bool serial = kg_direct_is_packed(direct->nest->output); // neighbours share bytes
    kg_text_format(text, "int64_t %s_items(const struct kg_host_call *call, int phase)\n{\n",
                   entry);
    kg_text_format(text,
                   serial ? "    (void)call;\n    return phase == 0 ? 1 : -1;\n}\n\n"
                          : "    return phase == 0 ? %s_total(call) : -1;\n}\n\n",
                   entry);
    kg_text_format(
        text, "int64_t %s_bytes(const struct kg_host_call *call, int kind)\n{\n    (void)call;\n",
        entry);
    emit_declarations(direct);
    if (direct->window)
        kg_window_emit_bytes(direct);
    kg_text_add(text, "    if (kind != KG_HOST_GRAIN)\n        return 0;\n");
    kg_text_add(text, "    const int64_t length = "); // evaluations of the body for one item
    const char *times = "";
    for (int i = 0; i < direct->nest->axis_count; i++) {
        if (i < direct->nest->output_axes && i != direct->inner && i != direct->scanned)
            continue;
        kg_text_format(text, i == direct->inner ? "%skg_min_i64(BLOCK, " : "%s", times);
        kg_emit_axis_end(text, direct->nest->axes[i]);
        kg_text_add(text, i == direct->inner ? ")" : "");
        times = " * ";
    }
    kg_text_add(text, *times ? "" : "1");
    kg_text_add(text, ";\n    return 1 + KG_HOST_WORK / kg_max_i64(1, length);\n}\n\n");
}

static void emit_coordinates(struct kg_direct *direct)
{
    const struct kg_nest *nest = direct->nest;
    struct kg_text *text = direct->text, end = {0};
    int outermost = direct->scanned == 0;
    if (nest->output_axes > (direct->scanned >= 0))
        kg_emit_line(text, direct->level, "int64_t rest = item;");
    if (direct->inner >= 0) {
        kg_emit_axis_end(&end, nest->axes[direct->inner]);
        const char *length = kg_text_string(&end);
        kg_emit_line(text, direct->level, "const int64_t blocks = kg_ceildiv_i64(%s, BLOCK);",
                     length);
        kg_emit_line(text, direct->level, "const int64_t first = rest %% blocks * BLOCK;");
        kg_emit_line(text, direct->level, "const int64_t stop = kg_min_i64(first + BLOCK, %s);",
                     length);
        kg_emit_line(text, direct->level, "rest /= blocks;");
    }
    for (int i = nest->output_axes - 1; i >= 0; i--) {
        if (i == direct->scanned || i == direct->inner)
            continue;
        if (i == outermost) {
            kg_emit_line(text, direct->level, "const int64_t i%d = rest;", i);
            break;
        }
        kg_text_cut(&end, 0);
        kg_emit_axis_end(&end, nest->axes[i]);
        kg_emit_line(text, direct->level, "const int64_t i%d = rest %% %s;", i,
                     kg_text_string(&end));
        kg_emit_line(text, direct->level, "rest /= %s;", kg_text_string(&end));
    }
    text->failed |= end.failed;
    kg_text_free(&end);
}

static void emit_run(struct kg_direct *direct)
{
    struct kg_text *text = direct->text;
    const struct kg_nest *nest = direct->nest;
    kg_text_format(text,
                   "void %s_run(const struct kg_host_call *call, int phase, int64_t begin, "
                   "int64_t end)\n{\n    (void)phase;\n",
                   direct->entry);
    if (kg_direct_is_packed(nest->output))
        kg_text_format(text, "    begin = 0, end = %s_total(call); // neighbours share bytes\n",
                       direct->entry);
    emit_declarations(direct);
    if (direct->window)
        kg_window_emit_buffers(direct);
    direct->level = 1;
    kg_emit_line(text, direct->level++, "for (int64_t item = begin; item < end; item++) {");
    emit_coordinates(direct);
    if (direct->scanned >= 0) {
        kg_direct_emit_scan(direct);
    } else if (direct->lanes > 1) {
        kg_direct_emit_lanes(direct);
    } else if (direct->inner >= 0) {
        kg_emit_line(text, direct->level++, "for (int64_t i%d = first; i%d < stop; i%d++) {",
                     direct->inner, direct->inner, direct->inner);
        kg_direct_emit_element(direct);
        kg_direct_close_loops(direct, 1);
    } else {
        kg_direct_emit_element(direct);
    }
    kg_direct_close_loops(direct, 1);
    kg_text_add(text, "}\n");
}

void kg_direct_emit(struct kg_direct *direct)
{
    kg_direct_complete(direct);
    emit_total(direct);
    emit_entries(direct);
    emit_run(direct);
}
