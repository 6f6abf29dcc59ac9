// The contract family: built kernels against the reference, over shapes that meet every path and
// every edge, transpositions, types, epilogues, batches and decorated sides.

#include "gen/standalone.h"
#include "support/built_contract.h"

#include <unistd.h>

// Every path: panels, streamed panels with and without packing, dots; slabs; every kind of edge.
static const char *const shapes[] = {
    "M=0 N=5 K=3",       "M=4 N=0 K=3",
    "M=3 N=5 K=0",       "M=1 N=1 K=1",
    "M=2 N=3 K=1",       "M=1 N=17 K=31",
    "M=1 N=40 K=100",    "M=2 N=257 K=65",
    "M=3 N=33 K=129",    "M=7 N=50 K=300",
    "M=64 N=1 K=77",     "M=100 N=2 K=1031",
    "M=61 N=5 K=200",    "M=53 N=8 K=64",
    "M=37 N=16 K=150",   "M=5 N=15 K=17",
    "M=6 N=16 K=384",    "M=7 N=17 K=385",
    "M=97 N=31 K=33",    "M=101 N=103 K=107",
    "M=13 N=1100 K=9",   "M=12 N=48 K=800",
    "M=1 N=1 K=20000",   "M=3 N=2 K=9000",
    "M=30 N=20 K=12345", NULL,
};

static const char *const few_shapes[] = {
    "M=0 N=5 K=3",       "M=3 N=5 K=0",    "M=1 N=1 K=1",
    "M=1 N=70 K=90",     "M=70 N=1 K=90",  "M=5 N=130 K=260",
    "M=101 N=103 K=107", "M=3 N=2 K=9000", NULL,
};

static void test_transpositions(void)
{
    check("op nn(a: T[M, K], b: T[K, N]) -> (c: T[M, N]) where T in f32\n"
          "{ c[m, n] = sum(k) a[m, k] * b[k, n] }",
          "T=f32", 1, shapes);
    check("op nt(a: T[M, K], b: T[N, K]) -> (c: T[M, N]) where T in f32\n"
          "{ c[m, n] = sum(k) a[m, k] * b[n, k] }",
          "T=f32", 1, shapes);
    check("op tn(a: T[K, M], b: T[K, N]) -> (c: T[M, N]) where T in f32\n"
          "{ c[m, n] = sum(k) a[k, m] * b[k, n] }",
          "T=f32", 1, shapes);
    check("op tt(a: T[K, M], b: T[N, K]) -> (c: T[M, N]) where T in f32\n"
          "{ c[m, n] = sum(k) a[k, m] * b[n, k] }",
          "T=f32", 1, shapes);
    check("op turned(a: T[M, K], b: T[K, N]) -> (c: T[N, M]) where T in f32\n"
          "{ c[n, m] = sum(k) a[m, k] * b[k, n] }",
          "T=f32", 1, shapes);
}

static void test_types(void)
{
    static const char nn[] =
        "op nn(a: T[M, K], b: T[K, N]) -> (c: T[M, N]) where T in f16 bf16 f64 "
        "i64\n{ c[m, n] = sum(k) a[m, k] * b[k, n] }";
    static const char nt[] =
        "op nt(a: T[M, K], b: T[N, K]) -> (c: U[M, N]) where T in f16 bf16 i8, U "
        "in f32 i32\n{ c[m, n] = cast(U, sum(k) a[m, k] * b[n, k]) }";
    check(nn, "T=f64", 1, few_shapes);
    check(nn, "T=f16", 1, few_shapes);
    check(nn, "T=bf16", 1, few_shapes);
    check(nn, "T=i64", 1, few_shapes);
    check(nt, "T=f16 U=f32", 1, few_shapes);
    check(nt, "T=bf16 U=f32", 1, few_shapes);
    check(nt, "T=i8 U=i32", 1, few_shapes);
    check("op mixed(a: f16[M, K], b: f64[K, N]) -> (c: f32[M, N])\n"
          "{ c[m, n] = sum(k) a[m, k] * b[k, n] }",
          "", 1, few_shapes);
    check("op rounded(a: f64[M, K], b: f64[K, N]) -> (c: f64[M, N])\n" // this cast is no widening
          "{ c[m, n] = sum(k) cast(f32, a[m, k]) * b[k, n] }",
          "", 1, few_shapes);
    check("op narrow(a: f16[M, K], b: bf16[N, K]) -> (c: f32[M, N])\n"
          "{ c[m, n] = sum(k) a[m, k] * b[n, k] }",
          "", 1, few_shapes);
    check("op one(a: f16[K, M], b: f32[N, K]) -> (c: f32[M, N])\n"
          "{ c[m, n] = sum(k) a[k, m] * b[n, k] }",
          "", 1, few_shapes);
    check("op heads(q: f16[B, M, H, K], k: f16[B, N, H, K]) -> (s: f16[B, M, H, N])\n"
          "{ s[b, i, h, j] = sum(d) q[b, i, h, d] * k[b, j, h, d] }",
          "B=2 H=3", 1, few_shapes);
    check("op flat(a: bf16[P, Q, R, S], b: bf16[R, S, U, V]) -> (c: bf16[P, Q, U, V])\n"
          "{ c[p, q, u, v] = sum(r, s) a[p, q, r, s] * b[r, s, u, v] }",
          "", 1,
          (const char *const[]){"P=3 Q=5 R=4 S=7 U=6 V=2", "P=13 Q=2 R=3 S=11 U=5 V=9",
                                "P=1 Q=1 R=8 S=16 U=8 V=17", NULL});
}

