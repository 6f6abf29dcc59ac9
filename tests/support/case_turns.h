// The cases of a test that takes minutes. All of them have their turn in each run, or, where
// KG_TURN=N says so, every `of`-th one: CI counts N up from commit to commit.

#ifndef KG_TESTS_CASE_TURNS_H
#define KG_TESTS_CASE_TURNS_H

#include <stdbool.h>
#include <stdlib.h>

static inline bool has_turn(int number, int of)
{
    const char *turn = getenv("KG_TURN");
    return !turn || (unsigned)number % (unsigned)of == strtoul(turn, NULL, 10) % (unsigned)of;
}

// Of how many cases one has its turn: what counts of cases are divided by.
static inline int turns_of(int of)
{
    return getenv("KG_TURN") ? of : 1;
}

#endif
