// Element types: the table, and elements to and from f64 and int64. How an element is coded follows
// from its row: a new dtype needs no code here.

#include "lang/dtype.h"

#include <math.h>
#include <string.h>

#define FLOAT .is_float = true, .is_signed = true
#define NARROW FLOAT, .compute = KG_TYPE_F32
#define SIGNED .is_signed = true, .compute = KG_TYPE_I64, .dlpack = 0
#define UNSIGNED .compute = KG_TYPE_I64, .dlpack = 1

// Default tolerances are those of torch.testing.assert_close. It has none for 8-bit floats: theirs
// let a kernel compute in bf16. f8e4m3 and f8e5m2 are the formats of OCP's "8-bit Floating Point
// Specification", converted without saturation as PyTorch converts them.
const struct kg_dtype_info kg_dtypes[KG_DTYPE_COUNT] = {
    [KG_F16] = {"f16", 16, NARROW, .fraction = 10, .has_infinity = true, .epsilon = 0x1p-10,
                .largest = 65504, .smallest = 0x1p-14, .numpy = "f2", .dlpack = 2,
                .c_type = "kg_f16", .relative = 1e-3, .absolute = 1e-5},
    [KG_BF16] = {"bf16", 16, NARROW, .fraction = 7, .has_infinity = true, .epsilon = 0x1p-7,
                 .largest = 0x1.FEp127, .smallest = 0x1p-126, .numpy = "u2", .numpy_is_raw = true,
                 .dlpack = 4, .c_type = "kg_bf16", .relative = 1.6e-2, .absolute = 1e-5},
    [KG_F8E4M3] = {"f8e4m3", 8, NARROW, .fraction = 3, .epsilon = 0x1p-3, .largest = 448,
                   .smallest = 0x1p-6, .numpy = "u1", .numpy_is_raw = true, .dlpack = 10,
                   .c_type = "kg_f8e4m3", .relative = 0x1p-7, .absolute = 1e-5},
    [KG_F8E5M2] = {"f8e5m2", 8, NARROW, .fraction = 2, .has_infinity = true, .epsilon = 0x1p-2,
                   .largest = 57344, .smallest = 0x1p-14, .numpy = "u1", .numpy_is_raw = true,
                   .dlpack = 12, .c_type = "kg_f8e5m2", .relative = 0x1p-7, .absolute = 1e-5},
    [KG_F32] = {"f32", 32, NARROW, .fraction = 23, .has_infinity = true, .epsilon = 0x1p-23,
                .largest = 0x1.FFFFFEp127, .smallest = 0x1p-126, .numpy = "f4", .dlpack = 2,
                .c_type = "float", .relative = 1.3e-6, .absolute = 1e-5},
    [KG_F64] = {"f64", 64, FLOAT, .compute = KG_TYPE_F64, .fraction = 52, .has_infinity = true,
                .epsilon = 0x1p-52, .largest = 0x1.FFFFFFFFFFFFFp1023, .smallest = 0x1p-1022,
                .numpy = "f8", .dlpack = 2, .c_type = "double", .relative = 1e-7, .absolute = 1e-7},
    [KG_I4] = {"i4", 4, SIGNED, .largest = 7, .smallest = -8, .numpy = "u1", .numpy_is_raw = true,
               .c_type = "kg_i4"},
    [KG_U4] = {"u4", 4, UNSIGNED, .largest = 15, .numpy = "u1", .numpy_is_raw = true,
               .c_type = "kg_u4"},
    [KG_I8] = {"i8", 8, SIGNED, .largest = INT8_MAX, .smallest = INT8_MIN, .numpy = "i1",
               .c_type = "int8_t"},
    [KG_U8] = {"u8", 8, UNSIGNED, .largest = UINT8_MAX, .numpy = "u1", .c_type = "uint8_t"},
    [KG_I16] = {"i16", 16, SIGNED, .largest = INT16_MAX, .smallest = INT16_MIN, .numpy = "i2",
                .c_type = "int16_t"},
    [KG_U16] = {"u16", 16, UNSIGNED, .largest = UINT16_MAX, .numpy = "u2", .c_type = "uint16_t"},
    [KG_I32] = {"i32", 32, SIGNED, .largest = INT32_MAX, .smallest = INT32_MIN, .numpy = "i4",
                .c_type = "int32_t"},
    [KG_U32] = {"u32", 32, UNSIGNED, .largest = UINT32_MAX, .numpy = "u4", .c_type = "uint32_t"},
    [KG_I64] = {"i64", 64, SIGNED, .largest = 0x1p63, .smallest = -0x1p63, .numpy = "i8",
                .c_type = "int64_t"},
    [KG_BOOL] = {"bool", 8, .compute = KG_TYPE_BOOL, .largest = 1, .numpy = "b1", .dlpack = 6,
                 .c_type = "bool"},
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

static const struct {
    const char *name;
    enum kg_dtype dtype;
} types[] = {
    [KG_TYPE_NONE] = {"none", KG_F32}, [KG_TYPE_BOOL] = {"bool", KG_BOOL},
    [KG_TYPE_I64] = {"i64", KG_I64},   [KG_TYPE_F32] = {"f32", KG_F32},
    [KG_TYPE_F64] = {"f64", KG_F64},
};

const char *kg_type_name_of(enum kg_type type)
{
    return types[type].name;
}

enum kg_dtype kg_type_dtype(enum kg_type type)
{
    return types[type].dtype;
}

// ---- Questions

bool kg_dtype_is_computed(enum kg_dtype dtype)
{
    return kg_type_dtype(kg_dtypes[dtype].compute) == dtype;
}

bool kg_dtype_is_narrow_float(enum kg_dtype dtype)
{
    return kg_dtypes[dtype].is_float && kg_dtypes[dtype].bits < 32;
}

bool kg_dtype_is_half(enum kg_dtype dtype)
{
    return kg_dtypes[dtype].is_float && kg_dtypes[dtype].bits == 16;
}

bool kg_dtype_is_packed(enum kg_dtype dtype)
{
    return kg_dtypes[dtype].bits < 8;
}

bool kg_dtype_is_truth(enum kg_dtype dtype)
{
    return kg_dtypes[dtype].compute == KG_TYPE_BOOL;
}

bool kg_dtype_is_in_c(enum kg_dtype dtype)
{
    return !kg_dtype_is_narrow_float(dtype) && !kg_dtype_is_packed(dtype);
}

// ---- Floats

// By their bits: a gate converts millions of elements, and ldexp takes twenty times as long.
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

// What stands for numbers past the largest.
static double overflowed(const struct kg_dtype_info *info, double value)
{
    return copysign(info->has_infinity ? (double)INFINITY : (double)NAN, value);
}

static double round_float(const struct kg_dtype_info *info, double value)
{
    if (isnan(value) || value == 0 || info->bits == 64)
        return value;
    if (info->bits == 32)
        return (double)(float)value;
    if (isinf(value))
        return overflowed(info, value);
    // Multiples of the distance between neighbours, which below the normals stops shrinking. Beside
    // 2^52 of them, f64 itself holds nothing finer.
    int least = exponent_of(info->smallest), exponent = exponent_of(value);
    int quantum = (exponent > least ? exponent : least) - info->fraction;
    if (quantum > 1023 - 52)
        return overflowed(info, value);
    double sum = fabs(value) + power_of_two(quantum + 52);
    double rounded = sum - power_of_two(quantum + 52);
    return rounded > info->largest ? overflowed(info, value) : copysign(rounded, value);
}

double kg_dtype_round(enum kg_dtype dtype, double value)
{
    const struct kg_dtype_info *info = &kg_dtypes[dtype];
    if (info->is_float)
        return round_float(info, value);
    if (kg_dtype_is_truth(dtype))
        return value != 0;
    return fmin(fmax(nearbyint(value), info->smallest), info->largest);
}

// The bits of a value that the narrow float holds exactly, of infinity or of NaN.
static unsigned encode(const struct kg_dtype_info *info, double value)
{
    int fraction = info->fraction, bias = 1 - exponent_of(info->smallest);
    unsigned rest = (1u << (info->bits - 1)) - 1; // all but the sign
    unsigned infinity = rest >> fraction << fraction;
    unsigned sign = signbit(value) ? rest + 1 : 0;
    if (isnan(value))
        return info->has_infinity ? infinity | 1u << (fraction - 1) : rest;
    if (isinf(value))
        return sign | infinity;
    int exponent = exponent_of(value);
    if (exponent < 1 - bias) // 0 or a denormal: a plain multiple of the smallest value
        return sign | (unsigned)(fabs(value) * power_of_two(bias - 1 + fraction));
    return sign | (unsigned)(exponent + bias) << fraction |
           ((unsigned)(bits_of(value) >> (52 - fraction)) & ((1u << fraction) - 1));
}

static double decode(const struct kg_dtype_info *info, unsigned bits)
{
    int fraction = info->fraction, bias = 1 - exponent_of(info->smallest);
    unsigned rest = (1u << (info->bits - 1)) - 1, infinity = rest >> fraction << fraction;
    uint64_t sign = (uint64_t)(bits >> (info->bits - 1)) << 63;
    unsigned magnitude = bits & rest, mantissa = bits & ((1u << fraction) - 1);
    if (info->has_infinity ? magnitude > infinity : magnitude == rest)
        return NAN;
    if (info->has_infinity && magnitude == infinity)
        return from_bits(sign | (uint64_t)0x7ff << 52);
    int exponent = (int)(magnitude >> fraction);
    if (exponent == 0)
        return copysign((double)mantissa * power_of_two(1 - bias - fraction), from_bits(sign));
    return from_bits(sign | (uint64_t)(exponent - bias + 1023) << 52 |
                     (uint64_t)mantissa << (52 - fraction));
}

// ---- Elements in memory

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

static uint64_t load_bits(int bits, const void *data, size_t index)
{
    switch (bits) {
    case 4:
        return ((const unsigned char *)data)[index / 2] >> (index % 2 * 4) & 15;
    case 8:
        return *LOAD(uint8_t);
    case 16:
        return *LOAD(uint16_t);
    case 32:
        return *LOAD(uint32_t);
    default:
        return *LOAD(uint64_t);
    }
}

static void store_bits(int bits, void *data, size_t index, uint64_t value)
{
    switch (bits) {
    case 4: {
        unsigned char *byte = (unsigned char *)data + index / 2;
        unsigned nibble = (unsigned)value & 15;
        *byte = (unsigned char)(index % 2 ? (*byte & 15) | nibble << 4 : (*byte & 0xF0) | nibble);
        return;
    }
    case 8:
        STORE(uint8_t, (uint8_t)value);
        return;
    case 16:
        STORE(uint16_t, (uint16_t)value);
        return;
    case 32:
        STORE(uint32_t, (uint32_t)value);
        return;
    default:
        STORE(uint64_t, value);
        return;
    }
}

int64_t kg_dtype_load_integer(enum kg_dtype dtype, const void *data, size_t index)
{
    const struct kg_dtype_info *info = &kg_dtypes[dtype];
    if (info->is_float)
        return truncate_to_integer(kg_dtype_load(dtype, data, index));
    uint64_t value = load_bits(info->bits, data, index);
    if (kg_dtype_is_truth(dtype))
        return value != 0;
    int unused = 64 - info->bits;
    return info->is_signed ? (int64_t)(value << unused) >> unused : (int64_t)value;
}

void kg_dtype_store_integer(enum kg_dtype dtype, void *data, size_t index, int64_t value)
{
    const struct kg_dtype_info *info = &kg_dtypes[dtype];
    if (info->is_float)
        kg_dtype_store(dtype, data, index, (double)value);
    else
        store_bits(info->bits, data, index,
                   kg_dtype_is_truth(dtype) ? value != 0 : (uint64_t)value);
}

double kg_dtype_load(enum kg_dtype dtype, const void *data, size_t index)
{
    const struct kg_dtype_info *info = &kg_dtypes[dtype];
    if (!info->is_float)
        return (double)kg_dtype_load_integer(dtype, data, index);
    if (info->bits >= 32)
        return info->bits == 32 ? (double)*LOAD(float) : *LOAD(double);
    return decode(info, (unsigned)load_bits(info->bits, data, index));
}

void kg_dtype_store(enum kg_dtype dtype, void *data, size_t index, double value)
{
    const struct kg_dtype_info *info = &kg_dtypes[dtype];
    if (kg_dtype_is_truth(dtype))
        STORE(uint8_t, value != 0);
    else if (!info->is_float)
        kg_dtype_store_integer(dtype, data, index, truncate_to_integer(value));
    else if (info->bits == 64)
        STORE(double, value);
    else if (info->bits == 32)
        STORE(float, (float)value);
    else
        store_bits(info->bits, data, index, encode(info, round_float(info, value)));
}
