#!/usr/bin/env python3
"""Whether emitted modules round to bfloat16 in Triton's interpreter as PyTorch does, bit for bit, and whether what
makes them do so leaves the compiled kernels as they are: the PTX for sm_90a of the same kernels with Triton's own
stores.

    bf16_rounding.py KERNELGEN OPS

Prints what differs, and a line at the end; exit status 1 if anything does. Needs PyTorch and Triton.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import definitions

ROUNDING = """op narrow(x: f32[N]) -> (y: bf16[N])
{ y[n] = x[n] }

op through(x: f32[N]) -> (y: f32[N])
{ y[n] = cast(bf16, x[n]) }
"""
# Every kind of kernel that stores T; `mlp` between two kernels, too.
COMPILED = {"bias_relu": {"P": 512, "D": 1024}, "softmax": {"P": 512, "D": 1024}, "sum_last": {"P": 512, "D": 1024},
            "mlp": {"M": 256, "N": 256, "H": 256, "K": 256}, "embedding": {"V": 100, "D": 1024, "B": 4, "L": 128}}


def patterns():
    """Each upper half with each kind of lower half: exact, below, at and above the middle, all ones."""
    import torch
    upper = torch.arange(1 << 16, dtype=torch.int64)[:, None] << 16
    lower = torch.tensor([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF])[None, :]
    bits = (upper | lower).flatten()
    return torch.where(bits >= 1 << 31, bits - (1 << 32), bits).to(torch.int32).view(torch.float32)


def wrongly_rounded(modules: list) -> list[str]:
    """In the interpreter. The fraction of a NaN is free."""
    import torch
    x, wrong = patterns(), []
    right = x.to(torch.bfloat16)
    narrow, through = modules[0].narrow(x), modules[1].through(x)
    both = narrow.isnan() & right.isnan()
    bad = (narrow.view(torch.int16) != right.view(torch.int16)) & ~both
    if bad.any():
        place = int(bad.nonzero()[0])
        wrong.append(f"store: {int(bad.sum())} of {len(x)}, first {x[place].item():g}: {narrow[place].item():g}")
    # The interpreter reads subnormal bfloat16 wrongly, here too, where they become float32 again.
    normal = (right.float().abs() >= 2.0**-126) | (right == 0) | right.isnan()
    bad = normal & (through != right.float()) & ~(through.isnan() & right.isnan())
    if bad.any():
        place = int(bad.nonzero()[0])
        wrong.append(f"cast: {int(bad.sum())} of {len(x)}, first {x[place].item():g}: {through[place].item():g}")
    return wrong


def plain(text: str) -> str:
    """With Triton's own stores. Lines stay where they are."""
    return re.sub(r"(?<!def )\b_store\(", "tl.store(", text)


def compiled(module, definition: definitions.Definition, sizes: dict[str, int]) -> list[str]:
    import launches
    from triton.backends.compiler import GPUTarget
    from vector_loads import Case, inputs_of
    recorded = launches.record(module)
    getattr(module, definition.name)(*inputs_of(definition, Case(definition.name, sizes, "bf16")))
    texts = [launch.compile(GPUTarget("cuda", 90, 32)).asm["ptx"] for launch in recorded]
    # Without lines and names of the source, and the sections that describe it.
    return [re.sub(r"(?m)^\s*(?:\.loc|\.file|//).*\n|\s*//.*$|\$L__tmp\d+:?\n", "", text.split(".section")[0])
            for text in texts]


def interpret(folder: Path) -> int:
    from compare_ops import load
    wrong = wrongly_rounded([load((folder / f"{name}.txt").read_text(), folder, name) for name in ("narrow", "through")])
    print("\n".join(wrong))
    return 1 if wrong else 0


def main() -> int:
    if not all(importlib.util.find_spec(name) for name in ("torch", "triton", "numpy")):
        print("skipped: this Python has no PyTorch, Triton or NumPy")
        return 77
    if sys.argv[1] == "--interpret":
        return interpret(Path(sys.argv[2]))
    os.environ["TRITON_INTERPRET"] = "0"
    from compare_ops import emit, load
    kernelgen, ops = sys.argv[1:3]
    found = {d.name: d for file in sorted(Path(ops).glob("*.kg")) for d in definitions.read(file)}
    failures = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        os.environ["TRITON_CACHE_DIR"] = str(folder / "cache")
        (folder / "rounding.kg").write_text(ROUNDING)
        for definition in definitions.read(folder / "rounding.kg"):
            (folder / f"{definition.name}.txt").write_text(emit(kernelgen, definition))
        done = subprocess.run([sys.executable, __file__, "--interpret", folder], capture_output=True, text=True,
                              env=dict(os.environ, TRITON_INTERPRET="1"))
        if done.returncode:
            failures += 1
            print(f"interpreted: {done.stdout.strip() or done.stderr.strip()}")
        for name, sizes in COMPILED.items():
            text = emit(kernelgen, found[name])
            if plain(text) == text:
                failures += 1
                print(f"{name}: no store of bfloat16")
                continue
            with_ours, with_tritons = (compiled(load(t, folder, f"{name}_{i}"), found[name], sizes)
                                       for i, t in enumerate((text, plain(text))))
            if with_ours != with_tritons or not with_ours:
                failures += 1
                print(f"{name}: other PTX than with tl.store")
    print(f"{1 + len(COMPILED)} comparisons, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
