"""Summary of the lines of drawn.py. Needs no package.

A ratio is a peer's time over ours, above 1 where we are faster. "best" is the faster peer of each
shape; "memory" is the speed relative to a copy of as many bytes, or to a kernel that reads them.
"""

from matmul_summary import print_missing
from results import geometric_mean, percentile
from timing_process import OURS

NAMES = {"kernelgen": "by rule", "patterns": "by patterns", "measured": "by search"}
ROOFS = "copy", "read"
WORST = 10
COLUMNS = "eager", "compile", "lt", "best", "memory"


def peers_of(name):
    """Of a set."""
    return ("lt",) if name == "products" else ("eager", "compile")


def ratios_of(line, ours):
    """Ratios by peer, with "best" and "memory"; empty if we have no time."""
    cold = line["cold"]
    if ours not in cold:
        return {}
    found = {name: entry["us"] / cold[ours]["us"] for name, entry in cold.items()
             if name not in OURS}
    roofs = [found.pop(name) for name in ROOFS if name in found]
    if found:
        found["best"] = min(found.values())
    if roofs:
        found["memory"] = roofs[0]
    return found


def parts_of(lines):
    """Names, and the lines that belong."""
    yield "all", lines
    yield "aligned", [line for line in lines if line["aligned"]]
    yield "odd", [line for line in lines if not line["aligned"]]
    for axis in ("group", "op"):
        values = list(dict.fromkeys(line[axis] for line in lines))
        if len(values) > 1:
            for value in values:
                yield value, [line for line in lines if line[axis] == value]


def summarise(lines, ours):
    """[part][peer]: shapes, geometric mean, 10th percentile, worst and whose it is."""
    found = {}
    for part, chosen in parts_of(lines):
        for peer in COLUMNS:
            pairs = [(ratios[peer], line["label"]) for line in chosen
                     if peer in (ratios := ratios_of(line, ours))]
            if pairs:
                values = [value for value, _ in pairs]
                worst, label = min(pairs)
                found.setdefault(part, {})[peer] = dict(
                    shapes=len(pairs), mean=geometric_mean(values),
                    tenth=percentile(values, 0.1), worst=worst, worst_label=label)
    return found


def print_parts(found):
    columns = [peer for peer in COLUMNS if any(peer in peers for peers in found.values())]
    if len(columns) == 3 and "lt" in columns:
        columns.remove("best")  # there is only one peer
    print(f"{'mean, 10th percentile, worst':30}" + "".join(f"{peer:>22}" for peer in columns)
          + "  shapes")
    for part, peers in found.items():
        cells = [f"{cell['mean']:8.2f}{cell['tenth']:7.2f}{cell['worst']:7.2f}"
                 if (cell := peers.get(peer)) else f"{'-':>22}" for peer in columns]
        print(f"{part:30}" + "".join(cells) + f"{max(c['shapes'] for c in peers.values()):8}")


def worst_lines(lines, ours):
    ranked = [(ratios["best"], number, line) for number, line in enumerate(lines)
              if "best" in (ratios := ratios_of(line, ours))]
    return [line for _, _, line in sorted(ranked)[:WORST]]


def words_of_row(line, ours):
    """One contender of ours in one line: times, ratios and its config."""
    ratios = ratios_of(line, ours)
    cells = "".join(f"{name} {ratios[name]:.2f}  " for name in COLUMNS
                    if name in ratios and name != "best")
    return (f"{line['cold'][ours]['us']:9.1f} us  {cells}"
            f"[{line['notes'].get(ours, {}).get('choice', '')}]")


def print_worst(lines, ours):
    print(f"the {WORST} worst {NAMES[ours]}")
    for line in worst_lines(lines, ours):
        print(f"  {line['number']:3} {line['label']:42}{words_of_row(line, ours)}")
        if ours == "kernelgen" and "measured" in line["cold"]:
            print(f"      {NAMES['measured']:42}{words_of_row(line, 'measured')}")


def is_complete(lines):
    """Whether every line has a correct result and a time of ours."""
    wanted = {name for line in lines for name in ("kernelgen", "measured") if name in line["cold"]}
    wanted.add("kernelgen")
    return all(name in line["cold"] for line in lines for name in wanted)


def share_of_search(line, ours):
    """A choice's speed over the search's. Where patterns change nothing, theirs is the rule's."""
    cold = line["cold"]
    return cold["measured"]["us"] / cold[ours if ours in cold else "kernelgen"]["us"]


def print_choices(lines):
    """What choices without measuring are worth. Returns the figures for the file."""
    searched = [line for line in lines if {"kernelgen", "measured"} <= line["cold"].keys()]
    changed = [line for line in searched if "patterns" in line["cold"]]
    rows = [(NAMES[ours], [share_of_search(line, ours) for line in searched])
            for ours in ("kernelgen", "patterns") if ours == "kernelgen" or changed]
    rows += [("by patterns over by rule, where they differ",
              [line["cold"]["kernelgen"]["us"] / line["cold"]["patterns"]["us"]
               for line in changed])] if changed else []
    found = {name: dict(shapes=len(values), mean=geometric_mean(values),
                        tenth=percentile(values, 0.1), worst=min(values))
             for name, values in rows if values}
    if found:
        print(f"\n{'speed over the search, cold':44}{'shapes':>8}{'mean':>8}{'tenth':>8}{'worst':>8}")
    for name, cell in found.items():
        print(f"{name:44}{cell['shapes']:8}{cell['mean']:8.3f}{cell['tenth']:8.3f}"
              f"{cell['worst']:8.3f}")
    return found


def print_summary(title, lines):
    """Returns the figures for the file."""
    summary = {}
    for ours in ("kernelgen", "measured"):
        found = summarise(lines, ours)
        if found:
            print(f"\n{title}, {NAMES[ours]}: times of others over ours, cold")
            print_parts(found)
            print_worst(lines, ours)
            summary[ours] = dict(parts=found,
                                 worst=[line["label"] for line in worst_lines(lines, ours)])
    summary["choices"] = print_choices(lines)
    print_missing(lines)
    return summary
