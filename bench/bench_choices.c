// Times choices of families and configs given by hand, without a search.
//
//     bench_choices [--device NAME] [--protocol WORDS] [--races N | --list | --predict] [--json]
//                   [--draw N | --anywhere N] OP.kg OP T=f16 P=65536,D=4096 [CHOICE...]
//
// Without choices, uses the rules' choice. A choice that ends in '*' stands for all that begin with
// the text before it. --list prints the choices with their expected times and does nothing else;
// --predict compiles them on all cores and prints the performance model's estimate and the points
// of their instructions, without running them. Otherwise they are timed by the protocol of
// searches: each alone or, with --races, all of them alternately, N times over with new outputs
// each time. Races are needed to compare choices where times drift; the ratio is the first choice's
// time over this one's, with the smallest and largest of all races. --draw adds N choices drawn
// from the spaces of the rule's families, the same ones in every run, as data for fitting rules and
// expected times; --anywhere adds N that are drawn with equal chances. Choices that cannot be
// compiled or launched are then omitted.

#include "base/files.h"
#include "base/json.h"
#include "gen/built.h"
#include "lang/lang.h"
#include "tune/candidates.h"
#include "tune/compiling.h"
#include "tune/test_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RACES = 99, COMPILE_LIMIT = 60 };
enum work { WORK_TIME, WORK_LIST, WORK_PREDICT };

static struct kg_error error;

// The choices and their results. `search` holds what the test rig needs of a search.
struct bench {
    struct kg_search search;
    struct kg_test_rig *rig;
    enum work work;
    int races;     // 0: each choice alone
    int draws;     // additional choices to draw
    bool anywhere; // with equal chances
    bool json;
    int count;
    int capacity;
    struct kg_compilation *items;
    struct kg_built **built;   // of all items
    struct kg_timing *timings; // of all choices, race after race
};

static void stop(const char *doing)
{
    fprintf(stderr, "bench_choices: %s: %s\n", doing, error.text);
    exit(1);
}

static void *need(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory) {
        kg_error_memory(&error, "a bench");
        stop("allocating");
    }
    return memory;
}

static void add_choice(struct bench *bench, const struct kg_choice *choice)
{
    if (bench->count == bench->capacity) {
        int capacity = bench->capacity ? bench->capacity * 2 : 16;
        struct kg_compilation *items = need((size_t)capacity, sizeof *items);
        if (bench->count > 0)
            memcpy(items, bench->items, (size_t)bench->count * sizeof *items);
        free(bench->items);
        bench->items = items;
        bench->capacity = capacity;
    }
    bench->items[bench->count++] =
        (struct kg_compilation){.problem = bench->search.problem, .choice = *choice};
}

// Adds all configs of a search whose text begins with `prefix`, up to its final '*'; for choices
// with a single family.
static void add_matching(struct bench *bench, const char *prefix)
{
    enum { MAX_CONFIGS = 1 << 18 };
    const struct kg_device_facts *facts = &bench->search.device->facts;
    struct kg_choice choice;
    struct kg_candidates candidates;
    kg_choice_guess(bench->search.problem, facts, bench->search.target, &choice);
    if (kg_candidates_list(choice.matches[0], bench->search.target, MAX_CONFIGS, NULL, NULL,
                           &candidates, &error) != KG_OK)
        stop("listing");
    for (int i = 0; i < candidates.count; i++) {
        struct kg_text text = {0};
        choice.matches[0] = candidates.readings[candidates.items[i].reading].match;
        choice.configs[0] = candidates.items[i].config;
        kg_choice_print(&choice, &text);
        if (strncmp(kg_text_string(&text), prefix, strlen(prefix) - 1) == 0)
            add_choice(bench, &choice);
        kg_text_free(&text);
    }
    kg_candidates_free(&candidates);
}

static void add_words(struct bench *bench, const char *words)
{
    struct kg_choice choice;
    size_t length = strlen(words);
    if (length > 0 && words[length - 1] == '*') {
        add_matching(bench, words);
    } else if (kg_choice_read(bench->search.problem, &bench->search.device->facts,
                              bench->search.target, words, &choice)) {
        add_choice(bench, &choice);
    } else {
        snprintf(error.text, sizeof error.text, "no such choice");
        stop(words);
    }
}

