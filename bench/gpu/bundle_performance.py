#!/usr/bin/env python3
"""The performance files of many bundles, one after the other: emitted Triton kernels beside eager PyTorch and
torch.compile.

    bench/gpu/bundle_performance.py [--kernelgen FILE] [--ops FOLDER] [--op NAME ...] [--seconds N] [--json FILE]

Without --op, the shipped ops that are bound by memory. Accuracy is not judged again: tests/bundle/accuracy_files.py
does. All processes compile first, on all cores; then one process times, so that nothing runs beside. Lines are
printed, and the file is written, op by op: speed-up over the baseline and over torch.compile (means over the goal's
shapes), and for each shape our time and its share of a copy's bandwidth."""

import argparse
import contextlib
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from results import geometric_mean
from timing_process import COMPILERS, keep_compiled_in

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MEMORY_BOUND = ("activations", "arithmetic", "bias_relu", "bits", "broadcast", "elementwise", "indexing", "integers",
                "losses", "masking", "normalisation", "reductions", "scans", "softmax")


def definitions(folder, files):
    """name -> file of every op."""
    found = {}
    for file in files:
        path = os.path.join(folder, file + ".kg")
        with open(path, encoding="utf-8") as text:
            found.update((name, path) for name in re.findall(r"^op (\w+)", text.read(), flags=re.M))
    return found


def memory_bound(folder):
    found = definitions(folder, MEMORY_BOUND)
    return {name: path for name, path in found.items() if not name.startswith("matmul")}


def emit(kernelgen, folder, name, file):
    done = subprocess.run([kernelgen, "emit", file, "--op", name, "--target", "bundle", "--out",
                           os.path.join(folder, name)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)


def load(folder, name):
    path = os.path.join(folder, name, name + "_performance.py")
    spec = importlib.util.spec_from_file_location(f"{name}_performance", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.judge_accuracy = lambda options: {"passed": True, "max_diff": 0.0, "failures": []}
    return module


def run(module):
    """The report of a performance file."""
    import torch

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        module.main(["--device", "cuda", "--json"])
    torch._dynamo.reset()
    torch.cuda.empty_cache()
    return json.loads(printed.getvalue()[printed.getvalue().index("{"):])


def warm(folder, names):
    """Compiles what the timing process will find on disk. Prints the names that are ready."""
    for name in names:
        try:
            module = load(folder, name)
            module.ROUNDS, module.WARM_UP = 2, 0.0
            run(module)
            print(name, flush=True)
        except Exception as error:  # noqa: BLE001: another op must not suffer
            print(f"{name}: {error}", file=sys.stderr, flush=True)


def warm_all(folder, names, limit):
    """Those that are ready after `limit` seconds."""
    def part(number):
        command = [sys.executable, __file__, "--warm", folder, *names[number::COMPILERS]]
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=limit)
            return done.stdout
        except subprocess.TimeoutExpired as late:
            return (late.stdout or b"").decode()
    with ThreadPoolExecutor(COMPILERS) as pool:
        return set("".join(pool.map(part, range(COMPILERS))).split())


def line_of(name, report):
    shapes = "  ".join(f"{shape['triton_ms'] * 1e3:.1f} us {shape.get('share_of_bandwidth', 0):.2f}"
                       for shape in report["shapes"])
    return (f"{name:22s} eager {report['average_speedup']:6.2f}  compile "
            f"{report.get('average_speedup_over_compiled', 0):5.2f}  {shapes}")


def time_all(folder, names, until, path):
    reports = {}
    for name in names:
        if time.monotonic() > until:
            print(f"out of time before {name}")
            break
        try:
            report = run(load(folder, name))
        except Exception as error:  # noqa: BLE001: another op must not suffer
            print(f"{name}: {error}")
            continue
        if not report.get("shapes"):
            continue
        reports[name] = report
        print(line_of(name, report), flush=True)
        if path:
            with open(path, "w", encoding="utf-8") as out:
                json.dump(reports, out)
    return reports


def main():
    if sys.argv[1:2] == ["--warm"]:
        return warm(sys.argv[2], sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernelgen", default=os.path.join(ROOT, "build", "release", "kernelgen"))
    parser.add_argument("--ops", default=os.path.join(ROOT, "ops"))
    parser.add_argument("--op", action="append", help="this op alone; may be repeated")
    parser.add_argument("--seconds", type=float, default=540, help="a third of them compile")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    files = sorted(f[:-3] for f in os.listdir(options.ops) if f.endswith(".kg"))
    known = definitions(options.ops, files) if options.op else memory_bound(options.ops)
    names = options.op or list(known)
    until = time.monotonic() + options.seconds
    keep_compiled_in(tempfile.mkdtemp(prefix="kernelgen-bundles-"))
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            if name not in known:
                parser.error(f"no op {name} in {options.ops}")
            emit(options.kernelgen, folder, name, known[name])
        ready = warm_all(folder, names, options.seconds / 3)
        print(f"{len(ready)} of {len(names)} compiled", flush=True)
        reports = time_all(folder, [name for name in names if name in ready], until, options.json)
    if reports:
        means = [geometric_mean([report[key] for report in reports.values() if key in report])
                 for key in ("average_speedup", "average_speedup_over_compiled")]
        print(f"{len(reports)} ops, geometric means: {means[0]:.3f} over eager, {means[1]:.3f} over torch.compile")
    return 0


if __name__ == "__main__":
    sys.exit(main())
