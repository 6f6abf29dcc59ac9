// Loads and stores of every width and space, atomics, lanes, asynchronous copies.
// Compiled by tools/sass_evidence.py; nothing here is ever launched.

#include <cstdint>

#define KERNEL extern "C" __global__ void
#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)

#define COPY(name, type)                                                                           \
    KERNEL copy_##name(const type *__restrict__ in, type *out, int n)                              \
    {                                                                                              \
        for (int i = THREAD; i < n; i += gridDim.x * blockDim.x)                                   \
            out[i] = in[i];                                                                        \
    }
COPY(u8, uint8_t)
COPY(s16, int16_t)
COPY(u32, uint32_t)
COPY(u64, uint64_t)
COPY(u128, uint4)

KERNEL copy_qualified(volatile int *a, const int *__restrict__ b, int *c)
{
    int i = THREAD, x, y, z;
    asm volatile("ld.global.nc.L1::no_allocate.b32 %0, [%1];" : "=r"(x) : "l"(b + i));
    asm volatile("ld.relaxed.gpu.global.b32 %0, [%1];" : "=r"(y) : "l"(c + i));
    asm volatile("ld.acquire.sys.global.b32 %0, [%1];" : "=r"(z) : "l"(c + i + 1));
    asm volatile("prefetch.global.L2 [%0];" ::"l"(b + i + 64));
    asm volatile("st.release.gpu.global.b32 [%0], %1;" ::"l"(c + i), "r"(x + y + z + a[i]));
    __threadfence();
    __threadfence_system();
    __threadfence_block();
}

KERNEL transpose(const float *in, float *out, int n)
{
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    out[(blockIdx.x * 32 + threadIdx.y) * n + blockIdx.y * 32 + threadIdx.x] =
        tile[threadIdx.x][threadIdx.y];
}

KERNEL dynamic_shared(const double *in, double *out)
{
    extern __shared__ double buffer[];
    buffer[threadIdx.x] = in[THREAD];
    __syncthreads();
    out[THREAD] = buffer[blockDim.x - 1 - threadIdx.x];
}

KERNEL shared_widths(const uint4 *in, uint4 *out)
{
    __shared__ uint4 wide[128];
    __shared__ uint8_t narrow[256];
    __shared__ uint64_t eight[64];
    wide[threadIdx.x] = in[THREAD];
    narrow[threadIdx.x] = in[THREAD].x;
    eight[threadIdx.x & 63] = in[THREAD].y;
    __syncthreads();
    uint4 value = wide[threadIdx.x ^ 5];
    value.x += narrow[255 - threadIdx.x] + eight[threadIdx.x & 31];
    out[THREAD] = value;
}

__constant__ float coefficients[64];
KERNEL constants(float *out, int k)
{
    out[THREAD] = coefficients[5] + coefficients[(k + threadIdx.x) & 63];
}

KERNEL atomics(int *a, unsigned long long *b, float *c, unsigned *d, double *e)
{
    int i = THREAD;
    atomicAdd(a + i, 3);
    b[i] = atomicAdd(b, 5ull);
    atomicAdd(c + i, 1.5f);
    c[i + 1] = atomicAdd(c, 2.5f);
    d[i] = atomicCAS(d, 1u, 2u) + atomicExch(d + 1, 7u) + atomicInc(d + 2, 9u);
    a[i] = atomicMin(a, i) + atomicMax(a + 1, i) + atomicAnd(a + 2, i) + atomicXor(a + 3, i);
    atomicAdd(e, 1.0);
    b[i + 7] = atomicCAS(b + 2, 1ull, 4ull);
}

KERNEL atomics_shared(int *out, float *sums)
{
    __shared__ int bins[256];
    __shared__ float totals[8];
    __shared__ unsigned long long wide;
    bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&bins[out[THREAD] & 255], 1);
    atomicAdd(&totals[threadIdx.x & 7], sums[THREAD]);
    atomicMax(&wide, (unsigned long long)out[THREAD + 1]);
    out[THREAD + 5] = atomicCAS(&bins[3], 4, 5);
    __syncthreads();
    out[THREAD] = bins[threadIdx.x] + (int)wide;
    sums[THREAD] = totals[threadIdx.x & 7];
}

