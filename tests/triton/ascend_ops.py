#!/usr/bin/env python3
"""Kernels of emitted Triton modules through the front end of triton-ascend, without a device.

    ascend_ops.py KERNELGEN OPS [--op NAME] [--every N]

The public function is called with tensors of the CPU and chooses as on a device of 40 vector cores and 20 cube units.
Each launch is checked against the rules (one dimension, no more programs than cores, blocks that fit), and compiled to
Triton's intermediate form and on to the linear algebra that Huawei's compiler takes. Dtypes that Ascend devices lack are
left out, and kernels whose docstring says that they compute in float64. Prints what is refused, and a line at the end;
exit status 1 if anything is that is not known to be. Needs PyTorch, and triton-ascend in place of Triton.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import sys
import tempfile
import types
import warnings
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "0"
VECTOR_CORES, CUBE_CORES = 40, 20
LACKING = {"f64", "u16", "u32", "u64"}
# What triton-ascend 3.2.0 does not compile, by what the accesses have in common.
REFUSED = {"to_channels_last": "masked rows of several axes, read along them",
           "matmul_shared": "masked rows of several axes, as an operand",
           "cross_entropy": "a read at a place that a tensor holds, in a tile of one row"}

import definitions
from compile_ops import TYPES


class Compiler:
    """Stands for a kernel: checks and compiles what is launched, once for each set of constants."""

    def __init__(self, kernel, done: dict):
        self.kernel, self.arg_names, self.done = kernel, kernel.arg_names, done

    def __getitem__(self, grid):
        def launch(*arguments, num_warps=4, num_stages=3, **constants):
            cores = CUBE_CORES if "BLOCK_M" in constants else VECTOR_CORES
            programs = tuple(grid(constants) if callable(grid) else grid)
            if len(programs) != 1 or not 1 <= programs[0] <= cores:
                raise AssertionError(f"{self.kernel.__name__}: a grid of {programs} on {cores} cores")
            self.compile(arguments, constants)
        return launch

    def compile(self, arguments, constants) -> None:
        import torch
        import triton
        from triton.backends.ascend.compiler import NPUOptions, make_ttir, ttir_to_linalg
        from triton.backends.compiler import GPUTarget
        signature, constant = {}, dict(constants)
        for name, value in zip(self.arg_names, arguments):
            if isinstance(value, torch.Tensor):
                signature[name] = "*" + TYPES[str(value.dtype).removeprefix("torch.")]
            elif value is None or value == 1:
                constant[name] = value
            else:
                signature[name] = "i64" if abs(value) >= 2**31 else "i32"
        key = (self.kernel.__name__, str(signature), str(constant))
        if key in self.done:
            return
        backend = triton.compiler.compiler.make_backend(GPUTarget("npu", "Ascend910B", 0))
        options = NPUOptions()
        context = triton._C.libtriton.ir.context()
        triton._C.libtriton.ir.load_dialects(context)
        backend.load_dialects(context)
        source = triton.compiler.ASTSource(self.kernel, signature=signature, constants=constant)
        module = source.make_ir(options, backend.get_codegen_implementation(), backend.get_module_map(), context)
        metadata = dict(options.__dict__)
        ttir_to_linalg(make_ttir(module, metadata, options), metadata, options)
        self.done[key] = True


def pretend(module, done: dict) -> None:
    """Chooses as on an Ascend device, and compiles instead of launching."""
    device = types.SimpleNamespace(type="npu")
    for name in ("_most", "_shared", "_walks", "_magic"):
        if hasattr(module, name):
            original = getattr(module, name)
            setattr(module, name, lambda real, *more, original=original: original(device, *more))
    module._cores = lambda real, cube: CUBE_CORES if cube else VECTOR_CORES
    for name in [n for n in vars(module) if "_kernel" in n]:
        setattr(module, name, Compiler(getattr(module, name), done))


def compile_op(tool: str, definition, folder: Path) -> tuple[int, list[str], str]:
    """How many kernels there are, what was refused, and why there are none if so."""
    import numpy as np
    import torch
    from compare_ops import emit, load, make_input
    module, done, failures = load(emit(tool, definition), folder, definition.name), {}, []
    if "not there: float64, which" in module.__doc__:
        return 0, [], "need float64"
    pretend(module, done)
    combinations = [c for c in definition.dtypes()
                    if not LACKING & {c.get(t.dtype, t.dtype) for t in definition.inputs + definition.outputs}]
    for dtypes in {tuple(c.items()): c for c in combinations[:1] + combinations[-1:]}.values():
        for sizes in sorted(definitions.sizes_to_try(definition), key=lambda s: -math.prod(s.values())):
            try:
                shapes = {t.name: definition.shape(t, sizes) for t in definition.inputs + definition.outputs}
            except ZeroDivisionError:
                continue
            if any(d <= 0 for s in shapes.values() for d in s) or sum(map(math.prod, shapes.values())) > 1 << 22:
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
                text = getattr(error, "stderr", b"").decode() or str(error)
                lines = [line for line in text.strip().splitlines() if "error" in line] or text.strip().splitlines()
                failures.append(f"{definition.name} {dtypes} {sizes}: {type(error).__name__}: {' '.join(lines[:3])[:400]}")
            break
    return len(done), failures, "" if done or failures else "have no dtypes that an Ascend device has"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("kernelgen")
    parser.add_argument("ops", type=Path)
    parser.add_argument("--op")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="one of N definitions")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if not all(importlib.util.find_spec(name) for name in ("torch", "triton.backends.ascend", "numpy")):
        print("skipped: this Python has no PyTorch, triton-ascend or NumPy")
        return 77
    found = [d for file in sorted(options.ops.glob("*.kg")) for d in definitions.read(file)]
    found = [d for d in found if options.op in (None, d.name)][::options.every]
    kernels, without, failures = 0, {}, []
    with tempfile.TemporaryDirectory() as folder:
        for definition in found:
            try:
                count, wrong, why = compile_op(options.kernelgen, definition, Path(folder))
            except Exception as error:
                count, wrong, why = 0, [f"{definition.name}: {type(error).__name__}: {error}"], ""
            kernels += count
            if why:
                without.setdefault(why, []).append(definition.name)
            failures += wrong
            for line in wrong:
                print(line if definition.name not in REFUSED else f"known: {line}", flush=True)
    names = {line.split()[0] for line in failures}
    there = len(found) - len(names) - sum(map(len, without.values()))
    print(f"{there} of {len(found)} ops go through triton-ascend's front end, in {kernels} kernels")
    for why, left_out in without.items():
        print(f"{len(left_out)} {why}: {', '.join(left_out)}")
    return 1 if names - set(REFUSED) or not found else 0


if __name__ == "__main__":
    sys.exit(main())
