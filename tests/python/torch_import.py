#!/usr/bin/env python3
"""Definitions from PyTorch functions: results at other shapes than the examples', and what is refused."""

import unittest

from package_test import main, need

torch = need("torch")
import kernelgen

F = torch.nn.functional


def mlp(x, w, b):
    return F.gelu(F.linear(x, w, b))


def rms(x, w):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w


def normalised(x, w):
    centred = x - x.mean(1, keepdim=True)
    return centred / torch.sqrt((centred ** 2).mean(1, keepdim=True) + 1e-5) * w


def attention(q, k, v):
    return torch.bmm(torch.softmax(torch.bmm(q, k.transpose(1, 2)) * 0.125, -1), v)


def masked(x, mask):
    return torch.where(mask, x, float("-inf")).amax(1), torch.where(mask, x, 0.0).sum()


# A function, the shapes of its examples, and those it is called with.
FUNCTIONS = [
    (mlp, [(3, 4), (5, 4), (5,)], [(7, 9), (2, 9), (2,)]),
    (rms, [(3, 4), (4,)], [(5, 17), (17,)]),
    (normalised, [(3, 4), (4,)], [(2, 33), (33,)]),
    (attention, [(2, 3, 4), (2, 5, 4), (2, 5, 6)], [(3, 7, 8), (3, 4, 8), (3, 4, 2)]),
    (lambda x: F.log_softmax(x, 0), [(3, 4)], [(9, 5)]),
    (lambda x, y: (x + 2 * y, x - y, 3 - x, torch.add(x, y, alpha=-2)), [(3, 4), (4,)], [(5, 6), (6,)]),
    (lambda x, y: torch.maximum(x, y).clamp(-0.5, 0.5) + torch.minimum(x, y).clamp(max=0), [(6,), (6,)], [(9,), (9,)]),
    (lambda x: torch.tanh(x) * torch.sigmoid(x) + F.silu(x) - torch.exp(-x.abs()).log1p(), [(6,)], [(11,)]),
    (lambda x: (x.sum(), x.mean((0, 2)), x.amax(1, keepdim=True), x.amin(), x.prod(2)), [(2, 3, 4)], [(3, 2, 5)]),
    (lambda x: x.permute(2, 0, 1).exp2() + x.transpose(0, 1).sum(), [(2, 3, 4)],
     [(5, 4, 3)]),
    (lambda x, y: x.unsqueeze(1) * y.unsqueeze(0), [(3,), (4,)], [(6,), (5,)]),
    (lambda x, y: x.expand(5, -1) + y, [(1, 4), (5, 4)], [(1, 6), (5, 6)]),
    (lambda x, y: (torch.mv(x, y), torch.dot(y, y)), [(3, 4), (4,)], [(7, 5), (5,)]),
    (lambda x: (x.sign() * x.round() + x.floor() - x.ceil(), x.pow(2), 2 ** x), [(7,)],
     [(13,)]),
    (lambda x: F.gelu(x, approximate="tanh") + torch.erf(x) * torch.cos(x) - torch.sin(x), [(7,)], [(13,)]),
    (lambda x: 1 / (x * x + 1) + x.reciprocal(), [(7,)], [(13,)]),
]


class Imported(unittest.TestCase):
    def test_functions(self):
        for index, (function, examples, shapes) in enumerate(FUNCTIONS):
            torch.manual_seed(index)
            op = kernelgen.from_torch(function, *[torch.randn(*shape) for shape in examples])
            for lengths in (examples, shapes):
                tensors = [torch.randn(*shape) for shape in lengths]
                ours, theirs = op(*tensors), function(*tensors)
                with self.subTest(index=index, lengths=lengths, definition=op.definition):
                    torch.testing.assert_close(ours, theirs, rtol=2e-5, atol=2e-5)

    def test_masks_and_names(self):
        op = kernelgen.from_torch(masked, torch.randn(3, 4), torch.ones(3, 4, dtype=torch.bool))
        self.assertEqual(op.name, "masked")
        x = torch.randn(5, 6)
        torch.testing.assert_close(op(x, x > 0.3), masked(x, x > 0.3))
        self.assertEqual(kernelgen.from_torch(rms, torch.randn(3, 4), torch.randn(4), name="mine").name, "mine")

    def test_dtypes(self):
        op = kernelgen.from_torch(lambda x: (x * 3).half().float() + 1, torch.randn(5))
        x = torch.randn(50)
        self.assertTrue(torch.equal(op(x), (x * 3).half().float() + 1))
        op = kernelgen.from_torch(lambda x: x + 1, torch.randn(5, dtype=torch.bfloat16))
        x = torch.randn(50, dtype=torch.bfloat16)
        self.assertTrue(torch.equal(op(x), x + 1))

    def test_gate(self):
        op = kernelgen.from_torch(rms, torch.randn(3, 4), torch.randn(4))
        self.assertTrue(op.verify(torch.randn(8, 64), torch.randn(64), progress=False))

    def test_refusals(self):
        x = torch.randn(4, 6)
        weight = torch.randn(6)
        for function, words in ((lambda x: torch.cumsum(x, 0), "aten.cumsum.default cannot be imported"),
                                (lambda x: x.reshape(24), "aten.*view.* cannot be imported: it makes dimensions of other"),
                                (lambda x: x.max(1)[0], "aten.max.dim cannot be imported"),
                                (lambda x: torch.div(x, 2, rounding_mode="floor"), "aten.div.*: it rounds"),
                                (lambda x: x.long() + 1, "its dtype is torch.int64; floats and bools are"),
                                (lambda x: x * weight, "uses a tensor that is no argument")):
            with self.assertRaisesRegex(kernelgen.UnsupportedError, words):
                kernelgen.from_torch(function, x)
        with self.assertRaisesRegex(kernelgen.ArgumentError, "an example is a int"):
            kernelgen.from_torch(lambda x, n: x * n, x, 3)


main()
