// The sizes that a bundle's accuracy file tests.

#ifndef KG_EXPORT_BUNDLE_ROWS_H
#define KG_EXPORT_BUNDLE_ROWS_H

#include "export/bundle.h"

// ROWS = [dict(P=1, D=1), ...]: the goal's rows, then sizes of one, of nothing, primes, and those
// around a tile.
void kg_bundle_rows(const struct kg_bundle *bundle, struct kg_text *text);

#endif
