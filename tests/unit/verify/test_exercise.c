// Runs for tools that watch a kernel: each tensor has an allocation of exactly its bytes, with the
// inputs of the case, and nothing is judged but that the kernel runs.

#include "test.h"
#include "unit/verify/far_device.h"

#define COPY "op f(x: f32[P, D], i: i8[P]) -> (y: f32[P, D]) { y[p, d] = x[p, d] + i[p] }"

static size_t asked[3]; // bytes of the last three allocations
static int allocated, released;

static enum kg_status note_allocation(struct kg_device *device, size_t bytes, void **memory,
                                      struct kg_error *error)
{
    asked[allocated++ % 3] = bytes;
    return plain_allocate(device, bytes, memory, error);
}

static void note_release(struct kg_device *device, void *memory)
{
    released++;
    plain_release(device, memory);
}

struct watched {
    int runs, wrong_bytes, apart;
    int fails_at; // this run fails; 0: none
};

static enum kg_status watch(void *user, const struct kg_problem *problem, void *const *tensors,
                            struct kg_error *error)
{
    struct watched *watched = user;
    watched->runs++;
    for (int t = 0; t < 3; t++) {
        size_t bytes = problem->layouts[t].bytes;
        watched->wrong_bytes += asked[t] != (bytes ? bytes : 1);
    }
    watched->apart += tensors[0] != tensors[1] && tensors[1] != tensors[2];
    return watched->runs == watched->fails_at
               ? kg_error_set(error, KG_ERROR_FAULT, "an illegal address")
               : KG_OK; // y is left as it was: nobody looks
}

static struct kg_verdict exercise(struct watched *watched)
{
    struct kg_backend backend = *far_device.backend;
    backend.allocate = note_allocation;
    backend.release = note_release;
    struct kg_device device = {.backend = &backend};
    struct made made = make(COPY, "P=3 D=5");
    struct kg_error error = {0};
    struct kg_verdict verdict = {.passed = false};
    struct kg_gate *gate;
    const struct kg_policy policy = {.seed = 7};
    const struct kg_subject subject = {.name = "watched", .user = watched, .run = watch};
    CHECK_STATUS(kg_gate_make(&device, made.op, &policy, &gate, &error), KG_OK, &error);
    allocated = released = 0;
    CHECK_STATUS(kg_gate_exercise(gate, &subject, &verdict, &error), KG_OK, &error);
    CHECK(allocated == 3 * watched->runs && released == allocated);
    kg_gate_free(gate);
    unmake(&made);
    return verdict;
}

static void exact_allocations(void)
{
    struct watched watched = {.runs = 0};
    struct kg_verdict verdict = exercise(&watched);
    CHECK(verdict.passed && verdict.cases == watched.runs && watched.runs > 30);
    CHECK(watched.wrong_bytes == 0 && watched.apart == watched.runs);
}

static void a_run_that_fails(void)
{
    struct watched watched = {.fails_at = 4};
    struct kg_verdict verdict = exercise(&watched);
    CHECK(!verdict.passed && watched.runs == 4 && verdict.cases == 3);
    CHECK(strstr(verdict.reason, "case ") && strstr(verdict.reason, "an illegal address"));
}

TEST_MAIN(exact_allocations, a_run_that_fails)
