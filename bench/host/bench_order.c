// In which order would the configs of an op have been measured, and how many of them until one
// within 2 % of the best was found? Measures nothing: the times are those on record (an exhaustive
// search).
//
//     bench_order HOME OP.kg OP T=f32 P=4096,D=1024 [DEVICE [AGAIN]]
//
// Prints one JSON object; ablation.py describes the orders. Patterns come from the lessons of all
// other ops. AGAIN is a home with another exhaustive search of the op: in the order of its times
// everything is known but what chance does. Only ops whose rule's choice is one kernel can be
// walked through.

#include "base/files.h"
#include "base/json.h"
#include "flow/session.h"
#include "lang/lang.h"
#include "store/favourites.h"
#include "tune/candidates.h"
#include "tune/group_search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOOD 0.98
#define LEAST_CONFIGS 8

static struct kg_error error;

struct walk {
    struct kg_device *device;
    struct kg_problem *problem;
    struct kg_store *store;
    struct kg_session_key key;
    struct kg_traits traits;
    struct kg_patterns patterns;
    struct kg_favourites favourites;
    struct kg_choice guess;
    struct kg_candidates candidates;
    double *seconds; // by candidate; 0: it failed
    double least;
    int good;
    int space; // candidates, on record or not
};

static _Noreturn void stop(const char *what)
{
    fprintf(stderr, "bench_order: %s: %s\n", what, error.text);
    exit(1);
}

// "P=4096,D=1024" to the sizes of the op.
static void take_sizes(const struct kg_op *op, char *text, int64_t *sizes)
{
    for (char *word = text, *next; word; word = next) {
        next = strchr(word, ',');
        if (next)
            *next++ = '\0';
        char *value = strchr(word, '=');
        for (int i = 0; value && i < op->size_count; i++)
            if (strncmp(op->sizes[i]->name, word, (size_t)(value - word)) == 0 &&
                op->sizes[i]->name[value - word] == '\0')
                sizes[i] = strtoll(value + 1, NULL, 10);
    }
}

static void take_dtypes(const struct kg_op *op, const char *text, struct kg_bindings *bindings)
{
    const char *value = strchr(text, '=');
    for (int i = 0; value && i < op->typevar_count; i++)
        if (strncmp(op->typevars[i]->name, text, (size_t)(value - text)) == 0)
            bindings->dtypes[i] = kg_dtype_find(value + 1, strlen(value + 1));
}

static void make_problem(struct walk *walk, char **words)
{
    static struct kg_arena arena; // lives as long as the program
    struct kg_file *file;
    struct kg_op *op, *instance;
    struct kg_bindings bindings;
    int64_t sizes[KG_MAX_SIZES];
    char *text;
    size_t length;
    if (kg_files_read(words[0], 1 << 20, &text, &length, &error) != KG_OK ||
        kg_lang_parse(&arena, words[0], text, length, &file, &error) != KG_OK ||
        kg_lang_select(file, words[1], &op, &error) != KG_OK)
        stop("the definition");
    free(text);
    kg_lang_default_bindings(op, &bindings);
    take_dtypes(op, words[2], &bindings);
    for (int i = 0; i < op->size_count; i++)
        sizes[i] = op->sizes[i]->is_param ? bindings.values[i] : 1;
    take_sizes(op, words[3], sizes);
    if (kg_lang_instantiate(&arena, op, &bindings, &instance, &error) != KG_OK ||
        kg_problem_make(instance, sizes, NULL, &walk->problem, &error) != KG_OK)
        stop("the problem");
}

static double prior(void *user, const char *family, const char *parameter, int64_t value,
                    bool beyond)
{
    const struct walk *walk = user;
    return beyond ? kg_patterns_effect(&walk->patterns, &walk->traits, family, parameter, value)
                  : kg_patterns_prior(&walk->patterns, &walk->traits, family, parameter, value);
}

