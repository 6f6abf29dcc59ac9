// A kernel's facts as a page of at most KG_ASSEMBLY_WIDTH columns.

#include "report/assembly_parts.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define INDENT 14 // of text after a label

// Counts columns, not bytes: continuation bytes of UTF-8 take none.
static int columns_of(const char *string, size_t length)
{
    int columns = 0;
    for (size_t i = 0; i < length; i++)
        columns += ((unsigned char)string[i] & 0xC0) != 0x80;
    return columns;
}

void kg_assembly_wrap(struct kg_text *text, int column, int indent, const char *string)
{
    bool first = true;
    for (const char *at = string; *at;) {
        size_t length = strcspn(at, " ");
        int columns = columns_of(at, length);
        if (!first && column + 1 + columns > KG_ASSEMBLY_WIDTH) {
            kg_text_format(text, "\n%*s", indent, "");
            column = indent;
        } else if (!first) {
            kg_text_add(text, " ");
            column++;
        }
        // Names come from files: control characters must not reach the terminal.
        for (size_t i = 0; i < length; i++) {
            bool control = (unsigned char)at[i] < 0x20 || at[i] == 0x7F;
            kg_text_add_bytes(text, control ? "?" : at + i, 1);
        }
        column += columns;
        first = false;
        at += length;
        at += strspn(at, " ");
    }
}

void kg_assembly_name(struct kg_text *text, const char *name, int width)
{
    int length = (int)strnlen(name, INT_MAX / 2), head = length;
    if (length > width)
        head = (width - 2) / 2;
    int tail = length > width ? width - 2 - head : 0;
    for (int i = 0; i < head; i++)
        kg_text_format(text, "%c",
                       (unsigned char)name[i] < 0x20 || name[i] == 0x7F ? '?' : name[i]);
    if (tail)
        kg_text_add(text, "..");
    for (int i = length - tail; i < length; i++)
        kg_text_format(text, "%c",
                       (unsigned char)name[i] < 0x20 || name[i] == 0x7F ? '?' : name[i]);
    if (length < width)
        kg_text_format(text, "%*s", width - length, "");
}

void kg_assembly_place(struct kg_text *text, enum kg_asm_format format, int64_t position)
{
    if (format == KG_ASM_PTX)
        kg_text_format(text, "line %lld", (long long)position);
    else
        kg_text_format(text, "0x%llx", (unsigned long long)position);
}

void kg_assembly_file_text(const struct kg_assembly_subject *subject, struct kg_text *text)
{
    const struct kg_asm_file *file = &subject->file;
    const char *what = file->format == KG_ASM_OBJECT ? "function" : "kernel";
    struct kg_text line = {0};
    kg_text_format(&line, "%s: %s, %d %s%s", subject->name, file->version, file->kernel_count, what,
                   file->kernel_count == 1 ? "" : "s");
    kg_assembly_wrap(text, 0, 2, kg_text_string(&line));
    kg_text_add(text, "\n");
    text->failed |= line.failed;
    kg_text_free(&line);
    if (subject->notice) {
        kg_text_add(text, "note: ");
        kg_assembly_wrap(text, 6, 6, subject->notice);
        kg_text_add(text, "\n");
    }
}

// A label with its text, wrapped.
static void say(struct kg_text *text, const char *label, struct kg_text *line)
{
    kg_text_format(text, "  %-*s", INDENT - 2, label);
    kg_assembly_wrap(text, INDENT, INDENT, kg_text_string(line));
    kg_text_add(text, "\n");
    text->failed |= line->failed;
    kg_text_free(line);
}

