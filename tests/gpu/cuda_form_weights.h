// The products with quantised weights that cuda_form_table.h tries.

#ifndef KG_TESTS_CUDA_FORM_WEIGHTS_H
#define KG_TESTS_CUDA_FORM_WEIGHTS_H

// Weights of 4 bits: scales in runs of K steps or by column, zero points, integers of either sign,
// an epilogue, the transposed product, batches.
#define W4(rest, formula)                                                                          \
    "op w4(x: T[M, K], w: u4[K, N], " rest ") -> (y: T[M, N]) where T in f16 bf16\n"               \
    "{ y[m, n] = sum(k) x[m, k] * " formula " }\n"
#define W4_RUNS(run)                                                                               \
    W4("s: T[ceil(K/" run "), N], z: u4[ceil(K/" run "), N]",                                      \
       "((w[k, n] - z[k/" run ", n]) * s[k/" run ", n])")
#define W4_COLUMN W4("s: T[N]", "((w[k, n] - 8) * s[n])")
#define W4_LAYER                                                                                   \
    "op layer(x: T[M, K], w: i4[K, N], s: T[ceil(K/128), N], b: T[N], r: T[M, N])\n"               \
    " -> (y: T[M, N]) where T in f16 bf16\n"                                                       \
    "{ t[m, n] = sum(k) x[m, k] * (w[k, n] * s[k/128, n])\n"                                       \
    "  y[m, n] = silu(t[m, n] + b[n]) + r[m, n] }\n"
#define W4_LEFT                                                                                    \
    "op left(x: T[M, K], w: u4[K, N], s: f32[ceil(K/64), N]) -> (y: T[N, M])\n"                    \
    "where T in f16 bf16\n"                                                                        \
    "{ y[n, m] = sum(k) (w[k, n] - 8) * s[k/64, n] * x[m, k] }\n"
#define W4_BATCH                                                                                   \
    "op experts(x: T[B, M, K], w: u4[B, K, N], s: T[B, ceil(K/32), N]) -> (y: T[B, M, N])\n"       \
    "where T in f16 bf16\n"                                                                        \
    "{ y[b, m, n] = sum(k) x[b, m, k] * ((w[b, k, n] - 8) * s[b, k/32, n]) }\n"
#define W4_SCALED(rows, columns, depth, words, warps, split_k, swap)                               \
    "tile_m=" rows " tile_n=" columns " tile_k=" depth " words=" words " warps=" warps             \
    " split_k=" split_k " swap=" swap " maxnreg=0"
#define W4_TALL_OF(rows, columns, stages, split_k, swap)                                           \
    "tile_m=" rows " tile_n=" columns " stages=" stages " split_k=" split_k " swap=" swap          \
    " buffered=0"
#define W4_BUFFERED(rows, columns, stages, split_k)                                                \
    "tile_m=" rows " tile_n=" columns " stages=" stages " split_k=" split_k " swap=0 buffered=1"
#define W4_NARROW(rows, stages, split_k, swap) W4_TALL_OF(rows, "64", stages, split_k, swap)
#define W4_TALL(rows, stages, split_k, swap) W4_TALL_OF(rows, "256", stages, split_k, swap)
// A float offset behind the scale or, times it, in front.
#define W4_OFFSET(run)                                                                             \
    W4("s: T[ceil(K/" run "), N], o: T[ceil(K/" run "), N]",                                       \
       "(w[k, n] * s[k/" run ", n] + o[k/" run ", n])")
#define W4_BEFORE(run)                                                                             \
    W4("s: T[ceil(K/" run "), N], o: T[ceil(K/" run "), N]",                                       \
       "((w[k, n] - o[k/" run ", n]) * s[k/" run ", n])")
#define W4_COLUMN_OFFSET W4("s: T[N], o: T[N]", "((w[k, n] - 8) * s[n] - o[n])")
#define W4_Q4_K                                                                                    \
    W4("s: f16[ceil(K/256), N], q: u8[ceil(K/32), N], o: f16[ceil(K/256), N], r: u8[ceil(K/32), "  \
       "N]",                                                                                       \
       "(w[k, n] * (s[k/256, n] * q[k/32, n]) - o[k/256, n] * r[k/32, n])")

