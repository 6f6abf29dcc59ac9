// A kernel that tests kernels/cuda/*.cuh, which stand before this text when it is compiled, on the
// device: tests/device/test_cuda_functions.c runs it.

// ---- Errors of functions of f32, in units in the last place, over all floats ----

KG_INLINE double true_gelu_tanh(double x)
{
    return 0.5 * x * (1.0 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}

KG_INLINE double unit_of(double value, double floor)
{
    double size = fmax(fabs(value), floor);
    int exponent = (int)(__double_as_longlong(size) >> 52) - 1022; // 0 for [0.5, 1)
    return scalbn(1.0, (exponent < -125 ? -125 : exponent) - 24);
}

// As tests/unit/gen/test_prelude.c has it: infinity where NaN, an infinity or the sign of zero is
// wrong.
KG_INLINE float error_of(float x, float got, double want, double floor, double flush)
{
    float rounded = (float)want;
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0.0f : INFINITY;
    if (x == 0 && rounded == 0 && signbit(rounded) != signbit(got))
        return INFINITY;
    if (isinf(rounded) || isinf(got))
        return got == rounded || (fabsf(got) >= 3.4028234e38f && fabs(want) >= 3.4028e38)
                   ? 0.0f
                   : INFINITY;
    if (got == 0 && fabs(want) < flush)
        return 0.0f;
    return (float)(fabs((double)got - want) / unit_of(want, floor));
}

#define NORMAL 1.17549435e-38
#define TINY 7.5231638e-37 // 2^-120
#define HALF 6.1035156e-5  // 2^-14

// What is computed, and what it should be; results below the third number are compared with it
// instead of with themselves, those below the fourth may be zero.
template <int WHICH>
KG_INLINE float error_at(float f)
{
    const double x = f;
    switch (WHICH) {
    case 0:
        return error_of(f, kg_exp_f32(f), exp(x), 0, 0);
    case 1:
        return error_of(f, kg_exp2_f32(f), exp2(x), 0, 0);
    case 2:
        return error_of(f, kg_expm1_f32(f), expm1(x), 0, 0);
    case 3:
        return error_of(f, kg_log_f32(f), log(x), 0, 0);
    case 4:
        return error_of(f, kg_log2_f32(f), log2(x), 0, 0);
    case 5:
        return error_of(f, kg_log1p_f32(f), log1p(x), 0, 0);
    case 6:
        return error_of(f, kg_tanh_f32(f), tanh(x), 0, 0);
    case 7:
        return error_of(f, kg_erf_f32(f), erf(x), 0, 0);
    case 8:
        return error_of(f, kg_sigmoid_f32(f), 1 / (1 + exp(-x)), 0, NORMAL);
    case 9:
        return error_of(f, kg_silu_f32(f), x / (1 + exp(-x)), TINY, 128 * NORMAL);
    case 10:
        return error_of(f, kg_softplus_f32(f), (x > 0 ? x : 0) + log1p(exp(-fabs(x))), 0, NORMAL);
    case 11: // what 1 + erf(x) rounds away is allowed: 2^-23 of x
        return error_of(f, kg_gelu_f32(f), 0.5 * x * erfc(-x * 0.70710678118654752440), fabs(x), 0);
    case 12:
        return error_of(f, kg_gelu_tanh_f32(f), true_gelu_tanh(x), fabs(x), 0);
    case 13:
        return error_of(f, kg_sqrt_f32(f), sqrt(x), 0, 0);
    case 14:
        return error_of(f, kg_rsqrt_f32(f), 1 / sqrt(x), 0, 0);
    case 15:
        return error_of(f, kg_sin_f32(f), sin(x), 0, 0);
    case 16:
        return error_of(f, kg_cos_f32(f), cos(x), 0, 0);
    case 17: // tails of the normal distribution, where f16 and bf16 still see them
        return f < 0 && f > -10
                   ? error_of(f, kg_gelu_f32(f), 0.5 * x * erfc(-x * 0.70710678118654752440), 0, 0)
                   : 0.0f;
    case 18:
        return error_of(f, kg_pow_f32(fabsf(f), 0.75f), pow(fabs(x), 0.75), 0, 0);
    case 19:
        return error_of(f, kg_exp_narrow_f32(-fabsf(f)), exp(-fabs(x)), 0, NORMAL);
    case 20: // where f16 has normal numbers, and beyond them to its steps
        return error_of(f, kg_gelu_narrow_f32(f), 0.5 * x * erfc(-x * 0.70710678118654752440), HALF,
                        0);
    case 21:
        return error_of(f, kg_gelu_tanh_narrow_f32(f), true_gelu_tanh(x), HALF, 0);
    case 22:
        return error_of(f, kg_sigmoid_narrow_f32(f), 1 / (1 + exp(-x)), TINY, NORMAL);
    case 23:
        return error_of(f, kg_silu_narrow_f32(f), x / (1 + exp(-x)), TINY, NORMAL);
    default:
        return error_of(f, kg_round_f32(f), rint(x), 0, 0);
    }
}

// The largest error, and the bits of the float where it is.
template <int WHICH>
KG_INLINE void measure(uint64_t *worst, uint64_t floats)
{
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x, spread = (1ull << 32) / floats;
    uint64_t most = 0;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < floats; i += step) {
        const uint32_t bits = (uint32_t)(i * spread + i % spread);
        const float error = error_at<WHICH>(kg_from_bits_f32(bits));
        const uint64_t found = (uint64_t)kg_bits_f32(error) << 32 | bits;
        most = found > most ? found : most;
    }
    atomicMax(worst, most);
}

