// Features that are derived from others and the launch, so that records need not hold them. They
// describe memory-bound kernels. All bytes are those of the bound. Times enter relative to the
// bound, because to first order a sum of times is a product of ratios.

#include "asm/model.h"

#include <math.h>

#define WARP 32
#define WIDEST_ACCESS 16
#define REGISTER_BYTES 4
// Round numbers of one H100; halving or doubling them hardly changes the share of ordered pairs.
#define START_SECONDS 50e-9    // until a warp of a new block runs
#define ANSWER_SECONDS 600e-9  // latency of memory
#define ACCESS_CYCLES 8        // of an SM, for one access of a warp and the instructions around it
#define LOADING_REGISTERS 0.25 // share of a thread's registers that loads in flight may use

// Of one kernel, on one SM.
struct stream {
    double bytes;    // of the whole device
    double resident; // warps
    double rounds;   // blocks one after the other
    double block;    // warps of a block
    double width;    // bytes of an access
    double accesses; // of all warps
    double each;     // of one warp
};

static struct stream stream_of(double bound, const struct kg_model_launch *launch,
                               const struct kg_gpu *gpu, const double feature[KG_FEATURE_COUNT])
{
    struct stream stream = {.bytes = bound * gpu->bandwidth,
                            .block = ceil((double)launch->threads / WARP)};
    stream.resident = fmax(gpu->sm->warps * (1 - feature[KG_FEATURE_IDLE]), stream.block);
    double blocks = (double)launch->grid / gpu->sms;
    stream.rounds = fmax(blocks * stream.block / stream.resident, 1);
    stream.width = fmax(WIDEST_ACCESS * (1 - feature[KG_FEATURE_NARROW]), 1);
    stream.accesses = stream.bytes / (gpu->sms * WARP * stream.width);
    stream.each = stream.accesses / (blocks * stream.block);
    return stream;
}

// Accesses that a thread has in flight: as many as fit into its registers, and at most all of them.
// The resident warps share the registers equally.
static double depth_of(const struct stream *stream, const struct kg_gpu *gpu)
{
    double registers = gpu->sm->registers / (stream->resident * WARP);
    double room = LOADING_REGISTERS * registers * REGISTER_BYTES / stream->width;
    return fmin(fmax(room, 1), stream->each);
}

static double beside(double seconds, double bound)
{
    return log1p(seconds / bound);
}

void kg_model_derive(double bound, const struct kg_model_launch *launch, const struct kg_gpu *gpu,
                     double feature[KG_FEATURE_COUNT])
{
    for (int f = KG_FEATURE_DERIVED; f < KG_FEATURE_COUNT; f++)
        feature[f] = 0;
    if (!gpu || gpu->bandwidth <= 0 || launch->grid <= 0 || launch->threads <= 0)
        return;
    struct stream stream = stream_of(bound, launch, gpu, feature);
    double at_once = stream.bytes / stream.rounds, depth = depth_of(&stream, gpu);
    feature[KG_FEATURE_STARTS] = beside(stream.rounds * stream.block * START_SECONDS, bound);
    feature[KG_FEATURE_CLUSTERS] = launch->cluster > 1 ? 1 - 1.0 / launch->cluster : 0;
    feature[KG_FEATURE_ACCESSES] = beside(stream.accesses * ACCESS_CYCLES / gpu->clock, bound);
    feature[KG_FEATURE_FOOTPRINT] = at_once / (at_once + (double)gpu->l2_bytes);
    feature[KG_FEATURE_WAITS] =
        beside(stream.accesses / stream.resident / depth * ANSWER_SECONDS, bound);
}
