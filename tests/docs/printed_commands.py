#!/usr/bin/env python3
"""printed_commands.py KERNELGEN BUILD [--slow]: what README.md and docs/*.md print runs as it is printed.

Commands stand in fenced blocks: lines that begin with "$ " (what follows, up to the next one, is their
output), and lines that begin with a program of this tree. A comment <!-- $ COMMAND --> above a block says
that the block is that command's output. Each document's commands run in its order, in a scratch folder
that is laid out as this tree. What varies from run to run is replaced on both sides; "..." in a document
stands for any lines. Commands that are not run have a reason below, and their options are checked; so are
those of commands inside sentences, of the manual page and of --help.

Without --slow, the commands of SLOW are not run; with it, only they are."""

import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM, BUILD = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
ONLY_SLOW = "--slow" in sys.argv
ROOT = Path(__file__).resolve().parents[2]
SLOW = re.compile(r"^tools/siege|^kernelgen build ops/bias_relu.kg --dtype T=f32$")
NOT_RUN = {  # pattern of the command: reason
    r"--override mine.ptx|--candidate mine.cu|--device cuda": "needs a GPU",
    r"^bench/gpu/": "needs a GPU and PyTorch",
    r"^bench/host/|^build/\w+/bench/": "measures for minutes",
    r"^kernelgen build ops ": "builds all shipped ops; tests/cli/build_folder.sh builds a few",
    r"^KERNELGEN_NVRTC=": "needs another NVRTC; compiles for minutes",
    r"^git clone ": "needs the network",
    r"^nvcc |^gpu_cuda_launchers ": "needs nvcc, or a GPU; tests of their own run it",
    r"^kernelgen draft .* (-o|--out) ": "needs a server; tests/draft runs it",
    r"^make ": "builds the tree; the commands of `make demo` are compared instead",
    r"^cc ": "needs an installed library; tests/install runs it",
}
# What a machine may lack: exit status 3 is all right.
MAY_LACK = re.compile(r"--target ptx")
# What makes a search short.
SHORTER = {r"^kernelgen (build|explain|contest) .*softmax": ["--time", "1"]}
LEFT_OUT = "(left out)"
# What differs between runs and machines. Not in `kernelgen asm`, which prints the same everywhere.
VARYING = [
    # Rows of a contest: times decide their order, and who wins.
    (r"^ +\d+  \S+ +[\d.]+ (ns|us|ms|s) .*|^winner .*", LEFT_OUT),
    # Where the first version is at the limit, no others are tried.
    (r"^search .*|^rounds +\d+, until the goal is met$|^candidates, .*|^ +[\d.]+ (ns|us|ms|s)  \S.*|^ {12}\w+: .*", LEFT_OUT),
    (r"\b\d+ cases, \d+ elements, worst error (inf|[\d.]+)", "N cases, N elements, worst error N"),
    (r"\bseed \d{10,}", "seed N"),
    (r"\b[\d.]+ (ns|us|ms|s)\b", "TIME"),
    (r"\b\d+% reached", "N% reached"),
    (r"^report.html written: .*", "report.html written: what is on record"),
    (r"^(problem .*) on .*", r"\1 on DEVICE"),
    (r"^( +\S+\.c +wrong +)case .*", r"\1case N"),
    (r"^(chosen|kernel|generated) .*", lambda found: re.sub(r"=\d+", "=N", found.group())),
    (r"^speed-up +[\d.]+(.*): (met|MISSED).*", r"speed-up N\1: met"),
    (r"^(  \S+ +\S+ +\d/\d +)case \d+ .*", r"\1case N"),
]
MINE_C = """#include <math.h>
#include <stdint.h>
void bias_relu(const float *x, const float *bias, float *y, int64_t P, int64_t D)
{
    for (int64_t p = 0; p < P; p++)
        for (int64_t d = 0; d < D; d++)
            y[p * D + d] = fmaxf(x[p * D + d] + bias[d], 0);
}
"""
ENDS_C = """#include <stdlib.h>
__attribute__((constructor)) static void end(void)
{
    exit(0);
}
""" + MINE_C

UNUSED_KG = "op f(x: f32[N], b: f32[N]) -> (y: f32[N])\n{ y[i] = 2 * x[i] }\n"
DIFFERENCE_KG = "op difference(x: f32[N]) -> (y: f32[N])\n{\n    y[i] = x[i + 1] - x[i]\n}\n"
OLD_KG = """# Scales every element.
op scale(x: T[P, D]) -> (y: T[P, D])
param factor = 2
where T in f16 f32
{
    y[p, d] = x[p, d] * factor
}
goal { speedup 1.0  tune P D = 64 512 }
"""
# Of what documents show failing.
EXPECTED_STATUS = {r"^kernelgen draft": 3, r"check difference\.kg": 2, r"kernelgen diff|check-bundle softmax$": 1}

