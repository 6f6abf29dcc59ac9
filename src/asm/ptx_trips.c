// Trip counts of loops: the test that leaves a loop, the register it tests, its start, and the
// value it is compared with.

#include "asm/ptx_job.h"

#include <string.h>

#define MAX_CLIMB 64 // loops left or entered by one edge; compilers write fewer

// How a loop is entered and left.
struct passage {
    int32_t entry; // block before the loop; -1: none, -2: several
    int32_t exits; // edges and instructions that leave it
    int32_t test;  // block that runs on every trip and may leave the loop, -1
    bool is_latch; // `test` branches back to the header
};

struct counter {
    struct kg_ptx_analysis *analysis;
    struct passage *passages;
    bool too_deep; // an edge leaves too many loops to follow: all trip counts stay unknown
};

static const struct kg_ptx_instruction *last_of(const struct kg_ptx_analysis *analysis,
                                                int32_t block)
{
    const struct kg_flow_block *place = &analysis->flow->blocks[block];
    int32_t index = place->first + place->count - 1;
    const struct kg_ptx_function *function = &analysis->job->function;
    return index < function->instructions.count ? &function->instructions.items[index] : NULL;
}

static int32_t depth_of(const struct kg_flow *flow, int32_t loop)
{
    return loop >= 0 ? flow->loops[loop].depth : 0;
}

static void note_exit(struct counter *counter, int32_t block, int32_t loop)
{
    const struct kg_flow_block *from = &counter->analysis->flow->blocks[block];
    struct passage *passage = &counter->passages[loop];
    passage->exits++;
    if (from->loop != loop || from->conditional)
        return;
    bool is_latch = false;
    for (int32_t e = 0; e < from->next_count; e++)
        is_latch = is_latch || from->next[e] == counter->analysis->flow->loops[loop].header;
    if (passage->test >= 0 && !is_latch)
        return;
    passage->test = block;
    passage->is_latch = is_latch;
}

// Records the loops that the edge from `block` to `target` (-1: the end of the kernel) leaves and
// enters.
static void note_edge(struct counter *counter, int32_t block, int32_t target)
{
    const struct kg_flow *flow = counter->analysis->flow;
    int32_t from = flow->blocks[block].loop, to = target >= 0 ? flow->blocks[target].loop : -1;
    int32_t inner = to;
    for (int i = 0; from != to; i++) {
        if (i == MAX_CLIMB) {
            counter->too_deep = true;
            return;
        }
        if (depth_of(flow, from) >= depth_of(flow, to)) {
            note_exit(counter, block, from);
            from = flow->loops[from].parent;
        } else {
            to = flow->loops[to].parent;
        }
    }
    if (inner >= 0 && inner != to && flow->loops[inner].header == target) {
        struct passage *passage = &counter->passages[inner];
        passage->entry = passage->entry == -1 ? block : -2;
    }
}

// By ret or exit, or because there is no instruction after its last one.
static bool may_end(const struct kg_ptx_analysis *analysis, int32_t block)
{
    const struct kg_ptx_instruction *last = last_of(analysis, block);
    if (!last)
        return true;
    const struct kg_ptx_opcode *opcode = kg_ptx_form_of(analysis->job, last)->opcode;
    enum kg_ptx_action action = opcode ? opcode->action : KG_PTX_ACTION_NONE;
    bool jumps =
        last->predicate < 0 && (action == KG_PTX_ACTION_BRA || action == KG_PTX_ACTION_BRX);
    return action == KG_PTX_ACTION_END || (block + 1 == analysis->flow->block_count && !jumps);
}

static void note_edges(struct counter *counter, int32_t *predecessor)
{
    const struct kg_flow *flow = counter->analysis->flow;
    for (int32_t l = 0; l < flow->loop_count; l++)
        counter->passages[l] = (struct passage){.entry = -1, .test = -1};
    for (int32_t b = 0; b < flow->block_count; b++)
        predecessor[b] = -1;
    for (int32_t b = 0; b < flow->block_count; b++) {
        const struct kg_flow_block *block = &flow->blocks[b];
        for (int32_t e = 0; block->reached && e < block->next_count; e++) {
            int32_t *only = &predecessor[block->next[e]];
            *only = *only == -1 ? b : -2;
            note_edge(counter, b, block->next[e]);
        }
        if (block->reached && may_end(counter->analysis, b))
            note_edge(counter, b, -1);
    }
    predecessor[0] = -2; // the kernel's beginning is a predecessor
}

// The condition under which a loop continues: `tested` compared with `bound`.
struct condition {
    enum kg_ptx_comparison comparison;
    const struct kg_ptx_form *form;
    struct kg_ptx_operand tested, bound;
    int32_t at; // the setp
};

