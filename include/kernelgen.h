// KernelGen's one public header.
//
// One operator definition in, a verified and tuned kernel out. Every function that can fail
// returns an `enum kg_status`; results come back through trailing out-parameters, which are
// cleared on failure; `kg_context_error` tells what happened, where, and what to do next.

#ifndef KERNELGEN_H
#define KERNELGEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KG_API __attribute__((visibility("default")))

enum kg_status {
    KG_OK = 0,
    KG_ERROR_ARGUMENT,    // a call or an option makes no sense
    KG_ERROR_DEFINITION,  // a .kg text is wrong; the message shows where
    KG_ERROR_SHAPE,       // sizes, dtypes or strides contradict the definition
    KG_ERROR_MEMORY,      // an allocation failed
    KG_ERROR_IO,          // a file could not be read or written
    KG_ERROR_CORRUPT,     // a file was read and is not what it should be
    KG_ERROR_UNSUPPORTED, // correct, but no family or device can do it
    KG_ERROR_MISSING,     // the machine lacks something (a compiler, a driver, a device)
    KG_ERROR_COMPILE,     // a compiler refused generated or foreign code
    KG_ERROR_TIMEOUT,     // a compiler or a kernel did not finish in time
    KG_ERROR_FAULT,       // a kernel crashed
    KG_ERROR_WRONG,       // the accuracy gate said no
    KG_ERROR_NO_WISDOM,   // only what is known was allowed, and nothing is known
    KG_ERROR_CANCELLED,   // the caller asked to stop
    KG_STATUS_COUNT
};

enum kg_dtype {
    KG_F16,
    KG_BF16,
    KG_F32,
    KG_F64,
    KG_I8,
    KG_U8,
    KG_I32,
    KG_I64,
    KG_BOOL, // one byte, 0 or 1
    KG_U4,   // two elements a byte, flat row-major order, the even element in the low half
    KG_I4,
    KG_DTYPE_COUNT
};

enum kg_rigor {
    KG_RIGOR_ESTIMATE,   // rules only, nothing is measured
    KG_RIGOR_MEASURE,    // prune, then measure a few
    KG_RIGOR_PATIENT,    // a wider space, more finalists
    KG_RIGOR_EXHAUSTIVE, // every valid config
    KG_RIGOR_WISDOM,     // only what is known
    KG_RIGOR_COUNT
};

#ifdef __cplusplus
}
#endif
#endif
