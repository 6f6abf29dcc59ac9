"""Tensors of NumPy, CuPy and PyTorch: where their elements are, and new ones like them.

No library is imported here: one that has made a tensor is loaded already. Each has one class below;
`library_of` finds it by the tensor's type.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple, Sequence

from . import errors

# Kinds of kernelgen/calls.py, which native/call_path.c reads by itself.
NUMPY, TORCH, EXCHANGE = 0, 1, 2

# NumPy has no names of its own for some dtypes: ml_dtypes adds them, else their bits are integers.
NAMES = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "int8": "i8", "uint8": "u8",
         "int16": "i16", "uint16": "u16", "int32": "i32", "uint32": "u32", "int64": "i64", "bool": "bool",
         "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2"}
LONG_NAMES = {short: long for long, short in NAMES.items()}
_by_dtype: dict[Any, str] = {}
RAW = {"bf16": "u16", "f8e4m3": "u8", "f8e5m2": "u8"}


class Array(NamedTuple):
    """Where the elements are. Strides are in elements."""

    address: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: str


def refuse(name: str, reason: str) -> errors.ArgumentError:
    return errors.ArgumentError(f"{name}: {reason}")


def element_strides(name: str, strides: tuple[int, ...], item: int) -> tuple[int, ...]:
    if any(stride % item for stride in strides):
        raise refuse(name, f"strides of {strides} bytes are no multiples of its elements' {item}; make a copy")
    return tuple(stride // item for stride in strides)


def name_of_dtype(name: str, dtype: Any) -> str:
    """NumPy computes a dtype's name anew each time, which is slow."""
    short = _by_dtype.get(dtype)
    if short is None:
        short = NAMES.get(dtype.name)
        if short is None or not dtype.isnative:
            raise refuse(name, f"KernelGen has no dtype like {dtype!r}")
        _by_dtype[dtype] = short
    return short


class NumpyArrays:
    kind = NUMPY

    def __init__(self, module: Any) -> None:
        self.module = module
        self.types = (module.ndarray,)

    def describe(self, name: str, array: Any, is_output: bool) -> Array:
        if not array.flags.aligned:
            raise refuse(name, "its elements are not aligned in memory; make a copy")
        if is_output and not array.flags.writeable:
            raise refuse(name, "it cannot be written: it is read-only")
        dtype = name_of_dtype(name, array.dtype)
        return Array(array.ctypes.data, dtype, array.shape, element_strides(name, array.strides, array.itemsize),
                     "host")

    # Everything but the address that `describe` looks at: equal for calls that go the same way.
    def layout(self, array: Any) -> tuple:
        flags = array.flags
        return array.shape, array.strides, array.dtype, flags.aligned, flags.writeable

    def address(self, array: Any) -> int:
        return array.ctypes.data

    def dtype(self, dtype: str) -> Any:
        long = LONG_NAMES[dtype]
        if hasattr(self.module, long):
            return self.module.dtype(long)
        more = sys.modules.get("ml_dtypes")
        return self.module.dtype(getattr(more, long) if more else LONG_NAMES[RAW[dtype]])

    def maker(self, shape: tuple[int, ...], dtype: str, device: str) -> tuple:
        return (self.module.empty, (shape, self.dtype(dtype)), {})

    def stream(self, device: str) -> int | None:
        return None

    def synchronize(self, device: str) -> None:
        pass


class CupyArrays(NumpyArrays):
    kind = EXCHANGE  # where it has the table

    def describe(self, name: str, array: Any, is_output: bool) -> Array:
        dtype = name_of_dtype(name, array.dtype)
        return Array(array.data.ptr, dtype, array.shape, element_strides(name, array.strides, array.itemsize),
                     f"cuda:{array.device.id}")

    def layout(self, array: Any) -> tuple:
        return array.shape, array.strides, array.dtype, array.data.device_id

    def address(self, array: Any) -> int:
        return array.data.ptr

    def maker(self, shape: tuple[int, ...], dtype: str, device: str) -> tuple:
        def empty() -> Any:
            with self.module.cuda.Device(int(device[5:])):
                return self.module.empty(shape, self.dtype(dtype))
        return (empty, (), {})

    def stream(self, device: str) -> int | None:
        return self.module.cuda.get_current_stream().ptr or None

    def synchronize(self, device: str) -> None:
        self.module.cuda.Device(int(device[5:])).synchronize()


