// Packed inputs: what the checker makes of them is what the formulas of docs/packed.md, written by
// hand, are parsed to; people are shown what they wrote.

#include "lang/lang.h"
#include "lang/panels.h"

#include "test.h"

#include <stdlib.h>

#define PACKED "op f(x: f32[M, K], w: packed u4[K, N], s: f32[N]) -> (y: f32[M, N])\n"
#define PLAIN                                                                                      \
    "op f(x: f32[M, K], w: u4[ceil(K/64), ceil(N/16), 1024], s: f32[N]) -> (y: f32[M, N])\n"

struct instance {
    struct kg_arena arena;
    struct kg_op *generic;
    struct kg_op *op;
};

static struct instance make(const char *text)
{
    struct instance made = {0};
    struct kg_error error = {0};
    struct kg_file *file;
    struct kg_bindings bindings;
    CHECK_STATUS(kg_lang_parse(&made.arena, "t.kg", text, strlen(text), &file, &error), KG_OK,
                 &error);
    if (!file)
        exit(1); // the rest of the test would read nothing
    made.generic = file->ops[0];
    kg_lang_default_bindings(made.generic, &bindings);
    CHECK_STATUS(kg_lang_instantiate(&made.arena, made.generic, &bindings, &made.op, &error), KG_OK,
                 &error);
    return made;
}

// The first read of the tensor.
static const struct kg_expr *find_read(const struct kg_expr *expr, const char *name)
{
    if (expr->kind == KG_EXPR_READ && strcmp(expr->tensor->name, name) == 0)
        return expr;
    const struct kg_expr *found = NULL;
    for (int i = 0; i < expr->argument_count && !found; i++)
        found = find_read(expr->arguments[i], name);
    return found;
}

static bool same_tree(const struct kg_expr *one, const struct kg_expr *other)
{
    if (one->kind != other->kind || one->type != other->type ||
        one->argument_count != other->argument_count || one->integer != other->integer ||
        one->is_integer != other->is_integer || one->number != other->number ||
        one->function != other->function)
        return false;
    if (one->kind == KG_EXPR_INDEX && strcmp(one->index->name, other->index->name) != 0)
        return false;
    if (one->kind == KG_EXPR_SIZE && strcmp(one->size->name, other->size->name) != 0)
        return false;
    for (int i = 0; i < one->argument_count; i++)
        if (!same_tree(one->arguments[i], other->arguments[i]))
            return false;
    return true;
}

static void check_like(const struct kg_op *packed, const struct kg_op *plain)
{
    const struct kg_tensor *one = packed->tensors[1], *other = plain->tensors[1];
    CHECK(one->rank == other->rank);
    for (int d = 0; d < one->rank && d < other->rank; d++)
        CHECK(same_tree(one->dims[d], other->dims[d]));
    CHECK(same_tree(packed->statements[0]->value, plain->statements[0]->value));
}

static void check_same(const char *packed, const char *plain)
{
    struct instance one = make(packed), other = make(plain);
    check_like(one.generic, other.generic);
    check_like(one.op, other.op);
    kg_arena_free(&one.arena);
    kg_arena_free(&other.arena);
}

static void test_formulas(void)
{
    check_same(PACKED "{ y[m, n] = sum(k) x[m, k] * (w[k, n] * s[n]) }", PLAIN
               "{ y[m, n] = sum(k) x[m, k] * (w[k/64, n/16, n%16/2*128 + k%8/2*32 + k%64/16*8 + "
               "k%2*4 + k%16/8*2 + n%2] * s[n]) }");
    // Subscripts that are more than an index are put in parentheses.
    check_same(
        "op f(x: f32[M, K], w: packed u4[K, N], s: f32[N]) -> (y: f32[M])\n"
        "{ y[m] = sum(k in 1..K, n in 0..N/2) x[m, k] * w[k - 1, 2*n] * s[n] }",
        "op f(x: f32[M, K], w: u4[ceil(K/64), ceil(N/16), 1024], s: f32[N]) -> (y: f32[M])\n"
        "{ y[m] = sum(k in 1..K, n in 0..N/2) x[m, k] * w[(k - 1)/64, (2*n)/16, (2*n)%16/2*128 "
        "+ (k - 1)%8/2*32 + (k - 1)%64/16*8 + (k - 1)%2*4 + (k - 1)%16/8*2 + (2*n)%2] * "
        "s[n] }");
    // Rows are the last axis but one, whatever they are called; axes before them stay.
    check_same("op f(x: f32[K], w: packed i4[E, N, K], e: i32[B]) -> (y: f32[B]) param N = 5\n"
               "{ y[b] = sum(n in 0..N, k) w[e[b], n, k] * x[k] }",
               "op f(x: f32[K], w: i4[E, ceil(N/64), ceil(K/16), 1024], e: i32[B]) -> (y: f32[B]) "
               "param N = 5\n"
               "{ y[b] = sum(n in 0..N, k) w[e[b], n/64, k/16, k%16/2*128 + n%8/2*32 + n%64/16*8 + "
               "n%2*4 + n%16/8*2 + k%2] * x[k] }");
}

