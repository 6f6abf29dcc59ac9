// Seeded random numbers, the same on every machine.

#ifndef KG_VERIFY_RANDOM_H
#define KG_VERIFY_RANDOM_H

#include <stdint.h>

struct kg_random {
    uint64_t state;
};

// Generators with different `stream` are independent.
struct kg_random kg_random_make(uint64_t seed, uint64_t stream);
// The generator that starts at `state` after `count` numbers, without drawing these.
struct kg_random kg_random_at(uint64_t state, uint64_t count);
uint64_t kg_random_next(struct kg_random *random);
uint64_t kg_random_below(struct kg_random *random, uint64_t limit); // 0 for a limit of 0
double kg_random_uniform(struct kg_random *random);                 // [0, 1)
double kg_random_between(struct kg_random *random, double low, double high);
double kg_random_normal(struct kg_random *random);
// An unpredictable seed.
uint64_t kg_random_fresh(void);

#endif
