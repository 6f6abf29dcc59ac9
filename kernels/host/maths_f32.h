// Mathematical functions in f32, as straight-line code that loops can vectorise. Nothing here needs
// -ffast-math; NaN, infinities, signed zeros and denormals are handled.
//
// Polynomials are minimax fits with coefficients rounded to f32. A unit test compares them with
// libm's f64 and has a table of the errors.

// The nearest integer, and the same as an int; |x| < 2^22. Adding 1.5 * 2^23 leaves no bits for a
// fraction.
KG_INLINE float kg_nearest_f32(float x, int32_t *whole)
{
    float shifted = x + 0x1.8p23f;
    *whole = (int32_t)(kg_bits_f32(shifted) - 0x4b400000);
    return shifted - 0x1.8p23f;
}

// x * 2^n for n in [-252, 254], rounded at most once.
KG_INLINE float kg_scale_f32(float x, int32_t n)
{
    uint32_t half = (uint32_t)(n >> 1), rest = (uint32_t)n - half;
    return x * kg_from_bits_f32((half + 127) << 23) * kg_from_bits_f32((rest + 127) << 23);
}

// (exp(r) - 1 - r) / r^2 for |r| <= log(2) / 2.
KG_INLINE float kg_exp_rest_f32(float r)
{
    float p = 0x1.6b9c66p-10f;
    p = p * r + 0x1.12254ap-7f;
    p = p * r + 0x1.5556f2p-5f;
    p = p * r + 0x1.5554b4p-3f;
    return p * r + 0x1.fffffep-2f;
}

// exp(x + low) for a small `low`.
KG_INLINE float kg_exp_sum_f32(float x, float low)
{
    x = x < -104.0f ? -104.0f : x;
    x = x > 89.0f ? 89.0f : x;
    int32_t n;
    float whole = kg_nearest_f32(x * 0x1.715476p0f, &n);
    // Log(2) as a sum of two floats.
    float r = ((x - whole * 0x1.62ep-1f) - whole * 0x1.0bfbe8p-15f) + low;
    return kg_scale_f32(1.0f + (r + r * r * kg_exp_rest_f32(r)), n);
}

// Beyond the limits the result is 0 or infinity. The power of two is split into two factors, so
// that small results are rounded once, by the last product.
KG_INLINE float kg_exp_f32(float x)
{
    x = x < -104.5f ? -104.5f : x;
    x = x > 89.0f ? 89.0f : x;
    float shifted = x * 0x1.715476p0f + 0x1.8p23f; // the last bits are the nearest integer
    float whole = shifted - 0x1.8p23f;
    // Log(2) as a sum of two floats.
    float r = (x - whole * 0x1.62ep-1f) - whole * 0x1.0bfbe8p-15f;
    float p = (kg_exp_rest_f32(r) * r + 1.0f) * r + 1.0f;
    int32_t n = (int32_t)kg_bits_f32(shifted) - 0x4b400000, half = n >> 1;
    float low = kg_from_bits_f32((uint32_t)(half + 127) << 23);
    float high = kg_from_bits_f32((uint32_t)(n - half + 127) << 23);
    return p * low * high;
}

KG_INLINE float kg_exp2_f32(float x)
{
    x = x < -151.0f ? -151.0f : x;
    x = x > 129.0f ? 129.0f : x;
    int32_t n;
    float r = x - kg_nearest_f32(x, &n);
    float p = 0x1.e0bacap-17f;
    p = p * r + 0x1.440e0ap-13f;
    p = p * r + 0x1.5da584p-10f;
    p = p * r + 0x1.3b2a5cp-7f;
    p = p * r + 0x1.c6b06ep-5f;
    p = p * r + 0x1.ebfbe0p-3f;
    p = p * r + 0x1.62e430p-1f;
    return kg_scale_f32(1.0f + p * r, n);
}

KG_INLINE float kg_expm1_f32(float x)
{
    float inside = x < -25.0f ? -25.0f : x;
    inside = inside > 89.0f ? 89.0f : inside;
    int32_t n;
    float whole = kg_nearest_f32(inside * 0x1.715476p0f, &n);
    float r = (inside - whole * 0x1.62ep-1f) - whole * 0x1.0bfbe8p-15f;
    float p = r + r * r * kg_exp_rest_f32(r);
    // 2^n * p + (2^n - 1), at half the size, because 2^128 would overflow.
    float half = kg_from_bits_f32((uint32_t)(n + 126) << 23);
    float y = 2.0f * (half * p + (half - 0.5f));
    return copysignf(n == 0 ? p : y, x);
}

