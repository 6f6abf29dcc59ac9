// Random definitions through the front: each parses, prints back to the same tree, and becomes a
// problem or is refused for a reason that has a name. What a problem promises is then checked by
// going through every iteration of every nest.

#include "property/random_op.h"
#include "support/sample_problem.h"
#include "test.h"

#include <math.h>

#define ROUNDS 600

static uint64_t first_seed;

static void print_body(const struct kg_op *op, struct kg_text *text)
{
    for (int i = 0; i < op->statement_count; i++) {
        kg_text_add(text, "    ");
        kg_lang_print_statement(text, op->statements[i]);
        kg_text_add(text, "\n");
    }
}

// Parses the text; NULL, reported, when that fails.
static struct kg_op *parse(struct kg_arena *arena, const struct kg_text *text)
{
    struct kg_file *file;
    struct kg_error error = {0};
    enum kg_status status =
        kg_lang_parse(arena, "random.kg", kg_text_string(text), text->length, &file, &error);
    CHECK_STATUS(status, KG_OK, &error);
    return status == KG_OK ? file->ops[0] : NULL;
}

static void check_printing(const struct random_op *random)
{
    struct kg_arena arena = {0};
    struct kg_text once = {0}, twice = {0}, text = {0};
    struct kg_op *op = parse(&arena, &random->text);
    if (op) {
        print_body(op, &once);
        kg_text_format(&text, "%s%s}\n", kg_text_string(&random->head), kg_text_string(&once));
        op = parse(&arena, &text);
    }
    if (op) {
        print_body(op, &twice);
        CHECK_TEXT(kg_text_string(&twice), kg_text_string(&once));
    }
    kg_text_free(&once);
    kg_text_free(&twice);
    kg_text_free(&text);
    kg_arena_free(&arena);
}

