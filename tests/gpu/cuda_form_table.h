// The forms of kernel that test_cuda_forms.c tries: definitions, sizes and choices, so that every
// family for CUDA writes every variant of its kernels.

#ifndef KG_TESTS_CUDA_FORM_TABLE_H
#define KG_TESTS_CUDA_FORM_TABLE_H

#include "cuda_form_weights.h"

#define CUMSUM "op running(x: T[P, D]) -> (y: T[P, D]) where T in f32 f16\n"
#define SOFTMAX                                                                                    \
    "op softmax(x: T[P, D]) -> (y: T[P, D]) where T in f16 f32\n"                                  \
    "{ m[p] = max(d) x[p, d]\n  e[p, d] = exp(x[p, d] - m[p])\n"                                   \
    "  y[p, d] = e[p, d] / (sum(d) e[p, d]) }\n"
#define ROW_NORM                                                                                   \
    "op norm(x: T[P, D], g: T[D], b: T[D]) -> (y: T[P, D]) where T in f16 f32\n"                   \
    "{ m[p] = mean(d) x[p, d]\n  v[p] = mean(d) (x[p, d] - m[p]) * (x[p, d] - m[p])\n"             \
    "  y[p, d] = (x[p, d] - m[p]) * rsqrt(v[p] + 0.00001) * g[d] + b[d] }\n"
#define SHARES                                                                                     \
    "op shares(x: T[P, D], g: f32[D]) -> (s: f32[P], y: T[P, D]) where T in f16 f32\n"             \
    "{ s[p] = sum(d) abs(x[p, d] * g[d])\n  y[p, d] = x[p, d] / s[p] }\n"
#define ADD                                                                                        \
    "op add(x: T[P, D], b: T[D]) -> (y: T[P, D]) where T in f16 f32\n"                             \
    "{ y[p, d] = relu(x[p, d] + b[d]) }\n"
#define TURNED                                                                                     \
    "op turned(x: T[B, P, D], z: T[B, D, P], v: T[D]) -> (y: T[B, D, P]) where T in f16 f32\n"     \
    "{ y[b, d, p] = x[b, p, d] * z[b, d, p] + v[d] }\n"
#define ROUNDS                                                                                     \
    "op rounds(x: T[N, C, P, D], v: T[C, D]) -> (y: T[N, C, P, D]) where T in f16 f32\n"           \
    "{ y[n, c, p, d] = x[n, c, p, d] + v[c, d] }\n"
#define TOTAL "op total(x: f32[N]) -> (y: f32[])\n{ y[] = sum(n) x[n] }\n"
#define FIRST                                                                                      \
    "op first(x: f32[P, D]) -> (y: f32[D])\n"                                                      \
    "{ y[d] = sum(p) x[p, d] }\n"
#define WHERE                                                                                      \
    "op where_first(x: f32[P, D]) -> (y: i64[D])\n"                                                \
    "{ y[d] = argmax(p) x[p, d] }\n"
#define WHERE_F16                                                                                  \
    "op where_f16(x: f16[P, D]) -> (y: i64[D])\n"                                                  \
    "{ y[d] = argmax(p) x[p, d] }\n"
#define WHERE_BF16                                                                                 \
    "op where_bf16(x: bf16[P, D]) -> (y: i64[D])\n"                                                \
    "{ y[d] = argmin(p) x[p, d] }\n"
#define LAST                                                                                       \
    "op last(x: f32[P, D]) -> (y: f32[P])\n"                                                       \
    "{ y[p] = max(d) x[p, d] }\n"
#define WHERE_LAST                                                                                 \
    "op where_last(x: f32[P, D]) -> (y: i64[P])\n"                                                 \
    "{ y[p] = argmin(d) x[p, d] }\n"
#define WHERE_CUBE                                                                                 \
    "op where_cube(x: f32[A, B, C]) -> (y: i64[A])\n"                                              \
    "{ y[a] = argmax(b, c) x[a, b, c] }\n"
#define WHERE_TURNED                                                                               \
    "op where_turned(x: f32[A, B, C]) -> (y: i64[A])\n"                                            \
    "{ y[a] = argmin(c, b) x[a, b, c] }\n"
#define WHERE_OUTER                                                                                \
    "op where_outer(x: f32[A, B, C]) -> (y: i64[C])\n"                                             \
    "{ y[c] = argmax(a, b) x[a, b, c] }\n"
#define WHERE_PART                                                                                 \
    "op where_part(x: f32[A, B, C]) -> (y: i64[A])\n"                                              \
    "{ y[a] = argmax(b in 1..B, c in 2..C) x[a, b, c] }\n"
#define DOWN                                                                                       \
    "op down(x: f32[P, D]) -> (y: f32[P, D])\n"                                                    \
    "{ y[p, d] = sum(j <= p) x[j, d] }\n"
#define PRODUCT                                                                                    \
    "op product(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N])\n"                                   \
    "{ c[m, n] = max(k) a[m, k] * b[k, n] }\n"
#define OPERANDS(type, a, b)                                                                       \
    "op matmul(a: " type "[" a "], b: " type "[" b "]) -> (c: " type "[M, N])\n"
