// A contraction: sum(k) A(m, k) * B(n, k) for all m and n, and the epilogue that stores the sums.
//
// Each of `m`, `n` and `k` stands for one or several axes. Only the functions declared here know
// the formula; they are generated, and the rest of the code is the same for every definition.
// KG_REAL is the compute type, KG_LANES the number of its elements in a vector register. If KG_HALF
// is F16 or BF16, an operand may be read from memory in that type and is widened on the way to a
// register; with KG_ONLY_HALVES, both operands always are.
//
// Results do not depend on the number of threads: the order of additions follows from the sizes
// alone.

typedef KG_REAL vector __attribute__((vector_size(KG_LANES * sizeof(KG_REAL)), may_alias));
// The same for unaligned addresses.
typedef KG_REAL loose_vector
    __attribute__((vector_size(KG_LANES * sizeof(KG_REAL)), aligned(sizeof(KG_REAL)), may_alias));

#define KG_NONE 0
#define KG_F16 1
#define KG_BF16 2
#if KG_HALF == KG_BF16
typedef kg_bf16 half;
#else
typedef kg_f16 half;
#endif

#define KG_APART static __attribute__((noinline))

enum {
    KG_COLUMNS = KG_VECTORS * KG_LANES, // of the register tile
    KG_TILE = KG_ROWS * KG_COLUMNS,
    KG_SHORT_COLUMNS = 2 * KG_COLUMNS, // of the register tile of contract_shorts.h
    // Elements of the buffer in which an operand is computed before it is packed.
    KG_STAGE = 4096,
};

// KG_PAIRS says what the processor had when this file was generated; instructions that the compiler
// does not know are not used.
#if KG_PAIRS && KG_HALF == KG_BF16 && defined(KG_TILE_DOT_BF16)
#define KG_PAIR_PATH 1
#define KG_TILE_DOT KG_TILE_DOT_BF16
#elif KG_PAIRS && KG_HALF == KG_F16 && defined(KG_TILE_DOT_F16)
#define KG_PAIR_PATH 1
#define KG_TILE_DOT KG_TILE_DOT_F16
#else
#define KG_PAIR_PATH 0
#endif

// Likewise for products of pairs of integers of 16 bits, added in 32 bits.
#if KG_SHORTS && KG_LANES == 4 && defined(__AVX2__)
#define KG_SHORT_PATH 1
#else
#define KG_SHORT_PATH 0
#endif

enum {                    // used by contract_pairs.h
    KG_PAIR_STEP = 32,    // terms of k in one instruction
    KG_PAIR_TILE = 32,    // rows and columns of a register tile: four tile registers
    KG_PAIR_CACHED = 512, // terms of k that stay in the first-level cache
    KG_PAIR_BLOCK_K = 4 * KG_BLOCK_K,
    KG_PAIR_COLUMNS = KG_ITEM_COLUMNS / 4, // of an item
};

struct extents {
    int64_t batch, m, n, k;
};

// The layout of an operand in memory: element (x, k) is number x * view.x + k * view.k from `data`
// on.
struct view {
    const void *data;
    int64_t x, k;
    bool halves; // elements are of type `half`, else KG_REAL
};

static struct extents extents(const struct kg_host_call *call);

// The layout of an operand that is a plain matrix of KG_REAL or `half` in memory; false for others.
static bool a_direct(const struct kg_host_call *call, int64_t item, struct view *view);
static bool b_direct(const struct kg_host_call *call, int64_t item, struct view *view);

// Computes rows [row, row + rows) of an operand for [start, start + depth) of k. KG_A_ALONG_K and
// KG_B_ALONG_K give the layout of the result: (x, k) is at to[x * width + k], else at to[k * width
// + x].
static void a_fill(const struct kg_host_call *call, int64_t item, int64_t row, int64_t rows,
                   int64_t start, int64_t depth, KG_REAL *restrict to, int64_t width);
static void b_fill(const struct kg_host_call *call, int64_t item, int64_t row, int64_t rows,
                   int64_t start, int64_t depth, KG_REAL *restrict to, int64_t width);

// The epilogue: computes the rest of the formula from a tile of sums and stores the outputs, m from
// `row` on, n from `first` on; rows of the tile are `width` apart.
static void finish(const struct kg_host_call *call, int64_t item, int64_t row, int64_t rows,
                   int64_t first, int64_t count, const KG_REAL *restrict tile, int64_t width);

#if KG_SHORTS
// The same in 16 bits; values from 2^15 on are stored as they are less 2^16.
static void a_shorts(const struct kg_host_call *call, int64_t item, int64_t row, int64_t rows,
                     int64_t start, int64_t depth, int16_t *restrict to, int64_t width);
static void b_shorts(const struct kg_host_call *call, int64_t item, int64_t row, int64_t rows,
                     int64_t start, int64_t depth, int16_t *restrict to, int64_t width);
#endif

// a * b, of integers that fit 32 bits if KG_WORDS says so: processors with vectors of 32 bytes have
// no multiplication of 64-bit integers, and the compiler makes it of three of 32 bits.
KG_INLINE vector products(vector a, vector b)
{
#if KG_WORDS && KG_LANES == 4 && defined(__AVX2__) && !defined(__clang__)
    typedef int32_t words __attribute__((vector_size(32)));
    return KG_WORDS == 1 ? (vector)__builtin_ia32_pmuldq256((words)a, (words)b)
                         : (vector)__builtin_ia32_pmuludq256((words)a, (words)b);
#elif KG_WORDS && defined(__clang__)
    return KG_WORDS == 1 ? (a << 32 >> 32) * (b << 32 >> 32) : (a & 0xffffffff) * (b & 0xffffffff);
#else
    return a * b;
#endif
}

KG_INLINE vector multiple(KG_REAL a, vector b)
{
#if KG_WORDS
    return products(a - (vector){0}, b);
#else
    return a * b;
#endif
}

KG_INLINE int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

KG_INLINE int64_t ceiling(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}
// Unpacks `count` 4-bit elements from element `at` on.
KG_INLINE void kg_spread_u4(const kg_u4 *from, int64_t at, int64_t count, uint8_t *restrict to)
{
    int64_t odd = at & 1 && count > 0;
    if (odd)
        to[0] = from[at >> 1] >> 4;
    const kg_u4 *bytes = from + ((at + odd) >> 1);
    const int64_t pairs = (count - odd) / 2;
    for (int64_t i = 0; i < pairs; i++) {
        to[odd + 2 * i] = bytes[i] & 15;
        to[odd + 2 * i + 1] = bytes[i] >> 4;
    }
    if (odd + 2 * pairs < count)
        to[count - 1] = bytes[pairs] & 15;
}

KG_INLINE void kg_spread_i4(const kg_i4 *from, int64_t at, int64_t count, int8_t *restrict to)
{
    kg_spread_u4(from, at, count, (uint8_t *)to);
    for (int64_t i = 0; i < count; i++)
        to[i] = (int8_t)((to[i] ^ 8) - 8);
}
