// Products of integers where vectors have 32 bytes: which multiplication their values allow, that
// sums of the largest products are exact, and when another family is expected to be faster.

#include "support/built_contract.h"
#include "support/folder.h"

static const char nn[] = "op nn(a: T[M, K], b: T[K, N]) -> (c: i64[M, N])\n"
                         "where T in i8 u8 i16 u16 i32 u32 i64\n"
                         "{ c[m, n] = sum(k) a[m, k] * b[k, n] }";
static const char nt[] = "op nt(a: T[M, K], b: T[N, K]) -> (c: i64[M, N])\n"
                         "where T in i8 u8 i16 u16 i32 u32 i64\n"
                         "{ c[m, n] = sum(k) a[m, k] * b[n, k] }";
static const char tn[] = "op tn(a: T[K, M], b: T[K, N]) -> (c: i64[M, N])\n"
                         "where T in i8 u8 i16 u16 i32 u32 i64\n"
                         "{ c[m, n] = sum(k) a[k, m] * b[k, n] }";

// Around whole tiles of 6 x 16, whole squares and blocks of k.
static const char *const shapes[] = {
    "M=12 N=32 K=64",
    "M=6 N=16 K=17",
    "M=13 N=17 K=95",
    "M=7 N=15 K=385",
    "M=101 N=33 K=800",
    "M=3 N=90 K=131",
    "M=1 N=40 K=50",
    "M=20 N=7 K=33",
    "M=30 N=40 K=7",
    "M=34 N=33 K=4100",
    NULL,
};

static char folder[] = "/tmp/test-contract-shorts-XXXXXX";

static void open_host(int vector_bytes, const char *isa)
{
    CHECK_STATUS(kg_device_open("host", folder, 2, &device, &error), KG_OK, &error);
    snprintf(device->facts.isa, sizeof device->facts.isa, "%s", isa);
    device->facts.vector_bytes = vector_bytes;
    device->facts.units = 2;
    device->facts.clock = 2e9;
    memcpy(device->facts.cache, (const int64_t[]){0, 32768, 524288, 8 << 20},
           sizeof device->facts.cache);
}

static bool source_has(const char *text, const char *types, const char *word)
{
    char choices[64];
    static struct kg_groupings groupings;
    snprintf(choices, sizeof choices, "M=64 N=64 K=64 %s", types);
    struct made made = make(text, choices);
    struct kg_text source = {0};
    CHECK(kg_groupings_list(made.problem, &device->facts, &kg_target_host, &groupings, NULL));
    CHECK(kg_choice_source(&groupings.options[KG_GROUPING_RULE].choice, 0, "k", &source));
    bool found = strstr(kg_text_string(&source), word) != NULL;
    kg_text_free(&source);
    unmake(&made);
    return found;
}

static bool chooses(const char *text, const char *choices, const struct kg_family *family)
{
    struct made made = make(text, choices);
    struct kg_choice choice;
    kg_choice_guess(made.problem, &device->facts, &kg_target_host, &choice);
    bool same = choice.count > 0 && choice.matches[0]->family == family;
    unmake(&made);
    return same;
}

static void test_values(void)
{
    open_host(32, "x86-64 avx2 avx fma f16c");
    CHECK(source_has(nn, "T=i8", "#define KG_A_PARTS 1\n#define KG_B_PARTS 1"));
    CHECK(source_has(nn, "T=u8", "#define KG_A_PARTS 1\n#define KG_B_PARTS 1"));
    CHECK(source_has(nn, "T=i16", "#define KG_A_PARTS 2\n#define KG_B_PARTS 1"));
    CHECK(source_has(nn, "T=i16", "#define KG_SHORT_STEPS 504"));
    CHECK(source_has(nn, "T=u16", "#define KG_A_PARTS 2\n#define KG_B_PARTS 2"));
    CHECK(source_has(nn, "T=u16", "#define KG_A_UNSIGNED 1"));
    CHECK(source_has(nn, "T=i32", "#define KG_WORDS 1\n#define KG_SHORTS 0"));
    CHECK(source_has(nn, "T=u32", "#define KG_WORDS 2\n#define KG_SHORTS 0"));
    CHECK(source_has(nn, "T=i64", "#define KG_WORDS 0\n#define KG_SHORTS 0"));
    CHECK(source_has("op o(a: i8[M, K], z: i16[K], b: i8[K, N]) -> (c: i64[M, N])\n"
                     "{ c[m, n] = sum(k) (a[m, k] - z[k]) * b[k, n] }",
                     "", "#define KG_WORDS 1\n#define KG_SHORTS 0")); // -32895 is no i16
    CHECK(source_has("op o(a: i8[M, K], z: u8[K], b: i8[K, N]) -> (c: i64[M, N])\n"
                     "{ c[m, n] = sum(k) (a[m, k] - z[k]) * b[k, n] }",
                     "", "#define KG_SHORTS 1"));
    kg_device_close(device);
    open_host(64, "x86-64 avx512f avx2 avx fma f16c");
    CHECK(source_has(nn, "T=i8", "#define KG_WORDS 0\n#define KG_SHORTS 0"));
    kg_device_close(device);
    open_host(32, "aarch64");
    CHECK(source_has(nn, "T=i8", "#define KG_WORDS 0\n#define KG_SHORTS 0"));
    kg_device_close(device);
}

