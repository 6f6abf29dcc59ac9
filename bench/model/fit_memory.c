// Fits the constants of the time model of memory-bound kernels (cuda_memory_times.h) to measured
// times, and reports how good a choice by expected times is.
//
//     fit_memory [--show] [--fit] FILE...
//
// A file contains races as bench_choices --draw prints them: a line `h200 softmax.kg softmax T=f16
// P=4096,D=1024` names the GPU and the problem; the lines below it have microseconds, registers of
// a thread, and a choice, the first of which was the rule's. For each race, and for all together,
// prints three ratios to the time of the fastest choice: those of the choice that is expected to be
// fastest, of the first one, and of the rule's choice today if it was timed. With --fit, fits
// constants to every other race, prints how these choose in the other races, and constants fitted
// to all. Nothing runs, and no device is needed.
//
// The fit: coordinate descent with shrinking steps on the logarithms of the constants, minimising
// the squared logarithms of expected over measured times. Fast choices of a race have more weight.

#include "asm/gpu.h"
#include "base/arena.h"
#include "base/files.h"
#include "gen/built.h"
#include "gen/cuda/cuda_memory_time.h"
#include "gen/cuda/reduce/cuda_reduce.h"
#include "gen/cuda/scan/cuda_scan.h"
#include "gen/families.h"
#include "lang/lang.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RACES = 512, MAX_SAMPLES = 1 << 16, MAX_FILE = 1 << 24, MAX_GROUPS = 4 };

// The time of one choice. The families' description of it does not depend on the constants.
struct sample {
    int groups, families[MAX_GROUPS], counts[MAX_GROUPS];
    struct kg_cuda_memory_work works[MAX_GROUPS][KG_MAX_GRIDS];
    double seconds, weight; // measured; in the fit
    int registers;
    char *choice;
};

static struct race {
    char *name;
    struct kg_device_facts facts;
    int first, count; // samples
    char *rule;       // the rule's choice today
} races[MAX_RACES];
static struct sample *samples;
static int race_count, sample_count;
static struct kg_arena arena; // lives as long as the program
static struct kg_error error;

static void stop(const char *doing)
{
    fprintf(stderr, "fit_memory: %s: %s\n", doing, error.text);
    exit(1);
}

static char *copy_text(const char *text)
{
    char *copy = strdup(text);
    if (!copy) {
        kg_error_memory(&error, "a fit");
        stop("allocating");
    }
    return copy;
}

// ---- Measurements ----

static void describe_gpu(const char *handle, struct kg_device_facts *facts)
{
    struct kg_device *device;
    const struct kg_gpu *gpu = kg_gpu_find(handle);
    char isa[16];
    if (!gpu) {
        kg_error_set(&error, KG_ERROR_ARGUMENT, "no GPU '%s' is known", handle);
        stop("reading a race");
    }
    snprintf(isa, sizeof isa, "sm_%d", gpu->sm->sm);
    if (kg_device_open(isa, "", 1, &device, &error) != KG_OK)
        stop("describing the device");
    *facts = device->facts;
    snprintf(facts->name, sizeof facts->name, "%s", gpu->name);
    facts->units = gpu->sms;
    facts->clock = gpu->clock;
    facts->bandwidth = gpu->bandwidth;
    kg_device_close(device);
}

static void bind(const struct kg_op *op, const char *dtype, const char *sizes,
                 struct kg_bindings *bindings, int64_t *values)
{
    kg_lang_default_bindings(op, bindings);
    for (int i = 0; i < op->typevar_count; i++)
        for (int d = 0; d < KG_DTYPE_COUNT; d++)
            if (strcmp(dtype, kg_dtypes[d].name) == 0)
                bindings->dtypes[i] = (enum kg_dtype)d;
    for (int i = 0; i < op->size_count; i++) {
        size_t length = strlen(op->sizes[i]->name);
        values[i] = 1;
        for (const char *at = sizes; at; at = strchr(at, ','), at = at ? at + 1 : NULL)
            if (strncmp(at, op->sizes[i]->name, length) == 0 && at[length] == '=')
                values[i] = strtoll(at + length + 1, NULL, 10);
    }
}

