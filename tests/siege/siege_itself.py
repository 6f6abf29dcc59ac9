#!/usr/bin/env python3
"""siege_itself.py KERNELGEN: what tools/siege says of a gate that does its work, and of one that
passes everything."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KERNELGEN = os.path.abspath(sys.argv.pop(1))
FAULTS = ["first_element", "nan_becomes_0", "write_behind", "exit_in_call", "halves_away",
          "negative_zero_lost", "ids_wrap"]
BLIND = """#!/bin/sh
if [ "$1" = verify ]; then echo '{"passed": true, "reason": ""}'; exit 0; fi
exec "%s" "$@"
"""
STRICT = """#!/bin/sh
if [ "$1" = verify ]; then echo '{"passed": false, "reason": "case 1 (N=1): no"}'; exit 1; fi
exec "%s" "$@"
"""
# Answers of a gate that has judged several candidates: all passed, but for the last one, which is right.
SPOILT = """#!/usr/bin/env python3
import json, os, sys
paths = [path for word, path in zip(sys.argv, sys.argv[1:]) if word == "--candidate"]
if len(paths) > 1:
    print(json.dumps([{"candidate": path, "passed": path is not paths[-1], "reason": "no"}
                      for path in paths]))
    sys.exit(1)
os.execv("%s", sys.argv)
"""
# Ends while it judges several candidates.
DYING = """#!/bin/sh
case "$*" in *--candidate*--candidate*) echo '['; kill -9 $$;; esac
exec "%s" "$@"
"""
# Leaves a process behind that one of several candidates is to blame for.
LEAVING = """#!/bin/sh
case "$*" in *--candidate*--candidate*) for word; do case "$word" in *_first_element.c)
    sleep 60 & echo $! >"$word.notes";;
esac; done;; esac
exec "%s" "$@"
"""
COUNTING = """#!/bin/sh
if [ "$1" = verify ]; then echo "$#" >>"$0.calls"; fi
exec "%s" "$@"
"""


def siege(kernelgen, folder, *words):
    """(exit status, output, {fault: what became of it})."""
    log = os.path.join(folder, "log.json")
    done = subprocess.run(
        [sys.executable, os.path.join(ROOT, "tools", "siege"), kernelgen,
         os.path.join(ROOT, "ops", "activations.kg"), "--op", "relu", "--seeds", "1", "--json", log,
         *words, *(word for fault in FAULTS for word in ("--fault", fault))],
        capture_output=True, text=True, check=False)
    with open(log, encoding="utf-8") as file:
        verdicts = [json.loads(line) for line in file]
    return done.returncode, done.stdout, {line["fault"]: line["became"] for line in verdicts}


class Siege(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def program(self, text):
        path = os.path.join(self.folder, "kernelgen")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text % KERNELGEN)
        os.chmod(path, 0o755)
        return path

    def test_gate(self):
        status, text, became = siege(KERNELGEN, self.folder, "--dtype", "T=f32")
        self.assertEqual(status, 0, text)
        for fault in ("first_element", "nan_becomes_0", "write_behind", "exit_in_call"):
            self.assertEqual(became[fault], "ok", text)
        self.assertEqual(became["negative_zero_lost"], "harmless", text)
        self.assertEqual(became["ids_wrap"], "skipped", text)
        self.assertEqual(became["halves_away"], "skipped", text)  # there is no f16

    def test_gate_that_passes_everything(self):
        status, text, became = siege(self.program(BLIND), self.folder, "--dtype", "T=f16")
        self.assertEqual(status, 1, text)
        for fault in ("first_element", "nan_becomes_0", "write_behind", "exit_in_call"):
            self.assertEqual(became[fault], "MISSED", text)
        self.assertEqual(became["negative_zero_lost"], "harmless", text)
        self.assertEqual(became["halves_away"], "beyond", text)

    def check_as_ever(self, program, *words):
        status, text, became = siege(program, self.folder, "--dtype", "T=f32", *words)
        self.assertEqual(status, 0, text)
        for fault in ("first_element", "nan_becomes_0", "write_behind", "exit_in_call"):
            self.assertEqual(became[fault], "ok", text)
        self.assertEqual(became["negative_zero_lost"], "harmless", text)

    def test_batches_that_are_not_believed(self):
        for text in (SPOILT, DYING, LEAVING):
            self.check_as_ever(self.program(text))

    def test_processes_of_the_tool(self):
        program = self.program(COUNTING)
        self.check_as_ever(program, "--fault", "forks_once", "--seeds", "2")
        with open(program + ".calls", encoding="utf-8") as file:
            calls = file.read().split()
        self.assertEqual(len(calls), 4, "one for quiet faults and one for others, with each seed")

    def test_catalogue_is_documented(self):
        table = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "siege"), "--list"],
                               capture_output=True, text=True, check=True).stdout
        with open(os.path.join(ROOT, "docs", "verification.md"), encoding="utf-8") as file:
            self.assertIn(table.strip(), file.read(), "docs/verification.md: tools/siege --list")

    def test_gate_that_refuses_everything(self):
        status, text, became = siege(self.program(STRICT), self.folder)
        self.assertEqual(status, 1, text)
        self.assertEqual(became["first_element"], "ok", text)
        self.assertIn("2 of 2 right kernels refused", text)


if __name__ == "__main__":
    unittest.main()
