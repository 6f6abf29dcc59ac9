// The features that correct the estimate. Every feature is of the order of one or less, so that one
// regularisation fits all.

#include "asm/model_work.h"

#include <math.h>
#include <string.h>

#define SCHEDULERS 4
#define WIDEST_ACCESS 16

static double ratio(double part, double whole)
{
    return whole > 0 ? fmin(part / whole, 1) : 0;
}

// While one warp stalls, the scheduler issues others.
static double exposed(const struct kg_model_share *share, const struct kg_occupancy *occupancy)
{
    double each = fmax(1, (double)occupancy->warps / SCHEDULERS);
    return share->stall_cycles > 0 ? 1 - ratio(share->instructions * each, share->stall_cycles) : 0;
}

static double narrow(const struct kg_mix *mix)
{
    double count = mix->count[KG_WORK_LOAD_GLOBAL] + mix->count[KG_WORK_STORE_GLOBAL];
    double bytes = mix->bytes[KG_WORK_LOAD_GLOBAL] + mix->bytes[KG_WORK_STORE_GLOBAL];
    return count > 0 ? 1 - ratio(bytes, count * WIDEST_ACCESS) : 0;
}

// Loads that feed matrix instructions should be asynchronous. The size of a bulk copy is not in the
// code, so one bulk copy counts as if all loads were.
static double blocking(const struct kg_mix *mix)
{
    if (mix->count[KG_WORK_TENSOR] <= 0 || mix->count[KG_WORK_BULK_COPY] > 0)
        return 0;
    double waited = mix->bytes[KG_WORK_LOAD_GLOBAL];
    return ratio(waited, waited + mix->bytes[KG_WORK_ASYNC_COPY]);
}

static bool is_serialised(const struct kg_asm_kernel *kernel)
{
    for (int a = 0; a < kernel->advice_count; a++)
        if (strcmp(kernel->advice[a].code, "wgmma-serialised") == 0)
            return true;
    return false;
}

void kg_model_features(const struct kg_asm_kernel *kernel, const struct kg_model_work *work,
                       struct kg_model *model)
{
    const struct kg_model_share *share = &work->expected;
    const double *count = share->mix.count;
    double *feature = model->feature;
    double tensor = count[KG_WORK_TENSOR], total = share->instructions;
    enum kg_term limiter = model->expected_limiter;
    double spills = count[KG_WORK_LOAD_LOCAL] + count[KG_WORK_STORE_LOCAL];
    feature[KG_FEATURE_EXPECTED] = log(fmax(model->expected[limiter], model->bound) / model->bound);
    feature[KG_FEATURE_BASE] = 1;
    feature[KG_FEATURE_MATRIX] =
        limiter == KG_TERM_TENSOR || (limiter == KG_TERM_FLOPS && tensor > 0);
    feature[KG_FEATURE_EXPOSED] = exposed(share, &model->occupancy);
    feature[KG_FEATURE_SPILLS] = ratio(spills, total);
    feature[KG_FEATURE_BARRIERS] = ratio(count[KG_WORK_BARRIER], tensor > 0 ? tensor : total);
    feature[KG_FEATURE_OVERHEAD] = tensor > 0 ? log1p((total - tensor) / tensor) : 0;
    feature[KG_FEATURE_NARROW] = narrow(&share->mix);
    feature[KG_FEATURE_TAIL] = model->waves.idle;
    feature[KG_FEATURE_SERIALISED] = is_serialised(kernel);
    feature[KG_FEATURE_BLOCKING] = blocking(&share->mix);
    feature[KG_FEATURE_IDLE] = 1 - model->occupancy.share;
}
