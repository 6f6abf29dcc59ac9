// See gist.h.

#include "asm/gist.h"

#include "asm/summary.h"

#include <math.h>
#include <string.h>

#define SAME 1.0 // bytes or operations: averages that differ by less are equal

static bool is_wanted(const struct kg_asm_kernel *kernel, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(kernel->name, names[i]) == 0)
            return true;
    return count == 0;
}

static double mean_of(double sum, double count)
{
    return count > 0 ? sum / count : 0;
}

// Of one loop, or of a kernel without any. On the host instructions of arithmetic read memory
// themselves, and the bytes of those that only load are not known apart.
static void add_mix(struct kg_asm_gist *gist, const struct kg_mix *mix, bool host)
{
    static const enum kg_work steps[] = {KG_WORK_FMA, KG_WORK_HALF, KG_WORK_DOUBLE};
    double loads = mix->count[KG_WORK_LOAD_GLOBAL] + mix->count[KG_WORK_ASYNC_COPY];
    double bytes = mix->bytes[KG_WORK_LOAD_GLOBAL] + mix->bytes[KG_WORK_ASYNC_COPY];
    double count = 0;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        count += mix->count[steps[i]];
    if (host)
        gist->step_flops = fmax(gist->step_flops, mean_of(mix->flops, count));
    else
        gist->load_bytes = fmax(gist->load_bytes, mean_of(bytes, loads));
}

static int64_t add_known(int64_t sum, int64_t value)
{
    return sum < 0 || value < 0 ? -1 : sum + value;
}

bool kg_asm_gist_add(struct kg_asm_gist *gist, const struct kg_asm_file *file,
                     const char *const *names, int count)
{
    bool host = file->format == KG_ASM_OBJECT;
    for (int i = 0; i < file->kernel_count; i++) {
        const struct kg_asm_kernel *kernel = &file->kernels[i];
        struct kg_asm_summary summary;
        if (!is_wanted(kernel, names, count))
            continue;
        if (!kg_asm_summarise(kernel, file->format, &summary))
            return false;
        if (kernel->registers > gist->registers)
            gist->registers = kernel->registers;
        gist->spill_bytes = add_known(
            gist->spill_bytes, add_known(kernel->spill_store_bytes, kernel->spill_load_bytes));
        gist->loop_spill_bytes = add_known(gist->loop_spill_bytes, summary.loop_spill_bytes);
        gist->tensor = gist->tensor || summary.tensor;
        for (int32_t l = 0; l < kernel->flow.loop_count; l++)
            add_mix(gist, &kernel->loops[l].mix, host);
        if (kernel->flow.loop_count == 0)
            add_mix(gist, &kernel->mix, host);
        gist->known = true;
    }
    return true;
}

static void separate(struct kg_text *text, size_t start, const char *with)
{
    if (text->length > start)
        kg_text_add(text, with);
}

static void add_spills(const struct kg_asm_gist *gist, struct kg_text *text)
{
    if (gist->spill_bytes == 0)
        kg_text_add(text, "no spills");
    else if (gist->loop_spill_bytes > 0)
        kg_text_format(text, "%lld B of spills, in loops", (long long)gist->spill_bytes);
    else
        kg_text_format(text, "%lld B of spills", (long long)gist->spill_bytes);
}

void kg_asm_gist_print(const struct kg_asm_gist *gist, struct kg_text *text)
{
    size_t start = text->length;
    if (!gist->known)
        return;
    if (gist->registers > 0)
        kg_text_format(text, "%d registers", gist->registers);
    if (gist->load_bytes > 0) {
        separate(text, start, ", ");
        kg_text_format(text, "loads of %.3g B", gist->load_bytes);
    }
    if (gist->step_flops > 0) {
        separate(text, start, ", ");
        kg_text_format(text, "%.3g FLOP an instruction", gist->step_flops);
    }
    if (gist->spill_bytes >= 0) {
        separate(text, start, ", ");
        add_spills(gist, text);
    }
    if (gist->tensor) {
        separate(text, start, ", ");
        kg_text_add(text, "matrix instructions");
    }
}

void kg_asm_gist_compare(const struct kg_asm_gist *gist, const struct kg_asm_gist *other,
                         struct kg_text *text)
{
    size_t start = text->length;
    if (!gist->known || !other->known)
        return;
    if (gist->tensor != other->tensor)
        kg_text_add(text, gist->tensor ? "matrix instructions" : "no matrix instructions");
    if (fabs(gist->load_bytes - other->load_bytes) > SAME) {
        separate(text, start, "; ");
        kg_text_format(text, "loads of %.3g B, not %.3g", gist->load_bytes, other->load_bytes);
    }
    if (fabs(gist->step_flops - other->step_flops) > SAME) {
        separate(text, start, "; ");
        kg_text_format(text, "%.3g FLOP an instruction, not %.3g", gist->step_flops,
                       other->step_flops);
    }
    if (gist->spill_bytes >= 0 && other->spill_bytes >= 0 &&
        gist->spill_bytes != other->spill_bytes) {
        separate(text, start, "; ");
        add_spills(gist, text);
        kg_text_add(text, ", not ");
        add_spills(other, text);
    }
    if (gist->registers > 0 && other->registers > 0 && gist->registers != other->registers) {
        separate(text, start, "; ");
        kg_text_format(text, "%d registers, not %d", gist->registers, other->registers);
    }
}
