#!/usr/bin/env python3
"""kernelgen.triton.autotune beside triton.autotune: host time of a call, time to the chosen config, its quality.

    bench/gpu/triton_autotune.py [--top 0.1] [--seed N] [--out FILE] [--seconds 300] [--configs N] [--only N]

host     microseconds a call takes on the host once its key is known; the kernel has one small program
search   a process with empty caches chooses for one shape: triton.autotune among every --search-step-th config, this
         package among the same; then among all; then again in a new process, which finds the winner recorded; and one
         that is killed and started again. A search past --search-limit seconds is ended: its ratio is a lower bound.
quality  the fastest of all configs over the chosen one, both measured in turns with a cold L2, as in
         triton_pruning.py, which has the shapes too; with the seconds that the choice took in this process

Needs torch, Triton, and PYTHONPATH with the package (BUILD/python). What no time was left for is named. All times go
to FILE, as JSON.
"""

import argparse
import json
import math
import os
import signal
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

import triton_pruning
from kernelgen.triton import autotune
from triton_in_turns import Judged, times_in_turns

SHAPE = triton_pruning.SEARCHED
CALLS = 3000


def tuner(how, configs, arguments):
    key = ["M", "N", "K"]
    if how == "triton":
        return triton.autotune(configs, key=key)(triton_gemm.matmul_kernel)
    return autotune(configs, key=key, top=arguments.top, progress=False)(triton_gemm.matmul_kernel)


