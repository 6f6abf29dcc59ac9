#!/usr/bin/env python3
"""Pruning with Triton's compiler, for a GPU that need not be there."""

import os
import sys
import tempfile
import unittest
from pathlib import Path

from package_test import main, need

os.environ.setdefault("TRITON_CACHE_DIR", tempfile.mkdtemp(prefix="kg-test-triton-"))
torch, triton = need("torch"), need("triton")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "triton_gemm"))
import fake_device
import triton.language as tl
import triton_gemm
from kernelgen import triton as pruning

X = torch.empty(1024, 1024, dtype=torch.float16)
NAMED = dict(zip(triton_gemm.matmul_kernel.arg_names, triton_gemm._arguments(X, X, X)))
GRID = triton_gemm._grid(1024, 1024)


@triton.jit
def add_kernel(x, y, bias, n, first, scale, KIND: tl.constexpr, HAS_BIAS: tl.constexpr, BLOCK: tl.constexpr):
    at = first + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0.0) * scale
    if HAS_BIAS:
        value += tl.load(bias)
    if KIND == "Double":
        value *= 2
    tl.store(y + at, value, mask=at < n)


def config(rows, columns, depth, warps, stages):
    return triton.Config(dict(BM=rows, BN=columns, BK=depth, GROUP=8), num_warps=warps, num_stages=stages)


CONFIGS = [config(64, 128, 64, 4, 4), config(16, 32, 32, 8, 3), config(128, 256, 64, 4, 3), config(256, 256, 128, 8, 5)]


class Pruning(unittest.TestCase):
    def test_in_the_slot_of_triton(self):
        pruner = pruning.prune(top=1, target="sm_90a")
        tuner = triton.autotune(CONFIGS, key=["M"], prune_configs_by={"early_config_prune": pruner}, do_bench=print)(
            triton_gemm.matmul_kernel)
        tuner.nargs = dict(NAMED)
        self.assertEqual(tuner.prune_configs(dict(grid=GRID, warmup=False)), CONFIGS[:1])
        reasons = [reason for _, reason in pruner.last.dropped]
        self.assertIn("not compiled: by its TTIR", reasons[0])
        self.assertIn("registers of each of 128 threads", reasons[1])
        self.assertIn("256 registers of each of 256 threads", reasons[2])

    def test_what_ttir_foresees_is_not_compiled_but_kept_where_it_may_be_good(self):
        configs = [config(rows, columns, 64, 4, 3) for rows in (16, 64) for columns in (32, 64, 128)] + CONFIGS[:1]
        outcome = pruning.pruning.run(triton_gemm.matmul_kernel, configs, dict(NAMED, grid=GRID), top=2, target="sm_90a")
        whole = pruning.analysis.Analysis(triton_gemm.matmul_kernel, configs, dict(NAMED, grid=GRID),
                                          pruning.source.make_target("sm_90a"))
        self.assertEqual(len(list(whole.compile())), len(configs))
        of_all = pruning.Outcome("", len(configs), candidates=whole.candidates)
        pruning.pruning.finish(of_all, 2, "model")
        self.assertEqual(outcome.kept, of_all.kept)
        self.assertGreaterEqual(sum("not compiled" in reason for _, reason in outcome.dropped), 3)
        for one, other in zip(outcome.candidates, whole.candidates):
            if other.score is not None:
                self.assertAlmostEqual(one.foreseen / other.score, 1.0, delta=0.08)

    def test_a_compiler_past_its_deadline_is_ended(self):
        pruner = pruning.prune(target="sm_80", kernel=triton_gemm.matmul_kernel, deadline=0.01)
        self.assertEqual(pruner(CONFIGS[:1], NAMED, grid=GRID), CONFIGS[:1])
        self.assertIn("all are in question again", pruner.last.remarks[-1])

    def test_facts(self):
        found = pruning.facts(triton_gemm.matmul_kernel, *NAMED.values(), config=CONFIGS[0], target="sm_90a",
                              grid=GRID)
        self.assertEqual(found["work"]["flops"] * found["grid"][0], 2 * 1024 ** 3)
        self.assertIn("HGMMA", found["cubin"]["opcodes"])
        self.assertEqual(found["work"]["writes"], ["c"])
        text = pruning.explain(triton_gemm.matmul_kernel, *NAMED.values(), config=CONFIGS[0], target="sm_90a",
                               grid=GRID)
        self.assertIn("occupancy", text)

    def test_a_launch_finds_what_was_compiled(self):
        cache, odd = Path(os.environ["TRITON_CACHE_DIR"]), torch.empty(17, dtype=torch.float16)[1:]
        calls = [(triton_gemm.matmul_kernel, CONFIGS[:1], list(NAMED.values()), {})]
        calls += [(add_kernel, [triton.Config(dict(BLOCK=256))], [x, x, bias, n, first, 0.5],
                   dict(KIND=kind, HAS_BIAS=bias is not None))
                  for x in (X, odd) for bias in (None, X) for n, first in ((1, 16), (1000, 3))
                  for kind in ("Double", "Plain")]
        driver = fake_device.active(fake_device.Driver())
        driver.__enter__()
        self.addCleanup(driver.__exit__, None, None, None)
        for kernel, configs, values, options in calls:
            named = dict(zip(kernel.arg_names, values), **options)
            found = pruning.analysis.Analysis(kernel, configs, named, pruning.source.make_target())
            self.assertEqual(len(list(found.compile())), len(configs))
            compiled = set(cache.iterdir())
            kernel.warmup(*values, grid=(1,), **options, **configs[0].all_kwargs())
            self.assertEqual(set(cache.iterdir()), compiled, f"{kernel.__name__} {options}")


main()
