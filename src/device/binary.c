// What compilers made, given back. Apart from the registry, which knows every backend: compilers of
// backends call this, and must not depend on the other backends.

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
