// Times kernels that each keep one pipe of an SM busy: evidence for the rates in src/asm/gpu_table.c
// and for the bound of src/asm/model.c (docs/model.md). Each prints the best of 20 runs in
// microseconds, 4096 blocks of 128 threads, 1000 trips.
//
//     nvcc -arch=sm_90a -o pipes bench/model/pipes.cu && ./pipes
//     nvcc -arch=sm_90a -cubin -o pipes.cubin bench/model/pipes.cu     # what the model reads

#include <algorithm>
#include <cstdio>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

#define TRIPS _Pragma("unroll 1") for (int trip = 0; trip < 1000; trip++)
#define EACH(count) _Pragma("unroll") for (int i = 0; i < count; i++)

// Eight dependency chains of one operation, with a use of the results.
#define CHAINS(name, type, count, step)                                                            \
    extern "C" __global__ void name(type *x)                                                       \
    {                                                                                              \
        type a[count], k = x[0], sum = k;                                                          \
        EACH(count) a[i] = x[threadIdx.x] + type(i);                                               \
        TRIPS { EACH(count) step; }                                                                \
        EACH(count) sum = sum + a[i];                                                              \
        x[threadIdx.x] = sum;                                                                      \
    }

CHAINS(fma_pipe, float, 8, a[i] = fmaf(a[i], k, k))
CHAINS(double_pipe, double, 4, a[i] = fma(a[i], k, k))
CHAINS(special_pipe, float, 8, asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(a[i])))
CHAINS(convert_pipe, float, 8,
       asm volatile("{.reg .b16 h; cvt.rn.f16.f32 h, %0; cvt.f32.f16 %0, h;}" : "+f"(a[i])))
CHAINS(integer_pipe, int, 8, (a[i] = a[i] * k + 3, a[(i + 3) & 7] ^= a[i]))

extern "C" __global__ void half_pipe(half2 *x)
{
    half2 a[8], k = x[0], sum = k;
    EACH(8) a[i] = x[threadIdx.x];
    TRIPS { EACH(8) a[i] = __hfma2(a[i], k, k); }
    EACH(8) sum = __hadd2(sum, a[i]);
    x[threadIdx.x] = sum;
}

extern "C" __global__ void shared_pipe(float *x)
{
    __shared__ float s[1024];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    volatile float *p = s;
    float sum = 0;
    TRIPS { EACH(16) sum += p[(threadIdx.x + i * 32) & 1023]; }
    x[threadIdx.x] = sum;
}

extern "C" __global__ void tensor_pipe(half *x)
{
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c[4];
    wmma::load_matrix_sync(a, x, 16);
    wmma::load_matrix_sync(b, x, 16);
    EACH(4) wmma::fill_fragment(c[i], 0.f);
    TRIPS { EACH(4) wmma::mma_sync(c[i], a, b, c[i]); }
    EACH(4) wmma::store_matrix_sync((float *)x + i * 256, c[i], 16, wmma::mem_row_major);
}

template <class Kernel, class Pointer> static void time(const char *name, Kernel kernel, Pointer x)
{
    cudaEvent_t begin, end;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    float best = 1e9f;
    for (int run = 0; run < 20; run++) {
        cudaEventRecord(begin);
        kernel<<<4096, 128>>>(x);
        cudaEventRecord(end);
        cudaEventSynchronize(end);
        float milliseconds;
        cudaEventElapsedTime(&milliseconds, begin, end);
        best = std::min(best, milliseconds);
    }
    printf("%-14s %8.1f\n", name, best * 1e3f);
}

int main()
{
    char *memory;
    cudaMalloc(&memory, 1 << 20);
    cudaMemset(memory, 0, 1 << 20);
    time("fma", fma_pipe, (float *)memory);
    time("half", half_pipe, (half2 *)memory);
    time("double", double_pipe, (double *)memory);
    time("integer", integer_pipe, (int *)memory);
    time("special", special_pipe, (float *)memory);
    time("convert", convert_pipe, (float *)memory);
    time("shared", shared_pipe, (float *)memory);
    time("tensor", tensor_pipe, (half *)memory);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
