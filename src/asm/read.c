// Whatever assembly it is: finds out, and calls its reader.

#include "asm/cubin.h"
#include "asm/elf_file.h"
#include "asm/facts.h"
#include "asm/object.h"
#include "asm/ptx.h"

// PTX begins with a directive or a comment.
static bool may_be_ptx(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r' && text[i] != '\n')
            return text[i] == '.' || text[i] == '/';
    return false;
}

enum kg_status kg_asm_read(const void *bytes, size_t length, struct kg_arena *arena,
                           struct kg_asm_file *file, struct kg_error *error)
{
    *file = (struct kg_asm_file){0};
    if (kg_cubin_is(bytes, length))
        return kg_cubin_read(bytes, length, arena, file, error);
    if (kg_elf_is(bytes, length))
        return kg_object_read(bytes, length, NULL, arena, file, error);
    if (may_be_ptx(bytes, length))
        return kg_ptx_read(bytes, length, arena, file, error);
    return kg_error_set(error, KG_ERROR_CORRUPT, "at offset 0: expected PTX text or an ELF file");
}
