"""The process that times products with quantised weights for w4a16.py; a product may crash it."""

import torch

from matmul_worker import ProductWorker, Products
from timing_worker import OURS, Contenders, Unavailable, run_task
from w4a16_shapes import MODES, Shape

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
        self.packed = self.draw_weights(k, n)
        scales = ((torch.rand(runs, n, device="cuda") + 0.5) / 8).to(dtype)
        self.scales = scales
        offsets = torch.randn(runs, n, device="cuda").to(dtype)
        zeros = torch.randint(0, 256, (runs, n * shape.bits // 8), dtype=torch.uint8,
                              device="cuda")
        self.x = torch.randn(shape.m, k, dtype=dtype, device="cuda")
        self.y = torch.empty(shape.m, n, dtype=dtype, device="cuda")
        self.bias = None
        self.beside = {"zero": zeros, "w8_zero": zeros, "offset": offsets,
                       "column_offset": offsets[0]}.get(shape.mode)
        weights = self.in_panels(k, n) if shape.packed else self.packed
        self.inputs = [self.x, weights, scales if shape.run else scales[0]]
        self.inputs += [] if self.beside is None else [self.beside]
        if "lines" in shape.mode:
            self.inputs[2] = scales.t().contiguous()
        self.w = torch.empty(k, n, dtype=dtype, device="cuda")
        self.wanted = torch.zeros(shape.m, n, device="cuda")
        step = max(shape.run, PIECE // max(shape.run, 1) * max(shape.run, 1))
        for first in range(0, k, step):
            wide = self.widened(first, min(step, k - first), scales)
            self.w[first:first + step] = wide.to(dtype)
            self.wanted += self.x[:, first:first + step].float() @ wide

    def draw_weights(self, k, n):
        """As they lie in memory: two of 4 bits share a byte, along K where they are lines."""
        kind = self.shape.mode[:2]
        lines, length = (n, k) if "lines" in self.shape.mode else (k, n)
        if kind == "f8":
            return torch.randn(lines, length, device="cuda").to(torch.float8_e4m3fn)
        if kind == "w8":
            dtype = torch.uint8 if self.shape.mode == "w8_zero" else torch.int8
            return torch.randint(0, 256, (lines, length), device="cuda").to(torch.uint8).view(dtype)
        return torch.randint(0, 256, (lines, length // 2), dtype=torch.uint8, device="cuda")

    def in_panels(self, k, n):
        """Of each panel of 64 rows and 16 columns the bytes that docs/packed.md lays out."""
        codes = torch.stack((self.packed & 15, self.packed >> 4), -1).view(k, n)
        tall, wide = -(-k // 64), -(-n // 16)
        padded = torch.zeros(tall * 64, wide * 16, dtype=torch.uint8, device="cuda")
        padded[:k, :n] = codes
        # Rows are 16 * step + 8 * upper + 2 * t + odd, columns 2 * g + right.
        parts = padded.view(tall, 4, 2, 4, 2, wide, 8, 2)
        ordered = parts.permute(0, 5, 6, 3, 1, 4, 2, 7).reshape(tall, wide, 512, 2)
        return ordered[..., 0] | ordered[..., 1] << 4

    def humming(self):
        from humming_peer import product
        shape = self.shape
        if shape.mode not in MODES:
            raise Unavailable(f"nothing was written that gives Humming weights of {shape.mode}")
        codes = torch.stack((self.packed & 15, self.packed >> 4), -1).view(shape.k, shape.n)
        codes = codes ^ 8 if shape.mode == "signed" else codes
        zeros = self.beside
        if zeros is not None:
            zeros = torch.stack((zeros & 15, zeros >> 4), -1).view(zeros.shape[0], -1)
        run = product(self.x, self.y, codes, self.scales, zeros, shape.run)
        return run, run

    def allowed(self, name):
        """Peers multiply weights that were rounded to 16 bits."""
        rounded = 160 if self.shape.mode[:2] == "w8" else 10
        return super().allowed(name) * (1 if name in OURS else rounded)

    @staticmethod
    def unpacked(packed):
        """Integers of 4 bits, two of a byte side by side, as f32."""
        return torch.stack((packed & 15, packed >> 4), -1).view(packed.shape[0], -1).float()

    def widened(self, first, count, scales):
        """Rows of weights from `first` on, in f32."""
        shape, group = self.shape, self.shape.run or self.shape.k
        rows = torch.arange(first, first + count, device="cuda") // group
        wide, scale = 8 // shape.bits, scales[rows].float()
        if "lines" in shape.mode:
            packed = self.packed[:, first // wide:(first + count) // wide]
        else:
            packed = self.packed[first:first + count]
        values = packed.float() if shape.bits == 8 else self.unpacked(packed)
        values = values.t() if "lines" in shape.mode else values
        if shape.mode == "signed":
            values = (values + 8) % 16 - 8
        elif shape.mode == "zero":
            values = values - self.unpacked(self.beside)[rows]
        elif shape.mode == "w8_zero":
            values = values - self.beside[rows].float()
        elif shape.mode == "offset":
            return values * scale + self.beside[rows].float()
        elif shape.mode == "column_offset":
            return values * scale + self.beside.float()
        elif shape.bits == 4:
            values = values - 8
        values = values * scale
        return values.to(self.x.dtype).float() if shape.rounded else values


if __name__ == "__main__":
    run_task(WeightsWorker, Shape, Weights)
