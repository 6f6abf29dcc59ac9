// Fits the constants of the time model of matrix products on CUDA (cuda_contract_times.h) to
// measured times, and reports how well they order shapes that were not part of the fit.
//
//     fit_products [--least SHARE] [FOLDER]
//
// FOLDER contains h100_spaces.txt, h100_products.txt and h100_choices.txt; default: tests/data.
// Prints the share of pairs of configs that are ordered correctly by the shipped constants, by
// constants fitted to everything, and for each shape of the spaces by constants fitted to all other
// shapes: the honest figure, with exit status 1 if it is below SHARE. Lastly prints the constants
// fitted to everything, in the form of cuda_contract_times.c. Pairs within two percent of each
// other do not count. Nothing runs, and no device is needed.
//
// The fit: damped least squares (with a linear loss for outliers) of the logarithms of expected
// over measured times, in the logarithms of the constants. Whole spaces have the largest weight.
// The shipped constants are fitted to all shapes, so a fit starts from half or twice of each of
// them.

#include "base/arena.h"
#include "base/cholesky.h"
#include "base/files.h"
#include "device/device.h"
#include "gen/built.h"
#include "gen/cuda/contract/cuda_contract.h"
#include "gen/cuda/contract/cuda_contract_times.h"
#include "lang/lang.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RACES = 256, MAX_SAMPLES = 8192, MAX_FILE = 1 << 22, WORDS = 256 };

// The time of one config. `choice` owns what the plan points to.
struct sample {
    struct kg_choice *choice;
    struct kg_cuda_contract_plan plan;
    double measured, weight; // seconds; in the fit
    int race;
};

static struct race {
    char sizes[64];
    bool is_space;
    int first, count; // samples
} races[MAX_RACES];
static struct sample samples[MAX_SAMPLES];
static int race_count, sample_count;

static const char definition[] = "op nt(a: f16[M, K], b: f16[N, K]) -> (c: f16[M, N])\n"
                                 "{ c[m, n] = sum(k) a[m, k] * b[n, k] }\n";
static struct kg_arena arena; // lives as long as the program
static struct kg_error error;

static void stop(const char *doing)
{
    fprintf(stderr, "fit_products: %s: %s\n", doing, error.text);
    exit(1);
}

static void *need(void *memory)
{
    if (!memory) {
        kg_error_memory(&error, "a fit");
        stop("allocating");
    }
    return memory;
}

// ---- Measurements ----

// The problem is allocated in the arena.
static const struct kg_problem *problem_of(const char *sizes)
{
    static struct kg_file *file;
    struct kg_op *op, *instance;
    struct kg_bindings bindings;
    struct kg_problem *problem;
    long long m, n, k;
    int64_t values[KG_MAX_SIZES] = {0};
    if (!file &&
        kg_lang_parse(&arena, "nt.kg", definition, sizeof definition - 1, &file, &error) != KG_OK)
        stop("reading the definition");
    if (sscanf(sizes, "M=%lld N=%lld K=%lld", &m, &n, &k) != 3) {
        kg_error_set(&error, KG_ERROR_ARGUMENT, "'%s' does not say M=.. N=.. K=..", sizes);
        stop("reading a race");
    }
    if (kg_lang_select(file, "nt", &op, &error) != KG_OK)
        stop("reading the definition");
    for (int i = 0; i < op->size_count; i++)
        values[i] = op->sizes[i]->name[0] == 'M' ? m : op->sizes[i]->name[0] == 'N' ? n : k;
    kg_lang_default_bindings(op, &bindings);
    if (kg_lang_instantiate(&arena, op, &bindings, &instance, &error) != KG_OK ||
        kg_problem_make(instance, values, NULL, &problem, &error) != KG_OK)
        stop("making the problem");
    return problem;
}

