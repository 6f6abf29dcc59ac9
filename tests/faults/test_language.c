// Every allocation of the language fails once, and once with all that follow.

#include "faults/fail_alloc.h"
#include "lang/lang.h"
#include "test.h"

#include <stdlib.h>

static const char *const good =
    "# Softmax with a bias.\n"
    "op f(x: T[P, D], b: T[D]) -> (y: T[P, D]) where T in f16 f32 f64 param eps = 1e-5 {\n"
    "  m[p] = max(d) (x[p, d] + b[d])\n"
    "  e[p, d] = exp(x[p, d] + b[d] - m[p])\n"
    "  y[p, d] = e[p, d] / ((sum(d) e[p, d]) + eps) }\n"
    "goal { baseline torch \"a\" verify P D = 1 1, 7 513 }\n"
    "op g(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }\n";
static const char *const bad = "op f(x: f32[N]) -> (y: f32[N]) { y[i] = x[i, i] }";
static const char *const unknown = "op f(x: f32[N]) -> (y: f32[N]) { y[i] = rellu(x[i]) }";

// Parses; instantiates the first op when there is one.
static enum kg_status use(const char *text, struct kg_arena *arena, struct kg_error *error)
{
    struct kg_file *file;
    struct kg_op *op, *instance;
    struct kg_bindings bindings;
    enum kg_status status = kg_lang_parse(arena, "t.kg", text, strlen(text), &file, error);
    if (status == KG_OK)
        status = kg_lang_select(file, "f", &op, error);
    if (status != KG_OK)
        return status;
    kg_lang_default_bindings(op, &bindings);
    bindings.dtypes[0] = KG_F64;
    return kg_lang_instantiate(arena, op, &bindings, &instance, error);
}

static void check(const char *text, enum kg_status normal)
{
    for (int all = 0; all < 2; all++)
        for (long n = 1; fail_alloc_sweep(n); n++) {
            struct kg_arena arena = {0};
            struct kg_error error = {0};
            if (all)
                fail_alloc_from(n);
            else
                fail_alloc_at(n);
            enum kg_status status = use(text, &arena, &error);
            fail_alloc_never();
            CHECK(status == normal || (status == KG_ERROR_MEMORY && fail_alloc_happened()));
            CHECK(status == KG_OK || error.text[0]);
            kg_arena_free(&arena);
        }
}

static void test_good(void)
{
    check(good, KG_OK);
}

static void test_bad(void)
{
    check(bad, KG_ERROR_DEFINITION);
    check(unknown, KG_ERROR_DEFINITION);
}

TEST_MAIN(test_good, test_bad)
