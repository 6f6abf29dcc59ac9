// The search, with everything around it made up: a family whose configs take the time a formula
// says, on a clock that only moves when they run; some hang, crash, do not compile or are wrong.
// Worker processes are real.
//
// The definitions below stand in for src/gen and src/verify: the linker takes them first.

#include "support/sample_problem.h"
#include "test.h"
#include "tune/search.h"

#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

enum ill { FINE, HANGS, CRASHES, IS_WRONG, NO_COMPILE, WRITES_INPUT, UNSTEADY, NO_COMPILER };

// What the made-up world is like in the test that runs.
static struct world {
    int groups;
    int64_t best[3];    // the fastest values of a, b, c
    double bound_share; // bound / true time of a group
    enum ill (*ill)(const int64_t *value);
    bool twins; // c does not change the source
    bool all_wrong;
} world;

static double clock_now = 1;
static _Atomic int builds;

static const int64_t choices_a[] = {1, 2, 4, 8, 16}, choices_b[] = {1, 2, 3, 4, 6, 8},
                     choices_c[] = {0, 1, 2};

static int step_of(const int64_t *choices, int count, int64_t value)
{
    for (int i = 0; i < count; i++)
        if (choices[i] == value)
            return i;
    return -1;
}

// Seconds of one group: each parameter matters, and two of them depend on each other.
static double seconds_of(const int64_t *value)
{
    int a = step_of(choices_a, 5, value[0]) - step_of(choices_a, 5, world.best[0]);
    int b = step_of(choices_b, 6, value[1]) - step_of(choices_b, 6, world.best[1]);
    int c = step_of(choices_c, 3, value[2]) - step_of(choices_c, 3, world.best[2]);
    return 1e-3 * (1 + 0.3 * abs(a) + 0.15 * abs(b) + 0.07 * abs(c) + 0.1 * abs(a + b));
}

static bool fake_applicable(const struct kg_group *group, const struct kg_device_facts *facts,
                            enum kg_target target, struct kg_text *reason)
{
    (void)group;
    (void)facts;
    (void)target;
    (void)reason;
    return true;
}

static void fake_space(const struct kg_group *group, const struct kg_device_facts *facts,
                       enum kg_target target, struct kg_space *space)
{
    (void)group;
    (void)facts;
    (void)target;
    *space = (struct kg_space){.count = 3,
                               .parameters = {{.name = "a", .count = 5},
                                              {.name = "b", .count = 6},
                                              {.name = "c", .count = 3}}};
    memcpy(space->parameters[0].choices, choices_a, sizeof choices_a);
    memcpy(space->parameters[1].choices, choices_b, sizeof choices_b);
    memcpy(space->parameters[2].choices, choices_c, sizeof choices_c);
}

// 3 of the 90 configs are not valid.
static bool fake_valid(const struct kg_group *group, const struct kg_device_facts *facts,
                       enum kg_target target, const struct kg_config *config,
                       struct kg_text *reason)
{
    (void)group;
    (void)facts;
    (void)target;
    if (config->value[0] * config->value[1] != 128)
        return true;
    kg_text_add(reason, "a times b is too much");
    return false;
}

static void fake_guess(const struct kg_group *group, const struct kg_device_facts *facts,
                       enum kg_target target, struct kg_config *config)
{
    (void)group;
    (void)facts;
    (void)target;
    *config = (struct kg_config){{4, 3, 1}};
}

static double fake_bound(const struct kg_group *group, const struct kg_device_facts *facts,
                         enum kg_target target, const struct kg_config *config)
{
    (void)group;
    (void)facts;
    (void)target;
    return world.bound_share * seconds_of(config->value);
}

static const struct kg_family family = {.name = "fake",
                                        .applicable = fake_applicable,
                                        .space = fake_space,
                                        .valid = fake_valid,
                                        .guess = fake_guess,
                                        .bound = fake_bound};

void kg_choice_guess(const struct kg_problem *problem, const struct kg_device_facts *facts,
                     enum kg_target target, struct kg_choice *choice)
{
    *choice = (struct kg_choice){.partition = {.count = world.groups}};
    for (int i = 0; i < world.groups; i++) {
        choice->partition.groups[i] = (struct kg_group){problem, 0, 1};
        choice->partition.families[i] = &family;
        fake_guess(NULL, facts, target, &choice->configs[i]);
    }
}

