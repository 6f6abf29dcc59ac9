// Differences of two versions of a definition: their kinds, what they are of, and where.

#include "lang/difference.h"
#include "test.h"

#define OP "op f(x: T[P, D], b: T[D]) -> (y: T[P, D])\n"
#define PARAMS "param eps = 1e-5, G = 2\n"
#define DTYPES "where T in f16 f32\n"
#define HEAD OP PARAMS DTYPES
#define BODY                                                                                       \
    "{ m[p] = max(d) x[p, d]\n"                                                                    \
    "  y[p, d] = x[p, d] * eps - m[p] + b[d / G] }\n"
#define WHOLE HEAD BODY

// What differs, a line each: "formula: statement of y 5:3 5:13", 0:0 where nothing is.
static void describe(const struct kg_file_difference *difference, struct kg_text *text)
{
    for (int i = 0; i < difference->op_count; i++) {
        const struct kg_op_difference *op = &difference->ops[i];
        if (!op->before || !op->after || strcmp(op->before->name, op->after->name) != 0)
            kg_text_format(text, "%s to %s\n", op->before ? op->before->name : "nothing",
                           op->after ? op->after->name : "nothing");
        for (int kind = 0; kind < KG_DIFFERENCE_COUNT; kind++)
            for (const struct kg_difference *d = op->differences[kind]; d; d = d->next)
                kg_text_format(text, "%s: %s %d:%d %d:%d\n", kg_difference_names[kind], d->what,
                               d->before.span.line, d->before.span.column, d->after.span.line,
                               d->after.span.column);
    }
}

static void check(const char *before, const char *after, const char *expected)
{
    struct kg_arena arena = {0};
    struct kg_error error = {0};
    struct kg_file *old = NULL, *new = NULL;
    struct kg_file_difference difference;
    struct kg_text text = {0};
    CHECK_STATUS(kg_lang_parse(&arena, "a", before, strlen(before), &old, &error), KG_OK, &error);
    CHECK_STATUS(kg_lang_parse(&arena, "b", after, strlen(after), &new, &error), KG_OK, &error);
    if (old && new) {
        CHECK_STATUS(kg_lang_compare(&arena, old, new, &difference, &error), KG_OK, &error);
        describe(&difference, &text);
        CHECK_TEXT(kg_text_string(&text), expected);
    }
    kg_text_free(&text);
    kg_arena_free(&arena);
}

static void test_same(void)
{
    check(WHOLE, WHOLE, "");
    check(WHOLE, "# A comment.\n" WHOLE, "text: comment above the op 1:4 2:4\n");
    check(WHOLE, HEAD "# inside\n" BODY, "text: layout or comments inside 1:4 1:4\n");
    // Ranges that are written and those that follow are the same.
    check(WHOLE,
          HEAD "{ m[p] = max(d in 0..D) x[p, d]\n  y[p, d] = x[p, d] * eps - m[p] + b[d/G] }",
          "text: layout or comments inside 1:4 1:4\n");
}

static void test_names_inside(void)
{
    const char *renamed = HEAD "{ top[row] = max(c) x[row, c]\n"
                               "  y[i, j] = x[i, j] * eps - top[i] + b[j / G] }\n";
    check(WHOLE, renamed, "text: names of indices or intermediates 4:3 4:3\n");
    // Two intermediates that exchange their names, and one that is named like an index was.
    const char *two = "op f(x: f32[N]) -> (y: f32[N]) {\n a[i] = x[i] + 1\n c[i] = a[i] * 2\n"
                      " y[i] = a[i] - c[i] }";
    const char *swapped = "op f(x: f32[N]) -> (y: f32[N]) {\n c[i] = x[i] + 1\n a[i] = c[i] * 2\n"
                          " y[i] = c[i] - a[i] }";
    const char *wrong = "op f(x: f32[N]) -> (y: f32[N]) {\n c[i] = x[i] + 1\n a[i] = c[i] * 2\n"
                        " y[i] = a[i] - c[i] }";
    check(two, swapped, "text: names of indices or intermediates 2:2 2:2\n");
    check(two, wrong, "formula: statement of a 2:9 3:9\nformula: statement of c 3:9 2:9\n");
}

