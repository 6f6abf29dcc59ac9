// Fits the constants of the time model of matrix products on CUDA (cuda_contract_times.h) to
// measured times, and reports how well they order shapes that were not part of the fit.
//
//     fit_products [--least SHARE] [FOLDER]
//
// FOLDER contains h100_spaces.txt, h100_products.txt, h100_choices.txt and h200_products.txt;
// default: tests/data. For the shipped constants, and for constants fitted to everything, prints
// the share of pairs of configs that are ordered correctly, and how fast the configs are that are
// expected to be the fastest of their race; then the same for shapes that were held out: of the
// spaces one by one, with exit status 1 if their share of pairs is below SHARE, and of those that a
// seed drew in FOLDS parts. Lastly prints the constants fitted to everything, in the form of
// cuda_contract_times.c. Pairs within two percent of each other do not count. Nothing runs, and no
// device is needed.
//
// The fit: damped least squares (with a linear loss for outliers) of the logarithms of measured
// over expected times, in the logarithms of the constants. What a race's errors have in common
// counts a fifth: constants choose between configs of one shape. Slow configs count less. A fit to
// everything starts from the constants for the rule's table of tiles. As the shipped constants are
// fitted to all shapes, those that hold shapes out start from half or twice of each of them.

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

enum { MAX_RACES = 512, FOLDS = 4, MAX_SAMPLES = 8192, MAX_FILE = 1 << 22, WORDS = 256 };

// The time of one config. `choice` owns what the plan points to.
struct sample {
    struct kg_choice *choice;
    struct kg_cuda_contract_plan plan;
    double measured, weight; // seconds; in the fit
    int race;
};

enum kind { SPACE, LISTED, DRAWN };

static struct race {
    char shape[96];
    enum kind kind;
    int first, count; // samples
} races[MAX_RACES];
static struct sample samples[MAX_SAMPLES];
static int race_count, sample_count;

static const char definitions[] =
    "op matmul_nt(a: T[M, K], b: T[N, K]) -> (c: T[M, N]) where T in f16 bf16\n"
    "{ c[m, n] = sum(k) a[m, k] * b[n, k] }\n"
    "op matmul(a: T[M, K], b: T[K, N]) -> (c: T[M, N]) where T in f16 bf16\n"
    "{ c[m, n] = sum(k) a[m, k] * b[k, n] }\n"
    "op matmul_batched(a: T[B, M, K], b: T[B, K, N]) -> (c: T[B, M, N]) where T in f16 bf16\n"
    "{ c[b, m, n] = sum(k) a[b, m, k] * b[b, k, n] }\n";
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

static void stop_reading(const char *line)
{
    kg_error_set(&error, KG_ERROR_ARGUMENT, "'%s' is no product with its sizes", line);
    stop("reading a race");
}

