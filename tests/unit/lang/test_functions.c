// Functions of a file: what calls are written out to, the source an op keeps, and hostile chains.

#include "lang/lang.h"

#include "test.h"

#include <stdlib.h>

static struct kg_arena arena;
static struct kg_error error;

static struct kg_file *parse(const char *text)
{
    struct kg_file *file;
    kg_arena_free(&arena);
    CHECK_STATUS(kg_lang_parse(&arena, "t.kg", text, strlen(text), &file, &error), KG_OK, &error);
    if (!file)
        exit(1);
    return file;
}

static void check_value(const char *functions, const char *value, const char *expected)
{
    struct kg_text text = {0}, printed = {0};
    kg_text_format(&text, "%s op f(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = %s }", functions,
                   value);
    struct kg_file *file = parse(kg_text_string(&text));
    kg_lang_print_expr(&printed, file->ops[0]->statements[0]->value);
    CHECK_TEXT(kg_text_string(&printed), expected);
    kg_text_free(&text);
    kg_text_free(&printed);
}

static void test_written_out(void)
{
    check_value("fn mish(x) = x * tanh(softplus(x))", "mish(x[i, j])",
                "x[i, j] * tanh(softplus(x[i, j]))");
    // An argument is one value, and so is what the function gives.
    check_value("fn twice(a) = a + a", "2 * twice(x[i, j] - 1) - 1",
                "2 * (x[i, j] - 1 + (x[i, j] - 1)) - 1");
    check_value("fn twice(a) = 2 * a", "twice(x[i, j] + 1)", "2 * (x[i, j] + 1)");
    // A parameter's name means nothing outside, and an index's nothing inside.
    check_value("fn minus(i, x) = i - x", "minus(x[i, j], x[j, i])", "x[i, j] - x[j, i]");
    check_value("fn g(j) = j * j fn h(i, j) = g(j) - g(i)", "h(x[i, j], i)",
                "i*i - x[i, j] * x[i, j]");
    check_value("fn half_pi() = pi / 2", "sin(half_pi() * x[i, j])",
                "sin(3.141592653589793/2 * x[i, j])");
    // Before a minus, and at the end of a function, max and min are calls.
    check_value("fn relu6(x) = min(max(x, 0), 6)", "relu6(x[i, j])", "min(max(x[i, j], 0), 6)");
    // In reductions, the bounds of scans and subscripts.
    check_value("fn sq(x) = x * x", "sum(k) sq(x[i, k])", "sum(k) x[i, k] * x[i, k]");
    check_value("fn sq(x) = x * x", "sq(sum(k) x[i, k])", "(sum(k) x[i, k]) * (sum(k) x[i, k])");
    check_value("fn back(k, n) = n - 1 - k", "x[i, back(j, M)]", "x[i, M - 1 - j]");
    check_value("fn near(k) = k + 1", "sum(k < near(j)) x[i, k]", "sum(k < j + 1) x[i, k]");
    // A function may have the name of a tensor or of what other languages call something else.
    check_value("fn x(a) = a fn clamp(a, b, c) = min(max(a, b), c)", "clamp(x(x[i, j]), 0, 1)",
                "min(max(x[i, j], 0), 1)");
}

// An op is told with the functions it calls, and no others; that text is a file of its own.
static void test_source(void)
{
    struct kg_file *file = parse("# Squares.\nfn sq(x) = x * x\nfn other(x) = x\n"
                                 "fn cube(x) = x * sq(x) # and no more\n\n# Cubes.\n"
                                 "op f(x: f32[N]) -> (y: f32[N]) { y[i] = cube(x[i]) }\n"
                                 "op g(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }\n");
    const char *source = "# Squares.\nfn sq(x) = x * x\n\nfn cube(x) = x * sq(x)\n\n# Cubes.\n"
                         "op f(x: f32[N]) -> (y: f32[N]) { y[i] = cube(x[i]) }";
    CHECK_TEXT(file->ops[0]->source, source);
    CHECK_TEXT(file->ops[0]->description, "Cubes.");
    CHECK_TEXT(file->ops[1]->source, "op g(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }");
    CHECK_TEXT(parse(source)->ops[0]->source, source);
}

