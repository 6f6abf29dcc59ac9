// Decodes runs of elements. Floats of up to 16 bits are looked up in tables.

#include "verify/decode.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define TABLE_BITS 16

static _Atomic(float *) tables[KG_DTYPE_COUNT];

// All values of a narrow float by their bits. NULL when out of memory.
static const float *table_of(enum kg_dtype dtype)
{
    float *table = atomic_load_explicit(&tables[dtype], memory_order_acquire);
    if (table)
        return table;
    size_t count = (size_t)1 << kg_dtypes[dtype].bits;
    float *made = malloc(count * sizeof *made);
    for (size_t bits = 0; made && bits < count; bits++) {
        uint16_t wide = (uint16_t)bits;
        uint8_t narrow = (uint8_t)bits;
        const void *element = kg_dtypes[dtype].bits == TABLE_BITS ? (void *)&wide : &narrow;
        made[bits] = (float)kg_dtype_load(dtype, element, 0);
    }
    // Another thread may have been faster.
    if (made && !atomic_compare_exchange_strong(&tables[dtype], &table, made)) {
        free(made);
        return table;
    }
    return made;
}

// Sets to[i], for all i, to the element at `place`, which may depend on i.
#define DECODE(place)                                                                              \
    const struct kg_dtype_info *info = &kg_dtypes[dtype];                                          \
    bool is_narrow = info->is_float && (info->bits == TABLE_BITS || info->bits == 8);              \
    const float *table = is_narrow ? table_of(dtype) : NULL;                                       \
    if (table && info->bits == TABLE_BITS)                                                         \
        for (int64_t i = 0; i < count; i++)                                                        \
            to[i] = (double)table[((const uint16_t *)data)[place]];                                \
    else if (table)                                                                                \
        for (int64_t i = 0; i < count; i++)                                                        \
            to[i] = (double)table[((const uint8_t *)data)[place]];                                 \
    else if (info->is_float && info->bits == 32)                                                   \
        for (int64_t i = 0; i < count; i++)                                                        \
            to[i] = (double)((const float *)data)[place];                                          \
    else                                                                                           \
        for (int64_t i = 0; i < count; i++)                                                        \
            to[i] = kg_dtype_load(dtype, data, (size_t)(place));

void kg_decode_reals(enum kg_dtype dtype, const void *data, int64_t at, int64_t stride,
                     int64_t count, double *to)
{
    DECODE(at + i * stride)
}

void kg_decode_chosen(enum kg_dtype dtype, const void *data, const int64_t *at, int64_t count,
                      double *to)
{
    DECODE(at[i])
}

void kg_decode_integers(enum kg_dtype dtype, const void *data, int64_t at, int64_t stride,
                        int64_t count, int64_t *to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = kg_dtype_load_integer(dtype, data, (size_t)(at + i * stride));
}