static void add_sample(const struct kg_device_facts *facts, const struct kg_problem *problem,
                       const char *line)
{
    char *config, words[WORDS];
    struct sample *sample = &samples[sample_count];
    struct kg_choice *choice = need(malloc(sizeof *choice));
    double measured = strtod(line, &config) * 1e-6;
    config += strspn(config, " ");
    snprintf(words, sizeof words, "%s%s%s", config, strstr(config, "raster=") ? "" : " raster=0",
             strstr(config, "maxnreg=") ? "" : " maxnreg=0");
    if (sample_count == MAX_SAMPLES || !problem || !(measured > 0) ||
        !kg_choice_read(problem, facts, &kg_target_cuda, words, choice)) {
        kg_error_set(&error, KG_ERROR_ARGUMENT, "no time and config, or too many: '%s'", line);
        stop("reading a race");
    }
    *sample = (struct sample){.choice = choice, .measured = measured, .race = race_count - 1};
    kg_cuda_contract_plan_make(choice->matches[0], &choice->configs[0], &sample->plan);
    races[race_count - 1].count++;
    sample_count++;
}

// `weight`: of each race, whatever the number of its samples.
static void read_races(const struct kg_device_facts *facts, const char *folder, const char *name,
                       bool are_spaces, double weight)
{
    char path[4096], *text;
    size_t length;
    const struct kg_problem *problem = NULL;
    int first = race_count;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (kg_files_read(path, MAX_FILE, &text, &length, &error) != KG_OK)
        stop("reading races");
    for (char *line = text, *next; *line; line = next) {
        size_t end = strcspn(line, "\n");
        next = line + end + (line[end] == '\n');
        line[end] = 0;
        if (line[0] == '#')
            continue;
        if (line[0] == ' ') {
            add_sample(facts, problem, line);
            continue;
        }
        if (race_count == MAX_RACES) {
            kg_error_set(&error, KG_ERROR_ARGUMENT, "more than %d races", MAX_RACES);
            stop("reading races");
        }
        struct race *race = &races[race_count++];
        *race = (struct race){.is_space = are_spaces, .first = sample_count};
        snprintf(race->sizes, sizeof race->sizes, "%s", line);
        problem = problem_of(line);
    }
    for (int r = first; r < race_count; r++)
        for (int s = races[r].first; s < races[r].first + races[r].count; s++)
            samples[s].weight = weight / sqrt(races[r].count);
    free(text);
}

static double expected(const struct sample *sample, const struct kg_cuda_contract_times *times)
{
    struct kg_cuda_contract_plan plan = sample->plan;
    plan.times = times;
    return kg_cuda_contract_expect(&plan);
}

// ---- The fit ----

#define CONSTANT(name)                                                                             \
    {                                                                                              \
#name, offsetof(struct kg_cuda_contract_times, name)                                       \
    }
static const struct {
    const char *name;
    size_t offset;
} constants[] = {
    CONSTANT(launch),
    CONSTANT(shared_rate),
    CONSTANT(l2_latency),
    CONSTANT(memory_latency),
    CONSTANT(bandwidth_share),
    CONSTANT(memory_start),
    CONSTANT(streamed_saving),
    CONSTANT(reread_share),
    CONSTANT(exposed_latency),
    CONSTANT(tile_end),
    CONSTANT(tile_store),
    CONSTANT(cluster_fold),
    CONSTANT(cluster_fold_tile),
    CONSTANT(cluster_next),
    CONSTANT(cluster_barrier),
    CONSTANT(exposed_end),
    CONSTANT(fold_launch),
    CONSTANT(fold_bandwidth),
    CONSTANT(overlap_loss),
    CONSTANT(busy_stages),
    CONSTANT(matrix_share),
    CONSTANT(full_columns),
    CONSTANT(operand_read),
    CONSTANT(unaligned_copy),
    CONSTANT(unaligned_reread),
    CONSTANT(pair_m),
    CONSTANT(pair_n),
    CONSTANT(stream_k_flag),
    CONSTANT(stream_k_tile),
};
enum { CONSTANTS = sizeof constants / sizeof *constants };

static double *constant_of(struct kg_cuda_contract_times *times, int i)
{
    return (double *)((char *)times + constants[i].offset);
}

