#!/usr/bin/env python3
"""What pruning of Triton configs costs and saves: quality of the pruned list, and time to the chosen config.

    bench/gpu/triton_pruning.py [--top 0.1] [--seed N] [--out FILE] [--seconds 280] [--configs N] [--only N] [--dry]

quality  the fastest of all configs over the fastest of those kept, for the model, and for points with --points-top.
         Every config is compiled first, side by side, also those that a rule would have refused; shapes with the same
         divisibility share the code. All are then measured in turns, with a cold L2; the fastest and all that are
         kept are measured again, and only that measurement is compared.
time     a search of one shape from an empty cache: triton.autotune over every --search-step-th config, and over
         those kept of the same list, each in a process of its own. A search past --search-limit seconds is ended; its
         ratio is then a lower bound.

Needs torch, Triton, and PYTHONPATH with the package (BUILD/python). --dry compiles and prunes for sm_90a without a
GPU, and measures nothing. What no time was left for is named. All times go to FILE, as JSON.
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import torch
import triton

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "triton_gemm"))
import triton_gemm

from kernelgen.triton import prune
from triton_in_turns import Judged, times_in_turns

LISTED = [(512,) * 3, (1024,) * 3, (2048,) * 3, (4096,) * 3, (16, 4096, 4096), (64, 6144, 4096), (4096, 128, 4096)]
SEARCHED = (2048,) * 3


def drawn(seed, count=10):
    choose = random.Random(seed).choice
    sizes = [16, 48, 128, 256, 384, 768, 1000, 1536, 2048, 3000, 4096, 6144]
    return [(choose(sizes), choose(sizes[3:]), choose(sizes[3:])) for _ in range(count)]


def arguments_of(shape, device):
    m, n, k = shape
    tensors = (torch.randn(m, k, device=device).to(torch.float16), torch.randn(k, n, device=device).to(torch.float16),
               torch.empty(m, n, device=device, dtype=torch.float16))
    values = triton_gemm._arguments(*tensors)
    return values, dict(zip(triton_gemm.matmul_kernel.arg_names, values), grid=triton_gemm._grid(m, n))


def judge_shape(shape, configs, arguments):
    values, named = arguments_of(shape, "cpu" if arguments.dry else "cuda")
    begin = time.monotonic()
    judged = Judged(triton_gemm.matmul_kernel, configs, named, "sm_90a" if arguments.dry else None)
    line = dict(shape=shape, configs=len(configs), compile_seconds=time.monotonic() - begin)
    kept = {}
    kept["model"], line["expected"], line["remarks"] = judged.select("model", arguments.top)
    kept["points"], _, _ = judged.select("points", arguments.points_top)
    line["kept"] = {judge: [judged.words[index] for index in indices] for judge, indices in kept.items()}
    if arguments.dry:
        return line
    begin = time.monotonic()

    def launch(index):
        triton_gemm.matmul_kernel[named["grid"]](*values, **configs[index].all_kwargs())

    coarse, fine, failed = times_in_turns(launch, judged.runnable, sorted(set().union(*map(set, kept.values()))))
    line["measure_seconds"] = time.monotonic() - begin
    line["milliseconds"] = {judged.words[index]: value for index, value in {**coarse, **fine}.items()}
    line["failed"] = {judged.words[index]: why for index, why in {**judged.failed, **failed}.items()}
    best = min(fine, key=fine.get)
    line["best"], line["best_ms"] = judged.words[best], fine[best]
    line["tflops"] = 2e-9 * math.prod(shape) / fine[best]
    line["quality"] = {judge: fine[best] / min((fine[index] for index in indices if index in fine), default=math.inf)
                       for judge, indices in kept.items()}
    order = sorted(line["expected"], key=line["expected"].get)
    line["rank"] = 1 + order.index(line["best"]) if line["best"] in order else None
    return line


def search(how, shape, arguments):
    """One search, in this process. Prints its seconds."""
    options = {"prune_configs_by": {"early_config_prune": prune(top=arguments.top)}} if how == "pruned" else {}
    kernel = triton.autotune(triton_gemm.configs()[::arguments.search_step], key=["M", "N", "K"], **options)(
        triton_gemm.matmul_kernel)
    values, named = arguments_of(shape, "cuda")
    torch.cuda.synchronize()
    begin = time.monotonic()
    kernel[named["grid"]](*values)
    torch.cuda.synchronize()
    print(json.dumps(dict(seconds=time.monotonic() - begin, config=str(kernel.best_config))))


def seconds_of(how, shape, arguments):
    with tempfile.TemporaryDirectory() as cache:
        words = [sys.executable, os.path.abspath(__file__), "--search", how, *map(str, shape), "--top",
                 str(arguments.top), "--search-step", str(arguments.search_step)]
        try:
            ran = subprocess.run(words, env=dict(os.environ, TRITON_CACHE_DIR=cache), capture_output=True, text=True,
                                 timeout=arguments.search_limit)
        except subprocess.TimeoutExpired:
            return dict(seconds=arguments.search_limit, config=None)
    if ran.returncode:
        print(f"the search failed: {ran.stderr[-800:]}", file=sys.stderr)
        return None
    return json.loads(ran.stdout.splitlines()[-1])


def show_search(result, arguments):
    """Both searches, the shorter first."""
    pruned, whole = (seconds_of(how, SEARCHED, arguments) for how in ("pruned", "all"))
    result["searches"].append(dict(shape=SEARCHED, configs=len(triton_gemm.configs()[::arguments.search_step]),
                                   all=whole, pruned=pruned))
    if whole and pruned:
        bound = "" if whole["config"] else ">"
        print(f"\nsearch of {'x'.join(map(str, SEARCHED))} among {result['searches'][-1]['configs']} configs: "
              f"triton.autotune {bound}{whole['seconds']:.1f} s, pruned {pruned['seconds']:.1f} s, ratio "
              f"{bound}{whole['seconds'] / pruned['seconds']:.1f}\n", flush=True)


HEADER = ("| shape | configs | compiled in s | measured in s | best us | TFLOPS | kept | quality (model) | "
          "quality (points) | best's rank |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")


def row(line):
    kept = "+".join(str(len(words)) for words in line["kept"].values())
    measured = ["-"] * 6
    if "quality" in line:
        measured = [f"{line['measure_seconds']:.1f}", f"{1e3 * line['best_ms']:.1f}", f"{line['tflops']:.0f}",
                    f"{line['quality']['model']:.3f}", f"{line['quality']['points']:.3f}", str(line["rank"])]
    return (f"| {'x'.join(map(str, line['shape']))} | {line['configs']} | {line['compile_seconds']:.1f} | "
            f"{' | '.join(measured[:3])} | {kept} | {' | '.join(measured[3:])} |")


def show_summary(lines):
    for judge in ("model", "points"):
        found = [line["quality"][judge] for line in lines if "quality" in line]
        if found:
            print(f"quality, {judge}: geometric mean {math.exp(sum(map(math.log, found)) / len(found)):.4f}, median "
                  f"{median(found):.4f}, worst {min(found):.4f}, of {len(found)} shapes")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--top", type=float, default=0.1)
    parser.add_argument("--points-top", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default="triton_pruning.json")
    parser.add_argument("--seconds", type=float, default=280, help="no shape is begun that would end later")
    parser.add_argument("--only", type=int, default=99, help="shapes")
    parser.add_argument("--configs", type=int, default=1, help="every so many-th config only")
    parser.add_argument("--search-step", type=int, default=3)
    parser.add_argument("--search-limit", type=float, default=150, help="0: no searches")
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--search", nargs=4, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    arguments, begin = parse(), time.monotonic()
    if arguments.search:
        return search(arguments.search[0], tuple(map(int, arguments.search[1:])), arguments)
    if not arguments.dry and not torch.cuda.is_available():
        print("triton_pruning.py needs a GPU; --dry does without", file=sys.stderr)
        return 3
    configs = triton_gemm.configs()[::arguments.configs]
    result = dict(triton=triton.__version__, torch=torch.__version__, top=arguments.top, seed=arguments.seed,
                  points_top=arguments.points_top, cores=len(os.sched_getaffinity(0)), lines=[], searches=[],
                  device=None if arguments.dry else torch.cuda.get_device_name())
    print(f"{result['device']}, Triton {triton.__version__}, torch {torch.__version__}, {result['cores']} cores, "
          f"{len(configs)} configs\n\n{HEADER}")
    shapes, left_out, longest = LISTED + drawn(arguments.seed), [], 0.0
    # Same divisibility, same code: shapes that share it follow each other.
    shapes = sorted(shapes[:arguments.only], key=lambda shape: ([size % 16 != 0 for size in shape],
                                                                shapes.index(shape)))
    for index, shape in enumerate(shapes):
        if time.monotonic() - begin + longest > arguments.seconds:
            left_out.append("x".join(map(str, shape)))
            continue
        started = time.monotonic()
        result["lines"].append(judge_shape(shape, configs, arguments))
        longest = max(longest, time.monotonic() - started)
        print(row(result["lines"][-1]), flush=True)
        if index + 1 == min(len(LISTED), len(shapes)) and not arguments.dry and arguments.search_limit:
            show_search(result, arguments)
        Path(arguments.out).write_text(json.dumps(result, indent=1) + "\n")
    show_summary(result["lines"])
    if left_out:
        print(f"no time was left for {', '.join(left_out)}")
    print(f"{time.monotonic() - begin:.0f} s in all; all times are in {arguments.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