// A line has sizes, and before them the op and its dtype where they are not matmul_nt and f16. The
// problem is allocated in the arena.
static const struct kg_problem *problem_of(const char *line)
{
    static struct kg_file *file;
    struct kg_op *op, *instance;
    struct kg_bindings bindings;
    struct kg_problem *problem;
    int64_t sizes[KG_MAX_SIZES] = {0};
    char words[WORDS], *name = NULL, *rest = words;
    if (!file && kg_lang_parse(&arena, "products.kg", definitions, sizeof definitions - 1, &file,
                               &error) != KG_OK)
        stop("reading the definitions");
    snprintf(words, sizeof words, "%s", line);
    if (!strchr(words, '=') || strcspn(words, " ") < strcspn(words, "="))
        name = strtok_r(words, " ", &rest);
    if (kg_lang_select(file, name ? name : "matmul_nt", &op, &error) != KG_OK)
        stop("reading a race");
    kg_lang_default_bindings(op, &bindings);
    for (char *word; (word = strtok_r(rest, " ", &rest));) {
        if (word[0] == '\0' || word[1] != '=')
            stop_reading(line);
        if (word[0] == 'T')
            bindings.dtypes[0] = kg_dtype_find(word + 2, strlen(word + 2));
        for (int i = 0; i < op->size_count; i++)
            if (word[0] == op->sizes[i]->name[0])
                sizes[i] = strtoll(word + 2, NULL, 10);
    }
    for (int i = 0; i < op->size_count; i++)
        if (sizes[i] <= 0)
            stop_reading(line);
    if (kg_lang_instantiate(&arena, op, &bindings, &instance, &error) != KG_OK ||
        kg_problem_make(instance, sizes, NULL, &problem, &error) != KG_OK)
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

// Races have the same weight, whatever the number of their samples; a config that takes twice as
// long as the fastest has half the weight to the power of `fast`.
static void weigh(const struct race *race, double weight, double fast)
{
    double least = INFINITY;
    for (int s = race->first; s < race->first + race->count; s++)
        least = fmin(least, samples[s].measured);
    for (int s = race->first; s < race->first + race->count; s++)
        samples[s].weight = weight / sqrt(race->count) * pow(least / samples[s].measured, fast);
}

static void read_races(const struct kg_device_facts *facts, const char *folder, const char *name,
                       enum kind kind, double weight, double fast)
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
        *race = (struct race){.kind = kind, .first = sample_count};
        snprintf(race->shape, sizeof race->shape, "%s", line);
        problem = problem_of(line);
    }
    for (int r = first; r < race_count; r++)
        weigh(&races[r], weight, fast);
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
    CONSTANT(launch),          CONSTANT(shared_rate),       CONSTANT(l2_rate),
    CONSTANT(l2_latency),      CONSTANT(memory_latency),    CONSTANT(bandwidth_share),
    CONSTANT(memory_start),    CONSTANT(streamed_saving),   CONSTANT(reread_share),
    CONSTANT(exposed_latency), CONSTANT(tile_end),          CONSTANT(tile_store),
    CONSTANT(cluster_fold),    CONSTANT(cluster_fold_tile), CONSTANT(cluster_next),
    CONSTANT(cluster_barrier), CONSTANT(exposed_end),       CONSTANT(fold_launch),
    CONSTANT(fold_bandwidth),  CONSTANT(overlap_loss),      CONSTANT(busy_stages),
    CONSTANT(matrix_share),    CONSTANT(full_columns),      CONSTANT(operand_read),
    CONSTANT(unaligned_copy),  CONSTANT(unaligned_reread),  CONSTANT(pair_m),
    CONSTANT(pair_n),          CONSTANT(stream_k_flag),     CONSTANT(stream_k_tile),
    CONSTANT(unaligned_store), CONSTANT(element_store),     CONSTANT(sector_line),
    CONSTANT(mma_share),       CONSTANT(mma_fragments),     CONSTANT(mma_unaligned),
    CONSTANT(mma_narrow),      CONSTANT(mma_registers),     CONSTANT(mma_copy),
    CONSTANT(mma_vector),      CONSTANT(mma_store),         CONSTANT(mma_unaligned_store),
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

// A fit to all races but those that are held out.
struct fit {
    const bool *held_out; // by race; NULL: none
    struct kg_cuda_contract_times start;
    double at[CONSTANTS]; // logarithms of the constants over those of the start
    double matrix[CONSTANTS * CONSTANTS], right[CONSTANTS];
};

// `draw`: the pull of constants towards the start, for those that no time depends on. `large`:
// errors beyond it count linearly instead of quadratically. `common`: the weight of the mean error
// of a race.
static const double draw = 0.003, large = 0.03, common = 0.2;

// Weighted, 0 for races that take no part.
static void find_residuals(const struct fit *fit, const struct kg_cuda_contract_times *times,
                           double *residuals)
{
    for (int r = 0; r < race_count; r++) {
        const struct race *race = &races[r];
        double mean = 0, *of_race = &residuals[race->first];
        const struct sample *sample = &samples[race->first];
        for (int i = 0; i < race->count; i++) {
            bool counts = !fit->held_out || !fit->held_out[r];
            of_race[i] = counts ? log(expected(&sample[i], times) / sample[i].measured) : 0;
            mean += of_race[i] / race->count;
        }
        for (int i = 0; i < race->count; i++)
            of_race[i] = sample[i].weight * (of_race[i] - (1 - common) * mean);
    }
}

