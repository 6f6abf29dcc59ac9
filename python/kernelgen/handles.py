"""Problems and plans: handles of the library, and what Python knows of them."""

from __future__ import annotations

import ctypes
from ctypes import c_double, c_int64, c_void_p
from typing import Mapping, NamedTuple, Sequence

from .arrays import Array
from .library import DTYPES, PACKED, Binding, Session, TensorInfo, encode


class Tensor(NamedTuple):
    """A tensor of a problem, or of an op: there `dtype` may be a variable, and shape and strides are empty."""

    name: str
    is_output: bool
    dtype: str
    rank: int
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    bytes: int = 0
    is_variable: bool = False
    is_packed: bool = False  # declared so: shape and strides are those of its panels


def read_tensor(info: TensorInfo) -> Tensor:
    rank = max(info.rank, 0)
    variable = info.dtype_variable
    dtype = variable.decode() if variable else DTYPES[info.dtype]
    return Tensor(info.name.decode(), info.is_output, dtype, info.rank, tuple(info.shape[:rank]),
                  tuple(info.stride[:rank]), info.bytes, bool(variable), info.is_packed)


def tensors_of(session: Session, handle: int, function: str, count: int) -> tuple[Tensor, ...]:
    tensors = []
    for index in range(count):
        info = TensorInfo(size=ctypes.sizeof(TensorInfo))
        session.call(function, handle, index, ctypes.byref(info))
        tensors.append(read_tensor(info))
    return tuple(tensors)


def write_bindings(bindings: Mapping[str, str]) -> ctypes.Array:
    return (Binding * len(bindings))(*[Binding(encode(name), encode(value)) for name, value in bindings.items()])


def fill_info(info: TensorInfo, tensor: Tensor, array: Array) -> None:
    """What kg_problem_create_for reads. Two elements a byte are bytes whose shape is not known, but for panels."""
    info.size, info.name, info.dtype = ctypes.sizeof(TensorInfo), encode(tensor.name), DTYPES.index(array.dtype)
    if array.dtype in PACKED and not tensor.is_packed:
        info.rank, info.bytes = -1, array.shape[0]
        return
    info.rank = len(array.shape)
    info.shape[:info.rank], info.stride[:info.rank] = array.shape, array.strides


class Problem:
    """An op with dtypes, params, sizes and layouts. Made and used while the session is working."""

    def __init__(self, session: Session, handle: int) -> None:
        self.session, self.handle = session, handle
        count = session.library.kg_problem_tensor_count(handle)
        self.tensors = tensors_of(session, handle, "kg_problem_tensor", count)
        self.inputs = tuple(tensor for tensor in self.tensors if not tensor.is_output)
        self.outputs = tuple(tensor for tensor in self.tensors if tensor.is_output)

    def __del__(self) -> None:
        self.session.discard("kg_problem_destroy", self.handle)

    @classmethod
    def of(cls, session: Session, op: int, bindings: Mapping[str, str]) -> Problem:
        """Sizes that are not bound are those of the op's goal."""
        written = write_bindings(bindings)
        return cls(session, session.make("kg_problem_create", session.context, op, written, len(bindings)))

    @classmethod
    def of_arrays(cls, session: Session, op: int, arrays: Sequence[tuple[Tensor, Array]],
                  bindings: Mapping[str, str]) -> Problem:
        infos = (TensorInfo * len(arrays))()
        for info, (tensor, array) in zip(infos, arrays):
            fill_info(info, tensor, array)
        written = write_bindings(bindings)
        return cls(session, session.make("kg_problem_create_for", session.context, op, infos, len(arrays), written,
                                         len(bindings)))

    def extents(self) -> tuple[tuple[str, ...], ...]:
        """By tensor and dimension, formulas of the op's sizes: see extents.py."""
        return tuple(tuple(self.session.text("kg_problem_extent", self.handle, index, dimension)
                           for dimension in range(tensor.rank)) for index, tensor in enumerate(self.tensors))


class Plan:
    """A compiled choice for a problem on a device."""

    def __init__(self, problem: Problem, device: str | None, rigor: int, seconds: float) -> None:
        session = problem.session
        self.problem, self.device, self.session = problem, device, session
        self.handle = session.make("kg_plan_create", problem.handle, session.device(device), rigor, seconds)
        self._execute = session.library.kg_plan_execute
        self._execute_sized = session.library.kg_plan_execute_sized

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            self.session.discard("kg_plan_destroy", self.handle)

    def execute(self, addresses: Sequence[int], stream: int | None, sizes: Sequence[int] | None = None) -> None:
        """Inputs, then outputs. `sizes` are other sizes than the plan's."""
        pointers = (c_void_p * len(addresses))(*addresses)
        if sizes is None:
            status = self._execute(self.handle, pointers, stream)
        else:
            numbers = (c_int64 * len(sizes))(*sizes)
            status = self._execute_sized(self.handle, numbers, len(sizes), pointers, stream)
        if status:
            raise self.session.failure(status, f"executing the plan {self.choice} failed")

    @property
    def choice(self) -> str:
        """Families and configs, one line."""
        return self.session.library.kg_plan_choice(self.handle).decode()

    @property
    def verified(self) -> bool:
        """Whether exactly these kernels have passed the accuracy gate."""
        return self.session.library.kg_plan_verified(self.handle)

    @property
    def seconds(self) -> float:
        """Measured when these kernels were chosen; 0: never."""
        return self._cost()[0]

    @property
    def bound(self) -> float:
        """The roofline's seconds, which no kernel can undercut."""
        return self._cost()[1]

    def _cost(self) -> tuple[float, float]:
        measured, bound = c_double(), c_double()
        self.session.library.kg_plan_cost(self.handle, ctypes.byref(measured), ctypes.byref(bound))
        return measured.value, bound.value

    def __repr__(self) -> str:
        shapes = ", ".join(f"{tensor.name}: {tensor.dtype}{list(tensor.shape)}" for tensor in self.problem.tensors)
        return f"<kernelgen plan of {shapes} on {self.device or 'the best device'}: {self.choice}>"
