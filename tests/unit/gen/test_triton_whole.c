// Ops of several launches as a single one: which definitions are, and what is written.

#include "gen/standalone.h"
#include "support/sample_problem.h"
#include "test.h"

#include <string.h>

static const struct kg_device_facts device = {
    .units = 2, .cache = {0, 32768, 524288, 33554432}, .vector_bytes = 32};

static void write_module(const char *definition, const char *sizes, struct kg_text *text)
{
    struct made made = make(definition, sizes);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    CHECK(kg_gen_standalone_triton(made.problem, NULL, &device, text));
    unmake(&made);
}

static int count(const char *text, const char *end, const char *wanted)
{
    int found = 0;
    for (const char *at = text; (at = strstr(at, wanted)) && at < end; at++)
        found++;
    return found;
}

// One load of x, one store, and no statement's own kernel before the function returns.
static void test_columns(void)
{
    struct kg_text text = {0};
    write_module("op columns(x: T[P, D]) -> (y: T[P, D]) where T in f16 f32\n"
                 "{ m[d] = max(p) x[p, d]\n"
                 "  e[p, d] = exp(x[p, d] - m[d])\n"
                 "  y[p, d] = e[p, d] / (sum(p) e[p, d]) }\n",
                 "P=4 D=8", &text);
    const char *module = kg_text_string(&text);
    const char *kernel = strstr(module, "def _columns_kernel(");
    const char *end = kernel ? strstr(kernel, "@triton.jit") : NULL;
    CHECK(kernel && end);
    if (kernel && end) {
        CHECK(count(kernel, end, "tl.load(") == 1);
        CHECK(count(kernel, end, "tl.store(") == 1);
    }
    const char *launch = strstr(module, "_whole_tile(rows, cols, True, ");
    const char *returns = launch ? strstr(launch, "return y") : NULL;
    CHECK(launch && returns);
    if (launch && returns) {
        CHECK(count(launch, returns, "_launcher(") == 1);
        CHECK(strstr(returns, "_columns_e_kernel") != NULL);
    }
    kg_text_free(&text);
}

// Statistics of channels: rows that lie apart, and values for each row between the statements.
static void test_channels(void)
{
    struct kg_text text = {0};
    write_module("op channels(x: f32[N, C, W], g: f32[C]) -> (y: f32[W, N, C], s: f32[C])\n"
                 "{ m[c] = mean(n, w) x[n, c, w]\n"
                 "  d[n, c, w] = x[n, c, w] - m[c]\n"
                 "  s[c] = rsqrt((mean(n, w) d[n, c, w] * d[n, c, w]) + 1)\n"
                 "  y[w, n, c] = d[n, c, w] * s[c] * g[c] }\n",
                 "N=2 C=3 W=4", &text);
    const char *launch = strstr(kg_text_string(&text), "_whole_tile(rows, cols, False, ");
    CHECK(launch && strstr(launch, "return y, s"));
    kg_text_free(&text);
}

static void check_apart(const char *definition, const char *sizes)
{
    struct kg_text text = {0};
    write_module(definition, sizes, &text);
    CHECK(strstr(kg_text_string(&text), "_whole_tile(") == NULL);
    kg_text_free(&text);
}

static void test_refused(void)
{
    // The total of another row.
    check_apart("op outer(x: f32[N, N]) -> (y: f32[N, N])\n"
                "{ m[j] = sum(i) x[i, j]\n  y[i, j] = x[i, j] - m[j] * m[i] }\n",
                "N=4");
    // A value and its mirror image.
    check_apart("op mirrored(x: f32[N, N]) -> (y: f32[N, N])\n"
                "{ m[j] = sum(i) x[i, j]\n  e[i, j] = x[i, j] - m[j]\n"
                "  y[i, j] = (sum(i) e[i, j]) + e[i, j] * e[j, i] }\n",
                "N=4");
    // Rows of groups.
    check_apart("op groups(x: f32[C, W]) -> (y: f32[W, C])\nparam G = 2\n"
                "{ m[g in 0..C/G] = mean(k in 0..G, w) x[g * G + k, w]\n"
                "  y[w, c] = x[c, w] - m[c / G] }\n",
                "C=4 W=3");
    // A part of a row.
    check_apart("op running(x: f32[P, D]) -> (y: f32[P, D])\n"
                "{ m[q in 0..P, d] = sum(p <= q) x[p, d]\n  s[d] = max(p) m[p, d]\n"
                "  y[p, d] = m[p, d] - s[d] }\n",
                "P=4 D=3");
    // A neighbour's value.
    check_apart("op shifted(x: f32[P, D]) -> (y: f32[P, D])\n"
                "{ m[d] = max(p) x[p, d]\n  e[p, d] = x[p, d] - m[d]\n"
                "  y[p, d] = (sum(q) e[q, d]) + pad(e[p - 1, d], 0) }\n",
                "P=4 D=3");
    // Matrix products have tiles of their own.
    check_apart("op products(a: f32[M, K], b: f32[K, N]) -> (y: f32[M, N])\n"
                "{ c[m, n] = sum(k) a[m, k] * b[k, n]\n  s[n] = max(m) c[m, n]\n"
                "  y[m, n] = c[m, n] - s[n] }\n",
                "M=4 K=3 N=5");
}

TEST_MAIN(test_columns, test_channels, test_refused)
