// What a caller must know of an op to compute the shapes of its outputs by itself.

#include "support/folder.h"
#include "test.h"

#include <kernelgen.h>

#include <string.h>

static char home[] = "/tmp/kg-test-extents-XXXXXX";
static struct kg_context *context;
static struct kg_op *op;
static struct kg_problem *problem;

static const char definition[] =
    "op pool(x: T[N, H], w: u8[ceil(H/G)]) -> (y: T[N, (H+2*Q-R)/S+1])\n"
    "param R = 3, S = 2, Q = 1, G = 4\n"
    "where T in f32 f16\n"
    "{ y[n, h] = max(r in 0..R) pad(x[n, h*S+r-Q], -inf) }\n"
    "goal { verify N H = 2 8 }\n";

static void set_up(void)
{
    CHECK(folder_make(home));
    struct kg_options options = {.size = sizeof options, .home = home, .threads = 1, .wisdom = ""};
    struct kg_binding bindings[] = {{"T", "f16"}, {"R", "5"}};
    CHECK(kg_context_create(&options, &context) == KG_OK);
    CHECK(kg_op_parse(context, "pool.kg", definition, strlen(definition), NULL, &op) == KG_OK);
    CHECK(kg_problem_create(context, op, bindings, 2, &problem) == KG_OK);
}

static void check_extent(int index, int dimension, const char *expected)
{
    char *text = NULL;
    CHECK(kg_problem_extent(problem, index, dimension, &text) == KG_OK);
    CHECK_TEXT(text, expected);
    kg_text_release(text);
}

static void extents_have_numbers_for_params(void)
{
    check_extent(0, 0, "N");
    check_extent(1, 0, "ceil(H/4)");
    check_extent(2, 1, "(H + 2*1 - 5) / 2 + 1");
}

static void what_is_not_there_is_refused(void)
{
    char *text;
    CHECK(kg_problem_extent(problem, 3, 0, &text) == KG_ERROR_ARGUMENT && !text);
    CHECK(kg_problem_extent(problem, 1, 1, &text) == KG_ERROR_ARGUMENT && !text);
    CHECK_TEXT(kg_context_error(context), "w has 1 dimensions, and none of number 1");
    CHECK(kg_problem_extent(problem, 1, -1, &text) == KG_ERROR_ARGUMENT);
}

static void dtype_variables_have_names(void)
{
    struct kg_tensor_info info = {.size = sizeof info};
    CHECK(kg_op_tensor(op, 2, &info) == KG_OK && info.dtype == KG_DTYPE_COUNT);
    CHECK_TEXT(info.dtype_variable, "T");
    CHECK(kg_op_tensor(op, 1, &info) == KG_OK && !info.dtype_variable && info.dtype == KG_U8);
    CHECK(kg_problem_tensor(problem, 0, &info) == KG_OK && !info.dtype_variable);
}

static void clean_up(void)
{
    kg_problem_destroy(problem);
    kg_op_destroy(op);
    kg_context_destroy(context);
    folder_remove(home);
}

TEST_MAIN(set_up, extents_have_numbers_for_params, what_is_not_there_is_refused,
          dtype_variables_have_names, clean_up)
