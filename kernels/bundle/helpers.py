# Functions that emitted files may need beside PyTorch's own. Each is copied alone.


def _read_padded(x, places, outside):
    """x at the places, which broadcast, and `outside` where they leave it."""
    places = [torch.as_tensor(place, device=x.device) for place in places]
    inside = torch.ones((), dtype=torch.bool, device=x.device)
    for place, extent in zip(places, x.shape):
        inside = inside & (place >= 0) & (place < extent)
    if x.numel() == 0:
        found = x.new_zeros(()).expand(inside.shape)
    else:
        found = x[tuple(place.clamp(0, extent - 1) for place, extent in zip(places, x.shape))]
    return torch.where(inside, found, outside)


def _quotient(a, b):
    """a / b of integers, rounded down; 0 where b is 0."""
    b = torch.as_tensor(b, device=a.device)
    return torch.where(b == 0, 0, torch.div(a, torch.where(b == 0, 1, b), rounding_mode="floor"))


def _remainder(a, b):
    """What division of integers leaves, with the sign of b; 0 where b is 0."""
    b = torch.as_tensor(b, device=a.device)
    return torch.where(b == 0, 0, torch.remainder(a, torch.where(b == 0, 1, b)))


def _shift_left(a, count):
    """a << count in 64 bits; counts below 0 or above 63 leave 0."""
    count = torch.as_tensor(count)
    inside = (count >= 0) & (count < 64)
    return torch.where(inside, a << torch.where(inside, count, 0), 0)


def _shift_right(a, count):
    """a >> count in 64 bits; counts below 0 or above 63 leave the sign alone."""
    count = torch.as_tensor(count)
    return a >> torch.where((count >= 0) & (count < 64), count, 63)


def _to_integer(x, dtype):
    """Drops the fraction, keeps within 64 bits, wraps to the dtype; NaN gives 0."""
    if x.is_floating_point():
        limit = 2.0**63
        whole = torch.where(x.isnan() | (x >= limit) | (x < -limit), 0, x).long()
        x = torch.where(x >= limit, 2**63 - 1, torch.where(x < -limit, -(2**63), whole))
    return x.to(dtype).long()


def _unpacked(w, shape, signed):
    """Integers of 4 bits, two a byte and the first in the low half, as int64."""
    count = math.prod(shape)
    w = w.reshape(-1).long()
    w = torch.stack((w & 15, w >> 4), dim=-1).reshape(-1)[:count].reshape(shape)
    return torch.where(w > 7, w - 16, w) if signed else w


def _packed(values):
    """Integers as 4 bits, two a byte and the first in the low half."""
    flat = torch.nn.functional.pad(values.reshape(-1).long() & 15, (0, values.numel() % 2))
    return (flat[::2] | flat[1::2] << 4).to(torch.uint8)


def _shifted(x, dim, value):
    """x moved by one along a dimension; what comes in is `value`."""
    first = torch.full_like(x.narrow(dim, 0, min(1, x.shape[dim])), value)
    return torch.cat((first, x.narrow(dim, 0, max(x.shape[dim] - 1, 0))), dim)


def _largest(x, dims):
    """The largest along dims; of nothing -inf, or the least integer."""
    if x.numel():
        return x.amax(dim=dims)
    least = float("-inf") if x.is_floating_point() else torch.iinfo(x.dtype).min
    return torch.full_like(x.sum(dim=dims), least)


def _smallest(x, dims):
    """The smallest along dims; of nothing inf, or the greatest integer."""
    if x.numel():
        return x.amin(dim=dims)
    greatest = float("inf") if x.is_floating_point() else torch.iinfo(x.dtype).max
    return torch.full_like(x.sum(dim=dims), greatest)


def _first_largest(x, count):
    """Where the first of the largest stands, of the last `count` dimensions in order; -1: there is
    none."""
    x = x.flatten(-count)
    if x.shape[-1] == 0:
        return torch.full(x.shape[:-1], -1, dtype=torch.int64, device=x.device)
    return x.argmax(dim=-1)


def _first_smallest(x, count):
    """Where the first of the smallest stands, of the last `count` dimensions in order; -1: there
    is none."""
    x = x.flatten(-count)
    if x.shape[-1] == 0:
        return torch.full(x.shape[:-1], -1, dtype=torch.int64, device=x.device)
    return x.argmin(dim=-1)
