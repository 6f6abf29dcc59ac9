// Prints what is decoded of a cubin, one fact a line, for tools/sass_evidence.py to compare with
// what NVIDIA's own tools say:
//
//   kernel NAME ARCH registers shared stack spill-stores spill-loads barriers instructions
//   i OFFSET MNEMONIC class bytes tensor-flops stall TARGET    (with -i; TARGET of branches or -)
//   loop HEADER trips FIRST-LAST...                            (offsets of its blocks)
//
// With -q it tells how long the file, of whatever kind, takes to be read, and how much memory.
// With -w SM it reads instructions, two hexadecimal numbers a line, and prints their mnemonics.

#include "asm/cubin.h"
#include "asm/elf_file.h"
#include "asm/sass.h"
#include "base/files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define MOST_BYTES ((size_t)1 << 30)

static const struct kg_elf_section *find_code(const struct kg_elf *elf, const char *kernel)
{
    for (size_t i = 1; i < elf->section_count; i++)
        if (strncmp(elf->sections[i].name, ".text.", 6) == 0 &&
            strcmp(elf->sections[i].name + 6, kernel) == 0)
            return &elf->sections[i];
    return NULL;
}

static void print_instruction(const struct kg_sass_code *code, int32_t index)
{
    struct kg_sass sass;
    kg_sass_decode(kg_sass_word_at(code->bytes + (size_t)index * KG_SASS_SIZE), code->sm, &sass);
    printf("i %x %s %d %g %g %u", index * KG_SASS_SIZE, sass.opcode->name, (int)sass.work,
           sass.bytes, sass.tensor_flops, sass.stall);
    struct kg_step step = kg_sass_step(code, index, NULL, 0);
    if (step.kind == KG_STEP_JUMP || step.kind == KG_STEP_BRANCH)
        printf(" %x\n", step.target * KG_SASS_SIZE);
    else
        printf(" -\n");
}

static void print_instructions(const struct kg_elf *elf, const struct kg_asm_kernel *kernel)
{
    const struct kg_elf_section *section = find_code(elf, kernel->name);
    if (!section)
        return;
    struct kg_sass_code code = {section->bytes, (int32_t)kernel->instructions, kernel->sm};
    for (int32_t i = 0; i < code.count; i++)
        print_instruction(&code, i);
}

static void print_loops(const struct kg_asm_kernel *kernel)
{
    const struct kg_flow *flow = &kernel->flow;
    for (int32_t l = 0; l < flow->loop_count; l++) {
        const struct kg_flow_loop *loop = &flow->loops[l];
        printf("loop %x %g", flow->blocks[loop->header].first * KG_SASS_SIZE,
               kernel->loops[l].trips);
        for (int32_t b = 0; b < loop->block_count; b++) {
            const struct kg_flow_block *block = &flow->blocks[loop->blocks[b]];
            printf(" %x-%x", block->first * KG_SASS_SIZE,
                   (block->first + block->count - 1) * KG_SASS_SIZE);
        }
        printf("\n");
    }
}

static void print_file(const struct kg_asm_file *file, const struct kg_elf *elf, bool instructions)
{
    printf("version %s\n", file->version);
    for (int k = 0; k < file->kernel_count; k++) {
        const struct kg_asm_kernel *kernel = &file->kernels[k];
        printf("kernel %s %s %d %lld %lld %lld %lld %d %lld\n", kernel->name, kernel->arch,
               kernel->registers, (long long)kernel->shared_bytes, (long long)kernel->stack_bytes,
               (long long)kernel->spill_store_bytes, (long long)kernel->spill_load_bytes,
               kernel->barriers, (long long)kernel->instructions);
        if (instructions)
            print_instructions(elf, kernel);
        print_loops(kernel);
    }
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

// Any file that src/asm reads: how long it takes, and what it takes of memory.
static int measure(const char *path)
{
    struct kg_error error = {0};
    struct kg_arena arena = {0};
    struct kg_asm_file file;
    char *bytes = NULL;
    size_t length = 0;
    enum kg_status status = kg_files_read(path, MOST_BYTES, &bytes, &length, &error);
    double begin = now();
    if (!status)
        status = kg_asm_read(bytes, length, &arena, &file, &error);
    double end = now();
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double all = 1024 * (double)usage.ru_maxrss;
    if (!status)
        printf("%d kernels, %zu bytes of file, %.2f times that of facts, %.2f times of the whole "
               "process at most, %.3f seconds\n",
               file.kernel_count, length, (double)arena.used / (double)length, all / (double)length,
               end - begin);
    else
        fprintf(stderr, "%s: %s\n", path, error.text);
    kg_arena_free(&arena);
    free(bytes);
    return status != KG_OK;
}

static int print_words(int sm)
{
    struct kg_sass_word word;
    while (scanf("%" SCNx64 " %" SCNx64, &word.low, &word.high) == 2)
        printf("%s\n", kg_sass_opcode(word, sm, NULL)->name);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "-w") == 0)
        return print_words((int)strtol(argv[2], NULL, 10));
    bool instructions = argc == 3 && strcmp(argv[1], "-i") == 0;
    if (argc == 3 && strcmp(argv[1], "-q") == 0)
        return measure(argv[2]);
    if (argc != 2 && !instructions) {
        fprintf(stderr, "usage: dump_cubin [-i|-q] FILE, dump_cubin -w SM\n");
        return 2;
    }
    struct kg_error error = {0};
    struct kg_arena arena = {0};
    struct kg_asm_file file;
    struct kg_elf elf;
    char *bytes = NULL;
    size_t length = 0;
    enum kg_status status = kg_files_read(argv[argc - 1], MOST_BYTES, &bytes, &length, &error);
    if (!status)
        status = kg_cubin_read(bytes, length, &arena, &file, &error);
    if (!status)
        status = kg_elf_open(bytes, length, &arena, &elf, &error);
    if (!status)
        print_file(&file, &elf, instructions);
    else
        fprintf(stderr, "%s: %s\n", argv[argc - 1], error.text);
    kg_arena_free(&arena);
    free(bytes);
    return status != KG_OK;
}
