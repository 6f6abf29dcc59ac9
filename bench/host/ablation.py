#!/usr/bin/env python3
"""How many configs must be measured until one within 2 % of the best is among them?

    ablation.py KERNELGEN OPS_FOLDER [--quick] [--each N [--first I]] [--home FOLDER] [--svg FILE.svg]
                [--json FILE] [--seconds N] [--device NAME] [--anywhere N] [--again FOLDER]

Leaves one op out at a time. First every op is measured exhaustively, on the device, into the records of one
home. Then, for each op, bench_order walks through its configs in four orders, with the times on record
instead of new measurements, and patterns from the lessons of all ops but this one:

    random          any order of what was measured: the expected number
    model           the rule's guess, then as the search picks, without patterns
    patterns        by what patterns say alone, starting with the best; ties in any order
    patterns+model  two favourites of the other ops or, without any, what patterns make of the rule's guess;
                    the guess; then as the search picks with patterns

--quick takes a few ops, --each N every N-th of all shipped ones whose rule's choice is one kernel, from the
I-th on (0: the first), at sizes that take milliseconds. --home keeps the records, so that a run goes on where
another one ended. --seconds limits the measuring of one op; with 0 only what is on record counts. Where that is
the promising part of a space, a random order of it is no random order: --anywhere N times N configs drawn from
all of it, too, and `random` then is of the whole space. If few of the drawn ones are good, half of one more is
counted as good. --again takes the home of another run on the same machine, and adds the order of its times: an
order that knows the op could do no better, and configs that it needs beyond the first are due to chance. On a
GPU ops are grown to what takes tens of microseconds. bench_order is looked for beside KERNELGEN.
"""

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

import plan_cases

SUBJECTS = [
    ("softmax.kg", "softmax", "P=4096,D=1024"), ("softmax.kg", "log_softmax", "P=2048,D=2048"),
    ("softmax.kg", "logsumexp", "P=4096,D=1024"), ("softmax.kg", "softmax_masked", "P=2048,D=1024"),
    ("normalisation.kg", "rms_norm", "P=4096,D=1024"), ("normalisation.kg", "layer_norm", "P=2048,D=2048"),
    ("normalisation.kg", "add_rms_norm", "P=2048,D=1024"), ("normalisation.kg", "normalise_l2", "P=4096,D=768"),
    ("reductions.kg", "sum_last", "P=8192,D=1024"), ("reductions.kg", "max_last", "P=4096,D=2048"),
    ("reductions.kg", "variance_last", "P=4096,D=1024"), ("reductions.kg", "sum_first", "P=4096,D=1024"),
    ("reductions.kg", "max_first", "P=2048,D=2048"), ("reductions.kg", "sum_middle", "A=32,B=256,C=512"),
    ("reductions.kg", "mean_middle", "A=16,B=512,C=512"),
    ("scans.kg", "cumsum", "P=4096,D=1024"), ("scans.kg", "cummax", "P=4096,D=1024"),
    ("scans.kg", "cumsum_reverse", "P=2048,D=2048"),
    ("bias_relu.kg", "bias_relu", "P=4096,D=1024"), ("broadcast.kg", "bias_gelu", "P=2048,D=1024"),
    ("broadcast.kg", "scale_shift", "P=4096,D=1024"), ("activations.kg", "gelu", "N=4194304"),
    ("activations.kg", "silu", "N=4194304"), ("activations.kg", "relu", "N=8388608"),
    ("matmul.kg", "matmul", "M=256,N=256,K=256"), ("matmul.kg", "matmul_nt", "M=256,N=256,K=384"),
    ("matmul.kg", "linear_relu", "M=192,N=256,K=256"), ("matmul.kg", "matmul_tn", "M=256,N=192,K=256"),
]
QUICK = ("softmax", "log_softmax", "logsumexp", "rms_norm", "layer_norm")
GPU_ROWS, GPU_PRODUCT = 4, 8  # times the sizes of a CPU
GPU_WORK = 32  # times the work of one core
GOOD = 0.98
ORDERS = ("random", "model", "patterns", "patterns+model")
AGAIN = "again"


