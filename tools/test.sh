#!/usr/bin/env bash
# What make test runs on build/dev: lint, documentation, C++ tests, Python tests. Goes on past a phase that fails, and
# ends with what each took.
#
#   JOBS=4 tools/test.sh    as on a machine with so many cores
set -uo pipefail
cd "$(dirname "$0")/.."

jobs=${JOBS:-$(nproc)}
notes=$(mktemp -d)
lanes=()
# Every process of the suite reads modules of the package and of the tests: they are compiled once.
unset PYTHONDONTWRITEBYTECODE

phase() {
    local name=$1 begun=$SECONDS result=ok
    shift
    echo "== $name"
    "$@" || { result=failed; echo "$name" >>"$notes/failed"; }
    printf '%-28s %5d s  %s\n' "$name" $((SECONDS - begun)) $result >>"$notes/table"
}

# Beside what follows, in a process group of its own: so it hears signals, and can be ended whole.
beside() {
    set -m
    "$@" </dev/null >"$notes/$1" 2>&1 &
    set +m
    lanes+=($!)
}

end_lanes() {
    local lane
    trap '' INT TERM
    for lane in "${lanes[@]}"; do
        kill -- -"$lane" 2>/dev/null
    done
    rm -rf "$notes"
}
trap end_lanes EXIT
trap 'exit 130' INT TERM

lint_and_documentation() {
    phase "lint" nice -n 10 tools/lint.sh changed
    phase "documentation" nice -n 10 .venv/bin/python tools/build_docs.py --changed
}

python_tests() {
    PYTHONPATH=$PWD/build/dev/python .venv/bin/pytest "$@"
}

# Most tests wait most of the time; what is left of the cores then goes to lint, and none that a test wants. C++ tests and
# Python tests do not go together: emulated GPUs are hundreds of threads, and deadlines are what others test.
beside lint_and_documentation
phase "C++ tests" ctest --preset dev --parallel $((2 * jobs))
phase "Python tests, side by side" python_tests -m "not (alone or gpu)" --numprocesses $((2 * jobs))
wait
cat "$notes/lint_and_documentation"
phase "Python tests, alone" python_tests -m "alone or gpu"

printf '\n'
cat "$notes/table"
printf '%-28s %5d s\n' "all" "$SECONDS"
[ ! -e "$notes/failed" ] || { echo "test: failed: $(paste -sd, "$notes/failed")"; exit 1; }
