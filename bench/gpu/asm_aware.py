#!/usr/bin/env python3
"""Does reading assembly find better configs of a product than a rule does, and at what price?

    bench/gpu/asm_aware.py KERNELGEN [--out FOLDER] [--dtype f16] [--only NAMES] [--top N]
                           [--pool N] [--baseline CHOICE] [--protocol WORDS] [--limit N] [--dry]

For every shape five selections, each from nothing:

  baseline_opt    one good config for all shapes: --baseline, or the rule's choice for 4096^3 (for
                  2048^3 or 1024^3 where the shape does not allow it)
  baseline_smart  the rule: rigor estimate
  asm_aware       pruned by bounds and by assembly, then measured: rigor measure
  points          of a pool of compiled configs (those that asm_aware compiled, and others at
                  random), as many as it measured, those with the most points; the fastest of them
  model           the same with the least times that the model expects

The five are then raced alternately in one process, --races times over: `steady_ms` is the median.
Speed-up and improvement are over baseline_opt. What asm_aware tries passes the accuracy gate first;
others of the pool do not, so `points` and `model` are upper bounds. Needs no package; bench_choices
is looked for beside KERNELGEN. Results: FOLDER/asm_aware_benchmark.json, .md and .svg, written
after every shape.
"""

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

from bar_chart import write_bars
from matmul_shapes import OPS
from results import geometric_mean, write_json

SHAPES = [(256,) * 3, (512,) * 3, (1024,) * 3, (2048,) * 3, (4096,) * 3, (16, 28672, 4096),
          (128, 6144, 4096), (512, 6144, 4096), (2048, 4096, 14336), (4096, 1024, 8192),
          (1000, 1000, 1000)]
METHODS = "baseline_opt", "baseline_smart", "asm_aware", "points", "model"
RIVALS = 4096, 2048, 1024  # cubes whose rule may serve as baseline_opt
COMMAND_LIMIT = 300
# What the reasons of dropped candidates begin with, or contain, by tier.
TIERS = [("by_bound", "cannot take less than"), ("by_code_bound", "its instructions cannot"),
         ("by_model", "the model expects"), ("same_code", "the same "),
         ("not_launchable", "cannot be launched")]


class Failure(Exception):
    pass


class Tools:
    """The two programs, for one shape, in a home that knows nothing."""

    def __init__(self, arguments, shape, home):
        self.kernelgen = arguments.kernelgen
        folder = os.path.dirname(os.path.abspath(arguments.kernelgen))
        self.choices = os.path.join(folder, "bench", "bench_choices")
        self.device, self.protocol = arguments.device, arguments.protocol
        self.dtype, self.home = f"T={arguments.dtype}", home
        self.sizes = ",".join(f"{name}={size}" for name, size in zip("MNK", shape))

    def run(self, home, words):
        environment = dict(os.environ, KERNELGEN_HOME=os.path.join(self.home, home),
                           KERNELGEN_WISDOM="")
        began = time.monotonic()
        try:
            done = subprocess.run(words, env=environment, capture_output=True, text=True,
                                  timeout=COMMAND_LIMIT)
        except subprocess.TimeoutExpired:
            raise Failure(f"{words[1]}: no answer in {COMMAND_LIMIT} s") from None
        if done.returncode or not done.stdout:
            raise Failure(done.stderr.strip()[-300:] or f"exit status {done.returncode}")
        return done, time.monotonic() - began

    def explain(self, home, rigor, *more):
        timed = () if rigor == "wisdom" else ("--protocol", self.protocol)
        return self.run(home, [self.kernelgen, "explain", os.path.join(OPS, "matmul.kg"), "--op",
                               "matmul_nt", "--dtype", self.dtype, "--size", self.sizes,
                               "--device", self.device, "--rigor", rigor, *timed, *more])

    def choose(self, home, rigor):
        """The explanation, and seconds from nothing to a plan, the process's start among them."""
        done, seconds = self.explain(home, rigor, "--json", "--timings")
        answer = json.loads(done.stdout)
        try:
            answer["timings"] = json.loads(done.stderr)
        except ValueError:
            pass
        return answer, seconds

    def bench(self, home, options, choices):
        done, seconds = self.run(home, [self.choices, "--device", self.device, "--protocol",
                                        self.protocol, *options, "--json",
                                        os.path.join(OPS, "matmul.kg"), "matmul_nt", self.dtype,
                                        self.sizes, *choices])
        return json.loads(done.stdout), seconds

    def allows(self, choice):
        try:
            return bool(self.bench("list", ["--list"], [choice])[0])
        except Failure:
            return False


