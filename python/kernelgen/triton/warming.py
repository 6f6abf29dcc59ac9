"""Calls that are described ahead of time, with tensors made for them."""

from __future__ import annotations

from typing import Any, Iterator, Mapping, Sequence

from .. import errors


def is_list_of_calls(args: Sequence[Any], names: Sequence[str]) -> bool:
    """A list of tuples and dicts alone; kernels of one argument take no such thing."""
    return (len(args) == 1 and isinstance(args[0], (list, tuple)) and bool(args[0])
            and all(isinstance(call, (tuple, list, dict)) for call in args[0]))


def _is_dtype(value: Any) -> bool:
    return type(value).__name__ == "dtype" and hasattr(value, "itemsize")


def _filled(tensor: Any) -> Any:
    """Random values for floating-point types; zeros, which are in range as indices, for others."""
    tensor.zero_()
    if tensor.dtype.is_floating_point and tensor.dtype.itemsize > 1:
        tensor.normal_()
    return tensor


def _made(value: Any) -> Any:
    """A tensor for what only describes one."""
    if isinstance(value, (tuple, list)) and len(value) == 2 and _is_dtype(value[1]):
        import torch
        return _filled(torch.empty(tuple(value[0]), dtype=value[1], device=torch.device("cuda")
                                   if torch.cuda.is_available() else "cpu"))
    if getattr(getattr(value, "device", None), "type", None) == "meta":
        import torch
        return _filled(torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="cuda"
                                           if torch.cuda.is_available() else "cpu"))
    return value


def calls(described: Sequence[Any], names: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], Mapping[str, Any]]]:
    """Positional and named arguments of each."""
    for index, call in enumerate(described):
        if isinstance(call, dict):
            values, others = [], dict(call)
            for name in names:
                if name not in others:
                    break
                values.append(_made(others.pop(name)))
            yield tuple(values), {name: _made(value) if name in names else value for name, value in others.items()}
        elif len(call) <= len(names):
            yield tuple(map(_made, call)), {}
        else:
            raise errors.ArgumentError(f"call {index} of warmup has {len(call)} arguments; the kernel takes {len(names)}")
