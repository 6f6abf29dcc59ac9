"""Runs kernels of PTX on made-up data, one thread, to count how often their loops really go round.

Integers and predicates are computed; loads and everything else give random values. That is enough
for loops whose trips do not depend on data, and only those are looked at.
"""

import random
import re

MOST_STEPS = 10000
LINE = re.compile(r"^\s*(?:@(!?)([%\w$]+)\s+)?([a-z][\w.:]*)\s*([^;]*);\s*$")
LABEL = re.compile(r"^\s*([\w$]+):\s*$")
COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
           "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}


def statements(text):
    """By line: ("label", name), (negated, predicate, mnemonic, operands), or None."""
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.S)
    found = []
    for line in re.sub(r"//[^\n]*", "", text).split("\n"):
        label, match = LABEL.match(line), LINE.match(line)
        if label:
            found.append(("label", label.group(1)))
        elif match:
            operands = [o.strip() for o in match.group(4).split(",")]
            found.append((match.group(1), match.group(2), match.group(3), operands))
        else:
            found.append(None)
    return found


class Thread:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.registers = {}

    def value(self, operand):
        if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)U?", operand):
            return int(operand.rstrip("U"), 0)
        if operand not in self.registers:
            self.registers[operand] = self.random.getrandbits(16)
        return self.registers[operand]

    def typed(self, operand, kind):
        bits = int(kind[1:])
        value = self.value(operand) & ((1 << bits) - 1)
        return value - (1 << bits) if kind[0] == "s" and value >> (bits - 1) else value

    def compute(self, parts, operands):
        kinds = [p for p in parts if re.fullmatch(r"[sub](8|16|32|64)", p)]
        if not kinds or any(o[:1] in "{[" for o in operands):
            return None
        kind = kinds[-1] if parts[0] == "cvt" else kinds[0]
        if parts[0] in ("setp", "mov", "cvt", "selp") and len(operands) < 2:
            return None
        if parts[0] == "setp":
            if len(operands) != 3:
                return None
            sign = next((COMPARE[p] for p in parts if p in COMPARE), "==")
            a, b = (self.typed(o, kind) for o in operands[1:])
            return {"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b,
                    ">=": a >= b}[sign]
        if parts[0] == "selp":
            return self.value(operands[1 if self.value(operands[3]) & 1 else 2])
        if any(p in ("f16", "f32", "f64", "bf16", "hi", "cc") for p in parts):
            return None
        values = [self.typed(o, kind) for o in operands[1:]]
        return self.arithmetic(parts[0], values)

    @staticmethod
    def arithmetic(name, values):
        if name in ("mov", "cvt") and len(values) == 1:
            return values[0]
        if name == "mad" and len(values) == 3:
            return values[0] * values[1] + values[2]
        if name == "not" and len(values) == 1:
            return ~values[0]
        if len(values) != 2:
            return None
        a, b = values
        simple = {"add": a + b, "sub": a - b, "mul": a * b, "and": a & b, "or": a | b, "xor": a ^ b,
                  "min": min(a, b), "max": max(a, b)}
        if name in ("shl", "shr"):
            return a << min(b & 0xFFFFFFFF, 64) if name == "shl" else a >> min(b & 0xFFFFFFFF, 64)
        return simple.get(name)

    def step(self, mnemonic, operands):
        parts = mnemonic.split(".")
        if parts[0] in ("st", "bar", "red", "call", "barrier", "fence", "membar"):
            return
        result = self.compute(parts, operands)
        if result is None:
            result = self.random.getrandbits(16)
        for name in re.findall(r"[%\w$]+", operands[0]) if operands[0][:1] != "[" else []:
            self.registers[name] = result
        if parts[0] == "setp":
            self.registers[operands[0]] = int(result)


def run(lines, begin, end, seed, spans):
    """Executions of each span's first line per time it was entered from outside and left again."""
    thread, labels = Thread(seed), {}
    for at in range(begin, end):
        if lines[at] and lines[at][0] == "label":
            labels[lines[at][1]] = at
    at, rounds, runs = begin, {}, {span: [] for span in spans}
    for _ in range(MOST_STEPS):
        while at < end and (lines[at] is None or lines[at][0] == "label"):
            at += 1
        if at >= end:
            break
        for span in spans:
            if not span[0] <= at <= span[1]:
                if span in rounds:
                    runs[span].append(rounds.pop(span))
            elif at == span[0]:
                rounds[span] = rounds.get(span, 0) + 1
        negated, predicate, mnemonic, operands = lines[at]
        at += 1
        if predicate and bool(thread.value(predicate) & 1) == bool(negated):
            continue
        if mnemonic.startswith("bra"):
            if operands[-1] not in labels:
                return runs
            at = labels[operands[-1]]
        elif mnemonic.split(".")[0] in ("ret", "exit", "brx"):
            break
        else:
            thread.step(mnemonic, operands)
    return runs


def extents(text):
    """First and last line of every .entry, by name."""
    lines, found, last = text.split("\n"), {}, None
    for at, line in enumerate(lines):
        match = re.search(r"\.(?:entry|func)\b(?:.*\.entry)?\s*([\w$]*)", line)
        if match:
            if last:
                found[last] = (found[last], at)
            last = match.group(1)
            found[last] = at
    if last:
        found[last] = (found[last], len(lines))
    return found


def compare_trips(lines, places, kernel):
    """Pairs of what is said and what happened, for loops of constant trips that were run."""
    spans = {}
    for loop in kernel["loops"]:
        first, last = loop["first"] - 1, loop["last"] - 1
        if loop["kind"] == 1 and first > 0 and last < len(lines) and lines[first] and lines[last]:
            spans[first, last] = loop["trips"]
    if not spans:
        return []
    begin, end = places[kernel["name"]]
    pairs = []
    for seed in range(2):
        runs = run(lines, begin, end, seed, list(spans))
        for span, trips in spans.items():
            tested_below = lines[span[1]][1] is not None
            for count in set(runs[span]):
                pairs.append((trips, count if tested_below else count - 1))
    return pairs
