"""What the machine has of all that KernelGen can use, and what to do about the rest."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import json
import tempfile
from typing import NamedTuple

from . import errors, library


class Finding(NamedTuple):
    what: str
    is_there: bool
    text: str


def _look_at_home() -> Finding:
    home = library.home_path()
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=home):
            return Finding("home folder", True, str(home))
    except OSError:
        pass
    return Finding("home folder", False, f"{home} cannot be written: nothing that is measured will be kept. Set "
                   "KERNELGEN_HOME to a folder of yours")


def _look_at_library() -> Finding:
    try:
        return Finding("library", True, f"{library.version()}, {library.library_path()}")
    except errors.Error as error:
        return Finding("library", False, str(error))


def _look_at_call_path() -> Finding:
    if importlib.util.find_spec("kernelgen._call_path") is not None:
        try:
            importlib.import_module("kernelgen._call_path")
            return Finding("short calls", True, "the extension module is in use")
        except ImportError as error:
            return Finding("short calls", False, f"{error}: calls take some 20 us longer")
    return Finding("short calls", False, "the extension module is not there: calls take some 20 us longer")


def _look_at_devices() -> list[Finding]:
    session = library.current()
    with session.working():
        listed = json.loads(session.text("kg_context_devices", session.context, True))
    found = []
    for entry in listed:
        if "missing" in entry:
            found.append(Finding(entry["backend"], False, entry["missing"]))
        elif not entry["compiler"]:
            found.append(Finding(entry["device"], False, f"{entry['name']}, but there is no compiler for it"))
        else:
            driver = f"; driver {entry['driver']}" if entry["driver"] else ""
            found.append(Finding(entry["device"], True, f"{entry['name']}; {entry['compiler'].split(' -')[0]}{driver}"))
    return found


def _look_at_package(name: str) -> Finding:
    try:
        return Finding(name, True, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        there = importlib.util.find_spec(name) is not None
        return Finding(name, there, "installed" if there else "not installed; it is not needed")


def findings() -> list[Finding]:
    found = [_look_at_library()]
    if found[0].is_there:
        found += [_look_at_home(), _look_at_call_path(), *_look_at_devices()]
    return found + [_look_at_package(name) for name in ("numpy", "torch", "cupy")]


def report(as_json: bool = False) -> int:
    """Prints all findings. The exit status: 0, or 3 if nothing can run here."""
    found = findings()
    if as_json:
        print(json.dumps([finding._asdict() for finding in found], indent=1))
    else:
        for finding in found:
            print(f"{'ok' if finding.is_there else '--':3} {finding.what:12} {finding.text}")
    runs = any(finding.is_there and (finding.what == "host" or finding.what.startswith("cuda:")) for finding in found)
    return 0 if runs else 3
