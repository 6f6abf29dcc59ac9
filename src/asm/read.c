// Recognises the format of an assembly file and calls its reader. Files that are often mistaken for
// assembly are named, with advice on what to do.

#include "asm/cubin.h"
#include "asm/elf_file.h"
#include "asm/facts.h"
#include "asm/object.h"
#include "asm/ptx.h"

#include <string.h>

// Files that are found beside assembly, by their first bytes.
static const struct {
    const char *begin;
    size_t length;
    const char *advice;
} others[] = {
    {"\x50\xed\x55\xba", 4,
     "a fatbinary, which holds cubins and PTX; take them out first: cuobjdump -xelf all FILE, or "
     "-xptx all (compile with nvcc -cubin or -ptx to get them alone)"},
    {"!<arch>\n", 8, "an archive of objects; take them out first: ar x FILE"},
    {"BC\xC0\xDE", 4, "LLVM bitcode; let llc or ptxas make assembly of it"},
    {"#loc", 4, "MLIR; Triton keeps the .ptx and the .cubin beside it"},
    {"module", 6, "MLIR; Triton keeps the .ptx and the .cubin beside it"},
    {"; ModuleID", 10, "LLVM IR; Triton keeps the .ptx and the .cubin beside it"},
    {"#include", 8, "a source; compile it first: nvcc -cubin or nvcc -ptx"},
    {"\x7f"
     "ELF\x01",
     5, "a 32-bit ELF file; those of 64 bits are read"},
};

// PTX begins with a directive or a comment.
static bool may_be_ptx(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r' && text[i] != '\n')
            return text[i] == '.' || text[i] == '/';
    return false;
}

static enum kg_status refuse(const char *bytes, size_t length, struct kg_error *error)
{
    if (length == 0)
        return kg_error_set(error, KG_ERROR_CORRUPT, "at offset 0: the file is empty");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (length >= others[i].length && memcmp(bytes, others[i].begin, others[i].length) == 0)
            return kg_error_set(error, KG_ERROR_CORRUPT, "at offset 0: this is %s",
                                others[i].advice);
    return kg_error_set(error, KG_ERROR_CORRUPT, "at offset 0: expected PTX text or an ELF file");
}

const char *kg_asm_notice(const void *bytes, size_t length)
{
    const char *notice = NULL;
    struct kg_arena scratch = {0};
    struct kg_elf elf;
    if (!kg_cubin_is(bytes, length) && kg_elf_is(bytes, length) &&
        kg_elf_open(bytes, length, &scratch, &elf, NULL) == KG_OK &&
        (kg_elf_find(&elf, ".nv_fatbin") || kg_elf_find(&elf, "__nv_relfatbin")))
        notice = "code for GPUs is embedded in this file too, and is not shown: what follows is "
                 "its code for the CPU. Take the cubins out with: cuobjdump -xelf all FILE";
    kg_arena_free(&scratch);
    return notice;
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
    return refuse(bytes, length, error);
}
