// Small cubins of five architectures against what ptxas -v and nvdisasm said of them when they were
// made (tools/small_cubins), and against every kind of damage.

#include "asm/advisories.h"
#include "asm/cubin.h"
#include "asm/elf_file.h"
#include "base/files.h"
#include "test.h"

#include <stdlib.h>

#define DATA KG_SOURCE_DIR "/tests/data/asm/small."

static const char *const archs[] = {"sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120a"};
#define ARCHS (sizeof archs / sizeof archs[0])

struct text {
    char *bytes;
    size_t length;
};

static struct text load(const char *arch, const char *suffix)
{
    char path[512];
    struct text text = {0};
    struct kg_error error = {0};
    snprintf(path, sizeof path, DATA "%s.%s", arch, suffix);
    CHECK_STATUS(kg_files_read(path, 1 << 20, &text.bytes, &text.length, &error), KG_OK, &error);
    return text;
}

static void read_cubin(const char *arch, struct kg_arena *arena, struct kg_asm_file *file)
{
    struct text cubin = load(arch, "cubin");
    struct kg_error error = {0};
    CHECK(kg_cubin_is(cubin.bytes, cubin.length));
    CHECK_STATUS(kg_cubin_read(cubin.bytes, cubin.length, arena, file, &error), KG_OK, &error);
    free(cubin.bytes); // the facts hold nothing of it
}

static const struct kg_asm_kernel *find(const struct kg_asm_file *file, const char *name)
{
    static const struct kg_asm_kernel none;
    const struct kg_asm_kernel *kernel = kg_asm_find(file, name);
    CHECK(kernel != NULL);
    return kernel ? kernel : &none;
}

static void check_figures(const struct kg_asm_kernel *ours, const struct kg_asm_kernel *log)
{
    CHECK_TEXT(ours->arch, log->arch);
    CHECK(ours->sm == log->sm);
    CHECK(ours->registers == log->registers);
    CHECK(ours->shared_bytes == log->shared_bytes);
    CHECK(ours->stack_bytes == log->stack_bytes);
    CHECK(ours->spill_store_bytes == log->spill_store_bytes);
    CHECK(ours->spill_load_bytes == log->spill_load_bytes);
    CHECK(ours->barriers == log->barriers);
}

static void test_figures(void)
{
    for (size_t i = 0; i < ARCHS; i++) {
        struct kg_arena arena = {0};
        struct kg_asm_file file, log;
        struct text text = load(archs[i], "log");
        read_cubin(archs[i], &arena, &file);
        CHECK(kg_asm_log_read(text.bytes, text.length, &arena, &log, NULL) == KG_OK);
        CHECK(file.kernel_count == log.kernel_count && log.kernel_count >= 6);
        for (int k = 0; k < log.kernel_count; k++)
            check_figures(find(&file, log.kernels[k].name), &log.kernels[k]);
        CHECK(strncmp(file.version, "cubin ABI 8, CUDA 13.0", 22) == 0);
        free(text.bytes);
        kg_arena_free(&arena);
    }
}

static int64_t count_of(const struct kg_asm_kernel *kernel, const char *name)
{
    for (int i = 0; i < kernel->opcode_count; i++)
        if (strcmp(kernel->opcodes[i].name, name) == 0)
            return kernel->opcodes[i].count;
    return 0;
}

// The list has "kernel NAME" and then its mnemonics, one a line.
static void check_names(const struct kg_asm_file *file, char *names)
{
    const struct kg_asm_kernel *kernel = NULL;
    int64_t seen = 0;
    for (char *line = names, *end; line && *line; line = end ? end + 1 : NULL) {
        end = strchr(line, '\n');
        if (end)
            *end = '\0';
        if (strncmp(line, "kernel ", 7) == 0) {
            CHECK(!kernel || seen == kernel->instructions);
            kernel = find(file, line + 7);
            seen = 0;
            continue;
        }
        seen++;
        CHECK(kernel && count_of(kernel, line) > 0);
    }
    CHECK(kernel && seen == kernel->instructions);
}

static void test_names(void)
{
    for (size_t i = 0; i < ARCHS; i++) {
        struct kg_arena arena = {0};
        struct kg_asm_file file;
        struct text names = load(archs[i], "names");
        read_cubin(archs[i], &arena, &file);
        check_names(&file, names.bytes);
        for (int k = 0; k < file.kernel_count; k++)
            CHECK(file.kernels[k].mix.count[KG_WORK_UNKNOWN] == 0);
        free(names.bytes);
        kg_arena_free(&arena);
    }
}

