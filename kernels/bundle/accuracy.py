# The skeleton of NAME_accuracy.py. What an op adds stands behind the line of the definition.

import argparse
import importlib.util
import json
import math
import os
import pathlib
import sys

try:
    import torch
    from torch.overrides import TorchFunctionMode
except ImportError as missing:
    sys.exit(f"this test needs PyTorch: {missing}") if __name__ != "__main__" else (
        print(f"this test needs PyTorch: {missing}", file=sys.stderr), sys.exit(3))


def _real(value):
    """A number that a kernel rounds to its compute type."""
    return torch.tensor(float(value), dtype=torch.float64)


# ---- The definition ----

# ---- Dtypes ----

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64,
          "f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2, "i8": torch.int8,
          "u8": torch.uint8, "i16": torch.int16, "u16": torch.uint16, "i32": torch.int32,
          "u32": torch.uint32, "i64": torch.int64, "bool": torch.bool, "u4": torch.uint8,
          "i4": torch.uint8}
# Floats: bits of the fraction, exponent of the smallest normal number, largest number.
FLOATS = {"f16": (10, -14, 65504.0), "bf16": (7, -126, 3.3895313892515355e38),
          "f32": (23, -126, 3.4028234663852886e38), "f64": (52, -1022, 1.7976931348623157e308),
          "f8e4m3": (3, -6, 448.0), "f8e5m2": (2, -14, 57344.0)}
PACKED = ("u4", "i4")
# Where the goal says nothing: relative, absolute. The absolute part is multiplied by the root mean
# square of the output where that is below 1.
DEFAULT_TOLERANCES = {"f16": (1e-3, 1e-5), "bf16": (1.6e-2, 1e-5), "f32": (1.3e-6, 1e-5),
                      "f64": (1e-7, 1e-7), "f8e4m3": (7.8e-3, 1e-5), "f8e5m2": (7.8e-3, 1e-5)}


class Unusable(Exception):
    """The test cannot be made: exit status 2, or 3 where the machine lacks something."""

    def __init__(self, text, status=2):
        super().__init__(text)
        self.status = status


# ---- Inputs ----

KINDS = ("normal", "wide", "ties", "zeros", "denormal", "huge", "special")


def draw_float(kind, shape, name, limits, generator):
    fraction, smallest, largest = FLOATS[name]
    sign = torch.randint(0, 2, shape, generator=generator).double() * 2 - 1
    uniform = torch.rand(shape, generator=generator, dtype=torch.float64)
    normal = torch.randn(shape, generator=generator, dtype=torch.float64)
    if kind == "wide":
        x = normal * 2.0 ** (16 * uniform - 8)
    elif kind == "ties":
        x = torch.randint(-2, 3, shape, generator=generator).double()
    elif kind == "zeros":
        x = 0.0 * sign
    elif kind == "denormal":
        x = sign * uniform * 2.0 ** (smallest + 1)
    elif kind == "huge":
        x = sign * largest * (0.25 + 0.75 * uniform)
    else:
        x = normal
    low, high = limits
    if kind == "normal" and math.isfinite(low) and math.isfinite(high):
        x = low + (high - low) * uniform
    elif kind == "normal" and math.isfinite(low):
        x = low + normal.abs()
    elif kind == "normal" and math.isfinite(high):
        x = high - normal.abs()
    x = x.clamp(max(low, -largest), min(high, largest)).to(DTYPES[name])
    if kind == "special" and limits == (-math.inf, math.inf):
        which = torch.rand(shape, generator=generator)
        x = torch.where(which < 0.03, torch.tensor(math.nan).to(x.dtype), x)
        if name != "f8e4m3":
            x = torch.where((which > 0.94) & (which < 0.97), torch.tensor(math.inf).to(x.dtype), x)
            x = torch.where(which > 0.97, torch.tensor(-math.inf).to(x.dtype), x)
    return x


def draw_integer(kind, shape, name, limits, generator):
    bits = int(name[1:])
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if name[0] == "i" else (0, 2**bits - 1)
    if limits:
        low, high = max(low, limits[0]), min(high, limits[1])
    if kind == "ties" and not limits:
        low, high = max(low, -1), 2
    if kind == "zeros":
        return torch.full(shape, max(low, min(0, high)), dtype=torch.int64).to(DTYPES[name])
    drawn = torch.randint(low, min(max(high, low) + 1, 2**63 - 1), shape, generator=generator)
    return drawn.to(DTYPES[name])


