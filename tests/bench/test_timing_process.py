"""bench/gpu/timing_process.py with a process that dies, hangs or is slow, and what drawn.py makes
of the lines: all without a GPU and without PyTorch."""

import contextlib
import io
import os
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BENCH = os.path.join(ROOT, "bench", "gpu")
sys.path.insert(0, BENCH)

import draw
import drawn_summary
from results import geometric_mean, percentile
from timing_process import Run, share_of

# Times everything at 10 us but what the task says: {contender: {"dies" or "hangs": label}}.
WORKER = """
import json, os, sys, time
task = json.load(sys.stdin)
out = os.fdopen(task["fd"], "w", buffering=1)
def tell(**what): out.write(json.dumps(what) + "\\n")
tell(about={"device": "none"})
for job in task["jobs"]:
    label, cold = job["shape"]["op"], {}
    for name in task["contenders"]:
        if name in job["without"]:
            continue
        tell(stage=name, limit=task["silence"])
        fault = task["faults"].get(name, {})
        if fault.get("dies") == label:
            os._exit(3)
        if fault.get("hangs") == label:
            time.sleep(60)
        time.sleep(task["pause"])
        cold[name] = {"us": 10.0}
    tell(line=dict(label=task["labels"][label], cold=cold, reasons=job["without"]))
"""


class Processes(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.script = os.path.join(self.folder.name, "worker.py")
        with open(self.script, "w") as file:
            file.write(WORKER)
        self.cases = draw.draw_cases(1, "scans", 5)  # of five different ops

    def tearDown(self):
        self.folder.cleanup()

    def run_all(self, faults, pause=0.0, limit=60.0, silence=3):
        settings = dict(contenders=["kernelgen", "eager"], faults=faults, pause=pause,
                        silence=silence,
                        labels={case.op: case.label for case in self.cases})
        run = Run(self.script, self.cases, settings, lambda line, lines: None, limit)
        run.all()
        return run

    def test_all_is_well(self):
        run = self.run_all({})
        self.assertEqual([line["label"] for line in run.lines], [case.label for case in self.cases])
        self.assertEqual(run.about, {"device": "none"})
        self.assertEqual(run.todo, [])

    def fault_costs_its_place(self, fault):
        run = self.run_all({"kernelgen": {fault: self.cases[2].op}})
        self.assertEqual([sorted(line["cold"]) for line in run.lines],
                         [["eager", "kernelgen"]] * 2 + [["eager"]] + [["eager", "kernelgen"]] * 2)
        self.assertIn("kernelgen", run.lines[2]["reasons"])

    def test_death_costs_its_place(self):
        self.fault_costs_its_place("dies")

    def test_hanging_costs_its_place(self):
        self.fault_costs_its_place("hangs")

    def test_limit(self):
        """Nothing is begun after it, what is at work is left out, and nothing is blamed."""
        began = time.monotonic()
        run = self.run_all({}, pause=1.0, limit=5.0)
        self.assertLess(time.monotonic() - began, 10)
        self.assertTrue(0 < len(run.lines) < 5)
        self.assertEqual(len(run.todo), 5 - len(run.lines))
        self.assertFalse(run.without)

    def test_limit_while_it_is_silent(self):
        began = time.monotonic()
        run = self.run_all({"kernelgen": {"hangs": self.cases[0].op}}, limit=2.0, silence=30)
        self.assertLess(time.monotonic() - began, 15)
        self.assertEqual(run.todo, self.cases)
        self.assertFalse(run.without)

    def test_shares(self):
        cases = list(range(10))
        self.assertEqual(sorted(share_of(cases, "0/3") + share_of(cases, "1/3")
                                + share_of(cases, "2/3")), cases)


def line_of(number, ours, **others):
    cold = {name: {"us": float(us)} for name, us in dict(kernelgen=ours, **others).items() if us}
    return dict(label=f"softmax {number}", number=number, group="rows", op="softmax", cold=cold,
                aligned=number % 2 == 0, notes={"kernelgen": {"choice": f"rowwise: {number}"}},
                reasons={})


class Summary(unittest.TestCase):
    def test_percentile(self):
        self.assertEqual(percentile([3, 1, 2], 0), 1)
        self.assertEqual(percentile([3, 1, 2], 0.5), 2)
        self.assertAlmostEqual(percentile(range(11), 0.1), 1)
        self.assertAlmostEqual(percentile([1, 2], 0.1), 1.1)
        self.assertEqual(percentile([5], 0.1), 5)

    def test_ratios(self):
        line = line_of(1, 10, eager=20, compile=5, copy=8)
        self.assertEqual(drawn_summary.ratios_of(line, "kernelgen"),
                         {"eager": 2, "compile": 0.5, "best": 0.5, "memory": 0.8})
        self.assertEqual(drawn_summary.ratios_of(line, "measured"), {})

    def test_parts(self):
        lines = [line_of(i, 10, eager=10 * (i + 1), compile=20, copy=9) for i in range(4)]
        found = drawn_summary.summarise(lines, "kernelgen")
        eager = found["all"]["eager"]
        self.assertEqual((eager["shapes"], eager["worst"], eager["worst_label"]),
                         (4, 1, "softmax 0"))
        self.assertAlmostEqual(eager["mean"], 24 ** 0.25)
        self.assertAlmostEqual(eager["tenth"], 1.3)
        self.assertAlmostEqual(found["odd"]["eager"]["mean"], geometric_mean([2, 4]))
        self.assertAlmostEqual(found["all"]["memory"]["mean"], 0.9)
        self.assertEqual(found["all"]["best"]["shapes"], 4)

    def test_worst(self):
        lines = [line_of(i, 10, eager=10 + i, compile=200) for i in range(20)]
        worst = drawn_summary.worst_lines(lines[::-1], "kernelgen")
        self.assertEqual([line["number"] for line in worst], list(range(10)))
        with contextlib.redirect_stdout(io.StringIO()) as text:
            drawn_summary.print_summary("rows", lines)
        self.assertIn("[rowwise: 3]", text.getvalue())
        self.assertNotIn("[rowwise: 12]", text.getvalue())

    def test_wrong_results_are_told(self):
        good, wrong = line_of(1, 10, eager=20), line_of(2, 0, eager=20)
        wrong["reasons"] = {"kernelgen": "wrong: an error of 3"}
        self.assertTrue(drawn_summary.is_complete([good]))
        self.assertFalse(drawn_summary.is_complete([good, wrong]))
        with contextlib.redirect_stdout(io.StringIO()) as text:
            drawn_summary.print_summary("rows", [good, wrong])
        self.assertIn("wrong: an error of 3", text.getvalue())


if __name__ == "__main__":
    unittest.main()
