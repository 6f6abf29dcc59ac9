// Partial tiles of stream-K: a block stores what it has of a tile in scratch memory, and sets a
// flag that another block waits for.

// The value of a partial tile's flag, when set: one that scratch does not contain by chance. The
// block that waited for the flag clears it for the next launch.
KG_INLINE uint64_t kg_partial_flag(const uint64_t *flag)
{
    return (uint64_t)flag * 0x9e3779b97f4a7c15 ^ 0xd1b54a32d192ed03;
}

// Bypasses the L1, which is not coherent with other SMs; volatile, so that it is not reordered with
// the flag.
KG_INLINE void kg_partial_store(float4 *to, const float *from)
{
    asm volatile("st.global.cg.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
                 "f"(from[0]), "f"(from[1]), "f"(from[2]), "f"(from[3])
                 : "memory");
}

KG_INLINE void kg_partial_load(float *to, const float4 *from)
{
    asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
                 : "l"(__cvta_generic_to_global(from))
                 : "memory");
}

// The same where `loads`, without a branch.
KG_INLINE void kg_partial_load_where(bool loads, float (&to)[4], const float4 *from)
{
    asm volatile("{\n"
                 ".reg .pred loads;\n"
                 "setp.ne.u32 loads, %5, 0;\n"
                 "@loads ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];\n"
                 "}"
                 : "+f"(to[0]), "+f"(to[1]), "+f"(to[2]), "+f"(to[3])
                 : "l"(__cvta_generic_to_global(from)), "r"((uint32_t)loads)
                 : "memory");
}

// One thread sets the flag, after a barrier behind the stores; one waits for it, before a barrier
// in front of the loads.
KG_INLINE void kg_partial_tell(uint64_t *flag)
{
    asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(flag)),
                 "l"(kg_partial_flag(flag))
                 : "memory");
}

KG_INLINE void kg_partial_await(uint64_t *flag)
{
    uint64_t found = 0;
    while (found != kg_partial_flag(flag))
        asm volatile("ld.acquire.gpu.global.u64 %0, [%1];"
                     : "=l"(found)
                     : "l"(__cvta_generic_to_global(flag))
                     : "memory");
    *flag = 0;
}
