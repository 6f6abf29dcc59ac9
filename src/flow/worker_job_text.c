// Jobs to bytes and back: fields in a fixed order, texts and arrays with their length. Sender and
// receiver have the same version, which is the first field.

#include "flow/worker_job_text.h"

#include "gen/skeleton.h"

#include <string.h>

// The version of the library, its skeletons, and the structs that are sent as they are.
static bool print_version(struct kg_text *text)
{
    struct kg_hash hash = kg_hash_bytes("", 0);
    for (const struct kg_skeleton *skeleton = kg_skeletons; skeleton->name; skeleton++) {
        hash = kg_hash_chain_text(hash, skeleton->name);
        hash = kg_hash_chain_text(hash, skeleton->text);
    }
    char digits[KG_HASH_TEXT];
    kg_hash_format(hash, digits);
    kg_text_format(text, "kernelgen job %s %.8s %zu %zu %zu %zu", kg_version(), digits,
                   sizeof(struct kg_worker_job_head), sizeof(struct kg_worker_job_answer),
                   sizeof(struct kg_verdict), sizeof(struct kg_bench_result));
    return !text->failed;
}

static void add_field(struct kg_text *bytes, const void *field, size_t length)
{
    kg_text_add_bytes(bytes, (const char *)&length, sizeof length);
    kg_text_add_bytes(bytes, field, length);
}

// NULL is an empty field; texts include their terminator.
static void add_text(struct kg_text *bytes, const char *text)
{
    add_field(bytes, text ? text : "", text ? strlen(text) + 1 : 0);
}

static void add_problem(struct kg_text *bytes, const struct kg_problem *problem)
{
    const struct kg_op *op = problem->op;
    struct kg_bindings bindings;
    int64_t strides[KG_MAX_TENSORS][KG_MAX_RANK] = {{0}};
    kg_lang_default_bindings(op, &bindings);
    for (int i = 0; i < op->input_count + op->output_count; i++)
        memcpy(strides[i], problem->layouts[i].stride, sizeof strides[i]);
    add_text(bytes, op->file);
    add_text(bytes, op->source);
    add_field(bytes, &bindings, sizeof bindings);
    add_field(bytes, problem->sizes, sizeof problem->sizes);
    add_field(bytes, strides, problem->contiguous ? 0 : sizeof strides);
}

bool kg_worker_job_write(const struct kg_worker_job *job, const struct kg_problem *problem,
                         struct kg_text *bytes)
{
    struct kg_text version = {0};
    bool known = print_version(&version);
    add_text(bytes, kg_text_string(&version));
    kg_text_free(&version);
    add_field(bytes, &job->kind, sizeof job->kind);
    add_field(bytes, &job->rigor, sizeof job->rigor);
    add_field(bytes, &job->change, sizeof job->change);
    add_field(bytes, &job->seconds, sizeof job->seconds);
    add_field(bytes, &job->seed, sizeof job->seed);
    add_field(bytes, &job->protocol, sizeof job->protocol);
    add_field(bytes, &job->effort, sizeof job->effort);
    add_field(bytes, &job->exercises, sizeof job->exercises);
    add_field(bytes, &job->takes_nearest, sizeof job->takes_nearest);
    add_text(bytes, job->home);
    add_text(bytes, job->wisdom);
    add_text(bytes, job->device);
    add_text(bytes, job->cache);
    add_text(bytes, job->choice);
    add_text(bytes, job->rival);
    add_text(bytes, job->path);
    add_problem(bytes, problem);
    return known && !bytes->failed;
}

struct reader {
    const char *at;
    size_t left;
    struct kg_arena *arena;
    bool failed;
};

// The next field; NULL if it is incomplete.
static const void *take_field(struct reader *reader, size_t *length)
{
    *length = 0;
    if (reader->left < sizeof *length) {
        reader->failed = true;
        return NULL;
    }
    memcpy(length, reader->at, sizeof *length);
    reader->at += sizeof *length;
    reader->left -= sizeof *length;
    if (*length > reader->left) {
        reader->failed = true;
        *length = 0;
        return NULL;
    }
    const char *field = reader->at;
    reader->at += *length;
    reader->left -= *length;
    return field;
}

static void take(struct reader *reader, void *value, size_t wanted)
{
    size_t length;
    const void *field = take_field(reader, &length);
    reader->failed |= length != wanted;
    if (!reader->failed)
        memcpy(value, field, wanted);
}

static const char *take_text(struct reader *reader)
{
    size_t length;
    const char *field = take_field(reader, &length);
    if (!field || length == 0)
        return NULL;
    const char *text = kg_arena_copy(reader->arena, field, length - 1);
    reader->failed |= !text || strlen(text) != length - 1;
    return text;
}

static enum kg_status read_problem(struct reader *reader, struct kg_problem **problem,
                                   struct kg_error *error)
{
    struct kg_bindings bindings;
    int64_t sizes[KG_MAX_SIZES], strides[KG_MAX_TENSORS][KG_MAX_RANK];
    struct kg_file *parsed;
    struct kg_op *op, *instance;
    const char *file = take_text(reader), *source = take_text(reader);
    take(reader, &bindings, sizeof bindings);
    take(reader, sizes, sizeof sizes);
    size_t length;
    const void *field = take_field(reader, &length);
    bool strided = length == sizeof strides;
    if (strided)
        memcpy(strides, field, sizeof strides);
    if (reader->failed || !file || !source || (length > 0 && !strided))
        return kg_error_set(error, KG_ERROR_CORRUPT, "a worker's job is not whole");
    enum kg_status status =
        kg_lang_parse(reader->arena, file, source, strlen(source), &parsed, error);
    if (!status)
        status = kg_lang_select(parsed, NULL, &op, error);
    if (!status)
        status = kg_lang_instantiate(reader->arena, op, &bindings, &instance, error);
    if (!status)
        status = kg_problem_make(instance, sizes,
                                 strided ? (const int64_t(*)[KG_MAX_RANK])strides : NULL, problem,
                                 error);
    return status;
}

enum kg_status kg_worker_job_read(const void *bytes, size_t length, struct kg_arena *arena,
                                  struct kg_worker_job *job, struct kg_problem **problem,
                                  struct kg_error *error)
{
    struct reader reader = {.at = bytes, .left = length, .arena = arena};
    struct kg_text version = {0};
    *problem = NULL;
    *job = (struct kg_worker_job){0};
    print_version(&version);
    const char *theirs = take_text(&reader);
    bool same = theirs && strcmp(theirs, kg_text_string(&version)) == 0;
    kg_text_free(&version);
    if (!same)
        return kg_error_set(error, KG_ERROR_MISSING,
                            "kernelgen-worker is of another version than the library");
    take(&reader, &job->kind, sizeof job->kind);
    take(&reader, &job->rigor, sizeof job->rigor);
    take(&reader, &job->change, sizeof job->change);
    take(&reader, &job->seconds, sizeof job->seconds);
    take(&reader, &job->seed, sizeof job->seed);
    take(&reader, &job->protocol, sizeof job->protocol);
    take(&reader, &job->effort, sizeof job->effort);
    take(&reader, &job->exercises, sizeof job->exercises);
    take(&reader, &job->takes_nearest, sizeof job->takes_nearest);
    job->home = take_text(&reader);
    job->wisdom = take_text(&reader);
    job->device = take_text(&reader);
    job->cache = take_text(&reader);
    job->choice = take_text(&reader);
    job->rival = take_text(&reader);
    job->path = take_text(&reader);
    return read_problem(&reader, problem, error);
}
