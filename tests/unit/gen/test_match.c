// Families' readings of groups: made once for each family, group and device, whoever asks, and
// refused with the reason every time.

#include "gen/families.h"
#include "support/sample_problem.h"
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static const char chain[] = "op chain(x: f32[P, D]) -> (y: f32[P, D])\n"
                            "{ e[p, d] = exp(x[p, d])\n  y[p, d] = pad(e[p, d - 1], 0) }\n";

enum { PATIENCE = 5 }; // seconds for the other thread to come

// A family that counts how often it reads a group, and refuses groups of two.
static struct {
    _Atomic int begun, made;
    bool waits; // for another thread that reads as well
} seen;

static const void *match_counted(const struct kg_group *group, const struct kg_device_facts *facts,
                                 struct kg_arena *arena, struct kg_text *reason)
{
    const time_t begun = time(NULL);
    (void)facts;
    atomic_fetch_add(&seen.begun, 1);
    while (seen.waits && atomic_load(&seen.begun) < 2 && time(NULL) - begun < PATIENCE)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    if (group->count > 1) {
        kg_text_add(reason, "one statement at a time");
        return NULL;
    }
    int *number = KG_NEW(arena, int);
    if (number)
        *number = atomic_fetch_add(&seen.made, 1);
    return number;
}

static const struct kg_family counted = {.name = "counted", .match = match_counted};
static const struct kg_family twin = {.name = "twin", .match = match_counted};
static const struct kg_device_facts facts = {.isa = "sm_90a", .units = 132};

static struct made begin(const char *sizes)
{
    struct made made = make(chain, sizes);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    CHECK(made.problem->nest_count == 2);
    atomic_store(&seen.begun, 0);
    atomic_store(&seen.made, 0);
    seen.waits = false;
    return made;
}

static void it_is_made_once(void)
{
    struct made made = begin("P=3 D=5");
    const struct kg_group first = {made.problem, 0, 1}, second = {made.problem, 1, 1};
    const struct kg_match *match = kg_match_find(&counted, &first, &facts, NULL);
    CHECK(match && match->family == &counted && match->group.problem == made.problem);
    CHECK(match && match->group.first == 0 && match->group.count == 1);
    for (int i = 0; i < 3; i++)
        CHECK(kg_match_find(&counted, &first, &facts, NULL) == match);
    CHECK(atomic_load(&seen.made) == 1);
    // Of every group and every family, one.
    const struct kg_match *other = kg_match_find(&counted, &second, &facts, NULL);
    CHECK(other && other != match && other->group.first == 1);
    CHECK(kg_match_find(&twin, &first, &facts, NULL) != match);
    CHECK(atomic_load(&seen.made) == 3);
    CHECK(kg_match_find(&counted, &first, &facts, NULL) == match);
    unmake(&made);
}

// Facts are compared by what they say, and kept: the device may be closed.
static void it_is_of_a_device(void)
{
    struct made made = begin("P=3 D=5");
    const struct kg_group group = {made.problem, 0, 1};
    struct kg_device_facts copy = facts;
    const struct kg_match *match = kg_match_find(&counted, &group, &copy, NULL);
    CHECK(match && match->facts != &copy && match->facts->units == 132);
    copy.units = 7;
    const struct kg_match *other = kg_match_find(&counted, &group, &copy, NULL);
    CHECK(other != match && other->facts->units == 7 && match->facts->units == 132);
    CHECK(kg_match_find(&counted, &group, &facts, NULL) == match);
    CHECK(kg_match_find(&counted, &group, match->facts, NULL) == match);
    CHECK(atomic_load(&seen.made) == 2);
    unmake(&made);
}

static void it_is_refused_with_a_reason(void)
{
    struct made made = begin("P=3 D=5");
    const struct kg_group both = {made.problem, 0, 2};
    CHECK(kg_match_find(&counted, &both, &facts, NULL) == NULL);
    CHECK(kg_match_find(&counted, &both, &facts, NULL) == NULL);
    CHECK(atomic_load(&seen.begun) == 1); // it is known not to fit
    for (int i = 0; i < 2; i++) {
        struct kg_text reason = {0};
        CHECK(kg_match_find(&counted, &both, &facts, &reason) == NULL);
        CHECK_TEXT(kg_text_string(&reason), "one statement at a time");
        kg_text_free(&reason);
    }
    // A family of the library.
    struct kg_text reason = {0};
    CHECK(kg_match_find(&kg_host_pointwise, &both, &facts, &reason) == NULL);
    CHECK(reason.length > 0);
    kg_text_free(&reason);
    unmake(&made);
}

static void *find_first(void *user)
{
    const struct kg_group group = {user, 0, 1};
    return (void *)kg_match_find(&counted, &group, &facts, NULL);
}

// Both read the group, and both get the reading that was kept first.
static void threads_share_it(void)
{
    for (int round = 0; round < 20; round++) {
        struct made made = begin("P=3 D=5");
        void *found = NULL;
        pthread_t thread;
        seen.waits = true;
        CHECK(pthread_create(&thread, NULL, find_first, made.problem) == 0);
        const void *own = find_first(made.problem);
        CHECK(pthread_join(thread, &found) == 0);
        CHECK(own && own == found && atomic_load(&seen.made) == 2);
        CHECK(find_first(made.problem) == own && atomic_load(&seen.made) == 2);
        unmake(&made);
    }
}

// The same nests of a problem of other sizes, which outlives the first one.
static void sizes_have_their_own(void)
{
    struct made made = begin("P=3 D=5"), other = begin("P=64 D=1024");
    const struct kg_group group = {made.problem, 1, 1};
    const struct kg_match *match = kg_match_find(&counted, &group, &facts, NULL);
    CHECK(kg_match_again(match, made.problem) == match);
    const struct kg_match *again = kg_match_again(match, other.problem);
    CHECK(again && again != match && again->family == &counted);
    CHECK(again && again->group.problem == other.problem && again->group.first == 1);
    CHECK(kg_match_again(match, other.problem) == again);
    unmake(&made);
    CHECK(again->facts->units == 132);
    CHECK(kg_match_find(&counted, &again->group, &facts, NULL) == again);
    unmake(&other);
}

TEST_MAIN(it_is_made_once, it_is_of_a_device, it_is_refused_with_a_reason, threads_share_it,
          sizes_have_their_own)
