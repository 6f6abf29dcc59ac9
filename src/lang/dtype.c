// Element types: the table, and elements to and from f64 and int64.

#include "lang/dtype.h"

#include <math.h>
#include <string.h>

// Default tolerances are those of torch.testing.assert_close.
const struct kg_dtype_info kg_dtypes[KG_DTYPE_COUNT] = {
    [KG_F16] = {"f16", 16, true, true, KG_TYPE_F32, 0x1p-10, 65504, 0x1p-14, "f2", 1e-3, 1e-5},
    [KG_BF16] = {"bf16", 16, true, true, KG_TYPE_F32, 0x1p-7, 0x1.FEp127, 0x1p-126, "u2", 1.6e-2,
                 1e-5},
    [KG_F32] = {"f32", 32, true, true, KG_TYPE_F32, 0x1p-23, 0x1.FFFFFEp127, 0x1p-126, "f4", 1.3e-6,
                1e-5},
    [KG_F64] = {"f64", 64, true, true, KG_TYPE_F64, 0x1p-52, 0x1.FFFFFFFFFFFFFp1023, 0x1p-1022,
                "f8", 1e-7, 1e-7},
    [KG_I8] = {"i8", 8, false, true, KG_TYPE_I64, 0, 127, -128, "i1", 0, 0},
    [KG_U8] = {"u8", 8, false, false, KG_TYPE_I64, 0, 255, 0, "u1", 0, 0},
    [KG_I32] = {"i32", 32, false, true, KG_TYPE_I64, 0, 2147483647, -2147483648.0, "i4", 0, 0},
    [KG_I64] = {"i64", 64, false, true, KG_TYPE_I64, 0, 9223372036854775807.0, -0x1p63, "i8", 0, 0},
    [KG_BOOL] = {"bool", 8, false, false, KG_TYPE_BOOL, 0, 1, 0, "b1", 0, 0},
    [KG_U4] = {"u4", 4, false, false, KG_TYPE_I64, 0, 15, 0, "u1", 0, 0},
    [KG_I4] = {"i4", 4, false, true, KG_TYPE_I64, 0, 7, -8, "u1", 0, 0},
};

enum kg_dtype kg_dtype_find(const char *name, size_t length)
{
    for (int i = 0; i < KG_DTYPE_COUNT; i++)
        if (strlen(kg_dtypes[i].name) == length && memcmp(kg_dtypes[i].name, name, length) == 0)
            return (enum kg_dtype)i;
    return KG_DTYPE_COUNT;
}

size_t kg_dtype_bytes(enum kg_dtype dtype, size_t count)
{
    size_t bits = (size_t)kg_dtypes[dtype].bits;
    return bits < 8 ? count / 2 + count % 2 : count * (bits / 8);
}

enum kg_dtype kg_dtype_exact(enum kg_type type)
{
    static const enum kg_dtype exact[] = {
        [KG_TYPE_NONE] = KG_F32, [KG_TYPE_BOOL] = KG_BOOL, [KG_TYPE_I64] = KG_I64,
        [KG_TYPE_F32] = KG_F32,  [KG_TYPE_F64] = KG_F64,
    };
    return exact[type];
}

const char *kg_type_name_of(enum kg_type type)
{
    static const char *const names[] = {"none", "bool", "i64", "f32", "f64"};
    return names[type];
}

// Floats by their bits: a gate converts millions of elements, and ldexp takes twenty times as long.
static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// Of a number that is not 0; no larger than any narrow dtype's for denormals.
static int exponent_of(double value)
{
    return (int)(bits_of(value) >> 52 & 0x7ff) - 1023;
}

static double power_of_two(int exponent)
{
    return from_bits((uint64_t)(exponent + 1023) << 52);
}

double kg_dtype_round(enum kg_dtype dtype, double value)
{
    const struct kg_dtype_info *info = &kg_dtypes[dtype];
    if (dtype == KG_F64 || (info->is_float && (!isfinite(value) || value == 0)))
        return value;
    if (dtype == KG_F32)
        return (double)(float)value;
    if (dtype == KG_BOOL)
        return value != 0;
    if (!info->is_float)
        return fmin(fmax(nearbyint(value), info->smallest), info->largest);
    // Multiples of the distance between neighbours, which below the normals stops shrinking. Beside
    // 2^52 of them, f64 itself holds nothing finer.
    int least = exponent_of(info->smallest), exponent = exponent_of(value);
    int quantum = (exponent > least ? exponent : least) + exponent_of(info->epsilon);
    if (quantum > 1023 - 52)
        return copysign(HUGE_VAL, value);
    double sum = fabs(value) + power_of_two(quantum + 52);
    double rounded = sum - power_of_two(quantum + 52);
    return copysign(rounded > info->largest ? HUGE_VAL : rounded, value);
}

