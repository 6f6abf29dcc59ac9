"""Tensors that a kernel reads and writes: every measurement must find them as they were."""

from __future__ import annotations

from typing import Any, Mapping

from .. import errors
from ..library import log
from .config_judges import Candidate


def _range(value: Any) -> tuple[int, int]:
    """The memory that a tensor's storage takes; empty: it is not known."""
    try:
        storage = value.untyped_storage()
        begin = int(storage.data_ptr())
        return begin, begin + int(storage.nbytes())
    except Exception:  # no tensor of torch, or one without memory
        return 0, 0


def _overlap(one: Any, other: Any) -> bool:
    (begin, end), (second, last) = _range(one), _range(other)
    return begin < last and second < end


def updated(one: Candidate, named: Mapping[str, Any]) -> set[str]:
    """Names of tensors that the kernel writes and also reads, under the same name or another."""
    found = set(one.work.updated)
    for written in one.work.writes:
        if any(_overlap(named.get(written), named.get(read)) for read in one.work.reads):
            found.add(written)
    return {name for name in found if hasattr(named.get(name), "clone") and hasattr(named[name], "copy_")}


class Guard:
    """Keeps copies of what is updated and not restored by the tuner's own hooks."""

    def __init__(self, tuner: Any, named: Mapping[str, Any]) -> None:
        self.named = named
        self.handled = {*tuner.reset_to_zero, *tuner.restore_value}
        self.told, self.copies = tuner._told, {}  # type: ignore[var-annotated]

    def save(self, one: Candidate) -> None:
        """Before the first launch of a config."""
        for name in sorted(updated(one, self.named) - self.handled - self.copies.keys()):
            try:
                self.copies[name] = self.named[name].clone()
            except Exception as error:
                raise errors.ArgumentError(
                    f"the kernel reads and writes {name}, which could not be copied for measurements ({error}); say "
                    f'reset_to_zero=["{name}"] if it may begin with zeros, or tune with a smaller one') from error
            if name not in self.told:
                self.told.add(name)
                log.warning('kernelgen.triton: the kernel reads and writes %s: it is restored after each measurement. '
                            'restore_value=["%s"] says so, and reset_to_zero=["%s"] that it begins with zeros',
                            name, name, name)

    def restore(self) -> None:
        for name, copy in self.copies.items():
            self.named[name].copy_(copy)
