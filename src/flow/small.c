// See small.h. bench/host/bench_small.c measures the limits: docs/timing.md says how. They are in
// the table of targets; a target without measurements has no small problems.

#include "flow/small.h"

#include "gen/target.h"

bool kg_small_covers(const struct kg_small *limit, const struct kg_problem *problem)
{
    return problem->read_bytes + problem->write_bytes < limit->bytes &&
           problem->operations < limit->operations;
}

bool kg_flow_is_small(const struct kg_problem *problem, const struct kg_device *device)
{
    const struct kg_target *target = kg_target_of(device);
    const struct kg_small limit = {target->small_bytes, target->small_operations};
    return kg_small_covers(&limit, problem);
}

enum kg_rigor kg_flow_rigor(const struct kg_problem *problem, const struct kg_device *device,
                            enum kg_rigor rigor)
{
    if (rigor != KG_RIGOR_DEFAULT)
        return rigor;
    return kg_flow_is_small(problem, device) ? KG_RIGOR_ESTIMATE : KG_RIGOR_MEASURE;
}
