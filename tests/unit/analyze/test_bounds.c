// Reads outside a tensor are found before a kernel exists, and only those.

#include "support/sample_problem.h"
#include "test.h"

static void check_fine(const char *definition, const char *choices)
{
    struct made made = make(definition, choices);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    unmake(&made);
}

static void check_refused(const char *definition, const char *choices, const char *expected)
{
    struct made made = make(definition, choices);
    CHECK_STATUS(made.status, KG_ERROR_SHAPE, &made.error);
    CHECK_TEXT(made.error.text, expected);
    CHECK(made.problem == NULL);
    unmake(&made);
}

static void check_some(const char *definition, const char *choices, const char *part)
{
    struct made made = make(definition, choices);
    CHECK_STATUS(made.status, KG_ERROR_SHAPE, &made.error);
    CHECK_TEXT(strstr(made.error.text, part) ? part : made.error.text, part);
    unmake(&made);
}

static void test_messages(void)
{
    check_refused(
        "op f(x: f32[N]) -> (y: f32[N])\n"
        "{\n"
        "    y[i] = x[i] + x[i + 1]\n"
        "}\n",
        "N=8",
        "test.kg:3:21: error: x[i + 1] reads outside x\n"
        "        y[i] = x[i] + x[i + 1]\n"
        "                        ^~~~~\n"
        "dimension 0 of x has 8 elements, but subscript i + 1 runs over 1..8 where i runs "
        "over 0..7\n"
        "help: pad(x[i + 1], value) gives what lies outside a value; or let the index run "
        "over less");
    check_some("op f(x: f32[N, 1]) -> (y: f32[N]) { y[i] = x[i, 1] }\n", "N=8",
               "dimension 1 of x has 1 element, but subscript 1 is 1");
    check_some("op f(x: f32[N]) -> (y: f32[N]) { y[i] = x[i - 3] }\n", "N=8",
               "subscript i - 3 runs over -3..4");
    check_some("op f(x: i32[N], t: f32[V]) -> (y: f32[N]) { y[i] = t[x[i]] }\n", "N=8 V=0",
               "gathers from dimension 0 of t, which is empty");
}

// Panels reach beyond the rows and columns of what is packed: these are the limits.
static void test_packed(void)
{
    const char *shifted = "op f(x: f32[K, N], w: packed u4[K, N]) -> (y: f32[K, N])\n"
                          "{\n"
                          "    y[k, n] = x[k, n] + w[k, n + 1]\n"
                          "}\n";
    check_refused(
        shifted, "K=3 N=5",
        "test.kg:3:30: error: w[k, n + 1] reads outside w\n"
        "        y[k, n] = x[k, n] + w[k, n + 1]\n"
        "                                 ^~~~~\n"
        "dimension 1 of w has 5 elements, but subscript n + 1 runs over 1..5 where n runs "
        "over 0..4\n"
        "help: let the index run over less");
    check_some("op f(x: f32[K, N], w: packed u4[3, K, N]) -> (y: f32[K, N])\n"
               "{ y[k, n] = x[k, n] + w[2, k - 1, n] + w[0, k, n] }\n",
               "K=3 N=5", "dimension 1 of w has 3 elements, but subscript k - 1 runs over -1..1");
    check_some("op f(x: f32[K, N], w: packed u4[3, K, N]) -> (y: f32[K, N])\n"
               "{ y[k, n] = x[k, n] + w[3, k, n] }\n",
               "K=3 N=5", "dimension 0 of w has 3 elements, but subscript 3 is 3");
    check_fine("op f(x: f32[K, N], w: packed u4[K, N]) -> (y: f32[K, N])\n"
               "{ y[k, n] = x[k, n] + w[K - 1 - k, n/2*2] }\n",
               "K=65 N=17");
    check_fine("op f(x: f32[K, N], w: packed u4[K+1, N+1]) -> (y: f32[K, N])\n"
               "{ y[k, n] = x[k, n] + w[k + 1, n + 1] }\n",
               "K=64 N=16");
    check_fine("op f(x: f32[K, N], w: packed u4[E, K, N], e: i32[K]) -> (y: f32[K, N])\n"
               "{ y[k, n] = x[k, n] + w[e[k], k, n] }\n",
               "K=64 N=16 E=2");
    check_some("op f(x: f32[K, N], w: packed u4[E, K, N], e: i32[K]) -> (y: f32[K, N])\n"
               "{ y[k, n] = x[k, n] + w[e[k], k, n] }\n",
               "K=64 N=16 E=0", "w[e[k], k, n] gathers from dimension 0 of w, which is empty");
}

