#!/usr/bin/env python3
"""How many kernels emitted Triton modules launch for a shape, and with how many programs: as on an H100, which has 132
multiprocessors, without one.

    programs.py KERNELGEN OPS [--op NAME]

Launches are recorded on the CPU; only the number of multiprocessors is that of the H100. Prints what is wrong, and a
line at the end; exit status 1 if anything is. Needs PyTorch and Triton.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

os.environ["TRITON_INTERPRET"] = "0"

import definitions


class Case(NamedTuple):
    op: str
    sizes: dict[str, int]
    programs: int  # each launch has at least as many
    most: int = 1 << 30  # and at most as many
    dtype: str = "f16"
    warps: int = 0  # of each program; 0: any number
    launches: int = 0  # 0: any number
    columns: int = 0  # of a block; 0: any number


CASES = [
    # Few elements: two programs or more for each multiprocessor, with whole warps.
    Case("gelu", {"N": 65537}, 264, 1056, warps=1),
    Case("gelu", {"N": 1 << 18}, 264, 1056),
    Case("adamw", {"N": 1 << 20}, 512, 1024, "f32"),
    Case("add_last", {"P": 128, "D": 1024}, 264, 1056),
    Case("transpose", {"M": 512, "N": 512}, 256, 1056),
    # Few elements of many short rows.
    Case("softmax", {"P": 1024, "D": 64}, 264, 1056, warps=1),
    Case("sum_last", {"P": 1024, "D": 64}, 264, 1056, warps=1),
    Case("cumsum", {"P": 1024, "D": 64}, 264, 1056, warps=1),
    # Rows that no programs share are a program's each.
    Case("softmax", {"P": 65, "D": 1024}, 65, 65, warps=4),
    Case("layer_norm", {"P": 4, "D": 4096}, 4, 4, warps=8),
    # Wide rows are held, unless as many elements are written.
    Case("variance_last", {"P": 16, "D": 16384}, 16, 16, columns=16384),
    Case("softmax", {"P": 16, "D": 16384}, 16, 16, columns=16384),
    Case("normalise_l2", {"P": 16, "D": 8192}, 16, 16, columns=8192),
    Case("normalise_l2", {"P": 16, "D": 8193}, 16, 16, columns=4096),
    Case("variance_last", {"P": 16, "D": 16385}, 16, 16, columns=8192),
    # Outputs side by side, too few elements each to be shared.
    Case("sum_first", {"P": 65, "D": 1024}, 64, 64),
    # Reductions of few elements: one step of one program, or of about as many programs as multiprocessors.
    Case("bce_with_logits", {"N": 1025}, 1, 1, warps=8, launches=1), Case("sum_all", {"N": 8192}, 1, 1, warps=32, launches=1),
    Case("bce_with_logits", {"N": 65537}, 1, 256, warps=4, launches=2), Case("sum_last", {"P": 16, "D": 65536}, 16, 256, launches=2),
    Case("sum_last", {"P": 64, "D": 4096}, 64, 64, warps=16, launches=1),
    Case("sum_all", {"N": 1 << 24}, 1, 1024, launches=2), Case("sum_last", {"P": 4096, "D": 4096}, 4096, 4096, launches=1),
    # Many elements: 1024 or 2048 a program.
    Case("gelu", {"N": 1 << 24}, 1 << 14, 1 << 14, warps=4),
    Case("add_last", {"P": 131072, "D": 512}, 32768, 32768, warps=8),
    Case("transpose", {"M": 4096, "N": 4096}, 4096, 4096, warps=8),
    Case("softmax", {"P": 1 << 20, "D": 64}, 1 << 15, 1 << 15, warps=4),
    # Statements whose axes are permuted: one launch where the rows of the reduction fit, 16 of them side by side.
    Case("softmax_first", {"P": 65, "D": 1024}, 64, 64, launches=1), Case("softmax_first", {"P": 1024, "D": 512}, 32, 32, launches=1),
    Case("softmax_first", {"P": 1025, "D": 512}, 8, launches=6),
    Case("batch_norm", {"N": 32, "C": 512, "H": 7, "W": 7}, 512, 512, warps=4, launches=1),
    Case("batch_norm", {"N": 32, "C": 64, "H": 56, "W": 56}, 64, launches=5),
    # Fewer elements than a warp has lanes.
    Case("gelu", {"N": 7}, 1, 1, warps=1), Case("softmax", {"P": 1, "D": 1}, 1, 1, warps=1),
]


class Walk(NamedTuple):
    """Which kernel of add_middle a shape and a layout launch: that which walks the last two axes as one needs them one
    behind another, and a last axis that is no whole number of vectors."""
    shape: tuple[int, ...]
    padded: bool
    kernel: str


WALKS = [Walk((8, 4, 64, 2), False, "_add_middle_walk_kernel"), Walk((8, 4, 64, 31), False, "_add_middle_walk_kernel"),
         Walk((8, 4, 64, 1), False, "_add_middle_walk_kernel"), Walk((8, 4, 64, 2), True, "_add_middle_kernel"),
         Walk((8, 4, 64, 8), False, "_add_middle_kernel"), Walk((8, 4, 64, 33), False, "_add_middle_kernel"),
         Walk((8, 4, 1, 2), False, "_add_middle_kernel")]


def wrong_walks(module) -> list[str]:
    import launches
    import torch
    found = []
    recorded = launches.record(module)
    for case in WALKS:
        recorded.clear()
        x = torch.empty(*case.shape[:3], case.shape[3] + 1)[..., :-1] if case.padded else torch.empty(case.shape)
        module.add_middle(x, torch.empty(case.shape[1], case.shape[3]))
        names = [launch.kernel.fn.__name__ for launch in recorded]
        if names != [case.kernel]:
            found.append(f"add_middle {case.shape}{' padded' if case.padded else ''}: {names}")
    return found


def wrong(module, definition: definitions.Definition, case: Case) -> list[str]:
    import launches
    from vector_loads import inputs_of
    if module._programs(inputs_of(definition, case)[0].device) != 1:
        return ["smaller tiles on a CPU"]
    recorded = launches.record(module)
    shown = {d for t in definition.inputs for d in t.dims}
    getattr(module, definition.name)(*inputs_of(definition, case),
                                     **{s: case.sizes[s] for s in definition.sizes if s not in shown})
    found = []
    for launch in recorded:
        programs, warps = math.prod(launch.grid), launch.options["num_warps"]
        if not case.programs <= programs <= case.most:
            found.append(f"{launch.kernel.fn.__name__}: {programs} programs")
        if case.columns and launch.arguments["BLOCK_COLS"] != case.columns:
            found.append(f"{launch.kernel.fn.__name__}: blocks of {launch.arguments['BLOCK_COLS']} columns")
        if case.warps and warps != case.warps:
            found.append(f"{launch.kernel.fn.__name__}: {warps} warps")
    if case.launches and len(recorded) != case.launches:
        found.append(f"{len(recorded)} launches")
    return found if recorded else ["nothing was launched"]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("kernelgen")
    parser.add_argument("ops")
    parser.add_argument("--op")
    options = parser.parse_args()
    if not all(importlib.util.find_spec(name) for name in ("torch", "triton", "numpy")):
        print("skipped: this Python has no PyTorch, Triton or NumPy")
        return 77
    from compare_ops import emit, load
    found = {d.name: d for file in sorted(Path(options.ops).glob("*.kg")) for d in definitions.read(file)}
    cases = [c for c in CASES if not options.op or c.op in options.op.split(",")]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(cases):
            module = load(emit(options.kernelgen, found[case.op]), Path(folder), f"{case.op}_{number}")
            reasons = wrong(module, found[case.op], case)
            failures += bool(reasons)
            if reasons:
                print(f"{case.op} {case.sizes} {case.dtype}: {', '.join(reasons)}", flush=True)
        if not options.op:
            walks = wrong_walks(load(emit(options.kernelgen, found["add_middle"]), Path(folder), "add_middle_walks"))
            failures += bool(walks)
            for reason in walks:
                print(reason, flush=True)
    count = len(cases) + (not options.op)
    print(f"{count - failures} of {count} cases have as many launches and programs as they should")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
