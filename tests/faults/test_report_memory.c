// Every allocation of the report and of the log fails once: there is a whole page or none.

#include "faults/fail_alloc.h"
#include "report/html.h"
#include "report/log.h"
#include "support/sample_records.h"
#include "test.h"

static struct kg_error error;

static void add_records(struct kg_store *store)
{
    struct kg_key key = sample_key();
    struct kg_round round = {.number = 0,
                             .diagnosis = "by rule",
                             .change = "none",
                             .choice = "rows{lanes=8}",
                             .before = 0,
                             .after = 2e-5,
                             .baseline = 3e-5,
                             .roofline = 1e-5,
                             .result = "measured"};
    for (int i = 0; i < 3; i++) {
        struct kg_outcome outcome = sample_outcome("rows{lanes=8}");
        key.device = i == 2 ? "Another CPU" : "Some CPU";
        key.op = i == 1 ? "soft" : "softmax";
        CHECK_STATUS(kg_store_round(store, &key, &round, &error), KG_OK, &error);
        CHECK_STATUS(kg_store_append(store, &key, &outcome, &error), KG_OK, &error);
    }
}

// The page and the status without a failure are `expected` and `right`.
static void sweep(struct kg_store *store, const char *op, enum kg_status right,
                  const char *expected)
{
    int failures = 0;
    for (long n = 1; fail_alloc_sweep(n); n++) {
        struct kg_text page = {0}, summary = {0};
        fail_alloc_at(n);
        enum kg_status status = kg_report_html(store, op, &summary, &page, &error);
        fail_alloc_never();
        CHECK(status == right || status == KG_ERROR_MEMORY);
        CHECK_TEXT(kg_text_string(&page), status == KG_OK ? expected : "");
        CHECK((summary.length > 0) == (status == KG_OK));
        failures += status == KG_ERROR_MEMORY;
        kg_text_free(&page);
        kg_text_free(&summary);
    }
    CHECK(failures > 3);
}

static void test_report(void)
{
    struct kg_store *store;
    struct kg_text page = {0}, summary = {0};
    CHECK_STATUS(kg_store_open_memory(&store, &error), KG_OK, &error);
    add_records(store);
    CHECK_STATUS(kg_report_html(store, NULL, &summary, &page, &error), KG_OK, &error);
    CHECK_TEXT(kg_text_string(&summary), "3 problems of 2 ops on 2 devices");
    sweep(store, NULL, KG_OK, kg_text_string(&page));
    sweep(store, "sofmax", KG_ERROR_ARGUMENT, "");
    kg_text_free(&page);
    kg_text_free(&summary);
    kg_store_close(store);
}

static void test_log(void)
{
    struct kg_store *store;
    struct kg_text right = {0};
    struct kg_key key = sample_key();
    const struct kg_cost cost = {1e6, 2e6, 1e-5, 2e-5};
    struct kg_round round = {.number = 1,
                             .choice = "rows{lanes=16}",
                             .before = 2e-5,
                             .after = 1.5e-5,
                             .base = "rows{lanes=8}",
                             .kind = "block",
                             .bottleneck = "tail",
                             .predicted = 1e-5,
                             .kept = true,
                             .difference = "-a\n+b\n"};
    int failures = 0;
    CHECK_STATUS(kg_store_open_memory(&store, &error), KG_OK, &error);
    add_records(store);
    CHECK_STATUS(kg_store_round(store, &key, &round, &error), KG_OK, &error);
    CHECK_STATUS(kg_store_describe(store, &key, &cost,
                                   "op softmax(x: f32[P]) -> (y: f32[P])\n{ y[p] = x[p] }\n"
                                   "goal { speedup 1.5 }",
                                   &error),
                 KG_OK, &error);
    CHECK_STATUS(kg_report_log(store, NULL, KG_ENGLISH, &right, &error), KG_OK, &error);
    CHECK(strstr(right.data, "Target: 1.5 times") && strstr(right.data, "```diff"));
    for (long n = 1; fail_alloc_sweep(n); n++) {
        struct kg_text log = {0};
        fail_alloc_at(n);
        enum kg_status status = kg_report_log(store, NULL, KG_ENGLISH, &log, &error);
        fail_alloc_never();
        CHECK(status == KG_OK || status == KG_ERROR_MEMORY);
        CHECK_TEXT(kg_text_string(&log), status == KG_OK ? right.data : "");
        failures += status == KG_ERROR_MEMORY;
        kg_text_free(&log);
    }
    CHECK(failures > 30);
    kg_text_free(&right);
    kg_store_close(store);
}

TEST_MAIN(test_report, test_log)
