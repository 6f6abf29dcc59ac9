// Opens the driver, and turns its results into messages.

#include "device/cuda/cuda_driver.h"

#include "base/loader.h"

#include <dlfcn.h>
#include <stdio.h>

#define LEAST_VERSION 12000

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

// The meaning of results for the author of a kernel. `final`: the driver refuses all further work
// of this process.
static const struct meaning {
    int result;
    enum kg_status status;
    bool final;
    const char *name;
    const char *text;
} meanings[] = {
    {1, KG_ERROR_ARGUMENT, false, "CUDA_ERROR_INVALID_VALUE",
     "an argument is out of range: a grid, a block or shared memory that the device does not take"},
    {2, KG_ERROR_MEMORY, false, "CUDA_ERROR_OUT_OF_MEMORY", "the device's memory is used up"},
    {3, KG_ERROR_UNSUPPORTED, false, "CUDA_ERROR_NOT_INITIALIZED",
     "the driver was in use before the fork: a process that has used CUDA cannot hand it on to "
     "its forks"},
    {4, KG_ERROR_UNSUPPORTED, false, "CUDA_ERROR_DEINITIALIZED", "the process is ending"},
    {34, KG_ERROR_MISSING, false, "CUDA_ERROR_STUB_LIBRARY",
     "libcuda.so.1 is the toolkit's stub and not a driver; install NVIDIA's driver"},
    {46, KG_ERROR_MISSING, false, "CUDA_ERROR_DEVICE_UNAVAILABLE",
     "somebody else uses the device alone"},
    {100, KG_ERROR_MISSING, false, "CUDA_ERROR_NO_DEVICE", "the driver sees no GPU"},
    {101, KG_ERROR_MISSING, false, "CUDA_ERROR_INVALID_DEVICE", "there is no such device"},
    {200, KG_ERROR_COMPILE, false, "CUDA_ERROR_INVALID_IMAGE",
     "neither a cubin nor PTX that the driver can read"},
    {201, KG_ERROR_FAULT, false, "CUDA_ERROR_INVALID_CONTEXT",
     "the context was destroyed by somebody else"},
    {209, KG_ERROR_COMPILE, false, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "compiled for another architecture, or by a later CUDA than the driver knows"},
    {214, KG_ERROR_FAULT, true, "CUDA_ERROR_ECC_UNCORRECTABLE", "the device's memory is faulty"},
    {218, KG_ERROR_COMPILE, false, "CUDA_ERROR_INVALID_PTX", "the PTX is wrong"},
    {222, KG_ERROR_COMPILE, false, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the PTX is of a later CUDA than the driver knows"},
    {226, KG_ERROR_FAULT, true, "CUDA_ERROR_CONTAINED", "a fault of the device's memory"},
    {304, KG_ERROR_MISSING, false, "CUDA_ERROR_OPERATING_SYSTEM",
     "the system keeps the device from this process"},
    {500, KG_ERROR_COMPILE, false, "CUDA_ERROR_NOT_FOUND", "no function of this name"},
    {700, KG_ERROR_FAULT, true, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "a kernel read or wrote memory that is not there"},
    {701, KG_ERROR_UNSUPPORTED, false, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "a block needs more registers or threads than an SM has"},
    {702, KG_ERROR_FAULT, true, "CUDA_ERROR_LAUNCH_TIMEOUT",
     "a kernel ran longer than the system allows"},
    {710, KG_ERROR_FAULT, true, "CUDA_ERROR_ASSERT", "an assertion failed in a kernel"},
    {714, KG_ERROR_FAULT, true, "CUDA_ERROR_HARDWARE_STACK_ERROR",
     "a kernel's stack overflowed or was overwritten"},
    {715, KG_ERROR_FAULT, true, "CUDA_ERROR_ILLEGAL_INSTRUCTION",
     "a kernel met an instruction that does not exist, or whose operands are wrong"},
    {716, KG_ERROR_FAULT, true, "CUDA_ERROR_MISALIGNED_ADDRESS",
     "a kernel read or wrote at an address that is not a multiple of the access's width"},
    {717, KG_ERROR_FAULT, true, "CUDA_ERROR_INVALID_ADDRESS_SPACE",
     "a kernel used an address of another kind of memory than the instruction takes"},
    {718, KG_ERROR_FAULT, true, "CUDA_ERROR_INVALID_PC", "a kernel jumped out of its code"},
    {719, KG_ERROR_FAULT, true, "CUDA_ERROR_LAUNCH_FAILED",
     "a kernel was stopped by an exception of the device"},
    {720, KG_ERROR_UNSUPPORTED, false, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
     "more blocks than run at once"},
    {721, KG_ERROR_FAULT, true, "CUDA_ERROR_TENSOR_MEMORY_LEAK",
     "a kernel ended without freeing its tensor memory"},
    {801, KG_ERROR_UNSUPPORTED, false, "CUDA_ERROR_NOT_SUPPORTED",
     "the device or the driver cannot do this"},
    {802, KG_ERROR_MISSING, false, "CUDA_ERROR_SYSTEM_NOT_READY",
     "the system's fabric manager is not ready"},
    {803, KG_ERROR_MISSING, false, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
     "libcuda.so.1 and the kernel's module are of different versions; restart, or install one "
     "version"},
    {804, KG_ERROR_MISSING, false, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
     "the driver's forward compatibility package does not take this GPU"},
    {900, KG_ERROR_UNSUPPORTED, false, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "this cannot be done while a graph is captured"},
    {901, KG_ERROR_UNSUPPORTED, false, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "something that cannot be captured was done while a graph was"},
    {912, KG_ERROR_UNSUPPORTED, false, "CUDA_ERROR_INVALID_CLUSTER_SIZE",
     "clusters of more blocks than the device takes"},
    {999, KG_ERROR_FAULT, true, "CUDA_ERROR_UNKNOWN", "the driver does not say what happened"},
};

static bool find_functions(struct kg_cuda_driver *driver)
{
    const struct {
        const char *name;
        void *place;
        bool optional;
    } functions[] = {
        {"cuDriverGetVersion", &driver->driver_version, false},
        {"cuGetErrorName", &driver->error_name, false},
        {"cuInit", &driver->init, false},
        {"cuDeviceGetCount", &driver->device_count, false},
        {"cuDeviceGet", &driver->device_get, false},
        {"cuDeviceGetName", &driver->device_name, false},
        {"cuDeviceGetAttribute", &driver->device_attribute, false},
        {"cuDeviceGetPCIBusId", &driver->device_bus, false},
        {"cuDevicePrimaryCtxRetain", &driver->context_retain, false},
        {"cuDevicePrimaryCtxRelease_v2", &driver->context_release, false},
        {"cuCtxGetCurrent", &driver->context_current, false},
        {"cuCtxSetCurrent", &driver->context_set, false},
        {"cuCtxPushCurrent_v2", &driver->context_push, false},
        {"cuCtxPopCurrent_v2", &driver->context_pop, false},
        {"cuCtxSynchronize", &driver->context_synchronize, false},
        {"cuModuleLoadDataEx", &driver->module_load, false},
        {"cuModuleUnload", &driver->module_unload, false},
        {"cuModuleGetFunction", &driver->module_function, false},
        {"cuFuncGetAttribute", &driver->function_attribute, false},
        {"cuFuncSetAttribute", &driver->function_set, false},
        {"cuFuncLoad", &driver->function_load, true},
        {"cuLaunchKernel", &driver->launch, false},
        {"cuLaunchKernelEx", &driver->launch_config, false},
        {"cuTensorMapEncodeTiled", &driver->encode_map, true},
        {"cuMemAlloc_v2", &driver->allocate, false},
        {"cuMemFree_v2", &driver->release, false},
        {"cuMemGetInfo_v2", &driver->memory_left, false},
        {"cuMemcpy", &driver->copy, false},
        {"cuMemsetD8Async", &driver->fill, false},
        {"cuEventCreate", &driver->event_make, false},
        {"cuEventDestroy_v2", &driver->event_free, false},
        {"cuEventRecord", &driver->event_record, false},
        {"cuEventSynchronize", &driver->event_wait, false},
        {"cuEventElapsedTime", &driver->event_elapsed, false},
        {"cuStreamCreate", &driver->stream_make, false},
        {"cuStreamDestroy_v2", &driver->stream_free, false},
        {"cuStreamBeginCapture_v2", &driver->capture_begin, false},
        {"cuStreamEndCapture", &driver->capture_end, false},
        {"cuGraphDestroy", &driver->graph_free, false},
        {"cuGraphInstantiateWithFlags", &driver->graph_prepare, false},
        {"cuGraphExecDestroy", &driver->executable_free, false},
        {"cuGraphLaunch", &driver->executable_launch, false},
        {"cuStreamIsCapturing", &driver->stream_state, true},
        {"cuStreamGetPriority", &driver->stream_priority, true},
        {"cuStreamGetGreenCtx", &driver->stream_green, true},
        {"cuThreadExchangeStreamCaptureMode", &driver->capture_mode, true},
        {"cuGraphGetNodes", &driver->graph_nodes, true},
        {"cuGraphKernelNodeGetParams_v2", &driver->node_read, true},
        {"cuGraphExecKernelNodeSetParams_v2", &driver->node_renew, true},
    };
    for (size_t i = 0; i < COUNT(functions); i++) {
        *(void **)functions[i].place = dlsym(driver->library, functions[i].name);
        if (!*(void **)functions[i].place && !functions[i].optional)
            return false;
    }
    return true;
}

enum kg_status kg_cuda_driver_open(struct kg_cuda_driver *driver, struct kg_error *error)
{
    *driver = (struct kg_cuda_driver){.library = kg_loader_open("libcuda.so.1")};
    if (!driver->library)
        return kg_error_set(error, KG_ERROR_MISSING,
                            "there is no NVIDIA driver (libcuda.so.1 was not found). Install one "
                            "for CUDA %d.0 or newer",
                            LEAST_VERSION / 1000);
    bool complete = find_functions(driver);
    if (driver->driver_version)
        driver->driver_version(&driver->version);
    if (complete && driver->version >= LEAST_VERSION)
        return KG_OK;
    driver->library = NULL;
    return kg_error_set(error, KG_ERROR_MISSING,
                        "the NVIDIA driver is of CUDA %d.%d. Install one for CUDA %d.0 or newer",
                        driver->version / 1000, driver->version % 1000 / 10, LEAST_VERSION / 1000);
}

// The driver refuses to count devices before it is initialised.
bool kg_cuda_driver_in_use(const struct kg_cuda_driver *driver)
{
    int count;
    return driver->library && driver->device_count(&count) == 0;
}

enum kg_status kg_cuda_error(const struct kg_cuda_driver *driver, int result, const char *doing,
                             struct kg_error *error)
{
    for (size_t i = 0; i < COUNT(meanings); i++)
        if (meanings[i].result == result)
            return kg_error_set(
                error, meanings[i].status, "%s: %s (%s)%s", doing, meanings[i].name,
                meanings[i].text,
                meanings[i].final ? "; the device takes no further work of this process" : "");
    const char *name = NULL;
    if (!driver->error_name || driver->error_name(result, &name) != 0 || !name)
        name = "an unknown error";
    return kg_error_set(error, KG_ERROR_FAULT, "%s: %s (%d)", doing, name, result);
}

void kg_nvml_open(struct kg_nvml *nvml)
{
    *nvml = (struct kg_nvml){.library = kg_loader_open("libnvidia-ml.so.1")};
    const struct {
        const char *name;
        void *place;
    } functions[] = {
        {"nvmlInit_v2", &nvml->init},
        {"nvmlSystemGetDriverVersion", &nvml->driver_version},
        {"nvmlDeviceGetHandleByPciBusId_v2", &nvml->device_by_bus},
        {"nvmlDeviceGetClockInfo", &nvml->device_clock},
    };
    for (size_t i = 0; nvml->library && i < COUNT(functions); i++) {
        *(void **)functions[i].place = dlsym(nvml->library, functions[i].name);
        if (!*(void **)functions[i].place)
            nvml->library = NULL;
    }
    if (nvml->library && nvml->init() != 0)
        nvml->library = NULL;
}
