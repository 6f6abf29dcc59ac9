// What came with sm_90: clusters, barriers in memory, bulk copies; and sm_90a's warpgroup products.

#include <cstdint>

#define KERNEL extern "C" __global__ void
#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)
#define AT(x) (unsigned)__cvta_generic_to_shared(x)

#if __CUDA_ARCH__ >= 900
#define INIT(barrier, count)                                                                       \
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count))
#define WAIT(barrier, phase)                                                                       \
    asm volatile("{ .reg .pred done;\n"                                                            \
                 "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"               \
                 "@!done bra again; }" ::"r"(barrier),                                             \
                 "r"(phase))
#define EXPECT(barrier, bytes)                                                                     \
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),          \
                 "r"(bytes))

KERNEL bulk_copies(const float *in, float *out, int n)
{
    __shared__ alignas(128) float tile[1024];
    __shared__ uint64_t full;
    if (threadIdx.x == 0)
        INIT(AT(&full), 1);
    __syncthreads();
    for (int i = 0; i < n; i++) {
        if (threadIdx.x == 0) {
            EXPECT(AT(&full), 4096);
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                         "[%0], [%1], 4096, [%2];" ::"r"(AT(tile)),
                         "l"(in + i * 1024), "r"(AT(&full)));
        }
        WAIT(AT(&full), i & 1);
        tile[threadIdx.x] *= 2.0f;
        asm volatile("fence.proxy.async.shared::cta;");
        __syncthreads();
        if (threadIdx.x == 0) {
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 4096;" ::"l"(
                             out + i * 1024),
                         "r"(AT(tile)));
            asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 "
                         "[%0], [%1], 4096;" ::"l"(out),
                         "r"(AT(tile)));
            asm volatile("cp.async.bulk.commit_group;");
            asm volatile("cp.async.bulk.wait_group.read 0;");
        }
        __syncthreads();
    }
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], 4096;" ::"l"(in));
    asm volatile("cp.async.bulk.wait_group 0;");
}

KERNEL tensor_maps(const void *map, float *out, int n)
{
    __shared__ alignas(1024) float tile[4096];
    __shared__ uint64_t full;
    unsigned to = AT(tile), barrier = AT(&full);
    if (threadIdx.x == 0) {
        INIT(barrier, 1);
        asm volatile("fence.mbarrier_init.release.cluster;");
        asm volatile("prefetch.tensormap [%0];" ::"l"(map));
    }
    __syncthreads();
    for (int i = 0; i < n; i++) {
        if (threadIdx.x == 0) {
            EXPECT(barrier, 16384);
#define LOAD(dims, where, ...)                                                                     \
    asm volatile("cp.async.bulk.tensor." dims ".shared::cluster.global.mbarrier::complete_tx"      \
                 "::bytes [%0], [%1, {" where "}], [%2];" ::"r"(to),                               \
                 "l"(map), "r"(barrier), __VA_ARGS__)
            LOAD("1d", "%3", "r"(i));
            LOAD("2d", "%3, %4", "r"(i), "r"(0));
            LOAD("3d", "%3, %4, %3", "r"(i), "r"(0));
            LOAD("5d", "%3, %4, %3, %3, %3", "r"(i), "r"(0));
            asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx"
                         "::bytes.multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(to),
                         "l"(map), "r"(barrier), "r"(i), "r"(0), "h"((uint16_t)3));
        }
        WAIT(barrier, i & 1);
        out[THREAD] += tile[threadIdx.x];
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];"
                     ::"l"(map), "r"(to), "r"(i), "r"(0));
        asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group "
                     "[%0, {%2, %3}], [%1];" ::"l"(map), "r"(to), "r"(i), "r"(0));
        asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];" ::"l"(map),
                     "r"(i), "r"(8));
        asm volatile("cp.async.bulk.commit_group;");
        asm volatile("cp.async.bulk.wait_group 1;");
    }
}

KERNEL __cluster_dims__(2, 1, 1) clusters(const float *in, float *out)
{
    __shared__ float mine[128];
    __shared__ uint64_t full;
    mine[threadIdx.x] = in[THREAD];
    asm volatile("barrier.cluster.arrive.release;");
    asm volatile("barrier.cluster.wait.acquire;");
    unsigned rank, theirs;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(theirs)
                 : "r"(AT(mine + threadIdx.x)), "r"(rank ^ 1));
    float x;
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(x) : "r"(theirs));
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(theirs), "f"(x + 1));
    asm volatile("atom.shared::cluster.add.u32 %0, [%0], 1;" : "+r"(theirs));
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(
                     theirs),
                 "r"(rank), "r"(AT(&full)));
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(theirs));
    asm volatile("barrier.cluster.arrive.relaxed;");
    asm volatile("barrier.cluster.wait;");
    out[THREAD] = x + mine[threadIdx.x ^ 1];
}

KERNEL dependent_launch(const float *in, float *out)
{
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;");
    unsigned chosen;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.b32 %0, 1, 0, p; }"
                 : "=r"(chosen));
    if (chosen)
        out[THREAD] = in[THREAD];
}
#endif

