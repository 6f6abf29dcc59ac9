#!/usr/bin/env python3
"""test_guide.py: what docs/python.md shows is what happens. Its part on PyTorch is left out where there is none.
Times, and what a search finds, are other ones each time."""

import doctest
import importlib.util
import re
import sys
from pathlib import Path

import package_test

package_test.need("numpy")
GUIDE = Path(__file__).resolve().parents[2] / "docs" / "python.md"
VARYING = [(r"\b[\d.]+ (ns|us|ms|s)\b", "TIME"), (r"[\d.]+ times as fast", "N times as fast"),
           (r"\d+% reached", "N% reached"), (r"\d+ cases, \d+ elements, worst error [\d.]+", "N cases"),
           (r"on host: [^>]*>", "on host: CHOICE>"), (r"\(True, '[^']*'\)", "(True, CHOICE)"), (r"differ by [\d.e+-]+", "differ by N")]


class Checker(doctest.OutputChecker):
    def check_output(self, want, got, flags):
        for pattern, replacement in VARYING:
            want, got = re.sub(pattern, replacement, want), re.sub(pattern, replacement, got)
        return super().check_output(want, got, flags)


def main():
    text = GUIDE.read_text()
    if importlib.util.find_spec("torch") is None:
        print("skipped: the part on PyTorch")
        text = text[:text.index("## PyTorch")]
    text = re.sub(r"^```.*$", "", text, flags=re.M)
    test = doctest.DocTestParser().get_doctest(text, {}, "docs/python.md", str(GUIDE), 0)
    assert len(test.examples) > 20
    runner = doctest.DocTestRunner(Checker())
    runner.run(test)
    print(f"{runner.tries} examples, {runner.failures} failures")
    return 1 if runner.failures else 0


sys.exit(main())
