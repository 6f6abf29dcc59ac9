// Foreign kernels: a C function on the host, a CUDA file or PTX on GPUs. docs/verification.md
// describes what the files must contain.

#include "base/files.h"
#include "flow/binary_gist.h"
#include "flow/foreign_parts.h"
#include "gen/standalone.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMPILE_SECONDS 120.0

enum kind { KIND_C, KIND_CUDA, KIND_PTX, KIND_COUNT };

static const struct {
    const char *suffix;
    const struct kg_target *target;
    const char *what;
} kinds[KIND_COUNT] = {
    [KIND_C] = {".c", &kg_target_host, "a C file, for the host"},
    [KIND_CUDA] = {".cu", &kg_target_cuda, "a CUDA file, for GPUs"},
    [KIND_PTX] = {".ptx", &kg_target_cuda, "PTX, for GPUs"},
};

static enum kg_status compile(struct kg_foreign *foreign, const struct kg_text *text,
                              const char *entry, const char *options, struct kg_error *error)
{
    if (text->failed)
        return kg_error_memory(error, "a kernel from outside");
    struct kg_source source = {.text = text->data, .entry = entry, .options = options};
    return foreign->device->backend->compile(foreign->device, &source, COMPILE_SECONDS,
                                             &foreign->binary, error);
}

// It is loaded only where it is judged: loading it runs code of its own. Parallel loops of OpenMP
// run in parallel, as in files that `emit` writes, unless the compiler has no library for them.
static enum kg_status compile_c(struct kg_foreign *foreign, const struct kg_op *op,
                                struct kg_error *error)
{
    struct kg_text text = {0};
    kg_gen_foreign(op, foreign->path, foreign->code, KG_FOREIGN_ENTRY, &text);
    enum kg_status status = KG_ERROR_COMPILE;
    if (strstr(foreign->code, "omp"))
        status = compile(foreign, &text, KG_FOREIGN_ENTRY, "-fopenmp", NULL);
    if (status == KG_ERROR_COMPILE) {
        kg_binary_free(&foreign->binary);
        foreign->binary = (struct kg_binary){0};
        status = compile(foreign, &text, KG_FOREIGN_ENTRY, "", error);
    }
    kg_text_free(&text);
    return status;
}

static enum kg_status compile_cuda(struct kg_foreign *foreign, struct kg_error *error)
{
    struct kg_text text = {0};
    kg_text_add(&text, "#line 1 \"");
    for (const char *c = foreign->path; *c; c++)
        if (*c != '"' && *c != '\\' && *c != '\n')
            kg_text_add_bytes(&text, c, 1);
    kg_text_format(&text, "\"\n%s", foreign->code);
    enum kg_status status = compile(foreign, &text, "", "", error);
    kg_text_free(&text);
    return status;
}

static enum kg_status take_ptx(struct kg_foreign *foreign, struct kg_error *error)
{
    size_t length = foreign->length;
    foreign->binary.bytes = malloc(length + 1);
    foreign->binary.ptx = malloc(length + 1);
    if (!foreign->binary.bytes || !foreign->binary.ptx)
        return kg_error_memory(error, "a kernel from outside");
    memcpy(foreign->binary.bytes, foreign->code, length + 1);
    memcpy(foreign->binary.ptx, foreign->code, length + 1);
    foreign->binary.length = length;
    return KG_OK;
}

// The number in ".target sm_90a", and the letter after it: 'a', 'f' or '\0'. 0: there is none.
static int target_of(const char *ptx, char *letter)
{
    for (const char *line = ptx; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        int number = 0;
        *letter = '\0';
        if (sscanf(line, " .target sm_%d%c", &number, letter) < 1)
            continue;
        if (*letter != 'a' && *letter != 'f')
            *letter = '\0';
        return number;
    }
    return 0;
}

// Plain PTX runs on all later architectures, that of a family (f) on its later members, that of one
// architecture (a) only there.
static enum kg_status check_target(const struct kg_foreign *foreign, struct kg_error *error)
{
    char letter, device_letter = '\0';
    int device_number = 0, number = target_of(foreign->code, &letter);
    const char *isa = foreign->device->facts.isa;
    if (number == 0 || sscanf(isa, "sm_%d%c", &device_number, &device_letter) < 1)
        return KG_OK; // the driver will report it
    bool runs = letter == 'a'   ? number == device_number
                : letter == 'f' ? number <= device_number && number / 10 == device_number / 10
                                : number <= device_number;
    if (runs)
        return KG_OK;
    char suffix[2] = {letter, '\0'};
    return kg_error_set(error, KG_ERROR_ARGUMENT,
                        "%s is PTX for sm_%d%s, which %s (%s) does not run. Take the PTX "
                        "that is emitted for %s",
                        foreign->path, number, suffix, foreign->device->facts.name, isa, isa);
}

