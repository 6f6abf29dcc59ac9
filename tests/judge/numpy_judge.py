"""A third evaluator of definitions, beside the reference and the kernels: NumPy.

It reads the text with tools/definition.py and turns each statement into operations on whole arrays:
einsum where a sum of products is taken, else arrays that broadcast. Floats are computed in f64,
integers in int64. It shares neither code nor design with src/: agreement is evidence.

`Evaluator(..., unit=2**-24)` adds random errors of the size of f32's rounding to every operation, as
a kernel makes them: how far the results move is how far a right kernel may be off.
"""

import functools
import math
import string

import numpy

from definition import Call, Name, Number, Read, Reduction, size_of, walk

# Fraction bits, exponent of the smallest normal value, largest value, whether it has infinities.
FLOATS = {"f16": (10, -14, 65504.0, True), "bf16": (7, -126, 3.3895313892515355e38, True),
          "f32": (23, -126, 3.4028234663852886e38, True),
          "f64": (52, -1022, 1.7976931348623157e308, True),
          "f8e4m3": (3, -6, 448.0, False), "f8e5m2": (2, -14, 57344.0, True)}
BITS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64, "f8e4m3": 8, "f8e5m2": 8, "bool": 8,
        **{f"{sign}{bits}": bits for sign in "iu" for bits in (4, 8, 16, 32, 64)}}
CONSTANTS = {"inf": math.inf, "nan": math.nan, "pi": math.pi, "true": True, "false": False}
F32_LARGEST = FLOATS["f32"][2]
RELATIONS = {"<=": numpy.less_equal, "<": numpy.less, ">=": numpy.greater_equal,
             ">": numpy.greater}
LEAST, GREATEST = -2**63, 2**63 - 1


# ---- Dtypes ----


def is_float(dtype):
    return dtype in FLOATS


def unpacked(panels, rows, columns):
    """[..., K, N] of panels in memory. Of the 1024 codes of a panel the axes are, from the slowest on: column
    % 16 / 2, row % 8 / 2, row % 64 / 16, row % 2, row % 16 / 8, column % 2."""
    *lead, down, across, _ = panels.shape
    at = len(lead)
    axes = panels.reshape(*lead, down, across, 8, 4, 4, 2, 2, 2)
    order = [0, 4, 6, 3, 5, 1, 2, 7]  # row: panel, 16s, 8s, 2s, 1s; column: panel, 2s, 1s
    whole = axes.transpose(*range(at), *(at + axis for axis in order))
    return whole.reshape(*lead, down * 64, across * 16)[..., :rows, :columns]


def decode(bits, dtype, shape):
    """An array of f64, int64 or bool from the bytes of a tensor."""
    count = math.prod(shape)
    if BITS[dtype] == 4:
        raw = numpy.frombuffer(bits, numpy.uint8)
        halves = numpy.stack([raw & 15, raw >> 4], -1).reshape(-1)[:count].astype(numpy.int64)
        return (halves - 16 * (halves > 7) if dtype == "i4" else halves).reshape(shape)
    if dtype == "bool":
        return numpy.frombuffer(bits, numpy.uint8)[:count].reshape(shape) != 0
    if dtype in ("f16", "f32", "f64"):
        return numpy.frombuffer(bits, f"<{dtype[0]}{BITS[dtype] // 8}")[:count].astype(
            numpy.float64).reshape(shape)
    if dtype == "bf16":
        raw = numpy.frombuffer(bits, "<u2")[:count].astype(numpy.uint32) << 16
        return raw.view(numpy.float32).astype(numpy.float64).reshape(shape)
    if dtype == "f8e5m2":
        raw = numpy.frombuffer(bits, numpy.uint8)[:count].astype(numpy.uint16) << 8
        return raw.view(numpy.float16).astype(numpy.float64).reshape(shape)
    if dtype == "f8e4m3":
        return e4m3(numpy.frombuffer(bits, numpy.uint8)[:count].astype(numpy.int64)).reshape(shape)
    kind = f"<{dtype[0]}{BITS[dtype] // 8}"
    return numpy.frombuffer(bits, kind)[:count].astype(numpy.int64).reshape(shape)


