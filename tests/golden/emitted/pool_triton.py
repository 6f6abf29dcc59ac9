"""pool: an operator

The definition:

    y[n, h, w] = max(r in 0..R) x[n, h*S + r, w]
    place[n] = cast(i32, argmax(h, w) x[n, h, w])

Kernels:

    _pool_y_kernel: a tile of the output per program
    _pool_place_kernel: rows of outputs per program, which walk the reduced indices in blocks; few
        outputs share the walk (_part, _end)
    _pool_y_f64_kernel: a tile of the output per program
    _pool_place_f64_kernel: rows of outputs per program, which walk the reduced indices in blocks;
        few outputs share the walk (_part, _end)

The narrow floats are computed in float32 and rounded once, when they are stored.

On Ascend (device npu):

    grid: one dimension, a program for each vector core, which takes tiles in turns
    unified buffer: 96 of 192 KiB for a tile, as much for the next one's transfers
        _pool_y_kernel: 12 values of 4 bytes for an element, at most 2048 elements: 96 KiB
        _pool_place_kernel: 36 values of 4 bytes for an element, at most 512 elements: 72 KiB
        _pool_y_f64_kernel: 24 values of 4 bytes for an element, at most 1024 elements: 96 KiB
        _pool_place_f64_kernel: 36 values of 4 bytes for an element, at most 512 elements: 72 KiB
    tails: no padding of x if W % 8 == 0, y if W % 8 == 0, place if N % 8 == 0
    not there: f64
    element by element: 64-bit integers (10)
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import threading
import typing

import torch
import triton
import triton.language as tl

# Whether launches time blocks, warps and stages near those that follow from the shape, and
# keep the fastest: for a shape that is used very often. It is slow the first time.
AUTOTUNE = os.environ.get("KERNELGEN_AUTOTUNE", "0") == "1"

R = 3
S = 2


@triton.jit
def _number(turn, last):
    """Of a program's tile in this turn. Tiles behind the last one are the last one again."""
    return tl.minimum(tl.program_id(0) + turn * tl.num_programs(0), last)


@triton.jit
def _place(turn, last, across):
    """The same where tiles lie side by side. GPUs count along both dimensions of the grid: there is
    one turn, and `across` is 1."""
    number = _number(turn, last)
    return number // across, number % across + tl.program_id(1)


@triton.jit
def _quotient(a, b, magic):
    """a // b, neither of which is negative. Dividing takes some twenty instructions; the product
    with what _magic made of b has the quotient in its upper half."""
    if magic is None:
        return a // b
    else:
        high = tl.umulhi(a.to(tl.uint32), magic.to(tl.uint32))
        return (high >> ((magic >> 32).to(tl.uint32) & 31)).to(tl.int32)


@triton.jit
def _remainder(a, quotient, b, magic):
    if magic is None:
        return a % b
    else:
        return a - quotient * b