static enum kg_ptx_comparison opposite(enum kg_ptx_comparison comparison)
{
    static const enum kg_ptx_comparison opposites[] = {
        [KG_PTX_EQ] = KG_PTX_NE, [KG_PTX_NE] = KG_PTX_EQ, [KG_PTX_LT] = KG_PTX_GE,
        [KG_PTX_LE] = KG_PTX_GT, [KG_PTX_GT] = KG_PTX_LE, [KG_PTX_GE] = KG_PTX_LT};
    return opposites[comparison];
}

static enum kg_ptx_comparison mirrored(enum kg_ptx_comparison comparison)
{
    static const enum kg_ptx_comparison mirrors[] = {
        [KG_PTX_EQ] = KG_PTX_EQ, [KG_PTX_NE] = KG_PTX_NE, [KG_PTX_LT] = KG_PTX_GT,
        [KG_PTX_LE] = KG_PTX_GE, [KG_PTX_GT] = KG_PTX_LT, [KG_PTX_GE] = KG_PTX_LE};
    return mirrors[comparison];
}

static bool find_condition(const struct kg_ptx_analysis *analysis, int32_t loop, int32_t test,
                           struct condition *condition)
{
    const struct kg_ptx_job *job = analysis->job;
    const struct kg_ptx_instruction *branch = last_of(analysis, test);
    const struct kg_ptx_opcode *opcode = branch ? kg_ptx_form_of(job, branch)->opcode : NULL;
    if (!opcode || opcode->action != KG_PTX_ACTION_BRA || branch->predicate < 0)
        return false;
    const struct kg_flow_block *block = &analysis->flow->blocks[test];
    int32_t last = block->first + block->count - 1;
    int32_t at = kg_ptx_reaching(analysis, branch->predicate, last);
    if (at < 0 || !kg_ptx_decides(analysis, loop, at, last))
        return false;
    const struct kg_ptx_instruction *setp = &job->function.instructions.items[at];
    const struct kg_ptx_form *form = kg_ptx_form_of(job, setp);
    if (!form->opcode || form->opcode->action != KG_PTX_ACTION_SETP || setp->operand_count != 3 ||
        setp->predicate >= 0 || form->combined || form->comparison == KG_PTX_NO_COMPARISON)
        return false;
    if (kg_ptx_operand(job, setp, 0).symbol != branch->predicate)
        return false; // the second of two predicates
    bool taken_stays = kg_ptx_in_loop(analysis->flow, analysis->block_of[branch->target], loop);
    *condition = (struct condition){.comparison = form->comparison,
                                    .form = form,
                                    .tested = kg_ptx_operand(job, setp, 1),
                                    .bound = kg_ptx_operand(job, setp, 2),
                                    .at = at};
    if (taken_stays == branch->negated)
        condition->comparison = opposite(form->comparison);
    return true;
}

// The value as the comparison sees it: this number of bits, signed or unsigned.
static __int128 narrow(int64_t value, const struct kg_ptx_form *form)
{
    int unused = 64 - form->bits;
    if (unused < 0)
        unused = 0;
    if (form->is_signed)
        return (int64_t)((uint64_t)value << unused) >> unused;
    return (uint64_t)value << unused >> unused;
}

// How many of `first`, `first + step`, … satisfy the comparison with `bound` before the first that
// does not; -1: unlimited.
static double count_true(enum kg_ptx_comparison comparison, __int128 first, __int128 step,
                         __int128 bound)
{
    __int128 way = bound - first; // distance, in the direction of the step
    switch (comparison) {
    case KG_PTX_EQ:
        return first == bound ? step != 0 ? 1 : -1 : 0;
    case KG_PTX_NE:
        return first == bound                                   ? 0
               : step != 0 && way % step == 0 && way / step > 0 ? (double)(way / step)
                                                                : -1;
    case KG_PTX_GT:
    case KG_PTX_GE:
        way = -way;
        step = -step;
        break;
    default:
        break;
    }
    if (comparison == KG_PTX_LE || comparison == KG_PTX_GE)
        way++;
    if (way <= 0)
        return 0;
    return step > 0 ? (double)((way + step - 1) / step) : -1;
}

