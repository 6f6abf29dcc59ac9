#!/usr/bin/env python3
"""manual_page.py KERNELGEN PAGE: the manual page is formatted without warnings, and has an entry for
every command and option that --help names, and no others."""

import re
import shutil
import subprocess
import sys

PROGRAM, PAGE = sys.argv[1], sys.argv[2]
failures = []


def fail(text):
    failures.append(text)
    print(text)


def text_of(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, **more)


def formatted():
    """The page as a terminal shows it, once `man` and, where it is installed, mandoc had no complaint."""
    shown = text_of("man", "--warnings", "-l", PAGE,
                    env={"MANWIDTH": "100", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin", "TERM": "dumb"})
    if shown.returncode or shown.stderr:
        fail(f"man -l --warnings: {shown.stderr}")
    if shutil.which("mandoc"):
        lint = text_of("mandoc", "-T", "lint", "-W", "warning", PAGE)
        if lint.stdout or lint.stderr:
            fail(f"mandoc -T lint: {lint.stdout}{lint.stderr}")
    return re.sub(".\x08", "", shown.stdout)


def told(*arguments):
    return text_of(PROGRAM, *arguments).stdout


def compare(what, page, tool):
    for name in sorted(tool - page):
        fail(f"the manual page has no entry for the {what} {name}")
    for name in sorted(page - tool):
        fail(f"the manual page has an entry for the {what} {name}, which --help does not name")


def main():
    if not shutil.which("man") or not shutil.which("groff"):
        print("man or groff is not installed")
        sys.exit(77)
    sections = re.split(r"^([A-Z][A-Z ]+)$", formatted(), flags=re.M)
    page = {name.strip(): text for name, text in zip(sections[1::2], sections[2::2])}
    commands = set(re.findall(r"^  ([\w-]+) {2,}\S", told("--help"), re.M))
    options = set()
    for command in commands:
        options |= set(re.findall(r"^  (--[a-z-]+) ", told(command, "--help"), re.M))
    assert len(commands) > 10 and len(options) > 30
    # An entry begins where all text does, which differs between formatters; its own stands further right.
    indent = re.match(r"\n*( +)", page["NAME"])[1]
    listed = page["DESCRIPTION"].split("The commands are:")[1].split("kernelgen --version")[0]
    compare("command", set(re.findall(rf"^{indent}([\w-]+)(?= |$)", listed, re.M)), commands)
    headings = re.findall(rf"^{indent}(--.*)$", page["OPTIONS"], re.M)
    compare("option", {name for line in headings for name in re.findall(r"(?:^|, )(--[a-z-]+)", line)},
            options)
    sys.exit(1 if failures else 0)


main()