@triton.jit
def _maximum(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _largest(x, axis: tl.constexpr, keep_dims: tl.constexpr = False):
    """NaN if any element is NaN, in one pass: a second one for NaN alone takes as long."""
    return tl.reduce(x, axis, _maximum, keep_dims=keep_dims)


@triton.jit
def _first_place(values, places, best, axis: tl.constexpr, keep_dims: tl.constexpr = False):
    """The first place of the best value, which is NaN if any is; -1: there are no values."""
    hit = ((values == best) | ((values != values) & (best != best))) & (places >= 0)
    behind: tl.constexpr = 9223372036854775807 if places.dtype == tl.int64 else 2147483647
    first = tl.min(tl.where(hit, places, behind), axis, keep_dims=keep_dims)
    return tl.where(first == behind, -1, first)


@triton.jit(do_not_specialize=["h_magic"])
def _pool_y_kernel(
    x_ptr, y_ptr, x_s0, x_s1, x_s2, y_s0, y_s1, y_s2, turns, last, across, h_magic, N, H, W,
    h_end, R: tl.constexpr, S: tl.constexpr, INDEX: tl.constexpr, BLOCK_ROWS: tl.constexpr,
    BLOCK_COLS: tl.constexpr,
):
    """y[n, h, w] = max(r in 0..3) x[n, h*2 + r, w]"""
    for turn in range(turns):
        program, program_col = _place(turn, last, across)
        row = program.to(INDEX) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
        row = tl.minimum(row, N * h_end - 1)[:, None]
        n = _quotient(row, h_end, h_magic)
        h = _remainder(row, n, h_end, h_magic)
        w = (program_col.to(INDEX) * BLOCK_COLS + tl.arange(0, BLOCK_COLS))[None, :]
        w_in = w < W
        total = tl.full([BLOCK_ROWS, BLOCK_COLS], float("-inf"), tl.float32)
        for r_step in range(0, R):
            r = tl.cast(r_step, INDEX)
            x_i1 = h * S + r
            x = tl.load(x_ptr + n * x_s0 + x_i1 * x_s1 + w * x_s2, mask=w_in & (x_i1 >= 0) & (x_i1 <
                    H), other=0).to(tl.float32)
            total = _maximum(total, x)
        tl.store(y_ptr + n * y_s0 + h * y_s1 + w * y_s2, total, mask=w_in)


@triton.jit
def _pool_place_kernel(
    x_ptr, place_ptr, x_s0, x_s1, x_s2, place_s0, turns, last, N, H, W, INDEX: tl.constexpr,
    ONCE: tl.constexpr, BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr,
):
    """place_1[n] = argmax(h, w) x[n, h, w]
    place[n] = cast(i32, place_1[n])
    """
    for turn in range(turns):
        program = _number(turn, last)
        n = (program.to(INDEX) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS))[:, None]
        n_in = n < N
        total = tl.full([BLOCK_ROWS, BLOCK_COLS], float("-inf"), tl.float32)
        place = tl.full([BLOCK_ROWS, BLOCK_COLS], -1, INDEX)
        for start in range(0, H * W, BLOCK_COLS):
            col = tl.cast(start, INDEX) + tl.arange(0, BLOCK_COLS)[None, :]
            col_in = col < H * W
            h = col // W
            w = col % W
            x = tl.load(x_ptr + n * x_s0 + h * x_s1 + w * x_s2, mask=n_in & col_in, other=0,
                    eviction_policy=ONCE).to(tl.float32)
            value = x
            better = (place < 0) | (value > total) | ((value != value) & (total == total))
            better = better & col_in
            total = tl.where(better, value, total)
            place = tl.where(better, tl.cast(h * W + w, INDEX), place)
        place_1 = _first_place(total, place, _largest(total, 1, keep_dims=True), 1,
                keep_dims=True).to(tl.int64)
        tl.store(place_ptr + n * place_s0, place_1.to(tl.int32).to(tl.int64), mask=n_in)


@triton.jit
def _pool_place_part_kernel(
    x_ptr, part_ptr, place_ptr, chunk, x_s0, x_s1, x_s2, turns, last, across, N, H, W,
    INDEX: tl.constexpr, ONCE: tl.constexpr, BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr,
):
    """place_1[n] = argmax(h, w) x[n, h, w]
    place[n] = cast(i32, place_1[n])
    """
    for turn in range(turns):
        program, program_col = _place(turn, last, across)
        n = (program.to(INDEX) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS))[:, None]
        n_in = n < N
        split = program_col
        total = tl.full([BLOCK_ROWS, BLOCK_COLS], float("-inf"), tl.float32)
        place = tl.full([BLOCK_ROWS, BLOCK_COLS], -1, INDEX)
        begin = split * chunk
        for start in range(begin, tl.minimum(begin + chunk, H * W), BLOCK_COLS):
            col = tl.cast(start, INDEX) + tl.arange(0, BLOCK_COLS)[None, :]
            col_in = col < H * W
            h = col // W
            w = col % W
            x = tl.load(x_ptr + n * x_s0 + h * x_s1 + w * x_s2, mask=n_in & col_in, other=0,
                    eviction_policy=ONCE).to(tl.float32)
            value = x
            better = (place < 0) | (value > total) | ((value != value) & (total == total))
            better = better & col_in
            total = tl.where(better, value, total)
            place = tl.where(better, tl.cast(h * W + w, INDEX), place)
        best = _largest(total, 1, keep_dims=True)
        tl.store(part_ptr + split * N + n, best, mask=n_in)
        tl.store(place_ptr + split * N + n, _first_place(total, place, best, 1,
                keep_dims=True).to(tl.int64), mask=n_in)


@triton.jit
def _pool_place_end_kernel(
    place_ptr_1, part_ptr, place_ptr, place_s0, turns, last, N, INDEX: tl.constexpr,
    BLOCK_ROWS: tl.constexpr, BLOCK_SPLITS: tl.constexpr,
):
    """place_1[n] = argmax(h, w) x[n, h, w]
    place[n] = cast(i32, place_1[n])
    """
    for turn in range(turns):
        program = _number(turn, last)
        n = (program.to(INDEX) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS))[:, None]
        n_in = n < N
        split = tl.arange(0, BLOCK_SPLITS)[None, :]
        total = tl.load(part_ptr + split * N + n, mask=n_in, other=0)
        place = tl.load(place_ptr + split * N + n, mask=n_in, other=0)
        place_1 = _first_place(total, place, _largest(total, 1, keep_dims=True), 1,
                keep_dims=True).to(tl.int64)
        tl.store(place_ptr_1 + n * place_s0, place_1.to(tl.int32).to(tl.int64), mask=n_in)


