// Turns a parsed function into the facts of a kernel: control flow, effects of instructions, sums.

#include "asm/ptx_job.h"
#include "asm/weigh.h"

#include <stdlib.h>
#include <string.h>

#define MAX_WAYS ((int64_t)1 << 24) // targets of all indexed branches of a function
// Of a file: the facts of a block take much more memory than its text.
#define MAX_BLOCKS ((int64_t)1 << 20)
#define MAX_KERNELS (1 << 16) // of a file

static enum kg_ptx_action action_of(const struct kg_ptx_job *job,
                                    const struct kg_ptx_instruction *instruction)
{
    const struct kg_ptx_opcode *opcode = kg_ptx_form_of(job, instruction)->opcode;
    return opcode ? opcode->action : KG_PTX_ACTION_NONE;
}

// Steps are computed on demand: a list of them would be as large as the text.
static struct kg_step step_of(const void *of, int32_t index)
{
    const struct kg_ptx_job *job = of;
    const struct kg_ptx_function *function = &job->function;
    if (index == function->instructions.count) // a label may follow the last instruction
        return (struct kg_step){.kind = KG_STEP_END};
    const struct kg_ptx_instruction *instruction = &function->instructions.items[index];
    bool maybe = instruction->predicate >= 0;
    enum kg_ptx_action action = action_of(job, instruction);
    if (action == KG_PTX_ACTION_BRA)
        return (struct kg_step){.kind = maybe ? KG_STEP_BRANCH : KG_STEP_JUMP,
                                .target = instruction->target};
    if (action == KG_PTX_ACTION_END)
        return (struct kg_step){.kind = maybe ? KG_STEP_MAYBE_END : KG_STEP_END};
    if (action != KG_PTX_ACTION_BRX)
        return (struct kg_step){.kind = KG_STEP_NEXT};
    const struct kg_ptx_table *table = &function->tables.items[instruction->target];
    return (struct kg_step){.kind = maybe ? KG_STEP_MAYBE_MANY : KG_STEP_MANY,
                            .targets = &function->table_targets.items[table->first],
                            .target_count = table->count};
}

// Can a branch reach the position after the last instruction?
static bool goes_behind(struct kg_ptx_job *job)
{
    int32_t count = job->function.instructions.count;
    bool behind = false;
    int64_t ways = 0;
    for (int32_t i = 0; i < count; i++) {
        struct kg_step step = step_of(job, i);
        behind |= step.target == count;
        for (int32_t t = 0; t < step.target_count; t++)
            behind |= step.targets[t] == count;
        ways += step.target_count;
        if (ways > MAX_WAYS)
            kg_ptx_fail(job, job->token.text, job->token.line,
                        "indexed branches with more than %lld ways", (long long)MAX_WAYS);
    }
    return behind;
}

// Operand `index` if it is a known constant, else 0.
static int64_t known_operand(const struct kg_ptx_analysis *analysis,
                             const struct kg_ptx_instruction *instruction, int index)
{
    if (index >= instruction->operand_count)
        return 0;
    struct kg_ptx_operand operand = kg_ptx_operand(analysis->job, instruction, index);
    int32_t before = (int32_t)(instruction - analysis->job->function.instructions.items);
    struct kg_ptx_value value = kg_ptx_evaluate(analysis, &operand, before);
    return value.kind == KG_PTX_CONSTANT ? value.constant : 0;
}

// The instruction descriptor has M / 16 in bits 24 to 28 and N / 8 in bits 17 to 22.
static double umma_flops(const struct kg_ptx_analysis *analysis,
                         const struct kg_ptx_instruction *instruction)
{
    const struct kg_ptx_form *form = kg_ptx_form_of(analysis->job, instruction);
    uint64_t descriptor = (uint64_t)known_operand(analysis, instruction, form->sparse ? 4 : 3);
    double m = (double)(descriptor >> 24 & 31) * 16, n = (double)(descriptor >> 17 & 63) * 8;
    return 2 * m * n * (double)form->k;
}

