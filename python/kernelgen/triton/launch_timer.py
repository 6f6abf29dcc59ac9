"""Measures one launch on the current device: cold L2, hooks outside of what is timed, and no wait without an end."""

from __future__ import annotations

import time
from statistics import quantiles
from typing import Any, Callable, Optional

from .. import errors
from .records import Timing
from .source import triton

WARM_SECONDS = 0.005
SAMPLE_SECONDS = 0.025
LEAST_SAMPLES, MOST_SAMPLES = 10, 100
COARSE_SAMPLES = 3
HOPELESS = 1.5  # a config that took so many times as long as the best, each time, is measured no further
DEADLINE = 30.0  # seconds for the samples of one config


class Hung(errors.Error, TimeoutError):
    """A kernel that does not end. It cannot be ended from the process that launched it."""


class Lost(errors.Error, RuntimeError):
    """The device is in a state in which nothing can be launched any more from this process."""


class Launch:
    """One launch and what belongs to it."""

    def __init__(self, run: Callable[[], Any], before: Callable[[], Any] = lambda: None,
                 after: Callable[[Optional[BaseException]], Any] = lambda error: None) -> None:
        self._run, self._before, self._after = run, before, after

    def before(self) -> None:
        self._before()

    def run(self) -> None:
        """Without `before`. `after` is called if it fails."""
        try:
            self._run()
        except Exception as error:
            self._after(error)
            raise

    def after(self) -> None:
        self._after(None)

    def __call__(self) -> None:
        """All of it, for a benchmark of the user's."""
        self.before()
        self.run()
        self.after()


def timing_of(samples: list[float]) -> Timing:
    cuts = quantiles(samples, n=10, method="inclusive") if len(samples) > 1 else samples * 9
    return Timing(cuts[4], cuts[1], cuts[7], len(samples))


class DeviceTimer:
    """By the events of the device that Triton launches on."""

    def __init__(self, warm: float = WARM_SECONDS, sample: float = SAMPLE_SECONDS, deadline: float = DEADLINE) -> None:
        self.warm, self.sample, self.deadline = warm, sample, deadline
        driver = triton().runtime.driver.active
        self.device = driver.get_device_interface()
        self.flushed = driver.get_empty_cache_for_benchmark()
        self._clear = getattr(driver, "clear_cache", None)
        self._is_warm = False

    def _event(self) -> Any:
        return self.device.Event(enable_timing=True)

    def _wait(self, event: Any, begin: float) -> None:
        pause = 0.0
        try:
            while not event.query():
                if time.monotonic() - begin > self.deadline:
                    raise Hung(f"a kernel has not ended after {self.deadline:g} s")
                time.sleep(pause)
                pause = min(0.005, pause + 0.0001)
        except RuntimeError as error:
            if isinstance(error, errors.Error):
                raise
            raise Lost(str(error).splitlines()[0]) from error

    def check(self) -> None:
        """Raises Lost if nothing can be launched any more."""
        try:
            self.device.synchronize()
        except RuntimeError as error:
            raise Lost(str(error).splitlines()[0]) from error

    def _samples(self, launch: Launch, count: int, seconds: float = float("inf")) -> list[float]:
        """Milliseconds. What is in flight at once is limited, so that a deadline holds for a few launches."""
        begin, samples = time.monotonic(), []
        while len(samples) < count and (not samples or time.monotonic() - begin < seconds):
            pairs = []
            for _ in range(min(10, count - len(samples))):
                first, last = self._event(), self._event()
                launch.before()
                self._clear(self.flushed) if self._clear else self.flushed.zero_()
                first.record()
                launch.run()
                last.record()
                launch.after()
                pairs.append((first, last))
            self._wait(pairs[-1][1], time.monotonic())
            samples += [first.elapsed_time(last) for first, last in pairs]
        return samples

    def _first(self, launch: Launch) -> None:
        """Loads the code. What is wrong with a config is seen here."""
        end = self._event()
        launch()
        end.record()
        self._wait(end, time.monotonic())

    def __call__(self, launch: Launch, incumbent: Optional[float]) -> Timing:
        """`incumbent`: milliseconds of the best so far."""
        self._first(launch)
        if not self._is_warm:  # clocks rise when there is something to do
            self._samples(launch, MOST_SAMPLES, self.warm)
            self._is_warm = True
        samples = self._samples(launch, COARSE_SAMPLES)
        if incumbent is not None and min(samples) > HOPELESS * incumbent:
            return timing_of(samples)
        wanted = int(1000 * self.sample / max(1e-3, min(samples)))
        samples += self._samples(launch, min(MOST_SAMPLES, max(LEAST_SAMPLES, wanted)) - len(samples))
        return timing_of(samples)


class UserTimer:
    """A benchmark with the contract of triton.autotune's `do_bench`: (function, quantiles) -> milliseconds."""

    def __init__(self, bench: Callable[..., Any]) -> None:
        self.bench = bench

    def __call__(self, launch: Launch, incumbent: Optional[float]) -> Timing:
        found = self.bench(launch, quantiles=(0.5, 0.2, 0.8))
        ms, low, high = (float(value) for value in found) if hasattr(found, "__len__") else (float(found),) * 3
        if not 0 < ms < float("inf"):
            raise errors.UnsupportedError(f"do_bench gave {ms} ms")
        return Timing(ms, min(low, ms), max(high, ms), 1)


def timer_for(do_bench: Optional[Callable[..., Any]], warmup: Optional[float], rep: Optional[float],
              use_cuda_graph: bool) -> Callable[[Launch, Optional[float]], Timing]:
    """By the arguments of triton.autotune; times in milliseconds."""
    if do_bench is not None:
        return UserTimer(do_bench)
    if use_cuda_graph:
        from triton.testing import do_bench_cudagraph
        return UserTimer(lambda call, quantiles: do_bench_cudagraph(call, rep=rep or 20, quantiles=quantiles))
    return DeviceTimer(WARM_SECONDS if warmup is None else warmup / 1e3, SAMPLE_SECONDS if rep is None else rep / 1e3)