@triton.jit(do_not_specialize=["h_magic"])
def _pool_y_f64_kernel(
    x_ptr, y_ptr, x_s0, x_s1, x_s2, y_s0, y_s1, y_s2, turns, last, across, h_magic, N, H, W,
    h_end, R: tl.constexpr, S: tl.constexpr, INDEX: tl.constexpr, BLOCK_ROWS: tl.constexpr,
    BLOCK_COLS: tl.constexpr,
):
    """y[n, h, w] = max(r in 0..3) x[n, h*2 + r, w]"""
    for turn in range(turns):
        program, program_col = _place(turn, last, across)
        row = program.to(INDEX) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
        row = tl.minimum(row, N * h_end - 1)[:, None]
        n = _quotient(row, h_end, h_magic)
        h = _remainder(row, n, h_end, h_magic)
        w = (program_col.to(INDEX) * BLOCK_COLS + tl.arange(0, BLOCK_COLS))[None, :]
        w_in = w < W
        total = tl.full([BLOCK_ROWS, BLOCK_COLS], float("-inf"), tl.float64)
        for r_step in range(0, R):
            r = tl.cast(r_step, INDEX)
            x_i1 = h * S + r
            x = tl.load(x_ptr + n * x_s0 + x_i1 * x_s1 + w * x_s2, mask=w_in & (x_i1 >= 0) & (x_i1 <
                    H), other=0).to(tl.float64)
            total = _maximum(total, x)
        tl.store(y_ptr + n * y_s0 + h * y_s1 + w * y_s2, total, mask=w_in)


@triton.jit
def _pool_place_f64_kernel(
    x_ptr, place_ptr, x_s0, x_s1, x_s2, place_s0, turns, last, N, H, W, INDEX: tl.constexpr,
    ONCE: tl.constexpr, BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr,
):
    """place_1[n] = argmax(h, w) x[n, h, w]
    place[n] = cast(i32, place_1[n])
    """
    for turn in range(turns):
        program = _number(turn, last)
        n = (program.to(INDEX) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS))[:, None]
        n_in = n < N
        total = tl.full([BLOCK_ROWS, BLOCK_COLS], float("-inf"), tl.float64)
        place = tl.full([BLOCK_ROWS, BLOCK_COLS], -1, INDEX)
        for start in range(0, H * W, BLOCK_COLS):
            col = tl.cast(start, INDEX) + tl.arange(0, BLOCK_COLS)[None, :]
            col_in = col < H * W
            h = col // W
            w = col % W
            x = tl.load(x_ptr + n * x_s0 + h * x_s1 + w * x_s2, mask=n_in & col_in, other=0,
                    eviction_policy=ONCE).to(tl.float64)
            value = x
            better = (place < 0) | (value > total) | ((value != value) & (total == total))
            better = better & col_in
            total = tl.where(better, value, total)
            place = tl.where(better, tl.cast(h * W + w, INDEX), place)
        place_1 = _first_place(total, place, _largest(total, 1, keep_dims=True), 1,
                keep_dims=True).to(tl.int64)
        tl.store(place_ptr + n * place_s0, place_1.to(tl.int32).to(tl.int64), mask=n_in)


@triton.jit
def _pool_place_f64_part_kernel(
    x_ptr, part_ptr, place_ptr, chunk, x_s0, x_s1, x_s2, turns, last, across, N, H, W,
    INDEX: tl.constexpr, ONCE: tl.constexpr, BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr,
):
    """place_1[n] = argmax(h, w) x[n, h, w]
    place[n] = cast(i32, place_1[n])
    """
    for turn in range(turns):
        program, program_col = _place(turn, last, across)
        n = (program.to(INDEX) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS))[:, None]
        n_in = n < N
        split = program_col
        total = tl.full([BLOCK_ROWS, BLOCK_COLS], float("-inf"), tl.float64)
        place = tl.full([BLOCK_ROWS, BLOCK_COLS], -1, INDEX)
        begin = split * chunk
        for start in range(begin, tl.minimum(begin + chunk, H * W), BLOCK_COLS):
            col = tl.cast(start, INDEX) + tl.arange(0, BLOCK_COLS)[None, :]
            col_in = col < H * W
            h = col // W
            w = col % W
            x = tl.load(x_ptr + n * x_s0 + h * x_s1 + w * x_s2, mask=n_in & col_in, other=0,
                    eviction_policy=ONCE).to(tl.float64)
            value = x
            better = (place < 0) | (value > total) | ((value != value) & (total == total))
            better = better & col_in
            total = tl.where(better, value, total)
            place = tl.where(better, tl.cast(h * W + w, INDEX), place)
        best = _largest(total, 1, keep_dims=True)
        tl.store(part_ptr + split * N + n, best, mask=n_in)
        tl.store(place_ptr + split * N + n, _first_place(total, place, best, 1,
                keep_dims=True).to(tl.int64), mask=n_in)


