// Induction registers: registers with one definition in the loop, executed on every trip, which
// adds something to the value of the previous trip.

#include "asm/ptx_job.h"

#define MAX_STEPS 64 // limit for climbing loops, dominators, or chains of moves

bool kg_ptx_in_loop(const struct kg_flow *flow, int32_t block, int32_t loop)
{
    int32_t at = flow->blocks[block].loop;
    for (int i = 0; i < MAX_STEPS && at >= 0; i++) {
        if (at == loop)
            return true;
        at = flow->loops[at].parent;
    }
    return false;
}

// The only definition of a register in the loop; -1: none, -2: several, or too many to examine.
static int32_t only_definition(const struct kg_ptx_analysis *analysis, int32_t loop, int32_t symbol)
{
    const struct kg_ptx_job *job = analysis->job;
    const struct kg_ptx_symbol *entry = &job->symbols.items[symbol];
    int32_t found = -1;
    if (entry->definitions > KG_PTX_MAX_DEFINITIONS)
        return -2;
    struct kg_ptx_definition definition;
    for (int32_t d = entry->value; d != -1; d = definition.earlier) {
        definition = kg_ptx_definition(job, d);
        int32_t instruction = definition.instruction;
        if (!kg_ptx_in_loop(analysis->flow, analysis->block_of[instruction], loop))
            continue;
        if (found >= 0)
            return -2;
        found = instruction;
    }
    return found;
}

// Is `instruction` executed exactly once on every trip?
static bool on_every_trip(const struct kg_ptx_analysis *analysis, int32_t loop, int32_t instruction)
{
    const struct kg_flow_block *block = &analysis->flow->blocks[analysis->block_of[instruction]];
    return block->loop == loop && !block->conditional &&
           analysis->job->function.instructions.items[instruction].predicate < 0;
}

// For two instructions of the loop, of which `first` runs on every trip: 1 when `first` precedes
// `second`, 0 when it follows it, -1 when that is too expensive to find out.
static int comes_before(const struct kg_ptx_analysis *analysis, int32_t loop, int32_t first,
                        int32_t second)
{
    int32_t wanted = analysis->block_of[first], at = analysis->block_of[second];
    if (wanted == at)
        return first < second;
    for (int i = 0; i < MAX_STEPS; i++) {
        if (at == wanted)
            return 1;
        if (at == analysis->flow->loops[loop].header)
            return 0;
        at = analysis->flow->blocks[at].dominator;
    }
    return -1;
}

bool kg_ptx_decides(const struct kg_ptx_analysis *analysis, int32_t loop, int32_t setp,
                    int32_t branch)
{
    return on_every_trip(analysis, loop, setp) && comes_before(analysis, loop, setp, branch) == 1;
}

static bool is_fixed(const struct kg_ptx_analysis *analysis, int32_t loop,
                     const struct kg_ptx_operand *operand)
{
    return operand->kind == KG_PTX_IMMEDIATE ||
           (operand->symbol >= 0 && only_definition(analysis, loop, operand->symbol) == -1);
}

// Goes back over one definition: `operand` becomes the register that it adds to, and the
// induction's offset grows.
static bool go_back(const struct kg_ptx_analysis *analysis, int32_t loop, int32_t index,
                    struct kg_ptx_operand *operand, struct kg_ptx_induction *induction)
{
    const struct kg_ptx_job *job = analysis->job;
    const struct kg_ptx_instruction *instruction = &job->function.instructions.items[index];
    if (instruction->operand_count < 2 || kg_ptx_operand(job, instruction, 0).kind != KG_PTX_HELD)
        return false;
    struct kg_ptx_operand first = kg_ptx_operand(job, instruction, 1);
    enum kg_ptx_action action = kg_ptx_form_of(job, instruction)->opcode->action;
    if (action == KG_PTX_ACTION_MOVE) {
        *operand = first;
        return true;
    }
    if ((action != KG_PTX_ACTION_ADD && action != KG_PTX_ACTION_SUB) ||
        instruction->operand_count != 3)
        return false;
    // One operand changes on every trip; the other one must not.
    struct kg_ptx_operand varying = first, other = kg_ptx_operand(job, instruction, 2);
    if (action == KG_PTX_ACTION_ADD && is_fixed(analysis, loop, &first)) {
        varying = other;
        other = first;
    }
    if (!is_fixed(analysis, loop, &other))
        return false;
    struct kg_ptx_value value = kg_ptx_evaluate(analysis, &other, index);
    uint64_t change = (uint64_t)value.constant;
    induction->exact = induction->exact && value.kind == KG_PTX_CONSTANT;
    induction->offset = (int64_t)((uint64_t)induction->offset +
                                  (action == KG_PTX_ACTION_ADD ? change : 0 - change));
    *operand = varying;
    return true;
}

// Follows `operand` back to the register's value at the beginning of the trip.
static struct kg_ptx_induction go_to_start(const struct kg_ptx_analysis *analysis, int32_t loop,
                                           struct kg_ptx_operand operand, int32_t before)
{
    struct kg_ptx_induction none = {.symbol = -1}, found = {.symbol = -1, .exact = true};
    for (int i = 0; i < MAX_STEPS; i++) {
        if (operand.kind != KG_PTX_HELD || operand.symbol < 0)
            return none;
        found.offset = (int64_t)((uint64_t)found.offset + (uint64_t)operand.value);
        int32_t definition = only_definition(analysis, loop, operand.symbol);
        if (definition < 0 || !on_every_trip(analysis, loop, definition))
            return none;
        int earlier = comes_before(analysis, loop, definition, before);
        if (earlier == 0) {
            found.symbol = operand.symbol;
            return found;
        }
        if (earlier < 0 || !go_back(analysis, loop, definition, &operand, &found))
            return none;
        before = definition;
    }
    return none;
}

struct kg_ptx_induction kg_ptx_find_induction(const struct kg_ptx_analysis *analysis, int32_t loop,
                                              const struct kg_ptx_operand *operand, int32_t before)
{
    struct kg_ptx_induction found = go_to_start(analysis, loop, *operand, before);
    if (found.symbol < 0)
        return found;
    // The step: from the register at the end of a trip back to its value at the beginning.
    struct kg_ptx_induction step = {.exact = true};
    struct kg_ptx_operand back;
    int32_t definition = only_definition(analysis, loop, found.symbol);
    if (!go_back(analysis, loop, definition, &back, &step))
        return (struct kg_ptx_induction){.symbol = -1};
    struct kg_ptx_induction rest = go_to_start(analysis, loop, back, definition);
    if (rest.symbol != found.symbol)
        return (struct kg_ptx_induction){.symbol = -1};
    found.step = (int64_t)((uint64_t)step.offset + (uint64_t)rest.offset);
    found.exact = found.exact && step.exact && rest.exact;
    return found;
}
