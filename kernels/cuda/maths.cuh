// The functions of reals. The compiler's own functions are used if they are cheap and accurate to a
// few units in the last place. Functions based on exp are written for memory-bound kernels: at 3
// TB/s an SM of Hopper has about 40 instructions for each element of f16 that is read and written.
//
// Nothing here needs -use_fast_math. NaN and infinities are handled; functions based on exp may
// flush results below the normal numbers to zero.

// ---- Minima and maxima ----

// NaN if either is NaN.
KG_INLINE float kg_min_f32(float a, float b)
{
#if __CUDA_ARCH__ >= 800
    float found;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(found) : "f"(a), "f"(b));
    return found;
#else
    float found = fminf(a, b); // the other argument, if one is NaN
    return a == a && b == b ? found : NAN;
#endif
}

KG_INLINE float kg_max_f32(float a, float b)
{
#if __CUDA_ARCH__ >= 800
    float found;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(found) : "f"(a), "f"(b));
    return found;
#else
    float found = fmaxf(a, b); // the other argument, if one is NaN
    return a == a && b == b ? found : NAN;
#endif
}

KG_INLINE double kg_min_f64(double a, double b)
{
    return a != a || a < b ? a : b; // NaN if b is
}

KG_INLINE double kg_max_f64(double a, double b)
{
    return a != a || a > b ? a : b; // NaN if b is
}

// ---- Roundings and roots ----

KG_INLINE float kg_abs_f32(float x)
{
    return fabsf(x);
}

KG_INLINE double kg_abs_f64(double x)
{
    return fabs(x);
}

KG_INLINE float kg_floor_f32(float x)
{
    return floorf(x);
}

KG_INLINE double kg_floor_f64(double x)
{
    return floor(x);
}

KG_INLINE float kg_ceil_f32(float x)
{
    return ceilf(x);
}

KG_INLINE double kg_ceil_f64(double x)
{
    return ceil(x);
}

// Half to even.
KG_INLINE float kg_round_f32(float x)
{
    return rintf(x);
}

KG_INLINE double kg_round_f64(double x)
{
    return rint(x);
}

KG_INLINE float kg_sqrt_f32(float x)
{
    return sqrtf(x);
}

KG_INLINE double kg_sqrt_f64(double x)
{
    return sqrt(x);
}

// The hardware's root has an error of up to two units; one step of Newton's method corrects it.
// `lost` is NaN where no correction applies: at zero, infinity and NaN.
KG_INLINE float kg_rsqrt_f32(float x)
{
    float y = rsqrtf(x), lost = fmaf(-(x * y), y, 1.0f);
    return lost == lost ? fmaf(0.5f * y, lost, y) : y;
}

KG_INLINE double kg_rsqrt_f64(double x)
{
    return 1.0 / sqrt(x);
}

// The quotient may be rounded up to an integer: the sign of the remainder shows that.
KG_INLINE float kg_mod_f32(float x, float y)
{
    float rest = fmaf(-floorf(x / y), y, x);
    return (rest < 0.0f && y > 0.0f) || (rest > 0.0f && y < 0.0f) ? rest + y : rest;
}

KG_INLINE double kg_mod_f64(double x, double y)
{
    return x - y * floor(x / y);
}

// ---- Many divisions by one number ----

// A divisor of many numbers: two multiplications each replace a division, with an error of at most
// 1.5 units in the last place.
struct kg_divisor {
    float inverse;
    float scale; // keeps the inverse within the normal numbers
};

KG_INLINE kg_divisor kg_divisor_f32(float by)
{
    const float scale = fabsf(by) < 0x1p-64f ? 0x1p64f : fabsf(by) > 0x1p64f ? 0x1p-64f : 1.0f;
    return {1.0f / (by * scale), scale};
}

KG_INLINE float kg_over_f32(float x, kg_divisor by)
{
    return x * by.scale * by.inverse;
}

// A number of elements to divide sums by. Its inverse is made where it is asked for, such as while
// loads are on their way: compilers would move it to where it is used.
struct kg_denominator {
    float of;
    float inverse;
};

KG_INLINE kg_denominator kg_denominator_f32(float of)
{
    float inverse = 1.0f / of;
    asm volatile("" : "+f"(inverse));
    return {of, inverse};
}

// sum / count, correctly rounded: the inverse is, and the remainder corrects the product. That of
// infinities is NaN.
KG_INLINE float kg_mean_f32(float sum, kg_denominator count)
{
    const float near = sum * count.inverse, rest = fmaf(-near, count.of, sum);
    return rest == rest ? fmaf(rest, count.inverse, near) : near;
}

// ---- Exponentials and logarithms ----

KG_INLINE float kg_exp_f32(float x)
{
    return expf(x);
}

