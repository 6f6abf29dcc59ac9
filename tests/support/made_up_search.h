// A search with everything around it made up: a family whose configs take the time a formula says,
// on a clock that only moves when they run; some hang, crash, do not compile or are wrong. Worker
// processes are real.
//
// The definitions below stand in for src/gen and src/verify: the linker takes them first. For one
// file of a test program.

#ifndef KG_TESTS_MADE_UP_SEARCH_H
#define KG_TESTS_MADE_UP_SEARCH_H

#include "gen/grouping.h"
#include "gen/prepared.h"
#include "report/tiers.h"
#include "support/fake_clock.h"
#include "support/sample_problem.h"
#include "test.h"
#include "tune/search.h"

#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

enum ill {
    FINE,
    HANGS,
    CRASHES,
    KILLED_JUDGED, // by somebody else, with SIGKILL, while its process judges it
    KILLED_TIMED,  // ... or times it
    KILLED_RACING, // ... or times it once more, at the end
    IS_WRONG,
    NO_COMPILE,
    WRITES_INPUT,
    UNSTEADY,
    NO_COMPILER,
    BREAKS_DEVICE
};

// What the made-up world is like in the test that runs.
static struct world {
    int groups;
    int rival_groups;      // of another grouping; 0: there is none
    double rival_expected; // its seconds, where the guess takes 1e-3
    double split_share;    // of the time that each of two groups takes; 0: all of it
    int64_t best[3];       // the fastest values of a, b, c
    double bound_share;    // bound / true time of a group
    enum ill (*ill)(const int64_t *value);
    bool twins;    // c does not change the source
    bool limits;   // c is called maxnreg
    bool expected; // by the family
    bool all_wrong;
    int race_after;         // this many were measured
    int lucky;              // the gate's so manieth takes another time at first; 0: none
    double luck;            // what its time is multiplied by
    double compile_seconds; // of a kernel
} world;

static _Atomic int builds;
static bool device_missing;
static bool device_broken;         // of a process: it takes no more work
static void (*break_device)(void); // how that happens behind the launch's back; NULL: it says so
static int *fillings;              // of inputs in any process; memory shared by all
static int *measured;              // so far; beside it
static int *judged;                // by the gate, and ...
static int *luck;                  // ... whether that kernel is the lucky one
static enum kg_isolation isolation;

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

static const void *fake_match(const struct kg_group *group, const struct kg_device_facts *facts,
                              struct kg_arena *arena, struct kg_text *reason)
{
    (void)facts;
    (void)arena;
    (void)reason;
    return group;
}

static void fake_space(const struct kg_match *match, struct kg_space *space)
{
    (void)match;
    *space = (struct kg_space){
        .count = 3,
        .parameters = {
            {.name = "a", .change = KG_CHANGE_REUSE, .count = 5},
            {.name = "b", .change = KG_CHANGE_ACCESS, .count = 6},
            {.name = world.limits ? "maxnreg" : "c", .change = KG_CHANGE_STAGES, .count = 3}}};
    memcpy(space->parameters[0].choices, choices_a, sizeof choices_a);
    memcpy(space->parameters[1].choices, choices_b, sizeof choices_b);
    memcpy(space->parameters[2].choices, choices_c, sizeof choices_c);
}

// 3 of the 90 configs are not valid.
static bool fake_valid(const struct kg_match *match, const struct kg_config *config,
                       struct kg_text *reason)
{
    (void)match;
    if (config->value[0] * config->value[1] != 128)
        return true;
    kg_text_add(reason, "a times b is too much");
    return false;
}

static void fake_guess(const struct kg_match *match, struct kg_config *config)
{
    (void)match;
    *config = (struct kg_config){{4, 3, 1}};
}

static double fake_bound(const struct kg_match *match, const struct kg_config *config)
{
    (void)match;
    return world.bound_share * seconds_of(config->value);
}

