// The ring of contract/scaled_wgmma with two teams of consumers, which take units of stages by
// turns: a model of its barriers, whose loads end in any order. A team passes the other one's
// stages without waiting, and a barrier tells the parity of a turn only: where a stage was the
// other team's in the turn before, a team may take that turn for its own. The form refuses such
// rings.

#include "wgmma_bench.h"

#include "verify/random.h"

enum { TEAMS = 2, MOST = 16, NONE = -1 };

static const char definitions[] =
    "op column(x: T[M, K], w: u4[K, N], s: T[N]) -> (y: T[M, N]) where T in f16 bf16\n"
    "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - 8) * s[n]) }\n"
    "op runs(x: T[M, K], w: u4[K, N], s: T[ceil(K/128), N]) -> (y: T[M, N]) where T in f16 bf16\n"
    "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - 8) * s[k/128, n]) }\n";

// Loads are counted from 0; load i is for stage i % stages, in turn i / stages.
struct ring {
    int stages, unit; // unit: stages that a team takes at a time
    int loads;        // of a piece of work
    int issued, now;  // loads that the producer has issued; the time
    int ends[MOST];   // when the latest load of a stage ends
    int freed[MOST];  // turns that the consumers of a stage have ended
    int loaded[MOST]; // turns whose loads have ended
    struct team {
        int next, at, before; // the load that it waits for, has, and has not yet given back; NONE
    } teams[TEAMS];
};

static int next_of(const struct ring *ring, int load)
{
    int next = load + 1;
    return next % ring->unit ? next : next + (TEAMS - 1) * ring->unit;
}

static void end_loads(struct ring *ring)
{
    for (int i = 0; i < ring->stages && i < ring->issued; i++) {
        int turn = (ring->issued - 1 - i) / ring->stages;
        if (ring->loaded[i] == turn && ring->ends[i] <= ring->now)
            ring->loaded[i]++;
    }
}

// Issues a load, if its stage is free. Most take a short time, and some a multiple of it.
static void produce(struct ring *ring, struct kg_random *random)
{
    enum { SHORT = 40, RARE = 16, MULTIPLE = 10 };
    int stage = ring->issued % ring->stages, turn = ring->issued / ring->stages;
    if (ring->issued == ring->loads || ring->freed[stage] < turn)
        return;
    int time = 1 + (int)kg_random_below(random, SHORT);
    if (kg_random_below(random, RARE) == 0)
        time *= 1 + (int)kg_random_below(random, MULTIPLE);
    ring->ends[stage] = ring->now + time;
    ring->issued++;
}

// The parity of the turn that ended last is that of the load's turn.
static bool seems_loaded(const struct ring *ring, int load)
{
    int ended = ring->loaded[load % ring->stages] - 1, turn = load / ring->stages;
    return (ended & 1) == (turn & 1);
}

// Goes on to the team's next load, where it seems to be there. Returns whether it is.
static bool consume(struct ring *ring, struct team *team)
{
    bool is_left = team->next < ring->loads;
    if (is_left && !seems_loaded(ring, team->next))
        return true;
    if (is_left && ring->loaded[team->next % ring->stages] <= team->next / ring->stages)
        return false;
    if (team->before != NONE)
        ring->freed[team->before % ring->stages]++;
    team->before = team->at;
    team->at = is_left ? team->next : NONE;
    team->next = is_left ? next_of(ring, team->next) : team->next;
    return true;
}

static bool goes_wrong(int stages, int unit, uint64_t seed)
{
    enum { STEPS = 20000, UNITS = 24 };
    struct ring ring = {.stages = stages, .unit = unit, .loads = UNITS * unit};
    struct kg_random random = kg_random_make(seed, 0);
    for (int i = 0; i < TEAMS; i++)
        ring.teams[i] = (struct team){i * unit, NONE, NONE};
    for (; ring.now < STEPS; ring.now++) {
        end_loads(&ring);
        produce(&ring, &random);
        if (!consume(&ring, &ring.teams[kg_random_below(&random, TEAMS)]))
            return true;
    }
    CHECK(ring.issued == ring.loads); // no team waits for ever
    return false;
}

static bool may_go_wrong(int stages, int unit)
{
    enum { SEEDS = 2000 };
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        if (goes_wrong(stages, unit, seed))
            return true;
    return false;
}

static bool is_taken(const char *op, int stages)
{
    struct made made = make_strided(definitions, op, "M=512 N=4096 K=4096 T=f16", NULL);
    char values[64];
    bool taken = false;
    family = &kg_cuda_contract_scaled_wgmma;
    snprintf(values, sizeof values, "tile_m=24 tile_n=256 stages=%d", stages);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    if (made.status == KG_OK) {
        const struct kg_match *match = match_all(&made);
        struct kg_config config = configure(match, values);
        taken = is_valid(match, &config);
    }
    unmake(&made);
    return taken;
}

// A scale for a column leaves units of one stage, runs of 128 make units of two.
static void rings_are_taken_if_no_turn_is_mistaken(void)
{
    enum { LEAST = 5, LARGEST = 12 };
    for (int stages = LEAST; stages <= LARGEST; stages++) {
        CHECK(is_taken("column", stages) == !may_go_wrong(stages, 1));
        CHECK(is_taken("runs", stages) == !may_go_wrong(stages, 2));
    }
}

TEST_MAIN(rings_are_taken_if_no_turn_is_mistaken)
