"""Which of the compiled configs deserve to be measured. Pure: no compiler, no device.

Gates refuse what cannot be good, points or the model put the others in order, and the first of them are kept. Every
config that is dropped has a reason. A list is never pruned to nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, Optional, Sequence

from .. import errors
from . import expected, ttir

JUDGES = ("gates", "points", "model")
# A judge of the user's: the smaller the better. None or an exception: it does not know.
Score = Callable[["Candidate"], Optional[float]]

# What another config with the same tile must be better by, for each that is kept already: errors of a model are
# alike within a tile, so that a list of one tile's variants would be right or wrong as a whole.
SAME_TILE = 0.02
SPILL_SHARE = 0.1  # of the instructions of the main loop
TIE = 1e-9  # relative


@dataclass
class Candidate:
    """One config, and what became of it."""

    index: int  # in the list that was given
    config: Any
    words: str  # the config, for readers
    grid: Optional[tuple[int, ...]] = None
    work: ttir.Work = field(default_factory=ttir.Work)
    cubin: Mapping[str, Any] = field(default_factory=dict)  # report of libkernelgen; {}: not known
    ptx: Mapping[str, Any] = field(default_factory=dict)
    unread: str = ""  # why libkernelgen could not read the code
    code: str = ""  # hash of what would run; "": not known
    stages: int = 1
    compulsory_bytes: float = 0.0
    reason: Optional[str] = None  # why it was dropped; None: it is kept
    is_reserve: bool = False  # dropped, but it may run if nothing else does
    score: Optional[float] = None
    foreseen: Optional[float] = None  # seconds, by its TTIR alone

    def drop(self, reason: str, reserve: bool = True) -> None:
        self.reason, self.is_reserve = reason, reserve

    @property
    def tile(self) -> Any:
        """Configs with the same products are alike; without products none are."""
        return tuple((dot.m, dot.n) for dot in self.work.dots) or self.index

    @property
    def facts(self) -> expected.Facts:
        blocks = math.prod(self.grid) if self.grid else 0
        occupancy = self.cubin["occupancy"]
        return expected.Facts(blocks, occupancy["blocks"], occupancy["threads"], self.stages, self.work,
                              self.compulsory_bytes, self.cubin)


def _main_loop(kernel: Mapping[str, Any]) -> Mapping[str, Any]:
    index = kernel.get("main_loop")
    return kernel["loops"][index] if index is not None else {}


# ---- Gates: each returns a reason, or None


def _not_launchable(one: Candidate) -> Optional[str]:
    occupancy = one.cubin.get("occupancy")
    if not occupancy or occupancy["blocks"] > 0:
        return None
    return f"cannot be launched: no block fits on an SM, by its {occupancy['limiter'].replace('_', ' ')}"


def _without_matrix_units(one: Candidate) -> Optional[str]:
    narrow = any(dot.bits <= 16 for dot in one.work.dots)
    if narrow and one.ptx and not one.ptx["mix"].get("tensor"):
        return "its products do not use the matrix units"
    return None


def _without_copies_ahead(one: Candidate) -> Optional[str]:
    loaded = any(dot.in_loop and dot.loaded_bytes > 0 for dot in one.work.dots)
    mix = one.ptx.get("mix", {})
    if one.stages > 1 and loaded and mix and not mix.get("async_copy") and not mix.get("bulk_copy"):
        return f"{one.stages} stages, but nothing is copied ahead of the products"
    return None


def _spills(one: Candidate) -> Optional[str]:
    loop = _main_loop(one.cubin)
    spilled = (loop.get("spill_loads") or 0) + (loop.get("spill_stores") or 0)
    if spilled <= SPILL_SHARE * (loop.get("instructions") or math.inf):
        return None
    return (f"registers spill in the main loop: {loop['spill_loads']} reloads and {loop['spill_stores']} saves in "
            f"{loop['instructions']:.0f} instructions")


# (gate, is what it refuses a reserve)
GATES: Sequence[tuple[Callable[[Candidate], Optional[str]], bool]] = (
    (_not_launchable, False), (_without_matrix_units, True), (_without_copies_ahead, True), (_spills, True))


def apply_gates(candidates: Sequence[Candidate]) -> None:
    for one in candidates:
        for gate, is_reserve in GATES:
            reason = gate(one) if one.reason is None else None
            if reason:
                one.drop(reason, is_reserve)


def drop_duplicates(candidates: Sequence[Candidate]) -> None:
    """Of configs that run the same code with the same grid, the first stays."""
    first: dict[Any, Candidate] = {}
    for one in candidates:
        if one.reason is not None or not one.code:
            continue
        known = first.setdefault((one.code, one.grid), one)
        if known is not one:
            one.drop(f"is the same code as {known.words}", reserve=False)


# ---- Order


def _points(one: Candidate) -> Optional[float]:
    return -one.ptx["points"] if one.ptx else None


def _model(one: Candidate) -> Optional[float]:
    return expected.seconds(one.facts) if one.cubin.get("occupancy") else None


def score_of(judge: Any) -> Optional[Score]:
    """The function of a judge by name, or the user's own; None: gates alone."""
    if callable(judge):
        return judge
    if judge not in JUDGES:
        raise errors.ArgumentError(f'judge="{judge}" is not known; there are {", ".join(JUDGES)}, or a function')
    return {"gates": None, "points": _points, "model": _model}[judge]


