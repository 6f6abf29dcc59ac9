// Wisdom as a file: JSON lines, a header first. Import trusts nothing: every line has a maximum
// length, every field must occur once, with its type and range, and no others may occur. The seal
// is the same as in the database: it reveals a changed line, and text that Jansson dropped for lack
// of memory.
//
//     {"format": "kernelgen wisdom", "version": 2, "lines": 1}
//     {"op": "softmax", "definition": "9f86...", ..., "seconds": 1.2e-05, ..., "seal": "51c0..."}
//
// Lines of version 1 do not identify their kernels, only the generator that wrote them.

#include "store/database.h"

#include "base/files.h"
#include "base/json.h"
#include "base/printable.h"

#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT "kernelgen wisdom"
#define FORMAT_VERSION 2
#define MAX_FILE_BYTES ((size_t)16 << 20) // read from a path
#define LONGEST_LINE ((size_t)64 << 10)
#define LONGEST_TEXT ((size_t)4096)
#define MAX_LINES 1000000

// The text fields of a key, in the order in which they are written.
static const struct {
    const char *name;
    size_t offset;
} key_texts[] = {
    {"op", offsetof(struct kg_key, op)},
    {"dtypes", offsetof(struct kg_key, dtypes)},
    {"sizes", offsetof(struct kg_key, sizes)},
    {"layout", offsetof(struct kg_key, layout)},
    {"device", offsetof(struct kg_key, device)},
    {"isa", offsetof(struct kg_key, isa)},
    {"driver", offsetof(struct kg_key, driver)},
    {"compiler", offsetof(struct kg_key, compiler)},
    {"protocol", offsetof(struct kg_key, protocol)},
};
#define KEY_TEXTS (sizeof key_texts / sizeof key_texts[0])
// With definition, units, choice, rigor, seconds, spread, seed, date, source or generator, and
// seal.
#define LINE_FIELDS (KEY_TEXTS + 10)

static const char **text_of(struct kg_key *key, size_t index)
{
    return (const char **)(void *)((char *)key + key_texts[index].offset);
}

static const char *value_of(const struct kg_key *key, size_t index)
{
    return *(const char *const *)(const void *)((const char *)key + key_texts[index].offset);
}

// ---- Export

static void write_line(struct kg_text *lines, const struct kg_key *key,
                       const struct kg_wisdom *wisdom)
{
    struct kg_json json = {.text = lines};
    kg_json_begin_object(&json, NULL);
    for (size_t i = 0; i < KEY_TEXTS; i++) {
        kg_json_text(&json, key_texts[i].name, value_of(key, i));
        if (i == 0)
            kg_json_hash(&json, "definition", key->definition);
    }
    kg_json_integer(&json, "units", key->units);
    kg_json_text(&json, "choice", wisdom->choice);
    kg_json_text(&json, "rigor", kg_rigor_names[wisdom->rigor]);
    kg_json_number(&json, "seconds", wisdom->seconds);
    kg_json_number(&json, "spread", wisdom->spread);
    char seed[24];
    snprintf(seed, sizeof seed, "%016llx", (unsigned long long)wisdom->seed);
    kg_json_text(&json, "seed", seed); // 64 bits do not fit a JSON number
    kg_json_text(&json, "date", wisdom->date);
    kg_json_hash(&json, "source", wisdom->source);
    kg_json_hash(&json, "seal", kg_store_seal_wisdom(key, wisdom, ""));
    kg_json_end_object(&json);
    kg_text_add(lines, "\n");
}

static void write_header(struct kg_text *lines, int count, int damaged)
{
    struct kg_json json = {.text = lines};
    kg_json_begin_object(&json, NULL);
    kg_json_text(&json, "format", FORMAT);
    kg_json_integer(&json, "version", FORMAT_VERSION);
    kg_json_integer(&json, "lines", count);
    if (damaged)
        kg_json_integer(&json, "damaged", damaged); // rows that were omitted
    kg_json_end_object(&json);
    kg_text_add(lines, "\n");
}

