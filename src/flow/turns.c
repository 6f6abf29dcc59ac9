// See turns.h.

#include "flow/turns.h"

#include "flow/proof.h"

#include <time.h>

#define PAUSE_SECONDS 0.1 // between two looks at the records
#define RENEW_SECONDS 10.0

// The fastest of the recorded outcomes that were visited.
struct best {
    const struct kg_request *request;
    struct kg_choice *choice;
    struct kg_timing *timing;
    bool found;
};

// Outcomes are visited fastest first. Emitting a choice's kernels takes some milliseconds, so it is
// done until the first one fits.
static void consider(void *user, const struct kg_outcome *outcome)
{
    struct best *best = user;
    const struct kg_device *device = best->request->device;
    if (best->found || outcome->kind != KG_OUTCOME_MEASURED || outcome->timing.abandoned ||
        !kg_choice_read(best->request->problem, &device->facts, kg_target_of(device),
                        outcome->choice, best->choice))
        return;
    best->found = kg_proof_fits(outcome->emitted, kg_proof_source(best->choice));
    *best->timing = outcome->timing;
}

bool kg_turn_find_best(const struct kg_request *request, const struct kg_key *key,
                       struct kg_choice *choice, struct kg_timing *timing)
{
    struct best best = {.request = request, .choice = choice, .timing = timing};
    struct kg_store *store = request->session->store;
    return store && kg_store_each(store, key, consider, &best, NULL) == KG_OK && best.found;
}

static bool is_time_up(const struct kg_turn *turn)
{
    const struct kg_request *request = turn->request;
    struct kg_choice choice;
    struct kg_timing timing;
    return request->seconds > 0 && turn->seconds >= request->seconds &&
           kg_turn_find_best(request, turn->key, &choice, &timing);
}

static void tell_of_wait(const struct kg_turn *turn, const struct kg_lease *lease)
{
    kg_session_tell(turn->request->session,
                    "waits for process %lld, which measures %s%s%s on this device (for %.0f s so "
                    "far); its outcomes will be used",
                    (long long)lease->holder, turn->key->op, turn->key->sizes[0] ? " " : "",
                    turn->key->sizes, lease->holder_since);
}

static void tell_of_end(const struct kg_turn *turn, const struct kg_lease *lease)
{
    if (lease->holder_ended)
        kg_session_tell(turn->request->session,
                        "process %lld ended before it had measured everything: goes on from what "
                        "it recorded",
                        (long long)lease->holder);
}

enum kg_status kg_turn_take(const struct kg_request *request, const struct kg_key *key,
                            struct kg_turn *turn, struct kg_error *error)
{
    const struct timespec pause = {.tv_nsec = (long)(PAUSE_SECONDS * 1e9)};
    struct kg_session *session = request->session;
    double start = kg_times_now();
    *turn = (struct kg_turn){.request = request, .key = key, .is_ours = true, .renewed = start};
    while (session->store) {
        struct kg_lease lease;
        enum kg_status status = kg_store_lease_take(session->store, key, &lease, error);
        if (status != KG_OK) // the records cannot be written: others cannot record either
            return kg_session_recorded(session, status, error);
        turn->is_ours = lease.held;
        if (lease.held && turn->waited)
            tell_of_end(turn, &lease);
        turn->seconds = kg_times_now() - start;
        if (lease.held || is_time_up(turn))
            break;
        if (!turn->waited)
            tell_of_wait(turn, &lease);
        turn->waited = true;
        if (kg_session_cancelled(session))
            return kg_error_set(error, KG_ERROR_CANCELLED,
                                "cancelled while process %lld measured %s", (long long)lease.holder,
                                key->op);
        nanosleep(&pause, NULL);
    }
    turn->renewed = kg_times_now();
    return KG_OK;
}

void kg_turn_renew(struct kg_turn *turn)
{
    bool held;
    struct kg_store *store = turn->request->session->store;
    double now = kg_times_now();
    if (!store || !turn->is_ours || now - turn->renewed < RENEW_SECONDS)
        return;
    turn->renewed = now;
    // If another process took over, both go on: each looks for every candidate in the records
    // first.
    kg_store_lease_renew(store, turn->key, &held, NULL);
}

void kg_turn_end(struct kg_turn *turn)
{
    struct kg_store *store = turn->request->session->store;
    if (store && turn->is_ours)
        kg_store_lease_drop(store, turn->key, NULL);
    turn->is_ours = false;
}