// Right but for the third parameter, of which it knows nothing.
static double fake_expected(const struct kg_match *match, const struct kg_config *config)
{
    (void)match;
    int64_t values[] = {config->value[0], config->value[1], world.best[2]};
    return world.expected ? 0.5 * seconds_of(values) : 0;
}

static const struct kg_family family = {.name = "fake",
                                        .match = fake_match,
                                        .space = fake_space,
                                        .valid = fake_valid,
                                        .guess = fake_guess,
                                        .bound = fake_bound,
                                        .expected = fake_expected,
                                        .orders_configs = true};
static const struct kg_family *const families[] = {&family, NULL};
static const struct kg_target target = {.name = "fake", .families = families, .plain = &family};

// The groups are all of the first nest, so that two of them have the same match.
static void choose_fake(const struct kg_problem *problem, const struct kg_device_facts *facts,
                        int groups, struct kg_choice *choice)
{
    const struct kg_group group = {problem, 0, 1};
    *choice = (struct kg_choice){.count = groups};
    for (int i = 0; i < groups; i++) {
        choice->matches[i] = kg_match_find(&family, &group, facts, NULL);
        fake_guess(NULL, &choice->configs[i]);
        if (!choice->matches[i]) // out of memory
            choice->count = 0;
    }
}

void kg_choice_guess(const struct kg_problem *problem, const struct kg_device_facts *facts,
                     const struct kg_target *asked, struct kg_choice *choice)
{
    CHECK(asked == &target);
    choose_fake(problem, facts, world.groups, choice);
}

// Two kernels may take the place of one, or one that of two.
bool kg_groupings_list(const struct kg_problem *problem, const struct kg_device_facts *facts,
                       const struct kg_target *asked, struct kg_groupings *groupings,
                       struct kg_text *trace)
{
    CHECK(asked == &target && !trace);
    *groupings = (struct kg_groupings){.count = world.rival_groups > 0 ? 2 : 1};
    for (int i = 0; i < groupings->count; i++) {
        struct kg_grouping_option *option = &groupings->options[i];
        choose_fake(problem, facts, i == 0 ? world.groups : world.rival_groups, &option->choice);
        option->expected = i == 0 ? 1e-3 : world.rival_expected;
    }
    return true;
}

int kg_groupings_beside(const struct kg_problem *problem, const struct kg_device_facts *facts,
                        const struct kg_target *asked, const struct kg_choice *choice,
                        struct kg_choice others[KG_MAX_REGROUPINGS])
{
    CHECK(asked == &target && choice->count == world.groups);
    if (world.rival_groups > 0)
        choose_fake(problem, facts, world.rival_groups, &others[0]);
    return world.rival_groups > 0;
}

bool kg_choice_has_same_groups(const struct kg_choice *a, const struct kg_choice *b)
{
    return a->count == b->count;
}

// The family's, of one group.
double kg_choice_expected(const struct kg_choice *choice)
{
    return choice->count == 1 ? fake_expected(NULL, &choice->configs[0]) : 0;
}

double kg_choice_bound(const struct kg_choice *choice)
{
    double sum = 0;
    for (int i = 0; i < choice->count; i++)
        sum += fake_bound(NULL, &choice->configs[i]);
    return sum;
}

void kg_choice_print(const struct kg_choice *choice, struct kg_text *text)
{
    for (int i = 0; i < choice->count; i++)
        kg_text_format(text, "%sa=%d b=%d c=%d", i ? "; " : "", (int)choice->configs[i].value[0],
                       (int)choice->configs[i].value[1], (int)choice->configs[i].value[2]);
}

bool kg_choice_read(const struct kg_problem *problem, const struct kg_device_facts *facts,
                    const struct kg_target *asked, const char *text, struct kg_choice *choice)
{
    int a, b, c;
    const char *colon = strstr(text, ": "); // behind a family
    kg_choice_guess(problem, facts, asked, choice);
    if (sscanf(colon ? colon + 2 : text, "a=%d b=%d c=%d", &a, &b, &c) != 3)
        return false;
    choice->configs[0] = (struct kg_config){{a, b, c}};
    return true;
}

