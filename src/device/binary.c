// Frees the output of a compiler. It is separate from the registry, because the compilers of
// backends call it and must not depend on other backends.

#include "device/device.h"

#include <stdlib.h>

void kg_binary_free(struct kg_binary *binary)
{
    if (!binary)
        return;
    free(binary->path);
    free(binary->bytes);
    free(binary->ptx);
    free(binary->log);
    *binary = (struct kg_binary){0};
}
