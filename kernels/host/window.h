// Rows of f16 for windows that move along them.
#ifndef KG_WINDOW_H
#define KG_WINDOW_H

// Converts any number of elements.
KG_INLINE void kg_window_f16(const kg_f16 *from, float *to, int64_t count)
{
    const int64_t whole = count / 16 * 16;
    kg_widen_f16(from, to, whole);
    for (int64_t i = whole; i < count; i++)
        to[i] = kg_unpack_f16(from[i]);
}

#endif
