#!/usr/bin/env python3
"""What bench/host/estimates.py draws and sums up; what it measures needs minutes."""

import contextlib
import io
import pathlib
import random
import sqlite3
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "bench" / "host"))
import estimates  # noqa: E402
import plan_cases  # noqa: E402


def check_drawn():
    """Sizes are at most twice as large or half as large, some odd, and the same for the same seed."""
    case = plan_cases.Case("ops/softmax.kg", "softmax", "f32", {"P": 1000, "D": 777, "K": 4})
    drawn = [estimates.draw(random.Random(seed), case) for seed in range(200)]
    for one in drawn:
        assert 484 <= one.sizes["P"] <= 2000 and 373 <= one.sizes["D"] <= 1554, one
        assert 2 <= one.sizes["K"] <= 8, one
    odd = sum(one.sizes["P"] % 16 != 0 for one in drawn)
    assert 40 < odd < 120, odd
    assert estimates.draw(random.Random(7), case).sizes == drawn[7].sizes
    assert case.sizes == {"P": 1000, "D": 777, "K": 4}


def check_records():
    with tempfile.TemporaryDirectory() as home:
        records = sqlite3.connect(f"{home}/records.db")
        records.execute("CREATE TABLE ops(name TEXT)")
        records.executemany("INSERT INTO ops VALUES(?)", [("relu",), ("softmax",), ("relu",)])
        records.commit()
        records.close()
        assert estimates.ops_on_record(home) == {"relu", "softmax"}


def check_summary():
    rows = [{"rule": "a", "patterns": "a", "rule_over_search": 0.5, "patterns_over_search": 0.5,
             "patterns_over_rule": 1.0},
            {"rule": "a", "patterns": "b", "rule_over_search": 0.5, "patterns_over_search": 2.0,
             "patterns_over_rule": 4.0}]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        estimates.print_summary(rows)
    lines = [line.split() for line in out.getvalue().splitlines()]
    assert lines[1][-4:] == ["2", "0.500", "0.500", "0.500"], lines
    assert lines[2][-4:] == ["2", "1.000", "0.500", "0.500"], lines
    assert lines[3][-4:] == ["1", "4.000", "4.000", "4.000"], lines


check_drawn()
check_records()
check_summary()
