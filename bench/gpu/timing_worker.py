"""What the processes that time have in common: the worker's side of timing_process.py.

The task comes as JSON on standard input. What happens goes out as lines of JSON through the file
that the task names: `about` once, a `stage` when something begins that may hang or crash, a `line`
when a shape is done, `died` when the GPU answers no more. A script defines its shapes and, as
methods of a class of its own, the contenders in them.
"""

import json
import os
import statistics
import subprocess
import sys
import time

import torch

from kernelgen_plan import Context
from timing import Clock, medians
from timing_process import OURS, empty_line

# Seconds of silence that are taken for a hang.
LIMIT = 40
SEARCH_LIMIT = 300
ROOFS = "read", "copy"  # they compute nothing
LIMITS = {"compile": 120, "measured": SEARCH_LIMIT + 60, "triton": SEARCH_LIMIT + 60}


class Unavailable(Exception):
    """A contender that cannot take part, and why."""


def words_of(problem):
    return f"{type(problem).__name__}: {' '.join(str(problem).split())[:300]}"


class Worker:
    """What all shapes share."""

    FLUSHES_BY_READING = False

    def __init__(self, task, tell):
        self.task, self.tell = task, tell
        self.stream = torch.cuda.Stream()
        torch.cuda.set_stream(self.stream)
        torch.set_float32_matmul_precision("highest")
        self.clock = Clock(self.stream, self.FLUSHES_BY_READING)
        self.contexts = {}
        tell(about=dict(device=torch.cuda.get_device_name(), torch=torch.__version__))

    def context(self, name):
        if name not in self.contexts:
            self.contexts[name] = Context(os.path.join(self.task["home"], name))
        return self.contexts[name]

    def is_alive(self):
        """A GPU that has faulted answers nothing any more in this process."""
        try:
            torch.zeros(1, device="cuda").sum().item()
            return True
        except Exception:
            return False


class Contenders:
    """A shape's tensors, and a method for each contender: a pair of what runs cold and in a graph,
    or None where it has nothing of its own to run.

    A script's own class sets `inputs` and `y`, and has `check(name, run)`: the errors of one run,
    or Unavailable. What `open` lists is closed at the end.
    """

    def __init__(self, worker, shape):
        self.worker, self.shape, self.notes, self.open = worker, shape, {}, []

    def plan(self, home, rigor):
        began = time.monotonic()
        plan = self.worker.context(home).plan(self.shape.file, self.shape.op, self.shape.bindings,
                                              rigor, self.worker.task.get("search_seconds", 0.0))
        self.open.append(plan)
        note = dict(choice=plan.choice(), plan_seconds=round(time.monotonic() - began, 3))
        return plan.on(self.inputs + [self.y], self.worker.stream.cuda_stream), note

    def kernelgen(self):
        run, self.notes["kernelgen"] = self.plan("estimate", "estimate")
        return run, run

    def patterns(self):
        """The rule, corrected by what other ops taught; None where that changes nothing."""
        run, self.notes["patterns"] = self.plan("learned", "estimate")
        same = self.notes["patterns"]["choice"] == self.notes.get("kernelgen", {}).get("choice")
        return None if same else (run, run)

    def measured(self):
        """The search runs in a process of its own, which a bad candidate may take with it."""
        task, shape, found = self.worker.task, self.shape, {}
        if task.get("kernelgen"):
            home = os.path.join(task["home"], "measured")
            sizes = ",".join(f"{name}={size}" for name, size in shape.sizes.items())
            params = [word for name, value in getattr(shape, "params", {}).items()
                      for word in ("--param", f"{name}={value}")]
            began = time.monotonic()
            done = subprocess.run(
                [task["kernelgen"], "explain", shape.file, "--op", shape.op, "--dtype",
                 f"T={shape.dtype}", "--size", sizes, "--device", "cuda:0", "--rigor", "measure",
                 "--json", *params], env=dict(os.environ, KERNELGEN_HOME=home, KERNELGEN_WISDOM=""),
                capture_output=True, text=True, timeout=SEARCH_LIMIT)
            if done.returncode:
                raise Unavailable(done.stderr.strip()[-300:])
            outcomes = [row["outcome"] for row in json.loads(done.stdout)["candidates"]]
            found = dict(search_seconds=round(time.monotonic() - began, 2),
                         measured=outcomes.count("measured"), seen=len(outcomes))
        run, note = self.plan("measured", "measure")
        self.notes["measured"] = {**note, **found}
        return run, run

    def copy(self):
        from roofs import copy_of
        run = copy_of(self.shape.bytes)
        return run, run

    def read(self):
        from roofs import fastest_read
        run = fastest_read(self.worker.clock, self.shape.bytes)
        return run, run

    def close(self):
        self.worker.stream.synchronize()
        for thing in self.open:
            thing.close()


