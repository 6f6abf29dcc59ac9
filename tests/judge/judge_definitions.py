#!/usr/bin/env python3
"""Definitions judged by NumPy: are the reference and the kernels of the same opinion?

    judge_definitions.py KERNELGEN WRITE_PROBLEM [--random 60] [--seed 1] [--only NAME] [--no-kernels]

For every op of ops/ and a number of random definitions, the reference's values (write_problem) and
the outputs of `kernelgen run` are compared with those of numpy_judge.py. Exit status 1: they differ
somewhere; 77: NumPy is not installed.
"""

import argparse
import collections
import concurrent.futures
import glob
import itertools
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tools")]

import definition

try:
    import numpy
    from numpy_judge import BITS, FLOATS, Evaluator, decode, is_float, rounded, step, unpacked
except ImportError:
    print("skipped: NumPy is not installed")
    sys.exit(77)

NOT_ALLOWED = 3  # of write_problem: sizes that the definition refuses, or too much to compute
TOLERANCES = {"f16": (1e-3, 1e-5), "bf16": (1.6e-2, 1e-5), "f32": (1.3e-6, 1e-5),
              "f64": (1e-7, 1e-7), "f8e4m3": (7.8e-3, 1e-5), "f8e5m2": (7.8e-3, 1e-5)}
NOISY = 3  # evaluations with random errors
NOISE = 8  # times their largest error is what a kernel may be off
RAW = {"bf16": "<u2", "f8e4m3": "u1", "f8e5m2": "u1", "u4": "u1", "i4": "u1", "bool": "?",
       "f16": "<f2", "f32": "<f4", "f64": "<f8"}


class Problem:
    """What write_problem wrote into a folder."""

    def __init__(self, folder):
        self.folder, self.bindings, self.tensors = folder, {}, []
        with open(os.path.join(folder, "about.txt"), encoding="utf-8") as file:
            for line in file:
                kind, *words = line.split()
                if kind == "bind":
                    name, value = words[0].split("=")
                    self.bindings[name] = int(value) if value.lstrip("-").isdigit() else value
                elif kind == "tensor":
                    self.tensors.append((*words[:3], tuple(int(word) for word in words[3:])))
                elif kind == "op":
                    self.name = words[0]
                else:
                    self.kind = " ".join(words)
        self.path = os.path.join(folder, "op.kg")
        with open(self.path, encoding="utf-8") as file:
            self.text = file.read()
        self.op = next(op for op in definition.read(self.text) if op.name == self.name)

    def bytes_of(self, name, suffix):
        with open(os.path.join(self.folder, name + suffix), "rb") as file:
            return file.read()

    def inputs(self):
        found = {name: decode(self.bytes_of(name, ".bits"), dtype, shape)
                 for name, role, dtype, shape in self.tensors if role == "input"}
        numbers = {**self.op.params, **self.bindings}
        for tensor in self.op.inputs:
            if tensor.packed:
                rows, columns = (definition.size_of(dim, numbers) for dim in tensor.dims[-2:])
                found[tensor.name] = unpacked(found[tensor.name], rows, columns)
        return found

    def outputs(self):
        return [(name, dtype, shape) for name, role, dtype, shape in self.tensors
                if role == "output"]

    def is_wide(self):
        return any(dtype == "f64" for _, _, dtype, _ in self.tensors) or "f64" in self.text

    def casts_to_f32(self):
        """What is computed in f32 is not rounded by it, what is computed in f64 is: the evaluator
        does not know which."""
        return any(isinstance(node, definition.Call) and node.function == "cast"
                   and self.bindings.get(node.arguments[0].name, node.arguments[0].name) == "f32"
                   for statement in self.op.statements for node in definition.walk(statement.value))

    def evaluate(self, unit=0.0, seed=0):
        return Evaluator(self.op, self.bindings, self.inputs(), unit, seed).run()

    def __str__(self):
        bound = " ".join(f"{name}={value}" for name, value in self.bindings.items())
        return f"{self.op.name} {bound}, {self.kind}"


def worst_of(name, wrong, found, expected):
    """A complaint about the first element that is wrong, or None."""
    if not wrong.any():
        return None
    at = tuple(int(i) for i in numpy.argwhere(wrong)[0])
    return (f"{name}{list(at)} is {found[at]!r}, NumPy says {expected[at]!r}; "
            f"{int(wrong.sum())} of {wrong.size} elements differ")