// The value of an induction register before the first trip.
static struct kg_ptx_value find_start(const struct counter *counter, int32_t loop, int32_t symbol)
{
    const struct kg_ptx_analysis *analysis = counter->analysis;
    int32_t entry = counter->passages[loop].entry;
    if (entry >= 0) {
        const struct kg_flow_block *block = &analysis->flow->blocks[entry];
        struct kg_ptx_operand operand = {.kind = KG_PTX_HELD, .symbol = symbol};
        struct kg_ptx_value value =
            kg_ptx_evaluate(analysis, &operand, block->first + block->count);
        if (value.kind != KG_PTX_UNKNOWN)
            return value;
    }
    // The only definition outside the loop, wherever it is.
    const struct kg_ptx_job *job = analysis->job;
    int32_t outside = -1;
    struct kg_ptx_definition definition;
    for (int32_t d = job->symbols.items[symbol].value; d != -1; d = definition.earlier) {
        definition = kg_ptx_definition(job, d);
        int32_t instruction = definition.instruction;
        if (kg_ptx_in_loop(analysis->flow, analysis->block_of[instruction], loop))
            continue;
        if (outside >= 0)
            return (struct kg_ptx_value){.kind = KG_PTX_UNKNOWN};
        outside = instruction;
    }
    return outside >= 0 ? kg_ptx_evaluate_result(analysis, outside)
                        : (struct kg_ptx_value){.kind = KG_PTX_UNKNOWN};
}

// "parameter 2", "parameter 0+8", "parameter NAME"
static const char *name_parameter(const struct kg_ptx_job *job, const struct kg_ptx_value *value)
{
    const struct kg_ptx_name *name = &job->names.items[job->symbols.items[value->symbol].name];
    const char *text = kg_ptx_name_text(job, name), *kernel = job->function.name;
    int length = name->length < 1000 ? (int)name->length : 1000;
    size_t own = strlen(kernel);
    static const char mark[] = "_param_";
    if (name->length > own + sizeof mark - 1 && memcmp(text, kernel, own) == 0 &&
        memcmp(text + own, mark, sizeof mark - 1) == 0) {
        text += own + sizeof mark - 1;
        length -= (int)(own + sizeof mark - 1);
    }
    if (value->constant != 0)
        return kg_arena_format(job->arena, "parameter %.*s+%lld", length, text,
                               (long long)value->constant);
    return kg_arena_format(job->arena, "parameter %.*s", length, text);
}

static bool set_symbol(const struct kg_ptx_job *job, const struct kg_ptx_value *value,
                       struct kg_asm_loop *loop)
{
    loop->kind = KG_TRIPS_SYMBOL;
    loop->symbol = name_parameter(job, value);
    return loop->symbol != NULL;
}

static bool count_loop(const struct counter *counter, int32_t index, struct kg_asm_loop *loop)
{
    const struct kg_ptx_analysis *analysis = counter->analysis;
    const struct passage *passage = &counter->passages[index];
    struct condition condition;
    if (passage->test < 0 || !find_condition(analysis, index, passage->test, &condition))
        return true;
    struct kg_ptx_induction induction =
        kg_ptx_find_induction(analysis, index, &condition.tested, condition.at);
    if (induction.symbol < 0) {
        struct kg_ptx_operand bound = condition.tested;
        condition.tested = condition.bound;
        condition.bound = bound;
        condition.comparison = mirrored(condition.comparison);
        induction = kg_ptx_find_induction(analysis, index, &condition.tested, condition.at);
    }
    if (induction.symbol < 0)
        return true;
    struct kg_ptx_value bound = kg_ptx_evaluate(analysis, &condition.bound, condition.at);
    if (bound.kind == KG_PTX_PARAMETER)
        return set_symbol(analysis->job, &bound, loop);
    struct kg_ptx_value start = find_start(counter, index, induction.symbol);
    if (start.kind == KG_PTX_PARAMETER)
        return set_symbol(analysis->job, &start, loop);
    if (!induction.exact || start.kind != KG_PTX_CONSTANT || bound.kind != KG_PTX_CONSTANT ||
        passage->exits != 1)
        return true;
    int64_t first = (int64_t)((uint64_t)start.constant + (uint64_t)induction.offset);
    struct kg_ptx_form wide = *condition.form;
    wide.is_signed = true; // a step may be negative even if the test is unsigned
    double more = count_true(condition.comparison, narrow(first, condition.form),
                             narrow(induction.step, &wide), narrow(bound.constant, condition.form));
    if (more >= 0) {
        loop->kind = KG_TRIPS_CONSTANT;
        loop->trips = passage->is_latch ? more + 1 : more;
    }
    return true;
}

bool kg_ptx_count_trips(struct kg_ptx_analysis *analysis, struct kg_arena *scratch,
                        struct kg_asm_kernel *kernel)
{
    const struct kg_flow *flow = analysis->flow;
    int32_t *predecessor = KG_NEW_ARRAY(scratch, flow->block_count, int32_t);
    struct counter counter = {.analysis = analysis,
                              .passages = KG_NEW_ARRAY(scratch, flow->loop_count, struct passage)};
    if (!predecessor || !counter.passages)
        return false;
    if (flow->block_count == 0)
        return true;
    note_edges(&counter, predecessor);
    analysis->predecessor = predecessor;
    for (int32_t l = 0; l < flow->loop_count && !counter.too_deep; l++)
        if (!count_loop(&counter, l, &kernel->loops[l]))
            return false;
    return true;
}
