"""Work in forks that are killed at their deadline.

A child has everything as it is in its parent, and touches no GPU. What it returns comes back through a pipe.
"""

from __future__ import annotations

import os
import pickle
import selectors
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Iterator, Optional

NICE = 5  # so that the process that measures meanwhile is not kept waiting
PIPE_BYTES = 1 << 20  # what a child can say while its parent is busy measuring


@dataclass(frozen=True)
class Failure:
    reason: str
    seconds: float = 0.0


class Refused(Exception):
    """A reason, raised by work that goes no further."""


def workers() -> int:
    """Processors that this process may use."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:
        return max(1, os.cpu_count() or 1)


# ---- In the child


def _words_of(error: BaseException, said: str) -> str:
    """One line: the error, and the compiler's own words if it wrote any."""
    words = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line.strip() for line in said.splitlines() if "error" in line.lower()]
    text = words[-1] if words else type(error).__name__
    return f"{type(error).__name__}: {text[:300]}" + (f" ({told[0][:200]})" if told and told[0] not in text else "")


def outcome_of(work: Callable[[], Any], said: Callable[[], str]) -> Any:
    """What the work returns, or a Failure."""
    begin = time.monotonic()
    try:
        return work()
    except Refused as refusal:
        return Failure(str(refusal), time.monotonic() - begin)
    except BaseException as error:
        return Failure("the compiler failed: " + _words_of(error, said()), time.monotonic() - begin)


def _serve(work: Callable[[], Any], out: int) -> None:
    """The life of a child. Never returns."""
    status = 0
    try:
        os.setpgid(0, 0)
        os.nice(NICE)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
        with tempfile.TemporaryFile() as file:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(null, 1)
            os.dup2(file.fileno(), 2)

            def said() -> str:
                file.seek(0)
                return file.read().decode(errors="replace")
            result = outcome_of(work, said)
        with os.fdopen(out, "wb") as pipe:
            pickle.dump(result, pipe)
    except BaseException:
        status = 1
    finally:
        os._exit(status)


# ---- In the parent


def _widen(pipe: int) -> None:
    try:
        import fcntl
        fcntl.fcntl(pipe, getattr(fcntl, "F_SETPIPE_SZ", 1031), PIPE_BYTES)
    except (ImportError, OSError):  # not Linux, or over the user's limit: the child waits
        pass


class _Child:
    def __init__(self, key: Any, work: Callable[[], Any], deadline: float) -> None:
        self.key, self.begin, self.deadline = key, time.monotonic(), deadline
        self.data = bytearray()
        self.pipe, out = os.pipe()
        _widen(out)
        sys.stdout.flush()
        sys.stderr.flush()
        self.process = os.fork()
        if self.process == 0:
            os.close(self.pipe)
            _serve(work, out)
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


def run_all(tasks: Iterable[tuple[Any, Callable[[], Any]]], *, deadline: float, count: int,
            waits: Callable[[], bool] = lambda: True) -> Iterator[Optional[tuple[Any, Any]]]:
    """(key, result or Failure) of every task (key, work), as they are done; None when nothing is done and `waits` says
    that there is something else to do meanwhile. A task is asked for when there is a process for it.

    Whoever stops iterating ends the children that are left.
    """
    left, selector = iter(tasks), selectors.DefaultSelector()
    running: dict[int, _Child] = {}
    try:
        while True:
            while len(running) < count:
                task = next(left, None)
                if task is None:
                    break
                child = _Child(*task, deadline)
                running[child.pipe] = child
                selector.register(child.pipe, selectors.EVENT_READ)
            if not running:
                return
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
