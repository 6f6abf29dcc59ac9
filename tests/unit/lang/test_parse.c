// Parsing and checking: what comes out of good definitions.

#include "lang/lang.h"

#include "test.h"

#include <stdlib.h>

struct parsed {
    struct kg_arena arena;
    struct kg_error error;
    struct kg_file *file;
    struct kg_op *op; // the first one
};

static struct parsed parse(const char *text)
{
    struct parsed p = {0};
    enum kg_status status = kg_lang_parse(&p.arena, "t.kg", text, strlen(text), &p.file, &p.error);
    CHECK_STATUS(status, KG_OK, &p.error);
    if (status != KG_OK)
        exit(1); // the rest of the test would read nothing
    p.op = p.file->ops[0];
    return p;
}

static void check_statement(const struct kg_op *op, int which, const char *expected)
{
    struct kg_text text = {0};
    kg_lang_print_statement(&text, op->statements[which]);
    CHECK_TEXT(kg_text_string(&text), expected);
    kg_text_free(&text);
}

static void check_size(const struct kg_expr *expr, const char *expected)
{
    struct kg_text text = {0};
    CHECK(expr != NULL);
    if (expr)
        kg_lang_print_expr(&text, expr);
    CHECK_TEXT(kg_text_string(&text), expected);
    kg_text_free(&text);
}

static void test_signature(void)
{
    struct parsed p = parse("# One.\n\n# Adds.\n#  Twice.\nop f(x: T[P, D], l: f32[]) -> (y: T[P, "
                            "D]) param eps = 1e-5, G = 4\nwhere T in f16, f32\n"
                            "{ y[p, d] = x[p, d] + l[] }\ngoal { speedup 2 verify P D = 1 1, 7 "
                            "513 }\n# Two.\n");
    CHECK(p.file->op_count == 1);
    CHECK_TEXT(p.op->name, "f");
    CHECK_TEXT(p.op->description, "Adds.\n Twice.");
    CHECK(strncmp(p.op->source, "# Adds.", 7) == 0);
    CHECK(p.op->source[strlen(p.op->source) - 1] == '}');
    CHECK(p.op->input_count == 2 && p.op->output_count == 1 && p.op->tensor_count == 3);
    CHECK(p.op->size_count == 4 && p.op->sizes[2]->is_real && p.op->sizes[2]->real == 1e-5);
    CHECK(p.op->sizes[3]->is_param && p.op->sizes[3]->value == 4);
    CHECK(p.op->typevar_count == 1 && p.op->typevars[0]->count == 2);
    CHECK(p.op->goal.given && p.op->goal.speedup == 2 && p.op->goal.rounds == 5);
    CHECK(p.op->goal.verify.row_count == 2 && p.op->goal.verify.rows[3] == 513);
    kg_arena_free(&p.arena);
}

static void test_ranges(void)
{
    struct parsed p =
        parse("op f(x: f32[P, D], w: f32[D, 2*E], v: f32[E]) -> (y: f32[P, D]) param R = 3 {\n"
              "  m[p] = max(d) x[p, d]\n"
              "  t[p, e] = sum(k) x[p, k] * w[k, e]\n"
              "  h[i in 0..E] = sum(r in 1..R) pad(v[i+r], 0)\n"
              "  y[p, d] = (sum(j <= d) x[p, d-j]) + m[p] + sum(e) t[p, e] + sum(i) h[i] }\n");
    check_statement(p.op, 0, "m[p] = max(d) x[p, d]");
    check_statement(p.op, 1, "t[p, e] = sum(k) x[p, k] * w[k, e]");
    check_statement(p.op, 2, "h[i in 0..E] = sum(r in 1..R) pad(v[i + r], 0)");
    check_statement(p.op, 3,
                    "y[p, d] = sum(j <= d) x[p, d - j] + m[p] + sum(e) t[p, e] + "
                    "sum(i) h[i]");
    check_size(p.op->tensors[4]->dims[0], "P");
    check_size(p.op->tensors[5]->dims[1], "2*E");
    check_size(p.op->tensors[6]->dims[0], "E");
    check_size(p.op->statements[0]->value->indices[0]->end, "D");
    kg_arena_free(&p.arena);
}

// Parses `value`, prints it, and parses and prints that again.
static void check_value(const char *value, const char *expected)
{
    const char *form = "op f(x: f32[N, N], k: i32[N], b: bool[N]) -> (y: f32[N, N]) where T in f16 "
                       "f32 param eps = 0.5 { y[i, j] = %s }";
    char definition[512];
    snprintf(definition, sizeof definition, form, value);
    struct parsed p = parse(definition);
    struct kg_text text = {0};
    kg_lang_print_expr(&text, p.op->statements[0]->value);
    CHECK_TEXT(kg_text_string(&text), expected);
    snprintf(definition, sizeof definition, form, kg_text_string(&text));
    kg_arena_free(&p.arena);
    p = parse(definition);
    kg_text_cut(&text, 0);
    kg_lang_print_expr(&text, p.op->statements[0]->value);
    CHECK_TEXT(kg_text_string(&text), expected);
    kg_text_free(&text);
    kg_arena_free(&p.arena);
}

