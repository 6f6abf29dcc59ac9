#!/usr/bin/env python3
"""Triton kernels as files for contests: compiled without a GPU, and read by `kernelgen verify --candidate`.

    written_candidates.py KERNELGEN OPS

Needs PyTorch, Triton, and PYTHONPATH with the package (BUILD/python).
"""

from __future__ import annotations

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
except ImportError:
    print("Triton is not installed")
    sys.exit(77)

from kernelgen import errors
from kernelgen.triton import write_candidate

KERNELGEN, OPS = sys.argv.pop(1), Path(sys.argv.pop(1))


@triton.jit
def softmax_kernel(x, y, D, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * stride + at, mask=at < D, other=-float("inf")).to(tl.float32)
    value = tl.exp(value - tl.max(value, 0))
    tl.store(y + row * stride + at, value / tl.sum(value, 0), mask=at < D)


@triton.jit
def transpose_kernel(x, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    value = tl.load(x + m[:, None] * N + n[None, :], mask=(m < M)[:, None] & (n < N)[None, :])
    tl.store(y + n[:, None] * M + m[None, :], tl.trans(value), mask=(n < N)[:, None] & (m < M)[None, :])


@triton.jit
def relu_kernel(x, y, ROWS: tl.constexpr):
    at = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    tl.store(y + at, tl.maximum(tl.load(x + at), 0.0))


class ContestFiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "kernel.ptx"

    def judge(self, file, op, dtype):
        told = subprocess.run([KERNELGEN, "verify", OPS / file, "--op", op, "--dtype", f"T={dtype}", "--device", "sm_90a",
                               "--candidate", self.path], capture_output=True, text=True)
        return told.returncode, told.stderr

    def test_a_variant_for_sizes_that_16_divides(self):
        write_candidate(self.path, softmax_kernel, grid="P", arguments=dict(x="x", y="y", D="D", stride="D"),
                        dtypes=dict(x="f32", y="f32"), BLOCK=1024, num_warps=8)
        text = self.path.read_text()
        self.assertEqual(re.findall(r"^// Launch: +(\w+), P blocks of 256 threads, .*where (.*)", text, flags=re.M),
                         [("softmax_kernel", "D % 16 == 0"), ("softmax_kernel_odd", "(D % 16 == 0) == 0")])
        whole, _, odd = text.partition(".entry softmax_kernel_odd")
        self.assertIn("ld.global.v4", whole)
        self.assertNotIn("ld.global.v4", odd)
        self.assertEqual(text.count(".version"), 1)
        status, words = self.judge("softmax.kg", "softmax", "f32")
        self.assertEqual(status, 3, words)
        self.assertIn("its parameters are right", words)

    def test_a_config_and_a_grid_of_two_dimensions(self):
        write_candidate(self.path, transpose_kernel, grid="ceil(M / 64) x ceil(N / 32)",
                        arguments=dict(x="x", y="y", M="M", N="N"), dtypes=dict(x="f16", y="f16"),
                        config=triton.Config(dict(BM=64, BN=32), num_warps=2))
        self.assertIn("ceil(M / 64) x ceil(N / 32) blocks of 64 threads", self.path.read_text())
        status, words = self.judge("indexing.kg", "transpose", "f16")
        self.assertEqual(status, 3, words)

    def test_another_op_does_not_fit(self):
        write_candidate(self.path, relu_kernel, grid="M", arguments=dict(x="x", y="y"),
                        dtypes=dict(x="f16", y="f16"), ROWS=128)
        self.assertNotIn("where", self.path.read_text().partition("\n")[0])
        status, words = self.judge("softmax.kg", "softmax", "f16")
        self.assertEqual(status, 2)
        self.assertIn("'M' is no size of softmax", words)

    def test_what_is_not_said(self):
        with self.assertRaisesRegex(errors.ArgumentError, r"nothing is said of y, BLOCK"):
            write_candidate(self.path, softmax_kernel, grid="P", arguments=dict(x="x", D="D", stride="D"),
                            dtypes=dict(x="f32"))
        with self.assertRaisesRegex(errors.ArgumentError, r"no parameter z"):
            write_candidate(self.path, relu_kernel, grid="P", arguments=dict(x="x", y="y", z="z"),
                            dtypes=dict(x="f32", y="f32"), ROWS=128)
        self.assertFalse(self.path.exists())


unittest.main()
