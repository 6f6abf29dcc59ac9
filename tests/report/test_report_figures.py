"""The figures of the report over all problems, compared with rows of the database.

test_report_figures.py KERNELGEN WRITE_RECORDS. Needs no browser. Where a mark stands is compared with
what the labels of the axes say of places, not with how the tool computes them.
"""

import json
import math
import re
import sqlite3
import sys
import unittest

import report_pages

UNITS = {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12}


def value_of(label):
    """What the label of a tick stands for; None: it is the name of an axis."""
    found = re.fullmatch(r"([\d.e+-]+)(%| m?s| [unp]s)?", label)
    if not found:
        return None
    scale = {None: 1, "%": 0.01}.get(found[2]) or UNITS[found[2].strip()]
    return float(found[1]) * scale


class Axis:
    """A logarithmic axis, as its first and last labels have it."""

    def __init__(self, ticks):
        ticks.sort()
        (self.low, self.first), (self.high, self.last) = ticks[0], ticks[-1]

    def place(self, value):
        part = math.log(value / self.low) / math.log(self.high / self.low)
        return self.first + part * (self.last - self.first)


def axes(plot):
    """Both axes of a plot: labels of the horizontal one are centred."""
    found = {"middle": [], "end": []}
    for text in plot.all("text"):
        value = value_of(text.text())
        if value is not None:
            at = text.attributes
            horizontal = at["text-anchor"] == "middle"
            found[at["text-anchor"]].append(
                (value, int(at["x"]) if horizontal else int(at["y"]) - 4))
    return Axis(found["middle"]), Axis(found["end"])


