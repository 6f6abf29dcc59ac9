"""Operators as PyTorch's own: for torch.compile, torch.export and traces.

They are registered by define, and by kernels in C where PyTorch has the functions for that
(native/torch_operators.c), else by impl: `torch.library.custom_op` costs twice as much a call. PyTorch is passed in
as a module; it is never imported here.
"""

from __future__ import annotations

import functools
import hashlib
import keyword
from typing import TYPE_CHECKING, Any, Callable

from . import arrays, errors, extents, library
from .handles import Problem

if TYPE_CHECKING:
    from .operators import Op

NAMESPACE = "kernelgen"
_registered: dict[str, tuple[Any, Any]] = {}
_libraries: dict[str, Any] = {}
_NO_KEYWORDS: dict[str, Any] = {}


def default_name(op: Op) -> str:
    """The same in every process for the same definition and settings, which compiled graphs rely on."""
    settings = (op._text, op.name, sorted(op._bindings.items()), op._rigor, op._seconds, op._dynamic)
    digest = hashlib.sha256(repr(settings).encode()).hexdigest()[:12]
    return f"{NAMESPACE}::{op.name}_{digest}"


def _argument(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) or name in ("self", "out") else name


def schemas(op: Op, name: str) -> tuple[str, str]:
    """Of the operator that returns new tensors, and of the one that writes to given ones."""
    inputs = ", ".join(f"Tensor {_argument(tensor.name)}" for tensor in op.inputs)
    given = ", ".join(f"Tensor({chr(97 + index)}!) {_argument(tensor.name)}_out"
                      for index, tensor in enumerate(op.outputs))
    returned = "Tensor" if len(op.outputs) == 1 else f"({', '.join(['Tensor'] * len(op.outputs))})"
    return f"{name}({inputs}) -> {returned}", f"{name}.out({inputs}, {given}) -> ()"


class Rule:
    """What outputs follow from inputs, by dtypes and formulas of sizes. Makes no plan."""

    def __init__(self, op: Op) -> None:
        self.op = op
        self.known: dict[tuple[str, ...], tuple[Any, tuple[tuple[str, ...], ...]]] = {}

    def of(self, dtypes: tuple[str, ...]) -> tuple[Any, tuple[tuple[str, ...], ...]]:
        """The problem's tensors and their extents. Its sizes are any; only dtypes and formulas count."""
        if dtypes not in self.known:
            bindings = dict(self.op._bindings)
            for tensor, dtype in zip(self.op.inputs, dtypes):
                if tensor.is_variable:
                    bindings[tensor.dtype] = dtype
            session = self.op._attach()
            with session.working():
                session.is_quiet = True
                try:
                    problem = Problem.of(session, self.op._handle, bindings)
                    self.known[dtypes] = (problem.tensors, problem.extents())
                finally:
                    session.is_quiet = False
        return self.known[dtypes]

    def outputs(self, torch: Any, tensors: tuple[Any, ...]) -> Any:
        """Tensors without elements: shapes, which may be symbols, and dtypes."""
        home: Any = arrays.loaded("torch")
        dtypes = tuple(home.dtypes.get(tensor.dtype, str(tensor.dtype)) for tensor in tensors)
        infos, formulas = self.of(dtypes)
        shapes = [None if info.dtype in library.PACKED else tensor.shape for info, tensor in zip(infos, tensors)]
        for info, shape in zip(infos, shapes):
            if shape is not None and len(shape) != info.rank:
                raise errors.ShapeError(f"{info.name} has {info.rank} dimensions, not {len(shape)}")
        sizes: dict[str, Any] = dict(self.op._bindings)
        sizes = {name: int(value) for name, value in sizes.items() if value.lstrip("-").isdigit()}
        sizes.update(extents.infer(formulas, shapes))
        made = []
        for info, formula in list(zip(infos, formulas))[len(self.op.inputs):]:
            try:
                shape = [extents.evaluate(extent, sizes) for extent in formula]
            except KeyError as missing:
                raise errors.ShapeError(f"op {self.op.name}: the size {missing.args[0]} of {info.name} does not follow "
                                        "from the inputs; bind() it before tracing") from None
            like = {"device": tensors[0].device} if tensors else {}
            made.append(torch.empty(shape, dtype=home.of[info.dtype], **like))
        return made[0] if len(made) == 1 else tuple(made)


