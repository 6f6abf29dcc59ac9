"""The lines of the table: operators, their tensors, contenders and goals.

A goal is a pair of a measure and a number. Measures: "copy", the time of a device-to-device copy of
as many bytes over ours; "read", the same for a kernel that only reads them; "eager", "compile",
"triton", their times over ours; "best", that of the faster of eager and compile; "graph", the time
of torch.compile inside a graph over ours; "host", microseconds of host time per call.
"""

from dataclasses import dataclass, field
from typing import Callable, Optional

import torch
import torch.nn.functional as F

import triton_kernels as peers

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32,
          "i64": torch.int64, "bool": torch.bool}
TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float32: 1e-4}
# Along the last axis: the file, how many vectors it takes, and what PyTorch has.
ROWS = {
    "softmax": ("softmax.kg", 0, lambda x: torch.softmax(x, -1)),
    "log_softmax": ("softmax.kg", 0, lambda x: torch.log_softmax(x, -1)),
    "rms_norm": ("normalisation.kg", 1, lambda x, g: F.rms_norm(x, (x.shape[-1],), g, 1e-6)),
    "layer_norm": ("normalisation.kg", 2, lambda x, g, b: F.layer_norm(x, (x.shape[-1],), g, b,
                                                                       1e-5)),
}
REDUCTIONS = {"sum": torch.sum, "max": torch.amax, "mean": torch.mean, "argmax": torch.argmax}


def close(ours, wanted, inputs):
    tolerance = TOLERANCE[wanted.dtype]
    scale = max(wanted.float().abs().max().item(), 1.0)
    # In chunks: differences of gigabytes in f32 need memory.
    pairs = zip(ours.reshape(-1).split(1 << 27), wanted.reshape(-1).split(1 << 27))
    return all((a.float() - b.float()).abs().max().item() <= tolerance * scale for a, b in pairs)


def same_peaks(axis):
    """Positions of maxima: of equal values, PyTorch may return another one."""
    def check(ours, wanted, inputs):
        found = inputs[0].gather(axis, ours.unsqueeze(axis)).squeeze(axis)
        return bool((found == inputs[0].amax(axis)).all())
    return check


@dataclass
class Case:
    group: str
    label: str
    file: str
    op: str
    dtype: str
    sizes: dict
    inputs: list                 # shapes, or pairs of a shape and a dtype
    output: tuple                # a shape, or a pair
    eager: Callable              # of the inputs
    triton: Optional[Callable]   # of the output, the inputs and scratch
    goals: dict = field(default_factory=dict)
    quick: bool = False
    check: Callable = close

    def tensor_kinds(self):
        """Shape and dtype of each tensor, the output last."""
        for kind in self.inputs + [self.output]:
            plain = not kind or isinstance(kind[0], int)
            yield (kind, DTYPES[self.dtype]) if plain else (kind[0], DTYPES[kind[1]])


def pointwise_cases():
    goals = {"copy": 0.97, "compile": 1.0}
    for dtype in ("f16", "bf16", "f32"):
        p, d = 65536, 4096 if dtype != "f32" else 2048
        common = dict(group="pointwise", dtype=dtype, sizes={"P": p, "D": d}, output=(p, d),
                      goals=goals)
        yield Case(label=f"bias_relu {dtype}", file="bias_relu.kg", op="bias_relu",
                   inputs=[(p, d), (d,)], eager=lambda x, b: torch.relu(x + b),
                   triton=lambda y, x, b, s: peers.pointwise("relu", y, x, b, count=b.numel()),
                   quick=dtype == "f16", **common)
        yield Case(label=f"bias_gelu {dtype}", file="broadcast.kg", op="bias_gelu",
                   inputs=[(p, d), (d,)], eager=lambda x, b: F.gelu(x + b),
                   triton=lambda y, x, b, s: peers.pointwise("gelu", y, x, b, count=b.numel()),
                   quick=dtype == "f16", **common)
        yield Case(label=f"scale_shift {dtype}", file="broadcast.kg", op="scale_shift",
                   inputs=[(p, d), (d,), (d,)], eager=lambda x, a, b: x * a + b,
                   triton=lambda y, x, a, b, s: peers.pointwise("scale_shift", y, x, a, b,
                                                                count=a.numel()), **common)
        yield Case(label=f"masked_fill {dtype}", file="masking.kg", op="masked_fill",
                   inputs=[(p, d), ((p, d), "bool")],
                   eager=lambda x, mask: x.masked_fill(mask, -1.0),
                   triton=lambda y, x, mask, s: peers.pointwise("masked_fill", y, x, mask),
                   **common)


