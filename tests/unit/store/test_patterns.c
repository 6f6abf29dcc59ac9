// From outcomes to lessons, from lessons to patterns, and lessons in files.

#include "store/favourites.h"
#include "store/lessons.h"

#include "support/sample_problem.h"
#include "support/sample_records.h"
#include "test.h"

#include <math.h>

static struct kg_error error;
static struct kg_store *store;
static char folder[SAMPLE_FOLDER];

static void open_store(void)
{
    sample_folder(folder);
    store = sample_open(folder);
}

static void close_store(void)
{
    kg_store_close(store);
    sample_remove(folder);
}

static void append(const struct kg_key *key, enum kg_outcome_kind kind, const char *choice,
                   double seconds)
{
    struct kg_outcome outcome = sample_outcome(choice);
    outcome.kind = kind;
    outcome.timing.median = kind == KG_OUTCOME_MEASURED ? seconds : 0;
    memset(outcome.forecast.feature, 0, sizeof outcome.forecast.feature);
    outcome.reason = kind == KG_OUTCOME_MEASURED ? "" : "why not";
    CHECK_STATUS(kg_store_append(store, key, &outcome, &error), KG_OK, &error);
}

static const struct kg_traits traits = {.class = "reduce", .dtype = "f16", .bucket = "large wide"};

static struct kg_key key_of(const char *sizes)
{
    struct kg_key key = sample_key();
    key.sizes = sizes;
    CHECK_STATUS(kg_store_note_traits(store, &key, &traits, &error), KG_OK, &error);
    return key;
}

static struct kg_pattern find(const char *dtype, enum kg_pattern_subject subject,
                              const char *family, const char *parameter, int64_t value)
{
    struct kg_patterns patterns;
    struct kg_pattern found = {.problems = -1};
    CHECK_STATUS(kg_patterns_load(store, "reduce", "avx2", NULL, &patterns, &error), KG_OK, &error);
    for (int i = 0; i < patterns.count; i++) {
        const struct kg_pattern *pattern = &patterns.list[i];
        if (pattern->subject == subject && strcmp(pattern->family, family) == 0 &&
            strcmp(pattern->parameter, parameter) == 0 && pattern->value == value &&
            strcmp(pattern->dtype, dtype) == 0)
            found = *pattern;
    }
    kg_patterns_free(&patterns);
    return found;
}

static double prior(const char *dtype, const char *parameter, int64_t value, const char *without)
{
    struct kg_patterns patterns;
    struct kg_traits some = traits;
    some.dtype = dtype;
    CHECK_STATUS(kg_patterns_load(store, "reduce", "avx2", without, &patterns, &error), KG_OK,
                 &error);
    double known = kg_patterns_prior(&patterns, &some, "rowwise", parameter, value);
    kg_patterns_free(&patterns);
    return known;
}

static bool is_near(double a, double b)
{
    return fabs(a - b) < 1e-3;
}

