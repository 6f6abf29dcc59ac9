#!/usr/bin/env python3
"""What pruning of Triton configs costs and saves: quality of the pruned list, and time to the chosen config.

    bench/gpu/triton_pruning.py [--top 0.1] [--seed N] [--judge model] [--out FILE] [--only N] [--time N] [--dry]

quality  the fastest of all configs over the fastest of those kept, all measured cold in one process
time     a search of one shape from an empty cache: triton.autotune over all configs, and over those kept,
         each in a process of its own

Needs torch, Triton, and PYTHONPATH with the package (BUILD/python). --dry compiles and prunes for sm_90a
without a GPU, and measures nothing. The times of all configs go to FILE, as JSON.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
import triton

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "triton_gemm"))
import triton_gemm

from kernelgen.triton import analysis, prune, pruning

LISTED = [(512,) * 3, (1024,) * 3, (2048,) * 3, (4096,) * 3, (16, 4096, 4096), (64, 6144, 4096), (4096, 128, 4096)]


def drawn(seed, count=10):
    choose = random.Random(seed).choice
    sizes = [16, 48, 128, 256, 384, 768, 1000, 1536, 2048, 3000, 4096, 6144]
    return [(choose(sizes), choose(sizes[3:]), choose(sizes[3:])) for _ in range(count)]


def tensors(shape, device):
    m, n, k = shape
    return (torch.randn(m, k, device=device).to(torch.float16), torch.randn(k, n, device=device).to(torch.float16),
            torch.empty(m, n, device=device, dtype=torch.float16))


def arguments_of(shape, device):
    values = triton_gemm._arguments(*tensors(shape, device))
    return values, dict(zip(triton_gemm.matmul_kernel.arg_names, values), grid=triton_gemm._grid(*shape[:2]))


def times_of_all(shape, configs):
    values, named = arguments_of(shape, "cuda")
    found = {}
    for config in configs:
        def run(config=config):
            triton_gemm.matmul_kernel[named["grid"]](*values, **config.all_kwargs())
        try:
            found[analysis.words_of(config)] = triton.testing.do_bench(run, warmup=5, rep=25, return_mode="median")
        except Exception as error:  # over a limit, or refused by the compiler
            print(f"  {analysis.words_of(config)}: {str(error).splitlines()[0][:100]}", file=sys.stderr)
    return found


def judge_shape(shape, configs, arguments):
    _, named = arguments_of(shape, "cpu" if arguments.dry else "cuda")
    outcome = pruning.run(triton_gemm.matmul_kernel, configs, named, top=arguments.top, judge=arguments.judge,
                          target="sm_90a" if arguments.dry else None)
    kept = [analysis.words_of(config) for config in outcome.kept]
    line = dict(shape=shape, configs=len(configs), kept=kept, prune_seconds=outcome.seconds, remarks=outcome.remarks,
                expected={one.words: one.score for one in outcome.candidates if one.score is not None})
    if not arguments.dry:
        line["milliseconds"] = times = times_of_all(shape, configs)
        fast = [times[words] for words in kept if words in times]
        line["quality"] = min(times.values()) / min(fast) if fast else 0.0
    return line


def search(how, shape, top):
    """One search, in this process. Prints its seconds."""
    options = {"prune_configs_by": {"early_config_prune": prune(top=top)}} if how == "pruned" else {}
    kernel = triton.autotune(triton_gemm.configs(), key=["M", "N", "K"], **options)(triton_gemm.matmul_kernel)
    values, named = arguments_of(shape, "cuda")
    torch.cuda.synchronize()
    begin = time.monotonic()
    kernel[named["grid"]](*values)
    torch.cuda.synchronize()
    print(json.dumps(dict(seconds=time.monotonic() - begin, config=str(kernel.best_config))))


def seconds_of(how, shape, arguments):
    with tempfile.TemporaryDirectory() as cache:
        words = [sys.executable, os.path.abspath(__file__), "--search", how, *map(str, shape), "--top",
                 str(arguments.top)]
        ran = subprocess.run(words, env=dict(os.environ, TRITON_CACHE_DIR=cache), capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"the search failed: {ran.stderr[-500:]}")
    return json.loads(ran.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--top", type=float, default=0.1)
    parser.add_argument("--judge", default="model")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default="triton_pruning.json")
    parser.add_argument("--only", type=int, default=99, help="shapes")
    parser.add_argument("--configs", type=int, default=0, help="every so many-th config only")
    parser.add_argument("--time", type=int, default=1, help="shapes whose searches are timed")
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--search", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.search:
        return search(arguments.search[0], tuple(map(int, arguments.search[1:])), arguments.top)
    if not arguments.dry and not torch.cuda.is_available():
        print("triton_pruning.py needs a GPU; --dry does without", file=sys.stderr)
        return 3
    configs = triton_gemm.configs()[::arguments.configs or 1]
    result = dict(triton=triton.__version__, top=arguments.top, judge=arguments.judge, seed=arguments.seed,
                  device=None if arguments.dry else torch.cuda.get_device_name(), lines=[], searches=[])
    print("| shape | configs | kept | pruning s | quality |\n|---|--:|--:|--:|--:|")
    for shape in (LISTED + drawn(arguments.seed))[:arguments.only]:
        line = judge_shape(shape, configs, arguments)
        result["lines"].append(line)
        quality = f"{line['quality']:.3f}" if "quality" in line else "-"
        print(f"| {'x'.join(map(str, shape))} | {line['configs']} | {len(line['kept'])} | "
              f"{line['prune_seconds']:.1f} | {quality} |", flush=True)
        Path(arguments.out).write_text(json.dumps(result, indent=1) + "\n")
    if not arguments.dry and arguments.time:
        print("\n| search | triton.autotune s | pruned s | ratio |\n|---|--:|--:|--:|")
        for shape in LISTED[2:2 + arguments.time]:
            whole, pruned = (seconds_of(how, shape, arguments) for how in ("all", "pruned"))
            result["searches"].append(dict(shape=shape, all=whole, pruned=pruned))
            print(f"| {'x'.join(map(str, shape))} | {whole['seconds']:.1f} | {pruned['seconds']:.1f} | "
                  f"{whole['seconds'] / pruned['seconds']:.1f} |", flush=True)
        Path(arguments.out).write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
