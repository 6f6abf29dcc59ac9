// Reading PTX: what is written where, how it is classed and counted, what is refused.

#include "asm/ptx.h"
#include "asm/ptx_opcodes.h"
#include "base/files.h"
#include "test.h"

#include <stdlib.h>

static struct kg_arena arena;
static struct kg_asm_file file;
static struct kg_error error;

static const char head[] = ".version 8.6\n.target sm_90a\n.address_size 64\n";

// Reads `body` behind a file's usual head.
static enum kg_status read_text(const char *body)
{
    static char text[1 << 16];
    kg_arena_free(&arena);
    snprintf(text, sizeof text, "%s%s", head, body);
    size_t length = strlen(text);
    char *exact = malloc(length); // no terminator: a sanitizer sees a read beyond the end
    memcpy(exact, text, length);
    enum kg_status status = kg_ptx_read(exact, length, &arena, &file, &error);
    free(exact);
    return status;
}

// One kernel of these statements.
static const struct kg_asm_kernel *read_kernel(const char *statements)
{
    static char text[1 << 15];
    snprintf(
        text, sizeof text,
        ".entry k(.param .u64 k_param_0, .param .u32 k_param_1)\n{\n"
        ".reg .pred %%p<9>; .reg .b32 %%r<99>; .reg .b64 %%rd<99>; .reg .f32 %%f<99>;\n%s\n}\n",
        statements);
    CHECK_STATUS(read_text(text), KG_OK, &error);
    CHECK(file.kernel_count == 1);
    return &file.kernels[0];
}

static int64_t count_of(const struct kg_asm_kernel *kernel, const char *name)
{
    for (int i = 0; i < kernel->opcode_count; i++)
        if (strcmp(kernel->opcodes[i].name, name) == 0)
            return kernel->opcodes[i].count;
    return 0;
}

static void read_sample(const char *name)
{
    char path[512], *bytes;
    size_t length;
    kg_arena_free(&arena);
    snprintf(path, sizeof path, "%s/tests/data/asm/%s", KG_SOURCE_DIR, name);
    CHECK_STATUS(kg_files_read(path, 1 << 24, &bytes, &length, &error), KG_OK, &error);
    CHECK_STATUS(kg_ptx_read(bytes, length, &arena, &file, &error), KG_OK, &error);
    free(bytes);
}

// Everything that the grammar has, in one file.
static void test_handmade(void)
{
    read_sample("handmade.ptx");
    CHECK_TEXT(file.version, "PTX ISA 8.6");
    CHECK(file.kernel_count == 1);
    const struct kg_asm_kernel *kernel = &file.kernels[0];
    CHECK_TEXT(kernel->name, "k");
    CHECK_TEXT(kernel->arch, "sm_100a");
    CHECK(kernel->sm == 100 && kernel->instructions == 27);
    CHECK(kernel->required_threads[0] == 128 && kernel->required_threads[2] == 1);
    CHECK(kernel->max_threads[0] == 0 && kernel->min_blocks == 2 && kernel->max_registers == 128);
    CHECK(kernel->cluster[0] == 2 && kernel->cluster[1] == 1 && kernel->max_cluster == 8);
    CHECK(kernel->parameter_bytes == 36 && kernel->shared_bytes == 32);
    CHECK(kernel->registers == -1 && kernel->spill_load_bytes == -1);
    CHECK(count_of(kernel, "mma.sync") == 1 && count_of(kernel, "cp.async.bulk.tensor") == 1);
    CHECK(kernel->mix.count[KG_WORK_UNKNOWN] == 1 && count_of(kernel, "frobnicate") == 1);
    CHECK(kernel->mix.bytes[KG_WORK_BULK_COPY] == 2048);
    // wgmma's quarter, mma, and tcgen05.mma by its descriptor
    CHECK(kernel->mix.tensor_flops == 64 * 128 * 16 * 2 / 4 + 16 * 8 * 16 * 2 + 128 * 128 * 16 * 2);
    CHECK(kernel->flow.loop_count == 3 && kernel->loops[0].kind == KG_TRIPS_CONSTANT);
    CHECK(kernel->loops[0].trips == 4 && kernel->loops[1].kind == KG_TRIPS_UNKNOWN);
    CHECK(kernel->loops[0].first == 26 && kernel->loops[0].last == 40);
}

