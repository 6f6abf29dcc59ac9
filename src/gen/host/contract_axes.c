// From positions, which count through all axes of a part, to the axes themselves.

#include "gen/host/contract_writer.h"

#include <stdio.h>
#include <string.h>

void kg_contract_extent(struct kg_text *text, const struct kg_index *axis)
{
    if (!axis->begin) {
        kg_emit_axis_end(text, axis);
        return;
    }
    kg_text_add(text, "kg_max_i64(0, ");
    kg_emit_axis_end(text, axis);
    kg_text_add(text, " - ");
    kg_emit_axis_begin(text, axis);
    kg_text_add(text, ")");
}

void kg_contract_open_axis(const struct kg_contract_writer *writer, int level, int axis)
{
    kg_text_format(writer->text, "%*sconst int64_t i%d = ", 4 * level, "", axis);
    if (writer->contract->nest->axes[axis]->begin) {
        kg_emit_axis_begin(writer->text, writer->contract->nest->axes[axis]);
        kg_text_add(writer->text, " + ");
    }
}

void kg_contract_axes(const struct kg_contract_writer *writer, int level,
                      enum kg_contract_role part, int count, const char *position)
{
    const struct kg_contract *contract = writer->contract;
    struct kg_text *text = writer->text;
    for (int i = 0; i < count; i++) {
        kg_contract_open_axis(writer, level, contract->axes[part][i]);
        if (contract->axis_count[part] == 1) {
            kg_text_format(text, "%s;\n", position);
            continue;
        }
        kg_text_format(text, strchr(position, ' ') ? "(%s)" : "%s", position);
        for (int j = i + 1; j < contract->axis_count[part]; j++) {
            kg_text_add(text, " / ");
            kg_contract_extent(text, contract->nest->axes[contract->axes[part][j]]);
        }
        if (i > 0) {
            kg_text_add(text, " % ");
            kg_contract_extent(text, contract->nest->axes[contract->axes[part][i]]);
        }
        kg_text_add(text, ";\n");
    }
}

void kg_contract_all_axes(const struct kg_contract_writer *writer, int level,
                          enum kg_contract_role part, const char *position)
{
    kg_contract_axes(writer, level, part, writer->contract->axis_count[part], position);
}

// part0: elements until the last axis ends or reaches a multiple of `cut`.
static void declare_length(const struct kg_contract_writer *writer,
                           const struct kg_contract_run *run)
{
    const struct kg_index *axis = writer->contract->nest->axes[run->axis];
    struct kg_text *text = writer->text;
    bool several = writer->contract->axis_count[run->part] > 1;
    kg_text_format(text, "%*spart0 = ", 4 * run->level, "");
    if (several) {
        kg_text_format(text, "kg_min_i64(%s - at2, ", run->length);
        kg_emit_axis_end(text, axis);
        kg_text_add(text, " - part1);\n");
    } else {
        kg_text_format(text, "kg_min_i64(%s - at2, %lld - part1 %% %lld);\n", run->length,
                       (long long)run->cut, (long long)run->cut);
    }
}

static void declare_first(const struct kg_contract_writer *writer,
                          const struct kg_contract_run *run, const char *position)
{
    const struct kg_index *axis = writer->contract->nest->axes[run->axis];
    struct kg_text *text = writer->text;
    kg_text_format(text, "%*sconst int64_t part1 = ", 4 * run->level, "");
    if (axis->begin) {
        kg_emit_axis_begin(text, axis);
        kg_text_add(text, " + ");
    }
    if (writer->contract->axis_count[run->part] > 1) {
        kg_text_format(text, "(%s) %% ", position);
        kg_contract_extent(text, axis);
    } else {
        kg_text_add(text, position);
    }
    kg_text_add(text, ";\n");
}

struct kg_contract_run kg_contract_open_run(const struct kg_contract_writer *writer, int level,
                                            enum kg_contract_role part, const char *from,
                                            const char *length, int64_t cut)
{
    const struct kg_contract *contract = writer->contract;
    int count = contract->axis_count[part];
    struct kg_contract_run run = {part,  from, length, cut, -1, count <= 1 && cut == 0,
                                  "at1", level};
    if (count > 0)
        run.axis = contract->axes[part][count - 1];
    if (run.whole) {
        if (count > 0)
            declare_first(writer, &run, from);
        return run;
    }
    char position[64];
    snprintf(position, sizeof position, "%s + at2", from);
    run.at = "at1 - at2";
    run.level++;
    kg_emit_line(writer->text, level, "for (int64_t at2 = 0, part0; at2 < %s; at2 += part0) {",
                 length);
    kg_contract_axes(writer, run.level, part, count - 1, position);
    declare_first(writer, &run, position);
    declare_length(writer, &run);
    return run;
}

int kg_contract_open_elements(const struct kg_contract_writer *writer,
                              const struct kg_contract_run *run)
{
    struct kg_text *text = writer->text;
    kg_text_add(text, "#pragma omp simd\n");
    if (run->whole)
        kg_emit_line(text, run->level, "for (int64_t at1 = 0; at1 < %s; at1++) {", run->length);
    else
        kg_emit_line(text, run->level, "for (int64_t at1 = at2; at1 < at2 + part0; at1++) {");
    if (run->axis >= 0)
        kg_emit_line(text, run->level + 1, "const int64_t i%d = part1 + %s;", run->axis, run->at);
    return run->level + 1;
}

void kg_contract_close_run(const struct kg_contract_writer *writer,
                           const struct kg_contract_run *run)
{
    if (!run->whole)
        kg_emit_line(writer->text, run->level - 1, "}");
}

void kg_contract_stride(struct kg_text *text, const struct kg_access *access, int axis)
{
    bool any = false;
    for (int dim = 0; dim < access->tensor->rank; dim++) {
        int64_t coefficient = access->map[dim].coefficient[axis];
        if (coefficient == 0)
            continue;
        kg_text_add(text, any ? " + " : "");
        if (coefficient != 1)
            kg_text_format(text, "%lld * ", (long long)coefficient);
        kg_emit_name(text, access->tensor->name);
        kg_text_format(text, "_s%d", dim);
        any = true;
    }
    if (!any)
        kg_text_add(text, "0");
}

void kg_contract_print_begin(void *user, struct kg_text *text, int axis)
{
    const struct kg_contract *contract = user;
    for (int i = 0; i < contract->axis_count[KG_CONTRACT_BATCH]; i++)
        if (contract->axes[KG_CONTRACT_BATCH][i] == axis) {
            kg_text_format(text, "i%d", axis);
            return;
        }
    kg_emit_axis_begin(text, contract->nest->axes[axis]);
}
