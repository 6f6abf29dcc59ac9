@triton.jit
def _number(turn, last):
    """Of a program's tile in this turn. Tiles behind the last one are the last one again."""
    return tl.minimum(tl.program_id(0) + turn * tl.num_programs(0), last)


@triton.jit
def _place(turn, last, across):
    """The same where tiles lie side by side. GPUs count along both dimensions of the grid: there is
    one turn, and `across` is 1."""
    number = _number(turn, last)
    return number // across, number % across + tl.program_id(1)


# Before 3.7, where a read is contiguous along no dimension of a tile, Triton lets neighbouring
# threads follow the first one. So columns, whose elements lie close together, come first there, but
# not on Ascend.
_COLUMNS_FIRST = tl.constexpr(
    tuple(map(int, triton.__version__.split(".")[:2])) < (3, 7)
    and "ascend" not in triton.backends.backends
)


@triton.jit
def _down(x):
    """As the rows of such a tile."""
    if _COLUMNS_FIRST:
        return x[None, :]
    else:
        return x[:, None]


@triton.jit
def _across(x):
    """As its columns."""
    if _COLUMNS_FIRST:
        return x[:, None]
    else:
        return x[None, :]


@triton.jit
def _quotient(a, b, magic):
    """a // b, neither of which is negative. Dividing takes some twenty instructions; the product
    with what _magic made of b has the quotient in its upper half."""
    if magic is None:
        return a // b
    else:
        high = tl.umulhi(a.to(tl.uint32), magic.to(tl.uint32))
        return (high >> ((magic >> 32).to(tl.uint32) & 31)).to(tl.int32)


@triton.jit
def _remainder(a, quotient, b, magic):
    if magic is None:
        return a % b
    else:
        return a - quotient * b


@triton.jit
def _floor_div(a, b):
    """Rounded down; by zero it is 0. Triton's own division of integers rounds towards zero."""
    safe = tl.where(b == 0, 1, b)
    quotient = a // safe
    remainder = a - quotient * safe
    lower = (remainder != 0) & ((remainder < 0) != (safe < 0))
    return tl.where(b == 0, 0, tl.where(lower, quotient - 1, quotient))


@triton.jit
def _floor_mod(a, b):
    """The remainder with the sign of the divisor; by zero it is 0."""
    return tl.where(b == 0, 0, a - b * _floor_div(a, b))


@triton.jit
def _ceil_div(a, b):
    return -_floor_div(-a, b)


@triton.jit
def _shift_left(a, count):
    """Counts below 0 or above 63 move every bit out."""
    fits = (count >= 0) & (count < 64)
    return tl.where(fits, a << tl.where(fits, count, 0), 0)


@triton.jit
def _shift_right(a, count):
    """Copies the sign; counts below 0 or above 63 leave nothing but it."""
    fits = (count >= 0) & (count < 64)
    return a >> tl.where(fits, count, 63)


@triton.jit
def _not(x):
    return x == 0


@triton.jit
def _bit_not(x):
    return -1 - x


@triton.jit
def _is_nan(x):
    return x != x


@triton.jit
def _to_int(x):
    """Without the fraction; NaN is 0, and what 64 bits cannot hold is the nearest that they can."""
    inside = (x > -9223372036854775808.0) & (x < 9223372036854775808.0)
    whole = tl.where(inside, x, 0.0).to(tl.int64)
    least = tl.full((), -9223372036854775808, tl.int64)
    limit = tl.where(x > 0, -1 - least, least)
    return tl.where(inside | (x != x), whole, limit)


