#!/usr/bin/env python3
"""How well the reader of PTX reads what compilers write.

Compiles the sources of tests/data/asm with nvcc and NVRTC for many architectures and options, and
kernels of its own with Triton where that is installed (no GPU is needed); counts instructions,
bytes, flops and loops with regular expressions on statements; compares that with what the C reader
says (the test tool asm_facts); runs kernels on made-up data to see how often the loops go round
whose trips are said to be constant; and prints one table. Every file is also read again with all
registers, labels and kernels renamed: its normalised hashes must stay.

    tools/ptx_evidence.py --reader build/dev/tests/asm_facts --folder /tmp/ptx [--seconds 50]

The corpus is kept in the folder; a run makes what is missing until its seconds are over.
"""

import argparse
import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import ptx_evidence_run

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "tests/data/asm").glob("*.cu"))
LIBRARY = ROOT / "tests/data/library.cu"
SAMPLES = sorted((ROOT / "tests/data/asm").glob("*.ptx")) + sorted(
    (ROOT / "tests/fuzz/corpus/ptx").glob("*.ptx"))
ARCHITECTURES = ["75", "80", "86", "89", "90", "90a", "100a", "103a", "120a"]
OPTIONS = {
    "plain": [],
    "lines": ["-lineinfo"],
    "debug": ["-G"],
    "fast": ["-use_fast_math"],
}


# ---- the corpus


def cuda_home():
    nvcc = shutil.which("nvcc")
    home = os.environ.get("CUDA_HOME") or (Path(nvcc).resolve().parent.parent if nvcc else None)
    return Path(home) if home else None


def nvcc_jobs(folder):
    nvcc = shutil.which("nvcc") or (cuda_home() and str(cuda_home() / "bin/nvcc"))
    if not nvcc:
        return
    for sm in ARCHITECTURES:
        for option, flags in OPTIONS.items():
            for source in (*SOURCES, LIBRARY):
                out = folder / f"nvcc-{source.stem}-{sm}-{option}.ptx"
                command = [nvcc, "-std=c++17", f"-arch=sm_{sm}", *flags, "-ptx", source, "-o", out]
                yield out, lambda command=command: subprocess.run(
                    command, check=True, capture_output=True)


CSTDINT = b"""
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned uint32_t;
typedef unsigned long long uint64_t; typedef unsigned long uintptr_t; typedef unsigned long size_t;
"""


def nvrtc_compile(library, source, sm, flags, out):
    program = ctypes.c_void_p()
    headers = (ctypes.c_char_p * 2)(CSTDINT, CSTDINT)
    names = (ctypes.c_char_p * 2)(b"cstdint", b"stdint.h")
    text = source.read_bytes()
    library.nvrtcCreateProgram(ctypes.byref(program), text, b"k.cu", 2, headers, names)
    options = [f"-arch=sm_{sm}", "-std=c++17", f"-I{cuda_home() / 'include'}", *flags]
    array = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
    failed = library.nvrtcCompileProgram(program, len(options), array)
    size = ctypes.c_size_t()
    if not failed:
        library.nvrtcGetPTXSize(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        library.nvrtcGetPTX(program, buffer)
        out.write_bytes(buffer.raw[: size.value])  # with its terminator, as callers have it
    library.nvrtcDestroyProgram(ctypes.byref(program))
    if failed:
        raise RuntimeError("NVRTC refused it")


def nvrtc_jobs(folder):
    try:
        library = ctypes.CDLL(str(cuda_home() / "lib64/libnvrtc.so"))
    except (OSError, TypeError):
        return
    for option, flags in {"plain": [], "lines": ["-lineinfo"], "fast": ["-use_fast_math"]}.items():
        for source in SOURCES:
            for sm in ARCHITECTURES:
                out = folder / f"nvrtc-{source.stem}-{sm}-{option}.ptx"
                yield out, lambda out=out, source=source, sm=sm, flags=flags: nvrtc_compile(
                    library, source, sm, flags, out)


def triton_jobs(folder):
    try:
        import ptx_evidence_triton
    except ImportError:
        return
    yield from ptx_evidence_triton.jobs(folder)


def build_corpus(folder, seconds):
    end, failures = time.monotonic() + seconds, Counter()
    for sample in SAMPLES:
        shutil.copy(sample, folder / f"hand-{sample.name}")
    for jobs in (triton_jobs, nvrtc_jobs, nvcc_jobs):
        for out, make in jobs(folder):
            refused = out.with_suffix(".refused")
            if out.exists() or refused.exists():
                continue
            if time.monotonic() > end:
                print("the corpus is not complete; run again to go on", file=sys.stderr)
                return failures
            try:
                make()
            except Exception as error:  # whatever a compiler throws
                refused.write_text(str(error))
                failures[out.name.split("-")[0]] += 1
    return failures


# ---- counting, in another way than the reader's


def clean(text):
    text = text.replace("\0", "")
    text = re.sub(r'"[^"\n]*"', '""', text)
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r"^@@.*$", "", text, flags=re.M)
    text = re.sub(r"\.section\s+\S+\s*\{[^}]*\}", "", text)
    text = re.sub(r'\.pragma\s*""\s*;', "", text)
    return re.sub(r"^\s*\.(?:loc|file)\b[^\n]*", "", text, flags=re.M)


