// See gist.h.

#include "asm/gist.h"

#include "asm/summary.h"

#include <math.h>
#include <string.h>

#define SAME_LOAD 1.0 // byte: averages that differ by less are equal

static bool is_wanted(const struct kg_asm_kernel *kernel, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(kernel->name, names[i]) == 0)
            return true;
    return count == 0;
}

static double load_width(const struct kg_mix *mix)
{
    static const enum kg_work loads[] = {KG_WORK_LOAD_GLOBAL, KG_WORK_ASYNC_COPY};
    double count = 0, bytes = 0;
    for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++) {
        count += mix->count[loads[i]];
        bytes += mix->bytes[loads[i]];
    }
    return count > 0 ? bytes / count : 0;
}

static int64_t add_known(int64_t sum, int64_t value)
{
    return sum < 0 || value < 0 ? -1 : sum + value;
}

bool kg_asm_gist_add(struct kg_asm_gist *gist, const struct kg_asm_file *file,
                     const char *const *names, int count)
{
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
        int64_t length = summary.main_loop >= 0 ? kernel->instructions : 0;
        if (length > gist->main_instructions || !gist->known) {
            gist->main_instructions = length;
            gist->load_bytes = load_width(&summary.mix);
        }
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
        kg_text_format(text, "%.3g B a load", gist->load_bytes);
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
    if (fabs(gist->load_bytes - other->load_bytes) > SAME_LOAD) {
        separate(text, start, "; ");
        kg_text_format(text, "%.3g B a load, not %.3g", gist->load_bytes, other->load_bytes);
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
