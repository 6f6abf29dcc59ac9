// The frame of a Triton kernel: see triton_kernel.h.

#include "gen/triton/triton_kernel.h"

#include "gen/triton/triton_lines.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

void kg_triton_kernel_begin(struct kg_triton_kernel *kernel, const struct kg_group *group,
                            const char *entry)
{
    *kernel = (struct kg_triton_kernel){.group = group, .level = 2};
    snprintf(kernel->entry, sizeof kernel->entry, "%s", entry);
    kernel->names.arena = &kernel->arena;
    kernel->names.is_kernel = true;
    const struct kg_op *op = group->problem->op;
    for (int i = 0; i < op->size_count; i++) {
        struct kg_text name = {0};
        if (op->sizes[i]->is_param)
            kg_triton_param(&name, op, op->sizes[i]);
        else
            kg_text_add(&name, op->sizes[i]->name);
        kernel->sizes[i] = kg_triton_name(&kernel->names, kg_text_string(&name));
        kg_text_free(&name);
    }
    kernel->turns = kg_triton_fresh(kernel, "turns");
    kernel->last = kg_triton_fresh(kernel, "last");
    kernel->across = kg_triton_fresh(kernel, "across");
    kernel->turn = kg_triton_fresh(kernel, "turn");
    kernel->program = kg_triton_fresh(kernel, "program");
    kernel->column = kg_triton_fresh(kernel, "program_col");
}

const char *kg_triton_program(struct kg_triton_kernel *kernel, int dimension, bool as_index)
{
    kernel->uses_column |= dimension == 1;
    const char *name = dimension == 1 ? kernel->column : kernel->program;
    return as_index ? kg_triton_format(kernel, "%s.to(INDEX)", name) : name;
}

void kg_triton_kernel_free(struct kg_triton_kernel *kernel)
{
    kg_text_free(&kernel->body);
    kg_arena_free(&kernel->arena);
}

bool kg_triton_kernel_failed(const struct kg_triton_kernel *kernel)
{
    return kernel->body.failed || kernel->arena.failed;
}

int kg_triton_values(const struct kg_triton_kernel *kernel)
{
    int count = 1;
    const char *at = kg_text_string(&kernel->body);
    while ((at = strstr(at, " = ")) != NULL) {
        count++;
        at += 3;
    }
    bool wide = strstr(kg_text_string(&kernel->body), "tl.int64") ||
                strstr(kg_text_string(&kernel->body), "tl.float64");
    return wide ? 2 * count : count;
}

void kg_triton_line(struct kg_triton_kernel *kernel, const char *format, ...)
{
    va_list arguments;
    kg_text_format(&kernel->body, "%*s", 4 * kernel->level, "");
    va_start(arguments, format);
    kg_text_vformat(&kernel->body, format, arguments);
    va_end(arguments);
    kg_text_add(&kernel->body, "\n");
}

void kg_triton_open(struct kg_triton_kernel *kernel, const char *format, ...)
{
    va_list arguments;
    kg_text_format(&kernel->body, "%*s", 4 * kernel->level, "");
    va_start(arguments, format);
    kg_text_vformat(&kernel->body, format, arguments);
    va_end(arguments);
    kg_text_add(&kernel->body, ":\n");
    kernel->level++;
}

void kg_triton_close(struct kg_triton_kernel *kernel)
{
    int kept = 0;
    for (int i = 0; i < kernel->load_count; i++)
        if (kernel->loads[i].level < kernel->level)
            kernel->loads[kept++] = kernel->loads[i];
    kernel->load_count = kept;
    kernel->level--;
}

const char *kg_triton_keep(struct kg_triton_kernel *kernel, struct kg_text *text)
{
    const char *kept =
        text->failed ? NULL : kg_arena_copy(&kernel->arena, kg_text_string(text), text->length);
    kg_text_free(text);
    kernel->arena.failed |= !kept;
    return kept ? kept : "";
}

const char *kg_triton_format(struct kg_triton_kernel *kernel, const char *format, ...)
{
    struct kg_text text = {0};
    va_list arguments;
    va_start(arguments, format);
    kg_text_vformat(&text, format, arguments);
    va_end(arguments);
    return kg_triton_keep(kernel, &text);
}

const char *kg_triton_operand(struct kg_triton_kernel *kernel, const char *text)
{
    return strchr(text, ' ') ? kg_triton_format(kernel, "(%s)", text) : text;
}

const char *kg_triton_fresh(struct kg_triton_kernel *kernel, const char *base)
{
    return kg_triton_name(&kernel->names, base);
}

const char *kg_triton_block(struct kg_triton_kernel *kernel, const char *name)
{
    for (int i = 0; i < kernel->block_count; i++)
        if (strcmp(kernel->blocks[i], name) == 0)
            return name;
    if (kernel->block_count < 4)
        kernel->blocks[kernel->block_count++] = name;
    return name;
}