def listed_cases(ops, quick, on_gpu):
    for file, op, sizes in SUBJECTS:
        if not quick or op in QUICK:
            sizes = {name: int(size) for name, size in (word.split("=") for word in sizes.split(","))}
            is_product = "K" in sizes
            if on_gpu and is_product:
                sizes = {name: size * GPU_PRODUCT for name, size in sizes.items()}
            elif on_gpu:
                sizes[next(iter(sizes))] *= GPU_ROWS
            yield plan_cases.Case(f"{ops}/{file}", op, "f16" if on_gpu and is_product else "f32", sizes)


def shipped_cases(program, walker, ops, each, first, on_gpu):
    """Every `each`-th shipped op of one kernel, from the `first` on."""
    with tempfile.TemporaryDirectory() as home:
        cases = [case for case in plan_cases.shipped_cases(program, ops, narrow="", fit=not on_gpu)
                 if "several kernels" not in ask(walker, case, home, "host").stderr][first::each]
    return [case for case in cases if not on_gpu or plan_cases.fit_sizes(program, case, GPU_WORK)]


def measure(program, case, home, seconds, device):
    command = [program, "profile", *case.options(), "--device", device, "--time", str(seconds), "--json",
               "--out", os.devnull]
    done = subprocess.run(command, env={**os.environ, "KERNELGEN_HOME": home}, capture_output=True, text=True)
    if done.returncode:
        print(f"{case.op}: left out: {done.stderr.strip()[:200]}", file=sys.stderr)


def ask(walker, case, home, device, again=None):
    return subprocess.run([walker, home, case.path, case.op, f"T={case.dtype}", case.words(), device,
                           *([again] if again else [])], capture_output=True, text=True)


def walk(walker, case, home, device, again=None):
    """What bench_order says of one op; None where there are too few configs to tell orders apart."""
    done = ask(walker, case, home, device, again)
    if done.returncode:
        print(f"{case.op}: left out: {done.stderr.strip()[:200]}", file=sys.stderr)
        return None
    return {"op": case.op, "sizes": case.words(), **json.loads(done.stdout)}


def expect_anywhere(chooser, case, home, device, count, row):
    """The expected number of draws from the whole space until one config is good; None if none could be timed."""
    done = subprocess.run([chooser, "--device", device, "--json", "--anywhere", str(count), case.path, case.op,
                           f"T={case.dtype}", case.words()], env={**os.environ, "KERNELGEN_HOME": home},
                          capture_output=True, text=True)
    if done.returncode:
        print(f"{case.op}: {done.stderr.strip()[:200]}", file=sys.stderr)
        return None
    # The first is the rule's choice.
    times = [(entry.get("seconds") or [0])[0] for entry in json.loads(done.stdout)[1:]]
    found = sum(0 < time <= row["least"] / GOOD for time in times)
    share = (found + 0.5) / (len(times) + 1)
    good = row["good"] + max(0, row["space"] - row["configs"]) * share
    return (row["space"] + 1) / (good + 1)