#define NN OPERANDS("f16", "M, K", "K, N") "{ c[m, n] = sum(k) a[m, k] * b[k, n] }\n"
#define NT OPERANDS("bf16", "M, K", "N, K") "{ c[m, n] = sum(k) a[m, k] * b[n, k] }\n"
#define TN OPERANDS("f16", "K, M", "K, N") "{ c[m, n] = sum(k) a[k, m] * b[k, n] }\n"
#define TT OPERANDS("bf16", "K, M", "N, K") "{ c[m, n] = sum(k) a[k, m] * b[n, k] }\n"
#define LINEAR                                                                                     \
    "op linear(x: f16[B, P, K], w: f16[N, K], v: f16[N], r: f16[B, P, N]) -> (y: f16[B, P, N])\n"  \
    "{ t[b, p, n] = sum(k) x[b, p, k] * w[n, k]\n"                                                 \
    "  y[b, p, n] = gelu(t[b, p, n] + v[n]) + r[b, p, n] }\n"
#define BATCHES                                                                                    \
    "op batches(a: f16[B, M, K], b: f16[B, N, K]) -> (s: f32[B, M, N], y: f16[B, M, N])\n"         \
    "{ s[b, m, n] = sum(k) a[b, m, k] * b[b, n, k]\n"                                              \
    "  y[b, m, n] = relu(s[b, m, n]) }\n"
#define SCALED                                                                                     \
    "op scaled(x: T[B, P, K], w: T[N, K], v: T[N], s: f32[B, P], z: f32[N]) -> (y: T[B, P, N])\n"  \
    "where T in f16 bf16\n"                                                                        \
    "{ t[b, p, n] = sum(k) x[b, p, k] * w[n, k]\n"                                                 \
    "  y[b, p, n] = gelu_tanh(t[b, p, n] * s[b, p] + v[n]) * z[n] }\n"
#define BIAS                                                                                       \
    "op bias(x: T[P, K], w: T[N, K], v: T[N]) -> (y: T[P, N]) where T in f16 bf16\n"               \
    "{ y[p, n] = gelu((sum(k) x[p, k] * w[n, k]) + v[n]) }\n"
#define RESIDUAL                                                                                   \
    "op residual(x: T[P, K], w: T[N, K], v: T[N], r: T[P, N]) -> (y: T[P, N])\n"                   \
    "where T in f16 bf16\n"                                                                        \
    "{ y[p, n] = (sum(k) x[p, k] * w[n, k]) + v[n] + r[p, n] }\n"
#define WGMMA(tile, how) "contract/wgmma: " tile " " how " raster=0 maxnreg=0"
#define WGMMA_3(tile, how) "contract/wgmma*3: " tile " " how " raster=0 maxnreg=0"
#define WGMMA_2(tile, how) "contract/wgmma*2: " tile " " how " raster=0 maxnreg=0"
#define PLAIN "cluster_m=1 cluster_n=1 pingpong=0 split_k=1 swap=0"
#define STREAM_K "cluster_m=1 cluster_n=1 pingpong=0 split_k=0 swap=0"
#define BY_SECTOR "pingpong=0 split_k=1 swap=0 overlap=16"
#define MATMUL                                                                                     \
    "op matmul(a: T[M, K], b: T[K, N], v: T[N]) -> (c: T[M, N]) where T in f16 bf16 f32\n"         \
    "{ c[m, n] = relu(sum(k) (a[m, k] * b[k, n]) + v[n]) }\n"
#define TURNED_MATMUL                                                                              \
    "op turned_matmul(a: T[B, K, M], b: T[B, N, K]) -> (c: T[B, M, N]) where T in f16 f32\n"       \
    "{ c[b, m, n] = sum(k) a[b, k, m] * b[b, n, k] }\n"
#define PIXELS                                                                                     \
    "op pixels(x: T[N, C, P], w: T[O, C]) -> (y: T[N, O, P]) where T in f16 f32\n"                 \
    "{ y[n, o, p] = sum(c) x[n, c, p] * w[o, c] }\n"
#define HEADS                                                                                      \
    "op heads(x: f16[M, K], w: f16[K, H, D]) -> (y: f16[H, M, D])\n"                               \
    "{ y[h, m, d] = sum(k) x[m, k] * w[k, h, d] }\n"
#define MMA_CONFIG(tile_m, tile_n, tile_k, stages, split_k, raster)                                \
    "tile_m=" tile_m " tile_n=" tile_n " tile_k=" tile_k " stages=" stages " split_k=" split_k     \
    " raster=" raster " maxnreg=0"
#define F32_CONFIG(tile, stages, split_k, raster)                                                  \
    tile " stages=" stages " split_k=" split_k " raster=" raster " maxnreg=0"

// Operands of every kind: K-major or not, with a batch, computed; and a second output.
#define ANY "where T in f16 f32 bf16 f64\n"
#define PRODUCT_NN                                                                                 \
    "op nn(a: T[M, K], b: T[K, N]) -> (c: T[M, N]) " ANY "{ c[m, n] = sum(k) a[m, k] * b[k, n] "   \
    "}\n"
#define PRODUCT_NT                                                                                 \
    "op nt(a: T[M, K], b: T[N, K]) -> (c: T[M, N]) " ANY "{ c[m, n] = sum(k) a[m, k] * b[n, k] "   \
    "}\n"
