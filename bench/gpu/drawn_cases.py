"""What PyTorch computes for each operator that draw.py draws, and whether ours is right.

The reference is PyTorch's own function of the same inputs in f64. Positions of maxima are judged by
the values found there, since of equals PyTorch may name another.
"""

import math

import torch
import torch.nn.functional as F

from cases import REDUCTIONS, ROWS, TOLERANCE, Case
from draw import KIND_OF

CHUNK = 1 << 26  # elements: differences in f64 need memory
AXES = {"last": -1, "first": 0, "middle": 1}


def _reduction(call, axis):
    return lambda x: call(x, axis)


EAGER = {
    **{op: eager for op, (_, _, eager) in ROWS.items()},
    **{f"{name}_{place}": _reduction(call, axis) for name, call in REDUCTIONS.items()
       for place, axis in AXES.items()},
    "bias_relu": lambda x, b: torch.relu(x + b),
    "bias_gelu": lambda x, b: F.gelu(x + b),
    "gelu": F.gelu,
    "silu": F.silu,
    "scale_shift": lambda x, a, b: x * a + b,
    "scale_shift_channel": lambda x, a, b: x * a[:, None, None] + b[:, None, None],
    "masked_fill": lambda x, mask: x.masked_fill(mask, -1.0),
    "lower_triangle": torch.tril,
    "add_channel": lambda x, v: x + v[:, None, None],
    "add_first": lambda x, v: x + v[:, None],
    "add_middle": lambda x, v: x + v[:, None, :],
    "add_mask": lambda x, mask: x + mask[:, None, None, :],
    "bias_residual_leaky": lambda x, b, r: F.leaky_relu(x + b + r, 0.1),
    "cumsum": lambda x: x.cumsum(-1),
    "cumsum_first": lambda x: x.cumsum(0),
    "cumsum_exclusive": lambda x: x.cumsum(-1) - x,
    "cumsum_reverse": lambda x: x.flip(-1).cumsum(-1).flip(-1),
    "cumsum_masked": lambda x, mask: torch.where(mask, x, 0).cumsum(-1),
    "cumprod": lambda x: x.cumprod(-1),
    "cummax": lambda x: x.cummax(-1).values,
    "cummin": lambda x: x.cummin(-1).values,
}


def case_of(operator):
    """An operator of draw.py as cases.py has them."""
    sizes, kind = operator.sizes, KIND_OF[operator.op]

    def tensor(name):
        dtype, _, axes = name.rpartition(":")
        shape = tuple(sizes[axis] for axis in axes)
        return (shape, dtype) if dtype else shape

    return Case(operator.group, operator.label, kind.file, operator.op, operator.dtype, sizes,
                [tensor(name) for name in kind.inputs], tensor(kind.output), EAGER[operator.op],
                triton=None)


class Judge:
    """Errors of results, all of the same inputs."""

    def __init__(self, operator, inputs):
        self.inputs = inputs
        self.axis = AXES[operator.op.split("_")[1]] if operator.op.startswith("argmax") else None
        if self.axis is None:
            wide = [t.double() if t.is_floating_point() else t for t in inputs]
            self.wanted = EAGER[operator.op](*wide)
            self.scale = self.wanted.abs().max().item()
        else:
            self.wanted = inputs[0].amax(self.axis)

    def error(self, found):
        """The largest, over the largest magnitude; NaN where a NaN is found."""
        if self.axis is not None:
            return self.error_of_places(found)
        pairs = zip(found.reshape(-1).split(CHUNK), self.wanted.reshape(-1).split(CHUNK))
        differences = torch.stack([(a.double() - b).abs().max() for a, b in pairs])
        return differences.max().item() / (self.scale or 1.0)

    def error_of_places(self, found):
        x = self.inputs[0]
        if ((found < 0) | (found >= x.shape[self.axis])).any():
            return math.inf
        values = x.gather(self.axis, found.unsqueeze(self.axis)).squeeze(self.axis)
        return 0.0 if bool((values == self.wanted).all()) else math.inf

    def allowed(self):
        return TOLERANCE[self.inputs[0].dtype]
