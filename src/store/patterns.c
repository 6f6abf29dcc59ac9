// From lessons to patterns, and from patterns to what a search is told. docs/patterns.md explains
// the figures.

#include "store/lessons.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEVELS 3 // by dtype and bucket; by bucket; by neither
#define LEAST_PROBLEMS 3
#define LEAST_TRIED 5         // for a pattern of failures
#define LEAST_CONFIDENCE 0.3  // three of three: 0.44; four of five: 0.38; five of eight: 0.31
#define LATEST 2              // losses in a row that demote a winner
#define LEAST_DIFFERENCE 0.01 // of the logarithm of a time
#define LEAST_FAILURES 0.5    // likewise, of a share of failures
#define LARGEST_RATIO 2.0     // of the logarithm of one lesson: no outlier decides
#define LARGEST_EFFECT 1.0
#define LEAST_VARIANCE 4e-4 // of effects: two hundredths are chance
#define Z 1.96              // of 95 %

const char *const kg_pattern_state_names[KG_PATTERN_STATE_COUNT] = {"open", "wins", "loses",
                                                                    "fails", "demoted"};

// The lower end of Wilson's interval for a share: what the share is at least, so far.
static double wilson(int successes, int count)
{
    if (count == 0)
        return 0;
    double n = count, share = successes / n;
    double centre = share + Z * Z / (2 * n);
    double half = Z * sqrt(share * (1 - share) / n + Z * Z / (4 * n * n));
    return fmax(0, (centre - half) / (1 + Z * Z / n));
}

// The lessons of one pattern, the oldest first.
struct summing {
    struct kg_pattern pattern;
    double sum;              // of the logarithms
    double effects, squares; // sums
    int latest_lost;         // losses in a row, up to the latest problem
};

// The mean effect as far as the problems agree on it: without the share of its square that chance
// explains (James and Stein, 1961).
static double effect_of(const struct summing *summing)
{
    int n = summing->pattern.fitted;
    double mean = n > 0 ? summing->effects / n : 0;
    if (n < LEAST_PROBLEMS || mean == 0)
        return 0;
    double variance = (summing->squares - n * mean * mean) / (n - 1) + LEAST_VARIANCE;
    return mean * n / (n + 1) * fmax(0, 1 - variance / (n * mean * mean));
}

static void judge(struct summing *summing)
{
    struct kg_pattern *pattern = &summing->pattern;
    pattern->mean = pattern->problems ? summing->sum / pattern->problems : 0;
    pattern->effect = effect_of(summing);
    double wins = wilson(pattern->wins, pattern->problems);
    double losses = wilson(pattern->losses, pattern->problems);
    double fails = wilson(pattern->failed, pattern->tried);
    bool enough = pattern->problems >= LEAST_PROBLEMS;
    if (pattern->tried >= LEAST_TRIED && fails >= LEAST_FAILURES) {
        pattern->state = KG_PATTERN_FAILS;
        pattern->confidence = fails;
    } else if (enough && wins >= LEAST_CONFIDENCE && pattern->mean < 0) {
        bool demoted = summing->latest_lost >= LATEST;
        pattern->state = demoted ? KG_PATTERN_DEMOTED : KG_PATTERN_WINS;
        pattern->confidence = wins;
    } else if (enough && losses >= LEAST_CONFIDENCE && pattern->mean > 0) {
        pattern->state = KG_PATTERN_LOSES;
        pattern->confidence = losses;
    } else {
        pattern->confidence = fmax(wins, losses);
    }
}

static bool is_about(const struct kg_pattern *pattern, const struct kg_lesson *lesson)
{
    return pattern->subject == lesson->subject && pattern->value == lesson->value &&
           strcmp(pattern->parameter, lesson->parameter) == 0 &&
           strcmp(pattern->family, lesson->family) == 0 &&
           strcmp(pattern->dtype, lesson->dtype) == 0 &&
           strcmp(pattern->bucket, lesson->bucket) == 0 &&
           strcmp(pattern->class, lesson->class) == 0 && strcmp(pattern->isa, lesson->isa) == 0;
}

static const char *keep(struct kg_patterns *patterns, const char *text)
{
    return kg_arena_copy(&patterns->arena, text, strlen(text));
}

static void begin(struct kg_patterns *patterns, struct summing *summing,
                  const struct kg_lesson *lesson)
{
    *summing = (struct summing){.pattern = {.class = keep(patterns, lesson->class),
                                            .dtype = keep(patterns, lesson->dtype),
                                            .bucket = keep(patterns, lesson->bucket),
                                            .isa = keep(patterns, lesson->isa),
                                            .subject = lesson->subject,
                                            .family = keep(patterns, lesson->family),
                                            .parameter = keep(patterns, lesson->parameter),
                                            .value = lesson->value}};
}

static void add(struct summing *summing, const struct kg_lesson *lesson)
{
    struct kg_pattern *pattern = &summing->pattern;
    pattern->tried += lesson->tried;
    pattern->failed += lesson->failed;
    pattern->fitted += lesson->fitted;
    if (lesson->fitted) {
        double effect = fmax(-LARGEST_EFFECT, fmin(LARGEST_EFFECT, lesson->effect));
        summing->effects += effect;
        summing->squares += effect * effect;
    }
    if (!lesson->competed)
        return;
    bool lost = lesson->ratio > LEAST_DIFFERENCE;
    pattern->problems++;
    pattern->wins += lesson->ratio < -LEAST_DIFFERENCE;
    pattern->losses += lost;
    summing->sum += fmax(-LARGEST_RATIO, fmin(LARGEST_RATIO, lesson->ratio));
    summing->latest_lost = lost ? summing->latest_lost + 1 : 0;
}

