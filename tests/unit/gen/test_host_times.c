// What the host's families expect: the order of ways to do the same work, where measurements on a
// Zen 5 left no doubt, and how expectations follow sizes.

#include "gen/families.h"
#include "gen/host/host_times.h"
#include "support/sample_problem.h"
#include "test.h"

static const struct kg_device_facts facts = {.units = 2,
                                             .clock = 4e9,
                                             .bandwidth = 9e10,
                                             .cache = {0, 49152, 1 << 20, 32 << 20},
                                             .vector_bytes = 64};

// Seconds for `count` nests from `first` on; fails where the family does not take them.
static double expect(const char *text, const char *choices, const struct kg_family *family,
                     int first, int count)
{
    struct made made = make(text, choices);
    if (made.status != KG_OK)
        fprintf(stderr, "%s\n", made.error.text);
    CHECK(made.status == KG_OK);
    if (made.status != KG_OK)
        return 0;
    struct kg_group group = {made.problem, first, count};
    const struct kg_match *match = kg_match_find(family, &group, &facts, NULL);
    CHECK(match != NULL);
    double seconds = 0;
    if (match) {
        struct kg_config config = {0};
        family->guess(match, &config);
        seconds = family->expected(match, &config);
    }
    unmake(&made);
    CHECK(seconds > 0);
    return seconds;
}

static const char swiglu[] =
    "op o(x: T[M, K], g: T[K, N], u: T[K, N]) -> (y: T[M, N]) where T in f32 f16 {\n"
    "    a[m, n] = sum(k) x[m, k] * g[k, n]\n"
    "    b[m, n] = sum(k) x[m, k] * u[k, n]\n"
    "    y[m, n] = silu(a[m, n]) * b[m, n]\n}\n";

// Measured: 686 ms in rows, 1.3 ms for each product by tiles, 42 ms in plain loops.
static void test_two_products(void)
{
    const char *sizes = "M=512 K=512 N=1024";
    double apart = 2 * expect(swiglu, sizes, &kg_host_contract, 0, 1) +
                   expect(swiglu, sizes, &kg_host_pointwise, 2, 1);
    double plain = 2 * expect(swiglu, sizes, &kg_host_direct, 0, 1) +
                   expect(swiglu, sizes, &kg_host_direct, 2, 1);
    CHECK(5 * apart < plain);
    CHECK(5 * plain < expect(swiglu, sizes, &kg_host_rowwise, 0, 3));
}

// Measured: 12.6 ms by lanes of the three elements that are summed, 1.1 ms in plain loops.
static void test_short_rows(void)
{
    const char *pool = "op o(x: f32[N, L]) -> (y: f32[N, L/2]) {\n"
                       "    y[n, l] = max(r in 0..2) x[n, 2*l + r]\n}\n";
    CHECK(2 * expect(pool, "N=4096 L=256", &kg_host_direct, 0, 1) <
          expect(pool, "N=4096 L=256", &kg_host_reduce, 0, 1));
}

// Measured: 81 us and 1163 us.
static void test_long_rows(void)
{
    const char *sum = "op o(x: f32[P, D]) -> (y: f32[P]) { y[p] = sum(d) x[p, d] }";
    CHECK(4 * expect(sum, "P=1024 D=2048", &kg_host_reduce, 0, 1) <
          expect(sum, "P=1024 D=2048", &kg_host_direct, 0, 1));
}

// Measured: 0.9 ms in tiles, 10.3 ms line by line.
static void test_transpose(void)
{
    const char *transpose = "op o(x: f32[M, N]) -> (y: f32[N, M]) { y[n, m] = x[m, n] }";
    CHECK(2 * expect(transpose, "M=1024 N=2048", &kg_host_pointwise, 0, 1) <
          expect(transpose, "M=1024 N=2048", &kg_host_direct, 0, 1));
}

// The four passes of a softmax in one kernel, and in four.
static void test_rows_together(void)
{
    const char *softmax = "op o(x: f32[P, D]) -> (y: f32[P, D]) {\n"
                          "    m[p] = max(d) x[p, d]\n"
                          "    e[p, d] = exp(x[p, d] - m[p])\n"
                          "    y[p, d] = e[p, d] / (sum(d) e[p, d])\n}\n";
    const char *sizes = "P=4096 D=256";
    double apart = 2 * expect(softmax, sizes, &kg_host_reduce, 0, 1) +
                   expect(softmax, sizes, &kg_host_pointwise, 1, 1) +
                   expect(softmax, sizes, &kg_host_pointwise, 3, 1);
    CHECK(expect(softmax, sizes, &kg_host_rowwise, 0, 4) < apart);
}

static void test_sizes(void)
{
    const struct kg_family *const families[] = {&kg_host_contract, &kg_host_reduce,
                                                &kg_host_direct};
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        double small = expect(swiglu, "M=64 K=128 N=256", families[i], 0, 1);
        double tall = expect(swiglu, "M=1024 K=128 N=256", families[i], 0, 1);
        CHECK(tall > 8 * small && tall < 32 * small);
    }
}

// Nothing to do takes hardly any time, and no division by it goes wrong.
static void test_nothing(void)
{
    const struct kg_family *const families[] = {&kg_host_contract, &kg_host_reduce,
                                                &kg_host_direct};
    static const char *const sizes[] = {"M=0 K=4 N=4", "M=4 K=0 N=4", "M=4 K=4 N=0"};
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        for (size_t j = 0; j < sizeof sizes / sizeof sizes[0]; j++)
            CHECK(expect(swiglu, sizes[j], families[i], 0, 1) < 1e-5);
    CHECK(expect(swiglu, "M=0 K=4 N=4", &kg_host_rowwise, 0, 3) < 1e-5);
    CHECK(expect(swiglu, "M=4 K=4 N=0", &kg_host_pointwise, 2, 1) < 1e-5);
}

TEST_MAIN(test_two_products, test_short_rows, test_long_rows, test_transpose, test_rows_together,
          test_sizes, test_nothing)
