"""Runs the gate on one candidate and says what became of it, and of what it left behind."""

import dataclasses
import json
import os
import re
import signal
import subprocess
import time

PASSED, REFUSED = "passed", "rejected"
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


def end_left(notes):
    """Ends the processes that planted kernels noted, and gives how many there were."""
    if not os.path.exists(notes):
        return 0
    with open(notes, encoding="utf-8") as file:
        noted = {int(line) for line in file if line.strip().isdigit()}
    os.unlink(notes)
    until = time.monotonic() + 2  # what was told to end may take a moment
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
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace", env=tool.environment(), stdin=subprocess.DEVNULL,
                          start_new_session=True) as process:
        try:
            out, err = process.communicate(timeout=limit)
            outcome = judge(process.returncode, out, err)
        except subprocess.TimeoutExpired:
            # The candidate may hold the pipes; the session is the tool's own.
            os.killpg(process.pid, signal.SIGKILL)
            end_left(notes)
            try:
                process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                process.stdout.close()
                process.stderr.close()
            outcome = Outcome(HANGS, f"no verdict after {limit} s")
    outcome.seconds = time.monotonic() - began
    outcome.left = end_left(notes)
    return outcome


def judge(status, out, err):
    found = read_verdict(out)
    if status == 0 and found and found["passed"]:
        return Outcome(PASSED)
    if status == 1 and found and not found["passed"]:
        return Outcome(REFUSED, found["reason"])
    if status < 0:
        return Outcome(NO_VERDICT, f"the tool died of signal {-status}")
    return Outcome(NO_VERDICT, f"exit status {status}: {first_line(err) or first_line(out)}")
