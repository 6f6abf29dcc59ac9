// The code of work on rows: see rowwise.c for the strategy.

#include "gen/host/halves.h"
#include "gen/host/rowwise.h"

#include <stdio.h>
#include <string.h>

// Float lanes are folded into the total after so many steps: chains of roundings stay short.
enum { STEPS = 16 };
// Columns between two prefetches. Short blocks spread the requests to memory: 256 moved 8% more
// bytes a second than 1024 on a Zen 3.
enum { BLOCK = 256 };
// Columns of a streamed piece of the output: a whole number of lines, whatever the dtype.
enum { PIECE = 64 };
// Elements that are worth handing to another thread.
enum { GRAIN_ELEMENTS = 16384 };

// Names of values and row buffers, and how values are spelled in the loop at hand.
struct writer {
    struct kg_code *code;
    const struct kg_rowwise_plan *plan;
    struct kg_values values;
    char names[KG_MAX_NESTS][64];
    bool staged; // outputs go to their piece of a stream
    bool whole;  // f16 of a step of LANES is converted at once
    struct kg_halves halves;
};

static bool is_private(const struct kg_rowwise_plan *plan, int position)
{
    return kg_group_is_private(plan->group, kg_group_nest(plan->group, position)->output);
}

static bool is_buffered(const struct kg_rowwise_plan *plan, int position)
{
    return plan->keep && plan->kept[position];
}

static bool is_column_output(const struct kg_rowwise_plan *plan, int position)
{
    return plan->role[position] == KG_ROWWISE_COLUMN && !is_private(plan, position);
}

static bool has_fold(const struct kg_rowwise_plan *plan, int pass, bool float_sums)
{
    for (int i = 0; i < plan->group->count; i++)
        if (plan->role[i] == KG_ROWWISE_REDUCE && plan->pass[i] == pass &&
            (!float_sums || kg_fold_of(kg_group_nest(plan->group, i)).is_float_sum))
            return true;
    return false;
}

static bool has_places(const struct kg_rowwise_plan *plan, int pass)
{
    for (int i = 0; i < plan->group->count; i++)
        if (plan->role[i] == KG_ROWWISE_REDUCE && plan->pass[i] == pass &&
            kg_fold_of(kg_group_nest(plan->group, i)).is_argument)
            return true;
    return false;
}

static void define(struct writer *writer, const char *name, int first, int last)
{
    kg_code_begin(writer->code);
    kg_text_format(writer->code->text, "const int64_t %s = ", name);
    kg_axes_product(writer->code->text, writer->plan->shape, first, last);
    kg_text_add(writer->code->text, ";");
    kg_code_end(writer->code);
}

static void emit_frame(struct writer *writer)
{
    const struct kg_rowwise_plan *plan = writer->plan;
    kg_code_line(writer->code, "enum { LANES = %lld, STEPS = %d, BLOCK = %d, PIECE = %d };",
                 (long long)plan->lanes, STEPS, BLOCK, PIECE);
    kg_emit_host_bindings(writer->code->text, plan->group, false);
    define(writer, "rows", 0, plan->rows - 1);
    define(writer, "columns", plan->rows, plan->last);
    define(writer, "length", plan->run, plan->last);
}

static const char *buffer_type(const struct kg_rowwise_plan *plan, int position)
{
    return kg_emit_type(kg_group_nest(plan->group, position)->body->type);
}

