#!/usr/bin/env bash
# Builds the wheel, installs it into an empty environment of each Python there is, and computes something on
# the CPU there, with nothing of this tree at hand. Needs the package index for NumPy.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export KERNELGEN_HOME=$folder/home

fail() {
    echo "wheel: $*"
    exit 1
}
python3 -m venv "$folder/first"
"$folder/first/bin/pip" --disable-pip-version-check wheel -q --no-deps -w "$folder" "$root/python" >"$folder/log" 2>&1 ||
    fail "$(cat "$folder/log")"
wheel=$(echo "$folder"/*.whl)
echo "$(basename "$wheel"): $(stat -c %s "$wheel") bytes"
[[ $wheel == *-py3-none-manylinux_2_*.whl ]] || fail "it is no wheel for every Python"

cat >"$folder/use.py" <<'EOF'
import time
begin = time.monotonic()
import kernelgen
import numpy as np
x = np.linspace(-4, 4, 60, dtype="f4").reshape(4, 15)
op = kernelgen.op("softmax.kg", "softmax")
for _ in range(2):
    np.testing.assert_allclose(op(x), np.exp(x) / np.exp(x).sum(1, keepdims=True), rtol=1e-5)
print(f"first result after {time.monotonic() - begin:.1f} s")
from kernelgen import operators
assert operators.CallsInC is not None, "the extension module does not load"
EOF

tried=0
for python in $(ls -d "$HOME"/.pyenv/versions/3.*/bin/python /usr/bin/python3 2>/dev/null); do
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' || continue
    if ! "$python" -m venv "$folder/venv" >"$folder/log" 2>&1; then
        echo "$python: skipped, it makes no environments"
        continue
    fi
    "$folder/venv/bin/pip" --disable-pip-version-check install -q numpy "$wheel" >"$folder/log" 2>&1 ||
        fail "$python: $(cat "$folder/log")"
    rm -rf "$KERNELGEN_HOME"
    (cd "$folder" && env -u PYTHONPATH venv/bin/python use.py) >"$folder/log" 2>&1 || fail "$python: $(cat "$folder/log")"
    echo "$("$python" --version): $(cat "$folder/log")"
    (cd "$folder" && venv/bin/python -m kernelgen doctor >/dev/null) || fail "$python: the doctor is not content"
    rm -rf "$folder/venv"
    tried=$((tried + 1))
done
[ "$tried" -gt 0 ] || exit 77
ldd "$root/build/wheel/python/kernelgen/lib/libkernelgen.so" | grep -Ei 'cuda|nvrtc|sqlite' && fail "it is linked with these"
echo "$tried versions of Python"