static void test_epilogues(void)
{
    check("op bias(a: T[M, K], b: T[K, N], v: T[N], r: T[M, N]) -> (y: T[M, N]) where T in f16\n"
          "{ y[m, n] = gelu(0.5 * (sum(k) a[m, k] * b[k, n]) + v[n]) + r[m, n] }",
          "T=f16", 1, few_shapes);
    check("op chain(a: f32[M, K], b: f32[N, K], s: f32[M]) -> (c: f16[M, N], d: f32[M, N])\n"
          "{\n c[m, n] = sum(k) a[m, k] * b[n, k] * -0.25\n"
          "  t[m, n] = relu(c[m, n]) * s[m]\n d[m, n] = t[m, n] + c[m, n] + n\n}",
          "", 1, few_shapes);
    // Another element of the result is wanted: a kernel of its own.
    check("op apart(a: f32[M, K], b: f32[K, N]) -> (d: f32[M, N])\n"
          "{\n c[m, n] = sum(k) a[m, k] * b[k, n]\n d[m, n] = c[m, n] - c[m, 0]\n}",
          "", 2, (const char *const[]){"M=3 N=5 K=7", "M=20 N=30 K=40", NULL});
}

static void test_batches(void)
{
    static const char *const rows[] = {"B=3 H=2 M=5 N=7 K=11",  "B=2 H=3 M=17 N=40 K=33",
                                       "B=0 H=2 M=5 N=7 K=3",   "B=2 H=0 M=5 N=7 K=3",
                                       "B=1 H=2 M=1 N=66 K=64", "B=2 H=2 M=66 N=1 K=64",
                                       "B=2 H=1 M=9 N=3 K=0",   NULL};
    check("op heads(q: T[B, M, H, K], k: T[B, N, H, K]) -> (s: T[B, H, M, N]) where T in f32\n"
          "{ s[b, h, i, j] = (sum(d) q[b, i, h, d] * k[b, j, h, d]) * 0.125 }",
          "T=f32", 1, rows);
    check("op values(p: f32[B, H, M, K], v: f16[B, K, H, N]) -> (o: f16[B, M, H, N])\n"
          "{ o[b, i, h, d] = sum(j) p[b, h, i, j] * v[b, j, h, d] }",
          "", 1, rows);
    check("op inner(a: f32[M, K, B], b: f32[K, N, B]) -> (c: f32[M, N, B])\n"
          "{ c[m, n, b] = sum(k) a[m, k, b] * b[k, n, b] }",
          "", 1, rows);
}

