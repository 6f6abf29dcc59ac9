// NVRTC, NVIDIA's compiler of CUDA C++ as a library: found and opened at run time. It needs neither
// a GPU nor a driver.

#ifndef KG_DEVICE_CUDA_NVRTC_LIBRARY_H
#define KG_DEVICE_CUDA_NVRTC_LIBRARY_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KG_NVRTC_MAX_SMS 64

// Functions return 0, or a number whose name is describe(number).
struct kg_nvrtc {
    void *library; // NULL: not found
    char path[512];
    char include[512]; // folder of the toolkit's headers, "" if it is not beside the library
    int major, minor;
    int64_t bytes; // size of the library's file, which distinguishes releases of one version
    int sms[KG_NVRTC_MAX_SMS]; // architectures it compiles for: 75, 80, ...
    int sm_count;

    const char *(*describe)(int result);
    int (*version)(int *major, int *minor);
    int (*sms_count)(int *count);
    int (*sms_list)(int *sms);
    int (*create)(void **program, const char *source, const char *name, int header_count,
                  const char *const *headers, const char *const *header_names);
    int (*destroy)(void **program);
    int (*compile)(void *program, int option_count, const char *const *options);
    int (*ptx_size)(void *program, size_t *bytes);
    int (*ptx)(void *program, char *text);
    int (*cubin_size)(void *program, size_t *bytes);
    int (*cubin)(void *program, char *bytes);
    int (*log_size)(void *program, size_t *bytes);
    int (*log)(void *program, char *text);
};

// An option or the source is wrong, and the log says why; or it ran out of memory.
enum { KG_NVRTC_OUT_OF_MEMORY = 1, KG_NVRTC_INVALID_OPTION = 5, KG_NVRTC_REFUSED = 6 };

// Searches the usual places for NVRTC and takes the first library that is usable and not of a later
// major version than `max_major` (0: any), because a driver does not load cubins of a later one.
// $KERNELGEN_NVRTC, the path of a library, overrides the search. KG_ERROR_MISSING says what to
// install. The library stays loaded until the process ends.
enum kg_status kg_nvrtc_open(int max_major, struct kg_nvrtc *nvrtc, struct kg_error *error);

bool kg_nvrtc_knows(const struct kg_nvrtc *nvrtc, int sm);

#endif
