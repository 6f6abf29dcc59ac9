// A kernel as a list of numbers, for comparing two kernels.

#include "report/assembly_parts.h"

#include <math.h>
#include <stdio.h>

// Keys for KG_WORK_*, with the prefix "main_loop.": the mix of the main loop is compared.
static const char *const work_keys[] = {
    [KG_WORK_TENSOR] = "main_loop.tensor",
    [KG_WORK_FMA] = "main_loop.fma",
    [KG_WORK_HALF] = "main_loop.half",
    [KG_WORK_DOUBLE] = "main_loop.double",
    [KG_WORK_INTEGER] = "main_loop.integer",
    [KG_WORK_SELECT] = "main_loop.select",
    [KG_WORK_CONVERT] = "main_loop.convert",
    [KG_WORK_SPECIAL] = "main_loop.special",
    [KG_WORK_MOVE] = "main_loop.move",
    [KG_WORK_LOAD_GLOBAL] = "main_loop.load_global",
    [KG_WORK_STORE_GLOBAL] = "main_loop.store_global",
    [KG_WORK_ATOMIC] = "main_loop.atomic",
    [KG_WORK_LOAD_SHARED] = "main_loop.load_shared",
    [KG_WORK_STORE_SHARED] = "main_loop.store_shared",
    [KG_WORK_LOAD_LOCAL] = "main_loop.load_local",
    [KG_WORK_STORE_LOCAL] = "main_loop.store_local",
    [KG_WORK_LOAD_CONSTANT] = "main_loop.load_constant",
    [KG_WORK_ASYNC_COPY] = "main_loop.async_copy",
    [KG_WORK_BULK_COPY] = "main_loop.bulk_copy",
    [KG_WORK_SHUFFLE] = "main_loop.shuffle",
    [KG_WORK_BARRIER] = "main_loop.barrier",
    [KG_WORK_FENCE] = "main_loop.fence",
    [KG_WORK_BRANCH] = "main_loop.branch",
    [KG_WORK_NOTHING] = "main_loop.nothing",
    [KG_WORK_UNKNOWN] = "main_loop.unknown",
};
_Static_assert(sizeof work_keys / sizeof work_keys[0] == KG_WORK_COUNT, "a class has no key");

const char *kg_work_key(enum kg_work work)
{
    return work_keys[work] + sizeof "main_loop." - 1;
}

struct kg_advice kg_advice_at(const struct kg_asm_kernel *kernel,
                              const struct kg_appraisal *appraisal, int index)
{
    if (index < kernel->advice_count)
        return kernel->advice[index];
    const struct kg_launch_note *note = &appraisal->notes[index - kernel->advice_count];
    return (struct kg_advice){note->level, note->code, note->text};
}

double kg_density(double flops, double bytes)
{
    return flops > 0 && bytes > 0 ? flops / bytes : NAN;
}

static void add(struct kg_figures *figures, const char *key, const char *label,
                enum kg_figure_kind kind, double value)
{
    figures->list[figures->count++] = (struct kg_figure){key, label, kind, value};
}

static double known(int64_t value)
{
    return value < 0 ? NAN : (double)value;
}

static void add_resources(struct kg_figures *figures, const struct kg_asm_kernel *kernel,
                          const struct kg_asm_summary *summary)
{
    add(figures, "registers", "registers", KG_FIGURE_COUNT, known(kernel->registers));
    add(figures, "shared_bytes", "shared memory, static", KG_FIGURE_BYTES,
        known(kernel->shared_bytes));
    add(figures, "stack_bytes", "stack", KG_FIGURE_BYTES, known(kernel->stack_bytes));
    add(figures, "barriers", "barriers", KG_FIGURE_COUNT, known(kernel->barriers));
    add(figures, "instructions", "instructions", KG_FIGURE_COUNT, known(kernel->instructions));
    add(figures, "spill_store_bytes", "spills: stored", KG_FIGURE_BYTES,
        known(kernel->spill_store_bytes));
    add(figures, "spill_load_bytes", "spills: loaded", KG_FIGURE_BYTES,
        known(kernel->spill_load_bytes));
    add(figures, "loop_spill_bytes", "spills: in loops, a trip", KG_FIGURE_BYTES,
        known(summary->loop_spill_bytes));
}

