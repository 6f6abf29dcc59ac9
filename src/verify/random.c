// splitmix64: a hash of a counter by multiplications and shifts. Small, fast, and good enough for
// test data.

#include "verify/random.h"

#include <sys/random.h>
#include <time.h>

#define GOLDEN 0x9e3779b97f4a7c15u

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

struct kg_random kg_random_make(uint64_t seed, uint64_t stream)
{
    return (struct kg_random){mix(seed + GOLDEN) ^ mix(stream * GOLDEN + 1)};
}

struct kg_random kg_random_at(uint64_t state, uint64_t count)
{
    return (struct kg_random){state + count * GOLDEN};
}

uint64_t kg_random_next(struct kg_random *random)
{
    random->state += GOLDEN;
    return mix(random->state);
}

uint64_t kg_random_below(struct kg_random *random, uint64_t limit)
{
    return limit ? kg_random_next(random) % limit : 0;
}

double kg_random_uniform(struct kg_random *random)
{
    return (double)(kg_random_next(random) >> 11) * 0x1p-53;
}

double kg_random_between(struct kg_random *random, double low, double high)
{
    return low + (high - low) * kg_random_uniform(random);
}

// The sum of four uniform numbers: nearly normal up to 3.4 deviations. Classes of inputs provide
// larger values.
double kg_random_normal(struct kg_random *random)
{
    uint64_t bits = kg_random_next(random);
    double sum =
        (double)((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48)) +
        2 * kg_random_uniform(random) - 1;
    return (sum * 0x1p-16 - 2) * 1.7320508075688772;
}

uint64_t kg_random_fresh(void)
{
    uint64_t seed = 0;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        seed = mix((uint64_t)now.tv_nsec) ^ (uint64_t)now.tv_sec;
    }
    return seed ? seed : 1; // 0 means a fresh seed
}
