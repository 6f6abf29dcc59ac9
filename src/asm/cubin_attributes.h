// The .nv.info sections of a cubin: what ptxas tells the driver of each kernel.

#ifndef KG_ASM_CUBIN_ATTRIBUTES_H
#define KG_ASM_CUBIN_ATTRIBUTES_H

#include "asm/elf_file.h"
#include "asm/sass.h"

struct kg_cubin_attribute {
    uint8_t code;
    uint32_t value;       // where it is one
    const uint8_t *bytes; // else NULL
    uint32_t size;
};

// Reads the attribute at `*offset` of the section and moves on. False at the end of the section
// and, with `*status` set, where the section is damaged.
bool kg_cubin_next(const struct kg_elf *elf, const struct kg_elf_section *section, uint64_t *offset,
                   struct kg_cubin_attribute *attribute, enum kg_status *status,
                   struct kg_error *error);

// What one kernel's .nv.info says beside figures: arrays in the arena given.
struct kg_cubin_notes {
    int32_t *spills; // instructions, ascending
    int32_t spill_count;
    struct kg_sass_table *tables; // by `at`
    int32_t table_count;
};

// Reads `section` into `kernel` and `notes`. Instructions outside [0, count) are refused.
enum kg_status kg_cubin_notes(const struct kg_elf *elf, const struct kg_elf_section *section,
                              int32_t count, struct kg_arena *arena, struct kg_asm_kernel *kernel,
                              struct kg_cubin_notes *notes, struct kg_error *error);

#endif