void kg_triton_extra(struct kg_triton_kernel *kernel, const char *name, const char *argument)
{
    if (kernel->extra_count == sizeof kernel->extras / sizeof *kernel->extras) {
        kernel->arena.failed = true;
        return;
    }
    kernel->extras[kernel->extra_count].name = kg_triton_fresh(kernel, name);
    kernel->extras[kernel->extra_count++].argument = argument;
}

void kg_triton_param(struct kg_text *text, const struct kg_op *op, const struct kg_size *param)
{
    size_t before = text->length;
    for (const char *c = param->name; *c; c++)
        kg_text_format(text, "%c", toupper((unsigned char)*c));
    bool taken = false;
    for (int i = 0; i < op->size_count; i++)
        taken |= op->sizes[i] != param && strcmp(op->sizes[i]->name, text->data + before) == 0;
    for (int i = 0; i < op->tensor_count; i++)
        taken |= strcmp(op->tensors[i]->name, text->data + before) == 0;
    if (taken)
        kg_text_add(text, "_PARAM");
}

static void add_argument(struct kg_text *text, size_t *line, const char *name)
{
    if (text->length - *line + strlen(name) > 96) {
        kg_text_add(text, "\n    ");
        *line = text->length - 4;
    } else if (text->length > *line && text->data[text->length - 1] == ',') {
        kg_text_add(text, " ");
    }
    kg_text_format(text, "%s,", name);
}

// The loop over a program's turns, and which tile each is.
static void add_turns(const struct kg_triton_kernel *kernel, struct kg_text *text)
{
    kg_text_format(text, "    for %s in range(%s):\n", kernel->turn, kernel->turns);
    if (kernel->uses_column)
        kg_text_format(text, "        %s, %s = _place(%s, %s, %s)\n", kernel->program,
                       kernel->column, kernel->turn, kernel->last, kernel->across);
    else
        kg_text_format(text, "        %s = _number(%s, %s)\n", kernel->program, kernel->turn,
                       kernel->last);
}

void kg_triton_kernel_text(const struct kg_triton_kernel *kernel, const char *comment,
                           struct kg_text *text)
{
    const struct kg_problem *problem = kernel->group->problem;
    kg_text_add(text, "@triton.jit");
    for (int i = 0; i < kernel->divisor_count; i++)
        kg_text_format(text, "%s\"%s\"%s", i ? ", " : "(do_not_specialize=[",
                       kernel->divisors[i].name, i + 1 < kernel->divisor_count ? "" : "])");
    kg_text_format(text, "\ndef %s(\n    ", kernel->entry);
    size_t line = text->length - 4;
    for (int i = 0; i < problem->tensor_count; i++)
        if (kernel->pointers[i])
            add_argument(text, &line, kernel->pointers[i]);
    for (int i = 0; i < kernel->extra_count; i++)
        add_argument(text, &line, kernel->extras[i].name);
    for (int i = 0; i < problem->tensor_count; i++)
        for (int d = 0; d < problem->tensors[i]->rank; d++)
            if (kernel->strides[i][d])
                add_argument(text, &line, kernel->strides[i][d]);
    add_argument(text, &line, kernel->turns);
    add_argument(text, &line, kernel->last);
    if (kernel->uses_column)
        add_argument(text, &line, kernel->across);
    for (int i = 0; i < kernel->divisor_count; i++)
        add_argument(text, &line, kernel->divisors[i].name);
    struct kg_text constant = {0};
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < kernel->extent_count && pass == 1; i++)
            add_argument(text, &line, kernel->extents[i].name);
        for (int i = 0; i < problem->op->size_count; i++) {
            bool constexpr = problem->op->sizes[i]->is_param || kernel->is_constant[i];
            if (!kernel->uses_size[i] || constexpr != (pass == 1))
                continue;
            kg_text_cut(&constant, 0);
            kg_text_format(&constant, "%s%s", kernel->sizes[i], constexpr ? ": tl.constexpr" : "");
            add_argument(text, &line, kg_text_string(&constant));
        }
    }
    add_argument(text, &line, "INDEX: tl.constexpr");
    if (kernel->uses_once)
        add_argument(text, &line, "ONCE: tl.constexpr");
    for (int i = 0; i < kernel->block_count; i++) {
        kg_text_cut(&constant, 0);
        kg_text_format(&constant, "%s: tl.constexpr", kernel->blocks[i]);
        add_argument(text, &line, kg_text_string(&constant));
    }
    kg_text_cut(&constant, 0);
    kg_text_format(&constant, "    \"\"\"%s\"\"\"\n", comment);
    kg_text_add(text, "\n):\n");
    kg_triton_add_prose(text, kg_text_string(&constant));
    kg_text_cut(&constant, 0);
    add_turns(kernel, &constant);
    kg_text_add(&constant, kg_text_string(&kernel->body));
    kg_triton_add_lines(text, kg_text_string(&constant));
    text->failed |= constant.failed;
    kg_text_free(&constant);
}
