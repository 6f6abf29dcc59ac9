// The timing protocol on a clock that only moves when a subject or a flush says so.

#include "support/fake_clock.h"
#include "test.h"
#include "tune/timing.h"

#include <math.h>
#include <stdlib.h>

static int flushes;
static double flush_seconds;
static char trace[4096]; // one letter per run
static size_t trace_length;

static void fake_flush(struct kg_device *device)
{
    (void)device;
    flushes++;
    clock_now += flush_seconds;
}

static double fake_clock(struct kg_device *device)
{
    (void)device;
    return 3e9;
}

static const struct kg_backend backend = {.name = "fake",
                                          .now = fake_now,
                                          .start = fake_start,
                                          .stop = fake_stop,
                                          .flush = fake_flush,
                                          .clock = fake_clock};
static struct kg_device device = {.backend = &backend};
static struct kg_error error;

// A subject whose n-th run takes times[n % count] seconds, the first `slow_runs` slower by `slow`.
struct subject {
    const double *times;
    int count;
    int slow_runs;
    double slow;
    double drift; // each run is longer by this share than the one before
    int runs;
    int fail_at; // run that returns an error; 0: none
    char letter;
    volatile int *cancel_at_run_3;
};

static enum kg_status run_subject(void *user, struct kg_error *own)
{
    struct subject *subject = user;
    double seconds = subject->times[subject->runs % subject->count];
    if (subject->runs < subject->slow_runs)
        seconds += subject->slow;
    clock_now += seconds * (1 + subject->drift * subject->runs);
    subject->runs++;
    if (trace_length + 1 < sizeof trace)
        trace[trace_length++] = subject->letter;
    if (subject->cancel_at_run_3 && subject->runs == 3)
        *subject->cancel_at_run_3 = 1;
    if (subject->fail_at == subject->runs)
        return kg_error_set(own, KG_ERROR_FAULT, "broke");
    return KG_OK;
}

static const struct kg_protocol cold = {.cache = KG_COLD,
                                        .warm_seconds = 0.02,
                                        .sample_seconds = 0.2,
                                        .least_samples = 7,
                                        .max_samples = 200};
static const double steady[] = {0.001};

static struct kg_timing time_subject(struct subject *subject, const struct kg_protocol *protocol,
                                     double incumbent)
{
    struct kg_timed timed = {.user = subject, .run = run_subject};
    struct kg_timing timing;
    flushes = 0;
    CHECK_STATUS(kg_time_one(&device, protocol, &timed, incumbent, NULL, &timing, &error), KG_OK,
                 &error);
    return timing;
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b) + 1e-15;
}

static void steady_subjects_stop_early(void)
{
    struct subject subject = {.times = steady, .count = 1};
    struct kg_timing timing = time_subject(&subject, &cold, 0);
    CHECK(timing.samples == 7 && !timing.abandoned);
    CHECK(is_near(timing.median, 0.001) && is_near(timing.least, 0.001));
    CHECK(fabs(timing.spread) < 1e-12);
    CHECK(timing.clock == 3e9);
    CHECK(flushes == 3 + 7); // the first runs and the samples, not the warm-up
    CHECK(subject.runs >= 20 + 7);
}

static void noisy_subjects_use_the_budget(void)
{
    static const double noisy[] = {0.001, 0.002, 0.003, 0.004, 0.005};
    struct subject subject = {.times = noisy, .count = 5};
    struct kg_timing timing = time_subject(&subject, &cold, 0);
    CHECK(timing.samples > 50 && timing.samples < 80); // 0.2 s of 3 ms
    CHECK(is_near(timing.median, 0.003) && is_near(timing.least, 0.001));
    CHECK(is_near(timing.spread, 0.002));

    struct kg_protocol few = cold;
    few.max_samples = 10;
    subject.runs = 0;
    CHECK(time_subject(&subject, &few, 0).samples == 10);
}

static void slow_subjects_get_few_samples(void)
{
    static const double times[] = {1.0, 1.1};
    struct subject subject = {.times = times, .count = 2};
    struct kg_timing timing = time_subject(&subject, &cold, 0);
    CHECK(timing.samples == 3 && subject.runs == 4); // one first run, no further warm-up
}