// Places of argmax have to fit into what they are stored as.
static void test_places(void)
{
    const char *one = "op f(x: f32[P, D]) -> (y: u8[P])\n{\n    y[p] = argmax(d) x[p, d]\n}\n";
    const char *two = "op f(x: f32[P, D]) -> (y: i8[])\n{\n    y[] = argmin(p, d) x[p, d]\n}\n";
    check_fine(one, "P=300 D=256");
    check_fine(one, "P=300 D=0");
    check_refused(one, "P=3 D=257",
                  "line 3: argmax gives places from 0 to 256, and u8 holds 0 to 255\n"
                  "  in        y[p] = argmax(d) x[p, d]\n"
                  "  hint      give the output a wider integer dtype, such as i64");
    check_fine(two, "P=16 D=8");
    check_fine(two, "P=1000 D=0");
    check_some(two, "P=3 D=43", "argmin gives places from 0 to 128, and i8 holds -128 to 127");
    check_fine("op f(x: f32[N]) -> (y: f16[]) { y[] = argmax(i) x[i] }\n", "N=100000");
    check_some("op f(x: f32[N]) -> (y: f32[N])\n"
               "{ y[n] = argmax(i in 0..4294967296, j in 0..4294967296) x[n] }\n",
               "N=5", "and i64 holds");
}

static void test_affine(void)
{
    const char *stencil = "op f(x: f32[N]) -> (y: f32[N-2]) { y[i] = x[i] + x[i+1] + x[i+2] }\n";
    check_fine(stencil, "N=8");
    check_fine(stencil, "N=2");
    check_fine("op f(x: f32[N]) -> (y: f32[N]) { y[i] = x[N - 1 - i] }\n", "N=5");
    check_some("op f(x: f32[N]) -> (y: f32[N]) { y[i] = x[N - i] }\n", "N=5", "runs over 1..5");
    check_fine("op f(x: f32[N]) -> (y: f32[N]) { y[i] = pad(x[i + 1], 0) }\n", "N=5");
    // Sizes as factors: row-major by hand.
    const char *flat = "op f(x: f32[N], z: f32[A, B]) -> (y: f32[A, B]) { y[a, b] = x[a*B + b] }\n";
    check_fine(flat, "N=12 A=3 B=4");
    check_some(flat, "N=11 A=3 B=4", "runs over 0..11");
}

static void test_quotients(void)
{
    const char *halves = "op f(x: f32[N], z: f32[M]) -> (y: f32[M]) { y[i] = x[i/2] }\n";
    check_fine(halves, "N=4 M=8");
    check_some(halves, "N=4 M=9", "runs over 0..4");
    const char *wrap = "op f(x: f32[N]) -> (y: f32[N]) { y[i] = x[(i + 3) % N] }\n";
    check_fine(wrap, "N=5");
    check_fine("op f(x: f32[4], z: f32[M]) -> (y: f32[M]) { y[i] = x[(i - 7) % 4] }\n", "M=9");
    check_fine("op f(x: f32[3], z: f32[M]) -> (y: f32[M]) { y[i] = x[i % 4] }\n", "M=3");
    check_some("op f(x: f32[3], z: f32[M]) -> (y: f32[M]) { y[i] = x[i % 4] }\n", "M=4",
               "runs over 0..3");
    check_some("op f(x: f32[3], z: f32[M]) -> (y: f32[M]) { y[i] = x[(i - 1)/2] }\n", "M=4",
               "runs over -1..1");
}

