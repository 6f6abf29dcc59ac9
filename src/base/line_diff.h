// The lines in which two texts differ, as a unified diff.

#ifndef KG_BASE_LINE_DIFF_H
#define KG_BASE_LINE_DIFF_H

#include "base/text.h"

// Appends the diff as `diff -u` and `git diff` write it, with three lines of context, so that
// `patch` makes `after` of `before`; nothing if both are equal. Time and memory are bounded: it is
// the shortest diff unless the texts differ in thousands of lines, and then still a right one. The
// names are shown through base/printable.h.
void kg_line_diff(const char *before, const char *after, const char *name_before,
                  const char *name_after, struct kg_text *diff);

#endif
