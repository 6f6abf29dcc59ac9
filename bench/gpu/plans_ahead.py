#!/usr/bin/env python3
"""Makes plans by rule, by many threads, so that their kernels lie compiled in a home.

The task comes as JSON on standard input: the home, and jobs with a file, an op and its bindings.
Needs no package.
"""

import json
import os
import sys
import threading
from queue import Empty, SimpleQueue

from kernelgen_plan import Context
from timing_process import COMPILERS


def work(home, jobs):
    """One thread, with a context of its own."""
    context = Context(home)
    while True:
        try:
            job = jobs.get_nowait()
            context.plan(job["file"], job["op"], job["bindings"]).close()
        except Empty:
            return
        except RuntimeError:
            pass  # its line will say why


def main():
    task, jobs = json.load(sys.stdin), SimpleQueue()
    for job in task["jobs"]:
        jobs.put(job)
    threads = [threading.Thread(target=work, args=(task["home"], jobs))
               for _ in range(min(COMPILERS, os.cpu_count() or 1, len(task["jobs"])))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