static void test_precedence(void)
{
    check_value("1.0-2.0-3.0", "1.0 - 2.0 - 3.0");
    check_value("1.0-(2.0-3.0)", "1.0 - (2.0 - 3.0)");
    check_value("(1.0*2.0)/3.0", "1.0*2.0/3.0");
    check_value("1.0*(x[i, j]/3.0)", "1.0 * (x[i, j] / 3.0)");
    check_value("(1+2)*3", "(1 + 2) * 3");
    check_value("-x[i, j]*2", "-x[i, j] * 2");
    check_value("-(x[i, j]*2)", "-(x[i, j] * 2)");
    check_value("- -1", "--1");
    check_value("1 - -1", "1 - -1");
    check_value("where(!b[i] && b[j] || i<j && 1 == 2, 1, 0)",
                "where(!b[i] && b[j] || i < j && 1 == 2, 1, 0)");
    check_value("where(!(b[i] || b[j]) && (i < j || i > j), 1, 0)",
                "where(!(b[i] || b[j]) && (i < j || i > j), 1, 0)");
    check_value("where((i < j) == (b[i] != b[j]), 1, 0)", "where((i < j) == (b[i] != b[j]), 1, 0)");
    check_value("sum(k) x[i, k]*2 + 1", "sum(k) x[i, k] * 2 + 1");
    check_value("(sum(k) x[i, k])*2 + 1", "(sum(k) x[i, k]) * 2 + 1");
    check_value("2 * sum(k) x[i, k]*2", "2 * (sum(k) x[i, k] * 2)");
    check_value("-sum(k) x[i, k]", "-(sum(k) x[i, k])");
    check_value("sum(k) (x[i, k] + 1)", "sum(k) (x[i, k] + 1)");
    check_value("sum(k) sum(l) x[k, l]", "sum(k) sum(l) x[k, l]");
    check_value("sum(k, l) x[k, l] / (sum(k) x[k, i])", "sum(k, l) x[k, l] / (sum(k) x[k, i])");
    check_value("cast(T, .5e1) + 1e300 + 1e-7 + 1e20", "cast(T, 5.0) + 1e+300 + 1e-07 + 1e+20");
    check_value("inf - nan + pi + eps + N + true",
                "inf - nan + 3.141592653589793 + eps + N + true");
    check_value("pad(x[i-1, k[j]%N], -inf)", "pad(x[i - 1, k[j] % N], -inf)");
    check_value("x[i % 2 + 1/2, 7/N]", "x[i%2 + 1/2, 7/N]");
    check_value("argmin(k in 1..N-1) x[i, k]", "argmin(k in 1..N - 1) x[i, k]");
}

// Bits bind tighter than comparisons and looser than sums, as in Python and Rust.
static void test_bits(void)
{
    check_value("k[i] | 1 ^ 2 & 3 << 4 + 5", "k[i] | 1 ^ 2 & 3 << 4 + 5");
    check_value("(((k[i] | 1) ^ 2) & 3) << 4", "(((k[i] | 1) ^ 2) & 3) << 4");
    check_value("k[i] >> 1 >> (2 << 3)", "k[i] >> 1 >> (2 << 3)");
    check_value("where(k[i] & 1 == 0 && 3 < k[j] | 8, 1, 0)",
                "where(k[i] & 1 == 0 && 3 < k[j] | 8, 1, 0)");
    check_value("(k[i] == 1) & 1", "(k[i] == 1) & 1");
    check_value("~k[i] * 2 + ~(k[j] & ~-1)", "~k[i] * 2 + ~(k[j] & ~-1)");
    check_value("sum(j) k[j] << 2", "sum(j) k[j] << 2");
    check_value("sum(j) (k[j] << 2)", "sum(j) (k[j] << 2)");
    check_value("max(j) ~k[j]", "max(j) ~k[j]");
    check_value("max(j, l in 0..2) (~k[j] + l)", "max(j, l in 0..2) (~k[j] + l)");
    check_value("k[i] & 0xFf ^ 0X10", "k[i] & 255 ^ 16");
}

