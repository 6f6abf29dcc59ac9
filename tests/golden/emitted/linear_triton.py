"""linear: an operator

The definition:

    y[m, n] = relu(sum(k) x[m, k] * (w[n, k] * s[n]) + bias[n])

Kernels:

    _linear_kernel: tiles of the product by tl.dot, summed in float32

The narrow floats are computed in float32 and rounded once, when they are stored.

On Ascend (device npu):

    grid: checked at each launch, at most 65535 programs
    products: the buffers of the cube unit are not accounted for
    tails: blocks are powers of two; rows whose stride is a multiple of 32 bytes are aligned
    slow: 64-bit integers are computed one by one
"""

from __future__ import annotations

import contextlib
import math
import os
import typing

import torch
import triton
import triton.language as tl


@triton.jit
def _relu(x):
    """NaN stays NaN."""
    return tl.where(x < 0, 0, x)


# Triton's interpreter multiplies the bits of bfloat16 instead of its values.
_INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET", "0") == "1")

@triton.jit
def _dot(a, b, total):
    if _INTERPRETED:
        a = a.to(tl.float32)
        b = b.to(tl.float32)
    return tl.dot(a, b, total, input_precision="ieee")


@triton.jit
def _load_u4(pointer, offset, mask):
    """Two elements a byte, the even one in the low half."""
    byte = tl.load(pointer + offset // 2, mask=mask, other=0).to(tl.int64)
    return (byte >> (offset % 2 * 4)) & 15


@triton.jit
def _linear_kernel(
    x_ptr, w_ptr, s_ptr, bias_ptr, y_ptr, x_s0, x_s1, w_s0, w_s1, s_s0, bias_s0, y_s0, y_s1, M, K,
    N, INDEX: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """y_1[m, n] = sum(k) x[m, k] * (w[n, k] * s[n])
    y[m, n] = relu(y_1[m, n] + bias[n])
    """
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    # Eight rows of tiles at a time: their programs share columns in the cache.
    first_m = pid // (8 * tiles_n) * 8
    height = tl.minimum(tiles_m - first_m, 8)
    m = ((first_m + pid % (8 * tiles_n) % height).to(INDEX) * BLOCK_M + tl.arange(0, BLOCK_M))[:,
            None]
    m_in = m < M
    n = ((pid % (8 * tiles_n) // height).to(INDEX) * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    n_in = n < N
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, K, BLOCK_K):
        k = tl.cast(start, INDEX) + tl.arange(0, BLOCK_K)
        k_in = k < K
        k_a = k[None, :]
        x = tl.load(x_ptr + m * x_s0 + k_a * x_s1, mask=m_in & k_in[None, :],
                other=0).to(tl.float32)
        k_b = k[:, None]
        w = _load_u4(w_ptr, n * w_s0 + k_b * w_s1, n_in & k_in[:, None]).to(tl.int64)
        s = tl.load(s_ptr + n * s_s0, mask=n_in, other=0).to(tl.float32)
        b = tl.where(n_in & k_in[:, None], w.to(tl.float32) * s, 0.0)
        total = _dot(x, b, total)
    y_1 = total
    bias = tl.load(bias_ptr + n * bias_s0, mask=n_in, other=0,
            eviction_policy="evict_last").to(tl.float32)
    tl.store(y_ptr + m * y_s0 + n * y_s1, _relu(y_1 + bias), mask=m_in & n_in)


def _check_grid(device: torch.device, grid: tuple) -> None:
    if device.type == "npu" and math.prod(grid) > 65535:
        raise ValueError(f"an Ascend device runs 65535 programs; {math.prod(grid)} are needed")


class _ProductTile(typing.NamedTuple):
    m: int
    n: int
    k: int
    warps: int


def _product_tile(m: int, n: int, k: int) -> _ProductTile:
    """128 x 128 outputs a program where there are enough of them, down to 16 x 16, which tl.dot
    needs."""
    height = min(max(triton.next_power_of_2(m), 16), 128 if n >= 128 else 64)
    width = min(max(triton.next_power_of_2(n), 16), 128)
    if triton.cdiv(m, height) * triton.cdiv(n, width) < 64:  # more programs instead
        height, width = min(height, 64), min(width, 64)
    depth = min(max(triton.next_power_of_2(k), 16), 64 if height * width <= 64 * 64 else 32)
    return _ProductTile(height, width, depth, 8 if height * width >= 128 * 128 else 4)


def _check(
    name: str, tensor: torch.Tensor, rank: int, dtypes: tuple, device: torch.device | None
) -> None:
    """Whether an input is what the kernels take; says what is wrong with it."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name}: a torch.Tensor is needed, and this is a {type(tensor).__name__}")
    if tensor.dtype not in dtypes:
        wanted = " or ".join(map(str, dtypes))
        raise TypeError(f"{name}: its dtype is {tensor.dtype}, and must be {wanted}")
    if rank >= 0 and tensor.dim() != rank:
        raise ValueError(f"{name}: it has {tensor.dim()} dimensions, and must have {rank}")
    if device is not None and tensor.device != device:
        raise ValueError(f"{name}: it is on {tensor.device}, and the first input on {device}")


def _check_shape(name: str, tensor: torch.Tensor, shape: tuple) -> None:
    if tuple(tensor.shape) != shape:
        raise ValueError(f"{name}: its shape is {tuple(tensor.shape)}, and must be {shape}")


def _check_packed(name: str, tensor: torch.Tensor, shape: tuple) -> None:
    """Elements of four bits: two a byte, row-major, without gaps."""
    count = (math.prod(shape) + 1) // 2
    if tensor.numel() != count or not tensor.is_contiguous():
        raise ValueError(
            f"{name}: {count} contiguous bytes are needed for {shape} elements of four bits, and "
            f"its shape is {tuple(tensor.shape)}"
        )


def _index_of(*tensors: torch.Tensor) -> tl.dtype:
    """Offsets need 64 bits where a tensor spans 2^31 elements."""
    spans = (sum((n - 1) * s for n, s in zip(t.shape, t.stride())) for t in tensors)
    most = max(max(spans), max(t.numel() for t in tensors))
    return tl.int64 if most >= 2**31 - 16384 else tl.int32


def _on(device: torch.device) -> typing.Any:
    """Launches go to the device that the tensors are on."""
    module = getattr(torch, device.type, None)
    if device.type == "cpu" or not hasattr(module, "device"):
        return contextlib.nullcontext()
    return module.device(device)


def linear(x: torch.Tensor, w: torch.Tensor, s: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """linear

    x: (M, K) of T
    w: bytes of two 4-bit elements each, for the shape (N, K) of u4
    s: (N,) of T
    bias: (N,) of T
    y: returned, (M, N) of T
    T: torch.float16, torch.bfloat16
    """
    _check("x", x, 2, (torch.float16, torch.bfloat16), None)
    device = x.device
    T = x.dtype
    M = x.shape[0]
    K = x.shape[1]
    _check("w", w, -1, (torch.uint8,), device)
    _check("s", s, 1, (T,), device)
    N = s.shape[0]
    _check("bias", bias, 1, (T,), device)
    _check_packed("w", w, (N, K))
    _check_shape("bias", bias, (N,))
    y = torch.empty((M, N), dtype=T, device=device)
    index = _index_of(x, w, s, bias, y)
    with _on(device):
        rows, cols = M, N
        if rows and cols:
            tile = _product_tile(rows, cols, K)
            grid = (triton.cdiv(rows, tile.m) * triton.cdiv(cols, tile.n),)
            _check_grid(device, grid)
            _linear_kernel[grid](
                x, w, s, bias, y, x.stride(0), x.stride(1), K, 1, s.stride(0), bias.stride(0),
                y.stride(0), y.stride(1), M, K, N, INDEX=index,
                BLOCK_M=tile.m, BLOCK_N=tile.n, BLOCK_K=tile.k, num_warps=tile.warps,
            )
    return y
