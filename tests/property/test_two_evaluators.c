// The reference against a second opinion, on random definitions: evaluated in f64 the two must
// agree, and evaluated in f32, operation by operation, results must stay within the reference's
// slack.

#include "property/random_op.h"
#include "property/tree_walk.h"
#include "support/case_turns.h"
#include "support/sample_problem.h"
#include "test.h"
#include "verify/reference.h"

#include <inttypes.h>

#define ROUNDS 600
#define TURNS 3
#define MOST_POINTS 60000

static bool has_f64(const struct kg_expr *expr)
{
    bool found = expr->type == KG_TYPE_F64 || (expr->pad && has_f64(expr->pad));
    for (int i = 0; i < expr->argument_count && !found; i++)
        found = has_f64(expr->arguments[i]);
    return found;
}

static uint64_t state;

static uint64_t draw(uint64_t limit)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % limit;
}

// Ordinary values, now and then a special one; integers of all sizes.
static void fill(const struct kg_problem *problem, int input, bool special, void *data)
{
    static const double odd[] = {NAN, INFINITY, -INFINITY, 0, -0.0, 1e30, 1e-40};
    enum kg_dtype dtype = problem->op->tensors[input]->type.dtype;
    for (int64_t n = 0; n < problem->layouts[input].elements; n++) {
        if (!kg_dtypes[dtype].is_float)
            kg_dtype_store_integer(dtype, data, (size_t)n,
                                   draw(8) ? (int64_t)draw(12) - 4
                                           : (int64_t)(draw(1u << 31) << 20));
        else if (special && draw(20) == 0)
            kg_dtype_store(dtype, data, (size_t)n, odd[draw(7)]);
        else
            kg_dtype_store(dtype, data, (size_t)n, ((double)draw(4001) - 2000) / 700);
    }
}

static void complain(const struct random_op *random, const char *choices, const char *what,
                     int64_t n, double got, const struct kg_expected *expected)
{
    fprintf(stderr,
            "seed %" PRIu64 ", %s: %s: element %" PRId64 " is %.17g here, %.17g there, "
            "slack %g\n%s",
            random->seed, choices, what, n, got, expected->value[n], expected->slack[n],
            kg_text_string(&random->text));
}

// Compares one output. `share`: the part of the slack that the evaluation may use.
static bool agrees(const struct machine *machine, int output, const struct kg_expected *expected,
                   double relative, double share, int64_t *bad)
{
    const struct kg_op *op = machine->problem->op;
    int tensor = op->input_count + output;
    enum kg_dtype dtype = op->tensors[tensor]->type.dtype;
    for (int64_t n = 0; n < expected->count; n++) {
        struct value got = machine->memory[tensor][n];
        double r = expected->value[n], slack = expected->slack[n];
        *bad = n;
        if (isinf(slack))
            continue;
        if (expected->integer) {
            int64_t integer = dtype == KG_BOOL ? got.integer != 0 : wrapped(dtype, got.integer);
            if (integer != expected->integer[n])
                return false;
        } else if (isnan(r) || isnan(got.real)) {
            if (!isnan(r) || !isnan(got.real))
                return false;
        } else if (isinf(r) || isinf(got.real)) {
            // Both are beyond f32, or both are infinite.
            if (r != got.real && !(fabs(r) > 3e38 && fabs(got.real) > 3e38 && r * got.real > 0))
                return false;
        } else if (fabs(got.real - r) > relative * (1 + fabs(r)) + share * slack) {
            return false;
        }
    }
    return true;
}

static void check_problem(const struct random_op *random, const char *choices,
                          const struct kg_problem *problem)
{
    const struct kg_op *op = problem->op;
    void *inputs[KG_MAX_TENSORS] = {NULL};
    for (int i = 0; i < op->input_count; i++) {
        inputs[i] = calloc(problem->layouts[i].bytes + 1, 1);
        fill(problem, i, random->seed % 3 == 0, inputs[i]);
    }
    bool wide = false;
    for (int i = 0; i < op->statement_count; i++)
        wide = wide || has_f64(op->statements[i]->value) ||
               op->statements[i]->tensor->compute == KG_TYPE_F64;
    struct machine exact = {.problem = problem}, narrow = {.problem = problem, .narrow = true};
    struct kg_expected expected[KG_MAX_TENSORS];
    struct kg_error error = {0};
    CHECK_STATUS(kg_reference_run(problem, (const void *const *)inputs, 2, NULL, expected, &error),
                 KG_OK, &error);
    run_all(&exact, inputs);
    run_all(&narrow, inputs);
    for (int o = 0; o < op->output_count && error.status == KG_OK; o++) {
        int64_t bad = 0;
        bool right = agrees(&exact, o, &expected[o], 1e-12, wide ? 8 : 1e-6, &bad);
        if (!right)
            complain(random, choices, "f64", bad, as_real(exact.memory[op->input_count + o][bad]),
                     &expected[o]);
        CHECK(right);
        bool within = agrees(&narrow, o, &expected[o], 1e-15, wide ? 8 : 1, &bad);
        if (!within)
            complain(random, choices, "f32", bad, as_real(narrow.memory[op->input_count + o][bad]),
                     &expected[o]);
        CHECK(within);
    }
    kg_expected_free(expected, error.status == KG_OK ? op->output_count : 0);
    free_memory(&exact);
    free_memory(&narrow);
    for (int i = 0; i < op->input_count; i++)
        free(inputs[i]);
}

static int compared;

static void check_choices(const struct random_op *random, const char *choices)
{
    struct made made = make(kg_text_string(&random->text), choices);
    if (made.problem) {
        double points = 0;
        for (int i = 0; i < made.problem->nest_count; i++)
            points += made.problem->nests[i]->iterations;
        for (int i = 0; i < made.op->tensor_count; i++)
            points += (double)made.problem->layouts[i].elements;
        if (points <= MOST_POINTS) {
            check_problem(random, choices, made.problem);
            compared++;
        }
    }
    unmake(&made);
}

// The same with one size long enough for several blocks of lanes.
static void check_longer(const struct random_op *random)
{
    const char *choices = kg_text_string(&random->sizes);
    const char *sizes[] = {"A=", "B=", "C=", "D="};
    for (int i = 0; i < 4; i++) {
        const char *at = strstr(choices, sizes[i]);
        if (!at || draw(2))
            continue;
        char longer[256];
        const char *rest = at + strcspn(at, " ");
        snprintf(longer, sizeof longer, "%.*s%s%d%s", (int)(at - choices), choices, sizes[i],
                 100 + (int)draw(200), rest);
        check_choices(random, longer);
        return;
    }
}

static void second_opinion(void)
{
    uint64_t seed = random_seed(20240607);
    struct random_op random = {0};
    for (int i = 0; i < ROUNDS; i++) {
        if (!has_turn(i / 4, TURNS)) // of each kind
            continue;
        random_op_make(&random, seed + (uint64_t)i, i % 4 ? RANDOM_STABLE : RANDOM_ANY);
        state = random.seed;
        check_choices(&random, kg_text_string(&random.sizes));
        check_longer(&random);
    }
    random_op_free(&random);
    printf("%d problems compared\n", compared);
    CHECK(compared > ROUNDS / 2 / turns_of(TURNS));
}

TEST_MAIN(second_opinion)