// Weights of 8 bits: integers of either sign and floats, in the same ways.
#define W8(dtype, rest) "op w8(x: T[M, K], w: " dtype "[K, N], " rest
#define W8_RESULT " -> (y: T[M, N]) where T in f16 bf16\n{ y[m, n] = "
#define W8_COLUMN(dtype) W8(dtype, "s: T[N])" W8_RESULT "(sum(k) x[m, k] * w[k, n]) * s[n] }\n")
#define W8_RUNS(dtype, run)                                                                        \
    W8(dtype,                                                                                      \
       "s: T[ceil(K/" run "), N])" W8_RESULT "sum(k) x[m, k] * (w[k, n] * s[k/" run ", n]) }\n")
#define W8_MIDDLE(run)                                                                             \
    W8("u8", "s: T[ceil(K/" run "), N])" W8_RESULT "sum(k) x[m, k] * ((w[k, n] - 128) * s[k/" run  \
             ", n]) }\n")
#define W8_OF(zeros, run)                                                                          \
    "s: T[ceil(K/" run "), N], z: " zeros "[ceil(K/" run "), N])" W8_RESULT                        \
    "sum(k) x[m, k] * ((w[k, n] - z[k/" run ", n]) * s[k/" run ", n]) }\n"
#define W8_ZEROS(dtype, run) W8(dtype, W8_OF(dtype, run))
#define W8_LEFT                                                                                    \
    "op left(x: T[M, K], w: i8[K, N], s: f32[ceil(K/64), N]) -> (y: T[N, M])\n"                    \
    "where T in f16 bf16\n"                                                                        \
    "{ y[n, m] = sum(k) w[k, n] * s[k/64, n] * x[m, k] }\n"
#define W8_BATCH                                                                                   \
    "op experts(x: T[B, M, K], w: f8e4m3[B, K, N], s: T[B, ceil(K/32), N])\n"                      \
    " -> (y: T[B, M, N]) where T in f16 bf16\n"                                                    \
    "{ y[b, m, n] = sum(k) x[b, m, k] * (w[b, k, n] * s[b, k/32, n]) }\n"

// Weights that are adjacent along K, with scales and zero points that are, too, or not.
#define LINES(dtype, rest)                                                                         \
    "op lines(x: T[M, K], w: " dtype "[N, K], " rest ") -> (y: T[M, N]) where T in f16 bf16\n"     \
    "{ y[m, n] = sum(k) x[m, k] * "
#define LINES_RUNS(dtype, run)                                                                     \
    LINES(dtype, "s: T[N, ceil(K/" run ")]") "(w[n, k] * s[n, k/" run "]) }\n"
#define LINES_MIDDLE(dtype, middle, run)                                                           \
    LINES(dtype, "s: T[N, ceil(K/" run ")]") "((w[n, k] - " middle ") * s[n, k/" run "]) }\n"
#define LINES_ZEROS(dtype, run)                                                                    \
    LINES(dtype, "s: T[N, ceil(K/" run ")], z: " dtype "[N, ceil(K/" run ")]")                     \
    "((w[n, k] - z[n, k/" run "]) * s[n, k/" run "]) }\n"
#define LINES_STAGED(dtype, run)                                                                   \
    LINES(dtype, "s: T[ceil(K/" run "), N], z: " dtype "[ceil(K/" run "), N]")                     \
    "((w[n, k] - z[k/" run ", n]) * s[k/" run ", n]) }\n"
#define LINES_COLUMN(dtype, middle) LINES(dtype, "s: T[N]") "((w[n, k] - " middle ") * s[n]) }\n"
#define LINES_OFFSET(dtype, run)                                                                   \
    LINES(dtype, "s: T[N, ceil(K/" run ")], o: T[N, ceil(K/" run ")]")                             \
    "(w[n, k] * s[n, k/" run "] + o[n, k/" run "]) }\n"
#define LINES_BATCH                                                                                \
    "op experts(x: T[B, M, K], w: u4[B, N, K], s: T[B, N, ceil(K/32)]) -> (y: T[B, M, N])\n"       \
    "where T in f16 bf16\n"                                                                        \
    "{ y[b, m, n] = sum(k) x[b, m, k] * ((w[b, n, k] - 8) * s[b, n, k/32]) }\n"

// Packed weights: the same kinds of formulas, in the same order; experts.
#define PACKED(rest, formula)                                                                      \
    "op w4(x: T[M, K], w: packed u4[K, N], " rest ") -> (y: T[M, N]) where T in f16 bf16\n"        \
    "{ y[m, n] = sum(k) x[m, k] * " formula " }\n"