static void add_resources(const struct kg_asm_kernel *kernel, struct kg_text *text)
{
    struct kg_text line = {0};
    if (kernel->registers >= 0)
        kg_text_format(&line, "%d registers, ", kernel->registers);
    if (kernel->shared_bytes >= 0)
        kg_text_format(&line, "%lld bytes of static shared memory, ",
                       (long long)kernel->shared_bytes);
    if (kernel->stack_bytes >= 0)
        kg_text_format(&line, "%lld bytes of stack, ", (long long)kernel->stack_bytes);
    if (kernel->barriers >= 0)
        kg_text_format(&line, "%d barrier%s, ", kernel->barriers, kernel->barriers == 1 ? "" : "s");
    if (kernel->parameter_bytes >= 0)
        kg_text_format(&line, "%lld bytes of parameters, ", (long long)kernel->parameter_bytes);
    kg_text_format(&line, "%lld instruction%s", (long long)kernel->instructions,
                   kernel->instructions == 1 ? "" : "s");
    if (kernel->sm && kernel->registers < 0)
        kg_text_add(&line, " (registers and spills exist once ptxas has run: give its log with "
                           "--log, or the cubin)");
    say(text, "resources", &line);
}

static void add_spills(const struct kg_asm_kernel *kernel, const struct kg_asm_summary *summary,
                       struct kg_text *text)
{
    struct kg_text line = {0};
    if (kernel->spill_store_bytes < 0 || kernel->spill_load_bytes < 0)
        return;
    if (kernel->spill_store_bytes == 0 && kernel->spill_load_bytes == 0)
        kg_text_add(&line, "none");
    else {
        kg_text_format(&line, "%lld bytes stored, %lld loaded",
                       (long long)kernel->spill_store_bytes, (long long)kernel->spill_load_bytes);
        if (summary->loop_spill_bytes > 0)
            kg_text_format(
                &line,
                "; in loops: %lld stores and %lld loads a trip (%lld bytes), outside: "
                "%lld bytes",
                (long long)summary->loop_spill_stores, (long long)summary->loop_spill_loads,
                (long long)summary->loop_spill_bytes, (long long)summary->other_spill_bytes);
        else if (summary->loop_spill_bytes == 0)
            kg_text_add(&line, "; none of it in a loop");
    }
    say(text, "spills", &line);
}

static void add_occupancy(const struct kg_asm_kernel *kernel,
                          const struct kg_assembly_launch *launch,
                          const struct kg_appraisal *appraisal, struct kg_text *text)
{
    static const char *const origins[] = {
        [KG_THREADS_GIVEN] = "",
        [KG_THREADS_REQUIRED] = " (as the kernel requires)",
        [KG_THREADS_BOUNDED] = " (its launch bounds; --block says otherwise)",
        [KG_THREADS_ASSUMED] = " (assumed; --block says otherwise)",
    };
    struct kg_text line = {0};
    kg_text_format(&line, "%d threads a block%s", appraisal->threads,
                   origins[appraisal->threads_from]);
    if (appraisal->cluster > 1)
        kg_text_format(&line, ", clusters of %d", appraisal->cluster);
    kg_text_format(&line, ", %lld bytes of dynamic shared memory%s",
                   (long long)launch->shared_bytes,
                   launch->shared_bytes ? "" : " (--smem says otherwise)");
    say(text, "launch", &line);
    const struct kg_occupancy *occupancy = &appraisal->occupancy;
    kg_text_format(&line, "%s%d block%s, %d of %d warps (%.0f%%) on an SM of %s%s",
                   appraisal->registers_known ? "" : "at most ", occupancy->blocks,
                   occupancy->blocks == 1 ? "" : "s", occupancy->warps, appraisal->sm->warps,
                   100 * occupancy->share, appraisal->gpu ? appraisal->gpu->name : kernel->arch,
                   appraisal->gpu_assumed ? " (assumed; --device says otherwise)" : "");
    say(text, "occupancy", &line);
    kg_text_format(&line, "%s; ", kg_limiter_name(occupancy->limiter));
    struct kg_block_needs needs = {.threads = appraisal->threads,
                                   .registers = kernel->registers,
                                   .static_shared = kernel->shared_bytes,
                                   .dynamic_shared = launch->shared_bytes,
                                   .barriers = kernel->barriers,
                                   .cluster = appraisal->cluster};
    kg_occupancy_explain(&line, appraisal->sm, &needs);
    say(text, occupancy->blocks ? "limited by" : "refused by", &line);
}

