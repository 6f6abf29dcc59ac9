// A fuzz target defines one function. With the fuzz preset libFuzzer calls it; otherwise replay.c
// does, with the seeds and a few thousand mutations of them. It returns 0 and aborts on what must
// not happen (FUZZ_CHECK, a sanitizer, a crash).

#ifndef KG_TESTS_FUZZ_H
#define KG_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