def add_case(label, op, dtype, sizes, shape, vector, view, inner, count, tail=1, quick=False):
    """x plus something smaller, repeated: `view` is its shape for PyTorch."""
    return Case("broadcast", label, "masking.kg" if op == "add_mask" else "broadcast.kg", op,
                dtype, sizes, [shape, vector], shape, lambda x, v: x + v.view(view),
                lambda y, x, v, s: peers.pointwise("add", y, x, v, inner=inner, count=count,
                                                   tail=tail),
                {"copy": 0.95}, quick)


def broadcast_cases():
    for n in (512, 1024):
        shape, name = (n, n, n), f"{n}^3"
        yield add_case(f"{name} + last f32", "add_last", "f32", {"P": n * n, "D": n}, shape, (n,),
                       (n,), 1, n, quick=n == 512)
        yield add_case(f"{name} + middle f32", "add_channel", "f32",
                       {"N": n, "C": n, "H": 1, "W": n}, shape, (n,), (n, 1), n, n)
        yield add_case(f"{name} + first f32", "add_first", "f32", {"P": n, "D": n * n}, shape,
                       (n,), (n, 1, 1), n * n, n)
    shape, name = (64, 1024, 1024, 2), "64x1024x1024x2"
    yield add_case(f"{name} + last f32", "add_last", "f32", {"P": 1 << 26, "D": 2}, shape, (2,),
                   (2,), 1, 2, quick=True)
    yield add_case(f"{name} + channel f32", "add_channel", "f32",
                   {"N": 64, "C": 1024, "H": 1024, "W": 2}, shape, (1024,), (1024, 1, 1), 2048,
                   1024)
    yield add_case(f"{name} + 2nd, last f32", "add_middle", "f32",
                   {"N": 64, "C": 1024, "P": 1024, "D": 2}, shape, (1024, 2), (1024, 1, 2), 2048,
                   1024, tail=2)
    yield add_case(f"{name} + 1st to 3rd", "add_first", "f32", {"P": 1 << 26, "D": 2}, shape,
                   (1 << 26,), (64, 1024, 1024, 1), 2, 1 << 26)
    yield add_case("1x1024x1024x256 + last f16", "add_last", "f16", {"P": 1 << 20, "D": 256},
                   (1, 1024, 1024, 256), (256,), (256,), 1, 256)
    yield add_case("8x16x1024x1024 + mask f16", "add_mask", "f16",
                   {"B": 8, "H": 16, "M": 1024, "N": 1024}, (8, 16, 1024, 1024), (8, 1024),
                   (8, 1, 1, 1024), 1 << 24, 8, tail=1024)


def row_cases():
    for kind, (file, vectors, eager) in ROWS.items():
        for d in (256, 1024, 4096, 8192, 32768, 65536, 131072, 262144):
            p = (1 << 28) // d
            yield Case("rows", f"{kind} {d} f16", file, kind, "f16", {"P": p, "D": d},
                       [(p, d)] + [(d,)] * vectors, (p, d), eager,
                       lambda y, x, *rest, kind=kind: peers.rows(kind, y, x, *rest[:-1]),
                       {"copy": 0.85 if d < 1024 else 0.92},
                       quick=(kind, d) in (("softmax", 4096), ("rms_norm", 8192),
                                           ("softmax", 131072)))


def reduction_cases():
    p, d = 65536, 4096
    shape = (64, 1024, 4096)
    goals = {"read": 0.92, "best": 1.0}
    for kind, call in REDUCTIONS.items():
        place = kind == "argmax"

        def output(out_shape):
            return (out_shape, "i64") if place else out_shape
        common = dict(group="reduction", file="reductions.kg", dtype="f16", goals=goals)
        yield Case(label=f"{kind} last f16", op=f"{kind}_last", sizes={"P": p, "D": d},
                   inputs=[(p, d)], output=output((p,)), eager=lambda x, call=call: call(x, -1),
                   triton=lambda y, x, s, kind=kind: peers.last_axis(kind, y, x),
                   check=same_peaks(1) if place else close, quick=kind == "sum", **common)
        yield Case(label=f"{kind} first f16", op=f"{kind}_first", sizes={"P": p, "D": d},
                   inputs=[(p, d)], output=output((d,)), eager=lambda x, call=call: call(x, 0),
                   triton=lambda y, x, s, kind=kind: peers.middle_axis(kind, y, x[None], s),
                   check=same_peaks(0) if place else close, quick=kind in ("sum", "argmax"),
                   **common)
        yield Case(label=f"{kind} middle f16", op=f"{kind}_middle",
                   sizes=dict(zip("ABC", shape)), inputs=[shape], output=output((64, 4096)),
                   eager=lambda x, call=call: call(x, 1),
                   triton=lambda y, x, s, kind=kind: peers.middle_axis(kind, y, x, s),
                   check=same_peaks(1) if place else close, **common)
    for dtype, n in (("f16", 1 << 27), ("f32", 1 << 26)):
        for kind, call in (("mse", F.mse_loss), ("huber", F.huber_loss)):
            yield Case("reduction", f"{kind} loss {dtype}", "losses.kg", f"{kind}_loss", dtype,
                       {"N": n}, [(n,), (n,)], ((), "f32"), lambda x, t, call=call: call(x, t),
                       lambda y, x, t, s, kind=kind: peers.everything(kind, y, x, t, s), goals,
                       quick=(kind, dtype) == ("mse", "f32"))


