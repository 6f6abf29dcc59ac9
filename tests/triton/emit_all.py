#!/usr/bin/env python3
"""Emits the Triton module of every shipped definition and reads it as Python does. Needs neither PyTorch nor Triton.

    emit_all.py KERNELGEN OPS

Checked are the public function (its name, its parameters, their order and annotations), that every name a module uses
is defined in it, and that kernels get the arguments that they declare.
"""

from __future__ import annotations

import ast
import builtins
import re
import subprocess
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import definitions

TOOL, OPS = sys.argv[1:3]


def emit(definition: definitions.Definition) -> str:
    return subprocess.run([TOOL, "emit", str(definition.file), "--op", definition.name, "--target", "triton"],
                          capture_output=True, text=True, check=True).stdout


def functions(module: ast.Module) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in module.body if isinstance(node, ast.FunctionDef)}


def undefined_names(module: ast.Module) -> set[str]:
    """Names that some function reads and nothing binds."""
    bound = {a.asname or a.name.split(".")[0] for n in module.body if isinstance(n, (ast.Import, ast.ImportFrom))
             for a in n.names} | set(dir(builtins))
    for node in module.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            bound.add(node.name)
        if isinstance(node, ast.Assign):
            bound |= {t.id for t in node.targets if isinstance(t, ast.Name)}
    missing = set()
    for function in functions(module).values():
        own = {a.arg for a in ast.walk(function) if isinstance(a, ast.arg)}
        names = [n for n in ast.walk(function) if isinstance(n, ast.Name)]
        own |= {n.id for n in names if isinstance(n.ctx, ast.Store)}
        own |= {n.name for n in ast.walk(function) if isinstance(n, ast.FunctionDef)}
        missing |= {n.id for n in names if isinstance(n.ctx, ast.Load)} - own - bound
    return missing


def wrong_launches(module: ast.Module) -> list[str]:
    kernels = {name: [a.arg for a in f.args.args] for name, f in functions(module).items()}
    wrong = []
    for node in ast.walk(module):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Subscript):
            continue
        called = node.func.value
        name = called.args[0].id if isinstance(called, ast.Call) and called.args else getattr(called, "id", None)
        if name not in kernels:
            continue
        varied = {a.value for a in called.args[1:]} if isinstance(called, ast.Call) else set()
        if varied - set(kernels[name]):
            wrong.append(f"{name}: has no {varied - set(kernels[name])}")
        given = kernels[name][:len(node.args)] + [k.arg for k in node.keywords if k.arg not in ("num_warps", "num_stages")]
        if sorted(given) != sorted(kernels[name]):
            wrong.append(f"{name}: takes {kernels[name]}, gets {given}")
    return wrong


class Modules(unittest.TestCase):
    def check(self, definition: definitions.Definition, text: str) -> None:
        module = ast.parse(text)
        compile(text, definition.name, "exec")
        self.assertIn(definition.name, functions(module))
        function = functions(module)[definition.name]
        self.assertEqual([a.arg for a in function.args.args], [t.name for t in definition.inputs])
        self.assertEqual({ast.unparse(a.annotation) for a in function.args.args} - {"torch.Tensor"}, set())
        returns = "torch.Tensor" if len(definition.outputs) == 1 else "tuple[torch.Tensor, ...]"
        self.assertEqual(ast.unparse(function.returns), returns)
        shown = {d for t in definition.inputs if t.dtype not in ("u4", "i4") for d in t.dims}
        shown_variables = {t.dtype for t in definition.inputs}
        hidden = [s for s in definition.sizes if s not in shown]
        hidden += [v for v in definition.variables if v not in shown_variables]
        self.assertEqual([a.arg for a in function.args.kwonlyargs], hidden)
        self.assertEqual(undefined_names(module), set())
        self.assertEqual(wrong_launches(module), [])
        self.assertTrue(ast.get_docstring(module) and ast.get_docstring(function))
        longest = max(map(len, text.splitlines()))
        self.assertLessEqual(longest, 110)

    def test_all(self) -> None:
        found = [d for file in sorted(Path(OPS).glob("*.kg")) for d in definitions.read(file)]
        self.assertGreater(len(found), 200)
        with ThreadPoolExecutor(2) as pool:
            for definition, text in zip(found, pool.map(emit, found)):
                with self.subTest(definition.name):
                    self.check(definition, text)

    def test_casts_between_products(self) -> None:
        """What a formula rounds on its way to another kernel lies in memory in that dtype."""
        found = {d.name: d for d in definitions.read(Path(OPS) / "matmul.kg")}
        for name, scratch in (("lora", "t"), ("mlp", "h")):
            text = emit(found[name])
            for dtype, full in (("f16", "float16"), ("bf16", "bfloat16"), ("f32", "float32")):
                with self.subTest(name, dtype=dtype):
                    self.assertRegex(text, rf"cast\({dtype}, {scratch}\[")
                    self.assertRegex(text, rf"\b{scratch} = _empty\(.*dtype=torch.{full},")

    def test_narrow_integers(self) -> None:
        """Formulas of small integers are computed in 32 bits, and others are not."""
        found = {d.name: d for file in Path(OPS).glob("*.kg") for d in definitions.read(file)}
        def kernel(op: str, name: str) -> str:
            return re.search(rf"def _{name}_kernel\(.*?(?=\n\n\n)", emit(found[op]), re.S).group(0)
        for op in ("unpack_bools", "unpack_nibbles", "pack_nibbles", "blend", "dequantise_u4"):
            self.assertNotIn("int64", kernel(op, op))
        self.assertIn("(w >> tl.cast(d % 8, tl.int32)) & 1 == 1", kernel("unpack_bools", "unpack_bools"))
        # Products of two i16 have 31 bits, of two u16 32 without a sign; sums of two i32 have 33.
        self.assertIn("(a * b).to(tl.int64)", kernel("matmul_i16", "matmul_i16"))
        self.assertIn("a * b,", kernel("matmul_i16", "matmul_i16_u16"))
        self.assertNotIn("int64", kernel("add_integers", "add_integers"))
        self.assertIn("int64", kernel("add_integers", "add_integers_u32"))
        # The word that is shifted has 32 bits without a sign.
        self.assertIn("to(tl.int64)", kernel("dequantise_words", "dequantise_words"))

    def test_what_ascend_lacks(self) -> None:
        """Kernels for f64 are one thing, and are not called; those for f32 that compute in it another."""
        found = {d.name: d for file in Path(OPS).glob("*.kg") for d in definitions.read(file)}
        for op, lacks in (("apply_exp", False), ("sum_last", False), ("power", True)):
            with self.subTest(op=op):
                self.assertEqual("float64, which some kernels compute in" in emit(found[op]), lacks)
                self.assertIn("not there: f64\n", emit(found[op]))

    def test_checks_see_faults(self) -> None:
        """The checks above are worth something."""
        broken = ast.parse("import torch\ndef k(a, b): return c\ndef f(x): k[1](x)\n")
        self.assertEqual(undefined_names(broken), {"c"})
        self.assertEqual(len(wrong_launches(broken)), 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