static void test_mining(void)
{
    static const char *const sizes[] = {"P=1", "P=2", "P=3", "P=4"};
    open_store();
    for (int i = 0; i < 4; i++) {
        struct kg_key key = key_of(sizes[i]);
        append(&key, KG_OUTCOME_MEASURED, "rowwise*2: block=4 stream=1", 1e-5);
        append(&key, KG_OUTCOME_MEASURED, "rowwise*2: block=8 stream=1", 2e-5);
        append(&key, KG_OUTCOME_MEASURED, "rowwise: block=4 stream=0; pointwise: block=4", 4e-5);
        append(&key, KG_OUTCOME_PRUNED, "rowwise*2: block=64 stream=1", 0);
        append(&key, KG_OUTCOME_FAULT, "rowwise*2: block=32 stream=1", 0);
        append(&key, KG_OUTCOME_TIMEOUT, "rowwise*2: block=32 stream=0", 0);
        if (i == 2) // three problems are enough, two are not
            CHECK(prior("f16", "block", 4, NULL) < 0);
        else if (i < 2)
            CHECK(prior("f16", "block", 4, NULL) == 0);
    }
    struct kg_pattern four = find("f16", KG_SUBJECT_VALUE, "rowwise", "block", 4);
    CHECK(four.state == KG_PATTERN_WINS && four.problems == 4 && four.wins == 4);
    CHECK(is_near(four.mean, log(0.5)) && is_near(four.confidence, 0.5101));
    CHECK(four.tried == 8 && four.failed == 0);
    struct kg_pattern eight = find("f16", KG_SUBJECT_VALUE, "rowwise", "block", 8);
    CHECK(eight.state == KG_PATTERN_LOSES && eight.losses == 4 && is_near(eight.mean, log(2)));
    struct kg_pattern fails = find("f16", KG_SUBJECT_VALUE, "rowwise", "block", 32);
    CHECK(fails.state == KG_PATTERN_FAILS && fails.tried == 8 && fails.failed == 8);
    CHECK(find("f16", KG_SUBJECT_VALUE, "rowwise", "block", 64).problems ==
          -1); // pruned: never tried
    // The same name is another parameter in another family.
    CHECK(find("f16", KG_SUBJECT_VALUE, "pointwise", "block", 4).problems == -1);
    struct kg_pattern one = find("f16", KG_SUBJECT_GROUPING, "one kernel", "", 0);
    CHECK(one.state == KG_PATTERN_WINS && one.wins == 4 && is_near(one.mean, log(0.25)));
    CHECK(find("f16", KG_SUBJECT_GROUPING, "a kernel each", "", 0).state == KG_PATTERN_LOSES);
    CHECK(find("f16", KG_SUBJECT_FORM, "pointwise", "", 0).losses == 4);
    CHECK(find("", KG_SUBJECT_VALUE, "rowwise", "block", 4).wins == 4);
    CHECK(is_near(prior("f16", "block", 4, NULL), 0.5101 * log(0.5)));
    CHECK(prior("bf16", "block", 4, NULL) < 0); // by the pattern of any dtype
    CHECK(prior("f16", "block", 5, NULL) == 0 && prior("f16", "vector", 4, NULL) == 0);
    CHECK(prior("f16", "block", 4, "softmax") == 0 && prior("f16", "block", 4, "other") < 0);
    close_store();
}

// New outcomes of a problem replace its lessons: they are not counted twice.
static void test_new_outcomes(void)
{
    open_store();
    struct kg_key key = key_of("P=1");
    append(&key, KG_OUTCOME_MEASURED, "rowwise: block=4", 1e-5);
    append(&key, KG_OUTCOME_MEASURED, "rowwise: block=8", 2e-5);
    CHECK(find("f16", KG_SUBJECT_VALUE, "rowwise", "block", 4).wins == 1);
    append(&key, KG_OUTCOME_MEASURED, "rowwise: block=8", 0.5e-5);
    struct kg_pattern four = find("f16", KG_SUBJECT_VALUE, "rowwise", "block", 4);
    CHECK(four.problems == 1 && four.wins == 0 && four.losses == 1);
    close_store();
}

// Values are compared where all else is equal, each kernel of a plan by itself.
static void test_equal_contexts(void)
{
    open_store();
    struct kg_key key = key_of("P=1");
    append(&key, KG_OUTCOME_MEASURED, "rowwise: block=4; rowwise: block=8", 1e-6);
    append(&key, KG_OUTCOME_MEASURED, "rowwise: block=4; rowwise: block=4", 2e-6);
    append(&key, KG_OUTCOME_MEASURED, "rowwise: block=8; rowwise: block=8", 4e-6);
    double mean = (log(0.25) + log(2)) / 2;
    CHECK(is_near(find("f16", KG_SUBJECT_VALUE, "rowwise", "block", 4).mean, mean));
    CHECK(is_near(find("f16", KG_SUBJECT_VALUE, "rowwise", "block", 8).mean, -mean));
    CHECK(find("f16", KG_SUBJECT_VALUE, "rowwise", "block", 4).tried == 2);
    // What is ten times as slow counts a hundredth: there stream=1 is worse.
    key = key_of("P=2");
    append(&key, KG_OUTCOME_MEASURED, "scan: block=4 stream=0", 2e-6);
    append(&key, KG_OUTCOME_MEASURED, "scan: block=4 stream=1", 1e-6);
    append(&key, KG_OUTCOME_MEASURED, "scan: block=8 stream=0", 1e-5);
    append(&key, KG_OUTCOME_MEASURED, "scan: block=8 stream=1", 2e-5);
    mean = (log(0.5) + 0.01 * log(2)) / 1.01;
    CHECK(is_near(find("f16", KG_SUBJECT_VALUE, "scan", "stream", 1).mean, mean));
    close_store();
}

