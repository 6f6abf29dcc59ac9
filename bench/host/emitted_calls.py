#!/usr/bin/env python3
"""What the host does in a call of an emitted Triton function, but for Triton's own launches: the function itself, and
its calls for shapes that were there before.

    bench/host/emitted_calls.py KERNELGEN OPS [OP SIZES]...

SIZES are those of inputs, such as N=65537. Tensors lie on the CPU, so memory takes longer to get than on a GPU. Prints
microseconds, the least of several rounds. Needs PyTorch and Triton."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "..", "tests", "triton"))
CASES = ["gelu", "N=65537", "softmax", "P=64,D=1000", "layer_norm", "P=64,D=1000", "batch_norm", "N=4,C=4,H=65,W=65",
         "linear_gelu", "M=16,N=64,K=4096"]


class Nothing:
    """A kernel that is not launched."""

    def __getitem__(self, grid):
        return lambda *arguments, **constants: None


def load(kernelgen, ops, name, folder):
    import definitions
    found = {d.name: (d, file) for file in sorted(os.listdir(ops)) if file.endswith(".kg")
             for d in definitions.read(definitions.Path(os.path.join(ops, file)))}
    definition, file = found[name]
    path = os.path.join(folder, f"{name}_triton.py")
    subprocess.run([kernelgen, "emit", os.path.join(ops, file), "--op", name, "--target", "triton", "--out", path], check=True)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for kernel in [n for n in dir(module) if n.endswith("_kernel")]:
        setattr(module, kernel, Nothing())
    module._programs = lambda device: 528  # of an H100
    return definition, module


def microseconds(call):
    rounds, calls = 7, 300
    call()
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        for _ in range(calls):
            call()
        found.append((time.perf_counter() - began) / calls * 1e6)
    return min(found)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    import definitions
    import torch
    cases = sys.argv[3:] or CASES
    with tempfile.TemporaryDirectory() as folder:
        for name, words in zip(cases[::2], cases[1::2]):
            sizes = {word.split("=")[0]: int(word.split("=")[1]) for word in words.split(",")}
            definition, module = load(sys.argv[1], sys.argv[2], name, folder)
            dtypes = next(iter(definition.dtypes()))
            inputs = [torch.zeros(definition.shape(t, sizes), dtype=getattr(torch, definitions.DTYPES[dtypes.get(t.dtype, t.dtype)]))
                      for t in definition.inputs]
            function = getattr(module, name)
            first, again = microseconds(lambda: function.__wrapped__(*inputs)), microseconds(lambda: function(*inputs))
            print(f"{name:14s} {words:20s} {first:6.1f} us, again {again:5.1f} us", flush=True)


if __name__ == "__main__":
    main()
