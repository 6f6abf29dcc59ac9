// The normalised hash of a function: its tokens, with registers, variables and parameters numbered
// in order of first use. Unused declarations, names of labels, line numbers and layout have no
// influence.

#include "asm/ptx_job.h"

#include <string.h>

void kg_ptx_note(struct kg_ptx_job *job, const void *bytes, size_t length)
{
    struct kg_ptx_function *function = &job->function;
    while (length > 0) {
        size_t room = sizeof function->notes - function->noted;
        size_t part = length < room ? length : room;
        memcpy(function->notes + function->noted, bytes, part);
        function->noted += part;
        bytes = (const char *)bytes + part;
        length -= part;
        if (function->noted == sizeof function->notes) {
            function->hash = kg_hash_chain(function->hash, function->notes, function->noted);
            function->noted = 0;
        }
    }
}

void kg_ptx_note_token(struct kg_ptx_job *job)
{
    kg_ptx_note(job, job->token.text, job->token.length);
    kg_ptx_note(job, " ", 1);
}

// Little-endian on every machine, because hashes are compared between machines.
void kg_ptx_note_integer(struct kg_ptx_job *job, int64_t value)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)((uint64_t)value >> (8 * i));
    kg_ptx_note(job, bytes, sizeof bytes);
}

void kg_ptx_note_symbol(struct kg_ptx_job *job, int32_t index)
{
    struct kg_ptx_symbol *symbol = &job->symbols.items[index];
    if (symbol->kind == KG_PTX_PLAIN) {
        const struct kg_ptx_name *name = &job->names.items[symbol->name];
        kg_ptx_note(job, kg_ptx_name_text(job, name), name->length);
        kg_ptx_note(job, " ", 1);
        return;
    }
    bool first = symbol->number < 0;
    if (first)
        symbol->number = job->function.next_number++;
    kg_ptx_note(job, symbol->kind == KG_PTX_REGISTER ? "%" : "$", 1);
    kg_ptx_note_integer(job, symbol->number);
    if (!first || symbol->kind != KG_PTX_VARIABLE)
        return;
    const struct kg_ptx_variable *variable = &job->variables.items[symbol->value];
    kg_ptx_note_integer(job, variable->space);
    kg_ptx_note_integer(job, variable->bytes);
    kg_ptx_note_integer(job, variable->align);
    kg_ptx_note_integer(job, (int64_t)variable->content);
}

struct kg_hash kg_ptx_noted(struct kg_ptx_job *job)
{
    struct kg_ptx_function *function = &job->function;
    return kg_hash_chain(function->hash, function->notes, function->noted);
}