class TorchArrays:
    kind = TORCH

    def __init__(self, module: Any) -> None:
        self.module = module
        self.types = (module.Tensor, module.nn.Parameter)
        self.dtypes = {getattr(module, long): short for long, short in NAMES.items() if hasattr(module, long)}
        self.of = {short: long for long, short in self.dtypes.items()}

    def describe(self, name: str, tensor: Any, is_output: bool) -> Array:
        torch = self.module
        if tensor.layout is not torch.strided:
            raise refuse(name, f"its layout is {tensor.layout}, and not strided")
        if tensor.requires_grad and torch.is_grad_enabled():
            raise refuse(name, "it requires a gradient, and KernelGen has none; call under torch.no_grad(), or pass "
                         "a detached tensor")
        if tensor.is_neg():
            raise refuse(name, "its sign is kept beside its elements; use resolve_neg()")
        dtype = self.dtypes.get(tensor.dtype)
        if dtype is None:
            raise refuse(name, f"KernelGen has no dtype like {tensor.dtype}")
        if tensor.device.type not in ("cpu", "cuda"):
            raise refuse(name, f"it is on {tensor.device}; KernelGen has CPUs and CUDA devices")
        device = "host" if tensor.device.type == "cpu" else f"cuda:{tensor.device.index}"
        return Array(tensor.data_ptr(), dtype, tuple(tensor.shape), tensor.stride(), device)

    def is_traced(self, tensor: Any) -> bool:
        """Whether it has no elements now: of a trace, or of a subclass that sees to its own operations."""
        return isinstance(tensor, self.types) and (type(tensor) not in self.types or tensor.is_meta)

    def layout(self, tensor: Any) -> tuple:
        needs_gradient = tensor.requires_grad and self.module.is_grad_enabled()
        return tensor.shape, tensor.stride(), tensor.dtype, tensor.device, needs_gradient, tensor.is_neg()

    def address(self, tensor: Any) -> int:
        return tensor.data_ptr()

    def maker(self, shape: tuple[int, ...], dtype: str, device: str) -> tuple:
        strides = contiguous_strides(shape)
        fastest = self._fastest_empty(device)
        if fastest is not None:
            return fastest, (shape, strides, self.of[dtype]), {}
        return (self.module.empty_strided, (shape, strides),
                {"dtype": self.of[dtype], "device": self.device(device)})

    def _fastest_empty(self, device: str) -> Any | None:
        """How code of torch.compile makes tensors, in two thirds of the time; None: this PyTorch has no such function,
        or it would take the current device, which may be another one."""
        if device != "host" and self.module.cuda.device_count() != 1:
            return None
        functions = getattr(getattr(self.module._C, "_dynamo", None), "guards", None)
        return getattr(functions, "_empty_strided_cpu" if device == "host" else "_empty_strided_cuda", None)

    def device(self, device: str) -> Any:
        return self.module.device("cpu" if device == "host" else device)

    def stream(self, device: str) -> int | None:
        if device == "host":
            return None
        return self.module._C._cuda_getCurrentRawStream(int(device[5:])) or None

    def synchronize(self, device: str) -> None:
        if device != "host":
            self.module.cuda.synchronize(self.device(device))


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= max(length, 1)  # as PyTorch does
    return tuple(reversed(strides))


by_exact_type: dict[type, Any] = {}
_libraries: dict[str, Any] = {}
_by_type: dict[type, Any] = {}
_CLASSES = {"numpy": NumpyArrays, "cupy": CupyArrays, "torch": TorchArrays}


def loaded(name: str) -> Any | None:
    """The class for a library that the process has loaded; None: it has not."""
    module = sys.modules.get(name)
    if name not in _libraries and module is not None and hasattr(module, "empty"):
        _libraries[name] = _CLASSES[name](module)
        by_exact_type.update(dict.fromkeys(_libraries[name].types, _libraries[name]))
    return _libraries.get(name)


def library_of(name: str, tensor: Any) -> Any:
    """The library that a tensor is of."""
    known = _by_type.get(type(tensor))
    if known is not None:
        return known
    for kind in type(tensor).__mro__:
        module = kind.__module__.partition(".")[0]
        found = loaded(module) if module in _CLASSES else None
        if found and isinstance(tensor, found.types):
            _by_type[type(tensor)] = found
            return found
    raise refuse(name, f"it is a {type(tensor).__module__}.{type(tensor).__name__}; tensors are those of NumPy, CuPy "
                 "and PyTorch")