static void add_instruction(const struct kg_ptx_analysis *analysis, int32_t index,
                            struct kg_mix *mix)
{
    const struct kg_ptx_instruction *instruction =
        &analysis->job->function.instructions.items[index];
    const struct kg_ptx_form *form = kg_ptx_form_of(analysis->job, instruction);
    double bytes = form->bytes;
    if (bytes < 0) {
        int64_t size = known_operand(analysis, instruction, form->opcode->size_operand);
        bytes = size > 0 && size <= UINT32_MAX ? (double)size : 0;
    }
    mix->count[form->work]++;
    mix->guarded[form->work] += instruction->predicate >= 0;
    mix->bytes[form->work] += bytes;
    mix->flops += form->flops;
    mix->tensor_flops += form->opcode && form->opcode->action == KG_PTX_ACTION_UMMA
                             ? umma_flops(analysis, instruction)
                             : form->tensor_flops;
}

static void fill_lines(const struct kg_ptx_job *job, struct kg_asm_kernel *kernel)
{
    const struct kg_flow *flow = &kernel->flow;
    for (int32_t b = 0; b < flow->block_count; b++) {
        const struct kg_flow_block *block = &flow->blocks[b];
        int32_t end = block->first + block->count;
        if (block->loop < 0 || end > job->function.instructions.count)
            continue;
        struct kg_asm_loop *loop = &kernel->loops[block->loop];
        int64_t first = job->function.instructions.items[block->first].line;
        int64_t last = job->function.instructions.items[end - 1].line;
        if (loop->first == 0 || first < loop->first)
            loop->first = first;
        if (last > loop->last)
            loop->last = last;
    }
    for (int32_t l = flow->loop_count - 1; l >= 0; l--) {
        const struct kg_asm_loop *inner = &kernel->loops[l];
        if (flow->loops[l].parent < 0)
            continue;
        struct kg_asm_loop *outer = &kernel->loops[flow->loops[l].parent];
        outer->first = inner->first < outer->first ? inner->first : outer->first;
        outer->last = inner->last > outer->last ? inner->last : outer->last;
    }
}

// A number for each name that opcodes are counted by: the table's rows with their spaces, then
// unknown names.
static int32_t counted_as(const struct kg_ptx_form *form)
{
    if (!form->opcode)
        return kg_ptx_opcode_count * KG_PTX_SPACE_COUNT + form->name;
    bool spaced = form->opcode->rule == KG_PTX_RULE_LOAD ||
                  form->opcode->rule == KG_PTX_RULE_STORE ||
                  form->opcode->rule == KG_PTX_RULE_SPACED;
    return (int32_t)(form->opcode - kg_ptx_opcodes) * KG_PTX_SPACE_COUNT +
           (spaced ? (int32_t)form->space : 0);
}

static const char *counted_name(struct kg_ptx_job *job, int32_t number)
{
    static const char *const spaces[KG_PTX_SPACE_COUNT] = {"",       ".global", ".shared",
                                                           ".local", ".const",  ".param"};
    int32_t known = kg_ptx_opcode_count * KG_PTX_SPACE_COUNT;
    if (number < known)
        return kg_arena_format(job->arena, "%s%s", kg_ptx_opcodes[number / KG_PTX_SPACE_COUNT].name,
                               spaces[number % KG_PTX_SPACE_COUNT]);
    const struct kg_ptx_name *name = &job->names.items[number - known];
    return kg_arena_copy(job->arena, kg_ptx_name_text(job, name), name->length);
}

static int by_number(const void *a, const void *b)
{
    int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;
    return (left > right) - (left < right);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct kg_asm_count *)a)->name, ((const struct kg_asm_count *)b)->name);
}

static bool count_opcodes(struct kg_ptx_job *job, struct kg_arena *scratch,
                          struct kg_asm_kernel *kernel)
{
    int32_t count = job->function.instructions.count, different = 0;
    int32_t *numbers = KG_NEW_ARRAY(scratch, count, int32_t);
    if (!numbers)
        return false;
    for (int32_t i = 0; i < count; i++)
        numbers[i] = counted_as(kg_ptx_form_of(job, &job->function.instructions.items[i]));
    qsort(numbers, (size_t)count, sizeof *numbers, by_number);
    for (int32_t i = 0; i < count; i++)
        different += i == 0 || numbers[i] != numbers[i - 1];
    kernel->opcodes = KG_NEW_ARRAY(job->arena, different, struct kg_asm_count);
    for (int32_t i = 0; kernel->opcodes && i < count; i++) {
        if (i == 0 || numbers[i] != numbers[i - 1])
            kernel->opcodes[kernel->opcode_count++].name = counted_name(job, numbers[i]);
        kernel->opcodes[kernel->opcode_count - 1].count++;
    }
    if (job->arena->failed)
        return false;
    qsort(kernel->opcodes, (size_t)different, sizeof *kernel->opcodes, by_name);
    return true;
}

