// Parses operands: registers, addresses, vectors, constants, argument lists of a call. Operands
// that trip counts or sizes depend on are stored; of the others only the written registers.

#include "asm/ptx_job.h"

// The operand that is parsed, and the brackets around it.
struct place {
    int32_t instruction;
    bool written; // registers here are results
};

static struct kg_ptx_operand parse_primary(struct kg_ptx_job *job, struct place place);
static struct kg_ptx_operand parse_operand(struct kg_ptx_job *job, struct place place);

static void enter(struct kg_ptx_job *job)
{
    if (++job->brackets > KG_PTX_MAX_DEPTH)
        kg_ptx_fail(job, job->token.text, job->token.line, "brackets nested deeper than %d levels",
                    KG_PTX_MAX_DEPTH);
    kg_ptx_note_token(job);
    kg_ptx_advance(job);
}

static void leave(struct kg_ptx_job *job, char mark)
{
    job->brackets--;
    if (kg_ptx_is_mark(job, mark))
        kg_ptx_note_token(job);
    kg_ptx_expect(job, mark, "behind operands");
}

// Parses from an opening bracket to the position after the closing one; returns the first element.
static struct kg_ptx_operand parse_elements(struct kg_ptx_job *job, struct place place, char end)
{
    struct kg_ptx_operand first = {.kind = KG_PTX_OTHER, .symbol = -1};
    for (bool more = !kg_ptx_is_mark(job, end), begun = false; more; begun = true) {
        struct kg_ptx_operand operand = parse_operand(job, place);
        if (!begun)
            first = operand;
        more = kg_ptx_accept(job, ',');
    }
    leave(job, end);
    return first;
}

static struct kg_ptx_operand parse_word(struct kg_ptx_job *job, struct place place)
{
    struct kg_ptx_token word = job->token;
    int32_t index = kg_ptx_look_up(job, &word);
    const struct kg_ptx_symbol *symbol = &job->symbols.items[index];
    enum kg_ptx_symbol_kind kind = symbol->kind;
    if (kind == KG_PTX_VARIABLE && job->variables.items[symbol->value].space == KG_PTX_SHARED)
        kg_ptx_use_shared(job, &job->variables.items[symbol->value]);
    if (place.written)
        kg_ptx_define(job, index, place.instruction);
    kg_ptx_note_symbol(job, index);
    if (word.length > word.stem)
        kg_ptx_note(job, word.text + word.stem, word.length - word.stem);
    kg_ptx_advance(job);
    bool whole = word.length == word.stem && (kind == KG_PTX_REGISTER || kind == KG_PTX_VARIABLE);
    return (struct kg_ptx_operand){.kind = whole ? KG_PTX_HELD : KG_PTX_OTHER, .symbol = index};
}

static struct kg_ptx_operand parse_number(struct kg_ptx_job *job)
{
    struct kg_ptx_operand operand = {.symbol = -1};
    if (kg_ptx_integer(&job->token, &operand.value))
        operand.kind = KG_PTX_IMMEDIATE;
    kg_ptx_note_token(job);
    kg_ptx_advance(job);
    return operand;
}

static struct kg_ptx_operand parse_negated(struct kg_ptx_job *job, struct place place)
{
    char mark = *job->token.text;
    enter(job);
    struct kg_ptx_operand operand = parse_primary(job, place);
    job->brackets--;
    if (operand.kind == KG_PTX_IMMEDIATE && mark == '-')
        operand.value = (int64_t)(0 - (uint64_t)operand.value);
    else if (mark != '+')
        operand.kind = KG_PTX_OTHER;
    return operand;
}

// A list in brackets, or `(.s64)` and what is cast by it.
static struct kg_ptx_operand parse_group(struct kg_ptx_job *job, struct place place)
{
    struct kg_ptx_operand group = {.kind = KG_PTX_OTHER, .symbol = -1};
    char end = kg_ptx_is_mark(job, '{') ? '}' : ')';
    enter(job);
    if (end == '}' || job->token.kind != KG_PTX_DIRECTIVE) {
        parse_elements(job, place, end);
        return group;
    }
    kg_ptx_note_token(job);
    kg_ptx_advance(job);
    kg_ptx_expect(job, ')', "behind a cast");
    parse_primary(job, place);
    job->brackets--;
    return group;
}

static struct kg_ptx_operand parse_primary(struct kg_ptx_job *job, struct place place)
{
    struct place inside = {.instruction = place.instruction};
    if (job->token.kind == KG_PTX_WORD)
        return parse_word(job, place);
    if (job->token.kind == KG_PTX_NUMBER)
        return parse_number(job);
    if (kg_ptx_is_mark(job, '[')) {
        enter(job);
        struct kg_ptx_operand operand = parse_elements(job, inside, ']');
        operand.kind = operand.kind == KG_PTX_HELD ? KG_PTX_ADDRESS : KG_PTX_OTHER;
        return operand;
    }
    if (kg_ptx_is_mark(job, '{') || kg_ptx_is_mark(job, '('))
        return parse_group(job, place);
    if (kg_ptx_is_mark(job, '-') || kg_ptx_is_mark(job, '+') || kg_ptx_is_mark(job, '!') ||
        kg_ptx_is_mark(job, '~'))
        return parse_negated(job, place);
    if (job->token.kind == KG_PTX_DIRECTIVE || job->token.kind == KG_PTX_STRING) {
        kg_ptx_note_token(job); // no known instruction has one
        kg_ptx_advance(job);
        return (struct kg_ptx_operand){.kind = KG_PTX_OTHER, .symbol = -1};
    }
    kg_ptx_fail_expected(job, "an operand");
}