static void test_order(void)
{
    const char *one = "op f(x: f32[N]) -> (y: f32[N]) {\n a[i] = x[i] + 1\n c[i] = x[i] * 2\n"
                      " y[i] = a[i] - c[i] }";
    const char *other = "op f(x: f32[N]) -> (y: f32[N]) {\n c[i] = x[i] * 2\n a[i] = x[i] + 1\n"
                        " y[i] = a[i] - c[i] }";
    check(one, other, "text: order of the statements 2:2 2:2\n");
}

static void test_formula(void)
{
    check(WHOLE, HEAD "{ m[p] = min(d) x[p, d]\n  y[p, d] = x[p, d] * eps - m[p] + b[d / G] }",
          "formula: statement of m 4:10 4:10\n");
    check(WHOLE, HEAD "{ m[p] = max(d) x[p, d]\n  y[p, d] = x[p, d] * eps - m[p] + b[d / 2] }",
          "formula: statement of y 5:42 5:42\n");
    check(WHOLE, HEAD "{ y[p, d] = x[p, d] * eps + b[d / G] }",
          "formula: statement of m is gone 4:3 0:0\nformula: statement of y 5:13 4:13\n");
    // 1 and 1.0, other indices in the same places, other relations of scans.
    const char *line = "op f(x: f32[N, N]) -> (y: f32[N, N]) { y[i, j] = ";
    const char *const pairs[][2] = {
        {"x[i, j] * 1", "x[i, j] * 1.0"},
        {"x[i, j]", "x[j, i]"},
        {"sum(k <= j) x[i, k]", "sum(k < j) x[i, k]"},
        {"sum(k <= j) x[i, k]", "sum(k <= i) x[j, k]"},
        {"sum(k in 0..2) pad(x[i, k], 0)", "sum(k in 0..3) pad(x[i, k], 0)"},
        {"sum(k in 0..2) pad(x[i, k], 0)", "sum(k in 0..2) pad(x[i, k], 1)"},
        {"sum(k in 0..N) pad(x[i, k], 0)", "sum(k in 0..N) x[i, k]"},
        {"cast(f16, x[i, j])", "cast(bf16, x[i, j])"},
        {"x[i, j] - x[j, i]", "x[j, i] - x[i, j]"},
        {"exp(x[i, j])", "exp2(x[i, j])"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct kg_text texts[2] = {0};
        struct kg_arena arena = {0};
        struct kg_error error = {0};
        struct kg_file *files[2] = {NULL, NULL};
        struct kg_file_difference difference = {0};
        for (int side = 0; side < 2; side++) {
            kg_text_format(&texts[side], "%s%s }", line, pairs[i][side]);
            CHECK_STATUS(kg_lang_parse(&arena, "t", texts[side].data, texts[side].length,
                                       &files[side], &error),
                         KG_OK, &error);
        }
        if (files[0] && files[1])
            CHECK_STATUS(kg_lang_compare(&arena, files[0], files[1], &difference, &error), KG_OK,
                         &error);
        CHECK(difference.op_count == 1 && difference.ops[0].differences[KG_DIFFERENCE_FORMULA] &&
              !difference.ops[0].differences[KG_DIFFERENCE_INTERFACE]);
        kg_text_free(&texts[0]);
        kg_text_free(&texts[1]);
        kg_arena_free(&arena);
    }
}

static void test_functions(void)
{
    const char *op = "op f(x: f32[N]) -> (y: f32[N]) { y[i] = g(x[i]) }";
    struct kg_text one = {0}, other = {0}, same = {0};
    kg_text_format(&one, "fn g(v) = v * 2\n%s", op);
    kg_text_format(&other, "fn g(v) = v * 3\n%s", op);
    kg_text_format(&same, "fn g(w) = w * 2\n%s", op);
    check(one.data, other.data, "formula: statement of y 1:15 1:15\n");
    check(one.data, same.data, "text: layout or comments inside 2:4 2:4\n");
    kg_text_free(&one);
    kg_text_free(&other);
    kg_text_free(&same);
}

static void test_interface(void)
{
    check(WHOLE,
          "op f(z: T[P, D], b: T[D]) -> (y: T[P, D])\n" PARAMS DTYPES
          "{ m[p] = max(d) z[p, d]\n  y[p, d] = z[p, d] * eps - m[p] + b[d / G] }",
          "interface: name of input x 1:6 1:6\n");
    check(WHOLE, "op f(b: T[D], x: T[P, D]) -> (y: T[P, D])\n" PARAMS DTYPES BODY,
          "interface: order of the inputs 1:6 1:6\n");
    check(WHOLE, "op f(x: T[P, D], b: T[D]) -> (y: f32[P, D])\n" PARAMS DTYPES BODY,
          "interface: dtype of output y 1:31 1:31\n");
    check(WHOLE, "op f(x: T[P, D], b: T[D + 1]) -> (y: T[P, D])\n" PARAMS DTYPES BODY,
          "interface: shape of input b 1:18 1:18\n");
    check(WHOLE, "op f(x: T[Q, D], b: T[D]) -> (y: T[Q, D])\n" PARAMS DTYPES BODY,
          "interface: name of size P 1:11 1:11\n");
    check(WHOLE, OP PARAMS "where T in f32 f16\n" BODY, "interface: dtype variable T 3:7 3:7\n");
    check(WHOLE, OP PARAMS "where T in f16 f32 f64\n" BODY,
          "interface: dtype variable T 3:7 3:7\n");
    check(WHOLE, "op f(x: S[P, D], b: S[D]) -> (y: S[P, D])\n" PARAMS "where S in f16 f32\n" BODY,
          "interface: dtype variable T 3:7 3:7\n");
    check(WHOLE, OP "param eps = 1e-5, G = 2, H = 3\n" DTYPES BODY,
          "interface: param H is new 0:0 2:26\n");
    check(WHOLE,
          OP "param eps = 1e-5, H = 4\n" DTYPES
             "{ m[p] = max(d) x[p, d]\n  y[p, d] = x[p, d] * eps - m[p] + b[d / H] }",
          "interface: name of param G 2:19 2:19\nparameter: default of G 2:19 2:19\n");
    check(WHOLE,
          "op f(x: T[P, D], b: T[D], z: T[P]) -> (y: T[P, D])\n" PARAMS DTYPES
          "{ m[p] = max(d) x[p, d]\n  y[p, d] = x[p, d] * eps - m[p] + b[d / G] + z[p] }",
          "interface: input z is new 0:0 1:27\nformula: statement of y 5:13 5:13\n");
}

static void test_packing(void)
{
    const char *plain = "op f(x: f32[K], w: u4[K, N]) -> (y: f32[N])\n"
                        "{ y[n] = sum(k) x[k] * w[k, n] }";
    const char *packed = "op f(x: f32[K], w: packed u4[K, N], s: f32[N]) -> (y: f32[N])\n"
                         "{ y[n] = sum(k) x[k] * w[k, n] }";
    const char *renamed = "op f(x: f32[R], w: packed u4[R, C], s: f32[C]) -> (y: f32[C])\n"
                          "{ y[c] = sum(r) x[r] * w[r, c] }";
    const char *shifted = "op f(x: f32[K], w: packed u4[K, N], s: f32[N]) -> (y: f32[N])\n"
                          "{ y[n] = sum(k) x[k] * w[K - 1 - k, n] }";
    check(plain, packed,
          "interface: packing of input w 1:17 1:17\ninterface: input s is new 0:0 1:37\n");
    check(packed, renamed,
          "interface: name of size K 1:13 1:13\ninterface: name of size N 1:33 1:33\n"
          "text: names of indices or intermediates 2:3 2:3\n");
    check(packed, shifted, "formula: statement of y 2:26 2:26\n");
}

static void test_parameter(void)
{
    check(WHOLE, OP "param eps = 1e-6, G = 4\n" DTYPES BODY,
          "parameter: default of eps 2:7 2:7\nparameter: default of G 2:19 2:19\n");
    check(WHOLE, OP "param G = 2, eps = 0.00001\n" DTYPES BODY,
          "text: layout or comments inside 1:4 1:4\n");
}

static void test_goal(void)
{
    check(WHOLE, WHOLE "goal { speedup 1.0 rounds 5 }",
          "text: layout or comments inside 1:4 1:4\n");
    check(WHOLE "goal { speedup 2 verify P D = 1 2, 3 4 }",
          WHOLE "goal { rounds 7 verify D P = 2 1, 4 3 }",
          "goal: speed-up 6:16 0:0\ngoal: rounds 0:0 6:15\n");
    check(WHOLE "goal { verify P D = 1 2, 3 4 tune P D = 8 8 baseline torch \"x\" }",
          WHOLE "goal { verify P D = 1 2, 3 5 tune P D = 8 9 baseline torch \"y\" }",
          "goal: baseline 6:60 6:60\ngoal: sizes to verify 6:8 6:8\n"
          "goal: sizes to tune 6:30 6:30\n");
    check(WHOLE "goal { tolerance f16 1e-3 1e-3 verify x in 0..1 }",
          WHOLE "goal { tolerance f16 1e-3 1e-4 verify x in 0..2, b in 0..1 }",
          "goal: tolerance of f16 6:22 6:22\ngoal: range of input x 6:39 6:39\n"
          "goal: range of input b 0:0 6:50\n");
}

static void test_ops(void)
{
    const char *one = "op f(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }\n";
    const char *other = "op g(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }\n";
    const char *third = "op g(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] * 2 }\n";
    check(one, other, "f to g\ninterface: name of the op 1:4 1:4\n");
    check(one, third, "nothing to g\nf to nothing\n");
}

// Long statements are cut around the place where they become different.
static void test_excerpts(void)
{
    struct kg_text texts[2] = {0};
    struct kg_arena arena = {0};
    struct kg_error error = {0};
    struct kg_file *files[2] = {NULL, NULL};
    struct kg_file_difference difference;
    for (int side = 0; side < 2; side++) {
        kg_text_add(&texts[side], "op f(x: f32[N]) -> (y: f32[N]) { y[i] = x[i]");
        for (int i = 0; i < 60; i++)
            kg_text_format(&texts[side], " + %d * x[i]", i == 40 && side ? 777 : 100 + i);
        kg_text_add(&texts[side], " }");
        CHECK_STATUS(
            kg_lang_parse(&arena, "t", texts[side].data, texts[side].length, &files[side], &error),
            KG_OK, &error);
    }
    CHECK_STATUS(kg_lang_compare(&arena, files[0], files[1], &difference, &error), KG_OK, &error);
    const struct kg_difference *d = difference.ops[0].differences[KG_DIFFERENCE_FORMULA];
    CHECK(d && !d->next);
    if (d) {
        CHECK(strstr(d->before.text, "140") && !strstr(d->before.text, "120"));
        CHECK(strstr(d->after.text, "777") && strlen(d->after.text) < 100);
        CHECK(strncmp(d->after.text, "...", 3) == 0);
    }
    kg_text_free(&texts[0]);
    kg_text_free(&texts[1]);
    kg_arena_free(&arena);
}

TEST_MAIN(test_same, test_names_inside, test_order, test_formula, test_functions, test_interface,
          test_packing, test_parameter, test_goal, test_ops, test_excerpts)
