// See sanitizer.h.

#include "device/sanitizer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kg_status kg_sanitizer_add(struct kg_sanitizer_command *command, struct kg_error *error,
                                const char *format, ...)
{
    struct kg_text word = {0};
    va_list arguments;
    va_start(arguments, format);
    kg_text_vformat(&word, format, arguments);
    va_end(arguments);
    if (word.failed || command->count == KG_SANITIZER_WORDS) {
        kg_text_free(&word);
        return kg_error_memory(error, "a command line");
    }
    command->words[command->count++] = word.data;
    return KG_OK;
}

void kg_sanitizer_command_free(struct kg_sanitizer_command *command)
{
    for (int i = 0; i < command->count; i++)
        free(command->words[i]);
    command->count = 0;
}

// The line that begins at `at`, without its end. Returns where the next one begins; NULL: nowhere.
static const char *take_line(const char *at, char *line, size_t room)
{
    size_t length = strcspn(at, "\r\n");
    snprintf(line, room, "%.*s", (int)(length < room ? length : room - 1), at);
    at += length;
    at += strspn(at, "\r\n");
    return *at ? at : NULL;
}

static void add_words(char *finding, size_t room, const char *separator, const char *words)
{
    size_t used = strlen(finding);
    words += strspn(words, " ");
    snprintf(finding + used, room - used, "%s%s", separator, words);
}

// compute-sanitizer puts this before every line of its own.
static const char mark[] = "=========";

// The number of findings in "ERROR SUMMARY: 2 errors", "RACECHECK SUMMARY: 1 hazard displayed ...";
// -1: it is another line.
static long summed(const char *words)
{
    const char *at = strstr(words, "SUMMARY: ");
    return at ? strtol(at + strlen("SUMMARY: "), NULL, 10) : -1;
}

// Lines that are about the tool itself.
static bool is_heading(const char *words)
{
    return words[0] == '\0' || strncmp(words, "COMPUTE-SANITIZER", 17) == 0 || summed(words) >= 0;
}

bool kg_sanitizer_read_cuda(const char *log, char *finding, size_t room)
{
    char line[512];
    bool ended = false, follows = false;
    long found = 0;
    finding[0] = '\0';
    for (const char *at = log; at;) {
        at = take_line(at, line, sizeof line);
        if (strncmp(line, mark, sizeof mark - 1) != 0)
            continue;
        const char *words = line + sizeof mark - 1;
        words += strspn(words, " ");
        long sum = summed(words);
        ended = ended || sum >= 0;
        found += sum > 0 ? sum : 0;
        // The first finding, and where it is: the next line.
        if (follows)
            add_words(finding, room, " ", words);
        follows = false;
        if (!finding[0] && !is_heading(words)) {
            add_words(finding, room, "", words);
            follows = true;
        }
    }
    if (ended && found == 0) // what else it said is no finding
        finding[0] = '\0';
    else if (found > 0 && !finding[0])
        snprintf(finding, room, "%ld findings, which it did not describe", found);
    return ended;
}

bool kg_sanitizer_read_host(const char *log, char *finding, size_t room)
{
    static const char memory[] = "ERROR: AddressSanitizer: ", behaviour[] = "runtime error: ";
    char line[512];
    finding[0] = '\0';
    for (const char *at = log; at;) {
        at = take_line(at, line, sizeof line);
        char *words = strstr(line, memory), *other = strstr(line, behaviour);
        if (finding[0]) { // the line behind the first finding may say which access it was
            if (strncmp(line, "READ of", 7) == 0 || strncmp(line, "WRITE of", 8) == 0) {
                char *place = strstr(line, " at 0x");
                if (place)
                    *place = '\0';
                add_words(finding, room, ", ", line);
            }
            break;
        }
        if (words) {
            words += sizeof memory - 1;
            char *place = strstr(words, " on "); // "heap-buffer-overflow on address ..."
            if (place)
                *place = '\0';
            add_words(finding, room, "", words);
        } else if (other) {
            add_words(finding, room, "", other + sizeof behaviour - 1);
        }
    }
    return true;
}
