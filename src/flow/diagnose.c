// The tree of diagnosis: each branch either claims the version, with its evidence, or passes it on.

#include "flow/diagnose.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// At this share of the roofline further search gains nothing: the copy that measured the bandwidth
// varies by about as much from run to run.
#define NEAR_LIMIT 0.92
// From this share on, the peak was measured in a slow moment, or what was moved stayed in a cache:
// it limits nothing.
#define BEYOND_LIMIT 1.15
#define MOSTLY_LAUNCH 0.5  // share of the time from which launches are what limits
#define MUCH_IDLE 0.2      // share of unit time: ncu's threshold for a partial wave
#define MUCH_SPILLING 0.05 // of the instructions of a loop
#define MOSTLY_MEMORY 0.5  // of the bandwidth, from which spills hide behind memory
#define BUSY 0.6           // share of a pipe below which ncu speaks of latency
#define CREDIBLE 1.1       // of a pipe: where more is counted, much of that code does not run
#define BUSY_CALLS 0.3     // the same where the cost of a call is only known roughly
#define MISSING 0.1      // of the bandwidth that is lost to repeated bytes, from which they matter
#define BUSY_MEMORY 0.75 // of the bandwidth, from which it is the limit
#define EXCESS 1.25      // bytes moved, as a multiple of the compulsory ones
#define FEW_WARPS 0.5    // occupancy below which it may be what loses issue slots

// The bottleneck that a limit of the model stands for.
static const struct pipe {
    const char *name;
    enum kg_bottleneck bottleneck;
} pipes[KG_TERM_COUNT] = {
    [KG_TERM_MEMORY] = {"the bandwidth", KG_BOTTLENECK_BANDWIDTH},
    [KG_TERM_FLOPS] = {"the peak rate of arithmetic", KG_BOTTLENECK_ARITHMETIC},
    [KG_TERM_TENSOR] = {"the tensor pipe", KG_BOTTLENECK_TENSOR},
    [KG_TERM_FMA] = {"the f32 pipe", KG_BOTTLENECK_ARITHMETIC},
    [KG_TERM_HALF] = {"the f16 pipe", KG_BOTTLENECK_ARITHMETIC},
    [KG_TERM_REAL64] = {"the f64 pipe", KG_BOTTLENECK_ARITHMETIC},
    [KG_TERM_SPECIAL] = {"the special-function unit", KG_BOTTLENECK_SPECIAL},
    [KG_TERM_CONVERT] = {"the conversion pipe", KG_BOTTLENECK_ARITHMETIC},
    [KG_TERM_ACCESS] = {"the load/store unit", KG_BOTTLENECK_ARITHMETIC},
    [KG_TERM_ISSUE] = {"the issue slots", KG_BOTTLENECK_ARITHMETIC},
    [KG_TERM_LATENCY] = {"the stalls of one warp", KG_BOTTLENECK_LATENCY},
    [KG_TERM_INTEGER] = {"the integer pipe", KG_BOTTLENECK_ARITHMETIC},
    [KG_TERM_SHARED] = {"shared memory", KG_BOTTLENECK_LOCALITY},
    [KG_TERM_L2] = {"the way to the L2", KG_BOTTLENECK_LOCALITY},
};

struct tree {
    const struct kg_evidence *evidence;
    struct kg_diagnosed *diagnosed;
    double memory; // share of the bandwidth that the bytes moved take
    size_t length; // of the evidence so far
};

__attribute__((format(printf, 2, 3))) static void say(struct tree *tree, const char *format, ...)
{
    char *text = tree->diagnosed->evidence;
    va_list arguments;
    va_start(arguments, format);
    if (tree->length > 0 && tree->length < KG_EVIDENCE_TEXT - 3) {
        memcpy(text + tree->length, "; ", 3);
        tree->length += 2;
    }
    int added = vsnprintf(text + tree->length, KG_EVIDENCE_TEXT - tree->length, format, arguments);
    va_end(arguments);
    tree->length += added > 0 ? (size_t)added : 0;
    if (tree->length >= KG_EVIDENCE_TEXT)
        tree->length = KG_EVIDENCE_TEXT - 1;
}

// `attainable`: seconds without this bottleneck.
static bool claim(struct tree *tree, enum kg_bottleneck bottleneck, double attainable)
{
    struct kg_diagnosed *diagnosed = tree->diagnosed;
    const struct kg_bottleneck_row *row = &kg_bottlenecks[bottleneck];
    diagnosed->bottleneck = bottleneck;
    diagnosed->row = row;
    diagnosed->attainable =
        fmin(fmax(attainable, tree->evidence->roofline.seconds), tree->evidence->seconds);
    memcpy(diagnosed->changes, row->changes, sizeof row->changes);
    return true;
}

