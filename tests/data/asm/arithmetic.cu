// Arithmetic of every type, and the conversions between them.

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#define KERNEL extern "C" __global__ void
#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)

KERNEL floats(float *a, const float *b)
{
    int i = THREAD;
    float x = a[i], y = b[i];
    float z = x * y + 2.0f;
    z = fminf(z, x) + fmaxf(y, 0.5f) - x;
    z = z > y ? z * 3.0f : fabsf(x) - y;
    a[i] = z / y + sqrtf(x) + rsqrtf(y) + __fdividef(x, y) + copysignf(x, z);
    a[i + 1] = floorf(x) + ceilf(y) + rintf(z) + truncf(x);
    a[i + 2] = fminf(fminf(x, y), z) + __saturatef(x) + fmaf(x, y, z);
    a[i + 3] = isnan(x) + isinf(y) + (x < y) + (x != z);
}

KERNEL special(float *a)
{
    int i = THREAD;
    float x = a[i];
    a[i] = __expf(x) + __logf(x) + __sinf(x) + __cosf(x) + exp2f(x) + log2f(x);
    a[i + 1] = tanhf(x) + erff(x) + expf(x) + logf(x) + powf(x, 1.7f);
    a[i + 2] = sinf(x) + cosf(x) + tanf(x) + cbrtf(x) + lgammaf(x);
}

KERNEL doubles(double *a, const double *b)
{
    int i = THREAD;
    double x = a[i], y = b[i];
    a[i] = x * y + 1.25;
    a[i + 1] = x + y;
    a[i + 2] = x * y;
    a[i + 3] = x / y + sqrt(x) + fmin(x, y);
    a[i + 4] = exp(x) + log(y) + sin(x);
    a[i + 5] = (double)(float)x + (int)y + (long long)x + floor(y);
    a[i + 6] = x > y ? x : y;
}

KERNEL integers(int *a, const unsigned *b)
{
    int i = THREAD;
    int x = a[i];
    unsigned y = b[i];
    a[i] = x * (int)y + 7;
    a[i + 1] = x / 7 + x % 13 + (int)(y / 3);
    a[i + 2] = x / (int)y + (int)(y % (unsigned)x);
    a[i + 3] = (x << 3) + (x >> 2) + (int)(y >> 5) + (x << (y & 31));
    a[i + 4] = (x & (int)y) | (x ^ 0x55) | ~x;
    a[i + 5] = __popc(x) + __clz(x) + __ffs(x) + (int)__brev(y);
    a[i + 6] = min(x, (int)y) + max(x, 3) + abs(x);
    a[i + 7] = __mulhi(x, (int)y) + (int)__umulhi(y, 77u);
    a[i + 8] = (int)__byte_perm(y, x, 0x3412) + (int)__funnelshift_l(x, y, 9);
    a[i + 9] = __sad(x, (int)y, 5u) + (int)__vadd4(x, y) + (int)__vmaxs2(x, y);
    a[i + 10] = __dp4a(x, (int)y, 3) + (int)__dp2a_lo((unsigned)x, y, 4u);
    a[i + 11] = (x > 3 && y < 9) || (x == 2 && y != 1);
    a[i + 12] = (int)((y >> 5) & 0x3f) + (x ? 4 : 9);
    a[i + 13] = (int)__vabsdiffu4(x, y) + (int)__vsetltu2(x, y) + (int)__vsads4(x, y);
}

KERNEL long_integers(long long *a, const unsigned long long *b)
{
    int i = THREAD;
    long long x = a[i];
    unsigned long long y = b[i];
    a[i] = x * (long long)y + 7;
    a[i + 1] = x / 7 + x % 1001;
    a[i + 2] = x / (long long)y;
    a[i + 3] = (x << 7) + (x >> (y & 63)) + (long long)(y >> 11);
    a[i + 4] = __mul64hi(x, 12345) + __popcll(x) + __clzll(x);
    a[i + 5] = x < (long long)y ? min(x, 5ll) : max(x, 8ll);
    a[i + 6] = (long long)(double)x + (long long)(float)y;
}

KERNEL halves(__half2 *a, const __half2 *b, __half *c)
{
    int i = THREAD;
    __half2 x = a[i], y = b[i];
    a[i] = __hfma2(x, y, x);
    a[i + 1] = __hadd2(x, y);
    a[i + 2] = __hmul2(x, y);
    a[i + 3] = __hmax2(__hmin2(x, y), y);
    a[i + 4] = h2exp2(x);
    a[i + 5] = __hgt2(x, y);
    a[i + 6] = h2tanh(x);
    c[i] = __hfma(c[i], c[i + 1], c[i + 2]);
    c[i + 1] = hsqrt(c[i]) + hrcp(c[i]);
    c[i + 2] = __heq(c[i], c[i + 1]) ? c[i + 4] : c[i + 5];
    a[i + 7] = __hfma2_relu(x, y, x);
    a[i + 8] = __hadd2_sat(x, y);
}

#if __CUDA_ARCH__ >= 800
KERNEL brain_floats(__nv_bfloat162 *a, const __nv_bfloat162 *b, __nv_bfloat16 *c)
{
    int i = THREAD;
    __nv_bfloat162 x = a[i], y = b[i];
    a[i] = __hfma2(x, y, x);
    a[i + 1] = __hadd2(x, y);
    a[i + 2] = __hmul2(x, y);
    a[i + 3] = __hmax2(x, y);
    a[i + 4] = __floats2bfloat162_rn(1.5f, (float)c[i]);
    c[i] = __hgt(c[i], c[i + 1]) ? c[i] : c[i + 1];
}
#endif

#define CONVERT(name, from, to)                                                                    \
    KERNEL convert_##name(const from *a, to *b) { b[THREAD] = (to)a[THREAD]; }
CONVERT(f32_f16, float, __half)
CONVERT(f16_f32, __half, float)
CONVERT(f32_bf16, float, __nv_bfloat16)
CONVERT(f32_s32, float, int)
CONVERT(u32_f32, unsigned, float)
CONVERT(s8_f32, int8_t, float)
CONVERT(f32_u8, float, uint8_t)
CONVERT(f64_f32, double, float)
CONVERT(s64_f64, long long, double)
CONVERT(f32_e4m3, float, __nv_fp8_e4m3)
CONVERT(e5m2_f32, __nv_fp8_e5m2, float)
CONVERT(f16_s32, __half, int)
CONVERT(s32_f16, int, __half)
CONVERT(s64_f32, long long, float)

KERNEL predicates(const float *a, const int *b, float *out)
{
    int i = THREAD;
    bool p = a[i] > 1.0f, q = b[i] < 3, r = (p && q) || b[i + 1] == 4;
    bool s = p ^ q ^ r;
    out[i] = s ? a[i + 2] : r ? a[i + 3] : 5.0f;
    if (p && !r)
        out[i + 1] = 2.0f;
}
