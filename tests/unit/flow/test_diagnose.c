// The tree of diagnosis, with evidence made up for each of its branches.

#include "flow/diagnose.h"
#include "test.h"

#include <math.h>
#include <string.h>

// A version that takes 100 us, of which the roofline explains 40; no branch before the last
// applies.
static struct kg_evidence ordinary(bool host)
{
    return (struct kg_evidence){
        .host = host,
        .seconds = 100e-6,
        .roofline = {.memory_seconds = 40e-6,
                     .compute_seconds = 5e-6,
                     .seconds = 40e-6,
                     .memory_bound = true},
        .launches = 1,
        .launch_seconds = 5e-6,
        .units = host ? 8 : 132,
        .blocks = host ? 64 : 4224,
        .waves = 8,
        .has_code = true,
        .compulsory = 1e8,
        .moved = 1e8,
    };
}

static struct kg_diagnosed diagnose(const struct kg_evidence *evidence)
{
    struct kg_diagnosed diagnosed;
    kg_flow_diagnose(evidence, &diagnosed);
    CHECK(diagnosed.row == &kg_bottlenecks[diagnosed.bottleneck]);
    CHECK(diagnosed.attainable >= fmin(evidence->roofline.seconds, evidence->seconds));
    CHECK(diagnosed.attainable <= evidence->seconds);
    CHECK(diagnosed.evidence[0] && strlen(diagnosed.evidence) < KG_EVIDENCE_TEXT);
    return diagnosed;
}

#define IS(known, expected, words)                                                                 \
    do {                                                                                           \
        struct kg_diagnosed is_ = diagnose(known);                                                 \
        if (is_.bottleneck != (expected) || !strstr(is_.evidence, words))                          \
            fprintf(stderr, "%s: %s\n", is_.row->key, is_.evidence);                               \
        CHECK(is_.bottleneck == (expected));                                                       \
        CHECK(strstr(is_.evidence, words) != NULL);                                                \
    } while (0)

static void the_roofline_ends_all(void)
{
    struct kg_evidence evidence = ordinary(false);
    evidence.roofline.seconds = evidence.roofline.memory_seconds = 97e-6;
    evidence.spill_share = 0.5, evidence.spill_bytes = 100;
    IS(&evidence, KG_BOTTLENECK_NONE, "0.97 of the bandwidth");
    CHECK(diagnose(&evidence).at_limit);
    CHECK(diagnose(&evidence).changes[0] == KG_CHANGE_NONE);
    evidence.roofline.memory_bound = false;
    IS(&evidence, KG_BOTTLENECK_NONE, "0.97 of the arithmetic peak");
}

// What is faster than the roofline by more than noise was not limited by it.
static void a_roofline_that_is_exceeded_ends_nothing(void)
{
    struct kg_evidence evidence = ordinary(true);
    evidence.roofline.seconds = evidence.roofline.memory_seconds = 110e-6;
    IS(&evidence, KG_BOTTLENECK_NONE, "1.10 of the bandwidth");
    CHECK(diagnose(&evidence).at_limit);
    evidence.roofline.seconds = evidence.roofline.memory_seconds = 130e-6;
    IS(&evidence, KG_BOTTLENECK_BANDWIDTH, "1.30 of the bandwidth");
    CHECK(!diagnose(&evidence).at_limit);
    evidence.roofline.memory_bound = false;
    evidence.roofline.memory_seconds = 10e-6;
    IS(&evidence, KG_BOTTLENECK_ARITHMETIC, "1.30 of the arithmetic peak");
    CHECK(!diagnose(&evidence).at_limit);
}

static void launches_are_compared_with_their_cost_here(void)
{
    struct kg_evidence evidence = ordinary(true);
    evidence.seconds = 8e-6;
    evidence.roofline.seconds = evidence.roofline.memory_seconds = 2e-6;
    evidence.launch_seconds = 3e-6; // short, and launches are not what takes the time
    CHECK(diagnose(&evidence).bottleneck != KG_BOTTLENECK_LAUNCH);
    evidence.launch_seconds = 6e-6;
    IS(&evidence, KG_BOTTLENECK_LAUNCH, "1 launch costs 6 of 8 us");
    CHECK(diagnose(&evidence).at_limit);
    evidence.launches = 3;
    IS(&evidence, KG_BOTTLENECK_LAUNCH, "3 launches cost 6 of 8 us");
    CHECK(!diagnose(&evidence).at_limit);
    CHECK(diagnose(&evidence).changes[0] == KG_CHANGE_GROUPING);
}

