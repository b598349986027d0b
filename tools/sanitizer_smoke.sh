#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Runs tests/sanitizers/smoke.py on the package of build/asan or build/tsan; more arguments go to it.
# Python itself is not built with the sanitizer, so its runtime must be there before anything else.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=$1
compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "build/$preset/CMakeCache.txt")
libraries=$("$compiler" -print-file-name="lib$preset.so")
[ "$preset" = tsan ] || libraries+=:$("$compiler" -print-file-name=libubsan.so)
# Python frees little at its end, and what it keeps would count as leaked.
export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1
# setarch: older sanitizer runtimes do not find their place where addresses are random.
LD_PRELOAD=$libraries PYTHONPATH=$PWD/build/$preset/python \
    setarch --addr-no-randomize "${PYTHON:-.venv/bin/python}" tests/sanitizers/smoke.py "${@:2}"
