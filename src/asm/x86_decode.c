// Turns Capstone's instruction into the properties that time depends on.

#include "asm/x86.h"

#include <string.h>

// Registers that a function must preserve, in all their sizes. Numbered from 1.
static int saved_register(x86_reg reg)
{
    static const x86_reg families[][4] = {
        {X86_REG_RBX, X86_REG_EBX, X86_REG_BX, X86_REG_BL},
        {X86_REG_RBP, X86_REG_EBP, X86_REG_BP, X86_REG_BPL},
        {X86_REG_R12, X86_REG_R12D, X86_REG_R12W, X86_REG_R12B},
        {X86_REG_R13, X86_REG_R13D, X86_REG_R13W, X86_REG_R13B},
        {X86_REG_R14, X86_REG_R14D, X86_REG_R14W, X86_REG_R14B},
        {X86_REG_R15, X86_REG_R15D, X86_REG_R15W, X86_REG_R15B},
    };
    for (int f = 0; f < 6; f++)
        for (int i = 0; i < 4; i++)
            if (families[f][i] == reg)
                return f + 1;
    return 0;
}

static int vector_bytes(x86_reg reg)
{
    if (reg >= X86_REG_XMM0 && reg <= X86_REG_XMM31)
        return 16;
    if (reg >= X86_REG_YMM0 && reg <= X86_REG_YMM31)
        return 32;
    return reg >= X86_REG_ZMM0 && reg <= X86_REG_ZMM31 ? 64 : 0;
}

static bool is_register(const cs_x86 *x86, int operand, x86_reg reg)
{
    return operand < x86->op_count && x86->operands[operand].type == X86_OP_REG &&
           x86->operands[operand].reg == reg;
}

static const cs_x86_op *memory_operand(const cs_x86 *x86, int *position)
{
    for (*position = 0; *position < x86->op_count; ++*position)
        if (x86->operands[*position].type == X86_OP_MEM)
            return &x86->operands[*position];
    return NULL;
}

// Elements that a floating-point instruction works on: "ps", "pd", "ss", "sd".
static int elements(const char *name, int width)
{
    size_t length = strlen(name);
    if (length < 2 || name[length - 2] == 's')
        return 1;
    return name[length - 1] == 'd' ? width / 8 : width / 4;
}

static void describe_arithmetic(const struct kg_x86_opcode *opcode, const char *name,
                                struct kg_x86_step *step)
{
    if (opcode->flops == 0)
        return;
    step->lanes = (uint8_t)elements(name, step->width);
    step->flops = (uint8_t)(opcode->flops * step->lanes);
    step->multiplies = opcode->flops == 2 || strstr(name, "mul");
    if (name[strlen(name) - 1] == 'd')
        step->work = KG_WORK_DOUBLE;
}

static void describe_slot(const cs_x86_op *memory, struct kg_x86_step *step)
{
    bool by_stack = memory->mem.base == X86_REG_RSP, by_pointer = memory->mem.base == X86_REG_RBP;
    step->on_stack = (by_stack || by_pointer) && memory->mem.index == X86_REG_INVALID &&
                     memory->mem.segment == X86_REG_INVALID;
    step->slot = (struct kg_x86_slot){by_pointer, memory->mem.disp};
}

static void describe_memory(const struct kg_x86_opcode *opcode, const cs_x86 *x86,
                            struct kg_x86_step *step)
{
    int position;
    const cs_x86_op *memory = memory_operand(x86, &position);
    if (!memory || step->id == X86_INS_LEA || step->work == KG_WORK_NOTHING)
        return;
    bool stores = position == 0 && !opcode->reads_all;
    // In old instructions the destination is also an operand.
    bool loads = !stores || (!opcode->moves && opcode->work != KG_WORK_STORE_GLOBAL &&
                             step->work != KG_WORK_CONVERT);
    step->loads = loads;
    step->stores = stores;
    step->bytes = strncmp(opcode->prefix, "prefetch", 8) == 0 ? 0 : memory->size;
    describe_slot(memory, step);
    const cs_x86_op *other = x86->op_count == 2 ? &x86->operands[!position] : NULL;
    if (!opcode->moves)
        return;
    step->work = stores ? KG_WORK_STORE_GLOBAL : KG_WORK_LOAD_GLOBAL;
    step->register_move = other && other->type == X86_OP_REG;
    if (!step->register_move)
        return;
    step->saved = (uint8_t)saved_register(other->reg);
    step->moved = other->reg;
    step->guard = loads && memory->mem.segment == X86_REG_FS && memory->mem.disp == 0x28;
}

