#!/usr/bin/env python3
"""Formulas of sizes: what Python makes of them is what the library does."""

import re
import unittest
from pathlib import Path

from package_test import main

import kernelgen
from kernelgen import extents, library
from kernelgen.handles import Problem


class Formulas(unittest.TestCase):
    def test_values(self):
        sizes = {"H": 7, "K": 10}
        for formula, value in {"H": 7, "12": 12, "ceil(K/3)": 4, "ceil(K/5)": 2, "(H + 2*1 - 3) / 2 + 1": 4,
                               "K/4": 2, "K % 3": 1, "(H - 9) / 2": -1, "-H": -7, "H*K": 70}.items():
            self.assertEqual(extents.evaluate(formula, sizes), value, formula)
        with self.assertRaises(KeyError):
            extents.evaluate("M + 1", sizes)
        with self.assertRaises(ValueError):
            extents.evaluate("H ** 2", sizes)

    def test_inference(self):
        formulas = (("N", "2*M"), ("M",), ("ceil(K/2)",))
        self.assertEqual(extents.infer(formulas, [(3, 8), (4,), (5,)]), {"N": 3, "M": 4})
        self.assertEqual(extents.infer(formulas, [None, (4,), None]), {"M": 4})

    def test_shipped_definitions(self):
        """Of every op: all sizes follow from inputs, or are rows and columns of panels, which do not tell them;
        and all extents have the library's lengths."""
        session = library.current()
        session.is_quiet = True
        checked = 0
        for path in sorted((Path(kernelgen.__file__).parent / "ops").glob("*.kg")):
            for name in re.findall(r"^op (\w+)", path.read_text(), re.M):
                op = kernelgen.op(path, name)
                with session.working():
                    problem = Problem.of(session, op._handle, {})
                    formulas = problem.extents()
                shapes = [tensor.shape for tensor in problem.inputs]
                sizes = extents.infer(formulas, shapes)
                if any(tensor.is_packed for tensor in problem.inputs):
                    sizes = {**extents.infer(formulas, [tensor.shape for tensor in problem.tensors]), **sizes}
                for tensor, formula in zip(problem.tensors, formulas):
                    lengths = tuple(extents.evaluate(extent, sizes) for extent in formula)
                    self.assertEqual(lengths, tensor.shape, f"{name}: {tensor.name}")
                    checked += 1
        self.assertGreater(checked, 500)


main()