static void add_launch(struct kg_figures *figures, const struct kg_appraisal *appraisal)
{
    bool device = appraisal->sm != NULL, model = appraisal->has_model;
    add(figures, "blocks", "blocks on an SM", KG_FIGURE_COUNT,
        device ? (double)appraisal->occupancy.blocks : (double)NAN);
    add(figures, "occupancy", "occupancy", KG_FIGURE_SHARE,
        device ? appraisal->occupancy.share : NAN);
    add(figures, "bound_seconds", "time: bound", KG_FIGURE_TIME,
        model ? appraisal->model.bound : NAN);
    add(figures, "estimate_seconds", "time: estimate", KG_FIGURE_TIME,
        model ? appraisal->model.estimate : NAN);
}

static void add_main_loop(struct kg_figures *figures, const struct kg_asm_kernel *kernel,
                          enum kg_asm_format format, const struct kg_asm_summary *summary)
{
    bool any = summary->main_loop >= 0;
    const struct kg_asm_loop *loop = any ? &kernel->loops[summary->main_loop] : NULL;
    add(figures, "main_loop.instructions", "main loop: instructions", KG_FIGURE_COUNT,
        any ? kg_mix_total(&loop->mix) : NAN);
    add(figures, "main_loop.stall_cycles", "main loop: least cycles", KG_FIGURE_COUNT,
        any && format == KG_ASM_CUBIN ? loop->stall_cycles : NAN);
    add(figures, "main_loop.spill_loads", "main loop: spills loaded", KG_FIGURE_COUNT,
        any && summary->loop_spill_loads >= 0 ? (double)loop->spill_loads : NAN);
    add(figures, "main_loop.spill_stores", "main loop: spills stored", KG_FIGURE_COUNT,
        any && summary->loop_spill_loads >= 0 ? (double)loop->spill_stores : NAN);
    for (int w = 0; w < KG_WORK_COUNT; w++)
        add(figures, work_keys[w], kg_work_name((enum kg_work)w), KG_FIGURE_COUNT,
            any ? loop->mix.count[w] : NAN);
}

static void add_density(struct kg_figures *figures, const struct kg_asm_summary *summary)
{
    add(figures, "flop_per_shared_byte", "FLOP per shared byte", KG_FIGURE_RATE,
        kg_density(summary->flops, summary->shared_bytes));
    add(figures, "flop_per_global_byte", "FLOP per global byte", KG_FIGURE_RATE,
        kg_density(summary->flops, summary->global_bytes));
}

void kg_figures_of(const struct kg_asm_kernel *kernel, enum kg_asm_format format,
                   const struct kg_appraisal *appraisal, struct kg_figures *figures)
{
    figures->count = 0;
    add_resources(figures, kernel, &appraisal->summary);
    add_launch(figures, appraisal);
    add_main_loop(figures, kernel, format, &appraisal->summary);
    add_density(figures, &appraisal->summary);
    add(figures, "advisories", "advisories", KG_FIGURE_COUNT,
        kernel->advice_count + appraisal->note_count);
    add(figures, "points", "points", KG_FIGURE_COUNT, appraisal->points);
}

static void print_time(double seconds, char out[32])
{
    if (seconds < 1e-3)
        snprintf(out, 32, "%.4g us", seconds * 1e6);
    else
        snprintf(out, 32, "%.4g ms", seconds * 1e3);
}

void kg_figure_print(const struct kg_figure *figure, char out[32])
{
    if (isnan(figure->value)) {
        snprintf(out, 32, "n/a");
        return;
    }
    switch (figure->kind) {
    case KG_FIGURE_COUNT:
        snprintf(out, 32, "%.10g", figure->value);
        break;
    case KG_FIGURE_BYTES:
        snprintf(out, 32, "%.0f B", figure->value);
        break;
    case KG_FIGURE_SHARE:
        snprintf(out, 32, "%.0f%%", 100 * figure->value);
        break;
    case KG_FIGURE_RATE:
        snprintf(out, 32, "%.3g", figure->value);
        break;
    case KG_FIGURE_TIME:
        print_time(figure->value, out);
        break;
    }
}