enum kg_status kg_store_export(struct kg_store *store, struct kg_text *lines,
                               struct kg_error *error)
{
    kg_arena_free(&store->scratch);
    struct kg_text body = {0};
    struct kg_query query = kg_query_begin(store, KG_SQL_LIST_WISDOM);
    kg_query_bind_text(&query, "");
    struct kg_key key;
    struct kg_wisdom wisdom;
    bool sound;
    int count = 0, damaged = 0;
    while (kg_store_next_wisdom(&query, &key, &wisdom, &sound)) {
        if (sound)
            write_line(&body, &key, &wisdom);
        count += sound;
        damaged += !sound;
    }
    enum kg_status status = kg_query_end(&query, error);
    size_t start = lines->length;
    if (status == KG_OK) {
        write_header(lines, count, damaged);
        kg_text_add_bytes(lines, kg_text_string(&body), body.length);
        if (lines->failed || body.failed)
            status = kg_error_memory(error, "the wisdom to export");
    }
    if (status != KG_OK)
        kg_text_cut(lines, start);
    kg_text_free(&body);
    return status;
}

// ---- Import

// A line that is being read. Text fields point into `json`.
struct line {
    json_t *json;
    struct kg_error *error;
    bool failed;
};

__attribute__((format(printf, 2, 3))) static void refuse(struct line *line, const char *format, ...)
{
    char reason[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    if (!line->failed)
        kg_error_set(line->error, KG_ERROR_CORRUPT, "%s", reason);
    line->failed = true;
}

static const char *take_text(struct line *line, const char *name, bool may_be_empty)
{
    json_t *value = json_object_get(line->json, name);
    size_t length = json_string_length(value);
    if (!json_is_string(value) || length > LONGEST_TEXT || (length == 0 && !may_be_empty)) {
        refuse(line, "\"%s\" must be a text%s", name, may_be_empty ? "" : " that is not empty");
        return "";
    }
    if (!kg_printable_is(json_string_value(value))) {
        refuse(line, "\"%s\" has control characters", name);
        return "";
    }
    return json_string_value(value);
}

static double take_number(struct line *line, const char *name, double least)
{
    json_t *value = json_object_get(line->json, name);
    double number = json_number_value(value);
    if (!json_is_number(value) || !isfinite(number) || number < least)
        refuse(line, "\"%s\" must be a number of seconds", name);
    return number;
}

static int64_t take_integer(struct line *line, const char *name, int64_t max)
{
    json_t *value = json_object_get(line->json, name);
    int64_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < 0 || number > max)
        refuse(line, "\"%s\" must be a whole number in range", name);
    return number;
}

// 64 bits from digit `from` of a text of exactly `digits` lower-case hexadecimal digits.
static uint64_t take_digits(struct line *line, const char *name, size_t from, size_t digits)
{
    const char *text = take_text(line, name, false);
    if (strspn(text, "0123456789abcdef") != digits || text[digits]) {
        refuse(line, "\"%s\" must be %zu hex digits", name, digits);
        return 0;
    }
    uint64_t value = 0;
    for (size_t i = from; i < from + 16; i++)
        value = value << 4 | (uint64_t)(text[i] <= '9' ? text[i] - '0' : text[i] - 'a' + 10);
    return value;
}

static struct kg_hash take_hash(struct line *line, const char *name)
{
    return (struct kg_hash){.high = take_digits(line, name, 0, 32),
                            .low = take_digits(line, name, 16, 32)};
}

static enum kg_rigor take_rigor(struct line *line)
{
    const char *name = take_text(line, "rigor", false);
    for (int rigor = 0; rigor < KG_RIGOR_WISDOM; rigor++)
        if (strcmp(name, kg_rigor_names[rigor]) == 0)
            return (enum kg_rigor)rigor;
    refuse(line, "\"rigor\" must be estimate, measure, patient or exhaustive");
    return KG_RIGOR_ESTIMATE;
}

