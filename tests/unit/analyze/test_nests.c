// Statements become nests: what is hoisted, what is shared, and what each nest looks like.

#include "support/sample_problem.h"
#include "test.h"

// Every nest on a line: statement, class, and the axes' extents.
static const char *nests_of(const struct made *made, struct kg_text *text)
{
    kg_text_cut(text, 0);
    if (!made->problem)
        return made->error.text;
    for (int i = 0; i < made->problem->nest_count; i++) {
        const struct kg_nest *nest = made->problem->nests[i];
        kg_nest_print(text, nest);
        kg_text_format(text, "  # %s", kg_class_names[nest->class]);
        for (int a = 0; a < nest->axis_count; a++)
            kg_text_format(text, " %s=%d", nest->axes[a]->name, (int)nest->extent[a]);
        kg_text_add(text, "\n");
    }
    return kg_text_string(text);
}

static void check_nests(const char *definition, const char *choices, const char *expected)
{
    struct kg_text text = {0};
    struct made made = make(definition, choices);
    CHECK_TEXT(nests_of(&made, &text), expected);
    for (int i = 0; made.problem && i < made.problem->nest_count; i++) {
        const struct kg_nest *nest = made.problem->nests[i];
        CHECK(nest->id == i);
        CHECK(made.problem->tensors[nest->output->id] == nest->output);
        for (int a = 0; a < nest->axis_count; a++)
            CHECK(nest->axes[a]->id == a);
    }
    unmake(&made);
    kg_text_free(&text);
}

static void test_softmax(void)
{
    check_nests("op softmax(x: T[P, D]) -> (y: T[P, D]) where T in f16 bf16 f32\n"
                "{\n"
                "    m[p] = max(d) x[p, d]\n"
                "    e[p, d] = exp(x[p, d] - m[p])\n"
                "    y[p, d] = e[p, d] / (sum(d) e[p, d])\n"
                "}\n",
                "P=7 D=513",
                "m[p] = max(d) x[p, d]  # reduce p=7 d=513\n"
                "e[p, d] = exp(x[p, d] - m[p])  # pointwise p=7 d=513\n"
                "y_1[p] = sum(d) e[p, d]  # reduce p=7 d=513\n"
                "y[p, d] = e[p, d] / y_1[p]  # pointwise p=7 d=513\n");
}

static void test_matmul_bias_relu(void)
{
    check_nests("op f(a: T[M, K], b: T[K, N], c: T[N]) -> (y: T[M, N]) where T in f16 f32\n"
                "{ y[m, n] = relu((sum(k) a[m, k] * b[k, n]) + c[n]) }\n",
                "M=2 N=3 K=4",
                "y_1[m, n] = sum(k) a[m, k] * b[k, n]  # contract m=2 n=3 k=4\n"
                "y[m, n] = relu(y_1[m, n] + c[n])  # pointwise m=2 n=3\n");
}

static void test_w4a16(void)
{
    check_nests("op w4a16(x: T[M, K], w: u4[K, N], s: T[ceil(K/G), N], z: u4[ceil(K/G), N])\n"
                "    -> (y: T[M, N])\n"
                "param G = 128\n"
                "where T in f16 bf16\n"
                "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - z[k/G, n]) * s[k/G, n]) }\n",
                "M=2 N=4 K=256",
                "y[m, n] = sum(k) x[m, k] * ((w[k, n] - z[k/128, n]) * s[k/128, n])"
                "  # contract m=2 n=4 k=256\n");
}

static void test_maxpool(void)
{
    check_nests(
        "op maxpool2d(x: T[N, C, H, W]) -> (y: T[N, C, (H+2*Q-R)/S+1, (W+2*Q-R)/S+1])\n"
        "param R = 3, S = 2, Q = 1\n"
        "where T in f32\n"
        "{ y[n, c, h, w] = max(r in 0..R, t in 0..R) pad(x[n, c, h*S+r-Q, w*S+t-Q], -inf) }\n",
        "N=1 C=2 H=8 W=9",
        "y[n, c, h, w] = max(r in 0..3, t in 0..3) pad(x[n, c, h*2 + r - 1, w*2 + t - 1], -inf)"
        "  # window n=1 c=2 h=4 w=5 r=3 t=3\n");
}

