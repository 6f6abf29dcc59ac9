// The whole report: a page per kernel for few kernels, a table for many.

#include "report/assembly_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_PAGES 3     // kernels shown in full without --kernel
#define MAX_ROWS 60     // of a table; for more kernels, those with most instructions
#define MAX_WARNINGS 20 // below a table
#define NAME_WIDTH 34

static bool is_wanted(int index, int k)
{
    return index < 0 || index == k;
}

static void add_head(const struct kg_assembly_subject *subject, struct kg_text *text)
{
    if (subject->file.format == KG_ASM_OBJECT)
        kg_text_format(text, "\n%5s %-*s %7s %7s %7s %6s %10s %7s\n", "no.", NAME_WIDTH, "function",
                       "instr.", "stack", "spills", "loops", "main loop", "advice");
    else
        kg_text_format(text, "\n%5s %-*s %5s %7s %7s %6s %6s %7s %6s %6s\n", "no.", NAME_WIDTH,
                       "kernel", "regs", "shared", "spills", "blocks", "warps", "instr.", "loop",
                       "advice");
}

static void add_cell(struct kg_text *text, int width, double value, const char *unit)
{
    char cell[32] = "-";
    if (!isnan(value))
        snprintf(cell, sizeof cell, "%.6g%s", value, unit);
    kg_text_format(text, " %*s", width, cell);
}

static double known(int64_t value)
{
    return value < 0 ? NAN : (double)value;
}

static double spill_bytes(const struct kg_asm_kernel *kernel)
{
    bool told = kernel->spill_load_bytes >= 0 && kernel->spill_store_bytes >= 0;
    return told ? (double)(kernel->spill_load_bytes + kernel->spill_store_bytes) : NAN;
}

static void add_row(const struct kg_assembly_subject *subject, const struct kg_asm_kernel *kernel,
                    const struct kg_appraisal *appraisal, struct kg_text *text)
{
    int main_loop = appraisal->summary.main_loop;
    double loop = main_loop >= 0 ? kg_mix_total(&kernel->loops[main_loop].mix) : NAN;
    kg_text_format(text, "%5d ", (int)(kernel - subject->file.kernels) + 1);
    kg_assembly_name(text, kernel->name, NAME_WIDTH);
    if (subject->file.format == KG_ASM_OBJECT) {
        add_cell(text, 7, (double)kernel->instructions, "");
        add_cell(text, 7, known(kernel->stack_bytes), "");
        add_cell(text, 7, spill_bytes(kernel), "");
        add_cell(text, 6, kernel->flow.loop_count, "");
        add_cell(text, 10, loop, "");
        add_cell(text, 7, kernel->advice_count, "");
    } else {
        bool device = appraisal->sm != NULL;
        add_cell(text, 5, known(kernel->registers), "");
        add_cell(text, 7, known(kernel->shared_bytes), "");
        add_cell(text, 7, spill_bytes(kernel), "");
        add_cell(text, 6, device ? (double)appraisal->occupancy.blocks : (double)NAN, "");
        add_cell(text, 6, device ? round(100 * appraisal->occupancy.share) : NAN, "%");
        add_cell(text, 7, (double)kernel->instructions, "");
        add_cell(text, 6, loop, "");
        add_cell(text, 6, kernel->advice_count, "");
    }
    kg_text_add(text, "\n");
}

static void add_warnings(const struct kg_assembly_subject *subject, struct kg_text *text)
{
    int shown = 0, left = 0;
    for (int k = 0; k < subject->file.kernel_count; k++) {
        const struct kg_asm_kernel *kernel = &subject->file.kernels[k];
        for (int a = 0; a < kernel->advice_count; a++) {
            if (kernel->advice[a].level != KG_ADVICE_WARNING)
                continue;
            if (shown++ >= MAX_WARNINGS) {
                left++;
                continue;
            }
            kg_text_add(text, shown == 1 ? "\n! " : "! ");
            struct kg_text line = {0};
            kg_text_format(&line, "%d %.60s: %s", k + 1, kernel->name, kernel->advice[a].text);
            kg_assembly_wrap(text, 2, 2, kg_text_string(&line));
            kg_text_free(&line);
            kg_text_add(text, "\n");
        }
    }
    if (left)
        kg_text_format(text, "  and %d more\n", left);
}

