#!/usr/bin/env python3
"""Functional test: every method against torch, on a GPU, or with TRITON_INTERPRET=1 on the CPU (small sizes)."""

import os
import sys

import torch

import triton_gemm

ON_CPU = os.environ.get("TRITON_INTERPRET") == "1"
SHAPES = ([(64, 64, 64), (33, 70, 65), (1, 40, 129), (520, 40, 30)] if ON_CPU else
          [(256,) * 3, (512,) * 3, (1024,) * 3, (1000, 1000, 1000), (1, 4096, 4096), (333, 777, 1025)])


def main() -> int:
    device = "cpu" if ON_CPU else "cuda"
    wrong = 0
    for m, n, k in SHAPES:
        torch.manual_seed(m + n + k)
        a = torch.randn(m, k, device=device).to(torch.float16)
        b = torch.randn(k, n, device=device).to(torch.float16)
        expected = a.double() @ b.double()
        for name, method in triton_gemm.METHODS.items():
            c = torch.full((m, n), float("nan"), dtype=a.dtype, device=device)
            method(a, b, c)
            difference = (c.double() - expected).abs()
            passed = bool((difference <= 1e-2 + 2e-3 * expected.abs()).all())
            wrong += not passed
            print(f"{'✓' if passed else '✗'} {m}x{n}x{k} {name}: max_diff = {difference.max().item():.3g}")
    print(f"{wrong} tests failed" if wrong else "All tests passed!")
    return 1 if wrong else 0


sys.exit(main())
