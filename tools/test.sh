#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# What make test runs on build/dev: C++ tests, Python tests. Goes on past a phase that fails, says what each took
# as it ends, and prints something at least every 10 s.
#
#   JOBS=4 tools/test.sh    as on a machine with so many cores
set -uo pipefail
cd "$(dirname "$0")/.."

jobs=${JOBS:-$(nproc)}
failed=()
took=()
# Every process of the suite reads modules of the package and of the tests: they are compiled once.
unset PYTHONDONTWRITEBYTECODE

phase() {
    local name=$1 begun=$SECONDS result=ok
    shift
    echo "== $name"
    .venv/bin/python tools/show_progress.py "$name" "$@" || { result=failed; failed+=("$name"); }
    took+=("$(printf '%-28s %5d s  %s' "$name" $((SECONDS - begun)) $result)")
    echo "== ${took[-1]}"
}

# Most tests wait most of the time, hence two of C++ and three of Python for each core. C++ tests and Python tests do not go together: emulated
# GPUs are hundreds of threads, and deadlines are what others test.
export PYTHONPATH=$PWD/build/dev/python
phase "C++ tests" ctest --preset dev --parallel $((2 * jobs))
phase "Python tests, side by side" .venv/bin/pytest -m "not (alone or gpu)" --numprocesses $((3 * jobs))
phase "Python tests, alone" .venv/bin/pytest -m "alone or gpu"

printf '\n'
printf '%s\n' "${took[@]}"
printf '%-28s %5d s\n' "all" "$SECONDS"
[ ${#failed[@]} -eq 0 ] || { (IFS=,; echo "test: failed: ${failed[*]}"); exit 1; }
