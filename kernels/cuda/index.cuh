// The last digit of a linear counter, and what is left of it: rest % size; rest /= size.
KG_INLINE int64_t kg_take(int64_t *rest, int64_t size)
{
    // Division of 64 bits costs four times that of 32.
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
