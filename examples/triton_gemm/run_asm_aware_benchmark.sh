#!/bin/sh
# The functional test, and the comparison if it passes. PYTHON names another Python.
set -eu
cd "$(dirname "$0")"
"${PYTHON:-python3}" test_asm_aware.py
exec "${PYTHON:-python3}" benchmark_asm_aware.py
