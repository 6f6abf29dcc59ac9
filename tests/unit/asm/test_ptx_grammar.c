// What the reader of PTX takes: every directive, and operands and constants in all their forms.
// What stands in `accepted_files` and `accepted_statements` was assembled by ptxas 13.0 but for
// what is marked: that is of other versions of the language.

#include "asm/ptx.h"
#include "test.h"

#include <stdlib.h>

static struct kg_arena arena;
static struct kg_asm_file file;
static struct kg_error error;

static const char head[] = ".version 9.0\n.target sm_100a\n.address_size 64\n";

static enum kg_status read_exactly(const char *text)
{
    size_t length = strlen(text);
    char *exact = malloc(length); // no terminator: a sanitizer sees a read beyond the end
    memcpy(exact, text, length);
    kg_arena_free(&arena);
    enum kg_status status = kg_ptx_read(exact, length, &arena, &file, &error);
    free(exact);
    return status;
}

static void check_accepted(const char *text, const char *shown)
{
    enum kg_status status = read_exactly(text);
    if (status != KG_OK)
        fprintf(stderr, "%s\n", shown);
    CHECK_STATUS(status, KG_OK, &error);
}

static const char *const accepted_files[] = {
    ".global .u32 v;",
    ".global .align 16 .v4 .f32 v;",
    ".global .u32 v[] = {1,2,3};",
    ".global .s32 v[][2] = { {-1, 0}, {0, -1} };",
    ".global .u32 f[4]; .global .u64 w[2] = {f+4, generic(f)+8};",
    ".global .u32 f; .global .u8 a[] = {0xff(f), 0xff00(f), 0xff0000(f)};",
    ".func f() { ret; } .global .u64 w[] = {f, f};",
    ".global .f32 v = 1.5; .global .f32 w[2] = {0f3f800000, -1.0};",
    ".global .s32 n = -(5) + 3; .const .b32 c[2] = {1 << 3 | 4, (1 + 3) * 2};",
    ".const .u32 c = 5; .const .f32 e2 = 1.5e-3, e3;",
    ".global .texref t; .global .surfref s;",
    ".global .samplerref s = { addr_mode_0 = clamp_to_border, filter_mode = nearest };", // unified
    ".tex .u64 t; .tex .u32 u, w;",                                                      // old
    ".global .u32 x<3>; .global .b8 y [2][3] [4] ;",
    ".extern .global .b32 x; .extern .shared .align 16 .b8 y[]; .extern .const .b32 z[4];",
    ".visible .global .b32 x = 3; .weak .const .b32 y = 3; .visible .shared .b32 z;",
    ".common .global .align 4 .b8 x[8];",
    ".visible .global .attribute(.managed) .align 8 .b8 x[8];",
    ".global .attribute(.unified(19,95)) .f32 x;",
    ".func .attribute(.unified(0xAB, 0xCD)) (.param .b32 r) f(.param .b32 x) { ret; }",
    ".func (.param .align 16 .b8 r[16]) f(.param .align 8 .b8 a[8], .param .b32 b) { ret; }",
    ".func (.reg .b32 r) f(.reg .b32 a, .reg .f64 b) { mov.b32 r, a; ret; }",
    ".func (.param .b32 _) f(.param .b32 _, .param .b8 a[]);", // a prototype
    ".func f; .func g(); .visible .func g() { ret; } .func f { ret; }",
    ".func f .noreturn { exit; }",
    ".extern .func (.param .b32 r) f (.param .b32 a) .noreturn;", // without what it returns
    ".func f() .abi_preserve 8 .abi_preserve_control 2 { ret; }",
    ".func g(); .func f() { ret; } .alias g, f;",
    ".weak .entry f() { ret; }",
    ".entry f .maxntid 64 { ret; }",
    ".entry f() .maxntid 64,2,1 .minnctapersm 2 { ret; }",
    ".entry f() .reqntid 64, 2 , 1 .maxnreg 32 { ret; }",
    ".entry f() .maxntid 64 .maxnctapersm 2 { ret; }", // old
    ".entry f() .reqntid 64 .reqnctapercluster 2,1,1 .explicitcluster .blocksareclusters { ret; }",
    ".entry f() .reqntid 64 .explicitcluster .maxclusterrank 4 { ret; }",
    ".entry f() .maxntid 64 .pragma \"nounroll\"; .pragma \"nounroll\"; .maxnreg 9 { ret; }",
    ".entry f() .of_the_future 1, 2 .of_the_future(a, (b)) { ret; }", // unheard of
    ".of_the_future { a; b } c; .visible .of_the_future x;",          // unheard of
    ".pragma \"nounroll\";",
    ".entry f(.param .u64 .ptr .global .align 16 a, .param .u64 .ptr b) { ret; }",
    ".entry f(.param .align 64 .b8 a[128], .param .b8 b[16] ) { ret; }",
    ".entry f(.param .texref t, .param .samplerref s, .param .surfref u) { ret; }", // unified
    ".file 1 \"a.cu\", 123, 456\n.file 2 \"a\\\"",
    ".section .debug_info { L1: .b32 L1 .b64 L1+4 .b32 L2-L1 L2: .b8 1, 108 .b32 .debug_abbrev }",
    "@@DWARF .section .debug_pubnames, \"\", @progbits", // old
    ".reg .b32 r; .reg .pred p<3>; .local .b32 l;",      // old
    "# 1 \"a.cu\"\n#line 3 \"a.cu\"\n  # 2 \"b.cu\" 1 3",
    ".entry f() { .local .align 8 .b8 x[16]; .shared .align 4 .b8 y[4], z[4]; .param .b32 p; ret; "
    "}",
    ".entry f() {{}} .entry g() { } .entry h() { A: }",
};