static const struct kg_problem *read_problem(const char *line, struct kg_device_facts *facts)
{
    char gpu[32], path[64], name[64], dtype[16], sizes[128], *text, full[128];
    size_t length;
    struct kg_file *file;
    struct kg_op *op, *instance;
    struct kg_bindings bindings;
    struct kg_problem *problem;
    int64_t values[KG_MAX_SIZES];
    if (sscanf(line, "%31s %63s %63s T=%15s %127s", gpu, path, name, dtype, sizes) != 5) {
        kg_error_set(&error, KG_ERROR_ARGUMENT, "no problem: '%s'", line);
        stop("reading a race");
    }
    describe_gpu(gpu, facts);
    snprintf(full, sizeof full, "ops/%s", path);
    if (kg_files_read(full, 1 << 20, &text, &length, &error) != KG_OK ||
        kg_lang_parse(&arena, path, text, length, &file, &error) != KG_OK ||
        kg_lang_select(file, name, &op, &error) != KG_OK)
        stop("reading the definition");
    bind(op, dtype, sizes, &bindings, values);
    if (kg_lang_instantiate(&arena, op, &bindings, &instance, &error) != KG_OK ||
        kg_problem_make(instance, values, NULL, &problem, &error) != KG_OK)
        stop("making the problem");
    return problem;
}

static const struct {
    const char *name;
    kg_cuda_memory_describe *describe;
    const struct kg_cuda_memory_times *times;
} families[] = {
    {"rowwise", kg_cuda_rowwise_work, &kg_cuda_rowwise_times},
    {"reduce", kg_cuda_reduce_work, &kg_cuda_reduce_times},
    {"reduce_column", kg_cuda_reduce_work, &kg_cuda_reduce_column_times},
    {"pointwise", kg_cuda_pointwise_work, &kg_cuda_pointwise_times},
    {"scan", kg_cuda_scan_work, &kg_cuda_scan_times},
    {"direct", kg_cuda_direct_work, &kg_cuda_direct_times},
};
enum { FAMILIES = sizeof families / sizeof *families };
// Constants by family.
struct all_times {
    struct kg_cuda_memory_times of[FAMILIES];
};

// -1 for scans down columns, which have a model of their own.
static int find_family(const struct kg_match *match, const struct kg_config *config)
{
    const char *name = match->family->name;
    if (match->family == &kg_cuda_reduce &&
        kg_cuda_reduce_times_of(match, config) == &kg_cuda_reduce_column_times)
        name = "reduce_column";
    if (match->family == &kg_cuda_scan && ((const struct kg_scan_plan *)match->analysis)->column)
        return -1;
    for (int i = 0; i < FAMILIES; i++)
        if (strcmp(families[i].name, name) == 0)
            return i;
    return -1;
}

// With all parameters that the families have today.
static char *choice_text(const struct kg_choice *choice)
{
    struct kg_text text = {0};
    kg_choice_print(choice, &text);
    char *copy = copy_text(kg_text_string(&text));
    kg_text_free(&text);
    return copy;
}

static void add_sample(const struct kg_problem *problem, const struct race *race, char *line)
{
    char *at;
    struct kg_choice choice;
    struct sample *sample = &samples[sample_count];
    *sample = (struct sample){.seconds = strtod(line, &at) * 1e-6};
    sample->registers = (int)strtol(at, &at, 10);
    at += strspn(at, " ");
    // Configs that families refuse today are omitted.
    if (sample_count == MAX_SAMPLES - 1 ||
        !kg_choice_read(problem, &race->facts, &kg_target_cuda, at, &choice) ||
        choice.count > MAX_GROUPS)
        return;
    sample->choice = choice_text(&choice);
    sample->groups = choice.count;
    for (int i = 0; i < sample->groups; i++) {
        int family = sample->families[i] = find_family(choice.matches[i], &choice.configs[i]);
        if (family < 0)
            return;
        sample->counts[i] =
            families[family].describe(choice.matches[i], &choice.configs[i], sample->works[i]);
    }
    sample_count++;
}

static void end_race(struct race *race)
{
    double best = INFINITY, sum = 0;
    race->count = sample_count - race->first;
    for (int s = race->first; s < sample_count; s++)
        best = fmin(best, samples[s].seconds);
    for (int s = race->first; s < sample_count; s++)
        sum += samples[s].weight = pow(best / samples[s].seconds, 5);
    for (int s = race->first; s < sample_count; s++)
        samples[s].weight /= sum;
}

static void start_race(const char *line, const struct kg_problem **problem)
{
    struct race *race = &races[race_count++];
    struct kg_choice choice;
    *race = (struct race){.name = copy_text(line), .first = sample_count};
    *problem = read_problem(line, &race->facts);
    kg_choice_guess(*problem, &race->facts, &kg_target_cuda, &choice);
    race->rule = choice_text(&choice);
}