static void read_line(struct line *line, int64_t version, struct kg_key *key,
                      struct kg_wisdom *wisdom)
{
    const char *generator = "";
    for (size_t i = 0; i < KEY_TEXTS; i++)
        *text_of(key, i) = take_text(line, key_texts[i].name, i != 0);
    key->definition = take_hash(line, "definition");
    key->units = (int)take_integer(line, "units", 1 << 24);
    wisdom->choice = (char *)(uintptr_t)take_text(line, "choice", false);
    wisdom->rigor = take_rigor(line);
    wisdom->seconds = take_number(line, "seconds", 1e-12);
    wisdom->spread = take_number(line, "spread", 0);
    wisdom->seed = take_digits(line, "seed", 0, 16);
    wisdom->date = (char *)(uintptr_t)take_text(line, "date", false);
    if (version == 1)
        generator = take_text(line, "generator", false);
    else
        wisdom->source = take_hash(line, "source");
    struct kg_hash seal = take_hash(line, "seal");
    if (json_object_size(line->json) != LINE_FIELDS)
        refuse(line, "has %zu fields, not %zu", json_object_size(line->json), LINE_FIELDS);
    if (line->failed)
        return;
    struct kg_hash right = kg_store_seal_wisdom(key, wisdom, generator);
    if (seal.high != right.high || seal.low != right.low)
        refuse(line, "was changed or damaged: its seal does not fit");
}

// Counts what an import did, by cause.
struct tally {
    int lines, learned, known, other_device, other_driver, other_compiler;
    int unproved; // lines that match, but do not identify their kernels
};

static bool differs(const char *here, const char *there)
{
    return here && strcmp(here, there) != 0;
}

// The first reason why this line can never match here.
static void tally_match(struct tally *tally, const struct kg_key *here, const struct kg_key *key,
                        const struct kg_wisdom *wisdom)
{
    if (!here)
        return;
    if (differs(here->device, key->device) || differs(here->isa, key->isa) ||
        here->units != key->units)
        tally->other_device++;
    else if (differs(here->driver, key->driver))
        tally->other_driver++;
    else if (differs(here->compiler, key->compiler))
        tally->other_compiler++;
    else
        tally->unproved += !wisdom->source.high && !wisdom->source.low;
}

static void tell_learned(const struct tally *tally, struct kg_text *notice)
{
    kg_text_format(notice, "%d of %d lines learned", tally->learned, tally->lines);
    if (tally->known)
        kg_text_format(notice, "; %d were known as well or better", tally->known);
    kg_text_add(notice, "\n");
    if (tally->unproved)
        kg_text_format(notice,
                       "%d of an older KernelGen: not verified until they are judged again\n",
                       tally->unproved);
}

// The lines that cannot match here, by cause.
static void tell_strangers(const struct tally *tally, const char *between, const char *end,
                           struct kg_text *notice)
{
    const struct {
        const char *what;
        int count;
    } causes[] = {{"device", tally->other_device},
                  {"driver", tally->other_driver},
                  {"compiler", tally->other_compiler}};
    const char *before = "";
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++) {
        if (!causes[i].count)
            continue;
        kg_text_format(notice, "%s%d for another %s%s", before, causes[i].count, causes[i].what,
                       end);
        before = between;
    }
}

// Parses one line as a JSON object. NULL: refused, with the reason in `error`.
static json_t *parse_object(const char *text, size_t length, struct kg_error *error)
{
    if (length > LONGEST_LINE) {
        kg_error_set(error, KG_ERROR_CORRUPT, "is longer than %zu bytes", LONGEST_LINE);
        return NULL;
    }
    json_error_t why;
    json_t *json = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
    // Not every lack of memory gets Jansson's code for it; a syntax error always has a text.
    if (!json && (json_error_code(&why) == json_error_out_of_memory || !why.text[0]))
        kg_error_memory(error, "wisdom to import");
    else if (!json)
        kg_error_set(error, KG_ERROR_CORRUPT, "is no JSON: %s", why.text);
    else if (!json_is_object(json)) {
        kg_error_set(error, KG_ERROR_CORRUPT, "is no JSON object");
        json_decref(json);
        json = NULL;
    }
    return json;
}

static enum kg_status read_header(const char *text, size_t length, int64_t *version, int64_t *count,
                                  struct kg_error *error)
{
    struct line line = {.json = parse_object(text, length, error), .error = error};
    if (!line.json)
        return error->status;
    const char *format = take_text(&line, "format", false);
    if (strcmp(format, FORMAT) != 0)
        refuse(&line, "\"format\" must be \"" FORMAT "\"");
    *version = take_integer(&line, "version", INT64_MAX);
    *count = take_integer(&line, "lines", MAX_LINES);
    enum kg_status status = KG_OK;
    if (line.failed)
        status = KG_ERROR_CORRUPT;
    else if (*version < 1 || *version > FORMAT_VERSION)
        status = kg_error_set(error, KG_ERROR_UNSUPPORTED,
                              "the file has version %lld, this KernelGen reads 1 to %d",
                              (long long)*version, FORMAT_VERSION);
    json_decref(line.json);
    return status;
}

