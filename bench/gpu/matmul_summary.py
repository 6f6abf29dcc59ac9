"""Summary of the lines of matmul.py: means, worst shapes, goals, what is missing and why."""

from results import geometric_mean

OURS = "kernelgen", "measured"
PEERS = "lt", "lt_tuned", "torch", "compile", "triton", "read"
L2 = 50e6  # bytes of an H100's
WORST = 12


def is_product(line):
    """A 16-bit product without an epilogue: these are "all shapes"."""
    return line["group"] not in ("f32", "epilogue")


def is_skinny(line):
    return is_product(line) and line.get("m", 65) <= 64 and line.get("batch") == 1


def is_small(line):
    return is_product(line) and max(line.get(name, 1 << 30) for name in "mnk") <= 512 \
        and line["batch"] == 1


def exceeds_l2(line):
    return is_skinny(line) and 2 * line["n"] * line["k"] > L2


PARTS = {
    "all": is_product,
    "rows <= 64": is_skinny,
    "rows <= 64, weights > L2": exceeds_l2,
    "<= 512^3": is_small,
    **{group: lambda line, group=group: line["group"] == group
       for group in ("cubes", "decode", "prefill", "ragged", "batched", "f32")},
    "gelu_tanh": lambda line: line.get("op") == "linear_gelu_tanh",
    "gelu": lambda line: line.get("op") == "linear_gelu",
}
# Section, mode, peer, mean or worst, and the goal.
GOALS = [
    ("all", "cold", "lt", "mean", 1.00), ("all", "graph", "lt", "mean", 1.00),
    ("all", "cold", "lt", "worst", 0.90), ("all", "graph", "lt", "worst", 0.90),
    ("rows <= 64", "cold", "lt", "mean", 1.10), ("rows <= 64", "graph", "lt", "mean", 1.10),
    ("rows <= 64, weights > L2", "cold", "read", "worst", 0.85),
    ("<= 512^3", "graph", "lt", "mean", 1.0), ("all", "cold", "triton", "mean", 1.10),
    ("gelu_tanh", "cold", "lt", "mean", 1.0), ("gelu", "cold", "compile", "mean", 1.0),
    ("f32", "cold", "lt", "mean", 1.5),
]


def ratios(lines, ours, peer, mode):
    """Their times over ours, with labels."""
    return [(line[mode][peer]["us"] / line[mode][ours]["us"], line["label"]) for line in lines
            if ours in line[mode] and peer in line[mode]]


def summarise(lines, ours):
    """[part][mode][peer]: shapes, mean, worst and whose it is."""
    found = {}
    for part, belongs in PARTS.items():
        chosen = [line for line in lines if belongs(line)]
        for mode in ("cold", "graph"):
            for peer in PEERS:
                values = ratios(chosen, ours, peer, mode)
                if values:
                    worst, label = min(values)
                    found.setdefault(part, {}).setdefault(mode, {})[peer] = dict(
                        shapes=len(values), mean=geometric_mean([value for value, _ in values]),
                        worst=worst, worst_label=label)
    return found


def print_means(found):
    print(f"{'geometric mean (worst)':32}" + "".join(f"{peer:>15}" for peer in PEERS) + "  shapes")
    for part, modes in found.items():
        for mode, peers in modes.items():
            cells = [f"{peers[peer]['mean']:8.2f} ({peers[peer]['worst']:.2f})" if peer in peers
                     else f"{'-':>15}" for peer in PEERS]
            most = max(peer["shapes"] for peer in peers.values())
            print(f"{part + ', ' + mode:32}" + "".join(cells) + f"{most:8}")


def print_goals(found):
    met = []
    for part, mode, peer, what, goal in GOALS:
        value = found.get(part, {}).get(mode, {}).get(peer)
        if value:
            is_met = round(value[what], 2) >= goal
            met.append(dict(part=part, mode=mode, peer=peer, what=what, goal=goal,
                            value=value[what], met=is_met))
            whose = f" ({value['worst_label']})" if what == "worst" else ""
            print(f"{'met' if is_met else 'MISSED':7}{part}, {mode}: {what} against {peer} "
                  f"{value[what]:.2f}, goal {goal:.2f}{whose}")
    return met


def print_losses(lines, ours):
    for mode in ("cold", "graph"):
        lost = sorted(pair for pair in ratios(filter(is_product, lines), ours, "lt", mode)
                      if pair[0] < 1)
        if lost:
            words = ", ".join(f"{label} {value:.2f}" for value, label in lost[:WORST])
            print(f"slower than lt, {mode}: {len(lost)} shapes: {words}")


def print_errors(lines):
    """f32: ours beside cuBLAS's, against f64."""
    for line in lines:
        errors = line["errors"]
        if line["group"] == "f32" and "lt" in errors:
            for name in OURS:
                if name in errors:
                    print(f"{line['label']}: root mean square error {errors[name]['rms']:.3g} "
                          f"sqrt(K), cuBLAS {errors['lt']['rms']:.3g}; largest "
                          f"{errors[name]['max']:.3g}, cuBLAS {errors['lt']['max']:.3g}")


def print_missing(lines):
    """Each reason once, with whom it concerns."""
    missing = {}
    for line in lines:
        for name, reason in line["reasons"].items():
            missing.setdefault((name, reason), []).append(line["label"])
    if missing:
        print("\nnot there:")
    for (name, reason), labels in missing.items():
        more = f" and {len(labels) - 3} more" if len(labels) > 3 else ""
        print(f"- {name}: {reason}\n  {', '.join(labels[:3])}{more}")


def print_summary(lines):
    """Returns the means and goals for the file."""
    summary = {}
    for ours in OURS:
        found = summarise(lines, ours)
        if found:
            print(f"\n{ours}: times of others over ours")
            print_means(found)
            summary[ours] = dict(parts=found, goals=print_goals(found))
            print_losses(lines, ours)
    print_errors(lines)
    print_missing(lines)
    return summary
