// What came with sm_100a: tensor memory, its products and copies; and packed f32 arithmetic.

#include <cstdint>

#define KERNEL extern "C" __global__ void
#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)
#define AT(x) (unsigned)__cvta_generic_to_shared(x)

#if __CUDA_ARCH__ >= 1000
KERNEL packed_floats(const uint64_t *in, uint64_t *out)
{
    uint64_t a = in[THREAD], b = in[THREAD + 1], c;
    asm volatile("fma.rn.f32x2 %0, %1, %2, %1;" : "=l"(c) : "l"(a), "l"(b));
    out[THREAD] = c;
    asm volatile("add.rn.f32x2 %0, %1, %2;" : "=l"(c) : "l"(a), "l"(b));
    out[THREAD + 1] = c;
    asm volatile("mul.rn.f32x2 %0, %1, %2;" : "=l"(c) : "l"(a), "l"(b));
    out[THREAD + 2] = c;
}

KERNEL three_inputs(const float *in, float *out)
{
    float x;
    asm volatile("max.f32 %0, %1, %2, %3;"
                 : "=f"(x)
                 : "f"(in[THREAD]), "f"(in[THREAD + 1]), "f"(in[THREAD + 2]));
    out[THREAD] = x;
}
#endif

#if defined __CUDA_ARCH_FEAT_SM100_ALL
KERNEL wide_loads(const uint64_t *in, uint64_t *out)
{
    uint64_t a, b, c, d;
    asm volatile("ld.global.v4.b64 {%0,%1,%2,%3}, [%4];"
                 : "=l"(a), "=l"(b), "=l"(c), "=l"(d)
                 : "l"(in + THREAD * 4));
    asm volatile("st.global.v4.b64 [%0], {%1,%2,%3,%4};" ::"l"(out + THREAD * 4), "l"(b), "l"(a),
                 "l"(d), "l"(c));
}

#define PRODUCT(name, text)                                                                        \
    KERNEL product_##name(const uint64_t *in, float *out, unsigned kind, int n)                    \
    {                                                                                              \
        __shared__ unsigned memory;                                                                \
        __shared__ uint64_t done;                                                                  \
        if (threadIdx.x < 32)                                                                      \
            asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 128;" ::   \
                             "r"(AT(&memory)));                                                    \
        __syncthreads();                                                                           \
        asm volatile("tcgen05.fence::after_thread_sync;");                                         \
        if (threadIdx.x == 0) {                                                                    \
            _Pragma("unroll 1") for (int i = 0; i < n; i++) asm volatile(                          \
                "{ .reg .pred p; setp.ne.u32 p, %4, 0; " text " }" ::"r"(memory), "l"(in[0] + i),  \
                "l"(in[1] + i), "r"(kind), "r"(i), "r"(memory + 64));                              \
            asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 "  \
                         "[%0];" ::"r"(AT(&done)));                                                \
        }                                                                                          \
        asm volatile("{ .reg .pred p;\n"                                                           \
                     "again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n"               \
                     "@!p bra again; }" ::"r"(AT(&done)));                                         \
        float a, b, c, d;                                                                          \
        asm volatile("tcgen05.ld.sync.aligned.32x32b.x4.b32 {%0,%1,%2,%3}, [%4];"                  \
                     : "=f"(a), "=f"(b), "=f"(c), "=f"(d)                                          \
                     : "r"(memory));                                                               \
        asm volatile("tcgen05.wait::ld.sync.aligned;");                                            \
        out[THREAD] = a + b + c + d;                                                               \
        asm volatile("tcgen05.fence::before_thread_sync;");                                        \
        __syncthreads();                                                                           \
        if (threadIdx.x < 32)                                                                      \
            asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 128;" ::"r"(memory));  \
    }
PRODUCT(f16, "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;")
PRODUCT(tf32, "tcgen05.mma.cta_group::1.kind::tf32 [%0], %1, %2, %3, p;")
PRODUCT(f8, "tcgen05.mma.cta_group::1.kind::f8f6f4 [%0], %1, %2, %3, p;")
PRODUCT(s8, "tcgen05.mma.cta_group::1.kind::i8 [%0], %1, %2, %3, p;")
PRODUCT(f16_memory, "tcgen05.mma.cta_group::1.kind::f16 [%0], [%5], %2, %3, p;")
PRODUCT(mxf8, "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%0], %1, %2, %3, [%5], [%5], p;")
PRODUCT(mxf4, "tcgen05.mma.cta_group::1.kind::mxf4.block_scale [%0], %1, %2, %3, [%5], [%5], p;")
PRODUCT(nvf4, "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16 [%0], %1, %2, %3, [%5], "
              "[%5], p;")
PRODUCT(sparse, "tcgen05.mma.sp.cta_group::1.kind::f16 [%0], %1, %2, [%5], %3, p;")
PRODUCT(ws, "tcgen05.mma.ws.cta_group::1.kind::f16 [%0], %1, %2, %3, p;")

KERNEL tensor_memory(const uint64_t *in, const float *values, float *out, unsigned at)
{
    asm volatile("tcgen05.cp.cta_group::1.128x256b [%0], %1;" ::"r"(at), "l"(in[0]));
    asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(at), "l"(in[1]));
    asm volatile("tcgen05.shift.cta_group::1.down [%0];" ::"r"(at));
    asm volatile("tcgen05.st.sync.aligned.32x32b.x2.b32 [%0], {%1,%2};" ::"r"(at),
                 "f"(values[THREAD]), "f"(values[THREAD + 1]));
    asm volatile("tcgen05.wait::st.sync.aligned;");
    float a, b;
    asm volatile("tcgen05.ld.sync.aligned.16x256b.x1.b32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(a), "=f"(b), "=f"(out[1]), "=f"(out[2])
                 : "r"(at));
    asm volatile("tcgen05.wait::ld.sync.aligned;");
    out[THREAD] = a + b;
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
}
#endif