// max and min are both functions and reductions.
static void test_max(void)
{
    check_value("max(i, j)", "max(i, j)");
    check_value("max(i, j) - 1", "max(i, j) - 1");
    check_value("max(i, j) * 2", "max(i, j) * 2");
    check_value("max(x[i, j], 0) + 1", "max(x[i, j], 0) + 1");
    check_value("max(k, l) x[k, l]", "max(k, l) x[k, l]");
    check_value("max(k, l) (-x[k, l])", "max(k, l) (-x[k, l])");
    check_value("max(k) -x[i, k]", "max(k) -x[i, k]");
    check_value("max(k in 0..N) 1.0", "max(k in 0..N) 1.0");
    check_value("max(k <= j) x[i, k]", "max(k <= j) x[i, k]");
    check_value("min(k, l in 0..N) -x[k, l]", "min(k, l in 0..N) (-x[k, l])");
    check_value("min(k, l > j, m) (-x[k, l] + x[m, m])", "min(k, l > j, m) (-x[k, l] + x[m, m])");
    struct parsed p = parse("op f(x: f32[N, N]) -> (y: f32[N, N], z: f32[N, N]) {\n"
                            "  y[i, j] = max(i, j)\n  z[i, j] = x[i, j] }");
    check_statement(p.op, 0, "y[i, j] = max(i, j)");
    kg_arena_free(&p.arena);
}

// Inner indices hide outer ones, in the body only.
static void test_shadowing(void)
{
    struct parsed p = parse("op f(x: f32[N]) -> (y: f32[N]) {\n"
                            "  y[i] = (sum(i) x[i]) + x[i] }");
    const struct kg_statement *statement = p.op->statements[0];
    const struct kg_expr *sum = statement->value->arguments[0];
    CHECK(sum->indices[0] != statement->indices[0]);
    CHECK(sum->arguments[0]->arguments[0]->index == sum->indices[0]);
    CHECK(statement->value->arguments[1]->arguments[0]->index == statement->indices[0]);
    kg_arena_free(&p.arena);
}

static void test_bound_by_other_index(void)
{
    struct parsed p = parse("op f(x: f32[N]) -> (y: f32[N]) { y[i] = sum(j <= i) x[i-j] }");
    check_size(p.op->statements[0]->value->indices[0]->end, "N");
    kg_arena_free(&p.arena);
}

// A thousand ops are checked well within a second; here only that it works.
static void test_many(void)
{
    struct kg_text text = {0};
    for (int i = 0; i < 1000; i++)
        kg_text_format(&text,
                       "# Softmax %d.\nop softmax%d(x: T[P, D]) -> (y: T[P, D]) where T in f16 f32 "
                       "f64 {\n  m[p] = max(d) x[p, d]\n  e[p, d] = exp(x[p, d] - m[p])\n"
                       "  y[p, d] = e[p, d] / (sum(d) e[p, d]) }\n",
                       i, i);
    struct parsed p = parse(kg_text_string(&text));
    CHECK(p.file->op_count == 1000);
    CHECK_TEXT(p.file->ops[999]->description, "Softmax 999.");
    kg_text_free(&text);
    kg_arena_free(&p.arena);
}

// Where an op's own text begins, so that a diagnostic of an instance shows the right line.
static void test_source(void)
{
    struct parsed p =
        parse("# A file.\r\n\r\n  # About f.\r\n  op f(x: f32[N]) -> (y: f32[N]) {\r\n"
              "y[i] = x[i] } op g(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }");
    CHECK_TEXT(p.op->description, "About f.");
    CHECK(p.op->pieces[0].line == 3 && p.op->pieces[0].column == 1);
    CHECK(p.file->ops[1]->pieces[0].line == 5 && p.file->ops[1]->pieces[0].column == 15);
    CHECK_TEXT(p.file->ops[1]->source, "op g(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }");
    CHECK_TEXT(p.file->ops[1]->description, "");
    kg_arena_free(&p.arena);
    p = parse("\xEF\xBB\xBFop f(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }");
    CHECK_TEXT(p.op->name, "f");
    kg_arena_free(&p.arena);
}

static void test_goal(void)
{
    struct parsed p = parse("op f(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }\ngoal {\n"
                            "  baseline torch \"a \\\"b\\\" \\\\\"\n  rounds 0\n"
                            "  tolerance f16 1e-3 0, i8 0 1\n  tune N = 7 }");
    CHECK_TEXT(p.op->goal.baseline_kind, "torch");
    CHECK_TEXT(p.op->goal.baseline, "a \"b\" \\");
    CHECK(p.op->goal.rounds == 0 && p.op->goal.speedup == 1.0);
    CHECK(p.op->goal.tolerance[KG_F16].given && p.op->goal.tolerance[KG_F16].relative == 1e-3);
    CHECK(p.op->goal.tolerance[KG_I8].absolute == 1 && !p.op->goal.tolerance[KG_F32].given);
    CHECK(p.op->goal.verify.row_count == 0 && p.op->goal.tune.rows[0] == 7);
    kg_arena_free(&p.arena);
    p = parse("op f(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }");
    CHECK(!p.op->goal.given && !p.op->goal.baseline && p.op->goal.rounds == 5);
    kg_arena_free(&p.arena);
}

TEST_MAIN(test_signature, test_ranges, test_precedence, test_bits, test_max, test_shadowing,
          test_bound_by_other_index, test_many, test_source, test_goal)
