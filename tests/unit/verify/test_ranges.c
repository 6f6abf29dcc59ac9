// `verify x in 0..1`: no value of any class leaves the range, the gate still tells faults inside
// it, and says nothing of those outside.

#include "test.h"
#include "unit/verify/judge.h"
#include "verify/inputs.h"

#include <math.h>

#define SEEDS 3

// All values of all classes lie in the range, and more than one of them is drawn.
static void check_range(const char *type, const char *range, double low, double high,
                        const char *sizes)
{
    struct kg_text text = {0};
    kg_text_format(&text,
                   "op f(x: %s[N], t: f32[V]) -> (y: f32[N]) { y[i] = x[i] * t[0] } "
                   "goal { verify x in %s }",
                   type, range);
    struct made made = make(kg_text_string(&text), sizes);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    const struct kg_layout *layout = &made.problem->layouts[0];
    enum kg_dtype dtype = made.op->tensors[0]->type.dtype;
    char *data = malloc(layout->bytes);
    double first = NAN;
    int different = 0, outside = 0;
    for (int class = 0; class < KG_INPUT_CLASS_COUNT; class ++)
        for (int turn = 0; turn < SEEDS; turn++) {
            kg_inputs_fill(made.problem, 0, (enum kg_input_class) class,
                           kg_inputs_seed(made.op, 7, turn), data);
            for (int64_t i = 0; i < layout->elements; i++) {
                double value = kg_dtype_load(dtype, data, (size_t)i);
                outside += !(value >= low && value <= high);
                different += value != first;
                first = value;
            }
        }
    if (outside > 0)
        fprintf(stderr, "%s in %s: %d outside\n", type, range, outside);
    CHECK(outside == 0);
    CHECK(different > 100);
    free(data);
    unmake(&made);
    kg_text_free(&text);
}

static void test_values(void)
{
    static const char *const floats[] = {"f16", "bf16", "f32", "f64", "f8e4m3", "f8e5m2"};
    for (size_t i = 0; i < sizeof floats / sizeof floats[0]; i++) {
        check_range(floats[i], "0..1", 0, 1, "N=500 V=1");
        check_range(floats[i], "-0.3..0.3", -0.3, 0.3, "N=500 V=1"); // no ends of the dtype
        check_range(floats[i], "3..5", 3, 5, "N=500 V=1");
        check_range(floats[i], "0..inf", 0, INFINITY, "N=500 V=1");
        check_range(floats[i], "-inf..-2", -INFINITY, -2, "N=500 V=1");
    }
    check_range("f32", "0..1", 0, 1, "N=2000000 V=1"); // by a table
    check_range("i32", "0..9", 0, 9, "N=500 V=1");
    check_range("i64", "-3..inf", -3, 0x1p63, "N=500 V=1");
    check_range("u8", "-inf..5", 0, 5, "N=500 V=1");
    check_range("i8", "-128..-100", -128, -100, "N=500 V=1");
    check_range("u4", "2..3", 2, 3, "N=500 V=1");
}

// Indices keep to the range, too, even where they would leave the dimension otherwise.
static void test_indices(void)
{
    struct made made = make("op f(t: f32[V], k: i32[N]) -> (y: f32[N]) { y[i] = t[k[i]] } "
                            "goal { verify k in 2..6 }",
                            "N=500 V=100");
    CHECK_STATUS(made.status, KG_OK, &made.error);
    int32_t data[500];
    for (int class = 0; class < KG_INPUT_CLASS_COUNT; class ++) {
        kg_inputs_fill(made.problem, 1, (enum kg_input_class) class, 3, data);
        for (int i = 0; i < 500; i++)
            CHECK(data[i] >= 2 && data[i] <= 6);
    }
    unmake(&made);
}

// ---- Faults by value

struct fault {
    double low;  // inputs from here
    double high; // to here give a wrong result
};

static enum kg_status faulty(void *user, const struct kg_problem *problem, void *const *tensors,
                             struct kg_error *error)
{
    const struct fault *fault = user;
    enum kg_status status = honest(NULL, problem, tensors, error);
    for (int64_t i = 0; i < problem->layouts[0].shape[0] && status == KG_OK; i++) {
        double value = get(problem, tensors, 0, i, 0);
        if ((value >= fault->low && value <= fault->high) || (isnan(fault->low) && isnan(value)))
            put(problem, tensors, 1, i, 0, 77);
    }
    return status;
}

static void check_fault(const char *type, const char *range, double low, double high, bool passes)
{
    struct kg_text text = {0};
    kg_text_format(&text, "op f(x: %s[N]) -> (y: %s[N]) { y[i] = x[i] * 3 } goal { %s%s }", type,
                   type, range[0] ? "verify x in " : "", range);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const struct kg_policy policy = {.seed = seed};
        struct fault fault = {low, high};
        struct made made = make(kg_text_string(&text), "N=40");
        CHECK_STATUS(made.status, KG_OK, &made.error);
        struct kg_verdict verdict = judge(made.op, &policy, faulty, &fault);
        if (verdict.passed != passes)
            fprintf(stderr, "%s in %s, fault in %g..%g: passed %d: %s\n", type, range, low, high,
                    verdict.passed, verdict.reason);
        CHECK(verdict.passed == passes);
        CHECK(verdict.impostors > 0);
        unmake(&made);
    }
    kg_text_free(&text);
}

static void test_faults(void)
{
    check_fault("f32", "", 1.5, 4, false);
    check_fault("f32", "0..1", 1.5, 4, true);
    check_fault("f32", "0..1", -INFINITY, -1e-30, true);
    check_fault("f32", "0..1", NAN, NAN, true);
    check_fault("f32", "0..inf", NAN, NAN, true);
    check_fault("f32", "0..inf", INFINITY, INFINITY, false);
    check_fault("f32", "0..1", 0.2, 0.4, false);
    check_fault("f32", "0..1", 1, 1, false); // an end
    check_fault("f16", "100..200", 120, 140, false);
    check_fault("f16", "100..200", 0, 99, true);
    check_fault("i32", "0..9", 10, 1e9, true);
    check_fault("i32", "0..9", 9, 9, false);
    check_fault("u8", "", 10, 255, false);
}

TEST_MAIN(test_values, test_indices, test_faults)
