// Mathematical functions: libm where it is exact or fast enough, and f64.

// NaN if either is NaN. Where `b` is a constant, that is one comparison in all.
KG_INLINE float kg_min_f32(float a, float b)
{
    float found = b < a ? b : a; // one instruction; NaN if a is
    return b != b ? b : found;
}

KG_INLINE float kg_max_f32(float a, float b)
{
    float found = b > a ? b : a; // one instruction; NaN if a is
    return b != b ? b : found;
}

KG_INLINE double kg_min_f64(double a, double b)
{
    double found = b < a ? b : a; // one instruction; NaN if a is
    return b != b ? b : found;
}

KG_INLINE double kg_max_f64(double a, double b)
{
    double found = b > a ? b : a; // one instruction; NaN if a is
    return b != b ? b : found;
}

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

KG_INLINE float kg_rsqrt_f32(float x)
{
    return 1.0f / sqrtf(x);
}

KG_INLINE double kg_rsqrt_f64(double x)
{
    return 1.0 / sqrt(x);
}

KG_INLINE double kg_mod_f64(double x, double y)
{
    return x - y * floor(x / y);
}

KG_INLINE float kg_mod_f32(float x, float y)
{
    return (float)kg_mod_f64((double)x, (double)y);
}

KG_INLINE double kg_exp_f64(double x)
{
    return exp(x);
}

KG_INLINE double kg_exp2_f64(double x)
{
    return exp2(x);
}

KG_INLINE double kg_expm1_f64(double x)
{
    return expm1(x);
}

KG_INLINE double kg_log_f64(double x)
{
    return log(x);
}

KG_INLINE double kg_log2_f64(double x)
{
    return log2(x);
}

KG_INLINE double kg_log1p_f64(double x)
{
    return log1p(x);
}

KG_INLINE double kg_tanh_f64(double x)
{
    return tanh(x);
}

KG_INLINE double kg_erf_f64(double x)
{
    return erf(x);
}

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

KG_INLINE float kg_pow_f32(float x, float y)
{
    return powf(x, y);
}

KG_INLINE double kg_pow_f64(double x, double y)
{
    return pow(x, y);
}

KG_INLINE double kg_sigmoid_f64(double x)
{
    double e = kg_exp_f64(-fabs(x));
    return (x < 0.0 ? e : 1.0) / (1.0 + e);
}

KG_INLINE double kg_silu_f64(double x)
{
    return x * kg_sigmoid_f64(x);
}

KG_INLINE double kg_softplus_f64(double x)
{
    return kg_max_f64(x, 0.0) + kg_log1p_f64(kg_exp_f64(-fabs(x)));
}

KG_INLINE double kg_gelu_f64(double x)
{
    return x * (0.5 * erfc(x * -0.70710678118654752440));
}

// 0.5 (1 + tanh(u)) is the sigmoid of 2u.
KG_INLINE double kg_gelu_tanh_f64(double x)
{
    return x * kg_sigmoid_f64(1.59576912160573071176 * (x + 0.044715 * x * x * x));
}
