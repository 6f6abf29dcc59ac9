#!/usr/bin/env python3
"""What an operator offers beside calls: plans, texts, the gate, searches, times; and the doctor."""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import unittest
import weakref
from pathlib import Path

from package_test import main, need

np = need("numpy")
import kernelgen
from kernelgen import library

RELU = "op relu1(x: T[N]) -> (y: T[N]) where T in f32 f16\n{ y[i] = relu(x[i]) }\ngoal { tune N = 1000 }\n"


class Texts(unittest.TestCase):
    def test_of_tensors(self):
        op = kernelgen.op(RELU)
        x = np.zeros(50, "f2")
        self.assertIn("relu1", op.source(x))
        self.assertIn("f16[50]", repr(op.plan(x)))
        self.assertIn("relu1", op.explain(x))
        self.assertEqual(json.loads(op.explain(x, json=True))["choice"], op.plan(x).choice)

    def test_of_sizes(self):
        op = kernelgen.op(RELU)
        plan = op.plan(device="host", N=77)
        self.assertEqual(plan.problem.inputs[0].shape, (77,))
        self.assertEqual(op.plan(device="host").problem.inputs[0].shape, (1000,))
        self.assertEqual(op.plan(device="host", T="f16").problem.inputs[0].dtype, "f16")
        self.assertFalse(plan.verified)
        self.assertGreater(plan.bound, 0)
        self.assertEqual(plan.seconds, 0)

    def test_described_gpu(self):
        try:
            self.assertIn("__global__", kernelgen.op(RELU).source(device="sm_90a"))
        except kernelgen.MissingError as error:
            self.skipTest(str(error))

    def test_repr(self):
        self.assertEqual(repr(kernelgen.op(RELU)), "<kernelgen op relu1(x: T[1]) -> (y: T[1])>")


class Verdicts(unittest.TestCase):
    def test_passes(self):
        verdict = kernelgen.op(RELU).verify(device="host", seed=7, progress=False)
        self.assertTrue(verdict)
        self.assertEqual(verdict.seed, 7)
        self.assertGreater(verdict.impostors, 0)
        self.assertRegex(str(verdict), r"^passed: \d+ cases, \d+ elements, worst error ")

    def test_refusal_is_false(self):
        refused = kernelgen.Verdict(False, 3, 1, 1, 9.0, 0, "y[0] is 1, not 2", "")
        self.assertFalse(refused)
        self.assertEqual(str(refused), "REFUSED: y[0] is 1, not 2 (seed 3)")


class Searches(unittest.TestCase):
    def test_search_is_used_by_calls(self):
        op = kernelgen.op(RELU)
        x = np.linspace(-1, 1, 300000).astype("f4")
        op(x)
        told = []
        plan = op.tune(x, seconds=2, progress=lambda what, done, total: told.append(what))
        self.assertTrue(plan.verified)
        self.assertGreater(plan.seconds, 0)
        self.assertTrue(told)
        self.assertEqual(op.plan(x).choice, plan.choice)
        self.assertTrue(op.plan(x).verified)
        np.testing.assert_array_equal(op(x), np.maximum(x, 0))

    def test_what_was_tuned_is_not_shared_away(self):
        op = kernelgen.op(RELU, dynamic=True)
        small, large = np.ones(10, "f4"), np.ones(100000, "f4")
        op(small)
        tuned = op.tune(large, seconds=1, progress=False)
        op(small), op(large), op(np.ones(11, "f4"))
        plans = [execution.plan for execution in op._executions.values()]
        self.assertIs(plans[1], tuned)
        self.assertIs(plans[2], plans[0])
        self.assertEqual(op.plan(np.ones(12, "f4")).problem.inputs[0].shape, (12,))

    def test_function_of_the_package(self):
        plan = kernelgen.tune(kernelgen.op(RELU), np.zeros(40000, "f4"), seconds=1, progress=False)
        self.assertEqual(plan.problem.inputs[0].shape, (40000,))

    def test_exception_in_progress_stops(self):
        class Enough(Exception):
            pass

        def stop(what, done, total):
            raise Enough(what)
        op = kernelgen.op(RELU)
        x = np.zeros(200000, "f4")
        with self.assertRaises(Enough):
            op.tune(x, progress=stop)
        np.testing.assert_array_equal(op(x), x)
        self.assertTrue(op.tune(x, seconds=1, progress=False).verified)

    def test_interruption(self):
        op = kernelgen.op("softmax.kg", "softmax")
        x = np.zeros((2000, 2000), "f4")
        op(x)
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            for _ in range(20):  # in case a search takes less
                op.tune(x, rigor="patient", progress=False)
        timer.join()
        np.testing.assert_allclose(op(x), np.full((2000, 2000), 1 / 2000), rtol=1e-5)

    def test_rigor_is_checked(self):
        with self.assertRaisesRegex(kernelgen.ArgumentError, "rigor 'hard' is none of"):
            kernelgen.op(RELU).tune(np.zeros(4, "f4"), rigor="hard")