static void test_cumsum(void)
{
    check_nests("op cumsum(x: T[P, D]) -> (y: T[P, D]) where T in f32\n"
                "{ y[p, d] = sum(j <= d) x[p, j] }\n",
                "P=2 D=5", "y[p, d] = sum(j <= d) x[p, j]  # scan p=2 d=5 j=5\n");
}

static void test_attention(void)
{
    check_nests("op attention(q: T[B, S, D], k: T[B, L, D], v: T[B, L, D]) -> (o: T[B, S, D])\n"
                "where T in f16 f32\n"
                "{\n"
                "    s[b, i, j] = sum(d) q[b, i, d] * k[b, j, d]\n"
                "    e[b, i, j] = exp(s[b, i, j] - (max(j) s[b, i, j]))\n"
                "    o[b, i, d] = (sum(j) e[b, i, j] * v[b, j, d]) / (sum(j) e[b, i, j])\n"
                "}\n",
                "B=2 S=3 L=4 D=5",
                "s[b, i, j] = sum(d) q[b, i, d] * k[b, j, d]  # contract b=2 i=3 j=4 d=5\n"
                "e_1[b, i] = max(j) s[b, i, j]  # reduce b=2 i=3 j=4\n"
                "e[b, i, j] = exp(s[b, i, j] - e_1[b, i])  # pointwise b=2 i=3 j=4\n"
                "o_1[b, i, d] = sum(j) e[b, i, j] * v[b, j, d]  # contract b=2 i=3 d=5 j=4\n"
                "o_2[b, i] = sum(j) e[b, i, j]  # reduce b=2 i=3 j=4\n"
                "o[b, i, d] = o_1[b, i, d] / o_2[b, i]  # pointwise b=2 i=3 d=5\n");
}

static void test_embedding(void)
{
    check_nests("op embedding(table: T[V, D], ids: i64[B, L]) -> (y: T[B, L, D])\n"
                "where T in f16 f32 { y[b, l, d] = table[ids[b, l], d] }\n",
                "V=10 D=4 B=2 L=3", "y[b, l, d] = table[ids[b, l], d]  # gather b=2 l=3 d=4\n");
}

// A reduction in a reduction becomes two nests; the inner one goes first.
static void test_recursive(void)
{
    check_nests("op f(x: f32[P, D], w: f32[D, E]) -> (l: f32[])\n"
                "{ l[] = sum(p) exp(max(d) (x[p, d] * (sum(e) w[d, e]))) }\n",
                "P=2 D=3 E=4",
                "l_1[d] = sum(e) w[d, e]  # reduce d=3 e=4\n"
                "l_2[p] = max(d) x[p, d] * l_1[d]  # reduce p=2 d=3\n"
                "l[] = sum(p) exp(l_2[p])  # reduce p=2\n");
}

// The same reduction twice is done once, also across statements and under another index's name.
static void test_shared(void)
{
    check_nests("op f(x: f32[P, D]) -> (y: f32[P, D], z: f32[P])\n"
                "{\n"
                "    y[p, d] = x[p, d] / (mean(d) x[p, d]) + (mean(d) x[p, d])\n"
                "    z[q] = 1 + (mean(e) x[q, e])\n"
                "}\n",
                "P=2 D=3",
                "y_1[p] = mean(d) x[p, d]  # reduce p=2 d=3\n"
                "y[p, d] = x[p, d] / y_1[p] + y_1[p]  # pointwise p=2 d=3\n"
                "z[q] = 1 + y_1[q]  # pointwise q=2\n");
    // A named intermediate counts too; max differs from sum.
    check_nests("op f(x: f32[P, D]) -> (y: f32[P])\n"
                "{\n"
                "    m[p] = max(d) x[p, d]\n"
                "    y[p] = 1 + (max(d) x[p, d]) + (sum(d) x[p, d])\n"
                "}\n",
                "P=2 D=3",
                "m[p] = max(d) x[p, d]  # reduce p=2 d=3\n"
                "y_1[p] = sum(d) x[p, d]  # reduce p=2 d=3\n"
                "y[p] = 1 + m[p] + y_1[p]  # pointwise p=2\n");
}