def microseconds_of(call):
    """Of the host; what is queued is waited for now and then."""
    found = []
    for _ in range(7):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(CALLS // 10):
            call()
        found.append((time.perf_counter() - begin) / (CALLS // 10) * 1e6)
    return median(found)


def host_times(arguments):
    small = [triton.Config(dict(BM=16, BN=32, BK=32, GROUP=8), num_warps=warps, num_stages=3) for warps in (4, 8)]
    values, named = triton_pruning.arguments_of((16, 32, 32), "cuda")
    plain = triton_gemm.matmul_kernel[named["grid"]]
    options = small[0].all_kwargs()
    found = dict(plain=lambda: plain(*values, **options))
    for how in ("triton", "kernelgen"):
        launch = tuner(how, small, arguments)[named["grid"]]
        found[how] = lambda launch=launch: launch(*values)
    for call in found.values():
        call()
    return {how: microseconds_of(call) for how, call in found.items()}


def search(how, step, arguments):
    """One search, in this process. Prints its seconds."""
    configs = triton_gemm.configs()[::step]
    kernel = tuner(how, configs, arguments)
    values, named = triton_pruning.arguments_of(SHAPE, "cuda")
    torch.cuda.synchronize()
    begin = time.monotonic()
    kernel[named["grid"]](*values)
    torch.cuda.synchronize()
    seconds = time.monotonic() - begin
    last = getattr(kernel, "last", None)
    print(json.dumps(dict(seconds=seconds, configs=len(configs), config=str(kernel.best_config),
                          compiled=last.compiled if last else None, measured=last.measured if last else None)))


def started(how, step, folder, arguments):
    words = [sys.executable, os.path.abspath(__file__), "--search", how, str(step), "--top", str(arguments.top)]
    environment = dict(os.environ, TRITON_CACHE_DIR=f"{folder}/cache", KERNELGEN_HOME=f"{folder}/home")
    return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            start_new_session=True)


def ended(process, limit):
    try:
        out, said = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return dict(seconds=limit, config=None)
    if process.returncode:
        print(f"a search failed: {said[-800:]}", file=sys.stderr)
        return dict(seconds=math.nan, config=None)
    return json.loads(out.splitlines()[-1])


def lines_of(folder):
    return [json.loads(line) for path in Path(folder, "home", "triton").glob("*.jsonl")
            for line in path.read_text().splitlines() if line.endswith("}")]


def searches(arguments):
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        found["kernelgen"] = ended(started("kernelgen", arguments.search_step, folder, arguments), 120)
    with tempfile.TemporaryDirectory() as folder:
        found["kernelgen, all"] = ended(started("kernelgen", arguments.configs, folder, arguments), 120)
        found["kernelgen, recorded"] = ended(started("kernelgen", arguments.configs, folder, arguments), 120)
    with tempfile.TemporaryDirectory() as folder:
        process, begin = started("kernelgen", arguments.configs, folder, arguments), time.monotonic()
        while time.monotonic() - begin < 60 and sum(line["verdict"] == "timed" for line in lines_of(folder)) < 5:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        before = [line["config"] for line in lines_of(folder) if line["verdict"] == "timed"]
        found["kernelgen, killed and resumed"] = ended(started("kernelgen", arguments.configs, folder, arguments), 120)
        after = [line["config"] for line in lines_of(folder) if line["verdict"] == "timed"][len(before):]
        found["kernelgen, killed and resumed"].update(timed_before=len(before), timed_after=len(after),
                                                      winners=sum(line["verdict"] == "winner"
                                                                  for line in lines_of(folder)))
    with tempfile.TemporaryDirectory() as folder:
        found["triton"] = ended(started("triton", arguments.search_step, folder, arguments), arguments.search_limit)
    return found


def show_searches(found):
    print(f"\n| search of {'x'.join(map(str, SHAPE))} | configs | compiled | measured | s |\n|---|--:|--:|--:|--:|")
    for how, one in found.items():
        bound = "" if one["config"] else ">"
        print(f"| {how} | {one.get('configs', '-')} | {one.get('compiled') or '-'} | {one.get('measured') or '-'} | "
              f"{bound}{one['seconds']:.2f} |")
    resumed = found["kernelgen, killed and resumed"]
    print(f"\nratio {'' if found['triton']['config'] else '>'}"
          f"{found['triton']['seconds'] / found['kernelgen']['seconds']:.1f}; killed after {resumed['timed_before']} "
          f"timings, {resumed['timed_after']} more in the next process, {resumed['winners']} winner\n", flush=True)


def quality_of(shape, configs, kernel):
    values, named = triton_pruning.arguments_of(shape, "cuda")
    begin = time.monotonic()
    kernel[named["grid"]](*values)
    torch.cuda.synchronize()
    seconds = time.monotonic() - begin
    judged = Judged(triton_gemm.matmul_kernel, configs, named, None)
    chosen = configs.index(kernel.best_config)

    def launch(index):
        triton_gemm.matmul_kernel[named["grid"]](*values, **configs[index].all_kwargs())

    coarse, fine, _ = times_in_turns(launch, sorted({chosen, *judged.runnable}), [chosen])
    best = min(fine, key=fine.get)
    chosen_ms = fine.get(chosen, coarse[chosen])
    return dict(shape=shape, seconds=seconds, chosen=judged.words[chosen], chosen_ms=chosen_ms, best=judged.words[best],
                best_ms=fine[best], quality=fine[best] / chosen_ms, measured=kernel.last.measured,
                distinct=len(kernel.last.timings), compiled=kernel.last.compiled,
                milliseconds={judged.words[index]: value for index, value in {**coarse, **fine}.items()})


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--top", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default="triton_autotune.json")
    parser.add_argument("--seconds", type=float, default=300, help="no shape is begun that would end later")
    parser.add_argument("--only", type=int, default=99, help="shapes")
    parser.add_argument("--configs", type=int, default=1, help="every so many-th config only")
    parser.add_argument("--search-step", type=int, default=3)
    parser.add_argument("--search-limit", type=float, default=150, help="0: no searches")
    parser.add_argument("--search", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    arguments, begin = parse(), time.monotonic()
    if arguments.search:
        return search(arguments.search[0], int(arguments.search[1]), arguments)
    if not torch.cuda.is_available():
        print("triton_autotune.py needs a GPU", file=sys.stderr)
        return 3
    os.environ["KERNELGEN_HOME"] = home = tempfile.mkdtemp(prefix="kg-autotune-")
    configs = triton_gemm.configs()[::arguments.configs]
    result = dict(device=torch.cuda.get_device_name(), triton=triton.__version__, torch=torch.__version__,
                  top=arguments.top, seed=arguments.seed, cores=len(os.sched_getaffinity(0)), lines=[],
                  host=host_times(arguments))
    print(f"{result['device']}, Triton {triton.__version__}, torch {torch.__version__}, {result['cores']} cores, "
          f"{len(configs)} configs\n\n| call on the host | us |\n|---|--:|")
    for how, value in result["host"].items():
        print(f"| {how} | {value:.2f} |", flush=True)
    if arguments.search_limit:
        result["searches"] = searches(arguments)
        show_searches(result["searches"])
    kernel = tuner("kernelgen", configs, arguments)
    shapes, left_out, longest = triton_pruning.LISTED + triton_pruning.drawn(arguments.seed), [], 0.0
    shapes = sorted(shapes[:arguments.only], key=lambda shape: ([size % 16 != 0 for size in shape],
                                                                shapes.index(shape)))
    print("| shape | s to the choice | configs measured | best us | chosen us | quality |\n|---|--:|--:|--:|--:|--:|")
    for shape in shapes:
        if time.monotonic() - begin + longest > arguments.seconds:
            left_out.append("x".join(map(str, shape)))
            continue
        started_at = time.monotonic()
        line = quality_of(shape, configs, kernel)
        longest = max(longest, time.monotonic() - started_at)
        result["lines"].append(line)
        print(f"| {'x'.join(map(str, shape))} | {line['seconds']:.1f} | {line['distinct']} | {1e3 * line['best_ms']:.1f} | "
              f"{1e3 * line['chosen_ms']:.1f} | {line['quality']:.3f} |", flush=True)
        Path(arguments.out).write_text(json.dumps(result, indent=1) + "\n")
    found = [line["quality"] for line in result["lines"]]
    if found:
        print(f"quality: geometric mean {math.exp(sum(map(math.log, found)) / len(found)):.4f}, worst {min(found):.4f}, "
              f"of {len(found)} shapes")
    if left_out:
        print(f"no time was left for {', '.join(left_out)}")
    print(f"{time.monotonic() - begin:.0f} s in all; all times are in {arguments.out}; records are in {home}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
