// Instances: bindings, types, weak literals.

#include "lang/lang.h"

#include "test.h"

#include <stdlib.h>

struct instance {
    struct kg_arena arena;
    struct kg_op *generic;
    struct kg_op *op;
};

static struct instance parse(const char *text)
{
    struct instance made = {0};
    struct kg_error error = {0};
    struct kg_file *file;
    if (kg_lang_parse(&made.arena, "t.kg", text, strlen(text), &file, &error) != KG_OK) {
        fprintf(stderr, "%s\n", error.text);
        exit(1); // the rest of the test would read nothing
    }
    made.generic = file->ops[0];
    return made;
}

static struct instance make(const char *text, enum kg_dtype dtype)
{
    struct instance made = parse(text);
    struct kg_error error = {0};
    struct kg_bindings bindings;
    kg_lang_default_bindings(made.generic, &bindings);
    bindings.dtypes[0] = dtype;
    CHECK_STATUS(kg_lang_instantiate(&made.arena, made.generic, &bindings, &made.op, &error), KG_OK,
                 &error);
    return made;
}

static void print_types(struct kg_text *text, const struct kg_expr *expr)
{
    if (expr->kind == KG_EXPR_CALL)
        kg_text_add(text, kg_functions[expr->function].name);
    else if (expr->kind == KG_EXPR_REDUCE)
        kg_text_add(text, kg_reduces[expr->reduce].name);
    else if (expr->kind == KG_EXPR_CAST)
        kg_text_add(text, "cast");
    else if (expr->kind == KG_EXPR_READ)
        kg_text_add(text, expr->tensor->name);
    else
        kg_lang_print_expr(text, expr);
    kg_text_format(text, ":%s", kg_type_name_of(expr->type));
    if (expr->kind == KG_EXPR_READ || expr->argument_count == 0)
        return;
    kg_text_add(text, "(");
    for (int i = 0; i < expr->argument_count; i++) {
        kg_text_add(text, i ? " " : "");
        print_types(text, expr->arguments[i]);
    }
    kg_text_add(text, ")");
}

// The types in `value`, stored in y: T[N], with x: T[N], k: i32[N], b: bool[N] at hand.
static void check_types(const char *value, enum kg_dtype dtype, const char *expected)
{
    char definition[512];
    snprintf(definition, sizeof definition,
             "op f(x: T[N], k: i32[N], b: bool[N]) -> (y: T[N]) where T in f16 f32 f64\n"
             "param G = 3, eps = 0.1 { y[i] = %s }",
             value);
    struct instance made = make(definition, dtype);
    struct kg_text text = {0};
    print_types(&text, made.op->statements[0]->value);
    CHECK_TEXT(kg_text_string(&text), expected);
    kg_text_free(&text);
    kg_arena_free(&made.arena);
}

static void test_types(void)
{
    check_types("x[i] + 1", KG_F16, "+:f32(x:f32 1:f32)");
    check_types("x[i] + 1", KG_F64, "+:f64(x:f64 1:f64)");
    check_types("x[i] * eps", KG_F64, "*:f64(x:f64 0.1:f64)");
    check_types("x[i] * G + N", KG_F32, "+:f32(*:f32(x:f32 3:f32) N:i64)");
    check_types("x[i] + i", KG_F32, "+:f32(x:f32 i:i64)");
    check_types("k[i] + 1", KG_F32, "+:i64(k:i64 1:i64)");
    check_types("b[i] + true", KG_F32, "+:i64(b:bool true:bool)");
    check_types("where(b[i], b[i], false)", KG_F32, "where:bool(b:bool b:bool false:bool)");
    check_types("where(k[i] > 0, x[i], 0)", KG_F32, "where:f32(>:bool(k:i64 0:i64) x:f32 0:f32)");
    check_types("exp(k[i])", KG_F32, "exp:f32(k:i64)");
    check_types("isnan(x[i])", KG_F32, "isnan:bool(x:f32)");
    check_types("abs(b[i])", KG_F32, "abs:i64(b:bool)");
    check_types("sum(j) b[j]", KG_F32, "sum:i64(b:bool)");
    check_types("mean(j) k[j]", KG_F32, "mean:f32(k:i64)");
    check_types("argmax(j) x[j]", KG_F64, "argmax:i64(x:f64)");
    check_types("any(j) (x[j] > i)", KG_F64, "any:bool(>:bool(x:f64 i:i64))");
    check_types("k[i] & b[i]", KG_F32, "&:i64(k:i64 b:bool)");
    check_types("x[i] * (~k[i] >> 2)", KG_F64, "*:f64(x:f64 >>:i64(~:i64(k:i64) 2:i64))");
    check_types("b[i] ^ true", KG_F32, "^:i64(b:bool true:bool)");
    check_types("cast(i8, x[i])", KG_F64, "cast:i64(x:f64)");
    check_types("cast(f16, x[i])", KG_F64, "cast:f32(x:f64)");
    check_types("cast(T, k[i])", KG_F64, "cast:f64(k:i64)");
}

// What is made of literals, sizes and indices only is as precise as what it meets.
static void test_weak(void)
{
    check_types("x[i] * sqrt(2.0 / pi)", KG_F64,
                "*:f64(x:f64 sqrt:f64(/:f64(2.0:f64 3.141592653589793:f64)))");
    check_types("x[i] * sqrt(N)", KG_F64, "*:f64(x:f64 sqrt:f64(N:i64))");
    check_types("x[i] * sqrt(N)", KG_F32, "*:f32(x:f32 sqrt:f32(N:i64))");
    check_types("cos(i * 0.1)", KG_F64, "cos:f64(*:f64(i:i64 0.1:f64))");
    check_types("x[i] * where(b[i], 0.1, -0.2)", KG_F64,
                "*:f64(x:f64 where:f64(b:bool 0.1:f64 -:f64(0.2:f64)))");
    check_types("cast(f64, i / 3.0)", KG_F32, "cast:f64(/:f64(i:i64 3.0:f64))");
    check_types("x[i] + cast(f32, x[i]) * 0.1", KG_F64,
                "+:f64(x:f64 *:f32(cast:f32(x:f64) 0.1:f32))");
    check_types("where(x[i] < 0.1, x[i], 0)", KG_F64,
                "where:f64(<:bool(x:f64 0.1:f64) x:f64 0:f64)");
}

