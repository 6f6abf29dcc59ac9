#!/usr/bin/env python3
"""The table and the plot of bench/host/ablation.py, from figures made up; what it measures needs minutes."""

import contextlib
import io
import pathlib
import sys
import tempfile
import types
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/host"))
import ablation  # noqa: E402
import plan_cases  # noqa: E402

ROWS = [
    {"op": "a", "class": "reduce", "space": 50, "configs": 49, "good": 1, "random": 25.0, "model": 8, "patterns": 4.0,
     "patterns+model": 2},
    {"op": "b", "class": "scan", "space": 9, "configs": 9, "good": 4, "random": 2.0, "model": 2, "patterns": 1.0,
     "patterns+model": 8},
]


def check_table():
    with contextlib.redirect_stdout(io.StringIO()) as out:
        ablation.print_table(ROWS)
    lines = out.getvalue().splitlines()
    assert lines[0].split() == ["op", "class", "space", "configs", "good", *ablation.ORDERS], lines[0]
    assert lines[1].split() == ["a", "reduce", "50", "49", "1", "25.0", "8.0", "4.0", "2.0"], lines[1]
    assert lines[3].split() == ["geometric", "mean", "7.07", "4.00", "2.00", "4.00"], lines[3]
    assert lines[5].startswith("patterns+model takes 0.57 of random order, 1.00 of the model"), lines[5]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        ablation.print_table([{**row, "again": again} for row, again in zip(ROWS, (2, 2))])
    lines = out.getvalue().splitlines()
    assert lines[0].split()[-1] == "again" and lines[1].split()[-2:] == ["2.0", "2.0"], lines
    assert lines[6].startswith("the order of another run's times takes 0.50 of the model alone"), lines


def check_plot():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "plot.svg")
        ablation.draw(ROWS, path)
        root = xml.etree.ElementTree.parse(path).getroot()
    widths = {}
    for bar in root.iter("{http://www.w3.org/2000/svg}rect"):
        title = bar.find("{http://www.w3.org/2000/svg}title")
        if title is not None:
            widths[title.text] = float(bar.get("width"))
    assert len(widths) == 8, widths
    # Logarithms: 8 is three times as long as 2.
    assert abs(widths["a, model: 8.0"] / widths["a, patterns+model: 2.0"] - 3) < 0.01, widths
    assert max(widths.values()) == widths["a, random: 25.0"] <= 560


def check_subjects():
    """Each op is in its file; the quick ones are among them."""
    for file, op, sizes in ablation.SUBJECTS:
        text = (ROOT / "ops" / file).read_text()
        assert f"op {op}(" in text, op
        head = text[text.index(f"op {op}("):].split("{")[0]
        assert all(part.split("=")[0] in head for part in sizes.split(",")), (op, sizes)
    assert set(ablation.QUICK) <= {subject[1] for subject in ablation.SUBJECTS}
    quick = list(ablation.listed_cases("ops", True, False))
    assert [case.op for case in quick] == list(ablation.QUICK)
    assert quick[0].options() == ["ops/softmax.kg", "--op", "softmax", "--dtype", "T=f32", "--size",
                                  "P=4096,D=1024"], quick[0].options()
    assert len(list(ablation.listed_cases("ops", False, False))) == len(ablation.SUBJECTS)
    grown = {case.op: (case.dtype, case.words()) for case in ablation.listed_cases("ops", False, True)}
    assert grown["softmax"] == ("f32", "P=16384,D=1024"), grown["softmax"]
    assert grown["matmul_nt"] == ("f16", "M=2048,N=2048,K=3072"), grown["matmul_nt"]


def shipped(each, first, on_gpu):
    """Of ten ops, the fourth has several kernels, and the sixth cannot be grown."""
    asked = []

    def all_of(program, folder, narrow, fit):
        asked.append(fit)
        return [plan_cases.Case(folder, str(i), "f32", {"N": 8}) for i in range(10)]

    def fit_sizes(program, case, scale):
        case.sizes = {"N": 8 * scale}
        return case.op != "5"

    def ask(walker, case, home, device):
        return types.SimpleNamespace(stderr="the rule's choice has several kernels" if case.op == "3" else "no records")

    kept = plan_cases.shipped_cases, plan_cases.fit_sizes, ablation.ask
    plan_cases.shipped_cases, plan_cases.fit_sizes, ablation.ask = all_of, fit_sizes, ask
    cases = ablation.shipped_cases("kernelgen", "bench_order", "ops", each, first, on_gpu)
    plan_cases.shipped_cases, plan_cases.fit_sizes, ablation.ask = kept
    assert asked == [not on_gpu], "sizes of a CPU are not looked for where others are"
    return [(case.op, case.sizes["N"]) for case in cases]


def check_shipped():
    """Every so many of one kernel, from one on; on a GPU, grown."""
    assert shipped(1, 0, False) == [(op, 8) for op in "012456789"]
    assert shipped(4, 0, False) == [("0", 8), ("5", 8), ("9", 8)]
    assert shipped(4, 2, False) == [("2", 8), ("7", 8)]
    grown = 8 * ablation.GPU_WORK
    assert shipped(4, 0, True) == [("0", grown), ("9", grown)]
    assert shipped(2, 1, True) == [("1", grown), ("4", grown), ("6", grown), ("8", grown)]


check_table()
check_plot()
check_subjects()
check_shipped()
