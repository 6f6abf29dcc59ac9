// A kernel on a device, in a launch, as far as either is known. What was not said is assumed, and
// the result says what was.

#ifndef KG_ASM_APPRAISAL_H
#define KG_ASM_APPRAISAL_H

#include "asm/model.h"
#include "asm/summary.h"

enum kg_threads_from {
    KG_THREADS_GIVEN,
    KG_THREADS_REQUIRED, // the kernel takes no other block
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
    const struct kg_sm *sm;   // NULL: no GPU's, or of none that is known; `missing` says
    const struct kg_gpu *gpu; // NULL: no product of that architecture is known
    bool gpu_assumed;         // from the architecture
    bool registers_known;     // else the occupancy is an upper bound
    int threads;
    enum kg_threads_from threads_from;
    int cluster;
    struct kg_occupancy occupancy; // with `sm`; 0 blocks: the launch fails
    struct kg_waves waves;         // with a grid and a `gpu`
    struct kg_model model;
    bool has_model;           // with a grid, a `gpu` and a launch that does not fail
    const char *coefficients; // of the model: "prior" or "fitted"
    // What a person would want to know of this launch, beside kernel->advice.
    struct kg_launch_note notes[KG_MAX_NOTES];
    int note_count;
    char missing[512]; // why there is no occupancy, or no model though a grid was given; else ""
};

// What is wrong with the question itself gives KG_ERROR_ARGUMENT: a device that is not known or
// does not run this code, a block that the kernel refuses, numbers below zero. `fitted` may be
// empty: where it says nothing of the device, the prior counts.
enum kg_status kg_asm_appraise(const struct kg_asm_kernel *kernel, enum kg_asm_format format,
                               const struct kg_assembly_launch *launch,
                               const struct kg_fitted_list *fitted, struct kg_appraisal *appraisal,
                               struct kg_error *error);

// "h100, h100-pcie, h200, ...": of one compute capability, or of all (NULL).
void kg_asm_list_devices(struct kg_text *text, const struct kg_sm *sm);

#endif
