"""What PyTorch is asked for each drawn operator, and the judge of results, on a CPU. Skipped where
there is no PyTorch with Triton."""

import math
import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench", "gpu"))

import draw

try:
    import torch
    import drawn_cases
except ImportError as problem:
    print(f"skipped: {problem}")
    sys.exit(77)


def small(kind, dtype):
    """An operator with a size of its own for each axis."""
    axes = dict.fromkeys("".join(draw.axes_of(tensor) for tensor in kind.tensors))
    return draw.Operator("small", kind.op, dtype, {axis: 3 + i for i, axis in enumerate(axes)})


def inputs_of(case):
    for shape, dtype in list(case.tensor_kinds())[:-1]:
        yield torch.rand(shape) < 0.5 if dtype == torch.bool else torch.randn(shape, dtype=dtype)


class Cases(unittest.TestCase):
    def each(self):
        torch.manual_seed(1)
        for kind in draw.KIND_OF.values():
            for dtype in draw.DTYPES["rows"]:
                operator = small(kind, dtype)
                case = drawn_cases.case_of(operator)
                yield operator, case, list(inputs_of(case))

    def test_every_operator_has_a_peer(self):
        self.assertEqual(set(drawn_cases.EAGER), set(draw.KIND_OF))

    def test_results_fit_the_definition(self):
        for operator, case, inputs in self.each():
            shape, dtype = list(case.tensor_kinds())[-1]
            found = case.eager(*inputs)
            self.assertEqual((tuple(found.shape), found.dtype), (shape, dtype), operator.label)

    def test_judge_accepts_what_is_right(self):
        for operator, case, inputs in self.each():
            judge = drawn_cases.Judge(operator, inputs)
            self.assertLessEqual(judge.error(case.eager(*inputs)), judge.allowed(), operator.label)

    def test_judge_refuses_what_is_wrong(self):
        """One wrong element is enough, and so is one that was not written."""
        for operator, case, inputs in self.each():
            judge, found = drawn_cases.Judge(operator, inputs), case.eager(*inputs).clone()
            flat = found.view(-1)
            if operator.op.startswith("argmax"):
                wrong = (flat[1] + 1) % inputs[0].shape[judge.axis], -1
            else:
                wrong = flat[1] + judge.scale / 8, math.nan
            for value in wrong:
                flat[1] = value
                self.assertFalse(judge.error(found) <= judge.allowed(), operator.label)


if __name__ == "__main__":
    unittest.main()