static void hopeless_subjects_are_abandoned(void)
{
    static const double three[] = {0.003}, fifty[] = {0.05};
    struct subject subject = {.times = three, .count = 1};
    struct kg_timing timing = time_subject(&subject, &cold, 0.001);
    CHECK(timing.abandoned && subject.runs == 3 && timing.samples == 3);
    CHECK(is_near(timing.median, 0.003));
    struct subject worse = {.times = fifty, .count = 1};
    timing = time_subject(&worse, &cold, 0.001);
    CHECK(timing.abandoned && worse.runs == 1); // as long as the whole warm-up
    // A little slower is not hopeless; nor is one that only starts slowly.
    struct subject near = {.times = three, .count = 1};
    CHECK(!time_subject(&near, &cold, 0.0016).abandoned);
    struct subject starts_slowly = {.times = three, .count = 1, .slow_runs = 1, .slow = 0.01};
    CHECK(!time_subject(&starts_slowly, &cold, 0.0025).abandoned);
}

// What is surely slower than the incumbent is not asked for more samples than its median needs.
static void slower_subjects_end_early(void)
{
    static const double noisy[] = {0.0013, 0.0014, 0.0015};
    struct subject subject = {.times = noisy, .count = 3};
    struct kg_timing timing = time_subject(&subject, &cold, 0.001);
    CHECK(!timing.abandoned && timing.samples < 12);
    subject.runs = 0;
    CHECK(time_subject(&subject, &cold, 0.00135).samples > 100);
}

// A flush takes longer than many a kernel; it must not eat up first runs and warm-up.
static void flushes_are_no_warm_up(void)
{
    static const double half[] = {0.0005};
    struct subject subject = {.times = half, .count = 1, .slow_runs = 1, .slow = 0.002};
    flush_seconds = 0.05;
    struct kg_timing timing = time_subject(&subject, &cold, 0.001);
    CHECK(!timing.abandoned && timing.samples == 7 && is_near(timing.median, 0.0005));
    CHECK(subject.runs >= 36 + 7);
    flush_seconds = 0;
    struct kg_protocol none = cold;
    none.warm_seconds = 0;
    CHECK(time_subject(&subject, &none, 0.001).samples == 7);
}

static void warm_short_runs_are_batched(void)
{
    static const double tiny[] = {1e-6};
    struct kg_protocol warm = cold;
    warm.cache = KG_WARM;
    struct subject subject = {.times = tiny, .count = 1};
    struct kg_timing timing = time_subject(&subject, &warm, 0);
    CHECK(flushes == 0 && is_near(timing.median, 1e-6));
    CHECK(subject.runs >= 20000 + 7 * 20);
}

// A graph whose replay runs what was recorded, without the launches' own time.
struct kg_graph {
    enum kg_status (*run)(void *user, struct kg_error *error);
    void *user;
};
static int graphs, replays; // alive; in all

static enum kg_status fake_record(struct kg_device *of,
                                  enum kg_status (*run)(void *, struct kg_error *), void *user,
                                  struct kg_graph **graph, struct kg_error *own)
{
    (void)of;
    (void)own;
    *graph = malloc(sizeof **graph);
    **graph = (struct kg_graph){run, user};
    graphs++;
    return KG_OK;
}

static enum kg_status fake_replay(struct kg_graph *graph, void *stream, struct kg_error *own)
{
    replays++;
    return stream ? KG_ERROR_ARGUMENT : graph->run(graph->user, own);
}

static void fake_forget(struct kg_graph *graph)
{
    graphs--;
    free(graph);
}

static void graphs_are_replayed(void)
{
    static const double tiny[] = {1e-6};
    struct kg_protocol replayed = cold;
    replayed.graph = true;
    struct subject subject = {.times = steady, .count = 1};
    struct kg_timed timed[2] = {{&subject, run_subject}, {&subject, run_subject}};
    struct kg_timing timings[2];
    CHECK_STATUS(kg_time_one(&device, &replayed, timed, 0, NULL, timings, &error),
                 KG_ERROR_UNSUPPORTED, &error);
    struct kg_backend able = backend;
    able.record = fake_record;
    able.replay = fake_replay;
    able.forget = fake_forget;
    device.backend = &able;
    CHECK_STATUS(kg_time_race(&device, &replayed, timed, 2, false, NULL, timings, &error), KG_OK,
                 &error);
    CHECK(graphs == 0 && replays == subject.runs && is_near(timings[1].median, 0.001));
    // What is too short for the clock stands in the graph many times.
    replayed.cache = KG_WARM;
    replays = subject.runs = 0;
    subject.times = tiny;
    CHECK_STATUS(kg_time_one(&device, &replayed, timed, 0, NULL, timings, &error), KG_OK, &error);
    CHECK(graphs == 0 && subject.runs >= replays + 7 * 19);
    CHECK(fabs(timings[0].median - 1e-6) < 1e-10);
    device.backend = &backend;
}

