// Finds GPUs by compute capability, by name, or by the facts of a device.

#include "asm/gpu.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct kg_sm *find_number(long number)
{
    for (const struct kg_sm *sm = kg_sms; sm->sm; sm++)
        if (sm->sm == number)
            return sm;
    return NULL;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

int kg_sm_matrix(const struct kg_sm *sm, enum kg_matrix format)
{
    return sm->matrix[format];
}

int kg_sm_fastest_matrix(const struct kg_sm *sm)
{
    int fastest = 0;
    for (int i = 0; i < KG_MATRIX_COUNT; i++)
        if (sm->matrix[i] > fastest)
            fastest = sm->matrix[i];
    return fastest;
}

const struct kg_sm *kg_sm_find(const char *name)
{
    static const char *const prefixes[] = {"sm_", "compute_"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            name += strlen(prefixes[i]);
    if (*name < '1' || *name > '9')
        return NULL;
    char *end;
    long number = strtol(name, &end, 10);
    // "90a", "100f": a feature set of the same SM.
    if (*end == 'a' || *end == 'f')
        end++;
    return *end == '\0' ? find_number(number) : NULL;
}

const struct kg_gpu *kg_gpu_find(const char *name)
{
    for (const struct kg_gpu *gpu = kg_gpus; gpu->name; gpu++)
        if (strcasecmp(name, gpu->name) == 0 || strcasecmp(name, gpu->handle) == 0)
            return gpu;
    return NULL;
}

const struct kg_gpu *kg_gpu_first(const struct kg_sm *sm)
{
    for (const struct kg_gpu *gpu = kg_gpus; gpu->name; gpu++)
        if (gpu->sm == sm)
            return gpu;
    return NULL;
}

const struct kg_gpu *kg_gpu_named(const char *name)
{
    const struct kg_sm *sm = strncmp(name, "sm_", 3) == 0 ? kg_sm_find(name) : NULL;
    return sm ? kg_gpu_first(sm) : kg_gpu_find(name);
}

enum kg_status kg_gpu_of(const struct kg_device_facts *facts, struct kg_gpu *gpu,
                         struct kg_error *error)
{
    *gpu = (struct kg_gpu){0};
    const struct kg_sm *sm = kg_sm_find(facts->isa);
    if (!sm)
        return kg_error_set(error, KG_ERROR_UNSUPPORTED,
                            "no model of a device with instructions '%s': it is no GPU of sm_%d "
                            "or newer that is known",
                            facts->isa, kg_sms[0].sm);
    const struct kg_gpu *known = kg_gpu_find(facts->name);
    if (known && known->sm == sm)
        *gpu = *known;
    gpu->name = facts->name;
    gpu->sm = sm;
    if (facts->units > 0)
        gpu->sms = facts->units;
    // The larger value counts, because a bound must hold at the device's best.
    gpu->clock = larger(gpu->clock, facts->clock);
    gpu->bandwidth = larger(gpu->bandwidth, facts->bandwidth);
    if (facts->cache[2] > 0)
        gpu->l2_bytes = facts->cache[2];
    if (gpu->sms <= 0 || gpu->clock <= 0) {
        *gpu = (struct kg_gpu){0};
        return kg_error_set(error, KG_ERROR_UNSUPPORTED,
                            "no model of '%s': its number of SMs or its clock is unknown",
                            facts->name);
    }
    return KG_OK;
}
