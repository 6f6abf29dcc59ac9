// The .nv.info sections of a cubin: properties of each kernel that ptxas passes to the driver.

#ifndef KG_ASM_CUBIN_ATTRIBUTES_H
#define KG_ASM_CUBIN_ATTRIBUTES_H

#include "asm/elf_file.h"
#include "asm/sass.h"

struct kg_cubin_attribute {
    uint8_t code;
    uint32_t value;       // for formats that have a value
    const uint8_t *bytes; // for the others, else NULL
    uint32_t size;
};

// Reads the attribute at `*offset` of the section and advances. False at the end of the section
// and, with `*status` set, when the section is damaged.
bool kg_cubin_next(const struct kg_elf *elf, const struct kg_elf_section *section, uint64_t *offset,
                   struct kg_cubin_attribute *attribute, enum kg_status *status,
                   struct kg_error *error);

// The contents of one kernel's .nv.info other than figures; arrays are allocated in the arena.
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
