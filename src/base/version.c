// The version of the library. Lower layers name it too, in the keys of what they record.

#include "kernelgen.h"

const char *kg_version(void)
{
    return KG_VERSION;
}
