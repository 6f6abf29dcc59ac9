// A few rows against columns of 4-bit integers (contract_scaled.h) by AVX-512's products of pairs
// of bf16: two steps of k at once. Differences to the zero are bf16, found in a table, and a row is
// the sum of KG_SCALED_TERMS bf16 numbers, so that all products are exact. They are added as f32.
// (AVX-512 VNNI would need rows of 8 bits.)

#if !KG_PANEL_DOTS
enum { KG_TABLE_ENTRIES = KG_DIFFERENCES };
#endif

#if KG_SCALED_DOTS
typedef uint8_t byte_vector __attribute__((vector_size(64), may_alias));

enum { KG_DOT_HIGH = 4 / KG_SCALED_TERMS }; // rows for which this is faster

// sums += the products of two bf16 numbers in each word.
KG_INLINE vector add_dots(vector sums, half_vector a, word_vector b)
{
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sums) : "v"(a), "v"(b));
    return sums;
}

// Puts a number, as the sum of KG_SCALED_TERMS bf16 numbers, into the lower or upper half of words
// that are a vector apart; the lower half comes first. True if it is so small that results might
// be denormal, which the instruction takes for zero.
KG_INLINE bool put_terms(float rest, bool is_upper, uint32_t *to)
{
    const bool is_small = rest != 0 && fabsf(rest) < 0x1p-100f;
    for (int t = 0; t < KG_SCALED_TERMS; t++, to += KG_LANES) {
        const uint32_t bits = kg_bits_f32(rest) & 0xffff0000;
        *to = is_upper ? *to | bits : bits >> 16;
        rest -= kg_from_bits_f32(bits);
    }
    return is_small;
}

#if !KG_PANEL_DOTS
static void make_table(uint16_t *table)
{
    make_differences(table);
}

#if !KG_SCALED_LINES
// Packs rows as pairs: term t of row r is at to[(k / 2 * high + r) * KG_SCALED_TERMS + t]. False if
// a number is so small that results might be denormal, which the instruction takes for zero.
KG_APART bool pack_pair_terms(const KG_REAL *x, int high, int64_t kn, uint32_t *to)
{
    bool small = false;
    for (int64_t k = 0; k < kn; k += 2)
        for (int r = 0; r < high; r++) {
            float rest[2] = {x[k * high + r], k + 1 < kn ? x[(k + 1) * high + r] : 0};
            for (int i = 0; i < 2; i++)
                small |= rest[i] != 0 && fabsf(rest[i]) < 0x1p-100f;
            for (int t = 0; t < KG_SCALED_TERMS; t++) {
                uint32_t word = 0;
                for (int i = 0; i < 2; i++) {
                    const uint32_t bits = kg_bits_f32(rest[i]) & 0xffff0000;
                    word |= i ? bits : bits >> 16;
                    rest[i] -= kg_from_bits_f32(bits);
                }
                *to++ = word;
            }
        }
    return !small;
}

// Adds two steps of k, or the last one, to sums in registers.
KG_INLINE void add_pair(const int high, const int i0, const int some, bool last,
                        const uint8_t *data, int64_t bytes, const uint32_t *x, half_vector table,
                        const word_vector *zero, vector *sum)
{
    const word_vector one = *(const loose_words *)data;
    const word_vector two = *(const loose_words *)(data + (last ? 0 : bytes));
    const word_vector low = (one & 0xffff) | two << 16, high_half = one >> 16 | (two & ~0xffffu);
    if (i0 == 0) {
        fetch_ahead(data + KG_CHUNK * bytes);
        fetch_ahead(data + (KG_CHUNK + 1) * bytes);
    }
    for (int i = 0; i < some; i++) {
        word_vector all = i0 + i < 2 ? low : high_half;
        all = (i0 + i) & 1 ? all >> 4 : all;
        if (!KG_SCALED_FIXED) {
            const word_vector element = (all & 0x0f0f0f0f) ^ (KG_SCALED_SIGNED ? 0x08080808 : 0);
            all = (word_vector)((byte_vector)element - (byte_vector)zero[i]);
        }
        const half_vector first = find_halves(table, all);
        const half_vector second = find_halves(table, all >> 8);
        for (int r = 0; r < high; r++)
            for (int t = 0; t < KG_SCALED_TERMS; t++) {
                const word_vector left = (word_vector){0} + x[r * KG_SCALED_TERMS + t];
                vector *to = sum + (r * some + i) * 2;
                to[0] = add_dots(to[0], first, left);
                to[1] = add_dots(to[1], second, left);
            }
    }
}

