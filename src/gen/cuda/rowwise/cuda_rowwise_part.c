// What a pass of the rowwise family for CUDA does with a vector of a thread: what it reads,
// computes, folds and stores. cuda_rowwise_emit.c writes what stands around it.

#include "gen/cuda/cuda_frame.h"
#include "gen/cuda/rowwise/cuda_rowwise.h"

#include <stdio.h>

bool kg_cuda_rowwise_is_private(const struct kg_cuda_rowwise_writer *writer, int position)
{
    return kg_group_is_private(writer->row->group,
                               kg_group_nest(writer->row->group, position)->output);
}

bool kg_cuda_rowwise_is_kept(const struct kg_cuda_rowwise_writer *writer, int position)
{
    return writer->plan->keep && writer->row->kept[position];
}

// Is the part at hand of stream `i` in registers?
bool kg_cuda_rowwise_in_registers(const struct kg_cuda_rowwise_writer *writer, int i)
{
    return writer->holding && !writer->stored && writer->streams.items[i].held;
}

// Behind the name of what each row at hand has.
const char *kg_cuda_rowwise_of_row(const struct kg_cuda_rowwise_writer *writer)
{
    return kg_cuda_rowwise_several(writer->plan) ? "[nth]" : "";
}

void kg_cuda_rowwise_name(struct kg_cuda_rowwise_writer *writer, int i, const char *format)
{
    snprintf(writer->names[i], sizeof writer->names[i], format, i);
    writer->values.locals[i] = writer->names[i];
}

static void emit_value(struct kg_cuda_rowwise_writer *writer, int i, enum kg_type type)
{
    struct kg_code *code = &writer->code;
    kg_code_begin(code);
    kg_text_format(code->text, "const %s v%d = ", kg_fold_type(type), i);
    kg_values_print(code->text, &writer->values, i, type);
    kg_text_add(code->text, ";");
    kg_code_end(code);
}

bool kg_cuda_rowwise_is_fold(const struct kg_cuda_rowwise_writer *writer, int i, int pass)
{
    return writer->row->role[i] == KG_ROWWISE_REDUCE && writer->row->pass[i] == pass;
}

static void emit_step(struct kg_cuda_rowwise_writer *writer, int i)
{
    struct kg_code *code = &writer->code;
    struct kg_fold fold = kg_fold_of(kg_group_nest(writer->row->group, i));
    char total[24], value[16];
    // Long sums go into the total part by part, and what that rounds away is kept beside it.
    const char *into = fold.is_float_sum && !writer->holding ? "more" : "acc";
    emit_value(writer, i, fold.lane);
    if (fold.is_argument) {
        kg_code_begin(code);
        kg_text_add(code->text, "if (kg_take_better<");
        kg_cuda_fold_values(code->text, &fold);
        kg_text_format(code->text, ">(acc%d, v%d))", i, i);
        kg_code_end(code);
        kg_code_line(code, "    spot%d = lane;", i);
        return;
    }
    const char *place = fold.is_float_sum && !writer->holding ? "" : kg_cuda_rowwise_of_row(writer);
    snprintf(total, sizeof total, "%s%d%s", into, i, place);
    snprintf(value, sizeof value, "v%d", i);
    kg_code_begin(code);
    kg_text_format(code->text, "%s = ", total);
    kg_fold_combine(code->text, &fold, fold.lane, total, value);
    kg_text_add(code->text, ";");
    kg_code_end(code);
}

static void emit_column(struct kg_cuda_rowwise_writer *writer, int i)
{
    const struct kg_nest *nest = kg_group_nest(writer->row->group, i);
    struct kg_code *code = &writer->code;
    emit_value(writer, i, nest->body->type);
    kg_cuda_rowwise_name(writer, i, "v%d");
    if (writer->holding && kg_cuda_rowwise_is_kept(writer, i))
        kg_code_line(code, "row%d[part][lane] = v%d;", i, i);
    if (kg_cuda_rowwise_is_private(writer, i))
        return;
    char base[32], value[16];
    snprintf(base, sizeof base, "place%d.at", i);
    snprintf(value, sizeof value, "v%d", i);
    kg_code_begin(code);
    kg_emit_store_at(code->text, nest->output, base, "lane", nest->body->type, value);
    kg_code_end(code);
}

