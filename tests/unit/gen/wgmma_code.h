// Shared by the tests that compile products by wgmma: the content of an assembled kernel.

#ifndef KG_TESTS_WGMMA_CODE_H
#define KG_TESTS_WGMMA_CODE_H

#include "wgmma_bench.h"

#include "asm/advisories.h"
#include "asm/gpu.h"
#include "support/case_turns.h"
#include "support/folder.h"

#include <math.h>

static struct kg_error error;

static int64_t count_of(const struct kg_asm_kernel *kernel, const char *opcode)
{
    for (int i = 0; i < kernel->opcode_count; i++)
        if (strcmp(kernel->opcodes[i].name, opcode) == 0)
            return kernel->opcodes[i].count;
    return 0;
}

// Instructions in one iteration of the innermost main loop: those of the tensor cores, and all.
static double products_of(const struct kg_asm_kernel *kernel, double *all)
{
    double products = 0;
    *all = INFINITY;
    for (int32_t i = 0; i < kernel->flow.loop_count; i++) {
        const struct kg_mix *mix = &kernel->loops[i].mix;
        double count = mix->count[KG_WORK_TENSOR], total = kg_mix_total(mix);
        if (count > 0 && total < *all) {
            products = count;
            *all = total;
        }
    }
    return products;
}

static bool is_clean(const struct kg_asm_kernel *kernel)
{
    return kernel->spill_store_bytes <= 0 && kernel->spill_load_bytes <= 0 &&
           kernel->stack_bytes <= 0;
}

// Whether the compiler is that of CUDA 13, for which the figures hold. Older ones use more
// instructions per product, and serialise products if registers are scarce.
static bool is_current, is_told;

// The expected content of a kernel.
struct contents {
    int functions;
    const char *name;   // of the main function
    const char *copies; // the opcode that loads operands
    int products;       // per stage; an iteration may process several stages
    double each;        // largest number of instructions for each of them
};

static inline void check_contents(const struct kg_binary *binary, const char *values,
                                  const struct contents *wanted)
{
    struct kg_arena arena = {0};
    struct kg_asm_file code = {0}, log = {0};
    CHECK_STATUS(kg_asm_read(binary->bytes, binary->length, &arena, &code, &error), KG_OK, &error);
    CHECK_STATUS(kg_asm_log_read(binary->log, strlen(binary->log), &arena, &log, &error), KG_OK,
                 &error);
    CHECK(code.kernel_count == wanted->functions && log.kernel_count == wanted->functions);
    for (int i = 0; i < code.kernel_count; i++) {
        bool clean = is_clean(&code.kernels[i]) || !is_current;
        CHECK(clean);
        if (!clean)
            fprintf(stderr, "%s: %s spills %lld bytes\n", values, code.kernels[i].name,
                    (long long)code.kernels[i].spill_store_bytes);
    }
    for (int i = 0; i < log.kernel_count; i++) {
        CHECK((is_clean(&log.kernels[i]) || !is_current) && log.kernels[i].advice_count == 0);
        if (log.kernels[i].advice_count > 0)
            fprintf(stderr, "%s: %s\n", values, log.kernels[i].advice[0].text);
    }
    const struct kg_asm_kernel *kernel = kg_asm_find(&code, wanted->name);
    CHECK(kernel != NULL);
    for (int i = 0; kernel && i < kernel->advice_count; i++)
        CHECK(strcmp(kernel->advice[i].code, "copies-by-thread") != 0);
    if (kernel) {
        CHECK(count_of(kernel, "HGMMA") > 0 && count_of(kernel, wanted->copies) > 0);
        double all, found = products_of(kernel, &all);
        bool multiplies = found >= wanted->products && fmod(found, wanted->products) == 0;
        bool lean = multiplies && (all <= wanted->each * found || !is_current);
        CHECK(lean);
        if (!lean)
            fprintf(stderr, "%s: %.0f products in %.0f instructions\n", values, found, all);
    }
    kg_arena_free(&arena);
}

// Compiles the kernel "kernel" for the values. KG_ERROR_MISSING without a compiler.
static enum kg_status compile(struct kg_device *device, const char *definitions, const char *op,
                              const char *sizes, const char *values, struct kg_binary *binary)
{
    struct made made = make_strided(definitions, op, sizes, NULL);
    struct kg_choice choice;
    struct kg_text source = {0};
    CHECK_STATUS(made.status, KG_OK, &made.error);
    choice = (struct kg_choice){.count = 1, .matches = {match_all(&made)}};
    choice.configs[0] = configure(choice.matches[0], values);
    CHECK(is_valid(choice.matches[0], &choice.configs[0]));
    CHECK(kg_choice_source(&choice, 0, "kernel", &source));
    struct kg_source unit = {.text = kg_text_string(&source), .entry = "kernel", .options = ""};
    if (!is_told && !strstr(device->compiler, "NVRTC 13"))
        printf("not the compiler of CUDA 13: instructions and spills are not judged\n");
    is_told = true;
    is_current = strstr(device->compiler, "NVRTC 13") != NULL;
    enum kg_status status = device->backend->compile(device, &unit, 60, binary, &error);
    if (status != KG_ERROR_MISSING)
        CHECK_STATUS(status, KG_OK, &error);
    kg_text_free(&source);
    unmake(&made);
    return status;
}

// Calls it for every case that has its turn, with an empty cache. It returns false if there is no
// compiler.
static void compile_cases(size_t count, bool (*compiles)(struct kg_device *device, size_t which))
{
    char home[] = "/tmp/kernelgen-wgmma-XXXXXX";
    struct kg_device *device = NULL;
    CHECK(folder_make(home));
    CHECK_STATUS(kg_device_open("sm_90a", home, 1, &device, &error), KG_OK, &error);
    for (size_t i = 0; device && i < count; i++)
        if (has_turn((int)i, 3) && !compiles(device, i)) {
            printf("NVRTC is not installed: nothing was compiled\n");
            break;
        }
    kg_device_close(device);
    folder_remove(home);
}

#endif
