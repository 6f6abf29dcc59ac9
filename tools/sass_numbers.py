#!/usr/bin/env python3
"""Asks nvdisasm for the name of every opcode number, and compares with src/asm's table.

    tools/sass_numbers.py [ARCHITECTURE]...        (default: all that are read)

A file of bare instructions is made: every number (bits 0-8) in every form (bits 9-11), with and
without uniform operands (bit 91), and with a few fillings of the rest, since an instruction is only
taken when its operands fit. What nvdisasm refuses is left out; of what it takes, the mnemonic is
compared with that of build/dev/tests/dump_cubin -w. This finds the numbers that no compiler was
seen to use; tools/sass_evidence.py checks those that are used. Exit status 1: something differs.
"""

import collections
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

from sass_evidence import ROOT, find_tool

ARCHITECTURES = "75 80 86 87 89 90 90a 100 100a 103a 110a 120 120a 121a".split()
GRAPHICS = set("AL2P ALD AST ISBERD ISBEWR OUT PIXLD IPA KILL LDTRAM CSMTEST".split())
INSTRUCTION = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z]\w*)")
CONTROL, ALWAYS = 0x000FE40000000000, 7 << 12
TRUE = 7 << 23  # predicate operands, as bits of the high word
FILLINGS = [(0, 0), (0, 7 << 17 | 7 << 20 | TRUE), (0, 1 << 8 | TRUE), (0, 1 << 17 | TRUE),
            (0xff << 16 | 0xff << 24 | 0xff << 32, 0xff | 7 << 17 | 7 << 20 | TRUE),
            (0x3f << 16 | 0x3f << 24 | 0x3f << 32, 0x3f | 7 << 17 | 7 << 20 | TRUE),
            (0xff << 24 | 0xff << 32, 4 << 9 | 7 << 17 | 7 << 20 | TRUE),
            (4 << 24, 4 << 9 | TRUE)]
AT_ONCE = 16384


def disassemble(nvdisasm, arch, words, path):
    """{word: mnemonic} of the words that nvdisasm takes."""
    while words:
        path.write_bytes(b"".join(struct.pack("<QQ", *word) for word in words))
        result = subprocess.run([nvdisasm, "-b", f"SM{arch}", "-c", "-ndf", path], check=False,
                                capture_output=True, text=True)
        refused = {int(a, 16) // 16 for a in re.findall(r"at address 0x(\w+)", result.stderr)}
        if not refused:
            return {words[int(m[1], 16) // 16]: m[2] for m in INSTRUCTION.finditer(result.stdout)}
        words = [word for i, word in enumerate(words) if i not in refused]
    return {}


def ask(dump, arch, words):
    lines = "".join(f"{low:x} {high:x}\n" for low, high in words)
    result = subprocess.run([dump, "-w", re.sub(r"\D", "", arch)], input=lines, check=True,
                            capture_output=True, text=True)
    return result.stdout.split()


def main():
    nvdisasm, dump = find_tool("nvdisasm"), ROOT / "build" / "dev" / "tests" / "dump_cubin"
    words = [(code | form << 9 | ALWAYS | low, high | CONTROL | uniform << 27)
             for code in range(512) for form in range(8) for uniform in (0, 1)
             for low, high in FILLINGS]
    compared, differing = 0, collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "words"
        for arch in sys.argv[1:] or ARCHITECTURES:
            theirs = {}
            for first in range(0, len(words), AT_ONCE):
                theirs.update(disassemble(nvdisasm, arch, words[first:first + AT_ONCE], path))
            theirs = {w: name for w, name in theirs.items() if name not in GRAPHICS}
            numbers = {word[0] & 0x1ff for word in theirs}
            print(f"sm_{arch}: {len(theirs)} instructions of {len(numbers)} numbers")
            for (word, name), ours in zip(theirs.items(), ask(dump, arch, theirs)):
                compared += 1
                if name != ours:
                    differing[arch, f"{word[0] & 0x1ff:#05x}", word[0] >> 9 & 7, ours, name] += 1
    for (arch, number, form, ours, name), times in sorted(differing.items()):
        print(f"sm_{arch} {number} form {form}: ours {ours}, theirs {name}, {times} times")
    print(f"{compared} compared, {sum(differing.values())} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