static void test_compiled(void)
{
    read_sample("hopper.ptx");
    CHECK(file.kernel_count == 16);
    double unknown = 0, tensor = 0, bulk = 0;
    for (int k = 0; k < file.kernel_count; k++) {
        unknown += file.kernels[k].mix.count[KG_WORK_UNKNOWN];
        tensor += file.kernels[k].mix.count[KG_WORK_TENSOR];
        bulk += file.kernels[k].mix.count[KG_WORK_BULK_COPY];
        CHECK(kg_mix_total(&file.kernels[k].mix) == (double)file.kernels[k].instructions);
    }
    CHECK(unknown == 0 && tensor > 0 && bulk > 0);
    read_sample("control.ptx");
    CHECK(kg_asm_find(&file, "divergent") && kg_asm_find(&file, "divergent")->flow.loop_count == 1);
    read_sample("tensor.ptx");
    CHECK(file.kernel_count == 24);
}

static void test_classes(void)
{
    static const struct {
        const char *text;
        enum kg_work work;
        double bytes, flops, tensor;
        const char *name;
    } rows[] = {
        {"fma.rn.ftz.f32 %f1,%f2,%f3,%f4;", KG_WORK_FMA, 0, 2, 0, "fma"},
        {"fma.rn.f32x2 %rd1,%rd2,%rd3,%rd4;", KG_WORK_FMA, 0, 4, 0, "fma"},
        {"fma.rn.bf16x2 %r1,%r2,%r3,%r4;", KG_WORK_HALF, 0, 4, 0, "fma"},
        {"mul.f64 %rd1,%rd2,%rd3;", KG_WORK_DOUBLE, 0, 1, 0, "mul"},
        {"mad.lo.s32 %r1,%r2,%r3,%r4;", KG_WORK_INTEGER, 0, 0, 0, "mad"},
        {"ex2.approx.ftz.f32 %f1,%f2;", KG_WORK_SPECIAL, 0, 1, 0, "ex2"},
        {"and.pred %p1,%p2,%p3;", KG_WORK_SELECT, 0, 0, 0, "and"},
        {"cvt.rn.f16x2.f32 %r1,%f1,%f2;", KG_WORK_CONVERT, 0, 0, 0, "cvt"},
        {"ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%f1,%f2,%f3,%f4},[%rd1+16];",
         KG_WORK_LOAD_GLOBAL, 16, 0, 0, "ld.global"},
        {"ld.u8 %r1,[%rd1];", KG_WORK_LOAD_GLOBAL, 1, 0, 0, "ld"},
        {"st.shared::cluster.v2.b64 [%r1],{%rd1,%rd2};", KG_WORK_STORE_SHARED, 16, 0, 0,
         "st.shared"},
        {"ld.const.b32 %r1,[%r2];", KG_WORK_LOAD_CONSTANT, 4, 0, 0, "ld.const"},
        {"st.local.f64 [%rd1],%rd2;", KG_WORK_STORE_LOCAL, 8, 0, 0, "st.local"},
        {"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r1,%r2,%r3,%r4},[%r5];",
         KG_WORK_LOAD_SHARED, 16, 0, 0, "ldmatrix"},
        {"wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r1,%r2},[%r3],%r4;",
         KG_WORK_LOAD_SHARED, 16, 0, 0, "wmma.load.shared"},
        {"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%f1},{%r1},{%r2},{%f1};", KG_WORK_TENSOR,
         0, 0, 8192, "wmma.mma"},
        {"mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f1},{%r1},{%r2},{%f1},%r3,0;",
         KG_WORK_TENSOR, 0, 0, 8192, "mma.sp"},
        {"wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {%f1},%rd1,%rd2,1,1,1,0,0;",
         KG_WORK_TENSOR, 0, 0, 131072, "wgmma.mma_async"},
        {"cp.async.cg.shared.global [%r1],[%rd1],16,%r2;", KG_WORK_ASYNC_COPY, 16, 0, 0,
         "cp.async"},
        {"cp.async.wait_group 1;", KG_WORK_FENCE, 0, 0, 0, "cp.async.wait_group"},
        {"cp.async.bulk.prefetch.tensor.2d.L2.global [%rd1,{%r1,%r2}];", KG_WORK_BULK_COPY, 0, 0, 0,
         "cp.async.bulk.prefetch.tensor"},
        {"red.global.add.noftz.v2.f16x2 [%rd1],{%r1,%r2};", KG_WORK_ATOMIC, 8, 0, 0, "red.global"},
        {"bar.sync 0;", KG_WORK_BARRIER, 0, 0, 0, "bar.sync"},
        {"mbarrier.arrive.expect_tx.shared::cta.b64 _,[%r1],%r2;", KG_WORK_BARRIER, 0, 0, 0,
         "mbarrier.arrive"},
        {"fence.proxy.async.shared::cta;", KG_WORK_FENCE, 0, 0, 0, "fence"},
        {"bar.warp.sync -1;", KG_WORK_BRANCH, 0, 0, 0, "bar.warp.sync"},
        {"unheard.of.f32 %f1,%f2;", KG_WORK_UNKNOWN, 0, 0, 0, "unheard"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct kg_asm_kernel *kernel = read_kernel(rows[i].text);
        CHECK_TEXT(kernel->opcodes[0].name, rows[i].name);
        CHECK(kernel->mix.count[rows[i].work] == 1);
        CHECK(kernel->mix.bytes[rows[i].work] == rows[i].bytes);
        CHECK(kernel->mix.flops == rows[i].flops && kernel->mix.tensor_flops == rows[i].tensor);
    }
}

// A row out of order is never found; and every row must be.
static void test_table(void)
{
    for (int i = 0; i < kg_ptx_opcode_count; i++) {
        const char *name = kg_ptx_opcodes[i].name;
        struct kg_ptx_form form;
        CHECK(i == 0 || strcmp(kg_ptx_opcodes[i - 1].name, name) < 0);
        kg_ptx_decode(name, strlen(name), &form);
        CHECK(form.opcode == &kg_ptx_opcodes[i]);
    }
}

static void test_control(void)
{
    const struct kg_asm_kernel *kernel =
        read_kernel("@%p1 exit; @!%p2 bra L; add.s32 %r1,%r2,1; L:");
    CHECK(kernel->flow.block_count == 4); // the last one is empty
    CHECK(kernel->mix.guarded[KG_WORK_BRANCH] == 2 && kernel->mix.guarded[KG_WORK_INTEGER] == 0);
    CHECK(kernel->flow.blocks[1].next_count == 2 && kernel->blocks[3].trips == 1);
    kernel = read_kernel("t: .branchtargets A, B;\n brx.idx %r1, t;\n A: ret;\n B: bra A;");
    CHECK(kernel->flow.block_count == 3 && kernel->flow.blocks[0].next_count == 2);
    // A label means the nearest one, before or behind.
    kernel = read_kernel("L: { @%p1 bra L; @%p2 bra M; L: } M: ret;");
    CHECK(kernel->flow.loop_count == 0 && kernel->flow.blocks[0].next_count == 2);
}

static void test_shared(void)
{
    CHECK_STATUS(read_text(".shared .b8 a[3]; .shared .align 8 .b64 b; .extern .shared .b8 c[];\n"
                           ".entry one() { .shared .u16 own[4]; .reg .b32 r;\n"
                           " mov.u32 r, a; mov.u32 r, c; ld.shared.u8 r, [a+1]; }\n"
                           ".entry two() { .reg .b32 r; mov.u32 r, a; mov.u32 r, b; }\n"
                           ".entry none() { ret; }"),
                 KG_OK, &error);
    CHECK(kg_asm_find(&file, "one")->shared_bytes == 11);
    CHECK(kg_asm_find(&file, "two")->shared_bytes == 16);
    CHECK(kg_asm_find(&file, "none")->shared_bytes == 0);
}

static struct kg_hash hash_of(const char *text)
{
    CHECK_STATUS(read_text(text), KG_OK, &error);
    return file.kernels[0].normal_hash;
}

static bool same(struct kg_hash a, struct kg_hash b)
{
    return a.high == b.high && a.low == b.low;
}

static void test_hash(void)
{
    struct kg_hash hash = hash_of(".entry a(.param .u32 a_p) { .reg .b32 %r<9>; .reg .pred %p<2>;\n"
                                  "ld.param.u32 %r1, [a_p]; L: add.s32 %r2, %r1, 7;\n"
                                  "@%p1 bra L; ret; }");
    CHECK(same(hash, hash_of("// other names\n.visible .entry bb(.param .u32 q) {\n"
                             ".reg .b32 x, y; .reg .pred z; .loc 1 2 3\n"
                             "ld.param.u32 x , [ q ];\n\n M: add.s32 y,x,7;/**/@z bra M;\tret;}")));
    CHECK(!same(hash, hash_of(".entry a(.param .u32 a_p) { .reg .b32 %r<9>; .reg .pred %p<2>;\n"
                              "ld.param.u32 %r1, [a_p]; L: add.s32 %r2, %r1, 8;\n"
                              "@%p1 bra L; ret; }"))); // another constant
    CHECK(!same(hash, hash_of(".entry a(.param .u32 a_p) { .reg .b32 %r<9>; .reg .pred %p<2>;\n"
                              "ld.param.u32 %r1, [a_p]; L: add.s32 %r2, %r2, 7;\n"
                              "@%p1 bra L; ret; }"))); // another register
    CHECK(!same(hash, hash_of(".entry a(.param .u32 a_p) { .reg .b32 %r<9>; .reg .pred %p<2>;\n"
                              "ld.param.u32 %r1, [a_p]; add.s32 %r2, %r1, 7;\n"
                              "L: @%p1 bra L; ret; }"))); // another way
    CHECK(!same(hash, hash_of(".entry a(.param .u32 a_p) .maxnreg 40 {\n"
                              ".reg .b32 %r<9>; .reg .pred %p<2>;\n"
                              "ld.param.u32 %r1, [a_p]; L: add.s32 %r2, %r1, 7;\n"
                              "@%p1 bra L; ret; }"))); // another limit
}

// Special registers are told apart although they are not declared.
static void test_hash_special(void)
{
    struct kg_hash hash = hash_of(".entry a() { .reg .b32 r; mov.u32 r, %tid.x; }");
    CHECK(!same(hash, hash_of(".entry a() { .reg .b32 r; mov.u32 r, %ctaid.x; }")));
    CHECK(!same(hash, hash_of(".entry a() { .reg .b32 r; mov.u32 r, %tid.y; }")));
}

// Every refusal ends with the offset of what it is about; cuts that off.
static const char *without_offset(size_t length)
{
    char *offset = strstr(error.text, " (offset ");
    CHECK(offset && strtoul(offset + strlen(" (offset "), NULL, 10) <= length);
    if (offset)
        *offset = '\0';
    return error.text;
}

static void test_refused(void)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {".entry k( {", "4:11: error: expected the name of a parameter, found \"{\""},
        {".entry k() { add.s32 %r1, %r2 }",
         "4:31: error: expected \";\" behind an instruction, found \"}\""},
        {".entry k() {\n  bra NOWHERE; }", "5:7: error: no label \"NOWHERE\" in this function"},
        {".entry k() { ret;", "4:18: error: expected an instruction, found the end of the text"},
        {".entry k() { ld.u32 %r1, [%rd1; }",
         "4:31: error: expected \"]\" behind operands, found \";\""},
        {"/* no end", "4:1: error: a comment without its end"},
        {".file 1 \"a", "4:9: error: a string without its end"},
        {".entry k() { \001 }", "4:14: error: expected an instruction, found \"?\""},
        {".shared .b8 a[0x7fffffffffffffff]; .shared .b64 b[0x7fffffffffffffff];",
         "4:70: error: a variable larger than all memory"},
        {".entry k() }", "4:12: error: expected \";\" or a body behind a function, found \"}\""},
        {"ret;", "4:1: error: expected a directive, found \"ret\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_STATUS(read_text(rows[i].text), KG_ERROR_CORRUPT, &error);
        CHECK_TEXT(without_offset(1000), rows[i].message);
        CHECK(file.kernel_count == 0 && file.kernels == NULL);
    }
    static const char no_target[] = ".version 8.0\n.entry k() { ret; }";
    CHECK_STATUS(kg_ptx_read(no_target, strlen(no_target), &arena, &file, &error), KG_ERROR_CORRUPT,
                 &error);
    CHECK_TEXT(error.text,
               "2:1: error: expected \".target sm_90\" before a function, found \".entry\""
               " (offset 13)");
    CHECK_STATUS(kg_ptx_read("", 0, &arena, &file, &error), KG_ERROR_CORRUPT, &error);
    CHECK_TEXT(error.text,
               "1:1: error: expected \".version\", found the end of the text (offset 0)");
}

static void test_deep(void)
{
    static char text[8192];
    size_t at = (size_t)snprintf(text, sizeof text, ".entry k() ");
    memset(text + at, '{', 150);
    CHECK_STATUS(read_text(text), KG_ERROR_CORRUPT, &error);
    at += (size_t)snprintf(text + at, sizeof text - at, "{ mov.b32 %%r1, ");
    memset(text + at, '(', 5000);
    CHECK_STATUS(read_text(text), KG_ERROR_CORRUPT, &error);
    kg_arena_free(&arena);
}

TEST_MAIN(test_handmade, test_compiled, test_classes, test_table, test_control, test_shared,
          test_hash, test_hash_special, test_refused, test_deep)
