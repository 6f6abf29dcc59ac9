// Functions of several commands: reading files, opening the subject, reporting.

#include "cli.h"
#include "output.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGEST_TEXT ((size_t)16 << 20) // of a definition or a wisdom file

enum cli_exit cli_exit_of(enum kg_status status)
{
    static const enum cli_exit exits[KG_STATUS_COUNT] = {
        [KG_OK] = CLI_DONE,
        [KG_ERROR_ARGUMENT] = CLI_BAD_INPUT,
        [KG_ERROR_DEFINITION] = CLI_BAD_INPUT,
        [KG_ERROR_SHAPE] = CLI_BAD_INPUT,
        [KG_ERROR_MEMORY] = CLI_MISSING,
        [KG_ERROR_IO] = CLI_BAD_INPUT,
        [KG_ERROR_CORRUPT] = CLI_BAD_INPUT,
        [KG_ERROR_UNSUPPORTED] = CLI_MISSING,
        [KG_ERROR_MISSING] = CLI_MISSING,
        [KG_ERROR_COMPILE] = CLI_BAD_INPUT,
        [KG_ERROR_TIMEOUT] = CLI_MISSING,
        [KG_ERROR_FAULT] = CLI_REFUSED,
        [KG_ERROR_WRONG] = CLI_REFUSED,
        [KG_ERROR_NO_WISDOM] = CLI_REFUSED,
        [KG_ERROR_CANCELLED] = CLI_INTERRUPTED,
    };
    return (unsigned)status < KG_STATUS_COUNT ? exits[status] : CLI_MISSING;
}

enum cli_exit cli_interrupted(void)
{
    fprintf(stderr, "kernelgen: interrupted; what was measured is kept\n");
    cli_json_failure("interrupted");
    return CLI_INTERRUPTED;
}

enum cli_exit cli_fail(const struct cli *cli, enum kg_status status)
{
    cli_progress_clear();
    if (status == KG_ERROR_CANCELLED)
        return cli_interrupted();
    const char *text = kg_context_error(cli->context);
    cli_json_failure(*text ? text : kg_status_name(status));
    // Diagnostics of a definition include the file's name.
    if (status == KG_ERROR_DEFINITION)
        fprintf(stderr, "%s\n", text);
    else
        fprintf(stderr, "kernelgen: %s\n", *text ? text : kg_status_name(status));
    cli_advise(cli, status);
    return cli_exit_of(status);
}

enum cli_exit cli_fail_in(const struct cli *cli, const char *path, enum kg_status status)
{
    if (cli_exit_of(status) != CLI_BAD_INPUT || status == KG_ERROR_IO)
        return cli_fail(cli, status);
    enum cli_exit exit_status = cli_bad_usage("%s: %s", path, kg_context_error(cli->context));
    cli_advise(cli, status);
    return exit_status;
}

// The caller frees it. NULL: no memory.
__attribute__((format(printf, 1, 0))) static char *format_printable(const char *format,
                                                                    va_list arguments)
{
    char *text;
    if (vasprintf(&text, format, arguments) < 0)
        return NULL;
    kg_text_make_printable(text);
    return text;
}

void cli_say(FILE *stream, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = format_printable(format, arguments);
    va_end(arguments);
    if (text)
        fputs(text, stream);
    free(text);
}

__attribute__((format(printf, 2, 0))) static enum cli_exit
complain(const char *who, const char *format, va_list arguments)
{
    char *text = format_printable(format, arguments);
    if (!text)
        return CLI_BAD_INPUT;
    fprintf(stderr, "kernelgen%s%s: %s\n", *who ? " " : "", who, text);
    cli_json_failure(text);
    free(text);
    return CLI_BAD_INPUT;
}

enum cli_exit cli_bad_usage(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    enum cli_exit exit_status = complain("", format, arguments);
    va_end(arguments);
    return exit_status;
}

enum cli_exit cli_bad_command(const struct cli_command *command, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    enum cli_exit exit_status = complain(command->name, format, arguments);
    va_end(arguments);
    return exit_status;
}

static enum cli_exit file_problem(const char *what, const char *path, const char *why)
{
    return cli_bad_usage("cannot %s %s: %s", what, path, why);
}