static bool advises(const struct kg_asm_kernel *kernel, const char *code)
{
    for (int i = 0; i < kernel->advice_count; i++)
        if (strcmp(kernel->advice[i].code, code) == 0)
            return true;
    return false;
}

// What the source says must happen in the loops.
static void test_loops(void)
{
    for (size_t i = 0; i < ARCHS; i++) {
        struct kg_arena arena = {0};
        struct kg_asm_file file;
        read_cubin(archs[i], &arena, &file);

        const struct kg_asm_kernel *counted = find(&file, "counted");
        CHECK(counted->flow.loop_count == 1 && counted->loops[0].kind == KG_TRIPS_CONSTANT);
        CHECK(counted->loops[0].trips == 100);
        CHECK(counted->loops[0].mix.count[KG_WORK_LOAD_GLOBAL] == 2);
        CHECK(counted->loops[0].mix.bytes[KG_WORK_LOAD_GLOBAL] == 8);
        CHECK(counted->weighted.count[KG_WORK_FMA] == 100);
        CHECK(counted->loops[0].stall_cycles > counted->loops[0].issue_cycles);
        CHECK(counted->advice_count == 0 || !advises(counted, "spill-in-loop"));

        const struct kg_asm_kernel *spilling = find(&file, "spilling");
        CHECK(spilling->flow.loop_count == 1 && spilling->loops[0].kind == KG_TRIPS_UNKNOWN);
        CHECK(spilling->loops[0].spill_bytes > 0 && advises(spilling, "spill-in-loop"));
        CHECK(spilling->loops[0].spill_loads > 0 && spilling->loops[0].spill_stores > 0);
        CHECK(spilling->loops[0].mix.flops >= 80);

        const struct kg_asm_kernel *product = find(&file, "product");
        CHECK(product->flow.loop_count >= 1);
        CHECK(product->loops[0].mix.tensor_flops == 2048 * product->loops[0].mix.count[0]);

        const struct kg_asm_kernel *window = find(&file, "window");
        CHECK(window->spill_load_bytes == 0 && advises(window, "local-array-in-loop"));

        const struct kg_asm_kernel *table = find(&file, "table");
        int widest = 0;
        for (int b = 0; b < table->flow.block_count; b++)
            if (table->flow.blocks[b].next_count > widest)
                widest = table->flow.blocks[b].next_count;
        CHECK(widest > 2); // a branch of many ways
        CHECK(find(&file, "shared_sum")->max_threads[0] == 128);
        kg_arena_free(&arena);
    }
}

static void test_clusters(void)
{
    struct kg_arena arena = {0};
    struct kg_asm_file file;
    read_cubin("sm_90a", &arena, &file);
    const struct kg_asm_kernel *cluster = find(&file, "cluster");
    CHECK(cluster->cluster[0] == 2 && cluster->cluster[1] == 1 && cluster->cluster[2] == 1);
    CHECK(cluster->mix.count[KG_WORK_BARRIER] == 2);
    CHECK(cluster->parameter_bytes == 8 && cluster->max_registers == 0 + 32);
    kg_arena_free(&arena);
}

static void read_damaged(const char *bytes, size_t length)
{
    struct kg_arena arena = {0};
    struct kg_asm_file file;
    struct kg_error error = {0};
    char *exact = malloc(length ? length : 1); // so that a sanitizer sees a read beyond the end
    if (exact) {
        memcpy(exact, bytes, length);
        enum kg_status status = kg_cubin_read(exact, length, &arena, &file, &error);
        CHECK(status == KG_OK || status == KG_ERROR_CORRUPT || status == KG_ERROR_UNSUPPORTED);
        CHECK(status == KG_OK || (error.text[0] && file.kernel_count == 0));
    }
    free(exact);
    kg_arena_free(&arena);
}

static void test_truncations(void)
{
    struct text cubin = load("sm_90a", "cubin");
    for (size_t length = 0; length < cubin.length; length += length < 256 ? 1 : 37)
        read_damaged(cubin.bytes, length);
    free(cubin.bytes);
}

