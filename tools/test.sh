#!/usr/bin/env bash
# What make test runs on build/dev: lint, documentation, C++ tests, Python tests. Goes on past a phase that fails, and
# ends with what each took.
#
#   JOBS=4 tools/test.sh    as on a machine with so many cores
set -uo pipefail
cd "$(dirname "$0")/.."

jobs=${JOBS:-$(nproc)}
table=()
failed=()

phase() {
    local name=$1 begun=$SECONDS result=ok
    shift
    echo "== $name"
    "$@" || { result=failed; failed+=("$name"); }
    table+=("$(printf '%-28s %5d s  %s' "$name" $((SECONDS - begun)) $result)")
}

python_tests() {
    PYTHONPATH=$PWD/build/dev/python .venv/bin/pytest "$@"
}

phase "lint" tools/lint.sh changed
phase "documentation" .venv/bin/python tools/build_docs.py --changed
phase "C++ tests" ctest --preset dev --parallel "$jobs"
# Most of them wait most of the time.
phase "Python tests, side by side" python_tests -m "not (alone or gpu)" --numprocesses $((2 * jobs))
phase "Python tests, alone" python_tests -m "alone or gpu"

printf '\n'
printf '%s\n' "${table[@]}"
printf '%-28s %5d s\n' "all" "$SECONDS"
[ ${#failed[@]} -eq 0 ] || { (IFS=,; echo "test: failed: ${failed[*]}"); exit 1; }
