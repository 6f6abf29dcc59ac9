// What mutators that know the structure of their inputs share. They define libFuzzer's hooks, which
// replay.c calls too.

#ifndef KG_TESTS_MUTATOR_H
#define KG_TESTS_MUTATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// Changes bytes; libFuzzer's own, or that of replay.c.
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
// Changes at most `max_size` bytes in place, by the seed alone; returns the new size.
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
// Makes one input of two; 0: not of these.
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2,
                                 size_t size2, uint8_t *out, size_t max_size, unsigned seed);

struct mutator {
    uint64_t state;
};

static inline struct mutator mutator_begin(unsigned seed)
{
    return (struct mutator){.state = seed * 0x9e3779b97f4a7c15u + 1};
}

static inline int mutator_below(struct mutator *mutator, int count) // splitmix64
{
    uint64_t z = mutator->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return count > 0 ? (int)((z ^ (z >> 31)) % (uint64_t)count) : 0;
}

#endif
