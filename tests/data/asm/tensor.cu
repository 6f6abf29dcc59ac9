// mma.sync of every type and shape that ptxas takes for the architecture.

#include <cstdint>
#include <mma.h>

#define KERNEL extern "C" __global__ void
#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)

// D[d] += A[a] * B[b], in a loop, so that tensor work per trip can be checked.
#define REGISTERS_1(x, v) x(v[0])
#define REGISTERS_2(x, v) x(v[0]), x(v[1])
#define REGISTERS_4(x, v) x(v[0]), x(v[1]), x(v[2]), x(v[3])
#define INOUT(v) "+r"(v)
#define INPUT(v) "r"(v)
#define MMA(name, text, a_count, b_count, d_count)                                                 \
    KERNEL mma_##name(const unsigned *in, unsigned *out, int n)                                    \
    {                                                                                              \
        unsigned a[4], b[4], d[4];                                                                 \
        for (int i = 0; i < 4; i++)                                                                \
            d[i] = out[THREAD + i], a[i] = in[THREAD + i], b[i] = in[THREAD + 9 + i];              \
        _Pragma("unroll 1") for (int k = 0; k < n; k++)                                            \
        {                                                                                          \
            asm volatile(text : REGISTERS_##d_count(INOUT, d) : REGISTERS_##a_count(INPUT, a),     \
                         REGISTERS_##b_count(INPUT, b));                                           \
        }                                                                                          \
        for (int i = 0; i < 4; i++)                                                                \
            out[THREAD + i] = d[i];                                                                \
    }
#define D4_A4_B2 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
#define D4_A2_B1 "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
#define D2_A2_B1 "{%0,%1}, {%2,%3}, {%4}, {%0,%1};"
#define D2_A4_B2 "{%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"
#define D2_A1_B1 "{%0,%1}, {%2}, {%3}, {%0,%1};"

MMA(f16_k8, "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 " D4_A2_B1, 2, 1, 4)
MMA(f16_k8_f16, "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 " D2_A2_B1, 2, 1, 2)
MMA(s8_k16_m8, "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 " D2_A1_B1, 1, 1, 2)
MMA(s4_k32_m8, "mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32 " D2_A1_B1, 1, 1, 2)
MMA(b1_k128_m8, "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc " D2_A1_B1, 1, 1, 2)

#if __CUDA_ARCH__ >= 800
MMA(f16_k16, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " D4_A4_B2, 4, 2, 4)
MMA(f16_k16_f16, "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 " D2_A4_B2, 4, 2, 2)
MMA(bf16_k8, "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 " D4_A2_B1, 2, 1, 4)
MMA(bf16_k16, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 " D4_A4_B2, 4, 2, 4)
MMA(tf32_k4, "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 " D4_A2_B1, 2, 1, 4)
MMA(tf32_k8, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 " D4_A4_B2, 4, 2, 4)
MMA(s8_k16, "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 " D4_A2_B1, 2, 1, 4)
MMA(s8_k32, "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 " D4_A4_B2, 4, 2, 4)
MMA(u4_k32, "mma.sync.aligned.m16n8k32.row.col.s32.u4.u4.s32 " D4_A2_B1, 2, 1, 4)
MMA(s4_k64, "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 " D4_A4_B2, 4, 2, 4)
MMA(b1_k128, "mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.and.popc " D4_A2_B1, 2, 1, 4)
MMA(b1_k256, "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc " D4_A4_B2, 4, 2, 4)

KERNEL mma_f64(const double *in, double *out, int n)
{
    double c[2] = {out[THREAD], out[THREAD + 1]}, a = in[THREAD], b = in[THREAD + 1];
#pragma unroll 1
    for (int k = 0; k < n; k++)
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1},{%2},{%3},{%0,%1};"
                     : "+d"(c[0]), "+d"(c[1])
                     : "d"(a), "d"(b));
    out[THREAD] = c[0] + c[1];
}

#define SPARSE(name, text, a_count, b_count)                                                       \
    KERNEL mma_sparse_##name(const unsigned *in, unsigned *out, int n)                             \
    {                                                                                              \
        unsigned a[4], b[4], d[4], e = in[5];                                                      \
        for (int i = 0; i < 4; i++)                                                                \
            d[i] = out[THREAD + i], a[i] = in[THREAD + i], b[i] = in[THREAD + 9 + i];              \
        _Pragma("unroll 1") for (int k = 0; k < n; k++)                                            \
        {                                                                                          \
            asm volatile(text                                                                      \
                         : REGISTERS_4(INOUT, d)                                                   \
                         : REGISTERS_##a_count(INPUT, a), REGISTERS_##b_count(INPUT, b), "r"(e));  \
        }                                                                                          \
        for (int i = 0; i < 4; i++)                                                                \
            out[THREAD + i] = d[i];                                                                \
    }
SPARSE(f16_k32,
       "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 "
       "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0;",
       4, 4)
SPARSE(f16_k16,
       "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
       "{%0,%1,%2,%3}, {%4,%5}, {%6,%7}, {%0,%1,%2,%3}, %8, 0x0;",
       2, 2)
SPARSE(s8_k64,
       "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32 "
       "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0;",
       4, 4)
SPARSE(tf32_k16,
       "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32 "
       "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0;",
       4, 4)
#endif

#if __CUDA_ARCH__ >= 890
MMA(e4m3_k32, "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 " D4_A4_B2, 4, 2, 4)
MMA(e5m2_k32, "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32 " D4_A4_B2, 4, 2, 4)
MMA(e4m3_k16, "mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e4m3.f32 " D4_A2_B1, 2, 1, 4)
SPARSE(e4m3_k64,
       "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32 "
       "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0;",
       4, 4)
#endif

#if __CUDA_ARCH__ >= 900
KERNEL mma_f64_k16(const double *in, double *out, int n)
{
    double c[4], a[8], b[4];
    for (int i = 0; i < 8; i++)
        a[i] = in[THREAD + i], b[i / 2] = in[THREAD + 40 + i], c[i / 2] = out[i];
#pragma unroll 1
    for (int k = 0; k < n; k++)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3},"
                     "{%4,%5,%6,%7,%8,%9,%10,%11},{%12,%13,%14,%15},{%0,%1,%2,%3};"
                     : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
                     : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]),
                       "d"(a[6]), "d"(a[7]), "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
    out[THREAD] = c[0] + c[1] + c[2] + c[3];
}
KERNEL store_matrices(unsigned *in)
{
    __shared__ uint4 tile[64];
    unsigned at = (unsigned)__cvta_generic_to_shared(tile + threadIdx.x);
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(at),
                 "r"(in[1]), "r"(in[2]), "r"(in[3]), "r"(in[4]));
    __syncthreads();
    in[THREAD] = tile[threadIdx.x ^ 1].x;
}
#endif

