// Writing indented C, line by line.

#include "gen/shared/code.h"

void kg_code_begin(struct kg_code *code)
{
    for (int i = 0; i < code->depth; i++)
        kg_text_add(code->text, "    ");
}

void kg_code_end(struct kg_code *code)
{
    kg_text_add(code->text, "\n");
}

void kg_code_line(struct kg_code *code, const char *format, ...)
{
    va_list arguments;
    kg_code_begin(code);
    va_start(arguments, format);
    kg_text_vformat(code->text, format, arguments);
    va_end(arguments);
    kg_code_end(code);
}

void kg_code_open(struct kg_code *code, const char *format, ...)
{
    va_list arguments;
    kg_code_begin(code);
    va_start(arguments, format);
    kg_text_vformat(code->text, format, arguments);
    va_end(arguments);
    kg_text_add(code->text, " {\n");
    code->depth++;
}

void kg_code_close(struct kg_code *code)
{
    code->depth--;
    kg_code_line(code, "}");
}

void kg_code_indent(struct kg_code *code)
{
    code->depth++;
}

void kg_code_outdent(struct kg_code *code)
{
    code->depth--;
}
