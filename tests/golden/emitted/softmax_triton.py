"""softmax: Softmax of each row.

The definition:

    m[p] = max(d) x[p, d]
    e[p, d] = exp(x[p, d] - m[p])
    y[p, d] = e[p, d] / (sum(d) e[p, d])

Kernels:

    _softmax_kernel: rows per program, kept in registers; long rows (_long) in blocks

The narrow floats are computed in float32 and rounded once, when they are stored.

On Ascend (device npu):

    grid: one dimension, a program for each vector core, which takes tiles in turns
    unified buffer: 96 of 192 KiB for a tile, as much for the next one's transfers
        _softmax_kernel: 19 values of 4 bytes for an element, at most 1024 elements: 76 KiB
    tails: no padding of x if D % 16 == 0, y if D % 16 == 0
    element by element: selections by comparisons of integers (4)
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
def _maximum(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _largest(x, axis: tl.constexpr, keep_dims: tl.constexpr = False):
    """NaN if any element is NaN, in one pass: a second one for NaN alone takes as long."""
    return tl.reduce(x, axis, _maximum, keep_dims=keep_dims)


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
def _softmax_kernel(
    x_ptr, y_ptr, x_s0, x_s1, y_s0, y_s1, turns, last, P, D, INDEX: tl.constexpr,
    ONCE: tl.constexpr, BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr,
):
    """m[p] = max(d) x[p, d]
    e[p, d] = exp(x[p, d] - m[p])
    y_1[p] = sum(d) e[p, d]
    y[p, d] = e[p, d] / y_1[p]
    """
    for turn in range(turns):
        program = _number(turn, last)
        p = (program.to(INDEX) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS))[:, None]
        p_in = p < P
        d = tl.arange(0, BLOCK_COLS)[None, :].to(INDEX)
        d_in = d < D
        x = tl.load(x_ptr + p * x_s0 + d * x_s1, mask=p_in & d_in, other=0,
                eviction_policy=ONCE).to(tl.float32)
        m = _largest(tl.where(d_in, x, float("-inf")), 1, keep_dims=True)
        e = tl.exp(x - m)
        y_1 = tl.sum(tl.where(d_in, e, 0.0), 1, keep_dims=True)
        _store(y_ptr + p * y_s0 + d * y_s1, e / y_1, mask=p_in & d_in)


@triton.jit
def _softmax_long_kernel(
    x_ptr, y_ptr, x_s0, x_s1, y_s0, y_s1, turns, last, P, D, INDEX: tl.constexpr,
    BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr,
):
    """m[p] = max(d) x[p, d]
    e[p, d] = exp(x[p, d] - m[p])
    y_1[p] = sum(d) e[p, d]
    y[p, d] = e[p, d] / y_1[p]
    """
    for turn in range(turns):
        program = _number(turn, last)
        p = (program.to(INDEX) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS))[:, None]
        p_in = p < P
        total = tl.full([BLOCK_ROWS, BLOCK_COLS], float("-inf"), tl.float32)
        for start in range(0, D, BLOCK_COLS):
            d = tl.cast(start, INDEX) + tl.arange(0, BLOCK_COLS)[None, :]
            d_in = d < D
            x = tl.load(x_ptr + p * x_s0 + d * x_s1, mask=p_in & d_in, other=0,
                    eviction_policy="evict_last").to(tl.float32)
            total = _maximum(total, tl.where(d_in, x, float("-inf")))
        m = _largest(total, 1, keep_dims=True)
        total_1 = tl.full([BLOCK_ROWS, BLOCK_COLS], 0.0, tl.float32)
        for start_1 in range(0, D, BLOCK_COLS):
            d_1 = tl.cast(start_1, INDEX) + tl.arange(0, BLOCK_COLS)[None, :]
            d_1_in = d_1 < D
            x_1 = tl.load(x_ptr + p * x_s0 + d_1 * x_s1, mask=p_in & d_1_in, other=0,
                    eviction_policy="evict_last").to(tl.float32)
            e = tl.exp(x_1 - m)
            total_1 += tl.where(d_1_in, e, 0.0)
        y_1 = tl.sum(total_1, 1, keep_dims=True)
        for start_2 in range(0, D, BLOCK_COLS):
            d_2 = tl.cast(start_2, INDEX) + tl.arange(0, BLOCK_COLS)[None, :]
            d_2_in = d_2 < D
            x_2 = tl.load(x_ptr + p * x_s0 + d_2 * x_s1, mask=p_in & d_2_in, other=0,
                    eviction_policy="evict_first").to(tl.float32)
            e_1 = tl.exp(x_2 - m)
            _store(y_ptr + p * y_s0 + d_2 * y_s1, e_1 / y_1, mask=p_in & d_2_in)


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


def _row_tile(rows: int, cols: int, most: int, programs: int, held: int) -> _Tile:
    """Whole rows of up to `held` elements as far as a tile holds them, of short rows several,
    unless that leaves a part of the device idle; longer ones are walked in blocks of half of it."""
    most = min(most, held)
    share = _share(rows * cols, programs)
    width = min(_power(cols), most)
    height = min(_power(rows), max(min(2048, most, share) // width, 1))
    if width >= cols:
        return _Tile(height, width, _warps(height * width, 4) if width <= 2048 else
                     8 if width <= 8192 else 16)
    return _Tile(1, min(held // 2, most), 16)


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
def softmax(x: torch.Tensor) -> torch.Tensor:
    """Softmax of each row.

    x: (P, D) of T
    y: returned, (P, D) of T
    T: torch.float16, torch.bfloat16, torch.float32
    """
    _check("x", x, 2, (torch.float16, torch.bfloat16, torch.float32), None)
    device = x.device
    T = x.dtype
    P = x.shape[0]
    D = x.shape[1]
    y = _empty((P, D), dtype=T, device=device)
    index = _index_of(x, y)
    with _on(device):
        rows, cols = P, D
        if rows:
            tile = _row_tile(rows, cols, _most(device, 19), _programs(device), 16384)
            grid = lambda meta: (_cdiv(rows, meta["BLOCK_ROWS"]),)
            if cols <= tile.cols:
                grid, turns, last, across = _spread(device, grid, BLOCK_ROWS=tile.rows,
                        BLOCK_COLS=tile.cols)
                _launcher(_softmax_kernel, "BLOCK_ROWS")[grid](
                    x, y, x.stride(0), x.stride(1), y.stride(0), y.stride(1), turns, last, P, D,
                    INDEX=index, ONCE=_once(x, y), BLOCK_ROWS=tile.rows, BLOCK_COLS=tile.cols,
                    num_warps=tile.warps,
                )
            else:
                grid, turns, last, across = _spread(device, grid, BLOCK_ROWS=tile.rows,
                        BLOCK_COLS=tile.cols)
                _launcher(_softmax_long_kernel, "BLOCK_ROWS", "BLOCK_COLS")[grid](
                    x, y, x.stride(0), x.stride(1), y.stride(0), y.stride(1), turns, last, P, D,
                    INDEX=index, BLOCK_ROWS=tile.rows, BLOCK_COLS=tile.cols, num_warps=tile.warps,
                )
    return y
