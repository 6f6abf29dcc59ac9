// Wisdom is of the kernels it was found with: the same ones are verified without being judged, and
// others are a first guess until they have been judged. An emitter that changed is an emitted
// source with another hash than the record's, and the record's is what this test changes.

#include "flow/planner.h"
#include "flow/proof.h"
#include "support/folder.h"
#include "support/sample_problem.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

static char folder[] = "/tmp/kg-test-proof-XXXXXX";
static struct kg_session session;
static struct kg_session_key key;
static struct kg_device *device;
static struct made sample;
static struct kg_request request;
static struct kg_error error;
static int notices;
static char notice[512];

static void take_notice(void *user, const char *text)
{
    (void)user;
    notices++;
    snprintf(notice, sizeof notice, "%s", text);
}

static void set_up(void)
{
    CHECK(folder_make(folder));
    sample = make("op twice(x: f32[P, D]) -> (y: f32[P, D]) { y[p, d] = x[p, d] * 2 }\n"
                  "goal { verify P D = 3 5, 64 100 tune P D = 512 512 }",
                  "P=512 D=512");
    CHECK_STATUS(sample.status, KG_OK, &sample.error);
    CHECK_STATUS(kg_store_open(folder, &session.store, NULL, &error), KG_OK, &error);
    CHECK_STATUS(kg_device_open("host", folder, 2, &device, &error), KG_OK, &error);
    session.protocol = kg_protocol_default;
    session.notice = take_notice;
    CHECK_STATUS(kg_session_key_make(sample.problem, device, &session.protocol, &key, &error),
                 KG_OK, &error);
    request = (struct kg_request){.session = &session, .problem = sample.problem, .device = device};
}

static int count_judged(void)
{
    return (int)session.times.of[KG_ACTIVITY_JUDGE].count;
}

static struct kg_wisdom recall(void)
{
    struct kg_wisdom wisdom;
    CHECK_STATUS(kg_store_recall(session.store, &key.key, &wisdom, &error), KG_OK, &error);
    return wisdom;
}

// What is known becomes that of other kernels, which took so many times as long.
static void change_record(double factor)
{
    struct kg_wisdom wisdom = recall();
    wisdom.source.low++;
    wisdom.seconds *= factor;
    wisdom.replaces = true;
    CHECK_STATUS(kg_store_learn(session.store, &key.key, &wisdom, &error), KG_OK, &error);
    kg_wisdom_free(&wisdom);
}

// Outcomes of today's kernels are forgotten: as after an emitter changed, there are none.
static void forget_outcomes(void)
{
    kg_store_close(session.store);
    char path[sizeof folder + 32];
    snprintf(path, sizeof path, "%s/records.db", folder);
    CHECK(remove(path) == 0);
    CHECK_STATUS(kg_store_open(folder, &session.store, NULL, &error), KG_OK, &error);
}

static void know_choice_of_other_kernels(double factor)
{
    struct kg_wisdom wisdom = recall();
    forget_outcomes();
    wisdom.replaces = true;
    CHECK_STATUS(kg_store_learn(session.store, &key.key, &wisdom, &error), KG_OK, &error);
    kg_wisdom_free(&wisdom);
    change_record(factor);
}

static struct kg_plan *plan(enum kg_rigor rigor)
{
    struct kg_plan *made = NULL;
    request.rigor = rigor;
    CHECK_STATUS(kg_flow_plan(&request, &made, &error), KG_OK, &error);
    if (!made)
        exit(1);
    return made;
}

// What became wisdom passed a gate, whose inputs its seed makes again.
static void check_seed(const struct kg_wisdom *wisdom)
{
    struct kg_outcome outcome = {.verdict.seed = 0};
    CHECK(kg_proof_find(&request, &key.key, wisdom->choice, &outcome));
    CHECK(outcome.verdict.passed && outcome.verdict.seed != 0);
    CHECK(wisdom->seed == outcome.verdict.seed);
}

static void the_same_kernels_are_verified(void)
{
    struct kg_plan *searched = plan(KG_RIGOR_MEASURE);
    CHECK(searched->verified && searched->origin == KG_ORIGIN_SEARCH && count_judged() > 0);
    struct kg_wisdom wisdom = recall();
    CHECK(kg_proof_fits(wisdom.source, kg_proof_source(&searched->built->choice)));
    check_seed(&wisdom);
    int judged = count_judged();
    static const enum kg_rigor rigors[] = {KG_RIGOR_ESTIMATE, KG_RIGOR_MEASURE, KG_RIGOR_WISDOM};
    for (int i = 0; i < 3; i++) {
        struct kg_plan *known = plan(rigors[i]);
        CHECK(known->verified && known->origin == KG_ORIGIN_RECORDS);
        CHECK(known->seconds == wisdom.seconds && known->seconds > 0);
        CHECK_TEXT(known->choice, searched->choice);
        kg_flow_plan_free(known);
    }
    CHECK(count_judged() == judged && notices == 0);
    kg_wisdom_free(&wisdom);
    kg_flow_plan_free(searched);
}

