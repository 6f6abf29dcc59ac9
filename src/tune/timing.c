// The timing protocol. docs/timing.md describes it with the same numbers.

#include "tune/timing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_RUNS 3
#define HOPELESS 2.0 // times the incumbent's median: abandoned after the first runs
// Sampling time of a subject in a race, in multiples of that of one timed alone.
#define RACE_BUDGETS 3
// Enough samples if one run takes longer than the sampling time, or if the first runs take FAR
// times as long as those of another subject in the race.
#define FEW_SAMPLES 3
#define FAR 10.0
#define BATCH_SECONDS 20e-6
#define MAX_BATCH 1024
// Times the incumbent's median: a subject above it gets the least number of samples only.
#define SLOWER 1.1
#define SETTLED 0.005 // half width of the median's interval, relative
#define TIE 0.01      // of the leader's time: subjects behind by less are tied
// Of the leader's time: subjects behind by less than the noise are tied only up to this.
#define MAX_TIE 0.03

const struct kg_protocol kg_protocol_default = {
    .cache = KG_COLD,
    .graph = false,
    .warm_seconds = 0.02,
    .sample_seconds = 0.2,
    .least_samples = 7,
    .max_samples = 200,
};

// The state of one subject during timing.
struct session {
    struct kg_device *device;
    const struct kg_protocol *protocol;
    const struct kg_timed *subject;
    const volatile int *cancel;
    struct kg_error *error;
    double ran;             // seconds of the first runs
    double least;           // the fastest of them
    bool is_far;            // its first runs show that it is far behind in a race
    int batch;              // runs per sample
    struct kg_graph *graph; // of `batch` runs, if runs are replayed
    int count;
    double *samples; // in the order in which they were taken
    double *sorted;  // room for a sorted copy
    bool dropped;    // has left the race
};

static double now(const struct session *session)
{
    return session->device->backend->now(session->device);
}

static enum kg_status run_batch(void *user, struct kg_error *error)
{
    const struct session *session = user;
    enum kg_status status = KG_OK;
    for (int i = 0; i < session->batch && !status; i++)
        status = session->subject->run(session->subject->user, error);
    return status;
}

// Runs the subject as often as a sample needs.
static enum kg_status run(struct session *session)
{
    if (session->cancel && *session->cancel)
        return kg_error_set(session->error, KG_ERROR_CANCELLED, "cancelled while timing");
    if (session->graph)
        return session->device->backend->replay(session->graph, NULL, session->error);
    return run_batch(session, session->error);
}

static void forget(struct session *session)
{
    if (session->graph)
        session->device->backend->forget(session->graph);
    session->graph = NULL;
}

// Sets the number of runs of a sample.
static enum kg_status set_batch(struct session *session, int batch)
{
    const struct kg_backend *backend = session->device->backend;
    forget(session);
    session->batch = batch;
    if (!session->protocol->graph)
        return KG_OK;
    if (!backend->record)
        return kg_error_set(session->error, KG_ERROR_UNSUPPORTED,
                            "the protocol replays graphs, and %s has none",
                            session->device->facts.name);
    return backend->record(session->device, run_batch, session, &session->graph, session->error);
}

