"""Every number in the log is a value of a row of the records, or the ratio of two.

test_log_numbers.py KERNELGEN WRITE_RECORDS. The numbers of a round's story must come from that round's
row, those of a table's line from the rows of its problem. That the tracing is strict is a test, too:
numbers that differ in their last digit must not be found.
"""

import math
import re
import sqlite3
import sys
import tempfile
import pathlib
import unittest

import report_pages

LATEST_BUILDS = 5
MISSED = 4  # exit status: slower than the goal
NUMBER = re.compile(r"(\d+(?:\.\d+)?(?:e[+-]\d+)?)(%| (?:ns|us|ms|s)(?![a-z]))?")
OPS = {
    "scale": "op scale(x: f32[P, D], s: f32[P]) -> (y: f32[P, D])\n{ y[p, d] = x[p, d] * s[p] }\n"
             "goal { speedup 73.5\nrounds 4\nverify P D = 3 5\ntune P D = 300 517 }\n",
    "sums": "op sums(x: f32[P, D]) -> (y: f32[P])\n{ y[p] = sum(d) x[p, d] }\n"
            "goal { speedup 0.51\nrounds 2\nverify P D = 3 5\ntune P D = 129 1031 }\n",
}


def known(value):
    return value is not None and math.isfinite(value) and value > 0


def seconds(value):
    value *= 1e9
    for unit in ("ns", "us", "ms", "s"):
        if value < 999.5 or unit == "s":
            break
        value /= 1e3
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}"


def ratio(over, under):
    value = over / under
    if value < 0.0995:
        return f"{value:.2g}"
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}"


def share(part, whole):
    value = 100 * part / whole
    return f"{value:.1f}%" if value < 9.95 else f"{value:.0f}%"


def printable(text):
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "?", text)


def one_line(text):
    return printable(re.sub(r"[\n\r]", " ", text)).replace("\t", "?")


def words(text):
    """As the log escapes what stands in a record."""
    return one_line(re.sub(r"[|`]|(?<=\])\(|<(?=[A-Za-z/!?])|\\(?=[!-/:-@\[-`{-~])", r"\\\g<0>", text))


class Allowed:
    """The numbers that a part of the log may show."""

    def __init__(self):
        self.found = set()

    def times(self, *values):
        self.found.update(seconds(value) for value in values if known(value))

    def ratios(self, *pairs):
        self.found.update(ratio(*pair) for pair in pairs if known(pair[0]) and known(pair[1]))

    def shares(self, parts, wholes):
        self.found.update(share(p, w) for p in parts for w in wholes if known(p) and known(w))

    def numbers(self, *values):
        self.found.update(str(value) for value in values)


class Problem:
    """The rows of one key."""

    def __init__(self, database, key):
        database.row_factory = sqlite3.Row
        one = lambda sql: database.execute(sql, (key,)).fetchone()
        many = lambda sql: [dict(row) for row in database.execute(sql, (key,))]
        self.key = dict(one("SELECT * FROM full_keys WHERE id = ?"))
        self.rounds = many("SELECT * FROM rounds WHERE key = ? ORDER BY id")
        self.outcomes = many("SELECT outcomes.*, choice FROM outcomes JOIN candidates ON "
                             "candidates.id = candidate WHERE key = ? ORDER BY outcomes.id")
        self.wisdom = many("SELECT * FROM wisdom WHERE key = ?")
        self.cost = (many("SELECT memory_seconds, compute_seconds FROM costs WHERE key = ?") or [{}])[0]
        text = one("SELECT text FROM texts JOIN ops ON ops.id = texts.op JOIN full_keys ON "
                   "ops.name = full_keys.op AND ops.definition = full_keys.definition "
                   "WHERE full_keys.id = ?")
        self.goal = re.findall(r"speedup ([\d.]+)", text[0]) if text else []
        self.costs = [self.cost.get("memory_seconds"), self.cost.get("compute_seconds")]
        self.roofs = self.costs + [row["roofline"] for row in self.rounds]

    def story(self):
        """The rounds that are told, by build."""
        builds = []
        for row in self.rounds:
            begins = row["number"] == 0 and not known(row["before"]) and known(row["after"])
            if begins or (row["number"] > 0 and not builds):
                builds.append([])
            if begins or row["number"] > 0:
                builds[-1].append(row)
        return [row for build in builds[-LATEST_BUILDS:] for row in build]

    def without_head(self, section):
        """The section with "TEXT" for what the key says in words, in the lines that say it."""
        head, rest = section.split("\n### ", 1)
        texts = [value for value in self.key.values() if isinstance(value, str)]
        for text in sorted(texts + [self.key["definition"][:8]], key=len, reverse=True):
            head = head.replace(words(text), "TEXT") if text else head
        return f"{head}\n### {rest}"

    def without_texts(self, section):
        for text in self.texts():
            section = re.sub(rf"(?<![\w.]){re.escape(text)}(?!\w|\.\d)" if re.match(r"\w", text) and
                             re.match(r"\w", text[-1]) else re.escape(text), "TEXT", section)
        return section

    def texts(self):
        rows = self.rounds + self.outcomes + self.wisdom
        texts = {value for row in rows for value in row.values() if isinstance(value, str)}
        for row in self.outcomes:
            if row["override"]:
                texts.add(f"{row['choice']} (overridden by {row['override']})")
        shown = {form(text) for text in texts for form in (words, one_line)}
        # The evidence and the change are shown without the name that was said before.
        shown |= {words(text.split(": ", 1)[1]) for text in texts if ": " in text}
        return sorted((t for t in shown if re.search(r"\d", t)), key=len, reverse=True)

    def of_round(self, row):
        allowed = Allowed()
        before, after, baseline = row["before"], row["after"], row["baseline"]
        allowed.times(before, after, row["predicted"])
        allowed.ratios((before, after), (baseline, after), (baseline, before))
        allowed.shares(self.costs + [self.rounds[-1]["roofline"]], (before, after))
        allowed.shares({row["roofline"] for row in self.rounds}, (before, after))
        allowed.numbers(row["number"], row["tried"])
        return allowed.found

    def of_the_rest(self):
        allowed = Allowed()
        afters = [(row["after"], row["baseline"]) for row in self.rounds]
        bests = afters + [(row["seconds"], None) for row in self.wisdom]
        bests += [(row["median"], None) for row in self.outcomes]
        for row in self.rounds:
            allowed.times(row["before"], row["after"], row["baseline"])
            allowed.numbers(row["number"])
        for row in self.outcomes:
            allowed.times(row["median"], row["spread"], row["bound"])
            allowed.numbers(row["samples"])
        allowed.times(*(row["seconds"] for row in self.wisdom), *self.costs)
        firsts = [row["after"] for row in self.rounds
                  if row["number"] == 0 and not known(row["before"]) and known(row["after"])]
        allowed.ratios(*((first, best) for first in firsts[-1:] for best, _ in bests))
        allowed.ratios(*((baseline, after) for after, baseline in afters))
        allowed.shares(self.roofs, [best for best, _ in bests])
        kinds = [row["kind"] for row in self.outcomes if not row["final"]]
        allowed.numbers(self.key["units"], *self.goal,
                        *(kinds.count(kind) for kind in kinds))
        return allowed.found


