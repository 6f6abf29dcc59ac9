"""A matrix product in Triton: C = A B for f16 and bf16, row-major, three ways to choose its config.

    baseline_opt     one config that is good for large products
    baseline_smart   a rule by the size
    asm_aware        the rule up to 512; above, kernelgen.triton.autotune, which reads what the compiler made of every
                     config, and measures only the best of them

docs/triton-tuning.md explains the third.
"""

from __future__ import annotations

import itertools

import torch
import triton
import triton.language as tl

import kernelgen.triton as tuning

SMALL = 512  # up to here the rule chooses: a search would cost more than it gains


@triton.jit
def matmul_kernel(a, b, c, M, N, K, stride_am, stride_bk, stride_cm, BM: tl.constexpr, BN: tl.constexpr,
                  BK: tl.constexpr, GROUP: tl.constexpr):
    """One tile of C a program; neighbours share operands in the L2."""
    number = tl.program_id(0)
    high, wide = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = number // (GROUP * wide) * GROUP
    size = min(high - first, GROUP)
    row = first + number % (GROUP * wide) % size
    column = number % (GROUP * wide) // size
    rows = row * BM + tl.arange(0, BM)
    columns = column * BN + tl.arange(0, BN)
    depths = tl.arange(0, BK)
    # Rows and columns outside are read again from the other end, and not stored.
    left = a + (rows % M)[:, None].to(tl.int64) * stride_am + depths[None, :]
    right = b + depths[:, None].to(tl.int64) * stride_bk + (columns % N)[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, tl.cdiv(K, BK)):
        inside = depths < K - start * BK
        total = tl.dot(tl.load(left, inside[None, :], other=0.0), tl.load(right, inside[:, None], other=0.0), total)
        left += BK
        right += BK * stride_bk
    at = c + rows[:, None].to(tl.int64) * stride_cm + columns[None, :]
    tl.store(at, total.to(c.dtype.element_ty), (rows < M)[:, None] & (columns < N)[None, :])


def configs() -> list[triton.Config]:
    """What the search chooses from."""
    found = []
    for rows, columns, depth, warps, stages in itertools.product((16, 64, 128, 256), (32, 64, 128, 256), (32, 64, 128),
                                                                 (4, 8), (3, 4, 5)):
        if stages * depth * (rows + columns) * 2 <= 232448 and rows * columns <= 1 << 15:
            found.append(triton.Config(dict(BM=rows, BN=columns, BK=depth, GROUP=8), num_warps=warps,
                                       num_stages=stages))
    return found


LARGE = dict(BM=128, BN=256, BK=64, GROUP=8, num_warps=8, num_stages=3)


def rule(m: int, n: int, k: int) -> dict[str, int]:
    """A config by the size: tiles that give most SMs something to do, without a search."""
    smaller = min(m, n)
    if m <= 16:
        return dict(BM=16, BN=64, BK=128, GROUP=8, num_warps=4, num_stages=4)
    if max(m, n) <= SMALL or smaller <= 64:
        return dict(BM=64, BN=32, BK=64, GROUP=8, num_warps=4, num_stages=4)
    if smaller <= 1024:
        return dict(BM=64, BN=128, BK=64, GROUP=8, num_warps=4, num_stages=4)
    return LARGE if smaller > 2048 else dict(BM=128, BN=128, BK=64, GROUP=8, num_warps=8, num_stages=3)


tuned_kernel = tuning.autotune(configs(), key=["M", "N", "K"], top=0.1)(matmul_kernel)


def _arguments(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> tuple:
    (m, k), n = a.shape, b.shape[1]
    if b.shape[0] != k or tuple(c.shape) != (m, n):
        raise ValueError(f"{tuple(a.shape)} by {tuple(b.shape)} does not give {tuple(c.shape)}")
    if any(tensor.stride(1) != 1 for tensor in (a, b, c)):
        raise ValueError("rows must be contiguous")
    return a, b, c, m, n, k, a.stride(0), b.stride(0), c.stride(0)


def _grid(m: int, n: int):
    return lambda meta: (triton.cdiv(m, meta["BM"]) * triton.cdiv(n, meta["BN"]),)


def baseline_opt(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    arguments = _arguments(a, b, c)
    matmul_kernel[_grid(*arguments[3:5])](*arguments, **LARGE)


def baseline_smart(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    arguments = _arguments(a, b, c)
    matmul_kernel[_grid(*arguments[3:5])](*arguments, **rule(*arguments[3:6]))


def asm_aware(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    arguments = _arguments(a, b, c)
    if max(arguments[3:6]) <= SMALL:
        return baseline_smart(a, b, c)
    tuned_kernel[_grid(*arguments[3:5])](*arguments)


METHODS = {"baseline_opt": baseline_opt, "baseline_smart": baseline_smart, "asm_aware": asm_aware}
