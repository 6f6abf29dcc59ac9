"""Extents of tensors as formulas of an op's sizes, for whoever knows only symbols.

A formula is the text of kg_problem_extent: sizes, numbers, + - * / (rounding down) % and ceil(a/b). Values
may be ints, or symbols that compute like them (torch.SymInt).
"""

from __future__ import annotations

import ast
import operator
from typing import Any, Mapping, Sequence

_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.floordiv,
              ast.Mod: operator.mod}


def size_of(formula: str) -> str | None:
    """The size that a formula consists of; None: it is more than one."""
    return formula if formula.isidentifier() else None


def evaluate(formula: str, sizes: Mapping[str, Any]) -> Any:
    """KeyError: a size is not known."""
    return _value(ast.parse(formula, mode="eval").body, sizes)


def _value(node: ast.AST, sizes: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return sizes[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, sizes)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_value(node.left, sizes), _value(node.right, sizes))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "ceil":
        quotient = node.args[0]
        assert isinstance(quotient, ast.BinOp)
        return -(-_value(quotient.left, sizes) // _value(quotient.right, sizes))
    raise ValueError(f"not a size: {ast.dump(node)}")


def infer(formulas: Sequence[Sequence[str]], shapes: Sequence[Sequence[Any] | None]) -> dict[str, Any]:
    """The sizes that stand alone in some extent of the tensors given. None: a tensor of unknown shape."""
    sizes: dict[str, Any] = {}
    for extents, shape in zip(formulas, shapes):
        for formula, length in zip(extents, shape or ()):
            name = size_of(formula)
            if name is not None and name not in sizes:
                sizes[name] = length
    return sizes