// ---- Conversions and divisions, bit by bit ----

// Written apart from the prelude: `digits` of the significand are stored, and exponents down to
// `least`.
KG_INLINE uint16_t narrow(double x, int digits, int bias)
{
    const uint16_t sign = (uint16_t)(signbit(x) ? 0x8000 : 0);
    const double size = fabs(x);
    const int infinity = (2 * bias + 1) << digits;
    if (isnan(x))
        return 0x7fff;
    if (isinf(x))
        return (uint16_t)(sign | infinity);
    int exponent = size == 0.0 ? -1022 : (int)(__double_as_longlong(size) >> 52) - 1023;
    exponent = exponent < 1 - bias ? 1 - bias : exponent;
    const int64_t steps = (int64_t)rint(scalbn(size, digits - exponent)); // 2^digits: the first
    const int64_t bits = steps + ((int64_t)(exponent + bias - 1) << digits);
    return (uint16_t)(sign | (bits > infinity ? infinity : bits));
}

KG_INLINE bool same_half(uint16_t a, uint16_t b)
{
    return a == b || ((a & 0x7fff) > 0x7f80 && (b & 0x7fff) > 0x7f80) || // NaN
           (a == 0x7fff && (b & 0x7fff) > 0x7c00);
}

KG_INLINE int wrong_narrowing(uint32_t bits)
{
    const float x = kg_from_bits_f32(bits);
    return !same_half(narrow(x, 10, 15), kg_pack_f16(x)) +
           !same_half(narrow(x, 7, 127), kg_pack_bf16(x));
}

KG_INLINE int wrong_widening(uint16_t half)
{
    const bool nan16 = (half & 0x7fff) > 0x7c00, nan_b = (half & 0x7fff) > 0x7f80;
    const float x = kg_unpack_f16(half), y = kg_unpack_bf16(half);
    return (nan16 ? !isnan(x) : narrow(x, 10, 15) != half) +
           (nan_b ? !isnan(y) : narrow(y, 7, 127) != half);
}

// Doubles next to the middle between two halves: rounded to f32 first they would lose their side.
KG_INLINE int wrong_middle(uint16_t half)
{
    int wrong = 0;
    const double a = kg_unpack_f16(half), b = kg_unpack_f16((uint16_t)(half + 1));
    const double c = kg_unpack_bf16(half), d = kg_unpack_bf16((uint16_t)(half + 1));
    for (int side = -1; side <= 1; side++) {
        const double x = __longlong_as_double(__double_as_longlong((a + b) / 2) + side);
        const double y = __longlong_as_double(__double_as_longlong((c + d) / 2) + side);
        if (half < 0x7bff)
            wrong += narrow(x, 10, 15) != kg_pack_f16_f64(x);
        if (half < 0x7f7f)
            wrong += narrow(y, 7, 127) != kg_pack_bf16_f64(y);
    }
    return wrong;
}

