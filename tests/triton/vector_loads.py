#!/usr/bin/env python3
"""Whether emitted Triton kernels move memory by 128 bits: their PTX for sm_90a, made without a GPU.

    vector_loads.py KERNELGEN OPS [--op NAME]

Every family has ops here, with sizes such as users have, among them ones whose innermost axis is no multiple of a vector
while the tensor as a whole is. Each access of global memory that is narrower must be on the case's list of what has no
vectors: a value per row, an odd window, the few outputs of a reduction. Prints what is narrower, and a line at the end; exit status 1
if anything is. Needs PyTorch and Triton.
"""

from __future__ import annotations

import argparse
import importlib.util
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
    dtype: str = "f16"
    narrow: tuple[str, ...] = ()  # "load16": the accesses that need not be 128 bits
    reason: str = ""


OUTPUTS = "a value per row"
CASES = [
    # pointwise: chains of any rank; images of 7 x 7 and 56 x 56 are walked as a whole
    Case("gelu", {"N": 1 << 20}), Case("gelu", {"N": 1 << 20}, "f32"), Case("swiglu", {"P": 4096, "D": 1000}),
    Case("adamw", {"N": 1 << 20}, narrow=("load32",), reason="two scalars"),
    # broadcast
    Case("bias_relu", {"P": 4096, "D": 1024}, narrow=("load64", "load32"), reason="the bias, spread over all threads"),
    Case("add_channel", {"N": 32, "C": 64, "H": 56, "W": 56}, narrow=("load16",), reason=OUTPUTS),
    Case("add_channel", {"N": 32, "C": 64, "H": 56, "W": 56}, "f32", ("load32", "load64"), OUTPUTS),
    Case("batch_norm_inference", {"N": 32, "C": 64, "H": 28, "W": 28}, narrow=("load32",), reason=OUTPUTS),
    # a short last axis, which the smaller input has without the axis before, or the other way round
    Case("add_middle", {"N": 64, "C": 64, "P": 1024, "D": 2}, narrow=("load16",), reason="the vector"),
    Case("add_last", {"P": 65536, "D": 3}, narrow=("load16",), reason="the vector"),
    Case("add_first", {"P": 65536, "D": 7}, narrow=("load16",), reason="the vector"),
    # gathers and permutations
    Case("embedding", {"V": 1000, "D": 1024, "B": 4, "L": 512}, narrow=("load64",), reason="the indices"),
    Case("transpose", {"M": 4096, "N": 4096}), Case("transpose", {"M": 4096, "N": 4096}, "f32"),
    Case("to_channels_last", {"N": 8, "C": 64, "H": 56, "W": 56}),
    Case("split_heads", {"B": 4, "L": 512, "H": 16, "E": 64}),
    Case("rope", {"B": 4, "L": 512, "H": 8, "E": 128}),
    # rowwise: in registers, in blocks, across memory
    Case("softmax", {"P": 4096, "D": 1024}), Case("softmax", {"P": 4096, "D": 1024}, "f32"),
    Case("softmax", {"P": 512, "D": 65536}), Case("softmax_first", {"P": 4096, "D": 4096}, narrow=("store32",), reason=OUTPUTS),
    Case("layer_norm", {"P": 4096, "D": 4096}),
    Case("instance_norm", {"N": 32, "C": 64, "H": 56, "W": 56}),
    Case("batch_norm", {"N": 32, "C": 64, "H": 56, "W": 56}, narrow=("load32", "store32"), reason=OUTPUTS),
    # reduce: the last axis, the first, one between, all, images
    Case("sum_last", {"P": 4096, "D": 4096}, narrow=("store16",), reason=OUTPUTS),
    Case("sum_last", {"P": 4096, "D": 4096}, "f32", ("store32",), OUTPUTS),
    Case("sum_first", {"P": 8192, "D": 4096}, narrow=("store16", "store32"), reason=OUTPUTS),
    Case("sum_middle", {"A": 64, "B": 1024, "C": 512}, narrow=("store16", "store32", "load32"), reason=OUTPUTS),
    Case("sum_all", {"N": 1 << 24}, narrow=("store32",), reason=OUTPUTS),
    Case("argmax_last", {"P": 4096, "D": 4096}, narrow=("store64",), reason=OUTPUTS),
    Case("argmax_first", {"P": 8192, "D": 4096}, narrow=("store32", "store64", "load32"), reason=OUTPUTS),
    Case("global_avg_pool", {"N": 64, "C": 256, "H": 56, "W": 56}, narrow=("store16",), reason=OUTPUTS),
    Case("matrix_vector", {"M": 4096, "K": 4096}, narrow=("store16",), reason=OUTPUTS),
    Case("vector_matrix", {"N": 4096, "K": 4096}, narrow=("load16", "store16", "store32"), reason="the vector, outputs"),
    # scans
    Case("cumsum", {"P": 4096, "D": 4096}), Case("cumsum_reverse", {"P": 4096, "D": 4096}), Case("cummax", {"P": 4096, "D": 4096}, "f32"),
    # products: copies to shared memory under way while tiles are multiplied
    Case("matmul", {"M": 1024, "N": 1024, "K": 1024}), Case("matmul_nt", {"M": 1024, "N": 1024, "K": 1024}),
    Case("matmul_tn", {"M": 1024, "N": 1024, "K": 1024}), Case("matmul_tt", {"M": 1024, "N": 1024, "K": 1024}, "bf16"),
    Case("linear_gelu", {"M": 512, "N": 512, "K": 512}, narrow=("load32", "load16", "load64"), reason="the bias"),
]
# Where threads have several columns of a row, its values are loaded once: the loads of a thread.
LOADS = [(Case("batch_norm_inference", {"N": 32, "C": 64, "H": 128, "W": 128}), 5),
         (Case("add_channel", {"N": 32, "C": 64, "H": 128, "W": 128}), 2)]
