// The roofline of a problem on a device.

#include "analyze/roofline.h"

static enum kg_type widest(const struct kg_nest *nest)
{
    enum kg_type type = nest->body->type;
    for (int i = 0; i < nest->access_count; i++)
        if (nest->accesses[i].tensor->compute == KG_TYPE_F64)
            type = KG_TYPE_F64;
    return type;
}

// The rate of the matrix units for a contraction: of the widest float among its inputs, or of its
// integers if there is no float.
static double matrix_rate(const struct kg_nest *nest, const struct kg_device_facts *facts)
{
    if (nest->class != KG_CLASS_CONTRACT && nest->class != KG_CLASS_WINDOW)
        return 0;
    enum kg_dtype dtype = KG_DTYPE_COUNT;
    for (int i = 0; i < nest->access_count; i++) {
        const struct kg_tensor *tensor = nest->accesses[i].tensor;
        if (tensor->role != KG_ROLE_INPUT)
            continue;
        const struct kg_dtype_info *info = &kg_dtypes[tensor->type.dtype];
        if (dtype == KG_DTYPE_COUNT || info->is_float > kg_dtypes[dtype].is_float ||
            (info->is_float == kg_dtypes[dtype].is_float && info->bits > kg_dtypes[dtype].bits))
            dtype = tensor->type.dtype;
    }
    return dtype == KG_DTYPE_COUNT ? 0 : facts->matrix_flops[dtype];
}

static double rate_of(const struct kg_nest *nest, const struct kg_device_facts *facts)
{
    double plain = facts->flops[widest(nest)], matrix = matrix_rate(nest, facts);
    if (plain <= 0)
        plain = facts->flops[KG_TYPE_F32];
    return matrix > plain ? matrix : plain;
}

struct kg_roofline kg_roofline_of(const struct kg_problem *problem,
                                  const struct kg_device_facts *facts)
{
    struct kg_roofline roofline = {0};
    double bytes = problem->read_bytes + problem->write_bytes, rate = facts->flops[KG_TYPE_F32];
    if (facts->bandwidth > 0)
        roofline.memory_seconds = bytes / facts->bandwidth;
    for (int i = 0; i < problem->nest_count; i++) {
        double nest_rate = rate_of(problem->nests[i], facts);
        if (nest_rate > 0)
            roofline.compute_seconds += problem->nests[i]->operations / nest_rate;
    }
    if (roofline.compute_seconds > 0)
        rate = problem->operations / roofline.compute_seconds;
    if (facts->bandwidth > 0)
        roofline.ridge = rate / facts->bandwidth;
    roofline.memory_bound = roofline.memory_seconds >= roofline.compute_seconds;
    roofline.seconds = roofline.memory_bound ? roofline.memory_seconds : roofline.compute_seconds;
    return roofline;
}