static void add_model(const struct kg_appraisal *appraisal, struct kg_text *text)
{
    const struct kg_model *model = &appraisal->model;
    struct kg_text line = {0};
    kg_text_format(&line, "%.2f waves, %.0f%% of the block slots stay empty", model->waves.waves,
                   100 * model->waves.idle);
    say(text, "grid", &line);
    kg_text_add(&line, "at least ");
    kg_text_seconds(&line, model->bound);
    kg_text_format(&line, " (%s)", kg_term_name(model->limiter));
    kg_text_add(&line, ", estimate ");
    kg_text_seconds(&line, model->estimate);
    kg_text_format(&line, " (%s; coefficients: %s)", kg_term_name(model->expected_limiter),
                   appraisal->coefficients);
    say(text, "time", &line);
}

struct row {
    enum kg_work work;
    double count;
};

static int compare_rows(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return (int)a->work - (int)b->work;
}

// The host has one kind of memory.
static const char *name_of(enum kg_work work, enum kg_asm_format format)
{
    if (format == KG_ASM_OBJECT && work == KG_WORK_LOAD_GLOBAL)
        return "load";
    if (format == KG_ASM_OBJECT && work == KG_WORK_STORE_GLOBAL)
        return "store";
    return kg_work_name(work);
}

static void add_mix(const struct kg_mix *mix, enum kg_asm_format format, struct kg_text *text)
{
    struct row rows[KG_WORK_COUNT];
    int count = 0;
    for (int w = 0; w < KG_WORK_COUNT; w++)
        if (mix->count[w] > 0)
            rows[count++] = (struct row){(enum kg_work)w, mix->count[w]};
    qsort(rows, (size_t)count, sizeof rows[0], compare_rows);
    double total = kg_mix_total(mix);
    kg_text_format(text, "%*s%-14s %9s %7s  %s\n", INDENT, "", "", "instr.", "share",
                   format == KG_ASM_OBJECT ? "bytes" : "bytes of a thread");
    for (int r = 0; r < count; r++) {
        double bytes = mix->bytes[rows[r].work];
        kg_text_format(text, "%*s%-14s %9.6g %6.1f%%", INDENT, "", name_of(rows[r].work, format),
                       rows[r].count, 100 * rows[r].count / total);
        if (bytes > 0)
            kg_text_format(text, "  %17.6g", bytes);
        kg_text_add(text, "\n");
    }
}

static void add_trips(const struct kg_asm_loop *loop, struct kg_text *line)
{
    if (loop->kind == KG_TRIPS_CONSTANT)
        kg_text_format(line, "%.10g trips", loop->trips);
    else if (loop->kind == KG_TRIPS_SYMBOL)
        kg_text_format(line, "trips by %s", loop->symbol);
    else
        kg_text_add(line, "trips unknown");
}

static void add_main_loop(const struct kg_asm_kernel *kernel, enum kg_asm_format format,
                          const struct kg_asm_summary *summary, struct kg_text *text)
{
    struct kg_text line = {0};
    if (summary->main_loop < 0) {
        kg_text_add(&line, kernel->flow.loop_count ? "no loop does any work; all instructions once:"
                                                   : "there is no loop; all instructions once:");
        say(text, "main loop", &line);
        add_mix(&summary->mix, format, text);
        return;
    }
    const struct kg_asm_loop *loop = &kernel->loops[summary->main_loop];
    kg_assembly_place(&line, format, loop->first);
    kg_text_add(&line, " to ");
    kg_assembly_place(&line, format, loop->last);
    kg_text_add(&line, ", ");
    add_trips(loop, &line);
    kg_text_format(&line, "; a trip: %.6g instructions", kg_mix_total(&loop->mix));
    if (format == KG_ASM_CUBIN)
        kg_text_format(&line, ", at least %.6g cycles of a warp", loop->stall_cycles);
    else if (format == KG_ASM_OBJECT)
        kg_text_format(&line, ", at least %.3g cycles of a core", loop->issue_cycles);
    if (kernel->flow.loop_count > 1)
        kg_text_format(&line, " (1 of %d loops)", kernel->flow.loop_count);
    say(text, "main loop", &line);
    add_mix(&loop->mix, format, text);
}

