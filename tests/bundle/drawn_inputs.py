#!/usr/bin/env python3
"""What accuracy files draw keeps to the goal's ranges and to what tensors have.

    drawn_inputs.py KERNELGEN

Needs PyTorch.
"""

import importlib.util
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import torch
except ImportError:
    print("PyTorch is not installed")
    sys.exit(77)

KERNELGEN = sys.argv.pop(1)
DEFINITION = """
op pick(table: f32[V], at: i64[N], kind: i64[N]) -> (y: f32[N])
{{ y[n] = table[at[n]] + kind[n] }}
goal {{ verify V N = 5 400  {ranges} }}
"""


class DrawnInputs(unittest.TestCase):
    def drawn(self, ranges, kind):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "pick.kg"
            file.write_text(DEFINITION.format(ranges=ranges))
            subprocess.run([KERNELGEN, "emit", file, "--target", "bundle", "--out", folder], check=True,
                           capture_output=True)
            spec = importlib.util.spec_from_file_location("pick_accuracy", Path(folder) / "pick_accuracy.py")
            accuracy = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(accuracy)
            return accuracy.draw_inputs(kind, {"V": 5, "N": 400}, {}, torch.Generator().manual_seed(1))

    def ends(self, ranges, kind="normal"):
        drawn = self.drawn(ranges, kind)
        return [(int(drawn[name].min()), int(drawn[name].max())) for name in ("at", "kind")]

    def test_places_of_a_tensor(self):
        (low, high), (least, most) = self.ends("")
        self.assertEqual((low, high), (0, 4))
        self.assertLess(least, 0)
        self.assertGreater(most, 4)

    def test_ranges(self):
        self.assertEqual(self.ends("verify kind in -2..3"), [(0, 4), (-2, 3)])

    def test_both(self):
        self.assertEqual(self.ends("verify at in 2..9, kind in 7..7"), [(2, 4), (7, 7)])
        self.assertEqual(self.ends("verify at in -3..1, kind in 7..7", "ties"), [(0, 1), (7, 7)])


unittest.main()