static void test_relations(void)
{
    // Causal convolution: j <= i keeps i - j inside.
    check_fine("op f(x: f32[N], w: f32[N]) -> (y: f32[N])\n"
               "{ y[i] = sum(j <= i) w[j] * x[i - j] }\n",
               "N=6");
    check_some("op f(x: f32[N], w: f32[N]) -> (y: f32[N])\n"
               "{ y[i] = sum(j <= i) w[j] * x[i - j - 1] }\n",
               "N=6", "runs over -1..4");
    check_fine("op f(x: f32[N], w: f32[N]) -> (y: f32[N])\n"
               "{ y[i] = sum(j < i) w[j] * x[i - j - 1] }\n",
               "N=6");
    check_fine("op f(x: f32[N], w: f32[N]) -> (y: f32[N])\n"
               "{ y[i] = sum(j >= i) w[j] * x[j - i] }\n",
               "N=6");
    check_fine("op f(x: f32[N], w: f32[N]) -> (y: f32[N])\n"
               "{ y[i] = sum(j > i) w[j] * x[j - i - 1] }\n",
               "N=6");
    check_some("op f(x: f32[N], w: f32[N]) -> (y: f32[N])\n"
               "{ y[i] = sum(j < i) w[j] * x[i - j - 2] }\n",
               "N=6", "runs over -1..3");
    check_some("op f(x: f32[N], w: f32[N]) -> (y: f32[N])\n"
               "{ y[i] = sum(j > i) w[j] * x[j - i - 2] }\n",
               "N=6", "runs over -1..3");
    check_some("op f(x: f32[N], w: f32[N]) -> (y: f32[N])\n"
               "{ y[i] = sum(j < i) w[j] * x[i - 2] }\n",
               "N=6", "runs over -1..3");
    // j <= 2*i - 3 needs i >= 2; j >= 9 - 2*i, below 6, too.
    check_fine("op f(x: f32[N], w: f32[N]) -> (y: f32[N])\n"
               "{ y[i] = sum(j <= 2*i - 3) w[j] * x[i - 2] }\n",
               "N=6");
    check_some("op f(x: f32[N], w: f32[N]) -> (y: f32[N])\n"
               "{ y[i] = sum(j >= 9 - 2*i) w[j] * x[i - 3] }\n",
               "N=6", "runs over -1..2");
    // Only i >= 1 has any j < i.
    check_fine("op f(x: f32[N], w: f32[N]) -> (y: f32[N])\n"
               "{ y[i] = sum(j < i) w[j] * x[i - 1] }\n",
               "N=6");
}

// An inner reduction runs over all it uses, whatever surrounds it.
static void test_inner(void)
{
    check_fine("op f(x: f32[N, K]) -> (y: f32[N])\n"
               "{ y[i] = sum(j <= i) exp(sum(k) x[i - j, k]) }\n",
               "N=5 K=3");
    check_some("op f(x: f32[N, K], w: f32[N]) -> (y: f32[N])\n"
               "{ y[i] = sum(j < i) w[j] * exp(sum(k) x[i - 1, k]) }\n",
               "N=5 K=3", "runs over -1..3");
    check_some("op f(x: f32[N], w: f32[N], t: f32[D]) -> (y: f32[N, D])\n"
               "{ y[n, d] = t[d] * (max(m in 0..N) x[m + 1]) }\n",
               "N=3 D=0", "runs over 1..3");
}

static void test_nothing_is_read(void)
{
    check_fine("op f(x: f32[N]) -> (y: f32[N]) { y[i] = x[i + 7] }\n", "N=0");
    check_fine("op f(x: i32[N], t: f32[V]) -> (y: f32[N]) { y[i] = t[x[i]] }\n", "N=0 V=0");
    check_fine("op f(x: f32[N, K]) -> (y: f32[N]) { y[i] = sum(k) x[i + 1, k] }\n", "N=3 K=0");
}

static void check_inside(const char *definition, bool expected)
{
    struct made made = make(definition, "N=8 K=8");
    CHECK_STATUS(made.status, KG_OK, &made.error);
    CHECK(made.problem && made.problem->is_inside[0] == expected);
    unmake(&made);
}

// Statements that new sizes need not be checked for.
static void test_inside(void)
{
    check_inside("op f(x: f32[N]) -> (y: f32[N]) { y[i] = exp(x[i]) + N }", true);
    check_inside("op f(x: f32[N, K], w: f32[K, N]) -> (y: f32[N])\n"
                 "{ y[i] = sum(k) x[i, k] * w[k, i] }",
                 true);
    check_inside("op f(x: f32[N], w: f32[K]) -> (y: f32[N]) { y[i] = x[i] + w[i] }", false);
    check_inside("op f(x: f32[N]) -> (y: f32[N]) { y[i] = x[i / 2] }", false);
    check_inside("op f(x: f32[N]) -> (y: f32[N]) { y[i] = pad(x[i], 0) }", false);
    check_inside("op f(x: f32[N]) -> (y: f32[N]) { y[i] = sum(j <= i) x[j] }", false);
    check_inside("op f(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] + sum(j in 0..N - 4) j }", false);
    check_inside("op f(x: f32[N]) -> (y: f32[N]) { y[i] = sum(j in 2..N) x[j] }", false);
    check_inside("op f(x: f32[N, K]) -> (y: u8[N]) { y[i] = argmax(k) x[i, k] }", false);
    check_inside("op f(x: i32[N], t: f32[K]) -> (y: f32[N]) { y[i] = t[x[i]] }", false);
}

TEST_MAIN(test_messages, test_packed, test_places, test_affine, test_quotients, test_relations,
          test_inner, test_nothing_is_read, test_inside)