def draw_inputs(kind, sizes, dtypes, generator):
    """name -> tensor, on the CPU."""
    found = {}
    extents, places = shapes(**sizes), limits(**sizes)
    for tensor, dtype in INPUTS.items():
        name, shape = dtypes.get(dtype, dtype), extents[tensor]
        if name in PACKED:
            shape = ((math.prod(shape) + 1) // 2,)
            high = 1 if kind == "zeros" else 256
            found[tensor] = torch.randint(0, high, shape, generator=generator).to(torch.uint8)
        elif name == "bool":
            share = {"zeros": 0.0, "ties": 0.1}.get(kind, 0.5)
            found[tensor] = torch.rand(shape, generator=generator) < share
        elif name in FLOATS:
            found[tensor] = draw_float(kind, shape, name, RANGES.get(tensor, (-math.inf, math.inf)),
                                       generator)
        else:
            limit = places.get(tensor, RANGES.get(tensor))
            found[tensor] = draw_integer(kind, shape, name, limit, generator)
    return found


# ---- What is right ----

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
        if name in JUMPS:  # what is close to a jump may end on either side of it
            args = [self.disturbed(x, 4 * self.unit * x.abs()) if is_real(x) else x for x in args]
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


class Expected:
    """An output of the reference: its value, how far a correct kernel may be off besides the
    tolerance, and where nothing can be said."""

    def __init__(self, value, trials, name):
        self.name = name
        self.value = value
        if name in FLOATS:
            self.slack = torch.zeros_like(value)
            self.unknown = torch.zeros(value.shape, dtype=torch.bool)
            for trial in trials:
                both = trial.isfinite() & value.isfinite()
                same = both | (trial == value) | (trial.isnan() & value.isnan())
                self.unknown |= ~same
                moved = torch.where(both, (trial - value).abs(), 0.0)
                self.slack = torch.maximum(self.slack, 4 * moved)
        else:
            self.least, self.most = value.clone(), value.clone()
            for trial in trials:
                if name == "bool":
                    self.least, self.most = self.least & trial, self.most | trial
                else:
                    self.least = torch.minimum(self.least, trial)
                    self.most = torch.maximum(self.most, trial)
            self.unknown = self.least != self.most
        self.rounded = value.to(DTYPES[name])

    def judge(self, found):
        """None, or what is wrong; and the largest difference."""
        if self.name in FLOATS:
            return self.judge_float(found.double())
        if self.name == "bool":
            wrong = (found != self.value) & ~self.unknown
            return self.tell(wrong, found, None), float(wrong.any())
        # Wrapped as stored: what lies between the least and the most is right.
        stored = found.long()
        value = self.rounded.long()
        inside = (stored >= self.least) & (stored <= self.most) & self.unknown
        wrong = (stored != value) & ~inside
        difference = (stored.double() - value.double()).abs()
        largest = float(difference[wrong].max()) if wrong.any() else 0.0
        return self.tell(wrong, stored, None), largest

    def judge_float(self, found):
        fraction, smallest, _ = FLOATS[self.name]
        value = self.value
        finite = value.isfinite() & ~self.unknown
        loose = bool((self.slack > 0).any() | self.unknown.any())
        exact = not loose and self.name not in TOLERANCES
        relative, absolute = TOLERANCES.get(self.name, DEFAULT_TOLERANCES[self.name])
        if self.name not in TOLERANCES:
            inside = value[finite].clamp(-1, 1)
            absolute *= math.sqrt(float((inside * inside).mean())) if inside.numel() else 1.0
        allowed = self.slack if exact else relative * value.abs() + absolute + self.slack
        allowed = torch.where(finite, allowed, 0.0)
        low = (value - allowed).to(DTYPES[self.name]).double()
        high = (value + allowed).to(DTYPES[self.name]).double()
        right = ((found >= low) & (found <= high)) | (found.isnan() & (low.isnan() | high.isnan()))
        # What has no infinities overflows to NaN, to either side where all is allowed.
        right |= finite & low.isnan() & high.isnan()
        right |= (high.isnan() & ~low.isnan() & (found >= low))
        right |= (low.isnan() & ~high.isnan() & (found <= high))
        right |= self.unknown
        both = finite & found.isfinite()
        difference = torch.where(both, (found - value).abs(), 0.0)
        largest = float(difference.max()) if difference.numel() else 0.0
        text = self.tell(~right, found, allowed)
        if text is None and bool(both.any()):
            exponent = torch.frexp(value.abs().clamp(min=2.0**smallest)).exponent - 1
            unavoidable = 2.0 ** (exponent.double() - fraction - 1) + self.slack
            rms = (difference[both] ** 2).mean().sqrt()
            bound = 3 * (unavoidable[both] ** 2).mean().sqrt()
            bound *= max(1.0, relative / DEFAULT_TOLERANCES[self.name][0])
            if not exact and rms > bound:
                text = (f"the error as a whole is too large: rms {float(rms):.3g}, and rounding "
                        f"alone explains {float(bound):.3g}")
        return text, largest

    def tell(self, wrong, found, allowed):
        if not bool(wrong.any()):
            return None
        place = tuple(int(i) for i in wrong.nonzero()[0])
        text = (f"{list(place)}: expected {self.value[place].item():.9g}, "
                f"got {found[place].item():.9g}")
        if allowed is not None:
            text += f" (allowed {float(allowed[place]):.3g})"
        return f"{text}; {int(wrong.sum())} of {wrong.numel()} are wrong"


def is_interpreted(device, dtypes):
    """Triton's interpreter converts subnormal bf16 to f32 wrongly."""
    return device.type == "cpu" and "bf16" in [dtypes.get(name, name) for name in
                                               (*INPUTS.values(), *OUTPUTS.values())]


def unit_of(dtypes):
    return 2.0**-53 if "f64" in [dtypes.get(name, name) for name in INPUTS.values()] else 2.0**-24


def dtype_arguments(dtypes):
    return {name: DTYPES[dtypes[name]] for name in DTYPE_ARGUMENTS}


def expect(inputs, sizes, dtypes, generator):
    """The expected outputs, in order."""
    def evaluate():
        found = reference(*inputs.values(), **sizes, **dtype_arguments(dtypes))
        return found if isinstance(found, tuple) else (found,)
    value = evaluate()
    trials = []
    for trial in range(TRIALS):
        with Rounding(unit_of(dtypes), generator, trial):
            trials.append(evaluate())
    return [Expected(value[i], [trial[i] for trial in trials], dtypes.get(dtype, dtype))
            for i, dtype in enumerate(OUTPUTS.values())]


# ---- Impostors ----


def poison_of(x):
    if x.dtype == torch.bool:
        return ~x
    if x.is_floating_point():
        return torch.full(x.shape, math.nan, dtype=torch.float32).to(x.dtype)
    return (x.long() ^ 0x5A).to(x.dtype)


def flat_with(x, begin, other):
    """x, but for what stands from `begin` on."""
    found = x.clone().reshape(-1)
    found[begin:] = other.reshape(-1)[begin:]
    return found.reshape(x.shape)


class Impostors:
    """Kernels that are wrong: the inputs in use must reject each of them."""

    NAMES = ("zeros", "constant", "copy of an input", "stale output", "half written",
             "off by one at the tail")

    def __init__(self):
        self.tried, self.rejected, self.right = set(), set(), {}
        self.before = {}
        self.values = {}

    def made(self, output, right, inputs, key):
        yield "zeros", torch.zeros(right.shape, dtype=torch.float32).to(right.dtype)
        yield "constant", torch.full(right.shape, 1.5).to(right.dtype)
        for x in inputs.values():
            if x.numel() == right.numel() > 1:
                yield "copy of an input", x.double().reshape(right.shape).to(right.dtype)
        if key in self.before:
            yield "stale output", self.before[key]
        yield "half written", flat_with(right, right.numel() // 2, poison_of(right))
        yield "off by one at the tail", flat_with(right, right.numel() - 1, poison_of(right))

    def meet(self, expected, inputs):
        for output, one in zip(OUTPUTS, expected):
            if one.value.numel() == 0:
                continue
            right, key = one.rounded, (output, one.name, tuple(one.value.shape))
            flat = right.double().reshape(-1)
            several = () if same_bits(flat, flat[:1].expand_as(flat)) else (None,)
            self.values.setdefault(output, set()).add((one.name, float(flat[0]), *several))
            for name, found in self.made(output, right, inputs, key):
                if name == "copy of an input" and same_bits(found, right):
                    continue  # it is no impostor where the definition copies
                self.tried.add((name, output))
                if one.judge(found)[0] is not None:
                    self.rejected.add((name, output))
            self.before[key] = right

    def accepted(self):
        """Those that no input told from a correct kernel, but for outputs that are always alike."""
        alike = {output for output, values in self.values.items()
                 if all(len(value) == 2 for value in values) and len({v[1] for v in values}) == 1}
        return ([f"{name} ({output})" for name, output in sorted(self.tried - self.rejected)
                 if output not in alike], sorted(alike))


# ---- The kernel ----


def load_kernel(path):
    try:
        spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except FileNotFoundError:
        raise Unusable(f"there is no {path}") from None
    except ImportError as missing:
        raise Unusable(f"{path} needs {missing.name}, which is not installed", 3) from None
    if not callable(getattr(module, NAME, None)):
        raise Unusable(f"{path} has no function {NAME}")
    return getattr(module, NAME)


def choose_device(name):
    if name == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported
        return torch.device("cpu")
    if name == "npu":
        try:
            import torch_npu  # noqa: F401
        except ImportError:
            raise Unusable("--device npu needs torch_npu, which is not installed", 3) from None
        return torch.device("npu")
    if not torch.cuda.is_available():
        raise Unusable("--device cuda: there is no GPU here; "
                       "--device cpu takes Triton's interpreter", 3)
    return torch.device("cuda")


def strided(x):
    """The same values, every other element of twice as many."""
    if x.dim() == 0:
        return x
    wide = torch.empty((*x.shape[:-1], 2 * x.shape[-1]), dtype=x.dtype, device=x.device)
    wide[..., ::2] = x
    return wide[..., ::2]


def same_bits(a, b):
    if a.is_floating_point():
        a, b = (t if t.dtype == torch.float64 else t.float() for t in (a, b))
        return bool(((a == b) | (a.isnan() & b.isnan())).all())
    return bool((a == b).all())


class Test:
    def __init__(self, kernel, device, verbose=False):
        self.kernel, self.device, self.verbose = kernel, device, verbose
        self.impostors = Impostors()
        self.cases, self.elements, self.unknown, self.failures, self.remarks = 0, 0, 0, [], []

    def call(self, inputs, sizes, dtypes):
        named = {name: sizes[name] for name in SIZE_ARGUMENTS} | dtype_arguments(dtypes)
        if not INPUTS:
            named["device"] = self.device
        found = self.kernel(*inputs, **named)
        return list(found) if isinstance(found, (tuple, list)) else [found]

    def run(self, inputs, sizes, dtypes, expected, is_view):
        """What is wrong, or None; and the largest difference."""
        kept = [x.to(self.device) for x in inputs.values()]
        given = [strided(x) if is_view and INPUTS[name] not in PACKED else x.clone()
                 for name, x in zip(inputs, kept)]
        is_cpu = self.device.type == "cpu"
        # PyTorch fills what it allocates: results that were never written show.
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.utils.deterministic.fill_uninitialized_memory = True
        try:
            # The interpreter computes in one order: a second run would be the first again.
            runs = [self.call(given, sizes, dtypes) for _ in range(1 if is_cpu else 2)]
        except ValueError as refused:
            if is_view:
                self.remarks.append(f"strided inputs are refused: {refused}")
                return None, 0.0
            return f"the kernel failed: {type(refused).__name__}: {refused}", math.inf
        except Exception as error:  # noqa: BLE001: whatever a kernel raises is its verdict
            return f"the kernel failed: {type(error).__name__}: {error}", math.inf
        finally:
            torch.use_deterministic_algorithms(False)
        for name, x, y in zip(inputs, kept, given):
            if not same_bits(x, y):
                return f"the kernel changed input {name}", math.inf
        if len(runs[0]) != len(OUTPUTS):
            return f"the kernel gave {len(runs[0])} outputs, not {len(OUTPUTS)}", math.inf
        worst = 0.0
        for name, one, first, second in zip(OUTPUTS, expected, runs[0], runs[-1]):
            if not isinstance(first, torch.Tensor):
                return f"{name} is no tensor", math.inf
            if first.shape != one.value.shape or first.dtype != one.rounded.dtype:
                return (f"{name} has shape {tuple(first.shape)} and {first.dtype}, not "
                        f"{tuple(one.value.shape)} and {one.rounded.dtype}"), math.inf
            if not same_bits(first, second):
                return f"two runs differ in {name}", math.inf
            text, largest = one.judge(first.cpu())
            worst = max(worst, largest)
            if text:
                return f"{name}{text}", worst
        return None, worst

    def case(self, sizes, dtypes, kind, seed, is_view=False):
        generator = torch.Generator().manual_seed(seed)
        inputs = draw_inputs(kind, sizes, dtypes, generator)
        expected = expect(inputs, sizes, dtypes, generator)
        if not is_view:
            self.impostors.meet(expected, inputs)
        wrong, largest = self.run(inputs, sizes, dtypes, expected, is_view)
        self.cases += 1
        if kind == "normal":
            self.elements += sum(one.value.numel() for one in expected)
            self.unknown += sum(int(one.unknown.sum()) for one in expected)
        name = f"{kind} values{', strided inputs' if is_view else ''}"
        if self.verbose:
            print(f"    {name}: {'passed' if wrong is None else wrong}; max_diff = {largest:.6g}")
        if wrong is not None:
            self.failures.append(
                {"shape": sizes, "dtypes": dtypes, "inputs": name, "reason": wrong})
        return wrong, largest, name


def said(sizes):
    return ", ".join(f"{name}={value}" for name, value in sizes.items())


def bound_dtypes(words):
    """A dict for each combination that is tested: the first dtype of every variable, and each other
    one in its turn; those named on the command line alone."""
    chosen = {}
    for word in words or []:
        for item in word.split(","):
            name, _, value = item.rpartition("=")
            for variable in VARIABLES if not name else [name]:
                if variable not in VARIABLES:
                    raise Unusable(f"--dtype {item}: there is no {variable}; there is "
                                   f"{', '.join(VARIABLES) or 'none'}")
                if value in VARIABLES[variable]:
                    chosen[variable] = value
                elif name or len(VARIABLES) == 1:
                    raise Unusable(f"--dtype {item}: {variable} is one of "
                                   f"{', '.join(VARIABLES[variable])}")
    first = {name: chosen.get(name, dtypes[0]) for name, dtypes in VARIABLES.items()}
    found = [first]
    for name, dtypes in VARIABLES.items():
        if name not in chosen:
            found += [{**first, name: dtype} for dtype in dtypes[1:]]
    return found


def sizes_from(word):
    sizes = {}
    for item in word.split(","):
        name, _, value = item.partition("=")
        if name not in SIZES or not value.isdigit():
            raise Unusable(f"--shape {word}: it is {','.join(f'{size}=NUMBER' for size in SIZES)}")
        sizes[name] = int(value)
    if len(sizes) != len(SIZES):
        missing = ", ".join(s for s in SIZES if s not in sizes)
        raise Unusable(f"--shape {word}: {missing} is missing")
    return sizes


def elements_of(sizes):
    return sum(math.prod(shape) for shape in shapes(**sizes).values())


def test(options, say=print):
    """Runs every case. The report, as a dict."""
    device = choose_device(options.device)
    path = options.kernel or pathlib.Path(__file__).with_name(f"{NAME}_triton.py")
    judge = Test(load_kernel(path), device, options.verbose)
    rows = [sizes_from(word) for word in options.shape] if options.shape else ROWS
    most = 2**62 if options.shape else 2**18 if device.type == "cpu" else 2**24
    # The interpreter takes each step of a reduction in Python: large shapes get ordinary values.
    thorough = 2**12 if device.type == "cpu" and not options.shape else most
    say(f"Testing {NAME} accuracy...")
    seed = options.seed
    worst = 0.0
    for dtypes in bound_dtypes(options.dtype):
        number = -1  # among those that are thorough
        for sizes in rows:
            elements = elements_of(sizes)
            number += elements <= thorough
            if elements > most:
                judge.remarks.append(f"left out: {said(sizes)} (too large for this device)")
                continue
            say(f"Shape: {said(sizes) or 'no sizes'}"
                + "".join(f", {name} = {dtype}" for name, dtype in dtypes.items()))
            # Each class of values at a few sizes, ordinary ones at all.
            known = [kind for kind in KINDS
                     if kind != "denormal" or not is_interpreted(device, dtypes)]
            if len(known) < len(KINDS):
                judge.remarks.append("no subnormal values: the interpreter reads those of bf16 "
                                     "wrongly")
            kinds = known if options.shape or number % 3 == 0 else known[:1 + number % 3]
            kinds = kinds if elements <= thorough else known[:1]
            wrong, largest, name = None, 0.0, ""
            for kind in kinds:
                seed += 1
                one, difference, named = judge.case(sizes, dtypes, kind, seed)
                largest = max(largest, difference)
                wrong, name = (wrong, name) if wrong else (one, named)
            if options.shape or (number % 4 == 1 and elements <= thorough):
                one, difference, named = judge.case(sizes, dtypes, "normal", seed, is_view=True)
                wrong, name = (wrong, name) if wrong else (one, named)
            worst = max(worst, largest)
            say(f"✓ Test passed: max_diff = {largest:.6g}" if wrong is None
                else f"✗ Test failed: {name}: {wrong}; max_diff = {largest:.6g}")
    accepted, alike = judge.impostors.accepted()
    if alike:
        judge.remarks.append(f"whatever the inputs are, the result is the same: {', '.join(alike)}")
    if judge.elements and judge.unknown > 0.9 * judge.elements:
        judge.failures.append(
            {"reason": "nine in ten results cannot be decided: rounding moves them"})
    if accepted and not options.shape:
        judge.failures.append({"reason": "these inputs do not reject an impostor: "
                                         + ", ".join(accepted)})
    return {"op": NAME, "kernel": str(path), "device": options.device, "seed": options.seed,
            "passed": not judge.failures, "cases": judge.cases, "elements": judge.elements,
            "max_diff": worst, "impostors_rejected": len(judge.impostors.rejected),
            "impostors_accepted": accepted, "remarks": list(dict.fromkeys(judge.remarks)),
            "failures": judge.failures}


def parse(words=None):
    parser = argparse.ArgumentParser(description=f"Judges {NAME} against its definition.", epilog=(
        "Exit status: 0 it passed, 1 it did not, 2 bad usage, 3 the machine lacks something."))
    parser.add_argument("--device", choices=("cuda", "npu", "cpu"), default="cuda",
                        help="cpu: Triton's interpreter")
    parser.add_argument("--kernel", metavar="FILE", help="another module with the function")
    parser.add_argument("--shape", action="append", metavar="P=4096,D=1000",
                        help="these sizes instead; may be repeated")
    parser.add_argument("--dtype", action="append", metavar="T=f16", help="these dtypes alone")
    parser.add_argument("--seed", type=int, default=None,
                        help="of the inputs; default: a fresh one")
    parser.add_argument("--json", action="store_true", help="prints one JSON object")
    parser.add_argument("--verbose", action="store_true", help="a line for each class of inputs")
    options = parser.parse_args(words)
    if options.seed is None:
        options.seed = int.from_bytes(os.urandom(3), "little")
    return options


def main(words=None):
    options = parse(words)
    try:
        if options.json:
            options.verbose = False
            report = test(options, say=lambda text: None)
            print(json.dumps(report))
        else:
            report = test(options)
    except Unusable as reason:
        print(f"{NAME}: {reason}", file=sys.stderr)
        return reason.status
    if not options.json:
        for remark in report["remarks"]:
            print(f"Note: {remark}")
        for failure in report["failures"]:
            if "shape" not in failure:
                print(f"✗ {failure['reason']}")
        print(f"{report['impostors_rejected']} impostors rejected by the same inputs; "
              f"seed {options.seed}")
        print("All accuracy tests passed!" if report["passed"]
              else f"{len(report['failures'])} of {report['cases']} cases failed.")
    return 0 if report["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
