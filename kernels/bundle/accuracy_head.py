# The head of NAME_accuracy.py: what it imports. The definition follows, then the other parts.

import argparse
import importlib.metadata
import importlib.util
import json
import math
import os
import pathlib
import sys

try:
    import torch
    from torch.overrides import TorchFunctionMode
except ImportError as missing:
    sys.exit(f"this test needs PyTorch: {missing}") if __name__ != "__main__" else (
        print(f"this test needs PyTorch: {missing}", file=sys.stderr), sys.exit(3))


def _real(value):
    """A number that a kernel rounds to its compute type."""
    return torch.tensor(float(value), dtype=torch.float64)


# ---- The definition ----