#define PRODUCT_TN                                                                                 \
    "op tn(a: T[K, M], b: T[K, N]) -> (c: T[M, N]) " ANY "{ c[m, n] = sum(k) a[k, m] * b[k, n] "   \
    "}\n"
#define PRODUCT_TT                                                                                 \
    "op tt(a: T[K, M], b: T[N, K]) -> (c: T[M, N]) " ANY "{ c[m, n] = sum(k) a[k, m] * b[n, k] "   \
    "}\n"
#define LAYER                                                                                      \
    "op layer(x: T[B, M, K], w: T[N, K], v: T[N]) -> (s: T[B, M, N], y: T[B, M, N]) " ANY          \
    "{ s[b, m, n] = sum(k) x[b, m, k] * w[n, k]\n  y[b, m, n] = relu(s[b, m, n] + v[n]) }\n"
#define STACK                                                                                      \
    "op stack(a: T[B, M, K], b: T[B, K, N]) -> (c: T[B, M, N]) " ANY                               \
    "{ c[i, m, n] = sum(k) a[i, m, k] * b[i, k, n] }\n"
#define WEIGHTS                                                                                    \
    "op weights(x: T[M, K], w: i8[K, N], s: T[N]) -> (y: T[M, N]) " ANY                            \
    "{ y[m, n] = sum(k) x[m, k] * (w[k, n] * s[n]) }\n"
#define WHOLE_NUMBERS                                                                              \
    "op whole(a: i8[M, K], b: i8[K, N]) -> (c: i32[M, N])\n"                                       \
    "{ c[m, n] = sum(k) a[m, k] * b[k, n] }\n"
#define MIXED                                                                                      \
    "op mixed(a: S[M, K], b: T[K, N]) -> (c: f32[M, N]) where S in f32 f16 u8, T in f16 bf16 "     \
    "f32\n"                                                                                        \
    "{ c[m, n] = sum(k) a[m, k] * b[k, n] }\n"
#define COMPUTED                                                                                   \
    "op computed(x: T[B, M, K], v: T[B, N, K]) -> (c: T[B, M, N]) where T in f16 f32\n"            \
    "{ c[b, m, n] = sum(k) tanh(x[b, m, k]) * v[b, n, k] }\n"
#define CHOSEN                                                                                     \
    "op chosen(x: T[M, K], w: T[N, K]) -> (c: T[M, N]) where T in f16 bf16\n"                      \
    "{ c[m, n] = sum(k) where(k <= m, x[m, k], 0) * w[n, k] }\n"
#define LAYERS                                                                                     \
    "op layers(x: T[M, K], u: T[H, K], d: T[N, H]) -> (y: T[M, N]) where T in f16 bf16\n"          \
    "{ h[m, j] = relu(sum(k) x[m, k] * u[j, k])\n"                                                 \
    "  y[m, n] = sum(j) cast(T, h[m, j]) * d[n, j] }\n"
#define BYTES                                                                                      \
    "op bytes(a: S[B, M, K], b: T[B, K, N], s: f32[M]) -> (c: i32[B, M, N], y: f16[B, M, N])\n"    \
    "where S in i8 u8, T in i8 u8\n"                                                               \
    "{ c[b, m, n] = sum(k) a[b, m, k] * b[b, k, n]\n  y[b, m, n] = c[b, m, n] * s[m] }\n"
#define BYTES_TURNED                                                                               \
    "op turned(a: S[K, M], b: T[N, K]) -> (c: i64[M, N]) where S in i8 u8, T in i8 u8\n"           \
    "{ c[m, n] = sum(k) a[k, m] * b[n, k] }\n"
#define I8_CONFIG(tile_m, tile_n, tile_k, split_k, raster)                                         \
    "tile_m=" tile_m " tile_n=" tile_n " tile_k=" tile_k " split_k=" split_k " raster=" raster     \
    " maxnreg=0"
#define MATRIX_VECTOR                                                                              \
    "op vector(a: T[M, K], x: T[K]) -> (y: T[M]) " ANY "{ y[m] = sum(k) a[m, k] * x[k] }\n"
#define RASTER_0 " raster=0 maxnreg=0"