static void test_shape(void)
{
    struct instance made = make("op f(a: f32[E, R], w: packed T[E, 2*R, C+1], c: f32[C]) -> "
                                "(y: f32[E]) where T in i4 u4\n"
                                "{ y[e] = sum(r, c in 0..C) w[e, 2*r + 1, c + 1] * a[e, r] }");
    const struct kg_tensor *tensor = made.op->tensors[1];
    struct kg_text text = {0};
    kg_lang_print_tensor(&text, made.generic->tensors[1]);
    CHECK_TEXT(kg_text_string(&text), "w: packed T[E, 2*R, C + 1]");
    kg_text_cut(&text, 0);
    kg_lang_print_tensor(&text, tensor);
    CHECK_TEXT(kg_text_string(&text), "w: packed i4[E, 2*R, C + 1]");
    kg_text_cut(&text, 0);
    for (int d = 0; d < tensor->rank; d++) {
        kg_text_add(&text, " ");
        kg_lang_print_expr(&text, tensor->dims[d]);
    }
    CHECK_TEXT(kg_text_string(&text), " E ceil(2*R/64) ceil((C + 1)/16) 1024");
    CHECK(kg_lang_declared_rank(tensor) == 3);
    CHECK(kg_lang_declared_rank(made.op->tensors[0]) == 2);
    CHECK(kg_lang_declared_dim(made.op->tensors[0], 1) == made.op->tensors[0]->dims[1]);
    kg_text_free(&text);
    kg_arena_free(&made.arena);
}

// Statements are printed as they were written, and parse to the same again.
static void test_printed(void)
{
    static const char *const statements[] = {
        "y[m, n] = sum(k) x[m, k] * (w[k, n] * s[n])",
        "y[m, n] = sum(k) x[m, k] * w[K - 1 - k, n] * s[n]",
        "y[m, n] = sum(k in 0..K/2) x[m, 2*k] * w[k*2 + 1, n/2] * s[n]",
        "y[m, n] = sum(k <= m) x[m, k] * w[k, n] + s[n]",
    };
    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++) {
        struct kg_text definition = {0}, text = {0};
        kg_text_format(&definition, PACKED "{ %s }", statements[i]);
        struct instance made = make(kg_text_string(&definition));
        kg_lang_print_statement(&text, made.generic->statements[0]);
        CHECK_TEXT(kg_text_string(&text), statements[i]);
        kg_text_cut(&text, 0);
        kg_lang_print_statement(&text, made.op->statements[0]);
        CHECK_TEXT(kg_text_string(&text), statements[i]);
        kg_text_free(&definition);
        kg_text_free(&text);
        kg_arena_free(&made.arena);
    }
}

