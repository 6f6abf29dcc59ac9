// Instructions that kernels of operators rarely hold: textures, surfaces, votes on predicates,
// video arithmetic, shapes of products and copies that no other file here asks for.

#include <cstdint>
#include <cuda_fp16.h>

#define KERNEL extern "C" __global__ void
#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)
#define AT(x) (unsigned)__cvta_generic_to_shared(x)

KERNEL textures(cudaTextureObject_t t, float *out)
{
    float x = out[THREAD], y = out[THREAD + 1];
    float sum = tex1Dfetch<float>(t, (int)x) + tex2D<float>(t, x, y) + tex3D<float>(t, x, y, x);
    sum += tex2DLod<float>(t, x, y, 1.0f) + tex2DLayered<float>(t, x, y, 3);
    sum += tex2DGrad<float>(t, x, y, make_float2(x, y), make_float2(y, x));
    float4 gathered = tex2Dgather<float4>(t, x, y, 1);
    sum += texCubemap<float>(t, x, y, sum) + gathered.x + gathered.w;
    int width;
    asm volatile("txq.width.b32 %0, [%1];" : "=r"(width) : "l"(t));
    out[THREAD] = sum + width;
}

KERNEL surfaces(cudaSurfaceObject_t s, int *out)
{
    int x = surf2Dread<int>(s, 4 * threadIdx.x, 3);
    surf2Dwrite(x + 1, s, 4 * threadIdx.x, 5);
    asm volatile("sured.b.2d.add.u32.clamp [%0, {%1, %2}], %3;" ::"l"(s), "r"(x), "r"(0), "r"(x));
    int width;
    asm volatile("suq.width.b32 %0, [%1];" : "=r"(width) : "l"(s));
    out[THREAD] = x + width;
}

KERNEL odd_arithmetic(unsigned *a, int *b)
{
    int i = THREAD;
    unsigned x = a[i], y = a[i + 1], z;
    asm volatile("bfe.u32 %0, %1, %2, 5;" : "=r"(z) : "r"(x), "r"(y));
    a[i] = z;
    asm volatile("bfi.b32 %0, %1, %2, 7, %1;" : "=r"(z) : "r"(x), "r"(y));
    a[i + 1] = z;
    asm volatile("bmsk.clamp.b32 %0, %1, %2;" : "=r"(z) : "r"(x), "r"(y));
    a[i + 2] = z;
    asm volatile("szext.clamp.s32 %0, %1, %2;" : "=r"(z) : "r"(x), "r"(y));
    a[i + 3] = z;
    asm volatile("fns.b32 %0, %1, %2, 3;" : "=r"(z) : "r"(x), "r"(y));
    a[i + 4] = z;
    asm volatile("vmad.u32.u32.u32 %0, %1.b1, %2.b2, %1;" : "=r"(z) : "r"(x), "r"(y));
    a[i + 5] = z;
    asm volatile("mad.lo.cc.u32 %0, %1, %2, 9; \n addc.u32 %0, %0, 1;" : "=r"(z) : "r"(x), "r"(y));
    a[i + 6] = z;
    asm volatile("{ .reg .pred p; isspacep.shared p, %1; selp.u32 %0, 1, 0, p; }"
                 : "=r"(z)
                 : "l"(a));
    a[i + 7] = z;
    asm volatile("{ .reg .pred p; isspacep.local p, %1; selp.u32 %0, 1, 0, p; }"
                 : "=r"(z)
                 : "l"(a));
    a[i + 8] = z + __popcll(((uint64_t)x << 32) | y) + __brev(x) + __clz(__brev(y));
    asm volatile("pmevent 3;");
    asm volatile("brkpt;");
    b[i] = __syncthreads_and(x > 4) + __any_sync(x, y > 3) + __uni_sync(~0u, x > 9);
}

KERNEL uniform_arithmetic(const int *a, float *out, int n, unsigned m, float x)
{
    int total = 0;
    for (int i = 0; i < n; i++)
        total += (i * m) >> (n & 7) ^ __popc(i) ^ __clz(m + i) ^ min(i, (int)m) ^ (i / 3) ^ abs(n - i);
    out[blockIdx.x * n + total] = a[n] + (float)n * x + (float)m + floorf(x) + fmaxf(x, n);
    if (n > 9 && m < 7 && (n ^ m) != 5 && x > 2.0f)
        out[m] = x * x + 1.0f;
}

