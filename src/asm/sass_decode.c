// Decodes one instruction at a time: the bytes it moves, its operations, and its control bits.

#include "asm/sass.h"

#define ZERO_REGISTER 255
#define TRUE_PREDICATE 7
#define WARPGROUP 4 // warps that share a warpgroup's instruction

// By the encoding of the width, and bits 72-75.
static unsigned bytes_moved(struct kg_sass_word word, const struct kg_sass_opcode *opcode)
{
    static const uint8_t bytes[][16] = {
        [KG_SASS_NO_BYTES] = {0},
        [KG_SASS_ACCESS] = {1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 8, 8, 16, 16, 16, 16},
        [KG_SASS_ATOMIC] = {4, 4, 4, 4, 8, 8, 4, 4, 4, 4, 8, 8, 8, 8, 8, 8},
        [KG_SASS_MATRIX] = {4, 8, 16, 16, 4, 8, 16, 16, 4, 8, 16, 16, 4, 8, 16, 16},
        [KG_SASS_WIDE] = {[0 ... 15] = 32},
    };
    return bytes[opcode->width][kg_sass_bits(word, 72, 4)];
}

// FLOPs of a warp as 2 m n k; for a sparse instruction k counts the products that it computes, half
// of those in its name.
static double product(double m, double n, double k)
{
    return 2 * m * n * k;
}

static double half_product(struct kg_sass_word word)
{
    static const double depth[] = {8, 16, 4, 32}; // by bit 75 and, above it, bit 78
    bool sparse = kg_sass_bits(word, 73, 1);
    double k = depth[kg_sass_bits(word, 75, 1) | kg_sass_bits(word, 78, 1) << 1];
    return product(16, 8, sparse ? k / 2 : k);
}

// Before Ampere, the four 8x8x4 products of Volta's shape take two steps, with f32 sums four.
static double stepped_product(struct kg_sass_word word)
{
    return 4 * product(8, 8, 4) / (kg_sass_bits(word, 76, 1) ? 4 : 2);
}

static double integer_product(struct kg_sass_word word)
{
    static const double depth[] = {16, 32, 32, 64, 16, 32, 64, 64}; // by bits 75, 85, 86
    bool sparse = kg_sass_bits(word, 72, 1), tall = kg_sass_bits(word, 86, 1);
    double k = depth[kg_sass_bits(word, 75, 1) | kg_sass_bits(word, 85, 2) << 1];
    return product(tall ? 16 : 8, 8, sparse ? k / 2 : k);
}

static double double_product(struct kg_sass_word word)
{
    static const double depth[] = {4, 4, 8, 16}; // the first one has 8 rows
    uint64_t shape = kg_sass_bits(word, 76, 2);
    return product(shape ? 16 : 8, 8, depth[shape]);
}

static double bit_product(struct kg_sass_word word)
{
    static const double depth[] = {128, 128, 256, 256}; // likewise
    uint64_t shape = kg_sass_bits(word, 75, 2);
    return product(shape ? 16 : 8, 8, depth[shape]);
}

static double quarter_product(struct kg_sass_word word)
{
    bool scaled = kg_sass_bits(word, 9, 3) != 1;
    return product(16, 8, scaled || kg_sass_bits(word, 75, 2) ? 32 : 16);
}

// 64 rows, shared by the warps of a warp group.
static double group_product(struct kg_sass_word word, double k)
{
    double n = 8 * ((double)kg_sass_bits(word, 53, 5) + 1);
    return product(64, n, k) / WARPGROUP;
}

// 0 for tcgen05: its shape is in a descriptor that exists only at run time.
static double tensor_flops(struct kg_sass_word word)
{
    switch (word.low & 0x1ff) {
    case 0x03c: // HMMA
        return half_product(word);
    case 0x036: // HMMA.884
        return stepped_product(word);
    case 0x037: // IMMA
        return integer_product(word);
    case 0x03d: // BMMA
        return bit_product(word);
    case 0x03f: // DMMA
        return double_product(word);
    case 0x07a: // QMMA
        return quarter_product(word);
    case 0x07f: // OMMA
        return product(16, 8, 64);
    case 0x1f0: // HGMMA; bit 77: tf32
        return group_product(word, kg_sass_bits(word, 77, 1) ? 8 : 16);
    case 0x1f1: // IGMMA
    case 0x1f3: // QGMMA
        return group_product(word, 32);
    case 0x1f2: // BGMMA
        return group_product(word, 256);
    default:
        return 0;
    }
}

// IMAD and HFMA2 of two zero registers, which the assembler writes to distribute moves over more
// pipes.
static bool is_move(struct kg_sass_word word, const struct kg_sass_opcode *opcode)
{
    unsigned code = word.low & 0x1ff;
    if (code != 0x024 && (code != 0x031 && code != 0x035))
        return false;
    if (opcode->work == KG_WORK_INTEGER && (code != 0x024 || kg_sass_bits(word, 74, 1)))
        return false; // IADD of two registers, or a carry
    if (kg_sass_bits(word, 24, 8) != ZERO_REGISTER)
        return false;
    switch (kg_sass_bits(word, 9, 3)) {
    case 1:
        return kg_sass_bits(word, 32, 8) == ZERO_REGISTER;
    case 2:
    case 3:
    case 7:
        return kg_sass_bits(word, 64, 8) == ZERO_REGISTER;
    default:
        return false;
    }
}

void kg_sass_decode(struct kg_sass_word word, int sm, struct kg_sass *sass)
{
    int index;
    const struct kg_sass_opcode *opcode = kg_sass_opcode(word, sm, &index);
    bool move = is_move(word, opcode);
    *sass = (struct kg_sass){
        .opcode = opcode,
        .index = index,
        .work = move ? KG_WORK_MOVE : opcode->work,
        .guarded = kg_sass_bits(word, 12, 4) != TRUE_PREDICATE,
        .bytes = bytes_moved(word, opcode),
        .flops = move ? 0 : opcode->flops,
        .tensor_flops = opcode->work == KG_WORK_TENSOR ? tensor_flops(word) : 0,
        .stall = (unsigned)kg_sass_bits(word, 105, 4),
        .yield = !kg_sass_bits(word, 109, 1),
        .write_barrier = (unsigned)kg_sass_bits(word, 110, 3),
        .read_barrier = (unsigned)kg_sass_bits(word, 113, 3),
        .wait_mask = (unsigned)kg_sass_bits(word, 116, 6),
    };
}
