#!/usr/bin/env python3
"""Calls of operators with NumPy arrays: results, layouts, what is kept between calls, and what is refused."""

import os
import threading
import unittest

from package_test import main, need

np = need("numpy")
import kernelgen
from kernelgen import operators

RELU = "op relu1(x: T[N]) -> (y: T[N]) where T in f32 f16 f64 bf16\n{ y[i] = relu(x[i]) }\n"
SPLIT = """op split(x: f32[N, M]) -> (total: f32[N], largest: f32[N])
{ total[i] = sum(j) x[i, j]  largest[i] = max(j) x[i, j] }
"""
POOL = """op pool(x: f32[N, H]) -> (y: f32[N, (H+2*Q-R)/S+1])
param R = 3, S = 2, Q = 1
{ y[n, h] = max(r in 0..R) pad(x[n, h*S+r-Q], -inf) }
"""
COUNT = "op count() -> (y: i32[N])\nparam N = 1\n{ y[i] = i }\n"


def draw(*shape, dtype="f4"):
    return np.random.default_rng(1).standard_normal(shape).astype(dtype)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Results(unittest.TestCase):
    def test_shipped_definition(self):
        op = kernelgen.op("softmax.kg", "softmax")
        for _ in range(3):  # the first through Python, the others through C
            x = draw(5, 37)
            np.testing.assert_allclose(op(x), softmax(x), rtol=1e-5)

    def test_definition_file(self):
        path = os.path.join(os.environ["KERNELGEN_HOME"], "mine.kg")
        with open(path, "w") as file:
            file.write(RELU)
        np.testing.assert_array_equal(kernelgen.op(path)(draw(9)), np.maximum(draw(9), 0))

    def test_dtypes_follow_the_arguments(self):
        op = kernelgen.op(RELU)
        for dtype in ("f2", "f4", "f8"):
            for _ in range(2):
                y = op(draw(100, dtype=dtype))
                self.assertEqual(y.dtype, np.dtype(dtype))
                np.testing.assert_array_equal(y, np.maximum(draw(100, dtype=dtype), 0))

    def test_dtypes_of_the_same_strides_in_bytes(self):
        op = kernelgen.op(RELU)
        for _ in range(2):
            wide, narrow = draw(8), draw(16, dtype="f2")[::2]
            np.testing.assert_array_equal(op(wide), np.maximum(wide, 0))
            np.testing.assert_array_equal(op(narrow), np.maximum(narrow, 0))

    def test_several_outputs(self):
        op = kernelgen.op(SPLIT)
        x = draw(6, 50)
        for _ in range(2):
            total, largest = op(x)
            np.testing.assert_allclose(total, x.sum(1), rtol=1e-5)
            np.testing.assert_array_equal(largest, x.max(1))
        out = np.empty(6, "f4"), np.empty(6, "f4")
        for _ in range(2):
            self.assertIs(op(x, out=out), out)
            np.testing.assert_array_equal(out[1], x.max(1))
            out[1][:] = 0

    def test_out(self):
        op = kernelgen.op(RELU)
        for _ in range(3):
            out = np.full(20, 7, "f4")
            self.assertIs(op(draw(20), out=out), out)
            np.testing.assert_array_equal(out, np.maximum(draw(20), 0))
        single = (np.full(20, 7, "f4"),)
        for _ in range(2):
            self.assertIs(op(draw(20), out=single), single)
        np.testing.assert_array_equal(op(draw(20), out=None), np.maximum(draw(20), 0))

    def test_strided_views(self):
        op = kernelgen.op("softmax.kg", "softmax")
        x = draw(12, 40)
        views = [x[::2], x[:, ::3], x[3:7, 5:25], x.T, np.broadcast_to(x[0], (4, 40))]
        for view in views * 2:
            np.testing.assert_allclose(op(view), softmax(view), rtol=1e-5)
        wide = np.zeros((12, 80), "f4")
        for _ in range(2):
            op(x, out=wide[:, ::2])
            np.testing.assert_allclose(wide[:, ::2], softmax(x), rtol=1e-5)
            self.assertFalse(wide[:, 1::2].any())
            wide[:] = 0

    def test_params_and_names(self):
        op = kernelgen.op(POOL)
        self.assertEqual(op(draw(2, 10)).shape, (2, 5))
        self.assertEqual(op(draw(2, 10), S=1).shape, (2, 10))
        self.assertEqual(op(x=draw(2, 10)).shape, (2, 5))
        bound = op.bind(S=1, Q=0)
        self.assertEqual(bound(draw(2, 10)).shape, (2, 8))
        np.testing.assert_array_equal(bound(draw(1, 3))[0], [draw(1, 3).max()])
        self.assertEqual(kernelgen.op(POOL, R=1, Q=0)(draw(2, 10)).shape, (2, 5))

    def test_no_inputs(self):
        np.testing.assert_array_equal(kernelgen.op(COUNT)(N=5), np.arange(5))

    def test_bits_for_dtypes_that_numpy_lacks(self):
        op = kernelgen.op("op narrow(x: f32[N]) -> (y: bf16[N])\n{ y[i] = x[i] }\n")
        back = kernelgen.op("op widen(x: bf16[N]) -> (y: f32[N])\n{ y[i] = x[i] }\n")
        y = op(np.array([1.5, -2], "f4"))
        self.assertEqual(y.view("u2").tolist(), [0x3fc0, 0xc000])
        self.assertEqual(back(y.view("u2")).tolist(), [1.5, -2])

    def test_packed_elements(self):
        op = kernelgen.op("op unpack(x: u4[N]) -> (y: i32[N])\n{ y[i] = x[i] }\n")
        self.assertEqual(op(np.array([0x21, 0x43], "u1"), N=4).tolist(), [1, 2, 3, 4])
        with self.assertRaisesRegex(kernelgen.ShapeError, "x has 2 bytes, but its sizes make 3"):
            op(np.array([0x21, 0x43], "u1"), N=6)

    def test_empty_and_scalar(self):
        op = kernelgen.op(RELU)
        for _ in range(2):
            self.assertEqual(op(np.empty(0, "f4")).shape, (0,))
        total = kernelgen.op("op total(x: f32[N]) -> (y: f32[])\n{ y[] = sum(i) x[i] }\n")
        for _ in range(2):
            self.assertEqual(float(total(np.ones(7, "f4"))), 7)


