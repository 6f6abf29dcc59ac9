// Hashes what determines how the functions of a cubin run: instructions, constants, registers and
// shared memory, but not names, limits and debugging data. Sources that differ only in a limit that
// does not bind, or in a function that is not launched, get equal hashes.

#include "asm/elf_file.h"
#include "device/cuda/cuda_device.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

// Kinds of sections that count. Those of one function end in its name.
static const char *const kinds[] = {".text.", ".nv.constant", ".nv.shared.", ".nv.local.",
                                    ".nv.global"};

static bool counts(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strncmp(name, kinds[i], strlen(kinds[i])) == 0)
            return true;
    return false;
}

// ".text.kernel_2" -> 2; -1 for sections of all functions, KG_MAX_CODES for those that do not fit.
static int function_of(const char *name)
{
    const char *digits = strrchr(name, '_');
    if (!digits || !isdigit((unsigned char)digits[1]))
        return -1;
    long number = strtol(digits + 1, NULL, 10);
    return number < KG_MAX_CODES ? (int)number : KG_MAX_CODES;
}

static struct kg_hash add_section(struct kg_hash hash, const struct kg_elf_section *section)
{
    // High bits of a code section: registers; the rest is a symbol's number.
    uint64_t registers = section->header.sh_info >> 24;
    hash = kg_hash_chain_text(hash, section->name);
    hash = kg_hash_chain(hash, &section->header.sh_size, sizeof section->header.sh_size);
    hash = kg_hash_chain(hash, &registers, sizeof registers);
    return kg_hash_chain(hash, section->bytes, section->size);
}

void kg_cuda_hash_code(struct kg_binary *binary)
{
    struct kg_arena arena = {0};
    struct kg_elf elf;
    struct kg_hash common = {0};
    if (kg_elf_is(binary->bytes, binary->length) &&
        kg_elf_open(binary->bytes, binary->length, &arena, &elf, NULL) == KG_OK) {
        for (size_t i = 0; i < elf.section_count; i++) {
            const struct kg_elf_section *section = &elf.sections[i];
            int function = counts(section->name) ? function_of(section->name) : KG_MAX_CODES;
            if (function < 0)
                common = add_section(common, section);
            else if (function < KG_MAX_CODES)
                binary->code[function] = add_section(binary->code[function], section);
        }
        for (int i = 0; i < KG_MAX_CODES; i++)
            if (binary->code[i].high || binary->code[i].low)
                binary->code[i] = kg_hash_chain(binary->code[i], &common, sizeof common);
    }
    kg_arena_free(&arena);
}
