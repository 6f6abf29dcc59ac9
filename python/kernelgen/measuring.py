"""Verdicts and times, and the line that shows how far long work is."""

from __future__ import annotations

import ctypes
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any, Callable, Iterator, Optional, Union

from . import arrays, errors
from .library import BenchInfo, VerifyInfo
from .handles import Plan

# None: a line on a terminal; True, False: always, never; or a function of (what, done, total).
Progress = Union[None, bool, Callable[[str, int, int], object]]


@dataclass(frozen=True)
class Verdict:
    """Of the accuracy gate. True if it passed."""

    passed: bool
    seed: int  # repeats the inputs
    cases: int
    elements: int
    worst: float  # largest error / allowed error
    impostors: int  # faulty kernels that the same inputs detected
    reason: str  # when not passed
    remarks: str

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        if not self.passed:
            return f"REFUSED: {self.reason} (seed {self.seed})"
        remarks = f"\n{self.remarks}" if self.remarks else ""
        return (f"passed: {self.cases} cases, {self.elements} elements, worst error {self.worst:.2g} of what is "
                f"allowed; {self.impostors} impostors rejected{remarks}")


@dataclass(frozen=True)
class Times:
    """Medians in seconds, and spreads between quartiles."""

    seconds: float
    spread: float
    other_seconds: float
    other_spread: float
    other: str  # what was timed beside it
    bound: float  # the roofline's; 0: not known
    difference: Optional[float] = None  # the largest between the results of both

    @property
    def speedup(self) -> float:
        return self.other_seconds / self.seconds

    def __str__(self) -> str:
        bound = f"; roofline {in_units(self.bound)} ({100 * self.bound / self.seconds:.0f}% reached)" if self.bound else ""
        apart = "" if self.difference is None else f"; results differ by {self.difference:.2g} at most"
        return (f"{in_units(self.seconds)}, {self.other} {in_units(self.other_seconds)}: {self.speedup:.2f} times as "
                f"fast{bound}{apart}")


def in_units(seconds: float) -> str:
    """Three digits; what they round to the next unit has that one."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= 0.9995 * scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


@contextmanager
def shown(progress: Progress) -> Iterator[Callable[[str, int, int], object] | None]:
    """The function that long work tells how far it is."""
    if progress is None:
        progress = sys.stderr.isatty()
    if not isinstance(progress, bool):
        yield progress
        return
    if not progress:
        yield None
        return
    begin, width = time.monotonic(), 0

    def show(what: str, done: int, total: int) -> None:
        nonlocal width
        line = f"{what}: {done} of {total}, {time.monotonic() - begin:.0f} s"
        sys.stderr.write(f"\r{line.ljust(width)}")
        sys.stderr.flush()
        width = len(line)

    try:
        yield show
    finally:
        if width:
            sys.stderr.write(f"\r{' ' * width}\r")
            sys.stderr.flush()


def verify(plan: Plan, seed: int, progress: Progress) -> Verdict:
    info = VerifyInfo(size=ctypes.sizeof(VerifyInfo))
    with shown(progress) as show, plan.session.working(show):
        plan.session.call("kg_plan_verify", plan.handle, seed, ctypes.byref(info))
    return Verdict(info.passed, info.seed, info.cases, info.elements, info.worst, info.impostors,
                   info.reason.decode(errors="replace"), info.remarks.decode(errors="replace"))


def bench(plan: Plan, progress: Progress) -> Times:
    """Beside the baseline of the definition, by the protocol of docs/timing.md."""
    info = BenchInfo(size=ctypes.sizeof(BenchInfo))
    with shown(progress) as show, plan.session.working(show):
        plan.session.call("kg_plan_bench", plan.handle, ctypes.byref(info))
    return Times(info.seconds, info.spread, info.baseline_seconds, info.baseline_spread, "baseline",
                 info.bound_seconds)


# ---- Beside a function of the user's

ROUNDS = 30
SAMPLE_SECONDS = 2e-3  # of repeated calls, so that the clock does not count
LIMIT_SECONDS = 2.0


def timer(home: Any, device: str) -> Callable[[Callable[[], Any], int], float]:
    """A function that times so many calls, in seconds each: by the device's events where there are some."""
    if device == "host":
        def on_host(function: Callable[[], Any], repeats: int) -> float:
            begin = time.perf_counter()
            for _ in range(repeats):
                function()
            return (time.perf_counter() - begin) / repeats
        return on_host
    events = home.module.cuda.Event

    def on_device(function: Callable[[], Any], repeats: int) -> float:
        timed = {"enable_timing": True} if home.kind == arrays.TORCH else {}
        first, last = events(**timed), events(**timed)
        first.record()
        for _ in range(repeats):
            function()
        last.record()
        home.synchronize(device)
        if home.kind == arrays.TORCH:
            return first.elapsed_time(last) * 1e-3 / repeats
        return home.module.cuda.get_elapsed_time(first, last) * 1e-3 / repeats
    return on_device


def largest_difference(ours: Any, theirs: Any, home: Any) -> float:
    ours, theirs = (result if isinstance(result, tuple) else (result,) for result in (ours, theirs))
    if len(ours) != len(theirs):
        raise errors.ArgumentError(f"the function returns {len(theirs)} tensors, and the op {len(ours)}")
    largest = 0.0
    for mine, other in zip(ours, theirs):
        if tuple(mine.shape) != tuple(other.shape):
            raise errors.ArgumentError(f"the function returns a tensor of {tuple(other.shape)}, and the op one of "
                                       f"{tuple(mine.shape)}")
        wide = [tensor.double() if home.kind == arrays.TORCH else tensor.astype("f8") for tensor in (mine, other)]
        apart = abs(wide[0] - wide[1])
        apart[(wide[0] == wide[1]) | ((wide[0] != wide[0]) & (wide[1] != wide[1]))] = 0
        largest = max(largest, float(apart.max()) if 0 not in apart.shape else 0.0)
    return largest


def compare(operator: Callable, against: Callable, tensors: tuple, home: Any, device: str,
            progress: Progress) -> Times:
    """Times calls as Python makes them, both alternately, with caches as the last call left them."""
    def ours() -> Any:
        return operator(*tensors)

    def theirs() -> Any:
        return against(*tensors)

    difference = largest_difference(ours(), theirs(), home)
    measure = timer(home, device)
    functions = (ours, theirs)
    repeats = []
    for function in functions:
        measure(function, 1)
        repeats.append(max(1, min(10000, int(SAMPLE_SECONDS / max(measure(function, 2), 1e-7)))))
    samples: tuple[list[float], list[float]] = ([], [])
    begin = time.monotonic()
    with shown(progress) as show:
        for turn in range(ROUNDS):
            for index in (0, 1) if turn % 2 == 0 else (1, 0):
                samples[index].append(measure(functions[index], repeats[index]))
            if show:
                show("timing", turn + 1, ROUNDS)
            if turn >= 4 and time.monotonic() - begin > LIMIT_SECONDS:
                break
    quartiles = [sorted(values)[len(values) * 3 // 4] - sorted(values)[len(values) // 4] for values in samples]
    name = getattr(against, "__name__", "the function")
    return Times(median(samples[0]), quartiles[0], median(samples[1]), quartiles[1], name, 0.0, difference)