class Keeping(unittest.TestCase):
    @unittest.skipIf(operators.CallsInC is None, "the extension module is not built")
    def test_second_call_is_short(self):
        op = kernelgen.op(RELU)
        x = draw(11)
        self.assertIsNone(op._run((x,), {}))
        op(x)
        np.testing.assert_array_equal(op._run((x,), {}), np.maximum(x, 0))
        self.assertIsNone(op._run((draw(12),), {}))
        self.assertIsNone(op._run((x.astype("f2"),), {}))
        self.assertIsNone(op._run((np.repeat(x, 2)[::2],), {}))
        op.forget()
        self.assertIsNone(op._run((x,), {}))

    @unittest.skipIf(operators.CallsInC is None, "the extension module is not built")
    def test_an_output_is_no_input(self):
        op = kernelgen.op("op add(a: f32[N], b: f32[N]) -> (y: f32[N])\n{ y[i] = a[i] + b[i] }\n")
        a, b = draw(8), draw(8) * 2
        op(a, b)
        self.assertIsNone(op._run((a,), {"out": b}))
        with self.assertRaisesRegex(kernelgen.ArgumentError, "op add needs b too"):
            op(a, out=b)

    def test_without_the_extension_module(self):
        taken, operators.CallsInC = operators.CallsInC, None
        try:
            op = kernelgen.op(SPLIT)
            for _ in range(2):
                np.testing.assert_array_equal(op(draw(6, 50))[1], draw(6, 50).max(1))
            self.assertIsNotNone(op._run((draw(6, 50),), {}))
            out = np.empty(6, "f4"), np.empty(6, "f4")
            for _ in range(2):
                self.assertIs(op(draw(6, 50), out=out), out)
            with self.assertRaisesRegex(kernelgen.ArgumentError, "largest: out= overlaps total"):
                op(draw(6, 50), out=(out[0], out[0]))
        finally:
            operators.CallsInC = taken

    def plans(self, op, shapes):
        for rows, columns in shapes:
            x = draw(rows, columns)
            for _ in range(2):
                np.testing.assert_allclose(op(x), softmax(x), rtol=1e-5)
        return {id(execution.plan) for execution in op._executions.values()}

    def test_shapes_share_plans(self):
        shapes = [(rows, 10 + rows) for rows in range(1, 13)]
        self.assertEqual(len(self.plans(kernelgen.op("softmax.kg", "softmax", dynamic=True), shapes)), 1)
        self.assertEqual(len(self.plans(kernelgen.op("softmax.kg", "softmax"), shapes)), operators.OWN_PLANS)
        few = shapes[:3]
        self.assertEqual(len(self.plans(kernelgen.op("softmax.kg", "softmax", dynamic=False), few)), 3)

    def test_large_tensors_have_plans_of_their_own(self):
        shapes = [(4, 25), (2, 50), (1, 101), (1, 102)]  # the last two are large
        counted, operators.COUNTED = operators.COUNTED, 100
        try:
            self.assertEqual(len(self.plans(kernelgen.op("softmax.kg", "softmax", dynamic=True), shapes)), 3)
        finally:
            operators.COUNTED = counted

    def test_threads(self):
        op = kernelgen.op("softmax.kg", "softmax", dynamic=True)
        failures = []

        def work(seed):
            generator = np.random.default_rng(seed)
            for _ in range(60):
                x = generator.standard_normal((generator.integers(1, 9), 16)).astype("f4")
                if seed == 0 and generator.integers(8) == 0:
                    op.forget()
                if not np.allclose(op(x), softmax(x), atol=1e-6):
                    failures.append(x)
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_forked_children(self):
        op = kernelgen.op(RELU)
        x = draw(30)
        op(x)
        child = os.fork()
        if child == 0:
            fine = np.array_equal(op(x), np.maximum(x, 0)) and np.array_equal(op(draw(31)), np.maximum(draw(31), 0))
            os._exit(0 if fine else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)


