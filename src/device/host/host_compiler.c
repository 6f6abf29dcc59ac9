// The system's C compiler: finds it, identifies it, and compiles kernels with it.

#include "base/files.h"
#include "device/host/host_device.h"
#include "device/objects.h"
#include "device/process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_BYTES ((size_t)64 << 10)
#define PROBE_SECONDS 5.0
#define MAX_WORDS 64 // of one command line

static const char *const candidates[] = {"cc", "gcc", "clang"};

// Kernels never read errno or floating-point traps; contraction enables FMA. No flag lets the
// compiler reorder a sum or assume that there is no NaN: results are what the source says. Loops
// are aligned, because a short one that happens not to be takes up to 1.7 times as long on a Zen 5.
static const char *const flags[] = {
    "-O3",
    "-std=gnu17",
    "-fPIC",
    "-shared",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=fast",
    "-fopenmp-simd",
    "-falign-loops=32",
};
#define FLAG_COUNT ((int)(sizeof flags / sizeof flags[0]))
static const char native_flag[] = "-march=native";
// Compilers prefer shorter vectors than a processor has if the first ones that had them were slower
// for it, or if virtual machines say they are such a one. With it two AVX2 cores took 2.7 ms for
// mish of 2^19 f16 instead of 4.4, and those of a Granite Rapids 0.89 of the time for 69 plans.
static const char wide_flag[] = "-mprefer-vector-width=%d";

// A command line under construction. Too many words are a mistake of the caller; that error is
// sticky.
struct command {
    const char *words[MAX_WORDS + 1];
    int count;
    bool overflow;
};

static void add(struct command *command, const char *word)
{
    if (command->count == MAX_WORDS)
        command->overflow = true;
    else
        command->words[command->count++] = word;
    command->words[command->count] = NULL;
}

// Splits `text` at blanks, in place. False when there are more than `max` words.
static bool cut_words(char *text, const char **words, int max, int *count)
{
    *count = 0;
    char *rest = text;
    for (char *word; (word = strtok_r(rest, " \t\n", &rest));) {
        if (*count == max)
            return false;
        words[(*count)++] = word;
    }
    return true;
}

// Words of $CC before its first option: in "ccache gcc -O2", the compiler that ccache calls.
static int count_programs(const struct kg_host_compiler *compiler)
{
    int count = 0;
    while (count < compiler->argument_count && compiler->arguments[count][0] != '-')
        count++;
    return count;
}

static void begin(struct command *command, const struct kg_host_compiler *compiler)
{
    *command = (struct command){0};
    add(command, compiler->program);
    for (int i = 0; i < count_programs(compiler); i++)
        add(command, compiler->arguments[i]);
}

// Options of $CC come after KernelGen's own, so that they count where both speak of the same.
static void add_options(struct command *command, const struct kg_host_compiler *compiler)
{
    for (int i = count_programs(compiler); i < compiler->argument_count; i++)
        add(command, compiler->arguments[i]);
}

static void add_flags(struct command *command, const struct kg_host_compiler *compiler)
{
    if (compiler->native)
        add(command, native_flag);
    if (compiler->wide[0])
        add(command, compiler->wide);
    for (int i = 0; i < FLAG_COUNT; i++)
        add(command, flags[i]);
    add_options(command, compiler);
}

