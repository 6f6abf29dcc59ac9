#!/usr/bin/env python3
"""How good is `measure` beside `exhaustive`?

    measure_search.py KERNELGEN OPS_FOLDER [--device cuda:0] [--home FOLDER] [--repeat N]
                      [--seconds N] [OP...]

Each op is tuned twice from nothing: with `measure`, and with `exhaustive`, which times every valid
config. `measured` counts configs, those of the final race among them.

Times taken minutes apart on one machine differ by more than configs do, and the least of a whole
table is the luckiest of many. So neither search's own times judge. The fastest few of the table are
raced with what `measure` chose, alternately in one process, and the fastest of them there is the
judge; then new races of these two give the ratio, the judge's time over that of the chosen one: the
median of the races, the least and the greatest. It is above 1 where the table's best lost.

With --repeat there are so many searches with `measure`, each from nothing. With --home what was
measured is kept there, so that a run that was stopped (--seconds ends it after so many) goes on
where it was; races are run anew. bench_choices is looked for beside KERNELGEN.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import tempfile
import time

HOST_SUBJECTS = [
    ("bias_relu.kg", "bias_relu", "T=f32", "P=256,D=65536"),
    ("softmax.kg", "softmax", "T=f32", "P=4096,D=1024"),
    ("normalisation.kg", "rms_norm", "T=f32", "P=4096,D=1024"),
    ("matmul.kg", "matmul", "T=f32", "M=512,N=512,K=512"),
    ("reductions.kg", "sum_middle", "T=f32", "A=64,B=1024,C=512"),
    ("reductions.kg", "sum_last", "T=f32", "P=8192,D=2048"),
    ("scans.kg", "cumsum", "T=f32", "P=4096,D=4096"),
]
GPU_SUBJECTS = [
    ("bias_relu.kg", "bias_relu", "T=f16", "P=32768,D=4096"),
    ("softmax.kg", "softmax", "T=f16", "P=32768,D=4096"),
    ("normalisation.kg", "rms_norm", "T=f16", "P=32768,D=4096"),
    ("reductions.kg", "sum_middle", "T=f16", "A=64,B=2048,C=1024"),
    ("reductions.kg", "sum_last", "T=f16", "P=32768,D=4096"),
    ("scans.kg", "cumsum", "T=f32", "P=4096,D=16384"),
    ("matmul.kg", "matmul_nt", "T=f16", "M=256,N=256,K=256"),
    ("matmul.kg", "matmul_nt", "T=f16", "M=2048,N=2048,K=2048"),
    ("matmul.kg", "matmul_nt", "T=f16", "M=64,N=4096,K=4096"),
]
# Of the ratio, and of the share that is measured.
HOST_GOALS = 0.97, 0.20
GPU_GOALS = 0.98, 0.10
JUDGES = 4
HEATS, DUELS = 3, 7


def name_of(subject):
    return f"{subject[1]} {subject[3]}"


class OutOfTime(Exception):
    pass


class Bench:
    """Where things are, and how long it may take."""

    def __init__(self, words, home):
        self.kernelgen = words.kernelgen
        self.folder = words.folder
        self.device = words.device
        self.home = home
        self.repeat = words.repeat
        self.end = time.monotonic() + words.seconds if words.seconds else None

    def limit(self):
        """What is left for one search, as arguments."""
        if self.end is None:
            return []
        left = int(self.end - time.monotonic())
        if left < 2:
            raise OutOfTime
        return ["--time", str(left)]

    def check_time(self):
        if self.end is not None and time.monotonic() > self.end - 1:
            raise OutOfTime

    def run(self, home, program, *words):
        environment = dict(os.environ, KERNELGEN_HOME=os.path.join(self.home, home))
        done = subprocess.run([program, *words], env=environment, capture_output=True, text=True)
        if done.returncode not in (0, 1) or not done.stdout:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def search(self, home, command, subject, *more):
        file, op, dtype, size = subject
        answer = self.run(home, self.kernelgen, command, os.path.join(self.folder, file), "--op",
                          op, "--dtype", dtype, "--size", size, "--device", self.device, "--json",
                          *more, *self.limit())
        self.check_time()
        return answer

    def race(self, subject, choices, races):
        """Medians of the races, by choice. Each race is a process of its own: where its memory
        happens to lie suits one choice better than another."""
        file, op, dtype, size = subject
        program = os.path.join(os.path.dirname(os.path.abspath(self.kernelgen)), "bench",
                               "bench_choices")
        medians = {choice: [] for choice in choices}
        for _ in range(races):
            self.check_time()
            rows = self.run("races", program, "--device", self.device, "--races", "1", "--json",
                            os.path.join(self.folder, file), op, dtype, size, *choices)
            for choice, row in zip(choices, rows):
                medians[choice] += row["seconds"]
        return medians


def find_judge(bench, subject, table, chosen):
    """The fastest of the table's fastest few but the chosen one; None: there is no other."""
    times = {row["choice"]: row["seconds"] for row in table
             if row["outcome"] == "measured" and not row["abandoned"]}
    few = sorted((choice for choice in times if choice != chosen), key=times.get)[:JUDGES]
    if len(few) < 2:
        return few[0] if few else None
    heats = bench.race(subject, [*few, chosen], HEATS)
    return min(few, key=lambda choice: statistics.median(heats[choice]))