def e4m3(raw):
    exponent, fraction = raw >> 3 & 15, raw & 7
    value = numpy.where(exponent == 0, numpy.ldexp(fraction.astype(float), -9),
                        numpy.ldexp((8 + fraction).astype(float), exponent - 10))
    value = numpy.where((raw & 127) == 127, math.nan, value)
    return numpy.where(raw & 128, -value, value)


def step(values, dtype):
    """The distance of neighbouring numbers of a dtype at values."""
    fraction, least, largest, _ = FLOATS[dtype]
    size = numpy.where(numpy.isfinite(values), numpy.minimum(numpy.abs(values), largest), largest)
    _, exponent = numpy.frexp(size)
    exponent = numpy.where(size == 0, least, numpy.maximum(exponent - 1, least))
    return numpy.ldexp(1.0, exponent - fraction)


def rounded(values, dtype):
    """Floats as the dtype holds them: to nearest, ties to even."""
    if dtype == "f64":
        return values
    _, _, largest, infinite = FLOATS[dtype]
    unit = step(values, dtype)
    result = numpy.rint(values / unit) * unit
    over = numpy.abs(result) > largest
    beyond = numpy.copysign(math.inf, values) if infinite else math.nan
    result = numpy.where(over | numpy.isinf(values), beyond, result)
    return numpy.where(numpy.isnan(values), math.nan, result)


def wrapped(values, dtype):
    """int64 as an integer dtype holds it."""
    bits = BITS[dtype]
    if bits == 64:
        return values
    low = values & ((1 << bits) - 1)
    return low - ((low >> (bits - 1)) << bits) if dtype[0] == "i" else low


def to_integer(values):
    """Floats without their fraction; NaN is 0, and what int64 cannot hold the nearest it can."""
    plain = numpy.where(numpy.isnan(values), 0.0, numpy.trunc(values))
    low, high = plain < -2.0**63, plain >= 2.0**63
    return numpy.where(low, LEAST, numpy.where(high, GREATEST, numpy.where(
        low | high, 0.0, plain).astype(numpy.int64)))


def cast(values, dtype):
    if dtype == "bool":
        return values != 0
    if is_float(dtype):
        return rounded(as_real(values), dtype)
    return wrapped(to_integer(values) if values.dtype.kind == "f" else as_number(values), dtype)


def as_number(values):
    """Truth values as integers."""
    return values.astype(numpy.int64) if values.dtype.kind == "b" else values


def as_real(values):
    return values.astype(numpy.float64)


# ---- Functions ----

ERF = numpy.vectorize(math.erf, otypes=[float])


def divide(a, b):
    if a.dtype.kind == b.dtype.kind == "i":
        return numpy.where(b == 0, 0, numpy.floor_divide(a, numpy.where(b == 0, 1, b)))
    return numpy.true_divide(a, b)


def remainder(a, b):
    if a.dtype.kind == b.dtype.kind == "i":
        return numpy.where(b == 0, 0, a - b * numpy.floor_divide(a, numpy.where(b == 0, 1, b)))
    return a - b * numpy.floor(a / b)


def whole(function):
    """floor, ceil and round leave integers alone."""
    return lambda x: x if x.dtype.kind == "i" else function(x)


def real(function):
    return lambda *arguments: function(*(as_real(argument) for argument in arguments))


def inner_gelu(x):
    return math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)


def shift_left(a, count):
    moved = (count < 0) | (count > 63)
    return numpy.where(moved, 0, numpy.left_shift(a, numpy.where(moved, 0, count)))


def shift_right(a, count):
    return numpy.right_shift(a, numpy.where((count < 0) | (count > 63), 63, count))


