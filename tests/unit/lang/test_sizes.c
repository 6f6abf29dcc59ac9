// Values of size expressions, and sizes inferred from shapes.

#include "lang/lang.h"

#include "test.h"

#include <stdlib.h>

struct instance {
    struct kg_arena arena;
    struct kg_op *op;
};

static struct instance make(const char *text)
{
    struct instance made = {0};
    struct kg_error error = {0};
    struct kg_file *file;
    struct kg_bindings bindings;
    if (kg_lang_parse(&made.arena, "t.kg", text, strlen(text), &file, &error) != KG_OK) {
        fprintf(stderr, "%s\n", error.text);
        exit(1); // the rest of the test would read nothing
    }
    kg_lang_default_bindings(file->ops[0], &bindings);
    CHECK_STATUS(kg_lang_instantiate(&made.arena, file->ops[0], &bindings, &made.op, &error), KG_OK,
                 &error);
    return made;
}

// The value of `text` with A = 7, B = 2.
static int64_t value_of(const char *text, const char *expected_error)
{
    char definition[256];
    snprintf(definition, sizeof definition,
             "op f(a: f32[A], b: f32[B], c: f32[%s]) -> (y: f32[A]) "
             "param G = 4 { y[i] = a[i] }",
             text);
    struct instance made = make(definition);
    struct kg_error error = {0};
    int64_t sizes[KG_MAX_SIZES] = {7, 2}, value = 99;
    enum kg_status status = kg_lang_size_value(made.op->tensors[2]->dims[0], sizes, &value, &error);
    CHECK_STATUS(status, expected_error ? KG_ERROR_SHAPE : KG_OK, &error);
    if (expected_error) {
        CHECK_TEXT(error.text, expected_error);
        CHECK(value == 0);
    }
    kg_arena_free(&made.arena);
    return value;
}

static void test_values(void)
{
    CHECK(value_of("A + B*G", NULL) == 15);
    CHECK(value_of("A/B", NULL) == 3);
    CHECK(value_of("ceil(A/B)", NULL) == 4);
    CHECK(value_of("A % B", NULL) == 1);
    CHECK(value_of("(B - A)/2 + 10", NULL) == 7);       // rounds down: -3
    CHECK(value_of("(B - A) % 3", NULL) == 1);          // the sign of the divisor
    CHECK(value_of("ceil((B - A)/2) + 10", NULL) == 8); // rounds up: -2
    CHECK(value_of("B - 2", NULL) == 0);
    CHECK(value_of("281474976710656", NULL) == (int64_t)1 << 48);
    value_of("B - A", "size B - A: it is negative (-5)");
    value_of("281474976710656 + 1", "size 281474976710656 + 1: it is larger than 2^48");
    value_of("A / (B - 2)", "size A / (B - 2): division by zero");
    value_of("A % (B - 2)", "size A % (B - 2): division by zero");
    value_of("9223372036854775807 * A", "size 9223372036854775807*A: overflow");
    value_of("9223372036854775807 + A", "size 9223372036854775807 + A: overflow");
    value_of("0 - 9223372036854775807 - A", "size 0 - 9223372036854775807 - A: overflow");
}

static const char *const pool =
    "op pool(x: f32[N, L], w: f32[R], z: f32[L+1]) -> (y: f32[N, (L+2*Q-R)/S+1], l: f32[])\n"
    "param S = 2, Q = 1 {\n"
    "  y[n, l] = sum(r) pad(x[n, l*S+r-Q], 0) * w[r]\n"
    "  l[] = sum(i) z[i] }";