// Each bit of the ELF header, and bits all over the file.
static void test_flips(void)
{
    struct text cubin = load("sm_75", "cubin");
    uint64_t random = 1;
    for (size_t i = 0; i < 64 * 8 + 3000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        size_t bit = i < 64 * 8 ? i : (size_t)(random >> 20) % (8 * cubin.length);
        cubin.bytes[bit / 8] = (char)(cubin.bytes[bit / 8] ^ 1 << bit % 8);
        read_damaged(cubin.bytes, cubin.length);
        cubin.bytes[bit / 8] = (char)(cubin.bytes[bit / 8] ^ 1 << bit % 8);
    }
    free(cubin.bytes);
}

// Symbols that stand in no section, and in each of the sections that hold no code.
static void test_symbols(void)
{
    struct text cubin = load("sm_90a", "cubin");
    struct kg_arena arena = {0};
    struct kg_elf elf;
    CHECK(kg_elf_open(cubin.bytes, cubin.length, &arena, &elf, NULL) == KG_OK);
    size_t offset = (size_t)elf.symbols->header.sh_offset;
    for (size_t section = 0; section < elf.section_count; section++) {
        for (size_t i = 0; i < elf.symbol_count; i++)
            cubin.bytes[offset + i * sizeof(Elf64_Sym) + offsetof(Elf64_Sym, st_shndx)] =
                (char)section;
        read_damaged(cubin.bytes, cubin.length);
    }
    kg_arena_free(&arena);
    free(cubin.bytes);
}

// Code that looks different, before sm_75 and after what is known.
static void test_other_architectures(void)
{
    static const struct {
        const char *cubin;
        char abi;
        unsigned flags;
        const char *named;
    } others[] = {{"sm_75", 7, 50, "sm_50"},
                  {"sm_75", 7, 70, "sm_70"},
                  {"sm_120a", 8, 70 << 8, "sm_70"},
                  {"sm_120a", 8, 200 << 8, "sm_200"}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct text cubin = load(others[i].cubin, "cubin");
        struct kg_arena arena = {0};
        struct kg_asm_file file;
        struct kg_error error = {0};
        cubin.bytes[EI_ABIVERSION] = others[i].abi;
        for (size_t b = 0; b < 4; b++)
            cubin.bytes[offsetof(Elf64_Ehdr, e_flags) + b] = (char)(others[i].flags >> 8 * b);
        CHECK_STATUS(kg_cubin_read(cubin.bytes, cubin.length, &arena, &file, &error),
                     KG_ERROR_UNSUPPORTED, &error);
        CHECK(strstr(error.text, "offset 48") && strstr(error.text, others[i].named));
        CHECK(strstr(error.text, "sm_75 to sm_121"));
        kg_arena_free(&arena);
        free(cubin.bytes);
    }
}

static void test_other_files(void)
{
    struct kg_arena arena = {0};
    struct kg_asm_file file;
    struct kg_error error = {0};
    static const char fatbinary[] = "\x50\xed\x55\xba\x01\x00\x10\x00";
    CHECK_STATUS(kg_cubin_read(fatbinary, sizeof fatbinary, &arena, &file, &error),
                 KG_ERROR_UNSUPPORTED, &error);
    CHECK(strstr(error.text, "fatbinary"));
    CHECK_STATUS(kg_cubin_read("", 0, &arena, &file, &error), KG_ERROR_CORRUPT, &error);
    CHECK(strstr(error.text, "offset 0"));
    CHECK_STATUS(kg_cubin_read("ELF", 3, &arena, &file, &error), KG_ERROR_CORRUPT, &error);
    struct text host = {0};
    CHECK_STATUS(kg_files_read("/proc/self/exe", 1 << 28, &host.bytes, &host.length, NULL), KG_OK,
                 &error);
    CHECK(!kg_cubin_is(host.bytes, host.length));
    CHECK_STATUS(kg_cubin_read(host.bytes, host.length, &arena, &file, &error), KG_ERROR_CORRUPT,
                 &error);
    CHECK(strstr(error.text, "not for CUDA"));
    free(host.bytes);
    kg_arena_free(&arena);
}

TEST_MAIN(test_figures, test_names, test_loops, test_clusters, test_truncations, test_flips,
          test_symbols, test_other_architectures, test_other_files)