FUNCTIONS = {
    "+": numpy.add, "-": numpy.subtract, "*": numpy.multiply, "/": divide, "%": remainder,
    "neg": numpy.negative, "<": numpy.less, "<=": numpy.less_equal, ">": numpy.greater,
    ">=": numpy.greater_equal, "==": numpy.equal, "!=": numpy.not_equal,
    "&": numpy.bitwise_and, "|": numpy.bitwise_or, "^": numpy.bitwise_xor,
    "~": numpy.bitwise_not, "<<": shift_left, ">>": shift_right,
    "relu": lambda x: numpy.where(x < 0, numpy.zeros_like(x), x),
    "gelu": real(lambda x: x / 2 * (1 + ERF(x / math.sqrt(2)))),
    "gelu_tanh": real(lambda x: x / 2 * (1 + numpy.tanh(inner_gelu(x)))),
    "sigmoid": real(lambda x: 1 / (1 + numpy.exp(-x))),
    "silu": real(lambda x: x / (1 + numpy.exp(-x))),
    "softplus": real(lambda x: numpy.maximum(x, 0) + numpy.log1p(numpy.exp(-numpy.abs(x)))),
    "rsqrt": real(lambda x: 1 / numpy.sqrt(x)), "erf": real(ERF), "pow": real(numpy.power),
    "abs": numpy.abs, "floor": whole(numpy.floor), "ceil": whole(numpy.ceil),
    "round": whole(numpy.rint), "min": numpy.minimum, "max": numpy.maximum,
    "sign": lambda x: numpy.where(x != x, numpy.zeros_like(x), numpy.sign(x)),
    "isnan": lambda x: numpy.isnan(as_real(x)),
    **{name: real(getattr(numpy, name)) for name in
       ("tanh", "exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt", "sin", "cos")},
}


# ---- Evaluation ----


class Axis:
    def __init__(self, name, low, extent):
        self.name, self.low, self.extent = name, low, max(extent, 0)


def bare_uses(node, name):
    """(tensor, dimension) of each subscript that is the index alone, in the order of the text."""
    if isinstance(node, Read):
        for dim, subscript in enumerate(node.subscripts):
            if subscript == Name(name):
                yield node.tensor, dim
            yield from bare_uses(subscript, name)
    elif isinstance(node, Call):
        for argument in node.arguments:
            yield from bare_uses(argument, name)
    elif isinstance(node, Reduction):
        if all(index.name != name for index in node.indices):  # hidden inside otherwise
            yield from bare_uses(node.body, name)


