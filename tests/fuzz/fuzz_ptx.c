// Fuzzes the reader of PTX. What it accepts must add up.

#include "asm/ptx.h"
#include "fuzz/fuzz.h"

#include <math.h>
#include <string.h>

static void check_flow(const struct kg_asm_kernel *kernel)
{
    const struct kg_flow *flow = &kernel->flow;
    for (int32_t b = 0; b < flow->block_count; b++) {
        const struct kg_flow_block *block = &flow->blocks[b];
        FUZZ_CHECK(block->loop >= -1 && block->loop < flow->loop_count);
        FUZZ_CHECK(isfinite(kernel->blocks[b].trips) && kernel->blocks[b].trips >= 0);
        for (int32_t n = 0; n < block->next_count; n++)
            FUZZ_CHECK(block->next[n] >= 0 && block->next[n] < flow->block_count);
    }
    for (int32_t l = 0; l < flow->loop_count; l++) {
        const struct kg_asm_loop *loop = &kernel->loops[l];
        FUZZ_CHECK((loop->kind == KG_TRIPS_SYMBOL) == (loop->symbol != NULL));
        FUZZ_CHECK(loop->trips >= 0 && isfinite(loop->trips) && loop->first <= loop->last);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kg_arena arena = {0};
    struct kg_error error = {0};
    struct kg_asm_file file;
    enum kg_status status = kg_ptx_read((const char *)data, size, &arena, &file, &error);
    FUZZ_CHECK(status == KG_OK || status == KG_ERROR_CORRUPT);
    FUZZ_CHECK(status == KG_OK || (error.text[0] && file.kernel_count == 0));
    for (int k = 0; k < file.kernel_count; k++) {
        const struct kg_asm_kernel *kernel = &file.kernels[k];
        int64_t counted = 0;
        for (int i = 0; i < kernel->opcode_count; i++) {
            counted += kernel->opcodes[i].count;
            FUZZ_CHECK(i == 0 || strcmp(kernel->opcodes[i - 1].name, kernel->opcodes[i].name) < 0);
        }
        FUZZ_CHECK(counted == kernel->instructions);
        FUZZ_CHECK(kg_mix_total(&kernel->mix) == (double)kernel->instructions);
        FUZZ_CHECK(isfinite(kg_mix_total(&kernel->weighted)));
        check_flow(kernel);
    }
    kg_arena_free(&arena);
    return 0;
}
