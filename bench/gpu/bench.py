#!/usr/bin/env python3
"""Memory-bound operators on a GPU: KernelGen, a copy, PyTorch eager and torch.compile side by side.

    bench/gpu/bench.py [--only WORD] [--rigor estimate] [--seconds N] [--limit N] [--json FILE]

All contenders of a line run alternately, in one process; the L2 is flushed before each run; the
median of 15 by device events counts. Every result is compared with eager's on the way. GB/s are of
the bytes that must move, once each; "of copy" is beside a device-to-device copy of as many bytes.
"""

import argparse
import json
import os
import statistics
import sys
import time

import torch
import torch.nn.functional as F

from kernelgen_plan import Context

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RUNS = 15
DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}


def case(label, file, op, sizes, dtype, inputs, output, eager, params=None):
    return dict(label=label, file=file, op=op, sizes=sizes, dtype=dtype, inputs=inputs,
                output=output, eager=eager, params=params or {})


def rows_of(d, total=1 << 28):
    return total // d


def all_cases():
    for dtype in ("f16", "bf16", "f32"):
        p, d = 65536, 4096 if dtype != "f32" else 2048
        yield case(f"bias_relu {dtype}", "bias_relu.kg", "bias_relu", {"P": p, "D": d}, dtype,
                   [(p, d), (d,)], (p, d), lambda x, b: torch.relu(x + b))
        yield case(f"bias_gelu {dtype}", "broadcast.kg", "bias_gelu", {"P": p, "D": d}, dtype,
                   [(p, d), (d,)], (p, d), lambda x, b: F.gelu(x + b))
    for d in (256, 1024, 4096, 8192, 32768, 131072, 262144):
        p = rows_of(d)
        yield case(f"softmax f16 {d}", "softmax.kg", "softmax", {"P": p, "D": d}, "f16",
                   [(p, d)], (p, d), lambda x: torch.softmax(x, -1))
        yield case(f"rms_norm f16 {d}", "normalisation.kg", "rms_norm", {"P": p, "D": d}, "f16",
                   [(p, d), (d,)], (p, d),
                   lambda x, g: F.rms_norm(x, (x.shape[-1],), g, 1e-6))
    for d in (1024, 8192, 32768):
        p = rows_of(d)
        yield case(f"layer_norm f16 {d}", "normalisation.kg", "layer_norm", {"P": p, "D": d},
                   "f16", [(p, d), (d,), (d,)], (p, d),
                   lambda x, g, b: F.layer_norm(x, (x.shape[-1],), g, b, 1e-5))
        yield case(f"log_softmax f16 {d}", "softmax.kg", "log_softmax", {"P": p, "D": d}, "f16",
                   [(p, d)], (p, d), lambda x: torch.log_softmax(x, -1))
    p, d = 65536, 4096
    yield case("sum last f16", "reductions.kg", "sum_last", {"P": p, "D": d}, "f16", [(p, d)],
               (p,), lambda x: x.sum(-1))
    yield case("sum first f16", "reductions.kg", "sum_first", {"P": p, "D": d}, "f16", [(p, d)],
               (d,), lambda x: x.sum(0))
    yield case("sum middle f16", "reductions.kg", "sum_middle", {"A": 64, "B": 1024, "C": 4096},
               "f16", [(64, 1024, 4096)], (64, 4096), lambda x: x.sum(1))
    yield case("cumsum f32 32768", "scans.kg", "cumsum", {"P": 4096, "D": 32768}, "f32",
               [(4096, 32768)], (4096, 32768), lambda x: x.cumsum(-1))


def close(ours, wanted, dtype):
    tolerance = {"f16": 2e-3, "bf16": 2e-2, "f32": 1e-4}[dtype]
    scale = wanted.float().abs().max().item() or 1.0
    return (ours.float() - wanted.float()).abs().max().item() <= tolerance * scale


def race(contenders):
    """Medians in microseconds, by name."""
    scratch = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")
    times = {name: [] for name in contenders}
    for name, run in contenders.items():
        run()
    for turn in range(RUNS + 2):
        marks = {}
        for name, run in contenders.items():
            scratch.zero_()
            start, stop = torch.cuda.Event(True), torch.cuda.Event(True)
            start.record()
            run()
            stop.record()
            marks[name] = (start, stop)
        torch.cuda.synchronize()
        for name, (start, stop) in marks.items():
            if turn >= 2:
                times[name].append(start.elapsed_time(stop) * 1e3)
    return {name: statistics.median(values) for name, values in times.items()}


def measure(context, one, arguments):
    dtype = DTYPES[one["dtype"]]
    inputs = [torch.randn(shape, dtype=dtype, device="cuda") for shape in one["inputs"]]
    output = torch.empty(one["output"], dtype=dtype, device="cuda")
    began = time.monotonic()
    plan = context.plan(os.path.join(ROOT, "ops", one["file"]), one["op"],
                        {"T": one["dtype"], **one["sizes"]}, arguments.rigor, arguments.seconds)
    planned = time.monotonic() - began
    ours = plan.on(inputs + [output], torch.cuda.current_stream().cuda_stream)
    ours()
    wanted = one["eager"](*inputs)
    right = close(output, wanted, one["dtype"])
    moved = sum(t.numel() * t.element_size() for t in inputs) + \
        output.numel() * output.element_size()
    source = torch.empty(moved // 2, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    compiled = torch.compile(one["eager"], dynamic=False)
    times = race({
        "copy": lambda: target.copy_(source),
        "kernelgen": ours,
        "eager": lambda: one["eager"](*inputs),
        "compile": lambda: compiled(*inputs),
    })
    return dict(label=one["label"], bytes=moved, right=right, microseconds=times,
                choice=plan.choice(), planned_seconds=planned)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--rigor", default="estimate")
    parser.add_argument("--seconds", type=float, default=0.0, help="limit of each search")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds; no new line after that")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    context, results, began = Context(), [], time.monotonic()
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    print(f"{'':24}{'us':>9}{'GB/s':>8}{'of copy':>9}{'x eager':>9}{'x compile':>10}  choice")
    for one in all_cases():
        if arguments.only not in one["label"] or time.monotonic() - began > arguments.limit:
            continue
        try:
            line = measure(context, one, arguments)
        except RuntimeError as problem:
            print(f"{one['label']:24}{str(problem)[:100]}")
            continue
        times = line["microseconds"]
        ours = times["kernelgen"]
        print(f"{line['label']:24}{ours:9.1f}{line['bytes'] / ours * 1e-3:8.0f}"
              f"{times['copy'] / ours:9.3f}{times['eager'] / ours:9.2f}"
              f"{times['compile'] / ours:10.2f}  {'' if line['right'] else 'WRONG '}"
              f"{line['choice']}", flush=True)
        results.append(line)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(results, file, indent=1)
    return 0 if all(line["right"] for line in results) else 1


if __name__ == "__main__":
    sys.exit(main())
