"""What the page of the report says, compared with the records themselves and with `kernelgen log`.

test_report_page.py KERNELGEN WRITE_RECORDS. Needs no browser.
"""

import base64
import hashlib
import math
import re
import sqlite3
import sys
import unittest

import report_pages

KEY = "op, dtypes, sizes, device"
REFUSED_OPS = {"refused", "refused_later"}


def is_time(value):
    return value is not None and math.isfinite(value) and value > 0


class Expected:
    """What the page must say of one key, worked out from the rows of the database."""

    def __init__(self, database, key):
        self.key = key
        self.op, self.dtypes, self.sizes, self.device = database.execute(
            f"SELECT {KEY} FROM full_keys WHERE id = ?", (key,)).fetchone()
        outcomes = database.execute(
            "SELECT kind, choice, median, abandoned, seed, cases, worst_relative, outcomes.id FROM "
            "outcomes JOIN candidates ON candidates.id = candidate WHERE key = ? AND override = '' "
            "ORDER BY outcomes.id", (key,)).fetchall()
        latest = {row[1]: row for row in outcomes}
        rounds = database.execute("SELECT choice, after, baseline FROM rounds WHERE key = ? "
                                  "ORDER BY id", (key,)).fetchall()
        least = database.execute("SELECT roofline FROM rounds WHERE key = ? AND roofline > 0 AND "
                                 "roofline < 1e9 ORDER BY id DESC", (key,)).fetchone()
        least = least or database.execute("SELECT max(memory_seconds, compute_seconds) FROM costs "
                                          "WHERE key = ?", (key,)).fetchone()
        self.roofline = least[0] if least else None
        wisdom = database.execute("SELECT choice, seconds, seed FROM wisdom WHERE key = ?",
                                  (key,)).fetchone()
        self.choice, self.seconds, seed = wisdom or (None, None, None)
        measured = sorted((row[2], row[1]) for row in latest.values()
                          if row[0] == "measured" and not row[3])
        if not wisdom and measured:
            self.seconds, self.choice = measured[0]
        raced = [row for row in rounds if is_time(row[1])]
        if not self.choice and raced:
            self.choice, self.seconds, _ = min(raced, key=lambda row: row[1])
        self.ratio = None
        for choice, after, baseline in rounds:
            if choice == self.choice and is_time(after) and is_time(baseline):
                self.seconds, self.ratio = after, baseline / after
        wrong = [row for row in outcomes if row[0] == "wrong" and latest[row[1]] == row]
        judged = latest.get(self.choice) if self.choice else wrong[0] if wrong else None
        self.refused = bool(judged) and judged[0] == "wrong"
        if self.refused:
            self.seconds = self.ratio = None
        self.seed = (judged[4] if judged else seed) or 0
        self.cases, self.worst = (judged[5], judged[6]) if judged else (None, None)


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.records = report_pages.sample()
        cls.text = cls.records.report()
        cls.page = report_pages.read(cls.text)
        cls.cards = list(cls.page.all("details", "card"))
        database = sqlite3.connect(cls.records.home / "records.db")
        keys = [row[0] for row in database.execute("SELECT id FROM full_keys ORDER BY op, id")]
        cls.expected = {}
        for expected in (Expected(database, key) for key in keys):
            name = (report_pages.printed(expected.op), report_pages.printed(expected.dtypes), report_pages.printed(expected.sizes),
                    report_pages.printed(expected.device))
            assert name not in cls.expected
            cls.expected[name] = expected
        database.close()

    @classmethod
    def tearDownClass(cls):
        cls.records.folder.cleanup()

    def of(self, card):
        section = card.parent.parent
        data = card.attributes
        return self.expected[tuple(" ".join(text.split()) for text in (
            data["data-name"], data["data-dtype"], data["data-sizes"], section.one("h2").text()))]

    def test_every_problem_has_a_card(self):
        self.assertGreater(len(self.expected), 40)
        found = [self.of(card).key for card in self.cards]
        self.assertEqual(sorted(found), sorted(e.key for e in self.expected.values()))

    def test_time_and_ratio_are_of_one_measurement(self):
        for card in self.cards:
            expected, data = self.of(card), card.attributes
            with self.subTest(op=expected.op):
                if expected.seconds is None:
                    self.assertNotIn("data-picoseconds", data)
                else:
                    self.assertEqual(int(data["data-picoseconds"]), round(expected.seconds * 1e12))
                if expected.ratio is None:
                    self.assertNotIn("data-permille", data)
                else:
                    self.assertAlmostEqual(int(data["data-permille"]), expected.ratio * 1000,
                                           delta=0.51)

    def test_share_of_the_roofline(self):
        for card in self.cards:
            expected = self.of(card)
            line = next(card.all("summary")).one(None, "roofline").text()
            if expected.seconds is None or expected.roofline is None:
                self.assertEqual(line, "–")
            else:
                shown = int(line.split("%")[0])
                self.assertAlmostEqual(shown, 100 * expected.roofline / expected.seconds,
                                       delta=0.51)

    def test_what_is_read_is_what_is_sorted(self):
        units = {"s": 1e12, "ms": 1e9, "us": 1e6, "ns": 1e3}
        for card in self.cards:
            line = next(card.all("summary"))
            time, ratio = line.one(None, "time").text(), line.one(None, "ratio").text()
            with self.subTest(line=line.text()):
                picoseconds = card.attributes.get("data-picoseconds")
                if picoseconds is None:
                    self.assertEqual(time, "–")
                else:
                    number, unit = time.split()
                    self.assertLess(abs(float(number) * units[unit] / int(picoseconds) - 1), 0.006)
                    self.assertLess(float(number), 1000)
                permille = card.attributes.get("data-permille")
                shown = re.search(r"([\d.]+)× (.*)", ratio)
                if permille is None:
                    self.assertEqual(ratio, "not compared")
                else:
                    self.assertLess(abs(float(shown[1]) * 1000 / int(permille) - 1), 0.006)
                    self.assertEqual(shown[2], card.attributes["data-result"])

    def test_losses_are_told_by_word_sign_and_colour(self):
        losses = 0
        for card in self.cards:
            permille = int(card.attributes.get("data-permille", "1000"))
            ratio = next(card.all("summary")).one(None, "ratio")
            is_loss = permille < 990
            losses += is_loss
            self.assertEqual("slower" in ratio.text(), is_loss)
            self.assertEqual("▼" in ratio.text(), is_loss)
            self.assertEqual(bool(list(ratio.all(None, "loss"))), is_loss)
        self.assertGreater(losses, 2)
        tally = self.page.one("ul", "tally").text()
        self.assertIn(f"{losses} slower than the baseline", tally)
        self.assertIn(f"{len(REFUSED_OPS)} refused", tally)

    def test_accuracy(self):
        for card in self.cards:
            expected = self.of(card)
            text = card.text()
            with self.subTest(op=expected.op):
                accuracy = card.attributes["data-accuracy"]
                self.assertEqual(accuracy == "refused", expected.refused)
                self.assertEqual(expected.refused, expected.op in REFUSED_OPS)
                self.assertEqual(accuracy == "passed", expected.seconds is not None)
                if expected.cases is not None:
                    self.assertIn(f"{expected.cases} cases, worst error {expected.worst:.2f}", text)
                seed = expected.seed % 2**64
                self.assertIn(f"ccuracy seed {seed}," if expected.cases else
                              f"ccuracy seed {seed};" if seed else "No accuracy seed", text)

    def test_the_log_has_the_same_times(self):
        for card in self.cards:
            expected = self.of(card)
            if not re.fullmatch(r"\w+", expected.op) or expected.seconds is None:
                continue
            time = next(card.all("summary")).one(None, "time").text()
            log = self.records.run("log", expected.op)
            sections = [part for part in log.split("\n## ")[1:]
                        if part.splitlines()[0].endswith(expected.sizes)
                        and expected.device in part.splitlines()[2]]
            self.assertEqual(len(sections), 1)
            if expected.op != "only_wisdom":  # the log has no wisdom
                self.assertIn(f"| {time} |", sections[0])

    def test_devices_are_named_once(self):
        headings = [part.one("h2").text() for part in self.page.all("section")]
        self.assertEqual(len(headings), len(set(headings)))
        for card in self.cards:
            for device in headings:
                self.assertNotIn(device, card.text())

    def test_nothing_is_loaded_and_one_script_runs(self):
        script = self.page.one("script")
        digest = hashlib.sha256("".join(script.children).encode()).digest()
        policy = next(e for e in self.page.all("meta")
                      if e.attributes.get("http-equiv") == "Content-Security-Policy")
        self.assertEqual(policy.attributes["content"],
                         "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-"
                         f"{base64.b64encode(digest).decode()}'")
        for element in self.page.all():
            for name, value in element.attributes.items():
                self.assertFalse(name.startswith("on"), f"{element.name} {name}={value}")
                self.assertNotIn(name, ("src", "action"))
                if name == "href":
                    self.assertRegex(value, r"^#p\d+$")
        self.assertNotRegex(self.text, r"https?://|url\(|@import")

    def test_the_form_waits_for_the_script(self):
        self.assertIn("hidden", self.page.one("form").attributes)

    def test_hostile_text_is_text(self):
        card = next(c for c in self.cards if "hostile" in c.attributes["data-name"])
        self.assertIn("<script>alert('1')</script>&\"\ufffd", card.one("h3").text())
        self.assertIn("</details></section>", card.one("h3").text())

    def test_ids_are_unique_and_numbers_are_numbers(self):
        ids = [e.attributes["id"] for e in self.page.all() if "id" in e.attributes]
        self.assertEqual(len(ids), len(set(ids)))
        self.assertEqual(len(ids), len(self.cards))
        for link in self.page.all("a"):
            self.assertIn(link.attributes["href"][1:], ids)
        self.assertNotRegex(self.page.one("body").text().replace("KernelGen", ""), r"\b(nan|inf)\b")

    def test_one_op(self):
        page = report_pages.read(self.records.report("refused"))
        card = page.one("details", "card")
        self.assertIn("open", card.attributes)
        self.assertIn("y[0,7]: 1.5 where 1 <= 1.001 is right", card.one("p", "why").text())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
