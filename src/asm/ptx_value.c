// The values of registers: constants and parameters, followed back through moves, sums and the
// like. Anything uncertain is unknown. The work per query is bounded.

#include "asm/ptx_job.h"

#define MAX_BLOCKS_UP 16
#define MAX_QUESTIONS 64 // definitions examined for one value

struct search {
    const struct kg_ptx_analysis *analysis;
    int left;
};

static const struct kg_ptx_value unknown = {.kind = KG_PTX_UNKNOWN};

// The last definition within [from, before), -1: none; -2: too many to examine.
static int32_t last_between(const struct kg_ptx_job *job, int32_t symbol, int32_t from,
                            int32_t before)
{
    int32_t d = job->symbols.items[symbol].value;
    for (int i = 0; d != -1; i++) {
        struct kg_ptx_definition definition = kg_ptx_definition(job, d);
        if (definition.instruction < from)
            return -1;
        if (definition.instruction < before)
            return definition.instruction;
        if (i == KG_PTX_MAX_DEFINITIONS)
            return -2;
        d = definition.earlier;
    }
    return -1;
}

int32_t kg_ptx_reaching(const struct kg_ptx_analysis *analysis, int32_t symbol, int32_t before)
{
    const struct kg_ptx_job *job = analysis->job;
    const struct kg_ptx_symbol *entry = &job->symbols.items[symbol];
    if (entry->kind != KG_PTX_REGISTER || entry->value == -1)
        return -1;
    if (entry->definitions == 1)
        return entry->value;
    if (before <= 0)
        return -1;
    int32_t block = analysis->block_of[before - 1];
    for (int up = 0; up < MAX_BLOCKS_UP && block >= 0; up++) {
        const struct kg_flow_block *place = &analysis->flow->blocks[block];
        int32_t end = place->first + place->count;
        int32_t found =
            last_between(job, symbol, place->first, before < end && up == 0 ? before : end);
        if (found != -1)
            return found < 0 ? -1 : found;
        block = analysis->predecessor[block];
    }
    return -1;
}

static struct kg_ptx_value evaluate(struct search *search, const struct kg_ptx_operand *operand,
                                    int32_t before);

static struct kg_ptx_value calculate(enum kg_ptx_action action, const struct kg_ptx_form *form,
                                     const struct kg_ptx_value *values)
{
    uint64_t a = (uint64_t)values[0].constant, b = (uint64_t)values[1].constant;
    uint64_t c = (uint64_t)values[2].constant;
    struct kg_ptx_value result = {.kind = KG_PTX_CONSTANT};
    if (form->high)
        return unknown;
    switch (action) {
    case KG_PTX_ACTION_ADD:
        result.constant = (int64_t)(a + b);
        return result;
    case KG_PTX_ACTION_SUB:
        result.constant = (int64_t)(a - b);
        return result;
    case KG_PTX_ACTION_MUL:
        result.constant = (int64_t)(a * b);
        return result;
    case KG_PTX_ACTION_MAD:
        result.constant = (int64_t)(a * b + c);
        return result;
    case KG_PTX_ACTION_SHL:
        result.constant = b < 64 ? (int64_t)(a << b) : 0;
        return result;
    default:
        return unknown;
    }
}

// Constants give a constant. With one parameter among constants, the result depends on that
// parameter.
static struct kg_ptx_value combine(struct search *search,
                                   const struct kg_ptx_instruction *instruction, int32_t index)
{
    const struct kg_ptx_job *job = search->analysis->job;
    const struct kg_ptx_form *form = kg_ptx_form_of(job, instruction);
    struct kg_ptx_value values[3] = {0}, parameter = unknown;
    int count = instruction->operand_count - 1;
    if (count < 1 || count > 3)
        return unknown;
    for (int i = 0; i < count; i++) {
        struct kg_ptx_operand operand = kg_ptx_operand(job, instruction, i + 1);
        values[i] = evaluate(search, &operand, index);
        if (values[i].kind == KG_PTX_UNKNOWN)
            return unknown;
        if (values[i].kind == KG_PTX_CONSTANT)
            continue;
        if (parameter.kind == KG_PTX_PARAMETER &&
            (parameter.symbol != values[i].symbol || parameter.constant != values[i].constant))
            return unknown;
        parameter = values[i];
    }
    if (parameter.kind == KG_PTX_PARAMETER)
        return parameter;
    return calculate(form->opcode->action, form, values);
}

static struct kg_ptx_value evaluate_result(struct search *search, int32_t index)
{
    const struct kg_ptx_job *job = search->analysis->job;
    const struct kg_ptx_instruction *instruction = &job->function.instructions.items[index];
    if (instruction->operand_count < 2 || instruction->predicate >= 0 || search->left-- <= 0)
        return unknown;
    if (kg_ptx_operand(job, instruction, 0).kind != KG_PTX_HELD)
        return unknown; // a vector
    struct kg_ptx_operand operand = kg_ptx_operand(job, instruction, 1);
    switch (kg_ptx_form_of(job, instruction)->opcode->action) {
    case KG_PTX_ACTION_MOVE:
    case KG_PTX_ACTION_LOAD:
        return evaluate(search, &operand, index);
    case KG_PTX_ACTION_ADD:
    case KG_PTX_ACTION_SUB:
    case KG_PTX_ACTION_MUL:
    case KG_PTX_ACTION_MAD:
    case KG_PTX_ACTION_SHL:
    case KG_PTX_ACTION_DERIVE:
        return combine(search, instruction, index);
    default:
        return unknown;
    }
}

static struct kg_ptx_value evaluate(struct search *search, const struct kg_ptx_operand *operand,
                                    int32_t before)
{
    const struct kg_ptx_job *job = search->analysis->job;
    if (operand->kind == KG_PTX_IMMEDIATE)
        return (struct kg_ptx_value){.kind = KG_PTX_CONSTANT, .constant = operand->value};
    if (operand->kind == KG_PTX_OTHER || operand->symbol < 0)
        return unknown;
    const struct kg_ptx_symbol *symbol = &job->symbols.items[operand->symbol];
    struct kg_ptx_value value = unknown;
    if (symbol->kind == KG_PTX_VARIABLE &&
        job->variables.items[symbol->value].space == KG_PTX_PARAM) {
        value = (struct kg_ptx_value){.kind = KG_PTX_PARAMETER, .symbol = operand->symbol};
    } else {
        int32_t from = kg_ptx_reaching(search->analysis, operand->symbol, before);
        if (from >= 0)
            value = evaluate_result(search, from);
    }
    // A constant plus an offset; or a parameter's address plus an offset.
    value.constant = (int64_t)((uint64_t)value.constant + (uint64_t)operand->value);
    return value;
}

struct kg_ptx_value kg_ptx_evaluate(const struct kg_ptx_analysis *analysis,
                                    const struct kg_ptx_operand *operand, int32_t before)
{
    struct search search = {.analysis = analysis, .left = MAX_QUESTIONS};
    return evaluate(&search, operand, before);
}

struct kg_ptx_value kg_ptx_evaluate_result(const struct kg_ptx_analysis *analysis,
                                           int32_t instruction)
{
    struct search search = {.analysis = analysis, .left = MAX_QUESTIONS};
    return evaluate_result(&search, instruction);
}
