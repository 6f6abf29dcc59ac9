// The kernels of the committed cubins, small.*.cubin: `tools/small_cubins` compiles them and writes
// what ptxas and nvdisasm say of them beside them.

#define KERNEL extern "C" __global__ void
#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)

KERNEL counted(const float *a, float *b)
{
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < 100; i++)
        sum = sum * a[i] + b[i];
    b[THREAD] = sum;
}

KERNEL spilling(const float *a, float *b, int n)
{
    float values[40];
#pragma unroll
    for (int i = 0; i < 40; i++)
        values[i] = a[i * 32 + THREAD];
#pragma unroll 1
    for (int k = 0; k < n; k++)
#pragma unroll
        for (int i = 0; i < 40; i++)
            values[i] = values[i] * b[k] + values[(i * 7 + 3) % 40];
#pragma unroll
    for (int i = 0; i < 40; i++)
        b[i * 32 + THREAD] = values[i];
}

KERNEL __launch_bounds__(128) shared_sum(const double *a, double *b)
{
    __shared__ double parts[128];
    parts[threadIdx.x] = a[THREAD];
    __syncthreads();
    for (int step = 64; step; step /= 2) {
        if (threadIdx.x < step)
            parts[threadIdx.x] += parts[threadIdx.x + step];
        __syncthreads();
    }
    b[blockIdx.x] = parts[0];
}

KERNEL table(const int *a, int *b)
{
    int x = a[THREAD], y = b[THREAD];
    switch (x) {
    case 0: y = y * 3 + 1; break;
    case 1: y = y / 7; break;
    case 2: y ^= 0x1234; b[1] = y; break;
    case 3: y = __popc(y); break;
    case 4: y += a[3]; break;
    case 5: y = y % 11; b[2] = 7; break;
    case 6: y = -y; __threadfence(); break;
    case 7: y = __clz(y) * a[9]; break;
    }
    b[THREAD] = y;
}

KERNEL window(const int *a, int *b, int n)
{
    int last[16], sum = 0;
#pragma unroll 1
    for (int i = 0; i < 16; i++)
        last[i] = a[i * n];
#pragma unroll 1
    for (int i = 0; i < n; i++)
        sum += last[a[i] & 15]++;
    b[THREAD] = sum;
}

KERNEL product(const unsigned *in, unsigned *out, int n)
{
    unsigned a[2] = {in[0], in[1]}, b = in[2], d[4] = {};
#pragma unroll 1
    for (int i = 0; i < n; i++)
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, "
                     "{%6}, {%0,%1,%2,%3};"
                     : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(b));
    for (int i = 0; i < 4; i++)
        out[THREAD + i * 32] = d[i];
}

#if __CUDA_ARCH__ >= 900
KERNEL __cluster_dims__(2, 1, 1) cluster(int *out)
{
    asm volatile("barrier.cluster.arrive;");
    asm volatile("barrier.cluster.wait;");
    out[THREAD] = 1;
}
#endif
