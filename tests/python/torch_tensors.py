#!/usr/bin/env python3
"""Calls of operators with PyTorch's tensors: results, dispatch, torch.compile, CUDA graphs. KG_TORCH_DEVICE is
"cpu" (the default) or "cuda". Skipped without PyTorch."""

import os
import subprocess
import sys
import unittest
from unittest import mock

from package_test import main, need

torch = need("torch")
import kernelgen
from kernelgen import arrays, operators

DEVICE = os.environ.get("KG_TORCH_DEVICE", "cpu")
on_gpu = unittest.skipUnless(DEVICE == "cuda", "needs a GPU")
RELU = "op relu1(x: T[N]) -> (y: T[N]) where T in f32 f16 f64 bf16\n{ y[i] = relu(x[i]) }\n"
SPLIT = """op split(x: f32[N, M]) -> (total: f32[N], largest: f32[N])
{ total[i] = sum(j) x[i, j]  largest[i] = max(j) x[i, j] }
"""
POOL = """op pool(x: f32[N, H]) -> (y: f32[N, (H+2*Q-R)/S+1])
param R = 3, S = 2, Q = 1
{ y[n, h] = max(r in 0..R) pad(x[n, h*S+r-Q], -inf) }
"""


def draw(*shape, dtype=torch.float32):
    torch.manual_seed(1)
    return torch.randn(*shape, device=DEVICE).to(dtype)


def close(self, ours, theirs, tolerance=1e-5):
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


class Results(unittest.TestCase):
    def test_dtypes(self):
        op = kernelgen.op(RELU)
        for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
            for _ in range(3):
                x = draw(1000, dtype=dtype)
                y = op(x)
                self.assertEqual((y.dtype, y.device), (dtype, x.device))
                self.assertTrue(torch.equal(y, torch.relu(x)))

    def test_narrow_floats(self):
        op = kernelgen.op("op widen(x: T[N]) -> (y: f32[N]) where T in f8e4m3 f8e5m2\n{ y[i] = x[i] }\n")
        for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
            for _ in range(2):
                x = draw(64).to(dtype)
                self.assertTrue(torch.equal(op(x), x.float()))

    def test_layouts(self):
        op = kernelgen.op("softmax.kg", "softmax")
        x = draw(24, 60)
        for view in [x[::2], x[:, ::3], x.T, x[0].expand(4, 60)] * 2:
            close(self, op(view), torch.softmax(view, 1))
        wide = torch.zeros(24, 120, device=DEVICE)
        for _ in range(2):
            op(x, out=wide[:, ::2])
            close(self, wide[:, ::2], torch.softmax(x, 1))
            self.assertEqual(wide[:, 1::2].abs().max().item(), 0)

    def test_outputs(self):
        op = kernelgen.op(SPLIT)
        x = draw(6, 50)
        for _ in range(2):
            close(self, op(x), (x.sum(1), x.amax(1)))
            out = torch.empty(6, device=DEVICE), torch.empty(6, device=DEVICE)
            self.assertIs(op(x, out=out), out)
            close(self, out[1], x.amax(1))

    def test_new_shapes(self):
        op = kernelgen.op("softmax.kg", "softmax", dynamic=True)
        for rows in range(1, 40):
            x = draw(rows, 64 + rows)
            close(self, op(x), torch.softmax(x, 1))

    def test_empty_and_scalar(self):
        total = kernelgen.op("op total(x: f32[N]) -> (y: f32[])\n{ y[] = sum(i) x[i] }\n")
        for _ in range(2):
            self.assertEqual(kernelgen.op(RELU)(draw(0)).shape, (0,))
            self.assertEqual(total(torch.ones(7, device=DEVICE)).item(), 7)
            self.assertEqual(total(torch.ones(7, device=DEVICE)).shape, ())

    def test_packed_weights(self):
        torch.manual_seed(1)
        for shape, transposed in (((70, 34), False), ((3, 130, 18), False), ((66, 70), True)):
            codes = torch.randint(0, 16, shape, dtype=torch.uint8, device=DEVICE)
            pairs = codes[..., ::2] | codes[..., 1::2] << 4
            packed = kernelgen.pack(pairs, transposed)
            expected = kernelgen.pack(pairs.cpu().numpy(), transposed)
            self.assertEqual((packed.device, packed.dtype), (pairs.device, torch.uint8))
            self.assertTrue(torch.equal(packed.cpu(), torch.from_numpy(expected)))
            rows, columns = shape[-2:] if not transposed else shape[:-3:-1]
            self.assertTrue(torch.equal(kernelgen.unpack(packed, rows, columns, transposed), pairs))

    def test_packed_inputs(self):
        op = kernelgen.op("op f(x: f32[M, K], w: packed u4[K, N], s: f32[N]) -> (y: f32[M, N])\n"
                          "{ y[m, n] = sum(k) x[m, k] * (w[k, n] - 8) * s[n] }")
        codes = torch.randint(0, 16, (70, 34), dtype=torch.uint8, device=DEVICE)
        packed = kernelgen.pack(codes[:, ::2] | codes[:, 1::2] << 4)
        x, s = draw(5, 70), draw(34)
        expected = x @ ((codes.float() - 8) * s)
        for _ in range(3):
            close(self, op(x, packed, s), expected, 1e-3)
        close(self, torch.compile(lambda x: op(x, packed, s) + 1, fullgraph=True)(x), expected + 1, 1e-3)

    def test_without_the_extension_module(self):
        taken, operators.CallsInC = operators.CallsInC, None
        try:
            op = kernelgen.op(SPLIT)
            for _ in range(2):
                close(self, op(draw(6, 50))[1], draw(6, 50).amax(1))
            self.assertIsNotNone(op._run((draw(6, 50),), {}))
            x = draw(6, 50).requires_grad_()
            with self.assertRaisesRegex(kernelgen.ArgumentError, "x: it requires a gradient"):
                op(x)
            with torch.no_grad():
                op(x)
        finally:
            operators.CallsInC = taken

    def test_outputs_are_made_where_the_inputs_are(self):
        home = arrays.loaded("torch")
        function, arguments, keywords = home.maker((3, 5), "bf16", "host")
        made = function(*arguments, **keywords)
        self.assertEqual((made.shape, made.stride(), made.dtype, made.device.type), ((3, 5), (5, 1), torch.bfloat16, "cpu"))
        for devices, is_told in ((1, False), (2, True), (0, True)):
            with mock.patch.object(torch.cuda, "device_count", lambda: devices):
                _, _, keywords = home.maker((3, 5), "f32", "cuda:0")
                self.assertEqual("device" in keywords, is_told)

    @unittest.skipIf(operators.CallsInC is None or not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"),
                     "no short way here")
    def test_second_call_is_short(self):
        op = kernelgen.op(RELU)
        self.assertIsNone(op._run((draw(5),), {}))
        op(draw(5))
        self.assertTrue(torch.equal(op._run((draw(5),), {}), torch.relu(draw(5))))


