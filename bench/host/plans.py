#!/usr/bin/env python3
"""Is a plan made by rule ever slower than its own baseline, the definition's plain loops?

    bench/host/plans.py [--seed S] [--count N] [--only WORD] [--json] [--repeats N] [--narrow bf16]
    bench/host/plans.py --cases          # the lines that bench_segments reads

Every shipped op at sizes that take milliseconds, in f32 and in f16 (or bf16), and N definitions of
several statements drawn by the seed. A plan and its baseline are timed alternately by `kernelgen bench`;
lines below DOUBTFUL are timed again, --repeats times in all, and their median ratio counts."""

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile

import plan_cases

DOUBTFUL, GOAL = 0.98, 0.95
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def parse_seconds(text, name):
    value, unit = re.search(rf"^{name} +([\d.]+) (ns|us|ms|s)\b", text, flags=re.M).groups()
    return float(value) * UNITS[unit]


def measure(kernelgen, case, effort):
    """(choice, seconds of the plan, seconds of the baseline), or None and what went wrong."""
    done = subprocess.run([kernelgen, "bench", *case.options(), "--device", "host", "--rigor",
                           "estimate", "--effort", effort], capture_output=True, text=True)
    choice = re.search(r"^kernel +(.*)$", done.stdout, flags=re.M)
    if not choice:
        return None, " ".join((done.stderr + done.stdout).split())
    return choice.group(1), parse_seconds(done.stdout, "plan"), parse_seconds(done.stdout,
                                                                               "baseline")


def measure_line(kernelgen, case, repeats, effort):
    runs = []
    for _ in range(repeats):
        run = measure(kernelgen, case, effort)
        if run[0] is None:
            return {"case": str(case), "error": run[1]}
        runs.append(run)
        if run[2] / run[1] >= DOUBTFUL:
            break
    ratio = statistics.median(baseline / plan for _, plan, baseline in runs[-repeats:])
    return {"case": str(case), "choice": runs[0][0], "ratio": ratio,
            "plan": min(run[1] for run in runs), "baseline": min(run[2] for run in runs)}


def list_cases(options, folder):
    if options.count != 0:
        yield from plan_cases.drawn_cases(options.kernelgen, options.seed, options.count, folder)
    if not options.drawn:
        yield from plan_cases.shipped_cases(options.kernelgen, options.ops, options.narrow)


def find_kernelgen(root):
    """The release build if there is one, else the dev build."""
    release = os.path.join(root, "build", "release", "kernelgen")
    return release if os.path.exists(release) else os.path.join(root, "build", "dev", "kernelgen")


def main():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=30, help="of drawn definitions")
    parser.add_argument("--drawn", action="store_true", help="without the shipped ops")
    parser.add_argument("--only", default="", help="cases whose line contains this")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--narrow", default="f16", help="the dtype beside f32: f16 or bf16")
    parser.add_argument("--effort", default="1", help="of the accuracy gate before each race")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--cases", action="store_true")
    parser.add_argument("--kernelgen", default=find_kernelgen(root),
                        help="build/release/kernelgen by default, else build/dev/kernelgen")
    parser.add_argument("--ops", default=os.path.join(root, "ops"))
    parser.add_argument("--folder", default=None, help="where drawn definitions are kept")
    options = parser.parse_args()
    folder = options.folder or tempfile.mkdtemp(prefix="kernelgen-plans-")
    os.makedirs(folder, exist_ok=True)
    os.environ.setdefault("KERNELGEN_HOME", os.path.join(folder, "home"))
    lines = []
    for case in list_cases(options, folder):
        if options.only not in str(case):
            continue
        if options.cases:
            print(case, flush=True)
            continue
        line = measure_line(options.kernelgen, case, options.repeats, options.effort)
        lines.append(line)
        if options.json:
            print(json.dumps(line), flush=True)
        elif "error" in line:
            print(f"error  {line['case']}: {line['error']}", flush=True)
        else:
            print(f"{line['ratio']:8.3f} {line['plan'] * 1e3:9.3f} ms  {line['case']}  "
                  f"{line['choice']}", flush=True)
    ratios = [line["ratio"] for line in lines if "ratio" in line]
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{len(ratios)} lines: geometric mean {mean:.2f}, worst {min(ratios):.3f}, "
              f"below {GOAL}: {sum(ratio < GOAL for ratio in ratios)}, "
              f"errors: {len(lines) - len(ratios)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
