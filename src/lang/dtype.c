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

const char *kg_type_name_of(enum kg_type type)
{
    static const char *const names[] = {"none", "bool", "i64", "f32", "f64"};
    return names[type];
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
    // Multiples of the distance between neighbours, which below the normals stops shrinking.
    int least = ilogb(info->smallest);
    int exponent = ilogb(value) > least ? ilogb(value) : least;
    int quantum = exponent + ilogb(info->epsilon);
    double rounded = ldexp(nearbyint(ldexp(value, -quantum)), quantum);
    return fabs(rounded) > info->largest ? copysign(HUGE_VAL, value) : rounded;
}

// The bits of a value that the narrow float holds exactly.
static uint16_t encode_narrow(double value, int mantissa_bits, int bias)
{
    int exponent_bits = 15 - mantissa_bits;
    unsigned sign = signbit(value) ? 1u << 15 : 0;
    unsigned top = ((1u << exponent_bits) - 1) << mantissa_bits;
    if (isnan(value))
        return (uint16_t)(top | 1u << (mantissa_bits - 1));
    if (isinf(value))
        return (uint16_t)(sign | top);
    if (value == 0)
        return (uint16_t)sign;
    int exponent = ilogb(value);
    double magnitude = fabs(value);
    if (exponent < 1 - bias) // a denormal: a plain multiple of the smallest value
        return (uint16_t)(sign | (unsigned)ldexp(magnitude, bias - 1 + mantissa_bits));
    unsigned mantissa = (unsigned)ldexp(magnitude, mantissa_bits - exponent);
    return (uint16_t)(sign | (((unsigned)(exponent + bias) << mantissa_bits) +
                              (mantissa - (1u << mantissa_bits))));
}

static double decode_f16(uint16_t bits)
{
    int exponent = bits >> 10 & 31;
    int mantissa = bits & 1023;
    double magnitude = exponent == 31  ? (mantissa ? NAN : HUGE_VAL)
                       : exponent == 0 ? mantissa * 0x1p-24
                                       : ldexp(1024 + mantissa, exponent - 25);
    return bits >> 15 ? -magnitude : magnitude;
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
        STORE(uint16_t, encode_narrow(kg_dtype_round(dtype, value), 10, 15));
        return;
    case KG_BF16:
        STORE(uint16_t, encode_narrow(kg_dtype_round(dtype, value), 7, 127));
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