// What reads of columns that an earlier pass made give in this one.
void kg_cuda_rowwise_name_columns(struct kg_cuda_rowwise_writer *writer, int pass)
{
    for (int i = 0; i < writer->row->group->count; i++) {
        if (writer->row->role[i] != KG_ROWWISE_COLUMN)
            continue;
        writer->values.locals[i] = NULL;
        if (writer->holding && kg_cuda_rowwise_is_kept(writer, i) && writer->row->pass[i] < pass)
            kg_cuda_rowwise_name(writer, i, "row%d[part][lane]");
    }
}

static bool is_column_output(const struct kg_cuda_rowwise_writer *writer, int i, int pass)
{
    return writer->row->role[i] == KG_ROWWISE_COLUMN && writer->row->pass[i] == pass &&
           !kg_cuda_rowwise_is_private(writer, i);
}

static void print_target(struct kg_cuda_rowwise_writer *writer, int i)
{
    kg_emit_name(writer->code.text, kg_group_nest(writer->row->group, i)->output->name);
    kg_text_add(writer->code.text, " + ");
    kg_values_offset(writer->code.text, &writer->values, i);
}

static void emit_column_stores(struct kg_cuda_rowwise_writer *writer, int pass)
{
    struct kg_code *code = &writer->code;
    for (int i = 0; i < writer->row->group->count; i++) {
        if (!is_column_output(writer, i, pass))
            continue;
        kg_code_open(code, "if constexpr (WHOLE)");
        kg_cuda_rowwise_axes(writer, "first");
        kg_code_begin(code);
        kg_text_add(code->text, "kg_store_vec(");
        print_target(writer, i);
        kg_text_format(code->text, ", place%d);", i);
        kg_code_end(code);
        kg_code_outdent(code);
        kg_code_line(code, "} else {");
        kg_code_indent(code);
        kg_cuda_rowwise_lanes(writer);
        kg_code_begin(code);
        kg_text_add(code->text, "*(");
        print_target(writer, i);
        kg_text_format(code->text, ") = place%d.at[lane];", i);
        kg_code_end(code);
        kg_code_close(code);
        kg_code_close(code);
    }
}

// Of every sum of floats of the pass: declares the variable `declare`, or (NULL) adds the part to
// the total.
void kg_cuda_rowwise_long_sums(struct kg_cuda_rowwise_writer *writer, int pass, const char *declare)
{
    for (int i = 0; i < writer->row->group->count; i++) {
        if (!kg_cuda_rowwise_is_fold(writer, i, pass))
            continue;
        struct kg_fold fold = kg_fold_of(kg_group_nest(writer->row->group, i));
        if (!fold.is_float_sum)
            continue;
        if (declare)
            kg_code_line(&writer->code, "%s %s%d = 0;", kg_emit_type(fold.lane), declare, i);
        else
            kg_code_line(&writer->code, "kg_two_sum(&acc%d%s, &lost%d, more%d);", i,
                         kg_cuda_rowwise_of_row(writer), i, i);
    }
}

void kg_cuda_rowwise_totals(struct kg_cuda_rowwise_writer *writer, int pass)
{
    // Only rows that are not held have such totals, and these come one at a time.
    const char *place = kg_cuda_rowwise_several(writer->plan) ? "[0]" : "";
    for (int i = 0; i < writer->row->group->count; i++)
        if (kg_cuda_rowwise_is_fold(writer, i, pass) &&
            kg_fold_of(kg_group_nest(writer->row->group, i)).is_float_sum)
            kg_code_line(&writer->code, "acc%d%s = kg_two_value(acc%d%s, lost%d);", i, place, i,
                         place, i);
}