// The same in every thread: newer architectures have floating point for that.
KERNEL uniform_floats(float *out, float x, float y, int n, unsigned m)
{
    float z = x * y, w = fmaf(x, y, 3.0f), u = x + y;
    if (z > 4.0f && w < 9.0f)
        u = fmaxf(u, z) + truncf(w);
    u = u > 1.0f ? z - w : floorf(x) * (float)n;
    for (int i = 0; i < (int)u; i++) {
        out[i * (int)w] = z;
        u -= y * (float)m;
        w = fminf(w, u) + fabsf(z) * (float)(i & 7);
    }
    out[(unsigned)z] = w;
}

KERNEL local_widths(const uint4 *in, uint4 *out, int n)
{
    uint4 wide[8];
    unsigned char bytes[40];
    short halves[20];
    for (int i = 0; i < 8; i++)
        wide[i] = in[i * n];
    for (int i = 0; i < 40; i++)
        bytes[i] = (unsigned char)in[i].x, halves[i / 2] = (short)in[i].y;
    out[THREAD] = wide[n & 7];
    out[THREAD + 1].x = bytes[n % 40] + halves[n % 20];
}

#if __CUDA_ARCH__ >= 800
KERNEL cache_hints(const int *a, int *b)
{
    asm volatile("discard.global.L2 [%0], 128;" ::"l"(b));
    asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(b));
    asm volatile("prefetch.global.L1 [%0];" ::"l"(a));
    asm volatile("prefetchu.L1 [%0];" ::"l"(a));
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(0), "l"(a), "r"(b[0]));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(16), "l"(a));
    asm volatile("cp.async.wait_group 0;");
    asm volatile("fence.proxy.alias;");
    asm volatile("fence.sc.gpu;");
}
#endif

#if __CUDA_ARCH__ >= 900
#define DMMA(name, shape, count_a, count_b)                                                        \
    KERNEL double_product_##name(const double *in, double *out)                                    \
    {                                                                                              \
        double c[4] = {out[0], out[1], out[2], out[3]};                                            \
        const double *a = in + THREAD, *b = a + 8;                                                 \
        asm volatile("mma.sync.aligned." shape ".row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, "          \
                     count_a ", {%0,%1,%2,%3};"                                                    \
                     : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])                              \
                     : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));          \
        out[THREAD] = c[0] + c[1] + c[2] + c[3];                                                   \
    }
DMMA(k4, "m16n8k4", "{%4,%5}, {%8}", 1)
DMMA(k8, "m16n8k8", "{%4,%5,%6,%7}, {%8,%9}", 2)

KERNEL multicast_memory(float *a, float *out)
{
    float x;
    asm volatile("multimem.ld_reduce.relaxed.gpu.global.add.f32 %0, [%1];" : "=f"(x) : "l"(a));
    asm volatile("multimem.red.relaxed.gpu.global.add.f32 [%0], %1;" ::"l"(a), "f"(x));
    asm volatile("multimem.st.relaxed.gpu.global.f32 [%0], %1;" ::"l"(a + 4), "f"(x));
    out[THREAD] = x;
}

KERNEL other_copies(const void *map, const uint64_t *in, uint64_t *out)
{
    __shared__ alignas(1024) uint64_t tile[512];
    __shared__ uint64_t full;
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %3, %3, %3}], [%2], {%4, %4};" ::"r"(AT(tile)),
                 "l"(map), "r"(AT(&full)), "r"(1), "h"((uint16_t)2));
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
                 "[%0], [%1], 64, [%2];" ::"r"(AT(tile)),
                 "r"(AT(tile + 64)), "r"(AT(&full)));
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 "
                 "[%0], %1, [%2];" ::"r"(AT(tile)),
                 "r"(5), "r"(AT(&full)));
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(((unsigned *)out)[0]) : "l"(in[0]));
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map));
    asm volatile("fence.acq_rel.cluster;");
    out[THREAD] = tile[threadIdx.x];
}
#endif

#if __CUDA_ARCH__ >= 1000
KERNEL next_work(uint4 *out)
{
    __shared__ alignas(16) uint4 answer;
    __shared__ uint64_t full;
    asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 "
                 "[%0], [%1];" ::"r"(AT(&answer)),
                 "r"(AT(&full)));
    out[THREAD] = answer;
}

KERNEL clear_shared(uint4 *out)
{
    __shared__ alignas(16) uint4 tile[64];
    asm volatile("st.bulk.weak.shared::cta [%0], 1024, 0;" ::"r"(AT(tile)));
    out[THREAD] = tile[threadIdx.x];
}
#endif

#if defined __CUDA_ARCH_FEAT_SM100_ALL
KERNEL reduce_floats(float *a)
{
    float x;
    asm volatile("redux.sync.max.f32 %0, %1, 0xffffffff;" : "=f"(x) : "f"(a[THREAD]));
    a[THREAD] = x;
}

