"""Kernels that tools/ptx_evidence.py compiles with Triton, for devices that need not be there."""

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def softmax(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + row * n + columns, mask=columns < n, other=-float("inf"))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + row * n + columns, values / tl.sum(values, axis=0), mask=columns < n)


@triton.jit
def total(x, y, n, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK,), tl.float32)
    for begin in range(0, n, BLOCK):
        sums += tl.load(x + begin + columns, mask=begin + columns < n, other=0.0)
    tl.store(y, tl.sum(sums, axis=0))


@triton.jit
def matmul(a, b, c, m, n, k, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    depth = tl.arange(0, DEPTH)
    sums = tl.zeros((BLOCK, BLOCK), tl.float32)
    for begin in range(0, k, DEPTH):
        left = tl.load(a + rows[:, None] * k + (begin + depth)[None, :])
        right = tl.load(b + (begin + depth)[:, None] * n + columns[None, :])
        sums = tl.dot(left, right, sums)
    tl.store(c + rows[:, None] * n + columns[None, :], sums.to(tl.float16))


KERNELS = [
    (softmax, {"x": "*fp32", "y": "*fp32", "n": "i32"}, {"BLOCK": 1024}),
    (total, {"x": "*fp32", "y": "*fp32", "n": "i32"}, {"BLOCK": 256}),
    (matmul, {"a": "*fp16", "b": "*fp16", "c": "*fp16", "m": "i32", "n": "i32", "k": "i32"},
     {"BLOCK": 64, "DEPTH": 32}),
    (matmul, {"a": "*bf16", "b": "*bf16", "c": "*fp16", "m": "i32", "n": "i32", "k": "i32"},
     {"BLOCK": 128, "DEPTH": 64}),
]


def compile_kernel(kernel, signature, constants, capability, options, out):
    signature = {**signature, **{name: "constexpr" for name in constants}}
    aligned = {(i,): [["tt.divisibility", 16]] for i in range(len(signature) - len(constants))}
    source = ASTSource(kernel, signature, constants, aligned)
    compiled = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)
    out.write_text(compiled.asm["ptx"])


def jobs(folder):
    for number, (kernel, signature, constants) in enumerate(KERNELS):
        for capability in (80, 89, 90, 100, 120):
            for warps, stages in ((4, 1), (4, 3), (8, 4)):
                out = folder / f"triton-{number}-{capability}-{warps}-{stages}.ptx"
                options = {"num_warps": warps, "num_stages": stages}
                yield out, lambda job=(kernel, signature, constants, capability, options, out): (
                    compile_kernel(*job))