// Whether all functions that the choice may launch have the parameters of generated ones.
static enum kg_status check_choice(const struct kg_foreign *foreign, const struct kg_choice *choice,
                                   struct kg_error *error)
{
    enum kg_status status = KG_OK;
    for (int i = 0; i < choice->count && !status; i++) {
        struct kg_argument arguments[KG_MAX_ARGUMENTS];
        struct kg_grids grids = {0};
        char entry[256];
        kg_choice_entry(choice, i, entry, sizeof entry);
        choice->matches[i]->family->grids(choice->matches[i], &choice->configs[i], &grids);
        int count =
            kg_group_arguments_and_maps(&choice->matches[i]->group, grids.map_count, arguments);
        for (int n = 0; n < grids.count && !status; n++) {
            struct kg_text name = {0};
            kg_text_format(&name, "%s_%d", entry, n);
            status = kg_declared_check(foreign->binary.ptx, kg_text_string(&name),
                                       choice->matches[i]->group.problem->op, arguments, count,
                                       NULL, error);
            kg_text_free(&name);
        }
    }
    return status;
}

static enum kg_status load_choice(struct kg_foreign *foreign, const struct kg_problem *problem,
                                  struct kg_error *error)
{
    struct kg_choice choice;
    if (!kg_choice_read(problem, &foreign->device->facts, kg_target_of(foreign->device),
                        foreign->declared.choice, &choice))
        return kg_error_set(error, KG_ERROR_ARGUMENT,
                            "%s: its choice '%s' does not fit %s on %s. Without the lines "
                            "'// Choice: ...' %s",
                            foreign->path, foreign->declared.choice, problem->op->name,
                            foreign->device->facts.isa,
                            foreign->overrides ? "it overrides whatever is chosen"
                                               : "its launches count as they are written");
    enum kg_status status = check_choice(foreign, &choice, error);
    if (status)
        return status;
    return kg_built_adopt(foreign->device, problem, &choice, &foreign->binary, &foreign->built,
                          error);
}

static enum kg_status load_launches(struct kg_foreign *foreign, const struct kg_op *op,
                                    struct kg_error *error)
{
    struct kg_declared *declared = &foreign->declared;
    if (declared->count == 0)
        return kg_error_set(error, KG_ERROR_ARGUMENT,
                            "%s does not say how it is launched. Put a line like this into it:\n"
                            "// Launch:  %s, ceil(%s / 256) blocks of 256 threads",
                            foreign->path, op->name,
                            op->size_count > 0 ? op->sizes[0]->name : "1000");
    enum kg_status status = KG_OK;
    for (int i = 0; i < declared->count && !status; i++) {
        struct kg_declared_launch *launch = &declared->launches[i];
        status = kg_declared_check(foreign->binary.ptx, launch->function, op, launch->arguments,
                                   launch->argument_count, launch->widths, error);
        if (!status)
            status = foreign->device->backend->load(foreign->device, &foreign->binary,
                                                    launch->function, &foreign->kernels[i], error);
    }
    return status;
}

static enum kg_status load_for_gpu(struct kg_foreign *foreign, const struct kg_problem *problem,
                                   enum kind kind, struct kg_error *error)
{
    if (strlen(foreign->code) != foreign->length)
        return kg_error_set(error, KG_ERROR_ARGUMENT, "%s is no text", foreign->path);
    enum kg_status status =
        kg_declared_read(problem->op, foreign->path, foreign->code, &foreign->declared, error);
    if (!status && kind == KIND_PTX)
        status = check_target(foreign, error);
    if (!status)
        status = kind == KIND_PTX ? take_ptx(foreign, error) : compile_cuda(foreign, error);
    if (!status && !foreign->declared.choice && foreign->overrides) {
        foreign->declared.choice = strdup(foreign->overrides);
        if (!foreign->declared.choice)
            status = kg_error_memory(error, "a kernel from outside");
    }
    if (status)
        return status;
    status = foreign->declared.choice ? load_choice(foreign, problem, error)
                                      : load_launches(foreign, problem->op, error);
    if (status == KG_ERROR_ARGUMENT && !strstr(error ? error->text : "", foreign->path))
        kg_error_prefix(error, "%s", foreign->path);
    return status;
}

static enum kind kind_of(const char *path)
{
    size_t length = strlen(path);
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        size_t suffix = strlen(kinds[kind].suffix);
        if (length > suffix && strcmp(path + length - suffix, kinds[kind].suffix) == 0)
            return (enum kind)kind;
    }
    return KIND_COUNT;
}

// `code` and `length` of the foreign kernel are set.
static enum kg_status load(struct kg_foreign *foreign, const struct kg_problem *problem,
                           struct kg_error *error)
{
    enum kind kind = kind_of(foreign->path);
    if (kind == KIND_COUNT)
        return kg_error_set(error, KG_ERROR_ARGUMENT,
                            "%s: a kernel is a .c file for the host, or .cu or .ptx for GPUs",
                            foreign->path);
    if (kinds[kind].target != kg_target_of(foreign->device))
        return kg_error_set(error, KG_ERROR_ARGUMENT, "%s is %s, and the device is %s",
                            foreign->path, kinds[kind].what,
                            foreign->device->backend->runs_grids ? foreign->device->facts.name
                                                                 : "the host");
    return kind == KIND_C ? compile_c(foreign, problem->op, error)
                          : load_for_gpu(foreign, problem, kind, error);
}