void kg_choice_print(const struct kg_choice *choice, const struct kg_device_facts *facts,
                     enum kg_target target, struct kg_text *text)
{
    (void)facts;
    (void)target;
    for (int i = 0; i < choice->partition.count; i++)
        kg_text_format(text, "%sa=%d b=%d c=%d", i ? "; " : "", (int)choice->configs[i].value[0],
                       (int)choice->configs[i].value[1], (int)choice->configs[i].value[2]);
}

bool kg_choice_read(const struct kg_problem *problem, const struct kg_device_facts *facts,
                    enum kg_target target, const char *text, struct kg_choice *choice)
{
    int a, b, c;
    kg_choice_guess(problem, facts, target, choice);
    if (sscanf(text, "a=%d b=%d c=%d", &a, &b, &c) != 3)
        return false;
    choice->configs[0] = (struct kg_config){{a, b, c}};
    return true;
}

static enum ill ill_of(const struct kg_built *built)
{
    for (int i = 0; world.ill && i < built->choice.partition.count; i++)
        if (world.ill(built->choice.configs[i].value) != FINE)
            return world.ill(built->choice.configs[i].value);
    return FINE;
}

enum kg_status kg_built_make(struct kg_device *device, const struct kg_problem *problem,
                             const struct kg_choice *choice, double time_limit,
                             struct kg_built **built, struct kg_error *error)
{
    (void)problem;
    (void)time_limit;
    *built = calloc(1, sizeof **built);
    (*built)->device = device;
    (*built)->choice = *choice;
    (*built)->contiguous = true;
    for (int i = 0; i < choice->partition.count; i++)
        (*built)->hashes[i] =
            kg_hash_bytes(choice->configs[i].value, (world.twins ? 2 : 3) * sizeof(int64_t));
    enum ill ill = ill_of(*built);
    atomic_fetch_add(&builds, 1);
    if (ill != NO_COMPILE && ill != NO_COMPILER)
        return KG_OK;
    kg_built_free(*built);
    *built = NULL;
    return kg_error_set(error, ill == NO_COMPILE ? KG_ERROR_COMPILE : KG_ERROR_MISSING,
                        "no way to compile");
}

void kg_built_free(struct kg_built *built)
{
    free(built);
}

size_t kg_built_workspace(const struct kg_built *built, const struct kg_problem *problem)
{
    (void)built;
    (void)problem;
    return 64;
}

enum kg_status kg_built_run(const struct kg_built *built, const struct kg_problem *problem,
                            void *const *tensors, void *workspace, void *stream,
                            struct kg_error *error)
{
    static int runs;
    enum ill ill = ill_of(built);
    (void)workspace;
    (void)stream;
    (void)error;
    while (ill == HANGS)
        pause();
    if (ill == CRASHES)
        raise(SIGSEGV);
    for (int i = 0; i < built->choice.partition.count; i++)
        clock_now += seconds_of(built->choice.configs[i].value);
    memset(tensors[1], ill == UNSTEADY ? runs++ : 7, problem->layouts[1].bytes);
    if (ill == WRITES_INPUT)
        memset(tensors[0], 9, 4);
    return KG_OK;
}

enum kg_status kg_gate_judge(const struct kg_gate *gate, const struct kg_subject *subject,
                             struct kg_verdict *verdict, struct kg_error *error)
{
    (void)gate;
    (void)error;
    *verdict = (struct kg_verdict){.passed = true, .seed = 77, .cases = 5};
    if (world.all_wrong || ill_of(subject->user) == IS_WRONG) {
        verdict->passed = false;
        snprintf(verdict->reason, sizeof verdict->reason, "y[3] is 4, not 5");
    }
    return KG_OK;
}

enum kg_status kg_verify_outputs(const struct kg_problem *problem, const void *const *inputs,
                                 const void *const *outputs, struct kg_verdict *verdict,
                                 struct kg_error *error)
{
    (void)problem;
    (void)inputs;
    (void)outputs;
    (void)error;
    *verdict = (struct kg_verdict){.passed = true};
    return KG_OK;
}

void kg_verify_fill(const struct kg_problem *problem, int tensor, uint64_t seed, void *data)
{
    memset(data, (int)seed, problem->layouts[tensor].bytes);
}

static double fake_now(struct kg_device *device)
{
    (void)device;
    return clock_now;
}

static double started;

static enum kg_status fake_start(struct kg_device *device, struct kg_error *error)
{
    (void)device;
    (void)error;
    started = clock_now;
    return KG_OK;
}

