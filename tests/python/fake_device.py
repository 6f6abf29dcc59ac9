"""A GPU that is not there, for Triton's launches: its clock is advanced by what a kernel is said to take."""

import types
from contextlib import contextmanager

import triton


class Clock:
    """Milliseconds."""

    now = 0.0


class Event:
    def __init__(self, enable_timing=True):
        self.time = None

    def record(self):
        self.time = Clock.now

    def query(self):
        return self.time != float("inf")

    def elapsed_time(self, other):
        return other.time - self.time


class Driver:
    """What Triton asks its active driver for."""

    def __init__(self, arch=90, name="NVIDIA H100 80GB HBM3"):
        self.arch = arch
        self.interface = types.SimpleNamespace(Event=Event, synchronize=lambda: None, get_device_name=lambda: name)

    def get_current_target(self):
        from triton.backends.compiler import GPUTarget
        return GPUTarget("cuda", self.arch, 32)

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0

    def get_device_interface(self):
        return self.interface

    def get_empty_cache_for_benchmark(self):
        return types.SimpleNamespace(zero_=lambda: None)

    def clear_cache(self, cache):
        Clock.now += 0.1

    def get_benchmarker(self):
        def bench(call, quantiles):
            begin = Clock.now
            call()
            return [Clock.now - begin] * 3
        return bench


@contextmanager
def active(driver):
    """Makes it Triton's driver meanwhile."""
    config = triton.runtime.driver
    name = "_active" if hasattr(config, "_active") else "active"
    before = getattr(config, name)
    config.set_active(driver)
    try:
        yield
    finally:
        setattr(config, name, before)


class Kernel:
    """Replaces the launches of a @triton.jit function while it is entered."""

    def __init__(self, function, milliseconds, driver=None):
        self.function, self.milliseconds, self.driver = function, milliseconds, driver or Driver()
        self.active, self.launches = active(self.driver), []

    def __enter__(self):
        self.active.__enter__()
        self.function.run = self.run
        return self

    def __exit__(self, *_):
        del self.function.run
        self.active.__exit__(None, None, None)

    def run(self, *args, **kwargs):
        named = {**dict(zip(self.function.arg_names, args)), **kwargs}
        self.launches.append(named)
        Clock.now += self.milliseconds(named)