static void test_bindings(void)
{
    struct instance made = parse("op f(x: T[N]) -> (y: T[N*G]) where T in f16 f32 param G = 3, eps "
                                 "= 0.5 {\n  t[i in 0..N*G] = x[i/G] + eps\n  y[i] = t[i] }\n"
                                 "goal { verify N = 1, 5 }");
    struct kg_error error = {0};
    struct kg_bindings bindings;
    kg_lang_default_bindings(made.generic, &bindings);
    CHECK(bindings.dtypes[0] == KG_F16 && bindings.values[1] == 3 && bindings.reals[2] == 0.5);
    bindings.dtypes[0] = KG_F32;
    bindings.values[1] = 4;
    bindings.reals[2] = -2;
    CHECK_STATUS(kg_lang_instantiate(&made.arena, made.generic, &bindings, &made.op, &error), KG_OK,
                 &error);
    const struct kg_op *op = made.op;
    CHECK(op->is_instance && op->bound[0] == KG_F32 && op->sizes[1]->value == 4);
    CHECK(op->tensors[0]->type.variable == NULL && op->tensors[0]->type.dtype == KG_F32);
    CHECK(op->tensors[2]->role == KG_ROLE_LOCAL && op->tensors[2]->compute == KG_TYPE_F32);
    CHECK(op->tensors[2]->type.dtype == KG_F32);
    CHECK(op->goal.verify.sizes[0] == op->sizes[0] && op->goal.verify.rows[1] == 5);
    struct kg_text text = {0};
    kg_lang_print_statement(&text, op->statements[0]);
    kg_text_add(&text, "; ");
    kg_lang_print_expr(&text, op->tensors[2]->dims[0]);
    CHECK_TEXT(kg_text_string(&text), "t[i in 0..N*4] = x[i/4] + -2.0; N*4");
    kg_text_free(&text);
    // The generic op is as it was, and an instance can be instantiated again.
    CHECK(made.generic->sizes[1]->value == 3 && made.generic->tensors[0]->type.variable != NULL);
    kg_lang_default_bindings(op, &bindings);
    CHECK_STATUS(kg_lang_instantiate(&made.arena, op, &bindings, &made.op, &error), KG_OK, &error);
    CHECK(made.op->bound[0] == KG_F32 && made.op->sizes[1]->value == 4);
    kg_arena_free(&made.arena);
}

static void test_refused(void)
{
    struct instance made = parse("# About f.\nop f(x: T[N]) -> (y: i32[N]) where T in i32 i8 param "
                                 "G = 3 { y[i] = x[i] }");
    struct kg_error error = {0};
    struct kg_bindings bindings;
    kg_lang_default_bindings(made.generic, &bindings);
    bindings.dtypes[0] = KG_F32;
    CHECK_STATUS(kg_lang_instantiate(&made.arena, made.generic, &bindings, &made.op, &error),
                 KG_ERROR_ARGUMENT, &error);
    CHECK_TEXT(error.text, "f: T cannot be f32; expected one of i32 i8");
    CHECK(made.op == NULL);
    bindings.dtypes[0] = KG_I8;
    bindings.values[1] = INT64_MIN;
    CHECK_STATUS(kg_lang_instantiate(&made.arena, made.generic, &bindings, &made.op, &error),
                 KG_ERROR_ARGUMENT, &error);
    CHECK_TEXT(error.text, "f: the value of the param G is out of range");
    kg_arena_free(&made.arena);
}

static void test_select(void)
{
    struct kg_arena arena = {0};
    struct kg_error error = {0};
    struct kg_file *file;
    struct kg_op *op;
    const char *two = "op first(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }\n"
                      "op second(x: f32[N]) -> (y: f32[N]) { y[i] = -x[i] }";
    CHECK_STATUS(kg_lang_parse(&arena, "t.kg", two, strlen(two), &file, &error), KG_OK, &error);
    CHECK_STATUS(kg_lang_select(file, "second", &op, &error), KG_OK, &error);
    CHECK(op == file->ops[1]);
    CHECK_STATUS(kg_lang_select(file, NULL, &op, &error), KG_ERROR_ARGUMENT, &error);
    CHECK_TEXT(error.text, "t.kg has several ops; name one of: first, second");
    CHECK(op == NULL);
    CHECK_STATUS(kg_lang_select(file, "secnod", &op, &error), KG_ERROR_ARGUMENT, &error);
    CHECK_TEXT(error.text,
               "t.kg has no op \"secnod\"; did you mean \"second\"? It has: first, second");
    CHECK_STATUS(kg_lang_select(file, "zzzzzzzz", &op, &error), KG_ERROR_ARGUMENT, &error);
    CHECK_TEXT(error.text, "t.kg has no op \"zzzzzzzz\"; it has: first, second");
    file->op_count = 1;
    CHECK_STATUS(kg_lang_select(file, NULL, &op, &error), KG_OK, &error);
    CHECK(op == file->ops[0]);
    kg_arena_free(&arena);
}

TEST_MAIN(test_types, test_weak, test_bindings, test_refused, test_select)
