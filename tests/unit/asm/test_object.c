// Host objects: counts known by hand, and the same counts taken from objdump's text.

#include "asm/object.h"
#include "base/files.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static struct kg_error error;
static char folder[] = "/tmp/kg-object-XXXXXX";

static bool run(const char *command)
{
    FILE *pipe = popen(command, "r");
    return pipe && pclose(pipe) == 0;
}

// Compiles a sample beside this file. False where there is no compiler for it.
static bool compile(const char *source, const char *flags, char **bytes, size_t *length)
{
    char command[1024], path[64];
    snprintf(path, sizeof path, "%s/sample.o", folder);
    snprintf(command, sizeof command, "cc %s -c '%s/tests/unit/asm/%s' -o %s", flags, KG_SOURCE_DIR,
             source, path);
    return run(command) && kg_files_read(path, 1 << 20, bytes, length, &error) == KG_OK;
}

static int64_t opcode(const struct kg_asm_kernel *kernel, const char *name)
{
    for (int o = 0; o < kernel->opcode_count; o++)
        if (strcmp(kernel->opcodes[o].name, name) == 0)
            return kernel->opcodes[o].count;
    return 0;
}

static void check_dot(const struct kg_asm_kernel *dot)
{
    CHECK(dot->instructions == 15 && opcode(dot, "vfmadd231ps") == 4);
    CHECK(dot->flow.loop_count == 1 && dot->loops[0].kind == KG_TRIPS_UNKNOWN);
    const struct kg_mix *loop = &dot->loops[0].mix;
    CHECK(loop->count[KG_WORK_FMA] == 4 && loop->flops == 64);
    CHECK(loop->count[KG_WORK_LOAD_GLOBAL] == 1 && loop->bytes[KG_WORK_LOAD_GLOBAL] == 64);
    CHECK(loop->count[KG_WORK_INTEGER] == 1 && loop->count[KG_WORK_SELECT] == 1);
    CHECK(loop->count[KG_WORK_BRANCH] == 1 && kg_mix_total(loop) == 8);
    CHECK(dot->mix.count[KG_WORK_DOUBLE] == 1 && dot->mix.flops == 64 + 8 + 2);
    // Four multiply-adds on two pipes; a compare and its branch are one.
    CHECK(dot->loops[0].issue_cycles == 2);
    CHECK(dot->spill_load_bytes == 0 && dot->stack_bytes == 0);
    CHECK_TEXT(dot->advice[0].code, "vector-width");
    CHECK_TEXT(dot->advice[0].text, "4 of 5 multiplications and multiply-adds are 256 bits wide.");
}

static void check_spill(const struct kg_asm_kernel *spill)
{
    CHECK(spill->stack_bytes == 96 + 8);
    CHECK(spill->spill_store_bytes == 32 + 8);
    CHECK(spill->spill_load_bytes == 32 + 8 + 8);
    CHECK(spill->mix.count[KG_WORK_STORE_LOCAL] == 2);
    CHECK(spill->mix.count[KG_WORK_LOAD_LOCAL] == 2); // the third is folded
    CHECK(spill->flow.loop_count == 1);
    CHECK(spill->loops[0].spill_loads == 2 && spill->loops[0].spill_stores == 0);
    CHECK(spill->loops[0].spill_bytes == 40);
    // The array, the argument, the save: none of them a spill.
    CHECK(spill->mix.count[KG_WORK_STORE_GLOBAL] == 4);
    CHECK(spill->mix.count[KG_WORK_LOAD_GLOBAL] == 2);
}