static double cost(const struct fit *fit, const double *at)
{
    static double residuals[MAX_SAMPLES];
    struct kg_cuda_contract_times times;
    double sum = 0;
    move(&fit->start, at, &times);
    find_residuals(fit, &times, residuals);
    for (int s = 0; s < sample_count; s++) {
        double ratio = residuals[s] / large;
        sum += 2 * large * large * (sqrt(1 + ratio * ratio) - 1);
    }
    for (int i = 0; i < CONSTANTS; i++)
        sum += draw * draw * at[i] * at[i];
    return sum;
}

// Sets up the equations of a step, without damping.
static void linearise(struct fit *fit)
{
    const double nudge = 1e-3;
    static double here[MAX_SAMPLES], nudged[CONSTANTS][MAX_SAMPLES];
    struct kg_cuda_contract_times times;
    memset(fit->matrix, 0, sizeof fit->matrix);
    move(&fit->start, fit->at, &times);
    find_residuals(fit, &times, here);
    for (int i = 0; i < CONSTANTS; i++) {
        struct kg_cuda_contract_times moved = times;
        *constant_of(&moved, i) *= exp(nudge);
        find_residuals(fit, &moved, nudged[i]);
        fit->matrix[i * CONSTANTS + i] = draw * draw;
        fit->right[i] = -draw * draw * fit->at[i];
    }
    for (int s = 0; s < sample_count; s++) {
        double slope[CONSTANTS], ratio = here[s] / large, counts = 1 / sqrt(1 + ratio * ratio);
        for (int i = 0; i < CONSTANTS; i++)
            slope[i] = (nudged[i][s] - here[s]) / nudge;
        for (int i = 0; i < CONSTANTS; i++) {
            fit->right[i] -= counts * slope[i] * here[s];
            for (int j = 0; j <= i; j++)
                fit->matrix[i * CONSTANTS + j] += counts * slope[i] * slope[j];
        }
    }
}

// Returns false if no step reduces the cost much.
static bool step(struct fit *fit, double *now, double *damping)
{
    const double longest = 0.7;
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
            at[i] = fit->at[i] + fmax(-longest, fmin(by[i], longest));
        double then = cost(fit, at);
        if (then < *now) {
            memcpy(fit->at, at, sizeof at);
            bool helps = then < *now * (1 - 1e-3);
            *now = then;
            *damping /= 6;
            return helps;
        }
    }
    return false;
}

static void fit_times(const bool *held_out, struct kg_cuda_contract_times *fitted)
{
    enum { MAX_STEPS = 40 };
    struct fit fit = {.held_out = held_out, .start = kg_cuda_contract_times_of_best};
    double elsewhere[CONSTANTS];
    for (int i = 0; i < CONSTANTS; i++)
        elsewhere[i] = i % 2 == 0 ? log(2) : -log(2);
    if (held_out)
        move(&kg_cuda_contract_times_of_all, elsewhere, &fit.start);
    double now = cost(&fit, fit.at), damping = 1e-2;
    for (int i = 0; i < MAX_STEPS && step(&fit, &now, &damping); i++)
        continue;
    move(&fit.start, fit.at, fitted);
}

// ---- Judging ----

// What constants are worth for races of one kind. A choice is the config that they expect to be the
// fastest; its speed is 1 if it was.
struct worth {
    int right, pairs;
    int choices;
    double logarithms, worst; // of the choices' speeds
};

static void judge_race(const struct race *race, const struct kg_cuda_contract_times *times,
                       struct worth *worth)
{
    double by[MAX_SAMPLES], least = INFINITY;
    const struct sample *first = &samples[race->first];
    int choice = 0;
    for (int i = 0; i < race->count; i++) {
        by[i] = expected(&first[i], times);
        choice = by[i] < by[choice] ? i : choice;
        least = fmin(least, first[i].measured);
    }
    for (int i = 0; i < race->count; i++)
        for (int j = 0; j < i; j++) {
            double ratio = first[i].measured / first[j].measured;
            if (ratio < 1.02 && ratio > 1 / 1.02)
                continue;
            worth->pairs++;
            worth->right += (ratio > 1) == (by[i] > by[j]);
        }
    double speed = least / first[choice].measured;
    worth->logarithms += log(speed);
    worth->worst = worth->choices == 0 ? speed : fmin(worth->worst, speed);
    worth->choices++;
}

