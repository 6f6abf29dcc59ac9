// Tensors as planted faults see them: a kind of element, a shape, and elements by their number.
// For C and CUDA; SIEGE_FN says what kind of function these are.

#ifndef SIEGE_FN
#define SIEGE_FN static __attribute__((unused))
#endif

enum siege_kind {
    SIEGE_f16,
    SIEGE_bf16,
    SIEGE_f8e4m3,
    SIEGE_f8e5m2,
    SIEGE_f32,
    SIEGE_f64,
    SIEGE_i8,
    SIEGE_u8,
    SIEGE_i16,
    SIEGE_u16,
    SIEGE_i32,
    SIEGE_u32,
    SIEGE_i64,
    SIEGE_bool,
    SIEGE_u4,
    SIEGE_i4
};

// How a real number is rounded when it is stored.
enum siege_rounding { SIEGE_TO_EVEN, SIEGE_TO_ZERO, SIEGE_HALF_AWAY };

struct siege_tensor {
    char *data;
    char *owned; // a copy that takes the place of an input; freed after the call
    int kind;
    int rank;
    int64_t shape[8];
    int64_t elements;
    int64_t bytes;
    int64_t rows, columns; // columns: the last dimension of two or more, else 1
};

SIEGE_FN int siege_bits_of(int kind)
{
    switch (kind) {
    case SIEGE_f64:
    case SIEGE_i64:
        return 64;
    case SIEGE_f32:
    case SIEGE_i32:
    case SIEGE_u32:
        return 32;
    case SIEGE_f16:
    case SIEGE_bf16:
    case SIEGE_i16:
    case SIEGE_u16:
        return 16;
    case SIEGE_u4:
    case SIEGE_i4:
        return 4;
    default:
        return 8;
    }
}

SIEGE_FN int siege_is_real(int kind)
{
    return kind <= SIEGE_f64;
}

SIEGE_FN int siege_is_signed(int kind)
{
    return kind == SIEGE_i8 || kind == SIEGE_i16 || kind == SIEGE_i32 || kind == SIEGE_i64 ||
           kind == SIEGE_i4;
}

// Bits of the fraction, and the exponent of the smallest normal number.
SIEGE_FN int siege_fraction(int kind)
{
    return kind == SIEGE_f64      ? 52
           : kind == SIEGE_f32    ? 23
           : kind == SIEGE_f16    ? 10
           : kind == SIEGE_bf16   ? 7
           : kind == SIEGE_f8e4m3 ? 3
                                  : 2;
}

SIEGE_FN int siege_least_exponent(int kind)
{
    return kind == SIEGE_f64                           ? -1022
           : kind == SIEGE_f32 || kind == SIEGE_bf16   ? -126
           : kind == SIEGE_f16 || kind == SIEGE_f8e5m2 ? -14
                                                       : -6;
}

SIEGE_FN double siege_largest(int kind)
{
    return kind == SIEGE_f64      ? 1.7976931348623157e308
           : kind == SIEGE_f32    ? 3.4028234663852886e38
           : kind == SIEGE_bf16   ? 3.3895313892515355e38
           : kind == SIEGE_f16    ? 65504
           : kind == SIEGE_f8e4m3 ? 448
                                  : 57344;
}

SIEGE_FN uint64_t siege_bits(const struct siege_tensor *t, int64_t n)
{
    switch (siege_bits_of(t->kind)) {
    case 64:
        return ((const uint64_t *)t->data)[n];
    case 32:
        return ((const uint32_t *)t->data)[n];
    case 16:
        return ((const uint16_t *)t->data)[n];
    case 4:
        return ((const uint8_t *)t->data)[n / 2] >> (n % 2 * 4) & 15;
    default:
        return ((const uint8_t *)t->data)[n];
    }
}

SIEGE_FN void siege_set_bits(const struct siege_tensor *t, int64_t n, uint64_t bits)
{
    switch (siege_bits_of(t->kind)) {
    case 64:
        ((uint64_t *)t->data)[n] = bits;
        break;
    case 32:
        ((uint32_t *)t->data)[n] = (uint32_t)bits;
        break;
    case 16:
        ((uint16_t *)t->data)[n] = (uint16_t)bits;
        break;
    case 4: {
        uint8_t *byte = (uint8_t *)t->data + n / 2;
        const unsigned shift = (unsigned)(n % 2 * 4);
        *byte = (uint8_t)((*byte & ~(15u << shift)) | ((unsigned)bits & 15u) << shift);
        break;
    }
    default:
        ((uint8_t *)t->data)[n] = (uint8_t)bits;
        break;
    }
}

// Everything but f64, whose bits are a double's.
SIEGE_FN double siege_decode(int kind, uint64_t bits)
{
    int width = siege_bits_of(kind), fraction = siege_fraction(kind);
    int negative = (int)(bits >> (width - 1) & 1);
    uint64_t mantissa = bits & (((uint64_t)1 << fraction) - 1);
    int exponents = (1 << (width - 1 - fraction)) - 1; // the field when all its bits are 1
    int exponent = (int)(bits >> fraction) & exponents;
    double value;
    if (kind == SIEGE_f8e4m3 ? exponent == exponents && mantissa == 7 : exponent == exponents)
        value = kind != SIEGE_f8e4m3 && mantissa == 0 ? INFINITY : NAN;
    else if (exponent == 0)
        value = ldexp((double)mantissa, siege_least_exponent(kind) - fraction);
    else
        value = ldexp((double)(mantissa | (uint64_t)1 << fraction),
                      exponent - 1 + siege_least_exponent(kind) - fraction);
    return negative ? -value : value;
}