// Moves a kind of change to the front.
static void prefer(struct kg_diagnosed *diagnosed, enum kg_change change)
{
    int at = 0;
    while (at < KG_MAX_CHANGES - 1 && diagnosed->changes[at] != change)
        at++;
    memmove(diagnosed->changes + 1, diagnosed->changes, (size_t)at * sizeof *diagnosed->changes);
    diagnosed->changes[0] = change;
}

static const char *units_of(const struct kg_evidence *evidence)
{
    return evidence->host ? "thread" : "SM";
}

static bool is_at_roofline(struct tree *tree)
{
    const struct kg_roofline *roofline = &tree->evidence->roofline;
    say(tree, "%.2f of the %s", tree->diagnosed->share,
        roofline->memory_bound ? "bandwidth" : "arithmetic peak");
    if (tree->diagnosed->share < NEAR_LIMIT || tree->diagnosed->share > BEYOND_LIMIT)
        return false;
    tree->diagnosed->at_limit = true;
    return claim(tree, KG_BOTTLENECK_NONE, roofline->seconds);
}

static bool is_launching(struct tree *tree)
{
    const struct kg_evidence *evidence = tree->evidence;
    double cost = evidence->launch_seconds;
    if (cost < MOSTLY_LAUNCH * evidence->seconds)
        return false;
    say(tree, "%d launch%s cost%s %.3g of %.3g us", evidence->launches,
        evidence->launches == 1 ? "" : "es", evidence->launches == 1 ? "s" : "", cost * 1e6,
        evidence->seconds * 1e6);
    // With a single launch there is nothing to merge.
    tree->diagnosed->at_limit = evidence->launches <= 1;
    return claim(tree, KG_BOTTLENECK_LAUNCH,
                 evidence->seconds - cost * (evidence->launches - 1) / evidence->launches);
}

static bool has_few_blocks(struct tree *tree)
{
    const struct kg_evidence *evidence = tree->evidence;
    if (evidence->blocks <= 0 || evidence->blocks >= evidence->units)
        return false;
    double busy = evidence->blocks / evidence->units;
    if (evidence->wake_seconds >= evidence->seconds * (1 - busy)) {
        say(tree, "waking the threads costs %.3g us, and the work takes %.3g us",
            evidence->wake_seconds * 1e6, evidence->seconds * 1e6);
        tree->diagnosed->at_limit = evidence->launches <= 1;
        return claim(tree, KG_BOTTLENECK_LAUNCH, evidence->seconds);
    }
    say(tree, "%.0f %s%s for %d %ss: %.0f%% of %s time idle", evidence->blocks,
        evidence->host ? "range" : "block", evidence->blocks > 1 ? "s" : "", evidence->units,
        units_of(evidence), 100 * (1 - busy), units_of(evidence));
    return claim(tree, KG_BOTTLENECK_PARALLELISM, evidence->seconds * busy);
}

static bool has_tail(struct tree *tree)
{
    const struct kg_evidence *evidence = tree->evidence;
    if (evidence->waves <= 1 || evidence->idle < MUCH_IDLE)
        return false;
    say(tree, "%.2f waves: %.0f%% of %s time idle", evidence->waves, 100 * evidence->idle,
        units_of(evidence));
    return claim(tree, KG_BOTTLENECK_TAIL, evidence->seconds * (1 - evidence->idle));
}

static bool is_spilling(struct tree *tree)
{
    const struct kg_evidence *evidence = tree->evidence;
    if (evidence->spill_bytes <= 0 || evidence->spill_share < MUCH_SPILLING ||
        tree->memory >= MOSTLY_MEMORY)
        return false;
    say(tree, "%.0f bytes spilled in a trip of a loop, by %.0f%% of its instructions",
        evidence->spill_bytes, 100 * evidence->spill_share);
    return claim(tree, KG_BOTTLENECK_SPILLS, evidence->seconds * (1 - evidence->spill_share));
}

// Of the limits other than latency. KG_TERM_MEMORY stands for the bytes that are moved. Matrix
// instructions come first where they keep their pipe busy: they are counted for sure, other code
// only as far as it probably runs.
static enum kg_term find_busiest(const struct tree *tree, double *share)
{
    const struct kg_evidence *evidence = tree->evidence;
    enum kg_term busiest = KG_TERM_MEMORY;
    *share = evidence->term[KG_TERM_TENSOR] / evidence->seconds;
    if (*share >= BUSY && *share >= tree->memory)
        return KG_TERM_TENSOR;
    *share = tree->memory;
    for (int i = 0; i < KG_TERM_COUNT; i++) {
        double used = evidence->term[i] / evidence->seconds;
        if (i == KG_TERM_MEMORY || i == KG_TERM_LATENCY || !(used > *share) ||
            (!evidence->host && used > CREDIBLE))
            continue;
        busiest = (enum kg_term)i;
        *share = used;
    }
    return busiest;
}

