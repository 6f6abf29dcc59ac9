"""Definitions from PyTorch functions: a traced graph of element-wise operations, reductions and matrix products,
one statement for each. What has no counterpart is refused by name.

Sizes stay symbols: dimensions that an operation makes equal are one size, and the definition serves all shapes
that the function does. A dimension of length 1 in the examples is always 1. Results are rounded once, at outputs,
where PyTorch rounds after each operation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Callable, Sequence

from . import arrays, errors


class Dimension:
    """A length of the graph, and, once they have been unified, all others that are equal to it."""

    def __init__(self, length: int, is_of_input: bool = False) -> None:
        self.length, self.is_of_input, self.name = length, is_of_input, ""
        self.parent: Dimension | None = None

    def root(self) -> Dimension:
        return self if self.parent is None else self.parent.root()

    def unify(self, other: Dimension) -> Dimension:
        mine, theirs = self.root(), other.root()
        if mine is not theirs:
            theirs.parent = mine
            mine.is_of_input = mine.is_of_input or theirs.is_of_input
        return mine


@dataclass
class Value:
    """A tensor as the graph sees it: a view of a stored one. `places` has, for each dimension of the stored tensor,
    the position of the dimension here that it is read by; None: it is read at 0."""

    stored: str
    places: list[int | None]
    dimensions: list[Dimension]
    is_truth: bool = False

    def read(self, indices: Sequence[str]) -> str:
        return f"{self.stored}[{', '.join('0' if place is None else indices[place] for place in self.places)}]"

    def at(self, indices: Sequence[str]) -> str:
        """Read by the indices of a tensor that this one is broadcast to."""
        return self.read(indices[len(indices) - len(self.dimensions):])

    def view(self, order: Sequence[int | None], dimensions: Sequence[Dimension]) -> Value:
        """With these dimensions; `order` has the old position of each, None for a new one."""
        new = {old: position for position, old in enumerate(order) if old is not None}
        return Value(self.stored, [None if place is None else new.get(place) for place in self.places],
                     list(dimensions), self.is_truth)


def number(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = repr(float(value))
    return f"({text})" if text.startswith("-") else text


def unary(name: str) -> Callable[..., str]:
    return lambda x: f"{name}({x})"


def infix(operator: str) -> Callable[..., str]:
    return lambda x, y: f"({x} {operator} {y})"


def scaled(operator: str) -> Callable[..., str]:
    def write(x: str, y: str, alpha: Any = 1) -> str:
        return f"({x} {operator} {y if alpha == 1 else f'{number(alpha)} * {y}'})"
    return write


def gelu(x: str, approximate: str = "none") -> str:
    return f"gelu_tanh({x})" if approximate == "tanh" else f"gelu({x})"


def clamp(x: str, low: str | None = None, high: str | None = None) -> str:
    x = x if low is None else f"max({x}, {low})"
    return x if high is None else f"min({x}, {high})"


# Of element-wise operations, by the name without its overload: expressions of their arguments.
POINTWISE: dict[str, Callable[..., str]] = {
    **{name: unary(name) for name in ("relu", "sigmoid", "tanh", "exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt",
                                      "rsqrt", "abs", "floor", "ceil", "round", "sin", "cos", "erf", "silu", "sign",
                                      "isnan")},
    **{name: infix(operator) for name, operator in {"mul": "*", "div": "/", "gt": ">", "ge": ">=", "lt": "<",
                                                    "le": "<=", "eq": "==", "ne": "!="}.items()},
    "add": scaled("+"), "sub": scaled("-"), "gelu": gelu, "clamp": clamp, "clamp_min": clamp,
    "clamp_max": lambda x, high: f"min({x}, {high})",
    "rsub": lambda x, y, alpha=1: scaled("-")(y, x, alpha), "neg": lambda x: f"(-{x})",
    "reciprocal": lambda x: f"(1 / {x})", "pow": lambda x, y: f"pow({x}, {y})",
    "maximum": lambda x, y: f"max({x}, {y})", "minimum": lambda x, y: f"min({x}, {y})",
    "where": lambda condition, x, y: f"where({condition}, {x}, {y})",
}
KEEP_NUMBERS = {"add": {"alpha"}, "sub": {"alpha"}, "rsub": {"alpha"}, "gelu": {"approximate"}}
TRUTHS = {"gt", "ge", "lt", "le", "eq", "ne", "isnan"}
SAME = {"clone", "detach", "alias", "contiguous"}
REDUCTIONS = {"sum": "sum", "mean": "mean", "amax": "max", "amin": "min", "prod": "prod"}


def base_name(target: Any) -> str:
    """"add" of aten.add.Tensor."""
    return str(target).split(".")[1] if str(target).startswith("aten.") else str(target)


class Importer:
    def __init__(self, graph: Any, torch_arrays: Any) -> None:
        self.graph, self.torch_arrays = graph, torch_arrays
        self.values: dict[Any, Value] = {}
        self.inputs: list[tuple[str, list[Dimension], str]] = []
        self.outputs: list[tuple[str, list[Dimension], str]] = []
        self.statements: list[tuple[str, list[Dimension], Callable[[list[str]], str]]] = []

    def refuse(self, node: Any, why: str) -> errors.UnsupportedError:
        return errors.UnsupportedError(f"{node.target} cannot be imported: {why}")

    def dimensions_of(self, node: Any, is_of_input: bool = False) -> list[Dimension]:
        return [Dimension(int(length), is_of_input) for length in node.meta["val"].shape]

    def dtype_of(self, node: Any, value: Any) -> str:
        dtype = self.torch_arrays.dtypes.get(value.dtype)
        if dtype is None or not (value.dtype.is_floating_point or dtype == "bool"):
            raise self.refuse(node, f"its dtype is {value.dtype}; floats and bools are")
        return dtype

    # A statement for a new stored tensor, which has no dimensions of length 1.
    def state(self, dimensions: list[Dimension], expression: Callable[[list[str]], str],
              is_truth: bool = False) -> Value:
        name = f"t{len(self.statements)}"
        kept = [position for position, dimension in enumerate(dimensions) if dimension.length != 1]
        self.statements.append((name, [dimensions[position] for position in kept],
                                lambda indices: expression(spread(indices, kept, len(dimensions)))))
        return Value(name, list(kept), dimensions, is_truth)

    def broadcast(self, node: Any, values: Sequence[Value]) -> list[Dimension]:
        dimensions = self.dimensions_of(node)
        for value in values:
            offset = len(dimensions) - len(value.dimensions)
            for position, dimension in enumerate(value.dimensions):
                if dimension.length != 1:
                    dimensions[offset + position] = dimension.unify(dimensions[offset + position])
        return dimensions

    def pointwise(self, node: Any, name: str) -> Value:
        function, keep = POINTWISE[name], KEEP_NUMBERS.get(name, set())
        if name == "div" and node.kwargs.get("rounding_mode"):
            raise self.refuse(node, "it rounds")
        tensors = [self.values[argument] for argument in list(node.args) + list(node.kwargs.values())
                   if argument in self.values]
        dimensions = self.broadcast(node, tensors)

        def written(argument: Any, indices: list[str]) -> Any:
            if argument is None:
                return None
            return self.values[argument].at(indices) if argument in self.values else number(argument)

        def expression(indices: list[str]) -> str:
            keywords = {key: value if key in keep else written(value, indices) for key, value in node.kwargs.items()}
            return function(*[written(argument, indices) for argument in node.args], **keywords)
        return self.state(dimensions, expression, name in TRUTHS)

    def reduction(self, node: Any, name: str) -> Value:
        value = self.values[node.args[0]]
        if value.is_truth:
            raise self.refuse(node, "its argument is true or false")
        rank = len(value.dimensions)
        given = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
        given = list(range(rank)) if given is None or given == [] else given if isinstance(given, (list, tuple)) else [given]
        reduced = sorted({axis % rank for axis in given}) if rank else []
        keeps = len(node.args) > 2 and node.args[2]
        word, summed = REDUCTIONS[name], [axis for axis in reduced if value.dimensions[axis].length != 1]
        dimensions = [Dimension(1) if axis in reduced else dimension
                      for axis, dimension in enumerate(value.dimensions) if keeps or axis not in reduced]
        left = [axis for axis in range(rank) if keeps or axis not in reduced]

        def expression(indices: list[str]) -> str:
            own = {axis: f"k{axis}" for axis in summed}
            own.update({axis: index for axis, index in zip(left, indices) if axis not in reduced})
            read = value.read([own.get(axis, "0") for axis in range(rank)])
            return f"{word}({', '.join(f'k{axis}' for axis in summed)}) {read}" if summed else read
        return self.state(dimensions, expression)

    def softmax(self, node: Any, is_log: bool) -> Value:
        value, axis = self.values[node.args[0]], node.args[1] % len(self.values[node.args[0]].dimensions)
        if value.dimensions[axis].length == 1:
            raise self.refuse(node, "the dimension has a length of 1")
        rest = [Dimension(1) if position == axis else dimension for position, dimension in enumerate(value.dimensions)]

        def folded(word: str, inside: Callable[[list[str]], str]) -> Value:
            return self.state(rest, lambda indices: f"{word}(k) {inside([*indices[:axis], 'k', *indices[axis + 1:]])}")
        largest = folded("max", value.read)
        exponent = self.state(value.dimensions,
                              lambda indices: f"{'' if is_log else 'exp'}({value.read(indices)} - {largest.read(indices)})")
        total = folded("sum", lambda indices: f"exp({exponent.read(indices)})" if is_log else exponent.read(indices))
        if is_log:
            return self.state(value.dimensions, lambda indices: f"{exponent.read(indices)} - log({total.read(indices)})")
        return self.state(value.dimensions, lambda indices: f"{exponent.read(indices)} / {total.read(indices)}")

    def product(self, node: Any, first: Any, second: Any) -> Value:
        """mm, bmm, mv and dot: the last dimension of the first by the second's last but one, or only, one."""
        a, b = self.values[first], self.values[second]
        batch = len(a.dimensions) - 2 if len(a.dimensions) == 3 else 0
        inner = a.dimensions[-1].unify(b.dimensions[batch] if len(b.dimensions) > 1 else b.dimensions[0])
        for position in range(batch):
            a.dimensions[position].unify(b.dimensions[position])
        rows = a.dimensions[:-1]
        columns = b.dimensions[batch + 1:] if len(b.dimensions) > 1 else []

        def expression(indices: list[str]) -> str:
            k = "k" if inner.length != 1 else "0"
            mine = a.read([*indices[:len(rows)], k])
            other = b.read([*indices[:batch], k, *indices[len(rows):]])
            return f"sum(k) {mine} * {other}" if inner.length != 1 else f"{mine} * {other}"
        return self.state([*rows, *columns], expression)

    def view(self, node: Any, name: str) -> Value:
        value = self.values[node.args[0]]
        rank = len(value.dimensions)
        if name in ("t", "transpose", "permute"):
            order = list(range(rank))
            if name == "permute":
                order = [axis % rank for axis in node.args[1]]
            elif rank > 1:
                first, second = (0, 1) if name == "t" else (node.args[1] % rank, node.args[2] % rank)
                order[first], order[second] = order[second], order[first]
            return value.view(order, [value.dimensions[axis] for axis in order])
        wanted = self.dimensions_of(node)
        if name == "expand":
            offset = len(wanted) - rank
            order_new: list[int | None] = [None] * len(wanted)
            for axis in range(rank):
                if value.dimensions[axis].length == wanted[axis + offset].length:
                    order_new[axis + offset], wanted[axis + offset] = axis, value.dimensions[axis]
            return value.view(order_new, wanted)
        old = [axis for axis in range(rank) if value.dimensions[axis].length != 1]
        new = [axis for axis in range(len(wanted)) if wanted[axis].length != 1]
        if [value.dimensions[axis].length for axis in old] != [wanted[axis].length for axis in new]:
            raise self.refuse(node, "it makes dimensions of other lengths")
        order_new = [None] * len(wanted)
        for before, after in zip(old, new):
            order_new[after], wanted[after] = before, value.dimensions[before]
        return value.view(order_new, wanted)

    def cast(self, node: Any) -> Value:
        value, dtype = self.values[node.args[0]], self.dtype_of(node, node.meta["val"])
        if node.args[0].meta["val"].dtype == node.meta["val"].dtype:
            return value
        return self.state(value.dimensions, lambda indices: f"cast({dtype}, {value.read(indices)})", dtype == "bool")

    def convert(self, node: Any) -> Value:
        name = base_name(node.target)
        overload = str(node.target).rpartition(".")[2]
        if name in POINTWISE:
            return self.pointwise(node, name)
        if name in REDUCTIONS and overload not in ("dim_max", "Dimname_out"):
            return self.reduction(node, name)
        if name in ("max", "min") and overload == "default":
            return self.reduction(node, f"a{name}")
        if name in ("_softmax", "_log_softmax"):
            return self.softmax(node, name == "_log_softmax")
        if name in ("mm", "bmm", "mv", "dot"):
            return self.product(node, node.args[0], node.args[1])
        if name == "addmm" and not node.kwargs:
            sums, bias = self.product(node, node.args[1], node.args[2]), self.values[node.args[0]]
            dimensions = self.broadcast(node, [sums, bias])
            return self.state(dimensions, lambda indices: f"{sums.at(indices)} + {bias.at(indices)}")
        if name in ("t", "transpose", "permute", "expand", "view", "_unsafe_view", "reshape", "squeeze", "unsqueeze"):
            return self.view(node, name)
        if name in SAME:
            return self.values[node.args[0]]
        if name == "scalar_tensor":
            return self.state([], lambda indices: number(node.args[0]))
        if name == "_to_copy":
            return self.cast(node)
        raise self.refuse(node, "there is no statement for it")

    def read_graph(self) -> None:
        for node in self.graph.nodes:
            if node.op == "placeholder":
                value = node.meta["val"]
                dimensions = self.dimensions_of(node, True)
                name = f"x{len(self.inputs)}"
                self.inputs.append((name, dimensions, self.dtype_of(node, value)))
                places = [None if dimension.length == 1 else position for position, dimension in enumerate(dimensions)]
                self.values[node] = Value(name, list(places), dimensions, value.dtype == self.torch_arrays.module.bool)
            elif node.op == "call_function":
                self.values[node] = self.convert(node)
            elif node.op == "output":
                self.read_outputs(node)
            else:
                raise errors.UnsupportedError(f"{node.op} {node.target} cannot be imported: the function uses a tensor "
                                              "that is no argument")

    def read_outputs(self, node: Any) -> None:
        results = node.args[0] if isinstance(node.args[0], (list, tuple)) else [node.args[0]]
        for index, result in enumerate(results):
            value = self.values[result]
            name = "y" if len(results) == 1 else f"y{index}"
            dimensions = [Dimension(1) if dimension.length == 1 else dimension for dimension in value.dimensions]
            self.outputs.append((name, dimensions, self.dtype_of(result, result.meta["val"])))
            self.statements.append((name, dimensions, value.read))

    def extent(self, dimension: Dimension) -> str:
        root = dimension.root()
        return root.name if root.is_of_input and root.length != 1 else str(root.length)

    def write(self, name: str) -> str:
        sizes = 0
        for _, dimensions, _ in self.inputs:
            for dimension in dimensions:
                if dimension.length != 1 and not dimension.root().name:
                    dimension.root().name, sizes = f"N{sizes}", sizes + 1

        def declared(tensors: Sequence[tuple[str, list[Dimension], str]]) -> str:
            return ", ".join(f"{tensor}: {dtype}[{', '.join(map(self.extent, dimensions))}]"
                             for tensor, dimensions, dtype in tensors)
        lines = []
        for tensor, dimensions, expression in self.statements:
            indices = [f"i{position}" for position in range(len(dimensions))]
            lines.append(f"    {tensor}[{', '.join(indices)}] = {expression(indices)}")
        return (f"op {name}({declared(self.inputs)}) -> ({declared(self.outputs)})\n{{\n" + "\n".join(lines) + "\n}\n")


def spread(indices: Sequence[str], kept: Sequence[int], rank: int) -> list[str]:
    """Indices of all dimensions, of which only those kept have some."""
    all_indices = ["0"] * rank
    for index, position in zip(indices, kept):
        all_indices[position] = index
    return all_indices


def definition_of(function: Callable, examples: Sequence[Any], name: str | None = None) -> str:
    """The text of a definition that computes what the function of tensors does."""
    home = arrays.loaded("torch")
    if home is None:
        raise errors.ArgumentError("import torch first")
    torch = home.module
    for example in examples:
        if not isinstance(example, torch.Tensor):
            raise errors.ArgumentError(f"an example is a {type(example).__name__}; examples are PyTorch's tensors")
    from torch.fx.experimental.proxy_tensor import make_fx
    with torch.no_grad():
        traced = make_fx(function, tracing_mode="fake", _allow_non_fake_inputs=True)(*examples)
    written = getattr(function, "__name__", "")
    name = name or (written if re.fullmatch(r"[a-z]\w*", written) else "imported")
    importer = Importer(traced.graph, home)
    importer.read_graph()
    if not importer.outputs or not importer.inputs:
        raise errors.UnsupportedError("a function without tensors cannot be imported")
    return importer.write(name)
