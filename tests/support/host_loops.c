// Prints the innermost loops of one block in a host object, for tools/mca_evidence.py:
//
//   FUNCTION FIRST LAST cycles        (offsets in its section, hexadecimal; cycles of one trip)

#include "asm/object.h"
#include "base/files.h"

#include <stdio.h>
#include <stdlib.h>

static void print_loops(const struct kg_asm_kernel *kernel)
{
    for (int32_t l = 0; l < kernel->flow.loop_count; l++)
        if (kernel->flow.loops[l].block_count == 1)
            printf("%s %llx %llx %g\n", kernel->name, (unsigned long long)kernel->loops[l].first,
                   (unsigned long long)kernel->loops[l].last, kernel->loops[l].issue_cycles);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: host_loops CORE FILE\n");
        return 2;
    }
    struct kg_error error = {0};
    struct kg_arena arena = {0};
    struct kg_asm_file file = {0};
    char *bytes = NULL;
    size_t length = 0;
    enum kg_status status = kg_files_read(argv[2], (size_t)1 << 30, &bytes, &length, &error);
    if (!status)
        status = kg_object_read(bytes, length, kg_x86_core_find(argv[1]), &arena, &file, &error);
    for (int k = 0; !status && k < file.kernel_count; k++)
        print_loops(&file.kernels[k]);
    if (status)
        fprintf(stderr, "%s: %s\n", argv[2], error.text);
    kg_arena_free(&arena);
    free(bytes);
    return status != KG_OK;
}