// Fills program and arguments from $CC or the candidates.
static enum kg_status locate(struct kg_host_compiler *compiler, struct kg_error *error)
{
    const char *wanted = getenv("CC");
    if (!wanted || wanted[strspn(wanted, " \t\n")] == '\0') {
        for (size_t i = 0; i < sizeof candidates / sizeof candidates[0] && !compiler->program; i++)
            compiler->program = kg_process_find(candidates[i]);
        if (!compiler->program)
            return kg_error_set(error, KG_ERROR_MISSING,
                                "no C compiler: none of cc, gcc, clang is on PATH. Install GCC or "
                                "Clang, or set CC to one");
        return KG_OK;
    }
    const char *words[KG_HOST_MAX_ARGUMENTS + 1];
    int count = 0;
    if (strlen(wanted) >= sizeof compiler->words)
        return kg_error_set(error, KG_ERROR_ARGUMENT, "CC is too long");
    memcpy(compiler->words, wanted, strlen(wanted) + 1);
    if (!cut_words(compiler->words, words, KG_HOST_MAX_ARGUMENTS + 1, &count))
        return kg_error_set(error, KG_ERROR_ARGUMENT, "CC holds more than %d words",
                            KG_HOST_MAX_ARGUMENTS + 1);
    compiler->program = kg_process_find(words[0]);
    if (!compiler->program)
        return kg_error_set(error, KG_ERROR_MISSING,
                            "no C compiler: CC is '%.256s', and there is no such program. Install "
                            "it, or unset CC to use cc, gcc or clang from PATH",
                            wanted);
    compiler->argument_count = count - 1;
    memcpy(compiler->arguments, words + 1, (size_t)(count - 1) * sizeof words[0]);
    return KG_OK;
}

// Reads the compiler's version. A compiler that fails here would not compile either.
static enum kg_status read_version(struct kg_host_compiler *compiler, struct kg_error *error)
{
    struct command command;
    begin(&command, compiler);
    add_options(&command, compiler);
    add(&command, "--version");
    struct kg_text output = {0};
    struct kg_process_end end;
    enum kg_status status =
        kg_process_run(command.words, NULL, PROBE_SECONDS, NULL, 4096, &output, &end, error);
    const char *text = kg_text_string(&output);
    size_t length = strcspn(text, "\r\n");
    if (!status && end.signal)
        status = kg_error_set(error, KG_ERROR_MISSING, "%s --version was ended by signal %d (%s)",
                              compiler->program, end.signal, strsignal(end.signal));
    else if (!status && (end.exit_status != 0 || length == 0))
        status = kg_error_set(error, KG_ERROR_MISSING,
                              "%s does not answer --version as a C compiler does (exit status %d): "
                              "%.256s",
                              compiler->program, end.exit_status, text);
    if (!status)
        snprintf(compiler->version, sizeof compiler->version, "%.*s", (int)length, text);
    kg_text_free(&output);
    if (status)
        kg_error_prefix(error, "C compiler");
    return status;
}

static struct kg_hash hash_compiler(const struct kg_host_device *host)
{
    const struct kg_host_compiler *compiler = &host->compiler;
    struct kg_hash hash = kg_hash_chain_text(host->machine.identity, compiler->version);
    hash = kg_hash_chain_text(hash, compiler->program);
    for (int i = 0; i < compiler->argument_count; i++)
        hash = kg_hash_chain_text(hash, compiler->arguments[i]);
    return hash;
}

