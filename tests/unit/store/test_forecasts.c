// What the model said of a candidate stays with its outcome; what was damaged promises nothing.

#include "support/sample_records.h"
#include "test.h"

#include "store/forecast_json.h"
#include "store/samples.h"

#include <math.h>
#include <sqlite3.h>

static char folder[SAMPLE_FOLDER], path[SAMPLE_FOLDER + 16];
static struct kg_error error;

static void run(const char *sql)
{
    sqlite3 *database;
    char *why = NULL;
    CHECK(sqlite3_open(path, &database) == SQLITE_OK);
    if (sqlite3_exec(database, sql, NULL, NULL, &why) != SQLITE_OK)
        fprintf(stderr, "%s\n", why);
    CHECK(!why);
    sqlite3_free(why);
    sqlite3_close(database);
}

static int ask(const char *sql)
{
    sqlite3 *database;
    sqlite3_stmt *statement;
    CHECK(sqlite3_open(path, &database) == SQLITE_OK);
    CHECK(sqlite3_prepare_v2(database, sql, -1, &statement, NULL) == SQLITE_OK);
    int answer = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int(statement, 0) : -1;
    sqlite3_finalize(statement);
    sqlite3_close(database);
    return answer;
}

static void append(struct kg_store *store, const struct kg_outcome *outcome)
{
    struct kg_key key = sample_key();
    CHECK_STATUS(kg_store_append(store, &key, outcome, &error), KG_OK, &error);
}

static struct kg_outcome find(struct kg_store *store, const char *choice)
{
    struct kg_key key = sample_key();
    struct kg_outcome found;
    bool any;
    CHECK_STATUS(kg_store_find(store, &key, choice, &found, &any, &error), KG_OK, &error);
    CHECK(any);
    return found;
}

static void set_up(void)
{
    sample_folder(folder);
    snprintf(path, sizeof path, "%s/records.db", folder);
}

static void test_kept(void)
{
    struct kg_store *store = sample_open(folder);
    struct kg_outcome outcome = sample_outcome("contract: m=128"), plain = sample_outcome("plain");
    plain.forecast = (struct kg_forecast){0};
    append(store, &outcome);
    append(store, &plain);
    kg_store_close(store);
    store = sample_open(folder);
    struct kg_outcome found = find(store, outcome.choice);
    CHECK(sample_same_forecast(&found.forecast, &outcome.forecast) &&
          found.timing.median == 1.25e-5);
    found = find(store, "plain");
    CHECK(!found.forecast.known && found.forecast.estimate == 0);
    // What was not measured says nothing of times.
    outcome.kind = KG_OUTCOME_PRUNED;
    outcome.choice = "pruned";
    append(store, &outcome);
    found = find(store, "pruned");
    CHECK(!found.forecast.known);
    kg_store_close(store);
    CHECK(ask("SELECT count(*) FROM promises") == 1);
}

static void test_samples(void)
{
    struct kg_store *store = sample_open(folder);
    struct kg_samples samples = {.count = 0};
    CHECK_STATUS(kg_samples_collect(store, &samples, &error), KG_OK, &error);
    CHECK(samples.count == 2);
    for (int s = 0; s < samples.count; s++) {
        const struct kg_sample *sample = &samples.list[s];
        struct kg_outcome outcome = sample_outcome("");
        CHECK_TEXT(sample->op, "softmax");
        CHECK_TEXT(sample->device, "Some CPU, 8 units, avx2");
        CHECK(sample->seconds == 1.25e-5 && !sample->warm);
        CHECK(fabs(sample->spread - 1.57 * 1e-7 / sqrt(30) / 1.25e-5) < 1e-9);
        if (strcmp(sample->family, "contract") == 0) {
            CHECK(sample_same_forecast(&sample->forecast, &outcome.forecast));
        } else { // the bound of its family
            CHECK_TEXT(sample->family, "plain");
            CHECK(!sample->forecast.known && sample->forecast.bound == 1e-5);
        }
    }
    kg_samples_free(&samples);
    struct kg_sample_filter filter = {.op = "softmax", .device = "some cpu", .family = "contract"};
    samples.filter = &filter;
    CHECK_STATUS(kg_samples_collect(store, &samples, &error), KG_OK, &error);
    CHECK(samples.count == 1);
    filter.op = "relu";
    CHECK_STATUS(kg_samples_collect(store, &samples, &error), KG_OK, &error);
    CHECK(samples.count == 1);
    kg_samples_free(&samples);
    kg_store_close(store);
}

