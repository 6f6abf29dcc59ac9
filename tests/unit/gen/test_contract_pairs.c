// Matrix products on processors that this test need not run on: vectors of 64 bytes, and sums of
// products of pairs by tiles, whose instructions support/emulated_amx.h stands in for.

#include "base/files.h"
#include "flow/planner.h"
#include "flow/verify.h"
#include "support/built_contract.h"
#include "support/folder.h"

#include <sys/stat.h>

static const char nn[] = "op nn(a: T[M, K], b: T[K, N]) -> (c: T[M, N]) where T in f32 f16 bf16\n"
                         "{ c[m, n] = sum(k) a[m, k] * b[k, n] }";
static const char nt[] = "op nt(a: T[M, K], b: T[N, K]) -> (c: f32[M, N]) where T in f32 f16 bf16\n"
                         "{ c[m, n] = sum(k) a[m, k] * b[n, k] }";
static const char tn[] = "op tn(a: T[K, M], b: T[K, N]) -> (c: f32[M, N]) where T in bf16\n"
                         "{ c[m, n] = sum(k) a[k, m] * b[k, n] }";
static const char tt[] = "op tt(a: T[K, M], b: T[N, K]) -> (c: T[N, M]) where T in bf16\n"
                         "{ c[n, m] = relu(sum(k) a[k, m] * b[n, k]) }";

// With one more and one less than whole tiles, steps and blocks of k; and what is too small.
static const char *const shapes[] = {
    "M=33 N=32 K=64",   "M=32 N=70 K=65",   "M=47 N=33 K=95",   "M=129 N=97 K=128",
    "M=64 N=64 K=1057", "M=150 N=300 K=70", "M=45 N=40 K=2100", "M=34 N=33 K=4100",
    "M=1 N=90 K=130",   "M=5 N=3 K=200",    "M=31 N=64 K=64",   NULL,
};

// Columns of integers with scales: zeros that differ, one that is a number, signs, offsets,
// packed panels, bytes; rows along k and along m, and computed ones; runs of k that end within a
// square of 32 steps, of an odd number of steps, and that have several.
static const char zeros[] =
    "op zeros(x: T[M, K], w: u4[K, N], s: T[ceil(K/G), N], z: u4[ceil(K/G), N]) -> (y: T[M, N])\n"
    "param G = 48\nwhere T in f16 bf16\n"
    "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - z[k/G, n]) * s[k/G, n]) }";
static const char offsets[] = "op offsets(x: T[K, M], w: i4[K, N], s: T[ceil(K/17), N], o: "
                              "T[ceil(K/17), N]) -> (y: T[M, N])\n"
                              "where T in f16 bf16\n"
                              "{ y[m, n] = sum(k) x[k, m] * (w[k, n] * s[k/17, n] - o[k/17, n]) }";
static const char panels[] =
    "op panels(x: T[B, M, K], w: packed u4[B, K, N], s: T[B, ceil(K/G), N], b: T[N]) -> (y: T[B, "
    "M, N])\n"
    "param G = 128\nwhere T in f16 bf16\n"
    "{ p[b, m, n] = sum(k) relu(x[b, m, k]) * ((w[b, k, n] - 8) * s[b, k/G, n])\n"
    "  y[b, m, n] = relu(p[b, m, n] + b[n]) }";
static const char byte_weights[] =
    "op bytes(x: T[M, K], w: i8[K, N], s: T[N], z: i8[ceil(K/40), N]) -> (y: T[M, N])\n"
    "where T in f16 bf16\n"
    "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - z[k/40, n]) * s[n]) }";
// The same adjacent along k: lines that begin in the middle of a byte, in one batch or in all.
static const char lines[] =
    "op lines(x: T[M, K], w: u4[N, K], s: T[N, ceil(K/G)], z: u4[N, ceil(K/G)]) -> (y: T[M, N])\n"
    "param G = 48\nwhere T in f16 bf16\n"
    "{ y[m, n] = sum(k) x[m, k] * ((w[n, k] - z[n, k/G]) * s[n, k/G]) }";