static void infer(int x0, int x1, int w0, int z0, int y1, enum kg_status expected,
                  const char *message)
{
    struct instance made = make(pool);
    struct kg_error error = {0};
    int64_t sizes[KG_MAX_SIZES];
    for (int i = 0; i < KG_MAX_SIZES; i++)
        sizes[i] = -1;
    int ranks[] = {2, 1, z0 < 0 ? -1 : 1, y1 < 0 ? -1 : 2, 0};
    int64_t shapes[5][KG_MAX_RANK] = {{x0, x1}, {w0}, {z0}, {x0, y1}, {0}};
    enum kg_status status =
        kg_lang_infer_sizes(made.op, ranks, (const int64_t(*)[KG_MAX_RANK])shapes, sizes, &error);
    CHECK_STATUS(status, expected, &error);
    CHECK_TEXT(error.text, message);
    if (status == KG_OK) {
        CHECK(sizes[0] == x0 && sizes[1] == x1 && sizes[2] == w0);
        CHECK(sizes[3] == 1 && sizes[4] == 2); // Q and S, in order of appearance
    }
    kg_arena_free(&made.arena);
}

static void test_inference(void)
{
    infer(3, 9, 3, 10, 5, KG_OK, "");
    infer(3, 9, 3, -1, -1, KG_OK, "");
    infer(3, 9, 3, 11, 5, KG_ERROR_SHAPE, "dimension 0 of \"z\" is 11, but L + 1 is 10");
    infer(3, 9, 3, 10, 4, KG_ERROR_SHAPE,
          "dimension 1 of \"y\" is 4, but (L + 2*1 - R) / 2 + 1 is 5");
    infer(-3, 9, 3, 10, 4, KG_ERROR_SHAPE, "dimension 0 of \"x\" is -3; sizes are 0 to 2^48");
}

static void test_contradictions(void)
{
    struct instance made = make("op f(x: f32[P, D], b: f32[D]) -> (y: f32[P, D]) { y[p, d] = "
                                "x[p, d] + b[d] }");
    struct kg_error error = {0};
    int64_t shapes[3][KG_MAX_RANK] = {{4, 512}, {500}, {4, 512}};
    const int64_t(*given)[KG_MAX_RANK] = (const int64_t(*)[KG_MAX_RANK])shapes;
    int64_t sizes[] = {-1, -1};
    CHECK_STATUS(kg_lang_infer_sizes(made.op, (int[]){2, 1, 2}, given, sizes, &error),
                 KG_ERROR_SHAPE, &error);
    CHECK_TEXT(error.text, "dimension 0 of \"b\" is 500, but D is 512 (dimension 1 of \"x\")");
    sizes[0] = -1, sizes[1] = 7;
    CHECK_STATUS(kg_lang_infer_sizes(made.op, (int[]){2, 1, 2}, given, sizes, &error),
                 KG_ERROR_SHAPE, &error);
    CHECK_TEXT(error.text, "dimension 1 of \"x\" is 512, but D is 7");
    sizes[0] = sizes[1] = -1;
    CHECK_STATUS(kg_lang_infer_sizes(made.op, (int[]){-1, 1, -1}, given, sizes, &error),
                 KG_ERROR_SHAPE, &error);
    CHECK_TEXT(error.text, "no shape tells the size P");
    CHECK_STATUS(kg_lang_infer_sizes(made.op, (int[]){3, 1, 2}, given, sizes, &error),
                 KG_ERROR_SHAPE, &error);
    CHECK_TEXT(error.text, "\"x\" has 2 dimensions, not 3");
    sizes[0] = 4, sizes[1] = 500;
    CHECK_STATUS(kg_lang_infer_sizes(made.op, (int[]){-1, 1, -1}, given, sizes, &error), KG_OK,
                 &error);
    kg_arena_free(&made.arena);
}

static void test_largest_row(void)
{
    int64_t rows[] = {1, 1, 65, 1024, 7, 513, 1024, 65, 0, 64};
    struct kg_shapes shapes = {.size_count = 2, .row_count = 5, .rows = rows};
    CHECK(kg_lang_largest_row(&shapes) == 3);
    shapes.row_count = 3;
    CHECK(kg_lang_largest_row(&shapes) == 1);
    shapes.rows = &rows[8], shapes.row_count = 1;
    CHECK(kg_lang_largest_row(&shapes) == 0);
    shapes.row_count = 0;
    CHECK(kg_lang_largest_row(&shapes) == -1);
}

TEST_MAIN(test_values, test_inference, test_contradictions, test_largest_row)
