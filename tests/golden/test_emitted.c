// Generated kernels, byte for byte, so that a change of what is written is seen in review. UPDATE=1
// in the environment rewrites the expected files.

#include "base/files.h"
#include "gen/built.h"
#include "gen/standalone.h"
#include "support/sample_problem.h"
#include "test.h"

static const struct kg_device_facts device = {
    .units = 2, .cache = {0, 32768, 524288, 33554432}, .vector_bytes = 32};

static void check_file(const char *name, const char *actual)
{
    char path[1024];
    struct kg_error error = {0};
    char *expected = NULL;
    size_t length;
    snprintf(path, sizeof path, "%s/tests/golden/emitted/%s", KG_SOURCE_DIR, name);
    if (getenv("UPDATE"))
        CHECK_STATUS(kg_files_publish(path, actual, strlen(actual), &error), KG_OK, &error);
    CHECK_STATUS(kg_files_read(path, 1 << 20, &expected, &length, &error), KG_OK, &error);
    CHECK_TEXT(actual, expected ? expected : "");
    free(expected);
}

static void check_kernel(const char *definition, const char *sizes, const char *config,
                         const char *name)
{
    struct made made = make(definition, sizes);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    struct kg_choice choice;
    struct kg_text text = {0};
    CHECK(kg_choice_read(made.problem, &device, &kg_target_host, config, &choice));
    CHECK(kg_choice_source(&choice, 0, "kernel", &text));
    check_file(name, kg_text_string(&text));
    kg_text_free(&text);
    unmake(&made);
}

static void test_pointwise(void)
{
    check_kernel("op bias_relu(x: f32[P, D], bias: f32[D]) -> (y: f32[P, D])\n"
                 "{ y[p, d] = relu(x[p, d] + bias[d]) }\n",
                 "P=262144 D=512", "pointwise: block=1024 stream=64 tile=0 ways=4", "bias_relu.c");
}

static void test_gather(void)
{
    check_kernel("op embedding(table: f16[V, D], ids: i64[B, L]) -> (y: f16[B, L, D])\n"
                 "{ y[b, l, d] = table[ids[b, l], d] }\n",
                 "V=100 D=64 B=3 L=5", "pointwise: block=1024 stream=0 tile=0 ways=1",
                 "embedding.c");
}

static void test_direct(void)
{
    check_kernel("op pool(x: f32[N, C, H, W]) -> (y: f32[N, C, (H+2*Q-R)/S+1, (W+2*Q-R)/S+1])\n"
                 "param R = 3, S = 2, Q = 1\n"
                 "{ y[n, c, h, w] = max(r in 0..R, t in 0..R) pad(x[n, c, h*S+r-Q, w*S+t-Q], "
                 "-inf) }\n",
                 "N=2 C=3 H=9 W=11", "direct: block=256 lanes=32", "pool.c");
    check_kernel("op pool(x: f16[C, W]) -> (y: f16[C, W])\n"
                 "{ y[c, w] = max(t in 0..3) pad(x[c, w + t - 1], -inf) }\n",
                 "C=3 W=11", "window: block=256 lanes=32", "pool_window.c");
    check_kernel("op masked(x: f64[P, D]) -> (y: f64[P, D])\n"
                 "{ y[p, d] = mean(j <= d) where(x[p, j] > 0, x[p, j], 0) }\n",
                 "P=3 D=7", "direct: block=256 lanes=1", "running_mean.c");
}

static void check_module(const char *definition, const char *sizes, const char *name)
{
    struct made made = make(definition, sizes);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    struct kg_text text = {0};
    CHECK(kg_gen_standalone_triton(made.problem, NULL, &device, &text));
    check_file(name, kg_text_string(&text));
    kg_text_free(&text);
    unmake(&made);
}

// One of each form: rows, a product, a window of constant size, two types that are computed with.
static void test_triton(void)
{
    check_module("# Softmax of each row.\n"
                 "op softmax(x: T[P, D]) -> (y: T[P, D]) where T in f16 bf16 f32\n"
                 "{ m[p] = max(d) x[p, d]\n"
                 "  e[p, d] = exp(x[p, d] - m[p])\n"
                 "  y[p, d] = e[p, d] / (sum(d) e[p, d]) }\n",
                 "P=4 D=8", "softmax_triton.py");
    check_module(
        "# A linear layer with bias and ReLU, whose weights have 4 bits each, and a scale\n"
        "# for\n# each row; products\n# are summed in float32.\n"
        "#\n# A second paragraph.\n"
        "op linear(x: T[M, K], w: u4[N, K], s: T[N], bias: T[N]) -> (y: T[M, N])\n"
        "where T in f16 bf16\n"
        "{ y[m, n] = relu(sum(k) x[m, k] * (w[n, k] * s[n]) + bias[n]) }\n",
        "M=4 K=8 N=4", "linear_triton.py");
    check_module("op experts(x: T[B, M, K], e: i32[B], w: u4[E, K, N], s: T[E, N], z: u4[E, N])\n"
                 " -> (y: T[B, M, N]) where T in f16 bf16\n"
                 "{ y[b, m, n] = sum(k) x[b, m, k] * ((w[e[b], k, n] - z[e[b], n]) * s[e[b], n]) "
                 "}\n",
                 "B=3 M=4 K=8 N=4 E=2", "experts_triton.py");
    check_module("op pool(x: T[N, H, W]) -> (y: T[N, (H-R)/S+1, W], place: i32[N])\n"
                 "where T in f32 f64\nparam R = 3, S = 2\n"
                 "{ y[n, h, w] = max(r in 0..R) x[n, h*S+r, w]\n"
                 "  place[n] = cast(i32, argmax(h, w) x[n, h, w]) }\n",
                 "N=2 H=9 W=4", "pool_triton.py");
}

TEST_MAIN(test_pointwise, test_gather, test_direct, test_triton)
