"""The shapes that bench/gpu/draw.py draws: always the same, within their ranges, aligned and odd.
"""

import hashlib
import os
import re
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BENCH = os.path.join(ROOT, "bench", "gpu")
sys.path.insert(0, BENCH)

import draw

COUNT = 300
# Of 40 cases of each set for the seed "figures". A change of what is drawn changes what figures in
# the documentation mean: then this is to be changed too, and they are to be measured again.
DIGEST = "65138cc516dcfe9d"


def tool(script, *arguments, **environment):
    """What a script prints, without any package of the user's."""
    command = [sys.executable, "-S", os.path.join(BENCH, script), *arguments]
    return subprocess.run(command, text=True, check=True, capture_output=True,
                          env={**os.environ, **environment}).stdout


class Always(unittest.TestCase):
    def test_same_shapes(self):
        text = "".join(f"{case.label}\n" for name in draw.SETS
                       for case in draw.draw_cases("figures", name, 40))
        self.assertEqual(hashlib.sha256(text.encode()).hexdigest()[:16], DIGEST)

    def test_whatever_python_hashes(self):
        lists = {tool("drawn.py", "--list", "--seed", "a", PYTHONHASHSEED=seed)
                 for seed in ("0", "1")}
        self.assertEqual(len(lists), 1)
        self.assertEqual(len(lists.pop().splitlines()), 40 * len(draw.SETS))

    def test_whatever_the_count(self):
        for name in draw.SETS:
            self.assertEqual(draw.draw_cases(7, name, 30), draw.draw_cases(7, name, 50)[:30])

    def test_another_seed_is_another_draw(self):
        for name in draw.SETS:
            one, other = ({case.label for case in draw.draw_cases(seed, name, 50)}
                          for seed in (1, 2))
            self.assertFalse(one & other)


class Ranges(unittest.TestCase):
    """Each of a few hundred cases, and their shares."""

    def setUp(self):
        self.cases = {name: draw.draw_cases("ranges", name, COUNT) for name in draw.SETS}
        self.operators = [case for name, cases in self.cases.items() if name != "products"
                          for case in cases]

    def test_bytes(self):
        for case in self.operators:
            self.assertTrue(draw.BYTES[0] <= case.bytes <= draw.BYTES[1], case.label)
        low, high = draw.PRODUCT_BYTES
        for case in self.cases["products"]:
            self.assertTrue(low <= case.bytes <= high, case.label)
            self.assertLessEqual(case.flops, draw.MAX_FLOPS, case.label)

    def test_bytes_are_spread_evenly(self):
        """A tenth of a logarithmic range holds a tenth of the cases, more or less."""
        tenths = [0] * 10
        for case in self.operators:
            part = case.bytes.bit_length() - draw.BYTES[0].bit_length()
            tenths[min(part, 9)] += 1
        self.assertGreater(min(tenths), len(self.operators) * 0.06)
        self.assertLess(max(tenths), len(self.operators) * 0.15)

    def test_sizes(self):
        for case in self.operators:
            self.assertTrue(all(size >= 1 for size in case.sizes.values()), case.label)
            for axis, (low, high) in case.kind.ranges.items():
                self.assertTrue(low <= case.sizes[axis] <= high, case.label)

    def test_sizes_of_products(self):
        kinds = {kind.name: kind for kind in draw.SETS["products"]}
        for case in self.cases["products"]:
            for axes, (low, high) in kinds[case.group].ranges.items():
                for axis in [axes] if axes == "batch" else axes:
                    self.assertTrue(low <= getattr(case, axis) <= high, case.label)

    def test_aligned_and_odd(self):
        for name, cases in self.cases.items():
            share = sum(map(draw.is_aligned, cases)) / COUNT
            self.assertTrue(0.4 < share < 0.75, f"{name}: {share:.0%} aligned")

    def test_kinds_and_dtypes_are_shared_out(self):
        for name, cases in self.cases.items():
            kinds = draw.SETS[name]
            for place, kind in enumerate(kinds):
                self.assertEqual({case.group if name == "products" else case.op
                                  for case in cases[place::len(kinds)]},
                                 {kind.name if name == "products" else kind.op})
            for dtype in draw.DTYPES[name]:
                share = sum(case.dtype == dtype for case in cases) / COUNT
                self.assertAlmostEqual(share, 1 / len(draw.DTYPES[name]), delta=0.1)

    def test_no_shape_twice(self):
        for cases in self.cases.values():
            self.assertEqual(len({case.label for case in cases}), COUNT)

    def test_dtypes_that_are_asked_for(self):
        cases = draw.draw_cases(1, "rows", 50, ["bf16"])
        self.assertEqual({case.dtype for case in cases}, {"bf16"})


class Definitions(unittest.TestCase):
    """What is drawn has the tensors of the shipped definition."""

    def signature(self, kind):
        with open(os.path.join(ROOT, "ops", kind.file)) as file:
            found = re.search(rf"^op {kind.op}\((.*?)\) *-> *\((.*?)\)", file.read(), re.M | re.S)
        self.assertTrue(found, f"{kind.op} is not in {kind.file}")
        return [f"{dtype}:{axes.replace(', ', '')}" for dtype, axes in
                re.findall(r"\w+: (\w+)\[([\w, ]*)\]", " ".join(found.groups()))]

    def test_tensors(self):
        for kind in draw.KIND_OF.values():
            drawn = [tensor if ":" in tensor else f"T:{tensor}" for tensor in kind.tensors]
            self.assertEqual(drawn, self.signature(kind), kind.op)


if __name__ == "__main__":
    unittest.main()