static void emit_items(struct writer *writer)
{
    struct kg_code *code = writer->code;
    const struct kg_rowwise_plan *plan = writer->plan;
    kg_code_line(code, "int64_t %s_items(const struct kg_host_call *call, int phase)", plan->entry);
    kg_code_line(code, "{");
    kg_code_indent(code);
    emit_frame(writer);
    kg_code_line(code, "return phase == 0 ? rows : -1;");
    kg_code_close(code);
    kg_text_add(code->text, "\n");
    kg_code_line(code, "int64_t %s_bytes(const struct kg_host_call *call, int kind)", plan->entry);
    kg_code_line(code, "{");
    kg_code_indent(code);
    emit_frame(writer);
    kg_code_line(code, "if (kind == KG_HOST_GRAIN)");
    kg_code_line(code, "    return 1 + %d / (columns + 1);", GRAIN_ELEMENTS);
    kg_code_line(code, "const int64_t padded = (columns + 63) / 64 * 64;");
    kg_code_line(code, "int64_t bytes = 0;");
    char space[32] = "padded";
    if (plan->behind)
        snprintf(space, sizeof space, "2 * (padded + %d)", KG_ROWWISE_APART);
    for (int i = 0; i < plan->group->count; i++)
        if (is_buffered(plan, i))
            kg_code_line(code, "bytes += %s * (int64_t)sizeof(%s);", space, buffer_type(plan, i));
    kg_code_line(code, "return kind == KG_HOST_SCRATCH ? bytes : 0;");
    kg_code_close(code);
    kg_text_add(code->text, "\n");
}

static void emit_buffers(struct writer *writer)
{
    struct kg_code *code = writer->code;
    const struct kg_rowwise_plan *plan = writer->plan;
    kg_code_line(code, "const int64_t padded = (columns + 63) / 64 * 64;");
    kg_code_line(code, "char *scratch = call->scratch;");
    for (int i = 0; i < plan->group->count; i++) {
        if (is_buffered(plan, i)) {
            const char *type = buffer_type(plan, i);
            kg_code_line(code, "%s *const restrict row%d = (%s *)scratch;", type, i, type);
            kg_code_line(code, "scratch += padded * (int64_t)sizeof(%s);", type);
        }
    }
}

// "const float v3 = ...", and from then on v3 is what reads of it give.
static void emit_value(struct writer *writer, int i, enum kg_type type)
{
    struct kg_code *code = writer->code;
    kg_code_begin(code);
    kg_text_format(code->text, "const %s v%d = ", kg_fold_type(type), i);
    kg_values_print(code->text, &writer->values, i, type);
    kg_text_add(code->text, ";");
    kg_code_end(code);
}

static void name_value(struct writer *writer, int i, const char *format)
{
    snprintf(writer->names[i], sizeof writer->names[i], format, i);
    writer->values.locals[i] = writer->names[i];
}

static void emit_store(struct writer *writer, int i, enum kg_type type)
{
    char value[16];
    snprintf(value, sizeof value, "v%d", i);
    kg_code_begin(writer->code);
    kg_values_store(writer->code->text, &writer->values, i, type, value);
    kg_code_end(writer->code);
}

static void emit_scalars(struct writer *writer, int pass)
{
    const struct kg_rowwise_plan *plan = writer->plan;
    for (int i = 0; i < plan->group->count; i++) {
        if (plan->role[i] != KG_ROWWISE_SCALAR || plan->pass[i] != pass)
            continue;
        enum kg_type type = kg_group_nest(plan->group, i)->body->type;
        emit_value(writer, i, type);
        name_value(writer, i, "v%d");
        if (!is_private(plan, i))
            emit_store(writer, i, type);
    }
}

static void emit_column(struct writer *writer, int i)
{
    const struct kg_rowwise_plan *plan = writer->plan;
    const struct kg_nest *nest = kg_group_nest(plan->group, i);
    struct kg_code *code = writer->code;
    emit_value(writer, i, nest->body->type);
    name_value(writer, i, "v%d");
    if (is_buffered(plan, i))
        kg_code_line(code, "row%d[%si%d] = v%d;", i, plan->run > plan->rows ? "offset + " : "",
                     plan->last, i);
    if (is_private(plan, i))
        return;
    if (writer->whole && kg_halves_are_stored(plan->group, i, plan->last)) {
        kg_code_line(code, "narrow%d[lane] = v%d;", i, i);
        return;
    }
    if (!writer->staged) {
        emit_store(writer, i, nest->body->type);
        return;
    }
    char base[16], value[16];
    snprintf(base, sizeof base, "part%d", i);
    snprintf(value, sizeof value, "v%d", i);
    kg_code_begin(code);
    kg_emit_store_at(code->text, nest->output, base, "lane", nest->body->type, value);
    kg_code_end(code);
}

