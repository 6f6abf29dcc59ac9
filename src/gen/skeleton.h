// Kernel skeletons, embedded at build time from kernels/ (cmake/embed.cmake).

#ifndef KG_GEN_SKELETON_H
#define KG_GEN_SKELETON_H

struct kg_skeleton {
    const char *name; // path below kernels/: "host/prelude.h"
    const char *text;
};

extern const struct kg_skeleton kg_skeletons[]; // ends with a NULL name

// The text of a skeleton; NULL when there is none of that name.
const char *kg_skeleton_find(const char *name);

#endif