static void add_caption(const struct kg_assembly_launch *launch, const struct kg_appraisal *first,
                        struct kg_text *text)
{
    struct kg_text line = {0};
    kg_text_format(
        &line,
        "shared and spills in bytes; blocks and warps%s on an SM of %s%s with %lld bytes "
        "of dynamic shared memory, in blocks of ",
        first->registers_known ? "" : ", at most,", first->gpu ? first->gpu->name : first->sm->name,
        first->gpu_assumed ? " (assumed)" : "", (long long)launch->shared_bytes);
    if (first->threads_from == KG_THREADS_GIVEN)
        kg_text_format(&line, "%d threads", first->threads);
    else
        kg_text_add(&line, "what the launch bounds allow, else of 128 threads");
    kg_text_add(&line, "; loop: instructions of a trip of the main loop");
    kg_assembly_wrap(text, 0, 0, kg_text_string(&line));
    kg_text_add(text, "\n");
    kg_text_free(&line);
}

static int compare_size(const void *left, const void *right, void *user)
{
    const struct kg_assembly_subject *subject = user;
    int a = *(const int *)left, b = *(const int *)right;
    int64_t of_a = subject->file.kernels[a].instructions;
    int64_t of_b = subject->file.kernels[b].instructions;
    if (of_a != of_b)
        return of_a > of_b ? -1 : 1;
    return a - b;
}

static void add_table(const struct kg_assembly_subject *subject,
                      const struct kg_assembly_launch *launch,
                      const struct kg_appraisal *appraisals, struct kg_text *text)
{
    int count = subject->file.kernel_count;
    int *order = calloc((size_t)count, sizeof *order);
    text->failed |= !order;
    if (!order)
        return;
    for (int k = 0; k < count; k++)
        order[k] = k;
    if (count > MAX_ROWS)
        qsort_r(order, (size_t)count, sizeof *order, compare_size, (void *)(uintptr_t)subject);
    add_head(subject, text);
    for (int r = 0; r < count && r < MAX_ROWS; r++)
        add_row(subject, &subject->file.kernels[order[r]], &appraisals[order[r]], text);
    free(order);
    if (count > MAX_ROWS)
        kg_text_format(text, "and %d smaller ones; --json has them all\n", count - MAX_ROWS);
    const struct kg_appraisal *first = &appraisals[0];
    kg_text_add(text, "\n");
    if (subject->file.format == KG_ASM_OBJECT)
        kg_text_add(text, "stack and spills in bytes; main loop: instructions a trip\n");
    else if (first->sm)
        add_caption(launch, first, text);
    add_warnings(subject, text);
    kg_text_add(text, "\n--kernel NAME, or its number, shows one in full.\n");
}

static void add_text(const struct kg_assembly_subject *subject, int index,
                     const struct kg_assembly_launch *launch, const struct kg_appraisal *appraisals,
                     struct kg_text *text)
{
    kg_assembly_file_text(subject, text);
    if (index < 0 && subject->file.kernel_count > MAX_PAGES) {
        add_table(subject, launch, appraisals, text);
        return;
    }
    for (int k = 0; k < subject->file.kernel_count; k++)
        if (is_wanted(index, k))
            kg_assembly_kernel_text(subject, &subject->file.kernels[k], launch, &appraisals[k],
                                    text);
}

static void add_json(const struct kg_assembly_subject *subject, int index,
                     const struct kg_assembly_launch *launch, const struct kg_appraisal *appraisals,
                     struct kg_text *text)
{
    struct kg_json json = {.text = text};
    kg_json_begin_object(&json, NULL);
    kg_json_integer(&json, "schema", KG_ASSEMBLY_SCHEMA);
    kg_assembly_file_json(&json, subject);
    kg_json_begin_array(&json, "kernels");
    for (int k = 0; k < subject->file.kernel_count; k++)
        if (is_wanted(index, k))
            kg_assembly_kernel_json(&json, NULL, subject, &subject->file.kernels[k], launch,
                                    &appraisals[k]);
    kg_json_end_array(&json);
    kg_json_end_object(&json);
    kg_text_add(text, "\n");
}

enum kg_status kg_report_assembly(const struct kg_assembly_subject *subject, int index,
                                  const struct kg_assembly_launch *launch, bool json,
                                  struct kg_text *text, struct kg_error *error)
{
    size_t count = (size_t)subject->file.kernel_count;
    struct kg_appraisal *appraisals = calloc(count + 1, sizeof *appraisals);
    if (!appraisals)
        return kg_error_memory(error, "a report on assembly");
    enum kg_status status = KG_OK;
    for (size_t k = 0; k < count && status == KG_OK; k++)
        if (is_wanted(index, (int)k))
            status = kg_asm_appraise(&subject->file.kernels[k], subject->file.format, launch,
                                     &subject->fitted, &appraisals[k], error);
    if (status == KG_OK && json)
        add_json(subject, index, launch, appraisals, text);
    else if (status == KG_OK)
        add_text(subject, index, launch, appraisals, text);
    free(appraisals);
    return status;
}
