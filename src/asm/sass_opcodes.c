// The opcodes: one row per number in bits 0-8, and one per instruction that shares a number with
// another (SHARED: those further down are looked through first). Names are what nvdisasm 13.5 calls
// the instruction, compared on the generations of the last column by tools/sass_evidence.py;
// classes and operations are this project's reading of them.

#include "asm/sass.h"

#include <assert.h>

#define TURING KG_SASS_TURING
#define AMPERE KG_SASS_AMPERE
#define HOPPER KG_SASS_HOPPER
#define BLACKWELL KG_SASS_BLACKWELL
#define BLACKWELL_RTX KG_SASS_BLACKWELL_RTX
#define FROM_BLACKWELL (BLACKWELL | BLACKWELL_RTX)
#define FROM_HOPPER (HOPPER | FROM_BLACKWELL)
#define FROM_AMPERE (AMPERE | FROM_HOPPER)
#define EVERYWHERE (TURING | FROM_AMPERE)
#define TO_AMPERE (TURING | AMPERE)
#define TO_HOPPER (TO_AMPERE | HOPPER)

// clang-format off
#define ROW(name, work, flops, width, seen)                                                        \
    {name, KG_WORK_##work, flops, KG_SASS_##width, seen, false}
#define SHARED(name, work, flops, width, seen)                                                     \
    {name, KG_WORK_##work, flops, KG_SASS_##width, seen, true}

//           mnemonic, class, operations of a thread, where its bytes stand, compared on
static const struct kg_sass_opcode opcodes[512] = {
    [0x001] = ROW("PMTRIG", NOTHING, 0, NO_BYTES, EVERYWHERE),
    [0x002] = ROW("MOV", MOVE, 0, NO_BYTES, EVERYWHERE),
    [0x003] = ROW("P2R", MOVE, 0, NO_BYTES, FROM_AMPERE),
    [0x004] = ROW("R2P", MOVE, 0, NO_BYTES, EVERYWHERE),
    [0x005] = ROW("CS2R", MOVE, 0, NO_BYTES, EVERYWHERE),
    [0x006] = ROW("VOTE", SHUFFLE, 0, NO_BYTES, EVERYWHERE),
    [0x007] = ROW("SEL", SELECT, 0, NO_BYTES, EVERYWHERE),
    [0x008] = ROW("FSEL", SELECT, 0, NO_BYTES, EVERYWHERE),
    [0x009] = ROW("FMNMX", SELECT, 0, NO_BYTES, EVERYWHERE),
    [0x00a] = ROW("FSET", SELECT, 0, NO_BYTES, FROM_BLACKWELL),
    [0x00b] = ROW("FSETP", SELECT, 0, NO_BYTES, EVERYWHERE),
    [0x00c] = ROW("ISETP", SELECT, 0, NO_BYTES, EVERYWHERE),
    [0x010] = ROW("IADD3", INTEGER, 0, NO_BYTES, EVERYWHERE),
    [0x011] = ROW("LEA", INTEGER, 0, NO_BYTES, EVERYWHERE),
    [0x012] = ROW("LOP3", INTEGER, 0, NO_BYTES, EVERYWHERE),
    [0x013] = ROW("IABS", INTEGER, 0, NO_BYTES, EVERYWHERE),
    [0x014] = ROW("VABSDIFF", INTEGER, 0, NO_BYTES, EVERYWHERE & ~BLACKWELL_RTX),
    [0x015] = ROW("VABSDIFF4", INTEGER, 0, NO_BYTES, EVERYWHERE & ~BLACKWELL_RTX),
    [0x016] = ROW("PRMT", INTEGER, 0, NO_BYTES, EVERYWHERE),
    [0x017] = ROW("IMNMX", SELECT, 0, NO_BYTES, TURING | AMPERE | BLACKWELL | BLACKWELL_RTX),
    [0x019] = ROW("SHF", INTEGER, 0, NO_BYTES, EVERYWHERE),
    [0x01a] = ROW("SGXT", INTEGER, 0, NO_BYTES, EVERYWHERE),
    [0x01b] = ROW("BMSK", INTEGER, 0, NO_BYTES, EVERYWHERE),
    [0x01c] = ROW("PLOP3", SELECT, 0, NO_BYTES, EVERYWHERE),
    [0x020] = ROW("FMUL", FMA, 1, NO_BYTES, EVERYWHERE),
    [0x021] = ROW("FADD", FMA, 1, NO_BYTES, EVERYWHERE),
    [0x023] = ROW("FFMA", FMA, 2, NO_BYTES, EVERYWHERE),
    [0x024] = ROW("IMAD", INTEGER, 0, NO_BYTES, EVERYWHERE),
    [0x025] = ROW("IMAD", INTEGER, 0, NO_BYTES, EVERYWHERE),
    [0x026] = ROW("IDP", INTEGER, 0, NO_BYTES, EVERYWHERE),
    [0x027] = ROW("IMAD", INTEGER, 0, NO_BYTES, EVERYWHERE),
    [0x028] = ROW("DMUL", DOUBLE, 1, NO_BYTES, EVERYWHERE),
    [0x029] = ROW("DADD", DOUBLE, 1, NO_BYTES, EVERYWHERE),
    [0x02a] = ROW("DSETP", SELECT, 0, NO_BYTES, EVERYWHERE),
    [0x02b] = ROW("DFMA", DOUBLE, 2, NO_BYTES, EVERYWHERE),
    [0x02d] = ROW("PREEXIT", FENCE, 0, NO_BYTES, FROM_HOPPER),
    [0x02e] = ROW("ACQBULK", FENCE, 0, NO_BYTES, FROM_HOPPER),
    [0x02f] = ROW("ELECT", SHUFFLE, 0, NO_BYTES, FROM_HOPPER),
    [0x030] = ROW("HADD2", HALF, 2, NO_BYTES, EVERYWHERE),
    [0x031] = ROW("HFMA2", HALF, 4, NO_BYTES, EVERYWHERE),
    [0x032] = ROW("HMUL2", HALF, 2, NO_BYTES, EVERYWHERE),
    [0x033] = ROW("HSET2", SELECT, 0, NO_BYTES, EVERYWHERE),
    [0x034] = ROW("HSETP2", SELECT, 0, NO_BYTES, EVERYWHERE),
    [0x035] = SHARED("HFMA2", HALF, 4, NO_BYTES, AMPERE | HOPPER),
    [0x036] = ROW("VIADD", INTEGER, 0, NO_BYTES, FROM_HOPPER),
    [0x037] = ROW("IMMA", TENSOR, 0, NO_BYTES, EVERYWHERE),
    [0x03a] = ROW("MOVM", MOVE, 0, NO_BYTES, FROM_BLACKWELL),
    [0x03b] = ROW("LDSM", LOAD_SHARED, 0, MATRIX, EVERYWHERE),
    [0x03c] = ROW("HMMA", TENSOR, 0, NO_BYTES, EVERYWHERE),
    [0x03d] = ROW("BMMA", TENSOR, 0, NO_BYTES, TO_HOPPER),
    [0x03e] = ROW("F2FP", CONVERT, 0, NO_BYTES, FROM_AMPERE),
    [0x03f] = ROW("DMMA", TENSOR, 0, NO_BYTES, FROM_AMPERE),
    [0x040] = ROW("HMNMX2", SELECT, 0, NO_BYTES, FROM_AMPERE),
    [0x043] = ROW("F2IP", CONVERT, 0, NO_BYTES, FROM_AMPERE),
    [0x044] = ROW("STSM", STORE_SHARED, 0, MATRIX, FROM_HOPPER),
    [0x045] = ROW("I2FP", CONVERT, 0, NO_BYTES, FROM_AMPERE),
    [0x046] = ROW("VIADDMNMX", SELECT, 0, NO_BYTES, HOPPER | BLACKWELL),
    [0x048] = ROW("VIMNMX", SELECT, 0, NO_BYTES, FROM_HOPPER),
    [0x049] = ROW("FFMA2", FMA, 4, NO_BYTES, BLACKWELL),
    [0x04a] = SHARED("FMUL2", FMA, 2, NO_BYTES, BLACKWELL),
    [0x04b] = ROW("FADD2", FMA, 2, NO_BYTES, BLACKWELL),
    [0x04c] = ROW("UVIRTCOUNT", MOVE, 0, NO_BYTES, BLACKWELL),
    [0x054] = ROW("UFADD", FMA, 1, NO_BYTES, BLACKWELL_RTX),
    [0x05a] = ROW("UI2F", CONVERT, 0, NO_BYTES, BLACKWELL_RTX),
    [0x05c] = ROW("UF2I", CONVERT, 0, NO_BYTES, BLACKWELL_RTX),
    [0x05e] = ROW("UI2FP", CONVERT, 0, NO_BYTES, BLACKWELL_RTX),
    [0x076] = ROW("FMNMX3", SELECT, 0, NO_BYTES, BLACKWELL),
    [0x07a] = ROW("QMMA", TENSOR, 0, NO_BYTES, AMPERE | BLACKWELL_RTX),
    [0x07f] = ROW("OMMA", TENSOR, 0, NO_BYTES, BLACKWELL_RTX),
    [0x082] = ROW("UMOV", MOVE, 0, NO_BYTES, EVERYWHERE),
    [0x083] = ROW("UP2UR", MOVE, 0, NO_BYTES, FROM_HOPPER),
    [0x084] = ROW("UR2UP", MOVE, 0, NO_BYTES, FROM_HOPPER),
    [0x086] = ROW("VOTEU", SHUFFLE, 0, NO_BYTES, EVERYWHERE),
    [0x087] = ROW("USEL", SELECT, 0, NO_BYTES, EVERYWHERE),
    [0x08c] = ROW("UISETP", SELECT, 0, NO_BYTES, EVERYWHERE),
    [0x090] = ROW("UIADD3", INTEGER, 0, NO_BYTES, EVERYWHERE),
    [0x091] = ROW("ULEA", INTEGER, 0, NO_BYTES, EVERYWHERE),
    [0x092] = ROW("ULOP3", INTEGER, 0, NO_BYTES, EVERYWHERE),
    [0x096] = ROW("UPRMT", INTEGER, 0, NO_BYTES, EVERYWHERE),
    [0x097] = ROW("UIADD3", INTEGER, 0, NO_BYTES, FROM_HOPPER),
    [0x099] = ROW("USHF", INTEGER, 0, NO_BYTES, EVERYWHERE),
    [0x09a] = ROW("USGXT", INTEGER, 0, NO_BYTES, HOPPER | BLACKWELL),
    [0x0a4] = ROW("UIMAD", INTEGER, 0, NO_BYTES, EVERYWHERE),
    [0x0a5] = ROW("UIMAD", INTEGER, 0, NO_BYTES, EVERYWHERE),
    [0x0b9] = ROW("ULDC", LOAD_CONSTANT, 0, ACCESS, TO_HOPPER),
    [0x0bd] = ROW("UFLO", INTEGER, 0, NO_BYTES, EVERYWHERE),
    [0x0bf] = ROW("UPOPC", INTEGER, 0, NO_BYTES, EVERYWHERE),
    [0x0ca] = ROW("R2UR", MOVE, 0, NO_BYTES, FROM_HOPPER),
    [0x0cb] = ROW("CS2UR", MOVE, 0, NO_BYTES, BLACKWELL_RTX),
    [0x0cc] = ROW("CREDUX", SHUFFLE, 0, NO_BYTES, BLACKWELL),
    [0x100] = ROW("FLO", INTEGER, 0, NO_BYTES, EVERYWHERE),
    [0x101] = ROW("BREV", INTEGER, 0, NO_BYTES, EVERYWHERE),
    [0x102] = ROW("FCHK", SELECT, 0, NO_BYTES, EVERYWHERE),
    [0x104] = ROW("F2F", CONVERT, 0, NO_BYTES, TURING | HOPPER),
    [0x105] = ROW("F2I", CONVERT, 0, NO_BYTES, EVERYWHERE),
    [0x106] = ROW("I2F", CONVERT, 0, NO_BYTES, EVERYWHERE),
    [0x107] = ROW("FRND", CONVERT, 0, NO_BYTES, EVERYWHERE),
    [0x108] = ROW("MUFU", SPECIAL, 0, NO_BYTES, EVERYWHERE),
    [0x109] = ROW("POPC", INTEGER, 0, NO_BYTES, EVERYWHERE),
    [0x110] = ROW("F2F", CONVERT, 0, NO_BYTES, EVERYWHERE),
    [0x111] = ROW("F2I", CONVERT, 0, NO_BYTES, EVERYWHERE),
    [0x112] = ROW("I2F", CONVERT, 0, NO_BYTES, EVERYWHERE),
    [0x113] = ROW("FRND", CONVERT, 0, NO_BYTES, EVERYWHERE),
    [0x118] = ROW("NOP", NOTHING, 0, NO_BYTES, EVERYWHERE),
    [0x119] = ROW("S2R", MOVE, 0, NO_BYTES, EVERYWHERE),
    [0x11a] = ROW("DEPBAR", FENCE, 0, NO_BYTES, EVERYWHERE),
    [0x11b] = ROW("ENDCOLLECTIVE", BRANCH, 0, NO_BYTES, FROM_HOPPER),
    [0x11c] = ROW("B2R", MOVE, 0, NO_BYTES, EVERYWHERE),
    [0x11d] = ROW("BAR", BARRIER, 0, NO_BYTES, EVERYWHERE),
    [0x140] = ROW("CCTL", FENCE, 0, NO_BYTES, FROM_BLACKWELL),
    [0x141] = ROW("BSYNC", BRANCH, 0, NO_BYTES, EVERYWHERE),
    [0x142] = ROW("BREAK", BRANCH, 0, NO_BYTES, EVERYWHERE),
    [0x143] = ROW("CALL", BRANCH, 0, NO_BYTES, EVERYWHERE),
    [0x144] = ROW("CALL", BRANCH, 0, NO_BYTES, EVERYWHERE),
    [0x145] = ROW("BSSY", BRANCH, 0, NO_BYTES, EVERYWHERE),
    [0x146] = ROW("YIELD", BRANCH, 0, NO_BYTES, EVERYWHERE),
    [0x147] = ROW("BRA", BRANCH, 0, NO_BYTES, EVERYWHERE),
    [0x148] = ROW("WARPSYNC", BRANCH, 0, NO_BYTES, EVERYWHERE),
    [0x149] = ROW("BRX", BRANCH, 0, NO_BYTES, EVERYWHERE),
    [0x14d] = ROW("EXIT", BRANCH, 0, NO_BYTES, EVERYWHERE),
    [0x14e] = ROW("LEPC", MOVE, 0, NO_BYTES, EVERYWHERE),
    [0x150] = ROW("RET", BRANCH, 0, NO_BYTES, EVERYWHERE),
    [0x155] = ROW("BMOV", MOVE, 0, NO_BYTES, EVERYWHERE),
    [0x156] = ROW("BMOV", MOVE, 0, NO_BYTES, EVERYWHERE),
    [0x158] = ROW("BRXU", BRANCH, 0, NO_BYTES, FROM_BLACKWELL),
    [0x15c] = ROW("BPT", BRANCH, 0, NO_BYTES, EVERYWHERE),
    [0x15d] = ROW("NANOSLEEP", NOTHING, 0, NO_BYTES, EVERYWHERE),
    [0x160] = ROW("TEX", LOAD_GLOBAL, 0, NO_BYTES, EVERYWHERE),
    [0x163] = ROW("TLD4", LOAD_GLOBAL, 0, NO_BYTES, EVERYWHERE),
    [0x166] = ROW("TLD", LOAD_GLOBAL, 0, NO_BYTES, EVERYWHERE),
    [0x16c] = ROW("TXD", LOAD_GLOBAL, 0, NO_BYTES, EVERYWHERE),
    [0x16f] = ROW("TXQ", LOAD_GLOBAL, 0, NO_BYTES, EVERYWHERE),
    [0x17e] = ROW("LDG", LOAD_GLOBAL, 0, WIDE, BLACKWELL),
    [0x17f] = ROW("STG", STORE_GLOBAL, 0, WIDE, BLACKWELL),
    [0x180] = ROW("LD", LOAD_GLOBAL, 0, ACCESS, EVERYWHERE),
    [0x181] = ROW("LDG", LOAD_GLOBAL, 0, ACCESS, EVERYWHERE),
    [0x182] = ROW("LDC", LOAD_CONSTANT, 0, ACCESS, EVERYWHERE),
    [0x183] = ROW("LDL", LOAD_LOCAL, 0, ACCESS, EVERYWHERE),
    [0x184] = ROW("LDS", LOAD_SHARED, 0, ACCESS, EVERYWHERE),
    [0x185] = ROW("ST", STORE_GLOBAL, 0, ACCESS, EVERYWHERE),
    [0x186] = ROW("STG", STORE_GLOBAL, 0, ACCESS, EVERYWHERE),
    [0x187] = ROW("STL", STORE_LOCAL, 0, ACCESS, EVERYWHERE),
    [0x188] = ROW("STS", STORE_SHARED, 0, ACCESS, EVERYWHERE),
    [0x189] = ROW("SHFL", SHUFFLE, 0, NO_BYTES, EVERYWHERE),
    [0x18a] = ROW("ATOM", ATOMIC, 0, ATOMIC, EVERYWHERE),
    [0x18c] = ROW("ATOMS", ATOMIC, 0, ATOMIC, EVERYWHERE),
    [0x18d] = ROW("ATOMS", ATOMIC, 0, ATOMIC, EVERYWHERE),
    [0x18e] = SHARED("REDG", ATOMIC, 0, ATOMIC, FROM_HOPPER),
    [0x18f] = ROW("CCTL", FENCE, 0, NO_BYTES, EVERYWHERE),
    [0x192] = ROW("MEMBAR", FENCE, 0, NO_BYTES, EVERYWHERE),
    [0x199] = ROW("SULD", LOAD_GLOBAL, 0, NO_BYTES, EVERYWHERE),
    [0x19d] = ROW("SUST", STORE_GLOBAL, 0, NO_BYTES, EVERYWHERE),
    [0x19f] = ROW("SURED", ATOMIC, 0, NO_BYTES, EVERYWHERE),
    [0x1a1] = ROW("MATCH", SHUFFLE, 0, NO_BYTES, EVERYWHERE),
    [0x1a3] = ROW("ATOMG", ATOMIC, 0, ATOMIC, FROM_HOPPER),
    [0x1a5] = ROW("LDGMC", LOAD_GLOBAL, 0, NO_BYTES, FROM_HOPPER),
    [0x1a6] = ROW("REDG", ATOMIC, 0, ATOMIC, FROM_HOPPER),
    [0x1a7] = ROW("SYNCS", BARRIER, 0, NO_BYTES, FROM_HOPPER),
    [0x1a8] = ROW("ATOMG", ATOMIC, 0, ATOMIC, EVERYWHERE),
    [0x1a9] = ROW("ATOMG", ATOMIC, 0, ATOMIC, EVERYWHERE),
    [0x1aa] = ROW("QSPC", SELECT, 0, NO_BYTES, EVERYWHERE),
    [0x1ab] = SHARED("ERRBAR", FENCE, 0, NO_BYTES, EVERYWHERE),
    [0x1ac] = ROW("LDCU", LOAD_CONSTANT, 0, ACCESS, FROM_BLACKWELL),
    [0x1ae] = ROW("LDGSTS", ASYNC_COPY, 0, ACCESS, FROM_AMPERE),
    [0x1af] = ROW("LDGDEPBAR", FENCE, 0, NO_BYTES, FROM_AMPERE),
    [0x1b0] = ROW("ARRIVES", BARRIER, 0, NO_BYTES, FROM_AMPERE),
    [0x1b1] = ROW("SYNCS", BARRIER, 0, NO_BYTES, FROM_HOPPER),
    [0x1b2] = ROW("SYNCS", BARRIER, 0, NO_BYTES, FROM_HOPPER),
    [0x1b4] = ROW("UTMALDG", BULK_COPY, 0, NO_BYTES, FROM_HOPPER),
    [0x1b5] = ROW("UTMASTG", BULK_COPY, 0, NO_BYTES, FROM_HOPPER),
    [0x1b6] = ROW("UTMAREDG", BULK_COPY, 0, NO_BYTES, FROM_HOPPER),
    [0x1b7] = ROW("UTMACMDFLUSH", FENCE, 0, NO_BYTES, FROM_HOPPER),
    [0x1b8] = ROW("UTMAPF", BULK_COPY, 0, NO_BYTES, FROM_HOPPER),
    [0x1b9] = ROW("UTMACCTL", FENCE, 0, NO_BYTES, FROM_HOPPER),
    [0x1ba] = ROW("UBLKCP", BULK_COPY, 0, NO_BYTES, FROM_HOPPER),
    [0x1bb] = ROW("UBLKRED", BULK_COPY, 0, NO_BYTES, FROM_HOPPER),
    [0x1bc] = ROW("UBLKPF", BULK_COPY, 0, NO_BYTES, FROM_HOPPER),
    [0x1bd] = ROW("STAS", STORE_SHARED, 0, ACCESS, FROM_HOPPER),
    [0x1be] = ROW("REDAS", ATOMIC, 0, ATOMIC, FROM_HOPPER),
    [0x1c2] = ROW("R2UR", MOVE, 0, NO_BYTES, TO_AMPERE),
    [0x1c3] = ROW("S2UR", MOVE, 0, NO_BYTES, EVERYWHERE),
    [0x1c4] = ROW("REDUX", SHUFFLE, 0, NO_BYTES, FROM_AMPERE),
    [0x1c5] = ROW("WARPGROUP", FENCE, 0, NO_BYTES, HOPPER),
    [0x1c6] = ROW("FENCE", FENCE, 0, NO_BYTES, FROM_HOPPER),
    [0x1c7] = SHARED("UCGABAR_ARV", BARRIER, 0, NO_BYTES, FROM_HOPPER),
    [0x1c8] = ROW("USETMAXREG", MOVE, 0, NO_BYTES, HOPPER),
    [0x1ca] = ROW("UGETNEXTWORKID", BARRIER, 0, NO_BYTES, FROM_BLACKWELL),
    [0x1cb] = ROW("UMEMSETS", STORE_SHARED, 0, NO_BYTES, FROM_BLACKWELL),
    [0x1e3] = ROW("UTCATOMSWS", MOVE, 0, NO_BYTES, BLACKWELL),
    [0x1e6] = ROW("UTCSHIFT", STORE_SHARED, 0, NO_BYTES, BLACKWELL),
    [0x1e7] = ROW("UTCCP", STORE_SHARED, 0, NO_BYTES, BLACKWELL),
    [0x1e9] = ROW("UTCBAR", BARRIER, 0, NO_BYTES, BLACKWELL),
    [0x1ea] = SHARED("UTCHMMA", TENSOR, 0, NO_BYTES, BLACKWELL),
    [0x1ed] = ROW("STTM", STORE_SHARED, 0, NO_BYTES, BLACKWELL),
    [0x1ee] = ROW("LDTM", LOAD_SHARED, 0, NO_BYTES, BLACKWELL),
    [0x1f0] = ROW("HGMMA", TENSOR, 0, NO_BYTES, HOPPER),
    [0x1f1] = ROW("IGMMA", TENSOR, 0, NO_BYTES, HOPPER),
    [0x1f2] = ROW("BGMMA", TENSOR, 0, NO_BYTES, HOPPER),
    [0x1f3] = ROW("QGMMA", TENSOR, 0, NO_BYTES, HOPPER),
};

// What shares a number with a row above, and the bits that tell them apart.
static const struct other {
    uint16_t code;
    uint8_t first_sm, last_sm;
    uint8_t bit, count; // of the low word
    uint8_t value;
    uint8_t high_bit; // and one of the bits from 64 on, with its value
    uint8_t high_count, high_value;
    struct kg_sass_opcode opcode;
} others[] = {
    {0x035, 100, 255, 0, 0, 0, 0, 0, 0, ROW("IADD", INTEGER, 0, NO_BYTES, FROM_BLACKWELL)},
    {0x04a, 75, 255, 0, 0, 0, 91, 1, 1, ROW("UVIMNMX", SELECT, 0, NO_BYTES, BLACKWELL_RTX)},
    {0x18e, 75, 89, 0, 0, 0, 0, 0, 0, ROW("RED", ATOMIC, 0, ATOMIC, TO_AMPERE)},
    {0x1ab, 90, 255, 9, 3, 2, 0, 0, 0, ROW("CGAERRBAR", FENCE, 0, NO_BYTES, FROM_HOPPER)},
    {0x1c7, 90, 255, 9, 3, 6, 0, 0, 0, ROW("UCGABAR_WAIT", BARRIER, 0, NO_BYTES, FROM_HOPPER)},
    {0x1ea, 100, 119, 63, 1, 1, 72, 2, 0, ROW("UTCOMMA", TENSOR, 0, NO_BYTES, BLACKWELL)},
    {0x1ea, 100, 119, 0, 0, 0, 72, 2, 1, ROW("UTCIMMA", TENSOR, 0, NO_BYTES, BLACKWELL)},
    {0x1ea, 100, 119, 0, 0, 0, 72, 2, 3, ROW("UTCQMMA", TENSOR, 0, NO_BYTES, BLACKWELL)},
};
// clang-format on

_Static_assert(512 + sizeof others / sizeof others[0] <= KG_SASS_OPCODES, "no room in histograms");

static const struct kg_sass_opcode unknown = {.name = "?", .work = KG_WORK_UNKNOWN};

static bool fits(const struct other *other, struct kg_sass_word word, unsigned code, int sm)
{
    return other->code == code && sm >= other->first_sm && sm <= other->last_sm &&
           kg_sass_bits(word, other->bit, other->count) == other->value &&
           kg_sass_bits(word, other->high_bit, other->high_count) == other->high_value;
}

const struct kg_sass_opcode *kg_sass_opcode(struct kg_sass_word word, int sm, int *index)
{
    unsigned code = word.low & 0x1ff;
    int found = (int)code;
    if (opcodes[code].shared)
        for (size_t i = 0; i < sizeof others / sizeof others[0] && found < 512; i++)
            if (fits(&others[i], word, code, sm))
                found = 512 + (int)i;
    if (index)
        *index = found;
    return kg_sass_opcode_at(found);
}

const struct kg_sass_opcode *kg_sass_opcode_at(int index)
{
    assert(index >= 0 && (size_t)index < 512 + sizeof others / sizeof others[0]);
    const struct kg_sass_opcode *opcode =
        index < 512 ? &opcodes[index] : &others[index - 512].opcode;
    return opcode->name ? opcode : &unknown;
}
