// Expected times of scans on CUDA against measured ones (tests/data/h100_scans.txt), down columns
// also those of whole races; and that scans are not done by plain loops whose threads have a row
// each. Nothing is timed.

#include "base/files.h"
#include "cuda_choice.h"

#include <math.h>

#define MOST_RIVALS 64

static char *definitions; // of all scans that are shipped

// What took part in one race.
struct race {
    char op[32], sizes[64];
    int count;
    double seconds[MOST_RIVALS], expected[MOST_RIVALS];
    double rule; // what the rule's choice took; 0: it took no part
};

static struct summary {
    int races, ruled;
    double picked, rule, worst; // logarithms of the fastest time over these; the least of them
} columns, rows;

static void settle(const struct race *race)
{
    struct summary *summary = strcmp(race->op, "cumsum_first") == 0 ? &columns : &rows;
    int fastest = 0, pick = 0;
    if (race->count == 0)
        return;
    for (int i = 1; i < race->count; i++) {
        fastest = race->seconds[i] < race->seconds[fastest] ? i : fastest;
        pick = race->expected[i] < race->expected[pick] ? i : pick;
    }
    double picked = log(race->seconds[fastest] / race->seconds[pick]);
    summary->races++;
    summary->picked += picked;
    summary->worst = fmin(summary->worst, picked);
    if (race->rule > 0) {
        summary->ruled++;
        summary->rule += log(race->seconds[fastest] / race->rule);
    }
}

static void add_rival(struct race *race, double seconds, const char *words)
{
    struct made made = make_strided(definitions, race->op, race->sizes, NULL);
    struct kg_choice choice, guess;
    CHECK_STATUS(made.status, KG_OK, &made.error);
    CHECK(race->count < MOST_RIVALS);
    if (made.status == KG_OK &&
        kg_choice_read(made.problem, &facts, &kg_target_cuda, words, &choice)) {
        kg_choice_guess(made.problem, &facts, &kg_target_cuda, &guess);
        if (guess.matches[0] == choice.matches[0] &&
            memcmp(&guess.configs[0], &choice.configs[0], sizeof guess.configs[0]) == 0)
            race->rule = seconds;
        race->seconds[race->count] = seconds;
        race->expected[race->count] = kg_choice_expected(&choice);
        CHECK(race->expected[race->count] > 0);
        race->count++;
    }
    unmake(&made);
}

// "h100 scans.kg cumsum T=f32 P=4027,D=32197"
static void start_race(const char *line, struct race *race)
{
    char dtype[16], sizes[40];
    *race = (struct race){0};
    CHECK(sscanf(line, "h100 scans.kg %31s %15s %39s", race->op, dtype, sizes) == 3);
    for (char *comma; (comma = strchr(sizes, ','));)
        *comma = ' ';
    snprintf(race->sizes, sizeof race->sizes, "%s %s", sizes, dtype);
}

static void read_races(void)
{
    char *text, *rest;
    size_t length;
    struct kg_error error = {0};
    struct race race = {0};
    CHECK_STATUS(
        kg_files_read(KG_SOURCE_DIR "/ops/scans.kg", 1 << 20, &definitions, &length, &error), KG_OK,
        &error);
    CHECK_STATUS(
        kg_files_read(KG_SOURCE_DIR "/tests/data/h100_scans.txt", 1 << 20, &text, &length, &error),
        KG_OK, &error);
    rest = text;
    for (char *line; (line = strtok_r(rest, "\n", &rest));) {
        char *words;
        if (line[0] == '#')
            continue;
        if (line[0] != ' ') {
            settle(&race);
            start_race(line, &race);
            continue;
        }
        double seconds = strtod(line, &words);
        add_rival(&race, seconds, strstr(words, "scan"));
    }
    settle(&race);
    free(text);
}

static void measured_times(void)
{
    describe_gpu("h100", "sm_90a");
    read_races();
    double picked = exp(columns.picked / columns.races), rule = exp(rows.rule / rows.ruled);
    printf("what is expected to be fastest reaches %.3f of the fastest down columns, at worst "
           "%.3f; the rule %.3f along rows, of %d races\n",
           picked, exp(columns.worst), rule, rows.ruled);
    CHECK(columns.races == 24 && rows.races == 31 && rows.ruled >= 27);
    CHECK(picked > 0.93 && exp(columns.worst) > 0.65);
    CHECK(rule > 0.95);
}

// A thread for each row reads and writes lines of its own: 21 ms instead of 0.35 for the first.
static void rows_of_threads(void)
{
    describe_gpu("h100", "sm_90a");
    check_choice_of(definitions, "cumsum_reverse", "P=1111695 D=232 T=f16", "scan: ");
    check_choice_of(definitions, "cumsum_masked", "P=137016 D=33 T=f16", "scan: ");
    check_choice_of(definitions, "cumsum", "P=4000000 D=16 T=f32", "scan: ");
    check_choice_of(definitions, "cumsum_first", "P=620 D=78400 T=bf16", "scan: ");
    check_choice_of(definitions, "cumsum_first", "P=62735 D=5 T=f16", "scan: ");
}

TEST_MAIN(measured_times, rows_of_threads)