// The seconds on record of one candidate; 0: it failed; -1: it was not tried, or is the same code
// as another one.
static double look_up(const struct walk *walk, struct kg_store *store,
                      const struct kg_candidate *candidate)
{
    struct kg_choice choice = walk->guess;
    struct kg_text text = {0};
    struct kg_outcome outcome;
    bool found;
    choice.matches[0] = walk->candidates.readings[candidate->reading].match;
    choice.configs[0] = candidate->config;
    kg_choice_print(&choice, &text);
    if (kg_store_find(store, &walk->key.key, kg_text_string(&text), &outcome, &found, &error) !=
        KG_OK)
        stop("the records");
    kg_text_free(&text);
    if (!found || outcome.kind == KG_OUTCOME_PRUNED)
        return -1;
    return outcome.kind == KG_OUTCOME_MEASURED ? outcome.timing.median : 0;
}

// Keeps the candidates that are on record.
static void list(struct walk *walk)
{
    struct kg_candidates *candidates = &walk->candidates;
    int kept = 0;
    if (kg_candidates_list(walk->guess.matches[0], kg_target_of(walk->device), KG_MAX_CONFIGS, NULL,
                           NULL, candidates, &error) != KG_OK)
        stop("the configs");
    walk->seconds = calloc((size_t)candidates->count + 1, sizeof *walk->seconds);
    if (!walk->seconds)
        exit(1);
    walk->least = INFINITY;
    walk->space = candidates->count;
    for (int i = 0; i < candidates->count; i++) {
        double seconds = look_up(walk, walk->store, &candidates->items[i]);
        if (seconds < 0)
            continue;
        candidates->items[kept] = candidates->items[i];
        walk->seconds[kept++] = seconds;
        if (seconds > 0)
            walk->least = fmin(walk->least, seconds);
    }
    candidates->count = kept;
    for (int i = 0; i < kept; i++)
        walk->good += walk->seconds[i] > 0 && walk->least >= GOOD * walk->seconds[i];
}

static bool is_good(const struct walk *walk, int at)
{
    return walk->seconds[at] > 0 && walk->least >= GOOD * walk->seconds[at];
}

static void reset(struct walk *walk)
{
    for (int i = 0; i < walk->candidates.count; i++) {
        walk->candidates.items[i].state = KG_CANDIDATE_OPEN;
        walk->candidates.items[i].seconds = 0;
    }
    for (int r = 0; r < walk->candidates.reading_count; r++) {
        struct kg_reading *reading = &walk->candidates.readings[r];
        reading->form = 0;
        memset(reading->prior, 0, sizeof reading->prior);
    }
}

static int try_one(struct walk *walk, int at, int best)
{
    struct kg_candidate *candidate = &walk->candidates.items[at];
    candidate->state = KG_CANDIDATE_TRIED;
    candidate->seconds = walk->seconds[at];
    bool better = candidate->seconds > 0 &&
                  (best < 0 || candidate->seconds < walk->candidates.items[best].seconds);
    return better ? at : best;
}

static bool is_on_record(const struct walk *walk, const char *config)
{
    struct kg_choice choice;
    struct kg_text text = {0};
    kg_choice_print(&walk->guess, &text);
    kg_text_cut(&text, strcspn(kg_text_string(&text), ":"));
    kg_text_format(&text, ": %s", config);
    bool found = kg_choice_read(walk->problem, &walk->device->facts, kg_target_of(walk->device),
                                kg_text_string(&text), &choice) &&
                 kg_candidates_find(&walk->candidates, choice.matches[0], &choice.configs[0]) >= 0;
    kg_text_free(&text);
    return found;
}

// What is to fit, and where it would go.
struct fitting {
    const struct walk *walk;
    kg_favourites_fits *fits;
    void *fitting;
};

static bool fits_on_record(void *user, const char *config)
{
    const struct fitting *fitting = user;
    return is_on_record(fitting->walk, config) && fitting->fits(fitting->fitting, config);
}

static void offer_favourites(void *user, const char *family, int max, kg_favourites_fits *fits,
                             void *fitting)
{
    const struct walk *walk = user;
    struct fitting on_record = {walk, fits, fitting};
    kg_favourites_offer(&walk->favourites, family, max, fits_on_record, &on_record);
}

