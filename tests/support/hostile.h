// Kernels that no search should have to meet, for y[p, d] = x[p, d] + b[d] of floats: each does the
// work but for one thing. What a search or a verdict says of them is `told`.

#ifndef KG_TESTS_SUPPORT_HOSTILE_H
#define KG_TESTS_SUPPORT_HOSTILE_H

#include "tune/search.h"

static const char hostile_op[] = "op add(x: f32[P, D], b: f32[D]) -> (y: f32[P, D])\n"
                                 "{ y[p, d] = x[p, d] + b[d] }\n"
                                 "goal { verify P D = 64 300 }\n";

// The threads of all blocks take elements in turns; `i` is the element, `n` their number.
static const char hostile_head[] =
    "(const float *x, const float *b, float *y, long long P, long long D, char *scratch)\n"
    "{\n"
    "    const long long n = P * D;\n"
    "    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n;"
    " i += (long long)gridDim.x * blockDim.x) {\n"
    "        float v = x[i] + b[i % D];\n";
static const char hostile_tail[] = "        y[i] = v;\n    }\n}\n";

static const struct hostile {
    const char *name;
    const char *body; // between `v` and the store of it
    enum kg_outcome_kind kind;
    const char *told;
} hostiles[] = {
    {"hangs", "        while (*(volatile float *)y != 12345.678f) {}\n", KG_OUTCOME_TIMEOUT,
     "did not finish within"},
    {"writes behind its output", "        if (i == 0) y[n + 1] = 1;\n", KG_OUTCOME_WRONG,
     "past the end of y"},
    {"writes before its output", "        if (i == 0) y[-2] = 1;\n", KG_OUTCOME_WRONG, "before y"},
    {"writes far away", "        if (i == 0) y[1ll << 40] = 1;\n", KG_OUTCOME_FAULT,
     "CUDA_ERROR_ILLEGAL_ADDRESS"},
    {"traps", "        if (i == 0) asm volatile(\"trap;\");\n", KG_OUTCOME_FAULT, "CUDA_ERROR_"},
    {"writes between elements", "        if (i == 0) *(int *)((char *)y + 1) = 1;\n",
     KG_OUTCOME_FAULT, "CUDA_ERROR_MISALIGNED_ADDRESS"},
    {"is wrong in one element", "        if (n > 100 && i == n / 2) v += 1;\n", KG_OUTCOME_WRONG,
     "expected"},
    {"differs from run to run",
     "        v = __int_as_float(__float_as_int(v) ^ (int)(clock64() >> 3 & 1));\n",
     KG_OUTCOME_WRONG, ""},
    {"changes its input", "        if (i == 0) ((float *)b)[0] = v + 1;\n", KG_OUTCOME_WRONG, ""},
};

// The kernel called `function` that does what `body` says besides.
static inline void hostile_print(struct kg_text *text, const char *function, const char *body)
{
    kg_text_format(text, "extern \"C\" __global__ void %s%s%s%s", function, hostile_head, body,
                   hostile_tail);
}

enum { HOSTILE_COUNT = sizeof hostiles / sizeof hostiles[0] };

#endif
