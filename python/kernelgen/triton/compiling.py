"""Compiles configs side by side, each in a child that is killed at its deadline.

A child is a fork: it has the kernel as it is, whatever it closes over, and touches no GPU. What it compiles lies in
Triton's cache afterwards. Between the stages of Triton's compiler it applies the rules of `limits`, so that a config
that cannot run, or would keep the compiler busy for minutes, goes no further.
"""

from __future__ import annotations

import os
import pickle
import selectors
import signal
import sys
import tempfile
import time
from collections import deque
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional

from . import limits
from .source import Source, triton

DEADLINE = 60.0  # seconds a config may be compiled
NICE = 5  # so that the process that measures meanwhile is not kept waiting


@dataclass(frozen=True)
class Compiled:
    name: str  # of the kernel in PTX and cubin
    ttir: str
    ptx: bytes
    binary: bytes  # a cubin, on NVIDIA
    shared_bytes: int
    seconds: float


@dataclass(frozen=True)
class Failure:
    reason: str
    seconds: float = 0.0


class _Refused(Exception):
    """A rule's reason, raised between two stages."""


def workers() -> int:
    """Processors that this process may use."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:
        return max(1, os.cpu_count() or 1)


# ---- In the child


def _with_rules(target: Any, arguments: Mapping[str, Any], rules: limits.Limits) -> None:
    """Makes the backend's stages ask the rules. The process is a child: the change dies with it."""
    backend = type(triton().compiler.make_backend(target))
    original = backend.add_stages

    def watched(name: str, stage: Any, options: Any) -> Any:
        def run(module: Any, metadata: Any) -> Any:
            result = stage(module, metadata)
            reason = rules.refusal(name, result, options, arguments)
            if reason:
                raise _Refused(reason)
            return result
        return run

    def add_stages(self: Any, stages: Any, options: Any, *more: Any) -> None:
        original(self, stages, options, *more)
        for name in ("ttir", "ttgir"):
            if name in stages:
                stages[name] = watched(name, stages[name], options)

    backend.add_stages = add_stages


def _as_bytes(code: Any) -> bytes:
    return code if isinstance(code, bytes) else str(code).encode()


def _compile(source: Source, arguments: Mapping[str, Any], rules: limits.Limits) -> Compiled:
    begin = time.monotonic()
    _with_rules(source.target, arguments, rules)
    made = triton().compile(source.as_ast(), target=source.target, options=dict(vars(source.options)))
    binary = next((made.asm[kind] for kind in ("cubin", "hsaco") if kind in made.asm), b"")
    reason = rules.too_much_shared(made.metadata.shared)
    if reason:
        raise _Refused(reason)
    return Compiled(made.metadata.name, str(made.asm.get("ttir", "")), _as_bytes(made.asm.get("ptx", b"")),
                    _as_bytes(binary), int(made.metadata.shared), time.monotonic() - begin)


def _words_of(error: BaseException, said: str) -> str:
    """One line: the error, and the compiler's own words if it wrote any."""
    words = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line.strip() for line in said.splitlines() if "error" in line.lower()]
    text = words[-1] if words else type(error).__name__
    return f"{type(error).__name__}: {text[:300]}" + (f" ({told[0][:200]})" if told and told[0] not in text else "")


def _serve(source: Source, arguments: Mapping[str, Any], rules: limits.Limits, out: int) -> None:
    """The life of a child. Never returns."""
    begin, status = time.monotonic(), 0
    try:
        os.setpgid(0, 0)
        os.nice(NICE)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
        with tempfile.TemporaryFile() as said:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(null, 1)
            os.dup2(said.fileno(), 2)
            try:
                result: Any = _compile(source, arguments, rules)
            except _Refused as refusal:
                result = Failure(str(refusal), time.monotonic() - begin)
            except BaseException as error:
                said.seek(0)
                result = Failure("the compiler failed: " + _words_of(error, said.read().decode(errors="replace")),
                                 time.monotonic() - begin)
        with os.fdopen(out, "wb") as pipe:
            pickle.dump(result, pipe)
    except BaseException:
        status = 1
    finally:
        os._exit(status)


