// Approximations for results that are stored as f16 or bf16; src/gen/shared/narrow.c decides where
// they apply. An instruction of the special function unit takes as long as eight others, so there
// are few. NaN and infinities are handled.
//
// This file is also valid C, so that tests can check every number; it uses kg_power_of_two,
// kg_reciprocal and kg_from_zero of maths.cuh.

// Relative error of at most 2^-17, less near 0; results below the normal numbers are zero.
KG_INLINE float kg_exp_narrow_f32(float x)
{
    return kg_power_of_two(x * 0x1.715476p0f);
}

// Relative error of at most 2^-17; also for silu.
KG_INLINE float kg_sigmoid_narrow_f32(float x)
{
    const float e = kg_exp_narrow_f32(-fabsf(x)), one = kg_reciprocal(1.0f + e);
    return x < 0.0f ? e * one : one;
}

KG_INLINE float kg_silu_narrow_f32(float x)
{
    // 128 times the sigmoid is normal wherever the result is.
    const float part = kg_power_of_two(fmaf(x, -0x1.715476p0f, -7.0f));
    return x * 0x1p-7f * kg_reciprocal(0x1p-7f + part);
}

// x times the distribution function at x, given its tail beyond abs(x).
KG_INLINE float kg_times_below(float x, float tail)
{
    return x * fabsf(kg_from_zero(x) - tail);
}

// Relative error of at most 2^-13.5, or absolute error of 2^-27. It uses one instruction of the
// special function unit, whose result takes as long as eight other instructions.
KG_INLINE float kg_gelu_narrow_f32(float x)
{
    const float z = fabsf(x);
    float p = -0x1.501732p-12f;
    p = fmaf(p, z, 0x1.7de7ccp-8f);
    p = fmaf(p, z, -0x1.8b2a16p-5f);
    p = fmaf(p, z, -0x1.db4234p-2f);
    p = fmaf(p, z, -0x1.263074p0f);
    p = fmaf(p, z, -0x1.0007e6p0f);
    return kg_times_below(x, kg_power_of_two(p));
}

// The sigmoid of -2u as 2 to the power of a polynomial: relative error of at most 2^-14, or
// absolute error of 2^-27. This takes one instruction of the special function unit instead of two.
KG_INLINE float kg_gelu_tanh_narrow_f32(float x)
{
    const float z = fabsf(x);
    float p = -0x1.2323e8p-15f;
    p = fmaf(p, z, 0x1.e55dcap-11f);
    p = fmaf(p, z, -0x1.12d05ep-7f);
    p = fmaf(p, z, 0x1.c780eap-6f);
    p = fmaf(p, z, -0x1.32964ap-4f);
    p = fmaf(p, z, -0x1.c94646p-2f);
    p = fmaf(p, z, -0x1.27564ep0f);
    p = fmaf(p, z, -0x1.fff4fap-1f);
    return kg_times_below(x, kg_power_of_two(p));
}
