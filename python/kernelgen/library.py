"""The C library: its functions as ctypes calls them, and one context for the process.

Nothing is loaded before the first operator is made. A context is used by one thread at a time, which
`Session.lock` sees to; executions of plans need no lock.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import threading
from collections import deque
from contextlib import contextmanager
from ctypes import POINTER, c_bool, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p
from pathlib import Path
from typing import Any, Callable, Iterator

from . import errors

MAX_RANK = 8
RIGORS = ("estimate", "measure", "patient", "exhaustive", "wisdom", "default")
DTYPES = ("f16", "bf16", "f32", "f64", "i8", "u8", "i32", "i64", "bool", "u4", "i4", "f8e4m3", "f8e5m2", "i16",
          "u16", "u32")
PACKED = ("u4", "i4")  # two elements a byte
PANEL_BYTES = 512  # of packed weights: 64 rows and 16 columns

log = logging.getLogger("kernelgen")

PROGRESS = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_int, c_int)
NOTICE = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)


class Options(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("home", c_char_p), ("threads", c_int), ("cancel", POINTER(c_int)),
                ("progress", PROGRESS), ("notice", NOTICE), ("user", c_void_p), ("wisdom", c_char_p)]


class Binding(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("value", c_char_p)]


class TensorInfo(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("is_output", c_bool), ("dtype", c_int), ("rank", c_int),
                ("shape", c_int64 * MAX_RANK), ("stride", c_int64 * MAX_RANK), ("bytes", c_size_t),
                ("dtype_variable", c_char_p), ("is_packed", c_bool)]


class Weights(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("batch", c_int64), ("rows", c_int64), ("columns", c_int64),
                ("transposed", c_bool)]


class VerifyInfo(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("passed", c_bool), ("seed", c_uint64), ("cases", c_int), ("skipped", c_int),
                ("elements", c_int64), ("worst", c_double), ("impostors", c_int),
                ("reason", ctypes.c_char * 1024), ("remarks", ctypes.c_char * 256),
                ("sanitized", ctypes.c_char * 128)]


class BenchInfo(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("seconds", c_double), ("spread", c_double), ("baseline_seconds", c_double),
                ("baseline_spread", c_double), ("bound_seconds", c_double), ("speedup", c_double), ("goal", c_double),
                ("samples", c_int), ("original_seconds", c_double), ("noise", c_double), ("goal_met", c_bool)]


HANDLE = POINTER(c_void_p)
# name: (result, arguments). Functions that return a status are checked by `Session.call`.
FUNCTIONS = {
    "kg_context_create": (c_int, [POINTER(Options), HANDLE]),
    "kg_context_error": (c_char_p, [c_void_p]),
    "kg_context_device": (c_int, [c_void_p, c_char_p, HANDLE]),
    "kg_context_devices": (c_int, [c_void_p, c_bool, POINTER(c_void_p)]),
    "kg_device_target": (c_char_p, [c_void_p]),
    "kg_device_takes_turns": (c_bool, [c_void_p]),
    "kg_version": (c_char_p, []),
    "kg_status_name": (c_char_p, [c_int]),
    "kg_text_release": (None, [c_void_p]),
    "kg_op_parse": (c_int, [c_void_p, c_char_p, c_char_p, c_size_t, c_char_p, HANDLE]),
    "kg_op_destroy": (None, [c_void_p]),
    "kg_op_names": (c_int, [c_void_p, c_char_p, c_char_p, c_size_t, POINTER(c_void_p)]),
    "kg_op_name": (c_char_p, [c_void_p]),
    "kg_op_size_name": (c_char_p, [c_void_p, c_int]),
    "kg_op_tensor": (c_int, [c_void_p, c_int, POINTER(TensorInfo)]),
    "kg_problem_create": (c_int, [c_void_p, c_void_p, POINTER(Binding), c_int, HANDLE]),
    "kg_problem_create_for": (c_int, [c_void_p, c_void_p, POINTER(TensorInfo), c_int, POINTER(Binding), c_int,
                                      HANDLE]),
    "kg_problem_destroy": (None, [c_void_p]),
    "kg_problem_tensor_count": (c_int, [c_void_p]),
    "kg_problem_tensor": (c_int, [c_void_p, c_int, POINTER(TensorInfo)]),
    "kg_problem_extent": (c_int, [c_void_p, c_int, c_int, POINTER(c_void_p)]),
    "kg_plan_create": (c_int, [c_void_p, c_void_p, c_int, c_double, HANDLE]),
    "kg_plan_destroy": (None, [c_void_p]),
    "kg_plan_execute": (c_int, [c_void_p, POINTER(c_void_p), c_void_p]),
    "kg_plan_execute_sized": (c_int, [c_void_p, POINTER(c_int64), c_int, POINTER(c_void_p), c_void_p]),
    "kg_plan_verify": (c_int, [c_void_p, c_uint64, POINTER(VerifyInfo)]),
    "kg_plan_bench": (c_int, [c_void_p, POINTER(BenchInfo)]),
    "kg_plan_choice": (c_char_p, [c_void_p]),
    "kg_plan_verified": (c_bool, [c_void_p]),
    "kg_plan_cost": (None, [c_void_p, POINTER(c_double), POINTER(c_double)]),
    "kg_plan_source": (c_int, [c_void_p, POINTER(c_void_p)]),
    "kg_pack_weights": (c_int, [c_void_p, POINTER(Weights), c_void_p, c_size_t, c_void_p, c_size_t]),
    "kg_unpack_weights": (c_int, [c_void_p, POINTER(Weights), c_void_p, c_size_t, c_void_p, c_size_t]),
    "kg_plan_explain": (c_int, [c_void_p, c_bool, POINTER(c_void_p)]),
}


def library_path() -> Path:
    """Where the library is: $KERNELGEN_LIBRARY, or in this package."""
    wanted = os.environ.get("KERNELGEN_LIBRARY")
    path = Path(wanted) if wanted else Path(__file__).parent / "lib" / "libkernelgen.so"
    if path.is_file():
        return path
    where = f"KERNELGEN_LIBRARY names {wanted}, which" if wanted else f"{path}"
    raise errors.MissingError(f"{where} does not exist. Install the package (pip install ./python in a clone), "
                              "or set KERNELGEN_LIBRARY to a libkernelgen.so")


def home_path() -> Path:
    """Where what was measured is kept, as the library finds it."""
    named = os.environ.get("KERNELGEN_HOME")
    data = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return Path(named) if named else Path(data) / "kernelgen"


def load() -> ctypes.CDLL:
    path = library_path()
    try:
        loaded = ctypes.CDLL(str(path))
    except OSError as error:
        raise errors.MissingError(f"{path} cannot be loaded: {error}") from error
    for name, (result, arguments) in FUNCTIONS.items():
        try:
            function = getattr(loaded, name)
        except AttributeError:
            raise errors.MissingError(f"{path} is of an older version: it has no {name}") from None
        function.restype, function.argtypes = result, arguments
    return loaded


def encode(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


class Session:
    """The library with one context. `current()` gives that of this process."""

    def __init__(self) -> None:
        self.library = load()
        self.lock = threading.RLock()
        self.devices: dict[str | None, int] = {}
        self.garbage: deque[tuple[str, int]] = deque()
        self.progress: Callable[[str, int, int], object] | None = None
        self.is_quiet = self.is_working = False
        self.cancel = c_int(0)
        self.interruption: BaseException | None = None
        self.callbacks = (PROGRESS(self._tell_progress), NOTICE(self._tell_notice))
        options = Options(size=ctypes.sizeof(Options), cancel=ctypes.pointer(self.cancel),
                          progress=self.callbacks[0], notice=self.callbacks[1])
        self.context = c_void_p()
        self._check(self.library.kg_context_create(ctypes.byref(options), ctypes.byref(self.context)))

    # An exception cannot pass through C: it is kept, the work is cancelled, and `_check` raises it.
    def _interrupt(self, error: BaseException) -> None:
        self.interruption, self.cancel.value = error, 1

    def _raise_interruption(self) -> None:
        if self.interruption:
            interruption, self.interruption, self.cancel.value = self.interruption, None, 0
            raise interruption

    @contextmanager
    def _keeping_interrupts(self) -> Iterator[None]:
        """Python would raise KeyboardInterrupt as a callback begins, where ctypes drops it."""
        before = signal.getsignal(signal.SIGINT)
        if self.is_working or not callable(before) or threading.current_thread() is not threading.main_thread():
            yield
            return

        def handle(number: int, frame: Any) -> None:
            try:
                before(number, frame)
            except BaseException as error:
                self._interrupt(error)

        signal.signal(signal.SIGINT, handle)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
            late, self.interruption, self.cancel.value = self.interruption, None, 0
        if late:
            raise late

    def _tell_progress(self, _user: int, what: bytes, done: int, total: int) -> None:
        try:
            if self.progress:
                self.progress(what.decode(errors="replace"), done, total)
        except BaseException as error:
            self._interrupt(error)

    def _tell_notice(self, _user: int, text: bytes) -> None:
        try:
            if not self.is_quiet:
                log.warning("%s", text.decode(errors="replace"))
        except BaseException as error:
            self._interrupt(error)

    def _check(self, status: int) -> None:
        self._raise_interruption()
        if status:
            raise self.failure(status, (self.library.kg_context_error(self.context) or b"").decode(errors="replace"))

    def failure(self, status: int, text: str = "") -> Exception:
        return errors.make(status, self.library.kg_status_name(status).decode(), text)

    @contextmanager
    def working(self, progress: Callable[[str, int, int], object] | None = None) -> Iterator[None]:
        """The context is this thread's. What was discarded is destroyed now."""
        with self.lock, self._keeping_interrupts():
            while self.garbage:
                function, handle = self.garbage.popleft()  # plans before their problems
                getattr(self.library, function)(handle)
            before = self.progress, self.is_working
            self.progress, self.is_working = progress or self.progress, True
            try:
                yield
            finally:
                self.progress, self.is_working = before

    def call(self, name: str, *arguments: object) -> None:
        """A function that returns a status. The caller holds the lock."""
        self._check(getattr(self.library, name)(*arguments))

    def make(self, name: str, *arguments: object) -> int:
        """The handle that a function returns through its last argument."""
        made = c_void_p()
        self.call(name, *arguments, ctypes.byref(made))
        assert made.value
        return made.value

    def text(self, name: str, *arguments: object) -> str:
        """The text that a function returns through its last argument."""
        made = c_void_p()
        self.call(name, *arguments, ctypes.byref(made))
        try:
            return ctypes.string_at(made.value or 0).decode(errors="replace")
        finally:
            self.library.kg_text_release(made)

    def discard(self, function: str, handle: int) -> None:
        """Destroys a handle when the context is free. May be called by the garbage collector at any time."""
        self.garbage.append((function, handle))

    def device(self, name: str | None) -> int:
        if name not in self.devices:
            self.devices[name] = self.make("kg_context_device", self.context, encode(name))
        return self.devices[name]


_current: Session | None = None
_making = threading.Lock()


def current() -> Session:
    """The session of this process, made when it is first needed."""
    global _current
    if _current is None:
        with _making:
            if _current is None:
                _current = Session()
    return _current


def _leave_to_parent() -> None:
    """In a forked child: connections to the records, and locks, are the parent's."""
    global _current, _making
    _current, _making = None, threading.Lock()


os.register_at_fork(after_in_child=_leave_to_parent)


def version() -> str:
    """The library's version."""
    return current().library.kg_version().decode()