class Refusals(unittest.TestCase):
    def test_gradients(self):
        op = kernelgen.op(RELU)
        x = draw(9).requires_grad_()
        for _ in range(2):
            with self.assertRaisesRegex(kernelgen.ArgumentError, "x: it requires a gradient"):
                op(x)
            with torch.no_grad():
                self.assertFalse(op(x).requires_grad)
                self.assertFalse(op(torch.nn.Parameter(draw(9))).requires_grad)
            op(torch.nn.Parameter(draw(9), requires_grad=False))
            op(x.detach())

    def test_signs_beside_elements(self):
        x = torch.randn(4, dtype=torch.complex64, device=DEVICE).conj().imag
        op = kernelgen.op(RELU)
        op(x.resolve_neg())
        op(torch.randn(4, dtype=torch.complex64, device=DEVICE).imag)  # the same layout
        for _ in range(2):
            with self.assertRaisesRegex(kernelgen.ArgumentError, "resolve_neg"):
                op(x)

    def test_other_tensors(self):
        op = kernelgen.op("op add(a: f32[N], b: f32[N]) -> (y: f32[N])\n{ y[i] = a[i] + b[i] }\n")
        with self.assertRaisesRegex(kernelgen.ArgumentError, "b: it is a builtins.float"):
            op(draw(3), 1.0)
        with self.assertRaisesRegex(kernelgen.ArgumentError, "layout is torch.sparse_coo"):
            kernelgen.op(RELU)(draw(3).to_sparse())
        numpy = need("numpy")
        with self.assertRaisesRegex(kernelgen.ArgumentError, "b: it is a numpy tensor, and others are not"):
            op(draw(3), numpy.zeros(3, "f4"))

    @on_gpu
    def test_devices(self):
        op = kernelgen.op("op add(a: f32[N], b: f32[N]) -> (y: f32[N])\n{ y[i] = a[i] + b[i] }\n")
        with self.assertRaisesRegex(kernelgen.ArgumentError, "b: it is on host, and a on cuda:0"):
            op(draw(3), draw(3).cpu())


