// How loops of host kernels are written, where it decides their speed: f16 converted a step at a
// time, items counted instead of divided, truth values read as bytes, steps over lanes kept apart.
// That they compute the right thing is checked at sizes around each length that matters.

#include "family_bench.h"
#include "gen/families.h"
#include "support/sample_problem.h"

static struct bench bench;

static const char *const rows[] = {"P=1 D=1",   "P=3 D=63",  "P=2 D=64",  "P=3 D=65",   "P=2 D=130",
                                   "P=3 D=256", "P=2 D=257", "P=3 D=700", "P=2 D=5000", NULL};

static void open_bench(void)
{
    bench_open(&bench);
}

static void check(const char *family, const char *signature, const char *formula, const char *dtype)
{
    bench_formula(&bench, family, signature, formula, dtype, rows, 1);
}

// The last piece of a run shares elements with the one before.
static void pieces(void)
{
    check("pointwise", "(x: T[P, D], b: T[D]) -> (y: T[P, D])", "y[p, d] = relu(x[p, d]) * b[d]",
          "f16");
    check("pointwise", "(x: T[P, D]) -> (y: T[P, D])", "y[p, d] = where(d <= p, x[p, d], -inf)",
          "f16");
    check("pointwise", "(x: T[P, D]) -> (y: u8[P, D])",
          "y[p, d] = cast(u8, min(max(round(x[p, d]), 0), 255))", "f16");
    check("pointwise", "(x: T[P, D]) -> (y: i64[P, D])", "y[p, d] = cast(i64, x[p, d] * 1e19)",
          "f32");
    check("pointwise", "(x: T[P, D]) -> (y: f16[P, D], z: f32[P, D])",
          "y[p, d] = x[p, d] z[p, d] = x[p, d] * 2", "f32");
    check("pointwise", "(x: T[P, D]) -> (y: f32[P, D], z: f16[P, D])",
          "y[p, d] = x[p, d] z[p, d] = x[p, d] * 2", "f16");
}

// Three axes that items count, and the blocks of a tiled pair.
static void items(void)
{
    static const char *const sizes[] = {"A=1 B=1 C=1", "A=3 B=5 C=7",   "A=2 B=33 C=1030",
                                        "A=4 B=0 C=9", "A=40 B=3 C=70", NULL};
    bench_formula(&bench, "pointwise", "(x: T[A, B, C]) -> (y: T[B, A, C])",
                  "y[b, a, c] = x[a, b, c] + 1", "f32", sizes, 2);
    bench_formula(&bench, "pointwise", "(x: T[A, B, C]) -> (y: T[B, C, A])",
                  "y[b, c, a] = x[a, b, c] * 2", "f32", sizes, 3);
    bench_formula(&bench, "pointwise", "(x: T[A, B, C]) -> (y: T[C, A])", "y[c, a] = x[a, 0, c]",
                  "f16", (const char *const[]){"A=3 B=5 C=7", "A=70 B=1 C=40", NULL}, 4);
}

// Subscripts that an item reads once, and one that is made in the loop.
static void gathers(void)
{
    const char *signature = "(x: T[P, D], k: i64[P]) -> (y: T[P, D])";
    check("pointwise", signature, "y[p, d] = x[k[p], d]", "f32");
    check("pointwise", signature, "y[p, d] = x[k[p], d] * 2", "f16");
    check("pointwise", signature, "m[p, d in 0..D] = k[p] + 1 y[p, d] = x[m[p, d], d]", "f32");
    check("pointwise", signature, "y[p, d] = pad(x[k[p], d], 0)", "f32");
}

static void halves_of_reductions(void)
{
    const char *signature = "(x: T[P, D]) -> (y: T[P])";
    check("reduce", signature, "y[p] = sum(d) x[p, d]", "f16");
    check("reduce", signature, "y[p] = max(d) x[p, d]", "f16");
    check("reduce", signature, "y[p] = sum(d) x[p, d] * x[p, d]", "f16");
    check("reduce", "(x: T[P, D]) -> (y: i32[P])", "y[p] = sum(d) isnan(x[p, d])", "f16");
    check("reduce", "(x: T[P, D], g: T[D]) -> (y: T[P])",
          "h[p, d] = x[p, d] * g[d] y[p] = max(d) abs(h[p, d])", "f16");
    // The first statement is read beside its own place, too.
    check("reduce", "(x: T[P, D]) -> (y: T[P])",
          "h[p, d] = x[p, d] * 2 y[p] = max(d) h[p, d] - h[p, 0]", "f16");
}