// 2^x with an error of at most two units; results below the normal numbers are zero.
KG_INLINE float kg_power_of_two(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// 1 for x >= 0, else 0.
KG_INLINE float kg_from_zero(float x)
{
    float y;
    asm("set.ge.f32.f32 %0, %1, 0f00000000;" : "=f"(y) : "f"(x));
    return y;
}

KG_INLINE double kg_exp_f64(double x)
{
    return exp(x);
}

KG_INLINE float kg_exp2_f32(float x)
{
    return exp2f(x);
}

KG_INLINE double kg_exp2_f64(double x)
{
    return exp2(x);
}

KG_INLINE float kg_expm1_f32(float x)
{
    return expm1f(x);
}

KG_INLINE double kg_expm1_f64(double x)
{
    return expm1(x);
}

KG_INLINE float kg_log_f32(float x)
{
    return logf(x);
}

KG_INLINE double kg_log_f64(double x)
{
    return log(x);
}

KG_INLINE float kg_log2_f32(float x)
{
    return log2f(x);
}

KG_INLINE double kg_log2_f64(double x)
{
    return log2(x);
}

KG_INLINE float kg_log1p_f32(float x)
{
    return log1pf(x);
}

KG_INLINE double kg_log1p_f64(double x)
{
    return log1p(x);
}

// ---- Trigonometry, powers, error function ----

KG_INLINE float kg_sin_f32(float x)
{
    return sinf(x);
}

KG_INLINE double kg_sin_f64(double x)
{
    return sin(x);
}

KG_INLINE float kg_cos_f32(float x)
{
    return cosf(x);
}

KG_INLINE double kg_cos_f64(double x)
{
    return cos(x);
}

KG_INLINE float kg_tanh_f32(float x)
{
    return tanhf(x);
}

KG_INLINE double kg_tanh_f64(double x)
{
    return tanh(x);
}

KG_INLINE float kg_erf_f32(float x)
{
    return erff(x);
}

KG_INLINE double kg_erf_f64(double x)
{
    return erf(x);
}

KG_INLINE float kg_pow_f32(float x, float y)
{
    return powf(x, y);
}

KG_INLINE double kg_pow_f64(double x, double y)
{
    return pow(x, y);
}

// ---- Activations ----

// 1 / x of normal numbers with an error of at most one unit; results below the normal numbers are
// zero.
KG_INLINE float kg_reciprocal(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Small results are rounded once, and not flushed to zero, because they may be multiplied by large
// numbers.
KG_INLINE float kg_sigmoid_f32(float x)
{
    const float e = kg_exp_f32(-fabsf(x)), one = kg_reciprocal(1.0f + e);
    return x < 0.0f ? e * one : one;
}

KG_INLINE double kg_sigmoid_f64(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

KG_INLINE float kg_silu_f32(float x)
{
    return x * kg_sigmoid_f32(x);
}

KG_INLINE double kg_silu_f64(double x)
{
    return x / (1.0 + exp(-x));
}

// (log(1 + e) - e) / e^2 for e in [0, 1] is a polynomial with an error of 0.6 * 2^-24 of the
// logarithm.
KG_INLINE float kg_softplus_f32(float x)
{
    float e = kg_exp_f32(-fabsf(x));
    float p = 0x1.5f96dep-8f;
    p = fmaf(p, e, -0x1.ec992p-6f);
    p = fmaf(p, e, 0x1.446cp-4f);
    p = fmaf(p, e, -0x1.19ad8cp-3f);
    p = fmaf(p, e, 0x1.884452p-3f);
    p = fmaf(p, e, -0x1.fd132p-3f);
    p = fmaf(p, e, 0x1.5535dap-2f);
    p = fmaf(p, e, -0x1.ffff14p-2f);
    return fmaf(p, e * e, e) + fmaxf(x, 0.0f);
}

KG_INLINE double kg_softplus_f64(double x)
{
    return kg_max_f64(x, 0.0) + log1p(exp(-fabs(x)));
}

// The upper tail of the normal distribution for z >= 0, as 2 to the power of a polynomial: within
// 0.7 * 2^-24 of 1, and within 0.1 % of the result where that is above 2^-84.
KG_INLINE float kg_tail_f32(float z)
{
    float p = -0x1.2f84ccp-28f;
    p = fmaf(p, z, 0x1.a689cap-23f);
    p = fmaf(p, z, -0x1.dd8b4p-19f);
    p = fmaf(p, z, 0x1.0f8cd6p-15f);
    p = fmaf(p, z, -0x1.0ec95cp-13f);
    p = fmaf(p, z, -0x1.3a781p-12f);
    p = fmaf(p, z, 0x1.ddac1p-8f);
    p = fmaf(p, z, -0x1.af5262p-5f);
    p = fmaf(p, z, -0x1.d62dc2p-2f);
    p = fmaf(p, z, -0x1.26af34p0f);
    p = fmaf(p, z, -0x1.fffffcp-1f);
    return kg_power_of_two(p);
}

KG_INLINE float kg_gelu_f32(float x)
{
    float tail = kg_tail_f32(fabsf(x));
    return x * (x < 0.0f ? tail : 1.0f - tail);
}

KG_INLINE double kg_gelu_f64(double x)
{
    return x * (0.5 * erfc(x * -0.70710678118654752440));
}

// 0.5 (1 + tanh(u)) is the sigmoid of 2u; the constants are those of -2u log2(e).
KG_INLINE float kg_gelu_tanh_f32(float x)
{
    float power = x * fmaf(x * x, -0.10294324f, -2.3022082f);
    return x * kg_reciprocal(1.0f + kg_power_of_two(power));
}

KG_INLINE double kg_gelu_tanh_f64(double x)
{
    double u = 0.79788456080286535588 * (x + 0.044715 * x * x * x);
    return x / (1.0 + exp(-2.0 * u));
}