def compare_reference(problem):
    """The reference's values against NumPy's, both in f64."""
    results = problem.evaluate()
    for name, dtype, shape in problem.outputs():
        kind = numpy.float64 if is_float(dtype) else numpy.int64
        found = numpy.frombuffer(problem.bytes_of(name, ".value"), kind).reshape(shape)
        slack = numpy.frombuffer(problem.bytes_of(name, ".slack"), float).reshape(shape)
        expected = results[name]
        decided = ~numpy.isinf(slack)
        if not is_float(dtype):
            wrong = decided & (found != expected)
        else:
            with numpy.errstate(all="ignore"):
                # The slack is of f32, and both are in f64; unless the op itself is.
                share = 8 if problem.is_wide() else 1 if problem.casts_to_f32() else 1e-6
                near = numpy.abs(found - expected) <= 1e-12 * (1 + numpy.abs(expected)) + (
                    share * slack)
                huge = (numpy.abs(found) > 3e38) & (numpy.abs(expected) > 3e38) & (
                    (found > 0) == (expected > 0))
            same = (found == expected) | numpy.isnan(found) & numpy.isnan(expected)
            wrong = decided & ~(near | same | huge)
        complaint = worst_of(name, wrong, found, expected)
        if complaint:
            return complaint
    return None


def allowed_error(expected, noisy, dtype):
    """How far each element of a kernel's output may be from `expected`; infinite where a right
    kernel's roundings decide what comes out."""
    relative, absolute = TOLERANCES[dtype]
    finite = expected[numpy.isfinite(expected)]
    scale = min(1.0, float(numpy.sqrt(numpy.mean(finite * finite)))) if finite.size else 1.0
    moved = numpy.zeros(expected.shape)
    for other in noisy:
        special = numpy.isfinite(expected) != numpy.isfinite(other)
        change = numpy.where(expected == other, 0, numpy.abs(expected - other))
        moved = numpy.maximum(moved, numpy.where(special, numpy.inf, numpy.nan_to_num(
            change, nan=0.0)))
    return (relative * numpy.abs(expected) + absolute * scale + step(expected, dtype) / 2
            + NOISE * moved)


def wrong_reals(found, expected, allowed, dtype):
    largest = FLOATS[dtype][2]
    stored = rounded(expected, dtype)
    special = ~numpy.isfinite(stored)
    same = (found == stored) | numpy.isnan(found) & numpy.isnan(stored)
    near = numpy.abs(found - expected) <= allowed
    limit = numpy.abs(expected) + allowed >= largest  # either side of the largest value
    return ~numpy.where(special, same | limit & ~numpy.isnan(expected) | numpy.isinf(allowed),
                        near | same | limit & ~numpy.isfinite(found) | numpy.isinf(allowed))


def compare_outputs(problem, found):
    """A kernel's outputs against NumPy's."""
    unit = 2.0**-24
    if all(dtype == "f64" or not is_float(dtype) for _, _, dtype, _ in problem.tensors):
        unit = 2.0**-53
    expected = problem.evaluate()
    noisy = [problem.evaluate(unit, seed) for seed in range(1, NOISY + 1)]
    for name, dtype, _ in problem.outputs():
        with numpy.errstate(all="ignore"):
            if is_float(dtype):
                wrong = wrong_reals(found[name], expected[name], allowed_error(
                    expected[name], [other[name] for other in noisy], dtype), dtype)
            else:
                certain = numpy.all([other[name] == expected[name] for other in noisy], axis=0)
                wrong = (found[name] != expected[name]) & certain
        complaint = worst_of(name, wrong, found[name], expected[name])
        if complaint:
            return complaint
    return None


# ---- Kernels ----


def run_kernel(kernelgen, problem):
    """The outputs of `kernelgen run`, decoded; None where NumPy's files cannot hold a tensor."""
    command = [kernelgen, "run", problem.path, "--op", problem.op.name, "--device", "host",
               "--rigor", "estimate"]
    for name, value in problem.bindings.items():
        kind = ("--dtype" if name in problem.op.variables else
                "--param" if name in problem.op.params else "--size")
        command += [kind, f"{name}={value}"]
    for name, role, dtype, shape in problem.tensors:
        if BITS[dtype] == 4 and (not shape or shape[-1] % 2):
            return None
        path = os.path.join(problem.folder, f"{name}.npy")
        command += [f"--{role}", f"{name}={path}"]
        if role == "input":
            halved = shape[:-1] + (shape[-1] // 2,) if BITS[dtype] == 4 else shape
            raw = numpy.frombuffer(problem.bytes_of(name, ".bits"),
                                   RAW.get(dtype, f"<{dtype[0]}{BITS[dtype] // 8}"))
            numpy.save(path, raw[:numpy.prod(halved, dtype=int)].reshape(halved))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"run: {done.stderr.strip()}")
    found = {}
    for name, dtype, shape in problem.outputs():
        array = numpy.load(os.path.join(problem.folder, f"{name}.npy"))
        found[name] = decode(array.tobytes(), dtype, shape)
    return found


