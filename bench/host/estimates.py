#!/usr/bin/env python3
"""What is a choice without measuring worth, with and without patterns from other ops?

    estimates.py KERNELGEN OPS_FOLDER HOME [--seed S] [--count N] [--json FILE]

HOME has the records of searches for other ops, as ablation.py --home keeps them: ops on record there are left
out here. Shapes of the others are drawn by the seed. For each the rule's choice, what the patterns of HOME make
of it, and the choice of a search that measures (without HOME) are each timed beside the definition's plain
loops, by turns, three times each; a ratio is one speed-up over these loops over another one. Interrupted, it
sums up what it has.
"""

import argparse
import contextlib
import json
import math
import os
import pathlib
import random
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile

import plan_cases
from plans import parse_seconds

TURNS = 3


def ops_on_record(home):
    with sqlite3.connect(f"file:{home}/records.db?mode=ro", uri=True) as records:
        return {name for name, in records.execute("SELECT name FROM ops")}


def draw(random_, case):
    """The case with each size between half and twice as large; some of them are odd."""
    sizes = {}
    for name, size in case.sizes.items():
        size = max(1, round(size * 2 ** random_.uniform(-1, 1)))
        sizes[name] = size if size < 32 or random_.random() < 0.4 else size // 16 * 16
    return plan_cases.Case(case.path, case.op, case.dtype, sizes)


def drawn_cases(program, ops, seen, seed, count):
    random_ = random.Random(seed)
    names = [case for case in plan_cases.shipped_cases(program, ops, narrow="", fit=False)
             if case.op not in seen]
    while count > 0:
        case = random_.choice(names)
        if not plan_cases.fit_sizes(program, case):
            continue
        case = draw(random_, case)
        if plan_cases.work_of(program, case) is not None:
            count -= 1
            yield case


def run(program, case, home, *words):
    return subprocess.run([program, *words[:1], *case.options(), "--device", "host", *words[1:]],
                          env={**os.environ, "KERNELGEN_HOME": home}, capture_output=True, text=True)


def choose(program, case, home):
    done = run(program, case, home, "explain", "--rigor", "estimate")
    found = re.search(r"^Chosen: `(.*)`", done.stdout, flags=re.M)
    return found.group(1) if found else None


def speed_up(program, case, home, rigor):
    """Over the plain loops; None where it cannot be timed."""
    done = run(program, case, home, "bench", "--rigor", rigor, "--effort", "0.2")
    try:
        return parse_seconds(done.stdout, "baseline") / parse_seconds(done.stdout, "plan")
    except AttributeError:
        print(f"{case}: left out: {done.stderr.strip()[:200]}", file=sys.stderr)
        return None


def compare(program, case, learned, folder):
    empty = tempfile.mkdtemp(dir=folder)
    rule, corrected = (choose(program, case, home) for home in (empty, learned))
    if not rule or not corrected:
        return None
    searched = speed_up(program, case, tempfile.mkdtemp(dir=folder), "measure")
    timed = {"rule": [], "patterns": []}
    for _ in range(TURNS):
        timed["rule"].append(speed_up(program, case, empty, "estimate"))
        if corrected != rule:
            timed["patterns"].append(speed_up(program, case, learned, "estimate"))
    if not searched or None in timed["rule"] + timed["patterns"]:
        return None
    rule_speed = statistics.median(timed["rule"])
    speed = statistics.median(timed["patterns"]) if timed["patterns"] else rule_speed
    return {"case": str(case), "rule": rule, "patterns": corrected, "rule_over_search": rule_speed / searched,
            "patterns_over_search": speed / searched, "patterns_over_rule": speed / rule_speed}


def print_row(row):
    changed = f"  {row['rule']} -> {row['patterns']}" if row["rule"] != row["patterns"] else ""
    print(f"{row['rule_over_search']:7.3f} {row['patterns_over_search']:7.3f}  {row['case']}{changed}", flush=True)


def summarise(name, values):
    values = sorted(values)
    mean = math.exp(statistics.fmean(map(math.log, values)))
    print(f"{name:<34} {len(values):>4} {mean:>7.3f} {values[len(values) // 10]:>7.3f} {values[0]:>7.3f}")


def print_summary(rows):
    print(f"{'':<34} {'':>4} {'mean':>7} {'tenth':>7} {'worst':>7}")
    summarise("rule over search", [row["rule_over_search"] for row in rows])
    summarise("patterns over search", [row["patterns_over_search"] for row in rows])
    changed = [row["patterns_over_rule"] for row in rows if row["rule"] != row["patterns"]]
    if changed:
        summarise("patterns over rule, where changed", changed)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("ops")
    parser.add_argument("home")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--json")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        learned = f"{folder}/learned"
        shutil.copytree(options.home, learned)
        seen = ops_on_record(learned)
        with contextlib.suppress(KeyboardInterrupt):
            for case in drawn_cases(options.program, options.ops, seen, options.seed, options.count):
                row = compare(options.program, case, learned, folder)
                if row:
                    rows.append(row)
                    print_row(row)
    if not rows:
        sys.exit("nothing could be compared")
    print_summary(rows)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
