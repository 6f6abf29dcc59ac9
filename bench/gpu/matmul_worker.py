"""The process that times products for matmul.py and drawn.py; a product may crash it."""

import math

import torch
import torch.nn.functional as F

from matmul_shapes import Shape
from timing import medians
from timing_worker import Contenders, Unavailable, Worker, run_task, words_of

# Unit roundoffs; the errors allowed beyond one of them, over sqrt(K), since inputs are normal.
ROUNDOFF = {"f16": 2.0 ** -11, "bf16": 2.0 ** -8, "f32": 0}
ALLOWED = {"f16": 1e-3, "bf16": 1e-3, "f32": 1e-4}
PIECE = 1 << 26


class ProductWorker(Worker):
    """With cuBLASLt and Triton's tuner."""

    def __init__(self, task, tell):
        super().__init__(task, tell)
        self.lt = self.triton = None
        self.lt_reason = ""
        try:
            from cublaslt import Lt
            self.lt = Lt()
            tell(about=dict(cublaslt=self.lt.version))
        except Exception as problem:
            self.lt_reason = words_of(problem)

    def tuner(self):
        if not self.triton:
            from triton_matmul import Tuner
            self.triton = Tuner(self.clock)
        return self.triton


class Products(Contenders):
    """The operands and the result of a product."""

    def __init__(self, worker, shape):
        super().__init__(worker, shape)
        dtype = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}[shape.dtype]
        batch = (shape.batch,) if shape.batch > 1 else ()

        def normal(*sizes):
            return torch.randn(sizes, dtype=dtype, device="cuda")
        weight = (shape.n, shape.k) if shape.linear else (shape.k, shape.n)
        self.x, self.w = normal(*batch, shape.m, shape.k), normal(*batch, *weight)
        self.bias = normal(shape.n) if shape.gelu else None
        self.y = torch.empty((*batch, shape.m, shape.n), dtype=dtype, device="cuda")
        self.inputs = [t for t in (self.x, self.w, self.bias) if t is not None]
        self.wanted = self.reference(torch.float64 if shape.dtype == "f32" else torch.float32)

    def reference(self, wide):
        x, w = self.x.to(wide), self.w.to(wide)
        y = torch.matmul(x, w.mT if self.shape.linear else w)
        if self.shape.gelu:
            y += self.bias.to(wide)
            y = F.gelu(y, approximate=self.shape.gelu)
        return y

    def errors(self, y):
        """Over sqrt(K): the largest beyond one rounding, the largest, the root of mean squares."""
        beyond, most, squares = [], [], []
        for a, b in zip(y.reshape(-1).split(PIECE), self.wanted.reshape(-1).split(PIECE)):
            error = (a.to(b.dtype) - b).abs()
            beyond.append((error - ROUNDOFF[self.shape.dtype] * b.abs()).max())
            most.append(error.max())
            squares.append(error.double().square().sum())
        scale = math.sqrt(self.shape.k)
        return [torch.stack(beyond).max().item() / scale, torch.stack(most).max().item() / scale,
                math.sqrt(torch.stack(squares).sum().item() / y.numel()) / scale]

    def allowed(self, _name):
        return ALLOWED[self.shape.dtype] * (2 if self.shape.gelu else 1)

    def check(self, name, run):
        """The errors of one run; what it does not write is NaN."""
        self.y.fill_(math.nan)
        out = run()
        errors = self.errors(self.y if out is None else out)
        self.worker.stream.synchronize()
        if not errors[0] <= self.allowed(name):
            raise Unavailable(f"wrong: an error of {errors[0]:.3g} sqrt(K)")
        return dict(max=errors[1], rms=errors[2])

    # ---- Contenders ----

    def torch(self):
        x, w, bias, y = self.x, self.w, self.bias, self.y
        if self.shape.gelu:
            kind = self.shape.gelu
            run = lambda: F.gelu(F.linear(x, w, bias), approximate=kind)
        else:
            w = w.mT if self.shape.linear else w
            run = lambda: torch.matmul(x, w, out=y)
        return run, run

    def compile(self):
        x, w, bias, kind = self.x, self.w, self.bias, self.shape.gelu
        made = torch.compile(
            lambda x, w, bias: F.gelu(F.linear(x, w, bias), approximate=kind), dynamic=False)
        run = lambda: made(x, w, bias)
        return run, run

    def product(self):
        if not self.worker.lt:
            raise Unavailable(self.worker.lt_reason)
        if self.shape.gelu == "none":
            raise Unavailable("cuBLASLt fuses the GELU by tanh alone")
        product = self.worker.lt.product(self.x, self.w, self.y, self.shape.linear, self.bias)
        self.open.append(product)
        return product

    def lt(self):
        product = self.product()
        run = product.on(product.answers()[0], self.worker.stream.cuda_stream)
        return run, run

    def lt_tuned(self):
        """The fastest of the first answers; cold and in a graph it need not be the same one."""
        clock, stream, product = self.worker.clock, self.worker.stream, self.product()
        runs = {}
        for place, answer in enumerate(product.answers()):
            run = product.on(answer, stream.cuda_stream)
            try:
                run()
                stream.synchronize()
                runs[place] = run
            except RuntimeError:
                pass  # cannot run this shape
        cold = medians(clock.race(runs, 5, True))
        graphs = medians(clock.replay({place: clock.record(run, cold[place])
                                       for place, run in runs.items()}, 5))
        first, second = min(cold, key=cold.get), min(graphs, key=graphs.get)
        self.notes["lt_tuned"] = dict(answers=len(runs), cold=first, graph=second)
        return runs[first], runs[second]

    def triton(self):
        run, self.notes["triton"] = self.worker.tuner().tune(self.y, self.x, self.w)
        return run, run


if __name__ == "__main__":
    run_task(ProductWorker, Shape, Products)
