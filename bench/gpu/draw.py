#!/usr/bin/env python3
"""Shapes drawn by a seed, for drawn.py: which operators, of which sizes. Needs no package.

    bench/gpu/draw.py --list [--seed S] [--count N] [--set products,rows] [--dtype f16,bf16]

The kinds of a set take turns; everything else of a case is drawn. Each quantity is a hash of the
seed, the set, the number of the case and the quantity's own name. So a case is the same on every
machine, with any version of Python and for every --count, and a quantity that is added later
changes no other one.

Sizes are log-uniform over the ranges of their kind, both ends included. In the memory-bound sets
the bytes of all tensors together are log-uniform over BYTES, and the size of one axis follows from
them. Products have sizes for every axis, and are drawn again outside PRODUCT_BYTES or above
MAX_FLOPS. Half of the cases have their contiguous sizes rounded to a multiple of 8 or 64 elements
(of 8 below 64); the others keep them as drawn, seldom a multiple of 8.
"""

import argparse
import hashlib
import math
import os
from dataclasses import dataclass

from matmul_shapes import BYTES as ELEMENT_BYTES
from matmul_shapes import OPS, Shape

BYTES = 1 << 20, 1 << 30
PRODUCT_BYTES = 1 << 16, 1 << 30
MAX_FLOPS = 1 << 42  # about 6 ms at the speed of an H200's tensor cores
ALIGNED_BYTES = 16  # the widest access, and what tensor maps ask of a pitch
SIZES = {"bool": 1, "i64": 8, **ELEMENT_BYTES}
ATTEMPTS = 1000


# ---- Operators and ranges ----


@dataclass(frozen=True)
class Kind:
    """A memory-bound operator. A tensor is named by its axes, one letter each, after its dtype
    where that is not the one drawn: "PD", "bool:PD"."""
    op: str
    file: str
    inputs: tuple
    output: str
    ranges: dict        # of each axis but `rest`
    rest: str           # the axis whose size follows from the bytes
    aligned: str = ""   # the axis that is rounded in aligned cases

    @property
    def tensors(self):
        return self.inputs + (self.output,)


@dataclass(frozen=True)
class ProductKind:
    """Sizes of a product; with one range, M, N and K are equal."""
    name: str
    ops: tuple
    ranges: dict
    aligned: str        # the axes that are rounded in aligned cases


ROW = dict(ranges={"D": (32, 200000)}, rest="P", aligned="D")
WIDE_ROW = dict(ranges={"D": (8, 65536)}, rest="P", aligned="D")
FLAT = dict(ranges={}, rest="N", aligned="N")
IMAGE = dict(ranges={"C": (3, 2048), "H": (4, 256), "W": (4, 256)}, rest="N", aligned="W")
COLUMN = dict(ranges={"D": (32, 65536)}, rest="P", aligned="D")
MIDDLE = dict(ranges={"B": (8, 8192), "C": (8, 16384)}, rest="A", aligned="C")
SCAN = dict(ranges={"D": (32, 262144)}, rest="P", aligned="D")
# Eager PyTorch scans a column with one thread: millions of rows would take seconds.
SCAN_DOWN = dict(ranges={"P": (32, 65536)}, rest="D", aligned="D")


def _rows():
    for op, file, vectors in (("softmax", "softmax.kg", 0), ("log_softmax", "softmax.kg", 0),
                              ("rms_norm", "normalisation.kg", 1),
                              ("layer_norm", "normalisation.kg", 2)):
        yield Kind(op, file, ("PD",) + ("D",) * vectors, "PD", **ROW)


def _pointwise():
    yield Kind("bias_relu", "bias_relu.kg", ("PD", "D"), "PD", **WIDE_ROW)
    yield Kind("gelu", "activations.kg", ("N",), "N", **FLAT)
    yield Kind("scale_shift", "broadcast.kg", ("PD", "D", "D"), "PD", **WIDE_ROW)
    yield Kind("masked_fill", "masking.kg", ("PD", "bool:PD"), "PD", **WIDE_ROW)
    yield Kind("add_channel", "broadcast.kg", ("NCHW", "C"), "NCHW", **IMAGE)
    yield Kind("bias_gelu", "broadcast.kg", ("PD", "D"), "PD", **WIDE_ROW)
    yield Kind("silu", "activations.kg", ("N",), "N", **FLAT)
    yield Kind("lower_triangle", "masking.kg", ("MN",), "MN", {"N": (32, 32768)}, "M", "N")
    yield Kind("add_first", "broadcast.kg", ("PD", "P"), "PD", **WIDE_ROW)
    yield Kind("scale_shift_channel", "broadcast.kg", ("NCHW", "C", "C"), "NCHW", **IMAGE)
    yield Kind("add_middle", "broadcast.kg", ("NCPD", "CD"), "NCPD",
               {"C": (2, 1024), "P": (4, 4096), "D": (1, 16)}, "N")
    yield Kind("bias_residual_leaky", "broadcast.kg", ("PD", "D", "PD"), "PD", **WIDE_ROW)
    yield Kind("add_mask", "masking.kg", ("BHMN", "BN"), "BHMN",
               {"B": (1, 64), "H": (1, 64), "N": (16, 8192)}, "M", "N")


