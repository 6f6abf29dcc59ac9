"""Configs of one Triton call: compiled once, judged several ways, measured in turns.

For triton_pruning.py and triton_autotune.py.
"""

import copy
import time
from collections import OrderedDict
from statistics import median

import torch

from kernelgen.triton import analysis, limits, pruning, source

FLUSH_BYTES = 512 << 20  # long enough to write that the next launch is ready before it is done
COARSE_ROUNDS, COARSE_SECONDS = 15, 2.5
PROMISING = 1.5  # of the fastest: others are measured no further
FINAL_ROUNDS, FINALISTS = 40, 12
_compiled_without_rules: OrderedDict = OrderedDict()  # apart from what is refused


class Judged:
    """What is known of all configs. Those that a rule refuses are compiled too, for they can be measured."""

    def __init__(self, kernel, configs, named, target, deadline=40.0):
        self.kernel, target = kernel, source.make_target(target)
        found = analysis.Analysis(kernel, configs, named, target, device=analysis.device_name(target))
        for _ in found.compile(deadline):
            pass
        self.candidates = found.candidates
        self.words = [one.words for one in found.candidates]
        refused = [one.config for one in found.candidates if one.reason]
        self.failed = {}
        lenient = analysis.Analysis(kernel, refused, named, target)
        lenient.limits = limits.Limits(1 << 30, target.warp_size, False)
        analysis._compiled, with_rules = _compiled_without_rules, analysis._compiled
        for one in lenient.compile(deadline):
            if one.reason:
                self.failed[self.words.index(one.words)] = one.reason
        analysis._compiled = with_rules
        # Of the same code with the same grid, the first is measured.
        first = {}
        for one in found.candidates:
            first.setdefault((one.code, one.grid) if one.code else one.index, one.index)
        self.runnable = [index for index in sorted(first.values()) if index not in self.failed]

    def select(self, judge, top):
        """Indices of those kept, what is expected of all that have an expectation, and remarks."""
        outcome = pruning.Outcome("", len(self.candidates), candidates=[copy.copy(one) for one in self.candidates])
        pruning.finish(outcome, top, judge)
        kept = [one.index for one in outcome.candidates if one.reason is None]
        return kept, {one.words: one.score for one in outcome.candidates if one.score is not None}, outcome.remarks


def _round(launch, indices, flush):
    """Milliseconds of one launch of each, with a cold L2."""
    events = []
    for index in indices:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        flush.zero_()
        begin.record()
        launch(index)
        end.record()
        events.append((index, begin, end))
    torch.cuda.synchronize()
    return {index: begin.elapsed_time(end) for index, begin, end in events}


def _rounds(launch, indices, flush, count, seconds=float("inf")):
    begin, found, done = time.monotonic(), {index: [] for index in indices}, 0
    while done < count and (done < 3 or time.monotonic() - begin < seconds):
        for index, value in _round(launch, indices if done % 2 == 0 else indices[::-1], flush).items():
            found[index].append(value)
        done += 1
    return {index: median(values) for index, values in found.items()}


def times_in_turns(launch, indices, kept):
    """(coarse medians of all, medians of the finalists and of those kept, reasons of failures), in milliseconds."""
    flush, failed, alive = torch.empty(FLUSH_BYTES // 4, dtype=torch.int32, device="cuda"), {}, []
    for index in indices:
        try:
            launch(index)
            alive.append(index)
        except Exception as error:  # over a limit of the device
            failed[index] = (str(error).splitlines() or [type(error).__name__])[0][:200]
    torch.cuda.synchronize()
    if not alive:
        raise RuntimeError(f"no config can be launched: {failed}")
    coarse = _rounds(launch, alive, flush, 3)
    best = min(coarse.values())
    promising = [index for index in alive if coarse[index] <= PROMISING * best]
    coarse.update(_rounds(launch, promising, flush, COARSE_ROUNDS, COARSE_SECONDS))
    finalists = sorted(coarse, key=coarse.get)[:FINALISTS]
    finalists += [index for index in kept if index in coarse and index not in finalists and index in promising]
    if not any(index in finalists for index in kept):  # none of those kept is promising
        finalists += [index for index in kept if index in coarse]
    fine = _rounds(launch, finalists, flush, FINAL_ROUNDS)
    return coarse, fine, failed
