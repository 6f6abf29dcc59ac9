// Fuzzes the reader of host objects, and of the code in them. What it accepts must add up.

#include "asm/object.h"
#include "fuzz/fuzz.h"

#include <math.h>

static void check_kernel(const struct kg_asm_kernel *kernel)
{
    int64_t counted = 0;
    for (int i = 0; i < kernel->opcode_count; i++)
        counted += kernel->opcodes[i].count;
    FUZZ_CHECK(counted == kernel->instructions);
    FUZZ_CHECK(kg_mix_total(&kernel->mix) == (double)kernel->instructions);
    FUZZ_CHECK(kernel->spill_load_bytes >= 0 && kernel->spill_store_bytes >= 0);
    FUZZ_CHECK(kernel->stack_bytes >= 0);
    for (int32_t b = 0; b < kernel->flow.block_count; b++)
        FUZZ_CHECK(isfinite(kernel->blocks[b].issue_cycles) && kernel->blocks[b].issue_cycles > 0);
    for (int32_t l = 0; l < kernel->flow.loop_count; l++)
        FUZZ_CHECK(kernel->loops[l].first <= kernel->loops[l].last);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kg_arena arena = {0};
    struct kg_error error = {0};
    struct kg_asm_file file;
    enum kg_status status = kg_object_read(data, size, NULL, &arena, &file, &error);
    FUZZ_CHECK(status == KG_OK || status == KG_ERROR_CORRUPT || status == KG_ERROR_UNSUPPORTED ||
               status == KG_ERROR_MISSING);
    FUZZ_CHECK(status == KG_OK || (error.text[0] && file.kernel_count == 0));
    for (int k = 0; k < file.kernel_count; k++)
        check_kernel(&file.kernels[k]);
    kg_arena_free(&arena);
    return 0;
}
