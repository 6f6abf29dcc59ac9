// A contraction: sum(k) A(m, k) * B(n, k) for all m and n, and what becomes of the sums.
//
// `m`, `n` and `k` stand for one or several axes each. The formula itself is in the functions
// declared here, which are written for it, and in nothing that follows them. KG_REAL is the type of
// the computation, KG_LANES the number of its elements in a vector register. Where KG_HALF is F16
// or BF16, a side may be read where it lies in that type, and is widened on the way to a register;
// where KG_ONLY_HALVES, both always are.
//
// Results do not depend on the number of threads: which products are added in which order follows
// from the sizes alone.

typedef KG_REAL vector __attribute__((vector_size(KG_LANES * sizeof(KG_REAL)), may_alias));
// The same where nothing is known of the address.
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
    KG_COLUMNS = KG_VECTORS * KG_LANES, // of the tile in registers
    KG_TILE = KG_ROWS * KG_COLUMNS,
    KG_STAGE = 4096, // elements of the buffer in which a side is computed before it is packed
};

// KG_PAIRS is what the processor has, by what was known when this was written; what the compiler
// does not know is done without.
#if KG_PAIRS && KG_HALF == KG_BF16 && defined(KG_TILE_DOT_BF16)
#define KG_PAIR_PATH 1
#define KG_TILE_DOT KG_TILE_DOT_BF16
#elif KG_PAIRS && KG_HALF == KG_F16 && defined(KG_TILE_DOT_F16)
#define KG_PAIR_PATH 1
#define KG_TILE_DOT KG_TILE_DOT_F16
#else
#define KG_PAIR_PATH 0
#endif

enum {                  // of contract_pairs.h
    KG_PAIR_STEP = 32,  // of k that an instruction takes
    KG_PAIR_SIDE = 32,  // rows and columns of a tile of sums: four registers
    KG_PAIR_NEAR = 512, // of k that stay in the first-level cache
    KG_PAIR_BLOCK_K = 4 * KG_BLOCK_K,
    KG_PAIR_COLUMNS = KG_ITEM_COLUMNS / 4, // of an item
};

struct extents {
    int64_t batch, m, n, k;
};

// One side as it lies in memory: element (x, k) is number x * view.x + k * view.k from `data` on.
struct view {
    const void *data;
    int64_t x, k;
    bool halves; // elements are of type `half`, else KG_REAL
};

static struct extents extents(const struct kg_host_call *call);

// Where a side lies, if it is a plain matrix of KG_REAL or `half` in memory.
static bool a_direct(const struct kg_host_call *call, int64_t item, struct view *view);
static bool b_direct(const struct kg_host_call *call, int64_t item, struct view *view);

// Computes rows [row, row + rows) of a side for [start, start + depth) of k. KG_A_ALONG_K and
// KG_B_ALONG_K say how they are laid out: (x, k) at to[x * width + k], else at to[k * width + x].
static void a_fill(const struct kg_host_call *call, int64_t item, int64_t row, int64_t rows,
                   int64_t start, int64_t depth, KG_REAL *restrict to, int64_t width);
static void b_fill(const struct kg_host_call *call, int64_t item, int64_t row, int64_t rows,
                   int64_t start, int64_t depth, KG_REAL *restrict to, int64_t width);

// Takes sums through the rest of the formula into the outputs: m from `row` on, n from `first` on,
// rows of the tile `width` apart.
static void finish(const struct kg_host_call *call, int64_t item, int64_t row, int64_t rows,
                   int64_t first, int64_t count, const KG_REAL *restrict tile, int64_t width);

KG_INLINE int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

KG_INLINE int64_t ceiling(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}
// `count` 4-bit elements from the one at `at` on.
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