def bodies(text):
    """Name and body of every .entry that has one."""
    for match in re.finditer(r"\.entry\s+([\w$]+)[^{;]*\{", text):
        depth, at = 1, match.end()
        while depth:
            brace = re.compile(r"[{}]").search(text, at)
            depth += 1 if brace.group() == "{" else -1
            at = brace.end()
        yield match.group(1), text[match.end() : at - 1]


LEADING = re.compile(r"^(?:[\s{}]|[\w$%]+\s*:(?!:))+")  # scopes and labels
STATEMENT = re.compile(r"^(?:@\s*!?\s*[%\w$]+\s*)?([a-z]\w*(?:\s*\.[\w:]+)*)(.*)", re.S)
BITS = {"b8": 8, "u8": 8, "s8": 8, "b16": 16, "u16": 16, "s16": 16, "f16": 16, "bf16": 16,
        "b32": 32, "u32": 32, "s32": 32, "f32": 32, "f16x2": 32, "bf16x2": 32, "b64": 64,
        "u64": 64, "s64": 64, "f64": 64, "b128": 128}
SPACES = ("global", "shared", "local", "const", "param")


def memory_bytes(parts):
    """Of ld, st, atom and red."""
    vector = next((int(p[1:]) for p in parts if re.fullmatch(r"v\d", p)), 1)
    return next((BITS[p] for p in parts if p in BITS), 0) // 8 * vector


def tensor_flops(mnemonic):
    shape = re.search(r"\.m(\d+)n(\d+)k(\d+)", mnemonic)
    if not shape or not re.match(r"(wmma\.mma|mma|wgmma\.mma_async)\b", mnemonic):
        return 0
    m, n, k = map(int, shape.groups())
    return 2 * m * n * k // (4 if mnemonic.startswith("wgmma") else 1)


def count_body(body):
    counts = {"words": Counter(), "spaces": Counter(), "bytes": Counter(), "tensor": 0, "async": 0}
    for statement in body.split(";"):
        match = STATEMENT.match(LEADING.sub("", statement))
        if not match:
            continue
        mnemonic = re.sub(r"\s", "", match.group(1))
        parts = mnemonic.split(".")
        counts["words"][parts[0]] += 1
        counts["tensor"] += tensor_flops(mnemonic)
        if mnemonic.startswith("cp.async.c"):
            size = re.search(r"\]\s*,\s*\[[^\]]*\]\s*,\s*(\w+)", match.group(2))
            counts["async"] += int(size.group(1), 0) if size else 0
        if parts[0] in ("ld", "st", "atom", "red") and parts[1] not in ("async", "bulk"):
            space = next((s for p in parts for s in SPACES if p.split("::")[0] == s), "")
            counts["spaces"][parts[0] + "." * bool(space) + space] += 1
            counts["bytes"][parts[0] + "." * bool(space) + space] += memory_bytes(parts)
    return counts