#define PACKED_RUNS(run)                                                                           \
    PACKED("s: T[ceil(K/" run "), N], z: u4[ceil(K/" run "), N]",                                  \
           "((w[k, n] - z[k/" run ", n]) * s[k/" run ", n])")
#define PACKED_APART                                                                               \
    PACKED("s: T[ceil(K/128), N], z: u4[ceil(K/64), N]", "((w[k, n] - z[k/64, n]) * s[k/128, n])")
#define PACKED_COLUMN PACKED("s: T[N]", "((w[k, n] - 8) * s[n])")
#define PACKED_OFFSET(run)                                                                         \
    PACKED("s: T[ceil(K/" run "), N], o: T[ceil(K/" run "), N]",                                   \
           "(w[k, n] * s[k/" run ", n] + o[k/" run ", n])")
#define PACKED_ZERO_BYTES(run)                                                                     \
    PACKED("s: T[ceil(K/" run "), N], z: u8[ceil(K/" run "), N]",                                  \
           "((w[k, n] - z[k/" run ", n]) * s[k/" run ", n])")
#define PACKED_LAYER                                                                               \
    "op layer(x: T[M, K], w: packed i4[K, N], s: T[ceil(K/128), N], b: T[N], r: T[M, N])\n"        \
    " -> (y: T[M, N]) where T in f16 bf16\n"                                                       \
    "{ t[m, n] = sum(k) x[m, k] * (w[k, n] * s[k/128, n])\n"                                       \
    "  y[m, n] = silu(t[m, n] + b[n]) + r[m, n] }\n"
#define PACKED_LEFT                                                                                \
    "op left(x: T[M, K], w: packed u4[K, N], s: f32[ceil(K/64), N]) -> (y: T[N, M])\n"             \
    "where T in f16 bf16\n"                                                                        \
    "{ y[n, m] = sum(k) (w[k, n] - 8) * s[k/64, n] * x[m, k] }\n"
#define PACKED_BATCH                                                                               \
    "op batch(x: T[B, M, K], w: packed u4[B, K, N], s: T[B, ceil(K/32), N]) -> (y: T[B, M, N])\n"  \
    "where T in f16 bf16\n"                                                                        \
    "{ y[b, m, n] = sum(k) x[b, m, k] * ((w[b, k, n] - 8) * s[b, k/32, n]) }\n"
#define PACKED_EXPERTS(run)                                                                        \
    "op experts(x: T[B, M, K], e: i32[B], w: packed u4[E, K, N], s: T[E, ceil(K/" run "), N],\n"   \
    " z: u4[E, ceil(K/" run "), N]) -> (y: T[B, M, N]) where T in f16 bf16\n"                      \
    "{ y[b, m, n] = sum(k) x[b, m, k] *\n"                                                         \
    "  ((w[e[b], k, n] - z[e[b], k/" run ", n]) * s[e[b], k/" run ", n]) }\n"
#define PACKED_TILE(rows, columns, strips, warps, stages, split_k, swap)                           \
    "tile_m=" rows " tile_n=" columns " strips=" strips " warps=" warps " stages=" stages          \
    " split_k=" split_k " swap=" swap " maxnreg=0"

// Weights that are rounded to 16 bits once they are scaled: with zero points, unless they are of
// either sign, an offset, scales of f32, scales by column; adjacent along K; chosen by the batch.
#define ROUNDED_OF(dtype, rest, formula)                                                           \
    "op rounded(x: T[M, K], w: " dtype "[K, N], " rest ") -> (y: T[M, N]) where T in f16 bf16\n"   \
    "{ y[m, n] = sum(k) x[m, k] * cast(T, " formula ") }\n"
#define ROUNDED(dtype, run)                                                                        \
    ROUNDED_OF(dtype, "s: T[ceil(K/" run "), N], z: u4[ceil(K/" run "), N]",                       \
               "(w[k, n] - z[k/" run ", n]) * s[k/" run ", n]")
// Without zero points, so that one instruction scales and rounds numbers of bf16 in panels.
#define ROUNDED_ONCE(run)                                                                          \
    ROUNDED_OF("packed u4", "s: T[ceil(K/" run "), N]", "(w[k, n] - 8) * s[k/" run ", n]")