static void failures_and_cancellation_end_it(void)
{
    volatile int cancel = 0;
    struct subject subject = {.times = steady, .count = 1, .fail_at = 5};
    struct kg_timed timed = {.user = &subject, .run = run_subject};
    struct kg_timing timing;
    CHECK_STATUS(kg_time_one(&device, &cold, &timed, 0, NULL, &timing, &error), KG_ERROR_FAULT,
                 &error);
    CHECK_TEXT(error.text, "broke");
    CHECK(timing.samples == 0);
    subject = (struct subject){.times = steady, .count = 1, .cancel_at_run_3 = &cancel};
    CHECK_STATUS(kg_time_one(&device, &cold, &timed, 0, &cancel, &timing, &error),
                 KG_ERROR_CANCELLED, &error);
    CHECK(subject.runs == 3);
    CHECK_STATUS(kg_time_race(&device, &cold, &timed, 1, false, &cancel, &timing, &error),
                 KG_ERROR_CANCELLED, &error);
}

static void race_subjects(struct subject *subjects, int count, bool drops,
                          struct kg_timing *timings)
{
    struct kg_timed timed[3];
    for (int i = 0; i < count; i++)
        timed[i] = (struct kg_timed){&subjects[i], run_subject};
    trace_length = 0;
    CHECK_STATUS(kg_time_race(&device, &cold, timed, count, drops, NULL, timings, &error), KG_OK,
                 &error);
    trace[trace_length] = '\0';
}

// Two equal subjects on a machine that gets slower all the time: only alternation finds them equal.
static void races_alternate(void)
{
    struct subject subjects[2] = {{.times = steady, .count = 1, .letter = 'a', .drift = 0.01},
                                  {.times = steady, .count = 1, .letter = 'b', .drift = 0.01}};
    struct kg_timing timings[2];
    race_subjects(subjects, 2, false, timings);
    CHECK(timings[0].samples == timings[1].samples && timings[0].samples >= 7);
    CHECK(is_near(timings[0].median, timings[1].median));
    CHECK(strstr(trace, "abbaabba") != NULL);
    race_subjects(subjects, 0, true, timings);
}

// A baseline that takes many times as long needs few samples to be told apart; a rival does not.
static void who_is_far_behind_is_soon_seen_enough(void)
{
    static const double far[] = {0.0101}, rival[] = {0.0099}, near[] = {0.001};
    struct subject subjects[3] = {{.times = near, .count = 1, .letter = 'a'},
                                  {.times = far, .count = 1, .letter = 'b'},
                                  {.times = rival, .count = 1, .letter = 'c'}};
    struct kg_timing timings[3];
    race_subjects(subjects, 3, false, timings);
    CHECK(timings[0].samples >= 7 && timings[1].samples == 3 && timings[2].samples >= 7);
    CHECK(is_near(timings[1].median, 0.0101) && !timings[1].abandoned);
    CHECK(is_near(timings[1].behind, 9.1) && kg_time_winner(timings, 3) == 0);
}

// Who is far behind stays so when the leader was disturbed in each of the few rounds of both.
static void a_disturbed_leader_is_no_tie(void)
{
    static const double far[] = {0.0101};
    double near[64];
    for (int i = 0; i < 64; i++)
        near[i] = i >= 18 && i < 24 ? 0.02 : 0.001; // the first 20 runs warm up
    struct subject subjects[2] = {{.times = far, .count = 1, .letter = 'b'},
                                  {.times = near, .count = 64, .letter = 'a'}};
    struct kg_timing timings[2];
    race_subjects(subjects, 2, false, timings);
    CHECK(timings[0].samples == 3 && timings[1].samples >= 7);
    CHECK(is_near(timings[0].behind, 9.1) && kg_time_winner(timings, 2) == 1);
}

