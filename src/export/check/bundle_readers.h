// What the readers of a bundle's files share.

#ifndef KG_EXPORT_CHECK_BUNDLE_READERS_H
#define KG_EXPORT_CHECK_BUNDLE_READERS_H

#include "export/check/bundle_facts.h"
#include "export/check/stated_shapes.h"

// A literal number, also as tl.constexpr(...) or float("inf").
bool kg_bundle_number(struct kg_arena *arena, const struct kg_python_tokens *tokens,
                      struct kg_python_range range, double *number);
// The inside of the string that is the whole of a line.
bool kg_bundle_docstring(const struct kg_python_lines *lines, int line,
                         struct kg_python_place *place);
// Takes the next line of a text off `rest`, without its end and blanks before that.
bool kg_bundle_next_line(const char *text, struct kg_python_place *rest,
                         struct kg_python_place *line);
// The constants of a module as sizes.
void kg_bundle_bind_constants(struct kg_stated *stated);
// What a function's docstring says of its tensors: "x: (P, D) of T", "gives y: f32 [P, D]".
void kg_bundle_read_docs(struct kg_bundle_facts *facts, int role,
                         const struct kg_bundle_source *source,
                         const struct kg_python_function *function, struct kg_python_place text);

#endif