// An instance outlives its op; what it says of a function shows the lines of the file.
static void test_instance(void)
{
    struct kg_file *file = parse("\n\nfn other(x) = x\nfn halve(x) = x / 2\n\n"
                                 "op f(x: T[N]) -> (y: T[N])\nwhere T in f32\n"
                                 "{ y[i] = halve(x[i]) }");
    struct kg_arena kept = {0};
    struct kg_bindings bindings;
    struct kg_op *instance, *again;
    kg_lang_default_bindings(file->ops[0], &bindings);
    CHECK_STATUS(kg_lang_instantiate(&kept, file->ops[0], &bindings, &instance, &error), KG_OK,
                 &error);
    kg_arena_free(&arena);
    const struct kg_expansion *call = instance->statements[0]->value->span.origin;
    CHECK_TEXT(call->note, "halve() is called here");
    CHECK(call->place.line == 8 && call->place.column == 10 && !call->place.origin);
    CHECK(instance->statements[0]->value->span.line == 4);
    CHECK(instance->piece_count == 2 && instance->pieces[1].line == 6);
    kg_lang_default_bindings(instance, &bindings);
    CHECK_STATUS(kg_lang_instantiate(&kept, instance, &bindings, &again, &error), KG_OK, &error);
    kg_arena_free(&kept);
}

// `count` functions, each of which uses its argument in the one before as `body` says.
static void check_chain(const char *first, const char *body, int count, const char *value,
                        const char *expected)
{
    struct kg_text text = {0};
    kg_text_format(&text, "%s\n", first);
    for (int i = 1; i < count; i++) {
        kg_text_format(&text, "fn c%d(x) = ", i);
        for (const char *at = body; *at; at++)
            if (*at == '@')
                kg_text_format(&text, "c%d", i - 1);
            else
                kg_text_add_bytes(&text, at, 1);
        kg_text_add(&text, "\n");
    }
    kg_text_format(&text, "op f(x: f32[N]) -> (y: f32[N]) { y[i] = c%d(%s) }", count - 1, value);
    struct kg_file *file;
    kg_arena_free(&arena);
    enum kg_status status = kg_lang_parse(&arena, "t.kg", text.data, text.length, &file, &error);
    CHECK(status == (expected ? KG_ERROR_DEFINITION : KG_OK));
    if (expected && !strstr(error.text, expected))
        CHECK_TEXT(error.text, expected);
    kg_text_free(&text);
}

static void test_hostile(void)
{
    const char *first = "fn c0(x) = x";
    check_chain(first, "@(x)", 256, "x[i]", NULL);
    check_chain(first, "@(x * x)", 8, "x[i]", NULL);
    check_chain(first, "@(x * x)", 60, "x[i]", "an op of more than 8192 terms, with its functions");
    check_chain(first, "@(x) * @(x)", 60, "x[i]", "an op of more than 8192 terms");
    check_chain("fn c0(x) = 1", "@(@(x))", 60, "x[i]", "an op of more than 8192 terms");
    check_chain(first, "-(-@(x))", 120, "x[i]", "nested deeper than 200 levels");
    check_chain(first, "x", 257, "x[i]", "more than 256 functions in one file");
}

// A file whose ops are short and large when written out.
static void test_hostile_file(void)
{
    struct kg_text text = {0};
    struct kg_file *file;
    kg_text_add(&text, "fn a(x) = x*x*x*x*x*x*x*x*x*x fn b(x) = a(a(a(x)))\n");
    for (int i = 0; i < 4096; i++)
        kg_text_format(&text, "op g%d(x: f32[N]) -> (y: f32[N]) { y[i] = b(x[i]) }\n", i);
    kg_arena_free(&arena);
    CHECK(kg_lang_parse(&arena, "t.kg", text.data, text.length, &file, &error) ==
          KG_ERROR_DEFINITION);
    CHECK(strstr(error.text, "a file of more than 262144 terms, with its functions") != NULL);
    kg_text_cut(&text, 0);
    kg_text_format(&text, "fn a(x) = x %*s + 1\n", 1 << 16, "");
    for (int i = 0; i < 1024; i++)
        kg_text_format(&text, "op g%d(x: f32[N]) -> (y: f32[N]) { y[i] = a(x[i]) }\n", i);
    kg_arena_free(&arena);
    CHECK(kg_lang_parse(&arena, "t.kg", text.data, text.length, &file, &error) ==
          KG_ERROR_DEFINITION);
    CHECK(strstr(error.text, "the ops of a file hold more than 16 MiB") != NULL);
    kg_text_free(&text);
    kg_arena_free(&arena);
}

TEST_MAIN(test_written_out, test_source, test_instance, test_hostile, test_hostile_file)
