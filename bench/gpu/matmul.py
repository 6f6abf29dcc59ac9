#!/usr/bin/env python3
"""Products of matrices on a GPU: KernelGen beside cuBLASLt, PyTorch and Triton, shape by shape.

    bench/gpu/matmul.py [--set cubes,decode] [--dtype f16,bf16] [--only LABELS] [--dry]
                        [--json FILE] [--resume] [--seconds N] [--limit N] [--measure] [--triton]
                        [--kernelgen CLI]

Sets: cubes decode prefill ragged batched f32 epilogue all. Everyone takes turns in one process on
the same random normal data; timing.py says how. "heur" is the first answer of cuBLASLt's heuristic,
"tuned" the fastest of its first 8: both columns, like "torch", "compile" and "triton", are their
times over ours, above 1 where we are faster. Up to 64 rows the rate is GB/s, and "read" the share
of what a kernel reaches that reads as many bytes; otherwise the rate is TFLOPS. Every result is
compared with PyTorch's in f32 (in f64 for f32) before it is timed, ours afterwards as well.

Shapes are timed by a second process (matmul_worker.py). What kills it or hangs costs the contender
its place in that shape, never the others theirs (timing_process.py); the reasons stand at the end.
The file is written after every shape, and --resume goes on where it ends. --dry needs neither GPU
nor packages.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from matmul_shapes import SETS, shapes
from matmul_summary import print_summary
from results import write_json
from timing_process import OURS, Run, keep_compiled_in, plans_job, run_together

WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "matmul_worker.py")
PEERS = "lt", "lt_tuned", "torch", "compile", "triton"


def contenders(arguments):
    names = {"kernelgen", "lt", "lt_tuned", "torch", "compile", "read"}
    names |= {"measured"} if arguments.measure else set()
    names |= {"triton"} if arguments.triton else set()
    return sorted(names - set(arguments.without.split(",")))


# ---- The table ----


def heading(group):
    columns = f"{'heur':>7}{'tuned':>6}{'torch':>6}{'compile':>8}{'triton':>7}"
    return f"\n{group:36}{'us':>9}{'+-':>5}{'rate':>7}{'read':>6}{columns}{'graph us':>10}{columns}"


def ratio(times, peer, ours, width):
    if peer not in times or ours not in times:
        return f"{'-':>{width}}"
    return f"{times[peer]['us'] / times[ours]['us']:{width}.2f}"


def ratios(times, ours):
    return "".join(ratio(times, peer, ours, width)
                   for peer, width in zip(PEERS, (7, 6, 6, 8, 7)))


def rate(line, seconds):
    is_skinny = "read" in line["cold"]
    return line["bytes"] / seconds * 1e-9 if is_skinny else line["flops"] / seconds * 1e-12


def print_line(line, group_before):
    if line["group"] != group_before:
        print(heading(line["group"]))
    cold, graph = line["cold"], line["graph"]
    rows = [name for name in OURS if name in cold]
    for name in rows:
        label = line["label"] if name == rows[0] else "    by search"
        note = line["notes"].get(name, {})
        mine = f"{graph[name]['us']:10.1f}" if name in graph else f"{'-':>10}"
        print(f"{label:36}{cold[name]['us']:9.1f}{cold[name]['spread']:5.0%}"
              f"{rate(line, cold[name]['us'] * 1e-6):7.0f}{ratio(cold, 'read', name, 6)}"
              f"{ratios(cold, name)}{mine}{ratios(graph, name)}  [{note.get('choice', '')}]")
    if not rows:
        times = ", ".join(f"{name} {cold[name]['us']:.1f}" for name in PEERS if name in cold)
        reason = line["reasons"].get("kernelgen") or line["reasons"].get("shape") or "left out"
        print(f"{line['label']:36}{'-':>9}  {times}  ({reason.splitlines()[0][:120]})")
    if "triton" in line["notes"]:
        print(f"    Triton: {line['notes']['triton']}")
    sys.stdout.flush()


def print_dry(todo, arguments):
    """What would be run; with a command line, also what the rules choose for an H100."""
    names = contenders(arguments)
    for shape in todo:
        choice = ""
        if arguments.kernelgen:
            sizes = ",".join(f"{name}={size}" for name, size in shape.sizes.items())
            done = subprocess.run(
                [arguments.kernelgen, "explain", shape.file, "--op", shape.op, "--dtype",
                 f"T={shape.dtype}", "--size", sizes, "--device", "sm_90a", "--rigor", "estimate",
                 "--json"], capture_output=True, text=True)
            choice = (json.loads(done.stdout)["choice"] if done.returncode == 0
                      else done.stderr.strip())
        peers = " ".join(name for name in shape.contenders if name in names)
        print(f"{shape.group:9} {shape.label:36} {shape.flops * 1e-9:9.1f} GFLOP "
              f"{shape.bytes * 1e-6:8.1f} MB  {peers}  {choice}")
    print(f"{len(todo)} shapes")


# ---- All of it ----


def read_before(path):
    """What an earlier run has left: lines, and what they were made with."""
    if not path or not os.path.exists(path):
        return [], {}
    with open(path) as file:
        document = json.load(file)
    about = {name: value for name, value in document.items() if name not in ("lines", "summary")}
    return document["lines"], about


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--set", default="all", help=", ".join(SETS) + ", all")
    parser.add_argument("--dtype", default="f16,bf16")
    parser.add_argument("--only", default="", metavar="LABELS",
                        help="shapes whose labels begin so, split by commas")
    parser.add_argument("--dry", action="store_true", help="print what would be run")
    parser.add_argument("--json", default="", metavar="FILE")
    parser.add_argument("--resume", action="store_true", help="shapes in the file are done")
    parser.add_argument("--seconds", type=float, default=0.4, help="of the races of a shape")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds; no new shape after that")
    parser.add_argument("--measure", action="store_true", help="also what a search chooses")
    parser.add_argument("--triton", action="store_true", help="beside a chosen few shapes")
    parser.add_argument("--without", default="", help="contenders that stay out")
    parser.add_argument("--kernelgen", default="", help="the command line, for searches apart")
    parser.add_argument("--home", help="keeps what was searched and compiled")
    parser.add_argument("--no-compile", dest="compile", action="store_false",
                        help="compile each plan when its turn comes")
    arguments = parser.parse_args()
    unknown = set(arguments.set.split(",")) - set(SETS) - {"all"}
    if unknown:
        parser.error(f"no such set: {', '.join(sorted(unknown))}")
    return arguments


def run_of(arguments, todo, home, lines, about):
    """Continues what an earlier run has left."""
    def report(line, lines):
        print_line(line, lines[-2]["group"] if len(lines) > 1 else "")
        write_json(arguments.json, dict(run.about, lines=lines))

    settings = dict(home=home, seconds=arguments.seconds, kernelgen=arguments.kernelgen,
                    contenders=contenders(arguments))
    run = Run(WORKER, todo, settings, report, arguments.limit)
    run.lines, run.about = lines, about
    return run


def main():
    arguments = parse()
    lines, about = read_before(arguments.json) if arguments.resume else ([], {})
    done = {line["label"] for line in lines}
    todo = [shape for shape in shapes(arguments.set.split(","), arguments.dtype.split(","))
            if shape.label.startswith(tuple(arguments.only.split(",")))
            and shape.label not in done]
    if arguments.dry:
        print_dry(todo, arguments)
        return 0
    scratch = tempfile.mkdtemp(prefix="kernelgen_matmul_")
    keep_compiled_in(scratch)
    home = os.path.abspath(arguments.home) if arguments.home else scratch
    began, run = time.monotonic(), run_of(arguments, todo, home, lines, about)
    try:
        if todo and arguments.compile and "kernelgen" in contenders(arguments):
            run_together([plans_job(home, todo)])
            print(f"plans compiled ahead in {time.monotonic() - began:.0f} s")
        run.all()
    except KeyboardInterrupt:
        print("stopped")
    shutil.rmtree(scratch, ignore_errors=True)
    summary = print_summary(run.lines)
    write_json(arguments.json, dict(run.about, lines=run.lines, summary=summary))
    print(f"{run.about}\n{len(run.lines)} shapes, {len(run.todo)} left, "
          f"{time.monotonic() - began:.0f} s")
    return 0 if run.lines and not run.todo else 1


if __name__ == "__main__":
    sys.exit(main())