enum cli_exit cli_not_written(const char *path, int why)
{
    enum cli_exit exit_status = file_problem("write", path, output_why(why));
    return output_is_full(why) ? CLI_MISSING : exit_status;
}

// A long file is read into huge pages if possible: the system then clears and maps a few pages
// instead of thousands.
static char *make_room(size_t capacity)
{
    enum { LARGE_PAGE = 2 << 20 };
    if (capacity < 2 * LARGE_PAGE)
        return malloc(capacity);
    void *room;
    if (posix_memalign(&room, LARGE_PAGE, capacity) != 0)
        return NULL;
#ifdef MADV_HUGEPAGE
    madvise(room, capacity, MADV_HUGEPAGE); // a failure is harmless
#endif
    return room;
}

// The buffer grows while reading: the size of a pipe is unknown, and that of a file, `expected`,
// may change.
static const char *read_all(FILE *file, size_t expected, size_t limit, char **bytes, size_t *length)
{
    size_t least = 1 << 16, used = 0;
    size_t capacity = expected < least ? least : (expected < limit ? expected : limit) + 1;
    char *buffer = make_room(capacity + 1);
    while (buffer) {
        used += fread(buffer + used, 1, capacity - used, file);
        if (ferror(file)) {
            free(buffer);
            return "read error";
        }
        if (used > limit) {
            free(buffer);
            return limit == LARGEST_TEXT ? "it is larger than 16 MiB" : "it is too large";
        }
        if (used < capacity) {
            buffer[used] = '\0';
            *bytes = buffer;
            *length = used;
            return NULL;
        }
        capacity *= 2;
        char *larger = realloc(buffer, capacity + 1);
        if (!larger)
            free(buffer);
        buffer = larger;
    }
    return "out of memory";
}

enum cli_exit cli_read_input(const char *path, size_t limit, char **bytes, size_t *length)
{
    *bytes = NULL;
    *length = 0;
    struct stat about;
    bool standard = strcmp(path, "-") == 0;
    FILE *file = standard ? stdin : fopen(path, "rb");
    if (!file)
        return file_problem("read", path, strerror(errno));
    if (fstat(fileno(file), &about) != 0)
        about = (struct stat){0};
    size_t expected = S_ISREG(about.st_mode) && about.st_size > 0 ? (size_t)about.st_size : 0;
    const char *why =
        S_ISDIR(about.st_mode) ? "it is a folder" : read_all(file, expected, limit, bytes, length);
    if (!standard)
        fclose(file);
    return why ? file_problem("read", standard ? "standard input" : path, why) : CLI_DONE;
}

enum cli_exit cli_read_file(const char *path, char **text, size_t *length)
{
    return cli_read_input(path, LARGEST_TEXT, text, length);
}

bool cli_is_folder(const char *path)
{
    struct stat about;
    size_t length = path ? strlen(path) : 0;
    if (length == 0)
        return false;
    return path[length - 1] == '/' || (stat(path, &about) == 0 && S_ISDIR(about.st_mode));
}

enum cli_exit cli_write_file(const char *path, const char *bytes, size_t length)
{
    struct output output;
    bool done = output_open(&output, path) &&
                output_close(&output, fwrite(bytes, 1, length, output.stream) == length);
    return done ? CLI_DONE : cli_not_written(path, errno);
}

enum cli_exit cli_open_op(struct cli *cli, struct kg_op **op)
{
    return cli_open_op_in(cli, cli->options.words[0], op);
}

enum cli_exit cli_open_op_in(struct cli *cli, const char *path, struct kg_op **op)
{
    *op = NULL;
    char *text;
    size_t length;
    enum cli_exit exit_status = cli_read_file(path, &text, &length);
    if (exit_status != CLI_DONE)
        return exit_status;
    enum kg_status status = kg_op_parse(cli->context, path, text, length, cli->options.op, op);
    free(text);
    return status == KG_OK ? CLI_DONE : cli_fail(cli, status);
}

enum cli_exit cli_open(struct cli *cli, struct cli_subject *subject)
{
    *subject = (struct cli_subject){0};
    enum cli_exit exit_status = cli_open_op(cli, &subject->op);
    if (exit_status != CLI_DONE)
        return exit_status;
    const struct cli_options *options = &cli->options;
    enum kg_status status = kg_problem_create(cli->context, subject->op, options->bindings,
                                              options->binding_count, &subject->problem);
    if (status == KG_OK)
        status = kg_context_device(cli->context, options->device, &subject->device);
    return status == KG_OK ? CLI_DONE : cli_fail(cli, status);
}

