// Makes the n-th allocation of a test program fail. Programs under tests/faults are linked so that
// every malloc, calloc and realloc of the library and the test comes through here (those inside
// shared libraries do not).
//
//     for (long n = 1; fail_alloc_sweep(n); n++) {
//         fail_alloc_at(n);
//         status = the_call_under_test(...);
//         fail_alloc_never();
//         CHECK(status == KG_OK || status == KG_ERROR_MEMORY);
//     }
//
// The sweep ends when a run did not reach its n-th allocation.

#ifndef KG_TESTS_FAIL_ALLOC_H
#define KG_TESTS_FAIL_ALLOC_H

#include <stdbool.h>

// Counting starts anew: the n-th allocation from here fails; with `from`, every later one too.
void fail_alloc_at(long n);
void fail_alloc_from(long n);
void fail_alloc_never(void);
// Did the allocation asked for fail since it was asked for?
bool fail_alloc_happened(void);
// True for n == 1; afterwards, while the last run still reached its allocation.
bool fail_alloc_sweep(long n);

#endif
