// Compiles with NVRTC. It cannot be interrupted and may crash, so each compilation runs in a
// separate process, which returns the result; several may run at once.
//
// The result is stored as one object: a header with three lengths, then cubin, PTX and log. The
// header also has the compilation time, which is reported when the object comes from the cache.

#include "base/files.h"
#include "base/times.h"
#include "device/child.h"
#include "device/cuda/cuda_device.h"
#include "device/ending.h"
#include "device/objects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OPTIONS 64
#define MAX_BYTES ((size_t)256 << 20)

// Without this option NVRTC initialises the driver, if there is one, for its own cache. That is
// slower than compiling a small kernel, and fails in a fork if this process uses the driver. NVRTC
// before 12.9 has neither the cache nor the option.
static const char no_cache[] = "--no-cache";

// -default-device makes lambdas device functions. With -v ptxas prints registers, spills and its
// advisories; asm/advisories.c reads them.
static const char *const fixed_options[] = {"-std=c++17", "-default-device", "--ptxas-options=-v"};
#define FIXED_COUNT (sizeof fixed_options / sizeof fixed_options[0])

// The header of an object, with the lengths of the sections that follow it, in this order.
struct parts {
    uint64_t cubin;
    uint64_t ptx;
    uint64_t log;
    double seconds;
};

// One compilation in the child.
struct compilation {
    const struct kg_nvrtc *nvrtc;
    const char *text;
    const char *name; // of the source, for messages
    const char *options[MAX_OPTIONS];
    int option_count;
};

void kg_cuda_compiler_find(struct kg_cuda_device *cuda, int max_major)
{
    struct kg_error error = {0};
    struct kg_device *device = &cuda->base;
    const struct kg_nvrtc *nvrtc = &cuda->compiler.nvrtc;
    int sm = (int)strtol(device->facts.isa + strlen("sm_"), NULL, 10);
    cuda->compiler.status = kg_nvrtc_open(max_major, &cuda->compiler.nvrtc, &error);
    if (!cuda->compiler.status && !kg_nvrtc_knows(nvrtc, sm))
        cuda->compiler.status = kg_error_set(
            &error, KG_ERROR_MISSING, "NVRTC %d.%d (%s) does not compile for %s: %s one is needed",
            nvrtc->major, nvrtc->minor, nvrtc->path, device->facts.isa,
            nvrtc->sms[0] > sm ? "an older" : "a newer");
    if (cuda->compiler.status) {
        snprintf(cuda->compiler.why, sizeof cuda->compiler.why, "%.*s",
                 (int)sizeof cuda->compiler.why - 1, error.text);
        return;
    }
    snprintf(device->compiler, sizeof device->compiler, "NVRTC %d.%d --gpu-architecture=%s %s",
             nvrtc->major, nvrtc->minor, device->facts.isa, fixed_options[0]);
}

// Appends one output that NVRTC returns by size and content, without its terminator. Zero, or
// NVRTC's error number.
static int take_part(void *program, int (*size)(void *, size_t *), int (*get)(void *, char *),
                     bool is_text, struct kg_text *answer, uint64_t *length)
{
    size_t bytes = 0;
    int result = size(program, &bytes);
    char *part = result ? NULL : calloc(1, bytes + 1);
    if (part)
        result = get(program, part);
    if (part && !result) {
        *length = is_text ? strlen(part) : bytes;
        kg_text_add_bytes(answer, part, *length);
    }
    if (!part)
        answer->failed = true;
    free(part);
    return result;
}

static int take_parts(const struct kg_nvrtc *nvrtc, void *program, bool compiled,
                      struct kg_text *answer)
{
    struct parts parts = {0};
    int result = 0;
    kg_text_add_bytes(answer, (const char *)&parts, sizeof parts);
    if (compiled)
        result = take_part(program, nvrtc->cubin_size, nvrtc->cubin, false, answer, &parts.cubin);
    if (compiled && !result)
        result = take_part(program, nvrtc->ptx_size, nvrtc->ptx, true, answer, &parts.ptx);
    if (!result)
        result = take_part(program, nvrtc->log_size, nvrtc->log, true, answer, &parts.log);
    if (!answer->failed)
        memcpy(answer->data, &parts, sizeof parts);
    return result;
}

// The first option is refused by older versions; then it is left out.
static int compile_program(const struct compilation *job, void **program)
{
    const struct kg_nvrtc *nvrtc = job->nvrtc;
    int result = 0;
    for (int skipped = 0; skipped < 2; skipped++) {
        result = nvrtc->create(program, job->text, job->name, 0, NULL, NULL);
        if (!result)
            result = nvrtc->compile(*program, job->option_count - skipped, job->options + skipped);
        if (result != KG_NVRTC_INVALID_OPTION || skipped > 0)
            break;
        nvrtc->destroy(program);
    }
    return result;
}

