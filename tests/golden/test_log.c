// The log of sample records in both languages, byte for byte but for the dates. UPDATE=1 in the
// environment rewrites the expected files.

#include "base/files.h"
#include "base/line_diff.h"
#include "report/log.h"
#include "support/sample_records.h"
#include "test.h"

#include <math.h>

// What a hostile record would like to be read as.
#define HOSTILE "# <script>alert(1)</script>[a](http://b)|\\|`x\n# y\x01"
#define TEXT                                                                                       \
    "op softmax(x: T[P, D]) -> (y: T[P, D]) where T in f16 f32\n"                                  \
    "{ y[p, d] = exp(x[p, d]) / (sum(d) exp(x[p, d])) }\ngoal { speedup 1.75 rounds 4 }\n"

static struct kg_error error;

static void add(struct kg_store *store, const struct kg_key *key, const struct kg_round *round)
{
    CHECK_STATUS(kg_store_round(store, key, round, &error), KG_OK, &error);
}

static struct kg_key gpu_key(void)
{
    struct kg_key key = sample_key();
    key.device = "NVIDIA H100 80GB HBM3";
    key.isa = "sm_90a";
    key.units = 132;
    return key;
}

// A build with every kind of end that a round may have, and what others recorded between.
static void add_build(struct kg_store *store)
{
    struct kg_key key = gpu_key();
    const struct kg_cost cost = {3e6, 1.6e7, 1.2e-5, 1.5e-6};
    struct kg_text diff = {0};
    kg_line_diff("#define TILE 64\nint a;\n", "#define TILE 128\nint a;\n", "rows{lanes=16}",
                 "rows{lanes=16,tile=2}", &diff);
    const struct kg_round rounds[] = {
        {.diagnosis = "the first version, by rule",
         .change = "none",
         .choice = "rows{lanes=8}",
         .after = 3.1e-5,
         .baseline = 4e-5,
         .roofline = 1.2e-5,
         .result = "measured against the baseline"},
        {.number = 1,
         .diagnosis = "latency: 0.39 of the bandwidth",
         .change = "a search over all parameters",
         .choice = "rows{lanes=16}",
         .before = 3.2e-5,
         .after = 1.9e-5,
         .baseline = 4.1e-5,
         .roofline = 1.2e-5,
         .result = "kept",
         .base = "rows{lanes=8}",
         .kind = "search",
         .bottleneck = "latency",
         .tried = 9,
         .kept = true},
        {.diagnosis = "a kernel from outside",
         .change = "verified",
         .choice = "foreign: mine.cu",
         .result = "passed: 12 cases, seed 7"},
        {.number = 2,
         .diagnosis = "parallelism: 40 blocks for 132 SMs: 70% of SM time idle",
         .change = "block and grid: tile 1 -> 2",
         .choice = "rows{lanes=16,tile=2}",
         .before = 1.91e-5,
         .after = 1.4e-5,
         .baseline = 4.2e-5,
         .roofline = 1.2e-5,
         .result = "kept",
         .base = "rows{lanes=16}",
         .kind = "block",
         .bottleneck = "parallelism",
         .predicted = 1.3e-5,
         .tried = 5,
         .kept = true,
         .difference = kg_text_string(&diff)},
        {.number = 3,
         .diagnosis = "parallelism: 80 blocks for 132 SMs",
         .change = "data reuse",
         .choice = "rows{lanes=16,tile=2,keep=1}",
         .before = 1.41e-5,
         .after = 1.5e-5,
         .baseline = 4.2e-5,
         .roofline = 1.2e-5,
         .result = "not faster beyond the noise",
         .base = "rows{lanes=16,tile=2}",
         .kind = "reuse",
         .bottleneck = "parallelism",
         .predicted = 1.25e-5,
         .tried = 3},
        {.number = 4,
         .diagnosis = "parallelism: 80 blocks for 132 SMs",
         .change = "",
         .choice = "rows{lanes=16,tile=2}",
         .before = 1.4e-5,
         .after = NAN,
         .baseline = NAN,
         .result = "no candidate of this kind compiles",
         .base = "rows{lanes=16,tile=2}",
         .kind = "form",
         .bottleneck = "parallelism"},
    };
    CHECK_STATUS(kg_store_describe(store, &key, &cost, TEXT, &error), KG_OK, &error);
    for (size_t i = 0; i < sizeof rounds / sizeof rounds[0]; i++)
        add(store, &key, &rounds[i]);
    kg_text_free(&diff);
}

