"""Does a planted fault show on this op at all? Asked of faults that the gate passed.

The kernel with the fault and the right one run on the same inputs, of many classes, at the sizes of
the goal's rows, at the problem's, and at small ones that the definition allows."""

import itertools
import os
import random
import subprocess

HARMLESS, TOLERATED, SHOWS = "harmless here", "within tolerance", "shows"
SMALL_ROWS = 6
ROUNDS = 30  # of inputs for a row of sizes
LARGE_ROUNDS = 2
SECONDS = 300


def small_rows(subject, seed):
    """A few rows of small sizes that the definition allows."""
    draw = random.Random(seed)
    rows = []
    for _ in range(4 * SMALL_ROWS):
        row = {name: draw.choice((1, 2, 3, 4, 5, 8, 13, 16, 24)) for name in subject.size_names}
        if len(rows) < SMALL_ROWS and subject.allows(row):
            rows.append(row)
    return rows


def numbers(subject, rows):
    return list(itertools.chain.from_iterable(
        [str(row[name]) for name in subject.size_names] for row in rows))


def shows(kernel, fault, folder):
    """(HARMLESS, TOLERATED or SHOWS, how)."""
    subject = kernel.subject
    source = kernel.source(fault, os.path.join(folder, "notes"))
    arguments = ", ".join(["(void *)t[%d].data" % at for at in range(len(subject.tensors))]
                          + ["size[%d]" % at for at in range(len(subject.size_names))])
    with open(os.path.join(os.path.dirname(__file__), "differ.c"), encoding="utf-8") as file:
        text = (source + "\nstatic int siege_planted(struct siege_tensor *t, const int64_t *size)\n"
                f"{{\n    (void)size;\n    return {kernel.name}({arguments});\n}}\n" + file.read())
    path, program = os.path.join(folder, "differ.c"), os.path.join(folder, "differ")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    done = subprocess.run([os.environ.get("CC", "cc"), "-std=gnu17", "-O1", path, "-o", program,
                           "-lm", "-lpthread"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return SHOWS, f"the comparison does not compile: {done.stderr.splitlines()[0]}"
    rows = [row for row in subject.op.rows.get("verify", []) if len(row) == len(subject.size_names)
            and subject.elements(row) <= 4_000_000]
    return run(program, ROUNDS, numbers(subject, rows + small_rows(subject, fault.name)),
               LARGE_ROUNDS, numbers(subject, [kernel.sizes]))


def run(program, rounds, usual, large_rounds, large):
    found = []
    for count, sizes in ((rounds, usual), (large_rounds, large)):
        try:
            done = subprocess.run([program, str(count), *sizes], capture_output=True, text=True,
                                  check=False, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return SHOWS, "the comparison takes too long"
        words = done.stdout.split()
        if done.returncode != 0 or not words:
            return SHOWS, f"the comparison ended with {done.returncode}"
        if words[0] == "differs":
            return SHOWS, ""
        found += [float(words[1])] if words[0] == "tolerated" else []
    if found:
        return TOLERATED, f"at most {max(found):.2g} of the tolerance"
    return HARMLESS, "no input was found for which results differ"
