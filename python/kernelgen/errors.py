"""What the library's failures become."""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """A failure of KernelGen. The text says what, where, and what to do; `status` is the library's word."""

    status = "error"


class ArgumentError(Error, ValueError):
    """A call or an option makes no sense."""

    status = "bad argument"


class DefinitionError(Error, ValueError):
    """A definition is wrong; the text shows the line, with a caret."""


class ShapeError(Error, ValueError):
    """Sizes, dtypes or strides contradict the definition."""

    status = "shapes contradict the definition"


class UnsupportedError(Error, NotImplementedError):
    """Correct, but nothing can do it."""


class MissingError(Error, RuntimeError):
    """The machine lacks something; `python -m kernelgen doctor` says what."""

    status = "missing on this machine"


class WrongError(Error, ArithmeticError):
    """The accuracy gate rejected the kernel."""


class CancelledError(Error, RuntimeError):
    """The caller asked to stop."""


# In the order of `enum kg_status`, from 1.
CLASSES = (ArgumentError, DefinitionError, ShapeError, MemoryError, OSError, Error, UnsupportedError, MissingError,
           Error, TimeoutError, Error, WrongError, Error, CancelledError)


def make(status: int, name: str, text: str) -> Exception:
    """The exception of a status of the library, which calls it `name`."""
    kind = CLASSES[status - 1] if 0 < status <= len(CLASSES) else Error
    error: Any = kind(text or name)
    error.status = name
    return error
