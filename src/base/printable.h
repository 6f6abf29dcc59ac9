// Text that others wrote, before it is shown: names from records and wisdom, from files of
// assembly, names of files. A terminal would take some of its bytes as commands.

#ifndef KG_BASE_PRINTABLE_H
#define KG_BASE_PRINTABLE_H

#include "base/text.h"

// Replaces each byte of a control character and of what is no UTF-8 by a question mark, in place.
// So are the characters that change the direction of writing. Line ends and tabs stay.
void kg_printable_text(char *text, size_t length);
// Appends a name so changed; line ends and tabs do not stay.
void kg_text_add_printable(struct kg_text *text, const char *name);
// Whether kg_text_add_printable would append it unchanged.
bool kg_printable_is(const char *name);

#endif