def register(op: Op, torch: Any, name: str | None = None) -> tuple[Any, Any]:
    """The operators that return new tensors, and that write to given ones."""
    qualified = name or default_name(op)
    namespace, _, short = qualified.partition("::")
    if not short:
        raise errors.ArgumentError(f"'{qualified}' is no name of an operator; one is like 'mine::softmax'")
    if qualified in _registered:
        if name is not None:
            raise errors.ArgumentError(f"there is an operator {qualified} already")
        return _registered[qualified]
    if namespace not in _libraries:
        _libraries[namespace] = torch.library.Library(namespace, "FRAGMENT")
    home = _libraries[namespace]
    functional, writing = schemas(op, short)
    tags = (torch.Tag.pt2_compliant_tag,)
    home.define(functional, tags=tags)
    home.define(writing, tags=tags)
    rule = Rule(op)
    run, call, inputs = op._run, op._call, len(op.inputs)

    def execute(*tensors: Any) -> Any:
        result = run(tensors, _NO_KEYWORDS)
        return call(tensors, _NO_KEYWORDS) if result is None else result

    def write(*tensors: Any) -> None:
        out = {"out": tensors[inputs:] if len(tensors) > inputs + 1 else tensors[inputs]}
        if run(tensors[:inputs], out) is None:
            call(tensors[:inputs], out)

    def imagine(*tensors: Any) -> Any:
        return rule.outputs(torch, tensors)

    def imagine_writing(*tensors: Any) -> None:
        rule.outputs(torch, tensors[:inputs])

    in_c = op._in_c if is_served_in_c(torch) else None
    for overload, function, given in ((short, execute, 0), (f"{short}.out", write, len(op.outputs))):
        if not (in_c and in_c.serve(namespace, overload, given, _of_handles(torch, function))):
            for key in ("CPU", "CUDA"):
                home.impl(overload, function, key)
    _fake(torch, f"{namespace}::{short}", imagine, home)
    _fake(torch, f"{namespace}::{short}.out", imagine_writing, home)
    packet = getattr(getattr(torch.ops, namespace), short)
    _registered[qualified] = (packet.default, packet.out)
    return _registered[qualified]


@functools.cache
def is_served_in_c(torch: Any) -> bool:
    """Whether calls of operators can be served without Python. What C has to find out about a tensor by a function that
    is no part of PyTorch's stable interface is tried on two."""
    if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        return False  # no call would be known there
    try:
        from . import _call_path
        handles = torch._C._aoti.unsafe_alloc_void_ptrs_from_tensors([torch.zeros(1), torch.zeros(1, requires_grad=True)])
        found = [_call_path.requires_gradient(handle) for handle in handles]
        torch._C._aoti.alloc_tensors_by_stealing_from_void_ptrs(handles)
    except (ImportError, AttributeError):
        return False
    return found == [False, True]


def _of_handles(torch: Any, function: Callable) -> Callable:
    """The same function of handles to tensors, which it takes over, returning handles."""
    take, give = torch._C._aoti.alloc_tensors_by_stealing_from_void_ptrs, torch._C._aoti.unsafe_alloc_void_ptrs_from_tensors

    def serve(*handles: Any) -> Any:
        outputs = function(*take(handles))
        return give(() if outputs is None else outputs if isinstance(outputs, tuple) else (outputs,))
    return serve


def _fake(torch: Any, name: str, function: Callable, home: Any) -> None:
    torch.library.register_fake(name, function, lib=home)
