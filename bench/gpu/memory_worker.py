"""The process that times memory-bound operators for drawn.py; one of them may crash it.

With --compile I/N it times nothing: it makes torch.compile compile its share of the task's cases,
which then lie on disk.
"""

import json
import math
import sys

import torch

from case_tensors import CaseTensors, compile_ahead, random_tensor
from draw import Operator
from drawn_cases import Judge, case_of
from timing_process import OURS, share_of
from timing_worker import Contenders, Unavailable, Worker, run_task


class Operators(Contenders):
    """The tensors of an operator. PyTorch's own functions take part whatever their error is: they
    accumulate scans of f16 in f16, for example."""

    def __init__(self, worker, shape):
        super().__init__(worker, shape)
        self.tensors = CaseTensors(case_of(shape), random_tensor)
        self.inputs, self.y = self.tensors.inputs, self.tensors.output
        self.judge = Judge(shape, self.inputs)

    def check(self, name, run):
        """The error of one run; what it does not write is NaN, or no position."""
        self.y.fill_(math.nan if self.y.is_floating_point() else -1)
        out = run()
        error = self.judge.error(self.y if out is None else out)
        self.worker.stream.synchronize()
        if name in OURS and not error <= self.judge.allowed():
            raise Unavailable(f"wrong: an error of {error:.3g} of the largest result")
        return dict(max=error)

    def eager(self):
        return self.tensors.eager, self.tensors.eager

    def compile(self):
        return self.tensors.compile, self.tensors.compile


def main():
    if "--compile" in sys.argv:
        jobs = share_of(json.load(sys.stdin)["jobs"], sys.argv[-1])
        torch.cuda.set_stream(torch.cuda.Stream())
        compile_ahead([case_of(Operator(**job["shape"])) for job in jobs])
    else:
        run_task(Worker, Operator, Operators)


if __name__ == "__main__":
    main()