static void test_results(void)
{
    open_host(32, "x86-64 avx2 avx fma f16c");
    check(nn, "T=i8", 1, shapes);
    check(nt, "T=i16", 1, shapes);
    check(nt, "T=u16", 1, shapes);
    check(tn, "T=u16", 1, shapes);
    check(nt, "T=i32", 1, shapes);
    check(nn, "T=u32", 1, shapes);
    check("op scaled(a: i8[M, K], b: i8[N, K], s: f32[N]) -> (c: f32[M, N])\n"
          "{ c[m, n] = (sum(k) a[m, k] * b[n, k]) * s[n] }",
          "", 1, shapes);
    check("op flat(a: i8[B, P, Q, R, S], b: i8[B, R, S, U, V]) -> (c: i64[B, P, Q, U, V])\n"
          "{ c[b, p, q, u, v] = sum(r, s) a[b, p, q, r, s] * b[b, r, s, u, v] }",
          "", 1, (const char *const[]){"B=2 P=5 Q=9 R=8 S=11 U=6 V=7", NULL});
    kg_device_close(device);
}

// Every product is the one of the largest size, in sums that are longer than a block.
static void test_extremes(void)
{
    static const struct {
        const char *types;
        enum kg_dtype dtype;
        int64_t a, b;
    } rows[] = {
        {"T=i8", KG_I8, INT8_MIN, INT8_MIN},     {"T=u8", KG_U8, UINT8_MAX, UINT8_MAX},
        {"T=i16", KG_I16, INT16_MIN, INT16_MIN}, {"T=i16", KG_I16, INT16_MIN, INT16_MAX},
        {"T=i16", KG_I16, INT16_MAX, INT16_MIN}, {"T=i16", KG_I16, 128, INT16_MIN},
        {"T=u16", KG_U16, UINT16_MAX, 65408},    {"T=u16", KG_U16, 65407, UINT16_MAX},
        {"T=u16", KG_U16, 128, 32768},           {"T=i32", KG_I32, INT32_MIN, INT32_MIN},
        {"T=u32", KG_U32, UINT32_MAX, 1u << 31},
    };
    enum { M = 12, N = 16, K = 1000 };
    open_host(32, "x86-64 avx2 avx fma f16c");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char choices[64];
        snprintf(choices, sizeof choices, "M=%d N=%d K=%d %s", M, N, K, rows[i].types);
        struct made made = make(nn, choices);
        struct memory memory = {.workspace = NULL};
        allocate(made.problem, &memory);
        for (size_t at = 0; at < M * K; at++)
            kg_dtype_store_integer(rows[i].dtype, memory.tensors[0], at, rows[i].a);
        for (size_t at = 0; at < K * N; at++)
            kg_dtype_store_integer(rows[i].dtype, memory.tensors[1], at, rows[i].b);
        struct kg_built *built = build(made.problem, NULL, 1);
        memory.workspace =
            aligned_alloc(64, kg_built_workspace(built, made.problem) / 64 * 64 + 64);
        CHECK_STATUS(
            kg_built_run(built, made.problem, memory.tensors, memory.workspace, NULL, &error),
            KG_OK, &error);
        const uint64_t expected = (uint64_t)rows[i].a * (uint64_t)rows[i].b * K;
        for (size_t at = 0; at < M * N; at++)
            CHECK(((const uint64_t *)memory.tensors[2])[at] == expected);
        kg_built_free(built);
        release(made.problem, &memory);
        unmake(&made);
    }
    kg_device_close(device);
}

// Measured on two AVX2 cores: 1.0 ms in plain loops, 0.14 ms in pairs of bytes; a row of bytes by
// 1024 columns 0.43 ms in panels, 0.33 ms in plain loops; of 64 bits, 1.82 ms and 1.47 ms.
static void test_choices(void)
{
    open_host(32, "x86-64 avx2 avx fma f16c");
    CHECK(chooses(nn, "M=132 N=130 K=127 T=i8", &kg_host_contract));
    CHECK(chooses(nt, "M=128 N=128 K=256 T=i16", &kg_host_contract));
    CHECK(!chooses(nn, "M=1 N=1024 K=1024 T=i8", &kg_host_contract));
    CHECK(!chooses(nt, "M=4 N=512 K=1024 T=u16", &kg_host_contract));
    CHECK(chooses(nt, "M=128 N=128 K=256 T=i64", &kg_host_direct));
    kg_device_close(device);
    open_host(64, "x86-64 avx512f avx2 avx fma f16c");
    CHECK(chooses(nn, "M=132 N=130 K=127 T=i8", &kg_host_contract));
    CHECK(chooses(nn, "M=132 N=130 K=127 T=i64", &kg_host_contract));
    kg_device_close(device);
}

int main(void)
{
    if (!folder_make(folder))
        return 1;
    test_values();
    test_results();
    test_extremes();
    test_choices();
    folder_remove(folder);
    printf("%d checks, %d failed\n", test_checks, test_failures);
    return test_failures != 0;
}
