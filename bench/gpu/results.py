"""Means of results, and the file they are kept in."""

import json
import math
import os


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def write_json(path, document):
    """All or nothing; no path, no file."""
    if path:
        with open(path + ".part", "w") as file:
            json.dump(document, file, indent=1)
        os.replace(path + ".part", path)
