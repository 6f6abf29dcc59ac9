// The widths of common cores, and the throughput bound that they give. The numbers are from the
// makers' optimisation guides and from Agner Fog's "The microarchitecture of Intel, AMD and VIA
// CPUs"; if they differ, the larger is used, so that the bound holds.

#include "asm/x86.h"

#include <string.h>
#include <strings.h>

const struct kg_x86_core kg_x86_cores[] = {
    {
        .name = "generic",
        .issue = 6,
        .multiply = {2, 2, 2},
        .vector = {4, 4, 2},
        .loads = {3, 3, 2},
        .stores = {2, 2, 1},
        .branches = 1,
        .source = "per column the best of the cores below",
    },
    {
        .name = "zen3",
        .issue = 6,
        .multiply = {2, 2, 1},
        .vector = {4, 4, 2},
        .loads = {3, 2, 1},
        .stores = {2, 1, 0.5},
        .branches = 1,
        .source = "AMD Software Optimization Guide 56665 (family 19h); no AVX-512: two halves",
    },
    {
        .name = "zen4",
        .issue = 6,
        .multiply = {2, 2, 1},
        .vector = {4, 4, 2},
        .loads = {3, 2, 1},
        .stores = {2, 1, 0.5},
        .branches = 1,
        .source = "AMD Software Optimization Guide 57647 (family 19h, model 1xh)",
    },
    {
        .name = "skylake-x",
        .issue = 4,
        .multiply = {2, 2, 2},
        .vector = {3, 3, 2},
        .loads = {2, 2, 2},
        .stores = {1, 1, 1},
        .branches = 1,
        .source = "Intel 64 and IA-32 Architectures Optimization Reference Manual, Skylake Server",
    },
    {
        .name = "golden-cove",
        .issue = 6,
        .multiply = {2, 2, 2},
        .vector = {3, 3, 2},
        .loads = {3, 3, 2},
        .stores = {2, 2, 1},
        .branches = 1,
        .source = "Intel 64 and IA-32 Architectures Optimization Reference Manual, Golden Cove",
    },
    {.name = NULL},
};

const struct kg_x86_core *kg_x86_core_find(const char *name)
{
    for (const struct kg_x86_core *core = kg_x86_cores; core->name; core++)
        if (strcasecmp(core->name, name) == 0)
            return core;
    return NULL;
}

static int width_of(int bytes)
{
    return bytes > 32 ? 2 : bytes > 16 ? 1 : 0;
}

void kg_x86_use(struct kg_x86_usage *usage, const struct kg_x86_step *step,
                const struct kg_x86_step *before)
{
    int width = width_of(step->width), access = width_of(step->bytes);
    bool fused = step->falls_apart && before && before->compares;
    usage->issued += !fused;
    usage->multiply[width] += step->multiplies;
    // Loads and stores of vectors use only the memory pipes.
    usage->vector[width] += step->width && !step->register_move;
    usage->loads[access] += step->loads;
    usage->stores[access] += step->stores;
    usage->branches += step->kind == KG_STEP_JUMP;
}

static double time_of(const double counts[3], const double rates[3])
{
    return counts[0] / rates[0] + counts[1] / rates[1] + counts[2] / rates[2];
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

double kg_x86_cycles(const struct kg_x86_core *core, const struct kg_x86_usage *usage)
{
    double cycles = usage->issued / core->issue;
    cycles = larger(cycles, time_of(usage->multiply, core->multiply));
    cycles = larger(cycles, time_of(usage->vector, core->vector));
    cycles = larger(cycles, time_of(usage->loads, core->loads));
    cycles = larger(cycles, time_of(usage->stores, core->stores));
    return larger(cycles, usage->branches / core->branches);
}