class Compiled(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()

    def test_fullgraph(self):
        op = kernelgen.op(RELU)
        function = torch.compile(lambda x: op(x * 2) + 1, fullgraph=True)
        for length in (9, 10, 11):
            x = draw(length)
            close(self, function(x), torch.relu(2 * x) + 1)

    def test_several_outputs(self):
        op = kernelgen.op(SPLIT)
        function = torch.compile(lambda x: op(x)[0] - op(x)[1], fullgraph=True)
        close(self, function(draw(5, 7)), draw(5, 7).sum(1) - draw(5, 7).amax(1))

    def test_sizes_are_symbols(self):
        op = kernelgen.op(POOL)
        function = torch.compile(lambda x: op(x).sum(0), fullgraph=True, dynamic=True)
        for length in (8, 13, 20):
            x = draw(3, length)
            close(self, function(x), torch.nn.functional.max_pool1d(x, 3, 2, 1).sum(0))

    def test_out(self):
        op = kernelgen.op(RELU)

        @torch.compile(fullgraph=True)
        def function(x, out):
            op(x, out=out)
            return out + 1
        out = torch.zeros(9, device=DEVICE)
        close(self, function(draw(9), out), torch.relu(draw(9)) + 1)
        close(self, out, torch.relu(draw(9)))

    def test_strided_inputs(self):
        op = kernelgen.op("softmax.kg", "softmax")
        function = torch.compile(lambda x: op(x.T), fullgraph=True)
        close(self, function(draw(6, 8)), torch.softmax(draw(6, 8).T, 1))

    def test_registered_under_a_name(self):
        op = kernelgen.op(SPLIT)
        operator = op.register("mine::split")
        self.assertIs(operator, torch.ops.mine.split.default)
        self.assertEqual(str(operator._schema), "mine::split(Tensor x) -> (Tensor, Tensor)")
        with self.assertRaisesRegex(kernelgen.ArgumentError, "there is an operator mine::split already"):
            op.register("mine::split")
        with self.assertRaisesRegex(kernelgen.ArgumentError, "'split' is no name of an operator"):
            op.register("split")

    def test_checks_of_pytorch(self):
        op = kernelgen.op(SPLIT)
        torch.library.opcheck(op._torch_op, (draw(6, 50),))
        torch.library.opcheck(op._torch_op_out, (draw(6, 50), draw(6), draw(6)))

    def test_meta_tensors(self):
        total, _ = kernelgen.op(SPLIT)(torch.empty(6, 50, device="meta"))
        self.assertEqual((total.shape, total.device.type), ((6,), "meta"))
        with self.assertRaisesRegex(kernelgen.ShapeError, "x has 2 dimensions, not 1"):
            kernelgen.op(SPLIT)(torch.empty(6, device="meta"))
        x = torch.empty(6, 50, device="meta")
        self.assertEqual(kernelgen.op(POOL)(x=x).shape, (6, 25))
        self.assertEqual(kernelgen.op(POOL).bind(S=1)(x).shape, (6, 50))
        with self.assertRaisesRegex(kernelgen.ArgumentError, r"use bind\(\) before"):
            kernelgen.op(POOL)(x, S=1)

    def test_exported(self):
        class Module(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.op = kernelgen.op(RELU)

            def forward(self, x):
                return self.op(x) + 1
        program = torch.export.export(Module(), (draw(9),))
        close(self, program.module()(draw(9)), torch.relu(draw(9)) + 1)

    def test_op_made_before_torch_was_imported(self):
        ran = subprocess.run([sys.executable, "-c", f"""
import kernelgen
op = kernelgen.op({RELU!r})
import torch
x = torch.randn(5)
op(x)
assert torch.equal(torch.compile(lambda x: op(x), fullgraph=True)(x), torch.relu(x))
"""], capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr)


class ThroughTvm(unittest.TestCase):
    """Plans as functions of tvm-ffi."""

    def setUp(self):
        try:
            import tvm_ffi
        except ImportError:
            self.skipTest("tvm_ffi is not installed")
        from kernelgen import library
        self.execute = tvm_ffi.load_module(str(library.library_path()))["kernelgen_execute"]

    def test_results(self):
        op = kernelgen.op("softmax.kg", "softmax")
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            x = draw(12, 40, dtype=dtype)
            y = torch.empty_like(x)
            plan = op.plan(x)
            self.execute(plan.handle, x, y)
            close(self, y, torch.softmax(x, 1), 1e-2)
        view = draw(12, 80)[:, ::2]
        y = torch.empty(12, 40, device=DEVICE)
        plan = op.plan(view)
        self.execute(plan.handle, view, y)
        close(self, y, torch.softmax(view, 1))

    def test_refusals(self):
        op = kernelgen.op(RELU)
        plan = op.plan(draw(9))
        for error, words, arguments in (
                (TypeError, "the first argument is the handle of a plan", (draw(9), draw(9))),
                (TypeError, "a plan of op relu1 takes its handle and 2 tensors, not 1", (plan.handle, draw(9))),
                (TypeError, "op relu1: y is no tensor", (plan.handle, draw(9), 7)),
                (ValueError, "op relu1: x has another dtype", (plan.handle, draw(9).half(), draw(9))),
                (ValueError, "op relu1: y has other sizes or strides", (plan.handle, draw(9), draw(8))),
                (ValueError, "op relu1: x has other sizes or strides", (plan.handle, draw(18)[::2], draw(9)))):
            with self.assertRaisesRegex(error, words):
                self.execute(*arguments)


class OnGpu(unittest.TestCase):
    @on_gpu
    def test_current_stream(self):
        op = kernelgen.op(RELU)
        x = draw(1 << 22)
        op(x)
        torch.cuda.synchronize()
        stream = torch.cuda.Stream()
        for _ in range(3):
            with torch.cuda.stream(stream):
                torch.cuda._sleep(20_000_000)
                later = x * 3
                y = op(later)
            stream.synchronize()
            self.assertTrue(torch.equal(y, torch.relu(3 * x)))

    @on_gpu
    def test_graphs(self):
        for op, expected in ((kernelgen.op(RELU), lambda x: torch.relu(x)),
                             (kernelgen.op("op total(x: f32[N]) -> (y: f32[])\n{ y[] = sum(i) x[i] }\n"),
                              lambda x: x.sum())):
            x = draw(100000)
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                for _ in range(3):
                    op(x)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream):
                y = op(x)
            for factor in (1, -2, 5):
                x.copy_(draw(100000) * factor)
                graph.replay()
                torch.cuda.synchronize()
                close(self, y, expected(x), 1e-2)

    @on_gpu
    def test_reduce_overhead(self):
        op = kernelgen.op(RELU)
        function = torch.compile(lambda x: op(x * 2) + 1, fullgraph=True, mode="reduce-overhead")
        for seed in range(5):
            x = draw(4096) + seed
            close(self, function(x).clone(), torch.relu(2 * x) + 1)

    @on_gpu
    def test_search_and_gate(self):
        op = kernelgen.op("softmax.kg", "softmax")
        x = draw(4096, 1024)
        self.assertTrue(op.verify(x, progress=False))
        self.assertTrue(op.tune(x, seconds=5, progress=False).verified)
        close(self, op(x), torch.softmax(x, 1))
        times = op.bench(x, against=lambda x: torch.softmax(x, 1), progress=False)
        self.assertLess(times.difference, 1e-6)
        print(times)

    @on_gpu
    def test_cupy(self):
        cupy = need("cupy")
        op = kernelgen.op("softmax.kg", "softmax")
        x = draw(33, 65)
        for _ in range(3):
            y = op(cupy.asarray(x))
            self.assertIsInstance(y, cupy.ndarray)
            close(self, torch.as_tensor(y, device=DEVICE), torch.softmax(x, 1))
        with cupy.cuda.Stream(non_blocking=True) as stream:
            y = op(cupy.asarray(x))
            stream.synchronize()
        close(self, torch.as_tensor(y, device=DEVICE), torch.softmax(x, 1))


main()