// An output that is read later is computed once, unrounded, and copied.
static void test_output_read(void)
{
    check_nests("op f(x: f16[P, D]) -> (m: f16[P], y: f16[P, D])\n"
                "{\n"
                "    m[p] = max(d) x[p, d]\n"
                "    y[p, d] = x[p, d] - m[p]\n"
                "}\n",
                "P=2 D=3",
                "m_1[p] = max(d) x[p, d]  # reduce p=2 d=3\n"
                "m[p] = m_1[p]  # pointwise p=2\n"
                "y[p, d] = x[p, d] - m_1[p]  # pointwise p=2 d=3\n");
}

// An integer wraps before it is read, as it does when it is stored.
static void test_integer_output_read(void)
{
    check_nests("op f(x: i64[P, D]) -> (c: u8[P], n: i64[P], y: i64[P])\n"
                "{\n"
                "    c[p] = sum(d) x[p, d]\n"
                "    n[p] = x[p, 0] + 1\n"
                "    y[p] = c[p] + n[p]\n"
                "}\n",
                "P=2 D=3",
                "c_1[p] = sum(d) x[p, d]  # reduce p=2 d=3\n"
                "c_2[p] = cast(u8, c_1[p])  # pointwise p=2\n"
                "c[p] = c_2[p]  # pointwise p=2\n"
                "n_1[p] = x[p, 0] + 1  # pointwise p=2\n"
                "n[p] = n_1[p]  # pointwise p=2\n"
                "y[p] = c_2[p] + n_1[p]  # pointwise p=2\n");
}

// A free index with a begin: the hoisted tensor starts at 0.
static void test_shifted(void)
{
    check_nests("op f(x: f32[N, K]) -> (l: f32[])\n"
                "{ l[] = sum(i in 2..N) exp(sum(k) x[i, k]) }\n",
                "N=5 K=3",
                "l_1[i] = sum(k) x[i + 2, k]  # reduce i=3 k=3\n"
                "l[] = sum(i in 2..N) exp(l_1[i - 2])  # reduce i=3\n");
}

// A nest that runs over more than its user's relation lets through must not read outside.
static void test_guarded(void)
{
    check_nests("op f(x: f32[N, K]) -> (y: f32[N])\n"
                "{ y[i] = sum(j <= i) exp(sum(k) x[i - j, k]) }\n",
                "N=5 K=3",
                "y_1[i, j] = sum(k) pad(x[i - j, k], 0)  # reduce i=5 j=5 k=3\n"
                "y[i] = sum(j <= i) exp(y_1[i, j])  # scan i=5 j=5\n");
    check_nests("op f(q: f32[N, D], k: f32[N, D]) -> (y: f32[N])\n"
                "{ y[i] = sum(j <= i) exp(sum(d) q[i, d] * k[j, d]) }\n",
                "N=5 D=3",
                "y_1[i, j] = sum(d) q[i, d] * k[j, d]  # contract i=5 j=5 d=3\n"
                "y[i] = sum(j <= i) exp(y_1[i, j])  # scan i=5 j=5\n");
}

// A made-up name never hides one of the definition's.
static void test_names(void)
{
    check_nests("op f(y_1: f32[N], x: f32[N, y_2]) -> (y: f32[N])\n"
                "{ y[n] = y_1[n] + (sum(k) x[n, k]) }\n",
                "N=5 y_2=3",
                "y_3[n] = sum(k) x[n, k]  # reduce n=5 k=3\n"
                "y[n] = y_1[n] + y_3[n]  # pointwise n=5\n");
}

