// A search tries what was fastest in the records of other problems before the rule's choice;
// without such records it begins with that.

#include "flow/planner.h"
#include "flow/recorder.h"
#include "store/lessons.h"
#include "support/sample_problem.h"
#include "support/sample_records.h"
#include "test.h"

static struct kg_error error;
static char folder[SAMPLE_FOLDER];
static struct kg_session session;
static struct kg_device *device;
static struct made here;
static struct kg_choice rule;

static struct kg_text seen[2]; // the first choices that the search reported
static int seen_count;

static void take_progress(void *user, const char *what, int done, int total)
{
    (void)user, (void)done, (void)total;
    bool is_new = seen_count < 2 &&
                  (seen_count == 0 || strcmp(kg_text_string(&seen[seen_count - 1]), what) != 0);
    if (is_new)
        kg_text_add(&seen[seen_count++], what);
}

static void begin(void)
{
    sample_folder(folder);
    CHECK_STATUS(kg_device_open("host", folder, 2, &device, &error), KG_OK, &error);
    session = (struct kg_session){.store = sample_open(folder),
                                  .protocol = kg_protocol_default,
                                  .effort = 0.1,
                                  .progress = take_progress};
    // Many configs of it are expected to take as long as the rule's.
    here = make("op total(x: f32[P, D]) -> (y: f32[P])\n{\n    y[p] = sum(d) x[p, d]\n}\n",
                "P=64 D=512");
    CHECK_STATUS(here.status, KG_OK, &here.error);
    kg_choice_guess(here.problem, &device->facts, &kg_target_host, &rule);
    CHECK(rule.count == 1);
}

static void end(void)
{
    for (; seen_count > 0; seen_count--)
        kg_text_free(&seen[seen_count - 1]);
    unmake(&here);
    kg_store_close(session.store);
    kg_device_close(device);
    sample_remove(folder);
}

static void search(void)
{
    const struct kg_request request = {
        .session = &session, .problem = here.problem, .device = device, .rigor = KG_RIGOR_MEASURE};
    struct kg_plan *made = NULL;
    CHECK_STATUS(kg_flow_plan(&request, &made, &error), KG_OK, &error);
    kg_flow_plan_free(made);
    CHECK(seen_count == 2);
}

// Whether the choice is another than the rule's, valid, and not expected to be much slower.
static bool can_be_tried(const struct kg_choice *choice)
{
    struct kg_text reason = {0};
    const struct kg_match *match = rule.matches[0];
    bool valid = match->family->valid(match, &choice->configs[0], &reason);
    kg_text_free(&reason);
    return valid && memcmp(&choice->configs[0], &rule.configs[0], sizeof rule.configs[0]) != 0 &&
           kg_choice_expected(choice) <= 1.45 * kg_choice_expected(&rule);
}

// The choice that differs most from the rule's: every parameter has the last of its values that
// can be tried.
static struct kg_choice remote(void)
{
    struct kg_choice other = rule;
    struct kg_space space;
    const struct kg_match *match = rule.matches[0];
    match->family->space(match, &space);
    for (int i = 0; i < space.count; i++)
        for (int at = 0; at < space.parameters[i].count; at++) {
            struct kg_choice changed = other;
            changed.configs[0].value[i] = space.parameters[i].choices[at];
            if (changed.configs[0].value[i] != rule.configs[0].value[i] && can_be_tried(&changed))
                other = changed;
        }
    CHECK(can_be_tried(&other));
    return other;
}

static void record(const char *op, const struct kg_choice *choice, double seconds)
{
    struct kg_text text = {0};
    struct kg_traits traits;
    struct kg_key key = sample_key();
    kg_choice_print(choice, &text);
    struct kg_outcome outcome = sample_outcome(kg_text_string(&text));
    key.op = op;
    key.isa = device->facts.isa;
    outcome.timing.median = seconds;
    outcome.reason = "";
    kg_traits_of(here.problem, &traits);
    CHECK_STATUS(kg_store_note_traits(session.store, &key, &traits, &error), KG_OK, &error);
    CHECK_STATUS(kg_store_append(session.store, &key, &outcome, &error), KG_OK, &error);
    kg_text_free(&text);
}

static bool reads(const struct kg_choice *choice, const char *wanted)
{
    struct kg_text text = {0};
    kg_choice_print(choice, &text);
    bool same = strcmp(kg_text_string(&text), wanted) == 0;
    kg_text_free(&text);
    return same;
}

