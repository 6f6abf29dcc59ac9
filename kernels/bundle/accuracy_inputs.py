# Of NAME_accuracy.py: inputs of every class, drawn from a seed.

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
            ends = [known[tensor] for known in (places, RANGES) if tensor in known]
            limit = (max(low for low, _ in ends), min(high for _, high in ends)) if ends else None
            found[tensor] = draw_integer(kind, shape, name, limit, generator)
    return found
