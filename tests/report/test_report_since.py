"""The page beside records of an earlier date: what it marks, compared with the database.

test_report_since.py KERNELGEN WRITE_RECORDS. Needs no browser.
"""

import re
import sqlite3
import sys
import time
import unittest

import report_pages


def printed_seconds(seconds):
    for unit, scale in {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}.items():
        if seconds >= 0.9995 * scale:
            return f"{seconds / scale:#.3g}".rstrip(".") + f" {unit}"
    return "–"


class Since(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.records = report_pages.sample()
        cls.old = report_pages.export(cls.records)
        cls.before = cls.wisdom()
        time.sleep(1.1)  # dates have seconds
        report_pages.write(cls.records.home, "later")
        cls.out = cls.records.home.parent / "pages"
        # Something is slower: status 1.
        cls.said = cls.records.run("report", "--against", str(cls.old), "--out", f"{cls.out}/",
                                   statuses=(1,))
        cls.page = report_pages.read((cls.out / "index.html").read_text(errors="replace"))
        cls.rows = list(cls.page.one("figure", "regressions").one("tbody").all("tr"))

    @classmethod
    def tearDownClass(cls):
        cls.records.folder.cleanup()

    @classmethod
    def query(cls, text, *values):
        database = sqlite3.connect(cls.records.home / "records.db")
        rows = database.execute(text, values).fetchall()
        database.close()
        return rows

    @classmethod
    def wisdom(cls):
        return {(op, sizes, device): (seconds, spread) for op, sizes, device, seconds, spread in
                cls.query("SELECT op, sizes, device, seconds, spread FROM wisdom"
                          " JOIN full_keys ON full_keys.id = wisdom.key")}

    def now(self, op, sizes, device):
        """Seconds, spread and driver of the fastest candidate, as it was measured last, under the
        key with the latest wisdom."""
        key, driver = self.query(
            "SELECT key, driver FROM wisdom JOIN full_keys ON full_keys.id = key WHERE op = ? AND"
            " sizes = ? AND device = ? ORDER BY date DESC, key DESC", op, sizes, device)[0]
        latest = {}
        for choice, kind, seconds, spread, abandoned in self.query(
                "SELECT choice, kind, median, spread, abandoned FROM outcomes"
                " JOIN candidates ON candidates.id = candidate WHERE key = ? ORDER BY outcomes.id",
                key):
            latest[choice] = (seconds, spread, kind, abandoned)
        seconds, spread = min(row[:2] for row in latest.values()
                              if row[2] == "measured" and not row[3])
        return seconds, spread, driver

    def test_what_changed(self):
        # Of the first one, what was the best is wrong now.
        expected = [("▼ slower", "refused_later", "P=4096 D=1000"),
                    ("▼ slower", "shared_copy", "N=4096"), ("▼ slower", "shared_copy", "N=16384"),
                    ("▲ faster", "shared_copy", "N=8192")]
        self.assertEqual(len(self.rows), len(expected))
        for row, (state, op, sizes) in zip(self.rows, expected):
            cells = [cell.text() for cell in row.all("td")]
            with self.subTest(cells=cells):
                self.assertEqual(cells[:2], [state, f"{op} T=f16 {sizes} Some CPU"])
                seconds, spread = self.before[op, sizes, "Some CPU"]
                after, spread_after, driver = self.now(op, sizes, "Some CPU")
                noise = max(spread + spread_after, 0.02 * seconds)
                self.assertEqual(cells[2:5], [printed_seconds(t) for t in (seconds, after, noise)])
                self.assertEqual(float(cells[5].split()[0]), float(f"{after / seconds:.3g}"))
                self.assertEqual("driver: 6.1, now 6.2 <b>" in cells[5], driver != "6.1")
                self.assertEqual(state == "▼ slower", after > seconds)

    def test_cards_are_marked(self):
        marked = {}
        for card in self.page.all("details", "card"):
            state = card.attributes.get("data-since")
            marks = list(card.all("small", "since"))
            self.assertEqual(len(marks), state in ("slower", "faster"))
            marked.setdefault(state, []).append((card, marks))
        self.assertEqual([card.attributes["data-sizes"] for card, _ in marked["slower"]],
                         ["P=4096 D=1000", "N=4096", "N=16384"])
        self.assertEqual([card.attributes["data-sizes"] for card, _ in marked["faster"]],
                         ["N=8192"])
        card, _ = marked["slower"][2]  # the card of the later driver, not of the earlier one
        self.assertIn("driver 6.2", card.parent.parent.attributes["data-device"])
        card, marks = marked["slower"][1]
        self.assertRegex(marks[0].text(), r"^▼ slower than before: 37.2 us, now 55.8 us$")
        links = [row.one("a").attributes["href"] for row in self.rows]
        self.assertEqual(links, ["#" + card.attributes["id"]
                                 for card, _ in marked["slower"] + marked["faster"]])
        self.assertGreater(len(marked["same"]), 30)

    def test_the_counts_are_those_of_the_text(self):
        text = self.records.run("report", "--against", str(self.old), statuses=(1,))
        counts = text.splitlines()[-1]
        self.assertIn(counts, self.said)
        self.assertIn(counts, self.page.one("figure", "regressions").text())
        slower = re.search(r"slower  shared_copy T=f16 N=4096 .*: ([\d.]+) us, now ([\d.]+) us", text)
        self.assertEqual((slower[1], slower[2]), ("37.20", "55.80"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
