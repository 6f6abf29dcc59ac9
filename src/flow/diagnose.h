// What limits a measured version, with the evidence in numbers and the kinds of change that may
// help. The tree is the one of Nsight Compute's rules, with bounds and facts of the assembly in the
// place of counters; above all, occupancy is not spoken of before issue slots are shown to be lost.

#ifndef KG_FLOW_DIAGNOSE_H
#define KG_FLOW_DIAGNOSE_H

#include "analyze/bottleneck.h"
#include "asm/model.h"

// What is known of one version. Members that are 0 are unknown, and rule nothing out.
struct kg_evidence {
    bool host;
    double seconds; // measured
    struct kg_roofline roofline;
    bool on_matrix_units; // the roofline counts on them
    int launches;
    double launch_seconds; // what so many launches cost here when there is nothing to do
    double wake_seconds;   // to wake the threads of the host
    int units;             // SMs, or threads of the host
    // The longest launch: its blocks, or on the host the ranges of items that threads take; how
    // often they fill the device; the share of the units' time that stays empty.
    double blocks;
    double waves;
    double idle;
    // The code. Spills: of one trip of the worst loop, and their share of its instructions.
    bool has_code;
    double spill_bytes;
    double spill_share;
    int calls;       // in loops, of functions that are not inlined; host
    int vector_bits; // of the widest multiplications; host
    int widest_bits; // that the host has
    // Seconds that each limit needs, as in kg_model.expected; without KG_TERM_MEMORY.
    double term[KG_TERM_COUNT];
    double occupancy; // share of the warps that an SM can hold
    enum kg_limiter occupancy_limiter;
    double compulsory;       // bytes
    double moved;            // bytes that this version moves from and to main memory, at least
    double in_flight;        // bytes of loads that the resident warps can have under way
    double in_flight_needed; // bandwidth times latency
};

#define KG_EVIDENCE_TEXT 256

struct kg_diagnosed {
    enum kg_bottleneck bottleneck;
    const struct kg_bottleneck_row *row;
    double share;      // of the roofline
    double attainable; // seconds, if this bottleneck were gone; at least the roofline's
    bool at_limit;     // further rounds cannot gain anything
    enum kg_change changes[KG_MAX_CHANGES]; // those of the row, in the order for this case
    char evidence[KG_EVIDENCE_TEXT]; // "0.41 of the bandwidth; 1.3 waves: 35% of SM time idle"
};

void kg_flow_diagnose(const struct kg_evidence *evidence, struct kg_diagnosed *diagnosed);

#endif