static const char shifted_lines[] =
    "op shifted(x: T[B, M, K], w: i4[N, K+B], s: T[ceil(K/16), N]) -> (y: T[B, M, N])\n"
    "where T in f16 bf16\n"
    "{ y[b, m, n] = sum(k) x[b, m, k] * ((w[n, k+b] + 3) * s[k/16, n]) }";
static const char byte_lines[] =
    "op bytes(x: T[M, K], w: u8[N, K], s: T[N], z: u8[N]) -> (y: T[M, N])\nwhere T in f16 bf16\n"
    "{ y[m, n] = sum(k) x[m, k] * ((w[n, k] - z[n]) * s[n]) }";
static const char *const quantised_shapes[] = {
    "M=9 N=200 K=64", "M=33 N=265 K=400",  "M=47 N=129 K=97",
    "M=17 N=70 K=33", "M=50 N=130 K=1100", "M=16 N=301 K=1",
    "M=12 N=90 K=0",  "M=8 N=129 K=100",   NULL,
};

static char folder[] = "/tmp/test-contract-pairs-XXXXXX";

// A compiler that includes amx.h first and does not optimise much: vectors as wide as this
// processor may not have take it long.
static void make_compiler(void)
{
    char path[128], text[512], *header = NULL;
    size_t length;
    snprintf(path, sizeof path, "%s/amx.h", folder);
    CHECK_STATUS(kg_files_read(KG_SOURCE_DIR "/tests/support/emulated_amx.h", 1 << 16, &header,
                               &length, &error),
                 KG_OK, &error);
    CHECK_STATUS(kg_files_publish(path, header, length, &error), KG_OK, &error);
    free(header);
    const char *usual = getenv("CC");
    snprintf(text, sizeof text, "#!/bin/sh\nexec %s \"$@\" -include %s -O1 -Wno-psabi\n",
             usual && *usual ? usual : "cc", path);
    snprintf(path, sizeof path, "%s/cc", folder);
    CHECK_STATUS(kg_files_publish(path, text, strlen(text), &error), KG_OK, &error);
    CHECK(chmod(path, 0700) == 0);
}

// A host whose compiler is told `definition`, and whose facts are these.
static void open_host(const char *isa, const char *definition, int threads)
{
    char command[256];
    snprintf(command, sizeof command, "%s/cc %s", folder, definition);
    setenv("CC", command, 1);
    CHECK_STATUS(kg_device_open("host", folder, threads, &device, &error), KG_OK, &error);
    snprintf(device->facts.isa, sizeof device->facts.isa, "%s", isa);
    device->facts.vector_bytes = 64;
}

// Which path there is, as it stands in the source.
static bool source_has(const char *text, const char *types, const char *word)
{
    char choices[64];
    snprintf(choices, sizeof choices, "M=64 N=64 K=64 %s", types);
    struct made made = make(text, choices);
    struct kg_choice choice;
    struct kg_text source = {0};
    kg_choice_guess(made.problem, &device->facts, &kg_target_host, &choice);
    CHECK(kg_choice_source(&choice, 0, "k", &source));
    bool found = strstr(kg_text_string(&source), word) != NULL;
    kg_text_free(&source);
    unmake(&made);
    return found;
}

static void test_wide_vectors(void)
{
    open_host("x86-64 avx512f avx2 avx fma f16c", "-DKG_NO_TILES", 2);
    CHECK(source_has(nn, "T=bf16", "#define KG_PAIRS 0"));
    CHECK(source_has(nn, "T=f32", "#define KG_LANES 16"));
    CHECK(source_has(nn, "T=f32", "#define KG_ROWS 14"));
    CHECK(source_has(nn, "T=f32", "#define KG_BLOCK_K 384")); // for the digits of long sums
    check(nn, "T=f32", 1, shapes);
    check(nt, "T=f16", 1, shapes);
    kg_device_close(device);
}

