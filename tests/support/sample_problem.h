// From a definition's text to a problem, for tests: parse, instantiate, analyse in one call.

#ifndef KG_TESTS_SAMPLE_PROBLEM_H
#define KG_TESTS_SAMPLE_PROBLEM_H

#include "analyze/problem.h"

#include <stdlib.h>
#include <string.h>

struct made {
    struct kg_arena arena;
    struct kg_file *file;
    struct kg_op *generic;
    struct kg_op *op; // the instance
    struct kg_problem *problem;
    enum kg_status status;
    struct kg_error error;
};

// The number behind "name=" in "P=4 D=5 T=f16"; NULL when it is not there.
static inline const char *choice_of(const char *choices, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = choices; at && *at; at = strchr(at, ' ')) {
        at += *at == ' ';
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return at + length + 1;
    }
    return NULL;
}

// `choices`: values of sizes and params and dtypes of type variables, "P=4 D=5 T=f16 G=32". Sizes
// that are not named are 1, the others keep their defaults. `op` may be NULL for the only op.
// `strides` as in kg_problem_make. The result says how far it came; free it in any case.
static inline struct made make_strided(const char *text, const char *op, const char *choices,
                                       const int64_t (*strides)[KG_MAX_RANK])
{
    struct made made = {.file = NULL};
    struct kg_bindings bindings;
    int64_t sizes[KG_MAX_SIZES];
    made.status =
        kg_lang_parse(&made.arena, "test.kg", text, strlen(text), &made.file, &made.error);
    if (made.status == KG_OK)
        made.status = kg_lang_select(made.file, op, &made.generic, &made.error);
    if (made.status != KG_OK)
        return made;
    kg_lang_default_bindings(made.generic, &bindings);
    for (int i = 0; i < made.generic->typevar_count; i++) {
        const char *value = choice_of(choices, made.generic->typevars[i]->name);
        if (value)
            bindings.dtypes[i] = kg_dtype_find(value, strcspn(value, " "));
    }
    for (int i = 0; i < made.generic->size_count; i++) {
        const struct kg_size *size = made.generic->sizes[i];
        const char *value = choice_of(choices, size->name);
        sizes[i] = value ? strtoll(value, NULL, 10) : 1;
        if (size->is_param && value) {
            bindings.values[i] = sizes[i];
            bindings.reals[i] = strtod(value, NULL);
        }
    }
    made.status = kg_lang_instantiate(&made.arena, made.generic, &bindings, &made.op, &made.error);
    if (made.status == KG_OK)
        made.status = kg_problem_make(made.op, sizes, strides, &made.problem, &made.error);
    return made;
}

static inline struct made make(const char *text, const char *choices)
{
    return make_strided(text, NULL, choices, NULL);
}

static inline void unmake(struct made *made)
{
    kg_problem_free(made->problem);
    kg_arena_free(&made->arena);
}

#endif