SIEGE_FN uint64_t siege_encode(int kind, double value, int rounding)
{
    int width = siege_bits_of(kind), fraction = siege_fraction(kind);
    int least = siege_least_exponent(kind), exponent;
    uint64_t sign = (uint64_t)(signbit(value) != 0) << (width - 1);
    uint64_t top = (((uint64_t)1 << (width - 1 - fraction)) - 1) << fraction; // infinity
    uint64_t nan = kind == SIEGE_f8e4m3 ? 0x7F : top | (uint64_t)1 << (fraction - 1);
    if (value != value)
        return sign | nan;
    double size = fabs(value);
    if (size > 0 && size <= 1.7976931348623157e308) {
        frexp(size, &exponent); // size = m * 2^exponent, m in [1/2, 1)
        int unit = (exponent - 1 > least ? exponent - 1 : least) - fraction;
        double steps = ldexp(size, -unit), whole = floor(steps);
        if (rounding == SIEGE_TO_EVEN)
            whole += steps - whole > 0.5 || (steps - whole == 0.5 && fmod(whole, 2) == 1);
        else if (rounding == SIEGE_HALF_AWAY)
            whole += steps - whole >= 0.5;
        size = ldexp(whole, unit);
    }
    if (size > siege_largest(kind))
        return sign | (rounding == SIEGE_TO_ZERO && size <= 1.7976931348623157e308
                           ? (kind == SIEGE_f8e4m3 ? (uint64_t)0x7E : top - 1)
                       : kind == SIEGE_f8e4m3 ? nan
                                              : top);
    if (size < ldexp(1.0, least))
        return sign | (uint64_t)ldexp(size, fraction - least);
    frexp(size, &exponent);
    // The leading bit of the fraction adds one to the exponent's field.
    const uint64_t field = (uint64_t)(exponent - 1 - least) << fraction;
    return sign | (field + (uint64_t)ldexp(size, fraction - (exponent - 1)));
}

SIEGE_FN double siege_real(const struct siege_tensor *t, int64_t n)
{
    if (t->kind == SIEGE_f64)
        return ((const double *)t->data)[n];
    if (t->kind == SIEGE_f32)
        return ((const float *)t->data)[n];
    return siege_decode(t->kind, siege_bits(t, n));
}

SIEGE_FN void siege_set_real(const struct siege_tensor *t, int64_t n, double value, int rounding)
{
    if (t->kind == SIEGE_f64)
        ((double *)t->data)[n] = value;
    else if (t->kind == SIEGE_f32 && rounding == SIEGE_TO_EVEN)
        ((float *)t->data)[n] = (float)value;
    else
        siege_set_bits(t, n, siege_encode(t->kind, value, rounding));
}

SIEGE_FN int64_t siege_integer(const struct siege_tensor *t, int64_t n)
{
    uint64_t bits = siege_bits(t, n);
    int width = siege_bits_of(t->kind);
    if (siege_is_signed(t->kind) && width < 64 && bits >> (width - 1))
        bits |= ~(uint64_t)0 << width;
    return (int64_t)bits;
}

SIEGE_FN int64_t siege_least_integer(int kind)
{
    return (int64_t)((uint64_t)-1 << (siege_bits_of(kind) - 1));
}

// A result that no rounding excuses.
SIEGE_FN void siege_spoil(const struct siege_tensor *t, int64_t n)
{
    double value;
    if (!siege_is_real(t->kind)) {
        siege_set_bits(t, n, siege_bits(t, n) ^ 1);
        return;
    }
    value = siege_real(t, n);
    if (value != value)
        value = 1;
    else if (fabs(value) > siege_largest(t->kind))
        value = 0;
    else
        value = value < 0 ? 16 - value : -16 - value;
    siege_set_real(t, n, value, SIEGE_TO_EVEN);
}

SIEGE_FN int64_t siege_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

SIEGE_FN int64_t siege_mod(int64_t a, int64_t b)
{
    return a - siege_div(a, b) * b;
}

// A place that depends on the sizes alone, the same in every run.
SIEGE_FN int64_t siege_place(int64_t elements)
{
    uint64_t mixed = (uint64_t)(elements + 1) * 0x9E3779B97F4A7C15u;
    mixed ^= mixed >> 29;
    return elements > 0 ? (int64_t)(mixed % (uint64_t)elements) : 0;
}

// Sets what follows from kind, rank and shape.
SIEGE_FN void siege_measure(struct siege_tensor *t)
{
    t->elements = 1;
    for (int d = 0; d < t->rank; d++)
        t->elements *= t->shape[d];
    t->bytes = (t->elements * siege_bits_of(t->kind) + 7) / 8;
    t->columns = t->rank > 1 ? t->shape[t->rank - 1] : 1;
    t->rows = t->columns > 0 ? t->elements / t->columns : 0;
}

// Is there a line of two elements or more, along any dimension, in which all are NaN, or minus
// infinity?
SIEGE_FN int siege_has_line_of(const struct siege_tensor *t, int nan)
{
    int64_t stride = 1;
    for (int d = t->rank - 1; d >= 0; stride *= t->shape[d], d--) {
        const int64_t length = t->shape[d];
        for (int64_t line = 0; length > 1 && line < t->elements / length; line++) {
            int64_t first = line / stride * stride * length + line % stride, n = 0;
            for (; n < length; n++) {
                double value = siege_real(t, first + n * stride);
                if (nan ? value == value : !(value < -siege_largest(t->kind)))
                    break;
            }
            if (n == length)
                return 1;
        }
    }
    return 0;
}
