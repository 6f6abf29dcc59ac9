"""One op under siege: the faults of the catalogue planted in its kernel, and their verdicts.

Faults are judged in batches, by one process of the tool for each seed, so that the gate makes its
inputs once for all of them. A batch ends with the right kernel, which must pass, and nothing may be
left behind; otherwise, or if there is no complete answer, its candidates are judged once more, each
by a process of its own.
"""

import collections
import dataclasses
import os
import tempfile

from planted import catalogue, differ, judging
from planted.catalogue import CONTAINED, OUT
from planted.cuda_kernels import ONE_THREAD, CudaKernel
from planted.host_kernels import HostKernel
from planted.subject import Refused, Subject, Tool

# What became of a fault, over all seeds.
FINE, MISSED, SKIPPED, HARMLESS, BEYOND = "ok", "MISSED", "skipped", "harmless", "beyond"
COMPILED = "compiled"  # there is no GPU to run it
KINDS = {"host": HostKernel, "cuda": CudaKernel}


@dataclasses.dataclass
class Planted:
    """A fault in a kernel, in a file; `fault` None: the emitted kernel."""
    kernel: object
    fault: object
    path: str
    outcomes: list = dataclasses.field(default_factory=list)


class Attack:
    """What `run` finds is in `lines` of the report, `records` of the log and `counts`."""

    def __init__(self, options, device, folder, take_slow):
        self.options, self.device, self.folder = options, device, folder
        self.take_slow = take_slow  # tells whether a fault that takes minutes is this op's to show
        self.lines, self.records, self.counts = [], [], collections.Counter()

    # ---- Verdicts ----

    def plant(self, kernel, fault, name):
        folder = self.options.keep or self.folder
        path = os.path.join(folder, f"{kernel.subject.op.name}_{name}{kernel.suffix}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(kernel.source(fault, judging.notes_of(path)))
        return Planted(kernel, fault, path)

    def judge_alone(self, planted, seed, *more):
        kernel = planted.kernel
        return judging.verify(kernel.subject.tool, [*kernel.subject.words(kernel.sizes), *more],
                              planted.path, self.device, seed, self.options.limit)

    def judge_batch(self, batch, right, seed):
        """The outcomes of candidates of one kernel with one seed."""
        if len(batch) == 1:
            return [self.judge_alone(batch[0], seed)]
        subject, sizes = right.kernel.subject, right.kernel.sizes
        paths = [planted.path for planted in batch] + [right.path]
        *outcomes, last = judging.verify_all(subject.tool, subject.words(sizes), paths, self.device,
                                             seed, self.options.limit)
        spoilt = not last or last.verdict not in (judging.PASSED, judging.COMPILES) or any(
            outcome.left for outcome in outcomes if outcome)
        return [self.judge_alone(planted, seed) if spoilt or not outcome else outcome
                for planted, outcome in zip(batch, outcomes)]

    def judge(self, batch, right):
        """Gives each candidate an outcome for every seed."""
        first = self.options.first_seed
        for seed in range(first, first + self.options.seeds):
            for planted, outcome in zip(batch, self.judge_batch(batch, right, seed)):
                if self.is_watched(planted.fault) and outcome.verdict == judging.PASSED:
                    outcome = self.judge_alone(planted, seed, "--sanitize")
                planted.outcomes.append(outcome)

    def is_watched(self, fault):
        return fault and fault.watched and self.options.target == "cuda"

    # ---- One fault ----

    def differs(self, kernel, fault):
        """What a fault can change follows from the formula: on a GPU what it does on the host."""
        if self.options.target != "host":
            if fault.name in ONE_THREAD:
                return differ.SHOWS, ""
            kernel = HostKernel(kernel.subject, kernel.sizes, self.folder, "host")
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            return differ.shows(kernel, fault, folder)

    def result(self, planted):
        """(what became of it, why)."""
        fault, outcomes = planted.fault, planted.outcomes
        bad = [outcome for outcome in outcomes if outcome.verdict not in
               (judging.PASSED, judging.REFUSED, judging.COMPILES) or outcome.left]
        passed = [outcome for outcome in outcomes if outcome.verdict == judging.PASSED]
        if bad:
            left = f"{bad[0].left} processes left behind" if bad[0].left else bad[0].verdict
            return MISSED, f"{left}: {bad[0].reason}".rstrip(": ")
        if outcomes[0].verdict == judging.COMPILES:
            return COMPILED, ""
        if fault.expects == CONTAINED or not passed:
            return FINE, ""
        if fault.expects == OUT:
            return BEYOND, fault.why
        shown, how = ((differ.SHOWS, "") if self.is_hidden(fault)
                      else self.differs(planted.kernel, fault))
        if shown == differ.SHOWS:
            return MISSED, how
        return HARMLESS, f"{shown}: {how}"

    @staticmethod
    def is_hidden(fault):
        """Faults that no comparison of results would show."""
        return fault.group in ("memory", "state", "process")

    def report(self, subject, fault, became, why, outcomes):
        self.counts[became] += 1
        rejected = [outcome for outcome in outcomes if outcome.verdict == judging.REFUSED]
        share = f"{len(rejected)}/{len(outcomes)}" if outcomes else ""
        caught = rejected[0].case or rejected[0].reason.splitlines()[0] if rejected else ""
        self.lines.append(
            f"  {became:9} {fault.name:22} {share:5} {why or caught}"[:160].rstrip())
        self.records.append({"op": str(subject), "fault": fault.name, "group": fault.group,
                             "expects": fault.expects, "became": became, "why": why,
                             "verdicts": [vars(outcome) for outcome in outcomes]})

    # ---- All faults ----

    def run(self, path, op, dtypes, sizes):
        """Gives itself, done."""
        try:
            tool = Tool(self.options.kernelgen, os.path.join(self.folder, "home"))
            subject = Subject(tool, path, op, dtypes, sizes)
            self.lines.append(f"{subject}  "
                              + " ".join(f"{k}={v}" for k, v in subject.sizes.items()))
            self.attack(subject)
        except Refused as why:
            self.lines.append(f"  left out: {why}" if self.lines else f"{op.name}: left out: {why}")
        return self

    def attack(self, subject):
        kind, folder = KINDS[self.options.target], self.options.keep or self.folder
        usual = kind(subject, subject.sizes, folder, self.device)
        controls = {usual: self.plant_controls(usual, "")}
        large = None
        everything = []  # (fault, why it is not planted, where it is)
        for fault in catalogue.faults():
            if not self.chosen(fault):
                continue
            why = kind.why_not(fault) or self.why_not(subject, fault) or usual.hidden(fault)
            if not why and fault.large and subject.large != subject.sizes and not large:
                large = kind(subject, subject.large, folder, self.device)
                controls[large] = self.plant_controls(large, "_large")
            kernel = large if fault.large and large else usual
            everything.append((fault, why, None if why else self.plant(kernel, fault, fault.name)))
        self.judge_all([planted for _, _, planted in everything if planted], controls)
        for of_kernel in controls.values():
            self.check_controls(of_kernel)
        for fault, why, planted in everything:
            became, why = (SKIPPED, why) if why else self.result(planted)
            self.report(subject, fault, became, why, planted.outcomes if planted else [])

    def judge_all(self, candidates, controls):
        batches = collections.defaultdict(list)
        for kernel, planted in controls.items():
            batches[kernel, False, ""] += planted
        for planted in candidates:
            alone = planted.fault.name if planted.fault.slow else ""
            batches[planted.kernel, planted.fault.is_hostile, alone].append(planted)
        for (kernel, _, _), batch in batches.items():
            self.judge(batch, controls[kernel][-1])

    def chosen(self, fault):
        return not self.options.fault or {fault.name, fault.group} & set(self.options.fault)

    def why_not(self, subject, fault):
        """Why the fault is not planted in this op, or None."""
        why = fault.needs(subject) if fault.needs else None
        if not why and fault.slow and not self.take_slow(fault):
            return "takes the time limit; done on another op (--slow)"
        return why

    def plant_controls(self, kernel, suffix):
        """The emitted file, and the wrapper that plants nothing."""
        return [self.plant(kernel, None, "emitted" + suffix),
                self.plant(kernel, catalogue.NOTHING, "nothing" + suffix)]

    def check_controls(self, controls):
        """Both must pass."""
        for planted, name in zip(controls, ("the emitted kernel", "the wrapper alone")):
            wrong = [outcome for outcome in planted.outcomes
                     if outcome.verdict not in (judging.PASSED, judging.COMPILES)]
            self.counts["controls"] += 1
            if wrong:
                self.counts["refusals"] += 1
                self.lines.append(
                    f"  REFUSED   {name}: {wrong[0].verdict}: {wrong[0].reason}"[:300])
