// In place of kernels/host/amx.h: the same names in plain C, so that everything but the
// instructions themselves is executed on any machine. Given to the compiler of kernels by -include,
// with -DKG_REFUSED for a system that does not allow tiles.
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local struct {
    bool ready; // between begin and end
    float words[8][16][16];
} kg_tiles;

static inline bool kg_tiles_ask(void)
{
#ifdef KG_REFUSED
    return false;
#else
    return true;
#endif
}

static inline void kg_tiles_begin(void)
{
    if (!kg_tiles_ask() || kg_tiles.ready)
        abort();
    memset(kg_tiles.words, 0xff, sizeof kg_tiles.words); // whoever reads before writing gets NaN
    kg_tiles.ready = true;
}

static inline void kg_tiles_end(void)
{
    kg_tiles.ready = false;
}

static inline void kg_tile_move(int tile, char *memory, int64_t stride, bool store)
{
    if (!kg_tiles.ready)
        abort();
    for (int row = 0; row < 16; row++)
        if (store)
            memcpy(memory + row * stride, kg_tiles.words[tile][row], 64);
        else
            memcpy(kg_tiles.words[tile][row], memory + row * stride, 64);
}

// What is smaller than any normal number is zero.
static inline float kg_flushed(float x)
{
    return x < 0x1p-126f && x > -0x1p-126f ? 0 : x;
}

static inline float kg_half(float pair, int which)
{
    uint32_t bits;
    float x;
    memcpy(&bits, &pair, sizeof bits);
    bits = which ? bits & 0xffff0000 : bits << 16;
    memcpy(&x, &bits, sizeof x);
    return kg_flushed(x);
}

static inline float kg_dot(float sum, float left, float right)
{
    for (int i = 1; i >= 0; i--)
        sum = kg_flushed(sum + kg_half(left, i) * kg_half(right, i));
    return sum;
}

static inline void kg_tile_dot(int sum, int left, int right)
{
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++)
            for (int k = 0; k < 16; k++)
                kg_tiles.words[sum][i][j] =
                    kg_dot(kg_tiles.words[sum][i][j], kg_tiles.words[left][i][k],
                           kg_tiles.words[right][k][j]);
}

#define KG_TILE_ZERO(tile) memset(kg_tiles.words[tile], 0, sizeof kg_tiles.words[tile])
#define KG_TILE_LOAD(tile, from, stride) kg_tile_move(tile, (char *)(from), stride, false)
#define KG_TILE_STORE(tile, to, stride) kg_tile_move(tile, (char *)(to), stride, true)
#define KG_TILE_DOT_BF16(sum, left, right) kg_tile_dot(sum, left, right)