#define ROUNDED_ONCE_SIGNED(run)                                                                   \
    ROUNDED_OF("packed i4", "s: T[ceil(K/" run "), N]", "w[k, n] * s[k/" run ", n]")
#define ROUNDED_OFFSET(dtype, run)                                                                 \
    ROUNDED_OF(dtype, "s: T[ceil(K/" run "), N], o: T[ceil(K/" run "), N]",                        \
               "w[k, n] * s[k/" run ", n] - o[k/" run ", n]")
#define ROUNDED_FLOATS(dtype, run)                                                                 \
    ROUNDED_OF(dtype, "s: f32[ceil(K/" run "), N], t: T[N]",                                       \
               "(w[k, n] - 3) * s[k/" run ", n] * t[n]")
#define ROUNDED_COLUMN(dtype) ROUNDED_OF(dtype, "s: T[N]", "w[k, n] * s[n]")
#define ROUNDED_LINES(dtype, run)                                                                  \
    "op rounded(x: T[M, K], w: " dtype "[N, K], s: T[N, ceil(K/" run ")]) -> (y: T[M, N])\n"       \
    "where T in f16 bf16\n"                                                                        \
    "{ y[m, n] = sum(k) x[m, k] * cast(T, w[n, k] * s[n, k/" run "]) }\n"
#define ROUNDED_EXPERTS(run)                                                                       \
    "op rounded(x: T[B, M, K], e: i32[B], w: packed u4[E, K, N], s: T[E, ceil(K/" run "), N])\n"   \
    " -> (y: T[B, M, N]) where T in f16 bf16\n"                                                    \
    "{ y[b, m, n] = sum(k) x[b, m, k] * cast(T, (w[e[b], k, n] - 8) * s[e[b], k/" run ", n]) }\n"

// Matrices of weights that the batch chooses by an index, as experts are: with zero points, a float
// offset, scales by column or by an index of their own, adjacent along K, the transposed product;
// and several for each row.
#define EXPERTS(rest, formula)                                                                     \
    "op experts(x: T[B, M, K], e: i32[B], " rest ") -> (y: T[B, M, N]) where T in f16 bf16\n"      \
    "{ y[b, m, n] = sum(k) x[b, m, k] * " formula " }\n"
#define EXPERTS_RUNS(run)                                                                          \
    EXPERTS("w: u4[E, K, N], s: T[E, ceil(K/" run "), N], z: u4[E, ceil(K/" run "), N]",           \
            "((w[e[b], k, n] - z[e[b], k/" run ", n]) * s[e[b], k/" run ", n])")
#define EXPERTS_OFFSET(run)                                                                        \
    EXPERTS("w: u4[E, K, N], s: T[E, ceil(K/" run "), N], o: T[E, ceil(K/" run "), N]",            \
            "(w[e[b], k, n] * s[e[b], k/" run ", n] + o[e[b], k/" run ", n])")
#define EXPERTS_COLUMN EXPERTS("w: i8[E, K, N], s: T[E, N]", "(w[e[b], k, n] * s[e[b], n])")
#define EXPERTS_OTHERS                                                                             \
    EXPERTS("f: i8[B], w: u4[E, K, N], s: T[E, ceil(K/64), N]",                                    \
            "((w[e[b], k, n] - 8) * s[f[b], k/64, n])")
#define EXPERTS_LINES                                                                              \
    EXPERTS("w: u4[E, N, K], s: T[E, ceil(K/64), N]", "((w[e[b], n, k] - 8) * s[e[b], k/64, n])")
#define EXPERTS_LEFT                                                                               \
    "op left(x: T[B, M, K], e: i32[B], w: u4[E, K, N], s: T[E, ceil(K/64), N])\n"                  \
    " -> (y: T[B, N, M]) where T in f16 bf16\n"                                                    \
    "{ y[b, n, m] = sum(k) x[b, m, k] * ((w[e[b], k, n] - 8) * s[e[b], k/64, n]) }\n"
#define EXPERTS_OF_TOKENS                                                                          \
    "op tokens(x: T[M, K], e: i32[M, J], w: u4[E, K, N], s: T[E, ceil(K/128), N])\n"               \
    " -> (y: T[M, J, N]) where T in f16 bf16\n"                                                    \
    "{ y[m, j, n] = sum(k) x[m, k] * ((w[e[m, j], k, n] - 8) * s[e[m, j], k/128, n]) }\n"

#endif
