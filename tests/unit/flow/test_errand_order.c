// An errand as bytes: what is written is what is read, and what is not whole is refused.

#include "flow/errand_order.h"
#include "support/sample_problem.h"
#include "test.h"

static const char text[] = "op scale(x: T[P, D]) -> (y: T[P, D])\nparam G = 4\nwhere T in f16 f32\n"
                           "{ y[p, d] = x[p, d] * G }\n";
static struct kg_error error;

static bool write(const struct kg_problem *problem, struct kg_text *bytes)
{
    struct kg_errand errand = {.kind = KG_ERRAND_BENCH,
                               .rigor = KG_RIGOR_PATIENT,
                               .seconds = 2.5,
                               .seed = 77,
                               .protocol = kg_protocol_default,
                               .takes_nearest = true,
                               .home = "/home",
                               .wisdom = "/wisdom",
                               .device = "cuda:1",
                               .choice = "direct: threads=1"};
    return kg_errand_write(&errand, problem, bytes);
}

static void what_is_written_is_read(void)
{
    struct made made = make_strided(text, "scale", "P=3 D=5", NULL);
    struct kg_text bytes = {0};
    struct kg_arena arena = {0};
    struct kg_errand errand;
    struct kg_problem *problem;
    CHECK_STATUS(made.status, KG_OK, &made.error);
    CHECK(write(made.problem, &bytes));
    CHECK_STATUS(kg_errand_read(bytes.data, bytes.length, &arena, &errand, &problem, &error), KG_OK,
                 &error);
    CHECK(errand.kind == KG_ERRAND_BENCH && errand.rigor == KG_RIGOR_PATIENT);
    CHECK(errand.seconds == 2.5 && errand.seed == 77 && errand.takes_nearest);
    CHECK_TEXT(errand.home, "/home");
    CHECK_TEXT(errand.wisdom, "/wisdom");
    CHECK_TEXT(errand.device, "cuda:1");
    CHECK_TEXT(errand.choice, "direct: threads=1");
    CHECK(!errand.rival && !errand.path && !errand.cache);
    CHECK(memcmp(&errand.protocol, &kg_protocol_default, sizeof errand.protocol) == 0);
    CHECK(problem && problem->sizes[0] == 3 && problem->sizes[1] == 5 && problem->contiguous);
    CHECK(problem && problem->layouts[0].bytes == made.problem->layouts[0].bytes);
    kg_problem_free(problem);
    for (size_t length = 0; length < bytes.length; length++) {
        CHECK(kg_errand_read(bytes.data, length, &arena, &errand, &problem, NULL) != KG_OK);
        CHECK(problem == NULL);
    }
    bytes.data[20] ^= 1; // in the version
    CHECK(kg_errand_read(bytes.data, bytes.length, &arena, &errand, &problem, &error) ==
          KG_ERROR_MISSING);
    kg_arena_free(&arena);
    kg_text_free(&bytes);
    unmake(&made);
}

TEST_MAIN(what_is_written_is_read)