def summary(samples):
    found = {}
    for name, values in samples.items():
        low, middle, high = statistics.quantiles(values, n=4)
        found[name] = dict(us=middle, spread=(high - low) / middle, samples=len(values))
    return found


def turns_for(seconds, times, extra, least, most):
    """How often all can run in so many seconds, with so many microseconds beside each."""
    return max(least, min(most, int(seconds * 1e6 / sum(t + extra for t in times))))


class Line:
    """What becomes of one shape."""

    def __init__(self, worker, shape, without):
        self.worker, self.shape = worker, shape
        self.reasons = dict(without)
        self.errors, self.runs = {}, {}

    def stage(self, name):
        self.worker.tell(stage=name, limit=LIMITS.get(name, LIMIT))

    def refuse(self, name, problem):
        self.reasons[name] = (str(problem) if isinstance(problem, Unavailable)
                              else words_of(problem))
        self.runs.pop(name, None)
        if not self.worker.is_alive():
            self.worker.tell(died=self.reasons[name])
            os._exit(3)

    def prepare(self, contenders):
        wanted = self.worker.task["contenders"]
        for name in self.shape.contenders:
            if name not in wanted or name in self.reasons:
                continue
            self.stage(name)
            try:
                pair = getattr(contenders, name)()
                if not pair:
                    continue
                if name in ROOFS:
                    pair[0]()
                else:
                    self.errors[name] = contenders.check(name, pair[0])
                    if pair[1] is not pair[0]:
                        contenders.check(name, pair[1])
                self.runs[name] = pair
            except Exception as problem:
                self.refuse(name, problem)

    def time_cold(self, clock, seconds):
        self.stage("cold")
        runs = {name: pair[0] for name, pair in self.runs.items()}
        first = medians(clock.race(runs, 2, True))
        return clock.race(runs, turns_for(seconds, first.values(), 110, 5, 51), True)

    def time_graphs(self, clock, seconds, cold):
        graphs = {}
        self.stage("graph")
        for name, pair in list(self.runs.items()):
            try:
                graphs[name] = clock.record(pair[1], cold[name]["us"])
            except Exception as problem:  # it was timed cold
                self.reasons[name + " in a graph"] = words_of(problem)
        each = [cold[name]["us"] * count for name, (_, count) in graphs.items()]
        return clock.replay(graphs, turns_for(seconds, each, 10, 3, 21)) if graphs else {}

    def check_again(self, contenders, *times):
        """Is ours still right after all those runs?"""
        for name in OURS:
            if name in self.runs:
                self.stage("again " + name)
                try:
                    contenders.check(name, self.runs[name][0])
                except Exception as problem:
                    self.refuse(name, problem)
                    for found in times:
                        found.pop(name, None)

    def run(self, make_contenders):
        began, clock, task = time.monotonic(), self.worker.clock, self.worker.task
        half = task["seconds"] / 2
        self.stage("inputs")
        contenders = make_contenders(self.worker, self.shape)
        self.prepare(contenders)
        cold, graph = {}, {}
        if self.runs:
            cold = summary(self.time_cold(clock, half))
            if task.get("graphs", True):
                graph = summary(self.time_graphs(clock, half, cold))
        self.check_again(contenders, cold, graph)
        self.runs = {}
        contenders.close()
        return dict(self.shape.record(), cold=cold, graph=graph, errors=self.errors,
                    notes=contenders.notes, reasons=self.reasons,
                    seconds=round(time.monotonic() - began, 2))


def time_all(worker, make_shape, make_contenders):
    for job in worker.task["jobs"]:
        line = Line(worker, make_shape(**job["shape"]), job["without"])
        try:
            worker.tell(line=line.run(make_contenders))
        except Exception as problem:
            line.refuse("shape", problem)
            worker.tell(line=empty_line(line.shape, line.reasons))
        if "compile" in line.shape.contenders:
            torch._dynamo.reset()
        torch.cuda.empty_cache()


def run_task(make_worker, make_shape, make_contenders):
    """All of a script."""
    task = json.load(sys.stdin)
    with os.fdopen(task["fd"], "w", buffering=1) as out:
        worker = make_worker(task, lambda **what: out.write(json.dumps(what) + "\n"))
        time_all(worker, make_shape, make_contenders)