// What reads of earlier nests give inside the loop over columns of a pass.
static void name_columns(struct writer *writer, int pass)
{
    const struct kg_rowwise_plan *plan = writer->plan;
    for (int i = 0; i < plan->group->count; i++) {
        if (plan->role[i] != KG_ROWWISE_COLUMN)
            continue;
        writer->values.locals[i] = NULL;
        if (!is_buffered(plan, i) || plan->pass[i] >= pass)
            continue;
        snprintf(writer->names[i], sizeof writer->names[i], "row%d[%si%d]", i,
                 plan->run > plan->rows ? "offset + " : "", plan->last);
        writer->values.locals[i] = writer->names[i];
    }
}

// "y + i0 * y_s0 + block"
static void print_target(struct kg_text *text, const struct writer *writer, int i)
{
    struct kg_values values = writer->values;
    values.axes[writer->plan->last] = "block";
    kg_emit_name(text, kg_group_nest(writer->plan->group, i)->output->name);
    kg_text_add(text, " + ");
    kg_values_offset(text, &values, i);
}

static bool is_in_loop(const struct kg_rowwise_plan *plan, int i, int pass)
{
    return plan->pass[i] == pass && plan->role[i] != KG_ROWWISE_SCALAR;
}

// Does the pass read or write f16 in the order of the lanes?
static bool moves_halves(struct writer *writer, int pass)
{
    const struct kg_rowwise_plan *plan = writer->plan;
    bool any = false;
    name_columns(writer, pass);
    for (int i = 0; i < plan->group->count; i++)
        any |= is_in_loop(plan, i, pass) && (kg_halves_are_read(&writer->values, i, plan->last) ||
                                             (plan->role[i] == KG_ROWWISE_COLUMN &&
                                              kg_halves_are_stored(plan->group, i, plan->last)));
    return any;
}

static bool narrows(const struct writer *writer, int i, int pass)
{
    const struct kg_rowwise_plan *plan = writer->plan;
    return plan->role[i] == KG_ROWWISE_COLUMN && plan->pass[i] == pass &&
           kg_halves_are_stored(plan->group, i, plan->last);
}

// The f16 that a whole step reads, converted, and room for what it writes.
static void emit_halves_before(struct writer *writer, int pass)
{
    const struct kg_rowwise_plan *plan = writer->plan;
    writer->halves = (struct kg_halves){.group = plan->group, .axis = plan->last};
    for (int i = 0; i < plan->group->count; i++) {
        if (is_in_loop(plan, i, pass))
            kg_halves_fill(writer->code, &writer->halves, &writer->values, i, "block", "LANES");
        if (narrows(writer, i, pass))
            kg_code_line(writer->code, "float narrow%d[LANES] __attribute__((aligned(KG_LINE)));",
                         i);
    }
    writer->values.read = kg_halves_read;
    writer->values.user = &writer->halves;
}

static void emit_halves_after(struct writer *writer, int pass)
{
    writer->values.read = NULL;
    for (int i = 0; i < writer->plan->group->count; i++) {
        if (!narrows(writer, i, pass))
            continue;
        kg_code_begin(writer->code);
        kg_text_format(writer->code->text, "kg_narrow_f16(narrow%d, ", i);
        print_target(writer->code->text, writer, i);
        kg_text_add(writer->code->text, ", LANES);");
        kg_code_end(writer->code);
    }
}

