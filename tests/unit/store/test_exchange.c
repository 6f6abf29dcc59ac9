#include "base/files.h"
#include "support/sample_records.h"
#include "test.h"

static struct kg_error error;

// An exported file: three lines of different ops.
static struct kg_text exported(void)
{
    char folder[SAMPLE_FOLDER], choice[] = "rowwise vector=8 \"quoted\" \xC3\xA9";
    sample_folder(folder);
    struct kg_store *store = sample_open(folder);
    struct kg_key key = sample_key();
    const char *const ops[] = {"gelu", "softmax", "sum"};
    for (int i = 0; i < 3; i++) {
        char date[] = "2025-01-31T12:00:00Z";
        struct kg_wisdom wisdom = sample_wisdom(choice);
        wisdom.date = date;
        key.op = ops[i];
        CHECK_STATUS(kg_store_learn(store, &key, &wisdom, &error), KG_OK, &error);
    }
    struct kg_text lines = {0};
    CHECK_STATUS(kg_store_export(store, &lines, &error), KG_OK, &error);
    kg_store_close(store);
    sample_remove(folder);
    return lines;
}

// The first occurrence of `what` replaced. The caller frees.
static char *replaced(const char *text, const char *what, const char *with)
{
    const char *at = strstr(text, what);
    CHECK(at);
    char *result;
    if (!at || asprintf(&result, "%.*s%s%s", (int)(at - text), text, with, at + strlen(what)) < 0)
        abort();
    return result;
}

static void test_round_trip(void)
{
    struct kg_text lines = exported(), again = {0}, notice = {0};
    CHECK(strncmp(lines.data, "{\"format\": \"kernelgen wisdom\", \"version\": 2, \"lines\": 3}\n",
                  57) == 0);
    char folder[SAMPLE_FOLDER];
    sample_folder(folder);
    struct kg_store *store = sample_open(folder);
    struct kg_key here = sample_key();
    CHECK_STATUS(kg_store_import(store, lines.data, lines.length, &here, &notice, &error), KG_OK,
                 &error);
    CHECK_TEXT(kg_text_string(&notice), "3 of 3 lines learned\n");
    struct kg_wisdom wisdom;
    CHECK_STATUS(kg_store_recall(store, &here, &wisdom, &error), KG_OK, &error);
    CHECK(wisdom.seed == 0xFEDCBA9876543210u && wisdom.seconds == 1.25e-5);
    kg_wisdom_free(&wisdom);
    CHECK_STATUS(kg_store_export(store, &again, &error), KG_OK, &error);
    CHECK_TEXT(kg_text_string(&again), kg_text_string(&lines));

    // What is known better stays.
    char choice[] = "better";
    wisdom = sample_wisdom(choice);
    wisdom.rigor = KG_RIGOR_PATIENT;
    wisdom.seconds = 1e-5;
    CHECK_STATUS(kg_store_learn(store, &here, &wisdom, &error), KG_OK, &error);
    kg_text_cut(&notice, 0);
    CHECK_STATUS(kg_store_import(store, lines.data, lines.length - 1, &here, &notice, &error),
                 KG_OK,
                 &error); // without the last line end
    CHECK_TEXT(kg_text_string(&notice), "2 of 3 lines learned; 1 were known as well or better\n");
    kg_text_free(&notice);
    kg_text_free(&again);
    kg_text_free(&lines);
    kg_store_close(store);
    sample_remove(folder);
}

// What differs between the line's machine and this one; the line is for all but one of them.
static void test_mismatches_are_reported(void)
{
    struct kg_text lines = exported();
    struct kg_key here[6];
    for (int i = 0; i < 6; i++)
        here[i] = sample_key();
    here[0].device = "Other CPU";
    here[1].units = 4;
    here[2].isa = "avx512";
    here[3].driver = "6.2";
    here[4].compiler = "cc 13";
    here[5].op = "gelu"; // no mismatch
    static const char *const causes[] = {"device", "device", "device", "driver", "compiler"};
    for (int i = 0; i < 6; i++) {
        char folder[SAMPLE_FOLDER], expected[128] = "3 of 3 lines learned\n";
        if (i < 5)
            snprintf(expected, sizeof expected,
                     "3 of 3 lines learned\n3 for another %s: kept, but never used here\n",
                     causes[i]);
        sample_folder(folder);
        struct kg_store *store = sample_open(folder);
        struct kg_text notice = {0};
        CHECK_STATUS(kg_store_import(store, lines.data, lines.length, &here[i], &notice, &error),
                     KG_OK, &error);
        CHECK_TEXT(kg_text_string(&notice), expected);
        struct kg_wisdom wisdom;
        CHECK_STATUS(kg_store_recall(store, &here[i], &wisdom, &error),
                     i < 5 ? KG_ERROR_NO_WISDOM : KG_OK, &error);
        kg_wisdom_free(&wisdom);
        kg_text_free(&notice);
        kg_store_close(store);
        sample_remove(folder);
    }
    kg_text_free(&lines);
}