static void test_files(void)
{
    static char text[1024];
    for (size_t i = 0; i < sizeof accepted_files / sizeof *accepted_files; i++) {
        snprintf(text, sizeof text, "%s%s", head, accepted_files[i]);
        check_accepted(text, accepted_files[i]);
    }
}

// With how many instructions each is.
static const struct {
    const char *text;
    int instructions;
} accepted_statements[] = {
    {"ld.global.u32 r1, a[1]; mov.u64 d1, a[1]; mov.u64 d1, a+4;", 3},
    {"ld.global.u32 r1, [d1+-4]; ld.global.u32 r1, [ a + 4 * 2 ]; ld.local.u32 r1, [240];", 3},
    {"ld.global.f32 f1, [a].unified;", 1}, // as its specification has it
    {"ld.global.v4.u32 {r1,r2,_,r4}, [d1];", 1},
    {"mov.f32 f1, 1.; mov.f32 f1, .5; mov.f32 f1, 5.e3; mov.f32 f1, 1E+5; mov.f32 f1, .5e-3;", 5},
    {"mov.f32 f1, -1.5E-3; mov.f32 f1, 0F3f800000; mov.f64 g1, 0D3FF0000000000000;", 3},
    {"mov.u32 r1, 0X1fU; mov.u32 r1, 0B101U; mov.u32 r1, 017; mov.u32 r1, 12U;", 4},
    {"mov.u32 r1, (1<<4)|3; mov.u32 r1, (5 == 5) ? 7 : -8; mov.u32 r1, 7 >= 3 && 2 <= 4;", 3},
    {"mov.u32 r1, !0; mov.u32 r1, ~0 & 15; mov.u32 r1, 7 != 3 || 0;", 3},
    {"mov.s64 d1, (.s64)5; mov.u64 d1, (.u64)-5; mov.u64 d1, (.u64)(3+4)*2;", 3},
    {"mov.u32 r1, WARP_SZ; mov.u32 r1, %tid .x; mov.u64 d1, %globaltimer;", 3},
    {"mov.b64 {r1,_}, d1; mov.b64 d1, {r1,r2}; mov.b32 {h1,h2}, 5;", 3},
    {"@p1 add.u32 r1,r2,r3; @ !p1 add.u32 r1,r2,r3; @! p1\nadd\n.u32\nr1,\nr2 , r3\n;", 3},
    {"lop3.or.b32 r1|p1, r2, r3, r4, 0x3f, !p2; setp.lt.and.s32 _|p2, r1, r2, !p3;", 2},
    {"vmad.s32.s32.u32.sat r1, r1.h0, r2.h1, -r3; vset.s32.u32.lt r1, r2.b0, r3.b3;", 2},
    {"vadd4.s32.s32.s32.sat r1.b0, r2.b3210, r3.b7654, r4;", 1},
    {"atom.global.v4.f32.add {f1,f2,f3,f4}, [d1], {f1,f2,f3,f4};", 1},
    {"createpolicy.range.L2::evict_last.L2::evict_first.b64 d1, [d2], 0x100000, 0x200000;", 1},
    {"fence.proxy.tensormap::generic.acquire.gpu [d1], 128; elect.sync _|p1, -1;", 2},
    {"mbarrier.arrive.release.cluster.shared::cluster.b64 _, [r1], 3;", 1},
    {"cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
     " [r1], [d1, {r2,r3,r4}], [r5], {h1};",
     1},
    {"tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X"
     " [r1], d1, d2, r2, [r3], [r4], p1;",
     1},
    {"tcgen05.mma.cta_group::1.kind::f16 [r1], [r5], d2, r2, {r1,r2,r3,r4}, p1;", 1},
    {"tex.a2d.v4.f32.f32 {f1,f2,f3,f4}|p1, [tx, {r1,f1,f2,f2}], {r1,r2}, f2;", 1},
    {"tex .1d.v4 .s32.f32 {r1,r2,r3,r4}, [tx, {f1}]; tld4.r.2d.v4.f32.f32 {f1,f2,f3,f4}|p1,"
     " [tx, {f5,f6}];",
     2},
    {"suld.b.2d.v4.b32.trap {r1,r2,r3,r4}, [sf, {r5,r6}]; sust.p.1d.b32.trap [sf, {r5}], r1;", 2},
    {"{ .reg .b32 t; mov.u32 t, 1; } { { { ret; } } } { }", 2},
    {"call.uni voidf; call (r1), bar, (3); call foo, (r1);", 3},
    {"pr: .callprototype (.param .b32 _) _ (.param .b32 x) .noreturn .abi_preserve 4;"
     " call (r2), d1, (r1), pr;",
     1},
    {"tl: .calltargets foo, foo3; call d1, (r1), tl;", 1},
    {"tl: .branchtargets A, B; @p1 brx.idx.uni r1, tl; A: B: ret;", 2},
    {"%L: bra.uni %L; _L: @p1 bra _L; $A:B:C1: ret;", 3},
    {".loc 1 2 3\nret; .loc 1 2 3, function_name .debug_str+4, inlined_at 1 2 3\nret;", 2},
    {".loc 1 2 3, function_name x, inlined_at 1 2 3 ret; .loc 1 2 0 ret;", 2},
    {".loc 1 2 3, function_name .debug_str, inlined_at 1 2 3\nret;", 1},
    {".pragma \"used_bytes_mask 0xfff\", \"nounroll\"; ld.global.v4.u32 {r1,r2,r3,_}, [d1];", 1},
    {".reg .v4 .f32 vv; mov.v4.f32 vv, {f1,f2,f3,f4}; mov.f32 vv.x, f1; mov.f32 f1, vv.r;", 3},
    {".reg .b32 zz<0x3>, yy; .const .b32 cc = 3; mov.b32 zz2, yy;", 1},
    {"ret; # 1 \"x.cu\"\nret; // ; } {\n/* multi ; }\nline */ ret;", 3},
    {"of.the::future.x r1|p1, [d1].a, \"text\", .b32, {r1, (r2)}, -r3.h0;", 1}, // unheard of
};

