// The rounds of a build on this machine: one kind of change each, none walked twice from the same
// version, and what the records say of them. Times are whatever they are, and nothing depends on
// which version is faster, but where the linker has searches and races answered here (--wrap).

#include "flow/build_run.h"
#include "flow/stages.h"

#include "support/sample_problem.h"
#include "support/sample_records.h"
#include "test.h"
#include "tune/trials.h"

#include <stdlib.h>
#include <string.h>

#define ROUNDS 3
#define MAX_SEEN 32

static struct kg_error error;
static char folder[SAMPLE_FOLDER];
static struct kg_session session;
static struct kg_device *device;
static struct made here;

static struct seen {
    int number, tried;
    char base[256], kind[16], choice[256], bottleneck[16];
    bool kept, differs;
    double before, after, predicted;
} seen[MAX_SEEN];
static int seen_count;

// How a challenger's first race and its second one end: its rival's time over its own. 0: as
// measured.
static double first_race, second_race;
static double seconds; // for a build whose races are answered
static int races;      // with a rival
// The last races of a build whose second round was won, between the search's version and that one.
#define LAST_RACES 3
static double last_races[LAST_RACES];
static char racing[256];
static bool was_first;

enum kg_status __real_kg_build_run_measure(const struct kg_build_run *run, struct kg_plan *plan,
                                           const struct kg_plan *rival,
                                           struct kg_bench_result *bench, double *rival_seconds,
                                           struct kg_error *place);
enum kg_status __wrap_kg_build_run_measure(const struct kg_build_run *run, struct kg_plan *plan,
                                           const struct kg_plan *rival,
                                           struct kg_bench_result *bench, double *rival_seconds,
                                           struct kg_error *place);

enum kg_status __wrap_kg_build_run_measure(const struct kg_build_run *run, struct kg_plan *plan,
                                           const struct kg_plan *rival,
                                           struct kg_bench_result *bench, double *rival_seconds,
                                           struct kg_error *place)
{
    enum kg_status status =
        __real_kg_build_run_measure(run, plan, rival, bench, rival_seconds, place);
    if (status != KG_OK || !rival || first_race <= 0)
        return status;
    was_first = !was_first || strcmp(racing, plan->choice) != 0;
    snprintf(racing, sizeof racing, "%s", plan->choice);
    double ratio = was_first ? first_race : second_race;
    if (races >= 4 && races < 4 + LAST_RACES)
        ratio = last_races[races - 4];
    *rival_seconds = bench->seconds * ratio;
    races++;
    return status;
}

int __real_kg_trials_finish(struct kg_trials *trials, int max, double margin,
                            struct kg_timing *timing);
int __wrap_kg_trials_finish(struct kg_trials *trials, int max, double margin,
                            struct kg_timing *timing);

// Where races are answered, a search finds another choice than the rule's, which is tried first.
int __wrap_kg_trials_finish(struct kg_trials *trials, int max, double margin,
                            struct kg_timing *timing)
{
    int winner = __real_kg_trials_finish(trials, max, margin, timing);
    for (int i = 1; first_race > 0 && winner == 0 && i < trials->count; i++)
        if (trials->items[i].kind == KG_OUTCOME_MEASURED && !trials->items[i].timing.abandoned) {
            *timing = trials->items[i].timing;
            winner = i;
        }
    return winner;
}

static void begin(void)
{
    first_race = second_race = 0;
    seconds = 5;
    races = 0;
    was_first = false;
    sample_folder(folder);
    session = (struct kg_session){
        .store = sample_open(folder), .protocol = kg_protocol_default, .effort = 0.1};
    CHECK_STATUS(kg_device_open("host", folder, 0, &device, &error), KG_OK, &error);
    here = make("op norm(x: f32[P, D]) -> (y: f32[P, D])\n{\n    s[p] = sum(d) x[p, d] * x[p, d]\n"
                "    y[p, d] = x[p, d] * rsqrt(s[p])\n}\n"
                "goal { speedup 1000000\nrounds 3\nverify P D = 3 5\ntune P D = 256 1024 }\n",
                "P=256 D=1024");
    CHECK_STATUS(here.status, KG_OK, &here.error);
}

