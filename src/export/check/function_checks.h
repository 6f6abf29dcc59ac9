// Statements in the body of a bundle's function that say something of its tensors.

#ifndef KG_EXPORT_CHECK_FUNCTION_CHECKS_H
#define KG_EXPORT_CHECK_FUNCTION_CHECKS_H

#include "export/check/stated_shapes.h"

// Checks as the emitter writes them (_check, _check_shape, _check_packed), conditions before a
// `raise`, assertions; sizes and dtypes bound to names; outputs allocated and returned.
void kg_bundle_read_statement(struct kg_stated *stated, int line);

#endif
