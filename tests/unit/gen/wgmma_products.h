// The products that the tests of wgmma use.

#ifndef KG_TESTS_WGMMA_PRODUCTS_H
#define KG_TESTS_WGMMA_PRODUCTS_H

#define WHERE "where T in f16 bf16 f32 f64\n"

static const char definitions[] =
    "op nn(a: T[M, K], b: T[K, N]) -> (c: T[M, N]) " WHERE
    "{ c[m, n] = sum(k) a[m, k] * b[k, n] }\n"
    "op nt(a: T[M, K], b: T[N, K]) -> (c: T[M, N]) " WHERE
    "{ c[m, n] = sum(k) a[m, k] * b[n, k] }\n"
    "op tn(a: T[K, M], b: T[K, N]) -> (c: T[M, N]) " WHERE
    "{ c[m, n] = sum(k) a[k, m] * b[k, n] }\n"
    "op tt(a: T[K, M], b: T[N, K]) -> (c: T[M, N]) " WHERE
    "{ c[m, n] = sum(k) a[k, m] * b[n, k] }\n"
    "op wide(a: T[M, K], b: T[K, N]) -> (c: f32[M, N]) " WHERE
    "{ c[m, n] = sum(k) a[m, k] * b[k, n] }\n"
    "op narrow(a: T[M, K], b: T[K, N]) -> (c: f16[M, N]) " WHERE
    "{ c[m, n] = sum(k) a[m, k] * b[k, n] }\n"
    "op scaled(a: T[M, K], b: T[K, N], s: T[K]) -> (c: T[M, N]) " WHERE
    "{ c[m, n] = sum(k) (a[m, k] * s[k]) * b[k, n] }\n"
    "op whole(a: i8[M, K], b: i8[K, N]) -> (c: i32[M, N])\n"
    "{ c[m, n] = sum(k) a[m, k] * b[k, n] }\n"
    "op mixed(a: f16[M, K], b: bf16[K, N]) -> (c: f32[M, N])\n"
    "{ c[m, n] = sum(k) a[m, k] * b[k, n] }\n"
    "op linear(x: T[B, M, K], w: T[N, K], v: T[N], r: T[B, M, N]) -> (y: T[B, M, N]) " WHERE
    "{ t[b, m, n] = sum(k) x[b, m, k] * w[n, k]\n"
    "  y[b, m, n] = gelu(t[b, m, n] + v[n]) + r[b, m, n] }\n"
    "op batches(a: T[B, M, K], b: T[B, N, K]) -> (s: f32[B, M, N], y: T[B, M, N]) " WHERE
    "{ s[b, m, n] = sum(k) a[b, m, k] * b[b, n, k]\n  y[b, m, n] = relu(s[b, m, n]) }\n"
    "op own(x: T[B, M, K], w: T[N, K], v: T[N], s: f32[B, M], z: f32[N]) -> (y: T[B, M, N]) " WHERE
    "{ t[b, m, n] = sum(k) x[b, m, k] * w[n, k]\n"
    "  y[b, m, n] = gelu_tanh(t[b, m, n] * s[b, m] + v[n]) * z[n] }\n"
    "op bias(x: T[M, K], w: T[N, K], v: T[N]) -> (y: T[M, N]) " WHERE
    "{ y[m, n] = gelu((sum(k) x[m, k] * w[n, k]) + v[n]) }\n"
    "op turned(x: T[M, K], w: T[N, K], v: T[N]) -> (y: T[M, N]) " WHERE
    "{ y[m, n] = where(n <= m, (sum(k) x[m, k] * w[n, k]) + v[n], 0) }\n";

#endif
