// The successors of each instruction.

#include "asm/sass.h"

#define TRUE_PREDICATE 7
#define UNIT 4 // bytes per unit of a branch's distance

enum { CALL = 0x144, BRA = 0x147, BRX = 0x149, JMP = 0x14a, JMX = 0x14c };
enum { EXIT = 0x14d, RET = 0x150, BRXU = 0x158, JMXU = 0x159 };

// In bytes, from the end of the instruction. Since sm_90 the lowest eight bits are in another
// field.
static int64_t distance(struct kg_sass_word word, int sm)
{
    uint64_t field = kg_sass_bits(word, 34, 48);
    int64_t units = (int64_t)(field << 16) >> 16;
    if (sm >= 90)
        units = (int64_t)((uint64_t)units << 8 | kg_sass_bits(word, 16, 8));
    return (int64_t)((uint64_t)units * UNIT);
}

// The branch target, or -1 if it is not an instruction of this code.
static int32_t find_target(const struct kg_sass_code *code, int32_t index, struct kg_sass_word word)
{
    int64_t bytes = distance(word, code->sm);
    if (bytes % KG_SASS_SIZE != 0)
        return -1;
    int64_t target = bytes / KG_SASS_SIZE + index + 1;
    return target >= 0 && target < code->count ? (int32_t)target : -1;
}

static bool is_guarded(struct kg_sass_word word)
{
    return kg_sass_bits(word, 12, 4) != TRUE_PREDICATE;
}

// Branches and exits have a second predicate; a branch on divergence or convergence has none, and a
// uniform one (form 2) a uniform predicate.
static bool is_conditional(struct kg_sass_word word)
{
    bool on_threads = (word.low & 0x1ff) == BRA && kg_sass_bits(word, 32, 2) >= 2;
    bool on_uniform = (word.low & 0xfff) == (BRA | 2 << 9) && kg_sass_bits(word, 24, 4) != 7;
    return is_guarded(word) || kg_sass_bits(word, 87, 4) != TRUE_PREDICATE || on_threads ||
           on_uniform;
}

static struct kg_step end(bool conditional)
{
    return (struct kg_step){.kind = conditional ? KG_STEP_MAYBE_END : KG_STEP_END};
}

static struct kg_step branch(const struct kg_sass_code *code, int32_t index,
                             struct kg_sass_word word)
{
    bool conditional = is_conditional(word);
    int32_t target = find_target(code, index, word);
    if (target < 0 || (target == index && !conditional)) // the branch after the last EXIT
        return end(conditional);
    return (struct kg_step){.kind = conditional ? KG_STEP_BRANCH : KG_STEP_JUMP, .target = target};
}

static struct kg_step indirect(int32_t index, const struct kg_sass_table *tables,
                               int32_t table_count, bool guarded)
{
    int32_t low = 0, high = table_count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (tables[middle].at < index)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == table_count || tables[low].at != index || tables[low].target_count == 0)
        return end(guarded);
    return (struct kg_step){.kind = KG_STEP_MANY,
                            .targets = tables[low].targets,
                            .target_count = tables[low].target_count};
}

static struct kg_step call(const struct kg_sass_code *code, int32_t index, struct kg_sass_word word)
{
    bool direct = kg_sass_bits(word, 9, 3) == 4;
    int32_t target = direct ? find_target(code, index, word) : -1;
    if (target <= index) // a callee elsewhere, or recursion: not a loop
        return (struct kg_step){.kind = KG_STEP_NEXT};
    return (struct kg_step){.kind = KG_STEP_BRANCH, .target = target};
}

struct kg_step kg_sass_step(const struct kg_sass_code *code, int32_t index,
                            const struct kg_sass_table *tables, int32_t table_count)
{
    struct kg_sass_word word = kg_sass_word_at(code->bytes + (size_t)index * KG_SASS_SIZE);
    switch (word.low & 0x1ff) {
    case BRA:
        return branch(code, index, word);
    case BRX:
    case BRXU:
    case JMX:
    case JMXU:
        return indirect(index, tables, table_count, is_guarded(word));
    case CALL:
        return call(code, index, word);
    case JMP: // to an absolute address, which is in another section
        return end(is_guarded(word));
    case EXIT:
    case RET:
        return end(is_conditional(word));
    default: // an indirect call returns, a breakpoint may be continued
        return (struct kg_step){.kind = KG_STEP_NEXT};
    }
}
