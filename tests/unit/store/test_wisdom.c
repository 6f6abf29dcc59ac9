#include "support/sample_records.h"
#include "test.h"

#include <jansson.h>
#include <math.h>

static struct kg_error error;

// Recalls and gives the seconds known; 0 when nothing is.
static double known(struct kg_store *store, const struct kg_key *key)
{
    struct kg_wisdom wisdom;
    enum kg_status status = kg_store_recall(store, key, &wisdom, &error);
    double seconds = wisdom.seconds;
    CHECK(status == KG_OK || status == KG_ERROR_NO_WISDOM);
    CHECK((status == KG_OK) == (wisdom.choice != NULL));
    kg_wisdom_free(&wisdom);
    return seconds;
}

static void learn(struct kg_store *store, const struct kg_key *key, enum kg_rigor rigor,
                  double seconds)
{
    char choice[] = "rowwise vector=8";
    struct kg_wisdom wisdom = sample_wisdom(choice);
    wisdom.rigor = rigor;
    wisdom.seconds = seconds;
    CHECK_STATUS(kg_store_learn(store, key, &wisdom, &error), KG_OK, &error);
}

static void test_learn_and_recall(void)
{
    char folder[SAMPLE_FOLDER];
    sample_folder(folder);
    struct kg_store *store = sample_open(folder);
    struct kg_key key = sample_key(), other = key;
    other.driver = "6.2";
    CHECK(known(store, &key) == 0);
    CHECK(strstr(error.text, "softmax") && strstr(error.text, "P=4096"));
    char choice[] = "rowwise vector=8", date[] = "2025-01-31T12:00:00Z";
    struct kg_wisdom wisdom = sample_wisdom(choice), read;
    wisdom.date = date;
    CHECK_STATUS(kg_store_learn(store, &key, &wisdom, &error), KG_OK, &error);
    kg_store_close(store);
    store = sample_open(folder);
    CHECK_STATUS(kg_store_recall(store, &key, &read, &error), KG_OK, &error);
    CHECK_TEXT(read.choice, choice);
    CHECK_TEXT(read.date, date);
    CHECK(read.rigor == wisdom.rigor && read.seconds == wisdom.seconds);
    CHECK(read.spread == wisdom.spread && read.seed == wisdom.seed);
    kg_wisdom_free(&read);
    kg_wisdom_free(NULL);
    CHECK(known(store, &other) == 0);

    learn(store, &other, KG_RIGOR_MEASURE, 1e-5); // undated: now
    CHECK_STATUS(kg_store_recall(store, &other, &read, &error), KG_OK, &error);
    CHECK(read.date && strlen(read.date) == 20);
    kg_wisdom_free(&read);
    kg_store_close(store);
    sample_remove(folder);
}

static void test_what_replaces_what(void)
{
    char folder[SAMPLE_FOLDER];
    sample_folder(folder);
    struct kg_store *store = sample_open(folder);
    struct kg_key key = sample_key();
    learn(store, &key, KG_RIGOR_PATIENT, 2e-5);
    learn(store, &key, KG_RIGOR_MEASURE, 3e-5); // slower and with less rigor
    CHECK(known(store, &key) == 2e-5);
    learn(store, &key, KG_RIGOR_MEASURE, 1.5e-5); // faster
    CHECK(known(store, &key) == 1.5e-5);
    learn(store, &key, KG_RIGOR_EXHAUSTIVE, 1.6e-5); // more rigor
    CHECK(known(store, &key) == 1.6e-5);
    kg_store_close(store);
    sample_remove(folder);
}

