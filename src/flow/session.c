// Keys of records: everything that a measurement depends on, collected from problem, device and
// library.

#include "flow/session.h"

#include "base/printable.h"

#include <stdio.h>
#include <string.h>

void kg_session_print_dtypes(struct kg_text *text, const struct kg_op *instance)
{
    for (int i = 0; i < instance->typevar_count; i++)
        kg_text_format(text, "%s%s=%s", i ? " " : "", instance->typevars[i]->name,
                       kg_dtypes[instance->bound[i]].name);
}

void kg_session_print_sizes(struct kg_text *text, const struct kg_problem *problem)
{
    const struct kg_op *op = problem->op;
    const char *space = "";
    for (int i = 0; i < op->size_count; i++) {
        if (op->sizes[i]->is_param)
            continue;
        kg_text_format(text, "%s%s=%lld", space, op->sizes[i]->name, (long long)problem->sizes[i]);
        space = " ";
    }
}

static void print_layout(struct kg_text *text, const struct kg_problem *problem)
{
    if (problem->contiguous) {
        kg_text_add(text, "contiguous");
        return;
    }
    for (int i = 0; i < problem->op->input_count + problem->op->output_count; i++) {
        const struct kg_tensor *tensor = problem->tensors[i];
        kg_text_format(text, "%s%s:", i ? " " : "", tensor->name);
        for (int d = 0; d < tensor->rank; d++)
            kg_text_format(text, "%s%lld", d ? "," : "", (long long)problem->layouts[i].stride[d]);
    }
}

struct kg_hash kg_session_definition(const struct kg_op *op)
{
    struct kg_hash hash = kg_hash_bytes(op->source, strlen(op->source));
    for (int i = 0; i < op->size_count; i++) {
        const struct kg_size *size = op->sizes[i];
        if (!size->is_param)
            continue;
        hash = kg_hash_chain_text(hash, size->name);
        hash = kg_hash_chain(hash, &size->value, sizeof size->value);
        hash = kg_hash_chain(hash, &size->real, sizeof size->real);
    }
    return hash;
}

static const char *keep(struct kg_arena *arena, struct kg_text *text)
{
    const char *string = kg_text_string(text);
    char *copy = text->failed ? NULL : kg_arena_copy(arena, string, strlen(string));
    kg_text_cut(text, 0);
    return copy;
}

void kg_session_key_here(const struct kg_device *device, struct kg_key *key)
{
    *key = (struct kg_key){
        .device = device->facts.name,
        .isa = device->facts.isa,
        .units = device->facts.units,
        .driver = device->driver,
        .compiler = device->compiler,
    };
}

enum kg_status kg_session_key_make(const struct kg_problem *problem, const struct kg_device *device,
                                   const struct kg_protocol *protocol, struct kg_session_key *out,
                                   struct kg_error *error)
{
    *out = (struct kg_session_key){0};
    struct kg_arena *arena = &out->arena;
    struct kg_key *key = &out->key;
    kg_session_key_here(device, key);
    struct kg_text text = {0};
    key->op = problem->op->name;
    key->definition = kg_session_definition(problem->op);
    kg_session_print_dtypes(&text, problem->op);
    key->dtypes = keep(arena, &text);
    kg_session_print_sizes(&text, problem);
    key->sizes = keep(arena, &text);
    print_layout(&text, problem);
    key->layout = keep(arena, &text);
    kg_protocol_print(protocol, &text);
    key->protocol = keep(arena, &text);
    kg_text_free(&text);
    if (arena->failed || !key->dtypes || !key->sizes || !key->layout || !key->protocol) {
        kg_session_key_free(out);
        return kg_error_memory(error, "the key of a record");
    }
    return KG_OK;
}

void kg_session_key_free(struct kg_session_key *key)
{
    kg_arena_free(&key->arena);
    *key = (struct kg_session_key){0};
}

