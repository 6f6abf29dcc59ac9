"""What all tests of the Python package begin and end with: a home of their own, and exit status 77 where all
were skipped."""

import atexit
import os
import shutil
import sys
import tempfile
import unittest

HOME = tempfile.mkdtemp(prefix="kg-test-python-")
atexit.register(shutil.rmtree, HOME, ignore_errors=True)
os.environ["KERNELGEN_HOME"] = HOME
os.environ["KERNELGEN_WISDOM"] = ""


def need(module):
    """The module, or the end of the program: the test is skipped."""
    try:
        return __import__(module)
    except ImportError:
        print(f"skipped: {module} is not installed")
        sys.exit(77)


def main():
    result = unittest.main(exit=False, verbosity=1).result
    if not result.wasSuccessful():
        sys.exit(1)
    ran = result.testsRun - len(result.skipped)
    print(f"{ran} tests, {len(result.skipped)} skipped")
    sys.exit(0 if ran else 77)
