#!/usr/bin/env python3
"""completions.py KERNELGEN bash|zsh|fish: what an interactive shell makes of command lines.

The shell runs on a terminal of its own. A line is typed, all completions are inserted, and the line is
run; a function in kernelgen's place writes down its arguments. fish is asked with `complete -C`. What
must come is read from --help, and every word that completes a value is tried on the tool itself."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM, SHELL = str(Path(sys.argv[1]).resolve()), sys.argv[2]
LONGEST = 60.0  # seconds for one line, on a busy machine

START = {
    "bash": (["bash", "--noprofile", "--norc", "-i"], """
bind 'set bell-style none' 'set completion-query-items -1' 'set page-completions off'
kernelgen() { printf '%s\\n' "$@" >words; mv words "$NAME"; }
"""),
    "zsh": (["zsh", "-f", "-i"], """
unsetopt beep zle_bracketed_paste
[[ -d functions ]] && fpath=($PWD/functions $fpath)
autoload -Uz compinit && compinit -u -d ./dump
zstyle ':completion:all-matches:*' completer _all_matches _complete
zstyle ':completion:all-matches:*' insert true
zle -C all-matches complete-word _generic
bindkey '^X*' all-matches
kernelgen() { print -rl -- "$@" >words; mv words "$NAME" }
"""),
}
# How a shell comes by the script, where it lies, and what must be installed for that.
FRAMEWORK = "/usr/share/bash-completion/bash_completion"
LOADS = {
    "bash": [("source ./script", "script", "/"),
             (f"BASH_COMPLETION_USER_DIR=$PWD/user; source {FRAMEWORK}", "user/completions/kernelgen",
              FRAMEWORK)],
    "zsh": [("source ./script", "script", "/"), ("", "functions/_kernelgen", "/")],
    "fish": [("source ./script", "script", "/")],
}
INSERT_ALL = {"bash": "\x1b*", "zsh": "\x18*"}

failures = []


def check(line, expected, got):
    # Only some ways to insert a folder put a slash behind it.
    if sorted(expected) != sorted(word.rstrip("/") for word in got):
        failures.append(line)
        print(f"{SHELL}: kernelgen {line}<Tab>\n  expected {sorted(expected)}\n  got      {sorted(got)}")


class Terminal:
    """bash or zsh on a terminal."""

    def __init__(self, folder, load):
        self.folder, self.count = folder, 0
        command, setup = START[SHELL]
        (folder / "setup").write_text(f"{setup}\n{load}\n")
        child, self.terminal = pty.fork()
        if child == 0:
            os.chdir(folder)
            os.execvp(command[0], command)
        self.enter(". ./setup; echo ready >ready", "ready")

    def enter(self, text, name):
        os.write(self.terminal, text.encode() + b"\n")
        limit, answer, shown = time.monotonic() + LONGEST, self.folder / name, b""
        while not answer.exists():
            if time.monotonic() > limit:
                sys.exit(f"{SHELL} does not answer to {text!r}; it shows {shown.decode(errors='replace')}")
            if select.select([self.terminal], [], [], 0.02)[0]:
                shown += os.read(self.terminal, 65536)
        return answer.read_text().splitlines()

    def complete(self, line):
        self.count += 1
        name = f"answer{self.count}"
        # The rest of the line is what was typed before the word, and all completions.
        words = self.enter(f" NAME={name} kernelgen {line}{INSERT_ALL[SHELL]}", name)
        typed = line.split(" ")[:-1]
        assert words[: len(typed)] == typed, (line, words)
        return words[len(typed):]


class Fish:
    def __init__(self, folder):
        self.folder = folder

    def complete(self, line):
        asked = subprocess.run(
            ["fish", "--no-config", "-c", 'source ./script; complete -C "kernelgen $argv[1]"', line],
            cwd=self.folder, capture_output=True, text=True, check=True)
        assert not asked.stderr, asked.stderr
        return [text.split("\t")[0] for text in asked.stdout.splitlines()]


def told(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)


def commands_of_help():
    return re.findall(r"^  ([\w-]+) {2,}\S", told("--help").stdout, re.M)


def options_of_help(command):
    return re.findall(r"^  (--[a-z-]+) ", told(command, "--help").stdout, re.M)


def make_files(folder):
    for name in ("softmax.kg", "notes.txt", "x.npy", "mine.cu", "mine.c", "k.cubin", "s.jsonl", "m.json"):
        (folder / name).write_text("")
    (folder / "softmax.kg").write_text("# Two.\nop softmax(x: f32[P]) -> (y: f32[P])\n{ y[p] = x[p] }\n"
                                       "op other(x: f32[P]) -> (y: f32[P])\n{ y[p] = x[p] }\n")
    (folder / "sub").mkdir()
    (folder / "sub" / "deep.kg").write_text("")


def check_names(shell):
    commands = commands_of_help()
    assert len(commands) > 10
    check("", commands + (["--help", "--version"] if SHELL == "bash" else []),
          [word for word in shell.complete("") if SHELL == "bash" or not word.startswith("-")])
    check("bui", ["build"], shell.complete("bui"))
    check("help prof", ["profile"], shell.complete("help prof"))
    for command in commands:
        # zsh does not propose again what is on the line.
        line = f"{command} --"
        check(line, set(options_of_help(command)), set(shell.complete(line)))


def check_values(shell):
    rigors = ["estimate", "measure", "patient", "exhaustive", "wisdom", "default"]
    check("build softmax.kg --rigor ", rigors, shell.complete("build softmax.kg --rigor "))
    check("emit softmax.kg --target ", ["host", "cuda", "ptx", "triton", "bundle"],
          shell.complete("emit softmax.kg --target "))
    check("check softmax.kg --op ", ["softmax", "other"], shell.complete("check softmax.kg --op "))
    check("check --lang ", ["en", "zh"], shell.complete("check --lang "))
    check("verify softmax.kg --rigor pat", ["patient"], shell.complete("verify softmax.kg --rigor pat"))
    check("build --rigor=exh", ["--rigor=exhaustive"], shell.complete("build --rigor=exh"))
    check("build --device cu", ["cuda:0"], shell.complete("build --device cu"))
    check("build --device cuda:", ["cuda:0"], shell.complete("build --device cuda:"))
    check("wisdom i", ["import"], shell.complete("wisdom i"))
    check("completions ", ["bash", "zsh", "fish"], shell.complete("completions "))


def check_files(shell):
    check("build s", ["softmax.kg", "sub"], shell.complete("build s"))
    check("build sub/", ["sub/deep.kg"], shell.complete("build sub/"))
    check("build --rigor measure so", ["softmax.kg"], shell.complete("build --rigor measure so"))
    check("verify softmax.kg --candidate mi", ["mine.c", "mine.cu"],
          shell.complete("verify softmax.kg --candidate mi"))
    check("run softmax.kg --input x=x", ["x=x.npy"], shell.complete("run softmax.kg --input x=x"))
    check("run softmax.kg --input=x=x", ["--input=x=x.npy"],
          shell.complete("run softmax.kg --input=x=x"))
    check("asm --compare k", ["k.cubin"], shell.complete("asm --compare k"))
    check("asm k.cubin k", ["k.cubin"], shell.complete("asm k.cubin k"))
    check("asm k.cubin --model m", ["m.json"], shell.complete("asm k.cubin --model m"))
    check("build softmax.kg --out s", ["sub"], shell.complete("build softmax.kg --out s"))
    check("check softmax.kg --out no", ["notes.txt"], shell.complete("check softmax.kg --out no"))
    check("wisdom import s.", ["s.jsonl"], shell.complete("wisdom import s."))


def check_words_are_accepted(shell, folder):
    """The tool takes each word that the shell proposes, and refuses another one."""
    kernel = Path(__file__).parents[1] / "data/asm/small.sm_90a.cubin"
    op = ["softmax.kg", "--op", "other", "--size", "P=4"]
    for line, refusal in ((["explain", *op, "--rigor"], "is not one of"),
                          (["explain", *op, "--rigor", "estimate", "--protocol"], "is no protocol"),
                          (["emit", *op, "--target"], "there is no target"),
                          (["check", *op, "--lang"], "there is no document in"),
                          (["asm", str(kernel), "--device"], "no device")):
        words = shell.complete(" ".join(line) + " ")
        for word in words + ["none"]:
            if "--rigor" in line[-1] and word in ("measure", "patient", "exhaustive"):
                continue  # would search
            said = subprocess.run([PROGRAM, *line, word], cwd=folder, capture_output=True, text=True)
            if (refusal in said.stderr) != (word == "none"):
                failures.append(word)
                print(f"{line[0]} {line[-1]} {word}: {said.stderr}")
            listed = re.search(r"known are (.*)", said.stderr)
            if listed:
                check(" ".join(line) + " ", listed[1].split(", "), words)


def check_shell(folder, load, place):
    os.environ.update(HOME=str(folder), KERNELGEN_HOME=str(folder / "home"))
    script = told("completions", SHELL)
    assert script.returncode == 0 and not script.stderr, script.stderr
    assert not (folder / "home").exists(), "printing completions touched the records"
    (folder / place).parent.mkdir(parents=True, exist_ok=True)
    make_files(folder)
    (folder / place).write_text(script.stdout)
    shell = Fish(folder) if SHELL == "fish" else Terminal(folder, load)
    check_names(shell)
    check_values(shell)
    check_files(shell)
    check_words_are_accepted(shell, folder)


def main():
    if not shutil.which(SHELL):
        print(f"{SHELL} is not installed")
        sys.exit(77)
    os.environ.update(LC_ALL="C.UTF-8", TERM="xterm", PS1="", COLUMNS="500", HISTFILE="/dev/null")
    for load, place, needed in LOADS[SHELL]:
        if not Path(needed).exists():
            print(f"NOTE: not tried, for want of {needed}: {load}")
            continue
        with tempfile.TemporaryDirectory() as name:
            check_shell(Path(name), load, place)
    sys.exit(1 if failures else 0)


main()
