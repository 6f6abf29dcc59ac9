"""Launches of an emitted module, recorded and compiled for sm_90a without a GPU, as Triton's JIT specialises them, with the
blocks that are chosen on an H100."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

MULTIPROCESSORS = 132  # of an H100
TYPES = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64", "int8": "i8", "uint8": "u8",
         "int16": "i16", "uint16": "u16", "int32": "i32", "uint32": "u32", "int64": "i64", "bool": "i1"}


class Launch(NamedTuple):
    kernel: Any
    grid: tuple
    arguments: dict[str, Any]  # by the names of the kernel's signature
    options: dict[str, int]    # num_warps, num_stages

    def compile(self, target: Any) -> Any:
        """Integers that are 1 are constants, and those that 16 divides are known to be; tensors are aligned."""
        import torch
        import triton
        names = self.kernel.arg_names
        annotated = {p.name for p in self.kernel.params if p.is_constexpr}
        signature, constants, attributes = {}, {}, {}
        for place, name in enumerate(names):
            value = self.arguments[name]
            if isinstance(value, torch.Tensor):
                signature[name] = "*" + TYPES[str(value.dtype).removeprefix("torch.")]
                attributes[(place,)] = [["tt.divisibility", 16]]
            elif name in annotated or value is None or (type(value) is int and value == 1):
                signature[name], constants[(place,)] = "constexpr", value
            elif isinstance(value, float):
                signature[name] = "fp32"
            else:
                signature[name] = "i64" if abs(value) >= 2**31 else "i32"
                if value % 16 == 0:
                    attributes[(place,)] = [["tt.divisibility", 16]]
        source = triton.compiler.ASTSource(self.kernel, signature=signature, constexprs=constants, attrs=attributes)
        return triton.compile(source, target=target, options=self.options)


class Recorder:
    """Stands for a kernel of a module: keeps what is launched."""

    def __init__(self, kernel: Any, launches: list[Launch]):
        self.kernel, self.launches, self.arg_names = kernel, launches, kernel.arg_names

    def __getitem__(self, grid: Any) -> Any:
        def launch(*arguments: Any, num_warps: int = 4, num_stages: int = 3, **constants: Any) -> None:
            named = dict(zip(self.kernel.arg_names, arguments)) | constants
            self.launches.append(Launch(self.kernel, tuple(grid(named) if callable(grid) else grid), named,
                                        {"num_warps": num_warps, "num_stages": num_stages}))
        return launch


def record(module: Any) -> list[Launch]:
    """From now on the module's launches are only recorded, in the list that is returned."""
    launches: list[Launch] = []
    for name in [n for n in vars(module) if n.startswith("_") and "_kernel" in n]:
        setattr(module, name, Recorder(getattr(module, name), launches))
    module._programs = lambda device: 4 * MULTIPROCESSORS
    return launches


class Access(NamedTuple):
    kind: str  # "load", "store", "copy" (cp.async)
    bits: int
    in_loop: bool


def accesses(ptx: str) -> list[Access]:
    """Of global memory, in the order of the text. In a loop is what stands between a label and a branch back to it."""
    found, labels, loops = [], {}, []
    for place, line in enumerate(ptx.splitlines()):
        label = re.match(r"\s*(\$\w+):", line)
        if label:
            labels[label.group(1)] = place
        branch = re.search(r"\bbra(?:\.uni)?\s+(\$\w+)", line)
        if branch and branch.group(1) in labels:
            loops.append((labels[branch.group(1)], place))
        match = re.search(r"\b(ld|st)\.(?:volatile\.|relaxed\.\w+\.)?global((?:\.[\w:]+)*)", line)
        copy = re.search(r"cp\.async\.\w+\.shared\.global\S*\s+\[[^]]*\],\s*\[[^]]*\],\s*(0x[0-9a-fA-F]+|\d+)", line)
        if match:
            words = match.group(2).split(".")
            count = next((int(w[1:]) for w in words if re.fullmatch(r"v\d", w)), 1)
            size = next(int(w[1:]) for w in reversed(words) if re.fullmatch(r"[bsuf]\d+", w))
            found.append((place, "load" if match.group(1) == "ld" else "store", count * size))
        elif copy:
            found.append((place, "copy", 8 * int(copy.group(1), 0)))
    return [Access(kind, bits, any(a <= place <= b for a, b in loops)) for place, kind, bits in found]