// A plan with two families is no evidence for either of them.
static void test_both_forms(void)
{
    open_store();
    struct kg_key key = key_of("P=1");
    append(&key, KG_OUTCOME_MEASURED, "rowwise: block=4; pointwise", 1e-6);
    append(&key, KG_OUTCOME_MEASURED, "rowwise*2: block=4", 2e-6);
    append(&key, KG_OUTCOME_MEASURED, "pointwise; pointwise", 4e-6);
    CHECK(is_near(find("f16", KG_SUBJECT_FORM, "rowwise", "", 0).mean, log(0.25)));
    CHECK(is_near(find("f16", KG_SUBJECT_FORM, "pointwise", "", 0).mean, log(0.5)));
    close_store();
}

static struct kg_lesson lesson_of(const char *problem, const char *date, double ratio)
{
    return (struct kg_lesson){.problem = problem,
                              .op = "softmax",
                              .class = "reduce",
                              .dtype = "f16",
                              .bucket = "large wide",
                              .isa = "avx2",
                              .date = date,
                              .subject = KG_SUBJECT_VALUE,
                              .family = "rowwise",
                              .parameter = "block",
                              .value = 4,
                              .tried = 2,
                              .competed = true,
                              .ratio = ratio};
}

static void teach(int number, double ratio)
{
    char problem[16], date[32];
    snprintf(problem, sizeof problem, "p%d", number);
    snprintf(date, sizeof date, "2026-01-%02dT00:00:00Z", number);
    struct kg_lesson lesson = lesson_of(problem, date, ratio);
    CHECK_STATUS(kg_store_begin(store, &error), KG_OK, &error);
    CHECK_STATUS(kg_store_add_lesson(store, &lesson, &error), KG_OK, &error);
    CHECK_STATUS(kg_store_commit(store, &error), KG_OK, &error);
}

static void test_demotion(void)
{
    open_store();
    for (int i = 1; i <= 8; i++)
        teach(i, -0.5);
    CHECK(find("f16", KG_SUBJECT_VALUE, "rowwise", "block", 4).state == KG_PATTERN_WINS);
    teach(9, 0.2);
    CHECK(prior("f16", "block", 4, NULL) < 0); // one loss is none
    teach(10, 0.2);
    struct kg_pattern four = find("f16", KG_SUBJECT_VALUE, "rowwise", "block", 4);
    CHECK(four.state == KG_PATTERN_DEMOTED && four.wins == 8 && four.losses == 2);
    CHECK(prior("f16", "block", 4, NULL) == 0);
    teach(11, -0.5); // it wins again
    CHECK(find("f16", KG_SUBJECT_VALUE, "rowwise", "block", 4).state == KG_PATTERN_WINS);
    teach(12, 0.001); // within the noise: neither won nor lost
    four = find("f16", KG_SUBJECT_VALUE, "rowwise", "block", 4);
    CHECK(four.wins == 9 && four.losses == 2 && four.problems == 12);
    close_store();
}

static void import(const char *lines, size_t length, enum kg_status wanted)
{
    struct kg_text notice = {0};
    CHECK_STATUS(kg_store_import_lessons(store, lines, length, &notice, &error), wanted, &error);
    kg_text_free(&notice);
}