static void move(const struct kg_cuda_contract_times *from, const double *by,
                 struct kg_cuda_contract_times *to)
{
    *to = *from;
    for (int i = 0; i < CONSTANTS; i++)
        *constant_of(to, i) *= exp(by[i]);
}

// A fit to everything but the held-out shape, if there is one.
struct fit {
    const char *held_out;
    struct kg_cuda_contract_times start;
    double at[CONSTANTS]; // logarithms of the constants over those of the start
    double matrix[CONSTANTS * CONSTANTS], right[CONSTANTS];
};

// `draw`: the pull of constants towards the start, for those that no time depends on. `large`:
// errors beyond it count linearly instead of quadratically.
static const double draw = 0.002, large = 0.02;

static bool takes_part(const struct fit *fit, const struct sample *sample)
{
    return !fit->held_out || strcmp(races[sample->race].sizes, fit->held_out) != 0;
}

static double residual(const struct sample *sample, const struct kg_cuda_contract_times *times)
{
    return sample->weight * log(expected(sample, times) / sample->measured);
}

static double cost(const struct fit *fit, const double *at)
{
    struct kg_cuda_contract_times times;
    double sum = 0;
    move(&fit->start, at, &times);
    for (int s = 0; s < sample_count; s++)
        if (takes_part(fit, &samples[s])) {
            double ratio = residual(&samples[s], &times) / large;
            sum += 2 * large * large * (sqrt(1 + ratio * ratio) - 1);
        }
    for (int i = 0; i < CONSTANTS; i++)
        sum += draw * draw * at[i] * at[i];
    return sum;
}

// Sets up the equations of a step, without damping.
static void linearise(struct fit *fit)
{
    const double nudge = 1e-4;
    static struct kg_cuda_contract_times nudged[CONSTANTS];
    struct kg_cuda_contract_times times;
    double slope[CONSTANTS];
    memset(fit->matrix, 0, sizeof fit->matrix);
    move(&fit->start, fit->at, &times);
    for (int i = 0; i < CONSTANTS; i++) {
        nudged[i] = times;
        *constant_of(&nudged[i], i) *= exp(nudge);
        fit->matrix[i * CONSTANTS + i] = draw * draw;
        fit->right[i] = -draw * draw * fit->at[i];
    }
    for (int s = 0; s < sample_count; s++) {
        if (!takes_part(fit, &samples[s]))
            continue;
        double here = residual(&samples[s], &times), ratio = here / large;
        double counts = 1 / sqrt(1 + ratio * ratio);
        for (int i = 0; i < CONSTANTS; i++)
            slope[i] = (residual(&samples[s], &nudged[i]) - here) / nudge;
        for (int i = 0; i < CONSTANTS; i++) {
            fit->right[i] -= counts * slope[i] * here;
            for (int j = 0; j <= i; j++)
                fit->matrix[i * CONSTANTS + j] += counts * slope[i] * slope[j];
        }
    }
}

// Returns false if no step reduces the cost.
static bool step(struct fit *fit, double *now, double *damping)
{
    linearise(fit);
    for (int tries = 0; tries < 12; tries++, *damping *= 4) {
        double matrix[CONSTANTS * CONSTANTS], by[CONSTANTS], at[CONSTANTS];
        memcpy(matrix, fit->matrix, sizeof matrix);
        memcpy(by, fit->right, sizeof by);
        for (int i = 0; i < CONSTANTS; i++)
            matrix[i * CONSTANTS + i] *= 1 + *damping;
        if (!kg_cholesky_solve(matrix, by, CONSTANTS))
            continue;
        for (int i = 0; i < CONSTANTS; i++)
            at[i] = fit->at[i] + by[i];
        double then = cost(fit, at);
        if (then < *now) {
            memcpy(fit->at, at, sizeof at);
            bool helps = then < *now * (1 - 1e-4);
            *now = then;
            *damping /= 8;
            return helps;
        }
    }
    return false;
}

