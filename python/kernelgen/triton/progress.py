"""How far a search is: one line on a terminal, or a function of the user's."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Optional, Union

# None: a line on a terminal; True, False: always, never; or a function of (what, done, total).
Progress = Union[None, bool, Callable[[str, int, int], object]]

LEAST_SECONDS = 0.1  # between two lines


def seconds_left(begin: float, now: float, done: int, total: int) -> Optional[float]:
    """By the pace so far. None: there is no pace yet."""
    return (now - begin) / done * (total - done) if 0 < done <= total and now > begin else None


class Line:
    def __init__(self, what: str, stream: Any = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.what, self.stream, self.clock = what, stream or sys.stderr, clock
        self.begin, self.shown, self.width = clock(), float("-inf"), 0
        self.counts: dict[str, int] = {}

    def __call__(self, what: str, done: int, total: int) -> None:
        self.counts[what] = done
        now = self.clock()
        if now - self.shown < LEAST_SECONDS and done < total:
            return
        self.shown = now
        compiled, measured = self.counts.get("compiled", 0), self.counts.get("measured", 0)
        left = seconds_left(self.begin, now, compiled, total)
        about = f", about {left:.0f} s left to compile" if left is not None and compiled < total else ""
        line = f"{self.what}: {compiled} of {total} configs compiled, {measured} measured, {now - self.begin:.0f} s{about}"
        self.stream.write(f"\r{line.ljust(self.width)}")
        self.stream.flush()
        self.width = len(line)

    def clear(self) -> None:
        if self.width:
            self.stream.write(f"\r{' ' * self.width}\r")
            self.stream.flush()


@contextmanager
def shown(progress: Progress, what: str) -> Iterator[Optional[Callable[[str, int, int], object]]]:
    if progress is None:
        progress = sys.stderr.isatty()
    if not isinstance(progress, bool):
        yield progress
        return
    if not progress:
        yield None
        return
    line = Line(what)
    try:
        yield line
    finally:
        line.clear()
