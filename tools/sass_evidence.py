#!/usr/bin/env python3
"""Compares what src/asm reads in cubins with what NVIDIA's own tools say of them.

    tools/sass_evidence.py [--work DIR] [--limit-seconds N] [--cubins DIR]...

Compiles tests/data/asm/*.cu for seven architectures and three register limits, and compares, for
every kernel: registers, shared memory, stack, spills and barriers with `ptxas -v`; the mnemonic of
every instruction, the bytes it moves, the size of every matrix product and the target of every
branch with nvdisasm; and the loops with those computed here from nvdisasm's control-flow graph.
--cubins adds files of others, for which there is no ptxas log.

What is done is kept under DIR (build/sass_evidence) and not done again, so that a run that was
stopped by --limit-seconds goes on where it was. Needs nvcc, ptxas (on PATH or under CUDA_HOME),
nvdisasm (the same, or the pip package nvidia-cuda-nvdisasm) and build/dev/tests/dump_cubin.
Exit status 1: something differs; 3: a tool is missing or time ran out.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import site
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ARCHITECTURES = ["75", "80", "86", "89", "90a", "100a", "120a"]
REGISTER_LIMITS = [None, 64, 32]
INSTRUCTION = re.compile(
    r"/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)\s*([^;]*?)\s*;")
MEMORY = "LD LDG ST STG LDL STL LDS STS LDC ULDC LDCU".split()
BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}
SHAPE = re.compile(r"(16|8)8(4|8|16|32|64|128|256)$|(\d+)x(\d+)x(\d+)$")
WARPGROUP = ("HGMMA", "IGMMA", "QGMMA", "BGMMA")


def find_tool(name):
    """The tool from PATH, CUDA_HOME, the usual place or a pip package."""
    homes = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]
    packages = [pathlib.Path(p) / "nvidia" / "cu13" for p in site.getsitepackages()]
    places = [pathlib.Path(h) / "bin" / name for h in homes if h]
    places += [p / "bin" / name for p in packages]
    found = shutil.which(name) or next((str(p) for p in places if p.exists()), None)
    if not found:
        print(f"sass_evidence: {name} is not installed", file=sys.stderr)
        sys.exit(3)
    return found


def run(command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


# ---- Making cubins


def compile_all(work, out_of_time):
    """(name, cubin, log) of every source, architecture and limit that could be compiled."""
    nvcc, ptxas = find_tool("nvcc"), find_tool("ptxas")
    made = []
    for source in sorted((ROOT / "tests" / "data" / "asm").glob("*.cu")):
        for arch in ARCHITECTURES:
            ptx = work / f"{source.stem}.{arch}.ptx"
            if not ptx.exists():
                if out_of_time():
                    return made, False
                result = run([nvcc, "-ptx", "-std=c++17", f"-arch=compute_{arch}", "-o", ptx, source])
                if result.returncode:
                    print(f"{source.name}: sm_{arch}: {result.stderr[:400]}", file=sys.stderr)
                    sys.exit(1)
            for limit in REGISTER_LIMITS:
                name = f"{source.stem}.{arch}.{limit or 'free'}"
                cubin, log = work / f"{name}.cubin", work / f"{name}.log"
                if not log.exists():
                    if out_of_time():
                        return made, False
                    extra = [f"-maxrregcount={limit}"] if limit else []
                    result = run([ptxas, "-v", f"-arch=sm_{arch}", *extra, "-o", cubin, ptx])
                    log.write_text(result.stderr)
                if cubin.exists():  # ptxas refuses wgmma with few registers
                    made.append((name, cubin, log))
    return made, True


# ---- What the tools say


def read_log(text):
    """Figures of every entry function in a ptxas -v log."""
    kernels, compiling, described = {}, None, None
    for line in text.splitlines():
        if m := re.search(r"Compiling entry function '(\S+)'", line):
            compiling = m[1]
            kernels[compiling] = {}
        elif m := re.search(r"Function properties for (\S+)", line):
            described = m[1]
        elif m := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill "
                            r"loads", line):
            if described == compiling:
                kernels[compiling].update(stack=int(m[1]), stores=int(m[2]), loads=int(m[3]))
        elif m := re.search(r"Used (\d+) registers", line):
            barriers = re.search(r"used (\d+) barriers", line)
            shared = re.search(r"(\d+) bytes smem", line)
            kernels[compiling].update(registers=int(m[1]),
                                      barriers=int(barriers[1]) if barriers else 0,
                                      shared=int(shared[1]) if shared else 0)
            if m := re.search(r"(\d+) bytes cumulative stack size", line):  # with its callees
                kernels[compiling]["stack"] = int(m[1])
    return kernels


def read_listing(text):
    """Instructions by section and offset, and where the labels stand."""
    sections, labels, waiting, section = {}, {}, [], None
    for line in text.splitlines():
        if m := re.match(r"\s*\.section\s+\.text\.([^,]+),", line):
            section = sections.setdefault(m[1], {})
            name = m[1]
        elif m := re.match(r"([^\s/][^\s]*):$", line):
            waiting.append(m[1])
        elif section is not None and (m := INSTRUCTION.search(line)):
            offset = int(m[1], 16)
            section[offset] = (m[2], m[3])
            labels.update((label, (name, offset)) for label in waiting)
            waiting = []
    return sections, labels


def read_graph(text, labels):
    """Blocks and edges of nvdisasm's -bbcfg -poff, by section: {offset: (last, [next])}, roots."""
    graphs = collections.defaultdict(lambda: ({}, set()))
    for cluster in text.split("subgraph ")[1:]:
        nodes, edges, function = {}, [], None
        for m in re.finditer(r'^"([^"]+)"\n\[label="(.*)"\]$|^"([^"]+)":\w+:\w+ -> "([^"]+)"', cluster,
                             re.M):
            if m[1] is not None:
                offsets = [int(o, 16) for o in re.findall(r"(?:\\l|\{|>)([0-9a-f]{4,}):\\ ", m[2])]
                function = function or m[1]
                if offsets:
                    nodes[m[1]] = offsets
            else:
                edges.append((m[3], m[4]))
        if function not in labels or function not in nodes:
            continue
        blocks, roots = graphs[labels[function][0]]
        roots.add(nodes[function][0])
        for node, offsets in nodes.items():
            blocks[offsets[0]] = (offsets[-1], [nodes[b][0] for a, b in edges
                                                if a == node and b in nodes])
    return graphs


