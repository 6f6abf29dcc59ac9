#!/usr/bin/env python3
"""Judges the times that host families are expected to take by what bench_segments measured.

    bench/host/judge_times.py [--worst N] [--expected LIST.jsonl] TIMES.jsonl...

For every case it makes all groupings of the segments, and compares: the one expected to be the
fastest, the fastest, the baseline (direct, statement by statement) and the greedy one (the longest
segment that the first family in the table takes). --expected replaces the expectations by those of
a later `bench_segments --list` of the same cases."""

import argparse
import json
import math
import sys

ORDER = ["contract", "rowwise", "reduce", "scan", "pointwise", "direct"]


def read_cases(paths):
    cases = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                cases.setdefault(row["case"], []).append(row)
    return cases


def key_of(row):
    return row["case"], row["first"], row["count"], row["family"]


def best_grouping(rows, nests, cost):
    """The cheapest way to cover all statements: (sum of cost, rows)."""
    best = [(0.0, [])] + [None] * nests
    for stop in range(1, nests + 1):
        for row in rows:
            if row["first"] + row["count"] == stop and best[row["first"]]:
                total = best[row["first"]][0] + row[cost]
                if not best[stop] or total < best[stop][0]:
                    best[stop] = total, best[row["first"]][1] + [row]
    return best[nests]


def greedy_grouping(rows, nests):
    chosen, first = [], 0
    while first < nests:
        fits = [row for row in rows if row["first"] == first]
        fits.sort(key=lambda row: (-row["count"], ORDER.index(row["family"])))
        chosen.append(fits[0])
        first += fits[0]["count"]
    return chosen


def seconds_of(grouping):
    return sum(row["seconds"] for row in grouping)


def words_of(grouping):
    return "; ".join(f"{row['family']}*{row['count']}" for row in grouping)


def count_pairs(rows):
    """(right, all) of the pairs that do the same statements and differ by more than a tenth."""
    right = pairs = 0
    for i, a in enumerate(rows):
        for b in rows[i + 1:]:
            if (a["first"], a["count"]) != (b["first"], b["count"]):
                continue
            if max(a["seconds"], b["seconds"]) > 1.1 * min(a["seconds"], b["seconds"]):
                pairs += 1
                right += (a["seconds"] < b["seconds"]) == (a["expected"] < b["expected"])
    return right, pairs


def judge_case(rows):
    nests = rows[0]["nests"]
    rows = [row for row in rows if row["seconds"] > 0]
    baseline = [row for row in rows if row["count"] == 1 and row["family"] == "direct"]
    if len(baseline) != nests:
        return None
    return {"case": rows[0]["case"], "baseline": seconds_of(baseline),
            "greedy": seconds_of(greedy_grouping(rows, nests)),
            "greedy_words": words_of(greedy_grouping(rows, nests)),
            "pick": seconds_of(best_grouping(rows, nests, "expected")[1]),
            "pick_words": words_of(best_grouping(rows, nests, "expected")[1]),
            "best": best_grouping(rows, nests, "seconds")[0],
            "best_words": words_of(best_grouping(rows, nests, "seconds")[1]),
            "pairs": count_pairs(rows)}


def geometric(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values))


def print_summary(cases):
    right, pairs = (sum(case["pairs"][i] for case in cases) for i in (0, 1))
    print(f"{len(cases)} cases; pairs ordered right: {right} of {pairs}, {right / pairs:.1%}")
    for name in ("greedy", "pick", "best"):
        ratios = [case["baseline"] / case[name] for case in cases]
        print(f"  {name:7s} baseline / plan: geometric mean {geometric(ratios):.2f}, worst "
              f"{min(ratios):.3f}, below 0.95: {sum(ratio < 0.95 for ratio in ratios)}")
    regrets = [case["pick"] / case["best"] for case in cases]
    print(f"  regret of the pick: mean {geometric(regrets):.3f}, worst {max(regrets):.2f}, "
          f"over 1.1: {sum(regret > 1.1 for regret in regrets)}")


def print_families(rows):
    for family in ORDER:
        errors = sorted(math.log(row["expected"] / row["seconds"]) for row in rows
                        if row["family"] == family and row["expected"] > 0 and row["seconds"] > 2e-6)
        if errors:
            share = [math.exp(errors[int(part * (len(errors) - 1))]) for part in (0, .1, .5, .9, 1)]
            print(f"  {family:10s} expected / measured: least {share[0]:.2f}, tenth {share[1]:.2f}, "
                  f"median {share[2]:.2f}, 90 % {share[3]:.2f}, most {share[4]:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("times", nargs="+")
    parser.add_argument("--expected", default=None)
    parser.add_argument("--worst", type=int, default=10)
    options = parser.parse_args()
    cases = read_cases(options.times)
    if options.expected:
        later = {key_of(row): row["expected"] for rows in read_cases([options.expected]).values()
                 for row in rows}
        for rows in cases.values():
            for row in rows:
                row["expected"] = later.get(key_of(row), row["expected"])
    judged = [case for case in map(judge_case, cases.values()) if case]
    print_summary(judged)
    print_families([row for rows in cases.values() for row in rows])
    judged.sort(key=lambda case: case["best"] / case["pick"])
    for case in judged[:options.worst]:
        print(f"{case['pick'] / case['best']:6.2f} vs best, {case['baseline'] / case['pick']:6.2f} "
              f"vs baseline, {case['pick'] * 1e6:9.1f} us  {case['case'].split('/')[-1]}\n"
              f"         pick {case['pick_words']}\n         best {case['best_words']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
