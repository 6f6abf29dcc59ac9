// An attribute is a format byte, a code byte, and two bytes of value or, for format 4, of the
// length of the data that follows. The codes used here were checked against ptxas -v;
// docs/assembly.md lists all.

#include "asm/cubin_attributes.h"

#include <stdlib.h>

enum { FORMAT_BYTES = 4 };
enum {
    MAX_THREADS = 0x05,
    REQUIRED_THREADS = 0x10,
    PARAMETER_BYTES = 0x19,
    MAX_REGISTERS = 0x1b,
    BRANCH_TABLES = 0x34,
    CLUSTER = 0x3d,
    MAX_CLUSTER = 0x3f,
    BARRIERS = 0x4c,
    ANNOTATIONS = 0x55,
};
#define NO_REGISTER_LIMIT 255
#define ANNOTATION_SPILL 1

bool kg_cubin_next(const struct kg_elf *elf, const struct kg_elf_section *section, uint64_t *offset,
                   struct kg_cubin_attribute *attribute, enum kg_status *status,
                   struct kg_error *error)
{
    *status = KG_OK;
    if (section->size - *offset < 4)
        return false; // at the end, or padding
    const uint8_t *at = section->bytes + *offset;
    *attribute = (struct kg_cubin_attribute){.code = at[1], .value = kg_elf_u16(at + 2)};
    *offset += 4;
    if (at[0] != FORMAT_BYTES)
        return true;
    if (attribute->value > section->size - *offset) {
        *status = kg_error_set(error, KG_ERROR_CORRUPT,
                               "offset %llu: attribute 0x%02x of %s runs past its section",
                               (unsigned long long)kg_elf_offset(elf, at), at[1], section->name);
        return false;
    }
    attribute->bytes = at + 4;
    attribute->size = attribute->value;
    *offset += attribute->size;
    return true;
}

// Converts a byte offset of the file into the index of an instruction.
static int32_t instruction_at(uint32_t offset, int32_t count)
{
    uint32_t index = offset / KG_SASS_SIZE;
    return offset % KG_SASS_SIZE == 0 && index < (uint32_t)count ? (int32_t)index : -1;
}

static enum kg_status refuse(const struct kg_elf *elf, const struct kg_cubin_attribute *attribute,
                             const char *what, struct kg_error *error)
{
    return kg_error_set(error, KG_ERROR_CORRUPT, "offset %llu: attribute 0x%02x: %s",
                        (unsigned long long)kg_elf_offset(elf, attribute->bytes), attribute->code,
                        what);
}

static int by_value(const void *a, const void *b)
{
    int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;
    return (left > right) - (left < right);
}

static int by_place(const void *a, const void *b)
{
    int32_t left = ((const struct kg_sass_table *)a)->at;
    int32_t right = ((const struct kg_sass_table *)b)->at;
    return (left > right) - (left < right);
}

// Pairs of a kind and a code offset.
static enum kg_status read_spills(const struct kg_elf *elf,
                                  const struct kg_cubin_attribute *attribute, int32_t count,
                                  struct kg_arena *arena, struct kg_cubin_notes *notes,
                                  struct kg_error *error)
{
    uint32_t pairs = attribute->size / 8;
    notes->spills = KG_NEW_ARRAY(arena, pairs, int32_t);
    notes->spill_count = 0;
    if (!notes->spills)
        return kg_error_memory(error, "a list of spills");
    for (uint32_t i = 0; i < pairs; i++) {
        if (kg_elf_u32(attribute->bytes + 8 * i) != ANNOTATION_SPILL)
            continue;
        int32_t at = instruction_at(kg_elf_u32(attribute->bytes + 8 * i + 4), count);
        if (at < 0)
            return refuse(elf, attribute, "a spill stands outside the code", error);
        notes->spills[notes->spill_count++] = at;
    }
    qsort(notes->spills, (size_t)notes->spill_count, sizeof *notes->spills, by_value);
    return KG_OK;
}

// For each indirect branch: its offset, zero, a count, and that many offsets.
static enum kg_status read_tables(const struct kg_elf *elf,
                                  const struct kg_cubin_attribute *attribute, int32_t count,
                                  struct kg_arena *arena, struct kg_cubin_notes *notes,
                                  struct kg_error *error)
{
    uint32_t words = attribute->size / 4, at = 0;
    notes->tables = KG_NEW_ARRAY(arena, words / 3, struct kg_sass_table);
    int32_t *targets = KG_NEW_ARRAY(arena, words, int32_t);
    notes->table_count = 0;
    if (!notes->tables || !targets)
        return kg_error_memory(error, "tables of branches");
    while (words - at >= 3) {
        struct kg_sass_table *table = &notes->tables[notes->table_count++];
        uint32_t listed = kg_elf_u32(attribute->bytes + 4 * (at + 2));
        table->at = instruction_at(kg_elf_u32(attribute->bytes + 4 * at), count);
        at += 3;
        if (table->at < 0 || listed > words - at)
            return refuse(elf, attribute, "a table of branches is damaged", error);
        table->targets = targets;
        table->target_count = (int32_t)listed;
        for (uint32_t i = 0; i < listed; i++, at++) {
            *targets = instruction_at(kg_elf_u32(attribute->bytes + 4 * at), count);
            if (*targets++ < 0)
                return refuse(elf, attribute, "a branch leads outside the code", error);
        }
    }
    qsort(notes->tables, (size_t)notes->table_count, sizeof *notes->tables, by_place);
    return KG_OK;
}

static void read_three(const struct kg_cubin_attribute *attribute, int out[3])
{
    for (uint32_t i = 0; i < 3 && attribute->size >= 4 * (i + 1); i++)
        out[i] = (int)(kg_elf_u32(attribute->bytes + 4 * i) & INT32_MAX);
}

static void read_figure(const struct kg_cubin_attribute *attribute, struct kg_asm_kernel *kernel)
{
    switch (attribute->code) {
    case MAX_THREADS:
        read_three(attribute, kernel->max_threads);
        break;
    case REQUIRED_THREADS:
        read_three(attribute, kernel->required_threads);
        break;
    case CLUSTER:
        read_three(attribute, kernel->cluster);
        break;
    case MAX_CLUSTER:
        if (attribute->size >= 4)
            kernel->max_cluster = (int)(kg_elf_u32(attribute->bytes) & INT32_MAX);
        break;
    case PARAMETER_BYTES:
        kernel->parameter_bytes = attribute->value;
        break;
    case MAX_REGISTERS:
        kernel->max_registers = attribute->value == NO_REGISTER_LIMIT ? 0 : (int)attribute->value;
        break;
    case BARRIERS:
        kernel->barriers = (int)(attribute->value & 0xff);
        break;
    default:
        break;
    }
}

enum kg_status kg_cubin_notes(const struct kg_elf *elf, const struct kg_elf_section *section,
                              int32_t count, struct kg_arena *arena, struct kg_asm_kernel *kernel,
                              struct kg_cubin_notes *notes, struct kg_error *error)
{
    *notes = (struct kg_cubin_notes){0};
    struct kg_cubin_attribute attribute;
    enum kg_status status = KG_OK;
    uint64_t offset = 0;
    while (!status && kg_cubin_next(elf, section, &offset, &attribute, &status, error)) {
        if (attribute.code == ANNOTATIONS && attribute.bytes && !notes->spills)
            status = read_spills(elf, &attribute, count, arena, notes, error);
        else if (attribute.code == BRANCH_TABLES && attribute.bytes && !notes->tables)
            status = read_tables(elf, &attribute, count, arena, notes, error);
        else
            read_figure(&attribute, kernel);
    }
    return status;
}
