// The optimisation log and the definition document, from the records.

#include "api/context.h"
#include "api/sized.h"
#include "lang/lang.h"
#include "report/log.h"
#include "report/recorded.h"

#include <stdio.h>
#include <string.h>

#define MAX_DATE 32

// The problem that was recorded last, of those that can be made again.
struct latest {
    struct kg_context *context;
    struct kg_arena arena; // of the texts
    const char *date;      // of its last record; NULL: there is no such problem
    const char *text;      // of the op
    const char *dtypes, *sizes, *device, *isa;
    int units;
    enum kg_status status;
};

static const char *keep(struct latest *latest, const char *text)
{
    return kg_arena_copy(&latest->arena, text, strlen(text));
}

static void note_round(void *user, const struct kg_round *round)
{
    char *date = user;
    if (strcmp(round->date, date) > 0)
        snprintf(date, MAX_DATE, "%s", round->date);
}

static void note_outcome(void *user, const struct kg_log_row *row)
{
    char *date = user;
    if (strcmp(row->last, date) > 0)
        snprintf(date, MAX_DATE, "%s", row->last);
}

// Whether the text alone gives what was recorded: params that were bound are part of the hash, and
// not on record themselves.
static enum kg_status check_text(const struct kg_key *key, const char *text, bool *whole,
                                 struct kg_error *error)
{
    struct kg_arena arena = {0};
    struct kg_file *file;
    struct kg_op *op, *instance;
    struct kg_bindings defaults;
    *whole = false;
    enum kg_status status = kg_lang_parse(&arena, key->op, text, strlen(text), &file, NULL);
    if (status == KG_OK)
        status = kg_lang_select(file, key->op, &op, NULL);
    if (status == KG_OK) {
        kg_lang_default_bindings(op, &defaults);
        status = kg_lang_instantiate(&arena, op, &defaults, &instance, NULL);
    }
    if (status == KG_OK) {
        struct kg_hash hash = kg_session_definition(instance);
        *whole = hash.high == key->definition.high && hash.low == key->definition.low;
    }
    kg_arena_free(&arena);
    return status == KG_ERROR_MEMORY ? kg_error_memory(error, "the text of an op") : KG_OK;
}

static void visit_key(void *user, const struct kg_key *key)
{
    struct latest *latest = user;
    struct kg_store *store = latest->context->session.store;
    struct kg_error *error = &latest->context->error;
    char date[MAX_DATE] = "";
    const char *text;
    bool whole = false;
    if (latest->status != KG_OK || (key->layout[0] && strcmp(key->layout, "contiguous") != 0))
        return;
    latest->status = kg_store_rounds(store, key, note_round, date, error);
    if (latest->status == KG_OK)
        latest->status = kg_store_log_rows(store, key, KG_LOG_COUNTS, note_outcome, date, error);
    if (latest->status == KG_OK)
        latest->status = kg_store_text(store, key->op, key->definition, &text, error);
    if (latest->status == KG_OK)
        latest->status = check_text(key, text, &whole, error);
    if (latest->status != KG_OK || !whole || (latest->date && strcmp(date, latest->date) < 0))
        return;
    latest->date = keep(latest, date);
    latest->text = keep(latest, text);
    latest->dtypes = keep(latest, key->dtypes);
    latest->sizes = keep(latest, key->sizes);
    latest->device = keep(latest, key->device);
    latest->isa = keep(latest, key->isa);
    latest->units = key->units;
}

static enum kg_status find_latest(struct latest *latest, const char *op)
{
    struct kg_context *context = latest->context;
    enum kg_status status =
        kg_store_keys(context->session.store, op, visit_key, latest, &context->error);
    if (latest->status != KG_OK)
        status = latest->status;
    if (status == KG_OK && latest->arena.failed)
        status = kg_error_memory(&context->error, "the text of an op");
    return status;
}

// "T=f16 U=i64", cut up in place.
static enum kg_status add_bindings(char *words, struct kg_binding *bindings, int *count,
                                   struct kg_error *error)
{
    for (char *word = strtok_r(words, " ", &words); word; word = strtok_r(NULL, " ", &words)) {
        char *equals = strchr(word, '=');
        if (!equals || *count == KG_MAX_SIZES + KG_DTYPE_COUNT)
            return kg_error_set(error, KG_ERROR_CORRUPT, "a record has the binding '%.100s'", word);
        *equals = '\0';
        bindings[(*count)++] = (struct kg_binding){word, equals + 1};
    }
    return KG_OK;
}