void cli_close(struct cli_subject *subject)
{
    kg_problem_destroy(subject->problem);
    kg_op_destroy(subject->op);
}

enum cli_exit cli_rigor(const struct cli *cli, enum kg_rigor standard, enum kg_rigor *rigor)
{
    *rigor = standard;
    if (!cli->options.rigor)
        return CLI_DONE;
    for (int i = 0; i < KG_RIGOR_COUNT; i++)
        if (strcmp(kg_rigor_name((enum kg_rigor)i), cli->options.rigor) == 0) {
            *rigor = (enum kg_rigor)i;
            return CLI_DONE;
        }
    return cli_bad_usage("--rigor '%s' is not one of estimate, measure, patient, exhaustive, "
                         "wisdom, default",
                         cli->options.rigor);
}

enum cli_exit cli_seconds(const struct cli *cli, double *seconds)
{
    *seconds = 0;
    if (!cli->options.seconds)
        return CLI_DONE;
    char *end;
    *seconds = strtod(cli->options.seconds, &end);
    if (*end || !(*seconds > 0) || *seconds > 1e7)
        return cli_bad_usage("--time '%s' is not a number of seconds above 0",
                             cli->options.seconds);
    return CLI_DONE;
}

enum cli_exit cli_seed(const struct cli *cli, uint64_t *seed)
{
    *seed = 0;
    if (!cli->options.seed)
        return CLI_DONE;
    char *end;
    errno = 0;
    *seed = strtoull(cli->options.seed, &end, 0);
    if (*end || errno || cli->options.seed[0] == '-' || *seed == 0)
        return cli_bad_usage("--seed '%s' is not a whole number above 0", cli->options.seed);
    return CLI_DONE;
}

const char *cli_duration(double seconds, char out[32])
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    double value = seconds * 1e9;
    int i = 0;
    for (; i < 3 && value >= 999.5; i++)
        value /= 1e3;
    snprintf(out, 32, "%.*f %s", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value, units[i]);
    return out;
}

const char *cli_goal_words(const struct kg_bench_result *bench)
{
    if (!bench->goal_met)
        return "MISSED";
    return bench->speedup >= bench->goal ? "met" : "met within the noise";
}

const char *cli_reached(const struct kg_bench_result *bench, char out[96])
{
    double share = bench->seconds > 0 ? bench->bound_seconds / bench->seconds : 0;
    if (share > 1)
        snprintf(out, 96, "exceeded: caches helped, or the machine was busy when it was measured");
    else
        snprintf(out, 96, "%.0f%% reached", 100 * share);
    return out;
}

void cli_show_text(char *text)
{
    if (isatty(STDOUT_FILENO))
        kg_text_make_printable(text);
    fputs(text, stdout);
}

enum cli_exit cli_print(struct cli *cli, enum kg_status status, char *text)
{
    cli_progress_clear();
    if (status != KG_OK)
        return cli_fail(cli, status);
    enum cli_exit exit_status = CLI_DONE;
    if (cli->options.folder)
        exit_status = cli_write_file(cli->options.folder, text, strlen(text));
    else
        cli_show_text(text);
    cli_json_begin();
    kg_text_release(text);
    return exit_status;
}

void cli_show_verdict(const struct kg_verify_result *verdict)
{
    cli_progress_clear();
    printf("verify    %s: %d cases", verdict->passed ? "passed" : "REFUSED", verdict->cases);
    if (verdict->skipped)
        printf(" (%d not applicable)", verdict->skipped);
    printf(", %lld elements, worst error %.2f of what is allowed\n", (long long)verdict->elements,
           verdict->worst);
    printf("          %d impostors rejected by the same inputs; seed %llu\n", verdict->impostors,
           (unsigned long long)verdict->seed);
    if (verdict->sanitized[0])
        printf("          nothing found by %s\n", verdict->sanitized);
    if (verdict->remarks[0])
        printf("          %s\n", verdict->remarks);
    if (!verdict->passed)
        printf("          %s\n", verdict->reason);
}
