#!/usr/bin/env python3
"""Compares the throughput bound of innermost host loops with llvm-mca's.

    tools/mca_evidence.py [SOURCE.c]...     (default: loops of its own)

Compiles for AVX2 and, where the core has it, AVX-512; takes every loop of one block that
build/dev/tests/host_loops finds; and gives its instructions to llvm-mca. Ours is a bound from the
widths of a core (src/asm/x86_cores.c) and should not lie above llvm-mca's block throughput, which
knows the ports too. llvm-mca sees no branches, so a trip is taken for one cycle at least, and it
gives moves between registers no slot, which cores do. Exit status 3: no llvm-mca or no compiler.
"""

import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORES = [("zen3", "znver3", ["-mavx2", "-mfma"]),
         ("skylake-x", "skylake-avx512", ["-mavx2", "-mfma"]),
         ("skylake-x", "skylake-avx512", ["-march=skylake-avx512", "-mprefer-vector-width=512"])]
ROUNDING = 0.05  # llvm-mca prints one digit
SOURCE = """
#include <math.h>
#define LOOP for (long i = 0; i < n; i++)
#define A float *restrict
float dot(const A x, const A y, long n) { float s = 0; LOOP s += x[i] * y[i]; return s; }
double dot64(const double *x, const double *y, long n) { double s = 0; LOOP s += x[i] * y[i]; return s; }
float total(const A x, long n) { float s = 0; LOOP s += x[i]; return s; }
float largest(const A x, long n) { float s = x[0]; LOOP s = x[i] > s ? x[i] : s; return s; }
void axpy(A y, const A x, float a, long n) { LOOP y[i] += a * x[i]; }
void copy(A y, const A x, long n) { LOOP y[i] = x[i] + 1; }
void relu(A y, const A x, long n) { LOOP y[i] = x[i] > 0 ? x[i] : 0; }
void square(A y, const A x, long n) { LOOP y[i] = x[i] * x[i] * x[i] + x[i]; }
void polynomial(A y, const A x, long n)
{ LOOP { float t = x[i]; y[i] = ((((t + 1) * t + 2) * t + 3) * t + 4) * t + 5; } }
void stencil(A y, const A x, long n) { LOOP y[i] = x[i] + 2 * x[i + 1] + x[i + 2]; }
void divide(A y, const A x, long n) { LOOP y[i] = 1 / x[i]; }
void root(A y, const A x, long n) { LOOP y[i] = sqrtf(x[i]); }
void widen(double *restrict y, const A x, long n) { LOOP y[i] = x[i]; }
void whole(int *restrict y, const int *restrict x, long n) { LOOP y[i] = x[i] * 3 + y[i]; }
void bytes(unsigned char *restrict y, const unsigned char *restrict x, long n) { LOOP y[i] = x[i] ^ y[i]; }
void four(A c, const A a, const A b, long n)
{ LOOP for (int j = 0; j < 32; j++) c[j] += a[i] * b[32 * i + j]; }
"""


def run(*command, text=None):
    return subprocess.run([str(c) for c in command], input=text, capture_output=True, text=True,
                          check=False)


def instructions(listing, function, first, last):
    """The loop's lines of objdump's text, jumps to one label."""
    lines, inside = [], False
    for line in listing.splitlines():
        if m := re.match(r"[0-9a-f]+ <(.+)>:$", line):
            inside = m[1] == function
        elif inside and (m := re.match(r"\s*([0-9a-f]+):\s+(\S+)\s*([^<#]*)", line)):
            if first <= int(m[1], 16) <= last:
                lines.append(f"{m[2]} {'.Lhead' if m[2][0] == 'j' else m[3]}")
    return lines


def block_throughput(cpu, lines):
    result = run("llvm-mca", f"-mcpu={cpu}", "-mtriple=x86_64", text="\n".join(lines) + "\n")
    found = re.search(r"Block RThroughput:\s+([\d.]+)", result.stdout)
    return max(float(found[1]), 1.0) if found else None


def main():
    if not shutil.which("llvm-mca") or not shutil.which("gcc"):
        print("mca_evidence: llvm-mca (package llvm) or gcc is not installed", file=sys.stderr)
        return 3
    with tempfile.TemporaryDirectory() as folder:
        own = pathlib.Path(folder) / "loops.c"
        own.write_text(SOURCE)
        ratios, above, unread = [], 0, 0
        for core, cpu, flags in CORES:
            for source in sys.argv[1:] or [own]:
                made = pathlib.Path(folder) / "loops.o"
                if run("gcc", "-O3", "-ffast-math", *flags, "-c", "-o", made, source).returncode:
                    continue
                listing = run("objdump", "-d", "--no-show-raw-insn", made).stdout
                for line in run(ROOT / "build/dev/tests/host_loops", core, made).stdout.splitlines():
                    name, first, last, ours = line.split()
                    theirs = block_throughput(cpu, instructions(listing, name, int(first, 16),
                                                                int(last, 16)))
                    if theirs is None:
                        unread += 1
                        continue
                    ratios.append(float(ours) / theirs)
                    is_above = float(ours) > theirs + ROUNDING
                    above += is_above
                    print(f"{core:10} {name:12} {'zmm' if len(flags) == 2 and 'march' in flags[0] else 'ymm'}"
                          f"  ours {float(ours):6.2f}  llvm-mca {theirs:6.2f}"
                          f"{'  above' if is_above else ''}")
    if not ratios:
        return 3
    print(f"{len(ratios)} loops: {above} above llvm-mca's; of its throughput the bound is "
          f"{min(ratios):.2f} at least, {statistics.median(ratios):.2f} in the middle; "
          f"{sum(r > 0.9 for r in ratios)} within 10%; {unread} not read by llvm-mca")
    return 0


if __name__ == "__main__":
    sys.exit(main())
