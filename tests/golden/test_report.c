// The report of sample records as a page and as text, byte for byte. UPDATE=1 in the environment
// rewrites the expected file.

#include "base/files.h"
#include "report/html.h"
#include "report/terminal.h"
#include "support/sample_records.h"
#include "test.h"

#include <math.h>

// What a hostile record would like to be read as.
#define HOSTILE "<script>alert('1')</script>&\"\x01"

static void add_rounds(struct kg_store *store, const struct kg_key *key)
{
    static const struct kg_round rounds[] = {
        {.number = 0,
         .diagnosis = "the first version, by rule",
         .change = "none",
         .choice = "rows{lanes=8}",
         .before = 0,
         .after = 3.1e-5,
         .baseline = 4e-5,
         .roofline = 1.2e-5,
         .result = "measured"},
        {.number = 1,
         .diagnosis = "limited by parallelism, 39% of the roofline",
         .change = "parameters only",
         .choice = "rows{lanes=16}",
         .before = 3.1e-5,
         .after = 1.9e-5,
         .baseline = 4.1e-5,
         .roofline = 1.2e-5,
         .result = "kept"},
        {.number = 2,
         .diagnosis = "limited by bandwidth, 63% of the roofline",
         .change = "parameters only",
         .choice = "rows{lanes=4}",
         .before = 1.9e-5,
         .after = 2.2e-5,
         .baseline = 4e-5,
         .roofline = 1.2e-5,
         .result = "not faster beyond the noise"},
        {.number = 0,
         .diagnosis = "the first version, by rule",
         .change = "none",
         .choice = "rows{lanes=8}",
         .before = 0,
         .after = 3.0e-5,
         .baseline = 4e-5,
         .roofline = 1.2e-5,
         .result = "measured"},
        {.number = 1,
         .diagnosis = "limited by parallelism, 40% of the roofline",
         .change = "parameters only",
         .choice = "rows{lanes=16,unroll=4}",
         .before = 3.0e-5,
         .after = 1.4e-5,
         .baseline = 4.2e-5,
         .roofline = 1.2e-5,
         .result = "kept"},
        {.number = 2,
         .diagnosis = "the machine was busy",
         .change = "none",
         .choice = "rows{lanes=16,unroll=4}",
         .before = 1.4e-5,
         .after = NAN,
         .baseline = NAN,
         .roofline = NAN,
         .result = "lost"},
    };
    struct kg_error error = {0};
    for (size_t i = 0; i < sizeof rounds / sizeof rounds[0]; i++)
        CHECK_STATUS(kg_store_round(store, key, &rounds[i], &error), KG_OK, &error);
}

static void add_outcomes(struct kg_store *store, const struct kg_key *key)
{
    static const struct {
        const char *choice;
        enum kg_outcome_kind kind;
        const char *reason;
        double seconds, bound;
    } rows[] = {
        {"rows{lanes=16,unroll=4}", KG_OUTCOME_MEASURED, "", 1.4e-5, 1.2e-5},
        {"rows{lanes=16}", KG_OUTCOME_MEASURED, "", 1.9e-5, 1.2e-5},
        {"rows{lanes=4}", KG_OUTCOME_MEASURED, "", 2.2e-5, 1.3e-5},
        {"rows{lanes=8}", KG_OUTCOME_MEASURED, "", 3.1e-5, 1.2e-5},
        {"direct{}", KG_OUTCOME_MEASURED, "", 9.3e-5, 2.4e-5},
        {"rows{lanes=3}", KG_OUTCOME_INVALID, "3 lanes do not divide a vector", 0, 0},
        {"rows{lanes=1}", KG_OUTCOME_PRUNED, "cannot take less than 20 us; the best takes 14 us", 0,
         2e-5},
        {"rows{lanes=32}", KG_OUTCOME_WRONG, "y[0,7]: 1.5 where 1 <= 1.001 is right\nseed 7", 0, 0},
        {"rows{lanes=64}", KG_OUTCOME_COMPILE, HOSTILE, 0, 0},
    };
    struct kg_error error = {0};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct kg_outcome outcome = sample_outcome(rows[i].choice);
        outcome.kind = rows[i].kind;
        outcome.reason = rows[i].reason;
        outcome.bound = rows[i].bound;
        outcome.timing.median = rows[i].seconds;
        CHECK_STATUS(kg_store_append(store, key, &outcome, &error), KG_OK, &error);
    }
}