// Runs in the child.
static enum kg_status compile_here(void *user, const void *request, size_t length,
                                   struct kg_text *answer, struct kg_error *error)
{
    (void)request, (void)length;
    const struct compilation *job = user;
    const struct kg_nvrtc *nvrtc = job->nvrtc;
    void *program = NULL;
    int failure = compile_program(job, &program);
    int result = program ? take_parts(nvrtc, program, !failure, answer) : 0;
    if (failure == KG_NVRTC_REFUSED || failure == KG_NVRTC_INVALID_OPTION)
        return KG_ERROR_COMPILE; // the parent has the log
    int number = failure ? failure : result;
    if (number)
        return kg_error_set(error,
                            number == KG_NVRTC_OUT_OF_MEMORY ? KG_ERROR_MEMORY : KG_ERROR_COMPILE,
                            "%s", nvrtc->describe(number));
    return KG_OK;
}

static char *copy_part(const char *bytes, size_t length)
{
    char *copy = malloc(length + 1);
    if (!copy)
        return NULL;
    memcpy(copy, bytes, length);
    copy[length] = '\0';
    return copy;
}

// Splits an object into its sections.
static enum kg_status unpack(const char *bytes, size_t length, struct kg_binary *binary,
                             struct kg_error *error)
{
    struct parts parts = {0};
    size_t left = length < sizeof parts ? 0 : length - sizeof parts;
    if (length >= sizeof parts)
        memcpy(&parts, bytes, sizeof parts);
    if (length < sizeof parts || parts.cubin > left || parts.ptx > left - parts.cubin ||
        parts.log != left - parts.cubin - parts.ptx)
        return kg_error_set(error, KG_ERROR_CORRUPT, "a compiled object is truncated");
    const char *at = bytes + sizeof parts;
    // A damaged header may hold any value.
    binary->seconds = parts.seconds >= 0 ? parts.seconds : 0;
    binary->length = parts.cubin;
    binary->bytes = copy_part(at, parts.cubin);
    binary->ptx = copy_part(at + parts.cubin, parts.ptx);
    binary->log = copy_part(at + parts.cubin + parts.ptx, parts.log);
    if (!binary->bytes || !binary->ptx || !binary->log)
        return kg_error_memory(error, "a compiled object");
    kg_cuda_hash_code(binary);
    return KG_OK;
}

// A compiler that crashed on one kernel may compile another; one that the system killed may not.
static enum kg_status explain_end(const struct kg_cuda_device *cuda, int signal,
                                  struct kg_error *error)
{
    const struct kg_nvrtc *nvrtc = &cuda->compiler.nvrtc;
    const struct kg_ending *ending = kg_ending_find(signal);
    if (ending && ending->cause)
        return kg_error_set(error, KG_ERROR_MISSING,
                            "the compiler (NVRTC %d.%d) was ended by %s: %s", nvrtc->major,
                            nvrtc->minor, ending->name, ending->cause);
    if (error)
        error->status = KG_ERROR_COMPILE;
    kg_error_prefix(error, "the compiler (NVRTC %d.%d)", nvrtc->major, nvrtc->minor);
    return KG_ERROR_COMPILE;
}

// The log is at the end of the child's answer.
static enum kg_status explain_refusal(const struct kg_cuda_device *cuda, enum kg_status status,
                                      const struct kg_text *answer, struct kg_error *error)
{
    struct kg_binary refused = {0};
    const struct kg_nvrtc *nvrtc = &cuda->compiler.nvrtc;
    if (status == KG_ERROR_COMPILE && answer->length > 0 &&
        unpack(answer->data, answer->length, &refused, NULL) == KG_OK && refused.log[0]) {
        size_t length = strlen(refused.log);
        while (length > 0 && refused.log[length - 1] == '\n')
            refused.log[--length] = '\0';
        kg_error_set(error, status, "the compiler (NVRTC %d.%d) refused the kernel:\n%s",
                     nvrtc->major, nvrtc->minor, refused.log);
    } else {
        kg_error_prefix(error, "the compiler (NVRTC %d.%d)", nvrtc->major, nvrtc->minor);
    }
    kg_binary_free(&refused);
    return status;
}

static void add_option(struct compilation *job, const char *option)
{
    if (job->option_count < MAX_OPTIONS)
        job->options[job->option_count] = option;
    job->option_count++;
}

