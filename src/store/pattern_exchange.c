// Lessons as a file: JSON lines, a header first. Import trusts nothing: lengths, types and ranges
// are checked, every member must occur once and no others may; all lines are imported or none.
//
//     {"format": "kernelgen lessons", "version": 2, "lines": 1}
//     {"problem": "9f86...", "op": "softmax", "class": "reduce", ..., "ratio": -0.12, "seal":
//     "51c0..."}

#include "store/lessons.h"

#include "base/json.h"
#include "base/printable.h"
#include "store/members.h"

#include <math.h>
#include <string.h>

#define FORMAT "kernelgen lessons"
#define FORMAT_VERSION 2
#define WITHOUT_EFFECTS 1 // the version of files that have none
#define LONGEST_LINE ((size_t)8 << 10)
#define LONGEST_TEXT ((size_t)256)
#define MOST_LINES 1000000
#define MOST_COUNTED 1000000000
#define LARGEST_RATIO 100.0
#define LINE_MEMBERS 16

static struct kg_hash seal_of(const struct kg_lesson *lesson)
{
    const char *texts[] = {
        lesson->problem, lesson->op,       lesson->class, lesson->dtype,
        lesson->bucket,  lesson->isa,      lesson->date,  kg_pattern_subjects[lesson->subject],
        lesson->family,  lesson->parameter};
    const int64_t numbers[] = {lesson->value, lesson->tried, lesson->failed, lesson->competed};
    struct kg_hash hash = kg_hash_bytes(FORMAT, sizeof FORMAT);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        hash = kg_hash_chain_text(hash, texts[i]);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        hash = kg_store_hash_integer(hash, numbers[i]);
    hash = kg_store_hash_number(hash, lesson->ratio);
    return lesson->fitted ? kg_store_hash_number(hash, lesson->effect) : hash;
}

static void write_line(struct kg_text *lines, const struct kg_lesson *lesson)
{
    struct kg_json json = {.text = lines};
    kg_json_begin_object(&json, NULL);
    kg_json_text(&json, "problem", lesson->problem);
    kg_json_text(&json, "op", lesson->op);
    kg_json_text(&json, "class", lesson->class);
    kg_json_text(&json, "dtype", lesson->dtype);
    kg_json_text(&json, "bucket", lesson->bucket);
    kg_json_text(&json, "isa", lesson->isa);
    kg_json_text(&json, "date", lesson->date);
    kg_json_text(&json, "subject", kg_pattern_subjects[lesson->subject]);
    kg_json_text(&json, "family", lesson->family);
    kg_json_text(&json, "parameter", lesson->parameter);
    kg_json_integer(&json, "value", lesson->value);
    kg_json_integer(&json, "tried", lesson->tried);
    kg_json_integer(&json, "failed", lesson->failed);
    kg_json_boolean(&json, "competed", lesson->competed);
    kg_json_number(&json, "ratio", lesson->ratio);
    if (lesson->fitted)
        kg_json_number(&json, "effect", lesson->effect);
    kg_json_hash(&json, "seal", seal_of(lesson));
    kg_json_end_object(&json);
    kg_text_add(lines, "\n");
}

enum kg_status kg_store_export_lessons(struct kg_store *store, struct kg_text *lines,
                                       struct kg_error *error)
{
    struct kg_text body = {0};
    size_t start = lines->length;
    int count = 0;
    enum kg_status status = kg_store_mine(store, error);
    if (status != KG_OK)
        return status;
    struct kg_query query = kg_query_begin(store, KG_SQL_EACH_LESSON);
    kg_query_bind_integer(&query, 0);
    for (int filter = 0; filter < 3; filter++)
        kg_query_bind_text(&query, NULL);
    struct kg_lesson lesson;
    bool has_effects = false;
    for (; kg_store_next_lesson(&query, &lesson); count++) {
        write_line(&body, &lesson);
        has_effects |= lesson.fitted;
    }
    status = kg_query_end(&query, error);
    struct kg_json json = {.text = lines};
    kg_json_begin_object(&json, NULL);
    kg_json_text(&json, "format", FORMAT);
    kg_json_integer(&json, "version", has_effects ? FORMAT_VERSION : WITHOUT_EFFECTS);
    kg_json_integer(&json, "lines", count);
    kg_json_end_object(&json);
    kg_text_add(lines, "\n");
    kg_text_add_bytes(lines, kg_text_string(&body), body.length);
    if (status == KG_OK && (lines->failed || body.failed))
        status = kg_error_memory(error, "the lessons to export");
    if (status != KG_OK)
        kg_text_cut(lines, start);
    kg_text_free(&body);
    return status;
}

// ---- Import

static const char *take_text(struct kg_members *members, const char *name, bool may_be_empty)
{
    const char *text = kg_members_text(members, name);
    size_t length = strlen(text);
    if (length > LONGEST_TEXT || (length == 0 && !may_be_empty) || !kg_printable_is(text))
        kg_members_refuse(members, "\"%s\" is empty, too long or has control characters", name);
    return text;
}