# ---- The selections ----


def rule_for_cubes(arguments, home):
    """What baseline_opt may be, the best liked first."""
    if arguments.baseline:
        return [arguments.baseline]
    rivals = []
    for n in RIVALS:
        try:
            tools = Tools(arguments, (n,) * 3, home)
            rivals.append(tools.choose("rivals", "estimate")[0]["choice"])
        except Failure as problem:
            print(f"the rule for {n}^3: {problem}")
    return rivals


def tiers_of(candidates):
    found = {"measured": 0, **{tier: 0 for tier, _ in TIERS}, "failed": 0}
    for row in candidates:
        reason = row["reason"] or ""
        tier = next((name for name, words in TIERS if reason.startswith(words)), "failed")
        found["measured" if row["outcome"] == "measured" else tier] += 1
    return found


def space_of(tools):
    """Configs in the space, and how many of them rules refuse: told in words alone."""
    text = tools.explain("measure", "measure")[0].stdout
    counts = re.findall(r"kernel \d+: (\d+), of which rules refuse (\d+)", text)
    return sum(int(all_) for all_, _ in counts), sum(int(refused) for _, refused in counts)


def select_aware(tools):
    answer, seconds = tools.choose("measure", "measure")
    rows = answer["candidates"]
    found = tiers_of(rows)
    space, refused = space_of(tools)
    compiled = [row["choice"] for row in rows if row["compile_seconds"] > 0]
    return dict(choice=answer["choice"], tuning_seconds=seconds, configs=space, refused=refused,
                valid=space - refused, compiled=len(compiled), compiled_choices=compiled,
                pruned={name: found[name] for name, _ in TIERS}, measured=found["measured"],
                failed=found["failed"], timings=answer.get("timings"))


def make_pool(tools, size, compiled):
    valid = [row["choice"] for row in tools.bench("list", ["--list"], ["*"])[0]]
    others = [choice for choice in valid if choice not in set(compiled)]
    more = max(0, min(size - len(compiled), len(others)))
    pool = compiled + random.Random(0).sample(others, more)
    rows, seconds = tools.bench("pool", ["--predict"], pool)
    good = [row for row in rows if not row["failure"] and row.get("points") is not None]
    if not good:
        raise Failure("nothing of the pool can be launched")
    return dict(rows=good, valid=len(valid), compiled=len(rows), seconds=seconds)


def select_ordered(tools, pool, key, top):
    few = [row["choice"] for row in sorted(pool["rows"], key=key)[:top]]
    rows, seconds = tools.bench("pool", [], few)
    best = min(rows, key=lambda row: row["seconds"][0])
    return dict(choice=best["choice"], tuning_seconds=pool["seconds"] + seconds,
                valid=pool["valid"], compiled=pool["compiled"], measured=len(few))


