// See panel_order.h.

#include "weights/panel_order.h"

#include <string.h>

// Words of four columns.
typedef uint32_t four __attribute__((vector_size(16)));

static four load(const uint32_t *words)
{
    four vector;
    memcpy(&vector, words, sizeof vector);
    return vector;
}

static void store(four vector, uint32_t *words)
{
    memcpy(words, &vector, sizeof vector);
}

// Byte i of the four words becomes word i, and back.
static void transpose_bytes(four words[4])
{
    four a = (words[0] & 0x00ff00ff) | (words[1] & 0x00ff00ff) << 8;
    four b = (words[0] >> 8 & 0x00ff00ff) | (words[1] & 0xff00ff00);
    four c = (words[2] & 0x00ff00ff) | (words[3] & 0x00ff00ff) << 8;
    four d = (words[2] >> 8 & 0x00ff00ff) | (words[3] & 0xff00ff00);
    words[0] = (a & 0x0000ffff) | c << 16;
    words[1] = (b & 0x0000ffff) | d << 16;
    words[2] = a >> 16 | (c & 0xffff0000);
    words[3] = b >> 16 | (d & 0xffff0000);
}

// The nibbles of two words, byte by byte: the lower ones of both, and the higher ones.
static void zip(four a, four b, four *lower, four *higher)
{
    *lower = (a & 0x0f0f0f0f) | (b & 0x0f0f0f0f) << 4;
    *higher = (a >> 4 & 0x0f0f0f0f) | (b & 0xf0f0f0f0);
}

// Every other one of eight words, from the first and from the second on; and back.
static void split(const uint32_t *words, four *even, four *odd)
{
    four a = load(words), b = load(words + 4);
    *even = (four){a[0], a[2], b[0], b[2]};
    *odd = (four){a[1], a[3], b[1], b[3]};
}

static void join(four even, four odd, uint32_t *words)
{
    store((four){even[0], odd[0], even[1], odd[1]}, words);
    store((four){even[2], odd[2], even[3], odd[3]}, words + 4);
}

// A lane's word holds, from the lowest bits on, of columns 2g and 2g + 1: rows 2t, 2t + 8, and then
// 2t + 1, 2t + 9.
void kg_panel_pack(const kg_panel panel, uint32_t packed[KG_PANEL_PACKED])
{
    for (int step = 0; step < KG_PANEL_LANE_WORDS; step++)
        for (int first = 0; first < 8; first += 4) {
            four words[4], even, odd;
            for (int half = 0; half < 2; half++) {
                split(panel[2 * step + half] + 2 * first, &even, &odd);
                zip(even, odd, &words[half], &words[half + 2]);
            }
            transpose_bytes(words);
            for (int t = 0; t < 4; t++)
                for (int g = 0; g < 4; g++)
                    packed[(4 * (first + g) + t) * KG_PANEL_LANE_WORDS + step] = words[t][g];
        }
}

void kg_panel_unpack(const uint32_t packed[KG_PANEL_PACKED], kg_panel panel)
{
    for (int step = 0; step < KG_PANEL_LANE_WORDS; step++)
        for (int first = 0; first < 8; first += 4) {
            four words[4], even, odd;
            for (int t = 0; t < 4; t++)
                for (int g = 0; g < 4; g++)
                    words[t][g] = packed[(4 * (first + g) + t) * KG_PANEL_LANE_WORDS + step];
            transpose_bytes(words);
            for (int half = 0; half < 2; half++) {
                zip(words[half], words[half + 2], &even, &odd);
                join(even, odd, panel[2 * step + half] + 2 * first);
            }
        }
}

// Exchanges the codes of `*a` that `lower`, moved up by `bits`, selects with those of `*b` in
// `lower`.
static inline void exchange(uint64_t *a, uint64_t *b, int bits, uint64_t lower)
{
    uint64_t moved = (*a >> bits ^ *b) & lower;
    *b ^= moved;
    *a ^= moved << bits;
}

// Blocks of four, two and one are exchanged across the diagonal. Written out: compilers keep loops
// over it as they are, at three times the time.
void kg_panel_transpose(uint64_t words[8])
{
    const uint64_t fours = 0x0000ffff0000ffff, twos = 0x00ff00ff00ff00ff, ones = 0x0f0f0f0f0f0f0f0f;
    uint64_t *w = words;
    exchange(w, w + 4, 16, fours);
    exchange(w + 1, w + 5, 16, fours);
    exchange(w + 2, w + 6, 16, fours);
    exchange(w + 3, w + 7, 16, fours);
    exchange(w, w + 2, 8, twos);
    exchange(w + 1, w + 3, 8, twos);
    exchange(w + 4, w + 6, 8, twos);
    exchange(w + 5, w + 7, 8, twos);
    exchange(w, w + 1, 4, ones);
    exchange(w + 2, w + 3, 4, ones);
    exchange(w + 4, w + 5, 4, ones);
    exchange(w + 6, w + 7, 4, ones);
}