static enum kg_status fake_stop(struct kg_device *device, double *seconds, struct kg_error *error)
{
    (void)device;
    (void)error;
    *seconds = clock_now - started;
    return KG_OK;
}

static void fake_flush(struct kg_device *device)
{
    (void)device;
}

static enum kg_status fake_allocate(struct kg_device *device, size_t bytes, void **memory,
                                    struct kg_error *error)
{
    (void)device;
    (void)error;
    *memory = malloc(bytes + 1);
    return KG_OK;
}

static void fake_release(struct kg_device *device, void *memory)
{
    (void)device;
    free(memory);
}

static const struct kg_backend backend = {.name = "fake",
                                          .shares_memory = true,
                                          .now = fake_now,
                                          .start = fake_start,
                                          .stop = fake_stop,
                                          .flush = fake_flush,
                                          .allocate = fake_allocate,
                                          .release = fake_release};

// What a search reported.
static struct log {
    int count;
    int of_kind[KG_OUTCOME_COUNT];
    int finals;
    char texts[400][64];
    char reasons[400][64];
    struct kg_outcome outcomes[400];
} seen, earlier;

static volatile int cancel;
static int cancel_after;
static int progressed;

static void take_record(void *user, const struct kg_outcome *outcome)
{
    (void)user;
    if (seen.count == 400)
        return;
    snprintf(seen.texts[seen.count], 64, "%s", outcome->choice);
    snprintf(seen.reasons[seen.count], 64, "%s", outcome->reason ? outcome->reason : "");
    seen.outcomes[seen.count++] = *outcome;
    seen.of_kind[outcome->kind] += !outcome->final;
    seen.finals += outcome->final;
    if (cancel_after && seen.of_kind[KG_OUTCOME_MEASURED] == cancel_after)
        cancel = 1;
}

static bool recall_earlier(void *user, const char *choice, struct kg_outcome *outcome)
{
    (void)user;
    for (int i = 0; i < earlier.count; i++) {
        if (earlier.outcomes[i].final || strcmp(earlier.texts[i], choice) != 0)
            continue;
        *outcome = earlier.outcomes[i];
        outcome->choice = earlier.texts[i];
        outcome->reason = earlier.reasons[i];
        return true;
    }
    return false;
}

static void note_progress(void *user, int done, int total, const char *what)
{
    (void)user;
    progressed++;
    CHECK(done <= total && what && *what);
}

static struct made sample;
static struct kg_device device = {.backend = &backend, .facts = {.units = 2}};
static struct kg_error error;

static struct kg_search new_search(enum kg_rigor rigor)
{
    world = (struct world){.groups = 1, .best = {8, 4, 2}};
    memset(&seen, 0, sizeof seen);
    cancel = cancel_after = progressed = 0;
    return (struct kg_search){.device = &device,
                              .problem = sample.problem,
                              .rigor = rigor,
                              .run_limit = 30,
                              .protocol = kg_protocol_default,
                              .cancel = &cancel,
                              .record = take_record,
                              .progress = note_progress};
}

static double seconds_found(const struct kg_found *found)
{
    return seconds_of(found->choice.configs[0].value);
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-6 * fabs(b);
}

static void prepare(void)
{
    sample = make("op copy(x: f32[N]) -> (y: f32[N])\n{ y[n] = x[n] }\n", "N=100");
    CHECK_STATUS(sample.status, KG_OK, &sample.error);
}

static void estimate_measures_nothing(void)
{
    struct kg_search search = new_search(KG_RIGOR_ESTIMATE);
    struct kg_found found;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(found.choice.configs[0].value[0] == 4 && found.seconds == 0 && seen.count == 0);
    search.rigor = KG_RIGOR_WISDOM;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_ERROR_ARGUMENT, &error);
}

static void exhaustive_measures_everything(void)
{
    struct kg_search search = new_search(KG_RIGOR_EXHAUSTIVE);
    struct kg_found found;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(found.space == 90 && found.valid == 87 && found.measured == 87);
    CHECK(found.failed == 0 && found.pruned == 0 && found.complete);
    CHECK(is_near(seconds_found(&found), 1e-3) && is_near(found.seconds, 1e-3));
    CHECK(seen.of_kind[KG_OUTCOME_MEASURED] == 87 && seen.of_kind[KG_OUTCOME_INVALID] == 3);
    CHECK(seen.finals == 1 && seen.outcomes[seen.count - 1].final);
    CHECK(seen.outcomes[seen.count - 1].verdict.passed);
    CHECK_TEXT(seen.texts[seen.count - 1], "a=8 b=4 c=2");
    CHECK(progressed >= 87);
}