// The nests of the original and of what it prints as are the same.
static void check_same_problem(const struct random_op *random, const struct made *made)
{
    struct kg_text text = {0}, first = {0}, second = {0};
    kg_text_add(&text, kg_text_string(&random->head));
    print_body(made->generic, &text);
    kg_text_add(&text, "}\n");
    struct made again = make(kg_text_string(&text), kg_text_string(&random->sizes));
    CHECK_STATUS(again.status, made->status, &again.error);
    if (made->problem && again.problem) {
        for (int i = 0; i < made->problem->nest_count; i++)
            kg_nest_print(&first, made->problem->nests[i]);
        for (int i = 0; i < again.problem->nest_count; i++)
            kg_nest_print(&second, again.problem->nests[i]);
        CHECK_TEXT(kg_text_string(&second), kg_text_string(&first));
        CHECK(made->problem->operations == again.problem->operations);
    }
    unmake(&again);
    kg_text_free(&text);
    kg_text_free(&first);
    kg_text_free(&second);
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

// Value of an index expression without reads at one point of the axes.
static int64_t value_at(const struct kg_problem *problem, const struct kg_expr *expr,
                        const int64_t *axes)
{
    int64_t part[3] = {0};
    for (int i = 0; i < expr->argument_count && i < 3; i++)
        part[i] = value_at(problem, expr->arguments[i], axes);
    if (expr->kind == KG_EXPR_NUMBER)
        return expr->integer;
    if (expr->kind == KG_EXPR_SIZE)
        return problem->sizes[expr->size->id];
    if (expr->kind == KG_EXPR_INDEX)
        return axes[expr->index->id];
    CHECK(expr->kind == KG_EXPR_CALL);
    switch (expr->function) {
    case KG_FN_ADD:
        return part[0] + part[1];
    case KG_FN_SUB:
        return part[0] - part[1];
    case KG_FN_MUL:
        return part[0] * part[1];
    case KG_FN_NEG:
        return -part[0];
    case KG_FN_DIV:
        return part[1] ? floor_div(part[0], part[1]) : 0;
    case KG_FN_MOD:
        return part[1] ? part[0] - floor_div(part[0], part[1]) * part[1] : 0;
    case KG_FN_CEILDIV:
        return part[1] ? -floor_div(-part[0], part[1]) : 0;
    default:
        CHECK(false);
        return 0;
    }
}

static bool has_reduction(const struct kg_expr *expr)
{
    bool found = expr->kind == KG_EXPR_REDUCE ||
                 (expr->kind == KG_EXPR_READ && expr->pad && has_reduction(expr->pad));
    for (int i = 0; i < expr->argument_count && !found; i++)
        found = has_reduction(expr->arguments[i]);
    return found;
}

static bool related(const struct kg_problem *problem, const struct kg_nest *nest,
                    const int64_t *axes)
{
    for (int a = 0; a < nest->axis_count; a++) {
        const struct kg_index *axis = nest->axes[a];
        if (axis->relation == KG_RELATION_NONE)
            continue;
        int64_t bound = value_at(problem, axis->bound, axes);
        if ((axis->relation == KG_RELATION_LE && axes[a] > bound) ||
            (axis->relation == KG_RELATION_LT && axes[a] >= bound) ||
            (axis->relation == KG_RELATION_GE && axes[a] < bound) ||
            (axis->relation == KG_RELATION_GT && axes[a] <= bound))
            return false;
    }
    return true;
}

// One read at one point: the element it touches, -1 for none. Counts what lies outside.
static int64_t touch(const struct kg_problem *problem, const struct kg_access *access,
                     const int64_t *axes, int64_t *outside, int64_t *wrong)
{
    int64_t element = 0;
    bool inside = true;
    for (int d = 0; d < access->tensor->rank; d++) {
        int64_t size = problem->layouts[access->tensor->id].shape[d];
        if (access->map[d].is_gather) {
            inside = inside && size > 0;
            *outside += size == 0 && !access->read->pad;
            element = element * size; // any row will do
            continue;
        }
        int64_t value = value_at(problem, access->map[d].subscript, axes);
        if (access->map[d].is_affine) {
            int64_t affine = access->map[d].offset;
            for (int a = 0; a < KG_MAX_INDICES; a++)
                affine +=
                    access->map[d].coefficient[a] ? access->map[d].coefficient[a] * axes[a] : 0;
            if (access->map[d].base)
                affine += value_at(problem, access->map[d].base, axes);
            *wrong += affine != value;
        }
        if (value < 0 || value >= size) {
            *outside += !access->read->pad;
            inside = false;
        }
        element = element * size + value;
    }
    return inside ? element : -1;
}

// Goes through all points of a nest with one of its accesses.
static void check_access(const struct kg_problem *problem, const struct kg_nest *nest,
                         const struct kg_access *access)
{
    int64_t axes[KG_MAX_INDICES] = {0}, begin[KG_MAX_INDICES] = {0}, points = 1;
    int64_t outside = 0, wrong = 0;
    for (int a = 0; a < nest->axis_count; a++) {
        if (nest->axes[a]->begin)
            begin[a] = value_at(problem, nest->axes[a]->begin, axes);
        points *= nest->extent[a];
    }
    CHECK(points <= 2000000);
    for (int64_t point = 0; point < points && points <= 2000000; point++) {
        int64_t rest = point;
        for (int a = nest->axis_count - 1; a >= 0; a--) {
            axes[a] = begin[a] + rest % nest->extent[a];
            rest /= nest->extent[a];
        }
        if (related(problem, nest, axes))
            touch(problem, access, axes, &outside, &wrong);
    }
    CHECK(outside == 0);
    CHECK(wrong == 0);
}

static void check_nest(const struct kg_problem *problem, const struct kg_nest *nest)
{
    CHECK(!has_reduction(nest->body));
    CHECK(nest->output_axes == nest->output->rank);
    CHECK(nest->has_reduce == (nest->axis_count > nest->output_axes));
    CHECK(isfinite(nest->operations) && nest->operations >= 0);
    CHECK(isfinite(nest->iterations) && nest->iterations >= 0);
    for (int a = 0; a < nest->output_axes; a++)
        CHECK(nest->axes[a]->begin == NULL && nest->axes[a]->relation == KG_RELATION_NONE &&
              nest->extent[a] == problem->layouts[nest->output->id].shape[a]);
    for (int i = 0; i < nest->access_count; i++) {
        const struct kg_tensor *tensor = nest->accesses[i].tensor;
        bool defined = tensor->role == KG_ROLE_INPUT;
        for (int j = 0; j < nest->id; j++)
            defined = defined || problem->nests[j]->output == tensor;
        CHECK(defined);
        CHECK(tensor->role != KG_ROLE_OUTPUT);
        check_access(problem, nest, &nest->accesses[i]);
    }
}

static void check_problem(const struct kg_problem *problem)
{
    double inputs = 0;
    for (int i = 0; i < problem->op->input_count; i++)
        inputs += (double)problem->layouts[i].bytes;
    CHECK(problem->read_bytes >= 0 && problem->read_bytes <= inputs);
    for (int i = 0; i < problem->nest_count; i++)
        check_nest(problem, problem->nests[i]);
    for (int i = 0; i < problem->op->output_count; i++) {
        int writers = 0;
        for (int j = 0; j < problem->nest_count; j++)
            writers += problem->nests[j]->output->id == problem->op->input_count + i;
        CHECK(writers == 1);
    }
}

static void check_kind(enum random_kind kind)
{
    struct random_op random = {.seed = 0};
    int made_count = 0;
    for (int i = 0; i < ROUNDS; i++) {
        int before = test_failures;
        random_op_make(&random, first_seed + (uint64_t)i, kind);
        check_printing(&random);
        struct made made = make(kg_text_string(&random.text), kg_text_string(&random.sizes));
        CHECK(made.status == KG_OK || made.status == KG_ERROR_SHAPE ||
              made.status == KG_ERROR_UNSUPPORTED);
        CHECK((made.status == KG_OK) == (made.problem != NULL));
        CHECK((made.status == KG_OK) == (made.error.text[0] == '\0'));
        if (made.generic)
            check_same_problem(&random, &made);
        if (made.problem)
            check_problem(made.problem);
        made_count += made.problem != NULL;
        if (test_failures > before) {
            fprintf(stderr, "seed %llu, kind %d, %s: %s\n%s\n", (unsigned long long)random.seed,
                    (int)kind, kg_text_string(&random.sizes), made.error.text,
                    kg_text_string(&random.text));
            i = test_failures > 20 ? ROUNDS : i;
        }
        unmake(&made);
    }
    printf("%d of %d definitions became problems\n", made_count, ROUNDS);
    CHECK(test_failures > 0 || made_count > ROUNDS / 2); // otherwise the test tests little
    random_op_free(&random);
}

static void test_any(void)
{
    check_kind(RANDOM_ANY);
}

static void test_stable(void)
{
    check_kind(RANDOM_STABLE);
}

// The same seed, the same text; another seed, another.
static void test_repeatable(void)
{
    struct random_op a = {.seed = 0}, b = {.seed = 0};
    random_op_make(&a, first_seed, RANDOM_ANY);
    random_op_make(&b, first_seed, RANDOM_ANY);
    CHECK_TEXT(kg_text_string(&a.text), kg_text_string(&b.text));
    random_op_make(&b, first_seed + 1, RANDOM_ANY);
    CHECK(strcmp(kg_text_string(&a.text), kg_text_string(&b.text)) != 0);
    random_op_free(&a);
    random_op_free(&b);
}

static void test_seed(void)
{
    first_seed = random_seed(1);
}

TEST_MAIN(test_seed, test_repeatable, test_any, test_stable)