static void halves_of_rows(void)
{
    check("rowwise", "(x: T[P, D]) -> (y: T[P, D])",
          "m[p] = max(d) x[p, d] e[p, d] = exp(x[p, d] - m[p]) "
          "y[p, d] = e[p, d] / sum(j) e[p, j]",
          "f16");
    check("rowwise", "(x: T[P, D], g: T[D]) -> (y: T[P, D], z: T[P, D])",
          "m[p] = mean(d) x[p, d] z[p, d] = x[p, d] - m[p] y[p, d] = z[p, d] * g[d]", "f16");
}

static void truth(void)
{
    check("pointwise", "(x: T[P, D], m: bool[P, D]) -> (y: T[P, D])",
          "y[p, d] = where(m[p, d], -1.0, x[p, d])", "f32");
    bench_op(&bench, "pointwise",
             "op r(m: bool[P, D], n: bool[P, D]) -> (y: bool[P, D], z: bool[P, D])\n"
             "{ y[p, d] = m[p, d] && n[p, d] z[p, d] = m[p, d] }",
             NULL, rows, 1);
    bench_op(&bench, "reduce", "op r(m: bool[P, D]) -> (y: bool[P])\n{ y[p] = any(d) m[p, d] }",
             NULL, rows, 2);
    bench_op(&bench, "reduce",
             "op r(m: bool[P, D]) -> (y: i32[P])\n{ y[p] = sum(d) cast(i32, m[p, d]) }", NULL, rows,
             3);
}

// Neighbours that do not lie side by side are converted one by one.
static void strides(void)
{
    const char *sum = "op r(x: f16[P, D]) -> (y: f16[P])\n{ y[p] = sum(d) x[p, d] }";
    const char *rows_apart = "op r(x: f16[P, D]) -> (y: f16[P, D])\n"
                             "{ m[p] = max(d) x[p, d] y[p, d] = x[p, d] - m[p] }";
    bench_strided(&bench, "reduce", sum, NULL, "P=3 D=200");
    bench_strided(&bench, "rowwise", rows_apart, NULL, "P=3 D=200");
    bench_refusal(&bench, "rowwise", sum, "P=2 D=5", "a single reduction: reduce does it");
}

// Vectors of 8 or 16, with NaN and infinities among the inputs.
static void running_extremes(void)
{
    static const char *const sizes[] = {"P=2 D=7",   "P=2 D=8",   "P=3 D=15", "P=2 D=16",
                                        "P=3 D=17",  "P=2 D=255", "P=3 D=33", "P=2 D=256",
                                        "P=3 D=289", "P=2 D=700", NULL};
    const char *signature = "(x: T[P, D]) -> (y: T[P, D])";
    bench_formula(&bench, "scan", signature, "y[p, d] = max(j <= d) x[p, j]", "f32", sizes, 5);
    bench_formula(&bench, "scan", signature, "y[p, d] = min(j <= d) x[p, j]", "f32", sizes, 6);
    bench_formula(&bench, "scan", signature, "y[p, d] = sum(j <= d) x[p, j]", "f32", sizes, 7);
    bench_formula(&bench, "scan", signature, "y[p, d] = sum(j < d) x[p, j]", "f32", sizes, 8);
}

static struct kg_device_facts facts = {.isa = "x86-64",
                                       .units = 2,
                                       .interleaving = 1.3,
                                       .vector_bytes = 64,
                                       .cache = {0, 32768, 1 << 20, 32 << 20}};

// The function that runs items, as the family's guess writes it for the whole op.
static void emit(const struct kg_family *family, const char *text, const char *sizes,
                 struct kg_text *source)
{
    struct made made = make(text, sizes);
    struct kg_config config;
    CHECK_STATUS(made.status, KG_OK, &made.error);
    const struct kg_group group = {made.problem, 0, made.problem->nest_count};
    const struct kg_match *match = kg_match_find(family, &group, &facts, NULL);
    kg_text_cut(source, 0);
    CHECK(match);
    family->guess(match, &config);
    CHECK(family->emit(match, &config, "k", source));
    unmake(&made);
}

static bool has(const struct kg_text *source, const char *part)
{
    const char *start = strstr(kg_text_string(source), "k_items(");
    if (start && strstr(start, part))
        return true;
    return false;
}

static int count(const struct kg_text *source, const char *part)
{
    int found = 0;
    for (const char *at = kg_text_string(source); (at = strstr(at, part)); at++)
        found++;
    return found;
}