// Each of these is one change to a good file; the file is then refused as a whole, naming the line.
static void test_all_or_nothing(void)
{
    static const struct {
        const char *what, *with, *message;
    } rows[] = {
        {"{\"format\"", "", "line 1: is no JSON"},
        {"kernelgen wisdom", "other", "line 1: \"format\" must be"},
        {"\"lines\": 3", "\"lines\": -3", "line 1: \"lines\" must be"},
        {"\"lines\": 3", "\"lines\": 1e99", "line 1: \"lines\" must be"},
        {"\"lines\": 3", "\"lines\": 4", "cut short"},
        {"\"lines\": 3", "\"lines\": 2", "line 4: the header announces 2"},
        {"\"op\": \"softmax\"", "\"op\": \"\"", "line 3: \"op\" must be"},
        {"\"op\": \"softmax\"", "\"op\": 3", "line 3: \"op\" must be"},
        {"\"op\": \"softmax\"", "\"op\": \"softmax\\u0000\"", "line 3: is no JSON"},
        {"\"op\": \"softmax\"", "\"op\": \"a\", \"op\": \"b\"", "line 3: is no JSON: duplicate"},
        {"\"op\": \"softmax\"", "\"op\": \"a\", \"more\": 1", "line 3: has 20 fields"},
        {"\"definition\": \"0", "\"definition\": \"", "line 2: \"definition\" must be"},
        {"\"definition\": \"0", "\"definition\": \"G", "line 2: \"definition\" must be"},
        {"\"units\": 8", "\"units\": 99999999999", "line 2: \"units\" must be"},
        {"\"units\": 8", "\"units\": 8.5", "line 2: \"units\" must be"},
        {"\"measure\"", "\"wisdom\"", "line 2: \"rigor\" must be"},
        {"1.25e-05", "0", "line 2: \"seconds\" must be"},
        {"1.25e-05", "-1", "line 2: \"seconds\" must be"},
        {"1.25e-05", "\"fast\"", "line 2: \"seconds\" must be"},
        {"1.25e-05", "1e999", "line 2: is no JSON"},
        {"\"fedcba98", "\"FEDCBA98", "line 2: \"seed\" must be"},
        {"\"date\"", "\"day\"", "line 2: \"date\" must be"},
        {"\"source\"", "\"generator\"", "line 2: \"source\" must be"},
        {"\"source\": \"0", "\"source\": \"1", "line 2: was changed or damaged"},
        {"\xC3\xA9", "\xC3", "line 2: is no JSON"},
        {"vector=8", "vector=9", "line 2: was changed or damaged"},
        {"1.25e-05", "1.26e-05", "line 2: was changed or damaged"},
        {"Some CPU", "Same CPU", "line 2: was changed or damaged"},
        {"{\"op\"", "[\"op\"", "line 2: is no JSON"},
        {"}\n{\"op\"", "}\n\n{\"op\"", "line 2: is no JSON"},
    };
    struct kg_text lines = exported();
    char folder[SAMPLE_FOLDER];
    sample_folder(folder);
    struct kg_store *store = sample_open(folder);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *changed = replaced(lines.data, rows[i].what, rows[i].with);
        struct kg_text notice = {0}, empty = {0};
        CHECK_STATUS(kg_store_import(store, changed, strlen(changed), NULL, &notice, &error),
                     KG_ERROR_CORRUPT, &error);
        if (!strstr(error.text, rows[i].message))
            CHECK_TEXT(error.text, rows[i].message);
        CHECK(!notice.data);
        CHECK_STATUS(kg_store_export(store, &empty, &error), KG_OK, &error);
        CHECK(strstr(kg_text_string(&empty), "\"lines\": 0"));
        kg_text_free(&empty);
        kg_text_free(&notice);
        free(changed);
    }
    char *newer = replaced(lines.data, "\"version\": 2", "\"version\": 3");
    CHECK_STATUS(kg_store_import(store, newer, strlen(newer), NULL, NULL, &error),
                 KG_ERROR_UNSUPPORTED, &error);
    CHECK_STATUS(kg_store_import(store, newer, strlen(newer), NULL, NULL, NULL),
                 KG_ERROR_UNSUPPORTED, &error);
    CHECK_STATUS(kg_store_import(store, "", 0, NULL, NULL, &error), KG_ERROR_CORRUPT, &error);
    CHECK(strstr(error.text, "is empty"));
    free(newer);
    kg_text_free(&lines);
    kg_store_close(store);
    sample_remove(folder);
}

