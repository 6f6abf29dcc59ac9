# Of NAME_accuracy.py: wrong kernels, which the inputs in use must reject.

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