// Under `estimate` nothing may be run: the choice is used, and is called what it is.
static void others_are_a_guess(void)
{
    know_choice_of_other_kernels(1);
    int judged = count_judged();
    struct kg_wisdom wisdom = recall();
    struct kg_plan *known = plan(KG_RIGOR_ESTIMATE);
    CHECK_TEXT(known->choice, wisdom.choice);
    CHECK(!known->verified && known->seconds == 0 && known->origin == KG_ORIGIN_RECORDS);
    CHECK(count_judged() == judged && notices == 1 && strstr(notice, "neither verified"));
    kg_flow_plan_free(known);
    request.source_only = true; // nor may it where only the source is wanted
    known = plan(KG_RIGOR_WISDOM);
    CHECK(!known->verified && count_judged() == judged && notices == 2);
    kg_flow_plan_free(known);
    request.source_only = false;
    kg_wisdom_free(&wisdom);
}

// Where kernels may run, they are judged and timed once, and are what is known from then on.
static void others_are_judged_again(enum kg_rigor rigor)
{
    know_choice_of_other_kernels(100);
    struct kg_wisdom before = recall();
    int judged = count_judged(), told = notices;
    struct kg_plan *known = plan(rigor);
    CHECK_TEXT(known->choice, before.choice);
    CHECK(known->verified && known->origin == KG_ORIGIN_RECORDS && known->found.measured == 0);
    CHECK(known->seconds > 0 && known->seconds < before.seconds / 2);
    CHECK(count_judged() > judged && notices == told);
    judged = count_judged();
    struct kg_plan *again = plan(rigor);
    CHECK(again->verified && again->seconds == known->seconds && count_judged() == judged);
    struct kg_wisdom after = recall();
    check_seed(&after);
    CHECK(after.rigor == before.rigor && after.seconds == known->seconds);
    CHECK(kg_proof_fits(after.source, kg_proof_source(&known->built->choice)));
    kg_wisdom_free(&before);
    kg_wisdom_free(&after);
    kg_flow_plan_free(known);
    kg_flow_plan_free(again);
}

static void under_every_rigor_that_runs(void)
{
    others_are_judged_again(KG_RIGOR_WISDOM);
    others_are_judged_again(KG_RIGOR_MEASURE);
}

// Kernels that are much slower than those the choice was found with are not the best known: a
// search follows, and what it finds replaces what was known, though that was faster.
static void slower_ones_lead_to_a_search(void)
{
    know_choice_of_other_kernels(1e-3);
    struct kg_plan *searched = plan(KG_RIGOR_MEASURE);
    CHECK(searched->verified && searched->origin == KG_ORIGIN_SEARCH);
    CHECK(searched->found.measured > 0);
    struct kg_wisdom wisdom = recall();
    CHECK(wisdom.seconds == searched->seconds);
    CHECK(kg_proof_fits(wisdom.source, kg_proof_source(&searched->built->choice)));
    kg_wisdom_free(&wisdom);
    kg_flow_plan_free(searched);
}

// Kernels of today that failed before are not used unjudged, whatever others of the choice did.
static void failed_ones_are_not_used(void)
{
    know_choice_of_other_kernels(1);
    struct kg_wisdom wisdom = recall();
    struct kg_choice choice;
    CHECK(kg_choice_read(sample.problem, &device->facts, &kg_target_host, wisdom.choice, &choice));
    struct kg_outcome outcome = {.kind = KG_OUTCOME_WRONG,
                                 .choice = wisdom.choice,
                                 .emitted = kg_proof_source(&choice),
                                 .reason = "element 7"};
    CHECK_STATUS(kg_store_append(session.store, &key.key, &outcome, &error), KG_OK, &error);
    struct kg_plan *ruled = plan(KG_RIGOR_ESTIMATE), *none = NULL;
    CHECK(ruled->origin == KG_ORIGIN_RULE);
    request.rigor = KG_RIGOR_WISDOM;
    CHECK_STATUS(kg_flow_plan(&request, &none, &error), KG_ERROR_NO_WISDOM, &error);
    CHECK(!none && strstr(error.text, "element 7"));
    kg_flow_plan_free(ruled);
    // A failure of other kernels says nothing of these.
    outcome.emitted.low ^= 1;
    forget_outcomes();
    CHECK_STATUS(kg_store_append(session.store, &key.key, &outcome, &error), KG_OK, &error);
    wisdom.replaces = true;
    CHECK_STATUS(kg_store_learn(session.store, &key.key, &wisdom, &error), KG_OK, &error);
    struct kg_plan *known = plan(KG_RIGOR_WISDOM);
    CHECK(known->verified && known->seconds > 0);
    kg_flow_plan_free(known);
    kg_wisdom_free(&wisdom);
}

static void clean_up(void)
{
    kg_session_key_free(&key);
    kg_device_close(device);
    kg_store_close(session.store);
    unmake(&sample);
    folder_remove(folder);
}

TEST_MAIN(set_up, the_same_kernels_are_verified, others_are_a_guess, under_every_rigor_that_runs,
          slower_ones_lead_to_a_search, failed_ones_are_not_used, clean_up)
