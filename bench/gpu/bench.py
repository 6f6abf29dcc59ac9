#!/usr/bin/env python3
"""Memory-bound operators on a GPU: KernelGen beside a copy, eager PyTorch, torch.compile, Triton.

    bench/gpu/bench.py [--all] [--only PREFIX] [--json FILE] [--rigor estimate] [--seconds N]

Without --all, runs a few lines of each kind; --only selects a group, or a prefix of labels. All
contenders of a line run alternately in one process: timing.py says how; cases.py has the cases and
their goals, triton_kernels.py the Triton kernels. Every result is compared with eager's. GB/s count
the compulsory bytes. "roof" is the share of a device-to-device copy of as many bytes or, for
reductions, of a kernel that only reads as many. "eager", "compile" and "triton" are their times
over ours; the figure after "graph us" is that of compile in a graph. A goal is met when the figure
as printed, with two decimals, reaches it. In brackets: the family and the values of its parameters.
Lines are printed, and the file is written, one by one.
"""

import argparse
import math
import os
import re
import shutil
import sys
import time

from timing_process import keep_compiled_in, run_together, share_of, shares

CACHE = keep_compiled_in(f"/tmp/kernelgen_bench_{os.getpid()}")  # for this run only

import torch
import torch._dynamo

from case_tensors import CaseTensors, compile_ahead, random_tensor
from cases import GROUP_GOALS, all_cases
from kernelgen_plan import Context
from results import geometric_mean, write_json
from roofs import copy_of, read_kernel, read_of
from timing import Clock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def chosen_cases(arguments):
    for case in all_cases():
        name = arguments.only
        if name and not (case.group == name or case.label.startswith(name)):
            continue
        if arguments.all or name or case.quick:
            yield case


# ---- Compilers first, on all cores: what is found on disk later is not compiled again ----


def warm_all(cases):
    parts, began = shares(len(cases)), time.monotonic()
    run_together([(sys.argv + ["--warm", part], "") for part in parts])
    if parts:
        print(f"compiled by {len(parts)} processes in {time.monotonic() - began:.0f} s")


# ---- One line ----


def contenders(line, ours, arguments):
    runs = {"kernelgen": ours, "eager": line.eager, "compile": line.compile}
    if line.case.triton:
        runs["triton"] = line.triton
    if "read" in line.case.goals:
        runs["read"] = read_of(line.bytes, arguments.read_shape)
    runs["copy"] = copy_of(line.bytes)
    return runs


def figures(times, graph, host):
    """The measures that goals speak of."""
    ours, found = times["kernelgen"], {}
    for name in ("copy", "read", "eager", "compile", "triton"):
        if name in times:
            found[name] = times[name] / ours
    found["best"] = min(times["eager"], times["compile"]) / ours
    found["graph"] = graph["compile"] / graph["kernelgen"]
    if host is not None:
        found["host"] = host
    return found


def is_met(measure, value, goal):
    rounded = round(value, 2)
    return rounded <= goal if measure == "host" else rounded >= goal


def measure(context, clock, case, arguments):
    began = time.monotonic()
    line = CaseTensors(case, random_tensor)
    plan = context.plan(os.path.join(ROOT, "ops", case.file), case.op,
                        {"T": case.dtype, **case.sizes}, arguments.rigor, arguments.seconds)
    ours = plan.on(line.inputs + [line.output], clock.stream.cuda_stream)
    ours()
    planned = time.monotonic() - began
    right = line.is_right(line.output)
    line.compile()
    line.triton()
    trusted = line.is_right(line.theirs)
    compiled = time.monotonic() - began - planned
    runs = contenders(line, ours, arguments)
    times = clock.cold(runs)
    graph = clock.graph(runs, times)
    host = clock.host(plan.execute, ours.arguments) if "host" in case.goals else None
    found = figures(times, graph, host)
    return dict(group=case.group, label=case.label, op=case.op, dtype=case.dtype,
                sizes=case.sizes, bytes=line.bytes, right=right, triton_right=trusted,
                microseconds=times, graph_microseconds=graph, figures=found, goals=case.goals,
                met={name: is_met(name, found[name], goal) for name, goal in case.goals.items()},
                choice=plan.choice(), planned_seconds=round(planned, 2),
                compiled_seconds=round(compiled, 2), seconds=round(time.monotonic() - began, 2))


