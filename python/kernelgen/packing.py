"""Weights of 4 bits in panels, packed once for all plans: what `packed` inputs take (docs/packed.md).

On the CPU the C library packs. On GPUs the same formulas are an operator, so that nothing leaves the device.
"""

from __future__ import annotations

import ctypes
import functools
import math
from typing import Any, Sequence

from . import arrays, errors, library
from .operators import Op, op

ROWS, COLUMNS = 64, 16  # of a panel

# Place c of a panel is the code of this row and column.
_ROW = "64*i + c%32/8*16 + c%4/2*8 + c/32%4*2 + c%8/4"
_COLUMN = "16*j + c/128*2 + c%2"


@functools.lru_cache(maxsize=None)
def _packer(transposed: bool) -> Op:
    shape, read = ("B, N, K", f"{_COLUMN}, {_ROW}") if transposed else ("B, K, N", f"{_ROW}, {_COLUMN}")
    return op(f"op pack(w: u4[{shape}]) -> (p: u4[B, ceil(K/64), ceil(N/16), 1024])\n"
              f"{{ p[b, i, j, c] = pad(w[b, {read}], 0) }}\n")


@functools.lru_cache(maxsize=None)
def _unpacker(transposed: bool) -> Op:
    shape, left = ("B, N, K", "b, n, k") if transposed else ("B, K, N", "b, k, n")
    return op(f"op unpack(p: packed u4[B, K, N]) -> (w: u4[{shape}])\n{{ w[{left}] = p[b, k, n] }}\n")


def _panels(rows: int, columns: int) -> tuple[int, int, int]:
    return -(-rows // ROWS), -(-columns // COLUMNS), library.PANEL_BYTES


def _bytes_of(name: str, array: Any) -> tuple[Any, arrays.Array]:
    """The array's library, and where it lies, if it is one of bytes without gaps."""
    home = arrays.library_of(name, array)
    found = home.describe(name, array, False)
    if found.dtype != "u8":
        raise arrays.refuse(name, f"it has elements of {found.dtype}; codes of 4 bits are bytes (uint8), two a byte")
    if math.prod(found.shape) and found.strides != arrays.contiguous_strides(found.shape):
        raise arrays.refuse(name, "packed elements must be contiguous; make a copy")
    return home, found


def _in_c(function: str, matrices: tuple[int, int, int], transposed: bool, given: arrays.Array, made: arrays.Array,
          made_bytes: int) -> None:
    batch, rows, columns = matrices
    weights = library.Weights(ctypes.sizeof(library.Weights), batch, rows, columns, transposed)
    session = library.current()
    with session.working():
        session.call(function, session.context, ctypes.byref(weights), given.address, math.prod(given.shape),
                     made.address, made_bytes)


def _convert(function: str, operator: Any, matrices: tuple[int, int, int], transposed: bool, home: Any, array: Any,
             found: arrays.Array, shape: tuple[int, ...]) -> Any:
    """A new array of bytes, of this shape, by C or by the operator."""
    batch, rows, columns = matrices
    if found.device != "host" and math.prod(matrices):
        if operator is _unpacker:
            array = array.reshape((batch, *_panels(rows, columns)))
        made = operator(transposed)(array, B=batch, K=rows, N=columns)
        if math.prod(matrices) % 2 and operator is _unpacker:
            made[-1:] &= 15  # half of the last byte is no code
        return made.reshape(shape)
    make, arguments, keywords = home.maker(shape, "u8", found.device)
    made = make(*arguments, **keywords)
    if math.prod(matrices):
        _in_c(function, matrices, transposed, found, home.describe("out", made, True), math.prod(shape))
    return made


def pack(weights: Any, transposed: bool = False, *, shape: Sequence[int] | None = None) -> Any:
    """4-bit weights as a `packed` input takes them: an array of bytes of the same library on the same device, of
    the shape [..., ceil(K/64), ceil(N/16), 512].

    `weights` are bytes of two codes, the even one in the low half: [..., K, N/2], or with `transposed`
    [..., N, K/2]. `shape` is that of the codes; it is needed where their last dimension is odd, because rows then
    share bytes and the array has one dimension.
    """
    home, found = _bytes_of("weights", weights)
    if shape is None:
        if len(found.shape) < 2:
            raise errors.ShapeError(f"weights have the shape {list(found.shape)}, which does not tell rows and columns: "
                                    "give shape=(K, N), of codes")
        shape = (*found.shape[:-1], 2 * found.shape[-1])
    lead, last = tuple(shape[:-2]), tuple(shape[-2:])
    if len(last) < 2 or any(length < 0 for length in shape):
        raise errors.ShapeError(f"shape={tuple(shape)} is not that of matrices")
    needed = -(-math.prod(shape) // 2)
    if math.prod(found.shape) != needed:
        raise errors.ShapeError(f"weights have {math.prod(found.shape)} bytes; codes of the shape {list(shape)} have "
                                f"{needed}")
    rows, columns = reversed(last) if transposed else last
    return _convert("kg_pack_weights", _packer, (math.prod(lead), rows, columns), transposed, home, weights, found,
                    (*lead, *_panels(rows, columns)))


def unpack(packed: Any, rows: int, columns: int, transposed: bool = False) -> Any:
    """What `pack` has made of K rows and N columns, back as bytes of two codes: [..., K, N/2], or with
    `transposed` [..., N, K/2]. Of one dimension where the last one of the codes is odd."""
    home, found = _bytes_of("packed", packed)
    panels = _panels(rows, columns)
    if rows < 0 or columns < 0 or found.shape[-3:] != panels:
        raise errors.ShapeError(f"packed has the shape {list(found.shape)}; {rows} rows and {columns} columns make "
                                f"[..., {', '.join(map(str, panels))}]")
    lead = found.shape[:-3]
    codes = (*lead, columns, rows) if transposed else (*lead, rows, columns)
    shape = (-(-math.prod(codes) // 2),) if codes[-1] % 2 else (*codes[:-1], codes[-1] // 2)
    return _convert("kg_unpack_weights", _unpacker, (math.prod(lead), rows, columns), transposed, home, packed, found,
                    shape)
