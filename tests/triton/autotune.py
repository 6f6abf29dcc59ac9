#!/usr/bin/env python3
"""What emitted modules give to triton.autotune where AUTOTUNE is set, without a GPU.

    autotune.py KERNELGEN OPS

The configs of ops of several families begin with what the module chooses by shape, differ from it in one thing, and all
compile for sm_90a; the key is every size and stride. Without AUTOTUNE nothing is tuned, and the interpreter gives the
same results with it. Exit status 1 if not. Needs PyTorch and Triton.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "0"

import definitions

TOOL, OPS = sys.argv[1:3]
CASES = {"gelu": {"N": 1 << 20}, "bias_relu": {"P": 512, "D": 512}, "transpose": {"M": 256, "N": 256},
         "softmax": {"P": 512, "D": 512}, "sum_last": {"P": 4096, "D": 512}, "cumsum": {"P": 512, "D": 4096},
         "matmul": {"M": 1024, "N": 1024, "K": 1024}}
INTERPRETED = """
import sys, torch
sys.path.insert(0, sys.argv[1])
import softmax_triton as module
x = torch.randn(5, 33)
plain = module.softmax(x)
module.AUTOTUNE = True
assert torch.equal(plain, module.softmax(x))
"""


class Autotune(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        os.environ["TRITON_CACHE_DIR"] = self.folder.name
        self.found = {d.name: d for file in sorted(Path(OPS).glob("*.kg")) for d in definitions.read(file)}

    def tearDown(self):
        self.folder.cleanup()

    def module(self, name):
        from compare_ops import emit, load
        return load(emit(TOOL, self.found[name]), Path(self.folder.name), name)

    def call(self, module, name):
        import torch
        definition = self.found[name]
        inputs = [torch.empty(definition.shape(t, CASES[name]), dtype=torch.float16) for t in definition.inputs]
        getattr(module, name)(*inputs)

    def test_configs(self):
        import launches
        import triton
        from triton.backends.compiler import GPUTarget
        for name in CASES:
            with self.subTest(name):
                module = self.module(name)
                recorded = launches.record(module)
                self.call(module, name)
                chosen, asked = list(recorded), []

                def autotune(configs, key):
                    asked.append((configs, key))
                    return lambda kernel: Tuner(kernel, configs)

                class Tuner:
                    def __init__(self, kernel, configs):
                        self.kernel, self.configs = kernel, configs

                    def __getitem__(self, grid):
                        return lambda *arguments, **constants: [
                            self.kernel[grid](*arguments, **constants, **config.all_kwargs()) for config in self.configs]

                module.AUTOTUNE = True
                recorded.clear()
                original, triton.autotune = triton.autotune, autotune
                try:
                    self.call(module, name)
                finally:
                    triton.autotune = original
                self.assertEqual(len(asked), len(chosen))
                configs, key = asked[0]
                blocks = {n: v for n, v in chosen[0].arguments.items() if n.startswith("BLOCK_")}
                self.assertEqual(configs[0].kwargs, blocks)
                self.assertEqual(configs[0].num_warps, chosen[0].options["num_warps"])
                self.assertGreaterEqual(len(configs), 3)
                for config in configs[1:]:
                    changes = [n for n in blocks if config.kwargs[n] != blocks[n]]
                    changes += ["warps"] * (config.num_warps != configs[0].num_warps)
                    changes += ["stages"] * (config.num_stages != configs[0].num_stages)
                    self.assertEqual(len(changes), 1, str(config))
                integers = {n for n, v in chosen[0].arguments.items() if type(v) is int and not n.startswith("BLOCK_")}
                self.assertEqual(set(key), integers)
                for launch in recorded:
                    launch.compile(GPUTarget("cuda", 90, 32))

    def test_triton_takes_them(self):
        import triton
        module = self.module("softmax")
        configs = module._configs({"BLOCK_ROWS": 4, "BLOCK_COLS": 64}, ("BLOCK_ROWS",), 4, 3)
        # Triton 3.3 asks the driver for a benchmarker unless it is given one.
        tuned = triton.autotune(configs=configs, key=["P", "D"], do_bench=lambda *_, **__: 0.0)(module._softmax_kernel)
        self.assertEqual([c.kwargs["BLOCK_COLS"] for c in tuned.configs], [64] * len(configs))

    def test_only_where_asked(self):
        module = self.module("softmax")
        self.assertIs(module._launcher(module._softmax_kernel, "BLOCK_ROWS"), module._softmax_kernel)

    def test_interpreter(self):
        self.module("softmax")
        subprocess.run([sys.executable, "-W", "ignore", "-c", INTERPRETED, self.folder.name], check=True,
                       env=os.environ | {"TRITON_INTERPRET": "1"})


if __name__ == "__main__":
    if not all(importlib.util.find_spec(name) for name in ("torch", "triton", "numpy")):
        print("skipped: this Python has no PyTorch, Triton or NumPy")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=1)
