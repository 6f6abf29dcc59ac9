"""The Triton kernels of the table, as a careful person writes them by hand.

Each function here takes tensors and launches; nothing is searched. What is constant for a case is
constant for the compiler too, so that divisions are cheap.
"""

import torch
import triton
import triton.language as tl


# ---- Element by element ----


@triton.jit
def gelu(x):
    return 0.5 * x * (1.0 + tl.math.erf(x * 0.7071067811865476))


@triton.jit
def pointwise_kernel(y, x, a, b, n, INNER: tl.constexpr, COUNT: tl.constexpr, TAIL: tl.constexpr,
                     KIND: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    v = tl.load(x + at, inside).to(tl.float32)
    if KIND == "masked_fill":
        v = tl.where(tl.load(a + at, inside) != 0, -1.0, v)
    else:
        along = (at // INNER) % COUNT
        if TAIL > 1:
            along = along * TAIL + at % TAIL
        p = tl.load(a + along, inside).to(tl.float32)
        if KIND == "scale_shift":
            v = v * p + tl.load(b + along, inside).to(tl.float32)
        else:
            v = v + p
    if KIND == "relu":
        v = tl.maximum(v, 0.0)
    if KIND == "gelu":
        v = gelu(v)
    tl.store(y + at, v.to(y.dtype.element_ty), inside)


def pointwise(kind, y, x, a, b=None, inner=1, count=1, tail=1):
    """y = kind(x, a[(i // inner) % count * tail + i % tail]): a repeated along the other axes."""
    n, block = x.numel(), 1024
    if kind == "masked_fill":
        a = a.view(torch.uint8)
    pointwise_kernel[(triton.cdiv(n, block),)](y, x, a, a if b is None else b, n, inner, count,
                                               tail, kind, block, num_warps=4)


# ---- Row by row ----


@triton.jit
def finish_row(v, inside, columns, total, gamma, beta, KIND: tl.constexpr):
    if KIND == "softmax" or KIND == "log_softmax":
        v = v - tl.max(tl.where(inside, v, -float("inf")), 0)
        e = tl.where(inside, tl.exp(v), 0.0)
        if KIND == "softmax":
            return e / tl.sum(e, 0)
        return v - tl.log(tl.sum(e, 0))
    if KIND == "layer_norm":
        v = v - tl.sum(v, 0) / total
    square = tl.sum(tl.where(inside, v * v, 0.0), 0) / total
    g = tl.load(gamma + columns, inside).to(tl.float32)
    if KIND == "rms_norm":
        return v * tl.rsqrt(square + 1e-6) * g
    return v * tl.rsqrt(square + 1e-5) * g + tl.load(beta + columns, inside).to(tl.float32)


@triton.jit
def short_rows_kernel(y, x, gamma, beta, d, KIND: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * d
    columns = tl.arange(0, BLOCK)
    inside = columns < d
    v = tl.load(x + row + columns, inside, other=0.0).to(tl.float32)
    v = finish_row(v, inside, columns, d, gamma, beta, KIND)
    tl.store(y + row + columns, v.to(y.dtype.element_ty), inside)


@triton.jit
def long_rows_kernel(y, x, gamma, beta, d, KIND: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * d
    lanes = tl.arange(0, BLOCK)
    first = tl.full([BLOCK], -float("inf") if KIND == "softmax" or KIND == "log_softmax" else 0.0,
                    tl.float32)
    second = tl.zeros([BLOCK], tl.float32)
    for start in range(0, d, BLOCK):
        v = tl.load(x + row + start + lanes).to(tl.float32)
        if KIND == "softmax" or KIND == "log_softmax":
            most = tl.maximum(first, v)
            second = second * tl.exp(first - most) + tl.exp(v - most)
            first = most
        else:
            first += v
            second += v * v
    if KIND == "softmax" or KIND == "log_softmax":
        most = tl.max(first, 0)
        total = tl.sum(second * tl.exp(first - most), 0)
        logarithm = tl.log(total)
    else:
        mean = tl.sum(first, 0) / d
        square = tl.sum(second, 0) / d
        if KIND == "rms_norm":
            mean = 0.0
            scale = tl.rsqrt(square + 1e-6)
        else:
            scale = tl.rsqrt(square - mean * mean + 1e-5)
    for start in range(0, d, BLOCK):
        v = tl.load(x + row + start + lanes, eviction_policy="evict_first").to(tl.float32)
        if KIND == "softmax":
            v = tl.exp(v - most) / total
        elif KIND == "log_softmax":
            v = v - most - logarithm
        else:
            v = (v - mean) * scale * tl.load(gamma + start + lanes).to(tl.float32)
            if KIND == "layer_norm":
                v += tl.load(beta + start + lanes).to(tl.float32)
        tl.store(y + row + start + lanes, v.to(y.dtype.element_ty))


def rows(kind, y, x, gamma=None, beta=None):
    p, d = x.shape
    gamma = x if gamma is None else gamma
    beta = gamma if beta is None else beta
    if d <= 32768:
        warps = 1 if d <= 512 else 4 if d <= 2048 else 8 if d <= 8192 else 32
        short_rows_kernel[(p,)](y, x, gamma, beta, d, kind, triton.next_power_of_2(d),
                                num_warps=warps)
    else:
        long_rows_kernel[(p,)](y, x, gamma, beta, d, kind, 8192, num_warps=16)


# ---- Reductions ----


@triton.jit
def neutral(KIND: tl.constexpr):
    return -float("inf") if KIND == "max" or KIND == "argmax" else 0.0


@triton.jit
def fold(v, KIND: tl.constexpr):
    if KIND == "max" or KIND == "argmax":
        return tl.max(v, 0)
    return tl.sum(v, 0)


@triton.jit
def last_axis_kernel(y, x, d, KIND: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * d
    lanes = tl.arange(0, BLOCK)
    best = tl.full([BLOCK], neutral(KIND), tl.float32)
    place = tl.zeros([BLOCK], tl.int32)
    for start in range(0, d, BLOCK):
        at = start + lanes
        v = tl.load(x + row + at, at < d, other=neutral(KIND)).to(tl.float32)
        if KIND == "argmax":
            place = tl.where(v > best, at, place)
        best = tl.maximum(best, v) if KIND == "max" or KIND == "argmax" else best + v
    total = fold(best, KIND)
    if KIND == "argmax":
        tl.store(y + tl.program_id(0), tl.min(tl.where(best == total, place, d), 0).to(tl.int64))
    else:
        total = total / d if KIND == "mean" else total
        tl.store(y + tl.program_id(0), total.to(y.dtype.element_ty))


@triton.jit
def columns_kernel(values, places, x, rows_each, d, c, KIND: tl.constexpr, HIGH: tl.constexpr,
                   WIDE: tl.constexpr):
    part, outer = tl.program_id(1), tl.program_id(2).to(tl.int64)
    columns = tl.program_id(0) * WIDE + tl.arange(0, WIDE)
    lanes = tl.arange(0, HIGH)
    best = tl.full([HIGH, WIDE], neutral(KIND), tl.float32)
    place = tl.zeros([HIGH, WIDE], tl.int32)
    for start in range(part * rows_each, (part + 1) * rows_each, HIGH):
        row = (start + lanes)[:, None]
        v = tl.load(x + outer * d * c + row.to(tl.int64) * c + columns[None, :]).to(tl.float32)
        if KIND == "argmax":
            place = tl.where(v > best, row, place)
        best = tl.maximum(best, v) if KIND == "max" or KIND == "argmax" else best + v
    total = fold(best, KIND)
    at = (part * tl.num_programs(2) + outer) * c + columns
    tl.store(values + at, total)
    if KIND == "argmax":
        tl.store(places + at, tl.min(tl.where(best == total[None, :], place, d), 0))


@triton.jit
def finish_columns_kernel(y, values, places, parts, n, d, KIND: tl.constexpr, HIGH: tl.constexpr,
                          WIDE: tl.constexpr):
    columns = tl.program_id(0) * WIDE + tl.arange(0, WIDE)
    lanes = tl.arange(0, HIGH)
    at = lanes[:, None] * n + columns[None, :]
    inside = (lanes < parts)[:, None] & (columns < n)[None, :]
    v = tl.load(values + at, inside, other=neutral(KIND))
    total = fold(v, KIND)
    if KIND == "argmax":
        place = tl.load(places + at, inside, other=d)
        found = tl.min(tl.where(v == total[None, :], place, d), 0)
        tl.store(y + columns, found.to(tl.int64), columns < n)
    else:
        total = total / d if KIND == "mean" else total
        tl.store(y + columns, total.to(y.dtype.element_ty), columns < n)


@triton.jit
def flat_kernel(values, x, t, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        inside = start + lanes < n
        v = tl.load(x + start + lanes, inside, other=0.0).to(tl.float32)
        if KIND != "sum":
            v -= tl.load(t + start + lanes, inside, other=0.0).to(tl.float32)
            if KIND == "mse":
                v *= v
            else:
                v = tl.abs(v)
                v = tl.where(v < 1.0, 0.5 * v * v, v - 0.5)
        total += v
    tl.store(values + tl.program_id(0), tl.sum(total, 0))


def last_axis(kind, y, x):
    p, d = x.shape
    last_axis_kernel[(p,)](y, x, d, kind, min(4096, triton.next_power_of_2(d)), num_warps=4)


def middle_axis(kind, y, x, scratch):
    """Of x[a, d, c] over d; c is a multiple of 128, d of 2048."""
    a, d, c = x.shape
    wide, high = 128, 32
    parts = max(1, min(d // 512, 64, 2048 // (a * (c // wide))))
    values, places = scratch
    columns_kernel[(c // wide, parts, a)](values, places, x, d // parts, d, c, kind, high, wide,
                                          num_warps=4)
    finish_columns_kernel[(triton.cdiv(a * c, 64),)](y, values, places, parts, a * c, d, kind,
                                                     triton.next_power_of_2(parts), 64,
                                                     num_warps=4)


def everything(kind, y, x, t, scratch):
    n, values = x.numel(), scratch[0]
    programs = min(132 * 8, triton.cdiv(n, 4096))
    flat_kernel[(programs,)](values, x, x if t is None else t, n, kind, 4096, num_warps=8)
    divisor = 1 if kind == "sum" else n
    finish_columns_kernel[(1,)](y, values, values, programs, 1, divisor,
                                "sum" if kind == "sum" else "mean",
                                triton.next_power_of_2(programs), 1, num_warps=4)


# ---- Running sums, transposes ----


@triton.jit
def cumsum_kernel(y, x, d, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * d
    lanes = tl.arange(0, BLOCK)
    carry = 0.0
    for start in range(0, d, BLOCK):
        v = tl.load(x + row + start + lanes).to(tl.float32)
        tl.store(y + row + start + lanes, (carry + tl.cumsum(v, 0)).to(y.dtype.element_ty))
        carry += tl.sum(v, 0)


def cumsum(y, x):
    p, d = x.shape
    cumsum_kernel[(p,)](y, x, d, 4096, num_warps=8)


@triton.jit
def transpose_kernel(y, x, m, n, SIDE: tl.constexpr):
    base = tl.program_id(2).to(tl.int64) * m * n
    rows = tl.program_id(1) * SIDE + tl.arange(0, SIDE)
    columns = tl.program_id(0) * SIDE + tl.arange(0, SIDE)
    inside = (rows < m)[:, None] & (columns < n)[None, :]
    v = tl.load(x + base + rows[:, None].to(tl.int64) * n + columns[None, :], inside)
    tl.store(y + base + columns[:, None].to(tl.int64) * m + rows[None, :], tl.trans(v),
             tl.trans(inside))


def transpose(y, x, batch, m, n):
    """y[b, n, m] = x[b, m, n]"""
    side = 64
    grid = (triton.cdiv(n, side), triton.cdiv(m, side), batch)
    transpose_kernel[grid](y, x, m, n, side, num_warps=8)


@triton.jit
def swap_kernel(y, x, l, h, HIGH: tl.constexpr, E: tl.constexpr):
    b, head = tl.program_id(2).to(tl.int64), tl.program_id(1)
    rows = tl.program_id(0) * HIGH + tl.arange(0, HIGH)
    lanes = tl.arange(0, E)
    inside = (rows < l)[:, None] & (lanes < E)[None, :]
    v = tl.load(x + ((b * l + rows[:, None]) * h + head) * E + lanes[None, :], inside)
    tl.store(y + ((b * h + head) * l + rows[:, None]) * E + lanes[None, :], v, inside)


def swap_axes(y, x):
    """y[b, h, l, e] = x[b, l, h, e]"""
    b, l, h, e = x.shape
    swap_kernel[(triton.cdiv(l, 32), h, b)](y, x, l, h, 32, e, num_warps=4)


# ---- What memory gives when it is only read ----


@triton.jit
def read_kernel(out, x, n, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    at = tl.program_id(0) * (BLOCK * STEPS) + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.int32)
    for step in tl.static_range(STEPS):
        total ^= tl.load(x + at + step * BLOCK, at + step * BLOCK < n, other=0)
    tl.store(out + tl.program_id(0), tl.xor_sum(total, 0))


def read(out, x, shape):
    block, steps, warps = shape
    n = x.numel()
    read_kernel[(triton.cdiv(n, block * steps),)](out, x, n, block, steps, num_warps=warps)


READ_SHAPES = [(1024, 2, 8), (1024, 4, 4), (2048, 4, 8)]