// Fills in the options. `words` holds the source's options and is split in place; `folder` and
// `arch` are buffers for composed options.
static enum kg_status add_options(struct compilation *job, const struct kg_cuda_device *cuda,
                                  char *words, struct kg_text *arch, struct kg_text *folder,
                                  struct kg_error *error)
{
    kg_text_format(arch, "--gpu-architecture=%s", cuda->base.facts.isa);
    if (cuda->compiler.nvrtc.include[0])
        kg_text_format(folder, "--include-path=%s", cuda->compiler.nvrtc.include);
    if (!words || arch->failed || folder->failed)
        return kg_error_memory(error, "a compilation");
    add_option(job, no_cache);
    add_option(job, arch->data);
    for (size_t i = 0; i < FIXED_COUNT; i++)
        add_option(job, fixed_options[i]);
    if (folder->length)
        add_option(job, folder->data);
    char *rest = words;
    for (char *word; (word = strtok_r(rest, " \t\n", &rest));)
        add_option(job, word);
    if (job->option_count > MAX_OPTIONS)
        return kg_error_set(error, KG_ERROR_ARGUMENT, "a compilation takes at most %d options",
                            MAX_OPTIONS);
    return KG_OK;
}

static enum kg_status run_compiler(const struct kg_cuda_device *cuda, struct compilation *job,
                                   double time_limit, struct kg_text *answer,
                                   struct kg_error *error)
{
    const struct kg_child_service service = {.user = job, .serve = compile_here};
    struct kg_child *child;
    enum kg_status status = kg_child_start(&service, &child, error);
    if (status)
        return status;
    status = kg_child_ask(child, "", 0, time_limit, cuda->base.cancel, MAX_BYTES, answer, error);
    if (status == KG_ERROR_FAULT)
        status = explain_end(cuda, kg_child_signal(child), error);
    else if (status)
        status = explain_refusal(cuda, status, answer, error);
    kg_child_stop(child);
    return status;
}

static void note_seconds(struct kg_text *answer, double seconds)
{
    struct parts parts;
    if (answer->length < sizeof parts)
        return;
    memcpy(&parts, answer->data, sizeof parts);
    parts.seconds = seconds;
    memcpy(answer->data, &parts, sizeof parts);
}

static enum kg_status build(struct kg_cuda_device *cuda, const struct kg_source *source,
                            double time_limit, const char *path, struct kg_binary *binary,
                            struct kg_error *error)
{
    struct kg_text arch = {0}, folder = {0}, answer = {0};
    struct compilation job = {
        .nvrtc = &cuda->compiler.nvrtc, .text = source->text, .name = "kernel.cu"};
    char *words = strdup(source->options ? source->options : "");
    enum kg_status status = add_options(&job, cuda, words, &arch, &folder, error);
    if (!status) {
        double start = kg_times_now();
        status = run_compiler(cuda, &job, time_limit, &answer, error);
        note_seconds(&answer, kg_times_now() - start);
    }
    if (!status)
        status = unpack(answer.data, answer.length, binary, error);
    if (!status) // a cache that is not writable only costs time
        kg_objects_publish(path, answer.data, answer.length, NULL);
    free(words);
    kg_text_free(&arch);
    kg_text_free(&folder);
    kg_text_free(&answer);
    return status;
}

static struct kg_hash hash_build(const struct kg_cuda_device *cuda, const struct kg_source *source)
{
    const struct kg_nvrtc *nvrtc = &cuda->compiler.nvrtc;
    struct kg_hash hash = kg_hash_bytes(cuda->base.compiler, strlen(cuda->base.compiler));
    hash = kg_hash_chain(hash, &nvrtc->bytes, sizeof nvrtc->bytes);
    for (size_t i = 0; i < FIXED_COUNT; i++)
        hash = kg_hash_chain_text(hash, fixed_options[i]);
    hash = kg_hash_chain_text(hash, source->options ? source->options : "");
    return kg_hash_chain_text(hash, source->text);
}

// False if there is no intact object; a damaged one is removed.
static bool take_from_cache(const char *path, struct kg_binary *binary)
{
    char *bytes = NULL;
    size_t length = 0;
    bool taken = kg_files_exists(path) && kg_objects_read(path, &bytes, &length, NULL) == KG_OK &&
                 unpack(bytes, length, binary, NULL) == KG_OK;
    free(bytes);
    return taken;
}

enum kg_status kg_cuda_compile(struct kg_device *device, const struct kg_source *source,
                               double time_limit, struct kg_binary *binary, struct kg_error *error)
{
    struct kg_cuda_device *cuda = (struct kg_cuda_device *)device;
    *binary = (struct kg_binary){0};
    if (cuda->compiler.status)
        return kg_error_set(error, cuda->compiler.status, "%s", cuda->compiler.why);
    struct kg_hash hash = hash_build(cuda, source);
    char *path = kg_objects_path(device->cache, hash, ".cubin");
    enum kg_status status = KG_OK;
    if (!path) {
        status = kg_error_memory(error, "the path of a compiled object");
    } else if (take_from_cache(path, binary)) {
        binary->from_cache = true;
    } else {
        kg_binary_free(binary); // of a failed attempt
        status = build(cuda, source, time_limit, path, binary, error);
    }
    free(path);
    binary->hash = hash;
    if (status)
        kg_binary_free(binary);
    return status;
}