static void blocks_and_waves(void)
{
    struct kg_evidence evidence = ordinary(false);
    evidence.blocks = 24, evidence.waves = 0.1, evidence.idle = 0.9;
    IS(&evidence, KG_BOTTLENECK_PARALLELISM, "24 blocks for 132 SMs: 82% of SM time idle");
    evidence = ordinary(false);
    evidence.waves = 1.3, evidence.idle = 0.35;
    IS(&evidence, KG_BOTTLENECK_TAIL, "0.40 of the bandwidth; 1.30 waves: 35% of SM time idle");
    CHECK(diagnose(&evidence).attainable > 64e-6 && diagnose(&evidence).attainable < 66e-6);
    evidence.waves = 0.9; // a single wave has no tail
    CHECK(diagnose(&evidence).bottleneck != KG_BOTTLENECK_TAIL);
    evidence = ordinary(true);
    evidence.blocks = 9, evidence.waves = 9 / 8.0, evidence.idle = 0.4375;
    IS(&evidence, KG_BOTTLENECK_TAIL, "thread time idle");
    evidence.blocks = 1;
    IS(&evidence, KG_BOTTLENECK_PARALLELISM, "1 range for 8 threads: 88% of thread time idle");
    evidence.wake_seconds = 90e-6; // more than all other threads could save
    IS(&evidence, KG_BOTTLENECK_LAUNCH, "waking the threads costs 90 us");
    evidence.wake_seconds = 90e-6; // more than all other threads could save
    IS(&evidence, KG_BOTTLENECK_LAUNCH, "waking the threads costs 90 us");
}

static void spills_come_before_pipes(void)
{
    struct kg_evidence evidence = ordinary(false);
    evidence.term[KG_TERM_ISSUE] = 80e-6;
    evidence.spill_bytes = 212, evidence.spill_share = 0.2;
    IS(&evidence, KG_BOTTLENECK_SPILLS, "212 bytes spilled in a trip of a loop, by 20%");
    evidence.moved = 1.5e8; // memory takes most of the time: spills hide behind it
    evidence.term[KG_TERM_ISSUE] = 0;
    IS(&evidence, KG_BOTTLENECK_LOCALITY, "1.5 times");
    evidence.moved = 1e8, evidence.term[KG_TERM_ISSUE] = 80e-6;
    evidence.spill_share = 0.01;
    IS(&evidence, KG_BOTTLENECK_ARITHMETIC, "0.80 of the issue slots");
}

