#!/usr/bin/env python3
"""Products with weights of 4 or 8 bits on a GPU: KernelGen beside cuBLASLt on the same weights in 16 bits.

    bench/gpu/w4a16.py [--seed S --count N] [--rows 1,16] [--modes group,zero] [--runs 128]
                       [--layers 28672x4096] [--dtype f16,bf16] [--packed] [--rounded] [--measure]
                       [--alone] [--kernelgen CLI] [--json FILE] [--seconds N] [--limit N] [--list]

With a seed, shapes are drawn: M log-uniform from 1 to 8192, N and K from 512 to 32768, the way of
quantising at random. Otherwise they are the listed layers. Everyone takes turns in one process;
timing.py says how. "cuBLAS" is the fastest of its first 8 answers over ours: above 1 we are faster.
"Humming" is the same of that package, where it can be imported. "read" is the share of what a
kernel reaches that reads as many bytes. Every result is compared with
the product in f32 before it is timed, and ours afterwards as well. With --alone there is no one
beside us; with --measure the summary says what the rule's choices are worth.
"""

import argparse
import importlib.util
import itertools
import math
import os
import shutil
import statistics
import sys
import tempfile
import time

from drawn_summary import print_choices
from matmul_summary import print_missing
from results import write_json
from timing_process import Run, keep_compiled_in, plans_job, run_together
from w4a16_shapes import LAYERS, MODES, OTHER_MODES, ROWS, drawn, listed

WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "w4a16_worker.py")
PEERS = {"lt_tuned": "cuBLAS", "humming": "Humming"}
BANDS = (1, 16), (17, 32), (33, 64), (65, 128), (129, 1024), (1025, 8192)


def over(times, peer, ours):
    return times[peer]["us"] / times[ours]["us"] if peer in times and ours in times else None


def cell(value, width=7):
    return f"{'-':>{width}}" if value is None else f"{value:{width}.2f}"


def print_line(line, lines):
    if len(lines) == 1:
        print(f"\n{'':40}{'us':>9}{'+-':>5}{'read':>7}{'cuBLAS':>8}{'Humming':>8}"
              f"{'graph us':>10}{'cuBLAS':>8}{'Humming':>8}")
    cold, graph = line["cold"], line["graph"]
    for name in ("kernelgen", "measured"):
        if name not in cold:
            if name == "kernelgen":
                reason = line["reasons"].get(name) or line["reasons"].get("shape") or "left out"
                print(f"{line['label']:40}{'-':>9}  ({' '.join(reason.split())[:160]})")
            continue
        label = line["label"] if name == "kernelgen" else "    by search"
        mine = f"{graph[name]['us']:10.1f}" if name in graph else f"{'-':>10}"
        print(f"{label:40}{cold[name]['us']:9.1f}{cold[name]['spread']:5.0%}"
              f"{cell(over(cold, 'read', name))}{cell(over(cold, 'lt_tuned', name), 8)}"
              f"{cell(over(cold, 'humming', name), 8)}{mine}"
              f"{cell(over(graph, 'lt_tuned', name), 8)}{cell(over(graph, 'humming', name), 8)}"
              f"  [{line['notes'].get(name, {}).get('choice', '')}]")
    sys.stdout.flush()


def summary_of(lines):
    """By bands of rows: geometric mean, 10th percentile and worst ratio to a peer."""
    found = []
    for name, peer, kind in itertools.product(("kernelgen", "measured"), PEERS, ("cold", "graph")):
        for least, most in BANDS:
            ratios = sorted(r for line in lines if least <= line.get("m", 0) <= most
                            for r in [over(line[kind], peer, name)] if r)
            if ratios:
                mean = math.exp(statistics.fmean(map(math.log, ratios)))
                found.append(dict(ours=name, peer=peer, kind=kind, rows=[least, most],
                                  count=len(ratios), mean=mean, tenth=ratios[len(ratios) // 10],
                                  worst=ratios[0]))
    return found


def print_summary(found):
    print(f"\n{'':17}{'rows':>14}{'shapes':>8}{'mean':>7}{'10th':>7}{'worst':>7}")
    for row in found:
        rows = f"{row['rows'][0]}-{row['rows'][1]}"
        print(f"{row['ours']:10}{PEERS[row['peer']]:8}{row['kind']:>6}{rows:>10}{row['count']:5}{row['mean']:7.2f}"
              f"{row['tenth']:7.2f}{row['worst']:7.2f}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, help="draws shapes instead of the listed ones")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--rows", default=",".join(map(str, ROWS)))
    parser.add_argument("--layers", default="", help="NxK, split by commas; default: all")
    parser.add_argument("--modes", default="group", help=", ".join(MODES + OTHER_MODES))
    parser.add_argument("--runs", default="128", help="rows of weights with one scale")
    parser.add_argument("--dtype", default="f16")
    parser.add_argument("--packed", action="store_true", help="weights of 4 bits in panels")
    parser.add_argument("--rounded", action="store_true",
                        help="weights of 4 bits are rounded to 16 bits once they are scaled")
    parser.add_argument("--measure", action="store_true", help="also what a search chooses")
    parser.add_argument("--alone", action="store_true", help="no one beside us")
    parser.add_argument("--kernelgen", default="", help="the command line, for searches apart")
    parser.add_argument("--json", default="", metavar="FILE")
    parser.add_argument("--seconds", type=float, default=0.2, help="of the races of a shape")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds; no new shape after that")
    parser.add_argument("--list", action="store_true", help="the shapes only; needs no GPU")
    return parser.parse_args()


def shapes_of(arguments):
    if arguments.seed is not None:
        return list(drawn(arguments.seed, arguments.count, arguments.packed, arguments.rounded))
    layers = {tuple(map(int, layer.split("x"))) for layer in arguments.layers.split(",") if layer}
    rows, runs = ([int(n) for n in text.split(",")] for text in (arguments.rows, arguments.runs))
    return [shape for shape in listed(rows, arguments.modes.split(","), arguments.dtype.split(","),
                                      runs, arguments.packed, arguments.rounded)
            if (shape.n, shape.k) in (layers or LAYERS)]


def main():
    arguments = parse()
    todo = shapes_of(arguments)
    if arguments.list:
        for shape in todo:
            print(shape.label)
        return 0
    home = tempfile.mkdtemp(prefix="kernelgen_w4a16_")
    keep_compiled_in(home)
    names = {"kernelgen"} | (set() if arguments.alone else {"lt", "lt_tuned", "read"})
    names |= {"measured"} if arguments.measure else set()
    if not arguments.alone and importlib.util.find_spec("humming"):
        names.add("humming")
    settings = dict(home=home, seconds=arguments.seconds, kernelgen=arguments.kernelgen,
                    contenders=sorted(names))
    run = Run(WORKER, todo, settings, print_line, arguments.limit)
    began = time.monotonic()
    try:
        run_together([plans_job(home, todo)])
        print(f"plans compiled ahead in {time.monotonic() - began:.0f} s")
        run.all()
    except KeyboardInterrupt:
        print("stopped")
    shutil.rmtree(home, ignore_errors=True)
    found = summary_of(run.lines)
    print_summary(found)
    print_missing(run.lines)
    write_json(arguments.json, dict(run.about, lines=run.lines, summary=found,
                                    choices=print_choices(run.lines)))
    print(f"{run.about}\n{len(run.lines)} shapes, {len(run.todo)} left, "
          f"{time.monotonic() - began:.0f} s")
    return 0 if run.lines and not run.todo else 1


if __name__ == "__main__":
    sys.exit(main())
