// Takes the last digit off a linear index: returns rest % size, and sets rest /= size.
KG_INLINE int64_t kg_take(int64_t *rest, int64_t size)
{
    // A 64-bit division takes four times as long as a 32-bit one.
    if ((uint64_t)(*rest | size) >> 32 == 0) {
        const uint32_t whole = (uint32_t)*rest / (uint32_t)size;
        const uint32_t digit = (uint32_t)*rest - whole * (uint32_t)size;
        *rest = whole;
        return digit;
    }
    const int64_t whole = *rest / size, digit = *rest - whole * size;
    *rest = whole;
    return digit;
}

KG_INLINE int kg_take(int *rest, int64_t size)
{
    const uint32_t whole = (uint32_t)*rest / (uint32_t)size;
    const int digit = (int)((uint32_t)*rest - whole * (uint32_t)size);
    *rest = (int)whole;
    return digit;
}

// Of values.h, in 32 bits: `size` fits them, too.
KG_INLINE bool kg_inside(int index, int64_t size)
{
    return (uint32_t)index < (uint32_t)size;
}

// Counts a digit of a linear index on if the one after it went round; `carry`: so did this one.
template <typename INDEX>
KG_INLINE void kg_count(INDEX *digit, int64_t size, bool *carry)
{
    *digit += *carry;
    *carry = *digit == (INDEX)size;
    *digit = *carry ? 0 : *digit;
}

// How many tiles cover `count` places; a tile has `size`, a power of two: a division of 64 bits
// takes some hundred instructions.
KG_INLINE int64_t kg_tiles(int64_t count, int size)
{
    return (count + size - 1) >> (31 - __clz(size));
}
