// Where an element of a square tile lies in shared memory: `at` runs along what is filled in,
// `line` + `lane` along what is read out; VECTOR lanes belong together. WHOLE: chunks of 16 bytes
// are filled in, and read out element by element, VECTOR lines a thread; chunks of a line change
// places so that neither way threads of a warp meet in a bank. Else both go element by element, and
// each line begins a word later.
template <bool WHOLE, int SIDE, int VECTOR, typename T>
KG_INLINE unsigned kg_tile_at(unsigned line, unsigned lane, unsigned at)
{
    enum : unsigned { PIECE = 16 / sizeof(T), PIECES = SIDE / PIECE };
    enum : unsigned { WORD = sizeof(T) < 4 ? 4 / sizeof(T) : 1 };
    if constexpr (WHOLE)
        return (line + lane) * SIDE + (at / PIECE ^ line / VECTOR % PIECES) * PIECE + at % PIECE;
    else
        return (line + lane) * (SIDE + WORD) + at;
}

// A piece of 16 bytes in one access, or a single element.
template <int COUNT, typename T>
KG_INLINE void kg_tile_fill(T *to, const kg_vec<T, COUNT> &piece)
{
    if constexpr (sizeof piece == 16) {
        const uint4 word = reinterpret_cast<const uint4 &>(piece);
        asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(
                         (uint32_t)__cvta_generic_to_shared(to)),
                     "r"(word.x), "r"(word.y), "r"(word.z), "r"(word.w)
                     : "memory");
    } else {
        *to = piece.at[0];
    }
}