static void add_samples(struct kg_store *store)
{
    struct kg_error error = {0};
    struct kg_key key = sample_key();
    add_rounds(store, &key);
    add_outcomes(store, &key);
    char choice[] = "rows{lanes=16,unroll=4}";
    struct kg_wisdom wisdom = sample_wisdom(choice);
    wisdom.seconds = 1.4e-5;
    CHECK_STATUS(kg_store_learn(store, &key, &wisdom, &error), KG_OK, &error);
    struct kg_cost cost = {
        .operations = 1e9, .bytes = 1e8, .memory_seconds = 1.2e-5, .compute_seconds = 3e-6};
    CHECK_STATUS(kg_store_describe(store, &key, &cost, "op softmax", &error), KG_OK, &error);

    // A search that was cut short, of an op with a name no definition could have.
    key.op = "zero" HOSTILE;
    key.sizes = "P=1 D=1";
    for (int i = 0; i < 30; i++) {
        char name[32];
        snprintf(name, sizeof name, "rows{lanes=%d}", i);
        struct kg_outcome outcome = sample_outcome(name);
        outcome.timing.median = 1e-6 * (i + 1);
        outcome.bound = NAN;
        CHECK_STATUS(kg_store_append(store, &key, &outcome, &error), KG_OK, &error);
    }

    // Times that span powers of ten: the plot is logarithmic.
    key = sample_key();
    key.sizes = "P=7 D=7";
    struct kg_round round = {.number = 0,
                             .diagnosis = "by rule",
                             .change = "none",
                             .choice = "direct{}",
                             .before = 0,
                             .after = 2e-3,
                             .baseline = 3e-2,
                             .roofline = 2e-5,
                             .result = "measured"};
    CHECK_STATUS(kg_store_round(store, &key, &round, &error), KG_OK, &error);
    round = (struct kg_round){.number = 1,
                              .diagnosis = "latency",
                              .change = "parameters",
                              .choice = "rows{}",
                              .before = 2e-3,
                              .after = 3e-5,
                              .baseline = 3e-2,
                              .roofline = 2e-5,
                              .result = "kept"};
    CHECK_STATUS(kg_store_round(store, &key, &round, &error), KG_OK, &error);
}

// Rounds have the date of now.
static void hide_dates(char *page)
{
    static const char pattern[] = "0000-00-00T00:00:00Z";
    for (char *at = strchr(page, 'T'); at; at = strchr(at + 1, 'T')) {
        char *start = at - strcspn(pattern, "T");
        bool matches = start >= page;
        for (size_t i = 0; i < sizeof pattern - 1 && matches; i++)
            matches =
                pattern[i] == '0' ? start[i] >= '0' && start[i] <= '9' : start[i] == pattern[i];
        if (matches)
            memcpy(start, pattern, sizeof pattern - 1);
    }
}

static void check_file(const char *name, char *actual)
{
    hide_dates(actual);
    char path[1024];
    struct kg_error error = {0};
    char *expected = NULL;
    size_t length;
    snprintf(path, sizeof path, "%s/tests/golden/report/%s", KG_SOURCE_DIR, name);
    if (getenv("UPDATE"))
        CHECK_STATUS(kg_files_publish(path, actual, strlen(actual), &error), KG_OK, &error);
    CHECK_STATUS(kg_files_read(path, 1 << 20, &expected, &length, &error), KG_OK, &error);
    CHECK_TEXT(actual, expected ? expected : "");
    free(expected);
}

