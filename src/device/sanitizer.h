// Tools that watch kernels while a program runs them, and see what their results do not show.

#ifndef KG_DEVICE_SANITIZER_H
#define KG_DEVICE_SANITIZER_H

#include "device/device.h"

#define KG_SANITIZER_WORDS 16

// The words before those of the program in the command line that runs it under a tool.
struct kg_sanitizer_command {
    char *words[KG_SANITIZER_WORDS];
    int count;
};

// A tool of a backend; NULL names are the end of a list.
struct kg_sanitizer {
    const char *name; // "memcheck"
    // KG_ERROR_MISSING: it is not installed. After a failure, too, the caller frees the command.
    enum kg_status (*command)(struct kg_device *device, const char *name,
                              struct kg_sanitizer_command *command, struct kg_error *error);
    // Reads what program and tool have printed. False: the tool did not say how it ended.
    // `finding` is the first thing that it found, "" if nothing.
    bool (*read)(const char *log, char *finding, size_t room);
};

extern const struct kg_sanitizer kg_host_sanitizers[], kg_cuda_sanitizers[];

// Appends a word, by a format. A command that has no room for it gets no further words.
enum kg_status kg_sanitizer_add(struct kg_sanitizer_command *command, struct kg_error *error,
                                const char *format, ...) __attribute__((format(printf, 3, 4)));
void kg_sanitizer_command_free(struct kg_sanitizer_command *command);

// NVIDIA's compute-sanitizer, each of its tools.
bool kg_sanitizer_read_cuda(const char *log, char *finding, size_t room);
// AddressSanitizer and UndefinedBehaviorSanitizer of GCC and Clang, which say nothing if they find
// nothing.
bool kg_sanitizer_read_host(const char *log, char *finding, size_t room);

#endif
