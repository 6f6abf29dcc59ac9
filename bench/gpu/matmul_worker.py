"""The process that times products for matmul.py, which may die of one of them.

The task comes as JSON on standard input. What happens goes out as lines of JSON through the file
that the task names: a `stage` when something begins that may hang or crash, a `line` when a shape
is done. With --compile nothing is timed: all plans of the task are made, by many threads, so that
their kernels lie compiled in the home.
"""

import json
import math
import os
import statistics
import subprocess
import sys
import threading
import time
from queue import Empty, SimpleQueue

import torch
import torch.nn.functional as F

from kernelgen_plan import Context
from matmul_shapes import Shape
from timing import Clock, medians

THREADS = 12
# Seconds of silence that are taken for a hang.
LIMIT = 40
SEARCH_LIMIT = 300
LIMITS = {"compile": 120, "measured": SEARCH_LIMIT + 60, "triton": SEARCH_LIMIT + 60}
# Unit roundoffs; what an error may be beside one of them, over sqrt(K), since inputs are normal.
ROUNDOFF = {"f16": 2.0 ** -11, "bf16": 2.0 ** -8, "f32": 0}
ALLOWED = {"f16": 1e-3, "bf16": 1e-3, "f32": 1e-4}
PIECE = 1 << 26


class Unavailable(Exception):
    """A contender that cannot take part, and why."""


class Worker:
    """What all shapes share."""

    def __init__(self, task, tell):
        self.task, self.tell = task, tell
        self.stream = torch.cuda.Stream()
        torch.cuda.set_stream(self.stream)
        torch.set_float32_matmul_precision("highest")
        self.clock = Clock(self.stream)
        self.contexts = {}
        self.lt = self.read_shape = self.triton = None
        self.lt_reason = self.read_reason = ""
        about = dict(device=torch.cuda.get_device_name(), torch=torch.__version__)
        try:
            from cublaslt import Lt
            self.lt = Lt()
            about["cublaslt"] = self.lt.version
        except Exception as problem:
            self.lt_reason = words_of(problem)
        try:
            from roofs import read_kernel
            self.read_shape = read_kernel(self.clock, 1 << 29)
        except Exception as problem:
            self.read_reason = words_of(problem)
        tell(about=about)

    def context(self, name):
        if name not in self.contexts:
            self.contexts[name] = Context(os.path.join(self.task["home"], name))
        return self.contexts[name]

    def tuner(self):
        if not self.triton:
            from triton_matmul import Tuner
            self.triton = Tuner(self.clock)
        return self.triton

    def is_alive(self):
        """A GPU that has faulted answers nothing any more in this process."""
        try:
            torch.zeros(1, device="cuda").sum().item()
            return True
        except Exception:
            return False


def words_of(problem):
    return f"{type(problem).__name__}: {str(problem).strip()[:300]}"


