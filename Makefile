# The one command for each thing one does with this tree. CMake does the work; see CMakePresets.json.
#
#   make test      install what is missing, build, run every test
#   make verify-ops  every shipped definition and dtype through the accuracy gate (minutes)
#   make test-kills  processes that share records, killed at 500 moments, one and four at a time
#   make wheel     the Python package, for every Python: out/kernelgen-*.whl
#   make test-wheel  install it for each Python there is, and use it (needs the package index)
#   make test-torch  the Python package with PyTorch, in an environment outside the tree, $(TORCH_VENV): 5 GB
#   make test-triton  emitted Triton modules of all ops, by Triton's interpreter and its compiler, likewise (an hour)
#   make test-ascend  the same modules through the front end of triton-ascend (needs Python 3.11 and what test-triton installs)
#   make test-bundle  the accuracy files of some bundles, by Triton's interpreter, likewise (half an hour)
#   make demo      install what is missing, build, tune one operator for this machine
#   make bench     measure against the baselines
#   make check     layout, layers, circles, lengths, symbols
#   make sanitize  every test with AddressSanitizer, UBSan, leak checks, then with ThreadSanitizer
#   make sanitize-part  with the former, the tests of what reads outside bytes (minutes)
#   make fuzz      each reader of outside bytes, half a minute, with libFuzzer and sanitizers
#   make format    lay out the sources
#   make install   PREFIX=/usr/local DESTDIR=

PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
TORCH_VENV ?= /var/tmp/kernelgen-torch
ASCEND_VENV ?= /var/tmp/kernelgen-ascend

.PHONY: all test verify-ops test-kills wheel test-wheel test-torch test-triton test-ascend test-bundle demo bench check sanitize sanitize-part fuzz format install clean

all:
	@scripts/bootstrap
	@cmake --preset release >/dev/null
	cmake --build build/release

test:
	@scripts/bootstrap
	@cmake --preset dev >/dev/null
	cmake --build build/dev
	ctest --test-dir build/dev --output-on-failure -j $(JOBS) -LE long

verify-ops:
	@scripts/bootstrap
	@cmake --preset dev >/dev/null
	cmake --build build/dev --target device_shipped_ops
	ctest --test-dir build/dev --output-on-failure -R '^device/shipped_ops$$'

test-kills:
	@scripts/bootstrap
	@cmake --preset dev >/dev/null
	cmake --build build/dev --target faults_processes_killed
	ctest --test-dir build/dev --output-on-failure -R '^faults/processes_killed_500$$'

wheel:
	@scripts/bootstrap python
	@mkdir -p out
	cd python && python3 -c "import kernelgen_build; print('out/' + kernelgen_build.build_wheel('../out'))"

test-wheel:
	@scripts/bootstrap python
	tests/python/wheel.sh

test-torch:
	@scripts/bootstrap python
	@cmake --preset dev >/dev/null
	cmake --build build/dev --target python_package
	@[ -x $(TORCH_VENV)/bin/python ] || python3 -m venv $(TORCH_VENV)
	@$(TORCH_VENV)/bin/python -c 'import torch, numpy, tvm_ffi' 2>/dev/null || $(TORCH_VENV)/bin/pip install torch numpy apache-tvm-ffi
	KG_TORCH_PYTHON=$(TORCH_VENV)/bin/python ctest --test-dir build/dev --output-on-failure -R '^python/torch_'

test-triton:
	@scripts/bootstrap python
	@cmake --preset dev >/dev/null
	cmake --build build/dev --target kernelgen python_package
	@[ -x $(TORCH_VENV)/bin/python ] || python3 -m venv $(TORCH_VENV)
	@$(TORCH_VENV)/bin/python -c 'import torch, numpy, triton' 2>/dev/null || $(TORCH_VENV)/bin/pip install torch 'numpy<2.4' triton
	KG_TRITON_PYTHON=$(TORCH_VENV)/bin/python ctest --test-dir build/dev --output-on-failure -R '^triton/'

test-ascend:
	@scripts/bootstrap python
	@cmake --preset dev >/dev/null
	cmake --build build/dev --target kernelgen
	@[ -x $(ASCEND_VENV)/bin/python ] || python3.11 -m venv $(ASCEND_VENV)
	@$(ASCEND_VENV)/bin/python -c 'import triton.backends.ascend, torch' 2>/dev/null || $(ASCEND_VENV)/bin/pip install triton-ascend pybind11 pyyaml
	@ls -d $(TORCH_VENV)/lib/python3.11/site-packages > $(ASCEND_VENV)/lib/python3.11/site-packages/torch.pth
	KG_ASCEND_PYTHON=$(ASCEND_VENV)/bin/python ctest --test-dir build/dev --output-on-failure -R '^triton/ascend_ops'

test-bundle:
	@scripts/bootstrap
	@cmake --preset dev >/dev/null
	cmake --build build/dev --target kernelgen
	@[ -x $(TORCH_VENV)/bin/python ] || python3 -m venv $(TORCH_VENV)
	@$(TORCH_VENV)/bin/python -c 'import torch, numpy, triton' 2>/dev/null || $(TORCH_VENV)/bin/pip install torch 'numpy<2.4' triton
	KG_TRITON_PYTHON=$(TORCH_VENV)/bin/python ctest --test-dir build/dev --output-on-failure -R '^bundle/accuracy_files'

demo:
	@scripts/bootstrap
	@cmake --preset release >/dev/null
	@cmake --build build/release --target kernelgen
	build/release/kernelgen build ops/bias_relu.kg --dtype T=f32

bench: all
	bench/run build/release/kernelgen

check:
	@scripts/bootstrap check || echo "tools/check: going on without clang-format"
	@tools/check

sanitize:
	@scripts/bootstrap
	@for preset in asan tsan; do \
	    cmake --preset $$preset >/dev/null && cmake --build build/$$preset && \
	    ctest --test-dir build/$$preset --output-on-failure -j $(JOBS) -LE long || exit 1; done

sanitize-part:
	@scripts/bootstrap
	@cmake --preset asan >/dev/null
	cmake --build build/asan --target sanitize_part
	ctest --test-dir build/asan --output-on-failure -j $(JOBS) -L sanitize

fuzz:
	@scripts/bootstrap fuzz
	@cmake --preset fuzz >/dev/null
	cmake --build build/fuzz
	ctest --test-dir build/fuzz --output-on-failure -R '^fuzz/'

format:
	@scripts/bootstrap check
	git ls-files -z '*.c' '*.h' '*.cuh' ':!tests/golden/emitted' | xargs -0 clang-format-14 -i

install: all
	DESTDIR="$(DESTDIR)" cmake --install build/release --prefix "$(PREFIX)" --strip
	@[ -n "$(DESTDIR)" ] || [ "$$(id -u)" != 0 ] || ldconfig # the loader finds the library at once

clean:
	rm -rf build
