#!/usr/bin/env python3
"""What do the rounds after the search gain?

    loop.py [--device NAME] [--seed S] [--count N] [--rounds R] [--json FILE] [--ops FOLDER]
            [--kernelgen PROGRAM] [--choices PROGRAM]

Builds N cases with a goal that cannot be met: half of them shipped ops, half definitions of
several statements, both drawn by the seed (plan_cases.py). The first round of a build is the search of rigor
'measure' alone. Its result and that of the last round are then raced anew, in one process and alternately, so
that neither has the luck of having been chosen for a fast sample. A line for each case, then the summary.
"""

import argparse
import json
import math
import os
import pathlib
import random
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "host"))
import plan_cases

GPU_SCALE = 4  # of drawn sizes
NOISE = 0.02  # a race of the same kernels differs by as much


def with_goal(case, rounds, folder, number):
    """A copy of the definition's file in which the op's goal cannot be met."""
    text = pathlib.Path(case.path).read_text(encoding="utf-8")
    parts = re.split(r"(?=^op )", text, flags=re.M)
    for i, part in enumerate(parts):
        if not re.match(rf"op {case.op}\b", part):
            continue
        goal = f"speedup 1000000\nrounds {rounds}\n"
        if re.search(r"^\s*goal\s*{", part, flags=re.M):
            part = re.sub(r"\b(speedup|rounds)\s+[\d.]+", "", part)
            parts[i] = re.sub(r"^(\s*goal\s*{)", r"\1\n" + goal, part, count=1, flags=re.M)
        else:
            parts[i] = re.sub(r"^}", "}\ngoal {\n" + goal + "}", part, count=1, flags=re.M)
    path = os.path.join(folder, f"case{number}.kg")
    pathlib.Path(path).write_text("".join(parts), encoding="utf-8")
    return plan_cases.Case(path, case.op, case.dtype, case.sizes)


def read_rounds(home):
    """The rounds of the only build of a home, as dictionaries."""
    with sqlite3.connect(os.path.join(home, "records.db")) as records:
        records.row_factory = sqlite3.Row
        return [dict(row) for row in records.execute("SELECT * FROM rounds ORDER BY id")]


def race(program, device, case, first, second):
    """How many times as long the first choice takes, timed alternately: in the middle of five races."""
    dtype = f"T={case.dtype}" if case.dtype else ""
    done = subprocess.run([program, "--device", device, "--races", "5", "--json", case.path, case.op, dtype,
                           case.words(), first, second], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{case}: {done.stderr.strip()[:500]}")
    before, after = (row["seconds"] for row in json.loads(done.stdout))
    return statistics.median(one / other for one, other in zip(before, after))


def measure(options, case, folder, number):
    case = with_goal(case, options.rounds, folder, number)
    home = os.path.join(folder, f"home{number}")
    done = subprocess.run([options.kernelgen, "build", *case.options(), "--device", options.device, "--rigor",
                           "measure", "--json"], env={**os.environ, "KERNELGEN_HOME": home}, capture_output=True, text=True)
    if not done.stdout.startswith("{"):
        return {"case": str(case), "error": done.stderr.strip()[:300]}
    built, rounds = json.loads(done.stdout), read_rounds(home)
    search = next(r for r in rounds if r["kind"] == "search")
    later = [r for r in rounds if r["number"] > 1]
    searched = search["choice"] if search["kept"] else search["base"]
    line = {"case": f"{case.op} {case.dtype} {case.words()}", "rounds": built["rounds"],
            "kept": [r["kind"] for r in later if r["kept"]], "tried": [search["tried"],
            sum(r["tried"] for r in later)], "stopped": built["stopped"], "ratio": 1.0}
    if searched != built["choice"]:
        line["ratio"] = race(options.choices, options.device, case, searched, built["choice"])
    return line


def choose_cases(options, folder):
    on_host = options.device == "host"
    shipped = list(plan_cases.shipped_cases(options.kernelgen, options.ops, fit=on_host))
    random.Random(options.seed).shuffle(shipped)
    drawn = plan_cases.drawn_cases(options.kernelgen, options.seed, options.count // 2, folder,
                                    scale=1 if on_host else GPU_SCALE)
    return shipped[:options.count - options.count // 2] + list(drawn)


def summarise(lines):
    ratios = sorted(line["ratio"] for line in lines if "ratio" in line)
    if not ratios:
        sys.exit("nothing was measured")
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"{len(ratios)} cases: the loop's result against the search's: geometric mean {mean:.3f}, worst "
          f"{ratios[0]:.3f}, best {ratios[-1]:.3f}; faster by more than {NOISE:.0%}: "
          f"{sum(r > 1 + NOISE for r in ratios)}, slower: {sum(r < 1 - NOISE for r in ratios)}")


def main():
    root = pathlib.Path(__file__).resolve().parents[1]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--json")
    parser.add_argument("--kernelgen", default=str(root / "build/dev/kernelgen"))
    parser.add_argument("--choices", default=str(root / "build/dev/bench/bench_choices"))
    parser.add_argument("--device", default="host")
    parser.add_argument("--ops", default=str(root / "ops"))
    options = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(choose_cases(options, folder)):
            line = measure(options, case, folder, number)
            lines.append(line)
            if "error" in line:
                print(f"{line['case']}: {line['error']}", flush=True)
                continue
            print(f"{line['ratio']:.3f}  {line['case']}: {line['rounds']} rounds, tried {line['tried'][0]} + "
                  f"{line['tried'][1]}, kept: {', '.join(line['kept']) or 'none'}; {line['stopped']}", flush=True)
    summarise(lines)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(lines, indent=1) + "\n")


if __name__ == "__main__":
    main()
