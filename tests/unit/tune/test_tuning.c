// A search with nothing made up: real families, compiler, gate, workers and clock, on a small op.

#include "support/folder.h"
#include "support/forks.h"
#include "support/sample_problem.h"
#include "test.h"
#include "tune/search.h"

static char folder[] = "/tmp/kg-test-tuning-XXXXXX";
static int measured, finals;

static void take_record(void *user, const struct kg_outcome *outcome)
{
    (void)user;
    finals += outcome->final;
    measured += outcome->kind == KG_OUTCOME_MEASURED && !outcome->final;
    bool fine = outcome->kind <= KG_OUTCOME_INVALID;
    CHECK(fine);
    if (!fine)
        fprintf(stderr, "%s: %s\n", outcome->choice, outcome->reason);
    if (outcome->kind != KG_OUTCOME_MEASURED)
        return;
    CHECK(outcome->verdict.passed && outcome->verdict.cases > 0);
    CHECK(outcome->timing.median > 0 && outcome->timing.least <= outcome->timing.median);
    CHECK(outcome->source.high || outcome->source.low);
}

static void tune(enum kg_isolation isolation)
{
    measured = finals = 0;
    struct made made = make("op row_sum(x: f32[P, D]) -> (y: f32[P])\n"
                            "{ y[p] = sum(d) abs(x[p, d]) }\n",
                            "P=40 D=300");
    CHECK_STATUS(made.status, KG_OK, &made.error);
    struct kg_error error = {0};
    struct kg_device *device = NULL;
    struct kg_gate *gate = NULL;
    struct kg_policy policy = {.seed = 5};
    CHECK_STATUS(kg_device_open("host", folder, 2, &device, &error), KG_OK, &error);
    CHECK_STATUS(kg_gate_make(device, made.op, &policy, &gate, &error), KG_OK, &error);
    struct kg_search search = {.device = device,
                               .problem = made.problem,
                               .target = &kg_target_host,
                               .gate = gate,
                               .isolation = isolation,
                               .rigor = KG_RIGOR_MEASURE,
                               .protocol = kg_protocol_default,
                               .record = take_record};
    search.protocol.sample_seconds = 0.02;
    search.protocol.warm_seconds = 0.002;
    struct kg_found found;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(found.complete && found.seconds > 0 && found.failed == 0);
    CHECK(found.measured == measured && measured >= 1 && finals >= 1);
    CHECK(found.valid >= measured && found.space >= found.valid);

    // What was found can be written down, read back and built.
    struct kg_text text = {0};
    struct kg_choice choice;
    struct kg_built *built = NULL;
    kg_choice_print(&found.choice, &text);
    CHECK(kg_choice_read(made.problem, &device->facts, &kg_target_host, kg_text_string(&text),
                         &choice));
    CHECK_STATUS(kg_built_make(device, made.problem, &choice, 60, &built, &error), KG_OK, &error);
    kg_built_free(built);
    kg_text_free(&text);
    kg_gate_free(gate);
    kg_device_close(device);
    unmake(&made);
}

static void a_small_op_is_tuned(void)
{
    tune(KG_ISOLATION_AUTO);
}

static void a_worker_tunes_it_too(void)
{
    tune(KG_ISOLATION_WORKER);
}

static void prepare(void)
{
    CHECK(folder_make(folder));
}

static void clean_up(void)
{
    folder_remove(folder);
}

TEST_MAIN(prepare, a_small_op_is_tuned, a_worker_tunes_it_too, clean_up)