KERNEL atomics_generic(int *flat, float *values, int which)
{
    __shared__ int inside[32];
    int *pointer = which ? flat : inside;
    atomicAdd(pointer + (threadIdx.x & 31), 1);
    flat[THREAD] = atomicAdd(pointer, 2) + *pointer;
    pointer[threadIdx.x & 7] = which;
}

KERNEL lanes(const int *in, int *out)
{
    int x = in[THREAD];
    x += __shfl_xor_sync(~0u, x, 16);
    x += __shfl_down_sync(~0u, x, 8);
    x += __shfl_up_sync(~0u, x, 4);
    x += __shfl_sync(~0u, x, in[0]);
    x += __ballot_sync(~0u, x > 3);
    x += __any_sync(~0u, x == 9) + __all_sync(~0u, x != 2);
    x += __match_any_sync(~0u, x);
    int all;
    x += __match_all_sync(~0u, x, &all) + all;
    x += __activemask();
    __syncwarp(0xffff);
    out[THREAD] = x;
}

KERNEL barriers(int *out)
{
    __shared__ int x;
    if (threadIdx.x == 0)
        x = out[0];
    asm volatile("bar.sync 1, 64;");
    asm volatile("bar.arrive 2, 128;");
    asm volatile("barrier.sync 3;");
    out[THREAD] = x + __syncthreads_count(x) + __syncthreads_or(out[1]);
    asm volatile("bar.sync %0, 96;" ::"r"(out[3]));
}

KERNEL clocks(long long *out)
{
    out[THREAD] = clock64();
    out[THREAD + 1] = clock();
    unsigned sm, lane;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    unsigned long long timer;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(timer));
    out[THREAD + 2] = sm + lane + timer;
    __nanosleep(100);
}

#if __CUDA_ARCH__ >= 750
KERNEL load_matrices(const uint4 *in, unsigned *out)
{
    __shared__ uint4 tile[64];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    unsigned at = (unsigned)__cvta_generic_to_shared(tile + threadIdx.x), a, b, c, d;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                 : "r"(at));
    out[THREAD] = a + b + c + d;
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(a), "=r"(b)
                 : "r"(at));
    out[THREAD + 32] = a + b;
}
#endif

#if __CUDA_ARCH__ >= 800
KERNEL copies_ahead(const float4 *in, float4 *out, int n)
{
    __shared__ float4 stage[3][128];
    unsigned to = (unsigned)__cvta_generic_to_shared(&stage[0][threadIdx.x]);
    for (int i = 0; i < n; i++) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + (i % 3) * 2048),
                     "l"(in + i * 128 + threadIdx.x));
        asm volatile("cp.async.commit_group;");
        asm volatile("cp.async.wait_group 1;");
        __syncthreads();
        out[i * 128 + threadIdx.x] = stage[(i + 2) % 3][127 - threadIdx.x];
    }
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(in));
    asm volatile("cp.async.wait_all;");
    out[0] = stage[0][0];
}

KERNEL reduce_lanes(const int *in, int *out)
{
    out[THREAD] = __reduce_add_sync(~0u, in[THREAD]) + __reduce_max_sync(~0u, in[THREAD]) +
                  __reduce_xor_sync(~0u, (unsigned)in[THREAD]);
}

KERNEL policies(const int *in, int *out)
{
    uint64_t policy;
    int x;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("ld.global.L2::cache_hint.b32 %0, [%1], %2;"
                 : "=r"(x)
                 : "l"(in + THREAD), "l"(policy));
    out[THREAD] = x;
}

KERNEL barriers_in_memory(int *out)
{
    __shared__ uint64_t barrier;
    unsigned at = (unsigned)__cvta_generic_to_shared(&barrier);
    uint64_t state;
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at), "r"(64));
    __syncthreads();
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(at));
    int done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; "
                     "selp.b32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(at), "l"(state));
    out[THREAD] = done;
    asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" ::"r"(at));
    asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(at));
}
#endif