static void test_exchange(void)
{
    struct kg_text lines = {0}, again = {0};
    open_store();
    for (int i = 1; i <= 3; i++)
        teach(i, -0.5);
    CHECK_STATUS(kg_store_export_lessons(store, &lines, &error), KG_OK, &error);
    close_store();
    open_store();
    import(lines.data, lines.length, KG_OK);
    import(lines.data, lines.length, KG_OK); // twice is once
    CHECK(find("f16", KG_SUBJECT_VALUE, "rowwise", "block", 4).problems == 3);
    CHECK_STATUS(kg_store_export_lessons(store, &again, &error), KG_OK, &error);
    CHECK_TEXT(again.data, lines.data);
    close_store();
    // What is damaged is refused whole.
    open_store();
    char *value = strstr(lines.data, "\"value\": 4");
    value[strlen("\"value\": ")] = '8';
    import(lines.data, lines.length, KG_ERROR_CORRUPT);
    CHECK(strstr(error.text, "line 2") && strstr(error.text, "seal"));
    value[strlen("\"value\": ")] = '4';
    import(lines.data, lines.length - 20, KG_ERROR_CORRUPT);
    import(lines.data, strcspn(lines.data, "\n") + 1, KG_ERROR_CORRUPT);
    import("", 0, KG_ERROR_CORRUPT);
    CHECK(find("f16", KG_SUBJECT_VALUE, "rowwise", "block", 4).problems == -1);
    close_store();
    kg_text_free(&lines);
    kg_text_free(&again);
}

static double effect(const char *parameter, int64_t value, const char *without)
{
    struct kg_patterns patterns;
    CHECK_STATUS(kg_patterns_load(store, "reduce", "avx2", without, &patterns, &error), KG_OK,
                 &error);
    double known = kg_patterns_effect(&patterns, &traits, "rowwise", parameter, value);
    kg_patterns_free(&patterns);
    return known;
}

// `factor`: of the expected time.
static void append_expected(const struct kg_key *key, const char *choice, double estimate,
                            double factor)
{
    struct kg_outcome outcome = sample_outcome(choice);
    outcome.estimate = estimate;
    outcome.timing.median = estimate * factor;
    CHECK_STATUS(kg_store_append(store, key, &outcome, &error), KG_OK, &error);
}

// Families expect that blocks of 8 take twice as long. They take four times as long, and
// `with_stream` of that with streams, of which nothing is expected. All is slower by a half, too.
static void append_family(const struct kg_key *key, double with_stream)
{
    append_expected(key, "rowwise*2: block=4 stream=0", 1e-5, 1.5);
    append_expected(key, "rowwise*2: block=4 stream=1", 1e-5, 1.5 * with_stream);
    append_expected(key, "rowwise*2: block=8 stream=0", 2e-5, 1.5 * 2);
    append_expected(key, "rowwise*2: block=8 stream=1", 2e-5, 1.5 * 2 * with_stream);
    append_expected(key, "rowwise: block=16 stream=1; pointwise: block=4", 1e-5, 9);
    append(key, KG_OUTCOME_MEASURED, "rowwise*2: block=32 stream=1", 1e-3); // nothing is expected
}