// On a machine that is twice as slow every other moment, what is five percent slower is found to be
// so, round by round. Those who cannot win leave, if they may.
static void races_compare_round_by_round(void)
{
    static const double fast[] = {0.001, 0.001, 0.001, 0.0021, 0.0015, 0.0012},
                        slow[] = {0.00105, 0.00105, 0.00105, 0.002205, 0.001575, 0.00126};
    struct subject subjects[3] = {{.times = slow, .count = 6, .letter = 'a'},
                                  {.times = fast, .count = 6, .letter = 'b'},
                                  {.times = fast, .count = 6, .letter = 'c'}};
    struct kg_timing timings[3];
    race_subjects(subjects, 3, false, timings);
    CHECK(timings[0].samples == timings[1].samples && !timings[0].abandoned);
    CHECK(fabs(timings[0].behind - 0.05) < 1e-6 && timings[0].behind_noise < 1e-6);
    CHECK(kg_time_uncertainty(&timings[0]) > 0.01 * timings[0].median);
    CHECK(timings[1].behind == 0 && timings[2].behind == 0);
    CHECK(kg_time_winner(timings, 3) == 1);
    for (int i = 0; i < 3; i++)
        subjects[i].runs = 0;
    race_subjects(subjects, 3, true, timings);
    CHECK(timings[0].samples == 7 && timings[0].abandoned);
    CHECK(timings[1].samples == timings[2].samples && timings[1].samples > 100);
    CHECK(kg_time_winner(timings, 3) == 1);
}

static void ties_go_to_the_first(void)
{
    struct kg_timing clear[] = {{.samples = 9, .behind = 0.1, .behind_noise = 0.005},
                                {.samples = 9},
                                {.samples = 9, .behind = 0.2, .behind_noise = 0.005}};
    CHECK(kg_time_winner(clear, 3) == 1);
    clear[0].behind = 0.009; // too little to count
    CHECK(kg_time_winner(clear, 3) == 0);
    clear[0].behind = 0.02; // within the noise, or not
    CHECK(kg_time_winner(clear, 3) == 1);
    clear[0].behind_noise = 0.021;
    CHECK(kg_time_winner(clear, 3) == 0);
    clear[0].behind = 0.04; // too much to be given away
    clear[0].behind_noise = 0.05;
    CHECK(kg_time_winner(clear, 3) == 1);
    clear[0] = (struct kg_timing){.samples = 9, .abandoned = true};
    CHECK(kg_time_winner(clear, 3) == 1);
    CHECK(kg_time_winner(clear, 1) == -1);
    clear[1].samples = 0;
    CHECK(kg_time_winner(clear, 2) == -1);
    CHECK(kg_time_winner(clear, 0) == -1);
}

static void protocols_have_names(void)
{
    struct kg_text text = {0};
    kg_protocol_print(&kg_protocol_default, &text);
    CHECK_TEXT(kg_text_string(&text), "cold launch");
    kg_text_cut(&text, 0);
    struct kg_protocol other = {.cache = KG_WARM, .graph = true};
    kg_protocol_print(&other, &text);
    CHECK_TEXT(kg_text_string(&text), "warm graph");
    CHECK(kg_protocol_read("graph  warm", &other) && other.cache == KG_WARM && other.graph);
    CHECK(kg_protocol_read("", &other) && other.cache == KG_COLD && !other.graph);
    CHECK(kg_protocol_read("launch", &other) && !kg_protocol_read("luke warm", &other));
    kg_text_free(&text);
}

TEST_MAIN(steady_subjects_stop_early, noisy_subjects_use_the_budget, slow_subjects_get_few_samples,
          hopeless_subjects_are_abandoned, slower_subjects_end_early, flushes_are_no_warm_up,
          warm_short_runs_are_batched, graphs_are_replayed, failures_and_cancellation_end_it,
          races_alternate, who_is_far_behind_is_soon_seen_enough, a_disturbed_leader_is_no_tie,
          races_compare_round_by_round, ties_go_to_the_first, protocols_have_names)