// The same for floats of 8 bits, where all that is too large becomes `most`.
KG_INLINE uint8_t narrow_eight(double x, int digits, int bias, int most)
{
    const uint8_t sign = (uint8_t)(signbit(x) ? 0x80 : 0);
    const double size = fabs(x);
    if (isnan(x))
        return 0x7f;
    if (isinf(x))
        return (uint8_t)(sign | most);
    int exponent = size == 0.0 ? -1022 : (int)(__double_as_longlong(size) >> 52) - 1023;
    exponent = exponent < 1 - bias ? 1 - bias : exponent;
    if (exponent > 2 * bias)
        return (uint8_t)(sign | most);
    const int steps = (int)rint(scalbn(size, digits - exponent));
    const int bits = steps + ((exponent + bias - 1) << digits);
    return (uint8_t)(sign | (bits > most ? most : bits));
}

// NaN is all that is greater than `infinity`.
KG_INLINE bool same_eight(uint8_t a, uint8_t b, int infinity)
{
    return a == b || ((a & 0x7f) > infinity && (b & 0x7f) > infinity);
}

KG_INLINE int wrong_eight(double x)
{
    const uint8_t a = narrow_eight(x, 3, 7, 0x7f), b = narrow_eight(x, 2, 15, 0x7c);
    return !same_eight(a, kg_pack_f8e4m3_f64(x), 0x7e) +
           !same_eight(b, kg_pack_f8e5m2_f64(x), 0x7c);
}

KG_INLINE int wrong_narrowing_eight(uint32_t bits)
{
    const float x = kg_from_bits_f32(bits);
    const uint8_t a = narrow_eight(x, 3, 7, 0x7f), b = narrow_eight(x, 2, 15, 0x7c);
    return !same_eight(a, kg_pack_f8e4m3(x), 0x7e) + !same_eight(b, kg_pack_f8e5m2(x), 0x7c);
}

KG_INLINE int wrong_widening_eight(uint8_t eight)
{
    const bool nan_a = (eight & 0x7f) > 0x7e, nan_b = (eight & 0x7f) > 0x7c;
    const float x = kg_unpack_f8e4m3(eight), y = kg_unpack_f8e5m2(eight);
    int wrong = (nan_a ? !isnan(x) : narrow_eight(x, 3, 7, 0x7f) != eight) +
                (nan_b ? !isnan(y) : narrow_eight(y, 2, 15, 0x7c) != eight);
    const double a = kg_unpack_f8e4m3((uint8_t)(eight + 1)),
                 b = kg_unpack_f8e5m2((uint8_t)(eight + 1));
    for (int side = -1; side <= 1; side++) // of the middle
        wrong += wrong_eight(__longlong_as_double(__double_as_longlong((a + x) / 2) + side)) +
                 wrong_eight(__longlong_as_double(__double_as_longlong((b + y) / 2) + side));
    return wrong;
}

// Half of the pairs are any two floats, half are what a softmax divides.
KG_INLINE int wrong_division(uint32_t i)
{
    const uint32_t a = i * 2654435761u, b = (i ^ 0x9e3779b9u) * 2246822519u ^ i >> 13;
    float x = kg_from_bits_f32(a), y = kg_from_bits_f32(b);
    if (i % 2) {
        x = (float)a * 0x1p-32f;
        y = 1.0f + (float)b * 0x1p-16f;
    }
    const float want = x / y, got = kg_over_f32(x, kg_divisor_f32(y));
    if (want != want || got != got)
        return want == want || got == got;
    const int64_t off = (int64_t)(int32_t)kg_bits_f32(want) - (int32_t)kg_bits_f32(got);
    const int most = fabsf(want) < 0x1p-126f ? 2 : 1;
    return want != got && (off > most || off < -most);
}

// Any float over a number of elements: not one bit off, unless the remainder is below the floats.
KG_INLINE int wrong_mean(uint32_t i)
{
    const uint32_t b = (i ^ 0x9e3779b9u) * 2246822519u ^ i >> 13;
    const float x = kg_from_bits_f32(i * 2654435761u), count = (float)((b >> i % 32) + 1);
    const float want = x / count, got = kg_mean_f32(x, kg_denominator_f32(count));
    if (want != want || got != got)
        return want == want || got == got;
    return want != got && fabsf(x) >= 0x1p-98f;
}

KG_INLINE void compare_bits(uint64_t *wrong)
{
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    uint64_t found = 0;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < 1ull << 32; i += step) {
        found += wrong_narrowing((uint32_t)i) + wrong_narrowing_eight((uint32_t)i) +
                 wrong_division((uint32_t)i) + wrong_mean((uint32_t)i);
        if (i < 256)
            found += wrong_widening_eight((uint8_t)i);
        if (i < 65536)
            found += wrong_widening((uint16_t)i) + wrong_middle((uint16_t)i);
    }
    atomicAdd(wrong, found);
}

