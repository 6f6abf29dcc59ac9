#!/usr/bin/env python3
"""Rows of several axes are split by multiplications: whether their quotients are right, and whether the PTX for sm_90a
has no division left.

    quotients.py KERNELGEN OPS [--seed N]

Prints what is wrong, and a line at the end; exit status 1 if anything is. Needs PyTorch and Triton.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import re
import sys
import tempfile
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "0"

import definitions

CASES = {"upsample_nearest": {"N": 16, "C": 60, "H": 56, "W": 56}, "add_channel": {"N": 32, "C": 60, "H": 7, "W": 56},
         "split_heads": {"B": 4, "L": 500, "H": 12, "E": 64}, "pixel_shuffle": {"N": 8, "C": 60, "H": 30, "W": 30}}
LIMIT = 1 << 31


def wrong_quotients(module, seed: int) -> list[str]:
    import torch
    import triton.language as tl
    draw = random.Random(seed)
    divisors = [*range(2, 500), *(2**k + d for k in range(2, 31) for d in (-1, 0, 1)), LIMIT - 1,
                *(draw.randrange(2, LIMIT) for _ in range(1000))]
    device, found = torch.device("cpu"), []
    for b in divisors:
        magic = module._magic(device, tl.int32, b)
        near = [k * b + d for k in (0, 1, (LIMIT - 1) // b) for d in (-1, 0, 1)]
        for a in [*near, LIMIT - 1, *(draw.randrange(LIMIT) for _ in range(10))]:
            # As _quotient: the upper half of a product of 32 bits each, shifted.
            if 0 <= a < LIMIT and (a * (magic & 0xFFFFFFFF) >> 32) >> (magic >> 32 & 31) != a // b:
                found.append(f"{a} // {b}")
    if [module._magic(device, tl.int32, 1), module._magic(device, tl.int64, 3)] != [None, None]:
        found.append("1, and offsets of 64 bits, need no multiplication")
    return found


def divisions(module, definition: definitions.Definition, sizes: dict[str, int]) -> list[str]:
    import launches
    from triton.backends.compiler import GPUTarget
    from vector_loads import Case, inputs_of
    recorded = launches.record(module)
    getattr(module, definition.name)(*inputs_of(definition, Case(definition.name, sizes)))
    ptx = recorded[0].compile(GPUTarget("cuda", 90, 32)).asm["ptx"]
    found = re.findall(r"\b(?:div|rem)\.[su]\d+", ptx)
    return found if "mul.hi.u32" in ptx else [*found, "no multiplication"]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("kernelgen")
    parser.add_argument("ops")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if not all(importlib.util.find_spec(name) for name in ("torch", "triton", "numpy")):
        print("skipped: this Python has no PyTorch, Triton or NumPy")
        return 77
    from compare_ops import emit, load
    found = {d.name: d for file in sorted(Path(options.ops).glob("*.kg")) for d in definitions.read(file)}
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        for name, sizes in CASES.items():
            module = load(emit(options.kernelgen, found[name]), Path(folder), name)
            wrong = wrong_quotients(module, options.seed) if name == "add_channel" else []
            wrong += divisions(module, found[name], sizes)
            failures += bool(wrong)
            if wrong:
                print(f"{name}: {', '.join(wrong[:8])}", flush=True)
    print(f"{len(CASES) - failures} of {len(CASES)} ops divide by multiplications")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
