// The prelude of generated CUDA: elements in memory, then (values.h, maths.cuh, narrow.cuh)
// integers, logic and the functions of reals; if needed, elements in vectors (vectors.cuh) and
// reductions of a block (lanes.cuh).
//
// Functions are called kg_NAME_TYPE, where TYPE is the compute type: f32, f64, i64 or bool.
// Denormals are kept, unless the compiler is told otherwise.

#ifdef __CUDACC_RTC__ // NVRTC has no headers
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define INT64_C(digits) digits##ll
#define INT64_MAX 0x7fffffffffffffffll
#define INT64_MIN (-INT64_MAX - 1)
#else
#include <math.h>
#include <stdint.h>
#endif

#define KG_INLINE [[maybe_unused]] static __device__ __forceinline__

// ---- Elements in memory ----

// Bits, not numbers.
typedef uint16_t kg_f16;
typedef uint16_t kg_bf16;
typedef uint8_t kg_u4; // two elements, the even one in the low half
typedef uint8_t kg_i4;

KG_INLINE uint32_t kg_bits_f32(float x)
{
    return __float_as_uint(x);
}

KG_INLINE float kg_from_bits_f32(uint32_t bits)
{
    return __uint_as_float(bits);
}

// Rounds toward zero, but to odd if inexact: rounding the result to a narrower type then equals
// rounding `x` to it directly.
KG_INLINE float kg_odd_f32(double x)
{
    float inner = __double2float_rz(x);
    return kg_from_bits_f32(kg_bits_f32(inner) | ((double)inner != x));
}

KG_INLINE float kg_unpack_f16(kg_f16 half)
{
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(half));
    return x;
}

KG_INLINE kg_f16 kg_pack_f16(float x)
{
    kg_f16 half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x));
    return half;
}

KG_INLINE kg_f16 kg_pack_f16_f64(double x)
{
    kg_f16 half;
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(half) : "d"(x));
    return half;
}

KG_INLINE float kg_unpack_bf16(kg_bf16 half)
{
    return kg_from_bits_f32((uint32_t)half << 16);
}

KG_INLINE kg_bf16 kg_pack_bf16(float x)
{
#if __CUDA_ARCH__ >= 800
    kg_bf16 half;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(half) : "f"(x));
    return half;
#else
    uint32_t bits = kg_bits_f32(x), even = bits >> 16 & 1;
    return x == x ? (kg_bf16)((bits + 0x7fff + even) >> 16) : 0x7fff;
#endif
}

KG_INLINE kg_bf16 kg_pack_bf16_f64(double x)
{
    return kg_pack_bf16(kg_odd_f32(x));
}

KG_INLINE float kg_load_f16(const kg_f16 *from, int64_t at)
{
    return kg_unpack_f16(from[at]);
}

KG_INLINE float kg_load_bf16(const kg_bf16 *from, int64_t at)
{
    return kg_unpack_bf16(from[at]);
}

KG_INLINE int64_t kg_load_u4(const kg_u4 *from, int64_t at)
{
    return from[at >> 1] >> ((int)at & 1) * 4 & 15;
}

KG_INLINE int64_t kg_load_i4(const kg_i4 *from, int64_t at)
{
    return ((from[at >> 1] >> ((int)at & 1) * 4 & 15) ^ 8) - 8;
}

KG_INLINE void kg_store_f16(kg_f16 *to, int64_t at, float x)
{
    to[at] = kg_pack_f16(x);
}

KG_INLINE void kg_store_f16_f64(kg_f16 *to, int64_t at, double x)
{
    to[at] = kg_pack_f16_f64(x);
}

KG_INLINE void kg_store_bf16(kg_bf16 *to, int64_t at, float x)
{
    to[at] = kg_pack_bf16(x);
}

KG_INLINE void kg_store_bf16_f64(kg_bf16 *to, int64_t at, double x)
{
    to[at] = kg_pack_bf16_f64(x);
}

// Two adjacent elements share a byte, so the same thread must write both.
KG_INLINE void kg_store_u4(kg_u4 *to, int64_t at, int64_t x)
{
    int shift = ((int)at & 1) * 4;
    to[at >> 1] = (kg_u4)((to[at >> 1] & 0xf0 >> shift) | ((int)x & 15) << shift);
}

KG_INLINE void kg_store_i4(kg_i4 *to, int64_t at, int64_t x)
{
    kg_store_u4(to, at, x);
}

KG_INLINE float kg_cast_f16(float x)
{
    return kg_unpack_f16(kg_pack_f16(x));
}

KG_INLINE float kg_cast_f16_f64(double x)
{
    return kg_unpack_f16(kg_pack_f16_f64(x));
}

KG_INLINE float kg_cast_bf16(float x)
{
    return kg_unpack_bf16(kg_pack_bf16(x));
}

KG_INLINE float kg_cast_bf16_f64(double x)
{
    return kg_unpack_bf16(kg_pack_bf16_f64(x));
}

KG_INLINE int64_t kg_cast_i8(int64_t x)
{
    return (int8_t)x;
}

KG_INLINE int64_t kg_cast_u8(int64_t x)
{
    return (uint8_t)x;
}

KG_INLINE int64_t kg_cast_i32(int64_t x)
{
    return (int32_t)x;
}

KG_INLINE int64_t kg_cast_u4(int64_t x)
{
    return x & 15;
}

KG_INLINE int64_t kg_cast_i4(int64_t x)
{
    return ((x & 15) ^ 8) - 8;
}

// Rounds toward zero; values out of range become the nearest limit, NaN becomes 0.
KG_INLINE int64_t kg_truncate_f64(double x)
{
    return x == x ? __double2ll_rz(x) : 0;
}

KG_INLINE int64_t kg_truncate_f32(float x)
{
    return x == x ? __float2ll_rz(x) : 0;
}

// ---- Programmatic dependent launch ----

// Allows the next grid to start while this one runs, if it is launched so.
KG_INLINE void kg_start_next()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// The same for grids that may be large. The signals of blocks are taken one after the other, 1.3 ns
// each on an H100, and a block does not end before its own: those of many blocks would take longer
// than the work. Without them the next grid starts as these end.
KG_INLINE void kg_start_next_of_few()
{
    enum { SIGNALS = 640 };
    if (gridDim.x * gridDim.y * gridDim.z <= SIGNALS)
        kg_start_next();
}

// Waits until the previous grids have ended, if this grid may have started earlier.
KG_INLINE void kg_wait_before()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// blockIdx.x, read where it is asked for: beside a load that has a condition it would come late.
KG_INLINE unsigned kg_block_here()
{
    unsigned block = blockIdx.x;
    asm volatile("" : "+r"(block));
    return block;
}

// The same address, for reads and writes after that wait: through a const __restrict__ pointer, the
// compiler could move reads before it.
template <typename T>
KG_INLINE T *kg_after(T *place)
{
#if __CUDA_ARCH__ >= 900
    uint64_t there = __cvta_generic_to_global(place);
    asm volatile("" : "+l"(there));
    return (T *)__cvta_global_to_generic(there);
#else
    return place;
#endif
}
