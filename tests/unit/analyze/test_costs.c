// Operations, bytes and classes against values worked out by hand.

#include "support/sample_problem.h"
#include "test.h"

struct expected {
    double operations, transcendentals, read_bytes, write_bytes;
    enum kg_class class;
};

static void check_costs(const char *definition, const char *choices, struct expected expected)
{
    struct made made = make(definition, choices);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    if (made.problem) {
        const struct kg_problem *problem = made.problem;
        char actual[256], wanted[256];
        snprintf(actual, sizeof actual, "%.1f %.1f %.1f %.1f %s", problem->operations,
                 problem->transcendentals, problem->read_bytes, problem->write_bytes,
                 kg_class_names[problem->class]);
        snprintf(wanted, sizeof wanted, "%.1f %.1f %.1f %.1f %s", expected.operations,
                 expected.transcendentals, expected.read_bytes, expected.write_bytes,
                 kg_class_names[expected.class]);
        CHECK_TEXT(actual, wanted);
    }
    unmake(&made);
}

static void test_pointwise(void)
{
    check_costs("op f(x: T[P, D], b: T[D]) -> (y: T[P, D]) where T in f16 f32\n"
                "{ y[p, d] = relu(x[p, d] + b[d]) }\n",
                "P=4 D=10 T=f16",
                (struct expected){80, 0, 2 * (40 + 10), 2 * 40, KG_CLASS_POINTWISE});
    // What does not depend on d is done once per p.
    check_costs("op f(x: f32[P, D], v: f32[P]) -> (y: f32[P, D])\n"
                "{ y[p, d] = x[p, d] * exp(v[p] + 1.0) }\n",
                "P=4 D=10",
                (struct expected){40 + 4 + 4, 4, 4 * (40 + 4), 4 * 40, KG_CLASS_POINTWISE});
}

static void test_softmax(void)
{
    // max PD, subtract and exp 2PD, sum PD, divide PD
    check_costs("op softmax(x: f32[P, D]) -> (y: f32[P, D])\n"
                "{\n"
                "    m[p] = max(d) x[p, d]\n"
                "    e[p, d] = exp(x[p, d] - m[p])\n"
                "    y[p, d] = e[p, d] / (sum(d) e[p, d])\n"
                "}\n",
                "P=3 D=100", (struct expected){1500, 300, 1200, 1200, KG_CLASS_REDUCE});
}

static void test_matmul(void)
{
    check_costs("op f(a: T[M, K], b: T[K, N], c: T[N]) -> (y: T[M, N]) where T in bf16\n"
                "{ y[m, n] = relu((sum(k) a[m, k] * b[k, n]) + c[n]) }\n",
                "M=2 N=3 K=4",
                (struct expected){2 * 24 + 2 * 6, 0, 2 * (8 + 12 + 3), 12, KG_CLASS_CONTRACT});
}

static void test_w4a16(void)
{
    // 2MNK for the product, KN each for (w - z) and * s; w is KN half bytes, z two rows of N.
    check_costs("op w4a16(x: T[M, K], w: u4[K, N], s: T[ceil(K/G), N], z: u4[ceil(K/G), N])\n"
                "    -> (y: T[M, N]) param G = 128 where T in f16\n"
                "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - z[k/G, n]) * s[k/G, n]) }\n",
                "M=2 N=4 K=256",
                (struct expected){2 * 2048 + 2 * 1024, 0, 2 * 512 + 512 + 2 * 8 + 4, 16,
                                  KG_CLASS_CONTRACT});
}

static void test_windows(void)
{
    const char *pool = "op f(x: f32[H]) -> (y: f32[(H-R)/S+1]) param R = 3, S = 2\n"
                       "{ y[h] = max(r in 0..R) x[h*S + r] }\n";
    // 4 windows of 3 at steps of 2 cover elements 0..8 of 10.
    check_costs(pool, "H=10", (struct expected){12, 0, 36, 16, KG_CLASS_WINDOW});
    // Windows of 2 at steps of 5: gaps are not read. 4 windows.
    check_costs(pool, "H=20 R=2 S=5", (struct expected){8, 0, 32, 16, KG_CLASS_WINDOW});
    // Every third element.
    check_costs("op f(x: f32[N]) -> (y: f32[N/3]) { y[i] = x[3*i] }\n", "N=10",
                (struct expected){0, 0, 12, 12, KG_CLASS_POINTWISE});
    // Halves add up; neighbours overlap.
    check_costs("op f(x: f32[N]) -> (y: f32[N/2]) { y[i] = x[i] + x[i + N/2] }\n", "N=10",
                (struct expected){5, 0, 40, 20, KG_CLASS_POINTWISE});
    check_costs("op f(x: f32[N]) -> (y: f32[N-1]) { y[i] = x[i] + x[i + 1] }\n", "N=10",
                (struct expected){9, 0, 40, 36, KG_CLASS_POINTWISE});
    // One read inside another; a diagonal.
    check_costs("op f(x: f32[N, N]) -> (y: f32[N]) { y[i] = x[i, i] }\n", "N=10",
                (struct expected){0, 0, 40, 40, KG_CLASS_POINTWISE});
    check_costs("op f(x: f32[N, N]) -> (y: f32[N]) { y[i] = x[0, i] + (sum(j) x[i, j]) }\n", "N=10",
                (struct expected){110, 0, 400, 40, KG_CLASS_REDUCE});
}