static void test_too_many_indices(void)
{
    struct made made = make("op f(x: f32[A, B, C, D, E, F, G, H]) -> (y: f32[A, B, C, D])\n"
                            "{ y[a, b, c, d] = sum(e, f, g, h, i in 0..2) exp(max(j in 0..2)\n"
                            "    (x[a, b, c, d, e, f, g, h] * i * j)) }\n",
                            "");
    CHECK(made.status == KG_ERROR_UNSUPPORTED);
    CHECK(strstr(made.error.text, "depends on 9 indices, at most 8 are possible") != NULL);
    CHECK(made.problem == NULL);
    unmake(&made);
}

// Everything of an access map but its pointers.
static const char *maps_of(const struct made *made, int nest_id, struct kg_text *text)
{
    kg_text_cut(text, 0);
    if (!made->problem)
        return made->error.text;
    const struct kg_nest *nest = made->problem->nests[nest_id];
    for (int i = 0; i < nest->access_count; i++) {
        kg_text_format(text, "%s:", nest->accesses[i].tensor->name);
        for (int d = 0; d < nest->accesses[i].tensor->rank; d++) {
            const struct kg_affine *map = &nest->accesses[i].map[d];
            kg_text_add(text, d ? "; " : " ");
            if (!map->is_affine) {
                kg_text_add(text, map->is_gather ? "gather" : "other");
                continue;
            }
            for (int a = 0; a < nest->axis_count; a++)
                if (map->coefficient[a])
                    kg_text_format(text, "%+d%s", (int)map->coefficient[a], nest->axes[a]->name);
            kg_text_format(text, "%+d", (int)map->offset);
            if (map->base) {
                kg_text_add(text, " + ");
                kg_lang_print_expr(text, map->base);
            }
        }
        kg_text_add(text, "\n");
    }
    return kg_text_string(text);
}

static void check_maps(const char *definition, const char *choices, int nest, const char *expected)
{
    struct kg_text text = {0};
    struct made made = make(definition, choices);
    CHECK_TEXT(maps_of(&made, nest, &text), expected);
    unmake(&made);
    kg_text_free(&text);
}

static void test_maps(void)
{
    check_maps("op f(x: f32[H, W]) -> (y: f32[(H+1)/2, W])\n"
               "{ y[h, w] = max(r in 0..3) pad(x[h*2 + r - 1, W - 1 - w], 0) }\n",
               "H=8 W=4", 0, "x: +2h+1r-1; -1w-1 + W\n");
    check_maps("op f(x: f32[N], w: f32[N], ids: i32[N]) -> (y: f32[N])\n"
               "{ y[n] = x[n/2] + w[ids[n]] + pad(x[-(n - 3)*2], 0) }\n",
               "N=8", 0, "x: other\nw: gather\nids: +1n+0\nx: -2n+6\n");
    check_maps("op f(x: f32[N, N], s: f32[]) -> (y: f32[N])\n"
               "{ y[n] = x[n, N/2] * s[] + pad(x[n*N, n + 2*N], 0) }\n",
               "N=8", 0, "x: +1n+0; +0 + N/2\ns:\nx: other; +1n+0 + 2*N\n");
}

// The reads inside subscripts and pads are accesses too, in the order of the text.
static void test_access_order(void)
{
    check_maps("op f(t: f32[V, D], ids: i64[B], fill: f32[D]) -> (y: f32[B, D])\n"
               "{ y[b, d] = pad(t[ids[b], d + 1], fill[d]) + fill[d] }\n",
               "V=3 D=4 B=2", 0, "t: gather; +1d+1\nids: +1b+0\nfill: +1d+0\nfill: +1d+0\n");
}

TEST_MAIN(test_softmax, test_matmul_bias_relu, test_w4a16, test_maxpool, test_cumsum,
          test_attention, test_embedding, test_recursive, test_shared, test_output_read,
          test_integer_output_read, test_shifted, test_guarded, test_names, test_too_many_indices,
          test_maps, test_access_order)