static bool moves_too_much(struct tree *tree)
{
    const struct kg_evidence *evidence = tree->evidence;
    double excess = evidence->compulsory > 0 ? evidence->moved / evidence->compulsory : 1;
    if (excess < EXCESS || tree->memory < MISSING)
        return false;
    say(tree, "moves at least %.3g times the compulsory bytes", excess);
    return claim(tree, KG_BOTTLENECK_LOCALITY, evidence->seconds / excess);
}

// A product whose arithmetic is the limit, and whose code leaves the matrix units alone.
static bool lacks_matrix_code(struct tree *tree)
{
    const struct kg_evidence *evidence = tree->evidence;
    if (evidence->host || !evidence->has_code || !evidence->on_matrix_units ||
        evidence->roofline.memory_bound || evidence->term[KG_TERM_TENSOR] > 0)
        return false;
    say(tree, "no matrix instructions");
    claim(tree, KG_BOTTLENECK_TENSOR, evidence->roofline.seconds);
    prefer(tree->diagnosed, KG_CHANGE_FORM);
    return true;
}

static bool is_pipe_busy(struct tree *tree)
{
    const struct kg_evidence *evidence = tree->evidence;
    double share;
    enum kg_term busiest = find_busiest(tree, &share);
    if (busiest == KG_TERM_MEMORY) {
        if (moves_too_much(tree))
            return true;
        return tree->memory >= BUSY_MEMORY &&
               claim(tree, KG_BOTTLENECK_BANDWIDTH, evidence->roofline.seconds);
    }
    if (share < (busiest == KG_TERM_SPECIAL && evidence->host ? BUSY_CALLS : BUSY))
        return moves_too_much(tree);
    say(tree, "%.2f of %s", fmin(share, 1),
        evidence->host && busiest == KG_TERM_SPECIAL ? "the time is transcendental functions"
                                                     : pipes[busiest].name);
    if (busiest == KG_TERM_SPECIAL && evidence->calls > 0)
        say(tree, "called one element at a time");
    double next = tree->memory; // the limit that is met when this one is gone
    for (int i = 0; i < KG_TERM_COUNT; i++)
        if (i != (int)busiest && i != KG_TERM_MEMORY && i != KG_TERM_LATENCY)
            next = fmax(next, evidence->term[i] / evidence->seconds);
    return claim(tree, pipes[busiest].bottleneck, evidence->seconds * fmin(next, 1));
}

// Nothing is busy: issue slots are lost, or on the host the vectors are not full.
static bool explain_loss(struct tree *tree)
{
    const struct kg_evidence *evidence = tree->evidence;
    double share, least = evidence->roofline.seconds;
    find_busiest(tree, &share);
    if (!evidence->roofline.memory_bound && evidence->host) {
        if (evidence->vector_bits > 0)
            say(tree, "multiplications of %d bits where %d are possible", evidence->vector_bits,
                evidence->widest_bits);
        return claim(tree, KG_BOTTLENECK_ARITHMETIC, least);
    }
    double issued = evidence->term[KG_TERM_ISSUE] / evidence->seconds;
    if (issued > 0)
        say(tree, "%.2f of the issue slots", issued);
    if (evidence->in_flight_needed > 0 && evidence->in_flight > 0)
        say(tree, "loads of %.3g KiB in flight, %.3g needed", evidence->in_flight / 1024,
            evidence->in_flight_needed / 1024);
    bool few =
        issued > 0 && issued < BUSY && evidence->occupancy > 0 && evidence->occupancy < FEW_WARPS;
    if (few)
        say(tree, "occupancy %.2f, limited by %s", evidence->occupancy,
            kg_limiter_name(evidence->occupancy_limiter));
    if (evidence->host && evidence->blocks > 0)
        say(tree, "%.0f ranges for %d threads%s", evidence->blocks, evidence->units,
            evidence->has_code ? ", no spills in the main loop" : "");
    claim(tree, KG_BOTTLENECK_LATENCY, fmax(least, evidence->seconds * share));
    if (few)
        prefer(tree->diagnosed, KG_CHANGE_STAGES);
    return true;
}

void kg_flow_diagnose(const struct kg_evidence *evidence, struct kg_diagnosed *diagnosed)
{
    static bool (*const branches[])(struct tree *) = {
        is_at_roofline, is_launching,      has_few_blocks, has_tail,
        is_spilling,    lacks_matrix_code, is_pipe_busy,   explain_loss,
    };
    const struct kg_roofline *roofline = &evidence->roofline;
    *diagnosed = (struct kg_diagnosed){
        .share = evidence->seconds > 0 ? roofline->seconds / evidence->seconds : 0};
    struct tree tree = {.evidence = evidence, .diagnosed = diagnosed};
    if (evidence->compulsory > 0 && evidence->seconds > 0)
        tree.memory = fmax(evidence->moved / evidence->compulsory, 1) * roofline->memory_seconds /
                      evidence->seconds;
    for (size_t i = 0; i < sizeof branches / sizeof branches[0]; i++)
        if (branches[i](&tree))
            return;
}
