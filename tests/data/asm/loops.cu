// Operators as people write them: reductions, softmax, normalisation, tiled products, spills.

#include <cstdint>
#include <cuda_fp16.h>

#define KERNEL extern "C" __global__ void
#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)

template <class Operation> __device__ float block_fold(float x, float *scratch, Operation op)
{
    for (int step = 16; step; step /= 2)
        x = op(x, __shfl_xor_sync(~0u, x, step));
    if (threadIdx.x % 32 == 0)
        scratch[threadIdx.x / 32] = x;
    __syncthreads();
    x = threadIdx.x < 8 ? scratch[threadIdx.x] : scratch[0];
    for (int step = 4; step; step /= 2)
        x = op(x, __shfl_xor_sync(~0u, x, step));
    __syncthreads();
    return x;
}

KERNEL __launch_bounds__(256) reduce_rows(const float *in, float *out, int columns)
{
    __shared__ float scratch[8];
    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += 256)
        sum += in[(int64_t)blockIdx.x * columns + i];
    sum = block_fold(sum, scratch, [](float x, float y) { return x + y; });
    if (threadIdx.x == 0)
        out[blockIdx.x] = sum;
}

KERNEL __launch_bounds__(256) softmax(const float *in, float *out, int columns)
{
    __shared__ float scratch[8];
    const float *row = in + (int64_t)blockIdx.x * columns;
    float most = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < columns; i += 256)
        most = fmaxf(most, row[i]);
    most = block_fold(most, scratch, [](float x, float y) { return fmaxf(x, y); });
    for (int i = threadIdx.x; i < columns; i += 256)
        sum += __expf(row[i] - most);
    sum = block_fold(sum, scratch, [](float x, float y) { return x + y; });
    for (int i = threadIdx.x; i < columns; i += 256)
        out[(int64_t)blockIdx.x * columns + i] = __expf(row[i] - most) / sum;
}

KERNEL normalise(const __half2 *in, const __half2 *scale, __half2 *out, int columns)
{
    __shared__ float scratch[8];
    float sum = 0, squares = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        float2 x = __half22float2(in[blockIdx.x * columns + i]);
        sum += x.x + x.y;
        squares += x.x * x.x + x.y * x.y;
    }
    auto add = [](float x, float y) { return x + y; };
    sum = block_fold(sum, scratch, add) / columns;
    squares = rsqrtf(block_fold(squares, scratch, add) / columns - sum * sum + 1e-5f);
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        float2 x = __half22float2(in[blockIdx.x * columns + i]);
        __half2 y = __floats2half2_rn((x.x - sum) * squares, (x.y - sum) * squares);
        out[blockIdx.x * columns + i] = __hmul2(y, scale[i]);
    }
}

template <int M, int N, int K>
__device__ void tiled_product(const float *a, const float *b, float *c, int n)
{
    __shared__ float left[K][16 * M], right[K][16 * N];
    float sums[M][N] = {};
    int x = threadIdx.x % 16, y = threadIdx.x / 16;
    for (int k = 0; k < n; k += K) {
        for (int i = threadIdx.x; i < 16 * M * K; i += 256)
            left[i % K][i / K] = a[(blockIdx.y * 16 * M + i / K) * n + k + i % K];
        for (int i = threadIdx.x; i < 16 * N * K; i += 256)
            right[i / (16 * N)][i % (16 * N)] =
                b[(k + i / (16 * N)) * n + blockIdx.x * 16 * N + i % (16 * N)];
        __syncthreads();
#pragma unroll
        for (int j = 0; j < K; j++)
#pragma unroll
            for (int row = 0; row < M; row++)
#pragma unroll
                for (int column = 0; column < N; column++)
                    sums[row][column] += left[j][y * M + row] * right[j][x * N + column];
        __syncthreads();
    }
#pragma unroll
    for (int row = 0; row < M; row++)
#pragma unroll
        for (int column = 0; column < N; column++)
            c[(blockIdx.y * 16 * M + y * M + row) * n + blockIdx.x * 16 * N + x * N + column] =
                sums[row][column];
}
KERNEL __launch_bounds__(256) product_small(const float *a, const float *b, float *c, int n)
{
    tiled_product<2, 2, 8>(a, b, c, n);
}
KERNEL __launch_bounds__(256) product_large(const float *a, const float *b, float *c, int n)
{
    tiled_product<8, 8, 8>(a, b, c, n);
}

// More values alive than a small register file holds.
template <int N, class T> __device__ void many_alive(const T *a, T *b, int n)
{
    T values[N];
#pragma unroll
    for (int i = 0; i < N; i++)
        values[i] = a[i * 32 + THREAD];
#pragma unroll 1
    for (int k = 0; k < n; k++) {
        T turn = b[k];
#pragma unroll
        for (int i = 0; i < N; i++)
            values[i] = values[i] * turn + values[(i * 7 + 3) % N];
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        b[i * 32 + THREAD] = values[i];
}
KERNEL alive_floats(const float *a, float *b, int n) { many_alive<96>(a, b, n); }
KERNEL alive_doubles(const double *a, double *b, int n) { many_alive<48>(a, b, n); }
KERNEL alive_beyond(const float *a, float *b, int n) { many_alive<280>(a, b, n); }

KERNEL histogram(const unsigned *in, unsigned *out, int n)
{
    __shared__ unsigned bins[1024];
    for (int i = threadIdx.x; i < 1024; i += blockDim.x)
        bins[i] = 0;
    __syncthreads();
    for (int i = THREAD; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[in[i] >> 22], 1);
    __syncthreads();
    for (int i = threadIdx.x; i < 1024; i += blockDim.x)
        atomicAdd(out + i, bins[i]);
}

KERNEL scan(const int *in, int *out, int n)
{
    __shared__ int totals[32];
    int carry = 0;
    for (int base = 0; base < n; base += blockDim.x) {
        int x = in[base + threadIdx.x], lane = threadIdx.x % 32;
        for (int step = 1; step < 32; step *= 2) {
            int y = __shfl_up_sync(~0u, x, step);
            if (lane >= step)
                x += y;
        }
        if (lane == 31)
            totals[threadIdx.x / 32] = x;
        __syncthreads();
        for (int i = 0; i < threadIdx.x / 32; i++)
            x += totals[i];
        out[base + threadIdx.x] = x + carry;
        carry += totals[31];
        __syncthreads();
    }
}

KERNEL stencil(const float *in, float *out, int width, int height)
{
    int x = THREAD;
    float a = in[x], b = in[x + width];
    for (int y = 1; y < height - 1; y++) {
        float c = in[(y + 1) * width + x];
        out[y * width + x] = 0.25f * (a + c) + 0.5f * b;
        a = b;
        b = c;
    }
}
