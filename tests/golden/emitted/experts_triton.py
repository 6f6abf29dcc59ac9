"""experts: an operator

The definition:

    y[b, m, n] = sum(k) x[b, m, k] * ((w[e[b], k, n] - z[e[b], n]) * s[e[b], n])

Kernels:

    _experts_kernel: tiles of the product by tl.dot, summed in float32; where they are few, programs
        share the sums (_part, _end)

The narrow floats are computed in float32 and rounded once, when they are stored.

On Ascend (device npu):

    grid: one dimension, a program for each vector core (or core with a cube unit, where tl.dot is
        used), which takes tiles in turns
    unified buffer: 96 of 192 KiB for a tile, as much for the next one's transfers
        _experts_kernel: 4 values of 4 bytes for an element, at most 4096 elements: 64 KiB
        _experts_kernel: 8 values of 4 bytes for an element, at most 2048 elements: 64 KiB
    cube unit: tiles take at most 32 of 64 KiB of L0A, 32 of 64 of L0B, 16 of 128 of L0C
    tails: no padding of x if K % 256 == 0, e if B % 128 == 0, w if N % 1024 == 0, s if N % 256 ==
        0, z if N % 1024 == 0, y if N % 256 == 0
    element by element: 64-bit integers (8), reads at places that a tensor holds (12)
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


# Triton's interpreter holds bfloat16 as integers: it multiplies those in place of the values, and
# where it converts to bfloat16 it drops the lower bits.
_INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET", "0") == "1")


@triton.jit
def _to_bf16(x):
    """Rounded to the nearest, halves to even, in the interpreter, too: there the upper half of a
    float32 is rounded as an integer, and a NaN keeps a bit of its fraction."""
    if _INTERPRETED:
        bits = x.to(tl.float32).to(tl.uint32, bitcast=True)
        nearest = bits + 0x7FFF + ((bits >> 16) & 1)
        upper = tl.where(x == x, nearest, bits | 0x400000) >> 16
        x = upper.to(tl.uint16).to(tl.bfloat16, bitcast=True)
    return x.to(tl.bfloat16)


@triton.jit
def _store(pointer, value, mask=None):
    """tl.store, which converts to the dtype of the pointer."""
    if pointer.dtype.element_ty == tl.bfloat16:
        value = _to_bf16(value)
    tl.store(pointer, value, mask=mask)


@triton.jit
def _dot(a, b, total):
    """float32 without matrix units: "tf32x3" loses what is huge or tiny, and is twice as fast."""
    if _INTERPRETED:
        a = a.to(tl.float32)
        b = b.to(tl.float32)
    return tl.dot(a, b, total, input_precision="ieee")


@triton.jit
def _has_unbounded(x):
    """Whether an element is infinite or NaN."""
    return tl.max((x - x != 0.0).to(tl.int32)) > 0


@triton.jit
def _load_u4(pointer, offset, mask):
    """Two elements a byte, the even one in the low half."""
    byte = tl.load(pointer + offset // 2, mask=mask, other=0).to(tl.int32)
    return (byte >> (offset % 2 * 4).to(tl.int32)) & 15


@triton.jit
def _experts_kernel(
    x_ptr, e_ptr, w_ptr, s_ptr, z_ptr, y_ptr, x_s0, x_s1, x_s2, e_s0, w_s0, w_s1, w_s2, s_s0,
    s_s1, z_s0, z_s1, y_s0, y_s1, y_s2, turns, last, M, K, E, N, INDEX: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """y[b, m, n] = sum(k) x[b, m, k] * ((w[e[b], k, n] - z[e[b], n]) * s[e[b], n])"""
    for turn in range(turns):
        program = _number(turn, last)
        pid = program
        tiles_m = tl.cdiv(M, BLOCK_M)
        tiles_n = tl.cdiv(N, BLOCK_N)
        batch = (pid // (tiles_m * tiles_n)).to(INDEX)
        pid = pid % (tiles_m * tiles_n)
        b = batch
        # Eight rows of tiles at a time: their programs share columns in the cache.
        first_m = pid // (8 * tiles_n) * 8
        height = tl.minimum(tiles_m - first_m, 8)
        m = ((first_m + pid % (8 * tiles_n) % height).to(INDEX) * BLOCK_M + tl.arange(0,
                BLOCK_M))[:, None]
        m_in = m < M
        n = ((pid % (8 * tiles_n) // height).to(INDEX) * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
        n_in = n < N
        total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
        for start in range(0, K, BLOCK_K):
            k = tl.cast(start, INDEX) + tl.arange(0, BLOCK_K)
            k_in = k < K
            k_a = k[None, :]
            x = tl.load(x_ptr + b * x_s0 + m * x_s1 + k_a * x_s2, mask=m_in & k_in[None, :],
                    other=0)
            k_first = tl.full([1, 1], start, INDEX)
            e = tl.load(e_ptr + b * e_s0).to(tl.int64)
            z = _load_u4(z_ptr, tl.minimum(tl.maximum(e, 0), E - 1) * z_s0 + n * z_s1, n_in)
            s = tl.load(s_ptr + tl.minimum(tl.maximum(e, 0), E - 1) * s_s0 + n * s_s1, mask=n_in,
                    other=0).to(tl.float32)
            k_b = k[:, None]
            w = _load_u4(w_ptr, tl.minimum(tl.maximum(e, 0), E - 1) * w_s0 + k_b * w_s1 + n * w_s2,
                    n_in & k_in[:, None])
            b_1 = (w - z).to(tl.float32).to(x.dtype)
            part = _dot(x, b_1, tl.zeros([BLOCK_M, BLOCK_N], tl.float32))
            total += part * s
        if _has_unbounded(total):
            total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
            for start_1 in range(0, K, BLOCK_K):
                k_1 = tl.cast(start_1, INDEX) + tl.arange(0, BLOCK_K)
                k_1_in = k_1 < K
                k_a_1 = k_1[None, :]
                x_1 = tl.load(x_ptr + b * x_s0 + m * x_s1 + k_a_1 * x_s2, mask=m_in & k_1_in[None,
                        :], other=0).to(tl.float32)
                k_b_1 = k_1[:, None]
                e_1 = tl.load(e_ptr + b * e_s0).to(tl.int64)
                w_1 = _load_u4(w_ptr, tl.minimum(tl.maximum(e_1, 0), E - 1) * w_s0 + k_b_1 * w_s1 +
                        n * w_s2, n_in & k_1_in[:, None]).to(tl.int64)
                z_1 = _load_u4(z_ptr, tl.minimum(tl.maximum(e_1, 0), E - 1) * z_s0 + n * z_s1,
                        n_in).to(tl.int64)
                s_1 = tl.load(s_ptr + tl.minimum(tl.maximum(e_1, 0), E - 1) * s_s0 + n * s_s1,
                        mask=n_in, other=0).to(tl.float32)
                b_2 = tl.where(n_in & k_1_in[:, None], ((w_1 - z_1).to(tl.float32)) * s_1, 0.0)
                total = _dot(x_1, b_2, total)
        _store(y_ptr + b * y_s0 + m * y_s1 + n * y_s2, total, mask=m_in & n_in)


@triton.jit
def _experts_part_kernel(
    x_ptr, e_ptr, w_ptr, s_ptr, z_ptr, part_ptr, chunk, x_s0, x_s1, x_s2, e_s0, w_s0, w_s1, w_s2,
    s_s0, s_s1, z_s0, z_s1, turns, last, across, B, M, K, E, N, INDEX: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """y[b, m, n] = sum(k) x[b, m, k] * ((w[e[b], k, n] - z[e[b], n]) * s[e[b], n])"""
    for turn in range(turns):
        program, program_col = _place(turn, last, across)
        pid = program
        tiles_m = tl.cdiv(M, BLOCK_M)
        tiles_n = tl.cdiv(N, BLOCK_N)
        batch = (pid // (tiles_m * tiles_n)).to(INDEX)
        pid = pid % (tiles_m * tiles_n)
        b = batch
        # Eight rows of tiles at a time: their programs share columns in the cache.
        first_m = pid // (8 * tiles_n) * 8
        height = tl.minimum(tiles_m - first_m, 8)
        m = ((first_m + pid % (8 * tiles_n) % height).to(INDEX) * BLOCK_M + tl.arange(0,
                BLOCK_M))[:, None]
        m_in = m < M
        n = ((pid % (8 * tiles_n) // height).to(INDEX) * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
        n_in = n < N
        split = program_col
        total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
        begin = split * chunk
        end = tl.minimum(begin + chunk, K)
        for start in range(begin, end, BLOCK_K):
            k = tl.cast(start, INDEX) + tl.arange(0, BLOCK_K)
            k_in = k < K
            k_a = k[None, :]
            x = tl.load(x_ptr + b * x_s0 + m * x_s1 + k_a * x_s2, mask=m_in & k_in[None, :],
                    other=0)
            k_first = tl.full([1, 1], start, INDEX)
            e = tl.load(e_ptr + b * e_s0).to(tl.int64)
            z = _load_u4(z_ptr, tl.minimum(tl.maximum(e, 0), E - 1) * z_s0 + n * z_s1, n_in)
            s = tl.load(s_ptr + tl.minimum(tl.maximum(e, 0), E - 1) * s_s0 + n * s_s1, mask=n_in,
                    other=0).to(tl.float32)
            k_b = k[:, None]
            w = _load_u4(w_ptr, tl.minimum(tl.maximum(e, 0), E - 1) * w_s0 + k_b * w_s1 + n * w_s2,
                    n_in & k_in[:, None])
            b_1 = (w - z).to(tl.float32).to(x.dtype)
            part = _dot(x, b_1, tl.zeros([BLOCK_M, BLOCK_N], tl.float32))
            total += part * s
        if _has_unbounded(total):
            total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
            begin_1 = split * chunk
            end_1 = tl.minimum(begin_1 + chunk, K)
            for start_1 in range(begin_1, end_1, BLOCK_K):
                k_1 = tl.cast(start_1, INDEX) + tl.arange(0, BLOCK_K)
                k_1_in = k_1 < K
                k_a_1 = k_1[None, :]
                x_1 = tl.load(x_ptr + b * x_s0 + m * x_s1 + k_a_1 * x_s2, mask=m_in & k_1_in[None,
                        :], other=0).to(tl.float32)
                k_b_1 = k_1[:, None]
                e_1 = tl.load(e_ptr + b * e_s0).to(tl.int64)
                w_1 = _load_u4(w_ptr, tl.minimum(tl.maximum(e_1, 0), E - 1) * w_s0 + k_b_1 * w_s1 +
                        n * w_s2, n_in & k_1_in[:, None]).to(tl.int64)
                z_1 = _load_u4(z_ptr, tl.minimum(tl.maximum(e_1, 0), E - 1) * z_s0 + n * z_s1,
                        n_in).to(tl.int64)
                s_1 = tl.load(s_ptr + tl.minimum(tl.maximum(e_1, 0), E - 1) * s_s0 + n * s_s1,
                        mask=n_in, other=0).to(tl.float32)
                b_2 = tl.where(n_in & k_1_in[:, None], ((w_1 - z_1).to(tl.float32)) * s_1, 0.0)
                total = _dot(x_1, b_2, total)
        tl.store(part_ptr + split * (B * M * N) + (b * M + m) * N + n, total, mask=m_in & n_in)


@triton.jit(do_not_specialize=["m_magic"])
def _experts_end_kernel(
    y_ptr, part_ptr, splits, y_s0, y_s1, y_s2, turns, last, across, m_magic, B, M, N,
    INDEX: tl.constexpr, BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr,
):
    """y[b, m, n] = sum(k) x[b, m, k] * ((w[e[b], k, n] - z[e[b], n]) * s[e[b], n])"""
    for turn in range(turns):
        program, program_col = _place(turn, last, across)
        row = program.to(INDEX) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
        row = tl.minimum(row, B * M - 1)[:, None]
        b = _quotient(row, M, m_magic)
        m = _remainder(row, b, M, m_magic)
        n = (program_col.to(INDEX) * BLOCK_COLS + tl.arange(0, BLOCK_COLS))[None, :]
        n_in = n < N
        total = tl.zeros([BLOCK_ROWS, BLOCK_COLS], tl.float32)
        for split in range(splits):
            total += tl.load(part_ptr + split * (B * M * N) + (b * M + m) * N + n, mask=n_in,
                    other=0)
        _store(y_ptr + b * y_s0 + m * y_s1 + n * y_s2, total, mask=n_in)


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


class _ProductTile(typing.NamedTuple):
    m: int
    n: int
    k: int
    splits: int
    warps: int
    stages: int


def _shared(device: torch.device) -> int:
    """Bytes of shared memory that a program can have."""
    if device.type != "cuda":
        return 100 * 1024
    properties = torch.cuda.get_device_properties(device)
    return getattr(properties, "shared_memory_per_block_optin", 100 * 1024)


def _product_tile(
    m: int, n: int, k: int, batch: int, size: int, shared: int, most: int, longest: int = 1024
) -> _ProductTile:
    """Blocks of a product whose elements have `size` bytes: the largest of which there are enough
    to occupy a large device, as each reads (m + n) * k elements for m * n * k products. 64 rows are
    what Hopper's matrix units take at once. With few rows, reading the other operand takes the
    time: blocks are deep, and programs share the sums."""
    rows = min(max(_power(m), 16), 128)
    cols = min(max(_power(n), 16), 256)
    shapes = [(128, 256), (128, 128), (64, 128), (64, 64), (64, 32)]
    if rows < 64:
        shapes = [(rows, 128), (rows, 64)]
    if size > 2:  # float32 is multiplied without matrix units, from registers
        shapes = [s for s in shapes if s[0] * s[1] <= (128 * 128 if rows >= 64 else 32 * 64)]
    shapes = [s for s in shapes if s[0] * s[1] <= most] or [(16, 32)]
    for height, width in shapes:
        height, width = min(height, rows), min(width, cols)
        tiles = _cdiv(m, height) * _cdiv(n, width) * batch
        if tiles >= 128:
            break
    deepest = 128 if rows < 64 and size <= 2 else 64 if size <= 2 or height * width <= 4096 else 32
    least = 32 if size == 1 else 16  # of what tl.dot takes
    depth = min(max(_power(k), least), deepest, longest)
    splits = 1
    if tiles <= 64 or (rows < 64 and tiles <= 256):
        wanted = max(min(512 // tiles if rows < 64 else 128 // tiles, k // 512), 1)
        splits = 1 << (wanted.bit_length() - 1)
    stages = shared // ((height + width) * depth * size)
    warps = 8 if height * width >= (4096 if size > 2 else 128 * 128) else 4
    return _ProductTile(height, width, depth, splits, warps, max(2, min(stages, 4)))


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


def _check_shape(name: str, tensor: torch.Tensor, shape: tuple) -> None:
    if tuple(tensor.shape) != shape:
        raise ValueError(f"{name}: its shape is {tuple(tensor.shape)}, and must be {shape}")


def _check_packed(name: str, tensor: torch.Tensor, shape: tuple) -> None:
    """Elements of four bits: two a byte, row-major, without gaps."""
    count = (math.prod(shape) + 1) // 2
    if tensor.numel() != count or not tensor.is_contiguous():
        raise ValueError(
            f"{name}: {count} contiguous bytes are needed for {shape} elements of four bits, and "
            f"its shape is {tuple(tensor.shape)}"
        )


def _index_of(*tensors: torch.Tensor) -> tl.dtype:
    """Offsets need 64 bits where a tensor spans 2^31 elements."""
    spans = (sum((n - 1) * s for n, s in zip(t.shape, t.stride())) for t in tensors)
    most = max(max(spans), max(t.numel() for t in tensors))
    return tl.int64 if most >= 2**31 - 16384 else tl.int32


def _on(device: torch.device) -> typing.Any:
    """Launches go to the device that the tensors are on."""
    module = getattr(torch, device.type, None)
    if device.type == "cpu" or not hasattr(module, "device"):
        return contextlib.nullcontext()
    if device.type == "cuda" and device.index == torch.cuda.current_device():
        return contextlib.nullcontext()
    return module.device(device)


@_planned
def experts(x: torch.Tensor, e: torch.Tensor, w: torch.Tensor, s: torch.Tensor, z:
        torch.Tensor) -> torch.Tensor:
    """experts

    x: (B, M, K) of T
    e: (B,) of i32
    w: bytes of two 4-bit elements each, for the shape (E, K, N) of u4
    s: (E, N) of T
    z: bytes of two 4-bit elements each, for the shape (E, N) of u4
    y: returned, (B, M, N) of T
    T: torch.float16, torch.bfloat16
    """
    _check("x", x, 3, (torch.float16, torch.bfloat16), None)
    device = x.device
    T = x.dtype
    B = x.shape[0]
    M = x.shape[1]
    K = x.shape[2]
    _check("e", e, 1, (torch.int32,), device)
    _check("w", w, -1, (torch.uint8,), device)
    _check("s", s, 2, (T,), device)
    E = s.shape[0]
    N = s.shape[1]
    _check("z", z, -1, (torch.uint8,), device)
    _check_shape("e", e, (B,))
    _check_packed("w", w, (E, K, N))
    _check_packed("z", z, (E, N))
    y = _empty((B, M, N), dtype=T, device=device)
    index = _index_of(x, e, w, s, z, y)
    with _on(device):
        rows, cols = M, N
        if rows and cols and B:
            tile = _product_tile(rows, cols, K, B, x.element_size(), _shared(device), _most(device,
                    4, 32768))
            if tile.splits == 1:
                grid = lambda meta: (_cdiv(rows, meta["BLOCK_M"]) * _cdiv(cols, meta["BLOCK_N"]) *
                        B,)
                grid, turns, last, across = _spread(device, grid, True, BLOCK_M=tile.m,
                        BLOCK_N=tile.n, BLOCK_K=tile.k)
                _launcher(_experts_kernel, "BLOCK_M", "BLOCK_N")[grid](
                    x, e, w, s, z, y, x.stride(0), x.stride(1), x.stride(2), e.stride(0), K * N, N,
                    1, s.stride(0), s.stride(1), N, 1, y.stride(0), y.stride(1), y.stride(2), turns,
                    last, M, K, E, N, INDEX=index, BLOCK_M=tile.m, BLOCK_N=tile.n, BLOCK_K=tile.k,
                    num_warps=tile.warps, num_stages=tile.stages,
                )
            else:
                splits = tile.splits
                chunk = _cdiv(_cdiv(K, splits), tile.k) * tile.k
                part = _empty((splits, rows * cols * B), dtype=torch.float32, device=device)
                grid = (_cdiv(rows, tile.m) * _cdiv(cols, tile.n) * B, splits)
                grid, turns, last, across = _spread(device, grid, True)
                _launcher(_experts_part_kernel)[grid](
                    x, e, w, s, z, part, chunk, x.stride(0), x.stride(1), x.stride(2), e.stride(0),
                    K * N, N, 1, s.stride(0), s.stride(1), N, 1, turns, last, across, B, M, K, E, N,
                    INDEX=index, BLOCK_M=tile.m, BLOCK_N=tile.n, BLOCK_K=tile.k,
                    num_warps=tile.warps, num_stages=tile.stages,
                )
                rows, cols = B * M, N
                if rows and cols:
                    tile = _tile(rows, cols, _most(device, 8), _programs(device))
                    grid = lambda meta: (_cdiv(rows, meta["BLOCK_ROWS"]), _cdiv(cols,
                            meta["BLOCK_COLS"]))
                    grid, turns, last, across = _spread(device, grid, BLOCK_ROWS=tile.rows,
                            BLOCK_COLS=tile.cols)
                    _launcher(_experts_end_kernel, "BLOCK_ROWS", "BLOCK_COLS")[grid](
                        y, part, splits, y.stride(0), y.stride(1), y.stride(2), turns, last, across,
                        _magic(device, index, M), B, M, N, INDEX=index, BLOCK_ROWS=tile.rows,
                        BLOCK_COLS=tile.cols, num_warps=tile.warps,
                    )
    return y
