// What the driver makes of a tensor for instructions that copy boxes of it (CUtensorMap): an
// argument by value, whose address they take. Nobody else looks into it.

struct alignas(64) kg_tensor_map {
    uint64_t words[16];
};

// Whether something is mapped: what was not encoded is all zeros.
KG_INLINE bool kg_map_is_there(const kg_tensor_map &map)
{
    uint64_t any = 0;
#pragma unroll
    for (int i = 0; i < 16; i++)
        any |= map.words[i];
    return any != 0;
}