def natural_loops(blocks, roots):
    """{header: set of block offsets}, by dominators as sets; written apart from src/asm/flow.c."""
    order, seen = [], set()

    def visit(root):
        stack = [(root, iter(blocks[root][1]))]
        seen.add(root)
        while stack:
            block, ways = stack[-1]
            way = next((w for w in ways if w in blocks and w not in seen), None)
            if way is None:
                order.append(block)
                stack.pop()
            else:
                seen.add(way)
                stack.append((way, iter(blocks[way][1])))

    for root in sorted(roots):
        if root in blocks and root not in seen:
            visit(root)
    order.reverse()
    before = collections.defaultdict(set)
    for block in order:
        for way in blocks[block][1]:
            before[way].add(block)
    everything = set(order)
    dominators = {b: {b} if b in roots else everything for b in order}
    changed = True
    while changed:
        changed = False
        for block in order:
            if block in roots:
                continue
            ways = [dominators[p] for p in before[block]]
            new = (set.intersection(*ways) if ways else set()) | {block}
            if new != dominators[block]:
                dominators[block], changed = new, True
    loops = collections.defaultdict(set)
    for block in order:
        for header in blocks[block][1]:
            if header not in dominators[block]:
                continue
            body, stack = {header}, [block]
            while stack:
                inner = stack.pop()
                if inner not in body:
                    body.add(inner)
                    stack.extend(before[inner])
            loops[header] |= body
    return loops


def spread(ranges):
    return frozenset(o for first, last in ranges for o in range(first, last + 1, 16))


def expected_bytes(mnemonic):
    parts = mnemonic.split(".")
    return next((BYTES[p] for p in parts[1:] if p in BYTES), 4)


def expected_flops(mnemonic):
    """Of a warp, from the shape in the mnemonic; None where there is none."""
    parts = mnemonic.split(".")
    shape = next((m for p in parts[1:] if (m := SHAPE.match(p))), None)
    if not shape:
        return None
    if parts[:2] == ["HMMA", "884"]:  # a step of four products
        return 4 * 2 * 8 * 8 * 4 / (4 if parts[2] == "F32" else 2)
    m, n, k = (int(shape[1]), 8, int(shape[2])) if shape[1] else map(int, shape.groups()[2:])
    flops = 2 * m * n * k
    return flops / (2 if "SP" in parts else 1) / (4 if parts[0] in WARPGROUP else 1)


# ---- What we say, and the comparison


def read_dump(text):
    kernels, kernel = {}, None
    for line in text.splitlines():
        kind, *words = line.split()
        if kind == "kernel":
            kernel = {"figures": dict(zip("registers shared stack stores loads barriers".split(),
                                          map(int, words[2:8]))),
                      "instructions": {}, "loops": {}, "trips": 0}
            kernels[words[0]] = kernel
        elif kind == "i":
            kernel["instructions"][int(words[0], 16)] = words[1:]
        elif kind == "loop":
            kernel["loops"][int(words[0], 16)] = spread(
                [[int(x, 16) for x in w.split("-")] for w in words[2:]])
            kernel["trips"] += float(words[1]) > 0
    return kernels


class Tally:
    """How much was compared of each kind, how much differed, and the first few differences."""

    def __init__(self):
        self.compared, self.differed = collections.Counter(), collections.Counter()
        self.examples = []

    def compare(self, kind, place, ours, theirs):
        self.compared[kind] += 1
        if ours != theirs:
            self.differed[kind] += 1
            if len(self.examples) < 40:
                self.examples.append(f"{kind}: {place}: ours {ours}, theirs {theirs}")

    def as_json(self):
        return {"compared": self.compared, "differed": self.differed, "examples": self.examples}


