// Libraries at work: what cub, cooperative groups and printf make of a kernel. nvcc only.

#include <cassert>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cstdio>
#include <cub/cub.cuh>

namespace groups = cooperative_groups;

__device__ __noinline__ float slow(float x)
{
    return x < 1 ? sinf(x) * powf(x, 1.3f) : erff(x);
}

typedef float (*function)(float);
__device__ function table[2] = {slow, slow};

__global__ void fold(const float *a, float *b, int n, int which)
{
    auto tile = groups::tiled_partition<32>(groups::this_thread_block());
    float sum = groups::reduce(tile, a[threadIdx.x], groups::plus<float>());
    __shared__ typename cub::BlockReduce<float, 256>::TempStorage scratch;
    sum += cub::BlockReduce<float, 256>(scratch).Sum(sum);
    assert(n > 0);
    if (sum > 3)
        printf("%f %d\n", sum, n);
    switch (which) {
    case 0:
        sum += 1;
        break;
    case 1:
        sum *= a[3];
        break;
    case 2:
        sum /= a[5];
        break;
    case 3:
        sum = sqrtf(sum);
        break;
    case 4:
        sum = a[9] - sum;
        break;
    case 5:
        sum = logf(sum);
        break;
    case 7:
        sum = slow(sum);
    }
    double wide = sum;
    for (int i = 0; i < which; i++)
        wide = exp(wide) * table[i & 1]((float)wide);
    int local[20];
    for (int i = 0; i < 20; i++)
        local[i] = (int)a[i];
    b[threadIdx.x] = sum + (float)wide + (float)local[which];
}

__global__ void sort(int *a)
{
    typedef cub::BlockRadixSort<int, 128, 4> Sort;
    __shared__ typename Sort::TempStorage scratch;
    int keys[4];
    for (int i = 0; i < 4; i++)
        keys[i] = a[threadIdx.x * 4 + i];
    Sort(scratch).Sort(keys);
    for (int i = 0; i < 4; i++)
        a[threadIdx.x * 4 + i] = keys[i];
}