// ---- Folds: what a block finds is what one thread finds ----

KG_INLINE bool same(double a, double b)
{
    return a == b || (a != a && b != b);
}

template <typename T, typename AT>
KG_INLINE bool same(kg_found<T, AT> a, kg_found<T, AT> b)
{
    return same((double)a.value, (double)b.value) && a.at == b.at;
}

template <typename T>
KG_INLINE bool same(kg_two<T> a, kg_two<T> b)
{
    return a.sum + a.lost == b.sum + b.lost;
}

// Small whole numbers, exact in any order, with many ties.
template <typename T>
KG_INLINE void make(T *value, int i)
{
    *value = (T)((i * 37 + 11) % 23 % 5 - 2);
}

template <typename T, typename AT>
KG_INLINE void make(kg_found<T, AT> *found, int i)
{
    make(&found->value, i);
    found->at = i % 7 == 3 ? -1 : i;
}

template <typename T>
KG_INLINE void make(kg_two<T> *two, int i)
{
    make(&two->sum, i);
    two->lost = 0;
}

template <typename FOLD, int THREADS>
KG_INLINE uint64_t wrong_fold(int &turn)
{
    typename FOLD::type all, part, next, own, many[2];
    make(&all, 0);
    for (int i = 1; i < THREADS; i++) {
        make(&next, i);
        all = FOLD::both(all, next);
    }
    const int first = threadIdx.x / 8 * 8;
    make(&part, first);
    for (int i = 1; i < 8; i++) {
        make(&next, first + i);
        part = FOLD::both(part, next);
    }
    make(&own, threadIdx.x);
    many[0] = many[1] = own;
    kg_block_fold<FOLD, THREADS>(many, turn);
    return !same(part, kg_row_fold<FOLD, 8>(own, turn)) +
           !same(all, kg_row_fold<FOLD, THREADS>(own, turn)) + !same(all, many[0]) +
           !same(all, many[1]);
}

// Only the first THREADS threads of the block may call this; blocks are as large as that.
template <int THREADS>
KG_INLINE uint64_t wrong_folds()
{
    int turn = 0;
    return wrong_fold<kg_fold_sum_f32, THREADS>(turn) + wrong_fold<kg_fold_sum_f64, THREADS>(turn) +
           wrong_fold<kg_fold_sum_i64, THREADS>(turn) +
           wrong_fold<kg_fold_prod_f32, THREADS>(turn) +
           wrong_fold<kg_fold_prod_f64, THREADS>(turn) +
           wrong_fold<kg_fold_prod_i64, THREADS>(turn) +
           wrong_fold<kg_fold_max_f32, THREADS>(turn) + wrong_fold<kg_fold_max_f64, THREADS>(turn) +
           wrong_fold<kg_fold_max_i64, THREADS>(turn) + wrong_fold<kg_fold_min_f32, THREADS>(turn) +
           wrong_fold<kg_fold_min_f64, THREADS>(turn) + wrong_fold<kg_fold_min_i64, THREADS>(turn) +
           wrong_fold<kg_fold_any_bool, THREADS>(turn) +
           wrong_fold<kg_fold_all_bool, THREADS>(turn) +
           wrong_fold<kg_fold_place<kg_fold_max_f32, int32_t>, THREADS>(turn) +
           wrong_fold<kg_fold_place<kg_fold_max_f32, int64_t>, THREADS>(turn) +
           wrong_fold<kg_fold_place<kg_fold_max_f64, int32_t>, THREADS>(turn) +
           wrong_fold<kg_fold_place<kg_fold_max_i64, int64_t>, THREADS>(turn) +
           wrong_fold<kg_fold_place<kg_fold_min_f32, int32_t>, THREADS>(turn) +
           wrong_fold<kg_fold_place<kg_fold_min_f64, int64_t>, THREADS>(turn) +
           wrong_fold<kg_fold_place<kg_fold_min_i64, int32_t>, THREADS>(turn) +
           wrong_fold<kg_fold_two_f32, THREADS>(turn) + wrong_fold<kg_fold_two_f64, THREADS>(turn);
}

// ---- Vectors, integers, selections ----

