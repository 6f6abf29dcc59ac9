// Parts that several files of a bundle have.

#ifndef KG_EXPORT_BUNDLE_PARTS_H
#define KG_EXPORT_BUNDLE_PARTS_H

#include "export/bundle.h"

// """Description, then `role`, the definition.""" and a blank line.
void kg_bundle_heading(const struct kg_bundle *bundle, const char *role, struct kg_text *text);
// EPS = 1e-05
void kg_bundle_constants(const struct kg_bundle *bundle, struct kg_text *text);
// def NAME(x: torch.Tensor, *, N: int) -> torch.Tensor:
void kg_bundle_signature(const struct kg_bundle *bundle, const char *name, struct kg_text *text);
// The sizes that no input shows are arguments.
bool kg_bundle_has_size_arguments(const struct kg_bundle *bundle);
// Docstring and checks of a function's inputs; binds the sizes.
void kg_bundle_checks(const struct kg_bundle *bundle, struct kg_text *text);
// P, D = x.shape, for a function whose inputs are right.
void kg_bundle_bind_sizes(const struct kg_bundle *bundle, struct kg_text *text);

#endif