failures = []


def fail(place, text):
    failures.append(place)
    print(f"{place}: {text}")


class Command:
    def __init__(self, place, text, output=None):
        self.place, self.text, self.output = place, text, output


PRINTED = re.compile(r"(?:[A-Z_]+=\S+ )*(?:kernelgen |make|cc|git|tools/|bench/|build/)")


def command_of(line):
    """A line of a list: the command, without the words behind it that say what it does."""
    name = re.match(r"kernelgen +\w+ +|", line).group()
    return " ".join((name + re.split(r" {2,}", line[len(name):])[0]).split())


def commands_of(path):
    inside, above, current = False, None, None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        place = f"{path.relative_to(ROOT)}:{number}"
        if line.lstrip().startswith("```"):
            inside = not inside
            current = Command(place, above, []) if inside and above else None
            if current:
                yield current
            above = None
        elif not inside:
            note = re.fullmatch(r"<!-- \$ (.*) -->", line)
            above = note.group(1) if note else above if not line else None
        elif line.startswith("$ "):
            current = Command(place, line[2:], [])
            yield current
        elif current:
            current.output.append(line)
        elif PRINTED.match(line):
            for part in line.split(" && "):
                if PRINTED.match(part):
                    yield Command(place, command_of(part))


def lay_out(folder, document):
    """The tree as a document sees it, and the files that it speaks of."""
    shutil.copytree(ROOT / "ops", folder / "ops")
    for name in ("tools", "tests", "examples"):
        (folder / name).symlink_to(ROOT / name)
    for sample in (ROOT / "tests/data/asm").iterdir():
        (folder / sample.name).symlink_to(sample)
    (folder / "build/release").mkdir(parents=True)
    (folder / "build/release/kernelgen").symlink_to(PROGRAM)
    (folder / "matmul.cubin").symlink_to(ROOT / "tests/data/asm/small.sm_90a.cubin")
    for name, shape in (("x", (3, 5)), ("b", (5,))):
        head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
        count = 15 if name == "x" else 5
        (folder / f"{name}.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) +
                                             head.encode() + struct.pack(f"<{count}f", *range(count)))
    (folder / "ends.c").write_text(ENDS_C)
    (folder / "unused.kg").write_text(UNUSED_KG)
    (folder / "difference.kg").write_text(DIFFERENCE_KG)
    (folder / "old.kg").write_text(OLD_KG)
    (folder / "new.kg").write_text(OLD_KG.replace("factor = 2", "factor = 3"))
    if document == "README.md":  # of the first dtype
        run(folder, "kernelgen emit ops/bias_relu.kg --target host --out mine.c".split())
    else:
        (folder / "mine.c").write_text(MINE_C)


def run(folder, words):
    if words[0] == "kernelgen":
        words = [str(PROGRAM), *words[1:]]
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": str(folder),
                   "KERNELGEN_HOME": str(folder / "home"),
                   "CUDA_VISIBLE_DEVICES": ""}  # the documents show the host's outputs
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)


def without_variations(lines, command):
    if command.startswith("kernelgen asm"):
        return lines
    result = []
    for line in lines:
        for pattern, replacement in VARYING:
            line = re.sub(pattern, replacement, line)
        if line != LEFT_OUT:
            result.append(line)
    return result


def shows(document, printed):
    """Is this what was printed, if "..." stands for any lines?"""
    if not document:
        return not printed
    if document[0].strip() == "...":
        return any(shows(document[1:], printed[skip:]) for skip in range(len(printed) + 1))
    return bool(printed) and document[0] == printed[0] and shows(document[1:], printed[1:])


def expected_status(command, refused):
    found = [status for pattern, status in EXPECTED_STATUS.items()
             if re.search(pattern, command.text)]
    return found[0] if found else 1 if refused else 0


def is_slow(command, ran):
    """A goal may be missed on a busy machine."""
    return ran.returncode == 4 and re.match(r"kernelgen (build|bench) ", command.text)


