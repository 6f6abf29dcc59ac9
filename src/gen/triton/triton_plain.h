// Kernels for a single nest, whatever it is.

#ifndef KG_GEN_TRITON_PLAIN_H
#define KG_GEN_TRITON_PLAIN_H

#include "gen/triton/triton_host.h"

// What all families of this target have in common; see gen/family.h.
void kg_triton_space(const struct kg_match *match, struct kg_space *space);
bool kg_triton_valid(const struct kg_match *match, const struct kg_config *config,
                     struct kg_text *reason);
void kg_triton_guess(const struct kg_match *match, struct kg_config *config);
bool kg_triton_emit(const struct kg_match *match, const struct kg_config *config, const char *entry,
                    struct kg_text *source);

// Whether the nest reduces a range that is known when the module is written: a window.
bool kg_triton_is_window(const struct kg_nest *nest);
// Writes a group whose only reduction, at position k, has neither relations nor a window.
void kg_triton_write_reduction(struct kg_triton_unit *unit, int k);

// Writes a group of statements over the same axes, none of which reduces.
void kg_triton_write_elements(struct kg_triton_unit *unit);

// Names for a problem's public function. `arena` outlives it.
void kg_triton_host_begin(struct kg_triton_host *host, const struct kg_problem *problem,
                          struct kg_arena *arena);

#endif