static void test_statements(void)
{
    static char text[2048];
    for (size_t i = 0; i < sizeof accepted_statements / sizeof *accepted_statements; i++) {
        snprintf(text, sizeof text,
                 "%s.global .u32 a[4];\n.entry k() {\n.reg .pred p<9>; .reg .b16 h<9>; .reg .b32 "
                 "r<99>; .reg .b64 d<99>; .reg .f32 f<9>; .reg .f64 g<9>;\n%s\n}\n",
                 head, accepted_statements[i].text);
        check_accepted(text, accepted_statements[i].text);
        if (file.kernel_count == 1)
            CHECK(file.kernels[0].instructions == accepted_statements[i].instructions);
    }
}

static bool has_place(void)
{
    return error.text[0] >= '1' && error.text[0] <= '9' && strstr(error.text, ": error: ");
}

static size_t write_sample(char *text, size_t size)
{
    return (size_t)snprintf(
        text, size,
        "%s.entry k(.param .u32 n) .maxntid 64 { .reg .b32 r<9>; .reg .pred p;\n"
        "L: add.s32 r1,r1,0x1; setp.lt.s32 p,r1,7; @p bra L;\n"
        "mma .sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {r1},{r2},{r3},{r4};\n"
        "T: .branchtargets L, T2; T2: brx.idx r1, T; }",
        head);
}

