"""A Triton kernel as a file that `kernelgen contest` and `kernelgen verify --candidate` take: PTX, with comments that say
how it is launched for any sizes of a definition. Needs no GPU."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Mapping

from .. import errors
from . import source

_POINTERS = {"f16": "*fp16", "bf16": "*bf16", "f32": "*fp32", "f64": "*fp64", "f8e4m3": "*fp8e4nv", "f8e5m2": "*fp8e5",
             "bool": "*i1", "u4": "*u8", "i4": "*u8", **{name: f"*{name}" for name in
                                                         ("i8", "u8", "i16", "u16", "i32", "u32", "i64")}}
_DIVISOR = 16  # a size that it divides lets a kernel load vectors


def write_candidate(path: os.PathLike | str, kernel: Any, *, grid: str, arguments: Mapping[str, str],
                    dtypes: Mapping[str, str], config: Any = None, target: Any = "sm_90a", **constants: Any) -> None:
    """Compiles `kernel`, a @triton.jit function, and writes it to `path`, a .ptx file.

    grid       blocks, as an expression of the definition's sizes: "P", or "ceil(M / 128) x ceil(N / 128)"
    arguments  what each parameter of the kernel receives: a tensor of the definition, a size, or "stride 0 of x"
    dtypes     of the tensors: {"x": "f16"}
    config     a triton.Config; `constants` are further tl.constexpr parameters, and num_warps and the like

    Where all sizes among the arguments are divisible by 16 a variant is launched that was compiled for that, as Triton
    itself has it, else one for any sizes.
    """
    if source.is_interpreted(kernel):
        raise errors.UnsupportedError("Triton's interpreter compiles nothing; unset TRITON_INTERPRET")
    function, _ = source.unwrapped(kernel)
    constants = {**(config.all_kwargs() if config is not None else {}), **constants}
    _check_names(function, arguments, constants)
    sizes = sorted({what for what in arguments.values() if re.fullmatch(r"\w+", what) and what not in dtypes})
    divisible = " && ".join(f"{size} % {_DIVISOR} == 0" for size in sizes)
    variants = [("", divisible, True), ("_odd", f"({divisible}) == 0", False)] if sizes else [("", "", True)]
    given = [arguments[parameter.name] for parameter in function.params if parameter.name in arguments]
    comments, codes = [], []
    for suffix, condition, is_divisible in variants:
        made = _compile(function, arguments, dtypes, constants, target, is_divisible)
        name, text = _renamed(made, suffix)
        parts = [f"// Launch:  {name}", f"{grid} blocks of {made.metadata.num_warps * 32} threads"]
        if made.metadata.shared:
            parts.append(f"{made.metadata.shared} bytes of dynamic shared memory")
        comments.append(", ".join(parts + ([f"where {condition}"] if condition else [])))
        codes.append(text)
    # Behind those of the kernel, Triton has pointers to memory that this kernel does not use.
    parameters = re.search(r"\.entry \w+\((.*?)\)", codes[0], flags=re.S)
    spare = (parameters[1].count(".param") if parameters else 0) - len(given)
    comments.append(f"//          with {', '.join(given + ['scratch'] * spare)}")
    if spare:
        comments.append("//          scratch: 16 bytes")
    Path(path).write_text("\n".join(comments) + "\n" + _joined(codes), encoding="utf-8")


def _check_names(function: Any, arguments: Mapping[str, str], constants: Mapping[str, Any]) -> None:
    names = [parameter.name for parameter in function.params]
    missing = [name for name in names if name not in arguments and name not in constants]
    unknown = [name for name in arguments if name not in names]
    if missing or unknown:
        raise errors.ArgumentError(
            f"{function.__name__}({', '.join(names)}): " +
            (f"nothing is said of {', '.join(missing)}: name a tensor, a size or a stride of the definition in "
             "`arguments`, or a constant" if missing else f"it has no parameter {', '.join(unknown)}"))


def _compile(function: Any, arguments: Mapping[str, str], dtypes: Mapping[str, str], constants: Mapping[str, Any],
             target: Any, is_divisible: bool) -> Any:
    signature: dict[str, str] = {}
    constexprs: dict[Any, Any] = {}
    attributes: dict[Any, Any] = {}
    for place, parameter in enumerate(function.params):
        what = arguments.get(parameter.name)
        if what is None:
            signature[parameter.name], constexprs[(place,)] = "constexpr", constants[parameter.name]
        elif what in dtypes:
            signature[parameter.name] = _POINTERS[dtypes[what]]
        else:
            signature[parameter.name] = "i32"
        if what is not None and (what in dtypes or (is_divisible and re.fullmatch(r"\w+", what))):
            attributes[(place,)] = [["tt.divisibility", _DIVISOR]]  # tensors begin at multiples of 16 bytes
    options = {name: value for name, value in constants.items() if name not in signature}
    module = source.triton()
    made = module.compile(module.compiler.ASTSource(function, signature, constexprs, attributes),
                          target=source.make_target(target), options=options)
    for what in ("global_scratch_size", "profile_scratch_size"):
        if getattr(made.metadata, what, 0):
            raise errors.UnsupportedError(f"{function.__name__} wants memory of its own ({what}), which a launch does not "
                                          "have for it")
    if getattr(made.metadata, "num_ctas", 1) != 1:
        raise errors.UnsupportedError(f"{function.__name__} has clusters of {made.metadata.num_ctas} blocks")
    return made


def _renamed(made: Any, suffix: str) -> tuple[str, str]:
    """The kernel's name with a suffix, and its PTX without lines for debuggers."""
    name = made.metadata.name
    text = re.sub(rf"\b{re.escape(name)}(?=\b|_param_)", name + suffix, made.asm["ptx"])
    text = text[:found.start()] if (found := re.search(r"^\s*\.section\s", text, flags=re.M)) else text
    return name + suffix, re.sub(r"^\s*\.(loc|file)\s.*\n", "", text, flags=re.M)


def _joined(codes: list[str]) -> str:
    """Modules one after the other, with the lines before the first kernel once."""
    head, first, body = codes[0].partition(".visible .entry")
    return head + "\n".join([first + body, *(".visible .entry" + code.partition(".visible .entry")[2] for code in codes[1:])])

