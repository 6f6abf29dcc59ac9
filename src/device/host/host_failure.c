// Decides whether a compiler failed because of its input or because of the machine. A driver such
// as cc starts other programs and reports their ends only as text, so this file reads that text;
// kg_process_run makes it English. The phrases are those of GCC, Clang, and the linkers GNU ld,
// gold, lld and mold.

#include "device/ending.h"
#include "device/host/host_device.h"
#include "device/process.h"

#include <string.h>

#define LONGEST_LINE 500

static const char no_memory[] = "memory ran out; make some free, or compile less at once";
static const char file_limit[] =
    "the limit on the size of files is reached; raise it ('ulimit -f')";
static const char disk_full[] = "the disk is full; make room there, or write elsewhere";
static const char incomplete[] = "a part of the compiler is missing; install it whole";

// Phrases before a signal's name.
static const char *const introductions[] = {
    " terminated with signal ",     // collect2: fatal error: ld terminated with signal 9 [Killed]
    " signal terminated program ",  // gcc: fatal error: Killed signal terminated program cc1
    ": unable to execute command:", // clang: error: unable to execute command: Killed
};

// Messages of programs that end by themselves.
static const struct complaint {
    const char *words;
    const char *cause;
} complaints[] = {
    {"No space left on device", disk_full},
    {"Disk quota exceeded", "the quota is used up; make room there, or write elsewhere"},
    {"File too large", file_limit},
    {"out of memory", no_memory},
    {"memory exhausted", no_memory},
    {"Cannot allocate memory", no_memory},
    {"failed to map segment", no_memory},
    {"Resource temporarily unavailable", "there are too many processes ('ulimit -u')"},
    {"fatal error: cannot find '", incomplete},
    {"fatal error: cannot execute '", incomplete},
};

// A line of a compiler's output, without its end.
struct line {
    const char *text;
    size_t length;
};

static bool next_line(const char **rest, struct line *line)
{
    if (!**rest)
        return false;
    *line = (struct line){*rest, strcspn(*rest, "\n")};
    *rest += line->length + ((*rest)[line->length] == '\n');
    return true;
}

static bool says(const struct line *line, const char *words)
{
    return memmem(line->text, line->length, words, strlen(words)) != NULL;
}

static const char *cause_of_end(const struct line *line)
{
    for (size_t i = 0; i < sizeof introductions / sizeof introductions[0]; i++)
        for (const struct kg_ending *ending = kg_endings; ending->signal; ending++)
            if (says(line, introductions[i]) && says(line, ending->words))
                return ending->cause;
    return NULL;
}

// Lines about the source may quote any words; only the line about writing the output counts.
static const char *cause_of_complaint(const struct line *line)
{
    bool quotes = line->length == 0 || line->text[0] == ' ' ||
                  strncmp(line->text, "kernel.c:", strlen("kernel.c:")) == 0;
    if (quotes && !says(line, "fatal error: error writing to "))
        return NULL;
    for (size_t i = 0; i < sizeof complaints / sizeof complaints[0]; i++)
        if (says(line, complaints[i].words))
            return complaints[i].cause;
    return NULL;
}

// The failure of the machine that the messages name, and the line that names it. NULL: none.
static const char *find_cause(const char *log, struct line *where)
{
    const char *cause = NULL;
    struct line line;
    while (!cause && next_line(&log, &line)) {
        cause = cause_of_end(&line);
        if (!cause)
            cause = cause_of_complaint(&line);
        *where = line;
    }
    // Clang names the program in the next line.
    if (cause && next_line(&log, &line) && says(&line, " command failed due to signal"))
        where->length = (size_t)(line.text + line.length - where->text);
    if (cause && where->length > LONGEST_LINE)
        where->length = LONGEST_LINE;
    return cause;
}

static enum kg_status explain_own_end(const char *compiler, int number, struct kg_error *error)
{
    const struct kg_ending *ending = kg_ending_find(number);
    if (ending && ending->cause)
        return kg_error_set(error, KG_ERROR_MISSING, "the compiler (%s) was ended by %s: %s",
                            compiler, ending->name, ending->cause);
    return kg_error_set(error, KG_ERROR_COMPILE,
                        "the compiler (%s) crashed on the kernel: signal %d (%s)", compiler, number,
                        strsignal(number));
}

enum kg_status kg_host_explain_failure(const char *compiler, const struct kg_process_end *end,
                                       const char *log, struct kg_error *error)
{
    struct line where;
    if (end->signal)
        return explain_own_end(compiler, end->signal, error);
    const char *cause = find_cause(log, &where);
    if (!cause)
        return kg_error_set(error, KG_ERROR_COMPILE, "the compiler (%s) refused the kernel:\n%s",
                            compiler, log);
    return kg_error_set(error, KG_ERROR_MISSING,
                        "the compiler (%s) could not do its work: %s. It said:\n%.*s", compiler,
                        cause, (int)where.length, where.text);
}