class TimesOfCalls(unittest.TestCase):
    def test_beside_the_baseline(self):
        times = kernelgen.op(RELU).bench(device="host", progress=False)
        self.assertGreater(times.seconds, 0)
        self.assertGreater(times.bound, 0)
        self.assertIn("baseline", str(times))

    def test_beside_a_function(self):
        def relu(x):
            return np.maximum(x, 0)
        x = np.linspace(-1, 1, 1000).astype("f4")
        times = kernelgen.op(RELU).bench(x, against=relu, progress=False)
        self.assertEqual(times.difference, 0)
        self.assertEqual(times.other, "relu")
        self.assertAlmostEqual(times.speedup, times.other_seconds / times.seconds)
        self.assertAlmostEqual(kernelgen.op(RELU).bench(x, against=lambda x: relu(x) + 1, progress=False).difference,
                               1, places=5)

    def test_times_are_rounded_to_units(self):
        from kernelgen.measuring import in_units
        for seconds, wanted in ((2.5e-7, "250 ns"), (9.994e-4, "999 us"), (9.996e-4, "1 ms"), (1.234e-3, "1.23 ms"),
                                (0.99999, "1 s"), (12.5, "12.5 s")):
            self.assertEqual(in_units(seconds), wanted)

    def test_results_of_other_shapes(self):
        with self.assertRaisesRegex(kernelgen.ArgumentError, r"returns a tensor of \(2,\), and the op one of \(3,\)"):
            kernelgen.op(RELU).bench(np.zeros(3, "f4"), against=lambda x: x[:2], progress=False)


class Decorators(unittest.TestCase):
    def test_function_becomes_an_op(self):
        @kernelgen.op(RELU)
        def relu(x):
            """Keeps what is positive."""
        self.assertEqual((relu.__name__, relu.__doc__), ("relu", "Keeps what is positive."))
        np.testing.assert_array_equal(relu(np.array([-1, 2], "f4")), [0, 2])

    def test_parameters_are_those_of_the_op(self):
        with self.assertRaisesRegex(kernelgen.ArgumentError, r"relu\(\) has the parameters y, but op relu1 has the"):
            @kernelgen.op(RELU)
            def relu(y):
                pass


class Process(unittest.TestCase):
    def python(self, text, **environment):
        return subprocess.run([sys.executable, "-c", text], env={**os.environ, **environment}, capture_output=True,
                              text=True)

    def test_import_loads_nothing(self):
        ran = self.python("import sys, kernelgen\n"
                          "assert kernelgen.library._current is None\n"
                          "assert not {'numpy', 'torch', 'cupy'} & set(sys.modules)\n")
        self.assertEqual(ran.stderr, "")

    def test_doctor(self):
        ran = subprocess.run([sys.executable, "-m", "kernelgen", "doctor"], capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        for what in ("library", "home folder", "host", "cuda", "numpy", "torch", "cupy"):
            self.assertRegex(ran.stdout, rf"(?m)^(ok|--) +{what}")
        listed = json.loads(subprocess.run([sys.executable, "-m", "kernelgen", "doctor", "--json"],
                                           capture_output=True, text=True).stdout)
        self.assertEqual([finding["what"] for finding in listed][:2], ["library", "home folder"])
        self.assertEqual(subprocess.run([sys.executable, "-m", "kernelgen", "nurse"], capture_output=True).returncode,
                         2)

    def test_doctor_finds_what_is_missing(self):
        ran = self.python("import sys; from kernelgen import doctor; sys.exit(doctor.report())", PATH="/nowhere",
                          KERNELGEN_HOME="/proc/none")
        self.assertEqual(ran.returncode, 3, ran.stdout)
        self.assertRegex(ran.stdout, "-- +home folder +/proc/none cannot be written")
        self.assertRegex(ran.stdout, "-- +host")
        ran = self.python("import sys; from kernelgen import doctor; sys.exit(doctor.report())",
                          KERNELGEN_LIBRARY="/nowhere/libkernelgen.so")
        self.assertEqual(ran.returncode, 3, ran.stdout)
        self.assertIn("KERNELGEN_LIBRARY names /nowhere/libkernelgen.so, which does not exist", ran.stdout)

    def test_notices_are_logged(self):
        with self.assertLogs("kernelgen", logging.WARNING) as logged:
            kernelgen.op("op f(x: f32[N], b: f32[N]) -> (y: f32[N])\n{ y[i] = 2 * x[i] }\n")
        self.assertIn("b", logged.output[0])

    def test_versions_agree(self):
        project = Path(__file__).resolve().parents[2] / "python" / "pyproject.toml"
        self.assertEqual(kernelgen.version(), kernelgen.__version__)
        self.assertIn(f'version = "{kernelgen.__version__}"', project.read_text())

    def test_ops_that_nobody_has_are_freed(self):
        op = kernelgen.op(RELU)
        for length in (3, 4, 3):
            op(np.zeros(length, "f4"))
        plans = weakref.ref(op.plan(np.zeros(5, "f4"))), weakref.ref(next(iter(op._executions.values())).plan)
        gone, op = weakref.ref(op), None
        self.assertIsNone(gone())
        self.assertEqual([plan() for plan in plans], [None, None])
        self.assertIn("kg_op_destroy", [function for function, _ in library.current().garbage])
        with library.current().working():
            self.assertEqual(len(library.current().garbage), 0)


main()