def other_cases():
    yield Case("scan", "cumsum 32768 f32", "scans.kg", "cumsum", "f32", {"P": 4096, "D": 32768},
               [(4096, 32768)], (4096, 32768), lambda x: x.cumsum(-1),
               lambda y, x, s: peers.cumsum(y, x), {"copy": 0.85}, quick=True)
    for dtype, n in (("f16", 16384), ("f32", 8192)):
        yield Case("transpose", f"transpose {n} {dtype}", "indexing.kg", "transpose", dtype,
                   {"M": n, "N": n}, [(n, n)], (n, n), lambda x: x.t().contiguous(),
                   lambda y, x, s: peers.transpose(y, x, 1, *x.shape), {"copy": 0.9, "best": 1.0},
                   quick=dtype == "f16")
    n, c, h, w = 64, 64, 256, 256
    yield Case("transpose", "channels last f16", "indexing.kg", "to_channels_last", "f16",
               {"N": n, "C": c, "H": h, "W": w}, [(n, c, h, w)], (n, h, w, c),
               lambda x: x.permute(0, 2, 3, 1).contiguous(),
               lambda y, x, s: peers.transpose(y, x, x.shape[0], x.shape[1],
                                               x.shape[2] * x.shape[3]),
               {"copy": 0.9, "best": 1.0})
    b, length, heads, e = 32, 2048, 32, 128
    yield Case("transpose", "split heads f16", "indexing.kg", "split_heads", "f16",
               {"B": b, "L": length, "H": heads, "E": e}, [(b, length, heads, e)],
               (b, heads, length, e), lambda x: x.permute(0, 2, 1, 3).contiguous(),
               lambda y, x, s: peers.swap_axes(y, x), {"copy": 0.9, "best": 1.0})


def small_cases():
    goals = {"host": 2.5, "graph": 1.0}
    d = 256
    for size, name in ((1 << 10, "1K"), (1 << 14, "16K"), (1 << 18, "256K"), (1 << 20, "1M")):
        p, n = size // (2 * d), size // 2
        common = dict(group="small", dtype="f16", goals=goals, quick=name == "16K")
        yield Case(label=f"bias_relu {name}", file="bias_relu.kg", op="bias_relu",
                   sizes={"P": p, "D": d}, inputs=[(p, d), (d,)], output=(p, d),
                   eager=lambda x, b: torch.relu(x + b),
                   triton=lambda y, x, b, s: peers.pointwise("relu", y, x, b, count=b.numel()),
                   **common)
        yield Case(label=f"softmax {name}", file="softmax.kg", op="softmax",
                   sizes={"P": p, "D": d}, inputs=[(p, d)], output=(p, d),
                   eager=lambda x: torch.softmax(x, -1),
                   triton=lambda y, x, s: peers.rows("softmax", y, x), **common)
        yield Case(label=f"sum last {name}", file="reductions.kg", op="sum_last",
                   sizes={"P": p, "D": d}, inputs=[(p, d)], output=(p,),
                   eager=lambda x: x.sum(-1),
                   triton=lambda y, x, s: peers.last_axis("sum", y, x), **common)
        yield Case(label=f"sum all {name}", file="reductions.kg", op="sum_all", sizes={"N": n},
                   inputs=[(n,)], output=((), "f32"), eager=lambda x: x.sum(dtype=torch.float32),
                   triton=lambda y, x, s: peers.everything("sum", y, x, None, s), **common)


def all_cases():
    for cases in (pointwise_cases, broadcast_cases, row_cases, reduction_cases, other_cases,
                  small_cases):
        yield from cases()


# Goals of groups, for the geometric means of their lines.
GROUP_GOALS = {"rows": {"compile": 1.25}}