// A hash of the config, used as its random order.
static uint64_t scatter(const struct kg_config *config)
{
    uint64_t sum = 0x9e3779b97f4a7c15u;
    for (int i = 0; i < KG_MAX_PARAMETERS; i++) {
        sum = (sum ^ (uint64_t)config->value[i]) * 0xbf58476d1ce4e5b9u;
        sum ^= sum >> 29;
    }
    return sum;
}

static int compare_scattered(const void *a, const void *b)
{
    uint64_t x = scatter(&((const struct kg_candidate *)a)->config);
    uint64_t y = scatter(&((const struct kg_candidate *)b)->config);
    return (x > y) - (x < y);
}

static int compare_expected(const void *a, const void *b)
{
    double x = ((const struct kg_candidate *)a)->expected;
    double y = ((const struct kg_candidate *)b)->expected;
    return x != y ? (x > y) - (x < y) : compare_scattered(a, b);
}

// Takes up to `limit` of the open candidates, in order; `limited`: also those with a register
// limit.
static void draw_some(struct bench *bench, struct kg_choice *choice, int group,
                      struct kg_candidates *candidates, int limit, int farthest, bool limited)
{
    for (int i = 0; i < candidates->count && limit > 0; i++) {
        struct kg_candidate *candidate = &candidates->items[i];
        const struct kg_reading *reading = &candidates->readings[candidate->reading];
        bool has_limit = reading->limit >= 0 && candidate->config.value[reading->limit] > 0;
        if (candidate->state != KG_CANDIDATE_OPEN || candidate->distance > farthest ||
            (has_limit && !limited))
            continue;
        candidate->state = KG_CANDIDATE_PICKED;
        choice->matches[group] = reading->match;
        choice->configs[group] = candidate->config;
        add_choice(bench, choice);
        limit--;
    }
}

// Draws half of the configs from those that are expected to be fastest, a quarter near the rule's
// config, and the others anywhere.
static void draw_configs(struct bench *bench, const struct kg_choice *guess, int group, int draws)
{
    enum { MAX_CONFIGS = 1 << 17, NEAR = 3, ANYWHERE = 1 << 20 };
    struct kg_choice choice = *guess;
    struct kg_candidates candidates;
    if (kg_candidates_list(guess->matches[group], bench->search.target, MAX_CONFIGS, NULL, NULL,
                           &candidates, &error) != KG_OK)
        stop("listing");
    int rule = kg_candidates_find(&candidates, guess->matches[group], &guess->configs[group]);
    if (rule >= 0)
        candidates.items[rule].state = KG_CANDIDATE_PICKED;
    size_t count = (size_t)candidates.count;
    qsort(candidates.items, count, sizeof *candidates.items, compare_expected);
    if (!bench->anywhere)
        draw_some(bench, &choice, group, &candidates, candidates.expected ? draws / 2 : 0, ANYWHERE,
                  false);
    qsort(candidates.items, count, sizeof *candidates.items, compare_scattered);
    if (!bench->anywhere)
        draw_some(bench, &choice, group, &candidates, draws / 4, NEAR, true);
    draw_some(bench, &choice, group, &candidates, bench->anywhere ? draws : draws / 4, ANYWHERE,
              bench->anywhere);
    kg_candidates_free(&candidates);
}

static void draw_choices(struct bench *bench)
{
    struct kg_choice guess;
    kg_choice_guess(bench->search.problem, &bench->search.device->facts, bench->search.target,
                    &guess);
    for (int i = 0; i < guess.count && bench->draws > 0; i++)
        draw_configs(bench, &guess, i, bench->draws / guess.count);
}

