class _Tile(typing.NamedTuple):
    rows: int
    cols: int
    warps: int


def _most(device: torch.device, values: int) -> int:
    """Elements of a tile at most. On Ascend all values of a tile lie in the unified buffer of 192
    KiB, half of which serves the transfers of the next tile; elsewhere registers hold them."""
    if device.type != "npu":
        return 16384
    fits = 96 * 1024 // (4 * values)
    return 1 << (max(fits, 1).bit_length() - 1)


def _check_grid(device: torch.device, grid: tuple) -> None:
    if device.type == "npu" and math.prod(grid) > 65535:
        raise ValueError(f"an Ascend device runs 65535 programs; {math.prod(grid)} are needed")


def _tile(rows: int, cols: int, most: int) -> _Tile:
    """Blocks of an output of rows x cols: wide along the columns, where memory is contiguous, and
    about 2048 elements a program."""
    width = min(triton.next_power_of_2(max(cols, 1)), 1024, most)
    height = min(triton.next_power_of_2(max(rows, 1)), max(min(2048, most) // width, 1))
    return _Tile(height, width, 8 if height * width >= 2048 else 4)


class _Reduction(typing.NamedTuple):
    rows: int
    cols: int
    splits: int
    warps: int


def _splits(programs: int, cols: int, step: int) -> int:
    """How many programs share a row, a power of two: about 512, each with at least four steps."""
    wanted = max(min(512 // programs, cols // (4 * step)), 1)
    return 1 << (wanted.bit_length() - 1)


def _reduce_tile(rows: int, cols: int, most: int) -> _Reduction:
    """Blocks of a reduction along memory: up to 1024 elements of a row a step, and more rows where
    they are short."""
    width = min(triton.next_power_of_2(max(cols, 1)), 1024, most)
    height = min(triton.next_power_of_2(max(rows, 1)), max(min(1024, most) // width, 1))
    return _Reduction(height, width, _splits(triton.cdiv(rows, height), cols, width), 4)


def _column_tile(rows: int, cols: int, most: int) -> _Reduction:
    """Blocks of a reduction across memory: outputs are adjacent, so that 64 of them are read
    together."""
    height = min(triton.next_power_of_2(max(rows, 1)), 64, most)
    width = min(triton.next_power_of_2(max(cols, 1)), max(min(2048, most) // height, 1))
    return _Reduction(height, width, _splits(triton.cdiv(rows, height), cols, width), 4)


def _row_tile(rows: int, cols: int, most: int) -> _Tile:
    """Whole rows as far as a tile holds them, of short rows several; longer ones are walked in
    blocks."""
    width = min(triton.next_power_of_2(max(cols, 1)), most)
    height = min(triton.next_power_of_2(max(rows, 1)), max(min(2048, most) // width, 1))
    if width >= cols:
        return _Tile(height, width, 4 if width <= 2048 else 8 if width <= 8192 else 16)
    return _Tile(1, min(4096, most), 8)


def _scan_tile(rows: int, cols: int, most: int) -> _Tile:
    """Blocks of running totals: up to 1024 elements of a row a step, and more rows where they are
    short."""
    width = min(triton.next_power_of_2(max(cols, 1)), 1024, most)
    height = min(triton.next_power_of_2(max(rows, 1)), max(min(1024, most) // width, 1))
    return _Tile(height, width, 4)


class _ProductTile(typing.NamedTuple):
    m: int
    n: int
    k: int
    warps: int


def _product_tile(m: int, n: int, k: int) -> _ProductTile:
    """128 x 128 outputs a program where there are enough of them, down to 16 x 16, which tl.dot
    needs."""
    height = min(max(triton.next_power_of_2(m), 16), 128 if n >= 128 else 64)
    width = min(max(triton.next_power_of_2(n), 16), 128)
    if triton.cdiv(m, height) * triton.cdiv(n, width) < 64:  # more programs instead
        height, width = min(height, 64), min(width, 64)
    depth = min(max(triton.next_power_of_2(k), 16), 64 if height * width <= 64 * 64 else 32)
    return _ProductTile(height, width, depth, 8 if height * width >= 128 * 128 else 4)


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
    return tl.int64 if any(span >= 2**31 - 1 for span in spans) else tl.int32


def _on(device: torch.device) -> typing.Any:
    """Launches go to the device that the tensors are on."""
    module = getattr(torch, device.type, None)
    if device.type == "cpu" or not hasattr(module, "device"):
        return contextlib.nullcontext()
    return module.device(device)
