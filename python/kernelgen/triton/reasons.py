"""What happened to each config, for those who want to know: KERNELGEN_LOG=stderr, or the name of a file.

On stderr lines are for readers; in a file they are JSON, one a line, appended.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, Optional


def destination() -> Optional[str]:
    return os.environ.get("KERNELGEN_LOG") or None


def tell(event: str, **members: Any) -> None:
    """One event, if somebody listens."""
    where = destination()
    if where is None:
        return
    if where == "stderr":
        words = ", ".join(f"{name}: {value}" for name, value in members.items() if value not in (None, ""))
        print(f"kernelgen.triton: {event}: {words}", file=sys.stderr)
        return
    line = json.dumps({"time": round(time.time(), 3), "event": event, **members}, default=str) + "\n"
    try:
        append(where, line)
    except OSError as error:
        print(f"kernelgen.triton: KERNELGEN_LOG={where} cannot be written: {error}", file=sys.stderr)


def append(path: str, line: str) -> None:
    """One line, whole or not at all as far as other writers see: a single write at the end of the file."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(number, line.encode())
    finally:
        os.close(number)