static void add_outcomes(struct kg_store *store)
{
    struct kg_key key = gpu_key();
    static const struct {
        const char *choice, *reason;
        enum kg_outcome_kind kind;
        double seconds;
    } rows[] = {
        {"rows{lanes=16,tile=2}", "", KG_OUTCOME_MEASURED, 1.39e-5},
        {"rows{lanes=16}", "", KG_OUTCOME_MEASURED, 1.9e-5},
        {"rows{lanes=1}", "its bound is above the best time", KG_OUTCOME_PRUNED, 0},
        {"rows{lanes=32}", "y[0,7]: 1.5 where 1 <= 1.001 is right\nseed 7", KG_OUTCOME_WRONG, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct kg_outcome outcome = sample_outcome(rows[i].choice);
        outcome.kind = rows[i].kind;
        outcome.reason = rows[i].reason;
        outcome.timing.median = rows[i].seconds;
        outcome.final = false;
        CHECK_STATUS(kg_store_append(store, &key, &outcome, &error), KG_OK, &error);
    }
}

// As versions before the kinds of change recorded them.
static void add_old_build(struct kg_store *store)
{
    struct kg_key key = sample_key();
    add(store, &key,
        &(struct kg_round){.diagnosis = "the first version, by rule",
                           .change = "none",
                           .choice = "direct{}",
                           .after = 2e-3,
                           .baseline = 3e-2,
                           .roofline = 2e-5,
                           .result = "measured against the baseline"});
    add(store, &key,
        &(struct kg_round){.number = 1,
                           .diagnosis = "bandwidth: 0.01 of the bandwidth",
                           .change = "parameters only",
                           .choice = "rows{}",
                           .before = 2e-3,
                           .after = 3e-5,
                           .baseline = 3e-2,
                           .roofline = 2e-5,
                           .result = "kept"});
    add(store, &key,
        &(struct kg_round){.number = 2,
                           .diagnosis = "bandwidth: 0.67 of the bandwidth",
                           .change = "parameters only",
                           .choice = "rows{}",
                           .before = 3e-5,
                           .after = 3e-5,
                           .baseline = 3e-2,
                           .roofline = 2e-5,
                           .result = "the current version is the best found"});
}

static void add_hostile(struct kg_store *store)
{
    struct kg_key key = sample_key();
    key.op = "zero" HOSTILE;
    key.device = key.dtypes = key.sizes = HOSTILE;
    key.isa = key.driver = key.compiler = key.protocol = key.layout = HOSTILE;
    struct kg_round round = {.diagnosis = HOSTILE,
                             .change = HOSTILE,
                             .choice = "```" HOSTILE,
                             .after = 1e-5,
                             .baseline = INFINITY,
                             .roofline = -1,
                             .result = HOSTILE,
                             .base = HOSTILE,
                             .kind = HOSTILE,
                             .bottleneck = HOSTILE,
                             .predicted = NAN,
                             .difference = "+ `````\n# heading\n\x1b[31m\xff|<b>\n```\n"};
    for (round.number = 0; round.number < 2; round.number++) {
        add(store, &key, &round);
        round.before = 1.1e-5;
    }
}

static struct kg_text log_of(struct kg_store *store, const char *op, enum kg_language language)
{
    struct kg_text log = {0};
    CHECK_STATUS(kg_report_log(store, op, language, &log, &error), KG_OK, &error);
    return log;
}

// Dates become "DATE".
static void check_file(const char *name, const struct kg_text *log)
{
    char path[1024];
    char *expected = NULL;
    size_t length;
    struct kg_text actual = {0};
    for (const char *at = kg_text_string(log); *at;) {
        bool date = strncmp(at, "20", 2) == 0 && strnlen(at, 20) == 20 && at[19] == 'Z';
        kg_text_add_bytes(&actual, date ? "DATE" : at, date ? 4 : 1);
        at += date ? 20 : 1;
    }
    snprintf(path, sizeof path, "%s/tests/golden/log/%s", KG_SOURCE_DIR, name);
    if (getenv("UPDATE"))
        CHECK_STATUS(kg_files_publish(path, actual.data, actual.length, &error), KG_OK, &error);
    CHECK_STATUS(kg_files_read(path, 1 << 20, &expected, &length, &error), KG_OK, &error);
    CHECK_TEXT(kg_text_string(&actual), expected ? expected : "");
    free(expected);
    kg_text_free(&actual);
}

static void test_both_languages(void)
{
    struct kg_store *store;
    CHECK_STATUS(kg_store_open_memory(&store, &error), KG_OK, &error);
    add_build(store);
    add_outcomes(store);
    add_old_build(store);
    static const char *const files[] = {[KG_ENGLISH] = "en.md", [KG_CHINESE] = "zh.md"};
    for (int language = 0; language < 2; language++) {
        struct kg_text log = log_of(store, "softmax", (enum kg_language)language);
        CHECK(!strstr(kg_text_string(&log), "nan") && !strstr(kg_text_string(&log), "inf "));
        check_file(files[language], &log);
        kg_text_free(&log);
    }
    kg_store_close(store);
}

// Nothing of a record becomes HTML, a link, a heading, the end of a cell or of a block of code.
static void test_hostile(void)
{
    struct kg_store *store;
    CHECK_STATUS(kg_store_open_memory(&store, &error), KG_OK, &error);
    add_hostile(store);
    struct kg_text log = log_of(store, NULL, KG_ENGLISH);
    check_file("hostile.md", &log);
    bool code = false;
    for (const char *line = kg_text_string(&log); *line; line += strcspn(line, "\n") + 1) {
        bool mark = strncmp(line, "``````", 6) == 0;
        code ^= mark;
        if (code || mark)
            continue;
        CHECK(strncmp(line, "# y", 3) != 0 && strncmp(line, "# heading", 9) != 0);
        for (const char *at = line; *at && *at != '\n'; at++) {
            CHECK(*at != '\x01' && *at != '\x1b');
            CHECK(strncmp(at, "](", 2) != 0 || strncmp(at + 2, "http", 4) != 0 ||
                  strchr(line, '`') != NULL);
        }
    }
    CHECK(!code);
    kg_text_free(&log);
    kg_store_close(store);
}

static void test_long_diff(void)
{
    struct kg_store *store;
    struct kg_key key = sample_key();
    struct kg_text diff = {0};
    CHECK_STATUS(kg_store_open_memory(&store, &error), KG_OK, &error);
    for (int i = 0; i < 10000; i++)
        kg_text_format(&diff, "+line %d\n", i);
    struct kg_round round = {.number = 1, .choice = "b", .difference = diff.data};
    add(store, &key, &round);
    struct kg_text log = log_of(store, NULL, KG_ENGLISH);
    CHECK(log.length < 20000);
    CHECK(strstr(kg_text_string(&log), "+line 500\n"));
    CHECK(strstr(kg_text_string(&log), "\n```\n\nThe diff goes on: only its beginning is shown"));
    kg_text_free(&log);
    memset(diff.data, 'x', diff.length); // one line
    add(store, &key, &round);
    log = log_of(store, NULL, KG_CHINESE);
    CHECK(log.length < 40000 && strstr(kg_text_string(&log), "差异过长"));
    kg_text_free(&log);
    kg_text_free(&diff);
    kg_store_close(store);
}

// Only the latest builds are told as a story, and every round is in the table.
static void test_many_builds(void)
{
    struct kg_store *store;
    struct kg_key key = sample_key();
    char choice[32];
    int stories = 0, rows = 0;
    CHECK_STATUS(kg_store_open_memory(&store, &error), KG_OK, &error);
    for (int i = 0; i < 20; i++) {
        snprintf(choice, sizeof choice, "build=%d", i);
        add(store, &key, &(struct kg_round){.choice = choice, .after = 1e-3});
    }
    struct kg_text log = log_of(store, NULL, KG_ENGLISH);
    for (const char *at = log.data; (at = strstr(at, "\n### The build of ")); at++)
        stories++;
    for (const char *at = log.data; (at = strstr(at, "| build=")); at++)
        rows++;
    CHECK(stories == 5);
    CHECK(rows == 20 + 2); // and the summary
    CHECK(strstr(log.data, "`build=15`") && !strstr(log.data, "`build=14`"));
    CHECK(strstr(log.data, "Only the latest builds are told"));
    kg_text_free(&log);
    kg_store_close(store);
}

static void test_nothing(void)
{
    struct kg_store *store;
    CHECK_STATUS(kg_store_open_memory(&store, &error), KG_OK, &error);
    struct kg_text log = log_of(store, "softmax", KG_ENGLISH);
    CHECK_TEXT(log.data, "# Optimisation log of softmax\n\nNothing is recorded yet.\n");
    kg_text_free(&log);
    log = log_of(store, NULL, KG_CHINESE);
    CHECK_TEXT(log.data, "# 优化日志\n\n尚无记录。\n");
    kg_text_free(&log);
    kg_store_close(store);
}

TEST_MAIN(test_both_languages, test_hostile, test_long_diff, test_many_builds, test_nothing)
