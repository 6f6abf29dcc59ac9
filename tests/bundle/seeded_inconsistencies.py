#!/usr/bin/env python3
"""check-bundle finds what was planted in bundles of several ops, each at the right file and line, and nothing
in bundles that people edited without harm.

    seeded_inconsistencies.py KERNELGEN OPS"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

KERNELGEN, OPS = sys.argv[1], Path(sys.argv[2])
BUNDLES = ("bias_relu", "softmax", "w8a8", "dequantise_u4", "adamw", "max_pool2d", "layer_norm", "embedding")

# What is wrong; the op; the file; what of it, once, becomes what. The finding is at the line of the new text, or
# where "at" is: at that text.
SEEDED = [
    ("the function is called otherwise", "bias_relu", "triton", "def bias_relu(", "def bias_gelu(", None),
    ("the baseline's function is called otherwise", "softmax", "baseline", "def softmax(", "def soft_max(", None),
    ("NAME is another op's", "softmax", "accuracy", 'NAME = "softmax"', 'NAME = "softmax2"', None),
    ("NAME is another op's in the performance test", "w8a8", "performance", 'NAME = "w8a8"', 'NAME = "w8a16"', None),
    ("two inputs are swapped", "bias_relu", "triton", "def bias_relu(x: torch.Tensor, bias: torch.Tensor)",
     "def bias_relu(bias: torch.Tensor, x: torch.Tensor)", None),
    ("an input has another name", "layer_norm", "baseline", "def layer_norm(x: torch.Tensor, gamma:",
     "def layer_norm(x: torch.Tensor, weight:", None),
    ("an input is missing", "adamw", "accuracy", '"v": "f32", ', "", "INPUTS = "),
    ("an input too many", "bias_relu", "baseline", "bias: torch.Tensor)", "bias: torch.Tensor, alpha: float)", None),
    ("a keyword may be positional", "dequantise_u4", "triton", "*, K: int", "K: int", None),
    ("a keyword has another name", "w8a8", "baseline", "*, T: torch.dtype", "*, dtype: torch.dtype", None),
    ("a keyword lacks its default", "w8a8", "baseline", " = torch.float16)", ")", "def w8a8("),
    ("a keyword has another default", "w8a8", "baseline", "= torch.float16)", "= torch.float32)", None),
    ("a size argument is not listed", "dequantise_u4", "accuracy", 'SIZE_ARGUMENTS = ("K",)', "SIZE_ARGUMENTS = ()",
     None),
    ("another annotation", "embedding", "triton", "ids: torch.Tensor", "ids: list", None),
    ("no annotation", "softmax", "baseline", "def softmax(x: torch.Tensor)", "def softmax(x)", None),
    ("another result", "bias_relu", "triton", ") -> torch.Tensor:\n    \"\"\"Adds",
     ") -> tuple[torch.Tensor, ...]:\n    \"\"\"Adds", "-> tuple[torch.Tensor, ...]:\n    \"\"\"Adds"),
    ("no result", "adamw", "baseline", ") -> tuple[torch.Tensor, ...]:", "):", "def adamw("),
    ("another constant", "dequantise_u4", "triton", "\nG = 128\n", "\nG = 64\n", "G = 64"),
    ("another constant in the baseline", "layer_norm", "baseline", "EPS = 1e-05", "EPS = 1e-06", None),
    ("another constant in the accuracy test", "adamw", "accuracy", "B1 = 0.9\n", "B1 = 0.99\n", "B1 = 0.99"),
    ("a constant is gone", "max_pool2d", "baseline", "Q = 1\n", "", "def max_pool2d("),
    ("another rank", "bias_relu", "triton", '_check("bias", bias, 1,', '_check("bias", bias, 2,', None),
    ("another rank in the baseline", "softmax", "baseline", "x.dim() != 2", "x.dim() != 3", None),
    ("a check is gone", "bias_relu", "triton", '    _check("bias", bias, 1, (T,), device)\n', "", "def bias_relu("),
    ("a dtype is not accepted", "softmax", "triton", '_check("x", x, 2, (torch.float16, torch.bfloat16, ',
     '_check("x", x, 2, (torch.float16, ', None),
    ("another dtype", "embedding", "baseline", "ids.dtype != torch.int64", "ids.dtype != torch.int32", None),
    ("a dtype that need not be another's", "bias_relu", "baseline", "if bias.dtype != x.dtype:",
     "if bias.dtype != torch.float32:", None),
    ("dtypes of the accuracy test", "softmax", "accuracy", '("f16", "bf16", "f32",)', '("f16", "f32",)', "INPUTS ="),
    ("an input of another dtype in the accuracy test", "w8a8", "accuracy", '"sx": "f32"', '"sx": "f16"', None),
    ("other sizes are equal", "bias_relu", "triton", '_check_shape("bias", bias, (D,))',
     '_check_shape("bias", bias, (P,))', None),
    ("sizes need not be equal", "layer_norm", "triton", '    _check_shape("gamma", gamma, (D,))\n', "",
     '_check("gamma"'),
    ("sizes change places", "bias_relu", "baseline", "    P, D = x.shape", "    D, P = x.shape",
     "if bias.shape != (D,)"),
    ("dtype arguments are not listed", "w8a8", "accuracy", 'DTYPE_ARGUMENTS = ("T",)', "DTYPE_ARGUMENTS = ()", None),
    ("another extent of 4-bit elements", "dequantise_u4", "triton", '_check_packed("w", w, (K, N))',
     '_check_packed("w", w, (N, K))', None),
    ("other groups", "dequantise_u4", "baseline", "s.shape != (-(-K // G), N)", "s.shape != (K // G, N)", None),
    ("another shape of the output", "w8a8", "triton", "y = _empty((M, N), dtype=T",
     "y = _empty((N, M), dtype=T", None),
    ("another window", "max_pool2d", "accuracy", '"y": (N, C, (H + 2 * Q - R) // S + 1,',
     '"y": (N, C, (H + Q - R) // S + 1,', None),
    ("another dtype of the output", "w8a8", "triton", "y = _empty((M, N), dtype=T,",
     "y = _empty((M, N), dtype=torch.float32,", None),
    ("the docstring tells another shape", "bias_relu", "baseline", "bias: the dtype of x [D]", "bias: the dtype of x [P]",
     None),
    ("the docstring tells another dtype", "w8a8", "triton", "sx: (M,) of f32", "sx: (M,) of f64", None),
    ("an output less", "adamw", "triton", "return q, m1, v1", "return q, m1", None),
    ("another formula", "softmax", "accuracy", "m[p] = max(d) x[p, d]", "m[p] = min(d) x[p, d]", None),
    ("another formula in the kernels", "adamw", "triton", "m1[i] = b1 * m[i] + (1 - b1) * g[i]\n    v1",
     "m1[i] = b1 * m[i] - (1 - b1) * g[i]\n    v1", None),
    ("no formula", "bias_relu", "performance", "    y[p, d] = relu(x[p, d] + bias[d])\n", "", "NAME ="),
    ("a row of other sizes", "softmax", "accuracy", '{"P": 1, "D": 1}', '{"P": 1, "Q": 1}', None),
    ("a row of other sizes in the performance test", "bias_relu", "performance", '"sizes": {"P": 262144, "D": 512}',
     '"sizes": {"P": 262144}', None),
    ("the reference takes other inputs", "w8a8", "accuracy", "def reference(x, w, sx, sw,", "def reference(w, x, sx, sw,",
     None),
    ("a name that the accuracy test lacks", "softmax", "performance", "accuracy.choose_device(",
     "accuracy.pick_device(", None),
    ("a role that there is not", "softmax", "performance", 'beside("triton")', 'beside("tritton")', None),
    ("defined twice", "bias_relu", "baseline", None, "\n\ndef bias_relu(x: torch.Tensor, bias: torch.Tensor) -> "
     "torch.Tensor:\n    return x\n", "def bias_relu(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:\n    return"),
    ("a bracket is open", "softmax", "triton", "x.shape[0]\n    D", "x.shape[0\n    D", "x.shape[0"),
    ("a string has no end", "w8a8", "performance", 'NAME = "w8a8"', 'NAME = "w8a8', None),
    ("a line is indented", "bias_relu", "baseline", "    P, D = x.shape", "      P, D = x.shape", None),
    ("a colon is gone", "embedding", "accuracy", "def reference(table, ids, *, V, D, B, L):",
     "def reference(table, ids, *, V, D, B, L)", None),
]

# Two files alone state these: which one is wrong nobody knows, and both places are told.
UNDECIDED = {"a keyword lacks its default", "a keyword has another default"}

# Edits that change nothing others see: the op, the file, a list of patterns with what replaces them, all of them.
HARMLESS = [
    ("a renamed local", "bias_relu", "triton", [(r"\bP\b", "row_count"), (r"\bD\b", "column_count")], r'"""(?s:.*?)"""'),
    ("renamed sizes of the baseline", "w8a8", "baseline", [(r"\bM\b", "rows"), (r"\bK\b", "inner")],
     r'"""(?s:.*?)"""|f"[^"\n]*"'),
    ("a renamed output", "softmax", "triton", [(r"\by\b", "out")], r'"""(?s:.*?)"""'),
    ("larger blocks", "softmax", "triton", [(r"\b1024\b", "512")], None),
    ("comments", "dequantise_u4", "triton", [(r"(?m)^(    _check.*)$", r"    # as the others (the width's own)\n\1  # !")],
     None),
    ("assertions instead of raises", "bias_relu", "baseline",
     [(r"if bias\.dim\(\) != 1:\n        raise .*\n", "assert bias.ndim == 1, 'a row'\n"),
      (r"if bias\.shape != \(D,\):\n        raise .*\n", "assert tuple(bias.shape) == (x.size(1),)\n")], None),
    ("another spelling of a quotient", "dequantise_u4", "baseline", [(r"-\(-K // G\)", "(K + G - 1) // G")], None),
    ("an inlined constant", "max_pool2d", "triton", [(r"2 \* Q", "(Q + Q)")], r'"""(?s:.*?)"""'),
    ("a constant of the kernels' own", "layer_norm", "triton", [(r"\Z", "\nLIMIT = 7\n")], None),
    ("autotuned", "bias_relu", "triton",
     [(r"@triton\.jit\ndef _bias", "CONFIGS = [\n    triton.Config({'BLOCK_ROWS': r}, num_warps=w)\n    for r in (1, 2) "
       "for w in (4, 8)\n]\n\n\n@triton.autotune(configs=CONFIGS, key=['P', 'D'])\n@triton.jit\ndef _bias"),
      (r"Kernels:\n", "Kernels, autotuned over CONFIGS:\n")], None),
    ("a module's alias", "softmax", "baseline", [(r"import torch\n", "import torch\nfrom torch import Tensor\n"),
                                                 (r"x: torch\.Tensor\)", "x: Tensor)")], None),
    ("a helper more", "softmax", "baseline", [(r"\Z", "\n\ndef other(a, b):\n    return f\"{a['x']!r:>{b}} {{}}\"\n")],
     None),
    ("another order of the dtypes", "softmax", "triton", [("torch.float16, torch.bfloat16, torch.float32\\)",
                                                          "torch.bfloat16, torch.float32, torch.float16,)")], None),
    ("a row more", "softmax", "accuracy", [(r"ROWS = \[\n", 'ROWS = [\n    {"D": 77, "P": 3},  # ours\n')], None),
    ("Windows line ends", "adamw", "accuracy", [(r"\n", "\r\n")], None),
]


def definition_of(op):
    for file in OPS.glob("*.kg"):
        if re.search(rf"^op {op}\(", file.read_text(), re.M):
            return file
    raise AssertionError(op)


def check(folder, *arguments):
    done = subprocess.run([KERNELGEN, "check-bundle", folder, "--json", *arguments], capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout)


def as_black_would(text):
    """Other breaks of lines and other quotes, the same program: by a list of tokens, as a formatter would."""
    def open_up(match):
        inner = match[0].rstrip(":\n")
        name, arguments, result = re.match(r"(def \w+)\((.*)\)( -> .*)?$", inner, re.S).groups()
        parts = [p.strip() for p in re.split(r",\s*(?![^\[]*\])", arguments)]
        lines = ["    " + " ".join(part.split()) + ",\n" for part in parts]
        return f"{name}(\n" + "".join(lines) + f"){result or ''}:\n"
    text = re.sub(r"^def \w+\((?:[^()\n]|\n        )+\)(?: -> .*)?:\n", open_up, text, flags=re.M)
    return re.sub(r'(?m)^(    _check\()(.*)\)$', r"\1\n        \2,\n    )", text)


class Checker(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.fresh = Path(cls.folder.name) / "fresh"
        cls.work = Path(cls.folder.name) / "work"
        for op in BUNDLES:
            subprocess.run([KERNELGEN, "emit", definition_of(op), "--op", op, "--target", "bundle", "--out",
                            cls.fresh / op], check=True, capture_output=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def start(self, op):
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self.fresh / op, self.work)
        return self.work

    def test_fresh(self):
        for op in BUNDLES:
            with self.subTest(op):
                self.assertEqual(check(self.fresh / op, "--def", definition_of(op), "--op", op)[1]["findings"], [])

    def test_seeded(self):
        self.assertGreaterEqual(len(SEEDED), 20)
        for what, op, role, old, new, at in SEEDED:
            with self.subTest(what):
                file = self.start(op) / f"{op}_{role}.py"
                text = file.read_text()
                if old is not None:
                    self.assertIn(old, text)
                changed = text + new if old is None else text.replace(old, new, 1)
                file.write_text(changed)
                mark = at or new
                line = changed[:changed.index(mark)].count("\n") + 1
                last = line + mark.strip("\n").count("\n") if at is None else line
                status, report = check(self.work)
                self.assertEqual((status, report["consistent"]), (1, False))
                places = [(Path(one["file"]).name, one["line"]) for finding in report["findings"]
                          for one in [finding] + ([finding["other"]] if what in UNDECIDED else [])]
                self.assertTrue(any(name == file.name and line <= number <= last for name, number in places),
                                (line, report["findings"]))
                self.assertTrue(all(one["message"] and one["help"] for one in report["findings"]))
                # What was planted in one file is not said of the others.
                if what not in UNDECIDED:
                    self.assertEqual({name for name, _ in places}, {file.name}, report["findings"])

    def test_files(self):
        folder = self.start("softmax")
        (folder / "softmax_baseline.py").unlink()
        status, report = check(folder)
        self.assertEqual(status, 1)
        self.assertEqual([Path(one["file"]).name for one in report["findings"]], ["softmax_baseline.py"])
        folder = self.start("softmax")
        shutil.copy(folder / "softmax_triton.py", folder / "softmax_triton_old.py")
        (folder / "notes.txt").write_text("softmax")
        status, report = check(folder)
        self.assertEqual(status, 1)
        self.assertEqual([Path(one["file"]).name for one in report["findings"]], ["softmax_triton_old.py"])
        folder = self.start("softmax")  # several ops in one folder, one's name in front of the other's
        for file in (self.fresh / "adamw").glob("*.py"):
            shutil.copy(file, folder)
        self.assertEqual(check(folder)[1]["ops"], ["adamw", "softmax"])
        self.assertEqual(check(folder)[0], 0)
        empty = self.start("softmax")
        (empty / "softmax_triton.py").write_text("")
        self.assertEqual(check(empty)[0], 1)

    def test_usage(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(check(folder)[0], 2)
            self.assertEqual(check(Path(folder) / "none")[0], 2)
            for number in range(4097):  # more than are read
                (Path(folder) / f"op{number}_triton.py").touch()
            self.assertEqual(check(folder)[0], 2)
        self.assertEqual(check(self.fresh / "softmax", "--op", "softmax")[0], 2)

    def test_harmless(self):
        for what, op, role, edits, kept in HARMLESS:
            with self.subTest(what):
                file = self.start(op) / f"{op}_{role}.py"
                text = file.read_text()
                stays = []  # docstrings tell the definition's names

                def hide(match):
                    stays.append(match[0])
                    return f"\0{len(stays) - 1}\0"
                edited = re.sub(kept, hide, text) if kept else text
                for pattern, put in edits:
                    edited, count = re.subn(pattern, put, edited)
                    self.assertGreater(count, 0, pattern)
                edited = re.sub("\0(\\d+)\0", lambda match: stays[int(match[1])], edited)
                with open(file, "w", newline="") as out:
                    out.write(edited)
                compile(edited.replace("\r\n", "\n"), str(file), "exec")
                self.assertEqual(check(self.work)[1]["findings"], [])

    def test_formatted(self):
        for op in BUNDLES:
            for file in self.start(op).glob("*.py"):
                text = file.read_text()
                formatted = as_black_would(text)
                compile(formatted, str(file), "exec")
                file.write_text(formatted)
            with self.subTest(op):
                self.assertEqual(check(self.work)[1]["findings"], [])

    def test_moved_on(self):
        """With a definition that was changed after the bundle was written."""
        for old, new, changes in [("relu(x[p, d] + bias[d])", "relu(x[p, d] - bias[d])", ["formula"]),
                                  ("bias: T[D]", "bias: f32[D]", ["interface"]),
                                  ("speedup", "speedup 2.5 #", ["goal"])]:
            with self.subTest(old):
                text = definition_of("bias_relu").read_text()
                self.assertIn(old, text)
                file = Path(self.folder.name) / "changed.kg"
                file.write_text(text.replace(old, new, 1))
                status, report = check(self.fresh / "bias_relu", "--def", file, "--op", "bias_relu")
                self.assertEqual((status, report["definition_changes"]), (1, changes), report)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
