"""Products with 4-bit weights: listed shapes, and shapes drawn by a seed. Needs no package."""

import math
import os
import random
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
MODES = "group", "zero", "signed", "column"
# Only listed, not drawn. Weights of 8 bits, integers and floats; a float offset behind the scale;
# weights that are adjacent along K.
OTHER_MODES = ("w8_column", "w8_group", "w8_zero", "f8_column", "f8_group", "offset",
               "column_offset", "lines", "w8_lines", "f8_lines")
ROWS = 1, 2, 3, 4, 8, 13, 16, 32, 64, 128, 256, 512, 1024, 4096
# N and K of layers: Llama-3-8B and 70B, Qwen2.5-7B and 32B, awkward ones of DeepSeek-V2-Lite.
LAYERS = ((28672, 4096), (4096, 14336), (6144, 4096), (4096, 4096),
          (57344, 8192), (8192, 28672), (10240, 8192), (8192, 8192),
          (37888, 3584), (3584, 18944), (4608, 3584), (3584, 3584),
          (55296, 5120), (5120, 27648), (7168, 5120), (5120, 5120),
          (576, 2048), (2048, 10944), (2048, 1408))


@dataclass
class Shape:
    group: str
    mode: str
    dtype: str
    m: int
    n: int
    k: int
    run: int  # rows of weights that share a scale; 0: all of a column
    packed: bool = False  # in panels: docs/packed.md
    rounded: bool = False  # to 16 bits once they are scaled
    gelu = ""
    linear = False

    @property
    def label(self):
        run = f" {self.run}" if self.run else ""
        ways = (" rounded" if self.rounded else "") + (" packed" if self.packed else "")
        return f"{self.m}x{self.n}x{self.k} {self.mode}{run}{ways} {self.dtype}"

    @property
    def op(self):
        name = self.mode if self.mode[:2] in ("w8", "f8") else "w4_" + self.mode
        return name + ("_rounded" if self.rounded else "") + ("_packed" if self.packed else "")

    @property
    def file(self):
        return os.path.join(HERE, "w4a16.kg")

    @property
    def sizes(self):
        return {"M": self.m, "N": self.n, "K": self.k}

    @property
    def params(self):
        return {"G": self.run} if self.run else {}

    @property
    def bindings(self):
        return {"T": self.dtype, **self.sizes, **self.params}

    @property
    def bits(self):
        return 8 if self.mode[:2] in ("w8", "f8") else 4

    @property
    def runs(self):
        return -(-self.k // self.run) if self.run else 1

    @property
    def weight_bytes(self):
        """Packed, with scales and zero points."""
        lines = self.runs * self.n  # of scales and zero points
        zeros = dict(zero=lines // 2, w8_zero=lines, offset=lines * 2, column_offset=lines * 2)
        return self.k * self.n * self.bits // 8 + lines * 2 + zeros.get(self.mode, 0)

    @property
    def bytes(self):
        return self.weight_bytes + 2 * self.m * (self.k + self.n)

    @property
    def flops(self):
        return 2 * self.m * self.n * self.k

    @property
    def contenders(self):
        yield from ("kernelgen", "measured", "lt", "lt_tuned", "humming")
        if self.m <= 64 and self.bytes > 1 << 22:
            yield "read"

    def record(self):
        return dict(label=self.label, group=self.group, op=self.op, dtype=self.dtype,
                    mode=self.mode, packed=self.packed, rounded=self.rounded, m=self.m, n=self.n,
                    k=self.k, run=self.run, flops=self.flops, bytes=self.bytes)


def listed(rows, modes, dtypes, runs, packed=False, rounded=False):
    """Every layer with all rows, for each mode, dtype and group size."""
    for n, k in LAYERS:
        for mode in modes:
            for run in runs if "column" not in mode else (0,):
                for dtype in dtypes:
                    yield from (Shape("listed", mode, dtype, m, n, k, run, packed, rounded)
                                for m in rows)


def drawn(seed, count, packed=False, rounded=False):
    """M, N and K log-uniform; N and K multiples of 8, K of the group as well."""
    dice = random.Random(seed)

    def size(least, most, of):
        value = math.exp(dice.uniform(math.log(least), math.log(most)))
        return max(of, round(value / of) * of)
    for _ in range(count):
        mode, dtype = dice.choice(MODES), dice.choice(("f16", "bf16"))
        run = dice.choice((16, 32, 64, 128, 256)) if mode != "column" else 0
        yield Shape("drawn", mode, dtype, size(1, 8192, 1), size(512, 32768, 8),
                    size(512, 32768, max(run, 8)), run, packed, rounded)