static void written_so(void)
{
    struct kg_text source = {0};
    emit(&kg_host_reduce, "op f(x: f16[P, D]) -> (y: f16[P])\n{ y[p] = sum(d) x[p, d] * x[p, d] }",
         "P=9 D=500", &source);
    CHECK(has(&source, "kg_widen_f16(x + i0 * x_s0 + block, wide0, LANES);"));
    CHECK(!has(&source, "wide1[")); // both factors are read from one buffer
    CHECK(has(&source, "KG_STEP();"));
    emit(&kg_host_reduce, "op f(x: f32[P, D]) -> (y: f32[P])\n{ y[p] = max(d) x[p, d] }",
         "P=9 D=500", &source);
    // What comes from memory is the first argument: the chain through the second is shorter.
    CHECK(has(&source, "kg_max_f32(v0, acc0[lane])"));
    emit(&kg_host_reduce, "op f(x: f32[P, D]) -> (y: i32[P])\n{ y[p] = sum(d) isnan(x[p, d]) }",
         "P=9 D=500", &source);
    CHECK(has(&source, "LANES = 32,")); // of 64 bits
    emit(&kg_host_rowwise,
         "op f(x: f16[P, D]) -> (y: f16[P, D])\n"
         "{ m[p] = max(d) x[p, d] y[p, d] = x[p, d] - m[p] }",
         "P=9 D=500", &source);
    CHECK(has(&source, "kg_narrow_f16(narrow1, y + i0 * y_s0 + block, LANES);"));
    emit(&kg_host_pointwise,
         "op f(x: f32[P, D, E], m: bool[P, E]) -> (y: f32[P, D, E])\n"
         "{ y[p, d, e] = where(m[p, e], x[p, d, e], 0) }",
         "P=9 D=5 E=500", &source);
    CHECK(has(&source, "const uint8_t *restrict m"));
    CHECK(has(&source, "if (++i1 < count1)"));
    const char *loop = strstr(kg_text_string(&source), "left > 0");
    CHECK(loop && !strchr(loop, '%'));
    emit(&kg_host_pointwise,
         "op f(x: f32[V, D], k: i64[P]) -> (y: f32[P, D])\n{ y[p, d] = x[k[p], d] }",
         "V=5 P=9 D=500", &source);
    CHECK(has(&source, "const int64_t place0 = kg_clamp(k[i0], V);"));
    CHECK(has(&source, "= x[place0 * x_s0 + i1];"));
    emit(&kg_host_scan, "op f(x: f32[P, D]) -> (y: f32[P, D])\n{ y[p, d] = max(j <= d) x[p, j] }",
         "P=9 D=500", &source);
    CHECK(has(&source, "_Alignas(KG_LINE) float row0[KG_LINE / sizeof(float) + BLOCK];"));
    kg_text_free(&source);
}

// Long runs are converted in longer pieces.
static void piece_lengths(void)
{
    const char *text = "op f(x: f16[P, D], b: f16[D]) -> (y: f16[P, D])\n"
                       "{ y[p, d] = x[p, d] + b[d] }";
    struct kg_text source = {0};
    emit(&kg_host_pointwise, text, "P=9 D=500", &source);
    CHECK(has(&source, "STAGE = 64 }"));
    emit(&kg_host_pointwise, text, "P=9 D=20000", &source);
    CHECK(has(&source, "STAGE = 256 }"));
    CHECK(has(&source, "next = kg_min_i64(next, stop - STAGE);"));
    // Not if the last one of them would compute much again, or by short vectors.
    emit(&kg_host_pointwise, text, "P=9 D=4000", &source);
    CHECK(has(&source, "BLOCK = 4096, STAGE = 256 }"));
    emit(&kg_host_pointwise, text, "P=9 D=3600", &source);
    CHECK(has(&source, "BLOCK = 4096, STAGE = 64 }"));
    facts.vector_bytes = 32;
    emit(&kg_host_pointwise, text, "P=9 D=20000", &source);
    CHECK(has(&source, "STAGE = 64 }"));
    facts.vector_bytes = 64;
    // What is read again is converted once, in a later statement too; another row is not the same.
    emit(&kg_host_pointwise,
         "op f(x: f16[P, D]) -> (y: f16[P, D], z: f16[P, D])\n"
         "{ y[p, d] = x[p, d] * tanh(x[p, d])\n  z[p, d] = y[p, d] + x[p, d] }",
         "P=9 D=500", &source);
    CHECK(count(&source, "kg_widen_f16(x") == 1 && count(&source, "wide0[lane]") == 3);
    emit(&kg_host_pointwise,
         "op f(x: f16[P, D]) -> (y: f16[P, D])\n{ y[p, d] = x[0, d] - x[p, d] * x[p, d] }",
         "P=9 D=500", &source);
    CHECK(count(&source, "kg_widen_f16(x") == 2 && count(&source, "wide1[lane]") == 2);
    // Other narrow floats are converted in the loop itself.
    emit(&kg_host_pointwise,
         "op f(x: bf16[P, D], b: f8e4m3[D]) -> (y: bf16[P, D])\n{ y[p, d] = x[p, d] + b[d] }",
         "P=9 D=500", &source);
    CHECK(has(&source, "kg_load_bf16(x, ") && !has(&source, "kg_widen_"));
    CHECK(has(&source, "kg_store_bf16(y, ") && !has(&source, "kg_narrow_"));
    // What is only stored in another dtype goes from tensor to tensor.
    emit(&kg_host_pointwise, "op f(x: f32[N]) -> (y: f16[N])\n{ y[i] = x[i] }", "N=50000", &source);
    CHECK(has(&source, "kg_narrow_f16(x + next, y + next, STAGE);") && !has(&source, "narrow0"));
    emit(&kg_host_pointwise, "op f(x: f16[N]) -> (y: f32[N])\n{ y[i] = x[i] }", "N=50000", &source);
    CHECK(has(&source, "kg_widen_f16(x + next, y + next, STAGE);") && !has(&source, "wide0"));
    kg_text_free(&source);
}