# ---- The table ----

HEADING = (f"{'':28}{'us':>7}{'GB/s':>6}{'roof':>6}{'eager':>6}{'compile':>8}{'triton':>7}"
           f"{'graph us':>9}{'compile':>8}{'host':>6}  goals")


def words_of_goals(goals, found):
    return ", ".join(f"{'met' if is_met(name, found[name], goal) else 'MISSED'} {name} {goal:g}"
                     for name, goal in goals.items())


def short(choice):
    """A choice without the names of its parameters."""
    return re.sub(r"\w+=", "", choice)


def print_line(line):
    found, ours = line["figures"], line["microseconds"]["kernelgen"]
    graph = line["graph_microseconds"]["kernelgen"]
    roof = found.get("read", found["copy"])
    host = f"{found['host']:6.1f}" if "host" in found else " " * 6
    wrong = ("" if line["right"] else "WRONG ") + ("" if line["triton_right"] else "Triton wrong ")
    print(f"{line['label']:28}{ours:7.1f}{line['bytes'] / ours * 1e-3:6.0f}{roof:6.2f}"
          f"{found['eager']:6.2f}{found['compile']:8.2f}{found.get('triton', math.nan):7.2f}"
          f"{graph:9.1f}{found['graph']:8.2f}{host}  "
          f"{wrong}{words_of_goals(line['goals'], found)} [{short(line['choice'])}]")


def print_groups(results):
    """Geometric means; returns them for the file."""
    groups = {}
    print(f"\n{'geometric means':28}{'lines':>7}{'met':>6}{'roof':>6}{'eager':>6}{'compile':>8}"
          f"{'triton':>7}{'in graphs: compile':>23}")
    for group in dict.fromkeys(line["group"] for line in results):
        lines = [line for line in results if line["group"] == group]
        met = sum(all(line["met"].values()) and line["right"] for line in lines)
        means = {}
        for name in ("eager", "compile", "triton", "graph"):
            values = [line["figures"][name] for line in lines if name in line["figures"]]
            means[name] = geometric_mean(values) if values else math.nan
        means["roof"] = geometric_mean([line["figures"].get("read", line["figures"]["copy"])
                                        for line in lines])
        goals = GROUP_GOALS.get(group, {})
        print(f"{group:28}{len(lines):7}{met:6}{means['roof']:6.2f}{means['eager']:6.2f}"
              f"{means['compile']:8.2f}{means['triton']:7.2f}{means['graph']:23.2f}  "
              f"{words_of_goals(goals, means)}")
        groups[group] = dict(lines=len(lines), met=met, means=means)
    return groups


def save(path, results, groups):
    write_json(path, dict(device=torch.cuda.get_device_name(), torch=torch.__version__,
                          lines=results, groups=groups))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--all", action="store_true", help="every line")
    parser.add_argument("--only", default="", metavar="PREFIX")
    parser.add_argument("--rigor", default="estimate")
    parser.add_argument("--seconds", type=float, default=0.0, help="limit of each search")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds; no new line after that")
    parser.add_argument("--json")
    parser.add_argument("--warm", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    began = time.monotonic()
    stream = torch.cuda.Stream()
    torch.cuda.set_stream(stream)
    if arguments.warm:
        compile_ahead(share_of(list(chosen_cases(arguments)), arguments.warm))
        return 0
    cases = list(chosen_cases(arguments))
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {len(cases)} lines")
    warm_all(cases)
    clock, context, results = Clock(stream), Context(), []
    arguments.read_shape = read_kernel(clock, 1 << 29)
    for case in cases:
        if time.monotonic() - began > arguments.limit:
            break
        if not results or results[-1]["group"] != case.group:
            print(f"\n{case.group}\n{HEADING}")
        try:
            results.append(measure(context, clock, case, arguments))
            print_line(results[-1])
        except Exception as problem:  # the other lines are worth having
            print(f"{case.label:28}{type(problem).__name__}: {str(problem)[:300]}")
        torch._dynamo.reset()
        torch.cuda.empty_cache()
        save(arguments.json, results, {})
    save(arguments.json, results, print_groups(results))
    print(f"{time.monotonic() - began:.0f} s")
    shutil.rmtree(CACHE, ignore_errors=True)
    return 0 if results and all(line["right"] for line in results) else 1


if __name__ == "__main__":
    sys.exit(main())
