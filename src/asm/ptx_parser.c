// Parses a PTX file from its first directive to its last; the entry point of the reader.

#include "asm/ptx.h"

#include "asm/ptx_job.h"

#include <stdlib.h>
#include <string.h>

static void parse_version(struct kg_ptx_job *job)
{
    kg_ptx_advance(job);
    if (job->token.kind != KG_PTX_NUMBER)
        kg_ptx_fail_expected(job, "a version");
    int shown = job->token.length < 20 ? (int)job->token.length : 20;
    job->version = kg_arena_format(job->arena, "PTX ISA %.*s", shown, job->token.text);
    if (!job->version)
        kg_ptx_fail_memory(job);
    kg_ptx_advance(job);
}

static void parse_target(struct kg_ptx_job *job)
{
    do {
        kg_ptx_advance(job);
        const struct kg_ptx_token *token = &job->token;
        if (token->kind != KG_PTX_WORD)
            kg_ptx_fail_expected(job, "a target");
        if (token->length > 3 && token->length < 20 && memcmp(token->text, "sm_", 3) == 0) {
            job->arch = kg_arena_copy(job->arena, token->text, token->length);
            if (!job->arch)
                kg_ptx_fail_memory(job);
            job->sm = 0;
            for (uint32_t i = 3;
                 i < 7 && i < token->length && token->text[i] >= '0' && token->text[i] <= '9'; i++)
                job->sm = 10 * job->sm + (token->text[i] - '0');
        }
        kg_ptx_advance(job);
    } while (kg_ptx_is_mark(job, ','));
}

// Up to three numbers after a directive; `values` may be NULL. Missing ones are 1.
static void parse_numbers(struct kg_ptx_job *job, int *values)
{
    for (int i = 0; job->token.kind == KG_PTX_NUMBER; i++) {
        int64_t number = -1;
        if (values && i < 3) {
            if (!kg_ptx_integer(&job->token, &number) || number < 0 || number > INT32_MAX)
                kg_ptx_fail_expected(job, "a number that fits");
            if (i == 0)
                values[1] = values[2] = 1;
            values[i] = (int)number;
        }
        kg_ptx_note_token(job);
        kg_ptx_advance(job);
        if (!kg_ptx_accept(job, ','))
            break;
    }
}

// Directives between a function's parameters and its body. Unknown ones are skipped with their
// numbers.
static void parse_launch_directive(struct kg_ptx_job *job)
{
    struct kg_asm_kernel *launch = &job->function.launch;
    int single[3] = {0}, *values = NULL, *wanted = NULL;
    if (kg_ptx_reads(job, ".maxntid"))
        values = launch->max_threads;
    else if (kg_ptx_reads(job, ".reqntid"))
        values = launch->required_threads;
    else if (kg_ptx_reads(job, ".reqnctapercluster"))
        values = launch->cluster;
    else if (kg_ptx_reads(job, ".minnctapersm"))
        wanted = &launch->min_blocks;
    else if (kg_ptx_reads(job, ".maxnreg"))
        wanted = &launch->max_registers;
    else if (kg_ptx_reads(job, ".maxclusterrank"))
        wanted = &launch->max_cluster;
    else if (kg_ptx_parse_remark(job))
        return;
    kg_ptx_note_token(job);
    kg_ptx_advance(job);
    parse_numbers(job, wanted ? single : values);
    while (kg_ptx_is_mark(job, '(')) // no known function has any
        kg_ptx_skip_brackets(job);
    if (wanted)
        *wanted = single[0];
}

static void begin_function(struct kg_ptx_job *job, bool is_entry)
{
    struct kg_ptx_function *function = &job->function;
    function->index++;
    function->is_entry = is_entry;
    function->launch = (struct kg_asm_kernel){0};
    function->instructions.count = function->definitions.count = 0;
    function->operands.count = function->wide_values.count = 0;
    function->references.count = function->tables.count = function->table_targets.count = 0;
    function->next_number = 0;
    function->calls = false;
    function->hash = (struct kg_hash){0};
    function->noted = 0;
    if (job->arch)
        kg_ptx_note(job, job->arch, strlen(job->arch));
}

static void parse_function_name(struct kg_ptx_job *job)
{
    if (job->token.kind != KG_PTX_WORD)
        kg_ptx_fail_expected(job, "the name of a function");
    job->function.name_at = job->token;
    kg_ptx_advance(job);
}

static void end_function(struct kg_ptx_job *job)
{
    if (kg_ptx_is_mark(job, '{')) {
        const struct kg_ptx_token *name = &job->function.name_at;
        job->function.name = "";
        if (job->function.is_entry)
            job->function.name = kg_arena_copy(job->arena, name->text, name->length);
        if (!job->function.name)
            kg_ptx_fail_memory(job);
        kg_ptx_parse_body(job);
        kg_ptx_add_function(job);
    } else {
        kg_ptx_close_scope(job);
        kg_ptx_expect(job, ';', "or a body behind a function");
    }
    job->symbols.count = job->scope_symbols[1];
}

// At `.entry` or `.func`.
static void parse_function(struct kg_ptx_job *job)
{
    if (!job->arch)
        kg_ptx_fail_expected(job, "\".target sm_90\" before a function");
    begin_function(job, kg_ptx_reads(job, ".entry"));
    kg_ptx_open_scope(job);
    kg_ptx_advance(job);
    while (kg_ptx_reads(job, ".attribute")) {
        kg_ptx_advance(job);
        kg_ptx_skip_brackets(job);
    }
    if (kg_ptx_is_mark(job, '('))
        kg_ptx_parse_parameters(job);
    parse_function_name(job);
    if (kg_ptx_is_mark(job, '('))
        job->function.launch.parameter_bytes = kg_ptx_parse_parameters(job);
    while (job->token.kind == KG_PTX_DIRECTIVE)
        parse_launch_directive(job);
    end_function(job);
}