// Adds one sample: seconds per run.
static enum kg_status take_sample(struct session *session)
{
    if (session->protocol->cache == KG_COLD)
        session->device->backend->flush(session->device);
    const struct kg_backend *backend = session->device->backend;
    double seconds = 0;
    enum kg_status status = backend->start(session->device, session->error);
    if (!status)
        status = run(session);
    if (!status)
        status = backend->stop(session->device, &seconds, session->error);
    if (!status)
        session->samples[session->count++] = seconds / session->batch;
    return status;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The value below which a fraction `part` of the sorted samples lies, interpolated.
static double quantile(const double *sorted, int count, double part)
{
    double position = part * (count - 1);
    int below = (int)position;
    int above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (position - below) * (sorted[above] - sorted[below]);
}

// Sorts the values.
static void describe(double *values, int count, struct kg_timing *timing)
{
    *timing = (struct kg_timing){.samples = count};
    if (count == 0)
        return;
    qsort(values, (size_t)count, sizeof values[0], compare);
    timing->least = values[0];
    timing->median = quantile(values, count, 0.5);
    timing->spread = quantile(values, count, 0.75) - quantile(values, count, 0.25);
}

static void summarise(struct session *session, struct kg_timing *timing)
{
    memcpy(session->sorted, session->samples, (size_t)session->count * sizeof *session->sorted);
    describe(session->sorted, session->count, timing);
}

// Enough samples?
static bool is_settled(struct session *session)
{
    struct kg_timing timing;
    summarise(session, &timing);
    return kg_time_uncertainty(&timing) <= SETTLED * timing.median;
}

// Is it certainly slower than the incumbent, though not enough to be abandoned?
static bool is_slower(struct session *session, double incumbent)
{
    struct kg_timing timing;
    summarise(session, &timing);
    return incumbent > 0 && session->count >= session->protocol->least_samples &&
           timing.median - 2 * kg_time_uncertainty(&timing) > SLOWER * incumbent;
}

static bool is_done(struct session *session, double elapsed, double budget)
{
    const struct kg_protocol *protocol = session->protocol;
    if (session->count >= (session->is_far ? FEW_SAMPLES : protocol->max_samples))
        return true;
    if (elapsed >= budget) {
        bool slow = elapsed / session->count > budget;
        return session->count >= (slow ? FEW_SAMPLES : protocol->least_samples);
    }
    return session->count >= protocol->least_samples && is_settled(session);
}

// The first runs, timed like samples. They end early when they take longer than the warm-up.
static enum kg_status run_first(struct session *session)
{
    session->least = INFINITY;
    for (int i = 0; i < FIRST_RUNS; i++) {
        enum kg_status status = take_sample(session);
        if (status)
            return status;
        session->ran += session->samples[i];
        session->least = fmin(session->least, session->samples[i]);
        if (session->ran >= session->protocol->warm_seconds)
            break;
    }
    return KG_OK;
}

// Runs back to back until the subject has run for `warm_seconds`, the first runs included, so that
// caches, page tables and clocks have adapted. With warm caches, short kernels are timed in
// batches, because the resolution of the clock is too coarse for a single run.
static enum kg_status warm_up(struct session *session)
{
    double start = now(session);
    while (session->ran + now(session) - start < session->protocol->warm_seconds) {
        enum kg_status status = run(session);
        if (status)
            return status;
    }
    session->count = 0;
    if (session->protocol->cache == KG_WARM && session->least < BATCH_SECONDS) {
        double runs = session->least > 0 ? ceil(BATCH_SECONDS / session->least) : MAX_BATCH;
        return set_batch(session, runs < MAX_BATCH ? (int)runs : MAX_BATCH);
    }
    return KG_OK;
}

static enum kg_status begin(struct session *session, struct kg_device *device,
                            const struct kg_protocol *protocol, const struct kg_timed *subject,
                            const volatile int *cancel, struct kg_error *error)
{
    int max = protocol->max_samples > FIRST_RUNS ? protocol->max_samples : FIRST_RUNS;
    *session = (struct session){.device = device,
                                .protocol = protocol,
                                .subject = subject,
                                .cancel = cancel,
                                .error = error,
                                .samples = calloc((size_t)max, sizeof(double)),
                                .sorted = calloc((size_t)max, sizeof(double))};
    if (!session->samples || !session->sorted)
        return kg_error_memory(error, "samples");
    return set_batch(session, 1);
}

static void end(struct session *session)
{
    if (session->device)
        forget(session);
    free(session->samples);
    free(session->sorted);
}

static void finish(struct session *session, struct kg_timing *timing)
{
    summarise(session, timing);
    if (session->device->backend->clock)
        timing->clock = session->device->backend->clock(session->device);
}

static enum kg_status time_subject(struct session *session, double incumbent,
                                   struct kg_timing *timing)
{
    enum kg_status status = run_first(session);
    if (status)
        return status;
    if (incumbent > 0 && session->least > HOPELESS * incumbent) {
        summarise(session, timing);
        timing->abandoned = true;
        return KG_OK;
    }
    status = warm_up(session);
    double start = now(session);
    while (!status && !is_slower(session, incumbent) &&
           !(session->count &&
             is_done(session, now(session) - start, session->protocol->sample_seconds)))
        status = take_sample(session);
    if (!status)
        finish(session, timing);
    return status;
}

// `warm` means that the caches are as the subject's own previous run left them. In a race each
// sample therefore follows a run that is not counted.
static enum kg_status take_turn(struct session *session)
{
    enum kg_status status = session->protocol->cache == KG_WARM ? run(session) : KG_OK;
    return status ? status : take_sample(session);
}

// The subject with the lowest median of those still in the race.
static int find_leader(struct session *sessions, int count)
{
    int leader = -1;
    double least = INFINITY;
    for (int i = 0; i < count; i++) {
        struct kg_timing timing;
        if (sessions[i].dropped)
            continue;
        summarise(&sessions[i], &timing);
        if (leader < 0 || timing.median < least) {
            leader = i;
            least = timing.median;
        }
    }
    return leader;
}

// Measures how far a subject is behind the leader, by the ratios of the samples of the same rounds:
// a disturbance that slows a whole round cancels out. The few rounds of a subject that is far
// behind may be those in which the leader alone was disturbed: the leader's median counts there.
static void compare_with(struct session *session, struct session *leader, struct kg_timing *timing)
{
    struct kg_timing whole, ratios;
    int rounds = session->count < leader->count ? session->count : leader->count;
    summarise(leader, &whole);
    for (int i = 0; i < rounds; i++) {
        double least = session->is_far ? whole.median : leader->samples[i];
        session->sorted[i] = least > 0 ? session->samples[i] / least : 1;
    }
    describe(session->sorted, rounds, &ratios);
    timing->behind = ratios.median - 1;
    timing->behind_noise = kg_time_uncertainty(&ratios);
}

// Subjects that cannot win any more leave the race.
static void drop_losers(struct session *sessions, int count)
{
    struct session *leader = &sessions[find_leader(sessions, count)];
    if (leader->count < leader->protocol->least_samples)
        return;
    for (int i = 0; i < count; i++) {
        struct kg_timing timing;
        if (sessions[i].dropped)
            continue;
        compare_with(&sessions[i], leader, &timing);
        sessions[i].dropped = timing.behind - 2 * timing.behind_noise > TIE;
    }
}

static bool is_race_done(struct session *sessions, int count, double elapsed)
{
    double budget = RACE_BUDGETS * sessions->protocol->sample_seconds * count;
    for (int i = 0; i < count; i++)
        if (!sessions[i].dropped && !is_done(&sessions[i], elapsed, budget))
            return false;
    return true;
}

// A few rounds are enough for subjects that are far behind.
static bool is_out(const struct session *session)
{
    return session->dropped || (session->is_far && session->count >= FEW_SAMPLES);
}

static enum kg_status race(struct session *sessions, int count, bool drops)
{
    double least = INFINITY;
    for (int i = 0; i < count; i++) {
        enum kg_status status = run_first(&sessions[i]);
        if (!status)
            status = warm_up(&sessions[i]);
        if (status)
            return status;
        least = fmin(least, sessions[i].least);
    }
    for (int i = 0; i < count; i++)
        sessions[i].is_far = sessions[i].least > FAR * least;
    double start = now(sessions);
    for (int round = 0; round == 0 || !is_race_done(sessions, count, now(sessions) - start);
         round++) {
        // Each round starts with another subject, so that the order favours none.
        for (int i = 0; i < count; i++) {
            struct session *next = &sessions[(round + i) % count];
            enum kg_status status = is_out(next) ? KG_OK : take_turn(next);
            if (status)
                return status;
        }
        if (drops)
            drop_losers(sessions, count);
    }
    return KG_OK;
}

static void finish_race(struct session *sessions, int count, struct kg_timing *timings)
{
    struct session *leader = &sessions[find_leader(sessions, count)];
    for (int i = 0; i < count; i++) {
        finish(&sessions[i], &timings[i]);
        compare_with(&sessions[i], leader, &timings[i]);
        timings[i].abandoned = sessions[i].dropped;
    }
}

double kg_time_uncertainty(const struct kg_timing *timing)
{
    return timing->samples > 0 ? 1.57 * timing->spread / sqrt(timing->samples) : 0;
}

void kg_protocol_print(const struct kg_protocol *protocol, struct kg_text *text)
{
    kg_text_format(text, "%s %s", protocol->cache == KG_COLD ? "cold" : "warm",
                   protocol->graph ? "graph" : "launch");
}

bool kg_protocol_read(const char *text, struct kg_protocol *protocol)
{
    *protocol = kg_protocol_default;
    int caches = 0, ways = 0;
    for (size_t length; *text; text += length) {
        text += strspn(text, " ");
        length = strcspn(text, " ");
        caches += length == 4;
        ways += length > 4;
        if (length == 4 && strncmp(text, "cold", length) == 0)
            protocol->cache = KG_COLD;
        else if (length == 4 && strncmp(text, "warm", length) == 0)
            protocol->cache = KG_WARM;
        else if (length == 6 && strncmp(text, "launch", length) == 0)
            protocol->graph = false;
        else if (length == 5 && strncmp(text, "graph", length) == 0)
            protocol->graph = true;
        else if (length > 0)
            return false;
    }
    return caches <= 1 && ways <= 1;
}

enum kg_status kg_time_one(struct kg_device *device, const struct kg_protocol *protocol,
                           const struct kg_timed *subject, double incumbent,
                           const volatile int *cancel, struct kg_timing *timing,
                           struct kg_error *error)
{
    struct session session;
    *timing = (struct kg_timing){0};
    enum kg_status status = begin(&session, device, protocol, subject, cancel, error);
    if (!status)
        status = time_subject(&session, incumbent, timing);
    end(&session);
    return status;
}

enum kg_status kg_time_race(struct kg_device *device, const struct kg_protocol *protocol,
                            const struct kg_timed *subjects, int count, bool drops,
                            const volatile int *cancel, struct kg_timing *timings,
                            struct kg_error *error)
{
    for (int i = 0; i < count; i++)
        timings[i] = (struct kg_timing){0};
    if (count <= 0)
        return KG_OK;
    struct session *sessions = calloc((size_t)count, sizeof *sessions);
    if (!sessions)
        return kg_error_memory(error, "a race");
    enum kg_status status = KG_OK;
    for (int i = 0; i < count && !status; i++)
        status = begin(&sessions[i], device, protocol, &subjects[i], cancel, error);
    if (!status)
        status = race(sessions, count, drops);
    if (!status)
        finish_race(sessions, count, timings);
    for (int i = 0; i < count; i++)
        end(&sessions[i]);
    free(sessions);
    return status;
}

int kg_time_winner(const struct kg_timing *timings, int count)
{
    for (int i = 0; i < count; i++) {
        double tie = fmax(TIE, fmin(timings[i].behind_noise, MAX_TIE));
        if (timings[i].samples > 0 && !timings[i].abandoned && timings[i].behind <= tie)
            return i;
    }
    return -1;
}