// A fifth of the space is enough to come within three percent of the best. Where the guess is as
// wrong as can be, it takes more patience.
static void measure_comes_close(void)
{
    static const int64_t bests[][3] = {{8, 4, 2}, {1, 4, 0}, {16, 1, 1}, {4, 3, 1}, {2, 6, 2}};
    for (size_t i = 0; i < sizeof bests / sizeof bests[0]; i++) {
        struct kg_search search = new_search(KG_RIGOR_MEASURE);
        struct kg_found found;
        memcpy(world.best, bests[i], sizeof world.best);
        CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
        CHECK(seconds_found(&found) <= 1e-3 / 0.97);
        CHECK(found.measured <= 87 / 5 && found.complete);
        CHECK(seen.finals == 1);
    }
    struct kg_search search = new_search(KG_RIGOR_PATIENT);
    struct kg_found found;
    memcpy(world.best, (int64_t[]){1, 8, 0}, sizeof world.best);
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(is_near(seconds_found(&found), 1e-3) && found.measured <= 87 / 2);
}

static void bounds_prune(void)
{
    struct kg_search search = new_search(KG_RIGOR_PATIENT);
    struct kg_found found;
    world.bound_share = 0.95;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(is_near(seconds_found(&found), 1e-3));
    CHECK(found.pruned > 40 && seen.of_kind[KG_OUTCOME_PRUNED] == found.pruned);
    CHECK(found.measured < 40);
    // Bounds above the truth would drop the best; the first measurement shows them up.
    search = new_search(KG_RIGOR_PATIENT);
    world.bound_share = 3;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(is_near(seconds_found(&found), 1e-3));
}

static enum ill many_ills(const int64_t *value)
{
    if (value[2] != 1)
        return FINE;
    switch (value[1]) {
    case 1:
        return value[0] == 1 ? HANGS : FINE;
    case 2:
        return CRASHES;
    case 4:
        return IS_WRONG;
    case 6:
        return NO_COMPILE;
    case 8:
        return value[0] == 2 ? WRITES_INPUT : value[0] == 4 ? UNSTEADY : FINE;
    default:
        return FINE;
    }
}

static const char *reason_of(const char *choice)
{
    for (int i = 0; i < seen.count; i++)
        if (strcmp(seen.texts[i], choice) == 0)
            return seen.reasons[i];
    return "not recorded";
}

static void broken_candidates_are_outcomes(void)
{
    struct kg_search search = new_search(KG_RIGOR_EXHAUSTIVE);
    struct kg_found found;
    world.ill = many_ills;
    search.run_limit = 0.5;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(is_near(seconds_found(&found), 1e-3) && found.complete);
    CHECK(seen.of_kind[KG_OUTCOME_TIMEOUT] == 1);
    CHECK(seen.of_kind[KG_OUTCOME_FAULT] == 5);
    CHECK(seen.of_kind[KG_OUTCOME_WRONG] == 5 + 2);
    CHECK(seen.of_kind[KG_OUTCOME_COMPILE] == 5);
    CHECK(found.failed == 18 && found.measured == 87 - 18);
    CHECK(strstr(reason_of("a=1 b=1 c=1"), "0.5 s"));
    CHECK(strstr(reason_of("a=1 b=2 c=1"), "SIGSEGV"));
    CHECK_TEXT(reason_of("a=1 b=4 c=1"), "y[3] is 4, not 5");
    CHECK_TEXT(reason_of("a=1 b=6 c=1"), "no way to compile");
    CHECK_TEXT(reason_of("a=2 b=8 c=1"), "the input x was changed");
    CHECK(strstr(reason_of("a=4 b=8 c=1"), "other outputs"));
}

static void nothing_right_is_an_error(void)
{
    struct kg_search search = new_search(KG_RIGOR_MEASURE);
    struct kg_found found;
    world.all_wrong = true;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_ERROR_WRONG, &error);
    CHECK(strstr(error.text, "a=4 b=3 c=1: y[3] is 4, not 5"));
    CHECK(found.measured == 0 && found.failed > 4 && seen.finals == 0);
}

static enum ill no_compiler(const int64_t *value)
{
    (void)value;
    return NO_COMPILER;
}