// The columns block + lane, for lanes below `lanes`.
static void emit_step(struct writer *writer, int pass, const char *lanes)
{
    const struct kg_rowwise_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    writer->whole = strcmp(lanes, "LANES") == 0 && moves_halves(writer, pass);
    name_columns(writer, pass);
    if (writer->whole)
        emit_halves_before(writer, pass);
    kg_code_line(code, "#pragma omp simd");
    kg_code_open(code, "for (int64_t lane = 0; lane < %s; lane++)", lanes);
    kg_code_line(code, "const int64_t i%d = block + lane;", plan->last);
    for (int i = 0; i < plan->group->count; i++) {
        if (plan->pass[i] != pass)
            continue;
        if (plan->role[i] == KG_ROWWISE_COLUMN) {
            emit_column(writer, i);
        } else if (plan->role[i] == KG_ROWWISE_REDUCE) {
            struct kg_fold fold = kg_fold_of(kg_group_nest(plan->group, i));
            emit_value(writer, i, fold.lane);
            kg_fold_step(code, &fold, i);
        }
    }
    kg_code_close(code);
    if (writer->whole)
        emit_halves_after(writer, pass);
    writer->whole = false;
}

static void for_folds(struct writer *writer, int pass, bool float_sums,
                      void (*emit)(struct kg_code *code, const struct kg_fold *fold, int k,
                                   int lanes))
{
    const struct kg_rowwise_plan *plan = writer->plan;
    for (int i = 0; i < plan->group->count; i++) {
        struct kg_fold fold;
        if (plan->role[i] != KG_ROWWISE_REDUCE || plan->pass[i] != pass)
            continue;
        fold = kg_fold_of(kg_group_nest(plan->group, i));
        if (!float_sums || fold.is_float_sum)
            emit(writer->code, &fold, i, (int)plan->lanes);
    }
}

static void flush_fold(struct kg_code *code, const struct kg_fold *fold, int k, int lanes)
{
    kg_fold_flush(code, fold, k, lanes, "length", "0");
}

static void emit_block_lanes(struct writer *writer, int pass)
{
    struct kg_code *code = writer->code;
    kg_code_line(code, "int64_t block = start;");
    kg_code_open(code, "for (; block + LANES <= stop; block += LANES)");
    kg_code_line(code, "KG_STEP();");
    emit_step(writer, pass, "LANES");
    if (has_places(writer->plan, pass))
        kg_code_line(code, "step++;");
    kg_code_close(code);
    kg_code_open(code, "if (block < stop)");
    emit_step(writer, pass, "stop - block");
    kg_code_close(code);
    if (!has_fold(writer->plan, pass, true))
        return;
    kg_code_line(code, "steps += (stop - start + LANES - 1) / LANES;");
    kg_code_open(code, "if (steps >= STEPS)");
    for_folds(writer, pass, true, flush_fold);
    for_folds(writer, pass, true, kg_fold_reset_lanes);
    kg_code_line(code, "steps = 0;");
    kg_code_close(code);
}

// The row after this one is fetched block by block: all of it in the second pass, or one half in
// each of the first two.
static void emit_prefetch(struct writer *writer, int pass, const char *from, const char *count)
{
    const struct kg_rowwise_plan *plan = writer->plan;
    struct kg_values values = writer->values;
    bool seen[KG_MAX_NESTS + KG_MAX_TENSORS] = {false};
    bool halves = plan->prefetch == KG_ROWWISE_HALVES;
    char next[32], place[48], half[48];
    if (plan->prefetch == KG_ROWWISE_NEVER || pass > 1 || (pass == 0 && !halves))
        return;
    snprintf(next, sizeof next, "(i%d + 1)", plan->rows - 1);
    if (halves)
        snprintf(place, sizeof place, pass == 0 ? "%s / 2" : "(length + %s) / 2", from);
    snprintf(half, sizeof half, "%s / 2", count);
    values.axes[plan->rows - 1] = next;
    values.axes[plan->last] = halves ? place : from;
    kg_code_open(writer->code, "if (item + 1 < end)");
    for (int i = 0; i < plan->group->count; i++)
        if (plan->role[i] != KG_ROWWISE_SCALAR)
            kg_values_prefetch(writer->code, &values, i, plan->rows - 1, plan->last,
                               halves ? half : count, seen);
    kg_code_close(writer->code);
}