void kg_session_tell(const struct kg_session *session, const char *format, ...)
{
    struct kg_text text = {0};
    va_list arguments;
    va_start(arguments, format);
    kg_text_vformat(&text, format, arguments);
    va_end(arguments);
    if (text.data)
        kg_printable_text(text.data, text.length);
    if (session->notice)
        session->notice(session->user, kg_text_string(&text));
    kg_text_free(&text);
}

enum kg_status kg_session_open(struct kg_session *session, struct kg_text *notice,
                               struct kg_error *error)
{
    struct kg_error *missing = &session->missing;
    if (session->home)
        kg_store_open(session->home, &session->store, notice, missing);
    if (missing->status == KG_OK)
        return KG_OK;
    if (missing->status == KG_ERROR_MEMORY)
        return kg_error_set(error, KG_ERROR_MEMORY, "%s", missing->text);
    return kg_store_open_memory(&session->store, error);
}

void kg_session_tell_missing(struct kg_session *session)
{
    if (session->missing.status == KG_OK || session->told_missing)
        return;
    session->told_missing = true;
    kg_session_tell(session, "goes on without records, and will remember nothing: %s",
                    session->missing.text);
}

void kg_session_tell_unrecorded(struct kg_session *session, const char *why)
{
    if (session->unrecorded[0])
        return;
    snprintf(session->unrecorded, sizeof session->unrecorded, "%.*s", KG_SESSION_UNRECORDED - 1,
             why);
    kg_session_tell(session, "goes on, and not all of it is recorded: %s", session->unrecorded);
}

enum kg_status kg_session_recorded(struct kg_session *session, enum kg_status status,
                                   struct kg_error *error)
{
    if (status == KG_OK || status == KG_ERROR_MEMORY)
        return status;
    kg_session_tell_unrecorded(session, error ? error->text : kg_status_name(status));
    kg_error_clear(error);
    return KG_OK;
}

static enum kg_status read_file(struct kg_session *session, const struct kg_device *device,
                                struct kg_error *error)
{
    struct kg_key here;
    struct kg_text strangers = {0};
    kg_session_key_here(device, &here);
    enum kg_status status =
        kg_store_open_file(session->file_path, &here, &session->file, &strangers, error);
    if (status == KG_OK && strangers.length)
        kg_session_tell(session, "lines of %s that are never used on %s: %s", session->file_path,
                        device->facts.name, strangers.data);
    kg_text_free(&strangers);
    return status;
}

enum kg_status kg_session_file(struct kg_session *session, const struct kg_device *device,
                               struct kg_store **file, struct kg_error *error)
{
    struct kg_error why = {0};
    enum kg_status status = KG_OK;
    if (session->file_path && !session->file_was_read)
        status = read_file(session, device, &why);
    if (status == KG_ERROR_MEMORY) {
        *file = NULL;
        return kg_error_memory(error, session->file_path);
    }
    session->file_was_read = true;
    if (status != KG_OK)
        kg_session_tell(session, "goes on without %s: %s", session->file_path, why.text);
    *file = session->file;
    return KG_OK;
}

void kg_session_tell_of_cache(const struct kg_session *session, struct kg_device *device)
{
    const char *instead = device->cache_is_private ? device->cache : atomic_load(&device->spare);
    if (!instead || !session->home || device->told_of_cache)
        return;
    device->told_of_cache = true;
    kg_session_tell(session, "%s/cache %s: what is compiled goes to %s, for this run only",
                    session->home, device->cache_is_private ? "cannot be written" : "is full",
                    instead);
}

void kg_session_warn(struct kg_session *session, struct kg_device *device)
{
    if (session->warned || kg_worker_isolation(device) != KG_ISOLATION_NONE)
        return;
    session->warned = true;
    kg_session_tell(session, "this process uses the device already, so candidates run inside it: "
                             "one that crashes or hangs takes it along (kernelgen-worker would run "
                             "them, and was not found)");
}

bool kg_session_cancelled(const struct kg_session *session)
{
    return session->cancel && *session->cancel;
}