static void test_scans(void)
{
    // Can carry its sum along: one step per element.
    check_costs("op f(x: f32[P, D]) -> (y: f32[P, D]) { y[p, d] = sum(j <= d) x[p, j] }\n",
                "P=2 D=5", (struct expected){10, 0, 40, 40, KG_CLASS_SCAN});
    // Cannot: 15 pairs j <= i, a product and a sum each.
    check_costs("op f(a: f32[N, N], x: f32[N]) -> (y: f32[N])\n"
                "{ y[i] = sum(j <= i) a[i, j] * x[j] }\n",
                "N=5", (struct expected){30, 0, 100 + 20, 20, KG_CLASS_SCAN});
    // Of a, rows 0..3 and columns 1..4.
    check_costs("op f(a: f32[N, N], x: f32[N]) -> (y: f32[N])\n"
                "{ y[i] = sum(j > i) a[i, j] * x[j] }\n",
                "N=5", (struct expected){20, 0, 64 + 16, 20, KG_CLASS_SCAN});
}

static void test_gather(void)
{
    // At most the B*L rows that are asked for.
    const char *embedding = "op f(table: f16[V, D], ids: i64[B, L]) -> (y: f16[B, L, D])\n"
                            "{ y[b, l, d] = table[ids[b, l], d] }\n";
    check_costs(embedding, "V=1000 D=4 B=2 L=3",
                (struct expected){0, 0, 2 * 6 * 4 + 8 * 6, 2 * 24, KG_CLASS_GATHER});
    check_costs(embedding, "V=5 D=4 B=2 L=3",
                (struct expected){0, 0, 2 * 5 * 4 + 8 * 6, 2 * 24, KG_CLASS_GATHER});
}

static void test_empty(void)
{
    check_costs("op f(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N])\n"
                "{ c[m, n] = sum(k) a[m, k] * b[k, n] }\n",
                "M=0 N=3 K=4", (struct expected){0, 0, 0, 0, KG_CLASS_CONTRACT});
    check_costs("op f(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N])\n"
                "{ c[m, n] = sum(k) a[m, k] * b[k, n] }\n",
                "M=2 N=3 K=0", (struct expected){0, 0, 0, 24, KG_CLASS_CONTRACT});
}

static void test_classes(void)
{
    // A row's own sum of squares reuses nothing; a weighted sum reuses the weights.
    check_costs("op f(x: f32[P, D]) -> (y: f32[P]) { y[p] = sum(d) x[p, d] * x[p, d] }\n",
                "P=2 D=3", (struct expected){12, 0, 24, 8, KG_CLASS_REDUCE});
    check_costs("op f(x: f32[P, D], w: f32[D]) -> (y: f32[P]) { y[p] = sum(d) x[p, d] * w[d] }\n",
                "P=2 D=3", (struct expected){12, 0, 36, 8, KG_CLASS_CONTRACT});
}

static void test_layouts(void)
{
    const char *copy = "op f(x: T[P, D]) -> (y: T[P, D]) where T in f32 u4 { y[p, d] = x[p, d] }\n";
    int64_t strides[2][KG_MAX_RANK] = {{3, 1}, {3, 1}};
    struct made made = make_strided(copy, NULL, "P=2 D=3", strides);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    CHECK(made.problem->contiguous && made.problem->layouts[0].bytes == 24);
    unmake(&made);

    int64_t view[2][KG_MAX_RANK] = {{1, 4}, {5, 1}};
    made = make_strided(copy, NULL, "P=2 D=3", view);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    CHECK(!made.problem->contiguous && made.problem->layouts[0].bytes == 4 * (1 + 1 + 8));
    CHECK(made.problem->layouts[1].stride[0] == 5 && made.problem->layouts[1].bytes == 4 * 8);
    unmake(&made);

    made = make(copy, "P=3 D=3 T=u4");
    CHECK(made.problem && made.problem->layouts[0].bytes == 5);
    unmake(&made);

    // Inputs may repeat an element, outputs may not.
    int64_t repeated[2][KG_MAX_RANK] = {{0, 1}, {0, 1}};
    made = make_strided(copy, NULL, "P=2 D=3", repeated);
    CHECK(made.status == KG_ERROR_SHAPE);
    CHECK_TEXT(made.error.text, "the strides of output y put several elements in one place");
    unmake(&made);
    int64_t negative[2][KG_MAX_RANK] = {{-3, 1}, {3, 1}};
    made = make_strided(copy, NULL, "P=2 D=3", negative);
    CHECK(made.status == KG_ERROR_UNSUPPORTED);
    unmake(&made);

    // Sizes of nothing and of too much.
    int64_t odd[2][KG_MAX_RANK] = {{77, -1}, {0, 0}};
    made = make_strided(copy, NULL, "P=0 D=3", odd);
    CHECK(made.problem && made.problem->contiguous && made.problem->layouts[0].bytes == 0);
    unmake(&made);
    made = make(copy, "P=4194304 D=4194304");
    CHECK_TEXT(made.error.text, "");
    CHECK(made.problem && made.problem->layouts[0].bytes == (size_t)1 << 46);
    unmake(&made);
    made = make(copy, "P=4194305 D=4194304");
    CHECK_TEXT(made.error.text, "tensor x would be larger than 2^46 bytes");
    unmake(&made);
    made = make(copy, "P=100000000000 D=100000000000");
    CHECK(made.status == KG_ERROR_SHAPE && made.problem == NULL);
    unmake(&made);
    made = make(copy, "P=-1 D=2");
    CHECK_TEXT(made.error.text, "size P is -1; it must be between 0 and 2^48");
    unmake(&made);
}

TEST_MAIN(test_pointwise, test_softmax, test_matmul, test_w4a16, test_windows, test_scans,
          test_gather, test_empty, test_classes, test_layouts)
