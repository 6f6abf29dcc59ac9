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


def _transpose_tile(rows: int, cols: int, most: int, programs: int) -> _Tile:
    """Blocks of an output whose input is contiguous along the rows: both sides of the block have
    lines of 64 elements, so that reads and writes fill whole cache lines; of 32 where a part of
    the device would be idle."""
    side = 64 if _share(rows * cols, programs) >= 64 * 64 or programs == 1 else 32
    width = min(_power(cols), side, most)
    height = min(_power(rows), max(min(side * side, most) // width, 1))
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


def _walks(device: torch.device, outer: int, inner: int, *strides: tuple) -> bool:
    """Whether the last two axes are walked as one though not all inputs have both: where the last
    one is no whole number of vectors, and each tensor that has both has them one behind another.
    The compiled kernel is for one length of the last axis. Ascend's compiler refuses quotients."""
    short = outer > 1 and inner <= 32 and inner % 8 != 0 and device.type != "npu"
    return short and all(s[0] == s[1] * inner for s in strides)


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


def _column_tile(rows: int, cols: int, most: int, programs: int) -> _Reduction:
    """Blocks of a reduction across memory: outputs are adjacent, so that 64 of them are read
    together; 32 elements a thread are under way. Fewer outputs, of at least 32 bytes, where columns
    too short to be shared would leave a part of the device idle."""
    height = min(_power(rows), 64, most)
    if cols < 256:
        height = min(height, max(_power(_cdiv(rows, programs)), 16))
    width = min(_power(cols), max(min(4096, most) // height, 1))
    splits = _splits(_cdiv(rows, height), cols, width, most // height)
    return _Reduction(height, width, splits, 4)


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


def _whole_tile(
    rows: int, cols: int, adjacent: bool, most: int, programs: int
) -> _Tile | None:
    """Blocks of whole rows, of which everything is computed in one launch; None: a row does not
    fit. Where neighbouring rows are `adjacent` in memory, a program takes 16 at least, which are 32
    bytes or more, the least that memory is read by."""
    width = _power(cols)
    least = min(_power(rows), 16) if adjacent else 1
    if not rows or least * width > most:
        return None
    height = max(min(_power(rows), min(2048, _share(rows * cols, programs)) // width), least)
    elements = height * width
    return _Tile(height, width, _warps(elements, 4) if elements <= 2048 else
                 8 if elements <= 8192 else 16)


def _scan_tile(rows: int, cols: int, most: int, programs: int) -> _Tile:
    """Blocks of running totals: up to 1024 elements of a row a step, and more rows where they are
    short, unless that leaves a part of the device idle."""
    share = _share(rows * cols, programs)
    width = min(_power(cols), 1024, most)
    height = min(_power(rows), max(min(1024, most, share) // width, 1))
    return _Tile(height, width, _warps(height * width, 4))


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


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory as bytes: kernels decode 8-bit floats themselves, as not every device can."""
    return tensor.view(torch.uint8)


def _pack(values: torch.Tensor) -> torch.Tensor:
    """Elements of four bits, two a byte, the even one in the low half."""
    flat = torch.nn.functional.pad(values.flatten(), (0, values.numel() % 2))
    return flat[0::2] | (flat[1::2] << 4)


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
