"""Definitions as a test of emitted modules needs them: signatures, sizes to try, inputs to draw."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any, Iterator, NamedTuple

DTYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "i8": "int8", "u8": "uint8",
          "i16": "int16", "u16": "uint16", "i32": "int32", "u32": "uint32", "i64": "int64", "bool": "bool",
          "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "u4": "uint8", "i4": "uint8"}


class Tensor(NamedTuple):
    name: str
    dtype: str  # or a variable
    dims: list[str]  # in memory
    packed: bool = False  # 4-bit weights in panels


class Definition(NamedTuple):
    file: Path
    name: str
    inputs: list[Tensor]
    outputs: list[Tensor]
    variables: dict[str, list[str]]
    params: dict[str, float]
    sizes: list[str]
    rows: list[dict[str, int]]  # that the goal verifies
    ranges: dict[str, tuple[float, float]]

    def dtypes(self) -> Iterator[dict[str, str]]:
        for choice in itertools.product(*self.variables.values()):
            yield dict(zip(self.variables, choice))

    def shape(self, tensor: Tensor, sizes: dict[str, int]) -> tuple[int, ...]:
        names = {**self.params, **sizes, "ceil": lambda pair: pair}
        return tuple(eval(dim, {"__builtins__": {}}, names) for dim in tensor.dims)


def split_top(text: str) -> list[str]:
    parts, depth, part = [], 0, ""
    for c in text:
        depth += c in "([{"
        depth -= c in ")]}"
        if c == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += c
    return [p.strip() for p in parts + [part] if p.strip()]


def python_dim(dim: str) -> str:
    """ceil(a/b) and / as Python has them."""
    dim = re.sub(r"ceil\(([^/()]+|\([^()]*\))/([^()]+|\([^()]*\))\)", r"(-(-(\1)<>(\2)))", dim)
    return dim.replace("/", "//").replace("<>", "//")


def read_tensors(text: str) -> list[Tensor]:
    tensors = []
    for part in split_top(text):
        name, rest = part.split(":", 1)
        packed, dtype, text = re.match(r"\s*(packed\s+)?(\w+)\s*\[(.*)\]\s*$", rest, re.S).groups()
        dims = [python_dim(d) for d in split_top(text)]
        if packed:
            dims[-2:] = [f"(-(-({dims[-2]})//64))", f"(-(-({dims[-1]})//16))", "1024"]
        tensors.append(Tensor(name.strip(), dtype, dims, bool(packed)))
    return tensors


def closing(text: str, at: int) -> int:
    depth = 0
    for i in range(at, len(text)):
        depth += text[i] == "("
        depth -= text[i] == ")"
        if depth == 0:
            return i
    raise ValueError("no end")


def number(text: str) -> float:
    return float(text) if re.search(r"[.eE]|inf", text) else int(text)


def read_goal(text: str) -> tuple[list[dict[str, int]], dict[str, tuple[float, float]]]:
    rows, ranges = [], {}
    for names, values in re.findall(r"verify\s+([A-Za-z_]\w*(?: +[A-Za-z_]\w*)*?)\s*=\s*([-\d ,\n]+)", text):
        for row in values.split(","):
            numbers = row.split()
            if len(numbers) == len(names.split()):
                rows.append(dict(zip(names.split(), map(int, numbers))))
    for line in re.findall(r"verify\s+((?:\w+\s+in\s+\S+\.\.\S+(?:,\s*)?)+)", text):
        for name, low, high in re.findall(r"(\w+)\s+in\s+(-?[\w.e+-]*?)\.\.(-?[\w.e+-]+)", line):
            ranges[name] = (number(low), number(high))
    return rows, ranges


def read(file: Path) -> list[Definition]:
    text = "\n".join(line.split("#")[0] for line in file.read_text().splitlines())
    found = []
    starts = [m.start() for m in re.finditer(r"^op\s", text, re.M)] + [len(text)]
    for begin, end in zip(starts, starts[1:]):
        part = text[begin:end]
        name = re.match(r"op\s+(\w+)", part).group(1)
        first = part.index("(")
        middle = closing(part, first)
        second = part.index("(", middle)
        last = closing(part, second)
        head = part[last + 1:part.index("{", last)]
        variables = {}
        for clause in re.findall(r"where\s+(.*?)(?=where|param|$)", head, re.S):
            for variable, allowed in re.findall(r"(\w+)\s+in\s+((?:\w+[\s,]*?)+?)(?=,\s*\w+\s+in\s|$)", clause.strip()):
                variables[variable] = re.findall(r"\w+", allowed)
        params = {}
        for clause in re.findall(r"param\s+(.*?)(?=where|param|$)", head, re.S):
            for item in clause.split(","):
                key, value = item.split("=")
                params[key.strip()] = number(value.strip())
        inputs, outputs = read_tensors(part[first + 1:middle]), read_tensors(part[second + 1:last])
        sizes: list[str] = []
        for tensor in inputs + outputs:
            for dim in tensor.dims:
                sizes += [s for s in re.findall(r"[A-Za-z_]\w*", dim) if s not in sizes and s not in params]
        goal = part[part.index("{", last):]
        rows, ranges = read_goal(goal)
        found.append(Definition(file, name, inputs, outputs, variables, params, sizes, rows, ranges))
    return found


def sizes_to_try(definition: Definition, limit: int = 4000) -> list[dict[str, int]]:
    """None, one, primes, one more than a power of two; the rows that the goal verifies, as far as they are small."""
    names = definition.sizes
    primes = [7, 5, 11, 3, 13, 2, 17, 19]
    tried = [{n: 1 for n in names}, {n: primes[i % 8] for i, n in enumerate(names)},
             {n: 0 for n in names}, {n: [4, 8, 16][i % 3] for i, n in enumerate(names)},
             {n: (33 if i == len(names) - 1 else 3) for i, n in enumerate(names)}]
    small = [row for row in definition.rows if all(v <= 520 for v in row.values())]
    return small[:3] + tried


def numbers(definition: Definition, tensor: Tensor, count: int, is_float: bool, np: Any, rng: Any,
            least: float, most: float) -> Any:
    """Signed values of some width, and integers small enough for places; ranges of the goal are kept."""
    low, high = definition.ranges.get(tensor.name, (None, None))
    if is_float:
        values = rng.standard_normal(count) * rng.choice([0.5, 1.0, 3.0], count)
        if low is not None:
            low, high = max(low, -8.0), min(high, 8.0)
            values = rng.uniform(low, high, count)
        return values
    low = max(least, -9) if low is None else max(low, least)
    high = min(most, 40) if high is None else min(high, most, low + 1000)
    return rng.integers(int(low), int(high), count, endpoint=True)
