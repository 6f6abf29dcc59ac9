// Loops with a constant number of trips: one latch that compares a register with a constant, one
// addition of a constant to that register, and a constant assigned to it before the loop. Every
// other form is unknown: no count is better than a wrong one.

#include "asm/sass.h"

#include <math.h>
#include <string.h>

#define ZERO_REGISTER 255
#define TRUE_PREDICATE 7

enum { MOV = 0x002, CS2R = 0x005, ISETP = 0x00c, IADD3 = 0x010, IMAD = 0x024 };
enum { FSEL = 0x008, FMNMX = 0x009, LOP3 = 0x012, PRMT = 0x016, SHF = 0x019, FMUL = 0x020 };
enum { FADD = 0x021, FFMA = 0x023, IDP = 0x026, HADD2 = 0x030, HMUL2 = 0x032, F2FP = 0x03e };
enum { I2FP = 0x045, MUFU = 0x108, POPC = 0x109, S2R = 0x119, SHFL = 0x189 };
enum { HFMA2 = 0x031, IADD = 0x035, VIADD = 0x036, UMOV = 0x082, UISETP = 0x08c, UIADD3 = 0x090 };
enum { FSETP = 0x00b, PLOP3 = 0x01c, DSETP = 0x02a, HSETP2 = 0x034 };
enum { PLAIN = 1, CONSTANT_LAST, CONSTANT_MIDDLE = 4, UNIFORM = 6 }; // operand forms
enum comparison { LESS = 1, EQUAL, LESS_OR_EQUAL, GREATER, NOT_EQUAL, GREATER_OR_EQUAL };

struct induction {
    bool uniform;
    unsigned reg;
    enum comparison comparison; // the loop continues while it is true
    int64_t limit, step, start;
    int32_t compared_at, added_at;
};

static struct kg_sass_word word_at(const struct kg_sass_code *code, int32_t index)
{
    return kg_sass_word_at(code->bytes + (size_t)index * KG_SASS_SIZE);
}

static unsigned opcode_of(struct kg_sass_word word)
{
    return word.low & 0x1ff;
}

static unsigned form_of(struct kg_sass_word word)
{
    return (unsigned)kg_sass_bits(word, 9, 3);
}

static int64_t constant_of(struct kg_sass_word word)
{
    return (int32_t)kg_sass_bits(word, 32, 32);
}

static bool is_uniform(const struct kg_sass_opcode *opcode)
{
    return opcode->name[0] == 'U';
}

// Instructions whose result is a single register for all modifiers.
static bool writes_one(unsigned code)
{
    static const uint16_t codes[] = {
        FSEL,  FMNMX, IADD3, LOP3,  PRMT, SHF,  FMUL, FADD, FFMA, IMAD, IDP,
        HADD2, HFMA2, HMUL2, VIADD, F2FP, I2FP, MUFU, POPC, S2R,  SHFL,
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i] == code)
            return true;
    return false;
}

// The number of registers that an instruction's result may take: as many as it loads, all for
// matrix instructions, two for the others, because some are 64 bits wide. 0: none, or only
// predicates.
static unsigned result_size(struct kg_sass_word word, const struct kg_sass_opcode *opcode)
{
    struct kg_sass sass;
    switch (opcode_of(word)) {
    case FSETP:
    case ISETP:
    case PLOP3:
    case DSETP:
    case HSETP2:
    case UISETP:
        return 0;
    case MOV:
        return kg_sass_bits(word, 80, 1) ? 2 : 1; // MOV.64
    default:
        if (writes_one(opcode_of(word)))
            return 1;
    }
    switch (opcode->work) {
    case KG_WORK_TENSOR:
    case KG_WORK_UNKNOWN:
        return 256;
    case KG_WORK_LOAD_SHARED:
        kg_sass_decode(word, 90, &sass);
        return sass.bytes > 0 ? (unsigned)(sass.bytes + 3) / 4 : 256; // LDTM: up to all
    case KG_WORK_LOAD_GLOBAL:
    case KG_WORK_LOAD_LOCAL:
    case KG_WORK_LOAD_CONSTANT:
        kg_sass_decode(word, 90, &sass);
        return sass.bytes > 0 ? (unsigned)(sass.bytes + 3) / 4 : 4;
    case KG_WORK_STORE_GLOBAL:
    case KG_WORK_STORE_SHARED:
    case KG_WORK_STORE_LOCAL:
    case KG_WORK_BRANCH:
    case KG_WORK_NOTHING:
        return 0;
    default:
        return 2;
    }
}

