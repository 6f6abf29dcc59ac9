"""A case's tensors on the GPU, and its PyTorch, torch.compile and Triton versions."""

import math
import sys

import torch
import torch._inductor.config

MAX_AHEAD = 1 << 29  # elements: cases with larger tensors do not fit together

# Autotuning results are not cached: each process tunes where it times.
torch._inductor.config.autotune_local_cache = False


class CaseTensors:
    """A case with its tensors, and its contenders."""

    def __init__(self, case, fill):
        self.case = case
        kinds = list(case.tensor_kinds())
        self.inputs = [fill(shape, dtype) for shape, dtype in kinds[:-1]]
        shape, dtype = kinds[-1]
        self.output = torch.empty(shape, dtype=dtype, device="cuda")
        self.theirs = torch.empty_like(self.output)
        self.scratch = [torch.empty(1 << 21, dtype=dtype, device="cuda")
                        for dtype in (torch.float32, torch.int32)]
        self.compiled = torch.compile(case.eager, dynamic=False)
        self.bytes = sum(t.numel() * t.element_size() for t in self.inputs + [self.output])

    def eager(self):
        return self.case.eager(*self.inputs)

    def compile(self):
        return self.compiled(*self.inputs)

    def triton(self):
        self.case.triton(self.theirs, *self.inputs, self.scratch)

    def is_right(self, ours):
        return self.case.check(ours, self.eager(), self.inputs)


def random_tensor(shape, dtype):
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, dtype=torch.uint8, device="cuda").view(dtype)
    return torch.randn(shape, dtype=dtype, device="cuda")


def zeros(shape, dtype):
    return torch.zeros(shape, dtype=dtype, device="cuda")


def compile_ahead(cases):
    """Fills the disk caches of torch.compile and Triton for these cases."""
    for case in cases:
        if max(math.prod(shape) for shape, _ in case.tensor_kinds()) > MAX_AHEAD:
            continue
        try:
            tensors = CaseTensors(case, zeros)
            tensors.compile()
            if case.triton:
                tensors.triton()
        except Exception as problem:  # it will fail again, with its reason, when it is timed
            print(f"{case.label}: {type(problem).__name__}: {str(problem)[:300]}", file=sys.stderr)
        tensors = None
        torch.cuda.empty_cache()
