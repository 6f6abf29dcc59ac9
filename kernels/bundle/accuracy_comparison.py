# Of NAME_accuracy.py: the expected outputs, and what is right beside them.

# ---- Comparison ----


def same_bits(a, b):
    if a.is_floating_point():
        a, b = (t if t.dtype == torch.float64 else t.float() for t in (a, b))
        return bool(((a == b) | (a.isnan() & b.isnan())).all())
    return bool((a == b).all())


def halves(values, name):
    """Integers as elements of 4 bits hold them."""
    kept = values.long() & 15
    return ((kept ^ 8) - 8 if name == "i4" else kept).to(torch.int8)


def opened(found, one):
    """The elements of an output that has two a byte."""
    count = one.value.numel()
    if one.name not in PACKED or found.shape != ((count + 1) // 2,) or found.dtype != torch.uint8:
        return found
    pairs = torch.stack((found & 15, found >> 4), dim=-1).reshape(-1)
    return halves(pairs[:count].reshape(one.value.shape), one.name)


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
        self.rounded = halves(value, name) if name in PACKED else value.to(DTYPES[name])

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
