"""From a kernel, a call's arguments and a config to what Triton's compiler takes, without a GPU.

Triton's own binder says how arguments are specialised (divisible by 16, equal to 1), so what is compiled here is
what the call will look for: it finds it in Triton's cache.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Mapping, Optional

from .. import errors

# What a launch takes beside the kernel's arguments and the compiler's options.
_LAUNCH_ONLY = ("grid", "warmup", "stream", "device")


def triton() -> Any:
    """The module, or an error that says what to do."""
    try:
        import triton as module
        import triton.compiler
        import triton.runtime.jit
    except ImportError as error:
        raise errors.MissingError("Triton is not installed, or cannot be loaded "
                                  f"({error}); kernelgen.triton needs 3.3 or newer: pip install triton") from error
    return module


@dataclass(frozen=True)
class Source:
    """One kernel with one config for one kind of arguments."""

    kernel: Any  # triton.runtime.JITFunction
    target: Any  # GPUTarget
    options: Any  # of the backend
    signature: dict[str, Any]
    constants: dict[Any, Any]
    attributes: dict[Any, Any]

    def as_ast(self) -> Any:
        return triton().compiler.ASTSource(self.kernel, self.signature, self.constants, self.attributes)


def unwrapped(kernel: Any) -> tuple[Any, list[Any]]:
    """The function that @triton.jit made, and the heuristics around it, the outermost first."""
    heuristics = []
    while not (hasattr(kernel, "params") and hasattr(kernel, "arg_names") and hasattr(kernel, "cache_key")):
        if isinstance(getattr(kernel, "values", None), dict):
            heuristics.append(kernel)
        inner = getattr(kernel, "fn", None)
        if inner is None or inspect.isfunction(inner):
            break
        kernel = inner
    return kernel, heuristics


def is_interpreted(kernel: Any) -> bool:
    """Triton's interpreter runs the kernel as Python: nothing is compiled."""
    return type(unwrapped(kernel)[0]).__name__ == "InterpretedFunction"


def make_target(target: Any = None) -> Any:
    """A GPUTarget: as given ("sm_90a", 90, a GPUTarget), or the current device's."""
    module = triton()
    from triton.backends.compiler import GPUTarget
    if isinstance(target, GPUTarget):
        return target
    if target is not None:
        digits = "".join(character for character in str(target) if character.isdigit())
        if not digits:
            raise errors.ArgumentError(f'target "{target}" is no compute capability; say "sm_90a", 90, or a GPUTarget')
        return GPUTarget("cuda", int(digits), 32)
    try:
        return module.runtime.driver.active.get_current_target()
    except Exception as error:
        raise errors.MissingError('there is no GPU to compile for; name one with target="sm_90a"') from error


@lru_cache(maxsize=None)
def _backend(target: Any) -> Any:
    return triton().compiler.make_backend(target)


@lru_cache(maxsize=None)
def _binder(kernel: Any, target: Any) -> Any:
    return triton().runtime.jit.create_function_from_signature(kernel.signature, kernel.params, _backend(target))


def _find(values: Any, wanted: Any, path: tuple[int, ...] = ()) -> dict[tuple[int, ...], Any]:
    """The leaves of nested tuples that are wanted, by their places."""
    found = {}
    for index, value in enumerate(values):
        here = (*path, index)
        if isinstance(value, (tuple, list)):
            found.update(_find(value, wanted, here))
        elif wanted(value):
            found[here] = value
    return found


def _at(values: Any, path: tuple[int, ...]) -> Any:
    for index in path:
        values = values[index]
    return values


def arguments_of(kernel: Any, named: Mapping[str, Any], config: Any = None) -> dict[str, Any]:
    """All arguments and options of a call with a config, heuristics computed."""
    _, heuristics = unwrapped(kernel)
    found = {name: value for name, value in named.items() if name not in _LAUNCH_ONLY}
    if config is not None:
        found.update(config.all_kwargs())
    for layer in heuristics:
        for name, compute in layer.values.items():
            found[name] = compute(dict(found))
    return found


def _packed(function: Any, backend: Any, extra: dict[str, Any], bound: Mapping[str, Any],
            specialization: Any) -> tuple[Any, dict[str, Any], dict[Any, Any], dict[Any, Any]]:
    """Options, signature, constants and attributes: to the last one those of a launch, or it compiles again."""
    if hasattr(function, "_pack_args"):
        packed: tuple[Any, dict[str, Any], dict[Any, Any], dict[Any, Any]] = function._pack_args(
            backend, extra, bound, specialization, None)
        return packed
    # Triton 3.3 and 3.4 have no function for it.
    names, kinds = [parameter.name for parameter in function.params], [entry[0] for entry in specialization]
    keys, values = [entry[1] for entry in specialization], list(bound.values())
    constants = {path: _at(values, path) for path in _find(kinds, lambda kind: kind == "constexpr")}
    attributes = {path: backend.parse_attr(key)
                  for path, key in _find(keys, lambda key: isinstance(key, str)).items()}
    return backend.parse_options(extra), dict(zip(names, kinds)), constants, attributes


def specialise(kernel: Any, named: Mapping[str, Any], config: Any, target: Any) -> Source:
    """What a launch with these arguments would compile. `named` may have `grid` and options."""
    function, _ = unwrapped(kernel)
    arguments = arguments_of(kernel, named, config)
    backend = _backend(target)
    bound, specialization, extra = _binder(function, target)(**arguments)
    extra = dict(extra, debug=extra.get("debug") or function.debug or False)
    known = vars(backend.parse_options(extra))
    unknown = [name for name in extra if name not in known]
    if unknown:
        raise errors.ArgumentError(f"{function.__name__} has no parameter {', '.join(unknown)}, and Triton "
                                   f"{triton().__version__} no such option")
    return Source(function, target, *_packed(function, backend, extra, bound, specialization))


def grid_of(named: Mapping[str, Any], arguments: Mapping[str, Any]) -> Optional[tuple[int, ...]]:
    """Blocks of a launch, or None if the call's grid is not known or cannot be computed."""
    grid = named.get("grid")
    try:
        if callable(grid):
            grid = grid(dict(arguments))
        sizes = tuple(int(size) for size in grid) if grid is not None else None
    except Exception:  # of a user's function of symbolic sizes, or of names that a config does not have
        return None
    return sizes if sizes and min(sizes) > 0 else None
