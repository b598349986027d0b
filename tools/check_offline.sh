#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Builds and checks on a machine without a network that already has torch, numpy, cmake, ninja, pytest and a
# compiler: another torch version, or GPUs. Headers come from tools/collect_deps.sh (build/deps, carried).
#
#   tools/check_offline.sh [python]
#
# Prints the versions, the outcome of the C++ tests and of the Python tests that need nothing else, and the
# benchmark against Gloo at a few sizes.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${1:-python3}
build=build/offline
"$python" -c 'import sys, torch; print("python", sys.version.split()[0], "torch", torch.__version__)'
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DPCCL_BUILD_TESTS=ON \
    -DPython_EXECUTABLE="$(command -v "$python")" -DPCCL_DEPS_DIR="$PWD/build/deps" >"$build.log" 2>&1 ||
    { tail -40 "$build.log"; exit 1; }
cmake --build "$build" >>"$build.log" 2>&1 || { grep -B2 -A8 -m5 'error' "$build.log"; exit 1; }

failures=0
ctest --test-dir "$build" --output-on-failure -j 8 2>&1 | tail -25 || failures=1
export PYTHONPATH=$PWD/$build/python
"$python" -m pytest -q tests/python/test_import.py tests/python/test_communicator.py \
    tests/multiproc 2>&1 | tail -15 || failures=1
"$python" benchmarks/cpu_torch.py --ranks 2 4 --sizes 1024 65536 1048576 16777216 --rounds 3 || true
exit "$failures"