// The seal fits no other words, and no other outcome.
static void test_damaged_forecasts_are_dropped(void)
{
    static const char *const damages[] = {
        "UPDATE promises SET promise = replace(promise, '4096', '4097')",
        "UPDATE promises SET promise = 'nonsense'",
        "UPDATE promises SET promise = zeroblob(100000)",
        "UPDATE promises SET promise = printf('%.*c', 200000, '[')",
        "UPDATE promises SET seal = ''",
        "UPDATE promises SET promise = (SELECT promise FROM promises ORDER BY outcome DESC LIMIT "
        "1),"
        " seal = (SELECT seal FROM promises ORDER BY outcome DESC LIMIT 1)",
    };
    for (size_t d = 0; d < sizeof damages / sizeof damages[0]; d++) {
        struct kg_store *store = sample_open(folder);
        struct kg_outcome outcome = sample_outcome("damaged"), other = sample_outcome("damaged");
        other.timing.median *= 2;
        append(store, &other);
        append(store, &outcome);
        outcome.choice = "sound";
        append(store, &outcome);
        kg_store_close(store);
        run(damages[d]);
        store = sample_open(folder);
        struct kg_outcome found = find(store, "damaged");
        CHECK(found.timing.median == 1.25e-5 && !found.forecast.known);
        struct kg_samples samples = {.count = 0};
        CHECK_STATUS(kg_samples_collect(store, &samples, &error), KG_OK, &error);
        CHECK(samples.count > 0);
        kg_samples_free(&samples);
        kg_store_close(store);
    }
}

static void test_words(void)
{
    const struct kg_forecast_origin origin = {.device = "Some GPU", .family = "rowwise"};
    static const char good[] =
        "{\"bound\": 1e-5, \"points\": null, \"launch\": null, \"features\": null}";
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "is no JSON"},
        {"[]", "is no JSON object"},
        {"{\"bound\": 1e-5, \"points\": null, \"launch\": null}", "has 3 members, not 4"},
        {"{\"bound\": 0, \"points\": null, \"launch\": null, \"features\": null}",
         "\"bound\" must"},
        {"{\"bound\": 1, \"points\": [], \"launch\": null, \"features\": null}", "\"points\" must"},
        {"{\"bound\": 1, \"points\": 1, \"launch\": {}, \"features\": null}", "\"launch\" must"},
        {"{\"bound\": 1, \"points\": 1, \"launch\": null, \"features\": {\"base\": 1}}",
         "\"features\" must be an object of 12"},
    };
    struct kg_forecast forecast;
    CHECK_STATUS(kg_store_read_forecast(good, sizeof good - 1, &origin, &forecast, &error), KG_OK,
                 &error);
    CHECK(!forecast.known && forecast.bound == 1e-5 && isnan(forecast.points));
    for (size_t b = 0; b < sizeof bad / sizeof bad[0]; b++) {
        bool is_object = strstr(bad[b].says, "is no JSON") == NULL;
        CHECK_STATUS(
            kg_store_read_forecast(bad[b].text, strlen(bad[b].text), &origin, &forecast, &error),
            is_object ? KG_ERROR_UNSUPPORTED : KG_ERROR_CORRUPT, &error);
        CHECK(strstr(error.text, bad[b].says) != NULL && !forecast.known && forecast.bound == 0);
        if (!strstr(error.text, bad[b].says))
            fprintf(stderr, "  %s\n", error.text);
    }
}

// What follows from the rest is not written, and is there all the same.
static void test_derived(void)
{
    const struct kg_forecast_origin origin = {.device = "h100", .family = "scan: threads=8"};
    struct kg_forecast forecast = sample_forecast(), found;
    struct kg_text words = {0};
    struct kg_json json = {.text = &words};
    kg_json_begin_object(&json, NULL);
    kg_store_write_forecast(&json, &forecast);
    kg_json_end_object(&json);
    CHECK(!strstr(kg_text_string(&words), "footprint"));
    CHECK_STATUS(kg_store_read_forecast(words.data, words.length, &origin, &found, &error), KG_OK,
                 &error);
    kg_model_derive(forecast.bound, &forecast.longest, kg_gpu_find("h100"), forecast.feature);
    CHECK(forecast.feature[KG_FEATURE_FOOTPRINT] > 0);
    CHECK(memcmp(found.feature, forecast.feature, sizeof found.feature) == 0);
    CHECK(found.estimate ==
          kg_model_estimate(forecast.bound, forecast.feature, 2, false, kg_model_prior_of("scan")));
    kg_text_free(&words);
}

static void tear_down(void)
{
    sample_remove(folder);
}

TEST_MAIN(set_up, test_kept, test_samples, test_damaged_forecasts_are_dropped, test_words,
          test_derived, tear_down)
