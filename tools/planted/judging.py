"""Runs the gate on candidates and says what became of each, and of what it left behind."""

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
LIMIT_OF_EACH = 10  # seconds that a process gets for each of many candidates
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


def notes_of(path):
    """Where a planted kernel notes the processes that it starts."""
    return f"{path}.notes"


def run(tool, words, paths, device, seed, limit):
    """(exit status, standard output, standard error) of the tool, which gets `limit` seconds; the
    status is None if they were not enough."""
    candidates = [word for path in paths for word in ("--candidate", path)]
    command = tool.command("verify", *words, *candidates, "--device", device, "--seed", str(seed),
                           "--json")
    # Files, not pipes: a process that outlives the verdict would hold these open.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, env=tool.environment(),
                                   stdin=subprocess.DEVNULL, start_new_session=True)
        RUNNING.add(process.pid)
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            end_session(process.pid)
            process.wait()
            status = None
        RUNNING.discard(process.pid)
        return status, written(out), written(err)


def verify(tool, words, path, device, seed, limit):
    """The outcome of one candidate, judged in a process of its own."""
    began = time.monotonic()
    status, out, err = run(tool, words, [path], device, seed, limit)
    outcome = (Outcome(HANGS, f"no verdict after {limit:g} s") if status is None
               else judge(status, out, err))
    outcome.reason = outcome.reason.replace(f"{path}: ", "")
    outcome.seconds = time.monotonic() - began
    outcome.left = end_left(notes_of(path))
    return outcome


def verify_all(tool, words, paths, device, seed, limit):
    """The outcomes of several candidates, judged by one process. None stands for those of which it
    gave no verdict, and for all of them if its answer is incomplete."""
    began = time.monotonic()
    status, out, _err = run(tool, words, paths, device, seed, limit + LIMIT_OF_EACH * len(paths))
    left = [end_left(notes_of(path)) for path in paths]
    found = read_verdicts(out, paths) if status is not None and status >= 0 else None
    outcomes = [outcome_of(verdict, path) for verdict, path in zip(found or [None] * len(paths),
                                                                    paths)]
    for outcome, count in zip(outcomes, left):
        if outcome:
            outcome.seconds = (time.monotonic() - began) / len(paths)
            outcome.left = count
    return outcomes


def read_verdicts(text, paths):
    """The JSON of all verdicts, or None."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    if not isinstance(found, list) or [item.get("candidate") for item in found] != paths:
        return None
    return found


def outcome_of(verdict, path):
    if verdict and "compiles for" in verdict.get("error", ""):
        return Outcome(COMPILES)
    if not verdict or "passed" not in verdict:
        return None
    if verdict["passed"]:
        return Outcome(PASSED)
    return Outcome(REFUSED, verdict["reason"].replace(f"{path}: ", ""))


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
