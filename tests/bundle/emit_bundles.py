#!/usr/bin/env python3
"""The bundles of all definitions: four files that parse, with one function of one signature, whose tests
import nothing but PyTorch and the standard library.

    emit_bundles.py KERNELGEN OPS"""

import ast
import re
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

KERNELGEN, OPS = sys.argv[1], Path(sys.argv[2])
PARTS = ("triton", "baseline", "accuracy", "performance")
ALLOWED = {"torch", "torch_npu", "triton"} | set(sys.stdlib_module_names)


def signature(tree, name):
    """What callers see of the function: parameters, annotations, result."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return ast.dump(node.args), ast.dump(node.returns)
    raise AssertionError(f"no function {name}")


def constant(tree, name):
    for node in tree.body:
        if isinstance(node, ast.Assign) and node.targets[0].id == name:
            return ast.literal_eval(node.value)
    raise AssertionError(f"no constant {name}")


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            yield node.module.split(".")[0]


def emit(file, name, folder):
    return subprocess.run([KERNELGEN, "emit", file, "--op", name, "--target", "bundle", "--out",
                           folder], capture_output=True, text=True)


class Bundles(unittest.TestCase):
    def check(self, name, folder):
        trees = {part: ast.parse((folder / f"{name}_{part}.py").read_text()) for part in PARTS}
        self.assertEqual(signature(trees["triton"], name), signature(trees["baseline"], name))
        parameters = re.findall(r"arg='(\w+)'", signature(trees["triton"], name)[0])
        inputs = list(constant(trees["accuracy"], "INPUTS"))
        self.assertEqual(parameters[:len(inputs)], inputs)
        for part in ("accuracy", "performance"):
            self.assertEqual(constant(trees[part], "NAME"), name)
        for tree in trees.values():
            self.assertEqual(set(imported(tree)) - ALLOWED, set())
        done = subprocess.run([KERNELGEN, "check-bundle", folder], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, f"{name}: the four files agree\n"))

    def test_all(self):
        found = [(file, name) for file in sorted(OPS.glob("*.kg"))
                 for name in re.findall(r"^op (\w+)\(", file.read_text(), re.M)]
        self.assertGreater(len(found), 200)
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
            jobs = [(file, name, Path(folder) / name) for file, name in found]
            for job, done in zip(jobs, pool.map(lambda job: emit(*job), jobs)):
                with self.subTest(job[1]):
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual(len(done.stdout.split()), len(PARTS))
                    self.check(job[1], job[2])

    def test_folders(self):
        """A folder is needed, and one that cannot be made is named."""
        file = OPS / "softmax.kg"
        done = subprocess.run([KERNELGEN, "emit", file, "--op", "softmax", "--target", "bundle"],
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("--out FOLDER", done.stderr)
        with tempfile.NamedTemporaryFile() as taken:
            done = emit(file, "softmax", taken.name)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(taken.name, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
