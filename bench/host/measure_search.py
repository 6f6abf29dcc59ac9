#!/usr/bin/env python3
"""How good is `measure` beside `exhaustive`? measure_search.py KERNELGEN OPS_FOLDER

Each op is tuned twice from nothing: once with `measure`, then with `exhaustive`, which times every
valid config. The config that `measure` chose is looked up in the exhaustive table.
"""
import json
import os
import subprocess
import sys
import tempfile

SUBJECTS = [
    ("bias_relu.kg", "bias_relu", "T=f32", "P=16384,D=1024"),
    ("softmax.kg", "softmax", "T=f32", "P=4096,D=1024"),
    ("normalisation.kg", "rms_norm", "T=f32", "P=4096,D=1024"),
    ("matmul.kg", "matmul", "T=f32", "M=512,N=512,K=512"),
    ("reductions.kg", "sum_last", "T=f32", "P=8192,D=2048"),
]


def run(kernelgen, home, *words):
    environment = dict(os.environ, KERNELGEN_HOME=home)
    done = subprocess.run([kernelgen, *words, "--json"], env=environment, capture_output=True,
                          text=True)
    if done.returncode not in (0, 1) or not done.stdout:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def compare(kernelgen, folder, subject):
    file, op, dtype, size = subject
    common = [os.path.join(folder, file), "--op", op, "--dtype", dtype, "--size", size]
    with tempfile.TemporaryDirectory() as home:
        quick = run(kernelgen, home, "explain", *common, "--rigor", "measure")
    with tempfile.TemporaryDirectory() as home:
        table = run(kernelgen, home, "profile", *common)
    times = {row["choice"]: row["seconds"] for row in table
             if row["outcome"] == "measured" and not row["abandoned"]}
    best = min(times.values())
    measured = sum(row["outcome"] == "measured" for row in quick["candidates"])
    valid = sum(row["outcome"] != "invalid" for row in table)
    chosen = times.get(quick["choice"])
    return best, chosen, measured, valid, quick["choice"]


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: measure_search.py KERNELGEN OPS_FOLDER")
    print(f"{'measure against exhaustive':28} {'best ms':>8} {'chosen':>8} {'ratio':>6}  "
          f"{'measured':>12}  choice")
    for subject in SUBJECTS:
        try:
            best, chosen, measured, valid, choice = compare(sys.argv[1], sys.argv[2], subject)
        except RuntimeError as problem:
            print(f"{subject[1]:28} {problem}")
            continue
        ratio = best / chosen if chosen else float("nan")
        print(f"{subject[1]:28} {best * 1e3:8.3f} {(chosen or 0) * 1e3:8.3f} {ratio:6.3f}  "
              f"{measured:4}/{valid:<4} {measured / valid:4.0%}  {choice}", flush=True)


if __name__ == "__main__":
    main()
