"""Groups of bars as one SVG file, without packages."""

from html import escape

COLOURS = "#9aa5b1", "#5b8def", "#1b9e77", "#d95f02", "#7570b3"
BAR, GAP, LEFT, TOP, BOTTOM, HEIGHT, LEGEND = 14, 26, 60, 46, 40, 280, 130


def _ticks(largest):
    """Round values up to the greatest."""
    step = 1
    while largest / step > 6:
        step *= 2.5 if str(step)[0] == "2" else 2
    return [step * i for i in range(int(largest / step) + 1)]


def _text(x, y, words, anchor="middle"):
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{escape(words)}</text>'


def _group(number, name, values, scale, width):
    x = LEFT + GAP / 2 + number * width
    bars = []
    for i, value in enumerate(values):
        if value is not None:
            height = value * scale
            bars.append(f'<rect x="{x + i * BAR:.0f}" y="{TOP + HEIGHT - height:.1f}" '
                        f'width="{BAR - 2}" height="{height:.1f}" '
                        f'fill="{COLOURS[i % len(COLOURS)]}"><title>{value:.1f}</title></rect>')
    return bars + [_text(x + len(values) * BAR / 2, TOP + HEIGHT + 18, name)]


def write_bars(path, title, series, groups):
    """`groups` are pairs of a name and a value for each of the series, None where there is none."""
    values = [value for _, row in groups for value in row if value is not None]
    largest = max(values, default=1) or 1
    scale = HEIGHT / (1.05 * largest)
    width = GAP + max(BAR * len(series), 70)
    total = max(LEFT + width * len(groups) + 20, LEFT + LEGEND * len(series) + 20)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} '
             f'{TOP + HEIGHT + BOTTOM}" width="{total}" font-family="sans-serif" font-size="11">',
             f'<rect width="{total}" height="{TOP + HEIGHT + BOTTOM}" fill="white"/>',
             _text(LEFT, 14, title, "start")]
    for i, name in enumerate(series):
        x = LEFT + i * LEGEND
        lines += [f'<rect x="{x}" y="24" width="10" height="10" '
                  f'fill="{COLOURS[i % len(COLOURS)]}"/>', _text(x + 14, 33, name, "start")]
    for tick in _ticks(largest):
        y = TOP + HEIGHT - tick * scale
        lines += [f'<path d="M{LEFT} {y:.1f}H{total - 10}" stroke="#ddd"/>',
                  _text(LEFT - 6, y + 4, f"{tick:g}", "end")]
    for number, (name, row) in enumerate(groups):
        lines += _group(number, name, row, scale, width)
    with open(path, "w") as file:
        file.write("\n".join(lines + ["</svg>"]) + "\n")