static void read_races(const char *path)
{
    char *text;
    size_t length;
    const struct kg_problem *problem = NULL;
    struct race *race = NULL;
    if (kg_files_read(path, MAX_FILE, &text, &length, &error) != KG_OK)
        stop("reading races");
    for (char *line = text, *next; *line; line = next) {
        size_t end = strcspn(line, "\n");
        next = line + end + (line[end] == '\n');
        line[end] = 0;
        if (line[0] == '#' || (line[0] != ' ' && race_count == MAX_RACES))
            continue;
        if (line[0] == ' ' && race) {
            add_sample(problem, race, line);
            continue;
        }
        if (race)
            end_race(race);
        start_race(line, &problem);
        race = &races[race_count - 1];
    }
    if (race)
        end_race(race);
    free(text);
}

// ---- The fit ----

#define CONSTANT(name)                                                                             \
    {                                                                                              \
#name, offsetof(struct kg_cuda_memory_times, name)                                         \
    }
static const struct {
    const char *name;
    size_t offset;
} constants[] = {
    CONSTANT(launch),  CONSTANT(next),     CONSTANT(start),   CONSTANT(trip),    CONSTANT(near),
    CONSTANT(meeting), CONSTANT(clusters), CONSTANT(access),  CONSTANT(moved),   CONSTANT(touch),
    CONSTANT(step),    CONSTANT(spilled),  CONSTANT(segment), CONSTANT(special), CONSTANT(serial),
    CONSTANT(cached),  CONSTANT(drain),    CONSTANT(edges),   CONSTANT(uneven),  CONSTANT(tail),
    CONSTANT(code),    CONSTANT(sharp),
};
enum { CONSTANTS = sizeof constants / sizeof *constants };

static double *constant_of(struct kg_cuda_memory_times *times, int i)
{
    return (double *)((char *)times + constants[i].offset);
}

static double expected(const struct race *race, const struct sample *sample,
                       const struct all_times *times)
{
    double seconds = 0;
    for (int i = 0; i < sample->groups; i++)
        seconds += kg_cuda_memory_seconds(sample->works[i], sample->counts[i], &race->facts,
                                          &times->of[sample->families[i]]);
    return seconds;
}

enum part { ALL, EVEN, ODD };

static bool is_in(int race, enum part part)
{
    return races[race].count > 0 && (part == ALL || (race % 2 == 0) == (part == EVEN));
}

// For races of one group, which is the family's.
static bool tells_of(const struct race *race, int family)
{
    const struct sample *first = &samples[race->first];
    return first->groups == 1 && first->families[0] == family;
}

// What a choice by these times loses in a race. Choices that are expected to take little more than
// the fastest count almost as much as it does, so that the cost changes smoothly.
static double lost(const struct race *race, const struct all_times *times)
{
    const double sharp = 25;
    double best = INFINITY, first = INFINITY, sum = 0, all = 0;
    for (int s = race->first; s < race->first + race->count; s++) {
        best = fmin(best, samples[s].seconds);
        first = fmin(first, expected(race, &samples[s], times));
    }
    for (int s = race->first; s < race->first + race->count; s++) {
        double share = pow(first / expected(race, &samples[s], times), sharp);
        sum += share * (samples[s].seconds / best - 1);
        all += share;
    }
    return sum / all;
}

static double cost(const struct all_times *times, int family, enum part part)
{
    // Constants that no time depends on keep their values. Errors beyond `large` count linearly.
    const double draw = 0.02, large = 0.1, loss = 3;
    struct kg_cuda_memory_times now = times->of[family], start = *families[family].times;
    double sum = 0;
    for (int i = 0; i < CONSTANTS; i++)
        if (*constant_of(&start, i) > 0)
            sum += draw * pow(log(*constant_of(&now, i) / *constant_of(&start, i)), 2);
    for (int r = 0; r < race_count; r++) {
        if (!is_in(r, part) || !tells_of(&races[r], family))
            continue;
        for (int s = races[r].first; s < races[r].first + races[r].count; s++) {
            double off = log(expected(&races[r], &samples[s], times) / samples[s].seconds) / large;
            sum += samples[s].weight * (sqrt(1 + off * off) - 1);
        }
        sum += loss * lost(&races[r], times);
    }
    return sum;
}

static void fit_family(struct all_times *times, int family, enum part part)
{
    double steps[CONSTANTS], now = cost(times, family, part);
    for (int i = 0; i < CONSTANTS; i++)
        steps[i] = 0.3;
    for (int sweep = 0; sweep < 60; sweep++)
        for (int i = 0; i < CONSTANTS; i++) {
            double *constant = constant_of(&times->of[family], i), before = *constant;
            *constant = before * exp(steps[i]);
            double then = cost(times, family, part);
            if (then < now) {
                now = then;
                steps[i] *= 1.3;
            } else { // the other direction next time
                *constant = before;
                steps[i] *= -0.5;
            }
        }
}

static void fit(struct all_times *times, enum part part)
{
    for (int i = 0; i < FAMILIES; i++)
        fit_family(times, i, part);
}

