#!/usr/bin/env python3
"""What the skeletons in kernels/ and the sources in src/ say of one another; run by tools/check.

A skeleton is found by its path below kernels/ ("cuda/prelude.cuh") and put into a kernel's source as
text. So it includes nothing with quotes, every skeleton that is named exists, and every one is named
by a source. Each line printed is a breach.
"""

import os
import pathlib
import re

NAME = re.compile(r"(?<![\w<./-])[\w/]+\.(?:cuh|h)\b")


def lines_of(path):
    return enumerate(path.read_text(errors="replace").splitlines(), 1)


def main():
    os.chdir(pathlib.Path(__file__).resolve().parent.parent)
    kernels = pathlib.Path("kernels")
    skeletons = {str(path.relative_to(kernels)) for path in kernels.rglob("*")
                 if path.suffix in (".cuh", ".h")}
    base_names = {os.path.basename(name) for name in skeletons}
    folders = {name.split("/")[0] for name in skeletons if "/" in name}

    for skeleton in sorted(skeletons):
        for line, text in lines_of(kernels / skeleton):
            if re.match(r'\s*#\s*include\s*"', text):
                print(f"breach skeletons: kernels/{skeleton}:{line}: includes with quotes")
            elif not re.match(r"\s*#\s*include\s*<", text):
                for name in NAME.findall(text):
                    if os.path.basename(name) not in base_names:
                        print(f"breach skeletons: kernels/{skeleton}:{line}: there is no {name}")

    named = set()
    for path in sorted(pathlib.Path("src").rglob("*.[ch]")):
        for line, text in lines_of(path):
            if re.match(r"\s*#\s*include", text):
                continue
            quoted = re.findall(r'"([\w/]+\.(?:cuh|h))"', text)
            named.update(quoted)
            for name in NAME.findall(text):
                whole = name in quoted and name.split("/")[0] in folders
                if whole and name not in skeletons or (
                        name.endswith(".cuh") and os.path.basename(name) not in base_names):
                    print(f"breach skeletons: {path}:{line}: there is no kernels/{name}")
    for skeleton in sorted(skeletons - named):
        print(f"breach skeletons: no source names kernels/{skeleton}")


main()
