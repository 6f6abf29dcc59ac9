// Operands of packed 4-bit weights, `w: packed u4[K, N]`: a matrix that the definition reads as
// rows and columns, and that lies in memory as panels of 64 rows and 16 columns (docs/packed.md).
// The checker replaces the declared shape and every read by the shape and the index formulas of the
// panels. What comes after it sees an ordinary tensor of one dimension more; only what speaks to
// people, and the check of bounds, ask for rows and columns.

#ifndef KG_LANG_PANELS_H
#define KG_LANG_PANELS_H

#include "lang/op.h"

// One step of a warp's tensor instructions: what 32 lanes load with 16 bytes each.
#define KG_PANEL_ROWS 64
#define KG_PANEL_COLUMNS 16
#define KG_PANEL_CODES (KG_PANEL_ROWS * KG_PANEL_COLUMNS)

// Rank and dimensions as declared. Of a tensor that is not packed: those it has.
int kg_lang_declared_rank(const struct kg_tensor *tensor);
const struct kg_expr *kg_lang_declared_dim(const struct kg_tensor *tensor, int dimension);

// Whether a read has the subscripts of a code in panels, as a definition may spell them out, too;
// if so, of which row and column.
bool kg_lang_reads_panels(const struct kg_expr *read, const struct kg_expr **row,
                          const struct kg_expr **column);

// A read as written: kg_lang_declared_rank() subscripts. False: the subscripts are not those that
// the checker made, because a later layer has changed them.
bool kg_lang_declared_subscripts(const struct kg_expr *read,
                                 const struct kg_expr *subscripts[KG_MAX_RANK]);

#endif