// Several axes for m, n and k, in orders that merge and in orders that do not.
static void test_many_axes(void)
{
    static const char *const rows[] = {"P=3 Q=5 R=4 S=7 U=6 V=2",   "P=1 Q=1 R=1 S=1 U=1 V=1",
                                       "P=13 Q=2 R=3 S=11 U=5 V=9", "P=2 Q=3 R=0 S=4 U=1 V=1",
                                       "P=7 Q=8 R=17 S=16 U=3 V=1", NULL};
    check("op flat(a: f32[P, Q, R, S], b: f32[R, S, U, V]) -> (c: f32[P, Q, U, V])\n"
          "{ c[p, q, u, v] = sum(r, s) a[p, q, r, s] * b[r, s, u, v] }",
          "", 1, rows);
    check("op mixed(a: f32[R, P, S, Q], b: f32[U, S, R, V]) -> (c: f32[P, U, Q, V])\n"
          "{ c[p, u, q, v] = sum(r, s) a[r, p, s, q] * b[u, s, r, v] }",
          "", 1, rows);
    check("op thin(a: f32[P, Q, S, R], b: f32[R, S]) -> (c: f32[Q, P])\n"
          "{ c[q, p] = sum(r, s) a[p, q, s, r] * b[r, s] }",
          "", 1, rows);
}

static void test_computed_sides(void)
{
    static const char *const rows[] = {"M=1 N=64 K=256", "M=2 N=35 K=131",  "M=33 N=2 K=40",
                                       "M=0 N=4 K=8",    "M=40 N=50 K=300", NULL};
    check("op w4a16(x: f16[M, K], w: u4[K, N], s: f16[ceil(K/G), N], z: u4[ceil(K/G), N]) -> "
          "(y: f16[M, N])\nparam G = 32\n"
          "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - z[k/G, n]) * s[k/G, n]) }",
          "", 1, rows);
    check("op w4_by_row(x: f32[M, K], w: i4[N, K], s: f16[N, ceil(K/G)], z: f32[N, ceil(K/H)]) -> "
          "(y: f32[M, N])\nparam G = 48, H = 20\n"
          "{ y[m, n] = sum(k) x[m, k] * (w[n, k] * s[n, k/G]) * z[n, k/H] }",
          "", 1,
          (const char *const[]){"M=1 N=37 K=111", "M=3 N=65 K=97", "M=21 N=19 K=1",
                                "M=40 N=50 K=301", NULL});
    check("op w8(x: bf16[M, K], w: i8[N, K], s: f32[N]) -> (y: bf16[M, N])\n"
          "{ y[m, n] = sum(k) x[m, k] * (w[n, k] * s[n]) }",
          "", 1, rows);
    check("op decorated(a: f32[M, K], g: f32[K], b: f32[K, N], d: f32[N]) -> (y: f32[M, N])\n"
          "{ y[m, n] = sum(k) -relu(a[m, k]) * g[k] * b[k, n] / (2 + abs(d[n])) }",
          "", 1, rows);
    check("op gathered(t: f32[V, K], ids: i64[M], b: f32[K, N]) -> (y: f32[M, N])\n"
          "{ y[m, n] = sum(k) t[ids[m], k] * b[k, n] }",
          "V=200", 1, rows);
    check("op conv(x: f32[B, C, H, W], w: f32[O, C, 3, 3]) -> (y: f32[B, O, H, W])\n"
          "{ y[b, o, h, v] = sum(c, r in 0..3, t in 0..3) "
          "pad(x[b, c, h + r - 1, v + t - 1], 0) * w[o, c, r, t] }",
          "", 1, (const char *const[]){"B=2 C=3 H=9 W=11 O=5", "B=1 C=16 H=5 W=33 O=20", NULL});
}

static void test_ranges(void)
{
    check("op part(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N])\n"
          "{ c[m, n] = sum(k in 2..K) a[m, k] * b[k, n] }",
          "", 1, (const char *const[]){"M=3 N=20 K=50", "M=3 N=20 K=2", NULL});
    check("op outer(a: f32[M, K], b: f32[N, K]) -> (c: f32[M, N])\n"
          "{ c[m, n] = sum(k in 0..1) a[m, k] * b[n, k] }",
          "", 1, (const char *const[]){"M=70 N=90 K=1", NULL});
}

static void test_strides(void)
{
    static const char text[] = "op nn(a: T[M, K], b: T[K, N]) -> (c: T[M, N]) where T in f32 f16\n"
                               "{ c[m, n] = sum(k) a[m, k] * b[k, n] }";
    static const char *const types[] = {"T=f32", "T=f16"};
    static const char *const rows[] = {"M=9 N=40 K=70", "M=1 N=40 K=70", "M=40 N=3 K=70", NULL};
    static const int64_t padded[][KG_MAX_RANK] = {{80, 1}, {50, 1}, {45, 1}};
    static const int64_t turned[][KG_MAX_RANK] = {{1, 41}, {1, 71}, {1, 42}};
    static const int64_t sparse[][KG_MAX_RANK] = {{150, 2}, {130, 3}, {90, 2}};
    for (int i = 0; i < 2; i++) {
        check_with(text, types[i], NULL, 1, rows, padded);
        check_with(text, types[i], NULL, 1, rows, turned);
        check_with(text, types[i], NULL, 1, rows, sparse);
    }
}

