"""The work of one program, read from Triton's own intermediate code (TTIR) and a call's arguments.

TTIR is in SSA form: each line gives a name to one value, and loops are `scf.for` with bounds that are such names.
Integers are computed from the arguments as far as they depend on nothing else, so that a loop over ceil(K / BK)
has its trips. What is not understood is left out: unknown integers are None, loops of unknown length count once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Mapping, Optional

_FUNCTION = re.compile(r"tt\.func public @[\w.$\"-]+\((.*?)\) attributes|tt\.func public @[\w.$\"-]+\((.*?)\) \{", re.S)
_PARAMETER = re.compile(r"(%[\w.$-]+): ([^,{]+(?:<[^>]*>)?)")
_ASSIGNMENT = re.compile(r"^\s*(%[\w.$-]+)(?::\d+)? = ([\w.]+)(.*)$")
_FOR = re.compile(r"scf\.for (?:unsigned )?(%[\w.$-]+) = (%[\w.$#-]+) to (%[\w.$#-]+) step (%[\w.$#-]+)"
                  r"(?: iter_args\((.*?)\))?")
_TENSOR = re.compile(r"tensor<((?:\d+x)+)([^,>]+(?:<[^>]*>)?)>")
_NAME = re.compile(r"%[\w.$-]+")
_BITS = {"f64": 64, "i64": 64, "f32": 32, "i32": 32, "f16": 16, "bf16": 16, "i16": 16, "i8": 8, "i1": 8}

INTEGERS = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.divsi": lambda a, b: int(a / b) if b else None,
    "arith.divui": lambda a, b: a // b if b else None,
    "arith.ceildivsi": lambda a, b: -(-a // b) if b else None,
    "arith.remsi": lambda a, b: a - b * int(a / b) if b else None,
    "arith.remui": lambda a, b: a % b if b else None,
    "arith.minsi": min,
    "arith.maxsi": max,
}


@dataclass
class Dot:
    """A product of tiles: (m, k) by (k, n), so many times a program."""

    m: int
    n: int
    k: int
    bits: int  # of an element of the operands
    batch: int = 1
    trips: float = 1.0
    in_loop: bool = False
    loaded_bytes: float = 0.0  # of operands that come from a load in the same loop as they are

    @property
    def flops(self) -> float:
        return 2.0 * self.batch * self.m * self.n * self.k * self.trips


@dataclass
class Work:
    """Of one program, all loops run through."""

    dots: list[Dot] = field(default_factory=list)
    read_bytes: float = 0.0  # of all loads, from wherever
    write_bytes: float = 0.0
    reads: set[str] = field(default_factory=set)  # names of the tensors that are loaded from
    writes: set[str] = field(default_factory=set)
    largest: int = 0  # elements of the largest tensor
    exact: bool = True  # False: some loop's length is not known

    @property
    def flops(self) -> float:
        return sum(dot.flops for dot in self.dots)

    @property
    def updated(self) -> set[str]:
        """Tensors that are read and written: another run would find other inputs."""
        return self.reads & self.writes


def bits_of(element: str) -> int:
    if "ptr" in element:
        return 64
    return _BITS.get(element.strip(), 8 if element.startswith("f8") else 32)


class _Reader:
    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.work = Work()
        self.integers: dict[str, Optional[int]] = {
            f"%{name}": value for name, value in arguments.items() if isinstance(value, int)}
        self.roots: dict[str, set[str]] = {}  # the parameters that a pointer comes from
        self.loaded: dict[str, tuple[int, float]] = {}  # tiles in memory: the number of loops around, and bytes
        self.loops: list[float] = []  # trips of the loops around a line
        self.blocks: list[bool] = []  # of every open brace: does it begin a loop?

    def trips(self) -> float:
        trips = 1.0
        for loop in self.loops:
            trips *= loop
        return trips

    def parameters(self, text: str) -> None:
        for name, kind in _PARAMETER.findall(text):
            if "ptr" in kind or "tensordesc" in kind:
                self.roots[name] = {name[1:]}

    def open_loop(self, line: str) -> None:
        match = _FOR.search(line)
        trips: Optional[float] = None
        if match:
            begin, end, step = (self.integers.get(match.group(n)) for n in (2, 3, 4))
            if begin is not None and end is not None and step:
                trips = max(0, -(-(end - begin) // step))
            for pair in (match.group(5) or "").split(","):
                inner, _, outer = pair.partition("=")
                self.follow(inner.strip(), outer.strip())
        if trips is None:
            self.work.exact, trips = False, 1.0
        self.loops.append(trips)

    def follow(self, name: str, source: str) -> None:
        source = source.partition("#")[0]
        if source in self.roots:
            self.roots[name] = self.roots[source]

    def line(self, line: str) -> None:
        assigned = _ASSIGNMENT.match(line)
        name, operation, rest = assigned.groups() if assigned else ("", line.split("(")[0].split()[0], line)
        if assigned:
            self.value(name, operation, rest)
        loops = operation in ("scf.for", "scf.while") or line.lstrip().startswith(("scf.for", "scf.while"))
        if loops:
            self.open_loop(line)
        if "loc(" in line:
            line = line[:line.rfind("loc(")]
        opened, closed = line.rstrip().endswith("{"), line.lstrip().startswith("}")
        if closed and self.blocks and self.blocks.pop():
            self.loops.pop()
        if opened:
            self.blocks.append(loops)

    def value(self, name: str, operation: str, rest: str) -> None:
        operands = [word.partition("#")[0] for word in _NAME.findall(rest.partition(" loc(")[0])]
        if operation == "arith.constant":
            constant = re.match(r" (-?\d+) : (i\d+|index)", rest)
            self.integers[name] = int(constant.group(1)) if constant else None
        elif operation in INTEGERS and len(operands) == 2 and "tensor<" not in rest:
            values = [self.integers.get(operand) for operand in operands]
            if None not in values:
                self.integers[name] = INTEGERS[operation](*values)
        elif operation in ("arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast") and operands:
            self.integers[name] = self.integers.get(operands[0])
        if "tt.ptr" in rest or "tensordesc" in rest:
            roots = set().union(*(self.roots.get(operand, set()) for operand in operands))
            if roots and operation != "tt.load":
                self.roots[name] = roots
        if operation in ("tt.load", "tt.descriptor_load", "tt.experimental_descriptor_load", "tt.descriptor_gather"):
            self.work.read_bytes += self.moved(rest) * self.trips()
            self.loaded[name] = len(self.loops), self.moved(rest)
            self.work.reads |= self.roots.get(operands[0], set()) if operands else set()
        elif operation.startswith("tt.atomic") and operands:
            roots = self.roots.get(operands[0], set())
            self.work.reads |= roots
            self.work.writes |= roots
        elif operation in ("tt.dot", "tt.dot_scaled"):
            self.dot(rest, operands)
        elif operation in ("tt.trans", "tt.reshape") and operands and operands[0] in self.loaded:
            self.loaded[name] = self.loaded[operands[0]]
        for dimensions, _ in _TENSOR.findall(rest):
            self.work.largest = max(self.work.largest, _elements(dimensions))

    def store(self, line: str) -> None:
        operands = [word.partition("#")[0] for word in _NAME.findall(line)]
        self.work.write_bytes += self.moved(line) * self.trips()
        self.work.writes |= self.roots.get(operands[0], set()) if operands else set()

    @staticmethod
    def moved(rest: str) -> float:
        """Bytes of the tensor that a load or a store moves: of what its pointers point to."""
        largest = 0.0
        for dimensions, element in _TENSOR.findall(rest):
            pointed = re.search(r"ptr<([^,>]+)", element)
            bits = bits_of(pointed.group(1) if pointed else element)
            if element.strip() != "i1" and (pointed or "ptr" not in rest):
                largest = max(largest, _elements(dimensions) * bits / 8)
        return largest

    def dot(self, rest: str, operands: list[str]) -> None:
        tensors = [([int(size) for size in dimensions.split("x") if size], element)
                   for dimensions, element in _TENSOR.findall(rest)]
        if len(tensors) < 3:
            return
        (left, element), result = tensors[0], tensors[-1][0]
        batch = 1
        for size in result[:-2]:
            batch *= size
        loaded = [self.loaded.get(operand, (0, 0.0)) for operand in operands[:2]]
        self.work.dots.append(Dot(result[-2], result[-1], left[-1], bits_of(element), batch, self.trips(),
                                  bool(self.loops), sum(size for depth, size in loaded if depth == len(self.loops))))


def _elements(dimensions: str) -> int:
    elements = 1
    for size in dimensions.split("x"):
        elements *= int(size) if size else 1
    return elements


def read(text: str, arguments: Mapping[str, Any]) -> Work:
    """`arguments` are the call's by name; only integers count."""
    reader = _Reader(arguments)
    found = _FUNCTION.search(text)
    if not found:
        return reader.work
    reader.parameters(found.group(1) or found.group(2) or "")
    for line in text[found.end():].splitlines():
        words = line.strip()
        if words.startswith(("tt.store", "tt.descriptor_store", "tt.experimental_descriptor_store",
                             "tt.descriptor_reduce")):
            reader.store(words.partition(" loc(")[0])
        elif words and not words.startswith(("#", "//")):
            reader.line(line)
        if words.startswith("tt.return"):
            break
    return reader.work