def reached(ways, skipped):
    """Statements reached from the first one without passing one of them."""
    seen, todo = set(), [0]
    while todo:
        at = todo.pop()
        if at != skipped and at < len(ways) and at not in seen:
            seen.add(at)
            todo.extend(ways[at])
    return seen


def count_loops(body):
    """Labels that are gone back to from where only they lead, in files without scopes."""
    if re.search(r"[{}]\s*(?:[\w$.%@!]+\s*:|\.reg)", body) or "brx" in body:
        return None
    statements = body.split(";")
    places = {label: i for i, statement in enumerate(statements)
              for label in re.findall(r"(?:^|[\s;}])([\w$]+)\s*:(?!:)", statement)}
    ways, branches = [], []
    for i, statement in enumerate(statements):
        branch = re.search(r"(@\S+\s+)?\bbra(?:\.uni)?\s+([\w$]+)", statement)
        end = re.search(r"(@\S+\s+)?\b(?:ret|exit)$", statement.strip())
        if branch:
            branches.append((i, places[branch.group(2)]))
            ways.append([places[branch.group(2)]] + ([i + 1] if branch.group(1) else []))
        else:
            ways.append([] if end and not end.group(1) else [i + 1])
    live = reached(ways, None)
    for header in {to for at, to in branches if at >= to}:
        around = reached(ways, header)
        branches = [b for b in branches if b[1] != header or (b[0] in live and b[0] not in around)]
    return len({to for at, to in branches if at >= to})