// Of every place that the pass looks for: where in the vector it is.
static void emit_spots(struct kg_cuda_rowwise_writer *writer, int pass, bool declare)
{
    for (int i = 0; i < writer->row->group->count; i++) {
        if (!kg_cuda_rowwise_is_fold(writer, i, pass) ||
            !kg_fold_of(kg_group_nest(writer->row->group, i)).is_argument)
            continue;
        if (declare) {
            kg_code_line(&writer->code, "int spot%d = -1;", i);
            continue;
        }
        kg_code_line(&writer->code, "if (spot%d >= 0)", i);
        kg_code_line(&writer->code, "    at%d = (PLACE)first + spot%d * step;", i, i);
    }
}

static void emit_staged_read(struct kg_cuda_rowwise_writer *writer, int i, const char *to)
{
    struct kg_code *code = &writer->code;
    kg_code_open(code, "if constexpr (HELD)");
    kg_code_line(code, "%s = kg_load_vec<VECTOR>(copy%d[part * THREADS + threadIdx.x].at);", to, i);
    kg_code_outdent(code);
    kg_code_line(code, "} else {");
    kg_code_indent(code);
    kg_cuda_rowwise_fill(writer, i, to);
    kg_code_close(code);
}

// Loads what a pass reads at `first`: of what moves with the row, of what all rows share, or both.
static void emit_reads(struct kg_cuda_rowwise_writer *writer, int pass, bool own, bool shared)
{
    struct kg_code *code = &writer->code;
    for (int i = 0; i < writer->streams.count; i++) {
        const struct kg_cuda_stream *stream = &writer->streams.items[i];
        if (!stream->uses[pass] || kg_cuda_rowwise_in_registers(writer, i) ||
            !(stream->held ? own : shared))
            continue;
        char to[32];
        snprintf(to, sizeof to, "from%d", i);
        if (writer->batch > 1 && writer->holding && !writer->stored) {
            kg_code_line(code, "const kg_vec<%s, VECTOR> from%d = batch%d[part - begin];",
                         kg_emit_tensor_storage(stream->access->tensor), i, i);
            continue;
        }
        kg_code_line(code, "kg_vec<%s, VECTOR> from%d;",
                     kg_emit_tensor_storage(stream->access->tensor), i);
        if (writer->stored && stream->held)
            kg_code_line(code, "from%d = kg_load_vec<VECTOR>(slots%d[part * THREADS].at);", i, i);
        else if (writer->holding && kg_cuda_stream_is_staged(writer->plan, stream))
            emit_staged_read(writer, i, to);
        else
            kg_cuda_rowwise_fill(writer, i, to);
    }
}

// What a pass does with the vector at `first`.
void kg_cuda_rowwise_part(struct kg_cuda_rowwise_writer *writer, int pass)
{
    const struct kg_rowwise_plan *row = writer->row;
    struct kg_code *code = &writer->code;
    const bool several = kg_cuda_rowwise_several(writer->plan);
    emit_reads(writer, pass, !several, true);
    kg_cuda_rowwise_open_rows(writer, true);
    if (several)
        emit_reads(writer, pass, true, false);
    for (int i = 0; i < row->group->count; i++)
        if (is_column_output(writer, i, pass))
            kg_code_line(code, "kg_vec<%s, VECTOR> place%d;",
                         kg_emit_tensor_storage(kg_group_nest(writer->row->group, i)->output), i);
    if (!writer->holding)
        kg_cuda_rowwise_long_sums(writer, pass, "more");
    emit_spots(writer, pass, true);
    kg_cuda_rowwise_name_columns(writer, pass);
    kg_cuda_rowwise_lanes(writer);
    for (int i = 0; i < row->group->count; i++) {
        if (row->pass[i] != pass || row->role[i] == KG_ROWWISE_SCALAR)
            continue;
        if (row->role[i] == KG_ROWWISE_COLUMN)
            emit_column(writer, i);
        else
            emit_step(writer, i);
    }
    kg_code_close(code);
    emit_spots(writer, pass, false);
    if (!writer->holding)
        kg_cuda_rowwise_long_sums(writer, pass, NULL);
    emit_column_stores(writer, pass);
    kg_cuda_rowwise_close_rows(writer);
}