static enum kg_status import_line(struct kg_store *store, const char *text, size_t length,
                                  int64_t version, const struct kg_key *here, struct tally *tally,
                                  struct kg_error *error)
{
    struct line line = {.json = parse_object(text, length, error), .error = error};
    if (!line.json)
        return error->status;
    struct kg_key key = {0};
    struct kg_wisdom wisdom = {0};
    bool known_better = false;
    read_line(&line, version, &key, &wisdom);
    enum kg_status status = KG_ERROR_CORRUPT;
    if (!line.failed)
        status = kg_store_set_wisdom(store, &key, &wisdom, &known_better, error);
    if (status == KG_OK) {
        tally->lines++;
        tally->known += known_better;
        tally->learned += !known_better;
        tally_match(tally, here, &key, &wisdom);
    }
    json_decref(line.json);
    return status;
}

// Imports all lines, the header first; the caller holds the transaction.
static enum kg_status import_lines(struct kg_store *store, const char *lines, size_t length,
                                   const struct kg_key *here, struct tally *tally,
                                   struct kg_error *error)
{
    int64_t announced = 0, version = 0;
    size_t number = 0, at = 0;
    if (length == 0)
        return kg_error_set(error, KG_ERROR_CORRUPT,
                            "the file is empty; wisdom begins with a header, even that of nothing");
    while (at < length) {
        const char *line = lines + at;
        const char *end = memchr(line, '\n', length - at);
        size_t size = end ? (size_t)(end - line) : length - at;
        at += size + 1;
        enum kg_status status;
        if (number++ == 0)
            status = read_header(line, size, &version, &announced, error);
        else if (tally->lines >= announced)
            status = kg_error_set(error, KG_ERROR_CORRUPT, "the header announces %lld lines",
                                  (long long)announced);
        else
            status = import_line(store, line, size, version, here, tally, error);
        if (status != KG_OK) {
            kg_error_prefix(error, "wisdom line %zu", number);
            return status;
        }
    }
    if (tally->lines != announced)
        return kg_error_set(error, KG_ERROR_CORRUPT,
                            "the wisdom is cut short: %d lines, the header announces %lld",
                            tally->lines, (long long)announced);
    return KG_OK;
}

// Imports all lines or none.
static enum kg_status import(struct kg_store *store, const char *lines, size_t length,
                             const struct kg_key *here, struct tally *tally, struct kg_error *error)
{
    struct kg_error local;
    if (!error)
        error = &local;
    kg_arena_free(&store->scratch);
    enum kg_status status = kg_store_begin(store, error);
    if (status != KG_OK)
        return status;
    status = import_lines(store, lines, length, here, tally, error);
    if (status == KG_OK)
        return kg_store_commit(store, error);
    kg_store_rollback(store);
    return status;
}

enum kg_status kg_store_import(struct kg_store *store, const char *lines, size_t length,
                               const struct kg_key *here, struct kg_text *notice,
                               struct kg_error *error)
{
    struct tally tally = {0};
    enum kg_status status = import(store, lines, length, here, &tally, error);
    if (status == KG_OK && notice) {
        tell_learned(&tally, notice);
        tell_strangers(&tally, "", ": kept, but never used here\n", notice);
    }
    return status;
}

enum kg_status kg_store_open_file(const char *path, const struct kg_key *here,
                                  struct kg_store **store, struct kg_text *notice,
                                  struct kg_error *error)
{
    *store = NULL;
    char *lines;
    size_t length;
    enum kg_status status = kg_files_read(path, MAX_FILE_BYTES, &lines, &length, error);
    if (status != KG_OK)
        return status;
    struct tally tally = {0};
    status = kg_store_open_memory(store, error);
    if (status == KG_OK)
        status = import(*store, lines, length, here, &tally, error);
    free(lines);
    if (status == KG_OK) {
        tell_strangers(&tally, ", ", "", notice);
        return KG_OK;
    }
    kg_store_close(*store);
    *store = NULL;
    return status;
}
