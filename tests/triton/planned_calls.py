#!/usr/bin/env python3
"""Calls of emitted functions for shapes that were there before: they launch the same, on other tensors, and nothing is
chosen again; and calls that have no plan.

    planned_calls.py KERNELGEN OPS

Under Triton's interpreter. Needs PyTorch and Triton.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
import threading
import time
import unittest
import weakref
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"

import definitions

# One launch and several, several outputs, memory between launches, 8-bit floats, which kernels take as bytes.
CASES = {"gelu": {"N": 300}, "batch_norm": {"N": 3, "C": 2, "H": 70, "W": 90}, "adamw": {"N": 100}, "sum_all": {"N": 20000},
         "wf8a16": {"M": 3, "K": 40, "N": 24}, "quantise_f8": {"P": 5, "D": 33}, "linear_gelu": {"M": 5, "N": 24, "K": 1100}}
UNPLANNED = {"unpack_weights": {"K": 64, "N": 16}}  # what it returns is made of what its kernel writes


class Plans(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.found = {d.name: d for file in sorted(Path(sys.argv[2]).glob("*.kg")) for d in definitions.read(file)}
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def module(self, name):
        from compare_ops import emit, load
        return load(emit(sys.argv[1], self.found[name]), Path(self.folder.name), f"{name}_{self._testMethodName}")

    def inputs(self, name, seed, sizes):
        import numpy
        import torch
        from compare_ops import make_input
        definition, draw = self.found[name], numpy.random.default_rng(seed)
        dtypes = next(iter(definition.dtypes()))
        return [make_input(torch, numpy, draw, definition, t, dtypes.get(t.dtype, t.dtype), definition.shape(t, sizes), False)
                for t in definition.inputs]

    def options(self, name, sizes):
        shown = {d for t in self.found[name].inputs if not t.packed for d in t.dims}
        return {s: sizes[s] for s in self.found[name].sizes if s not in shown}

    def same(self, a, b):
        import torch
        for one, other in zip(a if isinstance(a, tuple) else (a,), b if isinstance(b, tuple) else (b,), strict=True):
            self.assertEqual((one.shape, one.dtype), (other.shape, other.dtype))
            bits = [t.contiguous().reshape(-1).view(torch.uint8) for t in (one, other)]
            self.assertTrue(torch.equal(*bits))

    def test_again(self):
        def refuse(*_):
            raise AssertionError("a launch is chosen again")

        for name, sizes in (CASES | UNPLANNED).items():
            with self.subTest(name):
                module, options = self.module(name), self.options(name, sizes)
                function = getattr(module, name)
                first, second = self.inputs(name, 1, sizes), self.inputs(name, 2, sizes)
                self.same(function(*first, **options), function.__wrapped__(*first, **options))
                expected = function.__wrapped__(*second, **options)
                if name not in UNPLANNED:
                    module._launcher = refuse
                for _ in range(2):
                    self.same(function(*second, **options), expected)

    def test_others(self):
        """Other shapes, strides and dtypes have plans of their own."""
        import torch
        function = self.module("softmax").softmax
        wide = torch.randn(9, 80)
        for x in (wide[:, :40], wide[:, ::2], wide[:5], wide[:, :40].half(), wide[:0], wide.t()):
            for _ in range(2):
                self.same(function(x), function.__wrapped__(x))

    def test_empty(self):
        """Tensors without elements all lie at address 0; outputs of bytes are not taken for views of inputs."""
        for name, sizes in {"unpack_nibbles": {"P": 0, "B": 3}, "pack_nibbles": {"P": 0, "D": 3},
                            "pack_bools": {"P": 3, "D": 0}, "to_byte": {"N": 0}, "quantise_f8": {"P": 0, "D": 33}}.items():
            with self.subTest(name):
                function = getattr(self.module(name), name)
                for seed in range(3):
                    inputs = self.inputs(name, seed, sizes)
                    self.same(function(*inputs), function.__wrapped__(*inputs))

    def test_one_tensor_twice(self):
        import torch
        function = self.module("batch_norm").batch_norm
        x, gamma, beta = torch.randn(3, 2, 70, 90), torch.randn(2), torch.randn(2)
        both = torch.randn(4)
        for a, b in ((gamma, gamma), (gamma, beta), (beta, beta), (both[:2], both[2:]), (beta, gamma)):
            self.same(function(x, a, b), function.__wrapped__(x, a, b))

    def test_named(self):
        import torch
        function = self.module("bias_relu").bias_relu
        for _ in range(2):
            x, bias = torch.randn(5, 33), torch.randn(33)
            self.same(function(x, bias=bias), function.__wrapped__(x, bias))
            self.same(function(bias=bias, x=x), function.__wrapped__(x, bias))
            self.same(function(x, bias), function.__wrapped__(x, bias))
            kept = [weakref.ref(x), weakref.ref(bias)]
            del x, bias
            self.assertEqual([one() for one in kept], [None, None])

    def test_errors(self):
        import torch
        function = self.module("bias_relu").bias_relu
        x, bias = torch.randn(5, 33), torch.randn(33)
        function(x, bias)
        for wrong, kind in (((x, 3), TypeError), ((x, bias.double()), TypeError), ((x, bias[:32]), ValueError), ((x,), TypeError),
                            ((x, bias, bias), TypeError), (([1], bias), TypeError)):
            for _ in range(2):
                self.assertRaises(kind, function, *wrong)
        self.same(function(x, bias), function.__wrapped__(x, bias))

    def test_threads(self):
        """Calls of several threads write down their own launches. Triton's interpreter runs one at a time."""
        import torch
        module, seen = self.module("batch_norm"), {3: [], 4: []}

        class Kernel:
            def __getitem__(self, grid):
                def launch(*arguments, **_):
                    time.sleep(0.002)
                    seen[numbers[threading.get_ident()]].append([a.shape for a in arguments if isinstance(a, torch.Tensor)])
                return launch

        for name in [n for n in dir(module) if n.endswith("_kernel")]:
            setattr(module, name, Kernel())
        numbers = {}

        def call(n):
            numbers[threading.get_ident()] = n
            for _ in range(3):
                module.batch_norm(torch.randn(n, 2, 70, 90), torch.randn(2), torch.randn(2))

        threads = [threading.Thread(target=call, args=(n,)) for n in seen]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for n, launches in seen.items():
            count = len(launches) // 3
            self.assertGreater(count, 2)
            self.assertEqual(launches, launches[:count] * 3)
            self.assertIn(torch.Size([n, 2, 70, 90]), launches[0])


if __name__ == "__main__":
    if not all(importlib.util.find_spec(name) for name in ("torch", "triton", "numpy")):
        print("skipped: this Python has no PyTorch, Triton or NumPy")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=1)