@triton.jit
def _pool_place_f64_end_kernel(
    place_ptr_1, part_ptr, place_ptr, place_s0, turns, last, N, INDEX: tl.constexpr,
    BLOCK_ROWS: tl.constexpr, BLOCK_SPLITS: tl.constexpr,
):
    """place_1[n] = argmax(h, w) x[n, h, w]
    place[n] = cast(i32, place_1[n])
    """
    for turn in range(turns):
        program = _number(turn, last)
        n = (program.to(INDEX) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS))[:, None]
        n_in = n < N
        split = tl.arange(0, BLOCK_SPLITS)[None, :]
        total = tl.load(part_ptr + split * N + n, mask=n_in, other=0)
        place = tl.load(place_ptr + split * N + n, mask=n_in, other=0)
        place_1 = _first_place(total, place, _largest(total, 1, keep_dims=True), 1,
                keep_dims=True).to(tl.int64)
        tl.store(place_ptr_1 + n * place_s0, place_1.to(tl.int32).to(tl.int64), mask=n_in)


class _Tile(typing.NamedTuple):
    rows: int
    cols: int
    warps: int


def _most(device: torch.device, values: int, registers: int = 16384) -> int:
    """Elements of a tile at most. On Ascend all values of a tile lie in the unified buffer of 192
    KiB, half of which serves the transfers of the next tile; elsewhere registers hold them."""
    if device.type != "npu":
        return registers
    fits = 96 * 1024 // (4 * values)
    return 1 << (max(fits, 1).bit_length() - 1)


