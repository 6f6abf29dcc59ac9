"""Triton's matmul, x[m, k] * w[n, k], and the search over its configs: a peer of the table.

One block a tile, grouped so that neighbours share operands in the L2, pointers and masks. The
configs are compiled by many processes first (`triton_matmul.py DTYPE M N K NUMBER/COUNT` is one of
them) and raced afterwards, as a cache that is full already would have it; both times are told.
"""

import itertools
import os
import subprocess
import sys
import time

import torch
import triton
import triton.language as tl
from triton.runtime.errors import OutOfResources, PTXASError

from timing import medians

GROUP = 8
DEPTHS = 32, 64, 128
WORKERS = 12
SHARED = 232448  # bytes a block may have on sm_90
FINALISTS = 6


@triton.jit
def matmul_kernel(y, x, w, m, n, k, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
                  GROUP: tl.constexpr, WHOLE: tl.constexpr):
    number = tl.program_id(0)
    high, wide = tl.cdiv(m, ROWS), tl.cdiv(n, COLUMNS)
    first = number // (GROUP * wide) * GROUP
    size = min(high - first, GROUP)
    row = first + number % (GROUP * wide) % size
    column = number % (GROUP * wide) // size
    rows = row * ROWS + tl.arange(0, ROWS)
    columns = column * COLUMNS + tl.arange(0, COLUMNS)
    depths = tl.arange(0, DEPTH)
    # What lies outside is read twice and not stored.
    a = x + (rows % m)[:, None].to(tl.int64) * k + depths[None, :]
    b = w + (columns % n)[None, :].to(tl.int64) * k + depths[:, None]
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, k, DEPTH):
        if WHOLE:
            total = tl.dot(tl.load(a), tl.load(b), total)
        else:
            inside = start + depths < k
            total = tl.dot(tl.load(a, inside[None, :], other=0.0),
                           tl.load(b, inside[:, None], other=0.0), total)
        a += DEPTH
        b += DEPTH
    at = y + rows[:, None].to(tl.int64) * n + columns[None, :]
    tl.store(at, total.to(y.dtype.element_ty), (rows < m)[:, None] & (columns < n)[None, :])


def configs(m):
    """(rows, columns, depth, warps, stages): those that fit, and suit so many rows."""
    high = (16, 32, 64) if m <= 64 else (64, 128, 256)
    for rows, columns, depth, warps, stages in itertools.product(
            high, (32, 64, 128, 256), DEPTHS, (4, 8), (3, 4, 5)):
        fits = stages * depth * (rows + columns) * 2 <= SHARED
        if fits and rows * columns <= (1 << 15) and (warps == 8 or rows * columns <= 128 * 128):
            yield rows, columns, depth, warps, stages


def arguments_of(config, m, n, k):
    rows, columns, depth, warps, stages = config
    constants = dict(ROWS=rows, COLUMNS=columns, DEPTH=depth, GROUP=GROUP, WHOLE=k % depth == 0)
    grid = (triton.cdiv(m, rows) * triton.cdiv(n, columns),)
    return grid, dict(constants, num_warps=warps, num_stages=stages)


def run_of(config, y, x, w):
    (m, k), n = x.shape, w.shape[0]
    grid, constants = arguments_of(config, m, n, k)

    def run():
        matmul_kernel[grid](y, x, w, m, n, k, **constants)

    return run


def compile_some(words):
    """One process's share; what it compiles lies in Triton's cache afterwards."""
    dtype = getattr(torch, words[0])
    m, n, k = map(int, words[1:4])
    number, count = map(int, words[4].split("/"))
    for config in list(configs(m))[number::count]:
        grid, constants = arguments_of(config, m, n, k)
        try:
            matmul_kernel.warmup(dtype, dtype, dtype, m, n, k, grid=grid, **constants)
        except Exception as problem:  # it drops out of the race, too
            print(f"{config}: {str(problem)[:200]}", file=sys.stderr)


def compile_all(dtype, m, n, k):
    words = [str(dtype).removeprefix("torch."), str(m), str(n), str(k)]
    count = min(WORKERS, os.cpu_count() or 1)
    workers = [subprocess.Popen([sys.executable, os.path.abspath(__file__), *words, f"{i}/{count}"],
                                stderr=subprocess.DEVNULL) for i in range(count)]
    for worker in workers:
        worker.wait()


def kind_of(dtype, m, n, k):
    """Shapes of one kind have the same kernels."""
    whole = tuple(size % 16 == 0 for size in (m, n, k))
    return dtype, m <= 64, whole, tuple(k % depth == 0 for depth in DEPTHS)


class Tuner:
    def __init__(self, clock):
        self.clock, self.compiled = clock, {}

    def _compile(self, dtype, m, n, k):
        """Seconds that it took for the first shape of this kind."""
        kind = kind_of(dtype, m, n, k)
        if kind not in self.compiled:
            began = time.monotonic()
            compile_all(dtype, m, n, k)
            self.compiled[kind] = time.monotonic() - began
        return self.compiled[kind]

    def tune(self, y, x, w):
        """The fastest config's run, and what finding it took."""
        (m, k), n = x.shape, w.shape[0]
        compiling = self._compile(x.dtype, m, n, k)
        began, times = time.monotonic(), {}
        for config in configs(m):
            run = run_of(config, y, x, w)
            try:
                run()
                self.clock.stream.synchronize()
            except (OutOfResources, PTXASError):
                continue
            times[config] = min(self.clock.race({config: run}, 2, True)[config])
        few = sorted(times, key=times.get)[:FINALISTS]
        finals = medians(self.clock.race({config: run_of(config, y, x, w) for config in few}, 9,
                                         True))
        best = min(finals, key=finals.get)
        return run_of(best, y, x, w), dict(
            config=best, configs=len(times), compile_seconds=round(compiling, 2),
            timing_seconds=round(time.monotonic() - began, 2))


if __name__ == "__main__":
    compile_some(sys.argv[1:])