def numbers(text):
    """Each with its unit: "12.5 us", "43%", "1.60"."""
    return [match.group(0) for match in NUMBER.finditer(text)]


def neighbours(number):
    """It with another last digit."""
    digits, unit = NUMBER.fullmatch(number).groups()
    last = max(i for i, c in enumerate(digits.split("e")[0]) if c.isdigit())
    for step in (1, 9):
        yield digits[:last] + str((int(digits[last]) + step) % 10) + digits[last + 1:] + (unit or "")


class Log(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.samples = report_pages.sample()
        cls.built = report_pages.Records(sys.argv[1])
        with tempfile.TemporaryDirectory() as folder:
            for name, text in OPS.items():
                path = pathlib.Path(folder) / f"{name}.kg"
                path.write_text(text)
                for _ in range(2):
                    cls.built.run("build", str(path), "--device", "host", "--rigor", "measure",
                                  "--time", "4", statuses=(0, MISSED))

    @classmethod
    def tearDownClass(cls):
        cls.samples.folder.cleanup()
        cls.built.folder.cleanup()

    def parts(self, records, language):
        """(text without what records say in words, the numbers it may have), of all problems."""
        log = records.run("log", "--lang", language)
        database = sqlite3.connect(records.home / "records.db")
        keys = [row[0] for row in database.execute(
            "SELECT id FROM full_keys WHERE id IN (SELECT key FROM outcomes) OR id IN "
            "(SELECT key FROM rounds) OR id IN (SELECT key FROM wisdom) ORDER BY op, id")]
        sections = re.split(r"^## ", log, flags=re.M)[1:]
        self.assertEqual(len(sections), len(keys))
        for key, section in zip(keys, sections):
            yield from self.parts_of(Problem(database, key), section)
        database.close()

    def parts_of(self, problem, section):
        fences = iter([row for row in problem.story() if row["difference"]])

        def check_fence(match):
            self.assertTrue(printable(next(fences)["difference"]).startswith(match.group(2)))
            return "diff"
        section = re.sub(r"^(`{3,})diff\n(.*?)^\1$", check_fence, section, flags=re.M | re.S)
        section = problem.without_texts(problem.without_head(section))
        stories = re.findall(r"^#### .*?(?=^#)", section, flags=re.M | re.S)
        rows = problem.story()
        self.assertEqual(len(stories), len(rows), section)
        for story, row in zip(stories, rows):
            yield story, problem.of_round(row)
            section = section.replace(story, "", 1)
        yield section, problem.of_the_rest()

    def check(self, records, least):
        for language in ("en", "zh"):
            count = 0
            for text, allowed in self.parts(records, language):
                for number in numbers(text):
                    self.assertIn(number, allowed, f"in no row: {number}\n{text}\n{sorted(allowed)}")
                    count += 1
            self.assertGreater(count, least)

    def test_made_up_records(self):
        self.check(self.samples, 2000)

    def test_builds(self):
        self.check(self.built, 60)

    def test_the_tracing_is_strict(self):
        strayed = tried = 0
        for text, allowed in self.parts(self.samples, "en"):
            for number in numbers(text):
                tried += 2
                strayed += sum(other in allowed for other in neighbours(number))
        self.assertLess(strayed / tried, 0.1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
