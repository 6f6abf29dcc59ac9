#!/usr/bin/env python3
"""Runs the accuracy files of bundles: every emitted Triton module against its definition.

    accuracy_files.py KERNELGEN OPS [--device cuda] [--op NAME ...] [--all] [--jobs N] [--limit SECONDS]

On the CPU Triton's interpreter runs them, which takes from seconds to minutes for an op: without --all, one op
of each family. Several run at once, each on one core. Needs PyTorch and Triton: set KG_TRITON_PYTHON to a Python
that has both. Exit status 77 (skipped) without."""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SAMPLE = ("add_middle", "apply_floor", "bias_relu", "cumsum", "layer_norm", "linear_gelu", "mlp", "quantise_i8",
          "remainder_of", "softmax", "sum_first", "transpose", "w4a16")
SKIPPED = 77


def definitions(folder):
    """name -> file of every op."""
    return {name: file for file in sorted(folder.glob("*.kg"))
            for name in re.findall(r"^op (\w+)", file.read_text(), flags=re.M)}


def judge(options, python, name, file, folder, until):
    """None, or what went wrong."""
    emitted = subprocess.run([options.kernelgen, "emit", file, "--op", name, "--target", "bundle",
                              "--out", folder], capture_output=True, text=True)
    if emitted.returncode:
        return emitted.stderr.strip()
    command = [python, folder / f"{name}_accuracy.py", "--device", options.device, "--json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True,
                              timeout=max(1, until - time.monotonic()),
                              env=dict(os.environ, OMP_NUM_THREADS="1"))
    except subprocess.TimeoutExpired:
        return "not finished within the limit"
    if done.returncode == 0:
        return None
    try:
        report = json.loads(done.stdout)
    except ValueError:
        return f"exit status {done.returncode}: {done.stderr.strip()[-300:]}"
    first = report["failures"][0]
    place = ", ".join(f"{key}={value}" for key, value in first.get("shape", {}).items())
    dtypes = ", ".join(f"{key}={value}" for key, value in first.get("dtypes", {}).items())
    return (f"{len(report['failures'])} of {report['cases']} cases, seed {report['seed']}; {place} {dtypes} "
            f"{first.get('inputs', '')}: {first['reason']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernelgen")
    parser.add_argument("ops", type=Path)
    parser.add_argument("--device", choices=("cpu", "cuda", "npu"), default="cpu")
    parser.add_argument("--op", action="append", help="this op alone; may be repeated")
    parser.add_argument("--all", action="store_true", help="every op")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=float, default=3000, metavar="SECONDS", help="for all together")
    options = parser.parse_args()
    python = os.environ.get("KG_TRITON_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import torch, triton"], capture_output=True).returncode:
        print(f"{python} has no PyTorch and Triton: set KG_TRITON_PYTHON to one that has", file=sys.stderr)
        return SKIPPED
    known = definitions(options.ops)
    names = options.op or (list(known) if options.all or options.device != "cpu" else SAMPLE)
    missing = [name for name in names if name not in known]
    if missing:
        parser.error(f"no op {', '.join(missing)} in {options.ops}")
    until, passed = time.monotonic() + options.limit, 0
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(options.jobs) as pool:
        runs = pool.map(lambda name: judge(options, python, name, known[name], Path(scratch) / name,
                                           until), names)
        for name, wrong in zip(names, runs):
            passed += wrong is None
            print(f"{name}: {wrong or 'passed'}", flush=True)
    print(f"{passed} of {len(names)} accuracy files pass")
    return 0 if passed == len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
