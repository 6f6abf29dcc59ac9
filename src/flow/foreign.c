// Foreign kernels: a C function on the host, a CUDA file or PTX on GPUs. docs/verification.md
// describes what the files must contain.

#include "flow/foreign.h"

#include "base/files.h"
#include "flow/judging.h"
#include "gen/cuda/declared.h"
#include "gen/prepared.h"
#include "gen/standalone.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMPILE_SECONDS 120.0
#define HOST_SECONDS 120.0 // one kernel on all cases; a longer time is a hang
#define GPU_SECONDS 30.0
#define DECLARED_ALIGNMENT 16 // bytes: what tensors of files with launches of their own begin at
#define HOST_BYTES ((size_t)4 << 30) // that a kernel on the host may take for itself
#define GATE_BYTES ((size_t)1 << 30) // that judging may take
#define GATE_COPIES 4                // of the problem's tensors, besides
#define MAX_BYTES (4 << 20)          // of a file

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

// A foreign kernel, ready to run: a host kernel or, for GPUs, a built choice or launches of its
// own.
struct kg_foreign {
    struct kg_device *device;
    const char *path;
    const char *overrides; // the choice it overrides if it names none; NULL: none
    char *code;
    struct kg_binary binary;
    struct kg_kernel *kernel;
    struct kg_built *built;
    struct kg_declared declared;
    struct kg_kernel *kernels[KG_MOST_DECLARED];
};

static const char host_entry[] = "kg_foreign";

static enum kg_status load_on_host(void *user, struct kg_error *error)
{
    struct kg_foreign *foreign = user;
    return foreign->device->backend->load(foreign->device, &foreign->binary, host_entry,
                                          &foreign->kernel, error);
}

static enum kg_status unload_on_host(void *user, struct kg_error *error)
{
    struct kg_foreign *foreign = user;
    (void)error;
    foreign->device->backend->unload(foreign->kernel);
    foreign->kernel = NULL;
    return KG_OK;
}

static enum kg_status run_on_host(void *user, const struct kg_problem *problem,
                                  void *const *tensors, struct kg_error *error)
{
    const struct kg_foreign *foreign = user;
    if (!problem->contiguous)
        return kg_error_set(error, KG_ERROR_UNSUPPORTED, "the signature has no strides");
    struct kg_launch launch = {.tensors = tensors, .sizes = problem->sizes};
    return foreign->device->backend->launch(foreign->kernel, &launch, error);
}

// What a kernel may do on the host: its calls are judged on copies of the tensors.
static struct kg_confinement confinement_for(const struct kg_request *request)
{
    const struct kg_problem *problem = request->problem;
    int threads = request->device->facts.units;
    size_t tensors = 0;
    for (int i = 0; i < problem->op->input_count + problem->op->output_count; i++)
        tensors += problem->layouts[i].bytes;
    return (struct kg_confinement){.memory = GATE_BYTES + GATE_COPIES * tensors + HOST_BYTES,
                                   .threads = threads,
                                   .seconds = 2 * HOST_SECONDS * threads};
}

static enum kg_status run_built(void *user, const struct kg_problem *problem, void *const *tensors,
                                struct kg_error *error)
{
    const struct kg_foreign *foreign = user;
    const struct kg_backend *backend = foreign->device->backend;
    struct kg_prepared *prepared;
    void *workspace = NULL;
    enum kg_status status = kg_prepared_make(foreign->built, problem, &prepared, error);
    size_t bytes = status ? 0 : kg_prepared_workspace(prepared);
    if (bytes > 0)
        status = backend->allocate(foreign->device, bytes, &workspace, error);
    if (!status)
        status = kg_prepared_run(prepared, tensors, workspace, NULL, error);
    if (workspace)
        backend->release(foreign->device, workspace);
    kg_prepared_free(prepared);
    return status;
}

// One launch as declared by the file.
static enum kg_status launch_declared(const struct kg_foreign *foreign, int position,
                                      const struct kg_problem *problem, void *const *tensors,
                                      void *scratch, struct kg_error *error)
{
    const struct kg_declared_launch *declared = &foreign->declared.launches[position];
    void *pointers[KG_MAX_TENSORS], *arguments[KG_MAX_ARGUMENTS];
    int64_t numbers[KG_MAX_ARGUMENTS];
    struct kg_grid grid;
    enum kg_status status =
        kg_declared_grid(&foreign->declared, position, problem->sizes, &grid, error);
    if (status || grid.blocks[0] == 0)
        return status;
    for (int i = 0; i < problem->op->input_count + problem->op->output_count; i++)
        pointers[i] = tensors[i];
    for (int i = 0; i < declared->argument_count; i++) {
        const struct kg_argument *argument = &declared->arguments[i];
        bool is_size = argument->kind == KG_ARGUMENT_SIZE;
        numbers[i] = is_size ? problem->sizes[argument->id]
                     : argument->kind == KG_ARGUMENT_STRIDE //
                         ? problem->layouts[argument->id].stride[argument->dim]
                         : 0;
        arguments[i] = argument->kind == KG_ARGUMENT_TENSOR    ? (void *)&pointers[argument->id]
                       : argument->kind == KG_ARGUMENT_SCRATCH ? (void *)&scratch
                                                               : (void *)&numbers[i];
        if (declared->widths[i] == 4 && (numbers[i] > INT_MAX || numbers[i] < INT_MIN))
            return kg_error_set(error, KG_ERROR_SHAPE, "parameter %d of %s has 32 bits: %lld",
                                i + 1, declared->function, (long long)numbers[i]);
    }
    struct kg_launch launch = {.grids = &grid, .grid_count = 1, .arguments = arguments};
    return foreign->device->backend->launch(foreign->kernels[position], &launch, error);
}