static bool finish(struct kg_patterns *patterns, struct summing *summing)
{
    if (patterns->count == patterns->capacity) {
        int capacity = patterns->capacity ? 2 * patterns->capacity : 64;
        struct kg_pattern *larger = realloc(patterns->list, (size_t)capacity * sizeof *larger);
        if (!larger)
            return false;
        patterns->list = larger;
        patterns->capacity = capacity;
    }
    judge(summing);
    patterns->list[patterns->count++] = summing->pattern;
    return true;
}

static enum kg_status load_level(struct kg_store *store, int level, const char *const filters[3],
                                 struct kg_patterns *patterns, struct kg_error *error)
{
    struct kg_query query = kg_query_begin(store, KG_SQL_EACH_LESSON);
    kg_query_bind_integer(&query, level);
    for (int i = 0; i < 3; i++)
        kg_query_bind_text(&query, filters[i]);
    struct kg_lesson lesson;
    struct summing summing;
    bool begun = false, whole = true;
    while (whole && !patterns->arena.failed && kg_store_next_lesson(&query, &lesson)) {
        if (begun && !is_about(&summing.pattern, &lesson)) {
            whole = finish(patterns, &summing);
            begun = false;
        }
        if (!begun)
            begin(patterns, &summing, &lesson);
        begun = true;
        if (!patterns->arena.failed)
            add(&summing, &lesson);
    }
    if (begun && whole && !patterns->arena.failed)
        whole = finish(patterns, &summing);
    enum kg_status status = kg_query_end(&query, error);
    return status == KG_OK && (!whole || patterns->arena.failed)
               ? kg_error_memory(error, "patterns")
               : status;
}

enum kg_status kg_patterns_load(struct kg_store *store, const char *class, const char *isa,
                                const char *without, struct kg_patterns *patterns,
                                struct kg_error *error)
{
    const char *filters[] = {class, isa, without};
    *patterns = (struct kg_patterns){0};
    // Records that cannot be written may still be read: what was learned before is used then.
    enum kg_status status = kg_store_mine(store, error);
    if (status != KG_OK && status != KG_ERROR_MEMORY)
        status = KG_OK;
    for (int level = 0; level < LEVELS && status == KG_OK; level++)
        status = load_level(store, level, filters, patterns, error);
    return status;
}

void kg_patterns_free(struct kg_patterns *patterns)
{
    free(patterns->list);
    kg_arena_free(&patterns->arena);
    *patterns = (struct kg_patterns){0};
}

static double worth_of(const struct kg_pattern *pattern)
{
    double mean = fmax(-LARGEST_EFFECT, fmin(LARGEST_EFFECT, pattern->mean));
    switch (pattern->state) {
    case KG_PATTERN_WINS:
    case KG_PATTERN_LOSES:
        return pattern->confidence * mean;
    case KG_PATTERN_FAILS:
        return pattern->confidence * LARGEST_EFFECT;
    default:
        return 0;
    }
}

static bool matches(const struct kg_pattern *pattern, const struct kg_traits *traits,
                    enum kg_pattern_subject subject, const char *family, const char *parameter,
                    int64_t value)
{
    return pattern->subject == subject && pattern->value == value &&
           strcmp(pattern->parameter, parameter) == 0 && strcmp(pattern->family, family) == 0 &&
           (!*pattern->dtype || strcmp(pattern->dtype, traits->dtype) == 0) &&
           (!*pattern->bucket || strcmp(pattern->bucket, traits->bucket) == 0);
}

double kg_patterns_prior(const struct kg_patterns *patterns, const struct kg_traits *traits,
                         const char *family, const char *parameter, int64_t value)
{
    enum kg_pattern_subject subject = parameter ? KG_SUBJECT_VALUE : KG_SUBJECT_FORM;
    // The narrowest levels stand first: of two patterns about one subject the one that is made of
    // the more similar problems counts, unless its result is open.
    for (int i = 0; i < patterns->count; i++) {
        const struct kg_pattern *pattern = &patterns->list[i];
        if (pattern->state != KG_PATTERN_OPEN &&
            matches(pattern, traits, subject, family, parameter ? parameter : "",
                    parameter ? value : 0))
            return worth_of(pattern);
    }
    return 0;
}

double kg_patterns_effect(const struct kg_patterns *patterns, const struct kg_traits *traits,
                          const char *family, const char *parameter, int64_t value)
{
    enum kg_pattern_subject subject = parameter ? KG_SUBJECT_VALUE : KG_SUBJECT_FORM;
    // The widest level, which stands last: families know dtypes and sizes, and what they miss is
    // the same for more problems.
    for (int i = patterns->count - 1; i >= 0; i--) {
        const struct kg_pattern *pattern = &patterns->list[i];
        if (pattern->effect != 0 && matches(pattern, traits, subject, family,
                                            parameter ? parameter : "", parameter ? value : 0))
            return pattern->effect;
    }
    return 0;
}