class Figures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.records = report_pages.sample()
        cls.page = report_pages.read(cls.records.report())
        cls.database = sqlite3.connect(cls.records.home / "records.db")
        cls.cards = {}
        for card in cls.page.all("details", "card"):
            data = card.attributes
            device = card.parent.parent.one("h2").text()
            name = (data["data-name"], data["data-dtype"], data["data-sizes"], device)
            cls.cards[tuple(" ".join(part.split()) for part in name)] = card
        cls.keys = {}
        for key, *name in cls.database.execute(
                "SELECT id, op, dtypes, sizes, device FROM full_keys ORDER BY op, id"):
            name = tuple(report_pages.printed(part) for part in name)
            cls.keys["#" + cls.cards[name].attributes["id"]] = (key, *name)

    @classmethod
    def tearDownClass(cls):
        cls.database.close()
        cls.records.folder.cleanup()

    def seconds(self, link):
        """The time that the card of a link shows, which report_page compares with the database."""
        data = self.cards[self.keys[link][1:]].attributes
        return int(data["data-picoseconds"]) / 1e12 if "data-picoseconds" in data else None

    def costs(self):
        """By link: memory and compute seconds, of problems that have a time."""
        rows = {key: row for key, *row in self.database.execute(
            "SELECT key, memory_seconds, compute_seconds FROM costs")}
        return {link: rows[name[0]] for link, name in self.keys.items()
                if name[0] in rows and self.seconds(link)}

    def test_roofline(self):
        figure = self.page.one("figure", "rooflines")
        plot = next(figure.all("svg"))
        x, y = axes(plot)
        costs = self.costs()
        self.assertGreater(len(costs), 30)
        marks = {link.attributes["href"]: link for link in plot.all("a")}
        self.assertEqual(marks.keys(), costs.keys())
        counts = {"at": 0, "near": 0, "far": 0}
        for link, (memory, compute) in costs.items():
            seconds, name = self.seconds(link), self.keys[link]
            share, intensity = max(memory, compute) / seconds, compute / memory
            with self.subTest(name=name):
                title = marks[link].one("title").text()
                shown = re.fullmatch(r"(.*): (\S+)% of the roof, intensity (\S+) of the ridge, .*",
                                     title)
                self.assertEqual(shown[1], " ".join(name[1:4]))
                self.assertAlmostEqual(float(shown[2]) / 100 / share, 1, delta=0.006)
                self.assertAlmostEqual(float(shown[3]), intensity, delta=0.006 * intensity)
                self.assertTrue(title.endswith(name[4]))
                mark = marks[link].one("path", "mark").attributes
                kind = "at" if share >= 0.9 else "near" if share >= 0.5 else "far"
                self.assertIn(kind, mark["class"].split())
                counts[kind] += 1
                place = re.match(r"M(\d+) (\d+)m", mark["d"])
                self.assertAlmostEqual(int(place[1]), x.place(max(intensity, 1e-4)), delta=1)
                attained = min(max(intensity, 1e-4), 1) * share
                self.assertAlmostEqual(int(place[2]), y.place(min(attained, 1)), delta=1)
        self.assertTrue(all(counts.values()), counts)
        legend = figure.one("ul", "legend").text()
        self.assertIn(f"{counts['at']} at the roof", legend)
        self.assertIn(f"{counts['near']} from 50", legend)
        self.assertIn(f"{counts['far']} below", legend)
        self.assertIn(f" {len(self.keys) - len(costs)} without time or noted cost are not shown",
                      figure.text())

    def test_the_roof_is_the_least_of_1_and_intensity(self):
        plot = next(self.page.one("figure", "rooflines").all("svg"))
        x, y = axes(plot)
        roof = re.fullmatch(r"M(\d+) (\d+)L(\d+) (\d+)H(\d+)",
                            plot.one("path", "roof-line").attributes["d"])
        places = [int(place) for place in roof.groups()]
        low = max(x.low, y.low)
        for found, expected in zip(places, (x.place(low), y.place(low), x.place(1), y.place(1),
                                            x.last)):
            self.assertAlmostEqual(found, expected, delta=1)

    def latest(self, key):
        """Of each candidate: kind, seconds, spread, bound, forecast, reason, abandoned."""
        rows = self.database.execute(
            "SELECT choice, kind, median, spread, bound, promise, reason, abandoned FROM outcomes"
            " JOIN candidates ON candidates.id = candidate"
            " LEFT JOIN promises ON promises.outcome = outcomes.id"
            " WHERE key = ? AND override = '' ORDER BY outcomes.id", (key,))
        return {choice: row for choice, *row in rows}.values()

    def predictions(self, key):
        """(predicted, measured, spread) of each measured candidate, and whether by estimates."""
        rows = [row for row in self.latest(key) if row[0] == "measured"]
        by_estimate = any(row[4] for row in rows)
        found = []
        for _, seconds, spread, bound, forecast, _, abandoned in rows:
            predicted = bound
            if by_estimate:
                if not forecast:
                    continue
                forecast = json.loads(forecast)
                self.assertFalse(any(forecast["features"].values()))
                launches = (forecast["launch"] or {"kernels": 1})["kernels"]
                predicted = forecast["bound"] + 5e-6 + 2e-6 * (launches - 1)
            if not abandoned:
                found.append((predicted, seconds, spread))
        return found, by_estimate

    def test_predicted_and_measured(self):
        figures = {figure.one("p", "soft").text(): figure
                   for figure in self.page.all("figure", "predicted")}
        devices = {name[4] for name in self.keys.values()}
        self.assertEqual(figures.keys(), devices)
        for device, figure in figures.items():
            x, y = axes(figure.one("svg"))
            of_device = {link: self.predictions(name[0]) for link, name in self.keys.items()
                         if name[4] == device}
            by_estimate = any(by for _, by in of_device.values())
            self.assertEqual(by_estimate, not device.startswith("NVIDIA"))
            links = {link.attributes["href"]: link for link in figure.all("a")}
            count = pairs = right = 0
            for link, (spots, by) in of_device.items():
                if by != by_estimate or not spots:
                    self.assertNotIn(link, links)
                    continue
                self.assertIn(f": {len(spots)} candidate", links[link].one("title").text())
                dots = re.findall(r"M(\d+) (\d+)h0", links[link].one("path").attributes["d"])
                dots = {(int(a), int(b)) for a, b in dots}
                expected = {(x.place(spot[0]), y.place(spot[1])) for spot in spots}
                for places, others in ((dots, expected), (expected, dots)):
                    for place in places:
                        self.assertLessEqual(min(math.dist(place, other) for other in others), 1.5)
                count += len(spots)
                for i, (expected_a, a, spread_a) in enumerate(spots):
                    for expected_b, b, spread_b in spots[:i]:
                        if abs(a - b) > spread_a + spread_b:
                            pairs += 1
                            product = (expected_a - expected_b) * (a - b)
                            right += 1 if product > 0 else 0.5 if product == 0 else 0
            caption = figure.one("figcaption").text()
            self.assertTrue(caption.startswith(f"{count} measured candidates, "), caption)
            self.assertIn(f"Of {pairs} pairs", caption)
            shown = re.search(r"noise, ([\d.]+)% are", caption)
            self.assertAlmostEqual(float(shown[1]), 100 * right / pairs, delta=0.051)

    def tier(self, kind, reason):
        if kind != "pruned":
            return kind
        starts = {"cannot take": "bound", "its instr": "instructions", "the model": "instructions",
                  "cannot be l": "instructions", "the same": "same", "no limit": "same"}
        return next((tier for start, tier in starts.items() if reason.startswith(start)), "rule")

    def test_tiers(self):
        figure = self.page.one("figure", "fates")
        words = {"measured": "measured", "bound": "pruned by bound",
                 "instructions": "pruned by instructions", "same": "same code as another",
                 "rule": "pruned by a rule", "compile": "compile error", "wrong": "wrong",
                 "fault": "fault", "timeout": "timeout"}
        names = [part.text() for part in figure.all("p", "soft")]
        stacks, legends = list(figure.all("svg", "stack")), list(figure.all("ul", "legend"))
        self.assertEqual(len(names), len({name[4] for name in self.keys.values()}))
        for name, stack, legend in zip(names, stacks, legends):
            device, total = name.rsplit(": ", 1)
            counts = {}
            for key, *_, own in self.keys.values():
                for kind, *_, reason, _ in self.latest(key) if own == device else ():
                    counts[words[self.tier(kind, reason)]] = \
                        counts.get(words[self.tier(kind, reason)], 0) + 1
            self.assertEqual(int(total), sum(counts.values()))
            expected = {f"{count} {word}" for word, count in counts.items()}
            self.assertEqual({item.text() for item in legend.all("li")}, expected)
            self.assertEqual({title.text() for title in stack.all("title")}, expected)
            at = 0
            for path, title in zip(stack.all("path"), stack.all("title")):
                start, end = map(int, re.match(r"M(\d+) 0H(\d+)V", path.attributes["d"]).groups())
                self.assertEqual(start, at)
                self.assertAlmostEqual(end - start,
                                       1000 * int(title.text().split()[0]) / int(total), delta=8)
                at = end
            self.assertEqual(at, 1000)

    def card(self, link):
        return self.cards[self.keys[link][1:]]

    def test_progress(self):
        drawn = 0
        for link, name in self.keys.items():
            times = self.database.execute(
                "SELECT median, abandoned FROM outcomes WHERE key = ? AND override = ''"
                " AND kind = 'measured' AND NOT final ORDER BY id", (name[0],)).fetchall()
            plots = list(self.card(link).all("svg", "progress"))
            known = [seconds for seconds, abandoned in times if not abandoned]
            self.assertEqual(len(plots), len(times) > 1 and len(known) > 0)
            if not plots:
                continue
            drawn += 1
            best = min(known)
            to_best = times.index((best, 0)) + 1
            near = next(i for i, (seconds, abandoned) in enumerate(times)
                        if not abandoned and seconds <= 1.02 * best) + 1
            text = self.card(link).text()
            with self.subTest(name=name):
                self.assertIn(f"is number {to_best} of {len(times)} that were measured; number "
                              f"{near} was within 2%", text)
                self.check_steps(plots[0], times)
        self.assertGreater(drawn, 40)

    def check_steps(self, plot, times):
        """The places of the steps, by the labels of the axes: times may be on a linear axis."""
        ticks = {"middle": [], "end": []}
        for text in plot.all("text"):
            label, at = text.text(), text.attributes
            if at["text-anchor"] == "middle":
                ticks["middle"].append((float(label), int(at["x"])))
            elif value_of(label) is not None:
                ticks["end"].append((value_of(label), int(at["y"]) - 4))
        linear = any(value == 0 for value, _ in ticks["end"])
        self.assertGreater(len(ticks["end"]), 1)
        (low, first), (high, last) = min(ticks["end"]), max(ticks["end"])

        def place(seconds):
            part = (seconds - low) / (high - low) if linear else \
                math.log(seconds / low) / math.log(high / low)
            return first + part * (last - first)

        (none, left), (most, right) = min(ticks["middle"]), max(ticks["middle"])
        expected, best = [], math.inf
        for i, (seconds, abandoned) in enumerate(times):
            if not abandoned and seconds < best:
                best = seconds
                expected.append((left + (i + 1 - none) * (right - left) / (most - none),
                                 place(seconds)))
        steps = plot.one("path", "step").attributes["d"]
        found = re.findall(r"(\d+)[ V](\d+)", steps)
        self.assertEqual(len(found), len(expected))
        for (x, y), (expected_x, expected_y) in zip(found, expected):
            self.assertAlmostEqual(int(x), expected_x, delta=1.5)
            self.assertAlmostEqual(int(y), expected_y, delta=1.5)

    def printed_seconds(self, seconds):
        for unit, scale in UNITS.items():
            if seconds >= 0.9995 * scale:
                return f"{seconds / scale:#.3g}".rstrip(".") + f" {unit}"
        return None

    def test_every_round_is_told(self):
        names = {"latency": "latency", "tail": "tail", "block": "block and grid",
                 "bandwidth": "memory bandwidth: 0.8 of the bandwidth.",
                 "reuse": "data reuse.",
                 "access": "vector width and memory access"}
        told = 0
        for link, name in self.keys.items():
            rounds = self.database.execute(
                "SELECT number, date, diagnosis, change, choice, before, after, baseline, result,"
                " kind, bottleneck, predicted, tried, kept FROM rounds WHERE key = ? ORDER BY id",
                (name[0],)).fetchall()
            stories = list(self.card(link).all("ol", "story"))
            self.assertEqual(len(stories), bool(rounds))
            items = list(stories[0].all("li")) if stories else []
            self.assertEqual(len(items), len(rounds))
            for item, (number, date, diagnosis, change, choice, before, after, baseline, result,
                       kind, bottleneck, predicted, tried, kept) in zip(items, rounds):
                text = item.text()
                told += 1
                with self.subTest(name=name, text=text):
                    self.assertTrue(text.startswith(f"Round {number}"))
                    for words in (date, change.split(": ")[-1], choice):
                        self.assertIn(report_pages.printed(words), text)
                    self.assertIn(report_pages.printed(diagnosis).split(": ")[-1], text)
                    if result != "kept" or not kind:
                        self.assertIn(report_pages.printed(result), text)
                    for words, seconds in (("Predicted at best ", predicted), (", from ", before),
                                           ("eached ", after), ("the baseline took ", baseline)):
                        known = seconds and 0 < seconds < math.inf and after
                        self.assertEqual(words in text, bool(known))
                        if known:
                            self.assertIn(words + self.printed_seconds(seconds), text)
                    self.assertEqual(f" {tried} candidate" in text, tried > 0)
                    self.assertEqual(" not kept " in text, bool(kind) and not kept)
                    if bottleneck:
                        self.assertIn(f"Limited by {names.get(bottleneck, bottleneck)}", text)
                    if kind:
                        self.assertIn(f"Made {change}." if kind == "search" else
                                      f"Changed {names.get(kind, kind)}", text)
        self.assertGreater(told, 80)

    def ratio(self, link):
        """The baseline's time over the kernel's, as the card has it."""
        permille = self.card(link).attributes.get("data-permille")
        return int(permille) / 1000 if permille else None

    def test_speed_up_by_shape(self):
        groups = {}
        for link, (_, op, dtypes, _, device) in self.keys.items():
            if self.ratio(link):
                groups.setdefault((op, dtypes, device), []).append(link)
        groups = {name: links for name, links in groups.items() if len(links) > 1}
        self.assertGreater(len(groups), 5)
        rows = list(self.page.one("figure", "shapes").all("li"))[:-1]
        self.assertEqual(len(rows), len(groups))
        for row, (name, links) in zip(rows, groups.items()):
            ratios = [self.ratio(link) for link in links]
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            with self.subTest(name=name):
                self.assertTrue(row.text().startswith(f"{name[0]} {name[1]}, {name[2]}"))
                shown = re.search(r"([\d.]+)× ([\d.]+) to ([\d.]+), (\d+) shapes", row.text())
                for number, expected in zip(shown.groups(), (mean, min(ratios), max(ratios),
                                                             len(ratios))):
                    self.assertAlmostEqual(float(number), expected, delta=0.006 * expected)
                self.assertEqual([link.attributes["href"] for link in row.all("a")], links)
                self.check_strip(row, ratios, mean)

    def check_strip(self, row, ratios, mean):
        """Places are logarithmic: two of them say where all others are."""
        places = []
        for link, ratio in zip(row.all("a"), ratios):
            shown = re.search(r": ([\d.]+) times as fast as the baseline, spread 2%$",
                              link.one("title").text())
            self.assertAlmostEqual(float(shown[1]), ratio, delta=0.006 * ratio)
            whisker = re.match(r"M(\d+) 13H(\d+)", link.one("path", "whisker").attributes["d"])
            dot = link.one("path", "mark").attributes
            places.append(int(re.match(r"M(\d+)", dot["d"])[1]))
            self.assertEqual("far" in dot["class"].split(), ratio < 1)
            self.assertLessEqual(int(whisker[1]), places[-1])
            self.assertGreaterEqual(int(whisker[2]), places[-1])
        by_name = {"base": 1, "step": mean}
        for kind, ratio in by_name.items():
            ratios.append(ratio)
            places.append(int(re.match(r"M(\d+)", row.one("path", kind).attributes["d"])[1]))
        low, high = ratios.index(min(ratios)), ratios.index(max(ratios))
        for ratio, place in zip(ratios, places):
            part = math.log(ratio / ratios[low]) / math.log(ratios[high] / ratios[low])
            self.assertAlmostEqual(place, places[low] + part * (places[high] - places[low]),
                                   delta=1.5)

    def test_problems_on_several_devices(self):
        names = {}
        for link, (_, op, dtypes, sizes, device) in self.keys.items():
            if self.seconds(link):
                names.setdefault(f"{op} {dtypes} {sizes}", {})[device] = link
        names = {name: links for name, links in names.items() if len(links) > 1}
        rows = list(self.page.one("figure", "devices").one("tbody").all("tr"))
        self.assertEqual(len(names), 4)
        self.assertEqual([next(row.all("td")).text() for row in rows], list(names))
        for row, links in zip(rows, names.values()):
            times = []
            for cell in list(row.all("td"))[1:-1]:
                link = links[cell.attributes["data-label"]]
                times.append(self.seconds(link))
                self.assertEqual(cell.one("a").attributes["href"], link)
                share = self.card(link).one(None, "roofline").text()
                self.assertEqual(cell.text(), f"{self.printed_seconds(times[-1])}, {share}")
            shown = float(list(row.all("td"))[-1].text().rstrip("×"))
            self.assertAlmostEqual(shown, times[0] / times[1], delta=0.006 * shown)

    def test_the_text_has_the_same_numbers(self):
        text = self.records.run("report", "--text")
        legends = [item.text() for figure in self.page.all("figure", "rooflines")
                   for item in figure.all("li")][:3]
        for legend in legends:
            self.assertIn(legend, text)
        tiers = [item.text() for item in self.page.one("figure", "fates").all("li")]
        found = [" ".join(line.split()[:-1]) for line in text.splitlines()
                 if re.match(r"^ {2,}\d+ [a-z ]+ [#\u2588-\u258f]+$", line)]
        self.assertEqual(found, tiers)
        shares = re.findall(r"([\d.]+%) of (\d+) pairs in", text)
        captions = [figure.one("figcaption").text()
                    for figure in self.page.all("figure", "predicted")]
        self.assertEqual(shares, [(re.search(r"noise, (\S+) are", caption)[1],
                                   re.search(r"Of (\d+) pairs", caption)[1])
                                  for caption in captions])
        shapes = re.findall(r"([\d.]+)x ([\d.]+) to ([\d.]+), (\d+) shapes", text)
        rows = list(self.page.one("figure", "shapes").all("li"))[:-1]
        self.assertEqual(shapes, [re.search(r"([\d.]+)× ([\d.]+) to ([\d.]+), (\d+) shapes",
                                            row.text()).groups() for row in rows])
        lines = text[text.index("\nProblems: "):].splitlines()
        lines = [line for line in lines if re.search(r"(passed|refused|not judged)$", line)]
        self.assertEqual(len(lines), len(self.cards))
        for line, card in zip(lines, self.page.all("details", "card")):
            summary = next(card.all("summary"))
            share = summary.one(None, "roofline").text().split()[0].replace("–", "-")
            ratio = re.search(r"([\d.]+)×", summary.one(None, "ratio").text())
            expected = (summary.one(None, "time").text().replace("–", "-"),
                        ratio[1] + "x" if ratio else "-", share, card.attributes["data-accuracy"])
            self.assertTrue(" ".join(line.split()).endswith(" ".join(expected)), (line, expected))

    def test_the_text_of_one_op(self):
        text = self.records.run("report", "looped", "--text")
        for words in ("round 1: latency: 0.4 of the bandwidth",
                      "14.0 us, from 30.0 us, predicted at best 12.0 us, baseline 40.0 us: kept",
                      "not kept, not faster beyond the noise",
                      "after the search over everything, round 3: 12.5 us; after the loop: 10.2 us",
                      "the best is number 24 of 24; number 21 was within 2% of it"):
            self.assertIn(words, text)

    def test_the_search_and_the_loop(self):
        sentences = {"searched": 0, "stayed": 0, "ended": 0}
        for link, name in self.keys.items():
            search = end = None
            for number, kind, before, after, kept in self.database.execute(
                    "SELECT number, kind, before, after, kept FROM rounds WHERE key = ?"
                    " ORDER BY id", (name[0],)):
                if number == 0:
                    search = end = None
                if kind == "search":
                    search, end = (number, after if kept else before), None
                    sentences["stayed"] += not kept
                elif search and kept:
                    end = after
            shown = [paragraph.text() for paragraph in self.card(link).all("p", "versus")]
            expected = []
            if search:
                sentences["searched"] += 1
                expected = [f"After the search over everything, round {search[0]}, the best took "
                            f"{self.printed_seconds(search[1])}; no later round was kept."]
            if end:
                sentences["ended"] += 1
                expected = [f"{expected[0].split(';')[0]}; the loop ended at "
                            f"{self.printed_seconds(end)}, {search[1] / end:.2f} times as fast."]
            self.assertEqual(shown, expected)
        self.assertEqual((sentences["stayed"], sentences["ended"]), (1, 1))
        self.assertGreater(sentences["searched"], 40)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