class Products:
    """A shape's tensors and its contenders, each a pair: what runs cold, what runs in a graph."""

    def __init__(self, worker, shape):
        self.worker, self.shape, self.notes, self.open = worker, shape, {}, []
        dtype = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}[shape.dtype]
        batch = (shape.batch,) if shape.batch > 1 else ()

        def normal(*sizes):
            return torch.randn(sizes, dtype=dtype, device="cuda")
        weight = (shape.n, shape.k) if shape.linear else (shape.k, shape.n)
        self.x, self.w = normal(*batch, shape.m, shape.k), normal(*batch, *weight)
        self.bias = normal(shape.n) if shape.gelu else None
        self.y = torch.empty((*batch, shape.m, shape.n), dtype=dtype, device="cuda")
        self.inputs = [t for t in (self.x, self.w, self.bias) if t is not None]
        self.wanted = self.reference(torch.float64 if shape.dtype == "f32" else torch.float32)

    def reference(self, wide):
        x, w = self.x.to(wide), self.w.to(wide)
        y = torch.matmul(x, w.mT if self.shape.linear else w)
        if self.shape.gelu:
            y += self.bias.to(wide)
            y = F.gelu(y, approximate=self.shape.gelu)
        return y

    def errors(self, y):
        """Over sqrt(K): the largest beyond one rounding, the largest, the root of mean squares."""
        beyond, most, squares = [], [], []
        for a, b in zip(y.reshape(-1).split(PIECE), self.wanted.reshape(-1).split(PIECE)):
            error = (a.to(b.dtype) - b).abs()
            beyond.append((error - ROUNDOFF[self.shape.dtype] * b.abs()).max())
            most.append(error.max())
            squares.append(error.double().square().sum())
        scale = math.sqrt(self.shape.k)
        return [torch.stack(beyond).max().item() / scale, torch.stack(most).max().item() / scale,
                math.sqrt(torch.stack(squares).sum().item() / y.numel()) / scale]

    def check(self, run):
        """The errors of one run; what it does not write is NaN."""
        self.y.fill_(math.nan)
        out = run()
        errors = self.errors(self.y if out is None else out)
        self.worker.stream.synchronize()
        if not errors[0] <= ALLOWED[self.shape.dtype] * (2 if self.shape.gelu else 1):
            raise Unavailable(f"wrong: an error of {errors[0]:.3g} sqrt(K)")
        return dict(max=errors[1], rms=errors[2])

    # ---- Contenders ----

    def plan(self, home, rigor):
        began = time.monotonic()
        plan = self.worker.context(home).plan(self.shape.file, self.shape.op, self.shape.bindings,
                                              rigor)
        self.open.append(plan)
        note = dict(choice=plan.choice(), plan_seconds=round(time.monotonic() - began, 3))
        return plan.on(self.inputs + [self.y], self.worker.stream.cuda_stream), note

    def kernelgen(self):
        run, self.notes["kernelgen"] = self.plan("estimate", "estimate")
        return run, run

    def measured(self):
        """The search runs in a process of its own, which a bad candidate may take with it."""
        task, shape, found = self.worker.task, self.shape, {}
        if task["kernelgen"]:
            home = os.path.join(task["home"], "measured")
            sizes = ",".join(f"{name}={size}" for name, size in shape.sizes.items())
            began = time.monotonic()
            done = subprocess.run(
                [task["kernelgen"], "explain", shape.file, "--op", shape.op, "--dtype",
                 f"T={shape.dtype}", "--size", sizes, "--device", "cuda:0", "--rigor", "measure",
                 "--json"], env=dict(os.environ, KERNELGEN_HOME=home, KERNELGEN_WISDOM=""),
                capture_output=True, text=True, timeout=SEARCH_LIMIT)
            if done.returncode:
                raise Unavailable(done.stderr.strip()[-300:])
            outcomes = [row["outcome"] for row in json.loads(done.stdout)["candidates"]]
            found = dict(search_seconds=round(time.monotonic() - began, 2),
                         measured=outcomes.count("measured"), seen=len(outcomes))
        run, note = self.plan("measured", "measure")
        self.notes["measured"] = {**note, **found}
        return run, run

    def torch(self):
        x, w, bias, y = self.x, self.w, self.bias, self.y
        if self.shape.gelu:
            kind = self.shape.gelu
            run = lambda: F.gelu(F.linear(x, w, bias), approximate=kind)
        else:
            w = w.mT if self.shape.linear else w
            run = lambda: torch.matmul(x, w, out=y)
        return run, run

    def compile(self):
        x, w, bias, kind = self.x, self.w, self.bias, self.shape.gelu
        made = torch.compile(
            lambda x, w, bias: F.gelu(F.linear(x, w, bias), approximate=kind), dynamic=False)
        run = lambda: made(x, w, bias)
        return run, run

    def product(self):
        if not self.worker.lt:
            raise Unavailable(self.worker.lt_reason)
        if self.shape.gelu == "none":
            raise Unavailable("cuBLASLt fuses the GELU by tanh alone")
        product = self.worker.lt.product(self.x, self.w, self.y, self.shape.linear, self.bias)
        self.open.append(product)
        return product

    def lt(self):
        product = self.product()
        run = product.on(product.answers()[0], self.worker.stream.cuda_stream)
        return run, run

    def lt_tuned(self):
        """The fastest of the first answers; cold and in a graph it need not be the same one."""
        clock, stream, product = self.worker.clock, self.worker.stream, self.product()
        runs = {}
        for place, answer in enumerate(product.answers()):
            run = product.on(answer, stream.cuda_stream)
            try:
                run()
                stream.synchronize()
                runs[place] = run
            except RuntimeError:
                pass  # not for this shape, after all
        cold = medians(clock.race(runs, 5, True))
        graphs = medians(clock.replay({place: clock.record(run, cold[place])
                                       for place, run in runs.items()}, 5))
        first, second = min(cold, key=cold.get), min(graphs, key=graphs.get)
        self.notes["lt_tuned"] = dict(answers=len(runs), cold=first, graph=second)
        return runs[first], runs[second]

    def triton(self):
        run, self.notes["triton"] = self.worker.tuner().tune(self.y, self.x, self.w)
        return run, run

    def read(self):
        if not self.worker.read_shape:
            raise Unavailable(self.worker.read_reason)
        from roofs import read_of
        run = read_of(self.shape.bytes, self.worker.read_shape)
        return run, run

    def close(self):
        self.worker.stream.synchronize()
        for thing in self.open:
            thing.close()


def summary(samples):
    found = {}
    for name, values in samples.items():
        low, middle, high = statistics.quantiles(values, n=4)
        found[name] = dict(us=middle, spread=(high - low) / middle, samples=len(values))
    return found


