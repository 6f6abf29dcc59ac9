#!/usr/bin/env python3
"""Threads follow the columns of emitted tiles, also where a read is contiguous along no axis: compiled without a GPU.

    column_order.py KERNELGEN OPS

Needs PyTorch and Triton.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import tempfile
import unittest
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "0"

if not all(importlib.util.find_spec(name) for name in ("torch", "triton", "numpy")):
    print("skipped: this Python has no PyTorch, Triton or NumPy")
    sys.exit(77)

import definitions
import launches
import torch
from compare_ops import emit, load
from triton.backends.compiler import GPUTarget

KERNELGEN, OPS = sys.argv.pop(1), Path(sys.argv.pop(1))


class ColumnOrder(unittest.TestCase):
    def check(self, op, *shapes):
        definition = next(d for file in OPS.glob("*.kg") for d in definitions.read(file) if d.name == op)
        with tempfile.TemporaryDirectory() as folder:
            module = load(emit(KERNELGEN, definition), Path(folder), op)
            recorded = launches.record(module)
            getattr(module, op)(*(torch.empty(shape, dtype=torch.float16) for shape in shapes))
            text = recorded[-1].compile(GPUTarget("cuda", 90, 32)).asm["ttgir"]
        columns = recorded[-1].arguments["BLOCK_COLS"]
        self.assertFalse("convert_layout" in text, "reads and writes have different layouts")
        tile, layout = re.search(r"tt\.load .*tensor<(\d+x\d+)x!tt\.ptr<f16>, (#blocked\d*)>", text).groups()
        per_thread, order = re.search(rf"^{layout} = .*sizePerThread = \[(.*?)\].*order = \[(\d)", text, flags=re.M).groups()
        fastest = int(order)
        self.assertEqual(int(tile.split("x")[fastest]), columns, "threads follow rows")
        self.assertGreater(int(per_thread.split(",")[fastest]), 1, "no vectors along the fastest axis")

    def test_quotients(self):
        self.check("upsample_nearest", (16, 64, 64, 64))

    def test_reversed(self):
        self.check("flip_last", (512, 256))

    def test_permuted(self):
        self.check("butterfly", (512, 256))


unittest.main()