static void test_by_hand(void)
{
    char *bytes;
    size_t length;
    struct kg_arena arena = {0};
    struct kg_asm_file file;
    if (!compile("host_sample.s", "", &bytes, &length)) {
        puts("skipped: cc does not assemble x86-64");
        return;
    }
    CHECK_STATUS(kg_object_read(bytes, length, NULL, &arena, &file, &error), KG_OK, &error);
    CHECK(file.kernel_count == 6 && file.format == KG_ASM_OBJECT);
    free(bytes);
    check_dot(kg_asm_find(&file, "dot"));
    check_spill(kg_asm_find(&file, "spill"));
    const struct kg_asm_kernel *framed = kg_asm_find(&file, "framed");
    CHECK(framed->spill_store_bytes == 8 && framed->spill_load_bytes == 8);
    CHECK(framed->flow.block_count == 1 && opcode(framed, "call") == 1);
    const struct kg_asm_kernel *guarded = kg_asm_find(&file, "guarded");
    CHECK(guarded->spill_store_bytes == 24 && guarded->spill_load_bytes == 24);
    const struct kg_asm_kernel *plain = kg_asm_find(&file, "plain");
    CHECK(plain->spill_store_bytes == 0 && plain->mix.count[KG_WORK_UNKNOWN] == 1);
    CHECK(opcode(plain, "(unknown)") == 1 && opcode(plain, "ret") == 1);
    const struct kg_asm_kernel *tiles = kg_asm_find(&file, "tiles");
    CHECK(tiles->instructions == 8 && tiles->flow.loop_count == 1);
    CHECK(kg_mix_total(&tiles->loops[0].mix) == 6);
    kg_arena_free(&arena);
}

// A number that a shell command prints about the sample.
static long ask(const char *script)
{
    char command[2048];
    snprintf(command, sizeof command, "cd %s && %s", folder, script);
    FILE *pipe = popen(command, "r");
    long answer = -1;
    if (pipe && fscanf(pipe, "%ld", &answer) != 1)
        answer = -1;
    if (pipe)
        pclose(pipe);
    return answer;
}

#define TEXT_OF(function)                                                                          \
    "objdump -d --no-show-raw-insn -M intel --disassemble=" function " sample.o | "

// Bytes moved between registers and constant places of the frame that are both written and read,
// counted from the text. The stack protector's value is stored as soon as it is loaded.
#define SPILLED                                                                                    \
    "awk -v want=%d '$2 != \"lea\" && match($0, /\\[rsp([-+]0x[0-9a-f]+)?\\]/) {"                  \
    " place = substr($0, RSTART, RLENGTH); n++; at[n] = place; if (guard) kept[place] = 1;"        \
    " store[n] = $2 ~ /mov/ && $0 ~ /PTR \\[rsp[^,]*\\],[zyxr]/;"                                  \
    " size[n] = /ZMMWORD/ ? 64 : /YMMWORD/ ? 32 : /XMMWORD/ ? 16 : /QWORD/ ? 8 : 4;"               \
    " if (store[n]) stored[place] = 1; else loaded[place] = 1 }"                                   \
    " { guard = $2 == \"mov\" && /,QWORD PTR fs:0x28/ }"                                           \
    " END { for (i = 1; i <= n; i++) if (stored[at[i]] && loaded[at[i]] && store[i] == want &&"    \
    " !kept[at[i]]) bytes += size[i]; print bytes + 0 }'"

static void check_spilling(const struct kg_asm_kernel *kernel)
{
    char script[1024];
    snprintf(script, sizeof script, TEXT_OF("spilling") SPILLED, 1);
    CHECK(ask(script) == kernel->spill_store_bytes);
    snprintf(script, sizeof script, TEXT_OF("spilling") SPILLED, 0);
    CHECK(ask(script) == kernel->spill_load_bytes);
    CHECK(kernel->spill_store_bytes > 0 && kernel->spill_load_bytes > 0);
    printf("compiled: %lld bytes spilled, %lld loaded again, as in objdump's text\n",
           (long long)kernel->spill_store_bytes, (long long)kernel->spill_load_bytes);
}

