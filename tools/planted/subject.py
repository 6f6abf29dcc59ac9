"""An op that is under siege: its definition, dtypes and sizes, and what faults ask about it."""

import json
import os
import random
import subprocess

import definition
from definition import Call, Name, Number, Read, Reduction, size_of, walk

MILLION = 1_000_000
USUAL_ELEMENTS = 65536  # about, of the sizes at which most faults are judged
LARGEST_ROW = 4_000_000  # of all tensors together, there


class Refused(Exception):
    """The tool refuses what it is asked for; the message is its own."""


class Tool:
    """The command-line tool, with a home of its own."""

    def __init__(self, program, home):
        self.program, self.home = program, home

    def command(self, *words):
        return [self.program, *words]

    def environment(self):
        return {**os.environ, "KERNELGEN_HOME": self.home}

    def run(self, *words, limit=600):
        done = subprocess.run(self.command(*words), capture_output=True, text=True, check=False,
                              env=self.environment(), timeout=limit)
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
            raise Refused(lines[0])
        return done.stdout


class Subject:
    """One op with dtypes bound. `sizes` are the problem's, `large` those of its tune row."""

    def __init__(self, tool, path, op, dtypes, sizes=None):
        self.tool, self.path, self.op = tool, path, op
        self.bindings = {name: allowed[0] for name, allowed in op.variables.items()}
        self.bindings.update({name: dtype for name, dtype in dtypes.items()
                              if dtype in op.variables.get(name, [])})
        self.tensors = op.inputs + op.outputs
        self.dtypes = {tensor.name: self.bindings.get(tensor.dtype, tensor.dtype)
                       for tensor in self.tensors}
        told = json.loads(tool.run("check", *self.words({}), "--device", "host", "--json"))
        self.size_names = [name for name in told["sizes"] if name not in op.params]
        usual = {name: told["sizes"][name] for name in self.size_names}
        asked = {**usual, **self.fitting(sizes or {})}
        self.large = asked if sizes else self.above_a_million(usual)
        self.sizes = asked if sizes else self.moderate(usual)

    def fitting(self, sizes):
        return {name: value for name, value in sizes.items() if name in self.size_names}

    def moderate(self, usual):
        """Sizes that are judged quickly and are not among the goal's, where the definition allows
        some; always the same for an op."""
        draw = random.Random(self.op.name)
        base = USUAL_ELEMENTS ** (1 / max(len(self.size_names), 1))
        for unit in (1, 1, 1, 1, 2, 2, 4, 4, 8, 8, 16, 16, 32, 32):
            row = {name: max(int(base * draw.uniform(0.5, 1.5)) // unit * unit, unit)
                   for name in self.size_names}
            if self.size_names and self.allows(row) and self.elements(row) <= LARGEST_ROW and (
                    self.elements(row, self.op.outputs) > 0):
                return row
        rows = self.op.rows.get("verify", []) + self.op.rows.get("tune", []) + [usual]
        small = [row for row in rows if self.elements(row) <= LARGEST_ROW]
        return max(small or rows[:1], key=self.elements)

    def allows(self, sizes):
        """Does the definition allow these sizes?"""
        try:
            self.tool.run("check", *self.words(sizes), "--device", "host", "--json")
        except Refused:
            return False
        return True

    def above_a_million(self, usual):
        """The smallest row of the goal whose last output has over a million elements, if any."""
        rows = [row for row in self.op.rows.get("tune", []) + [usual]
                if self.elements(row, self.op.outputs[-1:]) > MILLION]
        return min(rows, key=self.elements) if rows else usual

    def values(self, sizes):
        """Sizes and params, for expressions of dimensions."""
        return {**self.op.params, **sizes}

    def elements(self, sizes, tensors=None):
        total = 0
        for tensor in tensors or self.tensors:
            count = 1
            for dim in tensor.dims:
                count *= size_of(dim, self.values(sizes))
            total += count
        return total

    def words(self, sizes):
        """Arguments of every command that name this problem."""
        words = [self.path, "--op", self.op.name]
        for name, dtype in self.bindings.items():
            words += ["--dtype", f"{name}={dtype}"]
        for name, value in sizes.items():
            words += ["--size", f"{name}={value}"]
        return words

    def __str__(self):
        bound = ",".join(f"{name}={dtype}" for name, dtype in self.bindings.items())
        return f"{self.op.name} {bound}".strip()

    # ---- What faults ask ----

    def has_output(self, *dtypes):
        return any(self.dtypes[tensor.name] in dtypes for tensor in self.op.outputs)

    def has_input(self, *dtypes):
        return any(self.dtypes[tensor.name] in dtypes for tensor in self.op.inputs)

    def output_rank(self):
        return len(self.op.outputs[-1].dims)

    def output_elements(self):
        """Of the last output, at the large sizes."""
        return self.elements(self.large, self.op.outputs[-1:])

    def nodes(self):
        for statement in self.op.statements:
            yield from walk(statement.value)

    def reductions(self):
        return {node.kind for node in self.nodes() if isinstance(node, Reduction)}

    def ids(self):
        """(tensor of ids, tensor that is read, its dimension) of each gather from an input, by
        their positions."""
        places = {tensor.name: at for at, tensor in enumerate(self.tensors)}
        inputs = {tensor.name for tensor in self.op.inputs}
        found = []
        for node in self.nodes():
            for dim, subscript in enumerate(node.subscripts if isinstance(node, Read) else ()):
                if isinstance(subscript, Read) and {node.tensor, subscript.tensor} <= inputs:
                    found.append((places[subscript.tensor], places[node.tensor], dim))
        return list(dict.fromkeys(found))

    def wide_dtypes(self):
        """The bindings with f32 for every narrow float, if the op allows them."""
        narrow = [name for name, dtype in self.bindings.items() if dtype in ("f16", "bf16")]
        if not narrow or any("f32" not in self.op.variables[name] for name in narrow):
            return None
        return {**self.bindings, **{name: "f32" for name in narrow}}

    def plain_sum(self):
        """(left indices, sum) of an op that is one sum of products of reads, each subscript an
        index alone and each index a bare one; else None."""
        if len(self.op.statements) != 1:
            return None
        statement = self.op.statements[0]
        total = statement.value
        if not isinstance(total, Reduction) or total.kind != "sum":
            return None
        if any(index.relation or index.low for index in total.indices):
            return None
        if any(self.dtypes[tensor.name] in ("u4", "i4", "i64") for tensor in self.op.inputs):
            return None
        for node in walk(total.body):
            plain = isinstance(node, Name) or isinstance(node, Call) and node.function == "*"
            if isinstance(node, Read):
                plain = all(isinstance(subscript, Name) for subscript in node.subscripts)
            if not plain:
                return None
        return statement.indices, total


def definitions(paths, only):
    """(file, op) of every op of the files, or of those named."""
    for path in paths:
        with open(path, encoding="utf-8") as file:
            ops = definition.read(file.read())
        for op in ops:
            if not only or op.name in only:
                yield path, op


def c_of(node):
    """An expression of sizes, params and indices in C."""
    if isinstance(node, Number):
        return str(node.value)
    if isinstance(node, Name):
        return f"s_{node.name}"
    if node.function == "ceil":
        first, second = (c_of(part) for part in node.arguments[0].arguments)
        return f"(-siege_div(-({first}), {second}))"
    parts = [c_of(argument) for argument in node.arguments]
    if node.function == "neg":
        return f"(-{parts[0]})"
    if node.function in "/%":
        return f"siege_{'div' if node.function == '/' else 'mod'}({parts[0]}, {parts[1]})"
    return f"({parts[0]} {node.function} {parts[1]})"