def geometric(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def print_table(rows):
    orders = (*ORDERS, AGAIN) if all(AGAIN in row for row in rows) else ORDERS
    print(f"{'op':<16} {'class':<10} {'space':>7} {'configs':>7} {'good':>5} " + " ".join(f"{o:>14}" for o in orders))
    for row in rows:
        print(f"{row['op']:<16} {row['class']:<10} {row['space']:>7} {row['configs']:>7} {row['good']:>5} " +
              " ".join(f"{row[o]:>14.1f}" for o in orders))
    print(f"{'geometric mean':<49} " + " ".join(f"{geometric([r[o] for r in rows]):>14.2f}" for o in orders))
    print(f"{'sum':<49} " + " ".join(f"{sum(r[o] for r in rows):>14.1f}" for o in orders))
    both = geometric([r["patterns+model"] for r in rows])
    print(f"patterns+model takes {both / geometric([r['random'] for r in rows]):.2f} of random order, "
          f"{both / geometric([r['model'] for r in rows]):.2f} of the model alone")
    if AGAIN in orders:
        again = geometric([r[AGAIN] for r in rows]) / geometric([r["model"] for r in rows])
        print(f"the order of another run's times takes {again:.2f} of the model alone: less would be luck")
    firsts = [(r["first"], r["first_with_patterns"]) for r in rows if r.get("first") and r.get("first_with_patterns")]
    if firsts:
        shares = ", ".join(f"{geometric(some):.3f} (worst {min(some):.3f})" for some in zip(*firsts))
        print(f"first choice without measuring, over the best of {len(firsts)} ops: by the rule and with patterns {shares}")


def draw(rows, path):
    """Bars on a logarithmic scale, an op a row; no colours that a theme would hide."""
    colours = dict(zip(ORDERS, ("#9e9e9e", "#4a7fb5", "#c98a2b", "#3a8f5c")))
    left, width, bar, gap = 150, 560, 9, 10
    step = len(ORDERS) * bar + gap
    high = 60 + step * len(rows) + 30
    most = max(row[o] for row in rows for o in ORDERS)
    scale = width / math.log10(max(most, 10) * 1.05)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 70}" height="{high}" '
           f'viewBox="0 0 {left + width + 70} {high}" font-family="sans-serif" font-size="12">',
           f'<rect width="100%" height="100%" fill="#ffffff"/>',
           '<text x="10" y="18" font-size="14">Configs measured until one within 2 % of the best</text>']
    for i, order in enumerate(ORDERS):
        x = left + 135 * i
        out.append(f'<rect x="{x}" y="30" width="12" height="12" fill="{colours[order]}"/>'
                   f'<text x="{x + 17}" y="40">{order}</text>')
    for tick in (first * 10 ** power for power in range(6) for first in (1, 2, 5)):
        x = left + scale * math.log10(tick)
        if tick <= most * 1.05:
            out.append(f'<line x1="{x:.1f}" y1="52" x2="{x:.1f}" y2="{high - 24}" stroke="#dddddd"/>'
                       f'<text x="{x:.1f}" y="{high - 8}" text-anchor="middle">{tick}</text>')
    for n, row in enumerate(rows):
        y = 58 + step * n
        out.append(f'<text x="{left - 8}" y="{y + step / 2 - 1:.1f}" text-anchor="end">{row["op"]}</text>')
        for i, order in enumerate(ORDERS):
            length = max(scale * math.log10(max(row[order], 1)), 2)
            out.append(f'<rect x="{left}" y="{y + bar * i}" width="{length:.1f}" height="{bar - 1}" '
                       f'fill="{colours[order]}"><title>{row["op"]}, {order}: {row[order]:.1f}</title></rect>')
    out.append("</svg>\n")
    pathlib.Path(path).write_text("\n".join(out))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("ops")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--each", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--home")
    parser.add_argument("--svg")
    parser.add_argument("--json")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--device", default="host")
    parser.add_argument("--anywhere", type=int, default=0)
    parser.add_argument("--again", metavar="FOLDER")
    options = parser.parse_args()
    beside = pathlib.Path(options.program).resolve().parent / "bench"
    chooser, walker = beside / "bench_choices", beside / "bench_order"
    for tool in [walker] + [chooser] * (options.anywhere > 0):  # before minutes are spent on measuring
        if not tool.exists():
            sys.exit(f"ablation.py: {tool} is not there: build the target {tool.name}")
    with tempfile.TemporaryDirectory() as folder:
        home = options.home or folder
        on_gpu = options.device != "host"
        cases = (shipped_cases(options.program, walker, options.ops, options.each, options.first, on_gpu)
                 if options.each else list(listed_cases(options.ops, options.quick, on_gpu)))
        for number, case in enumerate(cases, 1):
            print(f"{number} of {len(cases)}: {case}", file=sys.stderr)
            if options.seconds > 0:
                measure(options.program, case, home, options.seconds, options.device)
        rows = []
        for case in cases:
            row = walk(walker, case, home, options.device, options.again)
            if row and options.anywhere:
                drawn = expect_anywhere(chooser, case, home, options.device, options.anywhere, row)
                row["random"] = drawn or row["random"]
            rows += [row] if row else []
    if not rows:
        sys.exit("no op could be compared")
    print_table(rows)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")
    if options.svg:
        draw(rows, options.svg)


if __name__ == "__main__":
    main()