def shared_bytes(text, body):
    declared = re.compile(r"\.shared\s+(?:\.align\s+(\d+)\s+)?\.\w?(\d+)\s+([\w$]+)((?:\[\d*\])*)")
    total = 0
    inside = body
    names = set(re.findall(r"[\w$]+", body))
    for match in declared.finditer(text):
        own = match.group(0) in inside
        before = text[max(0, match.start() - 40) : match.start()]
        if re.search(r"\.extern\s*$", before) or (not own and match.group(3) not in names):
            continue
        size = int(match.group(2)) // 8
        align = int(match.group(1) or size)
        for dimension in re.findall(r"\d+", match.group(4)):
            size *= int(dimension)
        total = -(-total // align) * align + size
    return total


# ---- comparison


def by_spaces(kernel):
    return {n: c for n, c in kernel["opcodes"].items()
            if n.split(".")[0] in ("ld", "st", "atom", "red")
            and not n.startswith(("st.async", "st.bulk", "red.async"))}


def by_words(kernel):
    words = Counter()
    for name, count in kernel["opcodes"].items():
        words[name.split(".")[0]] += count
    return words


BYTE_CLASSES = {
    "load global": ("ld", "ld.global"), "store global": ("st", "st.global"),
    "load shared": ("ld.shared",), "store shared": ("st.shared",),
    "load local": ("ld.local",), "store local": ("st.local",),
    "load constant": ("ld.const", "ld.param"),
    "atomic": ("atom", "atom.global", "atom.shared", "red", "red.global", "red.shared"),
}
OTHERS = ("ldmatrix", "stmatrix", "wmma", "ldu", "tex", "tld4", "suld", "sust", "multimem",
          "tensormap", "sured")


def compare(text, kernel, body, tally):
    ours, theirs = kernel, count_body(body)
    tally["instructions"].append((ours["instructions"], sum(theirs["words"].values())))
    tally["opcodes"].append((by_words(ours), theirs["words"]))
    tally["spaces"].append((by_spaces(ours), dict(theirs["spaces"])))
    if "tcgen05" not in theirs["words"]:
        tally["tensor flops"].append((ours["tensor_flops"], theirs["tensor"]))
    tally["cp.async bytes"].append((ours["bytes"]["async copy"], theirs["async"]))
    if not any(word in theirs["words"] for word in OTHERS) and not re.search(
            r"\b(st|red)\.(async|bulk)", body):
        counted = {c: sum(theirs["bytes"][n] for n in names) for c, names in BYTE_CLASSES.items()}
        tally["bytes"].append(({c: ours["bytes"][c] for c in BYTE_CLASSES}, counted))
    tally["shared memory"].append((ours["shared_bytes"], shared_bytes(text, body)))
    loops = count_loops(body)
    if loops is not None:
        tally["loops"].append((len(ours["loops"]), loops))


def read(reader, paths):
    out = subprocess.run([reader, *paths], capture_output=True, text=True)
    return [json.loads(line) for line in out.stdout.splitlines()]


def renamed(text, path):
    text = re.sub(r"%(rd|rs|rh|rq|r|fd|fh|f|h|hh|p|b|SP|SPL)(?=\d|<)", r"%q_\1", text)
    text = re.sub(r"\$L__(?=BB)", "$Other_", text)
    text = re.sub(r"^(\s+)(?=[a-z@])", r"\1 /* ; } */ ", text, flags=re.M)
    path.write_text(text)
    return path


def judge(folder, match, reader, tally):
    paths = sorted(folder.glob(match))
    parsed, kernels, kinds, unknown = 0, 0, Counter(), Counter()
    for begin in range(0, len(paths), 40):
        batch = paths[begin : begin + 40]
        for path, facts in zip(batch, read(reader, batch)):
            if facts["error"]:
                print(f"{path.name}: {facts['error']}", file=sys.stderr)
                continue
            parsed += 1
            raw = path.read_text(errors="replace")
            text = clean(raw)
            theirs = list(bodies(text))
            lines, places = ptx_evidence_run.statements(raw), ptx_evidence_run.extents(raw)
            tally["kernels"].append(([k["name"] for k in facts["kernels"]], [n for n, _ in theirs]))
            for kernel, (_, body) in zip(facts["kernels"], theirs):
                kernels += 1
                compare(text, kernel, body, tally)
                tally["trips"].extend(ptx_evidence_run.compare_trips(lines, places, kernel))
                kinds.update(loop["kind"] for loop in kernel["loops"])
                if kernel["work"]["unknown"]:
                    unknown[path.name] += 1
            again = renamed(raw, folder / "renamed.text")
            other = read(reader, [again])[0]
            tally["renamed"].append(([k["hash"] for k in facts["kernels"]],
                                     [k["hash"] for k in other["kernels"]]))
    return len(paths), parsed, kernels, kinds, unknown


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--reader", required=True, help="the program asm_facts")
    parser.add_argument("--folder", required=True, type=Path, help="where the corpus is kept")
    parser.add_argument("--seconds", type=float, default=600, help="for compiling, in this run")
    parser.add_argument("--match", default="*.ptx", help="the files of the corpus to judge")
    parser.add_argument("--show", type=int, default=3, help="differences shown of each kind")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    refused = build_corpus(arguments.folder, arguments.seconds)
    fields = ("kernels", "instructions", "opcodes", "spaces", "bytes", "cp.async bytes",
              "tensor flops", "shared memory", "loops", "trips", "renamed")
    tally = {field: [] for field in fields}
    files, parsed, kernels, kinds, unknown = judge(arguments.folder, arguments.match,
                                                    arguments.reader, tally)
    makers = Counter(p.name.split("-")[0] for p in arguments.folder.glob(arguments.match))
    print(f"files {files} {dict(makers)}, parsed {parsed}, kernels {kernels}, "
          f"refused by compilers {sum(refused.values())}")
    print(f"loops: {kinds[1]} constant, {kinds[2]} of a parameter, {kinds[0]} unknown; "
          f"files with unknown opcodes: {dict(unknown)}")
    print(f"{'what':16} {'compared':>9} {'equal':>9}")
    different = parsed < files
    for field, pairs in tally.items():
        wrong = [pair for pair in pairs if pair[0] != pair[1]]
        different = different or bool(wrong)
        print(f"{field:16} {len(pairs):9} {len(pairs) - len(wrong):9}")
        for ours, theirs in wrong[: arguments.show]:
            print(f"    ours {ours}\n    other {theirs}", file=sys.stderr)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