COPIES = {"matmul", "matmul_nt", "matmul_tn", "matmul_tt", "linear_gelu"}


def inputs_of(definition: definitions.Definition, case: Case):
    import torch
    dtypes = {v: case.dtype if case.dtype in allowed else allowed[0] for v, allowed in definition.variables.items()}
    return [torch.empty(definition.shape(t, case.sizes), dtype=getattr(torch, definitions.DTYPES[dtypes.get(t.dtype, t.dtype)]))
            for t in definition.inputs]


def narrow_accesses(module, definition: definitions.Definition, case: Case, inputs) -> list[str]:
    import launches
    from triton.backends.compiler import GPUTarget
    recorded = launches.record(module)
    shown = {d for t in definition.inputs for d in t.dims}
    getattr(module, definition.name)(*inputs, **{s: case.sizes[s] for s in definition.sizes if s not in shown})
    found = []
    for launch in recorded:
        made = launches.accesses(launch.compile(GPUTarget("cuda", 90, 32)).asm["ptx"])
        name = launch.kernel.fn.__name__
        found += [f"{name}: {a.kind}{a.bits}" for a in made if a.bits < 128 and f"{a.kind}{a.bits}" not in case.narrow]
        if case.op in COPIES and not any(a.kind == "copy" for a in made):
            found.append(f"{name}: no asynchronous copies")
        if not made:
            found.append(f"{name}: no access of memory was found")
    return found if recorded else ["nothing was launched"]


def count_loads(module, definition: definitions.Definition, case: Case) -> int:
    import launches
    from triton.backends.compiler import GPUTarget
    recorded = launches.record(module)
    getattr(module, definition.name)(*inputs_of(definition, case))
    made = launches.accesses(recorded[0].compile(GPUTarget("cuda", 90, 32)).asm["ptx"])
    return sum(access.kind == "load" for access in made)


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
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        for number, case in enumerate(cases):
            definition = found[case.op]
            module = load(emit(options.kernelgen, definition), Path(folder), f"{case.op}_{number}")
            narrow = narrow_accesses(module, definition, case, inputs_of(definition, case))
            wrong += bool(narrow)
            if narrow:
                print(f"{case.op} {case.sizes} {case.dtype}: {', '.join(sorted(set(narrow)))}", flush=True)
        for case, most in LOADS:
            module = load(emit(options.kernelgen, found[case.op]), Path(folder), f"{case.op}_loads")
            count = count_loads(module, found[case.op], case)
            wrong += count > most
            if count > most:
                print(f"{case.op} {case.sizes}: {count} loads of a thread, not {most}", flush=True)
        # Views that begin at an odd element have no vectors: the check sees that.
        case = Case("softmax", {"P": 64, "D": 512})
        module = load(emit(options.kernelgen, found[case.op]), Path(folder), "softmax_odd")
        import torch
        if not narrow_accesses(module, found[case.op], case, [torch.empty(64, 515, dtype=torch.float16)[:, :512]]):
            print("rows that are not aligned: the check sees vectors where there are none")
            wrong += 1
    count = len(cases) + len(LOADS) + 1
    print(f"{count - wrong} of {count} cases move 128 bits at a time")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
