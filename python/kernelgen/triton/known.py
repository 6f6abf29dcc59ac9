"""What is known of one kernel's configs: records of this machine, and configs that were shipped with a program."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, Optional, Sequence

from .. import errors
from ..library import log
from . import records, winners
from .records import Place, Record, Timing, fcntl

FORMAT = "kernelgen-triton-configs"


class Known:
    """By place. `file`: None: nothing is kept."""

    def __init__(self, file: Optional[records.File]) -> None:
        self.file = file
        self._timings: dict[Place, dict[str, list[Timing]]] = {}
        self._failures: dict[Place, dict[str, str]] = {}
        self._winners: dict[tuple[Place, str], Record] = {}  # the first for each list of configs
        self._latest: dict[Place, Record] = {}
        self.shipped: dict[Place, Record] = {}

    def refresh(self) -> None:
        """Reads what other processes have found out meanwhile."""
        for record in self.file.new_records() if self.file else []:
            self._add(record)

    def _add(self, record: Record) -> None:
        place, config = record.place, record.config
        if record.verdict == "timed" and record.timing:
            self._timings.setdefault(place, {}).setdefault(config, []).append(record.timing)
        elif record.verdict == "winner":
            self._winners.setdefault((place, record.asked), record)
            self._latest[place] = self._winners[(place, record.asked)]
        elif record.is_final:
            self._failures.setdefault(place, {})[config] = record.reason or record.verdict

    def add(self, record: Record, is_urgent: bool = False) -> None:
        """Something that was just found out."""
        if self.file:
            self.file.append(record, is_urgent)
            self.refresh()
        if not self.file or self.file.trouble:
            self._add(record)

    def timings(self, place: Place) -> dict[str, list[Timing]]:
        return self._timings.get(place, {})

    def failures(self, place: Place) -> dict[str, str]:
        return self._failures.get(place, {})

    def winner(self, place: Place, asked: str) -> Optional[Record]:
        """Of measurements of exactly this list of configs, or shipped for exactly this place."""
        return self._winners.get((place, asked)) or self.shipped.get(place)

    def settle(self, record: Record) -> Record:
        """Records a winner, unless another process was first: then that one counts, for all alike."""
        if self.file is None:
            self._add(record)
            return record
        with self.file.locked():
            self.refresh()
            first = self._winners.get((record.place, record.asked))
            if first:
                return first
            self.file.append_locked(record, is_urgent=True)
        self.refresh()
        if self.file.trouble:
            self._add(record)
        return self._winners.get((record.place, record.asked), record)

    @contextmanager
    def turn(self, place: Place, is_settled: Callable[[], bool], patience: float) -> Iterator[None]:
        """Until another process that measures the same is done, but no longer than so many seconds."""
        number, begin = -1, time.monotonic()
        offset = int(hashlib.sha256(repr(place).encode()).hexdigest()[:7], 16)
        try:
            while self.file and fcntl:
                try:
                    if number < 0:
                        self.file.path.parent.mkdir(parents=True, exist_ok=True)
                        number = os.open(self.file.path.with_name("turns.lock"), os.O_RDWR | os.O_CREAT, 0o644)
                    fcntl.lockf(number, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset)
                    break
                except OSError as error:
                    if error.errno not in (errno.EAGAIN, errno.EACCES) or number < 0:
                        break  # no folder, or no locks on its file system
                if time.monotonic() - begin > patience:
                    log.warning("kernelgen.triton: another process has been tuning %s for %.0f s; this one does not "
                                "wait any longer", place, patience)
                    break
                time.sleep(0.05)
                if is_settled():
                    break
            yield
        finally:
            if number >= 0:
                os.close(number)  # and with it the lock

    def all_winners(self) -> list[Record]:
        return [*self._latest.values(), *(record for place, record in self.shipped.items() if place not in self._latest)]

    def nearest(self, place: Place, is_usable: Callable[[str], bool]) -> Optional[Record]:
        """What frozen programs use where there is no winner."""
        return winners.nearest(place, (record for record in self.all_winners() if is_usable(record.config)))


# ---- Files that are shipped: one for each kernel, device and version of Triton


def _slug(text: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in text)[:80]


def save(folder: str | os.PathLike[str], found: Iterable[Record]) -> list[Path]:
    """Writes winners into a folder; returns the files. What a file had for other places stays in it."""
    by_file: dict[str, list[Record]] = {}
    for record in found:
        place = record.place
        name = f"{_slug(place.kernel)}.{_slug(place.device)}.triton-{_slug(place.triton)}.json"
        by_file.setdefault(name, []).append(record)
    written = []
    for name, some in sorted(by_file.items()):
        path = Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        merged = {record.place: record for record in (load(path) if path.exists() else [])}
        merged.update((record.place, record) for record in some)
        entries = [json.loads(records.as_line(record)) for record in merged.values()]
        for entry in entries:
            del entry["time"]  # files of the same choices are the same
        entries.sort(key=lambda entry: json.dumps(entry["key"]) + entry["types"] + entry["alignment"])
        lines = ",\n".join(json.dumps(entry) for entry in entries)
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_text(f'{{"format": "{FORMAT}", "configs": [\n{lines}\n]}}\n')
        os.replace(temporary, path)
        written.append(path)
    return written


def load(path: str | os.PathLike[str]) -> list[Record]:
    """Winners of one file, or of all files of a folder that are of this format."""
    path = Path(path)
    if path.is_dir():
        return [record for file in sorted(path.glob("*.triton-*.json")) for record in load(file)]
    try:
        document: Any = json.loads(path.read_bytes())
    except OSError as error:
        raise errors.ArgumentError(f"{path} cannot be read: {error}") from error
    except (ValueError, RecursionError) as error:
        raise errors.ArgumentError(f"{path} is no JSON ({error}); write such files with the kernel's save()") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT or not isinstance(document.get("configs"), list):
        raise errors.ArgumentError(f'{path} has no "format": "{FORMAT}" with a list "configs"; write such files with '
                                   "the kernel's save()")
    found: Sequence[Optional[Record]] = [records.from_members(members) for members in document["configs"]]
    bad = [index for index, record in enumerate(found) if record is None or record.verdict != "winner"]
    if bad:
        raise errors.ArgumentError(f"{path}: entry {bad[0]} of \"configs\" is no winner of a search"
                                   f"{f', and {len(bad) - 1} more' if bad[1:] else ''}; remove it")
    return [record for record in found if record is not None]