static void add_density(enum kg_asm_format format, const struct kg_asm_summary *summary,
                        struct kg_text *text)
{
    double flops = summary->flops;
    double shared = kg_density(flops, summary->shared_bytes);
    double global = kg_density(flops, summary->global_bytes);
    struct kg_text line = {0};
    if (isnan(flops)) {
        kg_text_add(&line, "matrix products whose size is told at run time only (tcgen05)");
        say(text, "work", &line);
    }
    if (!(flops > 0))
        return;
    kg_text_format(&line, "%.6g FLOP of a %s%s", flops, format == KG_ASM_OBJECT ? "core" : "warp",
                   summary->tensor ? " on matrix units" : "");
    if (!isnan(shared))
        kg_text_format(&line, ", %.3g per byte of shared memory", shared);
    if (!isnan(global))
        kg_text_format(&line, ", %.3g per byte of %smemory", global,
                       format == KG_ASM_OBJECT ? "" : "global ");
    if (summary->hidden_bytes)
        kg_text_add(&line,
                    " (beside what bulk copies move and wgmma or tcgen05 read by themselves)");
    say(text, "work", &line);
}

static void add_advice(const struct kg_asm_kernel *kernel, const struct kg_appraisal *appraisal,
                       struct kg_text *text)
{
    struct kg_text line = {0};
    for (int a = 0; a < kernel->advice_count + appraisal->note_count; a++) {
        struct kg_advice advice = kg_advice_at(kernel, appraisal, a);
        bool warning = advice.level == KG_ADVICE_WARNING;
        kg_text_format(text, "  %-*s%s ", INDENT - 2, a == 0 ? "advice" : "", warning ? "!" : "-");
        const struct kg_bottleneck_row *bottleneck = kg_asm_advice_bottleneck(advice.code);
        kg_text_format(&line, "%s%s%s", bottleneck ? bottleneck->name[KG_ENGLISH] : "",
                       bottleneck ? ": " : "", advice.text);
        kg_assembly_wrap(text, INDENT + 2, INDENT + 2, kg_text_string(&line));
        kg_text_cut(&line, 0);
        kg_text_add(text, "\n");
    }
    text->failed |= line.failed;
    kg_text_free(&line);
}

void kg_assembly_kernel_text(const struct kg_assembly_subject *subject,
                             const struct kg_asm_kernel *kernel,
                             const struct kg_assembly_launch *launch,
                             const struct kg_appraisal *appraisal, struct kg_text *text)
{
    enum kg_asm_format format = subject->file.format;
    struct kg_text line = {0};
    kg_text_add(text, "\n");
    kg_assembly_wrap(text, 0, 0, kernel->name);
    kg_text_format(text, "  %s\n", kernel->arch);
    add_resources(kernel, text);
    add_spills(kernel, &appraisal->summary, text);
    if (appraisal->sm)
        add_occupancy(kernel, launch, appraisal, text);
    if (appraisal->has_model)
        add_model(appraisal, text);
    if (appraisal->missing[0] && appraisal->occupancy.blocks > 0) {
        kg_text_add(&line, appraisal->missing);
        say(text, "time", &line);
    } else if (appraisal->missing[0] && !appraisal->sm) {
        kg_text_add(&line, appraisal->missing);
        say(text, "occupancy", &line);
    }
    add_main_loop(kernel, format, &appraisal->summary, text);
    add_density(format, &appraisal->summary, text);
    add_advice(kernel, appraisal, text);
}