# ---- In the parent


PIPE_BYTES = 1 << 20  # what a child can say while its parent is busy measuring


def _widen(pipe: int) -> None:
    try:
        import fcntl
        fcntl.fcntl(pipe, getattr(fcntl, "F_SETPIPE_SZ", 1031), PIPE_BYTES)
    except (ImportError, OSError):  # not Linux, or over the user's limit: the child waits
        pass


class _Child:
    def __init__(self, key: Any, source: Source, arguments: Mapping[str, Any], rules: limits.Limits,
                 deadline: float) -> None:
        self.key, self.begin, self.deadline = key, time.monotonic(), deadline
        self.data = bytearray()
        self.pipe, out = os.pipe()
        _widen(out)
        sys.stdout.flush()
        sys.stderr.flush()
        self.process = os.fork()
        if self.process == 0:
            os.close(self.pipe)
            _serve(source, arguments, rules, out)
        os.close(out)
        try:
            os.setpgid(self.process, self.process)  # whoever is first; ptxas is killed with it
        except OSError:
            pass

    @property
    def seconds_left(self) -> float:
        return self.begin + self.deadline - time.monotonic()

    def end(self, kill: bool = False) -> Any:
        if kill:
            for send, whom in ((os.killpg, self.process), (os.kill, self.process)):
                try:
                    send(whom, signal.SIGKILL)
                except OSError:
                    pass
        _, status = os.waitpid(self.process, 0)
        os.close(self.pipe)
        seconds = time.monotonic() - self.begin
        if kill:
            return Failure(f"the compiler was not done after {self.deadline:g} s", seconds)
        try:
            return pickle.loads(bytes(self.data))
        except Exception:
            how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"status {os.WEXITSTATUS(status)}"
            return Failure(f"the compiler's process ended with {how}", seconds)


def _warm(jobs: Iterable[tuple[Any, Source, Mapping[str, Any]]]) -> None:
    """Computes once what every child would: hashes of Triton itself (hundreds of MB) and of its tools."""
    for module in ("triton.runtime.cache", "triton.compiler.compiler"):
        key = getattr(sys.modules.get(module), "triton_key", None)
        if key:
            key()
    for target in {source.target for _, source, _ in jobs}:
        triton().compiler.make_backend(target).hash()


def compile_all(jobs: Iterable[tuple[Any, Source, Mapping[str, Any]]], rules: limits.Limits, *,
                deadline: float = DEADLINE, count: Optional[int] = None,
                waits: Callable[[], bool] = lambda: True) -> Iterator[Optional[tuple[Any, Any]]]:
    """(key, Compiled or Failure) of every job (key, source, arguments), as they are done; None when nothing is done
    and `waits` says that there is something else to do meanwhile.

    Whoever stops iterating ends the children that are left.
    """
    count = count or workers()
    waiting, selector = deque(jobs), selectors.DefaultSelector()
    if waiting:
        _warm(waiting)
    running: dict[int, _Child] = {}
    try:
        while waiting or running:
            while waiting and len(running) < count:
                child = _Child(*waiting.popleft(), rules, deadline)
                running[child.pipe] = child
                selector.register(child.pipe, selectors.EVENT_READ)
            patience = max(0.0, min(child.seconds_left for child in running.values())) if waits() else 0.0
            done = []
            for key, _ in selector.select(patience):
                child, data = running[key.fd], os.read(key.fd, 1 << 20)
                child.data += data
                if not data:
                    done.append((child, False))
            done += [(child, True) for child in running.values()
                     if child.seconds_left <= 0 and (child, False) not in done]
            for child, kill in done:
                selector.unregister(child.pipe)
                del running[child.pipe]
                yield child.key, child.end(kill)
            if not done and not patience:
                yield None
    finally:
        for child in running.values():
            child.end(kill=True)
        selector.close()