static void end(void)
{
    unmake(&here);
    kg_device_close(device);
    kg_store_close(session.store);
    sample_remove(folder);
}

static void note(void *user, const struct kg_round *round)
{
    (void)user;
    CHECK(seen_count < MAX_SEEN);
    struct seen *row = &seen[seen_count++];
    *row = (struct seen){.number = round->number,
                         .tried = round->tried,
                         .kept = round->kept,
                         .differs = round->difference[0] != '\0',
                         .before = round->before,
                         .after = round->after,
                         .predicted = round->predicted};
    snprintf(row->base, sizeof row->base, "%s", round->base);
    snprintf(row->kind, sizeof row->kind, "%s", round->kind);
    snprintf(row->choice, sizeof row->choice, "%s", round->choice);
    snprintf(row->bottleneck, sizeof row->bottleneck, "%s", round->bottleneck);
}

static void visit_key(void *user, const struct kg_key *key)
{
    (void)user;
    CHECK_STATUS(kg_store_rounds(session.store, key, note, NULL, &error), KG_OK, &error);
}

static void build(struct kg_built_report *report, char *choice, size_t size)
{
    const struct kg_request request = {.session = &session,
                                       .problem = here.problem,
                                       .device = device,
                                       .rigor = KG_RIGOR_MEASURE,
                                       .seconds = first_race > 0 ? seconds : 0};
    const struct kg_build_options options = {.size = sizeof options};
    struct kg_plan *plan = NULL;
    CHECK_STATUS(kg_flow_build(&request, &options, report, &plan, &error), KG_OK, &error);
    snprintf(choice, size, "%s", plan ? plan->choice : "");
    kg_flow_plan_free(plan);
    seen_count = 0;
    CHECK_STATUS(kg_store_keys(session.store, NULL, visit_key, NULL, &error), KG_OK, &error);
}

static bool is_kind(const char *kind)
{
    for (int change = KG_CHANGE_NONE + 1; change < KG_CHANGE_COUNT; change++)
        if (strcmp(kind, kg_change_keys[change]) == 0)
            return true;
    return false;
}

// Whether the search's version took its place again, at the end.
static bool is_return(const struct seen *row)
{
    return strcmp(row->kind, "search") == 0 && row->number > 1;
}

// Row by row: each starts from what the one before it left.
static void check_story(int first, const char *final)
{
    CHECK(seen[first].number == 0 && !seen[first].kind[0]);
    const char *best = seen[first].choice;
    for (int i = first + 1; i < seen_count; i++) {
        const struct seen *row = &seen[i];
        CHECK(row->number == i - first);
        CHECK_TEXT(row->base, best);
        CHECK(strcmp(row->kind, "search") == 0 || is_kind(row->kind));
        CHECK(!is_return(row) || (i == seen_count - 1 && row->kept && row->tried == 0));
        CHECK(row->bottleneck[0] != '\0');
        CHECK(row->differs == (strcmp(row->base, row->choice) != 0));
        CHECK(!row->kept || row->differs);
        CHECK(!row->kept || row->before > (is_return(row) ? 1 : 1.01) * row->after);
        CHECK(row->predicted >= 0 && row->predicted <= 1);
        best = row->kept ? row->choice : best;
    }
    CHECK_TEXT(final, best);
}

static void check_nothing_twice(void)
{
    for (int i = 0; i < seen_count; i++)
        for (int k = 0; k < i; k++)
            CHECK(!is_kind(seen[i].kind) || strcmp(seen[i].kind, seen[k].kind) != 0 ||
                  strcmp(seen[i].base, seen[k].base) != 0);
}