static bool parse_file_variable(struct kg_ptx_job *job, bool is_extern)
{
    static const struct {
        const char *text;
        enum kg_ptx_space space;
    } spaces[] = {{".global", KG_PTX_GLOBAL}, {".shared", KG_PTX_SHARED}, {".const", KG_PTX_CONST},
                  {".local", KG_PTX_LOCAL},   {".param", KG_PTX_PARAM},   {".tex", KG_PTX_GLOBAL}};
    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
        if (kg_ptx_reads(job, spaces[i].text)) {
            kg_ptx_parse_variables(job, spaces[i].space, is_extern);
            kg_ptx_expect(job, ';', "behind a declaration");
            return true;
        }
    return false;
}

static bool accept_linkage(struct kg_ptx_job *job, bool *is_extern)
{
    *is_extern = kg_ptx_reads(job, ".extern");
    if (!*is_extern && !kg_ptx_reads(job, ".visible") && !kg_ptx_reads(job, ".weak") &&
        !kg_ptx_reads(job, ".common"))
        return false;
    kg_ptx_advance(job);
    return true;
}

static void parse_file_statement(struct kg_ptx_job *job)
{
    bool is_extern = false;
    if (kg_ptx_accept(job, ';'))
        return;
    if (job->token.kind != KG_PTX_DIRECTIVE)
        kg_ptx_fail_expected(job, "a directive");
    bool linked = accept_linkage(job, &is_extern);
    if (linked && job->token.kind != KG_PTX_DIRECTIVE)
        kg_ptx_fail_expected(job, "a directive");
    if (kg_ptx_reads(job, ".entry") || kg_ptx_reads(job, ".func"))
        parse_function(job);
    else if (kg_ptx_reads(job, ".version"))
        parse_version(job);
    else if (kg_ptx_reads(job, ".target"))
        parse_target(job);
    else if (kg_ptx_reads(job, ".address_size")) {
        kg_ptx_advance(job);
        if (job->token.kind != KG_PTX_NUMBER)
            kg_ptx_fail_expected(job, "an address size");
        kg_ptx_advance(job);
    } else if (kg_ptx_reads(job, ".reg"))
        kg_ptx_parse_registers(job);
    else if (!parse_file_variable(job, is_extern) && !kg_ptx_parse_remark(job))
        kg_ptx_skip_statement(job); // .alias, and unknown directives
}

static void parse_file(struct kg_ptx_job *job)
{
    kg_ptx_advance(job);
    if (!kg_ptx_reads(job, ".version"))
        kg_ptx_fail_expected(job, "\".version\"");
    while (job->token.kind != KG_PTX_END)
        parse_file_statement(job);
}

// The hash of a kernel that calls functions includes all functions of the file.
static enum kg_status finish(struct kg_ptx_job *job, struct kg_asm_file *file)
{
    file->format = KG_ASM_PTX;
    file->version = job->version;
    file->kernel_count = job->kernels.count;
    file->kernels = KG_NEW_ARRAY(job->arena, job->kernels.count, struct kg_asm_kernel);
    if (!file->kernels)
        return kg_error_memory(job->error, "the facts of a PTX file");
    for (int32_t k = 0; k < job->kernels.count; k++) {
        file->kernels[k] = job->kernels.items[k];
        struct kg_hash *hash = &file->kernels[k].normal_hash;
        if (job->kernel_calls.items[k])
            *hash = kg_hash_chain(*hash, &job->functions_hash, sizeof job->functions_hash);
    }
    return KG_OK;
}

// Frees everything that only parsing needs.
static void free_lists(struct kg_ptx_job *job)
{
    free(job->names.items);
    free(job->name_slots);
    free(job->roles.items);
    free(job->joined.items);
    free(job->symbols.items);
    free(job->prefixes.items);
    free(job->variables.items);
    free(job->forms.items);
    free(job->function.instructions.items);
    free(job->function.operands.items);
    free(job->function.wide_values.items);
    free(job->function.definitions.items);
    free(job->function.references.items);
    free(job->function.tables.items);
    free(job->function.table_targets.items);
    kg_arena_free(&job->scratch);
}

enum kg_status kg_ptx_read(const char *text, size_t length, struct kg_arena *arena,
                           struct kg_asm_file *file, struct kg_error *error)
{
    *file = (struct kg_asm_file){0};
    while (length > 0 && text[length - 1] == '\0') // compilers include the terminator
        length--;
    if (length > KG_PTX_MAX_BYTES)
        return kg_error_set(error, KG_ERROR_CORRUPT, "PTX of %zu bytes; at most %zu are read",
                            length, KG_PTX_MAX_BYTES);
    struct kg_ptx_job *job = calloc(1, sizeof *job);
    if (!job)
        return kg_error_memory(error, "the facts of a PTX file");
    job->text = text;
    job->length = length;
    job->line = 1;
    job->arena = arena;
    job->error = error;
    if (setjmp(job->bail) == 0)
        parse_file(job);
    free_lists(job);
    enum kg_status status = job->status == KG_OK ? finish(job, file) : job->status;
    free(job->kernels.items);
    free(job->kernel_calls.items);
    free(job);
    if (status != KG_OK)
        *file = (struct kg_asm_file){0};
    return status;
}
