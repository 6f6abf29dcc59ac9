"""What was found out about the configs of one kernel: a file of JSON lines that is only appended to.

A line is written as soon as there is something to write, in one piece, under a lock of the file: a process that is
killed loses the measurement it was at, and processes that share the file do not mix their lines. What is no record is
skipped when the file is read: half a line at the end, lines of other programs or of other versions.
"""

from __future__ import annotations

import json
import math
import os
import time
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Iterator, Mapping, Optional, Union

try:
    import fcntl
except ImportError:  # without it, lines of several processes are kept apart by O_APPEND alone
    fcntl = None  # type: ignore[assignment]

VERSION = 1
MOST_BYTES = 64 << 20  # of a file that are read, from its end
LONGEST_LINE = 1 << 16
SYNC_SECONDS = 1.0  # how much a power failure may cost
VERDICTS = ("timed", "failed", "deadline", "winner")

Value = Union[int, float, str, bool, None]


@dataclass(frozen=True)
class Place:
    """What a measurement holds for."""

    kernel: str
    source: str  # hash of the kernel and of all that it calls
    key: tuple[tuple[str, Value], ...]  # names and values
    types: str  # of the arguments, with the values of constants
    alignment: str  # what else the compiler was told about them
    device: str  # "NVIDIA H100 80GB HBM3"
    chip: str  # "sm_90"
    triton: str

    def __str__(self) -> str:
        return f"{self.kernel} [{', '.join(f'{name}={value}' for name, value in self.key)}]"


@dataclass(frozen=True)
class Timing:
    """Milliseconds: the median, and the fifth and four fifths of so many samples."""

    ms: float
    low: float
    high: float
    count: int


@dataclass(frozen=True)
class Record:
    place: Place
    config: str
    verdict: str
    timing: Optional[Timing] = None
    reason: str = ""  # why it failed
    is_final: bool = True  # False: what failed may succeed another time
    asked: str = ""  # of a winner: hash of the list it was chosen from, and of how


_TEXTS = tuple(field.name for field in fields(Place) if field.name != "key")


def as_line(record: Record) -> bytes:
    members: dict[str, Any] = {"v": VERSION, **{name: getattr(record.place, name) for name in _TEXTS},
                               "key": dict(record.place.key), "config": record.config, "verdict": record.verdict,
                               "time": round(time.time(), 3)}
    if record.timing:
        members.update(ms=record.timing.ms, low=record.timing.low, high=record.timing.high, count=record.timing.count)
    if record.reason:
        members.update(reason=record.reason[:1000], final=record.is_final)
    if record.asked:
        members["asked"] = record.asked
    return json.dumps(members).encode() + b"\n"


def _is_value(value: Any) -> bool:
    return value is None or isinstance(value, str) or (isinstance(value, (int, float)) and abs(value) < 1 << 63)


def _is_time(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < math.inf


def from_members(members: Any) -> Optional[Record]:
    """None: it is no record."""
    if not isinstance(members, dict) or members.get("v") != VERSION or members.get("verdict") not in VERDICTS:
        return None
    key = members.get("key")
    if not isinstance(key, dict) or not all(map(_is_value, key.values())):
        return None
    if not all(isinstance(members.get(name), str) for name in (*_TEXTS, "config")):
        return None
    times = [members.get(name) for name in ("ms", "low", "high")]
    count = members.get("count", 1)
    timing = Timing(*map(float, times), count) if all(map(_is_time, times)) and isinstance(count, int) else None
    if timing is None and members["verdict"] == "timed":
        return None
    reason, asked = members.get("reason", ""), members.get("asked", "")
    if not isinstance(reason, str) or not isinstance(asked, str):
        return None
    place = Place(**{name: members[name] for name in _TEXTS}, key=tuple(key.items()))
    return Record(place, members["config"], members["verdict"], timing, reason, members.get("final") is not False, asked)


def from_line(line: bytes) -> Optional[Record]:
    if not line or len(line) > LONGEST_LINE:
        return None
    try:
        return from_members(json.loads(line))
    except (ValueError, RecursionError, OverflowError):
        return None


class File:
    """One file of records. Nothing that happens to it stops the work: what cannot be written is said once."""

    def __init__(self, path: Path) -> None:
        self.path, self.trouble = path, ""
        self._read_to = 0
        self._synced = 0.0

    def new_records(self) -> list[Record]:
        """Those that were appended since the last call, by whomever."""
        try:
            with open(self.path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size < self._read_to:  # another file, or one that was cut
                    self._read_to = 0
                file.seek(max(self._read_to, size - MOST_BYTES))
                data = file.read(MOST_BYTES)
                begin = file.tell() - len(data)
        except OSError:
            return []
        whole = data.rfind(b"\n") + 1  # what follows is being written, or was never finished
        self._read_to = begin + whole
        found = (from_line(line) for line in data[:whole].split(b"\n"))
        return [record for record in found if record is not None]

    @contextmanager
    def locked(self) -> Iterator[None]:
        """No other process appends meanwhile, where the file system has locks."""
        number = -1
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            number = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            if fcntl:
                fcntl.flock(number, fcntl.LOCK_EX)
        except OSError as error:
            self._say(error)
        try:
            yield
        finally:
            if number >= 0:
                os.close(number)  # and with it the lock

    def append(self, record: Record, is_urgent: bool = False) -> None:
        with self.locked():
            self.append_locked(record, is_urgent)

    def append_locked(self, record: Record, is_urgent: bool = False) -> None:
        """For whoever holds the lock already."""
        line = as_line(record)
        if len(line) > LONGEST_LINE:
            return
        number = -1
        try:
            number = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            size = os.fstat(number).st_size
            if size and os.pread(number, 1, size - 1) != b"\n":
                line = b"\n" + line  # after what a killed process left
            if os.write(number, line) != len(line):
                os.ftruncate(number, size)
                raise OSError("the disk is full")
            now = time.monotonic()
            if is_urgent or now - self._synced >= SYNC_SECONDS:
                os.fsync(number)
                self._synced = now
        except OSError as error:
            self._say(error)
        finally:
            if number >= 0:
                os.close(number)

    def _say(self, error: OSError) -> None:
        if self.trouble:
            return
        self.trouble = str(error)
        from ..library import log
        log.warning("kernelgen.triton: %s cannot be written (%s): tuning goes on, but what is measured will not be "
                    "remembered. KERNELGEN_HOME names another folder", self.path, error)


def path_of(home: Path, kernel: str, source: str) -> Path:
    name = "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in kernel)[:100]
    return home / "triton" / f"{name}-{source[:16]}.jsonl"


def key_of(names: Mapping[str, Any]) -> tuple[tuple[str, Value], ...]:
    """Names and values as a file keeps them."""
    return tuple((name, value if _is_value(value) else str(value))
                 for name, value in names.items())