static void test_rounds(void)
{
    struct kg_built_report report;
    char choice[256];
    begin();
    build(&report, choice, sizeof choice);
    int first = seen_count;
    CHECK(report.rounds >= 1 && report.rounds <= ROUNDS);
    CHECK(seen_count == report.rounds + 1 + is_return(&seen[seen_count - 1]));
    CHECK(strstr(report.stopped, "all 3 rounds") || strstr(report.stopped, "plateau") ||
          strstr(report.stopped, "no headroom"));
    CHECK(report.searched > 0);
    CHECK(seen[1].tried > 0 && strcmp(seen[1].kind, "search") == 0);
    check_story(0, choice);
    check_nothing_twice();
    // Another build goes on where this one ended.
    build(&report, choice, sizeof choice);
    CHECK(report.stopped[0] && seen_count > first);
    check_story(first, choice);
    check_nothing_twice();
    end();
}

// The goal is met by the first version: nothing is left to do after the search.
static void test_goal(void)
{
    struct kg_built_report report;
    char choice[256];
    begin();
    struct kg_op *op = (struct kg_op *)here.problem->op;
    op->goal.speedup = 1e-6;
    build(&report, choice, sizeof choice);
    CHECK(report.rounds <= 1 && report.goal_met);
    CHECK(report.rounds == 0 || strcmp(report.stopped, "the goal is met") == 0);
    op->goal.speedup = 1e6;
    op->goal.rounds = 0;
    build(&report, choice, sizeof choice);
    CHECK(report.rounds == 0 && !report.goal_met && report.stopped[0]);
    end();
}

// How many rounds raced another choice than the best one, and how many of these were kept.
static int count_raced(int *kept)
{
    int raced = 0;
    *kept = 0;
    for (int i = 0; i < seen_count; i++) {
        raced += seen[i].kind[0] && seen[i].differs;
        *kept += seen[i].kept;
    }
    return raced;
}

// A build with a round of search, whose races end so.
static void check_racing(double first, double second, bool wins)
{
    struct kg_built_report report;
    char choice[256];
    int kept;
    begin();
    ((struct kg_op *)here.problem->op)->goal.rounds = 1;
    first_race = first;
    second_race = second;
    build(&report, choice, sizeof choice);
    CHECK(count_raced(&kept) == 1);
    CHECK(kept == wins);
    CHECK(races == (first > 1 ? 2 : 1)); // who loses the first has no other
    CHECK((strcmp(choice, seen[0].choice) != 0) == wins);
    end();
}

// A race won by luck replaces nothing: the winner has to win another.
static void test_races(void)
{
    check_racing(2, 0.99, false);
    check_racing(0.99, 2, false);
    check_racing(2, 2, true);
}

// A build with a round of search and one more, both won, whose last races end so.
static void check_last_races(double one, double two, double three, bool returns)
{
    struct kg_built_report report;
    char choice[256];
    begin();
    ((struct kg_op *)here.problem->op)->goal.rounds = 2;
    first_race = second_race = 2;
    seconds = 30; // for two rounds
    last_races[0] = one, last_races[1] = two, last_races[2] = three;
    build(&report, choice, sizeof choice);
    CHECK(races == 4 + LAST_RACES && report.rounds == 2);
    CHECK(seen[1].kept && seen[2].kept);
    CHECK_TEXT(choice, returns ? seen[1].choice : seen[2].choice);
    CHECK(is_return(&seen[seen_count - 1]) == returns);
    CHECK(!returns || seen[seen_count - 1].number == 3);
    check_story(0, choice);
    end();
}

// What rounds won by luck does not outlive the last races with what the search found.
static void test_last_races(void)
{
    check_last_races(0.9, 1.2, 0.98, false);
    check_last_races(1.2, 0.9, 1.02, true);
}

TEST_MAIN(test_rounds, test_goal, test_races, test_last_races)