def _cdiv(a: int, b: int) -> int:
    """a / b rounded up. triton.cdiv and triton.next_power_of_2, which kernels may call too, take
    the host microseconds each."""
    return -(-a // b)


def _power(n: int) -> int:
    """The power of two that is n or follows it."""
    return 1 << (max(n, 1) - 1).bit_length()


@functools.cache
def _programs(device: torch.device) -> int:
    """How many programs keep a device busy: four on each multiprocessor of a GPU. Elsewhere one, as
    a core that takes tiles in turns gains nothing by smaller ones."""
    if device.type != "cuda":
        return 1
    return 4 * torch.cuda.get_device_properties(device).multi_processor_count


def _share(elements: int, programs: int) -> int:
    """Elements of a tile, so that there are that many programs; at least 128, which one warp loads
    in vectors."""
    return max(_power(_cdiv(elements, programs)), 128)


def _warps(elements: int, most: int) -> int:
    """8 elements a thread: 128 bits of 2-byte floats."""
    return min(max(elements // 256, 1), most)


def _cores(device: torch.device, cube: bool) -> int:
    """Of an Ascend device: those with a cube unit, or all vector cores. 0: each tile has a program
    of its own, as on GPUs."""
    if device.type != "npu":
        return 0
    found = triton.runtime.driver.active.utils.get_device_properties(torch.npu.current_device())
    return found["num_aicore" if cube else "num_vectorcore"]


def _spread(
    device: torch.device, grid: typing.Any, cube: bool = False, **blocks: int
) -> tuple[typing.Any, int, int, int]:
    """The grid to launch, the turns of each program, the number of the last tile, and how many
    tiles lie side by side. On Ascend a program for each core takes tiles in turns, as starting a
    program costs a core more than the next turn."""
    cores = _cores(device, cube)
    if not cores:
        return grid, 1, 2**31 - 1, 1
    tiles = grid(blocks) if callable(grid) else grid
    turns = _cdiv(math.prod(tiles), cores)
    across = tiles[1] if len(tiles) > 1 else 1
    return (_cdiv(math.prod(tiles), turns),), turns, math.prod(tiles) - 1, across


def _configs(blocks: dict, varied: tuple, warps: int, stages: int) -> list:
    """What the module would choose, and what is one step from it: half and twice of each block, of
    the warps, and of what is under way. Further away, an estimate by shape is seldom wrong."""
    near = [triton.Config(blocks, num_warps=warps, num_stages=stages)]
    near += [triton.Config(blocks, num_warps=w, num_stages=stages)
             for w in (warps // 2, warps * 2) if 1 <= w <= 32]
    near += [triton.Config(blocks, num_warps=warps, num_stages=s)
             for s in (stages - 1, stages + 1) if s >= 1 and "BLOCK_K" in blocks]
    for name in varied:
        least = 16 if "BLOCK_K" in blocks else 1
        near += [triton.Config({**blocks, name: size}, num_warps=warps, num_stages=stages)
                 for size in (blocks[name] // 2, blocks[name] * 2) if size >= least]
    return near


class _Autotuned:
    """Launches a kernel by triton.autotune: the first time for each shape it times the configs that
    are near to what the module chooses. Kernels write each output once and read none, so that they
    can be repeated."""

    tuners: dict = {}

    def __init__(self, kernel: typing.Any, varied: tuple):
        self.kernel, self.varied = kernel, varied

    def __getitem__(self, grid: typing.Any) -> typing.Any:
        def launch(*arguments, num_warps, num_stages=3, **constants):
            if any(a.device.type == "npu" for a in arguments if isinstance(a, torch.Tensor)):
                # The turns of programs belong to the blocks that were chosen.
                return self.kernel[grid](*arguments, **constants)
            blocks = {n: constants.pop(n) for n in list(constants) if n.startswith("BLOCK_")}
            place = (self.kernel, num_warps, num_stages, *blocks.items())
            if place not in self.tuners:
                sizes = [n for n, a in zip(self.kernel.arg_names, arguments) if isinstance(a, int)]
                configs = _configs(blocks, self.varied, num_warps, num_stages)
                # Only the first dimension of a grid is longer than that.
                configs = [c for c in configs if all(n <= 65535 for n in grid(c.kwargs)[1:])]
                self.tuners[place] = triton.autotune(configs=configs, key=sizes)(self.kernel)
            self.tuners[place][grid](*arguments, **constants)

        return launch


class _Plan:
    """What a call allocates and launches. It is the same for all calls with tensors of the same
    shapes, strides and dtypes on one device, which need not find it out again."""

    def __init__(self, inputs: tuple):
        self.tensors, self.allocations, self.launches = list(inputs), [], []
        self.complete = True

    def place(self, tensor: torch.Tensor) -> tuple[int, bool]:
        """Which tensor of the call it is, and whether as bytes."""
        for i, known in enumerate(self.tensors):
            if tensor is known:
                return i, False
        address = tensor.data_ptr()  # 0: it is empty, and so may others be
        for i, known in enumerate(self.tensors):
            if tensor.dtype == torch.uint8 and address == known.data_ptr() != 0:
                return i, True
        self.complete = False
        return 0, False

    def add(self, kernel: typing.Any, grid: typing.Any, arguments: tuple, constants: dict) -> None:
        if callable(grid) and not isinstance(kernel, _Autotuned):
            grid = grid(constants)
        tensors = [i for i, a in enumerate(arguments) if isinstance(a, torch.Tensor)]
        places = [(i, *self.place(arguments[i])) for i in tensors]
        others = [None if isinstance(a, torch.Tensor) else a for a in arguments]
        self.launches.append((kernel, grid, others, places, constants))

    def finish(self, results: typing.Any) -> bool:
        """Whether the plan is complete. It keeps no tensor."""
        self.single = isinstance(results, torch.Tensor)
        self.results = [self.place(r)[0] for r in ((results,) if self.single else results)]
        self.device = self.tensors[-1].device
        self.tensors = None
        return self.complete

    def run(self, inputs: tuple) -> typing.Any:
        tensors, device = list(inputs), self.device
        for shape, dtype in self.allocations:
            tensors.append(torch.empty(shape, dtype=dtype, device=device))
        with _on(device):
            for kernel, grid, others, places, constants in self.launches:
                arguments = others.copy()
                for i, number, as_bytes in places:
                    tensor = tensors[number]
                    arguments[i] = tensor.view(torch.uint8) if as_bytes else tensor
                kernel[grid](*arguments, **constants)
        results = [tensors[i] for i in self.results]
        return results[0] if self.single else tuple(results)


# The plan that the thread's call writes down.
_recorded = threading.local()


def _planned(function: typing.Any) -> typing.Any:
    """The function, which checks its inputs, chooses blocks and launches; from the second call for
    the same shapes on only the last of these. torch.compile sees the function itself."""
    plans = {}

    @functools.wraps(function)
    def call(*inputs, **options):
        if torch.compiler.is_compiling():
            return function(*inputs, **options)
        try:
            key = (AUTOTUNE, *[(t.shape, t.stride(), t.dtype, t.device) for t in inputs],
                   *options.items())
            plan = plans.get(key)
        except (AttributeError, TypeError):  # the function says what is wrong
            return function(*inputs, **options)
        if plan:
            return plan.run(inputs)
        # Of tensors that lie in one place nobody could tell which of them a launch takes.
        apart = len({t.data_ptr() for t in inputs}) == len(inputs) > 0
        named = any(isinstance(value, torch.Tensor) for value in options.values())
        if plan is not None or named or not apart:
            return function(*inputs, **options)
        plan = _recorded.plan = _Plan(inputs)
        try:
            results = function(*inputs, **options)
        finally:
            _recorded.plan = None
        if len(plans) >= 1024:
            plans.clear()
        plans[key] = plan.finish(results) and plan  # False: it is found out each time
        return results

    return call


def _empty(shape: tuple, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Memory for an output, or between two launches."""
    made = torch.empty(shape, dtype=dtype, device=device)
    plan = getattr(_recorded, "plan", None)
    if plan is not None:
        plan.allocations.append((shape, dtype))
        plan.tensors.append(made)
    return made


class _Recorded:
    """A kernel whose launches go into a plan, too."""

    def __init__(self, kernel: typing.Any, plan: _Plan):
        self.kernel, self.plan = kernel, plan

    def __getitem__(self, grid: typing.Any) -> typing.Any:
        def launch(*arguments, **constants):
            self.plan.add(self.kernel, grid, arguments, constants)
            self.kernel[grid](*arguments, **constants)

        return launch


def _launcher(kernel: typing.Any, *varied: str) -> typing.Any:
    """What launches the kernel; where AUTOTUNE is set, in the form that also tries other values of
    the blocks `varied`, if there are such. Triton's interpreter has nothing to time."""
    if varied and AUTOTUNE and os.environ.get("TRITON_INTERPRET", "0") != "1":
        kernel = _Autotuned(kernel, varied)
    plan = getattr(_recorded, "plan", None)
    return kernel if plan is None else _Recorded(kernel, plan)


def _tile(rows: int, cols: int, most: int, programs: int) -> _Tile:
    """Blocks of an output of rows x cols: wide along the columns, where memory is contiguous, and
    about 2048 elements a program, fewer where that leaves a part of the device idle. A grid has at
    most 65535 programs along the columns."""
    share = _share(rows * cols, programs)
    width = min(_power(cols), 1024, max(most // 2, 1), share)
    if cols > 65535 * width:
        width = min(_power(_cdiv(cols, 65535)), most)
    height = min(_power(rows), max(min(2048, most, share) // width, 1))
    return _Tile(height, width, _warps(height * width, 8))


def _merge(sizes: tuple, *strides: tuple) -> list:
    """Sizes of a walk over the same elements: axes that lie one behind another in all tensors are
    one, of which the inner axis counts all elements and the outer one is 1."""
    merged, inner = list(sizes), len(sizes) - 1
    for axis in range(inner - 1, -1, -1):
        whole = merged[inner] * sizes[axis]
        if whole < 2**30 and all(s[axis] == s[inner] * merged[inner] for s in strides):
            merged[inner], merged[axis] = whole, 1
        else:
            inner = axis
    return merged


def _step(tensor: torch.Tensor, dim: int, size: int) -> int:
    """The stride along an axis of a merged size: 0 where it has a single value, as a multiple of 16
    lets the compiler load vectors."""
    return tensor.stride(dim) if size > 1 else 0


def _magic(device: torch.device, index: tl.dtype, divisor: int) -> int | None:
    """What multiplies a number below 2^31 instead of dividing it: p being 31 + ceil(log2(divisor)),
    ceil(2^p / divisor) has 32 bits, and its product with the number, shifted by p, is the quotient
    (Granlund and Montgomery). None: kernels divide, where offsets have 64 bits, and on Ascend,
    whose compiler knows quotients and remainders. 1 is a constant of a compiled kernel."""
    if device.type == "npu" or index is tl.int64 or divisor <= 1:
        return None
    shift = (divisor - 1).bit_length()
    # The bit on top makes every argument one of 64 bits.
    return 1 << 62 | shift - 1 << 32 | -(-(1 << 31 + shift) // divisor)


class _Reduction(typing.NamedTuple):
    rows: int
    cols: int
    splits: int
    warps: int


def _splits(programs: int, cols: int, step: int, most: int) -> int:
    """How many programs share a row, a power of two: about 1024 in all, as many as keep the memory
    of a large device busy, each with at least two steps. One program folds up to `most` parts."""
    wanted = max(min(1024 // programs, cols // (2 * step), most), 1)
    return 1 << (wanted.bit_length() - 1)


def _reduce_tile(
    rows: int, cols: int, most: int, programs: int, shared: bool = True
) -> _Reduction:
    """Blocks of a reduction along memory: up to 2048 elements of a row a step, 16 a thread, and
    more rows where they are short, unless that leaves a part of the device idle. Where there are
    fewer rows than multiprocessors, up to 8192 elements are one step of one program, as a second
    launch would take longer; of longer rows each program has one step, if two would leave
    multiprocessors idle. `shared`: whether programs can share a row."""
    share, processors = _share(rows * cols, programs), programs // 4
    width = min(_power(cols), 2048, most)
    if rows < processors and cols <= 8192:
        width = min(_power(cols), most)
        return _Reduction(1, width, 1, _warps(width, 32))
    height = min(_power(rows), max(min(1024, most, share) // width, 1))
    splits = _splits(_cdiv(rows, height), cols, width, most // height)
    if shared and rows * splits < processors:
        parts = max(min(_power(processors) // rows, cols // 256), 1)
        splits = 1 << (parts.bit_length() - 1)
        width = min(_power(_cdiv(cols, splits)), 2048)
        return _Reduction(height, width, splits, _warps(2 * width, 8))
    return _Reduction(height, width, splits, _warps(height * width, 4))


def _check(
    name: str, tensor: torch.Tensor, rank: int, dtypes: tuple, device: torch.device | None
) -> None:
    """Whether an input is what the kernels take; says what is wrong with it."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name}: a torch.Tensor is needed, and this is a {type(tensor).__name__}")
    if tensor.dtype not in dtypes:
        wanted = " or ".join(map(str, dtypes))
        raise TypeError(f"{name}: its dtype is {tensor.dtype}, and must be {wanted}")
    if rank >= 0 and tensor.dim() != rank:
        raise ValueError(f"{name}: it has {tensor.dim()} dimensions, and must have {rank}")
    if device is not None and tensor.device != device:
        raise ValueError(f"{name}: it is on {tensor.device}, and the first input on {device}")


def _index_of(*tensors: torch.Tensor) -> tl.dtype:
    """Offsets need 64 bits where a tensor spans 2^31 elements."""
    spans = (sum((n - 1) * s for n, s in zip(t.shape, t.stride())) for t in tensors)
    most = max(max(spans), max(t.numel() for t in tensors))
    return tl.int64 if most >= 2**31 - 16384 else tl.int32


def _once(*tensors: torch.Tensor) -> str:
    """How caches keep what is read once: no longer than they must, but longer than what is written
    where all of it is many times what they hold, which is faster there."""
    spans = sum(t.numel() * t.element_size() for t in tensors)
    return "evict_last" if spans > 400 * 2**20 else "evict_first"


def _on(device: torch.device) -> typing.Any:
    """Launches go to the device that the tensors are on."""
    module = getattr(torch, device.type, None)
    if device.type == "cpu" or not hasattr(module, "device"):
        return contextlib.nullcontext()
    if device.type == "cuda" and device.index == torch.cuda.current_device():
        return contextlib.nullcontext()
    return module.device(device)


@_planned
def pool(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """pool

    x: (N, H, W) of T
    y: returned, (N, ((H - R) // S) + 1, W) of T
    place: returned, (N,) of i32
    T: torch.float32, torch.float64
    """
    _check("x", x, 3, (torch.float32, torch.float64), None)
    device = x.device
    T = x.dtype
    N = x.shape[0]
    H = x.shape[1]
    W = x.shape[2]
    y = _empty((N, ((H - R) // S) + 1, W), dtype=T, device=device)
    place = _empty((N,), dtype=torch.int32, device=device)
    index = _index_of(x, y, place)
    with _on(device):
        if T in (torch.float32,):
            rows, cols = N * (((H - R) // S) + 1), W
            if rows and cols:
                tile = _tile(rows, cols, _most(device, 12), _programs(device))
                grid = lambda meta: (_cdiv(rows, meta["BLOCK_ROWS"]), _cdiv(cols,
                        meta["BLOCK_COLS"]))
                grid, turns, last, across = _spread(device, grid, BLOCK_ROWS=tile.rows,
                        BLOCK_COLS=tile.cols)
                _launcher(_pool_y_kernel, "BLOCK_ROWS", "BLOCK_COLS")[grid](
                    x, y, x.stride(0), x.stride(1), x.stride(2), y.stride(0), y.stride(1), y.stride(2),
                    turns, last, across, _magic(device, index, (((H - R) // S) + 1)), N, H, W,
                    (((H - R) // S) + 1), R=R, S=S, INDEX=index, BLOCK_ROWS=tile.rows,
                    BLOCK_COLS=tile.cols, num_warps=tile.warps,
                )
            H_run, W_run = _merge((H, W), (x.stride(1), x.stride(2)))
            rows, cols = N, H_run * W_run
            if rows:
                tile = _reduce_tile(rows, cols, _most(device, 36), _programs(device))
                if tile.splits == 1:
                    grid = lambda meta: (_cdiv(rows, meta["BLOCK_ROWS"]),)
                    grid, turns, last, across = _spread(device, grid, BLOCK_ROWS=tile.rows,
                            BLOCK_COLS=tile.cols)
                    _launcher(_pool_place_kernel, "BLOCK_ROWS", "BLOCK_COLS")[grid](
                        x, place, x.stride(0), _step(x, 1, H_run), _step(x, 2,
                                W_run), place.stride(0),
                        turns, last, N, H_run, W_run, INDEX=index, ONCE=_once(x, place),
                        BLOCK_ROWS=tile.rows, BLOCK_COLS=tile.cols, num_warps=tile.warps,
                    )
                else:
                    chunk = _cdiv(_cdiv(cols, tile.splits), tile.cols) * tile.cols
                    part = _empty((tile.splits, rows), dtype=torch.float32, device=device)
                    place_1 = _empty((tile.splits, rows), dtype=torch.int64, device=device)
                    grid = (_cdiv(rows, tile.rows), tile.splits,)
                    grid, turns, last, across = _spread(device, grid)
                    _launcher(_pool_place_part_kernel)[grid](
                        x, part, place_1, chunk, x.stride(0), _step(x, 1, H_run), _step(x, 2,
                                W_run),
                        turns, last, across, N, H_run, W_run, INDEX=index, ONCE=_once(x),
                        BLOCK_ROWS=tile.rows, BLOCK_COLS=tile.cols, num_warps=tile.warps,
                    )
                    grid = (_cdiv(rows, tile.rows),)
                    grid, turns, last, across = _spread(device, grid)
                    _launcher(_pool_place_end_kernel)[grid](
                        place, part, place_1, place.stride(0), turns, last, N, INDEX=index,
                        BLOCK_ROWS=tile.rows, BLOCK_SPLITS=tile.splits, num_warps=tile.warps,
                    )
        else:
            rows, cols = N * (((H - R) // S) + 1), W
            if rows and cols:
                tile = _tile(rows, cols, _most(device, 24), _programs(device))
                grid = lambda meta: (_cdiv(rows, meta["BLOCK_ROWS"]), _cdiv(cols,
                        meta["BLOCK_COLS"]))
                grid, turns, last, across = _spread(device, grid, BLOCK_ROWS=tile.rows,
                        BLOCK_COLS=tile.cols)
                _launcher(_pool_y_f64_kernel, "BLOCK_ROWS", "BLOCK_COLS")[grid](
                    x, y, x.stride(0), x.stride(1), x.stride(2), y.stride(0), y.stride(1), y.stride(2),
                    turns, last, across, _magic(device, index, (((H - R) // S) + 1)), N, H, W,
                    (((H - R) // S) + 1), R=R, S=S, INDEX=index, BLOCK_ROWS=tile.rows,
                    BLOCK_COLS=tile.cols, num_warps=tile.warps,
                )
            H_run, W_run = _merge((H, W), (x.stride(1), x.stride(2)))
            rows, cols = N, H_run * W_run
            if rows:
                tile = _reduce_tile(rows, cols, _most(device, 36), _programs(device))
                if tile.splits == 1:
                    grid = lambda meta: (_cdiv(rows, meta["BLOCK_ROWS"]),)
                    grid, turns, last, across = _spread(device, grid, BLOCK_ROWS=tile.rows,
                            BLOCK_COLS=tile.cols)
                    _launcher(_pool_place_f64_kernel, "BLOCK_ROWS", "BLOCK_COLS")[grid](
                        x, place, x.stride(0), _step(x, 1, H_run), _step(x, 2,
                                W_run), place.stride(0),
                        turns, last, N, H_run, W_run, INDEX=index, ONCE=_once(x, place),
                        BLOCK_ROWS=tile.rows, BLOCK_COLS=tile.cols, num_warps=tile.warps,
                    )
                else:
                    chunk = _cdiv(_cdiv(cols, tile.splits), tile.cols) * tile.cols
                    part = _empty((tile.splits, rows), dtype=torch.float64, device=device)
                    place_1 = _empty((tile.splits, rows), dtype=torch.int64, device=device)
                    grid = (_cdiv(rows, tile.rows), tile.splits,)
                    grid, turns, last, across = _spread(device, grid)
                    _launcher(_pool_place_f64_part_kernel)[grid](
                        x, part, place_1, chunk, x.stride(0), _step(x, 1, H_run), _step(x, 2,
                                W_run),
                        turns, last, across, N, H_run, W_run, INDEX=index, ONCE=_once(x),
                        BLOCK_ROWS=tile.rows, BLOCK_COLS=tile.cols, num_warps=tile.warps,
                    )
                    grid = (_cdiv(rows, tile.rows),)
                    grid, turns, last, across = _spread(device, grid)
                    _launcher(_pool_place_f64_end_kernel)[grid](
                        place, part, place_1, place.stride(0), turns, last, N, INDEX=index,
                        BLOCK_ROWS=tile.rows, BLOCK_SPLITS=tile.splits, num_warps=tile.warps,
                    )
    return y, place