@triton.jit
def _minimum(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _maximum(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _largest(x, axis: tl.constexpr, keep_dims: tl.constexpr = False):
    """NaN if any element is NaN, in one pass: a second one for NaN alone takes as long."""
    return tl.reduce(x, axis, _maximum, keep_dims=keep_dims)


@triton.jit
def _smallest(x, axis: tl.constexpr, keep_dims: tl.constexpr = False):
    """NaN if any element is NaN, in one pass: a second one for NaN alone takes as long."""
    return tl.reduce(x, axis, _minimum, keep_dims=keep_dims)


@triton.jit
def _multiply(a, b):
    return a * b


@triton.jit
def _greater(a, b):
    return tl.maximum(a, b)


@triton.jit
def _lesser(a, b):
    return tl.minimum(a, b)


@triton.jit
def _product(x, axis: tl.constexpr, keep_dims: tl.constexpr = False):
    return tl.reduce(x, axis, _multiply, keep_dims=keep_dims)


@triton.jit
def _first_place(values, places, best, axis: tl.constexpr, keep_dims: tl.constexpr = False):
    """The first place of the best value, which is NaN if any is; -1: there are no values."""
    hit = ((values == best) | ((values != values) & (best != best))) & (places >= 0)
    behind: tl.constexpr = 9223372036854775807 if places.dtype == tl.int64 else 2147483647
    first = tl.min(tl.where(hit, places, behind), axis, keep_dims=keep_dims)
    return tl.where(first == behind, -1, first)


@triton.jit
def _relu(x):
    """NaN stays NaN."""
    return tl.where(x < 0, 0, x)


@triton.jit
def _sign(x):
    """-1, 0 or 1; 0 for NaN."""
    return (x > 0).to(x.dtype) - (x < 0).to(x.dtype)


@triton.jit
def _floor(x):
    """Subnormal numbers too, which NVIDIA's instruction takes for zeros."""
    below = tl.floor(x)
    return tl.where((below == 0.0) & (x < 0.0), -1.0, below)


@triton.jit
def _ceil(x):
    above = tl.ceil(x)
    return tl.where((above == 0.0) & (x > 0.0), 1.0, above)


@triton.jit
def _sqrt(x):
    """Subnormal numbers too: tl.sqrt takes those of float32 for zeros."""
    if x.dtype == tl.float32:
        root = tl.sqrt_rn(x)
    else:
        root = tl.sqrt(x)
    return root


@triton.jit
def _rsqrt(x):
    return 1.0 / _sqrt(x)


@triton.jit
def _modulo(x, y):
    return x - y * _floor(x / y)


@triton.jit
def _round(x):
    """To the nearest integer, halves to even."""
    below = tl.floor(x)
    rest = x - below
    is_odd = below - 2.0 * tl.floor(below * 0.5)
    up = (rest > 0.5) | ((rest == 0.5) & (is_odd != 0.0))
    return tl.where(up, below + 1.0, below)


@triton.jit
def _expm1(x):
    """exp(x) - 1, exact near 0: the rounding of exp(x) is corrected by its logarithm."""
    e = tl.exp(x)
    near = (e - 1.0) * x / tl.where((e == 1.0) | (e == 0.0), 1.0, tl.log(e))
    return tl.where(e == 1.0, x, tl.where((tl.abs(x) < 1.0), near, e - 1.0))


@triton.jit
def _log1p(x):
    """log(1 + x), exact near 0: the rounding of 1 + x is corrected."""
    u = 1.0 + x
    near = tl.log(u) * (x / tl.where(u == 1.0, 1.0, u - 1.0))
    return tl.where(u == 1.0, x, tl.where(tl.abs(x) < 1.0, near, tl.log(u)))


@triton.jit
def _tanh(x):
    e = _expm1(-2.0 * tl.abs(x))
    t = -e / (e + 2.0)
    return tl.where(x < 0, -t, t)


@triton.jit
def _sigmoid(x):
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def _silu(x):
    return x / (1.0 + tl.exp(-x))


@triton.jit
def _gelu(x):
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))


