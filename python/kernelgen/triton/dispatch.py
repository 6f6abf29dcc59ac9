"""From a call's arguments to the entry of a table, in as few steps as Python allows.

A table belongs to one combination of argument types: there it is known which arguments have a dtype.
"""

from __future__ import annotations

from operator import attrgetter, itemgetter
from typing import Any, Callable, Optional, Sequence

_dtype = attrgetter("dtype")


def _getter(places: Sequence[int]) -> Callable[[Any], tuple[Any, ...]]:
    if len(places) > 1:
        return itemgetter(*places)
    if places:
        place = places[0]
        return lambda args: (args[place],)
    return lambda args: ()


class Table:
    """For calls with arguments of these types. `entries`: what the caller likes to find."""

    __slots__ = ("values", "tensors", "entries")

    def __init__(self, args: Sequence[Any], names: Sequence[str], keys: Sequence[str]) -> None:
        self.values = _getter([names.index(name) for name in keys])
        self.tensors = _getter([place for place, value in enumerate(args) if hasattr(value, "dtype")])
        self.entries: dict[Any, Any] = {}

    def key(self, args: Sequence[Any]) -> tuple[Any, ...]:
        return (*self.values(args), *map(_dtype, self.tensors(args)))


def table_for(args: Sequence[Any], kwargs: Any, names: Sequence[str], keys: Sequence[str]) -> Optional[Table]:
    """None: some argument that counts is given by its name."""
    if any(name in kwargs for name in names) or len(args) > len(names):
        return None
    present = names[:len(args)]
    return Table(args, present, [name for name in keys if name in present])
