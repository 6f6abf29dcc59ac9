"""The products of the table: which shapes, in which sets, of which dtypes. Needs no package."""

import os
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
OPS = os.path.join(os.path.dirname(os.path.dirname(HERE)), "ops")
BYTES = {"f16": 2, "bf16": 2, "f32": 4}
CUBES = 256, 512, 1024, 2048, 4096, 8192
# N and K of a layer's four products: QKV, output, gate and up, down.
LAYERS = {"8B": [(6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336)],
          "70B": [(10240, 8192), (8192, 8192), (57344, 8192), (8192, 28672)]}
RAGGED = (4097, 4095, 4100), (1000, 1000, 1000), (333, 7777, 1025), (8192, 8, 8192), (64, 64, 65536)
FUSED = ((4096, 4096, 4096), (1024, 1024, 1024), (16, 28672, 4096), (256, 28672, 4096),
         (2048, 28672, 4096), (2048, 4096, 14336))
# Triton's hundred configs take their time.
FOR_TRITON = {(512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096),
              (8192, 8192, 8192), (16, 28672, 4096), (64, 4096, 14336), (256, 6144, 4096),
              (2048, 28672, 4096), (1000, 1000, 1000)}
SETS = "cubes", "decode", "prefill", "ragged", "batched", "f32", "epilogue"


@dataclass
class Shape:
    group: str
    dtype: str
    m: int
    n: int
    k: int
    op: str = "matmul_nt"  # x[m, k] * w[n, k]: a linear layer's weight as it lies
    batch: int = 1

    @property
    def label(self):
        batch = f"{self.batch} x " if self.batch > 1 else ""
        kind = "" if self.op in ("matmul_nt", "matmul_batched") else f" {self.op}"
        return f"{batch}{self.m}x{self.n}x{self.k}{kind} {self.dtype}"

    @property
    def file(self):
        if self.op == "linear_gelu_tanh":
            return os.path.join(HERE, "linear.kg")
        return os.path.join(OPS, "matmul.kg")

    @property
    def sizes(self):
        sizes = {"M": self.m, "N": self.n, "K": self.k}
        return {"B": self.batch, **sizes} if self.batch > 1 else sizes

    @property
    def bindings(self):
        return {"T": self.dtype, **self.sizes}

    @property
    def linear(self):
        """Is the weight transposed, as layers keep it?"""
        return self.op not in ("matmul", "matmul_batched")

    @property
    def gelu(self):
        """How torch calls the GELU behind the product; None: there is none."""
        return {"linear_gelu": "none", "linear_gelu_tanh": "tanh"}.get(self.op)

    @property
    def flops(self):
        return 2 * self.batch * self.m * self.n * self.k

    @property
    def bytes(self):
        bias = self.n if self.gelu else 0
        elements = self.batch * (self.m * self.k + self.k * self.n + self.m * self.n)
        return BYTES[self.dtype] * (elements + bias)

    @property
    def is_skinny(self):
        """Do bytes count, and not operations?"""
        return self.m <= 64 and self.bytes > 1 << 24

    @property
    def is_small(self):
        return self.batch == 1 and max(self.m, self.n, self.k) <= 512

    @property
    def suits_triton(self):
        is_plain = self.op == "matmul_nt" and self.dtype != "f32"
        return is_plain and (self.m, self.n, self.k) in FOR_TRITON

    @property
    def contenders(self):
        """All that could run."""
        yield from ("kernelgen", "patterns", "measured", "lt", "lt_tuned", "torch")
        if self.gelu:
            yield "compile"
        if self.suits_triton:
            yield "triton"
        if self.is_skinny:
            yield "read"

    def record(self):
        return dict(label=self.label, group=self.group, op=self.op, dtype=self.dtype, m=self.m,
                    n=self.n, k=self.k, batch=self.batch, flops=self.flops, bytes=self.bytes)


def _of(group, dtype):
    if group == "cubes":
        yield from (Shape(group, dtype, n, n, n) for n in CUBES)
        yield from (Shape(group, dtype, n, n, n, "matmul") for n in (512, 4096))
    elif group in ("decode", "prefill"):
        rows = (1, 2, 4, 8, 16, 32, 64) if group == "decode" else (128, 256, 512, 1024, 2048, 4096)
        for layer in LAYERS.values():
            yield from (Shape(group, dtype, m, n, k) for n, k in layer for m in rows)
    elif group == "ragged":
        yield from (Shape(group, dtype, *sizes) for sizes in RAGGED)
        yield Shape(group, dtype, *RAGGED[0], "matmul")
    elif group == "batched":
        yield Shape(group, dtype, 512, 512, 512, "matmul_batched", 64)
    elif group == "epilogue":
        for op in ("linear_gelu_tanh", "linear_gelu"):
            yield from (Shape(group, dtype, *sizes, op) for sizes in FUSED)


def _all(groups, dtypes):
    for group in SETS:
        if group not in groups and "all" not in groups:
            continue
        if group == "f32":
            yield from (Shape(group, "f32", n, n, n) for n in CUBES if n >= 2048)
        else:
            for dtype in dtypes:
                yield from _of(group, dtype)


def shapes(groups, dtypes):
    """In the order of the table; what two sets have in common stands in the first."""
    chosen = {}
    for shape in _all(groups, dtypes):
        chosen.setdefault(shape.label, shape)
    return list(chosen.values())
