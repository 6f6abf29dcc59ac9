#!/usr/bin/env python3
"""How good is `measure` beside `exhaustive`?

    measure_search.py KERNELGEN OPS_FOLDER [--home FOLDER] [--seconds N] [OP...]

Each op is tuned twice from nothing: once with `measure`, then with `exhaustive`, which times every
valid config. The config that `measure` chose is looked up in the exhaustive table. `measured`
counts configs, those of the final race among them; it is at most a fifth of the valid ones.

With --home what was measured is kept there, so that a run that was stopped (--seconds ends it after
so many) goes on where it was.
"""
import argparse
import json
import math
import os
import subprocess
import tempfile
import time

SUBJECTS = [
    ("bias_relu.kg", "bias_relu", "T=f32", "P=256,D=65536"),
    ("softmax.kg", "softmax", "T=f32", "P=4096,D=1024"),
    ("normalisation.kg", "rms_norm", "T=f32", "P=4096,D=1024"),
    ("matmul.kg", "matmul", "T=f32", "M=512,N=512,K=512"),
    ("reductions.kg", "sum_middle", "T=f32", "A=64,B=1024,C=512"),
    ("reductions.kg", "sum_last", "T=f32", "P=8192,D=2048"),
    ("scans.kg", "cumsum", "T=f32", "P=4096,D=4096"),
]
GOAL_RATIO, GOAL_SHARE = 0.97, 0.20


class OutOfTime(Exception):
    pass


def run(kernelgen, home, *words):
    environment = dict(os.environ, KERNELGEN_HOME=home)
    done = subprocess.run([kernelgen, *words, "--json"], env=environment, capture_output=True,
                          text=True)
    if done.returncode not in (0, 1) or not done.stdout:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def limit(end):
    """What is left for one search, as arguments."""
    if end is None:
        return []
    left = int(end - time.monotonic())
    if left < 2:
        raise OutOfTime
    return ["--time", str(left)]


def compare(kernelgen, folder, subject, home, end):
    file, op, dtype, size = subject
    common = [os.path.join(folder, file), "--op", op, "--dtype", dtype, "--size", size]
    quick = run(kernelgen, os.path.join(home, "measure", op), "explain", *common, "--rigor",
                "measure", *limit(end))
    table = run(kernelgen, os.path.join(home, "exhaustive", op), "profile", *common, *limit(end))
    if end is not None and time.monotonic() > end - 1:
        raise OutOfTime
    times = {row["choice"]: row["seconds"] for row in table
             if row["outcome"] == "measured" and not row["abandoned"]}
    best = min(times.values())
    measured = sum(row["outcome"] == "measured" for row in quick["candidates"])
    valid = sum(row["outcome"] != "invalid" for row in table)
    chosen = times.get(quick["choice"])
    return best, chosen, measured, valid, quick["choice"]


def show(kernelgen, folder, home, end, subjects):
    ratios, shares = [], []
    print(f"{'measure against exhaustive':28} {'best ms':>8} {'chosen':>8} {'ratio':>6}  "
          f"{'measured':>12}  choice")
    for subject in subjects:
        try:
            best, chosen, measured, valid, choice = compare(kernelgen, folder, subject, home, end)
        except RuntimeError as problem:
            print(f"{subject[1]:28} {problem}")
            continue
        except OutOfTime:
            print(f"{subject[1]:28} not finished: run again with the same --home")
            return
        ratio = best / chosen if chosen else float("nan")
        ratios.append(ratio)
        shares.append(measured / valid)
        print(f"{subject[1]:28} {best * 1e3:8.3f} {(chosen or 0) * 1e3:8.3f} {ratio:6.3f}  "
              f"{measured:4}/{valid:<4} {measured / valid:4.0%}  {choice}", flush=True)
    if ratios:
        mean = math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios))
        print(f"geometric mean {mean:.3f}, worst {min(ratios):.3f} (goal {GOAL_RATIO}), "
              f"at most {max(shares):.0%} measured (goal {GOAL_SHARE:.0%})")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kernelgen")
    parser.add_argument("folder")
    parser.add_argument("--home")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("ops", nargs="*")
    words = parser.parse_intermixed_args()
    end = time.monotonic() + words.seconds if words.seconds else None
    subjects = [subject for subject in SUBJECTS if not words.ops or subject[1] in words.ops]
    with tempfile.TemporaryDirectory() as scratch:
        show(words.kernelgen, words.folder, words.home or scratch, end, subjects)


if __name__ == "__main__":
    main()