# ---- All of them ----


def shipped():
    """(file, op, sizes, whether a kernel is run there) of every shipped op at the rows of its goal.
    """
    for path in sorted(glob.glob(os.path.join(ROOT, "ops", "*.kg"))):
        with open(path, encoding="utf-8") as file:
            ops = definition.read(file.read())
        for at, op in enumerate(ops):
            rows = op.rows.get("verify", [{}])
            for number, row in enumerate(rows):
                yield path, op, row, number == (at + 1) % len(rows)


def dtypes_of(op):
    names = list(op.variables)
    return [dict(zip(names, dtypes)) for dtypes in itertools.product(*op.variables.values())]


class Judge:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.counts = collections.Counter()
        self.complaints = []

    def write(self, name, seed, *words):
        """The problem, or None where it is not allowed."""
        folder = os.path.join(self.folder, name)
        os.makedirs(folder, exist_ok=True)
        done = subprocess.run([self.options.write_problem, folder, str(seed), *words],
                              capture_output=True, text=True, check=False)
        if done.returncode not in (0, NOT_ALLOWED):
            raise RuntimeError(f"write_problem {name}: {done.stderr.strip()}")
        return Problem(folder) if done.returncode == 0 else None

    def complain(self, problem, who, complaint):
        self.complaints.append(f"{problem}: {who}: {complaint}")
        print(self.complaints[-1], flush=True)
        if problem.op.name == "random":
            print(problem.text, flush=True)

    def judge(self, problem, with_kernel):
        self.counts["definitions"] += 1
        complaint = compare_reference(problem)
        if complaint:
            self.complain(problem, "reference", complaint)
        if not with_kernel:
            return
        try:
            found = run_kernel(self.options.kernelgen, problem)
        except RuntimeError as error:
            self.complain(problem, "kernel", str(error))
            return
        self.counts["kernels" if found else "not for NumPy"] += 1
        complaint = found and compare_outputs(problem, found)
        if complaint:
            self.complain(problem, "kernel", complaint)

    def judge_shipped(self, number, path, op, row, with_kernel):
        """One row of sizes: the reference for all dtypes, a kernel for one of them."""
        options = dtypes_of(op)
        for at, dtypes in enumerate(options):
            choices = " ".join(f"{name}={value}" for name, value in {**row, **dtypes}.items())
            seed = self.options.seed + number + at
            problem = self.write(f"{op.name}_{number}_{at}", seed, path, op.name, choices)
            if problem:
                self.judge(problem, self.options.kernels and with_kernel
                           and at == self.options.seed % len(options))

    def judge_random(self, number):
        seed = self.options.seed * 1000003 + number
        problem = self.write(f"random_{number}", seed)
        if not problem:
            self.counts["random, not allowed"] += 1
            return
        # Only every fourth may let roundings decide; the reference alone knows how far.
        self.counts["random"] += 1
        self.judge(problem, self.options.kernels and seed % 4 != 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernelgen")
    parser.add_argument("write_problem")
    parser.add_argument("--random", type=int, default=60)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("KG_SEED", "1")))
    parser.add_argument("--only", metavar="NAME")
    parser.add_argument("--no-kernels", dest="kernels", action="store_false")
    options = parser.parse_args()
    print(f"KG_SEED={options.seed}")
    with tempfile.TemporaryDirectory(prefix="judge-") as folder, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        os.environ["KERNELGEN_HOME"] = os.path.join(folder, "home")
        judge = Judge(options, folder)
        jobs = [pool.submit(judge.judge_shipped, number, *row) for number, row
                in enumerate(shipped()) if not options.only or row[1].name == options.only]
        if not options.only:
            jobs += [pool.submit(judge.judge_random, number) for number in range(options.random)]
        for job in jobs:
            job.result()
    print(", ".join(f"{count} {what}" for what, count in judge.counts.items()))
    print(f"{len(judge.complaints)} differ")
    if not judge.counts["definitions"]:
        print("nothing was judged")
        return 1
    return 1 if judge.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
