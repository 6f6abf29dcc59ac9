// Products of a few rows with weights of 4 and 8 bits on the host: kernels/host/contract_scaled.h
// against the reference, with vectors of every width, and which definitions have that path.

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

// Elements that are adjacent along k: strips have 128, 64 or 32 steps of k, blocks 16384, slabs
// 4096 or more; less than 512 steps take another path, and so do more than 8 rows, or 24. Of an odd
// K, every second line begins in the middle of a byte.
static const char *const line_sizes[] = {
    "M=1 N=40 K=514",  "M=1 N=17 K=512",  "M=2 N=33 K=686",  "M=3 N=21 K=1000",
    "M=4 N=70 K=519",  "M=8 N=50 K=2200", "M=5 N=5 K=9001",  "M=1 N=3 K=20001",
    "M=9 N=30 K=540",  "M=1 N=31 K=525",  "M=2 N=9 K=30",    "M=6 N=19 K=641",
    "M=7 N=401 K=900", "M=23 N=30 K=515", "M=25 N=33 K=515", NULL,
};
static const char *const few_line_sizes[] = {
    "M=1 N=37 K=775",
    "M=2 N=18 K=516",
    "M=4 N=5 K=1027",
    NULL,
};
#define LINES "op lines(x: T[M, K], w: u4[N, K], s: T[N, ceil(K/G)], z: u4[N, ceil(K/G)]) -> "
static const char line_zero[] =
    LINES "(y: T[M, N])\nparam G = 48\nwhere T in f16 bf16 f32\n"
          "{ y[m, n] = sum(k) x[m, k] * ((w[n, k] - z[n, k/G]) * s[n, k/G]) }";
static const char line_signed[] =
    "op signs(x: T[B, M, K], w: i4[B, N, K], s: f32[B, N], b: T[N]) -> (y: T[B, M, N])\n"
    "where T in f16 bf16\n"
    "{ p[b, m, n] = sum(k) x[b, m, k] * (w[b, n, k] * s[b, n])\n"
    "  y[b, m, n] = relu(p[b, m, n] + b[n]) }";
// Lines of one batch begin at even elements, of the other at odd ones; scales lie along n; zeros
// hold for longer than scales.
static const char line_shifted[] =
    "op shifted(x: T[B, M, K], w: u4[N, K+B], s: T[ceil(K/16), N], z: i4[N, ceil(K/32)]) -> "
    "(y: T[B, M, N])\nwhere T in bf16 f32\n"
    "{ y[b, m, n] = sum(k) x[b, m, k] * ((w[n, k+b] - z[n, k/32] + 2) * s[k/16, n]) }";

static const char line_fixed[] =
    "op fixed(x: T[M, K], w: u4[N, K], s: f16[N, ceil(K/32)]) -> (y: T[M, N])\n"
    "where T in f16 bf16 f32\n{ y[m, n] = sum(k) x[m, k] * ((w[n, k] - 8) * s[n, k/32]) }";

// Runs of k that a strip contains, that contain strips, and neither, of either sign.
static void test_line_runs(void)
{
    static const int runs[] = {16, 24, 256};
    char text[400];
    for (int i = 0; i < 3; i++) {
        const char *element = i % 2 ? "i4" : "u4";
        snprintf(text, sizeof text,
                 "op runs(x: T[M, K], w: %s[N, K], s: T[N, ceil(K/%d)], z: %s[N, ceil(K/%d)]) -> "
                 "(y: T[M, N])\nwhere T in f16 bf16\n"
                 "{ y[m, n] = sum(k) x[m, k] * ((w[n, k] - z[n, k/%d]) * s[n, k/%d]) }",
                 element, runs[i], element, runs[i], runs[i], runs[i]);
        bench_op(&bench, "contract", text, i % 3 ? "f16" : "bf16", few_line_sizes,
                 20 + (unsigned)i);
    }
}

static void test_lines(void)
{
    static const int widths[] = {16, 32, 64};
    static const char *const narrow[] = {"bf16", "f32", "f16"};
    const int usual = bench.device->facts.vector_bytes;
    for (int i = 0; i < 3; i++) {
        bench.device->facts.vector_bytes = widths[i];
        bench_op(&bench, "contract", line_zero, narrow[i], line_sizes, 6);
        bench_op(&bench, "contract", line_shifted, widths[i] == 64 ? "bf16" : "f32",
                 (const char *const[]){"B=2 M=2 N=25 K=554", "B=3 M=1 N=12 K=515", NULL}, 9);
    }
    bench.device->facts.vector_bytes = usual;
    bench_op(&bench, "contract", line_fixed, "f16", few_line_sizes, 10);
    bench_op(&bench, "contract", line_signed, "bf16",
             (const char *const[]){"B=3 M=2 N=25 K=555", "B=2 M=1 N=30 K=628", NULL}, 8);
    test_line_runs();
}