static enum kg_status run_declared(void *user, const struct kg_problem *problem,
                                   void *const *tensors, struct kg_error *error)
{
    const struct kg_foreign *foreign = user;
    const struct kg_backend *backend = foreign->device->backend;
    void *scratch = NULL;
    size_t bytes;
    if (!problem->contiguous)
        return kg_error_set(error, KG_ERROR_UNSUPPORTED, "it is for contiguous tensors");
    enum kg_status status = kg_declared_scratch(&foreign->declared, problem->sizes, &bytes, error);
    if (!status && bytes > 0)
        status = backend->allocate(foreign->device, bytes, &scratch, error);
    for (int i = 0; i < foreign->declared.count && !status; i++)
        status = launch_declared(foreign, i, problem, tensors, scratch, error);
    if (scratch)
        backend->release(foreign->device, scratch);
    return status;
}

static enum kg_status compile(struct kg_foreign *foreign, const struct kg_text *text,
                              const char *entry, struct kg_error *error)
{
    if (text->failed)
        return kg_error_memory(error, "a kernel from outside");
    struct kg_source source = {.text = text->data, .entry = entry, .options = ""};
    return foreign->device->backend->compile(foreign->device, &source, COMPILE_SECONDS,
                                             &foreign->binary, error);
}

// It is loaded only where it is judged: loading it runs code of its own.
static enum kg_status compile_c(struct kg_foreign *foreign, const struct kg_op *op,
                                struct kg_error *error)
{
    struct kg_text text = {0};
    kg_gen_foreign(op, foreign->path, foreign->code, host_entry, &text);
    enum kg_status status = compile(foreign, &text, host_entry, error);
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
    enum kg_status status = compile(foreign, &text, "", error);
    kg_text_free(&text);
    return status;
}

static enum kg_status take_ptx(struct kg_foreign *foreign, size_t length, struct kg_error *error)
{
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
                                   enum kind kind, size_t length, struct kg_error *error)
{
    if (strlen(foreign->code) != length)
        return kg_error_set(error, KG_ERROR_ARGUMENT, "%s is no text", foreign->path);
    enum kg_status status =
        kg_declared_read(problem->op, foreign->path, foreign->code, &foreign->declared, error);
    if (!status && kind == KIND_PTX)
        status = check_target(foreign, error);
    if (!status)
        status = kind == KIND_PTX ? take_ptx(foreign, length, error) : compile_cuda(foreign, error);
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

static enum kg_status load(struct kg_foreign *foreign, const struct kg_problem *problem,
                           struct kg_error *error)
{
    enum kind kind = kind_of(foreign->path);
    size_t length = 0;
    if (kind == KIND_COUNT)
        return kg_error_set(error, KG_ERROR_ARGUMENT,
                            "%s: a kernel is a .c file for the host, or .cu or .ptx for GPUs",
                            foreign->path);
    if (kinds[kind].target != kg_target_of(foreign->device))
        return kg_error_set(error, KG_ERROR_ARGUMENT, "%s is %s, and the device is %s",
                            foreign->path, kinds[kind].what,
                            foreign->device->backend->runs_grids ? foreign->device->facts.name
                                                                 : "the host");
    enum kg_status status = kg_files_read(foreign->path, MAX_BYTES, &foreign->code, &length, error);
    if (!status)
        status = kind == KIND_C ? compile_c(foreign, problem->op, error)
                                : load_for_gpu(foreign, problem, kind, length, error);
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
    enum kg_status status = load(&foreign, problem, error);
    if (!status) {
        *built = foreign.built;
        *text = foreign.code;
        foreign.built = NULL;
        foreign.code = NULL;
    }
    unload(&foreign);
    return status;
}

enum kg_status kg_foreign_open(const struct kg_problem *problem, struct kg_device *device,
                               const char *path, struct kg_foreign **foreign,
                               struct kg_error *error)
{
    struct kg_foreign *opened = *foreign = calloc(1, sizeof *opened);
    if (!opened)
        return kg_error_memory(error, "a kernel from outside");
    *opened = (struct kg_foreign){.device = device, .path = path};
    enum kg_status status = load(opened, problem, error);
    if (status) {
        kg_foreign_close(opened);
        *foreign = NULL;
    }
    return status;
}

void kg_foreign_close(struct kg_foreign *foreign)
{
    if (foreign)
        unload(foreign);
    free(foreign);
}

size_t kg_foreign_alignment(const struct kg_foreign *foreign)
{
    return foreign->built ? 0 : DECLARED_ALIGNMENT;
}

enum kg_status kg_foreign_judge(const struct kg_request *request, struct kg_foreign *foreign,
                                const struct kg_gate *gate, struct kg_verdict *verdict,
                                struct kg_error *error)
{
    bool runs_grids = foreign->device->backend->runs_grids;
    struct kg_subject subject = {foreign->path, foreign,
                                 !runs_grids      ? run_on_host
                                 : foreign->built ? run_built
                                                  : run_declared};
    struct kg_guest guest = {load_on_host, unload_on_host, confinement_for(request)};
    return kg_flow_judge(request, gate, &subject, runs_grids ? NULL : &guest,
                         runs_grids ? GPU_SECONDS : HOST_SECONDS, verdict, error);
}
