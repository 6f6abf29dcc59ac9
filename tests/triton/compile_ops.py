#!/usr/bin/env python3
"""Kernels of emitted Triton modules, compiled for sm_90a without a GPU.

    compile_ops.py KERNELGEN OPS [--op NAME] [--every N] [--part I/N]

The public function is called with tensors of the CPU; its launches are compiled instead of run. Prints what the compiler
refuses, and a line at the end; exit status 1 if it refuses anything. Needs PyTorch and Triton.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import tempfile
import traceback
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "0"

import definitions

TYPES = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64", "int8": "i8", "uint8": "u8",
         "int16": "i16", "uint16": "u16", "int32": "i32", "uint32": "u32", "int64": "i64", "bool": "i1"}


class Compiler:
    """Stands for a kernel: compiles what is launched."""

    def __init__(self, kernel, target):
        self.kernel, self.target, self.count = kernel, target, 0

    def __getitem__(self, grid):
        def launch(*arguments, num_warps=4, num_stages=3, **constants):
            import torch
            import triton
            names = self.kernel.arg_names
            signature, constexprs = {}, {}
            for name, value in zip(names, arguments):
                if isinstance(value, torch.Tensor):
                    signature[name] = "*" + TYPES[str(value.dtype).removeprefix("torch.")]
                elif value is None or value == 1:
                    signature[name], constexprs[(names.index(name),)] = "constexpr", value
                else:
                    signature[name] = "i64" if value >= 2**31 else "i32"
            for name, value in constants.items():
                signature[name], constexprs[(names.index(name),)] = "constexpr", value
            source = triton.compiler.ASTSource(self.kernel, signature=signature, constexprs=constexprs)
            triton.compile(source, target=self.target, options={"num_warps": num_warps, "num_stages": num_stages})
            self.count += 1
        return launch


def compile_op(tool: str, definition, folder: Path) -> tuple[int, list[str]]:
    import numpy as np
    import torch
    from triton.backends.compiler import GPUTarget
    from compare_ops import emit, load, make_input
    module = load(emit(tool, definition), folder, definition.name)
    compilers = []
    for name in [n for n in vars(module) if "_kernel" in n]:
        compilers.append(Compiler(getattr(module, name), GPUTarget("cuda", 90, 32)))
        setattr(module, name, compilers[-1])
    failures = []
    combinations = list(definition.dtypes())
    for dtypes in {tuple(c.items()): c for c in (combinations[0], combinations[-1])}.values():
        for sizes in definitions.sizes_to_try(definition):
            try:
                shapes = {t.name: definition.shape(t, sizes) for t in definition.inputs + definition.outputs}
            except ZeroDivisionError:
                continue
            if any(d <= 0 for s in shapes.values() for d in s):
                continue
            inputs = [make_input(torch, np, np.random.default_rng(1), definition, t, dtypes.get(t.dtype, t.dtype),
                                 shapes[t.name], False) for t in definition.inputs]
            shown = {d for t in definition.inputs if t.dtype not in ("u4", "i4") for d in t.dims}
            hidden = {s: sizes[s] for s in definition.sizes if s not in shown}
            free = {v: getattr(torch, definitions.DTYPES[d]) for v, d in dtypes.items()
                    if v not in {t.dtype for t in definition.inputs}}
            try:
                getattr(module, definition.name)(*inputs, **hidden, **free)
            except Exception as error:
                text = str(error).strip().splitlines()
                failures.append(f"{definition.name} {dtypes} {sizes}: {type(error).__name__}: {' '.join(text[-6:])[:500]}")
            break
    return sum(c.count for c in compilers), failures


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("kernelgen")
    parser.add_argument("ops")
    parser.add_argument("--op")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--part", default="0/1")
    options = parser.parse_args()
    if not all(importlib.util.find_spec(name) for name in ("torch", "triton", "numpy")):
        print("skipped: this Python has no PyTorch, Triton or NumPy")
        return 77
    found = [d for file in sorted(Path(options.ops).glob("*.kg")) for d in definitions.read(file)][::options.every]
    if options.op:
        found = [d for d in found if d.name in options.op.split(",")]
    part, parts = map(int, options.part.split("/"))
    found = found[part::parts]
    kernels = right = 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        for definition in found:
            try:
                count, failures = compile_op(options.kernelgen, definition, Path(folder))
            except Exception:
                count, failures = 0, [f"{definition.name}: {traceback.format_exc()[-600:]}"]
            kernels += count
            right += not failures
            for failure in failures:
                print(failure, flush=True)
    print(f"{right} of {len(found)} ops compile for sm_90a, {kernels} kernels")
    return 0 if right == len(found) else 1


if __name__ == "__main__":
    sys.exit(main())
