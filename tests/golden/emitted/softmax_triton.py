"""softmax: Softmax of each row.

The definition:

    m[p] = max(d) x[p, d]
    e[p, d] = exp(x[p, d] - m[p])
    y[p, d] = e[p, d] / (sum(d) e[p, d])

Kernels:

    _softmax_kernel: rows per program, kept in registers; long rows (_long) in blocks

The narrow floats are computed in float32 and rounded once, when they are stored.

On Ascend (device npu):

    grid: checked at each launch, at most 65535 programs
    unified buffer: tiles are chosen so that all values of a tile take 96 of 192 KiB
    tails: blocks are powers of two; rows whose stride is a multiple of 32 bytes are aligned
"""

from __future__ import annotations

import contextlib
import math
import typing

import torch
import triton
import triton.language as tl


@triton.jit
def _maximum(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _largest(x, axis: tl.constexpr, keep_dims: tl.constexpr = False):
    """NaN if any element is NaN."""
    unordered = tl.max((x != x).to(tl.int32), axis, keep_dims=keep_dims)
    return tl.where(unordered > 0, float("nan"), tl.max(x, axis, keep_dims=keep_dims))


@triton.jit
def _softmax_kernel(
    x_ptr, y_ptr, x_s0, x_s1, y_s0, y_s1, P, D, INDEX: tl.constexpr, BLOCK_ROWS: tl.constexpr,
    BLOCK_COLS: tl.constexpr,
):
    """m[p] = max(d) x[p, d]
    e[p, d] = exp(x[p, d] - m[p])
    y_1[p] = sum(d) e[p, d]
    y[p, d] = e[p, d] / y_1[p]
    """
    p = (tl.program_id(0).to(INDEX) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS))[:, None]
    p_in = p < P
    d = tl.arange(0, BLOCK_COLS)[None, :].to(INDEX)
    d_in = d < D
    x = tl.load(x_ptr + p * x_s0 + d * x_s1, mask=p_in & d_in, other=0,
            eviction_policy="evict_first").to(tl.float32)
    m = _largest(tl.where(d_in, x, float("-inf")), 1, keep_dims=True)
    e = tl.exp(x - m)
    y_1 = tl.sum(tl.where(d_in, e, 0.0), 1, keep_dims=True)
    tl.store(y_ptr + p * y_s0 + d * y_s1, e / y_1, mask=p_in & d_in)


@triton.jit
def _softmax_long_kernel(
    x_ptr, y_ptr, x_s0, x_s1, y_s0, y_s1, P, D, INDEX: tl.constexpr, BLOCK_ROWS: tl.constexpr,
    BLOCK_COLS: tl.constexpr,
):
    """m[p] = max(d) x[p, d]
    e[p, d] = exp(x[p, d] - m[p])
    y_1[p] = sum(d) e[p, d]
    y[p, d] = e[p, d] / y_1[p]
    """
    p = (tl.program_id(0).to(INDEX) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS))[:, None]
    p_in = p < P
    total = tl.full([BLOCK_ROWS, BLOCK_COLS], float("-inf"), tl.float32)
    for start in range(0, D, BLOCK_COLS):
        d = tl.cast(start, INDEX) + tl.arange(0, BLOCK_COLS)[None, :]
        d_in = d < D
        x = tl.load(x_ptr + p * x_s0 + d * x_s1, mask=p_in & d_in, other=0,
                eviction_policy="evict_last").to(tl.float32)
        total = _maximum(total, tl.where(d_in, x, float("-inf")))
    m = _largest(total, 1, keep_dims=True)
    total_1 = tl.full([BLOCK_ROWS, BLOCK_COLS], 0.0, tl.float32)
    for start_1 in range(0, D, BLOCK_COLS):
        d_1 = tl.cast(start_1, INDEX) + tl.arange(0, BLOCK_COLS)[None, :]
        d_1_in = d_1 < D
        x_1 = tl.load(x_ptr + p * x_s0 + d_1 * x_s1, mask=p_in & d_1_in, other=0,
                eviction_policy="evict_last").to(tl.float32)
        e = tl.exp(x_1 - m)
        total_1 += tl.where(d_1_in, e, 0.0)
    y_1 = tl.sum(total_1, 1, keep_dims=True)
    for start_2 in range(0, D, BLOCK_COLS):
        d_2 = tl.cast(start_2, INDEX) + tl.arange(0, BLOCK_COLS)[None, :]
        d_2_in = d_2 < D
        x_2 = tl.load(x_ptr + p * x_s0 + d_2 * x_s1, mask=p_in & d_2_in, other=0,
                eviction_policy="evict_first").to(tl.float32)
        e_1 = tl.exp(x_2 - m)
        tl.store(y_ptr + p * y_s0 + d_2 * y_s1, e_1 / y_1, mask=p_in & d_2_in)


class _Tile(typing.NamedTuple):
    rows: int
    cols: int
    warps: int


def _most(device: torch.device, values: int) -> int:
    """Elements of a tile at most. On Ascend all values of a tile lie in the unified buffer of 192
    KiB, half of which serves the transfers of the next tile; elsewhere registers hold them."""
    if device.type != "npu":
        return 16384
    fits = 96 * 1024 // (4 * values)
    return 1 << (max(fits, 1).bit_length() - 1)


def _check_grid(device: torch.device, grid: tuple) -> None:
    if device.type == "npu" and math.prod(grid) > 65535:
        raise ValueError(f"an Ascend device runs 65535 programs; {math.prod(grid)} are needed")


def _row_tile(rows: int, cols: int, most: int) -> _Tile:
    """Whole rows as far as a tile holds them, of short rows several; longer ones are walked in
    blocks."""
    width = min(triton.next_power_of_2(max(cols, 1)), most)
    height = min(triton.next_power_of_2(max(rows, 1)), max(min(2048, most) // width, 1))
    if width >= cols:
        return _Tile(height, width, 4 if width <= 2048 else 8 if width <= 8192 else 16)
    return _Tile(1, min(8192, most), 16)


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


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Softmax of each row.

    x: (P, D) of T
    y: returned, (P, D) of T
    T: torch.float16, torch.bfloat16, torch.float32
    """
    _check("x", x, 2, (torch.float16, torch.bfloat16, torch.float32), None)
    device = x.device
    T = x.dtype
    P = x.shape[0]
    D = x.shape[1]
    y = torch.empty((P, D), dtype=T, device=device)
    index = _index_of(x, y)
    with _on(device):
        rows, cols = P, D
        if rows:
            tile = _row_tile(rows, cols, _most(device, 19))
            grid = (triton.cdiv(rows, tile.rows),)
            if cols <= tile.cols:
                _check_grid(device, grid)
                _softmax_kernel[grid](
                    x, y, x.stride(0), x.stride(1), y.stride(0), y.stride(1), P, D, INDEX=index,
                    BLOCK_ROWS=tile.rows, BLOCK_COLS=tile.cols, num_warps=tile.warps,
                )
            else:
                _check_grid(device, grid)
                _softmax_long_kernel[grid](
                    x, y, x.stride(0), x.stride(1), y.stride(0), y.stride(1), P, D, INDEX=index,
                    BLOCK_ROWS=tile.rows, BLOCK_COLS=tile.cols, num_warps=tile.warps,
                )
    return y
