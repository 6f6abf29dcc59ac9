// A CUDA driver without a GPU: libcuda.so.1 in ordinary memory, for tests of what stands above it.
// A test that has opened it (fake_driver_open) finds it wherever libcuda.so.1 is asked for.

#ifndef KG_TESTS_SUPPORT_FAKE_DRIVER_H
#define KG_TESTS_SUPPORT_FAKE_DRIVER_H

#include <dlfcn.h>
#include <stddef.h>

struct fake_driver {
    int version; // of CUDA
    int devices;
    int inits; // calls of cuInit in this process
    int owner; // the process that initialised it
    size_t memory_left;
    _Atomic int blocks;               // allocations alive
    int contexts;                     // primary contexts retained
    _Atomic int graphs;               // alive, executable or not
    _Atomic int modules, ptx_modules; // alive, and of these, loaded from PTX: by any thread
    int stale;                        // modules unloaded that graphs still launch functions of
    _Atomic int launches;             // of functions that are not logged, outside of graphs
    _Atomic int replays, renewals;    // of graphs, and of their nodes
    _Atomic int switches, encodings;  // calls of cuCtxGetCurrent and cuTensorMapEncodeTiled
    const char *fail_in;              // the function that gives `result`; NULL: none
    int result;
    int broken; // what all calls give after a kernel's fault, but those that need no context
    int crash;  // cuInit crashes
    _Atomic int *exits; // shared with forks: so many more processes end in cuInit; NULL: none
    int pause;          // seconds that cuInit takes
    // What function f_N, or kg_kernel_N, does; NULL: nothing.
    void (*run)(int function, void **arguments);
    // So many arguments of 8 bytes a function in a graph has (the two strides of copies apart): the
    // driver knows, and the fake does not.
    int arguments;
    void *green; // the stream that is of a green context
    // Copies floats from the first argument to the second, as many as the third says, by strides
    // where there are any: what the function called copy does.
    void (*copy)(void **arguments);
    char log[4096]; // launches and what else a device would see, a line each
    _Atomic size_t log_length;
};

#ifdef KG_FAKE_DRIVER // the path, in tests
static inline struct fake_driver *fake_driver_open(void)
{
    void *library = dlopen(KG_FAKE_DRIVER, RTLD_NOW | RTLD_LOCAL);
    return library ? dlsym(library, "fake_driver") : NULL;
}
#endif

#endif
