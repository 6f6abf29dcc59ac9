// What the files of the fake driver share.

#ifndef KG_TESTS_SUPPORT_FAKE_PARTS_H
#define KG_TESTS_SUPPORT_FAKE_PARTS_H

#include "support/fake_driver.h"

#include <stdbool.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#define OUT_OF_MEMORY 2

extern struct fake_driver fake_driver;

enum { K_FUNCTIONS = 2, F_FUNCTIONS = 4, COPY = K_FUNCTIONS + F_FUNCTIONS, FAULT };
struct function {
    int number;
};
// CUDA_KERNEL_NODE_PARAMS_v2
struct launch {
    const struct function *function;
    unsigned blocks[3], threads[3], shared;
    void **arguments, **extra;
    void *kernel, *context;
};

// Any thread may: each has a place of its own.
void fake_note(const char *format, ...);
// What every function gives before it does anything.
int fake_gate(const char *name);

#define GATE                                                                                       \
    do {                                                                                           \
        int refused = fake_gate(__func__);                                                         \
        if (refused)                                                                               \
            return refused;                                                                        \
    } while (0)

// fake_driver.c
void fake_run(const struct function *function, void **arguments);
// Is what copies find behind their size a stride?
bool fake_is_stride(int64_t value);

// fake_graphs.c
// What launching in the stream gives; 0: it is done or captured. Streams that block wait for the
// NULL stream, which so cannot be told from them.
int fake_ask_captured(const void *stream, bool *is_captured);
// To what a stream captures.
int fake_add_node(const void *stream, const struct launch *launch);
// Does an executable graph launch one of a module's functions?
bool fake_is_launched(const struct function functions[FAULT + 1]);

#endif