// Adds up to KG_CHUNK steps of k to the sums of a strip: those of words from `i0` on, of four that
// hold two nibbles each for both steps.
KG_INLINE void add_pairs(const int high, const int i0, const int some, int64_t kn,
                         const uint8_t *data, int64_t bytes, const uint32_t *x, half_vector table,
                         const word_vector *zeros, bool fresh, KG_REAL *sums)
{
    vector sum[KG_SCALED_TILE];
    word_vector zero[4];
    for (int i = 0; i < some; i++)
        zero[i] = zeros[i0 + i];
    for (int n = 0; n < 2 * some * high; n++) {
        const int r = n / (2 * some), i = i0 + n / 2 % some, j = (i < 2 ? i : i + 2) + n % 2 * 2;
        sum[n] = fresh ? (vector){0} : ((const vector *)sums)[r * KG_PARTS + j];
    }
    // Whole chunks as one piece of code: in a loop, compilers move the sums from register to
    // register.
    if (kn == KG_CHUNK) {
#pragma GCC unroll 8
        for (int n = 0; n < KG_CHUNK / 2; n++)
            add_pair(high, i0, some, false, data + 2 * n * bytes, bytes,
                     x + n * high * KG_SCALED_TERMS, table, zero, sum);
    } else {
        for (int64_t k = 0; k < kn; k += 2)
            add_pair(high, i0, some, k + 1 == kn, data + k * bytes, bytes,
                     x + k / 2 * high * KG_SCALED_TERMS, table, zero, sum);
    }
    for (int n = 0; n < 2 * some * high; n++) {
        const int r = n / (2 * some), i = i0 + n / 2 % some, j = (i < 2 ? i : i + 2) + n % 2 * 2;
        ((vector *)sums)[r * KG_PARTS + j] = sum[n];
    }
}

KG_INLINE void add_pair_strip(const int high, int64_t kn, const uint8_t *data, int64_t bytes,
                              const uint32_t *x, half_vector table, const word_vector *zeros,
                              bool fresh, KG_REAL *sums)
{
    const int some = high > 2 ? 2 : 4;
#pragma GCC unroll 2
    for (int i = 0; i < 4; i += some)
        add_pairs(high, i, some, kn, data, bytes, x, table, zeros, fresh, sums);
}

KG_INLINE void add_pair_chunk(const int high, const struct strips *s, int64_t k, int64_t kn,
                              bool fresh)
{
    const uint32_t *x = s->pairs + k / 2 * high * KG_SCALED_TERMS;
    const half_vector table = *(const half_vector *)s->table;
    const word_vector *zeros = s->bytes;
    const int64_t whole = strips_in_place(s);
    const int64_t at = s->first + k * s->k;
    for (int64_t i = 0; i < whole; i++)
        add_pair_strip(high, kn, s->data + (at + i * KG_STRIP) / 2, s->k / 2, x, table,
                       zeros + i * 4, fresh, s->sums + i * high * KG_STRIP);
    for (int64_t i = whole; i < s->count; i++) {
        uint8_t copy[KG_CHUNK * KG_STRIP_BYTES];
        copy_steps(s, i, k, kn, copy);
        add_pair_strip(high, kn, copy, KG_STRIP_BYTES, x, table, zeros + i * 4, fresh,
                       s->sums + i * high * KG_STRIP);
    }
}

KG_APART void add_pair_chunk_1(const struct strips *s, int64_t k, int64_t kn, bool fresh)
{
    add_pair_chunk(1, s, k, kn, fresh);
}

KG_APART void add_pair_chunk_2(const struct strips *s, int64_t k, int64_t kn, bool fresh)
{
    add_pair_chunk(2, s, k, kn, fresh);
}

KG_APART void add_pair_chunk_4(const struct strips *s, int64_t k, int64_t kn, bool fresh)
{
    add_pair_chunk(4, s, k, kn, fresh);
}
#endif
#endif
#endif
