"""python -m kernelgen doctor: what KernelGen has on this machine, and what is missing."""

import sys

from . import doctor

USAGE = "usage: python -m kernelgen doctor [--json]"


def main(words):
    if words in (["--help"], ["-h"]):
        print(USAGE)
        return 0
    if not words or words[0] != "doctor" or words[1:] not in ([], ["--json"]):
        print(USAGE, file=sys.stderr)
        return 2
    return doctor.report(as_json="--json" in words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