#if defined __CUDA_ARCH_FEAT_SM90_ALL
#define R4(b) "+f"(d[b]), "+f"(d[b + 1]), "+f"(d[b + 2]), "+f"(d[b + 3])
#define R16(b) R4(b), R4(b + 4), R4(b + 8), R4(b + 12)
#define R32 R16(0), R16(16)
#define R128 R32, R16(32), R16(48), R16(64), R16(80), R16(96), R16(112)
#define I4(b) "+r"(d[b]), "+r"(d[b + 1]), "+r"(d[b + 2]), "+r"(d[b + 3])
#define T4 "{%0,%1,%2,%3}"
#define T32                                                                                        \
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,"  \
    "%25,%26,%27,%28,%29,%30,%31}"
#define T128                                                                                       \
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,"  \
    "%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47," \
    "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,%64,%65,%66,%67,%68,%69,%70," \
    "%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93," \
    "%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,"    \
    "%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127}"
#define BEFORE asm volatile("wgmma.fence.sync.aligned;")
#define AFTER                                                                                      \
    asm volatile("wgmma.commit_group.sync.aligned;");                                              \
    asm volatile("wgmma.wait_group.sync.aligned 0;")
#define WGMMA(name, type, count, text, registers)                                                  \
    KERNEL wgmma_##name(const uint64_t *in, type *out, int n)                                      \
    {                                                                                              \
        type d[count] = {};                                                                        \
        uint64_t a = in[0], b = in[1];                                                             \
        BEFORE;                                                                                    \
        _Pragma("unroll 1") for (int i = 0; i < n; i++)                                            \
        {                                                                                          \
            asm volatile("wgmma.mma_async.sync.aligned." text                                      \
                         : registers                                                               \
                         : "l"(a + i), "l"(b + i));                                                \
            asm volatile("wgmma.commit_group.sync.aligned;");                                      \
        }                                                                                          \
        AFTER;                                                                                     \
        for (int i = 0; i < count; i++)                                                            \
            out[THREAD + i * 128] = d[i];                                                          \
    }
WGMMA(f16_n8, float, 4, "m64n8k16.f32.f16.f16 " T4 ", %4, %5, 1, 1, 1, 0, 1;", R4(0))
WGMMA(bf16_n64, float, 32, "m64n64k16.f32.bf16.bf16 " T32 ", %32, %33, 1, 1, 1, 0, 0;", R32)
WGMMA(f16_n256, float, 128, "m64n256k16.f32.f16.f16 " T128 ", %128, %129, 1, 1, 1, 0, 0;", R128)
WGMMA(f16_n16_f16, unsigned, 4, "m64n16k16.f16.f16.f16 " T4 ", %4, %5, 1, 1, 1, 0, 0;", I4(0))
WGMMA(tf32_n64, float, 32, "m64n64k8.f32.tf32.tf32 " T32 ", %32, %33, 1, 1, 1;", R32)
WGMMA(e4m3_n64, float, 32, "m64n64k32.f32.e4m3.e5m2 " T32 ", %32, %33, 1, 1, 1;", R32)
WGMMA(s8_n8, unsigned, 4, "m64n8k32.s32.s8.u8 " T4 ", %4, %5, 1;", I4(0))
WGMMA(b1_n8, unsigned, 4, "m64n8k256.s32.b1.b1.and.popc " T4 ", %4, %5, 1;", I4(0))

// The left side from registers.
KERNEL wgmma_registers(const unsigned *in, const uint64_t *descriptors, float *out)
{
    float d[4] = {};
    unsigned a[4] = {in[THREAD], in[THREAD + 1], in[THREAD + 2], in[THREAD + 3]};
    BEFORE;
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 " T4
                 ", {%4,%5,%6,%7}, %8, 1, 1, 1, 1;"
                 : R4(0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(descriptors[0]));
    AFTER;
    for (int i = 0; i < 4; i++)
        out[THREAD + i * 128] = d[i];
}

KERNEL wgmma_sparse(const unsigned *in, const uint64_t *descriptors, float *out)
{
    float d[4] = {};
    BEFORE;
    asm volatile("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 " T4
                 ", %4, %5, %6, 0, 1, 1, 1, 0, 0;"
                 : R4(0)
                 : "l"(descriptors[0]), "l"(descriptors[1]), "r"(in[0]));
    AFTER;
    for (int i = 0; i < 4; i++)
        out[THREAD + i * 128] = d[i];
}

// Accumulators touched while a product is in flight: ptxas serialises and says so.
KERNEL wgmma_touched(const uint64_t *in, float *out, int n)
{
    float d[4] = {};
    for (int i = 0; i < n; i++) {
        BEFORE;
        asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 " T4
                     ", %4, %5, 1, 1, 1, 0, 0;"
                     : R4(0)
                     : "l"(in[0]), "l"(in[1]));
        d[0] += 1.0f;
        asm volatile("wgmma.commit_group.sync.aligned;");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;");
    for (int i = 0; i < 4; i++)
        out[THREAD + i * 128] = d[i];
}

// A producer that gives registers away and consumers that take them.
KERNEL __launch_bounds__(256, 1) roles(const float *in, float *out, const uint64_t *descriptors)
{
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        out[THREAD] = in[THREAD];
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        float d[32];
        for (int i = 0; i < 32; i++)
            d[i] = in[i * 128 + threadIdx.x];
        BEFORE;
        asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " T32
                     ", %32, %33, 1, 1, 1, 0, 0;"
                     : R32
                     : "l"(descriptors[0]), "l"(descriptors[1]));
        AFTER;
        for (int i = 0; i < 32; i++)
            out[i * 128 + threadIdx.x] = d[i];
    }
}
#endif