// May the instruction write the register?
static bool may_write(const struct kg_sass_code *code, int32_t index, bool uniform, unsigned reg)
{
    struct kg_sass_word word = word_at(code, index);
    const struct kg_sass_opcode *opcode = kg_sass_opcode(word, code->sm, NULL);
    bool to_uniform = is_uniform(opcode) || strcmp(opcode->name, "R2UR") == 0 ||
                      strcmp(opcode->name, "S2UR") == 0 || strcmp(opcode->name, "LDCU") == 0 ||
                      strcmp(opcode->name, "REDUX") == 0 || strcmp(opcode->name, "CREDUX") == 0 ||
                      strcmp(opcode->name, "VOTEU") == 0 || strcmp(opcode->name, "CS2UR") == 0;
    unsigned first = (unsigned)kg_sass_bits(word, 16, 8);
    return to_uniform == uniform && first != ZERO_REGISTER && first <= reg &&
           reg < first + result_size(word, opcode);
}

// The uniform zero register is 63 up to sm_90 and 255 since.
static bool is_uniform_zero(struct kg_sass_word word, unsigned at)
{
    return (kg_sass_bits(word, at, 8) | 0xc0) == ZERO_REGISTER;
}

static bool is_step(struct kg_sass_word word, const struct induction *loop)
{
    unsigned code = opcode_of(word);
    bool adds = loop->uniform ? code == UIADD3 : code == IADD3 || code == VIADD || code == IADD;
    bool third_is_zero = code == UIADD3  ? is_uniform_zero(word, 64)
                         : code == IADD3 ? kg_sass_bits(word, 64, 8) == ZERO_REGISTER
                                         : true;
    return adds && third_is_zero && form_of(word) == CONSTANT_MIDDLE &&
           kg_sass_bits(word, 12, 4) == TRUE_PREDICATE && kg_sass_bits(word, 16, 8) == loop->reg &&
           kg_sass_bits(word, 24, 8) == loop->reg && kg_sass_bits(word, 72, 3) == 0;
}

// "P = register ? constant", without further predicates.
static bool read_comparison(struct kg_sass_word word, unsigned predicate, bool negated,
                            struct induction *loop)
{
    static const enum comparison opposite[] = {
        [LESS] = GREATER_OR_EQUAL, [EQUAL] = NOT_EQUAL, [LESS_OR_EQUAL] = GREATER,
        [GREATER] = LESS_OR_EQUAL, [NOT_EQUAL] = EQUAL, [GREATER_OR_EQUAL] = LESS,
    };
    unsigned comparison = (unsigned)kg_sass_bits(word, 76, 3);
    bool is_signed = kg_sass_bits(word, 73, 1);
    if (form_of(word) != CONSTANT_MIDDLE || kg_sass_bits(word, 12, 4) != TRUE_PREDICATE ||
        kg_sass_bits(word, 81, 3) != predicate || kg_sass_bits(word, 84, 3) != TRUE_PREDICATE ||
        kg_sass_bits(word, 87, 4) != TRUE_PREDICATE || kg_sass_bits(word, 74, 2) != 0 ||
        kg_sass_bits(word, 72, 1) || comparison < LESS || comparison > GREATER_OR_EQUAL)
        return false;
    loop->reg = (unsigned)kg_sass_bits(word, 24, 8);
    loop->limit = constant_of(word);
    if (!is_signed && loop->limit < 0)
        return false;
    loop->comparison = negated ? opposite[comparison] : (enum comparison)comparison;
    return true;
}

// Carries, parities and votes are predicates too.
static bool may_decide(const struct kg_sass_code *code, struct kg_sass_word word, bool uniform,
                       unsigned predicate)
{
    const struct kg_sass_opcode *opcode = kg_sass_opcode(word, code->sm, NULL);
    if (is_uniform(opcode) != uniform)
        return false;
    enum kg_work work = opcode->work;
    bool two = opcode_of(word) != LOP3 && opcode_of(word) != IMAD; // bits 84-86 are always 0
    return work == KG_WORK_SELECT || ((work == KG_WORK_INTEGER || work == KG_WORK_SHUFFLE ||
                                       work == KG_WORK_ATOMIC || work == KG_WORK_BARRIER) &&
                                      (kg_sass_bits(word, 81, 3) == predicate ||
                                       (two && kg_sass_bits(word, 84, 3) == predicate)));
}

// The comparison that decides the latch's branch, searched backwards within the latch.
static bool find_comparison(const struct kg_sass_code *code, const struct kg_flow_block *latch,
                            struct induction *loop)
{
    int32_t last = latch->first + latch->count - 1;
    struct kg_sass_word branch = word_at(code, last);
    bool uniform = form_of(branch) == 2; // BRA.U
    unsigned from = uniform ? 24 : 12;
    if (opcode_of(branch) != 0x147 || (kg_sass_bits(branch, 87, 3) != TRUE_PREDICATE && !uniform))
        return false;
    unsigned predicate = (unsigned)kg_sass_bits(branch, from, 3);
    bool negated = kg_sass_bits(branch, from + 3, 1);
    for (int32_t i = last - 1; i >= latch->first; i--) {
        struct kg_sass_word word = word_at(code, i);
        if (opcode_of(word) != (uniform ? UISETP : ISETP)) {
            if (may_decide(code, word, uniform, predicate))
                return false;
            continue;
        }
        loop->uniform = uniform;
        loop->compared_at = i;
        return read_comparison(word, predicate, negated, loop);
    }
    return false;
}

