// What the host functions of this file share, for programs that use the CUDA runtime.

// One launch. `early`: it may start before the previous one has ended; the kernel waits itself.
struct kg_launch_shape {
    dim3 blocks, threads;
    unsigned shared, cluster;
    bool early;
};

// Launches are planned for a GPU: for its instructions (90 is compute capability 9.0, `exactly`
// where newer GPUs do not have them), and for its SMs, because blocks may wait for one another.
static cudaError_t kg_check_device(int capability, bool exactly, int units)
{
    int device, major = 0, minor = 0, here = 0;
    cudaError_t status = cudaGetDevice(&device);
    if (!status)
        status = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (!status)
        status = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    if (!status)
        status = cudaDeviceGetAttribute(&here, cudaDevAttrMultiProcessorCount, device);
    if (status)
        return status;
    int found = 10 * major + minor;
    bool runs = exactly ? found == capability : found >= capability;
    return runs && here >= units ? cudaSuccess : cudaErrorInvalidDevice;
}

static bool kg_is_multiple(const void *address, size_t bytes)
{
    return (uintptr_t)address % bytes == 0;
}

// Graphs take early launches since CUDA 12.3: drivers before that launch in order.
static bool kg_may_start_early()
{
    static const bool may = [] {
        int version = 0;
        return cudaDriverGetVersion(&version) == cudaSuccess && version >= 12030;
    }();
    return may;
}

// Arguments are converted to the kernel's own parameters.
template <typename... Parameters, typename... Arguments>
static cudaError_t kg_launch(void (*kernel)(Parameters...), const kg_launch_shape &shape,
                             cudaStream_t stream, const Arguments &...arguments)
{
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config = {};
    config.gridDim = shape.blocks;
    config.blockDim = shape.threads;
    config.dynamicSmemBytes = shape.shared;
    config.stream = stream;
    config.attrs = attributes;
    if (shape.cluster > 1) {
        cudaLaunchAttribute &cluster = attributes[config.numAttrs++];
        cluster.id = cudaLaunchAttributeClusterDimension;
        cluster.val.clusterDim.x = shape.cluster;
        cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    }
    if (shape.early && kg_may_start_early()) {
        cudaLaunchAttribute &early = attributes[config.numAttrs++];
        early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        early.val.programmaticStreamSerializationAllowed = 1;
    }
    cudaError_t status = cudaSuccess;
    if (shape.shared > 0)
        status = cudaFuncSetAttribute(
            (const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shape.shared);
    if (!status && shape.cluster > 8)
        status = cudaFuncSetAttribute((const void *)kernel,
                                      cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    return status ? status : cudaLaunchKernelEx(&config, kernel, arguments...);
}

// A tensor as the TMA copies boxes of it; dimensions of adjacent elements first, strides in bytes.
struct kg_map_shape {
    CUtensorMapDataType type;
    CUtensorMapSwizzle swizzle;
    cuuint32_t rank;
    cuuint64_t shape[5], strides[5];
    cuuint32_t box[5];
};

typedef CUresult (*kg_encode_tiled)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                                    const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                                    const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                                    CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

// From the driver, which the program then need not be linked with. NULL: it has none.
static kg_encode_tiled kg_find_encoder()
{
    void *found = nullptr;
    cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 12050
    cudaError_t status = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000,
                                                          cudaEnableDefault, &result);
#else
    cudaError_t status =
        cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &result);
#endif
    bool usable = status == cudaSuccess && result == cudaDriverEntryPointSuccess;
    return usable ? (kg_encode_tiled)found : nullptr;
}

static cudaError_t kg_encode(const kg_map_shape &shape, const void *address, kg_tensor_map *map)
{
    static const kg_encode_tiled encoder = kg_find_encoder();
    static_assert(sizeof(CUtensorMap) == sizeof(kg_tensor_map), "a map has 128 bytes");
    const cuuint32_t steps[5] = {1, 1, 1, 1, 1};
    if (!encoder)
        return cudaErrorNotSupported;
    CUresult result =
        encoder((CUtensorMap *)map, shape.type, shape.rank, (void *)address, shape.shape,
                shape.strides, shape.box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, shape.swizzle,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}
