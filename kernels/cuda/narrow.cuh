// Functions for results that are stored as f16 or bf16: which may be these, src/gen/shared/narrow.c
// decides. A function of the special unit takes the time of eight other instructions, so there are
// few. NaN and infinities come out right.
//
// This file is C as well, so that tests can go through every number: what it is made of,
// kg_power_of_two, kg_reciprocal and kg_from_zero, stands in maths.cuh.

// An error of 2^-17 at most, relative to the result, less near 0; below the normal numbers it is
// zero.
KG_INLINE float kg_exp_narrow_f32(float x)
{
    return kg_power_of_two(x * 0x1.715476p0f);
}

// An error of 2^-17 at most, relative to the result; likewise silu.
KG_INLINE float kg_sigmoid_narrow_f32(float x)
{
    const float e = kg_exp_narrow_f32(-fabsf(x)), one = kg_reciprocal(1.0f + e);
    return x < 0.0f ? e * one : one;
}

KG_INLINE float kg_silu_narrow_f32(float x)
{
    // 128 times the sigmoid is a normal number wherever the result is.
    const float part = kg_power_of_two(fmaf(x, -0x1.715476p0f, -7.0f));
    return x * 0x1p-7f * kg_reciprocal(0x1p-7f + part);
}

// x times what a distribution has below x, from what it has beyond abs(x) on either side.
KG_INLINE float kg_times_below(float x, float tail)
{
    return x * fabsf(kg_from_zero(x) - tail);
}

// An error of 2^-13.5 at most, relative to the result, or of 2^-27. One function of the special
// unit, which gives a result in the time of eight others.
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

// The sigmoid of -2u as 2 to the power of a polynomial: an error of 2^-14 at most, relative to the
// result, or of 2^-27. That takes one function of the special unit instead of two.
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
