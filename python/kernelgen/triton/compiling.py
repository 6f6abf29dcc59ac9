"""Compiles configs side by side, each in a child that is killed at its deadline.

What a child compiles lies in Triton's cache afterwards. Between the stages of Triton's compiler it applies the rules
of `limits`, so that a config that cannot run, or would keep the compiler busy for minutes, goes no further. The first
stage alone, which makes TTIR, takes a fiftieth of the time: `sketch_all`.
"""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional, Sequence

from . import children, limits
from .children import Failure
from .source import Source, triton

DEADLINE = 60.0  # seconds a config may be compiled

Job = tuple[Any, Source, Mapping[str, Any]]  # key, source, arguments of the call that are integers


@dataclass(frozen=True)
class Compiled:
    name: str  # of the kernel in PTX and cubin
    ttir: str
    ptx: bytes
    binary: bytes  # a cubin, on NVIDIA
    shared_bytes: int
    seconds: float


class _Sketched(BaseException):
    """TTIR, and that no more is wanted."""


# ---- In a child


@contextmanager
def _rules_between_stages(source: Source, arguments: Mapping[str, Any], rules: limits.Limits,
                          is_sketch: bool) -> Iterator[None]:
    """Makes the backend's stages ask the rules, and a sketch end after the first."""
    backend = type(triton().compiler.make_backend(source.target))
    original = backend.add_stages

    def watched(name: str, stage: Any, options: Any) -> Any:
        def run(module: Any, metadata: Any) -> Any:
            result = stage(module, metadata)
            reason = rules.refusal(name, result, options, arguments)
            if reason:
                raise children.Refused(reason)
            if is_sketch:
                raise _Sketched(str(result))
            return result
        return run

    def add_stages(self: Any, stages: Any, options: Any, *more: Any) -> None:
        original(self, stages, options, *more)
        for name in ("ttir", "ttgir"):
            if name in stages:
                stages[name] = watched(name, stages[name], options)

    backend.add_stages = add_stages
    try:
        yield
    finally:
        backend.add_stages = original


def _as_bytes(code: Any) -> bytes:
    return code if isinstance(code, bytes) else str(code).encode()


def _compile(source: Source, arguments: Mapping[str, Any], rules: limits.Limits, is_sketch: bool = False) -> Compiled:
    begin = time.monotonic()
    with _rules_between_stages(source, arguments, rules, is_sketch):
        made = triton().compile(source.as_ast(), target=source.target, options=dict(vars(source.options)))
    binary = next((made.asm[kind] for kind in ("cubin", "hsaco") if kind in made.asm), b"")
    reason = rules.too_much_shared(made.metadata.shared)
    if reason:
        raise children.Refused(reason)
    return Compiled(made.metadata.name, str(made.asm.get("ttir", "")), _as_bytes(made.asm.get("ptx", b"")),
                    _as_bytes(binary), int(made.metadata.shared), time.monotonic() - begin)


def _sketch(jobs: Sequence[Job], rules: limits.Limits) -> list[tuple[Any, Any]]:
    def one(source: Source, arguments: Mapping[str, Any]) -> str:
        try:
            return _compile(source, arguments, rules, is_sketch=True).ttir  # it was in Triton's cache
        except _Sketched as done:
            return str(done)
    return [(key, children.outcome_of(lambda: one(source, arguments), lambda: "")) for key, source, arguments in jobs]


# ---- In the parent


def _warm(target: Any) -> None:
    """Computes once what every child would: hashes of Triton itself (hundreds of MB) and of its tools."""
    for module in ("triton.runtime.cache", "triton.compiler.compiler"):
        key = getattr(sys.modules.get(module), "triton_key", None)
        if key:
            key()
    triton().compiler.make_backend(target).hash()


def sketch_all(jobs: Sequence[Job], rules: limits.Limits, *, deadline: float = DEADLINE,
               count: Optional[int] = None) -> dict[Any, Any]:
    """TTIR of each job, or a Failure that a rule or Triton's front end gave. What is not in the result is not known."""
    if not jobs:
        return {}
    _warm(jobs[0][1].target)
    count = min(len(jobs), count or children.workers())
    parts = [jobs[begin::count] for begin in range(count)]
    tasks = ((index, lambda part=part: _sketch(part, rules)) for index, part in enumerate(parts))
    found: dict[Any, Any] = {}
    for done in children.run_all(tasks, deadline=deadline, count=count):
        if done is not None and not isinstance(done[1], Failure):
            found.update(done[1])
    return found


def compile_all(jobs: Iterable[Job], rules: limits.Limits, target: Any, *, deadline: float = DEADLINE,
                count: Optional[int] = None,
                waits: Callable[[], bool] = lambda: True) -> Iterator[Optional[tuple[Any, Any]]]:
    """(key, Compiled or Failure) of every job, as they are done: `children.run_all` has the rest."""
    def tasks() -> Iterator[tuple[Any, Callable[[], Any]]]:
        is_warm = False
        for key, source, arguments in jobs:
            if not is_warm:
                _warm(target)
            is_warm = True
            yield key, lambda source=source, arguments=arguments: _compile(source, arguments, rules)
    return children.run_all(tasks(), deadline=deadline, count=count or children.workers(), waits=waits)