// Its costs depend on the device that it was recorded on: NULL if that is neither here nor known.
static struct kg_device *find_device(const struct latest *latest)
{
    struct kg_context *context = latest->context;
    const char *const names[] = {"host", "cuda:0", latest->isa};
    struct kg_device *device;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (kg_context_device(context, names[i], &device) != KG_OK)
            continue;
        const struct kg_device_facts *facts = &device->facts;
        if (strcmp(facts->name, latest->device) == 0 && strcmp(facts->isa, latest->isa) == 0 &&
            facts->units == latest->units)
            return device;
    }
    kg_error_clear(&context->error);
    return NULL;
}

static enum kg_status write_document(struct latest *latest, const char *name, const char *language,
                                     char **text)
{
    struct kg_context *context = latest->context;
    struct kg_binding bindings[KG_MAX_SIZES + KG_DTYPE_COUNT];
    struct kg_op *op = NULL;
    struct kg_problem *problem = NULL;
    int count = 0;
    char *dtypes = (char *)keep(latest, latest->dtypes),
         *sizes = (char *)keep(latest, latest->sizes);
    if (latest->arena.failed)
        return kg_error_memory(&context->error, "the bindings of a problem");
    enum kg_status status = add_bindings(dtypes, bindings, &count, &context->error);
    if (status == KG_OK)
        status = add_bindings(sizes, bindings, &count, &context->error);
    if (status == KG_OK)
        status = kg_op_parse(context, name, latest->text, strlen(latest->text), name, &op);
    if (status == KG_OK)
        status = kg_problem_create(context, op, bindings, count, &problem);
    if (status == KG_OK)
        status = kg_problem_document(problem, find_device(latest), language, false, text);
    kg_problem_destroy(problem);
    kg_op_destroy(op);
    return status;
}

// `*text` stays NULL, after a notice, if no problem can be made again.
static enum kg_status make_definition(struct kg_context *context, const char *op,
                                      const char *language, char **text)
{
    struct latest latest = {.context = context};
    *text = NULL;
    enum kg_status status = find_latest(&latest, op);
    if (status == KG_OK && latest.date)
        status = write_document(&latest, op, language, text);
    else if (status == KG_OK)
        kg_session_tell(&context->session,
                        "no definition.md: no problem of %s can be made again from the records. "
                        "They lack its text, because an earlier version wrote them, or it was "
                        "built with params or strides of its own",
                        op);
    kg_arena_free(&latest.arena);
    return status;
}

static enum kg_status publish(const char *folder, const char *name, const char *text,
                              struct kg_text *names, struct kg_error *error)
{
    struct kg_text path = {0};
    kg_text_format(&path, "%s%s%s", folder,
                   folder[0] && folder[strlen(folder) - 1] == '/' ? "" : "/", name);
    enum kg_status status = path.failed ? kg_error_memory(error, "a path")
                                        : kg_files_publish(path.data, text, strlen(text), error);
    kg_text_format(names, "%s\n", kg_text_string(&path));
    kg_text_free(&path);
    return status;
}

enum kg_status kg_log(struct kg_context *context, const char *op, char **text)
{
    enum kg_status status = KG_API_NEEDS(context, context, text);
    return status == KG_OK ? kg_log_document(context, op, NULL, text) : status;
}

enum kg_status kg_log_document(struct kg_context *context, const char *op, const char *language,
                               char **text)
{
    struct kg_text written = {0};
    enum kg_status status = KG_API_NEEDS(context, context, text);
    if (status != KG_OK)
        return status;
    bool chinese = language && strcmp(language, "zh") == 0;
    status = kg_api_check_language(context, language);
    if (status == KG_OK)
        status = kg_api_records(context);
    if (status == KG_OK)
        status = kg_recorded_require(context->session.store, op, &context->error);
    if (status == KG_OK)
        status = kg_report_log(context->session.store, op, chinese ? KG_CHINESE : KG_ENGLISH,
                               &written, &context->error);
    return kg_api_give(context, status, &written, text);
}

enum kg_status kg_log_folder(struct kg_context *context, const char *op, const char *language,
                             const char *folder, char **paths)
{
    struct kg_text names = {0};
    char *log = NULL, *definition = NULL;
    enum kg_status status = KG_API_NEEDS(context, context, op, folder, paths);
    if (status != KG_OK)
        return status;
    status = kg_log_document(context, op, language, &log);
    if (status == KG_OK)
        status = kg_files_make_folder(folder, &context->error);
    if (status == KG_OK)
        status = publish(folder, "optimization_log.md", log, &names, &context->error);
    if (status == KG_OK)
        status = make_definition(context, op, language, &definition);
    if (status == KG_OK && definition)
        status = publish(folder, "definition.md", definition, &names, &context->error);
    kg_text_release(log);
    kg_text_release(definition);
    return kg_api_give(context, status, &names, paths);
}
