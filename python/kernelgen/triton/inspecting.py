"""What the compiler made of a Triton kernel, as a dict and as a text."""

from __future__ import annotations

from typing import Any, Optional

from .. import errors
from . import analysis, assembly, compiling, source


def _compiled(kernel: Any, named: dict[str, Any], config: Any, target: Any, deadline: float) -> tuple[Any, Any, Any]:
    if source.is_interpreted(kernel):
        raise errors.UnsupportedError("Triton's interpreter compiles nothing; unset TRITON_INTERPRET")
    function, _ = source.unwrapped(kernel)
    config = config or _Options()
    found = analysis.Analysis(kernel, [config], named, source.make_target(target))
    (one,) = found.compile(deadline, 1)
    if one.reason:
        raise errors.UnsupportedError(f"{function.__name__} with {one.words or 'no config'}: {one.reason}")
    return found, one, found.compiled(one)


class _Options:
    """A config without anything: the call's own arguments are all there is."""

    def all_kwargs(self) -> dict[str, Any]:
        return {}


def facts(kernel: Any, *args: Any, config: Any = None, target: Any = None, grid: Any = None,
          deadline: float = compiling.DEADLINE, **kwargs: Any) -> dict[str, Any]:
    """What the compiler made of `kernel[grid](*args, **kwargs)` with a config: docs/asm.md has the members of
    `cubin` and `ptx`; `work` is that of one program. Needs no GPU if there is a `target`."""
    function, _ = source.unwrapped(kernel)
    named = {**dict(zip(function.arg_names, args)), **kwargs, "grid": grid}
    found, one, made = _compiled(kernel, named, config, target, deadline)
    return {"kernel": made.name, "config": one.words, "grid": one.grid, "shared_bytes": made.shared_bytes,
            "compile_seconds": made.seconds, "cubin": dict(one.cubin), "ptx": dict(one.ptx),
            "work": {"flops": one.work.flops, "read_bytes": one.work.read_bytes, "write_bytes": one.work.write_bytes,
                     "reads": sorted(one.work.reads), "writes": sorted(one.work.writes),
                     "updated": sorted(one.work.updated), "exact": one.work.exact}}


def explain(kernel: Any, *args: Any, config: Any = None, target: Any = None, grid: Any = None,
            deadline: float = compiling.DEADLINE, device: Optional[str] = None, **kwargs: Any) -> str:
    """The same as the text of `kernelgen asm`."""
    function, _ = source.unwrapped(kernel)
    named = {**dict(zip(function.arg_names, args)), **kwargs, "grid": grid}
    found, one, made = _compiled(kernel, named, config, target, deadline)
    launch = assembly.Launch(one.grid or (0, 0, 0), made.shared_bytes, device=device)
    return str(assembly.report(made.binary, made.name, launch, as_text=True))
