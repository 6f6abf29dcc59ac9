// An errand as bytes: what is written is what is read, and what is not whole is refused.

#include "flow/worker_job_text.h"
#include "support/sample_problem.h"
#include "test.h"

static const char text[] = "op scale(x: T[P, D]) -> (y: T[P, D])\nparam G = 4\nwhere T in f16 f32\n"
                           "{ y[p, d] = x[p, d] * G }\n";
static struct kg_error error;

static bool write(const struct kg_problem *problem, struct kg_text *bytes)
{
    struct kg_worker_job job = {.kind = KG_WORKER_JOB_BENCH,
                                .rigor = KG_RIGOR_PATIENT,
                                .change = KG_CHANGE_STAGES,
                                .seconds = 2.5,
                                .seed = 77,
                                .protocol = kg_protocol_default,
                                .takes_nearest = true,
                                .home = "/home",
                                .wisdom = "/wisdom",
                                .device = "cuda:1",
                                .choice = "direct: threads=1"};
    return kg_worker_job_write(&job, problem, bytes);
}

static void what_is_written_is_read(void)
{
    struct made made = make_strided(text, "scale", "P=3 D=5", NULL);
    struct kg_text bytes = {0};
    struct kg_arena arena = {0};
    struct kg_worker_job job;
    struct kg_problem *problem;
    CHECK_STATUS(made.status, KG_OK, &made.error);
    CHECK(write(made.problem, &bytes));
    CHECK_STATUS(kg_worker_job_read(bytes.data, bytes.length, &arena, &job, &problem, &error),
                 KG_OK, &error);
    CHECK(job.kind == KG_WORKER_JOB_BENCH && job.rigor == KG_RIGOR_PATIENT);
    CHECK(job.change == KG_CHANGE_STAGES);
    CHECK(job.seconds == 2.5 && job.seed == 77 && job.takes_nearest);
    CHECK_TEXT(job.home, "/home");
    CHECK_TEXT(job.wisdom, "/wisdom");
    CHECK_TEXT(job.device, "cuda:1");
    CHECK_TEXT(job.choice, "direct: threads=1");
    CHECK(!job.rival && !job.path && !job.cache);
    CHECK(memcmp(&job.protocol, &kg_protocol_default, sizeof job.protocol) == 0);
    CHECK(problem && problem->sizes[0] == 3 && problem->sizes[1] == 5 && problem->contiguous);
    CHECK(problem && problem->layouts[0].bytes == made.problem->layouts[0].bytes);
    kg_problem_free(problem);
    for (size_t length = 0; length < bytes.length; length++) {
        CHECK(kg_worker_job_read(bytes.data, length, &arena, &job, &problem, NULL) != KG_OK);
        CHECK(problem == NULL);
    }
    bytes.data[20] ^= 1; // in the version
    CHECK(kg_worker_job_read(bytes.data, bytes.length, &arena, &job, &problem, &error) ==
          KG_ERROR_MISSING);
    kg_arena_free(&arena);
    kg_text_free(&bytes);
    unmake(&made);
}

TEST_MAIN(what_is_written_is_read)