static void fit_times(const char *held_out, struct kg_cuda_contract_times *fitted)
{
    enum { MAX_STEPS = 60 };
    struct fit fit = {.held_out = held_out};
    double elsewhere[CONSTANTS];
    for (int i = 0; i < CONSTANTS; i++)
        elsewhere[i] = i % 2 == 0 ? log(2) : -log(2);
    move(&kg_cuda_contract_times_of_space, elsewhere, &fit.start);
    double now = cost(&fit, fit.at), damping = 1e-2;
    for (int i = 0; i < MAX_STEPS && step(&fit, &now, &damping); i++)
        continue;
    move(&fit.start, fit.at, fitted);
}

// ---- Pairs ----

struct pairs {
    int right, all;
};

static void count_pairs(const struct race *race, const struct kg_cuda_contract_times *times,
                        struct pairs *pairs)
{
    double by[MAX_SAMPLES];
    const struct sample *first = &samples[race->first];
    for (int i = 0; i < race->count; i++)
        by[i] = expected(&first[i], times);
    for (int i = 0; i < race->count; i++)
        for (int j = 0; j < i; j++) {
            double ratio = first[i].measured / first[j].measured;
            if (ratio < 1.02 && ratio > 1 / 1.02)
                continue;
            pairs->all++;
            pairs->right += (ratio > 1) == (by[i] > by[j]);
        }
}

static double share(struct pairs pairs)
{
    return pairs.all > 0 ? (double)pairs.right / pairs.all : 0;
}

static void report(const char *label, const struct kg_cuda_contract_times *times)
{
    struct pairs spaces = {0}, others = {0};
    for (int r = 0; r < race_count; r++)
        count_pairs(&races[r], times, races[r].is_space ? &spaces : &others);
    printf("%-28s %.3f of %d pairs of whole spaces, %.3f of %d of races\n", label, share(spaces),
           spaces.all, share(others), others.all);
    fflush(stdout);
}

static double hold_out(void)
{
    struct pairs all = {0};
    for (int r = 0; r < race_count; r++) {
        if (!races[r].is_space)
            continue;
        struct kg_cuda_contract_times times;
        struct pairs pairs = {0};
        fit_times(races[r].sizes, &times);
        count_pairs(&races[r], &times, &pairs);
        all.right += pairs.right;
        all.all += pairs.all;
        printf("  %-26s %.3f of %d\n", races[r].sizes, share(pairs), pairs.all);
        fflush(stdout);
    }
    printf("%-28s %.4f of %d pairs of whole spaces\n", "each shape held out", share(all), all.all);
    return share(all);
}

int main(int count, char **arguments)
{
    bool asks = count > 2 && strcmp(arguments[1], "--least") == 0;
    const char *folder = count > 1 + 2 * asks ? arguments[1 + 2 * asks] : "tests/data";
    struct kg_device *device;
    struct kg_cuda_contract_times fitted;
    if (count > 2 + 2 * asks || folder[0] == '-') {
        fprintf(stderr, "usage: fit_products [--least SHARE] [FOLDER]\n");
        return 2;
    }
    if (kg_device_open("sm_90a", "", 1, &device, &error) != KG_OK)
        stop("describing the device");
    read_races(&device->facts, folder, "h100_spaces.txt", true, 3);
    read_races(&device->facts, folder, "h100_products.txt", false, 0.7);
    read_races(&device->facts, folder, "h100_choices.txt", false, 0.3);
    printf("%d times in %d races\n", sample_count, race_count);
    report("what ships", &kg_cuda_contract_times_of_space);
    fit_times(NULL, &fitted);
    report("fitted to all of it", &fitted);
    double held_out = hold_out();
    puts("\nfitted to all of it:");
    for (int i = 0; i < CONSTANTS; i++)
        printf("    .%s = %.3g,\n", constants[i].name, *constant_of(&fitted, i));
    kg_device_close(device);
    return asks && held_out < strtod(arguments[2], NULL);
}