// The candidates on record that were good for other problems of the class; returns their number.
static int list_favourites(struct walk *walk, int *seeds)
{
    const struct kg_search search = {.device = walk->device,
                                     .problem = walk->problem,
                                     .target = kg_target_of(walk->device),
                                     .user = walk,
                                     .favourites = offer_favourites};
    struct kg_choice choices[KG_SEARCH_STARTS];
    int count = kg_search_favourites(&search, &walk->guess, choices);
    for (int i = 0; i < count; i++)
        seeds[i] =
            kg_candidates_find(&walk->candidates, choices[i].matches[0], &choices[i].configs[0]);
    return count;
}

// As the search picks, one after the other.
static double count_picks(struct walk *walk, bool with_patterns)
{
    int best = -1, tried = 0, at;
    reset(walk);
    int guess =
        kg_candidates_find(&walk->candidates, walk->guess.matches[0], &walk->guess.configs[0]);
    int seeds[KG_SEARCH_STARTS] = {-1, -1, guess};
    if (with_patterns) {
        bool known = kg_candidates_advise(&walk->candidates, prior, walk);
        if (list_favourites(walk, seeds) == 0 && known)
            seeds[0] = kg_candidates_first(&walk->candidates, guess);
    }
    for (int i = 0; i < KG_SEARCH_STARTS; i++) {
        at = seeds[i];
        if (at < 0 || walk->candidates.items[at].state == KG_CANDIDATE_TRIED)
            continue;
        best = try_one(walk, at, best);
        tried++;
        if (is_good(walk, at))
            return tried;
    }
    while (kg_candidates_pick(&walk->candidates, best, 1, &at) == 1) {
        best = try_one(walk, at, best);
        tried++;
        if (is_good(walk, at))
            return tried;
    }
    return walk->candidates.count; // it was never picked
}

// The mean number of draws, without putting back, until the first of `good` among `count`.
static double expected_draws(int count, int good)
{
    return (count + 1.0) / (good + 1.0);
}

static double promise_of(const struct kg_reading *reading, const struct kg_candidate *candidate)
{
    double sum = reading->form;
    for (int i = 0; i < reading->space.count; i++)
        sum += reading->prior[i][candidate->step[i]];
    return sum;
}

// The best by patterns alone first; equals in any order.
static double count_by_patterns(struct walk *walk)
{
    struct kg_candidates *candidates = &walk->candidates;
    double passed = 0, last = -INFINITY;
    reset(walk);
    kg_candidates_advise(candidates, prior, walk);
    for (;;) {
        double next = INFINITY;
        int count = 0, good = 0;
        for (int i = 0; i < candidates->count; i++) {
            const struct kg_candidate *candidate = &candidates->items[i];
            double value = promise_of(&candidates->readings[candidate->reading], candidate);
            if (value <= last || value > next)
                continue;
            if (value < next)
                count = good = 0;
            next = value;
            count++;
            good += is_good(walk, i);
        }
        if (good > 0)
            return passed + expected_draws(count, good);
        passed += count;
        last = next;
    }
}

// In the order of another search's times; what it did not measure comes last.
static double count_again(const struct walk *walk, struct kg_store *again)
{
    int count = walk->candidates.count, earlier = 0;
    double *seconds = calloc((size_t)count + 1, sizeof *seconds), first = INFINITY;
    if (!seconds)
        exit(1);
    for (int i = 0; i < count; i++) {
        seconds[i] = look_up(walk, again, &walk->candidates.items[i]);
        if (seconds[i] > 0 && is_good(walk, i))
            first = fmin(first, seconds[i]);
    }
    for (int i = 0; i < count; i++)
        earlier += seconds[i] > 0 && seconds[i] < first;
    free(seconds);
    return isfinite(first) ? earlier + 1 : count;
}