static void describe_frame(const cs_x86 *x86, struct kg_x86_step *step)
{
    const cs_x86_op *first = x86->operands;
    if (step->id == X86_INS_PUSH) {
        step->frame = 8;
        step->stores = 1;
    }
    if (step->id == X86_INS_POP) {
        step->work = KG_WORK_MOVE;
        step->loads = 1;
    }
    if (step->id == X86_INS_SUB && is_register(x86, 0, X86_REG_RSP) && x86->op_count == 2 &&
        x86->operands[1].type == X86_OP_IMM && x86->operands[1].imm > 0)
        step->frame = x86->operands[1].imm;
    bool copies = step->id == X86_INS_MOV && is_register(x86, 1, X86_REG_RSP);
    bool computes = step->id == X86_INS_LEA && x86->op_count == 2 &&
                    x86->operands[1].mem.base == X86_REG_RSP &&
                    x86->operands[1].mem.index == X86_REG_INVALID;
    step->sets_pointer = (copies || computes) && is_register(x86, 0, X86_REG_RBP);
    if (x86->op_count > 0 && first->type == X86_OP_REG && !step->on_stack &&
        step->id != X86_INS_PUSH && step->id != X86_INS_CMP && step->id != X86_INS_TEST)
        step->overwrites = (uint8_t)saved_register(first->reg);
}

static void describe_way(const cs_x86 *x86, bool relocated, struct kg_x86_step *step)
{
    if (step->id == X86_INS_RET || step->id == X86_INS_UD2 || step->id == X86_INS_HLT) {
        step->kind = KG_STEP_END;
        return;
    }
    if (step->work != KG_WORK_BRANCH || step->id == X86_INS_CALL || step->id == X86_INS_SYSCALL)
        return;
    // Targets of indirect jumps are unknown: they count as exits.
    step->falls_apart = step->id != X86_INS_JMP;
    step->has_target = x86->op_count == 1 && x86->operands[0].type == X86_OP_IMM && !relocated;
    if (step->has_target)
        step->target = (uint64_t)x86->operands[0].imm;
    if (step->falls_apart)
        step->kind = step->has_target ? KG_STEP_BRANCH : KG_STEP_MAYBE_END;
    else
        step->kind = step->has_target ? KG_STEP_JUMP : KG_STEP_END;
}

void kg_x86_describe(const struct kg_capstone *capstone, bool relocated, struct kg_x86_step *step)
{
    const cs_insn *instruction = capstone->instruction;
    const cs_x86 *x86 = &instruction->detail->x86;
    const char *name = capstone->name(capstone->handle, instruction->id);
    const struct kg_x86_opcode *opcode = kg_x86_opcode_find(name ? name : "");
    *step = (struct kg_x86_step){
        .offset = instruction->address,
        .size = (uint8_t)instruction->size,
        .work = opcode->work,
        .id = instruction->id,
        .compares = opcode->compares,
    };
    for (int o = 0; o < x86->op_count; o++)
        if (x86->operands[o].type == X86_OP_REG && vector_bytes(x86->operands[o].reg) > step->width)
            step->width = (uint8_t)vector_bytes(x86->operands[o].reg);
    describe_arithmetic(opcode, name ? name : "", step);
    describe_memory(opcode, x86, step);
    describe_frame(x86, step);
    describe_way(x86, relocated, step);
    if (x86->prefix[0] == X86_PREFIX_LOCK)
        step->work = KG_WORK_ATOMIC;
}