def _reductions():
    for call in ("sum", "mean", "max", "argmax"):
        dtype = "i64:" if call == "argmax" else ""
        for axis, x, y, sizes in (("last", "PD", "P", ROW), ("first", "PD", "D", COLUMN),
                                  ("middle", "ABC", "AC", MIDDLE)):
            yield Kind(f"{call}_{axis}", "reductions.kg", (x,), dtype + y, **sizes)


def _scans():
    for op in ("cumsum", "cumsum_exclusive", "cumsum_reverse", "cumsum_first", "cumsum_masked",
               "cummax", "cumprod", "cummin"):
        inputs = ("PD", "bool:PD") if op == "cumsum_masked" else ("PD",)
        yield Kind(op, "scans.kg", inputs, "PD", **(SCAN_DOWN if op == "cumsum_first" else SCAN))


def _products():
    layer, plain = ("matmul_nt",), ("matmul_nt", "matmul")
    sides = {"n": (512, 32768), "k": (512, 32768)}
    yield ProductKind("decode", layer, {"m": (1, 64), **sides}, "nk")
    yield ProductKind("square", plain, {"mnk": (64, 8192)}, "mnk")
    yield ProductKind("prefill", layer, {"m": (65, 8192), **sides}, "nk")
    yield ProductKind("any", plain, {axis: (16, 16384) for axis in "mnk"}, "mnk")
    yield ProductKind("batched", ("matmul_batched",),
                      {"batch": (2, 256), **{axis: (16, 2048) for axis in "mnk"}}, "mnk")


SETS = {name: tuple(kinds()) for name, kinds in
        (("products", _products), ("rows", _rows), ("pointwise", _pointwise),
         ("reductions", _reductions), ("scans", _scans))}
DTYPES = {name: ("f16", "bf16") if name == "products" else ("f16", "bf16", "f32")
          for name in SETS}


# ---- A memory-bound case, as Shape is a product ----


def axes_of(tensor):
    return tensor.rpartition(":")[2]


def bytes_of(tensors, dtype, sizes):
    total = 0
    for tensor in tensors:
        own, _, axes = tensor.rpartition(":")
        total += SIZES[own or dtype] * math.prod(sizes[axis] for axis in axes)
    return total


KIND_OF = {kind.op: kind for name, kinds in SETS.items() if name != "products" for kind in kinds}


@dataclass
class Operator:
    group: str
    op: str
    dtype: str
    sizes: dict

    @property
    def kind(self):
        return KIND_OF[self.op]

    @property
    def label(self):
        axes = axes_of(self.kind.inputs[0])
        return f"{self.op} {'x'.join(str(self.sizes[axis]) for axis in axes)} {self.dtype}"

    @property
    def file(self):
        return os.path.join(OPS, self.kind.file)

    @property
    def bindings(self):
        return {"T": self.dtype, **self.sizes}

    @property
    def bytes(self):
        return bytes_of(self.kind.tensors, self.dtype, self.sizes)

    @property
    def is_aligned(self):
        """Whether every row of the operand is aligned to the widest access."""
        row = self.sizes[axes_of(self.kind.inputs[0])[-1]]
        return row * SIZES[self.dtype] % ALIGNED_BYTES == 0

    @property
    def contenders(self):
        """All that could run. The speed of the memory is that of a copy or, for reductions, of a
        kernel that only reads."""
        yield from ("kernelgen", "patterns", "measured", "eager", "compile")
        yield "read" if self.group == "reductions" else "copy"

    def record(self):
        return dict(label=self.label, group=self.group, op=self.op, dtype=self.dtype,
                    sizes=self.sizes, bytes=self.bytes)


def is_aligned(case):
    if isinstance(case, Operator):
        return case.is_aligned
    rows = (case.k, case.n) if case.linear else (case.k, case.n, case.n)
    return all(row * SIZES[case.dtype] % ALIGNED_BYTES == 0 for row in rows)


# ---- Drawing ----