#if __CUDA_ARCH__ >= 1200
MMA(e2m1_k32, "mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.e2m1.e3m2.f32 " D4_A4_B2, 4, 2, 4)
KERNEL mma_scaled(const unsigned *in, unsigned *out, int n)
{
    unsigned a[4], b[2], d[4];
    for (int i = 0; i < 4; i++)
        d[i] = out[THREAD + i], a[i] = in[THREAD + i], b[i & 1] = in[THREAD + 9 + i];
#pragma unroll 1
    for (int k = 0; k < n; k++)
        asm volatile("mma.sync.aligned.kind::mxf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32."
                     "e2m1.e2m1.f32.ue8m0 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3},"
                     "%10,{0,0},%11,{0,0};"
                     : REGISTERS_4(INOUT, d)
                     : REGISTERS_4(INPUT, a), REGISTERS_2(INPUT, b), "r"(in[3]), "r"(in[7]));
    for (int i = 0; i < 4; i++)
        out[THREAD + i] = d[i];
}
#endif

using namespace nvcuda;
KERNEL wmma_product(const half *a, const half *b, float *c, int n)
{
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
    wmma::fill_fragment(sums, 0.0f);
    for (int k = 0; k < n; k += 16) {
        wmma::load_matrix_sync(left, a + k, n);
        wmma::load_matrix_sync(right, b + k, n);
        wmma::mma_sync(sums, left, right, sums);
    }
    wmma::store_matrix_sync(c, sums, n, wmma::mem_row_major);
}

KERNEL wmma_bytes(const signed char *a, const signed char *b, int *c, int n)
{
    wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> sums;
    wmma::fill_fragment(sums, 0);
    for (int k = 0; k < n; k += 16) {
        wmma::load_matrix_sync(left, a + k, n);
        wmma::load_matrix_sync(right, b + k, n);
        wmma::mma_sync(sums, left, right, sums);
    }
    wmma::store_matrix_sync(c, sums, n, wmma::mem_row_major);
}
