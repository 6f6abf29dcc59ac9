// Control flow: loops of every shape, switches, calls, recursion, local arrays.

#include <cstdint>
#include <cstdio>
#include <cassert>

#define KERNEL extern "C" __global__ void
#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)

KERNEL trips_constant(const float *a, float *b)
{
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < 100; i++)
        sum = sum * a[i] + b[i];
    b[THREAD] = sum;
}

KERNEL trips_parameter(const float *a, float *b, int n)
{
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < n; i++)
        sum += a[i] * sum;
    b[THREAD] = sum;
}

KERNEL nested(const float *a, float *b, int n, int m)
{
    for (int i = 0; i < n; i++) {
        float sum = 0;
        for (int j = 0; j < m; j++) {
            sum += a[i * m + j];
            if (sum > 100.0f)
                break;
            if (sum < 0.0f)
                continue;
            for (int k = 0; k < j; k++)
                sum = sum * a[k] - 1.0f;
        }
        b[i * n + THREAD] = sum;
    }
}

KERNEL divergent(const int *a, int *b)
{
    int x = a[THREAD];
    while (x != 1) {
        x = (x & 1) ? 3 * x + 1 : x / 2;
        if (x > 1000000)
            return;
    }
    b[THREAD] = x;
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
    case 8: y = atomicAdd(b + 3, y); break;
    case 9: y = a[y & 15]; break;
    case 10: y = b[y & 31] * 9; break;
    }
    b[THREAD] = y;
}

__device__ __noinline__ float callee(float x, const float *a)
{
    for (int i = 0; i < 5; i++)
        x = x * a[i] + a[(int)x & 7];
    return x;
}
KERNEL calls(const float *a, float *b, int n)
{
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum += callee(a[i + THREAD], a);
    b[THREAD] = sum + callee(sum, b);
}

__device__ __noinline__ int fibonacci(int n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
KERNEL recursion(int *a) { a[THREAD] = fibonacci(a[THREAD]); }

typedef float (*function)(float, const float *);
__device__ __noinline__ float other(float x, const float *a) { return x - a[1]; }
__device__ function functions[2] = {callee, other};
KERNEL pointers(float *a, int which) { a[THREAD] = functions[which](a[THREAD], a + 9); }

KERNEL local_array(const int *a, int *b, int n)
{
    int window[32];
    for (int i = 0; i < 32; i++)
        window[i] = a[i * n + THREAD];
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += window[a[i] & 31]++;
    b[THREAD] = sum + window[n & 31];
}

KERNEL printing(const int *a)
{
    if (a[THREAD] == 42)
        printf("thread %d: %f\n", (int)THREAD, (double)a[1]);
    assert(a[THREAD] != 7);
    if (a[THREAD] == 8)
        __trap();
}

KERNEL __launch_bounds__(256, 4) bounded(const float *a, float *b)
{
    float x = a[THREAD];
    for (int i = 1; i < 16; i++)
        x += a[THREAD + i * 1024] * x;
    b[THREAD] = x;
}

KERNEL search(const int *keys, const int *a, int *b, int n)
{
    int low = 0, high = n, key = keys[THREAD];
    while (low < high) {
        int middle = (low + high) / 2;
        if (a[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    b[THREAD] = low;
}

KERNEL two_exits(const int *a, int *b, int n)
{
    int i = THREAD;
    if (i >= n)
        return;
    for (;;) {
        int x = a[i];
        if (x < 0)
            break;
        if (x == n) {
            b[0] = i;
            return;
        }
        i = x;
    }
    b[1] = i;
}

KERNEL warp_divided(const int *a, int *b)
{
    int x = a[THREAD];
    if (threadIdx.x & 1) {
        for (int i = 0; i < x; i++) {
            __syncwarp(0xaaaaaaaa);
            b[i] = __shfl_sync(0xaaaaaaaa, x, 3);
        }
    } else {
        x += __shfl_xor_sync(0x55555555, x, 2);
        while (atomicCAS(b, 0, 1) != 0)
            __nanosleep(20);
        b[2] = x;
        __threadfence();
        atomicExch(b, 0);
    }
    b[THREAD] = x;
}

KERNEL uniform(const float *a, float *b, int rows, int columns)
{
    for (int row = blockIdx.x; row < rows; row += gridDim.x)
        for (int column = 0; column < columns; column += 4)
            b[row * columns + column] = a[row] * b[row * columns + column + 1];
}