static void every_pipe_has_its_row(void)
{
    static const struct {
        enum kg_term term;
        enum kg_bottleneck bottleneck;
        const char *words;
    } rows[] = {
        {KG_TERM_TENSOR, KG_BOTTLENECK_TENSOR, "0.70 of the tensor pipe"},
        {KG_TERM_SPECIAL, KG_BOTTLENECK_SPECIAL, "0.70 of the special-function unit"},
        {KG_TERM_FMA, KG_BOTTLENECK_ARITHMETIC, "0.70 of the f32 pipe"},
        {KG_TERM_HALF, KG_BOTTLENECK_ARITHMETIC, "f16"},
        {KG_TERM_REAL64, KG_BOTTLENECK_ARITHMETIC, "f64"},
        {KG_TERM_CONVERT, KG_BOTTLENECK_ARITHMETIC, "conversion"},
        {KG_TERM_INTEGER, KG_BOTTLENECK_ARITHMETIC, "integer"},
        {KG_TERM_ACCESS, KG_BOTTLENECK_ARITHMETIC, "load/store"},
        {KG_TERM_SHARED, KG_BOTTLENECK_LOCALITY, "shared memory"},
        {KG_TERM_L2, KG_BOTTLENECK_LOCALITY, "the L2"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct kg_evidence evidence = ordinary(false);
        evidence.term[rows[i].term] = 70e-6;
        IS(&evidence, rows[i].bottleneck, rows[i].words);
        evidence.term[rows[i].term] = 50e-6; // lost, not busy
        IS(&evidence, KG_BOTTLENECK_LATENCY, "of the bandwidth");
    }
}

// Matrix instructions are counted for sure; more than there is time for is code that does not run.
static void counts_are_not_all_believed(void)
{
    struct kg_evidence evidence = ordinary(false);
    evidence.term[KG_TERM_TENSOR] = 65e-6, evidence.term[KG_TERM_INTEGER] = 95e-6;
    IS(&evidence, KG_BOTTLENECK_TENSOR, "0.65 of the tensor pipe");
    evidence.term[KG_TERM_TENSOR] = 20e-6;
    IS(&evidence, KG_BOTTLENECK_ARITHMETIC, "0.95 of the integer pipe");
    evidence.term[KG_TERM_INTEGER] = 130e-6;
    IS(&evidence, KG_BOTTLENECK_LATENCY, "of the bandwidth");
}

static void memory_far_from_its_peak(void)
{
    struct kg_evidence evidence = ordinary(false);
    evidence.moved = 1.8e8;
    IS(&evidence, KG_BOTTLENECK_LOCALITY, "1.8 times the compulsory bytes");
    evidence = ordinary(false);
    evidence.roofline.seconds = evidence.roofline.memory_seconds = 80e-6;
    IS(&evidence, KG_BOTTLENECK_BANDWIDTH, "0.80 of the bandwidth");
    evidence = ordinary(false);
    evidence.in_flight = 4 << 20, evidence.in_flight_needed = 2 << 20;
    IS(&evidence, KG_BOTTLENECK_LATENCY, "loads of 4.1e+03 KiB in flight, 2.05e+03 needed");
}

static void occupancy_only_where_issue_slots_are_lost(void)
{
    struct kg_evidence evidence = ordinary(false);
    evidence.occupancy = 0.25, evidence.occupancy_limiter = KG_LIMIT_REGISTERS;
    evidence.term[KG_TERM_ISSUE] = 20e-6;
    IS(&evidence, KG_BOTTLENECK_LATENCY, "0.20 of the issue slots; occupancy 0.25, limited by");
    CHECK(diagnose(&evidence).changes[0] == KG_CHANGE_STAGES);
    evidence.term[KG_TERM_ISSUE] = 0; // not shown
    CHECK(!strstr(diagnose(&evidence).evidence, "occupancy"));
    evidence.term[KG_TERM_ISSUE] = 70e-6;
    CHECK(!strstr(diagnose(&evidence).evidence, "occupancy"));
}

static void arithmetic_far_from_its_peak(void)
{
    struct kg_evidence evidence = ordinary(false);
    evidence.roofline =
        (struct kg_roofline){.memory_seconds = 5e-6, .compute_seconds = 40e-6, .seconds = 40e-6};
    evidence.on_matrix_units = true;
    IS(&evidence, KG_BOTTLENECK_TENSOR, "no matrix instructions");
    CHECK(diagnose(&evidence).changes[0] == KG_CHANGE_FORM);
    evidence.term[KG_TERM_TENSOR] = 30e-6;
    CHECK(diagnose(&evidence).bottleneck == KG_BOTTLENECK_LATENCY);
    evidence.host = true;
    evidence.vector_bits = 128, evidence.widest_bits = 512;
    IS(&evidence, KG_BOTTLENECK_ARITHMETIC, "multiplications of 128 bits where 512 are possible");
    evidence.term[KG_TERM_SPECIAL] = 70e-6;
    evidence.calls = 1;
    IS(&evidence, KG_BOTTLENECK_SPECIAL, "called one element at a time");
}

static void the_table_is_complete(void)
{
    for (int i = 0; i < KG_BOTTLENECK_COUNT; i++) {
        const struct kg_bottleneck_row *row = &kg_bottlenecks[i];
        CHECK(row->key && row->name[0] && row->name[1] && row->advice[0][0] && row->symptom[0][0]);
        for (int on = 0; on < 2; on++)
            for (int language = 0; language < 2; language++)
                CHECK(!row->symptom[on][language] == !row->advice[on][language]);
        CHECK((row->changes[0] == KG_CHANGE_NONE) == (i == KG_BOTTLENECK_NONE));
        for (int j = 0; j < i; j++)
            CHECK(strcmp(row->key, kg_bottlenecks[j].key) != 0);
    }
    for (int i = 0; i < KG_CHANGE_COUNT; i++)
        CHECK(kg_change_names[i][0] && kg_change_names[i][1]);
}

TEST_MAIN(the_roofline_ends_all, a_roofline_that_is_exceeded_ends_nothing,
          launches_are_compared_with_their_cost_here, blocks_and_waves, spills_come_before_pipes,
          every_pipe_has_its_row, counts_are_not_all_believed, memory_far_from_its_peak,
          occupancy_only_where_issue_slots_are_lost, arithmetic_far_from_its_peak,
          the_table_is_complete)
