// Docstrings of emitted Python.

#ifndef KG_GEN_DOCSTRING_H
#define KG_GEN_DOCSTRING_H

#include "base/text.h"

// Appends a line or several as the inside of a docstring: backslashes and quotes are escaped.
void kg_docstring_escape(struct kg_text *text, const char *lines);
// Appends a comment of a definition as prose: each paragraph is filled to 100 columns, from where
// `text` ends now; further lines begin with `indent` blanks. Empty lines part paragraphs, an item
// of a list (- or *) begins a line, and indented lines stay as they are.
void kg_docstring_prose(struct kg_text *text, const char *lines, int indent);

#endif
