#!/usr/bin/env python3
"""Threads follow the columns of emitted tiles, also where a read is contiguous along no axis: compiled without a GPU.

    column_order.py KERNELGEN OPS

Needs PyTorch and Triton.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "0"

try:
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
except ImportError:
    print("Triton is not installed")
    sys.exit(77)

KERNELGEN, OPS = sys.argv.pop(1), Path(sys.argv.pop(1))
ROWS, COLS = 16, 128
# As constants of a compiled kernel: what a launch with contiguous tensors gives.
CONSTANTS = dict(turns=1, across=1, INDEX=tl.int32, BLOCK_ROWS=ROWS, BLOCK_COLS=COLS, K=2, ONCE="")


def kernel_of(op, file, folder):
    """The first kernel of the module."""
    subprocess.run([KERNELGEN, "emit", OPS / file, "--op", op, "--target", "bundle", "--out", folder], check=True,
                   stdout=subprocess.DEVNULL)
    path = Path(folder) / f"{op}_triton.py"
    specification = importlib.util.spec_from_file_location(op, path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return getattr(module, re.search(r"^def (_\w+_kernel)\(", path.read_text(), flags=re.M)[1])


def compile_for_hopper(kernel, pointers):
    """The layouts that Triton chooses, as text."""
    names = kernel.arg_names
    innermost = {name for name in names if re.fullmatch(r"\w+_s\d", name) and name[:-1] + str(int(name[-1]) + 1) not in names}
    constants = {name: value for name, value in {**CONSTANTS, **dict.fromkeys(innermost, 1)}.items() if name in names}
    signature = {name: "constexpr" if name in constants else pointers.get(name) or ("i64" if name.endswith("magic") else "i32")
                 for name in names}
    source = ASTSource(fn=kernel, signature=signature,
                       constexprs={(names.index(name),): value for name, value in constants.items()},
                       attrs={(index,): [["tt.divisibility", 16]] for index, name in enumerate(names)
                              if signature[name] == "i32" or name in pointers})
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options=dict(num_warps=8)).asm["ttgir"]


class ColumnOrder(unittest.TestCase):
    def check(self, op, file, pointers):
        with tempfile.TemporaryDirectory() as folder:
            text = compile_for_hopper(kernel_of(op, file, folder), pointers)
        self.assertFalse("convert_layout" in text, "reads and writes have different layouts")
        tile, layout = re.search(r"tt\.load .*tensor<(\d+x\d+)x!tt\.ptr<f16>, (#blocked\d*)>", text).groups()
        per_thread, order = re.search(rf"^{layout} = .*sizePerThread = \[(.*?)\].*order = \[(\d)", text, flags=re.M).groups()
        fastest = int(order)
        self.assertEqual(int(tile.split("x")[fastest]), COLS, "threads follow rows")
        self.assertGreater(int(per_thread.split(",")[fastest]), 1, "no vectors along the fastest axis")

    def test_quotients(self):
        self.check("upsample_nearest", "indexing.kg", dict(x_ptr="*fp16", y_ptr="*fp16"))

    def test_reversed(self):
        self.check("flip_last", "indexing.kg", dict(x_ptr="*fp16", y_ptr="*fp16"))

    def test_contiguous(self):
        self.check("bias_relu", "bias_relu.kg", dict(x_ptr="*fp16", bias_ptr="*fp16", y_ptr="*fp16"))


unittest.main()
