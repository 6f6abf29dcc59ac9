// See binary_gist.h.

#include "flow/binary_gist.h"

#include "base/files.h"

#include <stdlib.h>

#define LONGEST_OBJECT ((size_t)64 << 20)

void kg_binary_gist(const struct kg_binary *binary, const char *const *names, int count,
                    struct kg_asm_gist *gist)
{
    struct kg_arena arena = {0};
    struct kg_asm_file file;
    const void *bytes = binary->bytes;
    size_t length = binary->length;
    char *object = NULL; // the host's binaries are files
    if (!bytes && binary->path &&
        kg_files_read(binary->path, LONGEST_OBJECT, &object, &length, NULL) == KG_OK)
        bytes = object;
    if (!bytes || kg_asm_read(bytes, length, &arena, &file, NULL) != KG_OK ||
        !kg_asm_gist_add(gist, &file, names, count))
        *gist = (struct kg_asm_gist){0};
    kg_arena_free(&arena);
    free(object);
}