@triton.jit
def _gelu_tanh(x):
    return 0.5 * x * (1.0 + _tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


@triton.jit
def _softplus(x):
    return _maximum(x, 0.0) + _log1p(tl.exp(-tl.abs(x)))


@triton.jit
def _pow(x, y):
    """x to the power y as C's pow. In f64, as y * log2(x) needs more digits than x has."""
    x, y = tl.broadcast(x, y)
    a = tl.abs(x).to(tl.float64)
    b = y.to(tl.float64)
    power = tl.exp2(b * tl.log2(a))
    power = tl.where((b == 0.0) | (a == 1.0), 1.0, power)
    whole = tl.floor(b) == b
    odd = whole & (tl.floor(b * 0.5) * 2.0 != b)
    negative = tl.where(odd, -power, tl.where(whole, power, float("nan")))
    negative = tl.where(a == float("inf"), tl.where(odd, -power, power), negative)
    power = tl.where(x < 0, negative, power)
    # Where NaN is not part of the answer: x to the power 0, and 1 to any power.
    power = tl.where((x != x) | (b != b), float("nan"), power)
    power = tl.where((x == 1.0) | (b == 0.0), 1.0, power)
    return power.to(x.dtype)


# Triton's interpreter holds bfloat16 as integers: it multiplies those in place of the values, and
# where it converts to bfloat16 it drops the lower bits.
_INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET", "0") == "1")


@triton.jit
def _to_bf16(x):
    """Rounded to the nearest, halves to even, in the interpreter, too: there the upper half of a
    float32 is rounded as an integer, and a NaN keeps a bit of its fraction."""
    if _INTERPRETED:
        bits = x.to(tl.float32).to(tl.uint32, bitcast=True)
        nearest = bits + 0x7FFF + ((bits >> 16) & 1)
        upper = tl.where(x == x, nearest, bits | 0x400000) >> 16
        x = upper.to(tl.uint16).to(tl.bfloat16, bitcast=True)
    return x.to(tl.bfloat16)


@triton.jit
def _store(pointer, value, mask=None):
    """tl.store, which converts to the dtype of the pointer."""
    if pointer.dtype.element_ty == tl.bfloat16:
        value = _to_bf16(value)
    tl.store(pointer, value, mask=mask)


@triton.jit
def _dot(a, b, total):
    """float32 without matrix units: "tf32x3" loses what is huge or tiny, and is twice as fast."""
    if _INTERPRETED:
        a = a.to(tl.float32)
        b = b.to(tl.float32)
    return tl.dot(a, b, total, input_precision="ieee")


@triton.jit
def _has_unbounded(x):
    """Whether an element is infinite or NaN."""
    return tl.max((x - x != 0.0).to(tl.int32)) > 0


@triton.jit
def _dot_integers(a, b, total):
    return tl.dot(a, b, total, out_dtype=tl.int32)


@triton.jit
def _load_u4(pointer, offset, mask):
    """Two elements a byte, the even one in the low half."""
    byte = tl.load(pointer + offset // 2, mask=mask, other=0).to(tl.int32)
    return (byte >> (offset % 2 * 4).to(tl.int32)) & 15


@triton.jit
def _load_i4(pointer, offset, mask):
    return (_load_u4(pointer, offset, mask) ^ 8) - 8


@triton.jit
def _from_f8e4m3(byte):
    """Four bits of exponent, no infinities. A float16 has the same fields, further up."""
    low = (byte & 127).to(tl.uint16)
    value = (low << 7).to(tl.float16, bitcast=True).to(tl.float32) * 256.0
    value = tl.where(low == 127, float("nan"), value)
    return tl.where(byte >= 128, -value, value)


@triton.jit
def _to_f8e4m3(x):
    """Rounded to the nearest, halves to even; what is too large becomes NaN, as in PyTorch."""
    x = x.to(tl.float32)
    bits = x.to(tl.int32, bitcast=True)
    low = bits & 0x7FFFFFFF
    normal = ((low + 0x7FFFF + ((low >> 20) & 1)) >> 20) - (120 << 3)
    small = (tl.abs(x) + 16384.0).to(tl.int32, bitcast=True) - 0x46800000
    byte = tl.where(low < 0x3C800000, small, normal)
    byte = tl.where((low > 0x7F800000) | (byte > 126), 127, byte)
    return (byte | ((bits >> 24) & 128)).to(tl.uint8)


@triton.jit
def _from_f8e5m2(byte):
    """The upper half of a float16."""
    return (byte.to(tl.uint16) << 8).to(tl.float16, bitcast=True).to(tl.float32)


@triton.jit
def _to_f8e5m2(x):
    """Rounded to the nearest, halves to even; what is too large becomes infinite."""
    x = x.to(tl.float32)
    bits = x.to(tl.int32, bitcast=True)
    low = bits & 0x7FFFFFFF
    normal = ((low + 0xFFFFF + ((low >> 21) & 1)) >> 21) - (112 << 2)
    small = (tl.abs(x) + 128.0).to(tl.int32, bitcast=True) - 0x43000000
    byte = tl.where(low < 0x38800000, small, normal)
    byte = tl.where(byte > 124, 124, byte)
    byte = tl.where(low > 0x7F800000, 127, byte)
    return (byte | ((bits >> 24) & 128)).to(tl.uint8)
