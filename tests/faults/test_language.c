// Every allocation of the language fails once, and once with all that follow.

#include "faults/fail_alloc.h"
#include "lang/difference.h"
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
static const char *const changed =
    "# Softmax with another bias.\n"
    "op f(z: T[P, D], b: S[D, D]) -> (y: T[P, D]) where T in f16 f32, S in f32 param eps = 1e-6 {\n"
    "  top[p] = min(d) z[p, d]\n"
    "  y[p, d] = exp(z[p, d] + b[d, d] - top[p]) + eps }\n"
    "goal { baseline torch \"b\" verify P D = 1 1, 7 514 verify z in 0..1 tolerance f16 1e-2 1e-2 "
    "}\n"
    "op h(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }\n";
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

// Parses both, and compares them.
static enum kg_status compare(const char *text, struct kg_arena *arena, struct kg_error *error)
{
    struct kg_file *before, *after;
    struct kg_file_difference difference;
    enum kg_status status = kg_lang_parse(arena, "t.kg", good, strlen(good), &before, error);
    if (status == KG_OK)
        status = kg_lang_parse(arena, "u.kg", text, strlen(text), &after, error);
    return status == KG_OK ? kg_lang_compare(arena, before, after, &difference, error) : status;
}

static void check(enum kg_status (*work)(const char *, struct kg_arena *, struct kg_error *),
                  const char *text, enum kg_status normal)
{
    for (int all = 0; all < 2; all++)
        for (long n = 1; fail_alloc_sweep(n); n++) {
            struct kg_arena arena = {0};
            struct kg_error error = {0};
            if (all)
                fail_alloc_from(n);
            else
                fail_alloc_at(n);
            enum kg_status status = work(text, &arena, &error);
            fail_alloc_never();
            CHECK(status == normal || (status == KG_ERROR_MEMORY && fail_alloc_happened()));
            CHECK(status == KG_OK || error.text[0]);
            kg_arena_free(&arena);
        }
}

static void test_good(void)
{
    check(use, good, KG_OK);
}

static void test_bad(void)
{
    check(use, bad, KG_ERROR_DEFINITION);
    check(use, unknown, KG_ERROR_DEFINITION);
}

static void test_compared(void)
{
    check(compare, changed, KG_OK);
}

TEST_MAIN(test_good, test_bad, test_compared)
