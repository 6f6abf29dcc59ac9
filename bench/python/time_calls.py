#!/usr/bin/env python3
"""time_calls.py [cuda]: host time of a call of a cached plan from Python, in us, beside PyTorch's and NumPy's own.

On a GPU nothing is waited for inside a batch, so that what counts is the host. Tensors are so small that kernels
take less. KernelGen's package must be importable."""

import statistics
import sys
import time

import kernelgen

RELU = "op relu1(x: T[N]) -> (y: T[N]) where T in f32 f16\n{ y[i] = relu(x[i]) }\n"
ADD = "op add(a: T[N], b: T[N]) -> (y: T[N]) where T in f32 f16\n{ y[i] = a[i] + b[i] }\n"
CALLS, BATCHES = 300, 60


def batch(function, wait):
    """The time of a call, in us."""
    begin = time.perf_counter()
    for _ in range(CALLS):
        function()
    seconds = time.perf_counter() - begin
    wait()
    return seconds / CALLS * 1e6


def table(rows, wait):
    """Medians of batches. These go by turns, so that a host that becomes slower is slower for all."""
    for _, function in rows:
        batch(function, wait)
    turns = [[batch(function, wait) for _, function in rows] for _ in range(BATCHES)]
    for (what, _), samples in zip(rows, zip(*turns)):
        print(f"{what:48} {statistics.median(samples):6.2f}", flush=True)


def without_extension_module(text):
    taken, kernelgen.operators.CallsInC = kernelgen.operators.CallsInC, None
    try:
        return kernelgen.op(text)
    finally:
        kernelgen.operators.CallsInC = taken


def of_torch(device):
    import torch
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    torch.set_num_threads(1)
    print(f"PyTorch {torch.__version__}, Python {sys.version.split()[0]}, "
          f"{torch.cuda.get_device_name() if device == 'cuda' else 'CPU'}")
    relu, add, softmax = kernelgen.op(RELU), kernelgen.op(ADD), kernelgen.op("softmax.kg", "softmax")
    x, b, out = (torch.randn(1024, device=device) for _ in range(3))
    m = torch.randn(16, 256, device=device)
    expected = {relu: (x,), add: (x, b), softmax: (m,)}
    for op, arguments in expected.items():
        op(*arguments)
    relu(x, out=out), add(x, b, out=out)
    plan = relu.plan(x)
    execute, handle = plan.session.library.kg_plan_execute, plan.handle
    from ctypes import c_void_p
    pointers = (c_void_p * 2)(x.data_ptr(), out.data_ptr())
    stream = torch.cuda.current_stream().cuda_stream if device == "cuda" else None
    relu_op, add_op = relu._torch_op, add._torch_op
    slow = without_extension_module(RELU)
    slow(x)
    compiled = torch.compile(lambda x: relu(x), fullgraph=True)
    table([("an empty function", lambda: None),
           ("kg_plan_execute by ctypes, addresses at hand", lambda: execute(handle, pointers, stream)),
           ("torch.empty_like(x)", lambda: torch.empty_like(x)),
           ("relu(x)", lambda: relu(x)),
           ("relu(x, out=y)", lambda: relu(x, out=out)),
           ("torch.relu(x)", lambda: torch.relu(x)),
           ("add(x, b)", lambda: add(x, b)),
           ("add(x, b, out=y)", lambda: add(x, b, out=out)),
           ("torch.add(x, b)", lambda: torch.add(x, b)),
           ("torch.add(x, b, out=y)", lambda: torch.add(x, b, out=out)),
           ("softmax(m)", lambda: softmax(m)),
           ("torch.softmax(m, 1)", lambda: torch.softmax(m, 1)),
           ("relu as an operator of PyTorch", lambda: relu_op(x)),
           ("add as an operator of PyTorch", lambda: add_op(x, b)),
           ("relu through Python alone", lambda: slow(x)),
           ("relu in torch.compile", lambda: compiled(x))], wait)


def of_arrays(module, wait):
    print(f"{module.__name__} {module.__version__}")
    relu, add = kernelgen.op(RELU), kernelgen.op(ADD)
    x, b, out = (module.ones(1024, "f4") for _ in range(3))
    relu(x), add(x, b), relu(x, out=out)
    table([("relu(x)", lambda: relu(x)), ("relu(x, out=y)", lambda: relu(x, out=out)),
           ("add(x, b)", lambda: add(x, b)), (f"{module.__name__}.add(x, b)", lambda: module.add(x, b)),
           (f"{module.__name__}.add(x, b, out=y)", lambda: module.add(x, b, out=out))], wait)


def main():
    device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
    of_torch(device)
    if device == "cuda":
        import cupy
        of_arrays(cupy, cupy.cuda.Device().synchronize)
    else:
        import numpy
        of_arrays(numpy, lambda: None)


main()