static void test_tiles(void)
{
    open_host("x86-64 avx512f amx_tile amx_bf16", "-DKG_ALLOWED", 2);
    CHECK(source_has(nn, "T=bf16", "#define KG_PAIRS 1"));
    CHECK(source_has(nn, "T=f16", "#define KG_PAIRS 0"));
    CHECK(source_has(nn, "T=bf16", "#define KG_BLOCK_K 512"));
    check(nn, "T=bf16", 1, shapes);
    check(nt, "T=bf16", 1, shapes);
    check(tn, "T=bf16", 1, shapes);
    check(tt, "T=bf16", 1, shapes);
    static const int64_t padded[][KG_MAX_RANK] = {{4110, 1}, {310, 1}, {305, 1}};
    static const int64_t sparse[][KG_MAX_RANK] = {{6200, 2}, {450, 3}, {290, 2}};
    check_with(nn, "T=bf16", NULL, 1, shapes, padded);
    check_with(nn, "T=bf16", NULL, 1, (const char *const[]){"M=50 N=60 K=70", NULL}, sparse);
    check("op heads(q: bf16[B, M, H, K], k: bf16[B, N, H, K]) -> (s: bf16[B, H, M, N])\n"
          "{ s[b, h, i, j] = (sum(d) q[b, i, h, d] * k[b, j, h, d]) * 0.125 }",
          "B=2 H=3", 1, (const char *const[]){"M=40 N=65 K=64", "M=3 N=5 K=7", NULL});
    check("op flat(a: bf16[P, Q, R, S], b: bf16[R, S, U, V]) -> (c: bf16[P, Q, U, V])\n"
          "{ c[p, q, u, v] = sum(r, s) a[p, q, r, s] * b[r, s, u, v] }",
          "", 1, (const char *const[]){"P=5 Q=9 R=8 S=11 U=6 V=7", NULL});
    kg_device_close(device);
}

static void test_quantised(void)
{
    open_host("x86-64 avx512f amx_tile amx_bf16", "-DKG_ALLOWED", 2);
    CHECK(source_has(zeros, "T=f16", "#define KG_TILES 1"));
    CHECK(source_has(panels, "B=1 T=f16", "#define KG_TILES 1"));
    CHECK(source_has(lines, "T=bf16", "#define KG_TILES 1"));
    CHECK(!source_has(nn, "T=bf16", "#define KG_TILES 1"));
    check(zeros, "T=f16", 1, quantised_shapes);
    check(zeros, "T=bf16", 1, quantised_shapes);
    check(offsets, "T=f16", 1, quantised_shapes);
    check(byte_weights, "T=f16", 1, quantised_shapes);
    check(panels, "B=2 T=bf16", 1, quantised_shapes);
    check(lines, "T=f16", 1, quantised_shapes);
    check(shifted_lines, "B=2 T=bf16", 1, quantised_shapes);
    check(byte_lines, "T=f16", 1, quantised_shapes);
    kg_device_close(device);
    open_host("x86-64 avx512f avx2 avx fma f16c", "-DKG_NO_TILES", 2);
    CHECK(source_has(zeros, "T=f16", "#define KG_TILES 0"));
    kg_device_close(device);
}

// Rows of denormal numbers, which tile instructions take for zero, and scales that make up for it.
static void test_tiny_rows(void)
{
    struct made made = make(zeros, "M=20 N=130 K=70 T=bf16");
    struct memory memory = {.workspace = NULL};
    struct kg_expected expected[KG_MAX_TENSORS];
    open_host("x86-64 avx512f amx_tile amx_bf16", "-DKG_ALLOWED", 2);
    struct kg_built *built = build(made.problem, NULL, 1);
    allocate(made.problem, &memory);
    memory.workspace = aligned_alloc(64, kg_built_workspace(built, made.problem) / 64 * 64 + 64);
    for (size_t i = 0; i < elements_of(made.problem, 0); i++)
        kg_dtype_store(KG_BF16, memory.tensors[0], i, ldexp(draw(), -128));
    for (size_t i = 0; i < elements_of(made.problem, 2); i++)
        kg_dtype_store(KG_BF16, memory.tensors[2], i, ldexp(draw(), 120));
    CHECK_STATUS(kg_built_run(built, made.problem, memory.tensors, memory.workspace, NULL, &error),
                 KG_OK, &error);
    CHECK_STATUS(kg_reference_run(made.problem, (const void *const *)memory.tensors, 1, NULL,
                                  expected, &error),
                 KG_OK, &error);
    CHECK(wrong_elements(made.problem, &memory, expected) == 0);
    kg_expected_free(expected, made.problem->op->output_count);
    release(made.problem, &memory);
    kg_built_free(built);
    kg_device_close(device);
    unmake(&made);
}