static void compile_choices(struct bench *bench)
{
    const struct kg_search *search = &bench->search;
    bool warm = search->protocol.cache == KG_WARM;
    bench->built = need((size_t)bench->count, sizeof *bench->built);
    kg_compile_all(search->device, bench->items, bench->count, COMPILE_LIMIT, 0, warm, NULL, NULL);
    for (int i = 0; i < bench->count; i++) {
        bench->built[i] = bench->items[i].built;
        if (!bench->built[i] && bench->work == WORK_TIME && bench->draws == 0) {
            error = bench->items[i].error;
            stop("building");
        }
    }
}

// Drawn choices may fail: those that cannot be built and run once take no part in a race.
static void leave_out_failures(struct bench *bench)
{
    int kept = 0;
    for (int i = 0; i < bench->count; i++) {
        struct kg_timing timing;
        enum kg_status status = KG_ERROR_UNSUPPORTED;
        if (bench->built[i])
            status = kg_test_rig_race(bench->rig, &bench->built[i], 1, false, &timing, &error);
        if (status == KG_ERROR_FAULT)
            stop("timing");
        if (status == KG_OK) {
            bench->items[kept] = bench->items[i];
            bench->built[kept++] = bench->built[i];
        } else {
            kg_built_free(bench->built[i]);
        }
    }
    bench->count = kept;
}

static void time_choices(struct bench *bench)
{
    if (bench->draws > 0 && bench->races > 0)
        leave_out_failures(bench);
    int count = bench->count;
    bench->timings = need((size_t)count * (size_t)(bench->races + 1), sizeof *bench->timings);
    for (int i = 0; i < count && bench->races == 0; i++) {
        enum kg_status status = KG_OK;
        if (bench->built[i])
            status = kg_test_rig_race(bench->rig, &bench->built[i], 1, false, &bench->timings[i],
                                      &error);
        if (status && (bench->draws == 0 || status == KG_ERROR_FAULT))
            stop("timing");
    }
    for (int race = 0; race < bench->races; race++)
        if (kg_test_rig_race(bench->rig, bench->built, count, false, &bench->timings[race * count],
                             &error) != KG_OK)
            stop("racing");
}

// The expected time in seconds; 0: unknown.
static double expect(const struct bench *bench, int choice)
{
    return kg_choice_expected(&bench->items[choice].choice);
}

// Unknown figures are omitted.
static void print_forecast(struct kg_json *json, const struct bench *bench, int choice)
{
    const struct kg_compilation *item = &bench->items[choice];
    const struct kg_forecast *forecast = &item->forecast;
    kg_json_text(json, "failure", item->built ? forecast->refusal : item->error.text);
    if (!item->built)
        return;
    kg_json_number(json, "compile_seconds", item->built->compile_seconds);
    if (!forecast->known)
        return;
    kg_json_number(json, "bound", forecast->bound);
    kg_json_number(json, "estimate", forecast->estimate);
    kg_json_number(json, "points", forecast->points);
}

