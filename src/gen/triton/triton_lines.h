// Breaking long lines of generated Python.

#ifndef KG_GEN_TRITON_LINES_H
#define KG_GEN_TRITON_LINES_H

#include "base/text.h"

// Appends whole lines of statements, broken to 100 columns where parentheses allow it.
void kg_triton_add_lines(struct kg_text *text, const char *lines);
// Appends lines of a docstring; those that are too long are broken at blanks, and indented.
void kg_triton_add_prose(struct kg_text *text, const char *lines);

#endif
