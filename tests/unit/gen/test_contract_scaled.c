// Products of a few rows with 4-bit weights on the host: kernels/host/contract_scaled.h against the
// reference, with vectors of every width, and which definitions have that path.

#include "family_bench.h"

static struct bench bench;

// Strips have 128, 64 or 32 columns: one, several, incomplete ones; lines that begin in the middle
// of a byte; runs of k that end within a chunk of 16; several blocks of k; up to 8 rows, and more.
static const char *const sizes[] = {
    "M=1 N=40 K=1",      "M=1 N=64 K=31",    "M=1 N=129 K=130",
    "M=2 N=258 K=97",    "M=3 N=391 K=200",  "M=4 N=2300 K=70",
    "M=5 N=77 K=1000",   "M=8 N=512 K=430",  "M=9 N=200 K=64",
    "M=1 N=300 K=9000",  "M=7 N=1025 K=385", "M=1030 N=129 K=70",
    "M=33 N=1700 K=400", "M=2 N=1300 K=0",   NULL,
};
static const char *const few_sizes[] = {
    "M=1 N=129 K=130",
    "M=3 N=391 K=200",
    "M=5 N=154 K=900",
    NULL,
};

static const char zero[] =
    "op zero(x: T[M, K], w: u4[K, N], s: T[ceil(K/G), N], z: u4[ceil(K/G), N]) -> (y: T[M, N])\n"
    "param G = 48\nwhere T in f16 bf16 f32\n"
    "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - z[k/G, n]) * s[k/G, n]) }";
static const char column[] = "op column(x: T[M, K], w: u4[K, N], s: T[N]) -> (y: T[M, N])\n"
                             "where T in bf16\n"
                             "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - 8) * s[n]) }";
// Elements of either sign, two integers beside them, scales that divide, constants.
static const char several[] =
    "op several(x: f32[M, K], w: i4[K, N], z: i8[ceil(K/G), N], s: f16[ceil(K/G), N], t: T[N]) -> "
    "(y: T[M, N])\nparam G = 64\nwhere T in f32\n"
    "{ y[m, n] = -(sum(k) x[m, k] * ((w[k, n] - z[k/G, n] + 3) * s[k/G, n] / t[n])) * 2 }";
static const char batches[] =
    "op batches(x: T[B, M, K], w: u4[B, K, N], s: T[B, N], b: T[N]) -> (y: T[B, M, N])\n"
    "where T in f16\n"
    "{ p[b, m, n] = sum(k) x[b, m, k] * (w[b, k, n] * s[b, n])\n"
    "  y[b, m, n] = relu(p[b, m, n] + b[n]) }";

static void test_widths(void)
{
    static const int widths[] = {16, 32, 64};
    const int usual = bench.device->facts.vector_bytes;
    for (int i = 0; i < 3; i++) {
        bench.device->facts.vector_bytes = widths[i];
        bench_op(&bench, "contract", zero, widths[i] == 32 ? "bf16" : "f16", sizes, 1);
    }
    bench.device->facts.vector_bytes = usual;
    bench_op(&bench, "contract", zero, "f32", few_sizes, 2);
}

static void test_formulas(void)
{
    bench_op(&bench, "contract", column, NULL, few_sizes, 3);
    bench_op(&bench, "contract", several, NULL, few_sizes, 4);
    bench_op(&bench, "contract", batches, NULL,
             (const char *const[]){"B=3 M=2 N=75 K=70", "B=2 M=1 N=300 K=50", NULL}, 5);
}

// What the source of the guess says of the path.
static bool has_path(const char *text, bool strides)
{
    struct kg_text source = {0};
    struct kg_config guess;
    bench_define(&bench, text, NULL);
    struct kg_problem *problem = bench_problem(&bench, "M=2 N=34 K=64", strides);
    struct kg_group group = bench_group(problem);
    const struct kg_match *match = kg_match_find(kg_target_family(&kg_target_host, "contract"),
                                                 &group, &bench.device->facts, NULL);
    CHECK(match != NULL);
    if (match) {
        match->family->guess(match, &guess);
        CHECK(match->family->emit(match, &guess, "kernel", &source));
    }
    bool found = source.length > 0 && strstr(kg_text_string(&source), "#define KG_SCALED 1");
    kg_text_free(&source);
    kg_problem_free(problem);
    return found;
}

static void test_choice(void)
{
    CHECK(has_path(zero, false));
    CHECK(has_path(several, false));
    CHECK(has_path(batches, false));
    CHECK(!has_path(zero, true));
    // Scales that change with every step of k, floats, elements that are adjacent along k.
    CHECK(!has_path("op each(x: f32[M, K], w: u4[K, N], s: f32[K, N]) -> (y: f32[M, N])\n"
                    "{ y[m, n] = sum(k) x[m, k] * (w[k, n] * s[k, n]) }",
                    false));
    CHECK(!has_path("op real(x: f32[M, K], w: f32[K, N], s: f32[N]) -> (y: f32[M, N])\n"
                    "{ y[m, n] = sum(k) x[m, k] * (w[k, n] * s[n]) }",
                    false));
    bench_strided(&bench, "contract", zero, "f32", "M=2 N=34 K=100");
    bench_refusal(&bench, "contract",
                  "op most(x: f32[M, K], w: u4[K, N], s: f32[N]) -> (y: f32[M, N])\n"
                  "{ y[m, n] = max(k) x[m, k] * (w[k, n] * s[n]) }",
                  "M=2 N=34 K=64", "it is not a sum");
}

int main(void)
{
    bench_open(&bench);
    test_choice();
    test_widths();
    test_formulas();
    bench_close(&bench);
    printf("%d checks, %d failed\n", test_checks, test_failures);
    return test_failures != 0;
}