// Cut anywhere, a file is refused with a place in it.
static void test_cut(void)
{
    char text[1024];
    size_t whole = write_sample(text, sizeof text);
    CHECK_STATUS(read_exactly(text), KG_OK, &error);
    for (size_t length = whole - 1; length > 0; length--) {
        text[length] = '\0';
        enum kg_status status = read_exactly(text);
        if (length > strlen(head))
            CHECK(status == KG_ERROR_CORRUPT && has_place());
        CHECK(status == KG_OK || has_place());
    }
    CHECK_STATUS(read_exactly(".version 9.0 .target sm_90"), KG_OK, &error); // ends in a number
}

static void test_flipped(void)
{
    char text[1024];
    size_t whole = write_sample(text, sizeof text);
    int refused = 0;
    for (size_t bit = 0; bit < 8 * whole; bit++) {
        text[bit / 8] ^= (char)(1 << bit % 8);
        kg_arena_free(&arena);
        enum kg_status status = kg_ptx_read(text, whole, &arena, &file, &error);
        text[bit / 8] ^= (char)(1 << bit % 8);
        CHECK(status == KG_OK || (status == KG_ERROR_CORRUPT && has_place()));
        CHECK(status == KG_OK || file.kernel_count == 0);
        refused += status != KG_OK;
    }
    CHECK(refused > (int)whole);
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

// Files that are no PTX at all.
static void test_wrong(void)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"", "1:1: error: expected \".version\", found the end of the text"},
        {"\n\n  ", "3:3: error: expected \".version\", found the end of the text"},
        {"\n#include <stdio.h>\n", "2:1: error: expected \".version\", found \"#\""},
        {"\x7f\x45LF\x02\x01", "1:1: error: expected \".version\", found \"?\""},
        {"\xEF\xBB\xBF.version 9.0", "1:1: error: expected \".version\", found \"?\""},
        {"define void @k() { ret void }", "1:1: error: expected \".version\", found \"define\""},
        {".version nine", "1:10: error: expected a version, found \"nine\""},
        {".version 9.0\n.target \"sm_90\"", "2:9: error: expected a target, found \"\"sm_90\"\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK_STATUS(read_exactly(rows[i].text), KG_ERROR_CORRUPT, &error);
        CHECK_TEXT(without_offset(strlen(rows[i].text)), rows[i].message);
        CHECK(file.kernel_count == 0 && file.kernels == NULL);
    }
    kg_arena_free(&arena);
}

TEST_MAIN(test_files, test_statements, test_cut, test_flipped, test_wrong)
