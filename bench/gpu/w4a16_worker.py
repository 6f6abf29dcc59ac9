"""The process that times products with 4-bit weights for w4a16.py; a product may crash it."""

import torch

from matmul_worker import ProductWorker, Products
from timing_worker import OURS, Contenders, run_task
from w4a16_shapes import Shape

PIECE = 4096


class WeightsWorker(ProductWorker):
    """Caches are full of other layers' weights, which were read."""

    FLUSHES_BY_READING = True


class Weights(Products):
    """Packed weights, what they stand for in 16 bits for peers, and the right result."""

    def __init__(self, worker, shape):
        Contenders.__init__(self, worker, shape)
        dtype = {"f16": torch.float16, "bf16": torch.bfloat16}[shape.dtype]
        k, n, runs = shape.k, shape.n, shape.runs
        packed = torch.randint(0, 256, (k, n // 2), dtype=torch.uint8, device="cuda")
        scales = ((torch.rand(runs, n, device="cuda") + 0.5) / 8).to(dtype)
        zeros = torch.randint(0, 256, (runs, n // 2), dtype=torch.uint8, device="cuda")
        self.x = torch.randn(shape.m, k, dtype=dtype, device="cuda")
        self.y = torch.empty(shape.m, n, dtype=dtype, device="cuda")
        self.bias = None
        self.inputs = [self.x, packed, scales if shape.run else scales[0]]
        self.inputs += [zeros] if shape.mode == "zero" else []
        self.w = torch.empty(k, n, dtype=dtype, device="cuda")
        self.wanted = torch.zeros(shape.m, n, device="cuda")
        step = max(shape.run, PIECE // max(shape.run, 1) * max(shape.run, 1))
        for first in range(0, k, step):
            wide = self.widened(packed[first:first + step], first, scales, zeros)
            self.w[first:first + step] = wide.to(dtype)
            self.wanted += self.x[:, first:first + step].float() @ wide

    def allowed(self, name):
        """Peers multiply weights that were rounded to 16 bits."""
        return super().allowed(name) * (1 if name in OURS else 10)

    def widened(self, packed, first, scales, zeros):
        """Rows of weights from `first` on, in f32."""
        shape, group = self.shape, self.shape.run or self.shape.k
        rows = torch.arange(first, first + packed.shape[0], device="cuda") // group
        integers = torch.stack((packed & 15, packed >> 4), -1).view(packed.shape[0], -1).float()
        if shape.mode == "signed":
            integers = (integers + 8) % 16 - 8
        elif shape.mode == "zero":
            both = torch.stack((zeros & 15, zeros >> 4), -1).view(zeros.shape[0], -1).float()
            integers -= both[rows]
        else:
            integers -= 8
        return integers * scales[rows].float()


if __name__ == "__main__":
    run_task(WeightsWorker, Shape, Weights)
