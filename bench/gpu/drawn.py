#!/usr/bin/env python3
"""Shapes drawn by a seed, on a GPU: KernelGen beside cuBLASLt, eager PyTorch and torch.compile.

    bench/gpu/drawn.py [--seed S] [--count N] [--set products,rows,pointwise,reductions,scans]
                       [--dtype f16,bf16,f32] [--measure] [--seconds N] [--learned HOME]
                       [--alone] [--budget SECONDS] [--json FILE] [--list]

draw.py says from which ranges, and --list prints what is drawn, without a GPU and without PyTorch.
Rules that are fitted to lists of shapes are judged here by others: a fresh seed shows what they do
elsewhere, a seed used before shows what a change did. Each shape is planned by rule and, with
--measure, by search, for at most --seconds each. Everyone takes turns in one process on the same
random normal data, the L2 flushed before each run; timing.py says how.

--learned adds the rule's choice as patterns correct it, from the records of HOME without those of
the ops that are drawn. With --measure the summary says what choices without measuring are worth.

Products stand beside the first answer of cuBLASLt's heuristic, all others beside eager PyTorch and
torch.compile, and beside a copy that moves as many bytes or, for reductions, a kernel that reads
them. All columns are times of others over ours, above 1 where we are faster. Ours is compared with
a reference in f64 (of products of f16 and bf16, in f32) before it is timed and afterwards. With
--alone there is no one beside us.

What torch.compile makes and what the rules choose is compiled ahead on all cores, for BATCH shapes
at a time and in at most half of the time that is left; the rest is compiled when its turn comes.
After --budget seconds no new shape is begun, and one at work is left out. The file is written after
every shape. The exit status is 0 if every result that was tried is there and right.
"""

import argparse
import contextlib
import json
import os
import shutil
import sqlite3
import sys
import tempfile
import time
from dataclasses import asdict

from draw import add_arguments, draw_cases, is_aligned, parse, print_list
from drawn_summary import NAMES, is_complete, peers_of, print_summary, ratios_of
from kernelgen_plan import load_library
from results import write_json
from timing_process import COMPILE_LIMIT, OURS, Run, keep_compiled_in, plans_job
from timing_process import run_together, shares

HERE = os.path.dirname(os.path.abspath(__file__))
BATCH = 60


def worker_of(name):
    script = "matmul_worker.py" if name == "products" else "memory_worker.py"
    return os.path.join(HERE, script)


def settings_of(arguments, name, home):
    contenders = ["kernelgen"]
    contenders += ["patterns"] if arguments.learned else []
    contenders += ["measured"] if arguments.measure else []
    if not arguments.alone:
        contenders += peers_of(name)
        contenders += {"products": [], "reductions": ["read"]}.get(name, ["copy"])
    return dict(home=home, seconds=arguments.race, search_seconds=arguments.seconds, graphs=False,
                contenders=contenders)


def learn(source, home, cases):
    """Keeps the records of a home but for those of the ops of these cases. The same statement
    under another name is another op."""
    folder = os.path.join(home, "learned")
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)
    with contextlib.closing(sqlite3.connect(os.path.join(folder, "records.db"))) as records:
        with contextlib.closing(sqlite3.connect(os.path.join(source, "records.db"))) as taught:
            taught.backup(records)
        ops = list({case.op for case in cases})
        names = ",".join("?" * len(ops))
        keys = f"(SELECT id FROM full_keys WHERE op IN ({names}))"
        outcomes = f"(SELECT id FROM outcomes WHERE key IN {keys})"
        for table, condition in (("lessons", f"op IN ({names})"),
                                 ("promises", f"outcome IN {outcomes}"),
                                 ("outcomes", f"key IN {keys}"), ("wisdom", f"key IN {keys}"),
                                 ("traits", f"key IN {keys}")):
            records.execute(f"DELETE FROM {table} WHERE {condition}", ops)
        records.commit()


def compile_ahead(arguments, name, batch, home, limit):
    """Plans by rule and what torch.compile makes, at the same time."""
    jobs, worker = [plans_job(home, batch)], worker_of(name)
    if arguments.learned:
        jobs.append(plans_job(home, batch, "learned"))
    if "compile" in peers_of(name) and not arguments.alone:
        text = json.dumps(dict(jobs=[dict(shape=asdict(case)) for case in batch]))
        jobs += [([worker, "--compile", share], text) for share in shares(len(batch))]
    began = time.monotonic()
    run_together(jobs, min(limit, COMPILE_LIMIT))
    print(f"{len(batch)} shapes compiled ahead in {time.monotonic() - began:.0f} s")


# ---- The table ----


def heading(name):
    peers = "".join(f"{peer:>8}" for peer in peers_of(name))
    rate = "TFLOPS" if name == "products" else "GB/s"
    memory = "" if name == "products" else f"{'memory':>8}"
    return f"\n{name:48}{'us':>9}{rate:>8}{peers}{memory}"