static void print_json(const struct bench *bench, const char *const *names)
{
    struct kg_text text = {0};
    struct kg_json json = {.text = &text};
    kg_json_begin_array(&json, NULL);
    for (int i = 0; i < bench->count; i++) {
        kg_json_begin_object(&json, NULL);
        kg_json_text(&json, "choice", names[i]);
        if (expect(bench, i) > 0)
            kg_json_number(&json, "expected", expect(bench, i));
        if (bench->work != WORK_LIST)
            kg_json_integer(&json, "registers", bench->items[i].forecast.registers);
        if (bench->work == WORK_PREDICT)
            print_forecast(&json, bench, i);
        if (bench->work == WORK_TIME) {
            kg_json_begin_array(&json, "seconds");
            for (int race = 0; race < bench->races || race == 0; race++)
                kg_json_number(&json, NULL, bench->timings[race * bench->count + i].median);
            kg_json_end_array(&json);
        }
        kg_json_end_object(&json);
    }
    kg_json_end_array(&json);
    puts(kg_text_string(&text));
    kg_text_free(&text);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_line(const struct bench *bench, int choice, const char *name)
{
    const struct kg_forecast *forecast = &bench->items[choice].forecast;
    if (bench->work != WORK_TIME && expect(bench, choice) > 0)
        printf("%9.1f us by its family  ", expect(bench, choice) * 1e6);
    if (bench->work == WORK_PREDICT)
        printf("%9.1f us expected  %7.0f points  ", forecast->estimate * 1e6, forecast->points);
    if (bench->work != WORK_TIME) {
        puts(name);
        return;
    }
    double seconds[MAX_RACES], ratios[MAX_RACES];
    const struct kg_problem *problem = bench->search.problem;
    int races = bench->races ? bench->races : 1;
    for (int race = 0; race < races; race++) {
        const struct kg_timing *timings = &bench->timings[race * bench->count];
        seconds[race] = timings[choice].median;
        ratios[race] = timings[0].median / timings[choice].median;
    }
    qsort(seconds, (size_t)races, sizeof seconds[0], compare);
    qsort(ratios, (size_t)races, sizeof ratios[0], compare);
    double bytes = problem->read_bytes + problem->write_bytes, median = seconds[races / 2];
    printf("%9.1f us  %6.1f GB/s  ", median * 1e6, bytes / median * 1e-9);
    if (bench->races)
        printf("%.3f (%.3f..%.3f)  ", ratios[races / 2], ratios[0], ratios[races - 1]);
    puts(name);
}

static void print_all(const struct bench *bench)
{
    struct kg_text *texts = need((size_t)bench->count, sizeof *texts);
    const char **names = need((size_t)bench->count, sizeof *names);
    for (int i = 0; i < bench->count; i++) {
        kg_choice_print(&bench->items[i].choice, &texts[i]);
        names[i] = kg_text_string(&texts[i]);
    }
    if (bench->json)
        print_json(bench, names);
    for (int i = 0; i < bench->count && !bench->json; i++)
        print_line(bench, i, names[i]);
    for (int i = 0; i < bench->count; i++)
        kg_text_free(&texts[i]);
    free(names);
    free(texts);
}

static bool gives(const char *word, const char *name)
{
    size_t length = strlen(name);
    return strncmp(word, name, length) == 0 && word[length] == '=';
}

static const char *next_word(const char *word)
{
    const char *comma = strchr(word, ',');
    return comma ? comma + 1 : NULL;
}

static void stop_at(const char *word, const char *what)
{
    snprintf(error.text, sizeof error.text, "'%.*s': %s", (int)strcspn(word, ","), word, what);
    stop("reading the problem");
}

// Those that are not named keep their defaults.
static void set_dtypes(const struct kg_op *op, const char *words, struct kg_bindings *bindings)
{
    for (const char *word = words; word; word = next_word(word)) {
        for (int i = 0; i < op->size_count; i++)
            if (gives(word, op->sizes[i]->name))
                stop_at(word, "sizes and params are the argument behind the dtypes");
        for (int i = 0; i < op->typevar_count; i++) {
            if (!gives(word, op->typevars[i]->name))
                continue;
            const char *name = word + strlen(op->typevars[i]->name) + 1;
            bindings->dtypes[i] = kg_dtype_find(name, strcspn(name, ","));
            if (bindings->dtypes[i] == KG_DTYPE_COUNT)
                stop_at(word, "there is no such dtype");
        }
    }
}

// Sizes that are not named are 1; params keep their defaults then.
static void set_sizes(const struct kg_op *op, const char *words, struct kg_bindings *bindings,
                      int64_t *sizes)
{
    for (int i = 0; i < op->size_count; i++)
        sizes[i] = 1;
    for (const char *word = words; word; word = next_word(word))
        for (int i = 0; i < op->size_count; i++) {
            if (!gives(word, op->sizes[i]->name))
                continue;
            const char *value = word + strlen(op->sizes[i]->name) + 1;
            sizes[i] = strtoll(value, NULL, 10);
            if (op->sizes[i]->is_param) {
                bindings->values[i] = sizes[i];
                bindings->reals[i] = strtod(value, NULL);
            }
        }
}

// `words` are file, op, dtypes, and sizes and params. The problem lives as long as the program.
static const struct kg_problem *make_problem(char **words)
{
    static struct kg_arena arena;
    char *text;
    size_t length;
    struct kg_file *file;
    struct kg_op *op, *instance;
    struct kg_bindings bindings;
    struct kg_problem *problem;
    int64_t sizes[KG_MAX_SIZES];
    if (kg_files_read(words[0], 1 << 20, &text, &length, &error) != KG_OK ||
        kg_lang_parse(&arena, words[0], text, length, &file, &error) != KG_OK ||
        kg_lang_select(file, words[1], &op, &error) != KG_OK)
        stop("reading the definition");
    kg_lang_default_bindings(op, &bindings);
    set_dtypes(op, words[2], &bindings);
    set_sizes(op, words[3], &bindings, sizes);
    if (kg_lang_instantiate(&arena, op, &bindings, &instance, &error) != KG_OK ||
        kg_problem_make(instance, sizes, NULL, &problem, &error) != KG_OK)
        stop("making the problem");
    return problem;
}

// Opens the device with the cache of compiled kernels in $KERNELGEN_HOME.
static void open_device(struct bench *bench, const char *name)
{
    char *home, cache[1024];
    if (kg_files_home(NULL, &home, &error) != KG_OK)
        stop("opening");
    snprintf(cache, sizeof cache, "%s/cache", home);
    free(home);
    if (kg_device_open(name, cache, 0, &bench->search.device, &error) != KG_OK)
        stop("opening");
    bool grids = bench->search.device->backend->runs_grids;
    bench->search.target = grids ? &kg_target_cuda : &kg_target_host;
}

static int fail_usage(void)
{
    fprintf(stderr, "usage: bench_choices [--device NAME] [--protocol WORDS] "
                    "[--races N | --list | --predict] [--json] [--draw N | --anywhere N] "
                    "OP.kg OP T=f16 P=65536,D=4096 [CHOICE...]\n");
    return 2;
}

int main(int argc, char **argv)
{
    static struct bench bench = {.search = {.protocol = {0}}};
    const char *device = "host", *protocol = "";
    int at = 1;
    for (; at + 1 < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "--json") == 0) {
            bench.json = true;
        } else if (strcmp(argv[at], "--list") == 0) {
            bench.work = WORK_LIST;
        } else if (strcmp(argv[at], "--predict") == 0) {
            bench.work = WORK_PREDICT;
        } else if (strcmp(argv[at], "--device") == 0) {
            device = argv[++at];
        } else if (strcmp(argv[at], "--protocol") == 0) {
            protocol = argv[++at];
        } else if (strcmp(argv[at], "--races") == 0) {
            bench.races = (int)strtol(argv[++at], NULL, 10);
        } else if (strcmp(argv[at], "--draw") == 0 || strcmp(argv[at], "--anywhere") == 0) {
            bench.anywhere = strcmp(argv[at], "--anywhere") == 0;
            bench.draws = (int)strtol(argv[++at], NULL, 10);
        } else {
            return fail_usage();
        }
    }
    if (argc - at < 4 || bench.races < 0 || bench.races > MAX_RACES ||
        !kg_protocol_read(protocol, &bench.search.protocol))
        return fail_usage();
    bench.search.problem = make_problem(&argv[at]);
    open_device(&bench, device);
    if (argc - at == 4) {
        struct kg_choice choice;
        kg_choice_guess(bench.search.problem, &bench.search.device->facts, bench.search.target,
                        &choice);
        add_choice(&bench, &choice);
    }
    for (int i = at + 4; i < argc; i++)
        add_words(&bench, argv[i]);
    draw_choices(&bench);
    if (bench.work != WORK_LIST)
        compile_choices(&bench);
    if (bench.work == WORK_TIME) {
        if (kg_test_rig_make(&bench.search, &bench.rig, &error) != KG_OK)
            stop("filling the inputs");
        time_choices(&bench);
    }
    print_all(&bench);
    for (int i = 0; i < bench.count; i++)
        kg_built_free(bench.items[i].built);
    kg_test_rig_free(bench.rig);
    free(bench.timings);
    free(bench.built);
    free(bench.items);
    kg_device_close(bench.search.device);
    return 0;
}