// The largest error over what is allowed for sums of K products, u * (log2(K) + 8) * sum |a b|.
static double worst_error(const float *a, const float *b, const float *c, int64_t m, int64_t n,
                          int64_t k)
{
    double worst = 0, unit = ldexp(1, -24);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0, size = 0;
            for (int64_t t = 0; t < k; t++) {
                double product = (double)a[i * k + t] * (double)b[t * n + j];
                sum += product;
                size += fabs(product);
            }
            double allowed = unit * (log2((double)k) + 8) * size;
            worst = fmax(worst, fabs((double)c[i * n + j] - sum) / allowed);
        }
    return worst;
}

static void test_accuracy(void)
{
    static const char text[] = "op nn(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N])\n"
                               "{ c[m, n] = sum(k) a[m, k] * b[k, n] }";
    static const char *const rows[] = {"M=1 N=16 K=65536", "M=7 N=17 K=65536", "M=3 N=1 K=65536"};
    for (int i = 0; i < 3; i++) {
        struct made made = make(text, rows[i]);
        struct memory memory = {.workspace = NULL};
        struct kg_built *built = build(made.problem, NULL, 1);
        allocate(made.problem, &memory);
        for (int kind = 0; built && kind < 3; kind++) { // random, random and positive, all the same
            for (int id = 0; id < 2; id++)
                for (size_t e = 0; e < elements_of(made.problem, id); e++) {
                    float *element = (float *)memory.tensors[id] + e;
                    *element = kind == 0 ? (float)draw() : kind == 1 ? fabsf(*element) : 0.1f;
                }
            CHECK_STATUS(kg_built_run(built, made.problem, memory.tensors, NULL, NULL, &error),
                         KG_OK, &error);
            const int64_t *sizes = made.problem->layouts[2].shape;
            CHECK(worst_error(memory.tensors[0], memory.tensors[1], memory.tensors[2], sizes[0],
                              sizes[1], 65536) <= 1);
        }
        release(made.problem, &memory);
        kg_built_free(built);
        unmake(&made);
    }
}

// Several kernels of this family in one plain C file.
static void test_one_file(void)
{
    struct made made = make("op pack(a: f32[M, K], b: f32[K, N], d: f32[N, L]) -> (c: f32[M, L])\n"
                            "{\n t[m, n] = sum(k) a[m, k] * b[k, n]\n"
                            "  c[m, l] = sum(n) t[m, n] * d[n, l]\n}",
                            "M=5 N=6 K=7 L=8");
    struct kg_choice choice;
    struct kg_text text = {0};
    kg_choice_guess(made.problem, &device->facts, &kg_target_host, &choice);
    CHECK(choice.count == 2);
    CHECK(kg_gen_standalone_host(made.problem, &choice, &device->facts, &text));
    struct kg_source source = {
        .text = text.data, .entry = "pack", .options = "-Wall -Wextra -Wno-unused-parameter"};
    struct kg_binary binary = {.log = NULL};
    CHECK_STATUS(device->backend->compile(device, &source, 60, &binary, &error), KG_OK, &error);
    CHECK_TEXT(binary.log ? binary.log : "", "");
    kg_binary_free(&binary);
    kg_text_free(&text);
    unmake(&made);
}

