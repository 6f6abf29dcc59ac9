"""A second process times shapes, and this one survives whatever becomes of it. Needs no package.

What kills the second process or hangs costs a contender its place in that shape, never the others
theirs. The script that is run reads its task as JSON from standard input and tells what happens
in lines of JSON: see timing_worker.py.
"""

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import asdict

HERE = os.path.dirname(os.path.abspath(__file__))
PLANS = os.path.join(HERE, "plans_ahead.py")
START_LIMIT = 240  # seconds until the process has PyTorch and what all shapes share
COMPILE_LIMIT = 240
BETWEEN_LIMIT = 60
MAX_FAILURES = 4  # after this many a contender is dropped for good
OURS = "kernelgen", "patterns", "measured"
COMPILERS = 12  # processes, or threads


def keep_compiled_in(folder):
    """Where torch.compile and Triton keep what they make, unless the environment says another
    folder: this process and those it starts share it. Returns the folder."""
    folder = os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", folder)
    os.environ.setdefault("TRITON_CACHE_DIR", os.path.join(folder, "triton"))
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    return folder


def run_together(jobs, limit=COMPILE_LIMIT):
    """Runs scripts at once, each a command and its standard input, for so many seconds."""
    until, running = time.monotonic() + limit, []
    for command, text in jobs:
        process = subprocess.Popen([sys.executable, *command], stdin=subprocess.PIPE, text=True)
        feeder = threading.Thread(target=feed, args=(process, text), daemon=True)
        feeder.start()
        running.append(process)
    for process in running:
        try:
            process.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def feed(process, text):
    try:
        with process.stdin as pipe:
            pipe.write(text)
    except BrokenPipeError:
        pass  # it ended without reading it


def shares(count):
    """How processes divide the cases: none if one process is as fast."""
    number = min(COMPILERS, os.cpu_count() or 1, count // 3)
    return [f"{i}/{number}" for i in range(number)] if number > 1 else []


def share_of(cases, share):
    number, count = map(int, share.split("/"))
    return cases[number::count]


def plans_job(home, shapes, name="estimate"):
    """For run_together: makes the plans of these shapes by rule, with the records of that name."""
    jobs = [dict(file=shape.file, op=shape.op, bindings=shape.bindings) for shape in shapes]
    return [PLANS], json.dumps(dict(home=os.path.join(home, name), jobs=jobs))


class Process:
    """The process with jobs, and what it tells."""

    def __init__(self, script, task):
        end, start = os.pipe()
        self.process = subprocess.Popen([sys.executable, script], stdin=subprocess.PIPE, text=True,
                                        pass_fds=(start,))
        os.close(start)
        self.told, self.hung = queue.SimpleQueue(), False
        threading.Thread(target=self._listen, args=(end,), daemon=True).start()
        feed(self.process, json.dumps(dict(task, fd=start)))

    def _listen(self, end):
        try:
            with os.fdopen(end) as lines:
                for line in lines:
                    self.told.put(json.loads(line))
        except ValueError:
            pass  # it died within a line
        self.told.put(None)

    def hear(self, limit):
        """What it tells next; None: it is dead, or silent for too long."""
        try:
            return self.told.get(timeout=max(limit, 0))
        except queue.Empty:
            self.hung = True
            return None

    def end(self, patience=0):
        """Its exit status, once it had so many seconds to end by itself."""
        try:
            return self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class Run:
    """All shapes, with as many processes as it takes.

    `todo` are dataclasses with `label`, `group`, `op` and `dtype`. The task of every process holds
    `settings`, whose "contenders" are names. `report(line, lines)` is called with each line and
    with those so far, that one included.
    """

    def __init__(self, script, todo, settings, report, limit=1e9):
        self.script, self.todo, self.settings = script, list(todo), settings
        self.report = report
        self.lines, self.about = [], {}
        self.without = {}  # by label: contenders that are out, with reasons
        self.blames = Counter()
        self.until = time.monotonic() + limit

    def contenders(self):
        return [name for name in self.settings["contenders"] if self.blames[name] < MAX_FAILURES]

    def task(self):
        return dict(self.settings, contenders=self.contenders(),
                    jobs=[dict(shape=asdict(shape), without=self.without.get(shape.label, {}))
                          for shape in self.todo])

    def is_over(self):
        return time.monotonic() > self.until

    def accept(self, line):
        self.lines.append(line)
        self.todo = [shape for shape in self.todo if shape.label != line["label"]]
        self.report(line, self.lines)

    def blame(self, stage, reason):
        """Drops the contender that was running; during a race, the one that was proven least."""
        label, names = self.todo[0].label, [stage.removeprefix("again ")]
        if stage in ("cold", "graph"):
            names = [name for name in OURS if name in self.contenders()]
        out = self.without.setdefault(label, {})
        fresh = [name for name in names if name not in out]
        out.update({name: f"{reason} ({stage})" for name in fresh})
        self.blames.update(fresh)
        if not fresh or stage == "inputs" or len(out) > 4:
            self.accept(empty_line(self.todo[0], {**out, "shape": reason}))

    def one_process(self):
        """Until it ends; False when it could not even begin."""
        process, stage, limit = Process(self.script, self.task()), "", START_LIMIT
        reason = ""
        while self.todo and not self.is_over():
            told = process.hear(min(limit, self.until - time.monotonic()))
            if told is None:
                if self.is_over():
                    continue
                break
            if "about" in told:
                self.about.update(told["about"])
            elif "stage" in told:
                stage, limit = told["stage"], told["limit"]
            elif "died" in told:
                reason = told["died"]
            else:
                self.accept(told["line"])
                stage, limit = "between", BETWEEN_LIMIT
        else:
            process.end()
            return True
        status = process.end(0 if process.hung else 5)
        if not stage:
            print(f"the process that times cannot start (exit status {status})")
            return False
        if stage != "between":
            self.blame(stage, reason or ("hung" if process.hung else f"died, exit status {status}"))
        return True

    def all(self):
        while self.todo and not self.is_over() and self.one_process():
            pass


def empty_line(shape, reasons):
    """A shape of which there are no times."""
    return dict(label=shape.label, group=shape.group, op=shape.op, dtype=shape.dtype, cold={},
                graph={}, notes={}, errors={}, reasons=reasons)