def select_all(tools, rivals, arguments, reasons):
    """By method. What fails has a reason, and the others go on."""
    found = {}

    def attempt(name, select):
        try:
            found[name] = select()
        except (Failure, ValueError, KeyError) as problem:
            reasons[name] = str(problem) or type(problem).__name__

    def smart():
        answer, seconds = tools.choose("estimate", "estimate")
        return dict(choice=answer["choice"], tuning_seconds=seconds, compiled=1, measured=0)

    def fixed():
        for rival in rivals:
            if tools.allows(rival):
                return dict(choice=rival, tuning_seconds=0, compiled=1, measured=0)
        raise Failure("no fixed config suits this shape")
    attempt("baseline_opt", fixed)
    attempt("baseline_smart", smart)
    attempt("asm_aware", lambda: select_aware(tools))
    compiled = found.get("asm_aware", {}).pop("compiled_choices", [])
    attempt("pool", lambda: make_pool(tools, arguments.pool, compiled))
    pool = found.pop("pool", None)
    if pool:
        top = arguments.top or found.get("asm_aware", {}).get("measured") or 16
        attempt("points", lambda: select_ordered(tools, pool, lambda row: -row["points"], top))
        attempt("model", lambda: select_ordered(tools, pool, lambda row: row["estimate"], top))
    return {name: found[name] for name in METHODS if name in found}


def race(tools, found, races):
    """Steady times of all, side by side; what two methods chose alike is one contender."""
    choices = list(dict.fromkeys(entry["choice"] for entry in found.values()))
    rows, _ = tools.bench("pool", ["--races", str(races)], choices)
    seconds = {row["choice"]: row["seconds"] for row in rows}
    for entry in found.values():
        times = seconds[entry["choice"]]
        entry["steady_ms"] = statistics.median(times) * 1e3
        entry["races_ms"] = [time_ * 1e3 for time_ in times]


def measure(arguments, shape, rivals, home):
    began, reasons = time.monotonic(), {}
    tools = Tools(arguments, shape, home)
    found = select_all(tools, rivals, arguments, reasons)
    if found:
        try:
            race(tools, found, arguments.races)
        except (Failure, ValueError, KeyError) as problem:
            reasons["race"] = str(problem)
    m, n, k = shape
    base = found.get("baseline_opt", {}).get("steady_ms")
    for entry in found.values():
        if "steady_ms" in entry:
            entry["tflops"] = 2e-9 * m * n * k / entry["steady_ms"]
            if base:
                entry["speedup"] = base / entry["steady_ms"]
                entry["improvement_percent"] = 100 * (1 - entry["steady_ms"] / base)
    return dict(shape=name_of(shape), m=m, n=n, k=k, dtype=arguments.dtype, methods=found,
                reasons=reasons, seconds=round(time.monotonic() - began, 1))


# ---- What is told ----


def name_of(shape):
    m, n, k = shape
    return f"{m}^3" if m == n == k else f"{m}x{n}x{k}"


def cell(line, method, key, form):
    value = line["methods"].get(method, {}).get(key)
    return "-" if value is None else format(value, form)


def times_table(lines):
    rows = ["| shape | " + " | ".join(f"{method} ms | TFLOPS" for method in METHODS) +
            " | speed-up | improvement |", "|---|" + "--:|" * (2 * len(METHODS) + 2)]
    for line in lines:
        cells = [text for method in METHODS for text in
                 (cell(line, method, "steady_ms", ".4f"), cell(line, method, "tflops", ".1f"))]
        cells += [cell(line, "asm_aware", "speedup", ".3f"),
                  cell(line, "asm_aware", "improvement_percent", "+.1f") + " %"]
        rows.append(f"| {line['shape']} | " + " | ".join(cells) + " |")
    return rows


def costs_table(lines):
    tiers = [name for name, _ in TIERS]
    rows = ["| shape | configs | valid | compiled | " + " | ".join(tiers) +
            " | failed | measured | asm_aware s | points: compiled | measured | s | rule s |",
            "|---|" + "--:|" * (len(tiers) + 10)]
    for line in lines:
        aware = line["methods"].get("asm_aware", {})
        pruned = aware.get("pruned", {})
        cells = [cell(line, "asm_aware", key, "d") for key in ("configs", "valid", "compiled")]
        cells += [str(pruned.get(tier, "-")) for tier in tiers]
        cells += [cell(line, "asm_aware", key, "d") for key in ("failed", "measured")]
        cells += [cell(line, "asm_aware", "tuning_seconds", ".2f")]
        cells += [cell(line, "points", key, "d") for key in ("compiled", "measured")]
        cells += [cell(line, "points", "tuning_seconds", ".2f"),
                  cell(line, "baseline_smart", "tuning_seconds", ".2f")]
        rows.append(f"| {line['shape']} | " + " | ".join(cells) + " |")
    return rows