// A file that an earlier KernelGen wrote: what it knows is learned, and is no verdict.
static void test_lines_of_version_1(void)
{
    char folder[SAMPLE_FOLDER], *lines, *changed;
    size_t length;
    struct kg_text notice = {0};
    struct kg_key here = sample_key();
    struct kg_wisdom wisdom;
    sample_folder(folder);
    struct kg_store *store = sample_open(folder);
    CHECK_STATUS(kg_files_read(KG_SOURCE_DIR "/tests/fuzz/corpus/wisdom/two.jsonl", 1 << 20, &lines,
                               &length, &error),
                 KG_OK, &error);
    CHECK_STATUS(kg_store_import(store, lines, length, &here, &notice, &error), KG_OK, &error);
    CHECK_TEXT(kg_text_string(&notice),
               "2 of 2 lines learned\n"
               "1 of an older KernelGen: not verified until they are judged again\n"
               "1 for another device: kept, but never used here\n");
    CHECK_STATUS(kg_store_recall(store, &here, &wisdom, &error), KG_OK, &error);
    CHECK(wisdom.seconds == 1.25e-5 && !wisdom.source.high && !wisdom.source.low);
    kg_wisdom_free(&wisdom);
    changed = replaced(lines, "0.1.0 abc", "0.1.0 abd");
    CHECK_STATUS(kg_store_import(store, changed, strlen(changed), &here, NULL, &error),
                 KG_ERROR_CORRUPT, &error);
    // It does not replace what is known of kernels that are known, however fast it was.
    char choice[] = "sealed";
    wisdom = sample_wisdom(choice);
    wisdom.seconds = 1;
    wisdom.replaces = true;
    CHECK_STATUS(kg_store_learn(store, &here, &wisdom, &error), KG_OK, &error);
    CHECK_STATUS(kg_store_import(store, lines, length, &here, NULL, &error), KG_OK, &error);
    CHECK_STATUS(kg_store_recall(store, &here, &wisdom, &error), KG_OK, &error);
    CHECK_TEXT(wisdom.choice, "sealed");
    CHECK(wisdom.source.high == 7 && wisdom.source.low == 0xFEDCBA9876543210u);
    kg_wisdom_free(&wisdom);
    free(changed);
    free(lines);
    kg_text_free(&notice);
    kg_store_close(store);
    sample_remove(folder);
}

static void test_bounds(void)
{
    char folder[SAMPLE_FOLDER];
    sample_folder(folder);
    struct kg_store *store = sample_open(folder);
    struct kg_text lines = {0};
    kg_text_add(&lines, "{\"format\": \"kernelgen wisdom\", \"version\": 1, \"lines\": 1}\n");
    for (int i = 0; i < 70000; i++)
        kg_text_add(&lines, "[");
    CHECK_STATUS(kg_store_import(store, lines.data, lines.length, NULL, NULL, &error),
                 KG_ERROR_CORRUPT, &error);
    CHECK_TEXT(error.text, "wisdom line 2: is longer than 65536 bytes");
    kg_text_cut(&lines, 60000);
    CHECK_STATUS(kg_store_import(store, lines.data, lines.length, NULL, NULL, &error),
                 KG_ERROR_CORRUPT, &error); // too deep
    kg_text_free(&lines);

    struct kg_text good = exported();
    static char name[6000];
    memset(name, 'n', sizeof name - 1);
    char *changed = replaced(good.data, "softmax", name);
    CHECK_STATUS(kg_store_import(store, changed, strlen(changed), NULL, NULL, &error),
                 KG_ERROR_CORRUPT, &error);
    free(changed);
    kg_text_free(&good);
    kg_store_close(store);
    sample_remove(folder);
}

// A file beside the records: a store in memory, read by the same rules.
static void test_a_file_of_its_own(void)
{
    char folder[SAMPLE_FOLDER], path[SAMPLE_FOLDER + 16];
    struct kg_text lines = exported(), notice = {0};
    struct kg_store *store;
    struct kg_key here = sample_key();
    struct kg_wisdom wisdom;
    sample_folder(folder);
    snprintf(path, sizeof path, "%s/wisdom.jsonl", folder);
    CHECK_STATUS(kg_store_open_file(path, &here, &store, &notice, &error), KG_ERROR_IO, &error);
    CHECK(!store && strstr(error.text, path));

    CHECK_STATUS(kg_files_publish(path, lines.data, lines.length, &error), KG_OK, &error);
    CHECK_STATUS(kg_store_open_file(path, &here, &store, &notice, &error), KG_OK, &error);
    CHECK(notice.length == 0);
    CHECK_STATUS(kg_store_recall(store, &here, &wisdom, &error), KG_OK, &error);
    CHECK(wisdom.seconds == 1.25e-5);
    kg_wisdom_free(&wisdom);
    kg_store_close(store);

    here.compiler = "cc 13";
    CHECK_STATUS(kg_store_open_file(path, &here, &store, &notice, &error), KG_OK, &error);
    CHECK_TEXT(kg_text_string(&notice), "3 for another compiler");
    CHECK_STATUS(kg_store_recall(store, &here, &wisdom, &error), KG_ERROR_NO_WISDOM, &error);
    kg_store_close(store);

    CHECK_STATUS(kg_files_publish(path, lines.data, lines.length - 40, &error), KG_OK, &error);
    CHECK_STATUS(kg_store_open_file(path, &here, &store, &notice, &error), KG_ERROR_CORRUPT,
                 &error);
    CHECK(!store && strstr(error.text, "wisdom line 4"));
    CHECK(remove(path) == 0 && rmdir(folder) == 0); // nothing else was written
    kg_text_free(&notice);
    kg_text_free(&lines);
}

TEST_MAIN(test_round_trip, test_mismatches_are_reported, test_all_or_nothing,
          test_lines_of_version_1, test_bounds, test_a_file_of_its_own)