def compare(bench, subject, table, number):
    home = f"measure-{number}/{name_of(subject)}"
    quick = bench.search(home, "explain", subject, "--rigor", "measure")
    measured = sum(row["outcome"] == "measured" for row in quick["candidates"])
    valid = sum(row["outcome"] != "invalid" for row in table)
    chosen = quick["choice"]
    judge = find_judge(bench, subject, table, chosen)
    duels = bench.race(subject, [judge, chosen], DUELS) if judge else {chosen: [0]}
    ratios = sorted(a / b for a, b in zip(duels[judge], duels[chosen])) if judge else [1]
    ratio = statistics.median(ratios)
    print(f"{name_of(subject):36} {statistics.median(duels[chosen]) * 1e3:8.3f} {ratio:6.3f}  "
          f"{ratios[0]:.3f}..{ratios[-1]:.3f}  {measured:4}/{valid:<5}{measured / valid:4.0%}  "
          f"{chosen}", flush=True)
    if ratio < 1:
        print(f"{'':78}behind {judge}")
    return ratio, measured / valid


def show(bench, subjects, goals):
    results = []
    print(f"{'chosen':36} {'ms':>8} {'ratio':>6}  {'of the races':12}  {'measured':>13}  choice")
    for subject in subjects:
        try:
            table = bench.search(f"exhaustive/{name_of(subject)}", "profile", subject)
            for number in range(bench.repeat):
                results.append(compare(bench, subject, table, number))
        except RuntimeError as problem:
            print(f"{name_of(subject):36} {problem}")
        except OutOfTime:
            print(f"{name_of(subject):36} not finished: run again with the same --home")
            break
    if results:
        ratios, shares = zip(*results)
        mean = math.exp(statistics.mean(math.log(min(ratio, 1)) for ratio in ratios))
        print(f"geometric mean {mean:.3f}, worst {min(ratios):.3f} (goal {goals[0]}), "
              f"at most {max(shares):.0%} measured (goal {goals[1]:.0%})")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kernelgen")
    parser.add_argument("folder")
    parser.add_argument("--device", default="host")
    parser.add_argument("--home")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("ops", nargs="*")
    words = parser.parse_intermixed_args()
    on_host = words.device == "host"
    subjects = [subject for subject in (HOST_SUBJECTS if on_host else GPU_SUBJECTS)
                if not words.ops or subject[1] in words.ops]
    with tempfile.TemporaryDirectory() as scratch:
        show(Bench(words, words.home or scratch), subjects, HOST_GOALS if on_host else GPU_GOALS)


if __name__ == "__main__":
    main()