// Outputs go past the caches in pieces of a size known to the compiler, which keeps them in
// registers. Pieces start with a line of the first output; what is left at either end of the row is
// stored as usual.
static void emit_streamed(struct writer *writer, int pass)
{
    const struct kg_rowwise_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    int leader = -1;
    kg_code_line(code, "int64_t block = 0;");
    kg_code_open(code, "while (block < length)");
    for (int i = 0; i < plan->group->count; i++) {
        if (!is_column_output(plan, i) || plan->pass[i] != pass)
            continue;
        const char *storage = kg_emit_tensor_storage(kg_group_nest(plan->group, i)->output);
        if (leader < 0) {
            leader = i;
            kg_code_begin(code);
            kg_text_add(code->text, "const int64_t past = kg_past_line(");
            print_target(code->text, writer, i);
            kg_text_format(code->text, ", sizeof(%s));", storage);
            kg_code_end(code);
        }
        kg_code_line(code, "_Alignas(KG_LINE) %s part%d[PIECE];", storage, i);
    }
    kg_code_open(code, "if (past > 0 || length - block < PIECE)");
    kg_code_line(code, "const int64_t lanes = kg_min_i64(length - block, PIECE - past);");
    emit_step(writer, pass, "lanes");
    kg_code_line(code, "block += lanes;");
    kg_code_line(code, "continue;");
    kg_code_close(code);
    emit_prefetch(writer, pass, "block", "PIECE");
    writer->staged = true;
    emit_step(writer, pass, "PIECE");
    writer->staged = false;
    for (int i = 0; i < plan->group->count; i++) {
        if (!is_column_output(plan, i) || plan->pass[i] != pass)
            continue;
        kg_code_begin(code);
        kg_text_add(code->text, i == leader ? "kg_stream_lines(" : "kg_stream(");
        print_target(code->text, writer, i);
        kg_text_format(code->text, ", part%d, sizeof part%d);", i, i);
        kg_code_end(code);
    }
    kg_code_line(code, "block += PIECE;");
    kg_code_close(code);
}

// Column axes before the run have loops of their own.
static void open_columns(struct writer *writer)
{
    const struct kg_rowwise_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    if (plan->run == plan->rows)
        return;
    define(writer, "count", plan->rows, plan->run - 1);
    kg_code_open(code, "for (int64_t first = 0; first < count; first++)");
    kg_axes_split(code, plan->shape, plan->rows, plan->run - 1, "first");
    kg_code_line(code, "const int64_t offset = first * length;");
}

static bool is_streamed_pass(const struct kg_rowwise_plan *plan, int pass)
{
    bool outputs = false;
    for (int i = 0; i < plan->group->count; i++)
        outputs |= is_column_output(plan, i) && plan->pass[i] == pass;
    return plan->stream && outputs && !has_fold(plan, pass, false);
}

static void emit_blocks(struct writer *writer, int pass)
{
    struct kg_code *code = writer->code;
    kg_code_open(code, "for (int64_t start = 0; start < length; start += BLOCK)");
    kg_code_line(code, "const int64_t rest = length - start;");
    kg_code_line(code, "const int64_t stop = start + (rest < BLOCK ? rest : BLOCK);");
    emit_prefetch(writer, pass, "start", "(stop - start)");
    if (has_fold(writer->plan, pass, false) || moves_halves(writer, pass)) {
        emit_block_lanes(writer, pass);
    } else {
        kg_code_line(code, "const int64_t block = start;");
        emit_step(writer, pass, "stop - start");
    }
    kg_code_close(code);
}

