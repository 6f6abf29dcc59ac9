#!/usr/bin/env python3
"""Pruning of Triton configs as far as it needs no Triton: TTIR, gates, judges, selection, log, assembly."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from package_test import main

import kernelgen
from kernelgen import triton
from kernelgen.triton import assembly, config_judges, foresight, limits, reasons, ttir

SAMPLES = Path(__file__).resolve().parents[1] / "data" / "asm"
PRODUCT = """module {
  tt.func public @product(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32>, %K: i32) attributes {noinline = false} {
    %c63 = arith.constant 63 : i32
    %c64 = arith.constant 64 : i32
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x256xf32>
    %p = tt.splat %a : !tt.ptr<f16> -> tensor<128x64x!tt.ptr<f16>>
    %q = tt.splat %a : !tt.ptr<f16> -> tensor<64x256x!tt.ptr<f16>>
    %o = tt.splat %c : !tt.ptr<f32> -> tensor<128x256x!tt.ptr<f32>>
    %0 = arith.addi %K, %c63 : i32
    %1 = arith.divsi %0, %c64 : i32
    %r:2 = scf.for %i = %c0 to %1 step %c1 iter_args(%x = %p, %s = %zero) -> (tensor<128x64x!tt.ptr<f16>>, tensor<128x256xf32>)  : i32 {
      %l = tt.load %x : tensor<128x64x!tt.ptr<f16>>
      %m = tt.load %q : tensor<64x256x!tt.ptr<f16>>
      %d = tt.dot %l, %m, %s, inputPrecision = tf32 : tensor<128x64xf16> * tensor<64x256xf16> -> tensor<128x256xf32>
      scf.yield %x, %d : tensor<128x64x!tt.ptr<f16>>, tensor<128x256xf32>
    }
    tt.store %o, %r#1 : tensor<128x256x!tt.ptr<f32>>
    tt.return
  }
}
"""


class Work(unittest.TestCase):
    def test_loops_have_their_trips(self):
        work = ttir.read(PRODUCT, {"K": 1000})
        self.assertEqual([(dot.m, dot.n, dot.k, dot.trips) for dot in work.dots], [(128, 256, 64, 16)])
        self.assertEqual(work.flops, 2 * 128 * 256 * 64 * 16)
        self.assertEqual(work.read_bytes, 16 * 2 * 64 * (128 + 256))
        self.assertEqual(work.write_bytes, 4 * 128 * 256)
        self.assertTrue(work.exact)

    def test_unknown_trips_are_said(self):
        self.assertFalse(ttir.read(PRODUCT, {}).exact)

    def test_tensors_that_are_updated(self):
        self.assertEqual(ttir.read(PRODUCT, {}).updated, set())
        self.assertEqual(ttir.read(PRODUCT.replace("tt.splat %c", "tt.splat %a"), {}).updated, {"a"})

    def test_rubbish_has_no_work(self):
        for text in ("", "tt.func public @f(", PRODUCT[:700], "\x00" * 100):
            ttir.read(text, {"K": 3})


class Rules(unittest.TestCase):
    def setUp(self):
        self.limits = limits.Limits.of(SimpleNamespace(backend="cuda", arch=90, warp_size=32))

    def refusal(self, stages, warps):
        options = SimpleNamespace(num_stages=stages, num_warps=warps, num_ctas=1)
        return self.limits.refusal("ttir", PRODUCT, options, {})

    def test_tiles(self):
        self.assertIsNone(self.refusal(4, 8))
        self.assertIn("needs 245760 bytes of shared memory; a block can have 232448", self.refusal(6, 8))
        self.assertIn("256 registers of each of 128 threads", self.refusal(3, 4))

    def test_buffers(self):
        text = "%t = ttg.local_alloc : () -> !ttg.memdesc<5x128x256xf16, #shared, #smem, mutable>"
        self.assertIn("327680", self.limits.refusal("ttgir", text, None, {}))
        self.assertIsNone(self.limits.refusal("ttgir", text.replace("5x", "3x"), None, {}))


def candidates(count):
    return [config_judges.Candidate(i, f"config {i}", f"X={i}") for i in range(count)]


class Selection(unittest.TestCase):
    def test_shares(self):
        self.assertEqual([config_judges.count_of(top, 119) for top in (0.1, 0.001, 1.0, 5, 500)], [11, 1, 119, 5, 119])
        for top in (0, -1, 1.5, "x", None, True, float("nan")):
            with self.assertRaises(kernelgen.ArgumentError):
                config_judges.count_of(top, 10)

    def test_the_best_are_kept_and_others_have_reasons(self):
        found = candidates(10)
        self.assertEqual(config_judges.select(found, 0.2, lambda one: -one.index), "")
        self.assertEqual([one.index for one in found if one.reason is None], [8, 9])
        self.assertIn("ranks it 3 of 10", found[7].reason)

    def test_ties_stay_together(self):
        found = candidates(10)
        self.assertIn("1 more", config_judges.select(found, 2, lambda one: (one.index + 1) // 2))
        self.assertEqual([one.index for one in found if one.reason is None], [0, 1, 2])

    def test_a_judge_that_fails_drops_nothing(self):
        def fails(one):
            raise RuntimeError("no idea")
        found = candidates(4)
        self.assertIn("could not order", config_judges.select(found, 1, fails))
        self.assertEqual([one.reason for one in found], [None] * 4)

    def test_never_to_nothing(self):
        found = candidates(3)
        found[0].drop("the compiler failed", reserve=False)
        found[1].drop("registers spill", reserve=True)
        found[2].drop("the compiler failed", reserve=False)
        self.assertIn("no config passed", config_judges.select(found, 1))
        self.assertEqual([one.reason is None for one in found], [False, True, False])
        for one in found:
            one.drop("the compiler failed", reserve=False)
        config_judges.select(found, 1)
        self.assertEqual([one.reason for one in found], [None] * 3)

    def test_a_gate_that_refuses_all_decides_nothing(self):
        found = candidates(4)
        for one in found:
            one.drop("nothing is copied ahead", reserve=True)
        remark = config_judges.select(found, 1, lambda one: -one.index)
        self.assertIn("no config passed", remark)
        self.assertEqual([one.reason is None for one in found], [False, False, False, True])

    def test_equal_code_is_measured_once(self):
        found = candidates(3)
        for one in found:
            one.code, one.grid = "same", (4,)
        found[2].grid = (5,)
        config_judges.select(found, 1.0)
        self.assertEqual([one.reason for one in found], [None, "is the same code as X=0", None])

    def test_tiles_take_turns(self):
        found = candidates(4)
        for one, (tile, score) in zip(found, [(64, 1.0), (64, 1.001), (64, 1.002), (128, 1.01)]):
            one.work.dots.append(ttir.Dot(tile, tile, 64, 16))
            one.score = score
        self.assertEqual([one.index for one in config_judges._hedged(found, 2)], [0, 3])

    def test_unknown_judges(self):
        with self.assertRaisesRegex(kernelgen.ArgumentError, "there are gates, points, model"):
            triton.prune(judge="luck")


class Foresight(unittest.TestCase):
    def frontier(self, keep=2):
        frontier = foresight.Frontier("model", keep)
        frontier.score = lambda one: one.score
        return frontier

    def test_what_cannot_be_among_the_kept_is_not_compiled(self):
        found, frontier = candidates(4), self.frontier()
        for one, seconds in zip(found, (1.0, 2.0, 2.1, 2.2)):
            one.score = one.foreseen = seconds
        self.assertTrue(frontier.wants(found[3]))
        for one in found[:2]:
            frontier.note(one)
        self.assertEqual([frontier.wants(one) for one in found[2:]], [True, False])
        self.assertIn("number 2 takes", frontier.reason(found[3]))
        found[3].foreseen = None
        self.assertTrue(frontier.wants(found[3]))

    def test_what_the_gates_refuse_and_equal_code_do_not_count(self):
        found, frontier = candidates(4), self.frontier()
        for one in found:
            one.score, one.foreseen = 1.0, 9.0
        found[0].drop("the compiler failed")
        found[1].code = found[2].code = "same"
        for one in found[:3]:
            frontier.note(one)
        self.assertTrue(frontier.wants(found[3]))

    def test_where_gates_refuse_all_the_reserve_counts(self):
        found, frontier = candidates(6), self.frontier()
        for one in found:
            one.score, one.foreseen = 1.0, 1.0 if one.index < 5 else 9.0
        for one in found[:4]:
            self.assertTrue(frontier.wants(found[5]))
            one.ptx, one.stages = {"mix": {"tensor": 1, "ldg": 1}}, 3
            one.work.dots.append(ttir.Dot(64, 64, 64, 16, in_loop=True, loaded_bytes=1024))
            frontier.note(one)
        self.assertFalse(frontier.wants(found[5]))
        frontier.note(found[4])  # passes: one of those that will be kept is not known yet
        self.assertTrue(frontier.wants(found[5]))

    def test_other_judges_see_all_code(self):
        found = candidates(3)
        for judge in ("points", "gates", lambda one: 1.0):
            frontier = foresight.Frontier(judge, 1)
            for one in found:
                one.foreseen = 1.0 + one.index
                frontier.note(one)
            self.assertTrue(frontier.wants(found[2]))

    def test_time_by_ttir(self):
        gpu = foresight.gpu_of(90, None)
        self.assertEqual(gpu["sms"], 132)
        self.assertIsNone(foresight.gpu_of(1, None))

        def seconds(text, integers, stages=3):
            return foresight.seconds(ttir.read(text, integers), (64,), 8, stages, 1e6, gpu, True)
        self.assertTrue(1e-6 < seconds(PRODUCT, {"K": 1024}) < seconds(PRODUCT, {"K": 4096}) < 1e-3)
        self.assertLess(seconds(PRODUCT, {"K": 4096}, 4), seconds(PRODUCT, {"K": 4096}, 1))
        self.assertIsNone(seconds(PRODUCT, {}))
        self.assertIsNone(seconds("", {"K": 4096}))


class Assembly(unittest.TestCase):
    def test_gates_read_real_code(self):
        cubin = (SAMPLES / "small.sm_90a.cubin").read_bytes()
        found = candidates(2)
        for one, name in zip(found, ("spilling", "counted")):
            one.cubin = assembly.report(cubin, name, assembly.Launch((264,)))
        config_judges.apply_gates(found)
        self.assertRegex(found[0].reason, "registers spill in the main loop: 27 reloads and 26 saves")
        self.assertTrue(found[0].is_reserve)
        self.assertIsNone(found[1].reason)
        self.assertEqual(found[1].cubin["gpu"]["sms"], 132)

    def test_too_much_shared_memory_is_no_reserve(self):
        cubin = (SAMPLES / "small.sm_90a.cubin").read_bytes()
        (one,) = candidates(1)
        one.cubin = assembly.report(cubin, "counted", assembly.Launch((1,), 300000))
        config_judges.apply_gates([one])
        self.assertIn("cannot be launched", one.reason)
        self.assertFalse(one.is_reserve)

    def test_rubbish_is_refused(self):
        with self.assertRaises(kernelgen.Error):
            assembly.report(b"\x7fELF", "x")


class Log(unittest.TestCase):
    def test_lines(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "log")
            with mock.patch.dict(os.environ, KERNELGEN_LOG=path):
                reasons.tell("dropped", config="X=1", reason='a "reason"')
                reasons.tell("kept", config="X=2")
            lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
        self.assertEqual([(line["event"], line["config"]) for line in lines], [("dropped", "X=1"), ("kept", "X=2")])
        self.assertEqual(lines[0]["reason"], 'a "reason"')


class Missing(unittest.TestCase):
    def test_without_triton_the_error_says_what_to_do(self):
        code = ("import sys; sys.modules['triton'] = None\nimport kernelgen, kernelgen.triton as t\n"
                "try: t.source.triton()\nexcept kernelgen.MissingError as error: print(error)")
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertIn("pip install triton", ran.stdout, ran.stderr)

    def test_pruning_that_fails_keeps_all(self):
        with self.assertLogs("kernelgen"):
            kept = triton.prune()(["a", "b"], {"x": 1})
        self.assertEqual(kept, ["a", "b"])


main()