template <typename T, int N>
KG_INLINE int wrong_copy(char *memory)
{
    T *from = (T *)memory, *to = (T *)(memory + 2048), *once = (T *)(memory + 4096);
    for (int i = 0; i < 8; i++) {
        kg_store_vec(to + i * N, kg_load_vec<N>(from + i * N));
        kg_store_vec_stream(once + i * N, kg_load_vec_stream<N>(from + i * N));
    }
    __threadfence_block();
    int wrong = 0;
    for (int i = 0; i < 8 * N; i++)
        wrong += to[i] != from[i] || *(volatile T *)(once + i) != from[i];
    return wrong;
}

KG_INLINE int wrong_vectors(char *memory)
{
    return wrong_copy<uint8_t, 1>(memory) + wrong_copy<uint8_t, 2>(memory) +
           wrong_copy<uint8_t, 4>(memory) + wrong_copy<uint8_t, 8>(memory) +
           wrong_copy<uint8_t, 16>(memory) + wrong_copy<uint8_t, 32>(memory) +
           wrong_copy<kg_f16, 1>(memory) + wrong_copy<kg_f16, 2>(memory) +
           wrong_copy<kg_f16, 8>(memory) + wrong_copy<kg_f16, 16>(memory) +
           wrong_copy<int32_t, 1>(memory) + wrong_copy<int32_t, 4>(memory) +
           wrong_copy<int64_t, 1>(memory) + wrong_copy<int64_t, 2>(memory) +
           wrong_copy<int64_t, 4>(memory);
}

KG_INLINE int wrong_integers()
{
    const int64_t least = INT64_MIN, most = INT64_MAX;
    const bool right[] = {
        kg_div_i64(7, 2) == 3,
        kg_div_i64(-7, 2) == -4,
        kg_div_i64(7, -2) == -4,
        kg_div_i64(5, 0) == 0,
        kg_div_i64(least, -1) == least,
        kg_mod_i64(-7, 3) == 2,
        kg_mod_i64(7, -3) == -2,
        kg_mod_i64(least, -1) == 0,
        kg_mod_i64(5, 0) == 0,
        kg_add_i64(most, 1) == least,
        kg_sub_i64(least, 1) == most,
        kg_mul_i64(most, 2) == -2,
        kg_neg_i64(least) == least,
        kg_bit_and_i64(-4, 6) == 4,
        kg_bit_or_i64(-4, 1) == -3,
        kg_bit_xor_i64(-1, 5) == -6,
        kg_bit_not_i64(most) == least,
        kg_shift_left_i64(-3, 2) == -12,
        kg_shift_left_i64(3, 63) == least,
        kg_shift_left_i64(3, 64) == 0,
        kg_shift_left_i64(3, -1) == 0,
        kg_shift_left_i64(3, 1ll << 32) == 0,
        kg_shift_right_i64(-5, 1) == -3,
        kg_shift_right_i64(least, 63) == -1,
        kg_shift_right_i64(-5, 64) == -1,
        kg_shift_right_i64(5, 64) == 0,
        kg_shift_right_i64(-5, -1) == -1,
        kg_shift_right_i64(5, least) == 0,
        kg_abs_i64(-3) == 3,
        kg_ceildiv_i64(7, 2) == 4,
        kg_clamp(-1, 5) == 0,
        kg_clamp(5, 5) == 4,
        kg_clamp(3, 0) == 0,
        kg_inside(0, 1),
        !kg_inside(1, 1),
        !kg_inside(-1, 1),
        kg_truncate_f32(2.9f) == 2,
        kg_truncate_f32(-2.9f) == -2,
        kg_truncate_f32(NAN) == 0,
        kg_truncate_f32(INFINITY) == most,
        kg_truncate_f64(-1e300) == least,
        kg_truncate_f64((double)NAN) == 0,
        kg_cast_i8(200) == -56,
        kg_cast_u8(-1) == 255,
        kg_cast_i32(1ll << 31) == -(1ll << 31),
        kg_cast_u4(-1) == 15,
        kg_cast_i4(9) == -7,
        kg_pack_u8(-1) == 255,
        kg_unpack_i8((int8_t)-3) == -3,
    };
    int wrong = 0;
    for (int i = 0; i < (int)sizeof right; i++)
        wrong += !right[i];
    return wrong;
}