static double share(const struct worth *worth)
{
    return worth->pairs > 0 ? (double)worth->right / worth->pairs : 0;
}

static void print_worth(const char *label, const struct worth *worth)
{
    printf("  %-22s %.3f of %5d pairs; choices %.3f, at worst %.3f\n", label, share(worth),
           worth->pairs, exp(worth->logarithms / worth->choices), worth->worst);
    fflush(stdout);
}

static void report(const char *label, const struct kg_cuda_contract_times *times)
{
    static const char *const names[] = {"whole spaces", "listed", "drawn by a seed"};
    printf("%s\n", label);
    for (int kind = SPACE; kind <= DRAWN; kind++) {
        struct worth worth = {0};
        for (int r = 0; r < race_count; r++)
            if (races[r].kind == (enum kind)kind)
                judge_race(&races[r], times, &worth);
        print_worth(names[kind], &worth);
    }
}

// Judges races by constants fitted to all others but those of the same shape.
static void hold_out(const bool *chosen, struct worth *worth)
{
    bool held_out[MAX_RACES] = {false};
    struct kg_cuda_contract_times times;
    for (int r = 0; r < race_count; r++)
        for (int i = 0; i < race_count; i++)
            held_out[r] |= chosen[i] && strcmp(races[r].shape, races[i].shape) == 0;
    fit_times(held_out, &times);
    for (int r = 0; r < race_count; r++)
        if (chosen[r])
            judge_race(&races[r], &times, worth);
}

static double hold_out_spaces(void)
{
    struct worth worth = {0};
    for (int r = 0; r < race_count; r++) {
        bool chosen[MAX_RACES] = {false};
        if (races[r].kind != SPACE)
            continue;
        chosen[r] = true;
        hold_out(chosen, &worth);
    }
    print_worth("whole spaces", &worth);
    return share(&worth);
}

static void hold_out_drawn(void)
{
    struct worth worth = {0};
    for (int fold = 0; fold < FOLDS; fold++) {
        bool chosen[MAX_RACES] = {false};
        for (int r = 0; r < race_count; r++)
            chosen[r] = races[r].kind == DRAWN && r % FOLDS == fold;
        hold_out(chosen, &worth);
    }
    print_worth("drawn by a seed", &worth);
}

int main(int count, char **arguments)
{
    bool asks = count > 2 && strcmp(arguments[1], "--least") == 0;
    const char *folder = count > 1 + 2 * asks ? arguments[1 + 2 * asks] : "tests/data";
    struct kg_device *device, *other;
    struct kg_cuda_contract_times fitted;
    if (count > 2 + 2 * asks || folder[0] == '-') {
        fprintf(stderr, "usage: fit_products [--least SHARE] [FOLDER]\n");
        return 2;
    }
    if (kg_device_open("sm_90a", "", 1, &device, &error) != KG_OK ||
        kg_device_open("h200", "", 1, &other, &error) != KG_OK)
        stop("describing the devices");
    read_races(&device->facts, folder, "h100_spaces.txt", SPACE, 1, 0.3);
    read_races(&device->facts, folder, "h100_products.txt", LISTED, 1.5, 0.5);
    read_races(&device->facts, folder, "h100_choices.txt", LISTED, 1.5, 0.5);
    read_races(&other->facts, folder, "h200_products.txt", DRAWN, 1, 0.5);
    printf("%d times in %d races\n", sample_count, race_count);
    report("what ships", &kg_cuda_contract_times_of_all);
    report("what ships for the table of tiles", &kg_cuda_contract_times_of_best);
    fit_times(NULL, &fitted);
    report("fitted to all of it", &fitted);
    puts("held out");
    hold_out_drawn();
    double held_out = hold_out_spaces();
    puts("\nfitted to all of it:");
    for (int i = 0; i < CONSTANTS; i++)
        printf("    .%s = %.3g,\n", constants[i].name, *constant_of(&fitted, i));
    kg_device_close(device);
    kg_device_close(other);
    return asks && held_out < strtod(arguments[2], NULL);
}
