// Cubins from anywhere: whatever is read lies within its own sizes, and a refusal says where.

#include "asm/advisories.h"
#include "asm/cubin.h"

#include "fuzz/fuzz.h"

#include <string.h>

static void touch_kernel(const struct kg_asm_kernel *kernel)
{
    double total = kg_mix_total(&kernel->mix);
    FUZZ_CHECK(total == (double)kernel->instructions);
    int64_t named = 0;
    for (int i = 0; i < kernel->opcode_count; i++)
        named += kernel->opcodes[i].name[0] ? kernel->opcodes[i].count : 0;
    FUZZ_CHECK(named == kernel->instructions);
    for (int32_t l = 0; l < kernel->flow.loop_count; l++)
        FUZZ_CHECK(kernel->loops[l].first >= 0 &&
                   kernel->loops[l].last < kernel->instructions * 16);
    for (int i = 0; i < kernel->advice_count; i++)
        FUZZ_CHECK(kernel->advice[i].text[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kg_arena arena = {0};
    struct kg_asm_file file;
    struct kg_error error = {0};
    if (kg_cubin_read(data, size, &arena, &file, &error) == KG_OK)
        for (int k = 0; k < file.kernel_count; k++)
            touch_kernel(&file.kernels[k]);
    else
        FUZZ_CHECK(error.text[0] && !file.kernels);
    FUZZ_CHECK(kg_asm_log_read((const char *)data, size, &arena, &file, &error) == KG_OK);
    kg_arena_free(&arena);
    return 0;
}