// The bits of a value that the narrow float holds exactly, or NaN.
static uint16_t encode_f16(double value)
{
    uint64_t bits = bits_of(value);
    unsigned sign = (unsigned)(bits >> 48) & 0x8000u;
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    if (isnan(value))
        return 0x7e00;
    if (isinf(value))
        return (uint16_t)(sign | 0x7c00);
    if (exponent < -14) // 0 or a denormal: a plain multiple of the smallest value
        return (uint16_t)(sign | (unsigned)(fabs(value) * 0x1p24));
    return (uint16_t)(sign | (unsigned)(exponent + 15) << 10 | (unsigned)(bits >> 42 & 1023));
}

static uint16_t encode_bf16(double value)
{
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    return isnan(value) ? 0x7fc0 : (uint16_t)(bits >> 16);
}

static double decode_f16(uint16_t half)
{
    uint64_t sign = (uint64_t)(half >> 15) << 63, mantissa = half & 1023;
    int exponent = half >> 10 & 31;
    if (exponent == 31)
        return mantissa ? NAN : from_bits(sign | (uint64_t)0x7ff << 52);
    if (exponent == 0)
        return copysign((double)mantissa * 0x1p-24, from_bits(sign));
    return from_bits(sign | (uint64_t)(exponent - 15 + 1023) << 52 | mantissa << 42);
}

static double decode_bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return (double)value;
}

// Truncated; NaN is 0, and what int64 cannot hold is its nearest end.
static int64_t truncate_to_integer(double value)
{
    if (isnan(value))
        return 0;
    if (value >= 0x1p63)
        return INT64_MAX;
    return value < -0x1p63 ? INT64_MIN : (int64_t)value;
}

#define LOAD(type)                                                                                 \
    ((type *)memcpy(&(type){0}, (const unsigned char *)data + index * sizeof(type), sizeof(type)))
#define STORE(type, element)                                                                       \
    memcpy((unsigned char *)data + index * sizeof(type), &(type){element}, sizeof(type))

int64_t kg_dtype_load_integer(enum kg_dtype dtype, const void *data, size_t index)
{
    switch (dtype) {
    case KG_I8:
        return *LOAD(int8_t);
    case KG_U8:
        return *LOAD(uint8_t);
    case KG_BOOL:
        return *LOAD(uint8_t) != 0;
    case KG_I32:
        return *LOAD(int32_t);
    case KG_I64:
        return *LOAD(int64_t);
    case KG_U4:
    case KG_I4: {
        unsigned byte = ((const unsigned char *)data)[index / 2];
        int nibble = (int)(index % 2 ? byte >> 4 : byte & 15);
        return dtype == KG_I4 && nibble > 7 ? nibble - 16 : nibble;
    }
    default:
        return truncate_to_integer(kg_dtype_load(dtype, data, index));
    }
}

void kg_dtype_store_integer(enum kg_dtype dtype, void *data, size_t index, int64_t value)
{
    switch (dtype) {
    case KG_I8:
    case KG_U8:
        STORE(uint8_t, (uint8_t)value);
        return;
    case KG_BOOL:
        STORE(uint8_t, value != 0);
        return;
    case KG_I32:
        STORE(uint32_t, (uint32_t)value);
        return;
    case KG_I64:
        STORE(int64_t, value);
        return;
    case KG_U4:
    case KG_I4: {
        unsigned char *byte = (unsigned char *)data + index / 2;
        unsigned nibble = (unsigned)value & 15;
        *byte = (unsigned char)(index % 2 ? (*byte & 15) | nibble << 4 : (*byte & 0xF0) | nibble);
        return;
    }
    default:
        kg_dtype_store(dtype, data, index, (double)value);
        return;
    }
}

double kg_dtype_load(enum kg_dtype dtype, const void *data, size_t index)
{
    switch (dtype) {
    case KG_F16:
        return decode_f16(*LOAD(uint16_t));
    case KG_BF16:
        return decode_bf16(*LOAD(uint16_t));
    case KG_F32:
        return (double)*LOAD(float);
    case KG_F64:
        return *LOAD(double);
    default:
        return (double)kg_dtype_load_integer(dtype, data, index);
    }
}

void kg_dtype_store(enum kg_dtype dtype, void *data, size_t index, double value)
{
    switch (dtype) {
    case KG_F16:
        STORE(uint16_t, encode_f16(kg_dtype_round(dtype, value)));
        return;
    case KG_BF16:
        STORE(uint16_t, encode_bf16(kg_dtype_round(dtype, value)));
        return;
    case KG_F32:
        STORE(float, (float)value);
        return;
    case KG_F64:
        STORE(double, value);
        return;
    case KG_BOOL:
        STORE(uint8_t, value != 0);
        return;
    default:
        kg_dtype_store_integer(dtype, data, index, truncate_to_integer(value));
        return;
    }
}
