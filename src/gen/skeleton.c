// Looking up embedded skeletons by name.

#include "gen/skeleton.h"

#include <stddef.h>
#include <string.h>

const char *kg_skeleton_find(const char *name)
{
    for (const struct kg_skeleton *skeleton = kg_skeletons; skeleton->name; skeleton++)
        if (strcmp(skeleton->name, name) == 0)
            return skeleton->text;
    return NULL;
}
