"""Which config is used: the winner of measurements, or the nearest that is known. Pure, and the same everywhere."""

from __future__ import annotations

import math
from statistics import median
from typing import Iterable, Mapping, Optional, Sequence

from .records import Place, Record, Timing

# Medians that differ by less say nothing: two processes would choose differently. At least, and at most.
LEAST_NOISE, MOST_NOISE = 0.003, 0.01
FINAL_SHARE, FINALISTS = 0.05, 6  # those so close to the best are measured again, at most so many
FINAL_TIMES = 3  # measurements of each of them


def combined(timings: Sequence[Timing]) -> Timing:
    """Several measurements of one config as one."""
    return Timing(median(one.ms for one in timings), median(one.low for one in timings),
                  median(one.high for one in timings), sum(one.count for one in timings))


def noise_of(timing: Timing) -> float:
    """What a median may be off by, as a share."""
    return min(MOST_NOISE, max(LEAST_NOISE, (timing.high - timing.low) / 2 / timing.ms))


def winner(timings: Mapping[int, Timing]) -> int:
    """The index of the first config, in the order of the list, that the best cannot be told from."""
    best = min(timings, key=lambda index: (timings[index].ms, index))
    limit = timings[best].ms * (1 + noise_of(timings[best]))
    return min(index for index, one in timings.items() if one.ms <= limit)


def finalists(timings: Mapping[int, Timing]) -> list[int]:
    """Configs that may win, the best first; one: there is nothing to decide."""
    order = sorted(timings, key=lambda index: (timings[index].ms, index))
    limit = timings[order[0]].ms * (1 + FINAL_SHARE)
    return [index for index in order if timings[index].ms <= limit][:FINALISTS]


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def distance(one: Place, other: Place) -> Optional[float]:
    """How far apart two keys are: the sum of the logarithms of how many times their numbers are as large. None: they
    cannot be compared."""
    values, others = dict(one.key), dict(other.key)
    if values.keys() != others.keys() or one.types != other.types or one.kernel != other.kernel:
        return None
    total = 0.0
    for name, value in values.items():
        second = others[name]
        if _is_number(value) and _is_number(second) and value > 0 and second > 0:  # type: ignore[operator]
            total += abs(math.log2(value) - math.log2(second))  # type: ignore[operator]
        elif value != second or isinstance(value, bool) != isinstance(second, bool):
            return None
    return total


def _rank(wanted: Place, record: Record) -> Optional[tuple[bool, bool, float, bool, bool, str, str]]:
    """Smaller: nearer. None: not usable."""
    place = record.place
    apart = distance(wanted, place)
    if apart is None or place.chip != wanted.chip:
        return None
    return (place.device != wanted.device, place.source != wanted.source, apart, place.triton != wanted.triton,
            place.alignment != wanted.alignment, str(place.key), record.config)


def nearest(wanted: Place, known: Iterable[Record]) -> Optional[Record]:
    """The winner for what is most like `wanted`: of the device before others of its architecture, of this source
    before others, then by the distance of the keys, then by the version of Triton."""
    ranked = [(rank, record) for record in known for rank in [_rank(wanted, record)] if rank is not None]
    return min(ranked, key=lambda pair: pair[0])[1] if ranked else None


def difference(wanted: Place, found: Place) -> str:
    """In which ways what was found is not what was wanted; "": in none."""
    apart = [f"key {', '.join(f'{name}={value}' for name, value in found.key)}" if found.key != wanted.key else "",
             f"alignment ({found.alignment})" if found.alignment != wanted.alignment else "",
             f"device {found.device}" if found.device != wanted.device else "",
             f"Triton {found.triton}" if found.triton != wanted.triton else "",
             "another version of the kernel" if found.source != wanted.source else ""]
    return ", ".join(filter(None, apart))