def compare_instructions(tally, name, ours, theirs, labels):
    for offset, (mnemonic, operands) in theirs.items():
        word = ours.get(offset, ["missing", "0", "0", "0", "0", "-"])
        place = f"{name}+{offset:#x} {mnemonic}"
        base = mnemonic.split(".")[0]
        tally.compare("mnemonics", place, word[0], base)
        if base in MEMORY:
            tally.compare("bytes", place, float(word[2]), float(expected_bytes(mnemonic)))
        flops = expected_flops(mnemonic) if base.endswith("MMA") else None
        if flops is not None:
            tally.compare("products", place, float(word[3]), flops)
        if base == "BRA" and (m := re.search(r"`\((\.L_x_\d+)\)", operands)):
            target = labels.get(m[1], (None, -1))[1]
            if target != offset:  # what follows the last EXIT is no loop for us
                tally.compare("branches", place, word[5], f"{target:x}")


def compare_loops(tally, name, kernel, blocks, roots):
    theirs = {}
    for header, body in natural_loops(blocks, roots).items():
        if header in roots - {0}:
            continue  # a device function that calls itself: recursion is no loop for us
        covered = spread([(b, blocks[b][0]) for b in body])
        if covered != frozenset([header]):
            theirs[header] = covered
    for header in sorted(set(theirs) | set(kernel["loops"])):
        tally.compare("loops", f"{name}+{header:#x}", sorted(kernel["loops"].get(header, [])),
                      sorted(theirs.get(header, [])))


def compare_cubin(dump, nvdisasm, cubin, log):
    tally = Tally()
    result = run([dump, "-i", cubin])
    listing = run([nvdisasm, "-c", "-ndf", cubin])
    if result.returncode or listing.returncode:
        tally.compare("files", cubin.name, result.stderr[:200], listing.stderr[:200])
        return tally
    tally.compare("files", cubin.name, 0, 0)
    kernels = read_dump(result.stdout)
    sections, labels = read_listing(listing.stdout)
    graphs = read_graph(run([nvdisasm, "-bbcfg", "-poff", cubin]).stdout, labels)
    for name, figures in (read_log(log.read_text()) if log else {}).items():
        for figure, value in figures.items():
            ours = kernels.get(name, {"figures": {}})["figures"].get(figure)
            tally.compare("figures", f"{cubin.name}: {name}: {figure}", ours, value)
    for name, kernel in kernels.items():
        place = f"{cubin.name}: {name}"
        tally.compared["kernels"] += 1
        tally.compared["trips"] += kernel["trips"]
        compare_instructions(tally, place, kernel["instructions"], sections.get(name, {}), labels)
        if name in graphs:
            compare_loops(tally, place, kernel, *graphs[name])
    return tally


# ---- The report

KINDS = "files kernels figures mnemonics bytes products branches loops trips".split()


def report(results):
    groups = collections.defaultdict(lambda: (collections.Counter(), collections.Counter()))
    for group, tally in results:
        for key in (group, "all"):
            groups[key][0].update(tally["compared"])
            groups[key][1].update(tally["differed"])
    print("| | " + " | ".join(KINDS) + " |\n|" + "---|" * (len(KINDS) + 1))
    for group in sorted(groups, key=lambda g: (g == "all", len(g), g)):
        compared, differed = groups[group]
        cells = [f"{compared[k]}" + (f" ({differed[k]} differ)" if differed[k] else "") for k in KINDS]
        print(f"| {group} | " + " | ".join(cells) + " |")
    examples = [e for _, tally in results for e in tally["examples"]]
    for example in examples[:60]:
        print("  " + example[:300])
    return sum(groups["all"][1].values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build" / "sass_evidence")
    parser.add_argument("--dump", default=ROOT / "build" / "dev" / "tests" / "dump_cubin")
    parser.add_argument("--limit-seconds", type=float, default=float("inf"))
    parser.add_argument("--cubins", type=pathlib.Path, action="append", default=[])
    options = parser.parse_args()
    end = time.monotonic() + options.limit_seconds
    options.work.mkdir(parents=True, exist_ok=True)
    made, complete = compile_all(options.work, lambda: time.monotonic() > end)
    made = [("sm_" + name.split(".")[1], cubin, log) for name, cubin, log in made]
    for folder in options.cubins:
        made += [(folder.name, cubin, None) for cubin in sorted(folder.glob("*.cubin"))]
    nvdisasm, results = find_tool("nvdisasm"), []
    stamp = os.path.getmtime(options.dump)
    for group, cubin, log in made:
        kept = options.work / f"{group}.{cubin.name}.json"
        if not kept.exists() or os.path.getmtime(kept) < stamp:
            if time.monotonic() > end:
                complete = False
                continue
            kept.write_text(json.dumps(compare_cubin(options.dump, nvdisasm, cubin, log).as_json()))
        results.append((group, json.loads(kept.read_text())))
    differing = report(results)
    if not complete:
        print("time ran out: run again to go on", file=sys.stderr)
    return 1 if differing else 0 if complete else 3


if __name__ == "__main__":
    sys.exit(main())