static void test_effects(void)
{
    struct kg_text lines = {0}, again = {0};
    open_store();
    struct kg_key key = key_of("P=1");
    append_family(&key, 0.6);
    key = key_of("P=2");
    append_family(&key, 0.6);
    CHECK(effect("stream", 1, NULL) == 0); // two problems are too few
    key = key_of("P=3");
    append_family(&key, 0.6);
    double stream = effect("stream", 1, NULL) - effect("stream", 0, NULL);
    double block = effect("block", 8, NULL) - effect("block", 4, NULL);
    CHECK(stream < -0.01 && stream > log(0.6)); // drawn towards nothing
    CHECK(block > 0.01 && block < log(2));
    CHECK(effect("block", 16, NULL) == 0 && effect("block", 32, NULL) == 0);
    CHECK(effect("stream", 1, "softmax") == 0);
    CHECK(find("", KG_SUBJECT_VALUE, "rowwise", "stream", 1).fitted == 3);
    // Files have them, too.
    CHECK_STATUS(kg_store_export_lessons(store, &lines, &error), KG_OK, &error);
    CHECK(strstr(lines.data, "\"version\": 2"));
    close_store();
    open_store();
    import(lines.data, lines.length, KG_OK);
    CHECK(is_near(effect("stream", 1, NULL) - effect("stream", 0, NULL), stream));
    CHECK_STATUS(kg_store_export_lessons(store, &again, &error), KG_OK, &error);
    CHECK_TEXT(again.data, lines.data);
    char *damaged = strstr(lines.data, "\"effect\": -0.");
    damaged[strlen("\"effect\": -0.")] ^= 1;
    import(lines.data, lines.length, KG_ERROR_CORRUPT);
    CHECK(strstr(error.text, "seal"));
    close_store();
    kg_text_free(&lines);
    kg_text_free(&again);
}

// Nothing is made of an effect about which problems disagree.
static void test_effects_that_disagree(void)
{
    static const double factors[] = {0.6, 1.5, 0.7, 1.4};
    static const char *const sizes[] = {"P=1", "P=2", "P=3", "P=4"};
    open_store();
    for (int i = 0; i < 4; i++) {
        struct kg_key key = key_of(sizes[i]);
        append_family(&key, factors[i]);
    }
    CHECK(effect("stream", 1, NULL) == 0 && effect("stream", 0, NULL) == 0);
    CHECK(effect("block", 8, NULL) > 0.01); // they agree on this one
    close_store();
}

static void check_traits(const char *text, const char *sizes, const char *class, const char *dtype,
                         const char *bucket)
{
    struct made made = make(text, sizes);
    struct kg_traits some;
    CHECK_STATUS(made.status, KG_OK, &made.error);
    kg_traits_of(made.problem, &some);
    CHECK_TEXT(some.class, class);
    CHECK_TEXT(some.dtype, dtype);
    CHECK_TEXT(some.bucket, bucket);
    unmake(&made);
}

static void test_traits(void)
{
    const char *sums = "op f(x: T[P, D], s: f64[]) -> (y: T[P]) where T in f16 f32\n"
                       "{ y[p] = (sum(d) x[p, d]) * s[] }\n";
    const char *product = "op g(a: bf16[M, K], b: bf16[K, N]) -> (c: bf16[M, N])\n"
                          "{ c[m, n] = sum(k) a[m, k] * b[k, n] }\n";
    check_traits(sums, "P=8 D=64", "reduce", "f16", "small narrow");
    check_traits(sums, "P=1024 D=2048 T=f32", "reduce", "f32", "medium middling");
    check_traits(sums, "P=4096 D=8192", "reduce", "f16", "large wide");
    check_traits("op c(x: f32[P, D]) -> (y: f32[D]) { y[d] = sum(p) x[p, d] }\n", "P=8 D=64",
                 "reduce columns", "f32", "small narrow");
    check_traits("op c(x: f32[P, D]) -> (y: f32[D]) { y[d] = sum(p) x[p, d] }\n", "P=8 D=1",
                 "reduce", "f32", "small narrow");
    check_traits("op m(x: f32[A, B, C]) -> (y: f32[A, C]) { y[a, c] = sum(b) x[a, b, c] }\n",
                 "A=4 B=100 C=7", "reduce columns", "f32", "small middling");
    check_traits(product, "M=64 N=64 K=4096", "contract", "bf16", "medium wide");
    check_traits("op h(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] + 1 }\n", "N=4096", "pointwise",
                 "f32", "small wide");
}

// What was offered, but for one config that does not fit.
struct offered {
    const char *refused;
    char configs[512];
};

static bool fits(void *user, const char *config)
{
    struct offered *offered = user;
    if (offered->refused && strcmp(config, offered->refused) == 0)
        return false;
    size_t used = strlen(offered->configs);
    snprintf(offered->configs + used, sizeof offered->configs - used, "%s%s", used ? ", " : "",
             config);
    return true;
}

