"""The search for the config of one key: compiled side by side, measured while the rest is compiled, recorded at once.

What is measured, in this order: configs with a place among the best of those compiled so far, as long as there is
something to compile; then what the pruner keeps of all; then those that cannot be told from the best, again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Optional, Sequence

from .. import errors
from ..library import log
from . import analysis, compiling, config_judges, foresight, launch_timer, pruning, reasons, winners
from .known import Known
from .records import Place, Record, Timing

LEAST = 4  # configs that are measured, however short the list
# Failures that another attempt would not change. Of others (no memory was left), the next search tries again.
FINAL_ERRORS = ("OutOfResources", "CompileTimeAssertionFailure", "PTXASError", "CompilationError", "Lost", "Hung")

# Milliseconds of a config; raises if it cannot run. The second: those of the best so far, if any.
Measure = Callable[[config_judges.Candidate, Optional[float]], Timing]
# (what, done, total)
Show = Callable[[str, int, int], object]


@dataclass
class Options:
    top: Any = 0.2
    judge: Any = "model"
    deadline: float = compiling.DEADLINE
    workers: Optional[int] = None

    def count(self, total: int) -> int:
        return min(total, max(LEAST, config_judges.count_of(self.top, total)))


class Search:
    """One search. `analysed`: None: nothing can be known of the code; all configs are measured."""

    def __init__(self, configs: Sequence[Any], words: Sequence[str], analysed: Optional[analysis.Analysis], place: Place,
                 known: Known, measure: Measure, options: Options, show: Optional[Show] = None) -> None:
        self.analysed, self.place, self.known, self.measure, self.options = analysed, place, known, measure, options
        self.candidates = analysed.candidates if analysed else [
            config_judges.Candidate(index, config, words[index]) for index, config in enumerate(configs)]
        self.words, self.show = words, show or (lambda what, done, total: None)
        self.timings: dict[int, list[Timing]] = {}
        self.failures: dict[int, BaseException] = {}
        self.count = options.count(len(self.candidates))
        self.frontier = foresight.Frontier(options.judge, self.count)
        self.expected = max(1, min(len(self.candidates), 2 * self.count))  # configs that will be compiled, about
        self.decided = self.compiled = self.measured = 0
        self.remarks: list[str] = []

    def run(self) -> int:
        """The index of the winner."""
        self._recall()
        for index in self._kept_or_all():
            self._time(index)
        if not self.timings:
            self._try_reserves()
        self._decide_finalists()
        return winners.winner(self.medians())

    # ---- What was found out before

    def _recall(self) -> None:
        """What earlier searches measured is not measured again; what failed for good is not tried again."""
        times, failed = self.known.timings(self.place), self.known.failures(self.place)
        for one in self.candidates:
            words = self.words[one.index]
            if words in times:
                self.timings[one.index] = list(times[words])
            elif words in failed:
                one.drop(f"failed before: {failed[words]}", reserve=False)

    # ---- Compilation

    def _order(self) -> list[config_judges.Candidate]:
        """What won elsewhere first, then the best by TTIR. Without that, across the list in strides, so that early
        results are of many kinds."""
        won = {record.config for record in self.known.all_winners()}
        total = len(self.candidates)
        step = max(1, round(total ** 0.5))
        strided = [index for begin in range(step) for index in range(begin, total, step)]
        left = [self.candidates[index] for index in strided if self.candidates[index].reason is None]
        return sorted(left, key=lambda one: (self.words[one.index] not in won, one.foreseen or 0.0))

    def _kept_or_all(self) -> list[int]:
        if self.analysed:
            try:
                return self._kept()
            except errors.Error:  # of a launch: the device is not usable any more
                raise
            except Exception as error:  # no process could be started, or the like
                log.warning("kernelgen.triton: %s: configs are not pruned: %s: %s", self.place, type(error).__name__, error)
        return [one.index for one in self.candidates if one.reason is None]

    def _kept(self) -> list[int]:
        """Compiles what deserves it, and measures meanwhile. What the pruner keeps, the best first."""
        assert self.analysed is not None
        if self.options.judge == "model":
            self.analysed.sketch(self.options.deadline, self.options.workers)
        stream = self.analysed.stream(self._order(), self.options.deadline, self.options.workers, self.frontier,
                                      lambda: self._next_of_compiled() is None)
        for one in stream:
            if one is not None:
                self._note(one)
                continue
            index = self._next_of_compiled()
            if index is not None:
                self._time(index)
        outcome = pruning.Outcome(self.place.kernel, len(self.candidates), candidates=list(self.candidates))
        pruning.finish(outcome, self.count, self.options.judge)
        self.remarks += outcome.remarks
        pruning._log(outcome)
        kept = {id(config) for config in outcome.kept}
        found = [one for one in self.candidates if id(one.config) in kept]
        return [one.index for one in sorted(found, key=lambda one: (one.score or 0.0, one.index))]

    def _note(self, one: config_judges.Candidate) -> None:
        """Something is known of a config: its facts, or why it was dropped."""
        self.decided += 1
        made = self.analysed.compiled(one) if self.analysed else None
        self.compiled += isinstance(made, compiling.Compiled)
        if one.reason is not None and not one.is_reserve:
            is_final = made is not None and "process ended with" not in one.reason  # not: memory was short
            self._record(one.index, "deadline" if "was not done after" in one.reason else "failed", None, one.reason,
                         is_final)
        self._tell("compiled", self.decided)

    def _next_of_compiled(self) -> Optional[int]:
        """What deserves to be measured before everything is compiled: of those compiled, the best of the share that
        will be kept of all."""
        scores = self.frontier.scores
        best = sorted(scores, key=lambda index: (scores[index], index))[:len(scores) * self.count // self.expected]
        return next((index for index in best if index not in self.timings and index not in self.failures), None)

    # ---- Measurement

    def _best(self) -> Optional[float]:
        return min((one.ms for one in self.medians().values()), default=None)

    def medians(self) -> dict[int, Timing]:
        """Of all that were measured, by their place in the list."""
        return {index: winners.combined(found) for index, found in self.timings.items()}

    def _time(self, index: int, again: bool = False) -> None:
        """Measures a config, unless it was; whatever comes of it is recorded before anything else happens."""
        if not again and (index in self.timings or index in self.failures):
            return
        one = self.candidates[index]
        try:
            found = self.measure(one, self._best())
        except (launch_timer.Lost, launch_timer.Hung) as error:
            self._record(index, "deadline" if isinstance(error, launch_timer.Hung) else "failed", reason=str(error))
            raise type(error)(f"{self.place} with {one.words}: {error}. This is recorded: the next search leaves this "
                              "config out and goes on from what was measured; restart the process") from error
        except Exception as error:
            self.failures[index] = error
            one.drop(f"could not be launched: {type(error).__name__}: {error}", reserve=False)
            reasons.tell("failed", kernel=self.place.kernel, config=one.words, reason=one.reason)
            self._record(index, "failed", reason=f"{type(error).__name__}: {error}",
                         is_final=type(error).__name__ in FINAL_ERRORS)
            return
        self.timings.setdefault(index, []).append(found)
        self._record(index, "timed", found)
        self.measured += 1
        reasons.tell("timed", kernel=self.place.kernel, config=one.words, ms=round(found.ms, 6), count=found.count)
        self._tell("measured", self.measured)

    def _record(self, index: int, verdict: str, found: Optional[Timing] = None, reason: str = "",
                is_final: bool = True) -> None:
        self.known.add(Record(self.place, self.words[index], verdict, found, reason, is_final),
                       is_urgent=verdict == "deadline")

    def _try_reserves(self) -> None:
        """None of those kept could be launched: what was dropped for being slow, until one runs."""
        rest = sorted((one for one in self.candidates if one.reason is None or one.is_reserve),
                      key=lambda one: (one.score if one.score is not None else 0.0, one.index))
        for one in rest:
            self._time(one.index)
            if self.timings:
                return
        for one in self.candidates:  # for a message of the launch itself
            if one.index not in self.failures:
                self._time(one.index)
            if self.timings:
                return
        first = min(self.failures)
        raise errors.UnsupportedError(f"{self.place}: none of {len(self.candidates)} configs can be launched; "
                                      f"{self.candidates[first].words}: {self.failures[first]}") from self.failures[first]

    def _decide_finalists(self) -> None:
        """Measures those that are close to the best in turns, so that a moment's disturbance chooses nothing."""
        while True:
            close = winners.finalists(self.medians())
            open_ = [index for index in close if len(self.timings[index]) < winners.FINAL_TIMES
                     and index not in self.failures]
            if len(close) < 2 or not open_:
                return
            fewest = min(len(self.timings[index]) for index in open_)
            for index in open_:
                if len(self.timings[index]) == fewest:
                    self._time(index, again=True)

    def _tell(self, what: str, done: int) -> None:
        self.show(what, done, len(self.candidates))
