// Names and scopes. A name is interned once per file; its meaning is a chain of symbols, the
// innermost first, which is undone when a scope is closed. The symbols themselves remain until the
// function is complete, because its instructions refer to them.

#include "asm/ptx_job.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 1024
#define MAX_INDEX_DIGITS 9

const char *kg_ptx_name_text(const struct kg_ptx_job *job, const struct kg_ptx_name *name)
{
    return name->offset < job->length ? job->text + name->offset
                                      : job->joined.items + (name->offset - job->length);
}

// Seeded by an address, so that no file can be written whose names all collide.
static uint32_t hash_name(const struct kg_ptx_job *job, const char *text, uint32_t length)
{
    uint64_t hash = (uint64_t)(uintptr_t)job ^ 0x9E3779B97F4A7C15u;
    for (uint32_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001B3u;
    hash ^= hash >> 29;
    return (uint32_t)((hash * 0xBF58476D1CE4E5B9u) >> 32);
}

static void grow_slots(struct kg_ptx_job *job)
{
    uint32_t count = job->slot_count ? job->slot_count * 2 : FIRST_SLOTS;
    int32_t *slots = calloc(count, sizeof *slots);
    if (!slots)
        kg_ptx_fail_memory(job);
    for (int32_t n = 0; n < job->names.count; n++) {
        const struct kg_ptx_name *name = &job->names.items[n];
        uint32_t at = hash_name(job, kg_ptx_name_text(job, name), name->length) & (count - 1);
        while (slots[at])
            at = (at + 1) & (count - 1);
        slots[at] = n + 1;
    }
    free(job->name_slots);
    job->name_slots = slots;
    job->slot_count = count;
}

// The slot of the name, or an empty one.
static uint32_t find_slot(const struct kg_ptx_job *job, const char *text, uint32_t length,
                          uint32_t hash)
{
    uint32_t mask = job->slot_count - 1, at = hash & mask;
    for (; job->name_slots[at]; at = (at + 1) & mask) {
        const struct kg_ptx_name *name = &job->names.items[job->name_slots[at] - 1];
        if (name->length == length && memcmp(kg_ptx_name_text(job, name), text, length) == 0)
            break;
    }
    return at;
}

int32_t kg_ptx_name(struct kg_ptx_job *job, const char *text, uint32_t length)
{
    if ((uint32_t)job->names.count >= job->slot_count / 4 * 3)
        grow_slots(job);
    uint32_t hash = hash_name(job, text, length), at = find_slot(job, text, length, hash);
    if (job->name_slots[at])
        return job->name_slots[at] - 1;
    bool in_text = (uintptr_t)text - (uintptr_t)job->text < job->length;
    size_t offset =
        in_text ? (size_t)(text - job->text) : job->length + (size_t)(text - job->joined.items);
    *KG_PTX_ADD(job, &job->names) = (struct kg_ptx_name){
        .offset = (uint32_t)offset,
        .length = length,
        .symbol = -1,
        .role = -1,
    };
    job->name_slots[at] = job->names.count;
    return job->names.count - 1;
}

struct kg_ptx_role *kg_ptx_role(struct kg_ptx_job *job, int32_t name)
{
    int32_t known = job->names.items[name].role;
    if (known >= 0)
        return &job->roles.items[known];
    struct kg_ptx_role *role = KG_PTX_ADD(job, &job->roles);
    *role = (struct kg_ptx_role){.prefix = -1, .form = -1};
    job->names.items[name].role = job->roles.count - 1;
    return role;
}

static struct kg_ptx_symbol *declare_at(struct kg_ptx_job *job, int depth, int32_t name,
                                        enum kg_ptx_symbol_kind kind, int32_t value)
{
    struct kg_ptx_symbol *symbol = KG_PTX_ADD(job, &job->symbols);
    *symbol = (struct kg_ptx_symbol){
        .name = name,
        .hidden = job->names.items[name].symbol,
        .number = -1,
        .value = value,
        .kind = (uint8_t)kind,
        .depth = (uint8_t)depth,
    };
    job->names.items[name].symbol = job->symbols.count - 1;
    return symbol;
}

struct kg_ptx_symbol *kg_ptx_declare(struct kg_ptx_job *job, int32_t name,
                                     enum kg_ptx_symbol_kind kind, int32_t value)
{
    return declare_at(job, job->depth, name, kind, value);
}

void kg_ptx_declare_prefix(struct kg_ptx_job *job, int32_t name, int64_t count)
{
    int32_t known = kg_ptx_role(job, name)->prefix;
    if (known >= 0 && job->prefixes.items[known].depth == job->depth) {
        if (job->prefixes.items[known].count < count)
            job->prefixes.items[known].count = count;
        return;
    }
    *KG_PTX_ADD(job, &job->prefixes) =
        (struct kg_ptx_prefix){.name = name, .hidden = known, .depth = job->depth, .count = count};
    kg_ptx_role(job, name)->prefix = job->prefixes.count - 1;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

// The innermost .reg NAME<count> that declares the word, -1: none. The boundary between name and
// index is ambiguous: %a12 may be of %a<13> or of %a1<3>.
static int32_t find_prefix(const struct kg_ptx_job *job, const char *text, uint32_t length)
{
    uint32_t stem = length;
    while (stem > 1 && length - stem < MAX_INDEX_DIGITS && is_digit(text[stem - 1]))
        stem--;
    for (; stem < length; stem++) {
        int32_t index = 0;
        for (uint32_t i = stem; i < length; i++)
            index = 10 * index + (text[i] - '0');
        int32_t slot = job->name_slots[find_slot(job, text, stem, hash_name(job, text, stem))];
        int32_t role = slot ? job->names.items[slot - 1].role : -1;
        int32_t prefix = role >= 0 ? job->roles.items[role].prefix : -1;
        while (prefix >= 0 && job->prefixes.items[prefix].count <= index)
            prefix = job->prefixes.items[prefix].hidden;
        if (prefix >= 0)
            return prefix;
    }
    return -1;
}

int32_t kg_ptx_look_up(struct kg_ptx_job *job, const struct kg_ptx_token *token)
{
    int32_t name = kg_ptx_name(job, token->text, token->stem);
    int32_t known = job->names.items[name].symbol;
    bool nested = job->prefixes.count > 0 && job->prefixes.items[job->prefixes.count - 1].depth > 1;
    if (known >= 0 && (!nested || job->symbols.items[known].depth == job->depth))
        return known;
    int32_t prefix = find_prefix(job, token->text, token->stem);
    int depth = prefix >= 0 ? job->prefixes.items[prefix].depth : 1;
    if (known >= 0 && (prefix < 0 || job->symbols.items[known].depth >= depth))
        return known;
    declare_at(job, depth, name, prefix >= 0 ? KG_PTX_REGISTER : KG_PTX_PLAIN, -1);
    return job->symbols.count - 1;
}

void kg_ptx_open_scope(struct kg_ptx_job *job)
{
    if (job->depth >= KG_PTX_MAX_DEPTH)
        kg_ptx_fail(job, job->token.text, job->token.line, "scopes nested deeper than %d levels",
                    KG_PTX_MAX_DEPTH);
    job->depth++;
    job->scope_symbols[job->depth] = job->symbols.count;
    job->function.open_references[job->depth] = -1;
}

static void settle(struct kg_ptx_job *job, const struct kg_ptx_reference *reference, int32_t value)
{
    if (reference->instruction >= 0)
        job->function.instructions.items[reference->instruction].target = value;
    else
        job->function.table_targets.items[reference->slot] = value;
}

static void settle_references(struct kg_ptx_job *job)
{
    struct kg_ptx_function *function = &job->function;
    int32_t next;
    for (int32_t r = function->open_references[job->depth]; r >= 0; r = next) {
        struct kg_ptx_reference *reference = &function->references.items[r];
        next = reference->outer;
        const struct kg_ptx_name *name = &job->names.items[reference->name];
        const struct kg_ptx_symbol *symbol =
            name->symbol >= 0 ? &job->symbols.items[name->symbol] : NULL;
        enum kg_ptx_symbol_kind wanted = reference->table ? KG_PTX_TABLE : KG_PTX_LABEL;
        if (symbol && symbol->depth == job->depth && symbol->kind == wanted) {
            settle(job, reference, symbol->value);
        } else if (job->depth > 1) {
            reference->outer = function->open_references[job->depth - 1];
            function->open_references[job->depth - 1] = r;
        } else {
            int shown = name->length < 80 ? (int)name->length : 80;
            kg_ptx_fail(job, job->text + reference->offset, reference->line,
                        "no %s \"%.*s\" in this function", reference->table ? "table" : "label",
                        shown, kg_ptx_name_text(job, name));
        }
    }
}

void kg_ptx_close_scope(struct kg_ptx_job *job)
{
    settle_references(job);
    for (int32_t s = job->symbols.count - 1; s >= job->scope_symbols[job->depth]; s--) {
        const struct kg_ptx_symbol *symbol = &job->symbols.items[s];
        if (symbol->depth == job->depth)
            job->names.items[symbol->name].symbol = symbol->hidden;
    }
    while (job->prefixes.count > 0) {
        const struct kg_ptx_prefix *prefix = &job->prefixes.items[job->prefixes.count - 1];
        if (prefix->depth < job->depth)
            break;
        kg_ptx_role(job, prefix->name)->prefix = prefix->hidden;
        job->prefixes.count--;
    }
    job->depth--;
}

void kg_ptx_refer(struct kg_ptx_job *job, struct kg_ptx_reference reference)
{
    struct kg_ptx_function *function = &job->function;
    reference.outer = function->open_references[job->depth];
    *KG_PTX_ADD(job, &function->references) = reference;
    function->open_references[job->depth] = function->references.count - 1;
}

void kg_ptx_define(struct kg_ptx_job *job, int32_t symbol, int32_t instruction)
{
    struct kg_ptx_symbol *target = &job->symbols.items[symbol];
    if (target->kind != KG_PTX_REGISTER)
        return;
    if (target->value == -1) {
        target->value = instruction;
    } else {
        *KG_PTX_ADD(job, &job->function.definitions) =
            (struct kg_ptx_definition){.instruction = instruction, .earlier = target->value};
        target->value = -1 - job->function.definitions.count;
    }
    if (target->definitions < UINT16_MAX)
        target->definitions++;
}