static void expect_favourites(const char *class, const char *isa, const char *without,
                              const char *family, int max, const char *refused, const char *wanted)
{
    struct kg_favourites favourites;
    struct kg_traits some = traits;
    struct offered offered = {.refused = refused};
    some.class = class;
    CHECK_STATUS(kg_favourites_load(store, &some, isa, without, &favourites, &error), KG_OK,
                 &error);
    kg_favourites_offer(&favourites, family, max, fits, &offered);
    CHECK_TEXT(offered.configs, wanted);
    kg_favourites_free(&favourites);
}

// The config that came near the best of most problems stands first, not one that won a problem; who
// won what it is near to adds little.
static void test_favourites(void)
{
    static const struct {
        const char *sizes, *winner;
        double unit; // of the problem's seconds
        struct kg_traits traits;
    } problems[] = {
        {"P=1", "rowwise*2: block=2", 1, {"reduce", "f16", "large wide"}},
        {"P=2", "rowwise*3: block=4", 30, {"reduce", "f16", "large wide"}},
        {"P=3", "rowwise: block=16", 0.1, {"reduce", "f16", "large wide"}},
        {"P=4", "rowwise: block=3", 1, {"reduce", "f32", "large wide"}},
        {"P=5", "rowwise: block=5", 1, {"reduce", "f16", "small wide"}},
        {"P=6", "rowwise: block=1", 1, {"reduce", "f32", "small wide"}},
    };
    // Won one problem of the same dtype and size, of the same dtype or size, of neither; equals by
    // the alphabet.
    const char *winners = "block=16, block=2, block=4, block=3, block=5, block=1";
    open_store();
    expect_favourites("reduce", "avx2", NULL, "rowwise", 9, NULL, "");
    for (int i = 0; i < 6; i++) {
        struct kg_key key = sample_key();
        double best = 1e-5 * problems[i].unit;
        key.sizes = problems[i].sizes;
        CHECK_STATUS(kg_store_note_traits(store, &key, &problems[i].traits, &error), KG_OK, &error);
        append(&key, KG_OUTCOME_MEASURED, "rowwise*2: block=8", 1.01 * best);
        append(&key, KG_OUTCOME_MEASURED, problems[i].winner, best);
        append(&key, KG_OUTCOME_MEASURED, "scan: width=64", best);
        append(&key, KG_OUTCOME_MEASURED, "rowwise*2: block=64", 1.2 * best); // too slow
        append(&key, KG_OUTCOME_FAULT, "rowwise*2: block=128", 0);
        if (i == 0)
            append(&key, KG_OUTCOME_MEASURED, "rowwise: block=32; pointwise: block=4", best);
    }
    expect_favourites("reduce", "avx2", NULL, "rowwise", 9, NULL, "block=8");
    expect_favourites("reduce", "avx2", NULL, "rowwise", 9, "block=8", winners);
    expect_favourites("reduce", "avx2", NULL, "rowwise", 2, "block=8", "block=16, block=2");
    expect_favourites("reduce", "avx2", NULL, "scan", 9, NULL, "width=64");
    expect_favourites("reduce", "avx2", NULL, "pointwise", 9, NULL, "");
    expect_favourites("reduce", "avx512", NULL, "rowwise", 9, NULL, "");
    expect_favourites("scan", "avx2", NULL, "rowwise", 9, NULL, "");
    expect_favourites("reduce", "avx2", sample_key().op, "rowwise", 9, NULL, "");
    expect_favourites("reduce", "avx2", "another", "rowwise", 9, "block=8", winners);
    close_store();
}