static void a_missing_compiler_ends_it(void)
{
    struct kg_search search = new_search(KG_RIGOR_MEASURE);
    struct kg_found found;
    world.ill = no_compiler;
    builds = 0;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_ERROR_MISSING, &error);
    CHECK_TEXT(error.text, "no way to compile");
    CHECK(builds <= 4);
}

static void an_interrupted_search_goes_on(void)
{
    struct kg_search search = new_search(KG_RIGOR_EXHAUSTIVE);
    struct kg_found found;
    cancel_after = 30;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_ERROR_CANCELLED, &error);
    CHECK(found.measured == 30 && !found.complete && found.seconds > 0);
    earlier = seen;
    search = new_search(KG_RIGOR_EXHAUSTIVE);
    search.known = recall_earlier;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(found.measured == 87 && seen.of_kind[KG_OUTCOME_MEASURED] == 57);
    CHECK(seen.of_kind[KG_OUTCOME_INVALID] == 0); // said before
    CHECK(is_near(seconds_found(&found), 1e-3));
    // With everything known only the finalists run again.
    int count = earlier.count;
    for (int i = 0; i < seen.count; i++) {
        memcpy(earlier.texts[count + i], seen.texts[i], sizeof seen.texts[i]);
        memcpy(earlier.reasons[count + i], seen.reasons[i], sizeof seen.reasons[i]);
        earlier.outcomes[count + i] = seen.outcomes[i];
    }
    earlier.count += seen.count;
    search = new_search(KG_RIGOR_EXHAUSTIVE);
    search.known = recall_earlier;
    builds = 0;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(seen.count == 1 && seen.finals == 1 && builds <= 8);
    CHECK(is_near(seconds_found(&found), 1e-3));
}

static enum ill all_hang(const int64_t *value)
{
    (void)value;
    return HANGS;
}

static void time_limits_hold(void)
{
    struct kg_search search = new_search(KG_RIGOR_MEASURE);
    struct kg_found found;
    search.seconds = 1e-6;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(found.choice.configs[0].value[0] == 4 && found.seconds == 0 && !found.complete);
    // A limit that strikes while the guess runs is not the guess's fault.
    search.seconds = 0.4;
    world.ill = all_hang;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(found.seconds == 0 && !found.complete && seen.count == 0);
}

static void hints_come_first(void)
{
    static const char *const hints[] = {"nonsense", "a=8 b=4 c=2"};
    struct kg_search search = new_search(KG_RIGOR_MEASURE);
    struct kg_found found;
    search.hints = hints;
    search.hint_count = 2;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(seen.count > 2);
    CHECK_TEXT(seen.texts[0], "a=4 b=3 c=1");
    CHECK_TEXT(seen.texts[1], "a=8 b=4 c=2");
    CHECK(is_near(seconds_found(&found), 1e-3));
}

// The caller's best often is the very guess the search begins with, and hints may repeat.
static void a_hint_may_be_the_guess(void)
{
    static const char *const hints[] = {"a=4 b=3 c=1", "a=8 b=4 c=2", "a=8 b=4 c=2"};
    struct kg_search search = new_search(KG_RIGOR_MEASURE);
    struct kg_found found;
    search.hints = hints;
    search.hint_count = 3;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    for (int i = 0; i < seen.count; i++)
        CHECK(strstr(seen.reasons[i], "the same source as") == NULL);
}

static void twins_are_measured_once(void)
{
    struct kg_search search = new_search(KG_RIGOR_EXHAUSTIVE);
    struct kg_found found;
    world.twins = true;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(found.measured == 29 && found.pruned == 58);
    CHECK(strstr(reason_of("a=1 b=1 c=2"), "the same source as a=1 b=1 c="));
}

static void groups_are_searched_one_by_one(void)
{
    struct kg_search search = new_search(KG_RIGOR_MEASURE);
    struct kg_found found;
    world.groups = 2;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(found.space == 180 && found.valid == 174 && found.measured <= 2 * 87 / 5);
    for (int group = 0; group < 2; group++)
        CHECK(seconds_of(found.choice.configs[group].value) <= 1e-3 / 0.95);
}

TEST_MAIN(prepare, estimate_measures_nothing, exhaustive_measures_everything, measure_comes_close,
          bounds_prune, broken_candidates_are_outcomes, nothing_right_is_an_error,
          a_missing_compiler_ends_it, an_interrupted_search_goes_on, time_limits_hold,
          hints_come_first, a_hint_may_be_the_guess, twins_are_measured_once,
          groups_are_searched_one_by_one)