KG_INLINE int wrong_selections()
{
    const bool right[] = {
        kg_isnan_f32(kg_max_f32(NAN, 1)),
        kg_isnan_f32(kg_max_f32(1, NAN)),
        kg_max_f32(2, 1) == 2,
        kg_isnan_f32(kg_min_f32(NAN, 1)),
        kg_isnan_f32(kg_min_f32(1, NAN)),
        kg_min_f32(2, 1) == 1,
        kg_isnan_f64(kg_max_f64(NAN, 1)),
        kg_isnan_f64(kg_max_f64(1, NAN)),
        kg_max_f64(2, 1) == 2,
        kg_isnan_f64(kg_min_f64(NAN, 1)),
        kg_isnan_f64(kg_min_f64(1, NAN)),
        kg_min_f64(2, 1) == 1,
        kg_isnan_f32(kg_relu_f32(NAN)),
        kg_relu_f32(-1) == 0,
        kg_relu_f32(3) == 3,
        signbit(kg_relu_f32(-0.0f)) != 0,
        kg_sign_f32(NAN) == 0,
        kg_sign_f32(-2) == -1,
        kg_round_f32(0.5f) == 0,
        kg_round_f32(-2.5f) == -2,
        kg_mod_f32(-1, 3) == 2,
        kg_mod_f32(7, -3) == -2,
        kg_mod_f32(5.5f, 2) == 1.5,
        kg_isnan_f32(kg_mod_f32(1, 0)),
        kg_mod_f32(-1e-30f, 1) == 1,
        kg_beats_max_f32(NAN, 1),
        !kg_beats_max_f32(NAN, NAN),
        !kg_beats_max_f32(1, NAN),
        kg_beats_min_f32(NAN, 1),
        kg_beats_min_f64(1, 2),
        !kg_beats_min_f64(1, NAN),
        kg_pow_f32(-8, 3) == -512,
        kg_isnan_f32(kg_pow_f32(-1, 0.5f)),
        kg_isnan_f32(kg_gelu_f32(-INFINITY)),
        kg_gelu_f32(INFINITY) > 1,
        kg_gelu_f32(-100) == 0,
        kg_isnan_f32(kg_silu_f32(-INFINITY)),
        kg_sigmoid_f32(-1e30) == 0,
        kg_softplus_f32(-1e30) == 0,
    };
    int wrong = 0;
    for (int i = 0; i < (int)sizeof right; i++)
        wrong += !right[i];
    return wrong;
}

KG_INLINE int wrong_nibbles(char *memory)
{
    kg_u4 *bytes = (kg_u4 *)memory;
    for (int i = 0; i < 4; i++)
        bytes[i] = 0xee;
    for (int i = 0; i < 6; i++)
        kg_store_u4(bytes, i, i + 16); // wraps
    int wrong = bytes[3] != 0xee;
    for (int i = 0; i < 6; i++)
        wrong += kg_load_u4(bytes, i) != i;
    kg_store_i4(bytes, 1, -3);
    return wrong + (kg_load_i4(bytes, 1) != -3) + (kg_load_u4(bytes, 0) != 0) +
           (kg_load_u4(bytes, 2) != 2);
}

// ---- Kernels ----

// Blocks of 256 threads. `which` is a number of error_at, or 100: conversions and divisions; 101:
// folds; 102 (one block): the rest. `memory` is 8 KiB of anything.
extern "C" __global__ void check_0(int64_t which, int64_t floats, uint64_t *result, char *memory)
{
    switch (which) {
#define MEASURE(WHICH)                                                                             \
    case WHICH:                                                                                    \
        measure<WHICH>(result, (uint64_t)floats);                                                  \
        return;
        MEASURE(0)
        MEASURE(1)
        MEASURE(2)
        MEASURE(3)
        MEASURE(4)
        MEASURE(5)
        MEASURE(6)
        MEASURE(7)
        MEASURE(8)
        MEASURE(9)
        MEASURE(10)
        MEASURE(11)
        MEASURE(12)
        MEASURE(13)
        MEASURE(14)
        MEASURE(15)
        MEASURE(16)
        MEASURE(17)
        MEASURE(18)
        MEASURE(19)
        MEASURE(20)
        MEASURE(21)
        MEASURE(22)
        MEASURE(23)
        MEASURE(24)
    case 100:
        compare_bits(result);
        return;
    case 101:
        atomicAdd(result, wrong_folds<256>());
        return;
    default:
        if (threadIdx.x == 0)
            atomicAdd(result, (uint64_t)(wrong_vectors(memory) + wrong_integers() +
                                         wrong_selections() + wrong_nibbles(memory + 6144)));
    }
}