// The next favourite is good where the first is not; and few problems prove more than a small share
// of many.
static void test_favourites_that_differ(void)
{
    static const struct {
        const char *choice;
        int first, last; // the problems in which it comes near the best
        bool everywhere; // it was measured in the others, too
    } tried[] = {
        {"rowwise: block=1", 0, 3, true}, // good in most
        {"rowwise: block=2", 0, 2, true}, // in three of these
        {"rowwise: block=3", 4, 6, true}, // in the other three
        {"rowwise: block=4", 5, 6, false},
    };
    open_store();
    for (int i = 0; i < 7; i++) {
        struct kg_key key = sample_key();
        char sizes[16];
        snprintf(sizes, sizeof sizes, "P=%d", i + 1);
        key.sizes = sizes;
        CHECK_STATUS(kg_store_note_traits(store, &key, &traits, &error), KG_OK, &error);
        for (size_t k = 0; k < sizeof tried / sizeof tried[0]; k++) {
            bool near = i >= tried[k].first && i <= tried[k].last;
            if (near || tried[k].everywhere)
                append(&key, KG_OUTCOME_MEASURED, tried[k].choice, near ? 1e-5 : 2e-5);
        }
    }
    expect_favourites(traits.class, "avx2", NULL, "rowwise", 2, NULL, "block=4, block=1");
    expect_favourites(traits.class, "avx2", NULL, "rowwise", 9, "block=4", "block=1, block=3");
    close_store();
}

static void expect_list(bool json, const char *wanted)
{
    struct kg_text text = {0};
    CHECK_STATUS(kg_store_list_favourites(store, json, &text, &error), KG_OK, &error);
    CHECK_TEXT(kg_text_string(&text), wanted);
    kg_text_free(&text);
}

static void test_list_of_favourites(void)
{
    open_store();
    expect_list(false, "no favourites: nothing was measured yet\n");
    expect_list(true, "[]\n");
    struct kg_key key = sample_key();
    const struct kg_traits scan = {"scan", "f32", "small wide"};
    CHECK_STATUS(kg_store_note_traits(store, &key, &scan, &error), KG_OK, &error);
    for (int i = 0; i < 4; i++) {
        char choice[32];
        snprintf(choice, sizeof choice, "scan: block=%d", i);
        append(&key, KG_OUTCOME_MEASURED, choice, 1e-5);
    }
    const struct kg_traits reduce = {"reduce", "f16", "large wide"};
    const char *const sizes[] = {"P=1", "P=2"};
    for (int i = 0; i < 2; i++) {
        key.sizes = sizes[i];
        CHECK_STATUS(kg_store_note_traits(store, &key, &reduce, &error), KG_OK, &error);
        append(&key, KG_OUTCOME_MEASURED, "rowwise*2: block=1", 2e-5);
        append(&key, KG_OUTCOME_MEASURED, "rowwise*2: block=8", 1e-5);
    }
    expect_list(false, "On avx2:\n"
                       "reduce, 2 problems:\n"
                       "  0.50  rowwise: block=8\n"
                       "scan, 1 problem:\n"
                       "  0.33  scan: block=0\n"
                       "  0.33  scan: block=1\n"
                       "  0.33  scan: block=2\n"
                       "        and 1 with smaller chances\n");
    key.isa = "sm_90a";
    append(&key, KG_OUTCOME_MEASURED, "reduce: column=1", 1e-5);
    CHECK_STATUS(kg_store_note_traits(store, &key, &reduce, &error), KG_OK, &error);
    struct kg_text text = {0};
    CHECK_STATUS(kg_store_list_favourites(store, true, &text, &error), KG_OK, &error);
    CHECK(strstr(kg_text_string(&text),
                 "{\"class\": \"reduce\", \"isa\": \"avx2\", \"problems\": 2, "
                 "\"favourites\": [{\"family\": \"rowwise\", \"config\": \"block=8\", \"chance\": "
                 "0.5}]}"));
    CHECK(strstr(kg_text_string(&text), "\"isa\": \"sm_90a\", \"problems\": 1"));
    kg_text_free(&text);
    close_store();
}

TEST_MAIN(test_mining, test_new_outcomes, test_equal_contexts, test_both_forms, test_demotion,
          test_exchange, test_effects, test_effects_that_disagree, test_traits, test_favourites,
          test_favourites_that_differ, test_list_of_favourites)
