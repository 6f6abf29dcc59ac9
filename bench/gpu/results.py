"""Means of results, and the file they are kept in."""

import json
import math
import os


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def percentile(values, share):
    """Between the two nearest values, in proportion."""
    ordered, place = sorted(values), share * (len(values) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def write_json(path, document):
    """All or nothing; no path, no file."""
    if path:
        with open(path + ".part", "w") as file:
            json.dump(document, file, indent=1)
        os.replace(path + ".part", path)
