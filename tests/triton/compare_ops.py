#!/usr/bin/env python3
"""Emitted Triton modules of all shipped definitions, run by Triton's interpreter on the CPU, against the host's kernels.

    compare_ops.py KERNELGEN OPS [--op NAME] [--quick] [--jobs N]

Every op is emitted; the module is called for all combinations of dtypes at several sizes, contiguous and strided, and
its outputs are compared with those of the plan for the host. Prints what differs, and a line at the end; exit status 1
if anything does. Needs PyTorch, Triton and the Python package (PYTHONPATH).
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

os.environ.setdefault("TRITON_INTERPRET", "1")

import definitions
from launches import MULTIPROCESSORS

RELATIVE = {"f16": 2e-3, "bf16": 1.6e-2, "f32": 2e-5, "f64": 1e-9, "f8e4m3": 0.13, "f8e5m2": 0.26}
ABSOLUTE = {"f16": 1e-3, "bf16": 8e-3, "f32": 2e-5, "f64": 1e-9, "f8e4m3": 0.02, "f8e5m2": 0.02}


def emit(kernelgen: str, definition: definitions.Definition) -> str:
    done = subprocess.run([kernelgen, "emit", str(definition.file), "--op", definition.name, "--target", "triton"],
                          capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def load(text: str, folder: Path, name: str):
    path = folder / f"{name}_triton.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def shrink(module, small: bool) -> None:
    """With small tiles, a few elements take many programs, which take turns on three cores as on an Ascend device, and
    loops take many steps. No whole row fits then."""
    module._cores = lambda device, cube: 3 if small else 0
    for name in [n for n in vars(module) if n.endswith("_tile") and callable(getattr(module, n))]:
        original = getattr(getattr(module, name), "original", getattr(module, name))

        def choose(*arguments, original=original, **named):
            tile = original(*arguments, **named)
            if original.__name__ == "_whole_tile":
                return None
            caps = {"rows": 2, "cols": 4, "m": 16, "n": 16, "k": 16}
            if hasattr(tile, "splits"):
                tile = tile._replace(splits=4)
            return tile._replace(**{f: min(getattr(tile, f), cap) for f, cap in caps.items() if hasattr(tile, f)})

        choose.original = original
        setattr(module, name, choose if small else original)


def make_input(torch, np, rng, definition, tensor, dtype, shape, strided):
    count = int(np.prod(shape, dtype=np.int64))
    if dtype in ("u4", "i4"):
        drawn = torch.from_numpy(rng.integers(0, 256, (count + 1) // 2, dtype=np.uint8))
        return drawn.reshape(*shape[:-1], shape[-1] // 2) if tensor.packed else drawn
    kind = getattr(torch, definitions.DTYPES[dtype])
    is_float = kind.is_floating_point
    least, most = (0, 1) if dtype == "bool" else (0, 0) if is_float else (torch.iinfo(kind).min, torch.iinfo(kind).max)
    values = definitions.numbers(definition, tensor, count, is_float, np, rng, least, most)
    if strided and is_float and tensor.name not in definition.ranges:
        values = -np.abs(values)  # a tail that counts as 0 is the largest
    flat = torch.from_numpy(np.asarray(values).astype(np.float64 if is_float else np.int64))
    made = flat.reshape(shape).to(kind)
    if strided and made.dim() >= 2:  # a transposed slice
        wide = torch.zeros((shape[-1], *shape[1:-1], shape[0] * 2), dtype=torch.int64).to(kind)
        view = wide.transpose(0, -1)[::2] if made.dim() == 2 else wide.transpose(0, -1)[::2]
        view.copy_(made)
        return view
    return made


def differ(torch, ours, theirs, dtype):
    """What is wrong, or None."""
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return f"{ours.dtype} {tuple(ours.shape)}, and not {theirs.dtype} {tuple(theirs.shape)}"
    if ours.numel() == 0:
        return None
    if not ours.dtype.is_floating_point:
        wrong = int((ours != theirs).sum())
        return f"{wrong} of {ours.numel()} elements differ" if wrong else None
    a, b = ours.to(torch.float64), theirs.to(torch.float64)
    if not torch.equal(torch.isnan(a), torch.isnan(b)):
        return f"{int((torch.isnan(a) != torch.isnan(b)).sum())} of {a.numel()}: NaN or not"
    finite = torch.isfinite(b)
    if not torch.equal(torch.where(finite, 0.0, b).nan_to_num(0.5), torch.where(torch.isfinite(a) | finite, 0.0, a).nan_to_num(0.5)):
        return "infinities differ"
    a, b = a[finite], b[finite]
    if a.numel() == 0:
        return None
    scale = max(1.0, float(b.abs().max()))
    excess = (a - b).abs() - (RELATIVE[dtype] * b.abs() + ABSOLUTE[dtype] * scale)
    worst = int(excess.argmax())
    return f"{float(a[worst])} and not {float(b[worst])}" if float(excess[worst]) > 0 else None


def compare(kernelgen_tool: str, definition, folder: Path, quick: bool) -> tuple[int, list[str]]:
    import kernelgen
    import numpy as np
    import torch
    runs, failures = 0, []
    try:
        module = load(emit(kernelgen_tool, definition), folder, definition.name)
        function = getattr(module, definition.name)
    except Exception as error:
        return 0, [f"{definition.name}: {error}"]
    combinations = list(definition.dtypes())
    for dtypes in combinations[:1] if quick else combinations:
        attempts = definitions.sizes_to_try(definition)
        done = 0
        for number, sizes in enumerate(attempts):
            if done >= (2 if quick else 6):
                break
            rng = np.random.default_rng(number)
            what = f"{definition.name} {dtypes} {sizes}"
            try:
                shapes = {t.name: definition.shape(t, sizes) for t in definition.inputs + definition.outputs}
            except ZeroDivisionError:
                continue
            if any(d < 0 for s in shapes.values() for d in s) or sum(np.prod(s) for s in shapes.values()) > 300_000:
                continue
            strided = done % 2 == 1  # and in small tiles
            inputs = [make_input(torch, np, rng, definition, t, dtypes.get(t.dtype, t.dtype), shapes[t.name], strided)
                      for t in definition.inputs]
            shown = {d for t in definition.inputs if t.dtype not in ("u4", "i4") for d in t.dims}
            hidden = {s: sizes[s] for s in definition.sizes if s not in shown}
            free = {v: d for v, d in dtypes.items() if v not in {t.dtype for t in definition.inputs}}
            try:
                op = kernelgen.op(definition.file, definition.name, rigor="estimate", **hidden, **free)
                expected = op(*[x.contiguous() if t.dtype in ("u4", "i4") else x for t, x in zip(definition.inputs, inputs)])
            except kernelgen.Error as error:
                if number == 0 and definition.rows:
                    failures.append(f"{what}: the host: {str(error)[:200]}")
                continue
            before = [x.clone() for x in inputs]
            # The interpreter takes about a millisecond a step.
            elements = sum(x.numel() for x in inputs)
            shrink(module, strided and elements <= 2000)
            # Blocks as on an H100, of which more elements are too many to be run here.
            module._programs = lambda device, few=elements <= 20_000: 4 * MULTIPROCESSORS if few else 1
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    got = function(*inputs, **hidden, **{v: getattr(torch, definitions.DTYPES[d]) for v, d in free.items()})
            except Exception as error:
                text = traceback.format_exc().strip().splitlines()
                failures.append(f"{what}: {type(error).__name__}: {str(error)[:300]} | {' | '.join(text[-4:])[:300]}")
                break
            runs += 1
            done += 1
            got = got if isinstance(got, tuple) else (got,)
            expected = expected if isinstance(expected, tuple) else (expected,)
            for tensor, a, b in zip(definition.outputs, got, expected):
                if tensor.dtype in ("u4", "i4") and np.prod(shapes[tensor.name]) % 2:
                    a[-1] &= 15  # the other half of the last byte is no element
                    b[-1] &= 15
                problem = differ(torch, a, b, dtypes.get(tensor.dtype, tensor.dtype))
                if problem:
                    failures.append(f"{what}: {tensor.name}: {problem}")
            for tensor, a, b in zip(definition.inputs, inputs, before):
                if not torch.equal(a.view(torch.uint8) if a.element_size() == 1 else a.nan_to_num() if a.is_floating_point() else a,
                                   b.view(torch.uint8) if b.element_size() == 1 else b.nan_to_num() if b.is_floating_point() else b):
                    failures.append(f"{what}: the input {tensor.name} was changed")
        if not done:
            failures.append(f"{definition.name} {dtypes}: no sizes could be tried")
    return runs, failures


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("kernelgen")
    parser.add_argument("ops")
    parser.add_argument("--op")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--part", default="0/1")
    options = parser.parse_args()
    if not all(importlib.util.find_spec(name) for name in ("torch", "triton", "numpy")):
        print("skipped: this Python has no PyTorch, Triton or NumPy")
        return 77
    found = [d for file in sorted(Path(options.ops).glob("*.kg")) for d in definitions.read(file)]
    if options.op:
        found = [d for d in found if d.name in options.op.split(",")]
    part, parts = map(int, options.part.split("/"))
    found = found[part::parts]
    right = runs = 0
    with tempfile.TemporaryDirectory() as folder:
        for definition in found:
            try:
                count, failures = compare(options.kernelgen, definition, Path(folder), options.quick)
            except Exception:
                count, failures = 0, [f"{definition.name}: {traceback.format_exc()[-600:]}"]
            runs += count
            right += not failures
            if sys.stderr.isatty() or os.environ.get("KG_PROGRESS"):
                print(definition.name, count, file=sys.stderr, flush=True)
            for failure in failures[:4]:
                print(failure, flush=True)
    print(f"{right} of {len(found)} ops agree with the host's kernels, in {runs} runs")
    return 0 if right == len(found) else 1


if __name__ == "__main__":
    sys.exit(main())