// Results do not depend on how many threads there are: every way of sharing work adds up in the
// same order.
static void test_threads(const char *folder)
{
    static const char *const texts[] = {"op nn(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N])\n"
                                        "{ c[m, n] = sum(k) a[m, k] * b[k, n] }",
                                        "op nt(a: f32[M, K], b: f32[N, K]) -> (c: f32[M, N])\n"
                                        "{ c[m, n] = sum(k) a[m, k] * b[n, k] }"};
    static const char *const rows[] = {
        "M=1 N=200 K=3000", "M=1 N=3000 K=1100", "M=9 N=40 K=1600",   "M=70 N=90 K=1000",
        "M=150 N=3 K=700",  "M=2 N=1 K=30000",   "M=260 N=270 K=401", NULL};
    static const int counts[] = {1, 2, 7, 64};
    for (int t = 0; t < 2; t++)
        for (int i = 0; rows[i]; i++) {
            struct made made = make(texts[t], rows[i]);
            struct memory memory = {.workspace = NULL};
            size_t bytes = made.problem->layouts[2].bytes;
            char *first = malloc(bytes);
            allocate(made.problem, &memory);
            for (int c = 0; c < 4; c++) {
                struct kg_device *usual = device;
                CHECK_STATUS(kg_device_open("host", folder, counts[c], &device, &error), KG_OK,
                             &error);
                struct kg_built *built = build(made.problem, NULL, 1);
                if (built)
                    CHECK_STATUS(
                        kg_built_run(built, made.problem, memory.tensors, NULL, NULL, &error),
                        KG_OK, &error);
                if (c == 0)
                    memcpy(first, memory.tensors[2], bytes);
                CHECK(memcmp(first, memory.tensors[2], bytes) == 0);
                kg_built_free(built);
                kg_device_close(device);
                device = usual;
            }
            free(first);
            release(made.problem, &memory);
            unmake(&made);
        }
}

// The corners of the space: every tile that is valid here.
static void test_configs(void)
{
    static const char text[] = "op nn(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N])\n"
                               "{ c[m, n] = sum(k) a[m, k] * b[k, n] }";
    struct made made = make(text, "M=9 N=9 K=9");
    const struct kg_family *family = &kg_host_contract;
    const struct kg_group group = {made.problem, 0, 1};
    const struct kg_match *match = kg_match_find(family, &group, &device->facts, NULL);
    struct kg_space space;
    struct kg_config guess;
    struct kg_text reason = {0};
    family->space(match, &space);
    family->guess(match, &guess);
    CHECK(family->valid(match, &guess, &reason));
    int valid = 0;
    for (int64_t i = 0; i < kg_space_size(&space); i++) {
        struct kg_config config = kg_space_config(&space, i);
        if (!family->valid(match, &config, &reason))
            continue;
        // Every other tile; blocks only move where loops end.
        if (valid++ % 36 != 18)
            continue;
        struct kg_text name = {0};
        kg_text_add(&name, "contract: ");
        kg_config_print(&space, &config, &name);
        check_with(text, "", kg_text_string(&name), 1, few_shapes, NULL);
        kg_text_free(&name);
    }
    CHECK(valid >= 50 && valid <= 200);
    kg_text_free(&reason);
    unmake(&made);
}

static void check_refused(const char *text, const char *choices, const char *why)
{
    struct made made = make(text, choices);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    struct kg_group group = {made.problem, 0, 1};
    struct kg_text reason = {0};
    CHECK(!kg_match_find(&kg_host_contract, &group, &device->facts, &reason));
    CHECK_TEXT(kg_text_string(&reason), why);
    kg_text_free(&reason);
    unmake(&made);
}

static void test_refusals(void)
{
    check_refused("op rows(x: f32[P, D]) -> (y: f32[P])\n{ y[p] = sum(d) x[p, d] * x[p, d] }",
                  "P=2 D=3", "no element is used with many others");
    check_refused("op most(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N])\n"
                  "{ c[m, n] = max(k) a[m, k] * b[k, n] }",
                  "M=2 N=2 K=2", "it is not a sum");
    check_refused("op scan(a: f32[M, K], b: f32[K, K]) -> (c: f32[M, K])\n"
                  "{ c[m, n] = sum(k <= n) a[m, k] * b[k, n] }",
                  "M=2 K=2", "no element is used with many others");
    check_refused("op joint(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N])\n"
                  "{ c[m, n] = sum(k) exp(a[m, k] - b[k, n]) * b[k, n] }",
                  "M=2 N=2 K=2", "results lie along an axis of both sides");
}

int main(void)
{
    char folder[] = "/tmp/test-contract-XXXXXX";
    if (!mkdtemp(folder))
        return 1;
    if (kg_device_open("host", folder, 2, &device, &error) != KG_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    test_transpositions();
    test_types();
    test_epilogues();
    test_batches();
    test_many_axes();
    test_computed_sides();
    test_ranges();
    test_strides();
    test_accuracy();
    test_one_file();
    test_threads(folder);
    test_configs();
    test_refusals();
    kg_device_close(device);
    printf("%d checks, %d failed\n", test_checks, test_failures);
    return test_failures != 0;
}