def turns_for(seconds, times, extra, least, most):
    """How often all can run in so many seconds, with so many microseconds beside each."""
    return max(least, min(most, int(seconds * 1e6 / sum(t + extra for t in times))))


class Line:
    """What becomes of one shape."""

    def __init__(self, worker, shape, without):
        self.worker, self.shape = worker, shape
        self.reasons = dict(without)
        self.errors, self.runs = {}, {}

    def stage(self, name):
        self.worker.tell(stage=name, limit=LIMITS.get(name, LIMIT))

    def refuse(self, name, problem):
        self.reasons[name] = (str(problem) if isinstance(problem, Unavailable)
                              else words_of(problem))
        self.runs.pop(name, None)
        if not self.worker.is_alive():
            self.worker.tell(died=self.reasons[name])
            os._exit(3)

    def prepare(self, products):
        wanted = self.worker.task["contenders"]
        for name in self.shape.contenders:
            if name not in wanted or name in self.reasons:
                continue
            self.stage(name)
            try:
                pair = getattr(products, name)()
                if name == "read":
                    pair[0]()
                else:
                    self.errors[name] = products.check(pair[0])
                    if pair[1] is not pair[0]:
                        products.check(pair[1])
                self.runs[name] = pair
            except Exception as problem:
                self.refuse(name, problem)

    def time_cold(self, clock, seconds):
        self.stage("cold")
        runs = {name: pair[0] for name, pair in self.runs.items()}
        first = medians(clock.race(runs, 2, True))
        return clock.race(runs, turns_for(seconds, first.values(), 110, 5, 51), True)

    def time_graphs(self, clock, seconds, cold):
        graphs = {}
        self.stage("graph")
        for name, pair in list(self.runs.items()):
            try:
                graphs[name] = clock.record(pair[1], cold[name]["us"])
            except Exception as problem:  # it was timed cold
                self.reasons[name + " in a graph"] = words_of(problem)
        each = [cold[name]["us"] * count for name, (_, count) in graphs.items()]
        return clock.replay(graphs, turns_for(seconds, each, 10, 3, 21)) if graphs else {}

    def run(self):
        began, clock = time.monotonic(), self.worker.clock
        half = self.worker.task["seconds"] / 2
        self.stage("inputs")
        products = Products(self.worker, self.shape)
        self.prepare(products)
        cold, graph = {}, {}
        if self.runs:
            cold = summary(self.time_cold(clock, half))
            graph = summary(self.time_graphs(clock, half, cold))
        for name in ("kernelgen", "measured"):  # is it still right?
            if name in self.runs:
                self.stage("again " + name)
                try:
                    products.check(self.runs[name][0])
                except Exception as problem:
                    self.refuse(name, problem)
                    cold.pop(name, None)
                    graph.pop(name, None)
        self.runs = {}
        products.close()
        shape = self.shape
        return dict(label=shape.label, group=shape.group, op=shape.op, dtype=shape.dtype,
                    m=shape.m, n=shape.n, k=shape.k, batch=shape.batch, flops=shape.flops,
                    bytes=shape.bytes, cold=cold, graph=graph, errors=self.errors,
                    notes=products.notes, reasons=self.reasons,
                    seconds=round(time.monotonic() - began, 2))


def time_all(task, tell):
    worker = Worker(task, tell)
    for job in task["jobs"]:
        line = Line(worker, Shape(**job["shape"]), job["without"])
        try:
            tell(line=line.run())
        except Exception as problem:
            line.refuse("shape", problem)
            tell(line=dict(label=line.shape.label, group=line.shape.group, dtype=line.shape.dtype,
                           cold={}, graph={}, notes={}, errors={}, reasons=line.reasons))
        if "compile" in line.shape.contenders:
            torch._dynamo.reset()
        torch.cuda.empty_cache()


def compile_all(task):
    """Each thread has a context of its own."""
    jobs = SimpleQueue()
    for job in task["jobs"]:
        jobs.put(Shape(**job["shape"]))

    def work():
        context = Context(os.path.join(task["home"], "estimate"))
        while True:
            try:
                shape = jobs.get_nowait()
                context.plan(shape.file, shape.op, shape.bindings).close()
            except Empty:
                return
            except RuntimeError:
                pass  # its line will say why
    threads = [threading.Thread(target=work) for _ in range(min(THREADS, os.cpu_count() or 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main():
    task = json.load(sys.stdin)
    if "--compile" in sys.argv:
        compile_all(task)
        return
    with os.fdopen(task["fd"], "w", buffering=1) as out:
        time_all(task, lambda **what: out.write(json.dumps(what) + "\n"))


if __name__ == "__main__":
    main()
