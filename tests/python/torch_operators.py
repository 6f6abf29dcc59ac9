#!/usr/bin/env python3
"""Ops as operators of PyTorch, which native/torch_operators.c serves without Python. KG_TORCH_DEVICE is "cpu" (the
default) or "cuda". Skipped without PyTorch, or with one that lacks what is needed."""

import os
import signal
import sys
import threading
import time
import unittest
from unittest import mock

from package_test import main, need

torch = need("torch")
import kernelgen
from kernelgen import arrays, torch_ops

DEVICE = os.environ.get("KG_TORCH_DEVICE", "cpu")
RELU = "op relu1(x: T[N]) -> (y: T[N]) where T in f32 f16\n{ y[i] = relu(x[i]) }\n"
SPLIT = """op split(x: f32[N, M]) -> (total: f32[N], largest: f32[N])
{ total[i] = sum(j) x[i, j]  largest[i] = max(j) x[i, j] }
"""
ADD = "op added%d(x: f32[N], z: f32[N]) -> (y: f32[N])\n{ y[i] = x[i] + z[i] }\n"
DTYPES = "f16 bf16 f32 f64 i8 u8 i16 u16 i32 u32 i64 bool f8e4m3 f8e5m2"
COPY = f"op copied(x: T[A, B]) -> (y: T[B, A]) where T in {DTYPES}\n{{ y[b, a] = x[a, b] }}\n"


def draw(*shape):
    return torch.randn(*shape, device=DEVICE)


def python_called(function):
    """The files of the package whose functions run meanwhile."""
    found = set()

    def note(frame, event, _):
        if event == "call" and "kernelgen" in os.path.dirname(frame.f_code.co_filename):
            found.add(os.path.basename(frame.f_code.co_filename))
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return found


@unittest.skipUnless(torch_ops.is_served_in_c(torch), "operators are served by Python here")
class Operators(unittest.TestCase):
    def test_second_call_runs_no_python(self):
        operator = kernelgen.op(RELU).register("first::relu")
        x = draw(50)
        self.assertIn("operators.py", python_called(lambda: operator(x)))
        self.assertEqual(python_called(lambda: operator(x)), set())
        for _ in range(3):
            x = draw(50)
            self.assertTrue(torch.equal(operator(x), torch.relu(x)))
        self.assertIn("operators.py", python_called(lambda: operator(draw(51))))

    def test_dtypes_and_layouts(self):
        op = kernelgen.op(COPY)
        operator = op._torch_op
        for short in DTYPES.split():
            dtype = arrays.loaded("torch").of[short]
            x = (torch.arange(6 * 8, device=DEVICE).reshape(6, 8) % 2).to(dtype)
            for view in (x, x.t(), x[::2, 1:], x[:1], x[:, 3:4], x[2:2]):
                for _ in range(2):
                    y = operator(view)
                    self.assertEqual((y.dtype, y.stride()), (dtype, torch.empty(y.shape).stride()))
                    self.assertTrue(torch.equal(y.float(), view.float().t()), (short, view.shape))
                self.assertEqual(python_called(lambda: operator(view)), set(), (short, view.shape, view.stride()))

    def test_several_outputs_and_given_ones(self):
        op = kernelgen.op(SPLIT)
        x = draw(6, 50)
        expected = (x.sum(1), x.amax(1))
        for _ in range(3):
            for ours, theirs in zip(op._torch_op(x), expected):
                torch.testing.assert_close(ours, theirs)
        given = torch.empty(6, device=DEVICE), torch.empty(6, device=DEVICE)
        op._torch_op_out(x, *given)
        for output in given:
            output.zero_()
        self.assertEqual(python_called(lambda: op._torch_op_out(x, *given)), set())
        for ours, theirs in zip(given, expected):
            torch.testing.assert_close(ours, theirs)
        for _ in range(2):
            with self.assertRaisesRegex(RuntimeError, "total: out= overlaps"):
                op._torch_op_out(x, x[0, :6], given[1])

    def test_no_tensor_is_kept(self):
        op = kernelgen.op(SPLIT)
        x = draw(6, 50)
        total, _ = op._torch_op(x)
        given = torch.empty(6, device=DEVICE), torch.empty(6, device=DEVICE)

        def counts():
            return [tensor._use_count() for tensor in (x, total, *given)]
        before = counts()
        for _ in range(5):
            op._torch_op(x)
            op._torch_op_out(x, *given)
            for wrong in ((draw(4),), (x.clone().requires_grad_(),)):
                with self.assertRaises(RuntimeError):
                    op._torch_op(*wrong)
            with self.assertRaises(RuntimeError):
                op._torch_op_out(x, given[0], given[0])
        self.assertEqual(counts(), before)

    def test_gradients_are_refused(self):
        operator = kernelgen.op(RELU)._torch_op
        x = draw(9).requires_grad_()
        for _ in range(2):
            with self.assertRaisesRegex(RuntimeError, "x: it requires a gradient"):
                operator(x)
            with torch.no_grad():
                self.assertTrue(torch.equal(operator(x), torch.relu(x)))
            with torch.inference_mode():
                self.assertTrue(torch.equal(operator(x), torch.relu(x)))
            self.assertFalse(operator(x.detach()).requires_grad)

    def test_signs_beside_elements(self):
        x = torch.randn(4, dtype=torch.complex64, device=DEVICE).conj().imag
        self.assertTrue(x.is_neg())
        operator = kernelgen.op(RELU)._torch_op
        for _ in range(2):
            self.assertTrue(torch.equal(operator(x), torch.relu(x)))

    def test_errors_have_the_text_of_others(self):
        op = kernelgen.op("softmax.kg", "softmax")
        with self.assertRaises(kernelgen.ShapeError) as direct:
            op(draw(4))
        with self.assertRaises(RuntimeError) as served:
            op._torch_op(draw(4))
        self.assertEqual(str(direct.exception), str(served.exception))
        self.assertEqual(op._torch_op(draw(4, 8)).shape, (4, 8))

    def test_interrupts(self):
        signal.signal(signal.SIGINT, signal.default_int_handler)  # children of some shells ignore it
        op = kernelgen.op(RELU)
        operator = op.register("interrupted::relu")

        def interrupt(*_):
            raise KeyboardInterrupt
        with mock.patch.object(op, "_arrange", interrupt), self.assertRaises(KeyboardInterrupt):
            try:
                operator(draw(7))
            except RuntimeError:
                pass
            time.sleep(1)

    def test_threads(self):
        op = kernelgen.op(RELU)
        wrong, until = [], time.monotonic() + 1

        def call(seed):
            while time.monotonic() < until:
                x = torch.full((seed % 5 + 1,), float(seed), device=DEVICE)
                if not torch.equal(op._torch_op(x), x):
                    wrong.append(seed)
        threads = [threading.Thread(target=call, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        while time.monotonic() < until:
            op.forget()
            time.sleep(0.02)
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    @unittest.skipIf(DEVICE == "cuda", "CUDA does not live on in a forked child")
    def test_forked_child(self):
        operator = kernelgen.op(RELU)._torch_op
        x = draw(30)
        operator(x)
        child = os.fork()
        if child == 0:
            os._exit(0 if torch.equal(operator(x), torch.relu(x)) else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    # Last by its name: it takes all that there are.
    def test_too_many_are_served_by_python(self):
        x, z = draw(5), draw(5)
        for number in range(110):
            operator = kernelgen.op(ADD % number)._torch_op
            for _ in range(2):
                self.assertTrue(torch.equal(operator(x, z), x + z))
        self.assertIn("torch_ops.py", python_called(lambda: operator(x, z)))


main()
