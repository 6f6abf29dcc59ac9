"""Runs the gate on one candidate and says what became of it, and of what it left behind."""

import dataclasses
import json
import os
import re
import signal
import subprocess
import tempfile
import time

PASSED, REFUSED = "passed", "rejected"
COMPILES = "compiles"  # for a GPU that is not there
RUNNING = set()  # sessions of the tool, for whoever is interrupted: see end_running

# The gate's own troubles: it said nothing, or that it could not judge, or something outlived it.
NO_VERDICT, HANGS, LEFT = "no verdict", "the tool hangs", "processes left behind"


@dataclasses.dataclass
class Outcome:
    verdict: str
    reason: str = ""
    seconds: float = 0.0
    left: int = 0  # processes that outlived the verdict

    @property
    def case(self):
        """The case that caught it: "case 27 (P=1 D=1, some NaN)"."""
        found = re.match(r"case \d+ \(.*?\)(?=: )", self.reason)
        return found.group() if found else ""


def is_alive(process):
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def end_left(notes, patience=2.0):
    """Ends the processes that planted kernels noted, and gives how many there were. What was told to
    end gets some seconds for it."""
    if not os.path.exists(notes):
        return 0
    with open(notes, encoding="utf-8") as file:
        noted = {int(line) for line in file if line.strip().isdigit()}
    os.unlink(notes)
    until = time.monotonic() + patience
    alive = {process for process in noted if is_alive(process)}
    while alive and time.monotonic() < until:
        time.sleep(0.05)
        alive = {process for process in alive if is_alive(process)}
    for process in alive:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return len(alive)


def end_running():
    """Ends the tool's processes when the siege is given up."""
    for session in list(RUNNING):
        end_session(session)


def end_session(session):
    try:
        os.killpg(session, signal.SIGKILL)
    except ProcessLookupError:
        pass


def read_verdict(text):
    """The JSON of the verdict: the last line that is one."""
    for line in reversed(text.splitlines()):
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict) and "passed" in found:
            return found
    return None


def first_line(text):
    """What the tool says of its failure."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for line in lines:
        if "error:" in line or line.startswith("kernelgen"):
            return line
    return lines[0] if lines else ""


def verify(tool, words, path, device, seed, notes, limit):
    """Judges the candidate in `path`; the tool gets `limit` seconds."""
    command = tool.command("verify", *words, "--candidate", path, "--device", device,
                           "--seed", str(seed), "--json")
    began = time.monotonic()
    # Files, not pipes: a process that outlives the verdict would hold these open.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, env=tool.environment(),
                                   stdin=subprocess.DEVNULL, start_new_session=True)
        RUNNING.add(process.pid)
        try:
            outcome = judge(process.wait(limit), written(out), written(err))
            outcome.reason = outcome.reason.replace(f"{path}: ", "")
        except subprocess.TimeoutExpired:
            end_session(process.pid)
            process.wait()
            outcome = Outcome(HANGS, f"no verdict after {limit:g} s")
        RUNNING.discard(process.pid)
    outcome.seconds = time.monotonic() - began
    outcome.left = end_left(notes)
    return outcome


def written(file):
    """The end of what was written."""
    file.seek(max(file.seek(0, os.SEEK_END) - (1 << 20), 0))
    return file.read().decode(errors="replace")


def judge(status, out, err):
    found = read_verdict(out)
    if status == 0 and found and found["passed"]:
        return Outcome(PASSED)
    if status == 1 and found and not found["passed"]:
        return Outcome(REFUSED, found["reason"])
    if status == 3 and "compiles for" in err:
        return Outcome(COMPILES)
    if status < 0:
        return Outcome(NO_VERDICT, f"the tool died of signal {-status}")
    return Outcome(NO_VERDICT, f"exit status {status}: {first_line(err) or first_line(out)}")
