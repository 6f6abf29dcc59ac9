// A 64-bit little-endian ELF file in memory, the common format of cubins and x86 objects. libelf
// finds the headers; every offset and size is checked against the file, so that all results lie
// within the given bytes.

#ifndef KG_ASM_ELF_FILE_H
#define KG_ASM_ELF_FILE_H

#include "base/arena.h"
#include "base/error.h"

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

struct kg_elf_section {
    const char *name; // borrowed from the file
    Elf64_Shdr header;
    const uint8_t *bytes; // NULL for a section without bytes in the file
    uint64_t size;        // of `bytes`: 0 when it is NULL
};

struct kg_elf {
    const uint8_t *bytes; // the file, borrowed
    size_t length;
    Elf64_Ehdr header;
    struct kg_elf_section *sections; // by index; the first is a dummy
    size_t section_count;
    const struct kg_elf_section *symbols; // .symtab, NULL when there is none
    size_t symbol_count;
};

bool kg_elf_is(const void *bytes, size_t length);

// Borrows `bytes`; the sections are allocated in `arena`. A damaged file, or another kind of ELF,
// gives KG_ERROR_CORRUPT with the offset of the problem.
enum kg_status kg_elf_open(const void *bytes, size_t length, struct kg_arena *arena,
                           struct kg_elf *elf, struct kg_error *error);

// The first section of this name, or NULL.
const struct kg_elf_section *kg_elf_find(const struct kg_elf *elf, const char *name);

// `index` < symbol_count. `*name` is borrowed from the file, "" if it is missing or invalid.
Elf64_Sym kg_elf_symbol(const struct kg_elf *elf, size_t index, const char **name);

// The offset of a section's bytes in the file, for messages.
uint64_t kg_elf_offset(const struct kg_elf *elf, const uint8_t *at);

// Unaligned, little-endian. Inline, because files of many megabytes are read through these.
static inline uint16_t kg_elf_u16(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static inline uint32_t kg_elf_u32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline uint64_t kg_elf_u64(const uint8_t *at)
{
    return kg_elf_u32(at) | (uint64_t)kg_elf_u32(at + 4) << 32;
}

#endif