// The same of the file itself, for callers that run the kernel.
static enum kg_status load_file(struct kg_foreign *foreign, const struct kg_problem *problem,
                                struct kg_error *error)
{
    enum kg_status status = kind_of(foreign->path) == KIND_COUNT
                                ? KG_OK
                                : kg_files_read(foreign->path, KG_FOREIGN_BYTES, &foreign->code,
                                                &foreign->length, error);
    if (!status)
        status = load(foreign, problem, error);
    if (!status && foreign->device->is_described)
        status = kg_error_set(error, KG_ERROR_MISSING,
                              "%s compiles for %s, and its parameters are right; there is no such "
                              "GPU at hand to run it",
                              foreign->path, foreign->device->facts.isa);
    return status;
}

static void unload(struct kg_foreign *foreign)
{
    const struct kg_backend *backend = foreign->device->backend;
    if (foreign->kernel)
        backend->unload(foreign->kernel);
    for (int i = 0; i < KG_MOST_DECLARED; i++)
        if (foreign->kernels[i])
            backend->unload(foreign->kernels[i]);
    kg_built_free(foreign->built);
    kg_declared_free(&foreign->declared);
    kg_binary_free(&foreign->binary);
    free(foreign->code);
}

enum kg_status kg_foreign_adopt(const struct kg_problem *problem, struct kg_device *device,
                                const char *path, const char *choice, struct kg_built **built,
                                char **text, struct kg_error *error)
{
    *built = NULL;
    *text = NULL;
    struct kg_foreign foreign = {.device = device, .path = path, .overrides = choice};
    if (kind_of(path) != KIND_PTX)
        return kg_error_set(
            error, KG_ERROR_ARGUMENT,
            "%s: only PTX overrides a kernel. Edit the PTX that is emitted for it, in a "
            "file called FILE.ptx",
            path);
    enum kg_status status = load_file(&foreign, problem, error);
    if (!status) {
        *built = foreign.built;
        *text = foreign.code;
        foreign.built = NULL;
        foreign.code = NULL;
    }
    unload(&foreign);
    return status;
}

// `*foreign` is NULL without memory.
static enum kg_status make(struct kg_device *device, const char *path, struct kg_foreign **foreign,
                           struct kg_error *error)
{
    *foreign = calloc(1, sizeof **foreign);
    if (!*foreign)
        return kg_error_memory(error, "a kernel from outside");
    **foreign = (struct kg_foreign){.device = device, .path = path};
    return KG_OK;
}

// Closes what was not opened.
static enum kg_status keep(enum kg_status status, struct kg_foreign **foreign)
{
    if (status) {
        kg_foreign_close(*foreign);
        *foreign = NULL;
    }
    return status;
}

enum kg_status kg_foreign_open(const struct kg_problem *problem, struct kg_device *device,
                               const char *path, struct kg_foreign **foreign,
                               struct kg_error *error)
{
    enum kg_status status = make(device, path, foreign, error);
    return status ? status : keep(load_file(*foreign, problem, error), foreign);
}

enum kg_status kg_foreign_open_code(const struct kg_problem *problem, struct kg_device *device,
                                    const char *path, const char *code, size_t length,
                                    struct kg_foreign **foreign, struct kg_error *error)
{
    enum kg_status status = make(device, path, foreign, error);
    if (status)
        return status;
    struct kg_foreign *opened = *foreign;
    opened->code = malloc(length + 1);
    if (!opened->code)
        return keep(kg_error_memory(error, "a kernel from outside"), foreign);
    memcpy(opened->code, code, length);
    opened->code[length] = '\0';
    opened->length = length;
    return keep(load(opened, problem, error), foreign);
}

void kg_foreign_close(struct kg_foreign *foreign)
{
    if (foreign)
        unload(foreign);
    free(foreign);
}

const char *kg_foreign_kind(const char *path, const struct kg_target **target)
{
    enum kind kind = kind_of(path);
    *target = kind == KIND_COUNT ? NULL : kinds[kind].target;
    return kind == KIND_COUNT ? NULL : kinds[kind].what;
}

void kg_foreign_gist(const struct kg_foreign *foreign, struct kg_asm_gist *gist)
{
    const char *names[KG_MOST_DECLARED];
    int count = foreign->declared.choice ? 0 : foreign->declared.count;
    for (int i = 0; i < count; i++)
        names[i] = foreign->declared.launches[i].function;
    *gist = (struct kg_asm_gist){0};
    kg_binary_gist(&foreign->binary, names, count, gist);
}
