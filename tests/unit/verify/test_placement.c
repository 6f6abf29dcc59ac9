// Where tensors begin on a device without pages that guard them: some generated cases have no more
// than the alignment that was promised, required sizes are aligned, and results and writes outside
// are judged there all the same.

#include "test.h"
#include "unit/verify/far_device.h"

#define TWICE                                                                                      \
    "op f(x: f32[P, D], i: i8[P]) -> (y: f16[P, D]) { y[p, d] = x[p, d] + i[p] }\n"                \
    "goal { verify P D = 6 8 }"
#define FAR 512

enum fault { NONE, WRONG, WRITES_OUTSIDE };

struct seen {
    enum fault fault; // where x is not aligned to 16 bytes
    int cases, odd, wrong_promise, odd_required;
    size_t alignment;
};

static enum kg_status run(void *user, const struct kg_problem *problem, void *const *tensors,
                          struct kg_error *error)
{
    (void)error;
    struct seen *seen = user;
    const size_t elements[] = {4, 1, 2};
    const int64_t *shape = problem->layouts[2].shape;
    bool odd = (uintptr_t)tensors[0] % 16 != 0, is_far = (uintptr_t)tensors[0] % FAR == 0;
    bool required = shape[0] == 6 && shape[1] == 8;
    seen->cases++;
    seen->odd += !is_far;
    seen->odd_required += required && !is_far;
    for (int t = 0; t < 3; t++) {
        size_t promised = seen->alignment ? seen->alignment : elements[t];
        size_t behind = (uintptr_t)tensors[t] % FAR;
        seen->wrong_promise += behind != (is_far ? 0 : promised);
    }
    for (int64_t p = 0; p < shape[0]; p++)
        for (int64_t d = 0; d < shape[1]; d++) {
            double i = get(problem, tensors, 1, p, 0), wrong = odd && seen->fault == WRONG;
            put(problem, tensors, 2, p, d, get(problem, tensors, 0, p, d) + i + wrong);
        }
    if (odd && seen->fault == WRITES_OUTSIDE)
        ((char *)tensors[2])[-1] = 1;
    return KG_OK;
}

static enum kg_status allocate_far(struct kg_device *device, size_t bytes, void **memory,
                                   struct kg_error *error)
{
    (void)device;
    *memory = aligned_alloc(FAR, (bytes + FAR) / FAR * FAR);
    return *memory ? KG_OK : kg_error_memory(error, "a test");
}

static struct kg_verdict judge_far(struct seen *seen)
{
    struct kg_backend backend = *far_device.backend;
    backend.allocate = allocate_far;
    struct kg_device device = {.backend = &backend};
    struct made made = make(TWICE, "P=6 D=8");
    struct kg_error error = {0};
    struct kg_verdict verdict = {.passed = false};
    struct kg_gate *gate;
    const struct kg_policy policy = {.seed = 7, .alignment = seen->alignment};
    const struct kg_subject subject = {.name = "placed", .user = seen, .run = run};
    CHECK_STATUS(kg_gate_make(&device, made.op, &policy, &gate, &error), KG_OK, &error);
    for (int again = 0; again < 2; again++) // the second time in images that are there already
        CHECK_STATUS(kg_gate_judge(gate, &subject, &verdict, &error), KG_OK, &error);
    kg_gate_free(gate);
    unmake(&made);
    return verdict;
}

static void least_alignment(void)
{
    for (size_t alignment = 0; alignment <= 16; alignment += 16) {
        struct seen seen = {.alignment = alignment};
        struct kg_verdict verdict = judge_far(&seen);
        CHECK(verdict.passed);
        CHECK(seen.odd > seen.cases / 8 && seen.odd < seen.cases / 2);
        CHECK(seen.odd_required == 0 && seen.wrong_promise == 0);
    }
}

static void faults_there(void)
{
    struct seen wrong = {.fault = WRONG}, outside = {.fault = WRITES_OUTSIDE};
    struct seen aligned = {.fault = WRONG, .alignment = 16};
    CHECK(strstr(judge_far(&wrong).reason, "expected"));
    CHECK(strstr(judge_far(&outside).reason, "wrote 1 bytes before y"));
    CHECK(judge_far(&aligned).passed);
}

TEST_MAIN(least_alignment, faults_there)