// ---- Output ----

struct summary {
    double sum, worst;
    int count;
};

static void add(struct summary *summary, double ratio)
{
    summary->sum += log(ratio);
    summary->worst = summary->count == 0 ? ratio : fmin(summary->worst, ratio);
    summary->count++;
}

static void print_summary(const char *label, const struct summary *summary)
{
    if (summary->count > 0)
        printf("%-28s %.3f, worst %.3f, of %d\n", label, exp(summary->sum / summary->count),
               summary->worst, summary->count);
}

static int find_choice(const struct race *race, const char *choice)
{
    for (int s = race->first; s < race->first + race->count; s++)
        if (strcmp(samples[s].choice, choice) == 0)
            return s;
    return -1;
}

// Pairs of a race's choices that are more than 2 % apart, and how many are ordered correctly.
static void count_pairs(const struct race *race, const struct all_times *times, double *right,
                        double *pairs)
{
    for (int i = race->first; i < race->first + race->count; i++)
        for (int j = race->first; j < i; j++) {
            double ratio = samples[i].seconds / samples[j].seconds;
            if (ratio < 1.02 && ratio > 1 / 1.02)
                continue;
            *pairs += 1;
            *right += (ratio > 1) ==
                      (expected(race, &samples[i], times) > expected(race, &samples[j], times));
        }
}

static void report(const char *label, const struct all_times *times, enum part part, bool show)
{
    struct summary picked = {0}, first = {0}, rule = {0};
    double off = 0, all = 0, right = 0, pairs = 0;
    printf("%s\n", label);
    for (int r = 0; r < race_count; r++) {
        const struct race *race = &races[r];
        int best = race->first, pick = race->first, ruled = find_choice(race, race->rule);
        if (!is_in(r, part))
            continue;
        for (int s = race->first; s < race->first + race->count; s++) {
            double seconds = expected(race, &samples[s], times);
            best = samples[s].seconds < samples[best].seconds ? s : best;
            pick = seconds < expected(race, &samples[pick], times) ? s : pick;
            off += samples[s].weight * fabs(log(seconds / samples[s].seconds));
            all += samples[s].weight;
        }
        count_pairs(race, times, &right, &pairs);
        double least = samples[best].seconds;
        add(&picked, least / samples[pick].seconds);
        add(&first, least / samples[race->first].seconds);
        if (ruled >= 0)
            add(&rule, least / samples[ruled].seconds);
        if (!show)
            continue;
        printf("%.3f %.3f %.3f  %s\n", least / samples[pick].seconds,
               least / samples[race->first].seconds,
               ruled >= 0 ? least / samples[ruled].seconds : 0, race->name);
        printf("    best %7.1f (%7.1f) %s\n", least * 1e6,
               expected(race, &samples[best], times) * 1e6, samples[best].choice);
        printf("    pick %7.1f (%7.1f) %s\n", samples[pick].seconds * 1e6,
               expected(race, &samples[pick], times) * 1e6, samples[pick].choice);
        printf("    rule now %s\n", race->rule);
    }
    print_summary("  expected to be fastest", &picked);
    print_summary("  first of the race", &first);
    print_summary("  today's rule, if timed", &rule);
    printf("  mean of |log(expected / measured)|: %.3f; pairs in the right order: %.3f\n",
           off / all, right / pairs);
}

int main(int count, char **arguments)
{
    bool show = false, fits = false;
    samples = calloc(MAX_SAMPLES, sizeof *samples);
    for (int i = 1; i < count; i++) {
        if (strcmp(arguments[i], "--show") == 0)
            show = true;
        else if (strcmp(arguments[i], "--fit") == 0)
            fits = true;
        else if (samples)
            read_races(arguments[i]);
    }
    if (race_count == 0 || sample_count == 0) {
        fprintf(stderr, "usage: fit_memory [--show] [--fit] FILE...\n");
        return 2;
    }
    printf("%d times in %d races\n", sample_count, race_count);
    struct all_times times, even;
    for (int i = 0; i < FAMILIES; i++)
        times.of[i] = *families[i].times;
    even = times;
    report("what ships", &times, ALL, show);
    if (!fits)
        return 0;
    fit(&even, EVEN);
    fit(&times, ALL);
    report("fitted to every other race: those", &even, EVEN, false);
    report("the races held out", &even, ODD, false);
    report("fitted to all", &times, ALL, show);
    for (int f = 0; f < FAMILIES; f++) {
        printf("kg_cuda_%s_times:\n", families[f].name);
        for (int i = 0; i < CONSTANTS; i++)
            printf("    .%s = %.3g,\n", constants[i].name, *constant_of(&times.of[f], i));
    }
    return 0;
}