// The speed of a choice without measurements, as a share of the best's; NaN: it is not on record.
static double speed_of_first(struct walk *walk, bool with_patterns)
{
    reset(walk);
    int first =
        kg_candidates_find(&walk->candidates, walk->guess.matches[0], &walk->guess.configs[0]);
    if (with_patterns && kg_candidates_advise(&walk->candidates, prior, walk))
        first = kg_candidates_first(&walk->candidates, first);
    double seconds = first >= 0 ? walk->seconds[first] : 0;
    return seconds > 0 ? walk->least / seconds : (double)NAN;
}

static void print(struct walk *walk, struct kg_store *again)
{
    struct kg_text text = {0};
    struct kg_json json = {.text = &text};
    kg_json_begin_object(&json, NULL);
    kg_json_text(&json, "class", walk->traits.class);
    kg_json_text(&json, "bucket", walk->traits.bucket);
    kg_json_integer(&json, "space", walk->space);
    kg_json_integer(&json, "configs", walk->candidates.count);
    kg_json_integer(&json, "good", walk->good);
    kg_json_number(&json, "least", walk->least);
    kg_json_number(&json, "random", expected_draws(walk->candidates.count, walk->good));
    kg_json_number(&json, "model", count_picks(walk, false));
    kg_json_number(&json, "patterns", count_by_patterns(walk));
    kg_json_number(&json, "patterns+model", count_picks(walk, true));
    if (again)
        kg_json_number(&json, "again", count_again(walk, again));
    kg_json_number(&json, "first", speed_of_first(walk, false));
    kg_json_number(&json, "first_with_patterns", speed_of_first(walk, true));
    kg_json_end_object(&json);
    puts(kg_text_string(&text));
    kg_text_free(&text);
}

int main(int argc, char **argv)
{
    static struct walk walk;
    struct kg_protocol protocol = {0};
    struct kg_store *again = NULL;
    if (argc < 6 || argc > 8) {
        fprintf(stderr, "usage: bench_order HOME OP.kg OP T=f32 P=4096,D=1024 [DEVICE [AGAIN]]\n");
        return 2;
    }
    const char *op = argv[3], *device = argc > 6 ? argv[6] : "host";
    make_problem(&walk, argv + 2);
    char cache[1024]; // facts of the device that are measured are kept there
    snprintf(cache, sizeof cache, "%s/cache", argv[1]);
    if (kg_device_open(device, cache, 0, &walk.device, &error) != KG_OK)
        stop("the device");
    if (kg_store_open(argv[1], &walk.store, NULL, &error) != KG_OK)
        stop("the records");
    if (argc == 8 && kg_store_open(argv[7], &again, NULL, &error) != KG_OK)
        stop("the other records");
    if (kg_session_key_make(walk.problem, walk.device, &protocol, &walk.key, &error) != KG_OK)
        stop("the key");
    kg_traits_of(walk.problem, &walk.traits);
    if (kg_patterns_load(walk.store, walk.traits.class, walk.device->facts.isa, op, &walk.patterns,
                         &error) != KG_OK)
        stop("the patterns");
    if (kg_favourites_load(walk.store, &walk.traits, walk.device->facts.isa, op, &walk.favourites,
                           &error) != KG_OK)
        stop("the favourites");
    kg_choice_guess(walk.problem, &walk.device->facts, kg_target_of(walk.device), &walk.guess);
    snprintf(error.text, sizeof error.text, "the rule's choice has several kernels");
    if (walk.guess.count != 1)
        stop(op);
    list(&walk);
    snprintf(error.text, sizeof error.text, "%d configs on record", walk.candidates.count);
    if (walk.candidates.count < LEAST_CONFIGS || walk.good == 0)
        stop(op);
    print(&walk, again);
    kg_candidates_free(&walk.candidates);
    kg_patterns_free(&walk.patterns);
    kg_session_key_free(&walk.key);
    kg_problem_free(walk.problem);
    kg_store_close(walk.store);
    if (again)
        kg_store_close(again);
    kg_device_close(walk.device);
    free(walk.seconds);
    return 0;
}