static void test_page(void)
{
    char folder[SAMPLE_FOLDER];
    sample_folder(folder);
    struct kg_store *store = sample_open(folder);
    add_samples(store);
    struct kg_error error = {0};
    struct kg_text page = {0}, summary = {0};
    CHECK_STATUS(kg_report_html(store, NULL, NULL, &summary, &page, &error), KG_OK, &error);
    CHECK_TEXT(kg_text_string(&summary), "3 problems of 2 ops on 1 device");
    check_file("records.html", page.data);
    CHECK(strstr(kg_text_string(&page), "<script>alert") == NULL);
    CHECK(strstr(kg_text_string(&page), "nan") == NULL);
    CHECK(strstr(kg_text_string(&page), "http://") == NULL);
    CHECK(strstr(kg_text_string(&page), "https://") == NULL);

    // One op alone, and one that nobody built.
    kg_text_cut(&page, 0);
    kg_text_cut(&summary, 0);
    CHECK_STATUS(kg_report_html(store, "softmax", NULL, &summary, &page, &error), KG_OK, &error);
    CHECK(strstr(kg_text_string(&page), "id=\"p2\"") != NULL);
    CHECK(strstr(kg_text_string(&page), "id=\"p3\"") == NULL);
    kg_text_cut(&page, 0);
    kg_text_cut(&summary, 0);
    CHECK(kg_report_html(store, "sofmax", NULL, &summary, &page, &error) == KG_ERROR_ARGUMENT);
    CHECK(strstr(error.text, "nothing is recorded of \"sofmax\"; did you mean \"softmax\"? On "
                             "record: softmax, zero<script>"));
    CHECK(kg_report_html(store, "reduce", NULL, &summary, &page, &error) == KG_ERROR_ARGUMENT);
    CHECK(strstr(error.text, "nothing is recorded of \"reduce\"; on record: softmax, zero"));
    CHECK(page.length == 0 && summary.length == 0);
    kg_text_free(&summary);
    kg_text_free(&page);
    kg_store_close(store);
    sample_remove(folder);
}

// No line is longer than the terminal is wide: texts of records are as long as they are.
static int widest_plot(const char *text)
{
    int widest = 0, width = 0;
    bool plot = false;
    for (const char *c = text; *c; c++) {
        plot |= *c == '|' || strncmp(c, "\xe2\x94\x82", 3) == 0;
        width += ((unsigned char)*c & 0xc0) != 0x80;
        if (*c == '\n') {
            widest = plot && width - 1 > widest ? width - 1 : widest;
            width = plot = 0;
        }
    }
    return widest;
}

static void test_terminal(void)
{
    static const struct {
        struct kg_terminal terminal;
        const char *op, *file;
    } cases[] = {{{80, true, false}, NULL, "records_80.txt"},
                 {{50, false, false}, "softmax", "softmax_50.txt"},
                 {{1, false, false}, NULL, "records_40.txt"}}; // the least is 40
    char folder[SAMPLE_FOLDER];
    sample_folder(folder);
    struct kg_store *store = sample_open(folder);
    add_samples(store);
    struct kg_error error = {0};
    struct kg_text text = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct kg_terminal *terminal = &cases[i].terminal;
        kg_text_cut(&text, 0);
        CHECK_STATUS(kg_report_terminal(store, cases[i].op, terminal, &text, &error), KG_OK,
                     &error);
        check_file(cases[i].file, text.data);
        int columns = terminal->columns < 40 ? 40 : terminal->columns;
        CHECK(widest_plot(text.data) <= columns && widest_plot(text.data) > columns - 8);
        CHECK(strchr(text.data, '\033') == NULL && strchr(text.data, '\x01') == NULL);
        for (const char *c = text.data; *c && !terminal->unicode; c++)
            CHECK(!((unsigned char)*c & 0x80));
    }
    // Colours add escape sequences and nothing else.
    struct kg_text coloured = {0}, plain = {0};
    struct kg_terminal terminal = {80, true, true};
    CHECK_STATUS(kg_report_terminal(store, NULL, &terminal, &coloured, &error), KG_OK, &error);
    terminal.colour = false;
    CHECK_STATUS(kg_report_terminal(store, NULL, &terminal, &plain, &error), KG_OK, &error);
    CHECK(coloured.length > plain.length);
    kg_text_cut(&text, 0);
    for (const char *c = kg_text_string(&coloured); *c; c++)
        if (*c == '\033')
            c += strcspn(c, "m");
        else
            kg_text_add_bytes(&text, c, 1);
    CHECK_TEXT(kg_text_string(&text), kg_text_string(&plain));
    CHECK(kg_report_terminal(store, "none", &terminal, &plain, &error) == KG_ERROR_ARGUMENT);
    kg_text_free(&coloured);
    kg_text_free(&plain);
    kg_text_free(&text);
    kg_store_close(store);
    sample_remove(folder);
}

