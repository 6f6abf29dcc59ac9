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

TEST_MAIN(test_signature, test_ranges)
