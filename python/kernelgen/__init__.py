"""KernelGen: one operator definition in; a verified, tuned kernel out.

    softmax = kernelgen.op("softmax.kg", "softmax")
    y = softmax(x)                      # NumPy, CuPy or PyTorch, on the CPU or a GPU

See docs/python.md. Importing this package loads nothing else; `python -m kernelgen doctor` says what the
machine has and lacks.
"""

from .errors import (ArgumentError, CancelledError, DefinitionError, Error, MissingError, ShapeError,
                     UnsupportedError, WrongError)
from .library import version
from .measuring import Times, Verdict
from .operators import Op, from_torch, op, tune
from .packing import pack, unpack
from .handles import Plan

__version__ = "0.1.0"
__all__ = ["ArgumentError", "CancelledError", "DefinitionError", "Error", "MissingError", "Op", "Plan", "ShapeError",
           "Times", "UnsupportedError", "Verdict", "WrongError", "from_torch", "op", "pack", "tune", "unpack", "version"]