static bool is_operator(const struct kg_ptx_job *job)
{
    static const char operators[] = "+-*/%<>&|^?:=!";
    for (const char *c = operators; *c; c++)
        if (kg_ptx_is_mark(job, *c))
            return true;
    return false;
}

// A sum in which one operand is a constant stays known.
static struct kg_ptx_operand join(struct kg_ptx_operand left, char mark,
                                  struct kg_ptx_operand right)
{
    uint64_t a = (uint64_t)left.value, b = (uint64_t)right.value;
    if ((mark == '+' || mark == '-') && right.kind == KG_PTX_IMMEDIATE &&
        (left.kind == KG_PTX_IMMEDIATE || left.kind == KG_PTX_HELD))
        left.value = (int64_t)(mark == '+' ? a + b : a - b);
    else
        left.kind = KG_PTX_OTHER;
    return left;
}

// Suffixes of an operand: a[1], %tid .x, [a].unified
static struct kg_ptx_operand parse_suffixes(struct kg_ptx_job *job, struct place place,
                                            struct kg_ptx_operand operand)
{
    struct place inside = {.instruction = place.instruction};
    while (true) {
        if (kg_ptx_is_mark(job, '[')) {
            enter(job);
            parse_elements(job, inside, ']');
        } else if (job->token.kind == KG_PTX_DIRECTIVE) {
            kg_ptx_note_token(job);
            kg_ptx_advance(job);
        } else {
            return operand;
        }
        operand.kind = KG_PTX_OTHER;
    }
}

// With '|': two results, d|p. Constant expressions are skipped; only sums are evaluated.
static struct kg_ptx_operand parse_operand(struct kg_ptx_job *job, struct place place)
{
    struct kg_ptx_operand operand = parse_suffixes(job, place, parse_primary(job, place));
    while (is_operator(job)) {
        char mark = *job->token.text;
        kg_ptx_note_token(job);
        kg_ptx_advance(job);
        while (is_operator(job) && !kg_ptx_is_mark(job, '-') && !kg_ptx_is_mark(job, '!')) {
            kg_ptx_note_token(job); // the second character of "<<", "=="
            kg_ptx_advance(job);
        }
        struct kg_ptx_operand right = parse_primary(job, place);
        bool pair = mark == '|' && operand.kind == KG_PTX_HELD;
        if (!pair)
            operand = join(operand, mark, right);
    }
    return operand;
}

static bool is_kept(const struct kg_ptx_form *form)
{
    if (!form->opcode)
        return false;
    switch (form->opcode->action) {
    case KG_PTX_ACTION_NONE:
    case KG_PTX_ACTION_CALL:
    case KG_PTX_ACTION_END:
        return false;
    case KG_PTX_ACTION_LOAD:
        return form->space == KG_PTX_PARAM;
    case KG_PTX_ACTION_BYTES:
    case KG_PTX_ACTION_UMMA:
        return true;
    default:
        return form->is_integer;
    }
}

// Operands beyond this are not needed.
#define MAX_KEPT 8
#define MAX_SYMBOLS (1 << 28) // that a stored operand can name

static void keep(struct kg_ptx_job *job, const struct kg_ptx_operand *operand)
{
    struct kg_ptx_function *function = &job->function;
    if (operand->symbol >= MAX_SYMBOLS)
        kg_ptx_fail_memory(job);
    bool is_wide = operand->value != (int32_t)operand->value;
    struct kg_ptx_operand_list kept = {
        .symbol = (uint32_t)(operand->symbol + 1) << 3 | (uint32_t)operand->kind << 1 | is_wide,
        .value = is_wide ? function->wide_values.count : (int32_t)operand->value,
    };
    if (is_wide)
        *KG_PTX_ADD(job, &function->wide_values) = operand->value;
    *KG_PTX_ADD(job, &function->operands) = kept;
}

struct kg_ptx_operand kg_ptx_operand(const struct kg_ptx_job *job,
                                     const struct kg_ptx_instruction *instruction, int index)
{
    const struct kg_ptx_function *function = &job->function;
    const struct kg_ptx_operand_list *kept =
        &function->operands.items[instruction->operands + index];
    return (struct kg_ptx_operand){
        .value = kept->symbol & 1 ? function->wide_values.items[kept->value] : kept->value,
        .symbol = (int32_t)(kept->symbol >> 3) - 1,
        .kind = kept->symbol >> 1 & 3,
    };
}

void kg_ptx_parse_operands(struct kg_ptx_job *job, struct kg_ptx_instruction *instruction)
{
    bool kept = is_kept(kg_ptx_form_of(job, instruction));
    struct place place = {.instruction = job->function.instructions.count, .written = true};
    instruction->operands = job->function.operands.count;
    job->brackets = 0;
    for (bool more = !kg_ptx_is_mark(job, ';'); more;) {
        struct kg_ptx_operand operand = parse_operand(job, place);
        if (kept && instruction->operand_count < MAX_KEPT) {
            keep(job, &operand);
            instruction->operand_count++;
        }
        place.written = false;
        kg_ptx_note(job, ",", 1);
        more = kg_ptx_accept(job, ',');
    }
}
