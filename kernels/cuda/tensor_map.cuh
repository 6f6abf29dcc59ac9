// What the driver makes of a tensor for instructions that copy boxes of it (CUtensorMap): an
// argument by value, whose address they take. Nobody else looks into it.

struct alignas(64) kg_tensor_map {
    uint64_t words[16];
};