static bool find_step(const struct kg_sass_code *code, const struct kg_flow *flow,
                      const struct kg_flow_loop *body, struct induction *loop)
{
    loop->added_at = -1;
    for (int32_t b = 0; b < body->block_count; b++) {
        const struct kg_flow_block *block = &flow->blocks[body->blocks[b]];
        for (int32_t i = block->first; i < block->first + block->count; i++) {
            if (!may_write(code, i, loop->uniform, loop->reg))
                continue;
            if (loop->added_at >= 0 || !is_step(word_at(code, i), loop))
                return false;
            loop->added_at = i;
            loop->step = constant_of(word_at(code, i));
        }
    }
    const struct kg_flow_block *latch = &flow->blocks[body->latches[0]];
    return loop->added_at >= latch->first && loop->step != 0;
}

// The value that a move assigns: a constant, or zero from the zero register.
static bool read_start(struct kg_sass_word word, struct induction *loop)
{
    unsigned code = opcode_of(word), form = form_of(word);
    if (kg_sass_bits(word, 12, 4) != TRUE_PREDICATE)
        return false;
    bool zero_pair = kg_sass_bits(word, 24, 8) == ZERO_REGISTER &&
                     kg_sass_bits(word, form == PLAIN ? 32 : 64, 8) == ZERO_REGISTER;
    loop->start = 0;
    if (code == CS2R) // of the zero register: 64 bits
        return kg_sass_bits(word, 72, 8) == ZERO_REGISTER;
    if (kg_sass_bits(word, 16, 8) != loop->reg)
        return false;
    if (code == (loop->uniform ? UMOV : MOV) && form == CONSTANT_MIDDLE) {
        loop->start = constant_of(word);
        return true;
    }
    if (code == UMOV)
        return form == UNIFORM && is_uniform_zero(word, 32);
    if (code == MOV)
        return form == PLAIN && kg_sass_bits(word, 32, 8) == ZERO_REGISTER;
    if (!zero_pair || (code != IMAD && code != HFMA2 && code != IADD))
        return false;
    if (form == CONSTANT_LAST) {
        loop->start = constant_of(word);
        return true;
    }
    return code == IMAD && form == PLAIN && kg_sass_bits(word, 64, 8) == ZERO_REGISTER;
}

// The last write before the header, in the block that precedes it.
static bool find_start(const struct kg_sass_code *code, const struct kg_flow *flow, int32_t header,
                       struct induction *loop)
{
    if (header == 0)
        return false;
    const struct kg_flow_block *before = &flow->blocks[header - 1];
    int32_t end = before->first + before->count;
    if (end != flow->blocks[header].first || flow->blocks[header].dominator != header - 1)
        return false;
    for (int32_t i = end - 1; i >= before->first; i--)
        if (may_write(code, i, loop->uniform, loop->reg))
            return read_start(word_at(code, i), loop);
    return false;
}

// The smallest k >= 1 for which start + k step no longer satisfies the comparison.
static double count_trips(const struct induction *loop)
{
    double distance = (double)(loop->limit - loop->start), step = (double)loop->step;
    double trips = distance / step;
    switch (loop->comparison) {
    case NOT_EQUAL:
        return trips == floor(trips) ? trips : 0;
    case LESS:
        return step > 0 ? ceil(trips) : 0;
    case LESS_OR_EQUAL:
        return step > 0 ? floor(trips) + 1 : 0;
    case GREATER:
        return step < 0 ? ceil(trips) : 0;
    case GREATER_OR_EQUAL:
        return step < 0 ? floor(trips) + 1 : 0;
    default:
        return 0;
    }
}

double kg_sass_trips(const struct kg_sass_code *code, const struct kg_flow *flow, int32_t index)
{
    const struct kg_flow_loop *body = &flow->loops[index];
    struct induction loop = {0};
    if (body->latch_count != 1 || !find_comparison(code, &flow->blocks[body->latches[0]], &loop) ||
        !find_step(code, flow, body, &loop) || !find_start(code, flow, body->header, &loop))
        return 0;
    if (loop.compared_at < loop.added_at) // the comparison sees the value before the addition
        loop.start -= loop.step;
    double trips = count_trips(&loop);
    return trips >= 1 ? trips : 0;
}