def means_of(lines):
    """Geometric means of speed-ups over baseline_opt."""
    means = {}
    for method in METHODS:
        values = [line["methods"][method]["speedup"] for line in lines
                  if "speedup" in line["methods"].get(method, {})]
        if values:
            means[method] = geometric_mean(values)
    return means


def document(lines):
    means = ", ".join(f"{method} {mean:.3f}" for method, mean in means_of(lines).items())
    rows = [*times_table(lines), "", *costs_table(lines), "",
            f"Geometric means of speed-ups over baseline_opt: {means}", ""]
    for line in lines:
        rows += [f"- {line['shape']} {method}: `{entry['choice']}`"
                 for method, entry in line["methods"].items()]
        rows += [f"- {line['shape']} {name}: not there: {reason}"
                 for name, reason in line["reasons"].items()]
    return "\n".join(rows) + "\n"


def write(folder, lines, arguments):
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "asm_aware_benchmark")
    write_json(path + ".json", dict(device=arguments.device_name, protocol=arguments.protocol,
                                    dtype=arguments.dtype, lines=lines, means=means_of(lines)))
    with open(path + ".md", "w") as file:
        file.write(document(lines))
    write_bars(path + ".svg", "TFLOPS of a steady run", METHODS,
               [(line["shape"], [line["methods"].get(method, {}).get("tflops")
                                 for method in METHODS]) for line in lines])


def device_name(arguments):
    done = subprocess.run([arguments.kernelgen, "devices", "--json"], capture_output=True,
                          text=True)
    try:
        devices = json.loads(done.stdout)
        return next(row["name"] for row in devices if row.get("device") == arguments.device)
    except (ValueError, StopIteration):
        return arguments.device


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kernelgen")
    parser.add_argument("--out", default="results", metavar="FOLDER")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--dtype", default="f16")
    parser.add_argument("--only", default="", metavar="NAMES",
                        help="shapes whose names begin so, split by commas")
    parser.add_argument("--top", type=int, default=0,
                        help="configs that points and model measure; as many as asm_aware")
    parser.add_argument("--pool", type=int, default=96, help="configs they choose among")
    parser.add_argument("--races", type=int, default=5)
    parser.add_argument("--baseline", default="", metavar="CHOICE")
    parser.add_argument("--protocol", default="cold launch")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds; no new shape after that")
    parser.add_argument("--dry", action="store_true", help="lists shapes and valid configs")
    return parser.parse_args()


def main():
    arguments = parse()
    only = tuple(arguments.only.split(","))
    shapes = [shape for shape in SHAPES if name_of(shape).startswith(only)]
    arguments.device_name = device_name(arguments)
    began, lines = time.monotonic(), []
    with tempfile.TemporaryDirectory() as scratch:
        if arguments.dry:
            for shape in shapes:
                rows, _ = Tools(arguments, shape, scratch).bench("list", ["--list"], ["*"])
                print(f"{name_of(shape):16} {len(rows)} valid configs, such as {rows[:1]}")
            return 0
        rivals = rule_for_cubes(arguments, scratch)
        for shape in shapes:
            if time.monotonic() - began > arguments.limit:
                break
            home = os.path.join(scratch, name_of(shape))
            lines.append(measure(arguments, shape, rivals, home))
            print("\n".join(times_table(lines[-1:])[2:] + costs_table(lines[-1:])[2:]), flush=True)
            for name, reason in lines[-1]["reasons"].items():
                print(f"  {name}: {reason.splitlines()[0]}", flush=True)
            write(arguments.out, lines, arguments)
    print("\n" + document(lines) + f"{time.monotonic() - began:.0f} s")
    return 0 if lines and not any(line["reasons"] for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