static void test_widths(void)
{
    static const int widths[] = {16, 32, 64};
    static const char *const dtypes[] = {"f32", "bf16", "f16"};
    const int usual = bench.device->facts.vector_bytes;
    for (int i = 0; i < 3; i++) {
        bench.device->facts.vector_bytes = widths[i];
        bench_op(&bench, "contract", zero, dtypes[i], sizes, 1);
    }
    bench.device->facts.vector_bytes = usual;
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
    const char *named = strstr(text, "w: u4[E, ") ? "B=2 M=2 N=34 K=64 E=3" : "B=2 M=2 N=34 K=64";
    struct kg_problem *problem = bench_problem(&bench, named, strides);
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

// Bytes, of which a strip has half as many, along n and along k: runs that a strip contains, and
// runs that contain strips.
static void test_bytes(void)
{
    static const char *const byte_sizes[] = {"M=1 N=40 K=31",   "M=3 N=391 K=200",
                                             "M=8 N=65 K=1000", "M=1 N=300 K=9000",
                                             "M=77 N=129 K=70", NULL};
    static const struct {
        int width, run;
        const char *element, *dtype;
    } kinds[] = {{16, 20, "i8", "f32"}, {64, 192, "u8", "bf16"}};
    const int usual = bench.device->facts.vector_bytes;
    char text[400];
    for (int i = 0; i < 2; i++)
        for (int along_k = 0; along_k < 2; along_k++) {
            const char *rows = along_k ? "N" : "K", *columns = along_k ? "K" : "N",
                       *at = along_k ? "n, k" : "k, n";
            const int of_n = along_k ? 1 : kinds[i].run, of_k = along_k ? kinds[i].run : 1;
            bench.device->facts.vector_bytes = kinds[i].width;
            snprintf(text, sizeof text,
                     "op bytes(x: T[M, K], w: %s[%s, %s], s: T[ceil(%s/%d), ceil(%s/%d)], "
                     "z: %s[N]) -> (y: T[M, N])\nwhere T in f16 bf16 f32\n"
                     "{ y[m, n] = sum(k) x[m, k] * ((w[%s] - z[n]) * s[%c/%d, %c/%d]) }",
                     kinds[i].element, rows, columns, rows, of_n, columns, of_k, kinds[i].element,
                     at, at[0], of_n, at[3], of_k);
            CHECK(has_path(text, false));
            bench_op(&bench, "contract", text, kinds[i].dtype,
                     along_k ? few_line_sizes : byte_sizes, 31);
        }
    bench.device->facts.vector_bytes = usual;
}

// What is added after the scale, for nibbles and for bytes, for few rows and for panels.
static const char offset[] =
    "op offset(x: T[M, K], w: u4[K, N], s: T[ceil(K/G), N], o: T[ceil(K/G), N]) -> (y: T[M, N])\n"
    "param G = 48\nwhere T in f16 bf16 f32\n"
    "{ y[m, n] = sum(k) x[m, k] * (w[k, n] * s[k/G, n] - o[k/G, n]) }";
static const char offset_first[] =
    "op first(x: f32[M, K], w: i8[K, N], z: i8[N], s: f32[ceil(K/32), N], o: f32[N]) ->\n"
    "(y: f32[M, N])\n"
    "{ y[m, n] = sum(k) x[m, k] * (o[n] + (w[k, n] - z[n]) * s[k/32, n]) }";

static void test_offsets(void)
{
    static const char *const offset_sizes[] = {"M=1 N=129 K=131", "M=5 N=154 K=900",
                                               "M=70 N=300 K=97", NULL};
    bench_op(&bench, "contract", offset, "bf16", offset_sizes, 41);
    bench_op(&bench, "contract", offset_first, NULL, offset_sizes, 42);
}

// Matrices that items of the batch choose: in any order, some several times, some never; indices
// beyond the last one are clamped.
static const char chosen[] =
    "op chosen(x: T[B, M, K], e: i8[B], w: u4[E, K, N], s: T[E, ceil(K/G), N],\n"
    "          z: u4[E, ceil(K/G), N]) -> (y: T[B, M, N])\nparam G = 32\nwhere T in f16 bf16\n"
    "{ y[b, m, n] = sum(k) x[b, m, k] * ((w[e[b], k, n] - z[e[b], k/G, n]) * s[e[b], k/G, n]) }";
static const char several_chosen[] =
    "op chosen(x: T[B, K], e: i8[B, M], w: u4[E, N, K], s: T[E, N, ceil(K/G)]) ->\n"
    "(y: T[B, M, N])\nparam G = 32\nwhere T in f16 bf16\n"
    "{ y[b, m, n] = sum(k) x[b, k] * ((w[e[b, m], n, k] - 8) * s[e[b, m], n, k/G]) }";

static void test_chosen(void)
{
    bench_op(&bench, "contract", chosen, "f16",
             (const char *const[]){"B=5 M=2 N=75 K=70 E=3", "B=2 M=11 N=300 K=50 E=1", NULL}, 11);
    bench_op(&bench, "contract", several_chosen, "bf16",
             (const char *const[]){"B=5 M=2 N=15 K=570 E=3", "B=1 M=3 N=30 K=541 E=9", NULL}, 12);
}

// Packed weights: whole panels and parts of them, runs of k that end within one and that contain
// several, few rows and more, either sign, an offset, matrices that are chosen.
static const char packed[] =
    "op packs(x: T[M, K], w: packed u4[K, N], s: T[ceil(K/G), N], z: u4[ceil(K/G), N]) -> (y: T[M, "
    "N])\nparam G = 48\nwhere T in f16 bf16 f32\n"
    "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - z[k/G, n]) * s[k/G, n]) }";
static const char packed_panels[] =
    "op packs(x: T[M, K], w: packed u4[K, N], s: T[ceil(K/G), N], z: u4[ceil(K/G), N]) -> (y: T[M, "
    "N])\nparam G = 64\nwhere T in f16 bf16\n"
    "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - z[k/G, n] - 1) * s[k/G, n]) }";
static const char packed_runs[] =
    "op packs(x: T[M, K], w: packed i4[K, N], s: T[ceil(K/G), N], o: T[N]) -> (y: T[M, N])\n"
    "param G = 128\nwhere T in f16 bf16\n"
    "{ y[m, n] = sum(k) x[m, k] * (w[k, n] * s[k/G, n] + o[n]) }";
static const char packed_chosen[] =
    "op packs(x: T[B, M, K], e: i8[B], w: packed u4[E, K, N], s: T[E, N]) -> (y: T[B, M, N])\n"
    "where T in f16 bf16\n"
    "{ y[b, m, n] = sum(k) x[b, m, k] * ((w[e[b], k, n] - 8) * s[e[b], n]) }";

static void test_packed(void)
{
    static const char *const packed_sizes[] = {"M=1 N=129 K=131", "M=3 N=300 K=9000",
                                               "M=8 N=40 K=64", "M=33 N=265 K=400", NULL};
    static const int widths[] = {16, 32, 64};
    static const char *const dtypes[] = {"f32", "bf16", "f16"};
    const int usual = bench.device->facts.vector_bytes;
    for (int i = 0; i < 3; i++) {
        bench.device->facts.vector_bytes = widths[i];
        bench_op(&bench, "contract", packed, dtypes[i], packed_sizes, 51);
    }
    bench.device->facts.vector_bytes = usual;
    bench_op(&bench, "contract", packed_runs, "bf16", packed_sizes, 52);
    // Runs of whole panels; more strips than are taken at a time.
    bench_op(&bench, "contract", packed_panels, "f16",
             (const char *const[]){"M=2 N=1300 K=300", "M=1 N=1130 K=4500", NULL}, 54);
    bench_op(&bench, "contract", packed_panels, "bf16",
             (const char *const[]){"M=4 N=333 K=200", NULL}, 55);
    bench_op(&bench, "contract", packed_chosen, "f16",
             (const char *const[]){"B=5 M=2 N=75 K=70 E=3", "B=2 M=11 N=300 K=150 E=2", NULL}, 53);
    CHECK(has_path(packed, false));
    CHECK(has_path(packed_runs, false));
    CHECK(has_path(packed_panels, false));
    CHECK(!has_path(packed, true));
}

// Elements that are rounded to 16 bits once they are scaled: with vectors of every width, packed,
// with an offset, adjacent along k.
static const char rounds[] =
    "op rounds(x: T[M, K], w: u4[K, N], s: T[ceil(K/G), N], z: u4[ceil(K/G), N]) -> (y: T[M, N])\n"
    "param G = 48\nwhere T in f16 bf16\n"
    "{ y[m, n] = sum(k) x[m, k] * cast(T, (w[k, n] - z[k/G, n]) * s[k/G, n]) }";
static const char rounds_packed[] =
    "op rounds(x: T[M, K], w: packed i4[K, N], s: f32[ceil(K/G), N], o: T[N]) -> (y: f32[M, N])\n"
    "param G = 64\nwhere T in f16 bf16\n"
    "{ y[m, n] = sum(k) x[m, k] * cast(T, w[k, n] * s[k/G, n] - o[n]) }";
static const char rounds_lines[] =
    "op rounds(x: T[M, K], w: i8[N, K], s: T[N, ceil(K/G)]) -> (y: T[M, N])\n"
    "param G = 32\nwhere T in f16 bf16\n"
    "{ y[m, n] = sum(k) x[m, k] * cast(T, w[n, k] * s[n, k/G]) }";

// Elements that bf16 has as denormal numbers only, and instructions for pairs take for zero.
static const char rounds_tiny[] =
    "op rounds(x: T[M, K], w: packed u4[K, N], s: T[ceil(K/64), N]) -> (y: f32[M, N])\n"
    "where T in bf16\n"
    "{ y[m, n] = (sum(k) x[m, k] * cast(T, w[k, n] * s[k/64, n] * 1e-20 * 1e-20)) * 1e30 * 1e8 }";

static void test_rounded(void)
{
    static const char *const two_sizes[] = {"M=3 N=391 K=200", "M=33 N=265 K=100", NULL};
    static const int widths[] = {16, 32, 64};
    const int usual = bench.device->facts.vector_bytes;
    for (int i = 0; i < 3; i++) {
        bench.device->facts.vector_bytes = widths[i];
        bench_op(&bench, "contract", rounds, i % 2 ? "bf16" : "f16", two_sizes, 61);
        bench_op(&bench, "contract", rounds_packed, i % 2 ? "f16" : "bf16", two_sizes, 62);
    }
    bench.device->facts.vector_bytes = usual;
    bench_op(&bench, "contract", rounds_lines, "bf16", few_line_sizes, 63);
    bench_op(&bench, "contract", rounds_tiny, "bf16", two_sizes, 64);
    CHECK(has_path(rounds, false));
    CHECK(has_path(rounds_packed, false));
    CHECK(has_path(rounds_lines, false));
    // What is rounded and then scaled again.
    CHECK(!has_path("op twice(x: f16[M, K], w: u4[K, N], s: f16[N]) -> (y: f32[M, N])\n"
                    "{ y[m, n] = sum(k) x[m, k] * (cast(f16, w[k, n] * s[n]) * s[n]) }",
                    false));
}

static void test_choice(void)
{
    CHECK(has_path(zero, false));
    CHECK(has_path(several, false));
    CHECK(has_path(batches, false));
    CHECK(has_path(line_zero, false));
    CHECK(has_path(line_signed, false));
    CHECK(has_path(chosen, false));
    CHECK(has_path(several_chosen, false));
    CHECK(has_path(offset, false));
    CHECK(has_path(offset_first, false));
    CHECK(!has_path(zero, true));
    // A sum that is divided: by a zero it is something else than the sum of what is divided.
    CHECK(!has_path("op over(x: f32[M, K], w: u4[K, N], s: f32[N], o: f32[N], t: f32[N]) ->\n"
                    "(y: f32[M, N])\n"
                    "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] * s[n] + o[n]) / t[n]) }",
                    false));
    // Scales that change with every step of k, runs that end within a word, floats.
    CHECK(!has_path("op each(x: f32[M, K], w: u4[K, N], s: f32[K, N]) -> (y: f32[M, N])\n"
                    "{ y[m, n] = sum(k) x[m, k] * (w[k, n] * s[k, n]) }",
                    false));
    CHECK(!has_path("op word(x: f32[M, K], w: u4[N, K], s: f32[N, ceil(K/20)]) -> (y: f32[M, N])\n"
                    "{ y[m, n] = sum(k) x[m, k] * (w[n, k] * s[n, k/20]) }",
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
    test_chosen();
    test_packed();
    test_rounded();
    test_lines();
    test_bytes();
    test_offsets();
    bench_close(&bench);
    printf("%d checks, %d failed\n", test_checks, test_failures);
    return test_failures != 0;
}
