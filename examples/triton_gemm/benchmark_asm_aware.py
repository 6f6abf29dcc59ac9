#!/usr/bin/env python3
"""Compares the three methods on a GPU; prints a table, writes results/asm_aware_benchmark.json."""

import json
import sys
import time
from pathlib import Path

import torch
import triton

import triton_gemm

SHAPES = [(n, n, n) for n in (256, 512, 1024, 2048, 4096)] + [(16, 4096, 4096), (128, 6144, 4096), (2048, 4096, 14336)]
HERE = Path(__file__).resolve().parent


def measure(m: int, n: int, k: int) -> dict:
    a = torch.randn(m, k, device="cuda", dtype=torch.float16)
    b = torch.randn(k, n, device="cuda", dtype=torch.float16)
    c = torch.empty(m, n, device="cuda", dtype=torch.float16)
    found = {}
    for name, method in triton_gemm.METHODS.items():
        begin = time.monotonic()
        method(a, b, c)
        torch.cuda.synchronize()
        first = time.monotonic() - begin
        milliseconds = triton.testing.do_bench(lambda: method(a, b, c), return_mode="median")
        found[name] = dict(steady_ms=milliseconds, first_call_s=first, tflops=2e-9 * m * n * k / milliseconds)
    return found


def main() -> int:
    if not torch.cuda.is_available():
        print("benchmark_asm_aware.py needs a GPU", file=sys.stderr)
        return 3
    print(f"{'Size':<18}{'Baseline (opt)':<18}{'Smart':<14}{'Assembly-Aware':<18}{'TFLOPS':<10}{'Speedup':<10}Improvement")
    lines = []
    for m, n, k in SHAPES:
        found = measure(m, n, k)
        opt, smart, aware = (found[name]["steady_ms"] for name in triton_gemm.METHODS)
        size = f"{m}³" if m == n == k else f"{m}x{n}x{k}"
        print(f"{size:<18}{f'{opt:.4f} ms':<18}{f'{smart:.4f} ms':<14}{f'{aware:.4f} ms':<18}"
              f"{found['asm_aware']['tflops']:<10.1f}{f'{opt / aware:.3f}x':<10}{100 * (1 - aware / opt):+.2f}%")
        lines.append(dict(size=size, m=m, n=n, k=k, methods=found, speedup=opt / aware))
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    (results / "asm_aware_benchmark.json").write_text(
        json.dumps(dict(device=torch.cuda.get_device_name(), triton=triton.__version__, lines=lines), indent=1) + "\n")
    return 0


sys.exit(main())