def count_of(top: Any, total: int) -> int:
    """How many of `total` are kept: a share, rounded down but not to nothing, or a number."""
    if isinstance(top, bool) or not isinstance(top, (int, float)) or not top > 0:
        raise errors.ArgumentError(f"top={top!r} is neither a share such as 0.2 nor a number of configs")
    if isinstance(top, float):
        if top > 1:
            raise errors.ArgumentError(f"top={top} is no share; say {int(top)} for a number of configs")
        return max(1, int(total * top + 1e-9))
    return min(top, total)


def _scored(candidates: Sequence[Candidate], score: Score) -> list[Candidate]:
    """Those with a score, the best first; equal scores in the order of the list."""
    for one in candidates:
        try:
            value = score(one)
        except Exception:  # of the user's function, or of a fact that is not there
            value = None
        one.score = None if value is None or math.isnan(value) else float(value)
    known = [one for one in candidates if one.score is not None]
    return sorted(known, key=lambda one: (one.score, one.index))


def _hedged(ordered: Sequence[Candidate], count: int) -> list[Candidate]:
    """The first `count`, taking turns between tiles that are expected to be about equally good."""
    left, kept, taken = list(ordered), [], {}
    while left and len(kept) < count:
        best = min(left, key=lambda one: (one.score * (1 + SAME_TILE * taken.get(one.tile, 0)), one.index))
        left.remove(best)
        kept.append(best)
        taken[best.tile] = taken.get(best.tile, 0) + 1
    return kept


def select(candidates: Sequence[Candidate], top: Any = 0.2, judge: Any = "model") -> str:
    """Drops all but the best, with reasons. Returns a remark for the log; "": nothing to say."""
    score, count = score_of(judge), count_of(top, len(candidates))
    drop_duplicates(candidates)
    apply_gates(candidates)
    remarks = []
    if all(one.reason is not None for one in candidates):
        remarks.append(_relent(candidates))
    kept = [one for one in candidates if one.reason is None]
    if score is not None and len(kept) > count:
        remarks.append(_keep_best(kept, count, judge, score))
    return "; ".join(filter(None, remarks))


def _keep_best(kept: Sequence[Candidate], count: int, judge: Any, score: Score) -> str:
    """Drops all but `count`, and those that the judge cannot tell from the last. Returns a remark."""
    ordered = _scored(kept, score)
    name = judge if isinstance(judge, str) else getattr(judge, "__name__", "the function")
    if not ordered:
        return f"{name} could not order the configs: all that may run are kept"
    chosen = _hedged(ordered, count) if judge == "model" else list(ordered[:count])
    last = max(one.score for one in chosen)
    ties = [one for one in ordered if one not in chosen and abs(one.score - last) <= TIE * abs(last)]
    if judge == "model":
        ties = []  # equal times of one tile: the hedge has chosen between them
    elif len(ties) > count:
        ties = ties[:count]
    for one in kept:
        if one in chosen or one in ties:
            continue
        if one.score is None:
            one.drop(f"{name} does not know it")
        else:
            rank = 1 + ordered.index(one)
            one.drop(f"{name} ranks it {rank} of {len(ordered)} ({_in_words(judge, one.score)}; the best has "
                     f"{_in_words(judge, ordered[0].score)})")
    return f"{len(ties)} more are kept, which {name} cannot tell from the last" if ties else ""


def _in_words(judge: Any, score: Optional[float]) -> str:
    if score is None:
        return "nothing"
    if judge == "model":
        return f"{score * 1e6:.2f} us"
    return f"{-score:g} points" if judge == "points" else f"{score:.4g}"


def _relent(candidates: Sequence[Candidate]) -> str:
    """All were refused: those that may run come back, or all, so that Triton itself says what is wrong."""
    back = [one for one in candidates if one.is_reserve] or list(candidates)
    for one in back:
        one.reason = None
    which = "those that may run" if any(one.is_reserve for one in back) else "all"
    for one in back:
        one.is_reserve = False
    return f"no config passed: {which} are in question again"