static bool fill_blocks(struct kg_ptx_job *job, struct kg_arena *scratch,
                        struct kg_asm_kernel *kernel)
{
    const struct kg_flow *flow = &kernel->flow;
    int32_t *block_of =
        KG_NEW_ARRAY(scratch, (int64_t)job->function.instructions.count + 1, int32_t);
    kernel->blocks = KG_NEW_ARRAY(job->arena, flow->block_count, struct kg_asm_block);
    kernel->loops = KG_NEW_ARRAY(job->arena, flow->loop_count, struct kg_asm_loop);
    if (!block_of || !kernel->blocks || !kernel->loops)
        return false;
    for (int32_t b = 0; b < flow->block_count; b++)
        for (int32_t i = 0; i < flow->blocks[b].count; i++)
            block_of[flow->blocks[b].first + i] = b;
    struct kg_ptx_analysis analysis = {.job = job, .flow = flow, .block_of = block_of};
    if (!kg_ptx_count_trips(&analysis, scratch, kernel))
        return false;
    for (int32_t b = 0; b < flow->block_count; b++) {
        struct kg_mix mix = {0};
        int32_t end = flow->blocks[b].first + flow->blocks[b].count;
        for (int32_t i = flow->blocks[b].first; i < end && i < job->function.instructions.count;
             i++)
            add_instruction(&analysis, i, &mix);
        if (!kg_asm_block_fill(&kernel->blocks[b], &mix, job->arena))
            return false;
    }
    fill_lines(job, kernel);
    kg_asm_weigh(kernel);
    return true;
}

static void check_sizes(struct kg_ptx_job *job, const struct kg_flow *flow)
{
    job->blocks += flow->block_count;
    if (job->blocks > MAX_BLOCKS)
        kg_ptx_fail(job, job->token.text, job->token.line, "more than %lld blocks in one file",
                    (long long)MAX_BLOCKS);
    if (job->kernels.count >= MAX_KERNELS)
        kg_ptx_fail(job, job->token.text, job->token.line, "more than %d kernels in one file",
                    MAX_KERNELS);
}

// The memory of each step is released before the next step.
static void fill_kernel(struct kg_ptx_job *job, struct kg_asm_kernel *kernel)
{
    int32_t count = job->function.instructions.count + goes_behind(job);
    const struct kg_flow_code code = {step_of, job, count};
    if (!kg_flow_find_in(&code, job->arena, &kernel->flow))
        kg_ptx_fail_memory(job);
    check_sizes(job, &kernel->flow);
    if (!fill_blocks(job, &job->scratch, kernel))
        kg_ptx_fail_memory(job);
    kg_arena_free(&job->scratch);
    if (!count_opcodes(job, &job->scratch, kernel))
        kg_ptx_fail_memory(job);
    kg_arena_free(&job->scratch);
}

// Branch targets are hashed; names of labels are not.
static void note_targets(struct kg_ptx_job *job)
{
    const struct kg_ptx_function *function = &job->function;
    for (int32_t i = 0; i < function->instructions.count; i++) {
        const struct kg_ptx_instruction *instruction = &function->instructions.items[i];
        enum kg_ptx_action action = action_of(job, instruction);
        if (action == KG_PTX_ACTION_BRA || action == KG_PTX_ACTION_BRX)
            kg_ptx_note_integer(job, instruction->target);
    }
    for (int32_t t = 0; t < function->table_targets.count; t++)
        kg_ptx_note_integer(job, function->table_targets.items[t]);
}

void kg_ptx_add_function(struct kg_ptx_job *job)
{
    note_targets(job);
    struct kg_hash hash = kg_ptx_noted(job);
    if (!job->function.is_entry) {
        job->functions_hash = kg_hash_chain(job->functions_hash, &hash, sizeof hash);
        return;
    }
    struct kg_asm_kernel kernel = job->function.launch;
    kernel.name = job->function.name;
    kernel.normal_hash = hash;
    kernel.arch = job->arch;
    kernel.sm = job->sm;
    kernel.instructions = job->function.instructions.count;
    kernel.registers = kernel.barriers = -1;
    kernel.stack_bytes = kernel.spill_store_bytes = kernel.spill_load_bytes = -1;
    fill_kernel(job, &kernel);
    *KG_PTX_ADD(job, &job->kernels) = kernel;
    *KG_PTX_ADD(job, &job->kernel_calls) = job->function.calls;
}