static void flush_place(struct kg_code *code, const struct kg_fold *fold, int k, int lanes)
{
    if (!fold->is_argument)
        return;
    kg_fold_flush(code, fold, k, lanes, "length", "offset");
    kg_fold_reset_lanes(code, fold, k, lanes);
}

static void flush_value(struct kg_code *code, const struct kg_fold *fold, int k, int lanes)
{
    if (!fold->is_argument)
        flush_fold(code, fold, k, lanes);
}

static void emit_pass(struct writer *writer, int pass)
{
    const struct kg_rowwise_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    bool has_columns = plan->run > plan->rows; // around the run
    kg_code_line(code, "{");
    kg_code_indent(code);
    for_folds(writer, pass, false, kg_fold_declare_lanes);
    for_folds(writer, pass, false, kg_fold_reset_lanes);
    if (has_fold(plan, pass, true))
        kg_code_line(code, "int64_t steps = 0;");
    if (has_places(plan, pass))
        kg_code_line(code, "int64_t step = 0;");
    open_columns(writer);
    if (is_streamed_pass(plan, pass))
        emit_streamed(writer, pass);
    else
        emit_blocks(writer, pass);
    if (has_columns) {
        // Lanes count their steps from the beginning of a run.
        for_folds(writer, pass, false, flush_place);
        if (has_places(plan, pass))
            kg_code_line(code, "step = 0;");
        kg_code_close(code);
    }
    for_folds(writer, pass, false, has_columns ? flush_value : flush_fold);
    kg_code_close(code);
}

static void declare_total(struct kg_code *code, const struct kg_fold *fold, int k, int lanes)
{
    (void)lanes;
    kg_fold_declare_total(code, fold, k);
}

// The results of a pass, as values of the row.
static void emit_results(struct writer *writer, int pass)
{
    const struct kg_rowwise_plan *plan = writer->plan;
    for (int i = 0; i < plan->group->count; i++) {
        if (plan->role[i] != KG_ROWWISE_REDUCE || plan->pass[i] != pass)
            continue;
        struct kg_fold fold = kg_fold_of(kg_group_nest(plan->group, i));
        kg_code_begin(writer->code);
        kg_text_format(writer->code->text, "const %s v%d = ", kg_emit_type(fold.result), i);
        kg_fold_result(writer->code->text, &fold, i, "columns");
        kg_text_add(writer->code->text, ";");
        kg_code_end(writer->code);
        name_value(writer, i, "v%d");
        if (!is_private(plan, i))
            emit_store(writer, i, fold.result);
    }
}

static void emit_run(struct writer *writer)
{
    const struct kg_rowwise_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    kg_code_line(code,
                 "void %s_run(const struct kg_host_call *call, int phase, int64_t begin, "
                 "int64_t end)",
                 plan->entry);
    kg_code_line(code, "{");
    kg_code_indent(code);
    kg_code_line(code, "(void)phase;");
    emit_frame(writer);
    if (plan->behind)
        kg_rowwise_behind_call(code, plan);
    emit_buffers(writer);
    kg_code_open(code, "for (int64_t item = begin; item < end; item++)");
    kg_axes_split(code, plan->shape, 0, plan->rows - 1, "item");
    for (int pass = 0; pass < plan->passes; pass++) {
        emit_scalars(writer, pass);
        for_folds(writer, pass, false, declare_total);
        emit_pass(writer, pass);
        emit_results(writer, pass);
    }
    emit_scalars(writer, plan->passes);
    kg_code_close(code);
    if (plan->stream)
        kg_code_line(code, "kg_stream_end();");
    kg_code_close(code);
}

void kg_rowwise_emit(struct kg_code *code, const struct kg_rowwise_plan *plan)
{
    struct writer writer = {.code = code, .plan = plan, .values = {.group = plan->group}};
    for (int axis = plan->run; axis < plan->last; axis++)
        writer.values.axes[axis] = "0";
    emit_items(&writer);
    if (plan->behind)
        kg_rowwise_behind_emit(code, plan);
    emit_run(&writer);
}