// A system that does not let the process use tiles.
static void test_refused(void)
{
    open_host("x86-64 avx512f amx_tile amx_bf16", "-DKG_REFUSED", 2);
    check(nn, "T=bf16", 1, shapes);
    check(zeros, "T=f16", 1, quantised_shapes);
    kg_device_close(device);
}

// Results for any number of threads are the same, bit for bit; also where a number is not finite.
static void give_the_same(const char *text, const char *sizes)
{
    static const int counts[] = {1, 2, 7};
    struct made made = make(text, sizes);
    struct memory memory = {.workspace = NULL};
    const int output = made.problem->op->input_count;
    size_t bytes = made.problem->layouts[output].bytes;
    char *first = malloc(bytes);
    allocate(made.problem, &memory);
    kg_dtype_store(made.problem->tensors[0]->type.dtype, memory.tensors[0], 4242, INFINITY);
    for (int i = 0; i < 3; i++) {
        open_host("x86-64 avx512f amx_tile amx_bf16", "-DKG_ALLOWED", counts[i]);
        struct kg_built *built = build(made.problem, NULL, 1);
        CHECK_STATUS(kg_built_run(built, made.problem, memory.tensors, NULL, NULL, &error), KG_OK,
                     &error);
        if (i == 0)
            memcpy(first, memory.tensors[output], bytes);
        CHECK(memcmp(first, memory.tensors[output], bytes) == 0);
        kg_built_free(built);
        kg_device_close(device);
    }
    free(first);
    release(made.problem, &memory);
    unmake(&made);
}

// Denormals, infinities and the rest: the whole gate.
static void pass_gate(const char *text, const char *sizes)
{
    struct kg_session session = {0};
    struct kg_plan *plan = NULL;
    struct kg_verdict verdict = {0};
    struct made made = make(text, sizes);
    open_host("x86-64 avx512f amx_tile amx_bf16", "-DKG_ALLOWED", 2);
    CHECK_STATUS(kg_store_open(folder, &session.store, NULL, &error), KG_OK, &error);
    struct kg_request request = {.session = &session, .problem = made.problem, .device = device};
    CHECK_STATUS(kg_flow_plan(&request, &plan, &error), KG_OK, &error);
    CHECK_STATUS(kg_flow_verify(plan, 0, &verdict, &error), KG_OK, &error);
    CHECK_TEXT(verdict.passed ? "passed" : verdict.reason, "passed");
    kg_flow_plan_free(plan);
    kg_store_close(session.store);
    kg_device_close(device);
    unmake(&made);
}

int main(void)
{
    if (!folder_make(folder))
        return 1;
    make_compiler();
    test_wide_vectors();
    test_tiles();
    test_quantised();
    test_tiny_rows();
    test_refused();
    give_the_same(nn, "M=150 N=140 K=1100 T=bf16");
    give_the_same(zeros, "M=70 N=300 K=1300 T=f16");
    give_the_same(lines, "M=70 N=300 K=2500 T=f16");
    pass_gate(nn, "M=128 N=128 K=256 T=bf16");
    pass_gate(zeros, "M=40 N=128 K=256 T=f16");
    pass_gate(zeros, "M=40 N=128 K=256 T=bf16");
    pass_gate(lines, "M=40 N=128 K=256 T=f16");
    folder_remove(folder);
    printf("%d checks, %d failed\n", test_checks, test_failures);
    return test_failures != 0;
}
