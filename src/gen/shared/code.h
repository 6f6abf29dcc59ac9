// Writing indented C, line by line.

#ifndef KG_GEN_CODE_H
#define KG_GEN_CODE_H

#include "base/text.h"

struct kg_code {
    struct kg_text *text;
    int depth;
};

void kg_code_line(struct kg_code *code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// A line that opens a block: adds " {" and indents what follows.
void kg_code_open(struct kg_code *code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void kg_code_close(struct kg_code *code);
// A statement alone under a header, without braces: everything until `kg_code_outdent`.
void kg_code_indent(struct kg_code *code);
void kg_code_outdent(struct kg_code *code);
// The indentation and the end of a line that the caller prints itself.
void kg_code_begin(struct kg_code *code);
void kg_code_end(struct kg_code *code);

#endif
