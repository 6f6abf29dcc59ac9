// See small.h. The limits are measured, by bench/host/bench_small.c: docs/timing.md says how. A
// kind of device on which nobody measured has no small problems.

#include "flow/small.h"

#include <string.h>

static const struct kg_small limits[] = {
    {"host", 64 << 10, 130e3}, // two cores of an AMD EPYC
    {"cuda", 18 << 10, 32e3},  // an H100
};

bool kg_small_covers(const struct kg_small *limit, const struct kg_problem *problem)
{
    return problem->read_bytes + problem->write_bytes < limit->bytes &&
           problem->operations < limit->operations;
}

bool kg_flow_is_small(const struct kg_problem *problem, const struct kg_device *device)
{
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        if (strcmp(limits[i].backend, device->backend->name) == 0)
            return kg_small_covers(&limits[i], problem);
    return false;
}

enum kg_rigor kg_flow_rigor(const struct kg_problem *problem, const struct kg_device *device,
                            enum kg_rigor rigor)
{
    if (rigor != KG_RIGOR_DEFAULT)
        return rigor;
    return kg_flow_is_small(problem, device) ? KG_RIGOR_ESTIMATE : KG_RIGOR_MEASURE;
}