KERNEL pair_products(const uint64_t *in, float *out, unsigned kind, unsigned memory)
{
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %3, 0;\n"
                 "tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, p;\n"
                 "tcgen05.mma.cta_group::2.kind::tf32 [%0], [%0], %2, %3, p;\n"
                 "tcgen05.mma.cta_group::2.kind::f8f6f4.collector::a::fill [%0], %1, %2, %3, p;\n"
                 "tcgen05.mma.cta_group::2.kind::i8 [%0], [%0], %2, %3, p;\n"
                 "tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.block16 [%0], %1, %2, %3, "
                 "[%4], [%4], p;\n"
                 "tcgen05.mma.sp.cta_group::2.kind::mxf4.block_scale.block32 [%0], %1, %2, [%4], %3, "
                 "[%4], [%4], p;\n"
                 "tcgen05.mma.sp.cta_group::2.kind::i8 [%0], %1, %2, [%4], %3, p;\n"
                 "tcgen05.mma.sp.cta_group::2.kind::mxf8f6f4.block_scale [%0], %1, %2, [%4], %3, "
                 "[%4], [%4], p; }" ::"r"(memory),
                 "l"(in[0]), "l"(in[1]), "r"(kind), "r"(memory + 32));
    asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster"
                 ".b64 [%0], %1;" ::"r"(memory),
                 "h"((uint16_t)3));
    asm volatile("tcgen05.cp.cta_group::2.4x256b.b8x16.b4x16_p64 [%0], %1;" ::"r"(memory), "l"(in[2]));
    asm volatile("tcgen05.cp.cta_group::2.64x128b.warpx2::02_13 [%0], %1;" ::"r"(memory), "l"(in[3]));
    out[THREAD] = memory;
}
#endif

#if __CUDA_ARCH__ >= 1200
#define SCALED(name, text, a, b)                                                                   \
    KERNEL scaled_##name(const unsigned *in, unsigned *out)                                        \
    {                                                                                              \
        unsigned d[4] = {out[0], out[1], out[2], out[3]};                                          \
        const unsigned *p = in + THREAD;                                                           \
        asm volatile("mma" text " {%0,%1,%2,%3},{%4,%5,%6,%7}," b                                  \
                     : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                              \
                     : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "r"(p[4]), "r"(p[5]), "r"(p[6]),\
                       "r"(p[7]), "r"(p[8]));                                                      \
        out[THREAD] = d[0] + d[1] + d[2] + d[3];                                                   \
    }
SCALED(f8, ".sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e5m2."
           "f32.ue8m0", 4, "{%8,%9},{%0,%1,%2,%3},%10,{0,0},%11,{0,0};")
SCALED(f4, ".sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1."
           "f32.ue4m3", 4, "{%8,%9},{%0,%1,%2,%3},%10,{0,0},%11,{0,0};")
SCALED(f4_sparse, ".sp::ordered_metadata.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X."
                  "m16n8k128.row.col.f32.e2m1.e2m1.f32.ue4m3", 4,
       "{%8,%9,%10,%11},{%0,%1,%2,%3},%12,0,%10,{0,0},%11,{0,0};")
SCALED(f8_sparse, ".sp::ordered_metadata.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X."
                  "m16n8k64.row.col.f32.e4m3.e5m2.f32.ue8m0", 4,
       "{%8,%9,%10,%11},{%0,%1,%2,%3},%12,0,%10,{0,0},%11,{0,0};")
#endif

// Volta's shape, which Turing still has: one product is four instructions, or two with f16 sums.
#if __CUDA_ARCH__ < 800
KERNEL old_product(unsigned *a, float *out)
{
    unsigned x = a[THREAD], y = a[THREAD + 32], h[4] = {};
    float f[8] = {};
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%0,%1,%2,%3,%4,%5,%6,%7},"
                 "{%8,%9},{%9,%8},{%0,%1,%2,%3,%4,%5,%6,%7};"
                 : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3]), "+f"(f[4]), "+f"(f[5]),
                   "+f"(f[6]), "+f"(f[7])
                 : "r"(x), "r"(y));
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16 {%0,%1,%2,%3},{%4,%5},{%5,%4},"
                 "{%0,%1,%2,%3};"
                 : "+r"(h[0]), "+r"(h[1]), "+r"(h[2]), "+r"(h[3])
                 : "r"(x), "r"(y));
    for (int i = 0; i < 4; i++)
        out[8 * THREAD + i] = f[i] + f[i + 4] + h[i];
}
#endif