static void check_compiled(const char *flags)
{
    char *bytes;
    size_t length;
    struct kg_arena arena = {0};
    struct kg_asm_file file;
    if (!compile("host_sample.c", flags, &bytes, &length) || !run("objdump --version >/dev/null")) {
        printf("skipped: no cc for %s, or no objdump\n", flags);
        return;
    }
    CHECK_STATUS(kg_object_read(bytes, length, NULL, &arena, &file, &error), KG_OK, &error);
    free(bytes);
    static const char *const names[] = {"spilling", "dot_product", "scale"};
    for (int i = 0; i < 3; i++) {
        const struct kg_asm_kernel *kernel = kg_asm_find(&file, names[i]);
        char script[512];
        snprintf(script, sizeof script, TEXT_OF("%s") "grep -c '\\svfmadd[^ ]*p[sd] '", names[i]);
        int64_t packed = opcode(kernel, "vfmadd231ps") + opcode(kernel, "vfmadd213ps") +
                         opcode(kernel, "vfmadd132ps");
        CHECK(ask(script) == packed);
        CHECK(packed > 0 || i == 0); // what spills may be written without them
        snprintf(script, sizeof script, TEXT_OF("%s") "grep -c '^ *[0-9a-f]*:'", names[i]);
        CHECK(ask(script) == kernel->instructions);
        CHECK(kernel->mix.count[KG_WORK_UNKNOWN] == 0);
        CHECK(kernel->flow.loop_count > 0);
    }
    check_spilling(kg_asm_find(&file, "spilling"));
    kg_arena_free(&arena);
}

static void test_compiled(void)
{
    check_compiled("-O3 -ffast-math -mavx2 -mfma -fno-stack-protector");
    check_compiled("-O3 -ffast-math -mavx2 -mfma -fstack-protector-all");
    check_compiled("-O3 -ffast-math -mavx512f -mprefer-vector-width=512");
}

static void test_cores(void)
{
    struct kg_x86_usage usage = {.issued = 12, .multiply = {0, 4, 0}, .loads = {0, 6, 0}};
    CHECK(kg_x86_cycles(kg_x86_core_find("zen3"), &usage) == 3);
    CHECK(kg_x86_cycles(kg_x86_core_find("Skylake-X"), &usage) == 3);
    CHECK(kg_x86_cycles(kg_x86_core_find("golden-cove"), &usage) == 2);
    usage.multiply[2] = 8;
    CHECK(kg_x86_cycles(kg_x86_core_find("zen4"), &usage) == 10);
    CHECK(!kg_x86_core_find("z80"));
    // Generic promises no less than any of them.
    for (const struct kg_x86_core *core = kg_x86_cores + 1; core->name; core++) {
        CHECK(core->issue <= kg_x86_cores->issue && core->branches <= kg_x86_cores->branches);
        for (int w = 0; w < 3; w++)
            CHECK(core->multiply[w] <= kg_x86_cores->multiply[w] &&
                  core->vector[w] <= kg_x86_cores->vector[w] &&
                  core->loads[w] <= kg_x86_cores->loads[w] &&
                  core->stores[w] <= kg_x86_cores->stores[w]);
    }
}

// Damaged objects are refused or read, and never harm.
static void test_damaged(void)
{
    char *bytes;
    size_t length;
    struct kg_asm_file file;
    if (!compile("host_sample.s", "", &bytes, &length))
        return;
    unsigned state = 1;
    for (int i = 0; i < 400; i++) {
        char *copy = malloc(length);
        memcpy(copy, bytes, length);
        for (int change = 0; change < 3; change++) {
            state = state * 1664525 + 1013904223;
            copy[(state >> 8) % length] ^= (char)(1 << (state & 7));
        }
        struct kg_arena arena = {0};
        kg_object_read(copy, i % 4 ? length : (state >> 8) % length, NULL, &arena, &file, &error);
        kg_arena_free(&arena);
        free(copy);
    }
    struct kg_arena arena = {0};
    bytes[18] = (char)183; // another processor
    CHECK_STATUS(kg_object_read(bytes, length, NULL, &arena, &file, &error), KG_ERROR_UNSUPPORTED,
                 &error);
    CHECK_STATUS(kg_object_read("no object", 9, NULL, &arena, &file, &error), KG_ERROR_CORRUPT,
                 &error);
    CHECK(file.kernel_count == 0);
    kg_arena_free(&arena);
    free(bytes);
}

static void test_begin(void)
{
    CHECK(mkdtemp(folder));
}

static void test_end(void)
{
    char path[64];
    snprintf(path, sizeof path, "%s/sample.o", folder);
    unlink(path);
    CHECK(rmdir(folder) == 0);
}

TEST_MAIN(test_begin, test_by_hand, test_compiled, test_cores, test_damaged, test_end)
