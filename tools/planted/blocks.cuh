// The end of a grid, for planted faults: which block is the last, and its threads.

static __device__ int64_t siege_thread()
{
    return threadIdx.x + (int64_t)blockDim.x * (threadIdx.y + (int64_t)blockDim.y * threadIdx.z);
}

static __device__ int64_t siege_threads()
{
    return (int64_t)blockDim.x * blockDim.y * blockDim.z;
}

static __device__ int64_t siege_clock()
{
    return clock64();
}

// Called by all threads of all blocks; true for the threads of the block that comes last, when the
// others have written all. `done` is 0 again at the end.
static __device__ bool siege_is_last_block(unsigned *done)
{
    const unsigned blocks = gridDim.x * gridDim.y * gridDim.z;
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;" ::: "memory");
#endif
    __threadfence();
    __syncthreads();
    bool last = siege_thread() == 0 && atomicAdd(done, 1u) + 1 == blocks;
    if (last)
        *done = 0;
    last = __syncthreads_or(last);
    __threadfence();
    return last;
}