class Refusals(unittest.TestCase):
    def refused(self, error, words, *args, text=RELU, **kwargs):
        op = kernelgen.op(text)
        for _ in range(2):
            with self.assertRaisesRegex(error, words):
                op(*args, **kwargs)

    def test_definitions(self):
        with self.assertRaisesRegex(kernelgen.DefinitionError, r'unknown function "foo"(.|\n)*\n +\^~~') as caught:
            kernelgen.op("op a(x: f32[N]) -> (y: f32[N])\n{ y[i] = foo(x[i]) }\n")
        self.assertEqual(caught.exception.status, "bad definition")
        with self.assertRaises(FileNotFoundError):
            kernelgen.op("nowhere.kg")
        with self.assertRaisesRegex(kernelgen.Error, "softmax"):
            kernelgen.op("softmax.kg", "sofmax")
        with self.assertRaisesRegex(kernelgen.ArgumentError, "rigor 'much' is none of estimate"):
            kernelgen.op(RELU, rigor="much")

    def test_shapes_and_dtypes(self):
        self.refused(kernelgen.ShapeError, '"x" has 1 dimension, not 2', draw(2, 3))
        self.refused(kernelgen.ShapeError, "does not allow 'i32' here; T is one of: f32 f16 f64 bf16",
                     np.zeros(3, "i4"))
        self.refused(kernelgen.ShapeError, "y", draw(3), out=np.empty(4, "f4"))
        self.refused(kernelgen.ShapeError, "y is f64, but T is f32", draw(3), out=np.empty(3, "f8"))
        self.refused(kernelgen.ArgumentError, "no dtype like dtype\\('complex64'\\)", np.zeros(3, "c8"))
        self.refused(kernelgen.ArgumentError, "no dtype like dtype\\('>f4'\\)", np.zeros(3, ">f4"))

    def test_layouts(self):
        self.refused(kernelgen.Error, "stride", draw(9)[::-1])
        records = np.zeros(4, [("a", "u1"), ("x", "f4")])
        self.refused(kernelgen.ArgumentError, "not aligned", records["x"])
        fixed = np.zeros(3, "f4")
        fixed.flags.writeable = False
        self.refused(kernelgen.ArgumentError, "y: it cannot be written", draw(3), out=fixed)

    def test_overlaps(self):
        x = draw(40)
        self.refused(kernelgen.ArgumentError, "y: out= overlaps x", x, out=x)
        self.refused(kernelgen.ArgumentError, "y: out= overlaps x", x[:20], out=x[10:30])
        op = kernelgen.op(RELU)  # remembered first with tensors that are apart
        for _ in range(2):
            op(x[:20], out=x[20:])
        with self.assertRaisesRegex(kernelgen.ArgumentError, "overlaps"):
            op(x[:20], out=x[19:39])

    def test_arguments(self):
        self.refused(kernelgen.ArgumentError, r"x: it is a builtins.list", [1.0, 2.0])
        self.refused(kernelgen.ArgumentError, r"has 1 inputs \(x\), and got 2", draw(3), draw(3))
        self.refused(kernelgen.ArgumentError, "op relu1 needs x too")
        self.refused(kernelgen.ArgumentError, "input x of op relu1 is given twice", draw(3), x=draw(3))
        self.refused(kernelgen.ArgumentError, "has no size, param or dtype called 'eps'", draw(3), eps=1)
        self.refused(kernelgen.ArgumentError, "out= has 2 tensors", draw(3), out=(draw(3), draw(3)))
        self.refused(kernelgen.ShapeError, "M", draw(2, 3), M=4, text=SPLIT)


main()
