// A kernel on a device, in a launch, as far as both are known. Missing values are assumed, and the
// result says which.

#ifndef KG_ASM_APPRAISAL_H
#define KG_ASM_APPRAISAL_H

#include "asm/model.h"
#include "asm/summary.h"

enum kg_threads_from {
    KG_THREADS_GIVEN,
    KG_THREADS_REQUIRED, // the kernel accepts no other block size
    KG_THREADS_BOUNDED,  // the largest block that it allows
    KG_THREADS_ASSUMED,
};

// Coefficients that were fitted to kernels of a device.
struct kg_fitted {
    const char *device; // its name
    struct kg_model_coefficients coefficients;
};
struct kg_fitted_list {
    const struct kg_fitted *list;
    int count;
};

#define KG_MAX_NOTES 3
struct kg_launch_note {
    enum kg_advice_level level;
    const char *code;
    char text[160];
};

struct kg_appraisal {
    struct kg_asm_summary summary;
    double points;            // of the baseline, asm/points.h
    const struct kg_sm *sm;   // NULL: no GPU code, or for an unknown GPU; `missing` says which
    const struct kg_gpu *gpu; // NULL: no GPU of that architecture is known
    bool gpu_assumed;         // chosen by the architecture
    bool registers_known;     // false: the occupancy is an upper bound
    int threads;
    enum kg_threads_from threads_from;
    int cluster;
    struct kg_occupancy occupancy; // with `sm`; 0 blocks: the launch fails
    struct kg_waves waves;         // set if there are a grid and a `gpu`
    struct kg_model model;
    bool has_model;           // set if there are a grid, a `gpu` and a launch that does not fail
    const char *coefficients; // of the model: "prior" or "fitted"
    // Remarks about this launch, in addition to kernel->advice.
    struct kg_launch_note notes[KG_MAX_NOTES];
    int note_count;
    char missing[512]; // why there is no occupancy, or no model in spite of a grid; else ""
};

// An invalid question gives KG_ERROR_ARGUMENT: a device that is unknown or does not run this code,
// a block size that the kernel refuses, negative numbers. `fitted` may be empty: for devices
// without coefficients the prior is used.
enum kg_status kg_asm_appraise(const struct kg_asm_kernel *kernel, enum kg_asm_format format,
                               const struct kg_assembly_launch *launch,
                               const struct kg_fitted_list *fitted, struct kg_appraisal *appraisal,
                               struct kg_error *error);

// "h100, h100-pcie, h200, ...": the GPUs of one compute capability, or all (NULL).
void kg_asm_list_devices(struct kg_text *text, const struct kg_sm *sm);

#endif