class Evaluator:
    """Evaluates one op. Arrays have a dimension for each visible axis, of 1 where they do not
    depend on it."""

    def __init__(self, op, bindings, inputs, unit=0.0, seed=0):
        self.op, self.unit = op, unit
        self.noise = numpy.random.default_rng(seed)
        self.dtypes = {name: bindings.get(name, allowed[0])
                       for name, allowed in op.variables.items()}
        self.numbers = {**op.params, **{name: value for name, value in bindings.items()
                                        if name not in op.variables}}
        self.arrays = dict(inputs)
        self.outputs = {tensor.name: tensor for tensor in op.outputs}

    def run(self):
        """name -> array of each output, floats before they are rounded."""
        with numpy.errstate(all="ignore"):
            for statement in self.op.statements:
                self.arrays[statement.target] = self.statement(statement)
        return {name: self.arrays[name] for name in self.outputs}

    def statement(self, statement):
        output = self.outputs.get(statement.target)
        axes = []
        for position, index in enumerate(statement.indices):
            if output:
                extent = size_of(output.dims[position], self.numbers)
            elif index.high is not None:
                extent = size_of(index.high, self.numbers)
            else:
                extent = self.first_use(statement.value, index.name)
            axes.append(Axis(index.name, 0, extent))
        value = self.value(statement.value, axes)
        value = numpy.broadcast_to(value, [axis.extent for axis in axes])
        dtype = self.dtypes.get(output.dtype, output.dtype) if output else None
        if dtype and not is_float(dtype) and dtype != "bool":
            value = wrapped(as_number(value), dtype)
        elif dtype and is_float(dtype):
            value = as_real(value)
        return value

    def first_use(self, node, name):
        for tensor, dim in bare_uses(node, name):
            return self.arrays[tensor].shape[dim]
        return None

    def disturbed(self, value):
        """With the error of one rounding, and the range of f32, in a noisy evaluation."""
        if self.unit == 0 or value.dtype.kind != "f":
            return value
        value = value * (1 + self.unit * self.noise.uniform(-1, 1, value.shape))
        if self.unit > 2.0**-30:
            value = numpy.where(numpy.abs(value) > F32_LARGEST, numpy.copysign(math.inf, value),
                                value)
        return value

    def value(self, node, axes):
        shape = (1,) * len(axes)
        if isinstance(node, Number):
            return self.disturbed(numpy.full(shape, node.value))
        if isinstance(node, Name):
            return self.named(node.name, axes)
        if isinstance(node, Read):
            return self.read(node, axes, None)
        if isinstance(node, Reduction):
            return self.reduction(node, axes)
        return self.call(node, axes)

    def named(self, name, axes):
        for position in reversed(range(len(axes))):
            if axes[position].name == name:
                shape = [1] * len(axes)
                shape[position] = axes[position].extent
                low = axes[position].low
                return numpy.arange(low, low + axes[position].extent).reshape(shape)
        value = self.numbers[name] if name in self.numbers else CONSTANTS[name]
        return self.disturbed(numpy.full((1,) * len(axes), value))

    def call(self, node, axes):
        name = node.function
        if name == "pad":
            return self.read(node.arguments[0], axes, self.value(node.arguments[1], axes))
        if name == "cast":
            dtype = node.arguments[0].name
            return cast(self.value(node.arguments[1], axes), self.dtypes.get(dtype, dtype))
        arguments = [self.value(argument, axes) for argument in node.arguments]
        if name == "where":
            return numpy.where(*arguments)
        if name in ("&&", "||"):
            return (numpy.logical_and if name == "&&" else numpy.logical_or)(*arguments)
        if name == "!":
            return numpy.logical_not(*arguments)
        return self.disturbed(FUNCTIONS[name](*(as_number(argument) for argument in arguments)))

    def read(self, node, axes, outside):
        """An element for each point of the axes. Subscripts outside are clamped; under pad they
        give the value `outside`."""
        array = self.arrays[node.tensor]
        if array.ndim == 0:
            return array.reshape((1,) * len(axes))
        subscripts = [self.value(subscript, axes) for subscript in node.subscripts]
        shape = numpy.broadcast_shapes(*(subscript.shape for subscript in subscripts))
        inside = functools.reduce(numpy.logical_and, [
            (subscript >= 0) & (subscript < extent)
            for subscript, extent in zip(subscripts, array.shape)])
        if array.size == 0:  # nothing can be read: all of it is outside, or there is no point
            found = numpy.zeros(shape, array.dtype)
        else:
            found = array[tuple(numpy.clip(subscript, 0, extent - 1)
                                for subscript, extent in zip(subscripts, array.shape))]
        return found if outside is None else numpy.where(inside, found, outside)

    # ---- Reductions ----

    def axis(self, index, node, axes):
        """The axis of a reduced index."""
        if index.high is not None:
            low = size_of(index.low, self.numbers)
            return Axis(index.name, low, size_of(index.high, self.numbers) - low)
        extent = self.first_use(node.body, index.name)
        if extent is None:  # that of the index it is compared with
            extent = next(axis.extent for axis in reversed(axes)
                          if Name(axis.name) in walk(index.bound))
        return Axis(index.name, 0, extent)

    def reduction(self, node, axes):
        inner = axes + [self.axis(index, node, axes) for index in node.indices]
        valid = numpy.ones((1,) * len(inner), bool)
        for index in node.indices:
            if index.relation:
                bound = self.value(index.bound, axes)
                bound = bound.reshape(bound.shape + (1,) * len(node.indices))
                valid = valid & RELATIONS[index.relation](self.named(index.name, inner), bound)
        dims = tuple(range(len(axes), len(inner)))
        if node.kind == "sum" and valid.all():
            products = self.sum_of_products(node.body, inner, dims)
            if products is not None:
                return products
        body = self.value(node.body, inner)
        over = list(numpy.broadcast_shapes(body.shape, valid.shape))
        over[len(axes):] = [axis.extent for axis in inner[len(axes):]]
        body, valid = numpy.broadcast_to(body, over), numpy.broadcast_to(valid, over)
        return self.reduced(node, as_number(body) if node.kind not in ("any", "all") else body,
                            valid, dims, inner)

    def reduced(self, node, body, valid, dims, inner):
        kind = node.kind
        if kind in ("any", "all"):
            whole_body = numpy.where(valid, body, kind == "all")
            return (numpy.any if kind == "any" else numpy.all)(whole_body, axis=dims)
        if kind in ("argmax", "argmin"):
            low = inner[-1].low if len(dims) == 1 else 0
            flat = body.shape[:dims[0]] + (math.prod(body.shape[dims[0]:]),)
            return self.place(kind, body.reshape(flat), valid.reshape(flat), dims[0], low)
        if kind in ("max", "min"):
            least = LEAST if kind == "max" else GREATEST
            neutral = least if body.dtype.kind == "i" else math.copysign(math.inf, least)
            function = numpy.max if kind == "max" else numpy.min
            return function(numpy.where(valid, body, neutral), axis=dims, initial=neutral)
        if kind == "prod":
            value = numpy.prod(numpy.where(valid, body, numpy.ones_like(body)), axis=dims)
            return self.disturbed(value)
        body = as_real(body) if kind == "mean" else body
        terms = numpy.where(valid, body, numpy.zeros_like(body))
        total = self.disturbed_sum(numpy.sum(terms, axis=dims), terms, dims)
        if kind == "mean":
            total = self.disturbed(total / numpy.sum(valid, axis=dims))
        return total

    def disturbed_sum(self, total, terms, dims):
        if self.unit == 0 or total.dtype.kind != "f":
            return total
        count = math.prod(terms.shape[dim] for dim in dims)
        error = self.unit * math.sqrt(count + 1) * numpy.sum(numpy.abs(terms), axis=dims)
        moved = total + error * self.noise.uniform(-1, 1, total.shape)
        return self.disturbed(numpy.where(numpy.isfinite(error), moved, total))

    @staticmethod
    def place(kind, body, valid, dim, low):
        """The first of the largest along `dim`, NaN counting as largest; -1 where there is none."""
        if body.shape[dim] == 0:
            return numpy.full(body.shape[:dim], -1)
        sign = 1 if kind == "argmax" else -1
        if body.dtype.kind == "i":
            rank = body if sign > 0 else ~body
        else:
            rank = numpy.where(numpy.isnan(body), math.inf, sign * body)
        least = LEAST if rank.dtype.kind == "i" else -math.inf
        best = numpy.max(numpy.where(valid, rank, least), axis=dim, keepdims=True)
        found = valid & (rank == best)
        if rank.dtype.kind == "f":  # NaN comes before infinity
            nan = valid & numpy.isnan(body)
            found = numpy.where(nan.any(axis=dim, keepdims=True), nan, found)
        return numpy.where(found.any(axis=dim), numpy.argmax(found, axis=dim) + low, -1)

    def sum_of_products(self, body, inner, dims):
        """By einsum, which needs no array over all axes; None where that says nothing new."""
        factors = []

        def split(node):
            if isinstance(node, Call) and node.function == "*":
                for argument in node.arguments:
                    split(argument)
            else:
                factors.append(node)
        split(body)
        values = [as_number(self.value(factor, inner)) for factor in factors]
        if len(values) < 2 or len(inner) > 26 or not any(v.dtype.kind == "f" for v in values):
            return None
        values = [self.disturbed(as_real(value)) for value in values]
        letters = string.ascii_lowercase[:len(inner)]
        used, operands, once = set(), [], 1
        for value in values:
            kept = [at for at in range(len(inner)) if value.shape[at] != 1]
            used |= set(kept)
            operands += [("".join(letters[at] for at in kept),
                          value.reshape([value.shape[at] for at in kept]))]
        for at in dims:
            once *= 1 if at in used else inner[at].extent
        left = [at for at in range(len(inner)) if at not in dims]
        out = "".join(letters[at] for at in left if at in used)
        formula = ",".join(name for name, _ in operands) + "->" + out
        arrays = [array for _, array in operands]
        total = numpy.einsum(formula, *arrays) * once
        if self.unit:
            count = math.prod(inner[at].extent for at in dims)
            error = self.unit * math.sqrt(count + 1) * once * numpy.einsum(
                formula, *(numpy.abs(array) for array in arrays))
            moved = total + error * self.noise.uniform(-1, 1, total.shape)
            total = self.disturbed(numpy.where(numpy.isfinite(error), moved, total))
        return total.reshape([inner[at].extent if at in used else 1 for at in left])
