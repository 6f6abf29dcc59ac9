// The C compiler's own sanitizers. The program that runs the kernels gets another compiler by $CC,
// which adds their checks to kernels, and AddressSanitizer's library, which has to come first.

#include "device/host/host_device.h"
#include "device/process.h"
#include "device/sanitizer.h"

#include <stdlib.h>
#include <string.h>

#define PROBE_SECONDS 5.0

// Where the compiler keeps a library. The caller frees the path; NULL: it has none.
static char *find_library(const struct kg_host_compiler *compiler, const char *name)
{
    struct kg_text option = {0}, output = {0};
    struct kg_process_end end;
    kg_text_format(&option, "-print-file-name=%s", name);
    const char *const words[] = {compiler->program, kg_text_string(&option), NULL};
    bool answered = !option.failed && kg_process_run(words, NULL, PROBE_SECONDS, NULL, 4096,
                                                     &output, &end, NULL) == KG_OK;
    char *path = NULL;
    if (answered && end.exit_status == 0 && !output.failed) {
        kg_text_cut(&output, strcspn(kg_text_string(&output), "\r\n"));
        // A library that it does not have comes back as it was asked for.
        path = strchr(kg_text_string(&output), '/') ? realpath(output.data, NULL) : NULL;
    }
    kg_text_free(&option);
    kg_text_free(&output);
    return path;
}

// What is checked. The others of -fsanitize=undefined are about pointers, of which AddressSanitizer
// sees more. Checks are calls: between the instructions of an unrolled loop they take GCC minutes.
#define CHECKS                                                                                     \
    "-g1 -fsanitize=address,bounds,shift,signed-integer-overflow,integer-divide-by-zero "          \
    "-fno-sanitize-recover=all "
#define CALLS "asan-instrumentation-with-call-threshold=0"

static const char gcc_options[] = CHECKS "--param " CALLS,
                  clang_options[] = CHECKS "-mllvm -" CALLS " -shared-libasan";

// AddressSanitizer's library, and the options for it.
static char *find_runtime(const struct kg_host_compiler *compiler, const char **options)
{
    static const struct {
        const char *name, *options;
    } libraries[] = {
        {"libasan.so", gcc_options},
        {"libclang_rt.asan.so", clang_options},
        {"libclang_rt.asan-x86_64.so", clang_options},
        {"libclang_rt.asan-aarch64.so", clang_options},
    };
    bool clang = strstr(compiler->version, "clang") != NULL;
    for (size_t i = clang; i < (clang ? sizeof libraries / sizeof libraries[0] : 1); i++) {
        char *path = find_library(compiler, libraries[i].name);
        *options = libraries[i].options;
        if (path)
            return path;
    }
    return NULL;
}

static enum kg_status add_compiler(const struct kg_host_compiler *compiler, const char *options,
                                   struct kg_sanitizer_command *command, struct kg_error *error)
{
    struct kg_text words = {0};
    for (int i = 0; i < compiler->argument_count; i++)
        kg_text_format(&words, " %s", compiler->arguments[i]);
    enum kg_status status = words.failed
                                ? kg_error_memory(error, "a command line")
                                : kg_sanitizer_add(command, error, "CC=%s%s %s", compiler->program,
                                                   kg_text_string(&words), options);
    kg_text_free(&words);
    return status;
}

static enum kg_status watch_host(struct kg_device *device, const char *name,
                                 struct kg_sanitizer_command *command, struct kg_error *error)
{
    (void)name;
    const struct kg_host_compiler *compiler = &((struct kg_host_device *)device)->compiler;
    const char *options = "";
    if (compiler->status)
        return kg_error_set(error, compiler->status, "%s", compiler->why);
    char *env = kg_process_find("env"), *library = find_runtime(compiler, &options);
    enum kg_status status = KG_OK;
    if (!env || !library)
        status = kg_error_set(error, KG_ERROR_MISSING,
                              "%s has no library of AddressSanitizer: install it (libasan for GCC, "
                              "libclang-rt for Clang), or set CC to a compiler that has one",
                              compiler->version);
    const char *const settings[] = {"ASAN_OPTIONS=detect_leaks=0:handle_segv=0:symbolize=0",
                                    "UBSAN_OPTIONS=symbolize=0"};
    if (!status)
        status = kg_sanitizer_add(command, error, "%s", env);
    if (!status)
        status = kg_sanitizer_add(command, error, "LD_PRELOAD=%s", library);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0] && !status; i++)
        status = kg_sanitizer_add(command, error, "%s", settings[i]);
    if (!status)
        status = add_compiler(compiler, options, command, error);
    free(env);
    free(library);
    return status;
}

const struct kg_sanitizer kg_host_sanitizers[] = {
    {"ASan and UBSan", watch_host, kg_sanitizer_read_host},
    {0},
};
