# Of NAME_accuracy.py: how far results move by the rounding that no kernel avoids.

# ---- Rounding ----

TRIALS = 8
# Each result may be off by one rounding; the sums' growth is that of docs/verification.md.
ARITHMETIC = {"add", "sub", "rsub", "mul", "rmul", "div", "rdiv", "truediv", "rtruediv", "tensor"}
SUMS = {"sum", "mean", "cumsum", "einsum", "matmul", "prod", "cumprod"}
FUNCTIONS = {"sigmoid", "tanh", "exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt", "rsqrt",
             "erf", "sin", "cos", "silu", "gelu", "pow", "rpow"}
JUMPS = {"floor", "ceil", "round", "trunc", "floordiv"}


class Rounding(TorchFunctionMode):
    """Evaluates with an error of the size of a rounding in every operation: how far results move is
    how far those of a correct kernel may."""

    def __init__(self, unit, generator, trial):
        super().__init__()
        self.unit, self.generator, self.trial = unit, generator, trial
        self.is_widest = unit < 2.0**-30  # a kernel that computes in f64
        self.largest = FLOATS["f64" if self.is_widest else "f32"][2]

    def noise(self, shape):
        """One half to one, of either sign."""
        drawn = 2 * torch.rand(shape, generator=self.generator, dtype=torch.float64) - 1
        return drawn / 2 + torch.copysign(torch.tensor(0.5), drawn)

    def disturbed(self, x, error):
        x = torch.where(x.isfinite(), x + error * self.noise(x.shape), x)
        if not self.is_widest:  # results below the range of f32 may be flushed to zero
            size, smallest = x.abs(), 2.0 ** FLOATS["f32"][1]
            x = torch.where(size > self.largest, x.sign() * math.inf, x)
            tiny = (size < smallest) & (size > 0)
            if bool(tiny.any()):
                # In some trials all of them, or none.
                drawn = self.noise(x.shape) + (1, -1, 0, 0)[self.trial % 4]
                x = torch.where(tiny & (drawn > 0), 0.0, x)
        return x

    def beside(self, x):
        """What is close to a jump may end on either side of it: up in one trial, down in another,
        and by chance in the rest, as chance alone misses a side once in 128 times."""
        error = 4 * self.unit * x.abs()
        if self.trial > 1:
            return self.disturbed(x, error)
        return torch.where(x.isfinite(), x + (error if self.trial == 0 else -error), x)

    def overflowed(self, x, where):
        """An overflow on the way may leave anything: other things in other trials, so that one
        shows whatever is computed from it."""
        if not bool(where.any()):
            return x
        left = (math.inf, -math.inf, math.nan, self.noise(x.shape) * math.inf)[self.trial % 4]
        return torch.where(where, left, x)

    def literal(self, value):
        if isinstance(value, float) and math.isfinite(value):
            return value * (1 + self.unit * float(self.noise(()))) if (
                torch.tensor(value, dtype=torch.float32).item() != value) else value
        return value

    def count(self, args, out):
        """How many terms a sum has."""
        if isinstance(args[0], str):
            left = args[0].split("->")[0].split(",")
            extents = {letter: extent for letters, x in zip(left, args[1:])
                       for letter, extent in zip(letters, x.shape)}
            return math.prod(extents.values()) / max(1, out.numel())
        return max(args[0].shape, default=1) if out.shape == args[0].shape else (
            args[0].numel() / max(1, out.numel()))

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name, kwargs = getattr(function, "__name__", "").strip("_"), kwargs or {}
        if name in ARITHMETIC or name in FUNCTIONS or name == "where":
            args = [self.literal(value) for value in args]
        if name in FUNCTIONS:
            args = [self.disturbed(x, self.unit * x.abs()) if is_real(x) else x for x in args]
        if name in JUMPS:
            args = [self.beside(x) if is_real(x) else x for x in args]
        out = function(*args, **kwargs)
        if not is_real(out):
            return out
        if name in ("prod", "cumprod"):
            terms = max(1.0, self.count(args, out))
            return self.disturbed(out, self.unit * (2 + math.sqrt(terms)) * out.abs())
        if name in SUMS:
            terms = max(1.0, self.count(args, out))
            growth = 2 + math.log2(terms) / 4 + math.sqrt(terms) / 12
            absolute = [x.abs() if is_real(x) else x for x in args]
            magnitude = function(*absolute, **kwargs)
            out = self.disturbed(out, self.unit * growth * magnitude)
            # Sums on the way may leave the range, by the order in which they are taken.
            partial = magnitude * (terms if name == "mean" else 1.0)
            return self.overflowed(out, partial > self.largest)
        if name in FUNCTIONS:
            more = 2 * self.unit * args[0].abs() if name == "gelu" else 0.0
            return self.disturbed(out, 4 * self.unit * out.abs() + more)
        if name in ARITHMETIC:
            out = self.disturbed(out, self.unit * out.abs())
            # What overflows in f64 itself might not, computed in another way.
            return self.overflowed(out, out.isinf() & are_finite(args)) if self.is_widest else out
        return out


def is_real(x):
    return isinstance(x, torch.Tensor) and x.dtype == torch.float64


def are_finite(values):
    finite = torch.tensor(True)
    for x in values:
        finite = finite & x.isfinite() if is_real(x) else finite
    return finite