static const struct form {
    const char *name, *op, *sizes, *choice;
} forms[] = {
    {"pointwise", ADD, "P=300 D=1024",
     "pointwise: threads=256 vector=8 rows=2 stream=0 maxnreg=0 tile=0 last=0"},
    {"pointwise, streamed", ADD, "P=64 D=999",
     "pointwise: threads=128 vector=4 rows=4 stream=1 maxnreg=64 tile=0 last=0"},
    {"pointwise, wide", ADD, "P=9 D=8192",
     "pointwise: threads=128 vector=8 rows=4 stream=0 maxnreg=0 tile=0 last=0"},
    {"pointwise, tiles", TURNED, "B=3 P=200 D=136",
     "pointwise: threads=256 vector=8 rows=1 stream=0 maxnreg=0 tile=64 last=0"},
    {"pointwise, evicted last", ADD, "P=300 D=1024",
     "pointwise: threads=128 vector=8 rows=2 stream=3 maxnreg=0 tile=0 last=0"},
    {"pointwise, tiles evicted last", TURNED, "B=3 P=200 D=136",
     "pointwise: threads=256 vector=8 rows=1 stream=3 maxnreg=0 tile=64 last=0"},
    {"pointwise, any tiles", TURNED, "B=2 P=77 D=131",
     "pointwise: threads=128 vector=8 rows=1 stream=0 maxnreg=0 tile=32 last=0"},
    {"pointwise, last axis", ROUNDS, "N=3 C=5 P=64 D=4",
     "pointwise: threads=128 vector=8 rows=2 stream=0 maxnreg=0 tile=0 last=4"},
    {"direct", PRODUCT, "M=33 K=50 N=70", "direct: threads=128 maxnreg=0"},
    {"rowwise, lanes", SOFTMAX, "P=70 D=256",
     "rowwise*4: threads=16 vector=8 hold=2 keep=1 cluster=1 shared=0 maxnreg=0"},
    {"rowwise, block", SOFTMAX, "P=10 D=2048",
     "rowwise*4: threads=256 vector=8 hold=1 keep=1 cluster=1 shared=0 maxnreg=0"},
    {"rowwise, evicted last", SOFTMAX, "P=10 D=2048",
     "rowwise*4: threads=128 vector=8 hold=2 keep=1 cluster=1 shared=0 staged=0 evict=2 "
     "maxnreg=0"},
    {"rowwise, read again", SOFTMAX, "P=4 D=5001",
     "rowwise*4: threads=128 vector=8 hold=2 keep=0 cluster=1 shared=0 maxnreg=0"},
    {"rowwise, cluster", SOFTMAX, "P=4 D=16384",
     "rowwise*4: threads=256 vector=8 hold=2 keep=1 cluster=4 shared=0 maxnreg=0"},
    {"rowwise, factors copied", ROW_NORM, "P=5 D=16384",
     "rowwise*3: threads=256 vector=8 hold=4 keep=0 cluster=2 shared=0 staged=1 maxnreg=0"},
    {"rowwise, two rows", ROW_NORM, "P=5 D=16008",
     "rowwise*3: threads=256 vector=8 hold=2 keep=0 cluster=4 shared=0 staged=2 maxnreg=0"},
    {"rowwise, two rows, stored sums", SHARES, "P=7 D=20000",
     "rowwise*3: threads=512 vector=8 hold=4 keep=0 cluster=2 shared=0 staged=2 maxnreg=0"},
    {"reduce, row", TOTAL, "N=100000",
     "reduce: column=0 threads=256 vector=4 unroll=4 split=1 cluster=0 maxnreg=0"},
    {"reduce, row split", TOTAL, "N=1000000",
     "reduce: column=0 threads=256 vector=4 unroll=4 split=16 cluster=0 maxnreg=0"},
    {"reduce, few rows", LAST, "P=3 D=100003",
     "reduce: column=0 threads=256 vector=4 unroll=2 split=8 cluster=0 maxnreg=0"},
    {"reduce, column", FIRST, "P=900 D=512",
     "reduce: column=1 threads=256 vector=4 unroll=4 split=1 cluster=0 maxnreg=0"},
    {"reduce, column split", FIRST, "P=5000 D=130",
     "reduce: column=1 threads=128 vector=4 unroll=4 split=16 cluster=0 maxnreg=0"},
    {"reduce, argmax", WHERE, "P=5000 D=64",
     "reduce: column=1 threads=256 vector=2 unroll=4 split=8 cluster=0 maxnreg=0"},
    {"reduce, argmax of f16", WHERE_F16, "P=5000 D=68",
     "reduce: column=1 threads=128 vector=4 unroll=8 split=8 cluster=0 maxnreg=0"},
    {"reduce, argmin of bf16", WHERE_BF16, "P=5000 D=66",
     "reduce: column=1 threads=128 vector=2 unroll=16 split=1 cluster=0 maxnreg=0"},
    {"reduce, argmax of f16, any", WHERE_F16, "P=777 D=67",
     "reduce: column=1 threads=128 vector=4 unroll=8 split=2 cluster=0 maxnreg=0"},
    {"reduce, argmax of f16, cluster", WHERE_F16, "P=5000 D=65",
     "reduce: column=1 threads=256 vector=1 unroll=4 split=4 cluster=1 maxnreg=0"},
    {"reduce, row of a cluster", TOTAL, "N=100003",
     "reduce: column=0 threads=512 vector=4 unroll=4 split=8 cluster=1 maxnreg=0"},
    {"reduce, column, cluster", FIRST, "P=900 D=512",
     "reduce: column=1 threads=256 vector=4 unroll=4 split=8 cluster=1 maxnreg=0"},
    {"reduce, argmax, cluster", WHERE, "P=5000 D=65",
     "reduce: column=1 threads=256 vector=4 unroll=4 split=4 cluster=1 maxnreg=0"},
    {"reduce, argmax in a row", WHERE_LAST, "P=3 D=400000",
     "reduce: column=0 threads=256 vector=4 unroll=4 split=8 cluster=1 maxnreg=0"},
    {"reduce, row, batches", TOTAL, "N=1000003",
     "reduce: column=0 threads=256 vector=8 unroll=16 split=16 cluster=0 maxnreg=0"},
    {"reduce, column, batches", FIRST, "P=5000 D=131",
     "reduce: column=1 threads=256 vector=8 unroll=16 split=4 cluster=0 maxnreg=0"},
    {"reduce, argmax, batches", WHERE, "P=5000 D=65",
     "reduce: column=1 threads=128 vector=8 unroll=16 split=4 cluster=0 maxnreg=0"},
    {"rowwise, shared memory", SOFTMAX, "P=4 D=24576",
     "rowwise*4: threads=512 vector=8 hold=2 keep=0 cluster=1 shared=4 maxnreg=0"},
    {"rowwise, argmax, lanes", WHERE_LAST, "P=70 D=256",
     "rowwise: threads=16 vector=4 hold=4 keep=0 cluster=1 shared=0 maxnreg=0"},
    {"rowwise, argmax, read on", WHERE_LAST, "P=5 D=5001",
     "rowwise: threads=128 vector=4 hold=2 keep=0 cluster=1 shared=0 maxnreg=0"},
    {"reduce, argmax of two in a row", WHERE_CUBE, "A=3 B=401 C=1003",
     "reduce: column=0 threads=256 vector=4 unroll=4 split=8 cluster=0 maxnreg=0"},
    {"reduce, argmin of two, turned", WHERE_TURNED, "A=3 B=401 C=1003",
     "reduce: column=0 threads=256 vector=4 unroll=4 split=8 cluster=1 maxnreg=0"},
    {"reduce, argmax of two, columns", WHERE_OUTER, "A=50 B=100 C=65",
     "reduce: column=1 threads=256 vector=4 unroll=4 split=4 cluster=0 maxnreg=0"},
    {"rowwise, argmax of two", WHERE_CUBE, "A=70 B=16 C=16",
     "rowwise: threads=16 vector=4 hold=4 keep=0 cluster=1 shared=0 maxnreg=0"},
    {"rowwise, argmin of two, turned", WHERE_TURNED, "A=70 B=17 C=16",
     "rowwise: threads=128 vector=4 hold=1 keep=0 cluster=1 shared=0 maxnreg=0"},
    {"direct, argmax of two", WHERE_PART, "A=70 B=17 C=16", "direct: threads=128 maxnreg=0"},
    {"scan, lanes", CUMSUM "{ y[p, d] = sum(j <= d) x[p, j] }\n", "P=50 D=200",
     "scan: threads=16 vector=4 hold=2 cluster=1 chunk=0 maxnreg=0"},
    {"scan, block", CUMSUM "{ y[p, d] = sum(j <= d) x[p, j] }\n", "P=5 D=10000",
     "scan: threads=256 vector=4 hold=4 cluster=1 chunk=0 maxnreg=0"},
    {"scan, backward", CUMSUM "{ y[p, d] = sum(j > d) x[p, j] }\n", "P=5 D=3001",
     "scan: threads=128 vector=4 hold=2 cluster=1 chunk=0 maxnreg=0"},
    {"scan, cluster", CUMSUM "{ y[p, d] = sum(j <= d) x[p, j] }\n", "P=3 D=40000",
     "scan: threads=256 vector=4 hold=2 cluster=4 chunk=0 maxnreg=0"},
    {"scan, chunks", CUMSUM "{ y[p, d] = sum(j <= d) x[p, j] }\n", "P=3 D=100000",
     "scan: threads=256 vector=4 hold=2 cluster=1 chunk=16384 maxnreg=0"},
    {"scan, rows within vectors", CUMSUM "{ y[p, d] = sum(j <= d) x[p, j] }\n", "P=50 D=75 T=f16",
     "scan: threads=8 vector=8 hold=1 cluster=1 chunk=0 maxnreg=0"},
    {"scan, backward, within vectors", CUMSUM "{ y[p, d] = max(j >= d) x[p, j] }\n",
     "P=50 D=75 T=f16", "scan: threads=8 vector=8 hold=2 cluster=1 chunk=0 maxnreg=0"},
    {"scan, cluster, within vectors", CUMSUM "{ y[p, d] = sum(j < d) x[p, j] }\n", "P=3 D=40001",
     "scan: threads=256 vector=4 hold=2 cluster=4 chunk=0 maxnreg=0"},
    {"scan, columns", DOWN, "P=500 D=260",
     "scan: threads=128 vector=4 hold=4 cluster=1 chunk=0 maxnreg=0"},
    {"scan, columns, warps below each other", DOWN, "P=500 D=260",
     "scan: threads=256 vector=2 hold=4 cluster=1 chunk=0 maxnreg=0 rows=8"},
    {"scan, columns, rows of a warp", DOWN, "P=700 D=6",
     "scan: threads=128 vector=2 hold=2 cluster=1 chunk=0 maxnreg=0 rows=32"},
    {"scan, one column", DOWN, "P=5000 D=1",
     "scan: threads=256 vector=1 hold=4 cluster=1 chunk=1024 maxnreg=0 rows=256"},
    {"scan, places of maxima",
     "op down(x: f32[P, D]) -> (y: i64[P, D])\n"
     "{ y[p, d] = argmax(j <= p) x[j, d] }\n",
     "P=500 D=36", "scan: threads=128 vector=4 hold=2 cluster=1 chunk=64 maxnreg=0 rows=16"},
    {"scan, before the element, with what follows",
     "op down(x: f32[A, B, C]) -> (y: f32[A, B, C])\n"
     "{ s[a, b in 0..B, c] = sum(j < b) x[a, j, c]\n  y[a, b, c] = s[a, b, c] + x[a, b, c] }\n",
     "A=3 B=300 C=10", "scan*2: threads=64 vector=2 hold=2 cluster=1 chunk=0 maxnreg=0 rows=16"},
#include "cuda_form_wgmma_rows.h"
    {"scan, columns in chunks", DOWN, "P=500 D=130",
     "scan: threads=64 vector=2 hold=4 cluster=1 chunk=64 maxnreg=0 rows=2"},
    {"mma", MATMUL, "M=300 N=520 K=264 T=f16",
     "contract/mma*2: " MMA_CONFIG("128", "128", "32", "4", "1", "0")},
    {"mma, bf16", MATMUL, "M=70 N=136 K=200 T=bf16",
     "contract/mma*2: " MMA_CONFIG("64", "64", "64", "3", "1", "1")},
    {"mma, odd lines", MATMUL, "M=129 N=131 K=301 T=f16",
     "contract/mma*2: " MMA_CONFIG("64", "128", "32", "3", "1", "0")},
    {"mma, lines of words", MATMUL, "M=65 N=250 K=404 T=f16",
     "contract/mma*2: " MMA_CONFIG("64", "64", "32", "3", "1", "0")},
    {"mma, transposed", TURNED_MATMUL, "B=3 M=72 N=100 K=96 T=f16",
     "contract/mma: " MMA_CONFIG("64", "32", "32", "3", "1", "0")},
    {"mma, cluster", MATMUL, "M=5 N=200 K=2000 T=f16",
     "contract/mma*2: " MMA_CONFIG("16", "64", "64", "5", "4", "0")},
    {"mma, split-K", MATMUL, "M=17 N=130 K=3001 T=f16",
     "contract/mma*2: " MMA_CONFIG("16", "128", "64", "3", "16", "0")},
    {"mma, f32", MATMUL, "M=200 N=260 K=516 T=f32",
     "contract/mma*2: " MMA_CONFIG("128", "64", "32", "3", "1", "0")},
    {"mma, f32, transposed", TURNED_MATMUL, "B=2 M=65 N=67 K=133 T=f32",
     "contract/mma: " MMA_CONFIG("32", "64", "16", "4", "1", "1")},
    {"mma, f32, cluster", MATMUL, "M=31 N=64 K=1024 T=f32",
     "contract/mma*2: " MMA_CONFIG("32", "32", "32", "3", "8", "0")},
    {"mma, f32, small K", TURNED_MATMUL, "B=2 M=13 N=5 K=70 T=f32",
     "contract/mma: " MMA_CONFIG("16", "16", "32", "3", "2", "0")},
    {"mma, f32, K = 0", TURNED_MATMUL, "B=2 M=13 N=5 K=0 T=f32",
     "contract/mma: " MMA_CONFIG("16", "16", "32", "3", "1", "0")},
    {"mma, f32, empty slices", TURNED_MATMUL, "B=2 M=40 N=70 K=1100 T=f32",
     "contract/mma: " MMA_CONFIG("64", "64", "32", "3", "16", "0")},
    {"wgmma_f32", PRODUCT_NT, "T=f32 M=300 N=264 K=200",
     "contract/wgmma_f32: " F32_CONFIG("tile_m=128 tile_n=128", "4", "1", "0")},
    {"wgmma_f32, several tiles each", PRODUCT_NN, "T=f32 M=1300 N=2000 K=68",
     "contract/wgmma_f32: " F32_CONFIG("tile_m=128 tile_n=128", "4", "1", "1")},
    {"wgmma_f32, odd", PRODUCT_NN, "T=f32 M=77 N=131 K=203",
     "contract/wgmma_f32: " F32_CONFIG("tile_m=128 tile_n=128", "4", "1", "0")},
    {"wgmma_f32, transposed", PRODUCT_TT, "T=f32 M=131 N=257 K=97",
     "contract/wgmma_f32: " F32_CONFIG("tile_m=64 tile_n=64", "8", "1", "0")},
    {"wgmma_f32, wide", PRODUCT_TN, "T=f32 M=200 N=520 K=328",
     "contract/wgmma_f32: " F32_CONFIG("tile_m=128 tile_n=192", "3", "1", "0")},
    {"wgmma_f32, K = 1 tile", PRODUCT_NN, "T=f32 M=130 N=70 K=1",
     "contract/wgmma_f32: " F32_CONFIG("tile_m=128 tile_n=64", "5", "1", "0")},
    {"wgmma_f32, K = 0", PRODUCT_NN, "T=f32 M=130 N=70 K=0",
     "contract/wgmma_f32: " F32_CONFIG("tile_m=128 tile_n=64", "5", "1", "0")},
    {"wgmma_f32, epilogue", MATMUL, "M=200 N=260 K=516 T=f32",
     "contract/wgmma_f32*2: " F32_CONFIG("tile_m=64 tile_n=128", "5", "1", "0")},
    {"wgmma_f32, two outputs", LAYER, "T=f32 B=3 M=70 N=136 K=72",
     "contract/wgmma_f32*3: " F32_CONFIG("tile_m=128 tile_n=128", "4", "1", "0")},
    {"wgmma_f32, batches", TURNED_MATMUL, "B=5 M=65 N=67 K=133 T=f32",
     "contract/wgmma_f32: " F32_CONFIG("tile_m=64 tile_n=192", "4", "1", "1")},
    {"wgmma_f32, split-K", STACK, "T=f32 B=2 M=70 N=72 K=3000",
     "contract/wgmma_f32: " F32_CONFIG("tile_m=64 tile_n=64", "8", "16", "0")},
    {"wgmma_f32, empty slices", MATMUL, "M=31 N=64 K=321 T=f32",
     "contract/wgmma_f32*2: " F32_CONFIG("tile_m=64 tile_n=64", "8", "8", "0")},
    {"wgmma_f32, images", PIXELS, "N=9 C=33 P=12 O=13 T=f32",
     "contract/wgmma_f32: " F32_CONFIG("tile_m=64 tile_n=128", "5", "1", "0")},
    {"wgmma_f32, f32 by f16", MIXED, "S=f32 T=f16 M=300 N=264 K=200",
     "contract/wgmma_f32: " F32_CONFIG("tile_m=128 tile_n=128", "4", "1", "0")},
    {"wgmma_f32, f16 by f32, odd", MIXED, "S=f16 T=f32 M=77 N=131 K=203",
     "contract/wgmma_f32: " F32_CONFIG("tile_m=64 tile_n=128", "5", "1", "0")},
    {"wgmma_f32, f32 by bf16", MIXED, "S=f32 T=bf16 M=200 N=520 K=328",
     "contract/wgmma_f32: " F32_CONFIG("tile_m=128 tile_n=192", "3", "1", "1")},
    {"wgmma_f32, f16 by bf16", MIXED, "S=f16 T=bf16 M=300 N=70 K=1000",
     "contract/wgmma_f32: " F32_CONFIG("tile_m=64 tile_n=64", "8", "4", "0")},
    {"wgmma_f32, i8 by f16", MIXED, "S=u8 T=f16 M=130 N=264 K=200",
     "contract/wgmma_f32: " F32_CONFIG("tile_m=128 tile_n=128", "8", "1", "0")},
    {"wgmma_f32, i8 by bf16", MIXED, "S=u8 T=bf16 M=131 N=77 K=97",
     "contract/wgmma_f32: " F32_CONFIG("tile_m=128 tile_n=64", "8", "1", "0")},
    {"wgmma_f32, computed", COMPUTED, "B=3 M=70 N=136 K=330 T=f16",
     "contract/wgmma_f32: " F32_CONFIG("tile_m=128 tile_n=128", "4", "1", "0")},
    {"wgmma_f32, computed, f32", COMPUTED, "B=2 M=131 N=67 K=200 T=f32",
     "contract/wgmma_f32: " F32_CONFIG("tile_m=64 tile_n=64", "8", "2", "0")},
    {"wgmma_f32, chosen", CHOSEN, "M=300 N=264 K=200 T=f16",
     "contract/wgmma_f32: " F32_CONFIG("tile_m=128 tile_n=128", "8", "1", "0")},
    {"wgmma_f32, chosen, bf16", CHOSEN, "M=77 N=131 K=203 T=bf16",
     "contract/wgmma_f32: " F32_CONFIG("tile_m=64 tile_n=64", "8", "2", "0")},
    {"wgmma_f32, 8-bit weights", WEIGHTS, "T=f16 M=200 N=136 K=300",
     "contract/wgmma_f32: " F32_CONFIG("tile_m=128 tile_n=64", "4", "1", "0")},
    {"wgmma behind wgmma", LAYERS, "M=300 K=200 H=264 N=136 T=f16",
     WGMMA_2("tile_m=128 tile_n=128 tile_k=64 stages=4",
             PLAIN) "; " WGMMA("tile_m=128 tile_n=64 tile_k=64 stages=4", PLAIN)},
    {"wgmma behind wgmma, odd", LAYERS, "M=77 K=131 H=203 N=65 T=bf16",
     WGMMA_2("tile_m=64 tile_n=64 tile_k=64 stages=4",
             PLAIN) "; " WGMMA("tile_m=64 tile_n=64 tile_k=64 stages=4", PLAIN)},
    {"mma behind mma", LAYERS, "M=130 K=200 H=264 N=136 T=f16",
     "contract/mma*2: " MMA_CONFIG("64", "64", "32", "3", "1", "0") "; contract/mma: " MMA_CONFIG(
         "64", "64", "32", "3", "1", "0")},
    {"mma_i8", BYTES, "S=i8 T=i8 B=2 M=272 N=288 K=320",
     "contract/mma_i8*4: " I8_CONFIG("128", "128", "64", "1", "0")},
    {"mma_i8, odd", BYTES, "S=u8 T=i8 B=3 M=77 N=131 K=203",
     "contract/mma_i8*4: " I8_CONFIG("64", "64", "128", "1", "1")},
    {"mma_i8, split-K", BYTES, "S=i8 T=u8 B=1 M=32 N=64 K=3008",
     "contract/mma_i8*4: " I8_CONFIG("16", "64", "128", "4", "0")},
    {"mma_i8, long sums", BYTES, "S=u8 T=u8 B=1 M=48 N=80 K=98320",
     "contract/mma_i8*4: " I8_CONFIG("32", "64", "64", "1", "0")},
    {"mma_i8, long sums, odd", BYTES, "S=i8 T=i8 B=1 M=17 N=33 K=70001",
     "contract/mma_i8*4: " I8_CONFIG("16", "64", "64", "1", "0")},
    {"mma_i8, transposed", BYTES_TURNED, "S=i8 T=i8 M=144 N=160 K=208",
     "contract/mma_i8: " I8_CONFIG("128", "64", "64", "1", "0")},
    {"mma_i8, transposed, odd", BYTES_TURNED, "S=u8 T=u8 M=65 N=39 K=99",
     "contract/mma_i8: " I8_CONFIG("32", "32", "128", "1", "0")},
    {"mma_i8, transposed, long sums", BYTES_TURNED, "S=u8 T=i8 M=64 N=32 K=65552",
     "contract/mma_i8: " I8_CONFIG("64", "32", "128", "1", "0")},
    {"mma, images side by side", PIXELS, "N=7 C=40 P=6 O=13 T=f16",
     "contract/mma: " MMA_CONFIG("16", "64", "32", "3", "1", "0")},
    {"mma, f32, images", PIXELS, "N=9 C=33 P=12 O=13 T=f32",
     "contract/mma: " MMA_CONFIG("16", "32", "16", "3", "1", "1")},
    {"tile, nn", PRODUCT_NN, "T=f32 M=256 N=384 K=200",
     "contract/tile: tile_m=128 tile_n=128 tile_k=16 split_k=1" RASTER_0},
    {"tile, nt, unaligned", PRODUCT_NT, "T=f16 M=131 N=77 K=101",
     "contract/tile: tile_m=64 tile_n=64 tile_k=16 split_k=2" RASTER_0},
    {"tile, tt", PRODUCT_TT, "T=f64 M=136 N=80 K=144",
     "contract/tile: tile_m=64 tile_n=64 tile_k=8 split_k=1 raster=1 maxnreg=0"},
    {"tile, layer", LAYER, "T=bf16 B=2 M=40 N=72 K=64",
     "contract/tile*3: tile_m=32 tile_n=64 tile_k=32 split_k=1" RASTER_0},
    {"tile, stack", STACK, "T=f16 B=5 M=33 N=40 K=48",
     "contract/tile: tile_m=32 tile_n=32 tile_k=16 split_k=2" RASTER_0},
    {"tile, formula", WEIGHTS, "T=f16 M=40 N=72 K=130",
     "contract/tile: tile_m=32 tile_n=64 tile_k=16 split_k=1" RASTER_0},
    {"tile, integers", WHOLE_NUMBERS, "M=64 N=96 K=80",
     "contract/tile: tile_m=64 tile_n=64 tile_k=16 split_k=1" RASTER_0},
    {"thin, K-major", PRODUCT_NT, "T=f16 M=5 N=517 K=4104",
     "contract/thin: tile_m=8 tile_n=4 tile_k=2048 stages=2 split_k=1 swap=0 maxnreg=0"},
    {"thin, K-major, split-K", PRODUCT_NT, "T=bf16 M=1 N=130 K=8192",
     "contract/thin: tile_m=1 tile_n=8 tile_k=1024 stages=2 split_k=4 swap=0 maxnreg=0"},
    {"thin, short sums", PRODUCT_NT, "T=f16 M=2 N=999 K=64",
     "contract/thin: tile_m=2 tile_n=64 tile_k=64 stages=1 split_k=1 swap=0 maxnreg=0"},
    {"thin, N-major", PRODUCT_NN, "T=f16 M=3 N=520 K=1000",
     "contract/thin: tile_m=4 tile_n=64 tile_k=32 stages=4 split_k=2 swap=0 maxnreg=0"},
    {"thin, N-major, unaligned", PRODUCT_NN, "T=f32 M=8 N=501 K=333",
     "contract/thin: tile_m=8 tile_n=64 tile_k=16 stages=2 split_k=1 swap=0 maxnreg=0"},
    {"thin, few columns", PRODUCT_NT, "T=f16 M=700 N=2 K=4096",
     "contract/thin: tile_m=2 tile_n=4 tile_k=2048 stages=2 split_k=1 swap=1 maxnreg=0"},
    {"thin, B alone in vectors", PRODUCT_NN, "T=f16 M=700 N=2 K=4096",
     "contract/thin: tile_m=2 tile_n=4 tile_k=2048 stages=2 split_k=1 swap=1 maxnreg=0"},
    {"thin, vector", MATRIX_VECTOR, "T=f64 M=300 K=2050",
     "contract/thin: tile_m=1 tile_n=4 tile_k=512 stages=2 split_k=1 swap=0 maxnreg=0"},
    {"thin, formula", WEIGHTS, "T=f16 M=4 N=300 K=500",
     "contract/thin: tile_m=4 tile_n=64 tile_k=16 stages=2 split_k=2 swap=0 maxnreg=0"},
    {"thin, integers", WHOLE_NUMBERS, "M=2 N=256 K=500",
     "contract/thin: tile_m=2 tile_n=64 tile_k=64 stages=1 split_k=1 swap=0 maxnreg=0"},
#include "cuda_form_weight_rows.h"
};

enum { FORM_COUNT = sizeof forms / sizeof forms[0] };

#endif