static enum ill ill_of(const struct kg_built *built)
{
    for (int i = 0; world.ill && i < built->choice.count; i++)
        if (world.ill(built->choice.configs[i].value) != FINE)
            return world.ill(built->choice.configs[i].value);
    return FINE;
}

enum kg_status kg_built_make(struct kg_device *device, const struct kg_problem *problem,
                             const struct kg_choice *choice, double time_limit,
                             struct kg_built **built, struct kg_error *error)
{
    (void)problem;
    *built = NULL;
    *luck = 0;
    if (time_limit < world.compile_seconds)
        return kg_error_set(error, KG_ERROR_TIMEOUT, "not compiled within %g s", time_limit);
    *built = calloc(1, sizeof **built);
    if (!*built)
        return kg_error_memory(error, "a made-up kernel");
    (*built)->device = device;
    (*built)->choice = *choice;
    (*built)->contiguous = true;
    for (int i = 0; i < choice->count; i++)
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

struct kg_prepared {
    const struct kg_built *built;
    const struct kg_problem *problem;
};

enum kg_status kg_prepared_make(const struct kg_built *built, const struct kg_problem *problem,
                                struct kg_prepared **prepared, struct kg_error *error)
{
    *prepared = calloc(1, sizeof **prepared);
    if (!*prepared)
        return kg_error_memory(error, "a launch");
    **prepared = (struct kg_prepared){built, problem};
    return KG_OK;
}

void kg_prepared_free(struct kg_prepared *prepared)
{
    free(prepared);
}

size_t kg_prepared_workspace(const struct kg_prepared *prepared)
{
    (void)prepared;
    return 64;
}

enum kg_status kg_prepared_run(const struct kg_prepared *prepared, void *const *tensors,
                               void *workspace, void *stream, struct kg_error *error)
{
    static int runs;
    const struct kg_built *built = prepared->built;
    enum ill ill = ill_of(built);
    (void)stream;
    CHECK(workspace != NULL);
    while (ill == HANGS)
        pause();
    if (ill == CRASHES)
        raise(SIGSEGV);
    if (ill == KILLED_TIMED || (ill == KILLED_RACING && *measured >= world.race_after))
        raise(SIGKILL);
    if (ill == BREAKS_DEVICE && break_device) {
        break_device();
        return KG_OK;
    }
    if (ill == BREAKS_DEVICE)
        device_broken = true;
    if (device_broken)
        return kg_error_set(error, KG_ERROR_FAULT, "the device is broken");
    double share = built->choice.count > 1 && world.split_share > 0 ? world.split_share : 1;
    share *= *luck ? world.luck : 1;
    for (int i = 0; i < built->choice.count; i++)
        clock_now += share * seconds_of(built->choice.configs[i].value);
    memset(tensors[1], ill == UNSTEADY ? runs++ : 7, prepared->problem->layouts[1].bytes);
    if (ill == WRITES_INPUT)
        memset(tensors[0], 9, 4);
    return KG_OK;
}

enum kg_status kg_gate_judge(const struct kg_gate *gate, const struct kg_subject *subject,
                             struct kg_verdict *verdict, struct kg_error *error)
{
    (void)gate;
    (void)error;
    if (ill_of(subject->user) == KILLED_JUDGED)
        raise(SIGKILL);
    *verdict = (struct kg_verdict){.passed = true, .seed = 77, .cases = 5};
    *luck = ++*judged == world.lucky;
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

void kg_gate_explain_end(const struct kg_gate *gate, struct kg_verdict *verdict)
{
    (void)gate;
    (void)verdict;
}

void kg_verify_fill_some(const struct kg_problem *problem, int tensor, uint64_t seed, int64_t count,
                         void *data)
{
    (void)problem;
    (void)tensor;
    ++*fillings;
    memset(data, (int)seed, (size_t)count * sizeof(float));
}

static void fake_flush(struct kg_device *device)
{
    (void)device;
}

static enum kg_status fake_allocate(struct kg_device *device, size_t bytes, void **memory,
                                    struct kg_error *error)
{
    (void)device;
    if (device_missing)
        return kg_error_set(error, KG_ERROR_MISSING, "no such device");
    *memory = malloc(bytes + 1);
    return *memory ? KG_OK : kg_error_memory(error, "a tensor");
}

static void fake_release(struct kg_device *device, void *memory)
{
    (void)device;
    free(memory);
}

static enum kg_status fake_copy(struct kg_device *device, void *to, const void *from, size_t bytes,
                                struct kg_error *error)
{
    (void)device;
    if (device_broken)
        return kg_error_set(error, KG_ERROR_FAULT, "the device is broken");
    if (bytes)
        memcpy(to, from, bytes);
    return KG_OK;
}

static enum kg_status fake_fill(struct kg_device *device, void *memory, unsigned char value,
                                size_t bytes, struct kg_error *error)
{
    (void)device;
    (void)error;
    memset(memory, value, bytes);
    return KG_OK;
}

static enum kg_status fake_digest(struct kg_device *device, const void *memory, size_t bytes,
                                  uint64_t *sum, struct kg_error *error)
{
    (void)device;
    (void)error;
    struct kg_hash hash = kg_hash_bytes(memory, bytes);
    *sum = kg_hash_chain(hash, sum, sizeof *sum).low;
    return KG_OK;
}

static const struct kg_backend backend = {.name = "fake",
                                          .shares_memory = true,
                                          .copy = fake_copy,
                                          .fill = fake_fill,
                                          .digest = fake_digest,
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
    CHECK(kg_tier_of(outcome) != KG_TIER_RULE); // the report knows every reason
    if (seen.count == 400)
        return;
    snprintf(seen.texts[seen.count], 64, "%s", outcome->choice);
    snprintf(seen.reasons[seen.count], 64, "%s", outcome->reason ? outcome->reason : "");
    seen.outcomes[seen.count++] = *outcome;
    seen.of_kind[outcome->kind] += !outcome->final;
    *measured = seen.of_kind[KG_OUTCOME_MEASURED];
    seen.finals += outcome->final;
    if (cancel_after && seen.of_kind[KG_OUTCOME_MEASURED] == cancel_after)
        cancel = 1;
}

static inline bool recall_earlier(void *user, const char *choice, struct kg_outcome *outcome)
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

static inline void make_sample(void)
{
    sample = make("op copy(x: f32[N]) -> (y: f32[N])\n{ y[n] = x[n] }\n", "N=100");
    CHECK_STATUS(sample.status, KG_OK, &sample.error);
}

static inline double seconds_found(const struct kg_found *found)
{
    return seconds_of(found->choice.configs[0].value);
}

static inline bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-6 * fabs(b);
}

static struct kg_search new_search(enum kg_rigor rigor)
{
    world = (struct world){.groups = 1, .best = {8, 4, 2}};
    memset(&seen, 0, sizeof seen);
    if (!fillings)
        fillings = mmap(NULL, 4 * sizeof *fillings, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    measured = fillings + 1, judged = fillings + 2, luck = fillings + 3;
    *fillings = *measured = *judged = *luck = 0;
    cancel = cancel_after = progressed = 0;
    return (struct kg_search){.device = &device,
                              .problem = sample.problem,
                              .target = &target,
                              .rigor = rigor,
                              .isolation = isolation,
                              .run_limit = 30,
                              .protocol = kg_protocol_default,
                              .cancel = &cancel,
                              .record = take_record,
                              .progress = note_progress};
}

#endif