// Sets `*is_sure` if the compiler itself gave the answer, and the machine did not fail.
static bool try_flag(const struct kg_host_compiler *compiler, const char *flag, bool *is_sure)
{
    struct command command;
    begin(&command, compiler);
    const char *const words[] = {flag, "-x", "c", "-c", "/dev/null", "-o", "/dev/null"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        add(&command, words[i]);
    add_options(&command, compiler);
    struct kg_text output = {0};
    struct kg_process_end end;
    enum kg_status status =
        kg_process_run(command.words, NULL, PROBE_SECONDS, NULL, 4096, &output, &end, NULL);
    bool taken = status == KG_OK && end.exit_status == 0;
    *is_sure =
        taken || (status == KG_OK && kg_host_explain_failure("", &end, kg_text_string(&output),
                                                             NULL) == KG_ERROR_COMPILE);
    kg_text_free(&output);
    return taken;
}

// Does it accept the flag? The answer costs a compilation, so it is cached.
static bool takes_flag(const struct kg_host_device *host, const char *flag)
{
    char digits[KG_HASH_TEXT];
    kg_hash_format(kg_hash_chain_text(hash_compiler(host), flag), digits);
    struct kg_text path = {0};
    kg_text_format(&path, "%s/compiler-%s", host->base.cache, digits);
    if (path.failed) {
        kg_text_free(&path);
        return false;
    }
    char *known = NULL;
    size_t length = 0;
    bool taken;
    if (kg_files_exists(path.data) &&
        kg_files_read(path.data, 64, &known, &length, NULL) == KG_OK && length == 2 &&
        (known[0] == '0' || known[0] == '1')) {
        taken = known[0] == '1';
    } else {
        bool is_sure;
        taken = try_flag(&host->compiler, flag, &is_sure);
        if (is_sure) // a failure only costs time
            kg_files_publish(path.data, taken ? "1\n" : "0\n", 2, NULL);
    }
    free(known);
    kg_text_free(&path);
    return taken;
}

static void describe(struct kg_host_device *host)
{
    struct command command = {0};
    struct kg_text text = {0};
    kg_text_add(&text, host->compiler.version);
    for (int i = 0; i < count_programs(&host->compiler); i++)
        add(&command, host->compiler.arguments[i]);
    add_flags(&command, &host->compiler);
    for (int i = 0; i < command.count; i++)
        kg_text_format(&text, " %s", command.words[i]);
    snprintf(host->base.compiler, sizeof host->base.compiler, "%s", kg_text_string(&text));
    kg_text_free(&text);
}

void kg_host_compiler_find(struct kg_host_device *host)
{
    struct kg_host_compiler *compiler = &host->compiler;
    struct kg_error error = {0};
    compiler->status = locate(compiler, &error);
    if (!compiler->status)
        compiler->status = read_version(compiler, &error);
    if (compiler->status) {
        snprintf(compiler->why, sizeof compiler->why, "%.*s", (int)sizeof compiler->why - 1,
                 error.text);
        return;
    }
    compiler->native = takes_flag(host, native_flag);
    if (compiler->native && host->machine.wide_bytes > 0) {
        snprintf(compiler->wide, sizeof compiler->wide, wide_flag, 8 * host->machine.wide_bytes);
        if (!takes_flag(host, compiler->wide))
            compiler->wide[0] = '\0';
    }
    describe(host);
}

void kg_host_compiler_free(struct kg_host_compiler *compiler)
{
    free(compiler->program);
    compiler->program = NULL;
}

static enum kg_status write_source(const char *folder, const char *text, struct kg_error *error)
{
    struct kg_text path = {0};
    kg_text_format(&path, "%s/kernel.c", folder);
    FILE *file = path.failed ? NULL : fopen(path.data, "we");
    bool written = file && fputs(text, file) >= 0;
    if (file && fclose(file) != 0)
        written = false;
    kg_text_free(&path);
    return written ? KG_OK : kg_files_fail(error, "write a kernel's source below", folder);
}

// Names are relative to the folder, so that messages show "kernel.c:12" and no temporary path.
static enum kg_status run_compiler(const struct kg_host_device *host, const char *folder,
                                   char *options, double time_limit, struct kg_text *log,
                                   double *seconds, struct kg_error *error)
{
    const struct kg_host_compiler *compiler = &host->compiler;
    struct command command;
    begin(&command, compiler);
    add_flags(&command, compiler);
    const char *extra[MAX_WORDS];
    int extra_count = 0;
    bool fits = cut_words(options, extra, MAX_WORDS, &extra_count);
    for (int i = 0; i < extra_count; i++)
        add(&command, extra[i]);
    const char *const words[] = {"kernel.c", "-o", "kernel.so", "-lm"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        add(&command, words[i]);
    if (!fits || command.overflow)
        return kg_error_set(error, KG_ERROR_ARGUMENT, "too many compiler options");

    struct kg_process_end end;
    enum kg_status status = kg_process_run(command.words, folder, time_limit, host->base.cancel,
                                           LOG_BYTES, log, &end, error);
    *seconds = end.seconds;
    if (status) {
        kg_error_prefix(error, "compiling a kernel");
        return status;
    }
    return end.exit_status == 0
               ? KG_OK
               : kg_host_explain_failure(compiler->version, &end, kg_text_string(log), error);
}

// Builds in a new folder below `parent` and publishes the object there.
static enum kg_status build_in(const char *parent, struct kg_host_device *host,
                               const struct kg_source *source, double time_limit,
                               struct kg_binary *binary, struct kg_text *log,
                               struct kg_error *error)
{
    char *path = binary->path = kg_objects_path(parent, binary->hash, ".so");
    if (!path)
        return kg_error_memory(error, "the path of a compiled object");
    char *folder = kg_objects_folder_make(parent);
    if (!folder)
        return kg_files_fail(error, "make a folder below", parent);
    char *options = strdup(source->options ? source->options : "");
    struct kg_text made = {0};
    kg_text_format(&made, "%s/kernel.so", folder);
    enum kg_status status = KG_OK;
    if (!options || made.failed)
        status = kg_error_memory(error, "a compilation");
    if (!status)
        status = write_source(folder, source->text, error);
    if (!status)
        status = run_compiler(host, folder, options, time_limit, log, &binary->seconds, error);
    if (!status && !kg_files_exists(made.data))
        status = kg_error_set(error, KG_ERROR_COMPILE,
                              "the compiler (%s) reported success and made nothing",
                              host->compiler.version);
    if (!status)
        status = kg_objects_publish_file(path, made.data, error);
    kg_text_free(&made);
    free(options);
    kg_objects_folder_remove(folder);
    free(folder);
    return status;
}

// Builds in the cache or, if the cache may lack room, in the spare folder: a full cache stops
// nothing. Room that was lacking may be there a moment later, when other compilations have ended:
// then it is tried in the cache again, at most twice.
static enum kg_status build(struct kg_host_device *host, const struct kg_source *source,
                            double time_limit, struct kg_binary *binary, struct kg_text *log,
                            struct kg_error *error)
{
    const char *spare = atomic_load(&host->base.spare);
    const char *folder = spare ? spare : host->base.cache;
    enum kg_status status = build_in(folder, host, source, time_limit, binary, log, error);
    for (int again = 0; again < 2 && status && !spare; again++) {
        if (status == KG_ERROR_CANCELLED || status == KG_ERROR_TIMEOUT)
            break;
        spare = kg_objects_spare(&host->base);
        if (!spare && !strstr(kg_text_string(log), "No space left on device"))
            break;
        free(binary->path);
        kg_text_cut(log, 0);
        folder = spare ? spare : host->base.cache;
        status = build_in(folder, host, source, time_limit, binary, log, error);
    }
    return status;
}

static struct kg_hash hash_build(const struct kg_host_device *host, const struct kg_source *source)
{
    struct kg_hash hash = kg_hash_chain_text(hash_compiler(host), host->compiler.native ? "n" : "");
    hash = kg_hash_chain_text(hash, host->compiler.wide);
    for (int i = 0; i < FLAG_COUNT; i++)
        hash = kg_hash_chain_text(hash, flags[i]);
    hash = kg_hash_chain_text(hash, source->options ? source->options : "");
    return kg_hash_chain_text(hash, source->text);
}

enum kg_status kg_host_compile(struct kg_device *device, const struct kg_source *source,
                               double time_limit, struct kg_binary *binary, struct kg_error *error)
{
    struct kg_host_device *host = (struct kg_host_device *)device;
    *binary = (struct kg_binary){0};
    if (host->compiler.status)
        return kg_error_set(error, host->compiler.status, "%s", host->compiler.why);

    struct kg_text log = {0};
    kg_text_add(&log, "");
    binary->hash = hash_build(host, source);
    binary->path = kg_objects_find(device, binary->hash, ".so");
    binary->from_cache = binary->path;
    enum kg_status status = KG_OK;
    if (!binary->from_cache)
        status = build(host, source, time_limit, binary, &log, error);
    if (!status && !(binary->log = log.data ? log.data : strdup("")))
        status = kg_error_memory(error, "the compiler's messages");
    if (status) {
        kg_text_free(&log);
        kg_binary_free(binary);
    }
    return status;
}