// x = 2^n * (1 + f) with f in [sqrt(1/2) - 1, sqrt(2) - 1], for normal x. Returns f.
KG_INLINE float kg_split_f32(float x, float *n)
{
    uint32_t bits = kg_bits_f32(x) - 0x3f3504f3;
    *n = (float)((int32_t)bits >> 23);
    return kg_from_bits_f32((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;
}

// log(1 + f) - f for the f of kg_split_f32.
KG_INLINE float kg_log_rest_f32(float f)
{
    float p = 0x1.148910p-4f;
    p = p * f - 0x1.de218ap-4f;
    p = p * f + 0x1.e6c770p-4f;
    p = p * f - 0x1.fc24c0p-4f;
    p = p * f + 0x1.233afap-3f;
    p = p * f - 0x1.555c54p-3f;
    p = p * f + 0x1.99a47cp-3f;
    p = p * f - 0x1.000006p-2f;
    p = p * f + 0x1.555548p-2f;
    return f * f * (f * p - 0.5f);
}

// The logarithm of x: `y`, or the special value if x is not positive and finite.
KG_INLINE float kg_log_edges_f32(float x, float y)
{
    y = x == INFINITY ? INFINITY : y;
    return x > 0.0f ? y : x == 0.0f ? -INFINITY : NAN;
}

KG_INLINE float kg_log_f32(float x)
{
    bool small = x < 0x1p-126f;
    float n, f = kg_split_f32(small ? x * 0x1p24f : x, &n);
    n = small ? n - 24.0f : n;
    float y = n * 0x1.62ep-1f + (f + (n * 0x1.0bfbe8p-15f + kg_log_rest_f32(f)));
    return kg_log_edges_f32(x, y);
}

KG_INLINE float kg_log2_f32(float x)
{
    bool small = x < 0x1p-126f;
    float n, f = kg_split_f32(small ? x * 0x1p24f : x, &n);
    n = small ? n - 24.0f : n;
    // f and log2(e) as sums of two floats each: the product of the high ones is exact.
    float high = kg_from_bits_f32(kg_bits_f32(f) & 0xfffff000);
    float low = (f - high) + kg_log_rest_f32(f);
    float y = (high * 0x1.714p0f + n) + (high * 0x1.47652cp-12f + low * 0x1.715476p0f);
    return kg_log_edges_f32(x, y);
}

KG_INLINE float kg_log1p_f32(float x)
{
    float u = 1.0f + x;
    float lost = x < 1.0f ? x - (u - 1.0f) : 1.0f - (u - x); // u + lost is 1 + x
    float n, f = kg_split_f32(u, &n);
    float y = n * 0x1.62ep-1f + (f + (n * 0x1.0bfbe8p-15f + kg_log_rest_f32(f) + lost / u));
    return copysignf(kg_log_edges_f32(u, y), x);
}

KG_INLINE float kg_tanh_f32(float x)
{
    float e = kg_expm1_f32(-2.0f * fabsf(x));
    return copysignf(e / (2.0f + e), x);
}

KG_INLINE float kg_sigmoid_f32(float x)
{
    float e = kg_exp_f32(-fabsf(x));
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

KG_INLINE float kg_silu_f32(float x)
{
    return x * kg_sigmoid_f32(x);
}

KG_INLINE float kg_softplus_f32(float x)
{
    return kg_max_f32(x, 0.0f) + kg_log1p_f32(kg_exp_f32(-fabsf(x)));
}

// A polynomial in x^2 up to 1, then 1 - exp(polynomial in |x|).
KG_INLINE float kg_erf_f32(float x)
{
    float z = fabsf(x), s = x * x;
    float p = 0x1.4771fcp-14f;
    p = p * s - 0x1.a3515ep-11f;
    p = p * s + 0x1.53f224p-8f;
    p = p * s - 0x1.b7f71ap-6f;
    p = p * s + 0x1.ce2ce6p-4f;
    p = p * s - 0x1.81273ep-2f;
    p = p * s + 0x1.06eba8p-3f;
    z = z > 4.0f ? 4.0f : z;
    float q = 0x1.86debep-13f;
    q = q * z - 0x1.825bcap-9f;
    q = q * z + 0x1.65cbdcp-6f;
    q = q * z - 0x1.a65372p-4f;
    q = q * z - 0x1.46bae6p-1f;
    q = q * z - 0x1.2088ecp0f;
    q = q * z - 0x1.661a16p-12f;
    float far = 1.0f - kg_exp_f32(q);
    return z < 1.0f ? x + x * p : copysignf(far, x);
}

// The upper tail of the normal distribution for z >= 0: exp(-z^2/2) times a rational function.
KG_INLINE float kg_tail_f32(float z)
{
    z = z > 15.0f ? 15.0f : z;
    float above = 0x1.0dc4b6p-8f;
    above = above * z + 0x1.4cde72p-5f;
    above = above * z + 0x1.774442p-3f;
    above = above * z + 0x1.c0d092p-2f;
    above = above * z + 0.5f;
    float below = 0x1.5219c2p-7f;
    below = below * z + 0x1.a1373ap-4f;
    below = below * z + 0x1.e0bd46p-2f;
    below = below * z + 0x1.33d762p0f;
    below = below * z + 0x1.acaa7ap0f;
    below = below * z + 1.0f;
    // z^2 as a sum of two floats, because exp would magnify the rounding error of the product.
    float high = kg_from_bits_f32(kg_bits_f32(z) & 0xfffff000);
    float low = (z - high) * (z + high);
    return kg_exp_sum_f32(-0.5f * high * high, -0.5f * low) * (above / below);
}

KG_INLINE float kg_gelu_f32(float x)
{
    float tail = kg_tail_f32(fabsf(x));
    return x * (x < 0.0f ? tail : 1.0f - tail);
}

// 0.5 (1 + tanh(u)) is the sigmoid of 2u.
KG_INLINE float kg_gelu_tanh_f32(float x)
{
    return x * kg_sigmoid_f32(1.595769121605731f * (x + 0.044715f * x * x * x));
}