static bool was(int at, const struct kg_choice *choice)
{
    return reads(choice, kg_text_string(&seen[at]));
}

static bool is(const struct kg_choice *choice, const struct kg_choice *other)
{
    struct kg_text wanted = {0};
    kg_choice_print(other, &wanted);
    bool same = reads(choice, kg_text_string(&wanted));
    kg_text_free(&wanted);
    return same;
}

static void records_of_other_problems_begin_a_search(void)
{
    static const char *const others[] = {"another", "and one more"};
    for (int known = 0; known <= 2; known++) {
        begin();
        struct kg_choice other = remote();
        for (int i = 0; i < known; i++) {
            record(others[i], &rule, 2e-5);
            record(others[i], &other, 1e-5);
        }
        search();
        CHECK(was(0, known > 0 ? &other : &rule));
        CHECK(was(1, &rule) == (known > 0));
        end();
    }
}

// A search of this problem with what the records teach. kg_recorder_forget frees that.
static struct kg_search learned_search(struct kg_learned *learned)
{
    const struct kg_request request = {
        .session = &session, .problem = here.problem, .device = device, .rigor = KG_RIGOR_MEASURE};
    kg_recorder_learned(&request, learned);
    kg_recorder_favourites(&request, learned);
    return (struct kg_search){.device = device,
                              .problem = here.problem,
                              .target = &kg_target_host,
                              .rigor = KG_RIGOR_MEASURE,
                              .user = learned,
                              .favourites = kg_recorder_offer};
}

// Where a search starts, and what is compiled ahead, whose first is the rule's choice: after one
// problem, after two, and after two for which the rule's choice was the favourite.
static void favourites_are_foreseen(void)
{
    for (int known = 1; known <= 3; known++) {
        begin();
        struct kg_choice other = remote();
        for (int i = 0; i < known && i < 2; i++) {
            record(i ? "another" : "and one more", known < 3 ? &rule : &other, 2e-5);
            record(i ? "another" : "and one more", known < 3 ? &other : &rule, 1e-5);
        }
        struct kg_learned learned;
        const struct kg_search search = learned_search(&learned);
        struct kg_choice *starts = calloc(KG_MAX_FORESEEN, sizeof *starts);
        CHECK(kg_search_starts(&search, &rule, starts) == (known < 3 ? 2 : 1));
        CHECK(is(&starts[known < 3], &rule) && is(&starts[0], &other) == (known < 3));
        CHECK(kg_search_foresee(&search, starts) > 2);
        CHECK(is(&starts[0], &rule) && is(&starts[1], &other) == (known < 3));
        CHECK(!is(&starts[2], &other));
        free(starts);
        kg_recorder_forget(&learned);
        end();
    }
}

// The rule's choice with another value of its first parameter that has one.
static struct kg_choice neighbour(void)
{
    struct kg_choice other = rule;
    struct kg_space space;
    const struct kg_match *match = rule.matches[0];
    match->family->space(match, &space);
    for (int i = 0; i < space.count; i++)
        for (int at = 0; at < space.parameters[i].count; at++) {
            other = rule;
            other.configs[0].value[i] = space.parameters[i].choices[at];
            if (can_be_tried(&other))
                return other;
        }
    return other;
}

// The favourite comes first, behind it what was good where that was not, and then the rule's
// choice.
static void two_favourites_come_first(void)
{
    begin();
    const struct kg_choice best = remote(), second = neighbour();
    const char *const others[] = {"another", "and one more", "one that differs"};
    for (int i = 0; i < 3; i++) {
        record(others[i], &rule, 4e-5);
        record(others[i], &second, i < 2 ? 2e-5 : 1e-5);
        record(others[i], &best, i < 2 ? 1e-5 : 2e-5);
    }
    struct kg_learned learned;
    struct kg_choice starts[KG_SEARCH_STARTS + 1];
    struct kg_search search = learned_search(&learned);
    search.prior = kg_recorder_prior; // would make something of the guess
    CHECK(kg_search_starts(&search, &rule, starts) == 3);
    CHECK(is(&starts[0], &best) && is(&starts[1], &second) && is(&starts[2], &rule));
    kg_recorder_forget(&learned);
    end();
}

TEST_MAIN(records_of_other_problems_begin_a_search, favourites_are_foreseen,
          two_favourites_come_first)