static void read_lesson(struct kg_members *members, struct kg_lesson *lesson)
{
    char seal[KG_HASH_TEXT];
    const char *subject = take_text(members, "subject", false);
    lesson->problem = take_text(members, "problem", false);
    lesson->op = take_text(members, "op", false);
    lesson->class = take_text(members, "class", false);
    lesson->dtype = take_text(members, "dtype", false);
    lesson->bucket = take_text(members, "bucket", false);
    lesson->isa = take_text(members, "isa", true);
    lesson->date = take_text(members, "date", true);
    lesson->family = take_text(members, "family", false);
    lesson->parameter = take_text(members, "parameter", true);
    lesson->value = kg_members_integer(members, members->json, "value", INT64_MIN, INT64_MAX);
    lesson->tried = (int)kg_members_integer(members, members->json, "tried", 0, MOST_COUNTED);
    lesson->failed = (int)kg_members_integer(members, members->json, "failed", 0, lesson->tried);
    lesson->competed = kg_members_boolean(members, "competed");
    lesson->ratio =
        kg_members_number(members, members->json, "ratio", -LARGEST_RATIO, LARGEST_RATIO);
    lesson->fitted = json_object_get(members->json, "effect");
    if (lesson->fitted)
        lesson->effect =
            kg_members_number(members, members->json, "effect", -LARGEST_RATIO, LARGEST_RATIO);
    while (lesson->subject < KG_SUBJECT_COUNT &&
           strcmp(subject, kg_pattern_subjects[lesson->subject]) != 0)
        lesson->subject++;
    const char *given = take_text(members, "seal", false);
    int expected = LINE_MEMBERS + lesson->fitted;
    if (json_object_size(members->json) != (size_t)expected)
        kg_members_refuse(members, "has %zu members, not %d", json_object_size(members->json),
                          expected);
    if (lesson->subject == KG_SUBJECT_COUNT)
        kg_members_refuse(members, "\"subject\" must be value, form or grouping");
    if (members->failed)
        return;
    kg_hash_format(seal_of(lesson), seal);
    if (strcmp(seal, given) != 0)
        kg_members_refuse(members, "was changed or damaged: its seal does not fit");
}

static void read_header(struct kg_members *members, int64_t *announced)
{
    const char *format = take_text(members, "format", false);
    if (strcmp(format, FORMAT) != 0)
        kg_members_refuse(members, "\"format\" must be \"" FORMAT "\"");
    kg_members_integer(members, members->json, "version", 1, FORMAT_VERSION);
    *announced = kg_members_integer(members, members->json, "lines", 0, MOST_LINES);
}

// Line 0 is the header.
static enum kg_status import_line(struct kg_store *store, const char *line, size_t length,
                                  int64_t number, int64_t *announced, struct kg_error *error)
{
    struct kg_arena arena = {0};
    struct kg_members members;
    struct kg_lesson lesson = {0};
    if (length > LONGEST_LINE)
        return kg_error_set(error, KG_ERROR_CORRUPT, "is longer than %zu bytes", LONGEST_LINE);
    if (!kg_members_open(&members, line, length, &arena, error)) {
        kg_arena_free(&arena);
        return error->status;
    }
    if (number == 0)
        read_header(&members, announced);
    else
        read_lesson(&members, &lesson);
    if (number > *announced)
        kg_members_refuse(&members, "the header announces %lld lines", (long long)*announced);
    enum kg_status status = members.failed ? error->status : KG_OK;
    if (status == KG_OK && number > 0)
        status = kg_store_add_lesson(store, &lesson, error);
    kg_members_close(&members);
    kg_arena_free(&arena);
    return status;
}

static enum kg_status import_lines(struct kg_store *store, const char *lines, size_t length,
                                   int64_t *count, struct kg_error *error)
{
    int64_t announced = 0, number = 0;
    for (size_t at = 0; at < length; number++) {
        const char *end = memchr(lines + at, '\n', length - at);
        size_t size = end ? (size_t)(end - lines) - at : length - at;
        enum kg_status status = import_line(store, lines + at, size, number, &announced, error);
        if (status != KG_OK) {
            kg_error_prefix(error, "line %lld", (long long)number + 1);
            return status;
        }
        at += size + 1;
    }
    if (number == 0)
        return kg_error_set(error, KG_ERROR_CORRUPT,
                            "the file is empty; lessons begin with a header");
    *count = number - 1;
    if (*count != announced)
        return kg_error_set(error, KG_ERROR_CORRUPT,
                            "the lessons are cut short: %lld lines, the header announces %lld",
                            (long long)*count, (long long)announced);
    return KG_OK;
}

enum kg_status kg_store_import_lessons(struct kg_store *store, const char *lines, size_t length,
                                       struct kg_text *notice, struct kg_error *error)
{
    struct kg_error local;
    int64_t count = 0;
    if (!error)
        error = &local;
    kg_arena_free(&store->scratch);
    enum kg_status status = kg_store_begin(store, error);
    if (status != KG_OK)
        return status;
    status = import_lines(store, lines, length, &count, error);
    if (status == KG_OK)
        status = kg_store_commit(store, error);
    else
        kg_store_rollback(store);
    if (status == KG_OK && notice)
        kg_text_format(notice, "%lld lessons learned\n", (long long)count);
    return status;
}