// What waits for memory is streamed, and items are walked alternately.
static void alternating_items(void)
{
    const char *relu = "op f(x: f32[P, D], b: f32[D]) -> (y: f32[P, D])\n"
                       "{ y[p, d] = relu(x[p, d] + b[d]) }";
    struct kg_text source = {0};
    emit(&kg_host_pointwise, relu, "P=100000 D=1000", &source);
    CHECK(has(&source, "WAYS = 4 }") && has(&source, "kg_stream_lines(y + "));
    // Small tensors stay in the caches.
    emit(&kg_host_pointwise, relu, "P=10 D=1000", &source);
    CHECK(!has(&source, "WAYS") && !has(&source, "kg_stream_lines(y"));
    // Long formulas take longer than memory does.
    emit(&kg_host_pointwise, "op f(x: f32[N]) -> (y: f32[N])\n{ y[i] = gelu(x[i]) }", "N=100000000",
         &source);
    CHECK(!has(&source, "kg_stream_lines(y"));
    // Reads that jump from row to row gain nothing.
    emit(&kg_host_pointwise,
         "op f(x: f32[A, B, D]) -> (y: f32[B, A, D])\n{ y[b, a, d] = x[a, b, d] + 1 }",
         "A=300 B=300 D=1000", &source);
    CHECK(!has(&source, "kg_stream_lines(y"));
    // A copy leaves its tensor without a stop.
    emit(&kg_host_pointwise, "op f(x: f32[N]) -> (y: f32[N])\n{ y[i] = x[i] }", "N=100000000",
         &source);
    CHECK(has(&source, "kg_stream_lines(y + next, x + next, "));
    kg_text_free(&source);
}

// Rows of a column's step lie a share of them all apart; places are found in order.
static void rows_apart(void)
{
    struct kg_text source = {0};
    emit(&kg_host_reduce, "op f(x: f32[P, D]) -> (y: f32[D])\n{ y[d] = max(p) x[p, d] }",
         "P=1000 D=500", &source);
    CHECK(has(&source, "(i1 + 7 * share)"));
    emit(&kg_host_reduce, "op f(x: f32[P, D]) -> (y: i32[D])\n{ y[d] = argmax(p) x[p, d] }",
         "P=1000 D=500", &source);
    CHECK(!has(&source, "share)"));
    // Short rows are one stream.
    emit(&kg_host_reduce, "op f(x: f32[P, D]) -> (y: f32[P])\n{ y[p] = sum(d) x[p, d] }",
         "P=500 D=4000", &source);
    CHECK(has(&source, "UNROLL = 1,"));
    emit(&kg_host_reduce, "op f(x: f32[P, D]) -> (y: f32[P])\n{ y[p] = sum(d) x[p, d] }",
         "P=500 D=40000", &source);
    CHECK(has(&source, "UNROLL = 4,"));
    kg_text_free(&source);
}

static void close_bench(void)
{
    bench_close(&bench);
}

TEST_MAIN(open_bench, pieces, items, gathers, halves_of_reductions, halves_of_rows, truth, strides,
          running_extremes, written_so, piece_lengths, alternating_items, rows_apart, close_bench)