def print_line(name, line):
    columns = peers_of(name) + (() if name == "products" else ("memory",))
    rows = [ours for ours in OURS if ours in line["cold"]]
    for ours in rows:
        us, ratios = line["cold"][ours]["us"], ratios_of(line, ours)
        rate = line["flops"] / us * 1e-6 if name == "products" else line["bytes"] / us * 1e-3
        cells = "".join(f"{ratios[peer]:8.2f}" if peer in ratios else f"{'-':>8}"
                        for peer in columns)
        label = f"{line['number']:3} {line['label']}" if ours == rows[0] else f"    {NAMES[ours]}"
        choice = line["notes"].get(ours, {}).get("choice", "")
        print(f"{label:48}{us:9.1f}{rate:8.0f}{cells}  [{choice}]")
    missing = [reason for ours in OURS if (reason := line["reasons"].get(ours))]
    if not rows or missing:
        reason = (missing or [line["reasons"].get("shape", "left out")])[0]
        print(f"{line['number']:3} {line['label']:44}{(reason.splitlines() or ['?'])[0][:200]}")


# ---- One set ----


class SetRun:
    """All batches of one set."""

    def __init__(self, arguments, name, home, until, save):
        self.arguments, self.name, self.home = arguments, name, home
        self.until, self.save = until, save
        self.cases = draw_cases(arguments.seed, name, arguments.count, arguments.dtypes)
        self.facts = {case.label: dict(number=number, aligned=is_aligned(case))
                      for number, case in enumerate(self.cases)}
        self.lines, self.about, self.summary = [], {}, {}

    def left(self):
        return self.until - time.monotonic()

    def report(self, line, _):
        line.update(self.facts[line["label"]])
        self.lines.append(line)
        print_line(self.name, line)
        self.save()

    def all(self):
        print(heading(self.name))
        if self.arguments.learned:
            learn(self.arguments.learned, self.home, self.cases)
        for first in range(0, len(self.cases), BATCH):
            batch = self.cases[first:first + BATCH]
            if self.left() > 0:
                compile_ahead(self.arguments, self.name, batch, self.home, self.left() / 2)
            settings = settings_of(self.arguments, self.name, self.home)
            run = Run(worker_of(self.name), batch, settings, self.report, self.left())
            run.all()
            self.about.update(run.about)
            if run.todo:
                break
        self.finish()

    def finish(self):
        title = f"{self.name}, seed {self.arguments.seed}: {len(self.lines)} of {len(self.cases)}"
        self.summary = print_summary(title + " shapes", self.lines)
        self.save()

    def document(self):
        return dict(drawn=len(self.cases), ran=len(self.lines), lines=self.lines,
                    summary=self.summary)

    def is_good(self):
        """Whatever there was no time for is no fault."""
        ended = len(self.lines) == len(self.cases) or self.left() <= 0
        return ended and is_complete(self.lines)


def parse_all():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_arguments(parser)
    parser.add_argument("--measure", action="store_true", help="also what a search chooses")
    parser.add_argument("--seconds", type=float, default=0.0, help="limit of each search")
    parser.add_argument("--learned", metavar="HOME", help="also the rule corrected by patterns")
    parser.add_argument("--alone", action="store_true", help="no one beside us")
    parser.add_argument("--race", type=float, default=0.3, help="seconds of a shape's races")
    parser.add_argument("--budget", type=float, default=1e9, help="seconds for everything")
    parser.add_argument("--json", default="", metavar="FILE")
    return parse(parser)


def main():
    arguments, began = parse_all(), time.monotonic()
    if arguments.list:
        print_list(arguments)
        return 0
    try:
        load_library()
    except OSError as problem:
        sys.exit(f"{problem}: KERNELGEN_LIBRARY says where it is")
    sys.stdout.reconfigure(line_buffering=True)
    scratch, runs = tempfile.mkdtemp(prefix="kernelgen_drawn_"), []
    keep_compiled_in(scratch)

    def save():
        about = {name: value for run in runs for name, value in run.about.items()}
        write_json(arguments.json, dict(
            about, seed=arguments.seed, count=arguments.count, dtypes=arguments.dtypes,
            measure=arguments.measure, sets={run.name: run.document() for run in runs}))

    try:
        for name in arguments.sets:
            runs.append(SetRun(arguments, name, scratch, began + arguments.budget, save))
            runs[-1].all()
    except KeyboardInterrupt:
        print("stopped")
        runs[-1].finish()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"\n{runs[-1].about}\n{sum(len(run.lines) for run in runs)} of "
          f"{sum(len(run.cases) for run in runs)} shapes in {time.monotonic() - began:.0f} s")
    return 0 if all(run.is_good() for run in runs) else 1


if __name__ == "__main__":
    sys.exit(main())