def check_run(command, folder):
    words = shlex.split(command.text)
    for pattern, more in SHORTER.items():
        if re.search(pattern, command.text):
            words += more
    start = time.monotonic()
    ran = run(folder, words)
    print(f"{command.place}: {shlex.join(words)}: {time.monotonic() - start:.1f} s")
    refused = any("REFUSED" in line for line in command.output or ())
    if ran.returncode == 3 and MAY_LACK.search(command.text):
        print(f"{command.place}: NOTE: {ran.stderr.strip()}")
    elif ran.returncode != expected_status(command, refused) and not is_slow(command, ran):
        fail(command.place, f"exit status {ran.returncode}: {command.text}\n{ran.stderr}")
    elif command.output:
        document = without_variations(command.output, command.text)
        printed = without_variations((ran.stdout + ran.stderr).splitlines(), command.text)
        if not shows(document, printed):
            fail(command.place, f"{command.text}\n-- printed in the document\n" +
                 "\n".join(document) + "\n-- printed by the command\n" + "\n".join(printed))


def check_options(place, text):
    """Of a command that is not run: the program is there, and has the options."""
    words = [word for word in text.split() if not re.match(r"[A-Z_]+=", word)]
    program, options = words[0], [word.split("=")[0] for word in words if word.startswith("--")]
    if program == "kernelgen":
        accepted = subprocess.run([str(PROGRAM), words[1], "--help"], capture_output=True, text=True)
        known = accepted.stdout if accepted.returncode == 0 else None
    elif program == "make":
        known = (ROOT / "Makefile").read_text()
        options = [f"{target}:" for target in words[1:] if target.islower()]
    else:
        below = re.sub(r"^build/\w+/", "", program)
        path = ROOT / program if below == program else BUILD / below
        known = path.read_bytes().decode(errors="replace") if path.is_file() else None
    if known is None:
        fail(place, f"there is no {program} {words[1] if program == 'kernelgen' else ''}: {text}")
    for option in options if known is not None else ():
        if not re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", known):
            fail(place, f"{program} has no {option}: {text}")


def check_sentences(path):
    """Commands in backquotes."""
    text = re.sub(r"^ *```.*?^ *```", lambda block: "\n" * block.group().count("\n"),
                  path.read_text(), flags=re.M | re.S)
    for found in re.finditer(r"`((?:[A-Z_]+=\S+ )*(?:kernelgen|make|tools/\w+|bench/[\w/]+\.py|"
                             r"build/\w+/\w+/\w+) [^`]+|kernelgen \w+|make [\w-]+)`", text):
        place = f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, found.start()) + 1}"
        words = " ".join(found.group(1).split())
        if words.startswith("kernelgen COMMAND"):
            continue
        check_options(place, words)


def check_examples():
    """Those of the manual page and of --help: the options, and that the ops exist."""
    examples = [("docs/kernelgen.1", line) for line in
                re.findall(r"^\.Dl (.*)", (ROOT / "docs/kernelgen.1").read_text(), re.M)]
    overview = subprocess.run([str(PROGRAM), "--help"], capture_output=True, text=True).stdout
    for command in re.findall(r"^  ([\w-]+) {2,}\S", overview, re.M):
        text = subprocess.run([str(PROGRAM), command, "--help"], capture_output=True, text=True).stdout
        examples += [(f"{command} --help", command_of(line)) for line in
                     re.findall(r"^  (kernelgen .*)", text, re.M)]
    assert len(examples) > 30, examples
    for place, text in examples:
        check_options(place, text)
        found = re.search(r"\b(ops/\w+\.kg)(?:.* --op (\w+))?", text)
        if found and (not (ROOT / found[1]).is_file() or found[2] and
                      f"op {found[2]}(" not in (ROOT / found[1]).read_text()):
            fail(place, f"there is no such op: {text}")


def check_demo():
    """README.md shows the output of what `make demo` runs last."""
    asked = subprocess.run(["make", "--no-print-directory", "-n", "demo"], cwd=ROOT, capture_output=True, text=True)
    last = asked.stdout.splitlines()[-1].replace("build/release/kernelgen", "kernelgen")
    if f"<!-- $ {last} -->" not in (ROOT / "README.md").read_text():
        fail("README.md", f"does not show the output of `{last}`, which `make demo` runs")


def reason_not_to_run(command):
    return next((reason for pattern, reason in NOT_RUN.items() if re.search(pattern, command.text)), None)


def main():
    count = 0
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            commands = list(commands_of(path))
            if commands:
                lay_out(folder, path.name)
            for command in commands:
                count += 1
                reason = reason_not_to_run(command)
                if reason and not ONLY_SLOW:
                    print(f"{command.place}: not run ({reason}): {command.text}")
                    if not re.match("git |cc |nvcc |gpu_cuda", command.text):
                        check_options(command.place, command.text)
                elif not reason and bool(SLOW.search(command.text)) == ONLY_SLOW:
                    check_run(command, folder)
        if not ONLY_SLOW:
            check_sentences(path)
    check_demo()
    check_examples()
    assert count > 20, "the documents print more commands than were found"
    sys.exit(1 if failures else 0)


main()
