// The public function of a module: its names, and the launches that families write into it.

#ifndef KG_GEN_TRITON_HOST_H
#define KG_GEN_TRITON_HOST_H

#include "gen/triton/triton_kernel.h"

// Names of the function; the same in all of its kernels' launches.
struct kg_triton_host {
    struct kg_arena *arena;
    struct kg_triton_names names;
    const char *tensors[KG_TRITON_TENSORS]; // by id
    const char *sizes[KG_MAX_SIZES];        // params: the module's constants
    const char *runs[KG_MAX_SIZES];         // names for what kg_triton_merge makes of sizes
    const char *index, *device;
    const char *tile; // "tile": what _tile returned
    const char *grid;
    const char *turns, *last, *across;         // what _spread says of a launch
    const char *part, *place, *chunk, *splits; // of sums that several programs share
    const char *counts[2];                     // "rows" and "cols" of a launch
};

// A size expression in Python, of primary precedence; and the number of an axis's values.
void kg_triton_host_size(struct kg_text *text, const struct kg_triton_host *host,
                         const struct kg_expr *expr);
void kg_triton_host_extent(struct kg_text *text, const struct kg_triton_host *host,
                           const struct kg_index *axis);
// "B * H" for the axes [first, last]; "1" for none.
void kg_triton_host_product(struct kg_text *text, const struct kg_triton_host *host,
                            const struct kg_nest *nest, int first, int last);
// The call of a kernel, which is launched by `called`: arguments by what its body uses. `constants`
// follow: "BLOCK=tile[0], ...".
void kg_triton_host_call(struct kg_text *text, const struct kg_triton_host *host,
                         const struct kg_triton_kernel *kernel, int level, const char *called,
                         const char *constants);

// Where a family writes: the kernels of a group and what the public function does with them.
struct kg_triton_unit {
    const struct kg_triton_host *host;
    const struct kg_group *group;
    const char *entry;   // of the kernel
    const char *comment; // the formulas of the group
    struct kg_text *kernels;
    struct kg_text *launches; // indented by one level
    struct kg_text *proofs;   // of what fits in an Ascend device's buffers; NULL: not wanted
};

// Writes what limits the tile of a launch: the call of _most, by how many values its kernels have
// for an element, that of _programs except for products, and what follows for an Ascend device.
// triton_ascend.c.
void kg_triton_add_most(struct kg_triton_unit *unit, int values, bool product);

// Begins a kernel called `entry`, or `entry` with `suffix` in front of its "_kernel"; NULL when out
// of memory, which the unit remembers. The end appends it and frees it.
struct kg_triton_kernel *kg_triton_unit_begin(struct kg_triton_unit *unit, const char *suffix);
void kg_triton_unit_end(struct kg_triton_unit *unit, struct kg_triton_kernel *kernel);

// What a match of a Triton family begins with: how its kernels are written.
struct kg_triton_plan {
    void (*write)(const struct kg_triton_plan *plan, struct kg_triton_unit *unit);
    const char *what; // the kernel's form, in a line
};

#endif