// Changes every number and index of the subscripts in turn: the read is then no longer one that was
// written as rows and columns.
static void test_recognised(void)
{
    struct instance made = make(PACKED "{ y[m, n] = sum(k) x[m, k] * (w[k, n] * s[n]) }");
    const struct kg_expr *read = find_read(made.op->statements[0]->value, "w");
    const struct kg_expr *subscripts[KG_MAX_RANK];
    CHECK(read && kg_lang_declared_subscripts(read, subscripts));
    CHECK(subscripts[0]->kind == KG_EXPR_INDEX && strcmp(subscripts[0]->index->name, "k") == 0);
    CHECK(subscripts[1]->kind == KG_EXPR_INDEX && strcmp(subscripts[1]->index->name, "n") == 0);
    const struct kg_expr *stack[64] = {read};
    const struct kg_index *m = made.op->statements[0]->indices[0];
    int top = 1, changed = 0;
    while (top > 0) {
        struct kg_expr *at = (struct kg_expr *)stack[--top], before = *at;
        for (int i = 0; i < at->argument_count; i++)
            stack[top++] = at->arguments[i];
        if (at->kind == KG_EXPR_NUMBER)
            at->integer++;
        else if (at->kind == KG_EXPR_INDEX)
            at->index = m;
        else if (at->kind == KG_EXPR_CALL)
            at->function = KG_FN_SUB;
        else
            continue;
        CHECK(!kg_lang_declared_subscripts(read, subscripts));
        *at = before;
        changed++;
    }
    CHECK(changed == 2 * 17 + 5 + 8); // steps with their numbers, additions, indices
    CHECK(kg_lang_declared_subscripts(read, subscripts));
    kg_arena_free(&made.arena);
}

static void infer(int64_t rows, int64_t columns, int64_t codes, int rank, const char *message)
{
    struct instance made = make(PACKED "{ y[m, n] = sum(k) x[m, k] * (w[k, n] * s[n]) }");
    struct kg_error error = {0};
    const int ranks[] = {2, rank, 1, -1};
    int64_t shapes[KG_MAX_TENSORS][KG_MAX_RANK] = {{3, 130}, {rows, columns, codes}, {17}};
    int64_t sizes[KG_MAX_SIZES] = {-1, -1, -1};
    enum kg_status status =
        kg_lang_infer_sizes(made.op, ranks, (const int64_t(*)[KG_MAX_RANK])shapes, sizes, &error);
    CHECK_STATUS(status, message ? KG_ERROR_SHAPE : KG_OK, &error);
    if (message)
        CHECK_TEXT(error.text, message);
    else
        CHECK(sizes[0] == 3 && sizes[1] == 130 && sizes[2] == 17);
    kg_arena_free(&made.arena);
}

// Two sizes that no other input tells.
static void infer_alone(int64_t rows, int64_t columns, const char *message)
{
    struct instance made = make("op f(p: packed u4[K, N]) -> (w: u4[K, N]) { w[k, n] = p[k, n] }");
    struct kg_error error = {0};
    const int ranks[] = {3, -1};
    const int64_t shapes[KG_MAX_TENSORS][KG_MAX_RANK] = {{3, 2, 1024}};
    int64_t sizes[KG_MAX_SIZES] = {rows, columns};
    enum kg_status status = kg_lang_infer_sizes(made.op, ranks, shapes, sizes, &error);
    CHECK_STATUS(status, message ? KG_ERROR_SHAPE : KG_OK, &error);
    if (message)
        CHECK_TEXT(error.text, message);
    kg_arena_free(&made.arena);
}

static void test_inference(void)
{
    infer_alone(129, 17, NULL);
    infer_alone(192, 32, NULL);
    infer_alone(193, 17, "dimension 0 of \"p\" is 3, but ceil(K/64) is 4");
    infer_alone(129, 33, "dimension 1 of \"p\" is 2, but ceil(N/16) is 3");
    infer_alone(129, -1,
                "no shape tells the size N: \"p\" is packed, in whole panels of 64 rows and 16 "
                "columns; give N with it");
    infer(3, 2, 1024, 3, NULL);
    infer(3, 2, 1024, -1, NULL);
    infer(2, 2, 1024, 3, "dimension 0 of \"w\" is 2, but ceil(K/64) is 3");
    infer(3, 17, 1024, 3, "dimension 1 of \"w\" is 17, but ceil(N/16) is 2");
    infer(3, 2, 512, 3, "dimension 2 of \"w\" is 512, but 1024 is 1024");
    infer(130, 17, 0, 2,
          "\"w\" has 3 dimensions, not 2: it is packed and lies in memory as [ceil(K/64), "
          "ceil(N/16), 1024]");
}

TEST_MAIN(test_formulas, test_shape, test_printed, test_recognised, test_inference)