// Plots of records that nobody can have measured end, and show no number that is none.
static void test_extremes(void)
{
    static const double seconds[] = {1e-300, 1e-3, 1.7e308};
    struct kg_store *store;
    struct kg_error error = {0};
    struct kg_text page = {0}, summary = {0}, text = {0};
    const struct kg_terminal terminal = {.columns = 80};
    CHECK_STATUS(kg_store_open_memory(&store, &error), KG_OK, &error);
    for (int i = 0; i < 9; i++) {
        struct kg_key key = sample_key();
        char sizes[16];
        snprintf(sizes, sizeof sizes, "P=%d", i);
        key.sizes = sizes;
        for (int k = 0; k < 3; k++) {
            char choice[16];
            snprintf(choice, sizeof choice, "rows{a=%d}", k);
            struct kg_outcome outcome = sample_outcome(choice);
            outcome.final = false;
            outcome.timing.median = seconds[(i + k) % 3];
            outcome.bound = seconds[k];
            CHECK_STATUS(kg_store_append(store, &key, &outcome, &error), KG_OK, &error);
            struct kg_round round = {.number = k,
                                     .choice = choice,
                                     .after = seconds[k],
                                     .baseline = seconds[i / 3],
                                     .roofline = seconds[(i + 1) % 3]};
            CHECK_STATUS(kg_store_round(store, &key, &round, &error), KG_OK, &error);
        }
        struct kg_cost cost = {1, 1, seconds[i % 3], seconds[i / 3]};
        CHECK_STATUS(kg_store_describe(store, &key, &cost, "op x", &error), KG_OK, &error);
    }
    CHECK_STATUS(kg_report_html(store, NULL, NULL, &summary, &page, &error), KG_OK, &error);
    CHECK_STATUS(kg_report_terminal(store, NULL, &terminal, &text, &error), KG_OK, &error);
    CHECK(strstr(kg_text_string(&page), "nan") == NULL);
    CHECK(strstr(kg_text_string(&text), "nan") == NULL && strstr(text.data, "inf") == NULL);
    kg_text_free(&page);
    kg_text_free(&summary);
    kg_text_free(&text);
    kg_store_close(store);
}

static void test_nothing(void)
{
    struct kg_store *store;
    struct kg_error error = {0};
    struct kg_text page = {0}, summary = {0};
    CHECK_STATUS(kg_store_open_memory(&store, &error), KG_OK, &error);
    CHECK_STATUS(kg_report_html(store, NULL, NULL, &summary, &page, &error), KG_OK, &error);
    CHECK(strstr(kg_text_string(&summary), "nothing is recorded yet: 'kernelgen build OP.kg'"));
    CHECK(strstr(kg_text_string(&page), "nothing is recorded yet: &#39;kernelgen build OP.kg"));
    CHECK(kg_report_html(store, "softmax", NULL, &summary, &page, &error) == KG_ERROR_ARGUMENT);
    CHECK(strstr(error.text, "nothing is recorded of \"softmax\", nor of any other op"));
    kg_text_free(&page);
    kg_text_free(&summary);
    kg_store_close(store);
}

static void test_escape(void)
{
    struct kg_text text = {0};
    kg_html_text(&text, "a<b>&\"c'\x01\x7f\n\td\xc3\xa9");
    CHECK_TEXT(kg_text_string(&text),
               "a&lt;b&gt;&amp;&quot;c&#39;\xef\xbf\xbd\xef\xbf\xbd\n\td\xc3\xa9");
    kg_text_cut(&text, 0);
    kg_html_text(&text, "");
    CHECK_TEXT(kg_text_string(&text), "");
    kg_text_free(&text);
}

TEST_MAIN(test_escape, test_page, test_terminal, test_extremes, test_nothing)