class Draw:
    """The numbers of one attempt at one case."""

    def __init__(self, *key):
        self.key = "/".join(map(str, key))

    def uniform(self, what):
        """In [0, 1)."""
        digest = hashlib.sha256(f"{self.key}/{what}".encode()).digest()
        return int.from_bytes(digest[:6], "big") / (1 << 48)

    def one_of(self, what, choices):
        return choices[int(self.uniform(what) * len(choices))]

    def size(self, what, low, high):
        """Log-uniform: as likely between 10 and 20 as between 1000 and 2000."""
        drawn = low * math.exp(self.uniform(what) * math.log((high + 1) / low))
        return min(high, int(drawn))

    def multiple(self):
        """The multiple that contiguous sizes are rounded to; 1: not rounded."""
        return self.one_of("multiple", (8, 64)) if self.uniform("aligned") < 0.5 else 1


def rounded(size, multiple):
    if multiple > 1 and size < 64:
        multiple = 8
    return max(multiple, (size + multiple // 2) // multiple * multiple)


def draw_operator(draw, group, kind, dtype):
    sizes = {axis: draw.size(axis, *bounds) for axis, bounds in kind.ranges.items()}
    multiple = draw.multiple()
    if kind.aligned in sizes:
        sizes[kind.aligned] = rounded(sizes[kind.aligned], multiple)
    # The bytes are linear in the size of the last axis.
    fixed, one = (bytes_of(kind.tensors, dtype, {**sizes, kind.rest: size}) for size in (0, 1))
    wanted = draw.size("bytes", *BYTES)
    sizes[kind.rest] = max(1, round((wanted - fixed) / (one - fixed)))
    if kind.aligned == kind.rest:
        sizes[kind.rest] = rounded(sizes[kind.rest], multiple)
    case = Operator(group, kind.op, dtype, sizes)
    return case if BYTES[0] <= case.bytes <= BYTES[1] else None


def draw_product(draw, kind, dtype):
    sizes, multiple = {}, draw.multiple()
    for axes, bounds in kind.ranges.items():
        size = draw.size(axes, *bounds)
        if set(axes) <= set(kind.aligned):
            size = rounded(size, multiple)
        sizes.update({axis: size for axis in ([axes] if axes == "batch" else axes)})
    case = Shape(kind.name, dtype, op=draw.one_of("op", kind.ops), **sizes)
    fits = PRODUCT_BYTES[0] <= case.bytes <= PRODUCT_BYTES[1] and case.flops <= MAX_FLOPS
    return case if fits else None


def draw_case(seed, name, number, dtypes, taken):
    """The first attempt within the bounds that is not equal to an earlier case."""
    kind = SETS[name][number % len(SETS[name])]
    for attempt in range(ATTEMPTS):
        draw = Draw(seed, name, number, attempt)
        dtype = draw.one_of("dtype", dtypes)
        if name == "products":
            case = draw_product(draw, kind, dtype)
        else:
            case = draw_operator(draw, name, kind, dtype)
        if case and case.label not in taken:
            return case
    raise ValueError(f"no shape within the bounds for case {number} of {name}")


def draw_cases(seed, name, count, dtypes=None):
    """The first `count` cases of a set: the same ones, whatever the count."""
    taken, cases = set(), []
    for number in range(count):
        cases.append(draw_case(seed, name, number, dtypes or DTYPES[name], taken))
        taken.add(cases[-1].label)
    return cases


# ---- The command line that drawn.py shares ----


def add_arguments(parser):
    parser.add_argument("--seed", default="1", help="any word; the same one gives the same shapes")
    parser.add_argument("--count", type=int, default=40, help="of cases in each set")
    parser.add_argument("--set", default=",".join(SETS), help=", ".join(SETS))
    parser.add_argument("--dtype", default="", help="only these, split by commas")
    parser.add_argument("--list", action="store_true", help="print what is drawn; needs no GPU")


def parse(parser):
    arguments = parser.parse_args()
    arguments.sets = arguments.set.split(",")
    arguments.dtypes = arguments.dtype.split(",") if arguments.dtype else None
    unknown = [name for name in arguments.sets if name not in SETS]
    unknown += [name for name in arguments.dtypes or () if name not in ELEMENT_BYTES]
    if unknown:
        parser.error(f"no such set or dtype: {', '.join(unknown)}")
    return arguments


def print_list(arguments):
    for name in arguments.sets:
        cases = draw_cases(arguments.seed, name, arguments.count, arguments.dtypes)
        for number, case in enumerate(cases):
            print(f"{name} {number:3} {case.group:10} {case.label:44} {case.bytes * 1e-6:8.1f} MB"
                  f"{'' if is_aligned(case) else '  odd'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_arguments(parser)
    print_list(parse(parser))


if __name__ == "__main__":
    main()
