"""What libkernelgen reads in PTX and cubins, as dicts (docs/asm.md has the members)."""

from __future__ import annotations

import ctypes
import json
from ctypes import POINTER, c_bool, c_char_p, c_double, c_int, c_int64, c_size_t, c_void_p
from dataclasses import dataclass
from typing import Any, Optional, Sequence

from .. import library


class _Launch(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("device", c_char_p), ("grid", c_int64 * 3), ("block", c_int * 3),
                ("shared_bytes", c_int64), ("read_bytes", c_double), ("write_bytes", c_double), ("flops", c_double),
                ("warm", c_bool), ("family", c_char_p)]


_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "kg_assembly_read": (c_int, [c_void_p, c_char_p, c_char_p, c_size_t, POINTER(c_void_p)]),
    "kg_assembly_destroy": (None, [c_void_p]),
    "kg_assembly_find": (c_int, [c_void_p, c_char_p, POINTER(c_int)]),
    "kg_assembly_report": (c_int, [c_void_p, c_int, POINTER(_Launch), c_bool, POINTER(c_void_p)]),
}


@dataclass(frozen=True)
class Launch:
    """How a kernel is launched, and the least work of any kernel for the same. Zeros: not known."""

    grid: Sequence[int] = (0, 0, 0)
    shared_bytes: int = 0  # dynamic
    read_bytes: float = 0.0
    write_bytes: float = 0.0
    flops: float = 0.0
    device: Optional[str] = None  # "h100", "NVIDIA H200"; None: one of the code's architecture
    family: Optional[str] = None  # of kernels with weights of their own

    def as_struct(self) -> _Launch:
        grid = (*self.grid, 1, 1)[:3] if any(self.grid) else (0, 0, 0)
        return _Launch(size=ctypes.sizeof(_Launch), device=library.encode(self.device), grid=(c_int64 * 3)(*grid),
                       shared_bytes=self.shared_bytes, read_bytes=self.read_bytes, write_bytes=self.write_bytes,
                       flops=self.flops, family=library.encode(self.family))


def _functions(session: library.Session) -> None:
    """Declares the functions of this file, which the package needs nowhere else."""
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(session.library, name)
        function.restype, function.argtypes = result, arguments


def report(code: bytes, kernel: str, launch: Launch = Launch(), *, as_text: bool = False) -> Any:
    """What is known of one kernel of a file of PTX or of a cubin: a dict, or the text of `kernelgen asm`."""
    session = library.current()
    struct = launch.as_struct()
    with session.working():
        _functions(session)
        handle = session.make("kg_assembly_read", session.context, kernel.encode(), code, len(code))
        try:
            index = c_int()
            session.call("kg_assembly_find", handle, kernel.encode(), ctypes.byref(index))
            text = session.text("kg_assembly_report", handle, index, ctypes.byref(struct), not as_text)
        finally:
            session.library.kg_assembly_destroy(handle)
    return text if as_text else json.loads(text)["kernels"][0]