static void test_refusals(void)
{
    char folder[SAMPLE_FOLDER], choice[] = "rowwise", none[] = "";
    sample_folder(folder);
    struct kg_store *store = sample_open(folder);
    struct kg_key key = sample_key();
    struct kg_wisdom bad[6];
    for (int i = 0; i < 6; i++)
        bad[i] = sample_wisdom(choice);
    bad[0].seconds = 0;
    bad[1].seconds = (double)NAN;
    bad[2].spread = (double)INFINITY;
    bad[3].rigor = KG_RIGOR_WISDOM;
    bad[4].choice = NULL;
    bad[5].choice = none;
    for (int i = 0; i < 6; i++)
        CHECK_STATUS(kg_store_learn(store, &key, &bad[i], &error), KG_ERROR_ARGUMENT, &error);
    CHECK(known(store, &key) == 0);
    kg_store_close(store);
    sample_remove(folder);
}

static void test_list_and_forget(void)
{
    char folder[SAMPLE_FOLDER];
    sample_folder(folder);
    struct kg_store *store = sample_open(folder);
    struct kg_key key = sample_key();
    learn(store, &key, KG_RIGOR_MEASURE, 1.25e-5);
    key.op = "softplus";
    learn(store, &key, KG_RIGOR_MEASURE, 2e-5);
    key.op = "gelu";
    learn(store, &key, KG_RIGOR_MEASURE, 3e-5);

    struct kg_text text = {0};
    CHECK_STATUS(kg_store_list(store, "softmax", false, &text, &error), KG_OK, &error);
    CHECK(strstr(kg_text_string(&text), "12.50 us") && !strstr(kg_text_string(&text), "gelu"));
    kg_text_cut(&text, 0);
    CHECK_STATUS(kg_store_list(store, "soft*", true, &text, &error), KG_OK, &error);
    json_t *json = json_loads(kg_text_string(&text), 0, NULL);
    CHECK(json_array_size(json) == 2);
    json_t *row = json_array_get(json, 0);
    CHECK_TEXT(json_string_value(json_object_get(row, "op")), "softmax");
    CHECK(json_real_value(json_object_get(row, "seconds")) == 1.25e-5);
    json_decref(json);
    kg_text_free(&text);

    int count;
    CHECK_STATUS(kg_store_forget(store, "soft*", &count, &error), KG_OK, &error);
    CHECK(count == 2 && known(store, &key) == 3e-5);
    CHECK_STATUS(kg_store_forget(store, "soft*", &count, &error), KG_OK, &error);
    CHECK(count == 0);
    CHECK_STATUS(kg_store_forget(store, NULL, &count, &error), KG_OK, &error);
    CHECK(count == 1 && known(store, &key) == 0);
    kg_store_close(store);
    sample_remove(folder);
}

static void note_sizes(void *user, const struct kg_key *near, const struct kg_wisdom *wisdom)
{
    CHECK(wisdom->seconds > 0 && wisdom->choice[0]);
    kg_text_format(user, "%s, %s; ", near->sizes, near->layout);
}

static void test_near(void)
{
    char folder[SAMPLE_FOLDER];
    sample_folder(folder);
    struct kg_store *store = sample_open(folder);
    struct kg_key key = sample_key(), other = key;
    other.sizes = "P=1 D=1000";
    learn(store, &other, KG_RIGOR_MEASURE, 1e-5);
    other.driver = "6.2";
    learn(store, &other, KG_RIGOR_MEASURE, 1e-5);
    learn(store, &key, KG_RIGOR_MEASURE, 1e-5); // the very key
    other = key;
    other.layout = "x:2000,1";
    learn(store, &other, KG_RIGOR_MEASURE, 1e-5);
    struct kg_text seen = {0};
    CHECK_STATUS(kg_store_near(store, &key, note_sizes, &seen, &error), KG_OK, &error);
    CHECK_TEXT(kg_text_string(&seen), "P=1 D=1000, contiguous; P=4096 D=1000, x:2000,1; ");
    kg_text_free(&seen);
    kg_store_close(store);
    sample_remove(folder);
}

TEST_MAIN(test_learn_and_recall, test_what_replaces_what, test_refusals, test_list_and_forget,
          test_near)
