#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Every check that needs no test run: layers, imports, names, vocabulary, prose, licences, formatting, ruff, mypy, stubs,
# whether each file compiles alone, clang-tidy, documentation.
#
#   tools/lint.sh           all of them; build/dev must be built
#   tools/lint.sh changed   with clang-tidy and documentation for what this branch changes
#   tools/lint.sh ci        without the compilation of each C++ file alone
#   tools/lint.sh quick     without what needs a build either, as before a commit
#   tools/lint.sh format    formats all files instead of checking them
set -uo pipefail
cd "$(dirname "$0")/.."
failed=()
changed=
[ "${1:-}" != changed ] || changed=yes

step() {
    local name=$1
    shift
    local begun=$SECONDS
    echo "== $name"
    "$@" || failed+=("$name")
    [ $((SECONDS - begun)) -lt 2 ] || echo "== $name: $((SECONDS - begun)) s"
}

cxx_format() {
    find include csrc plugins tests benchmarks examples -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' |
        xargs .venv/bin/clang-format "$@"
}

# One line a file; `make format` repairs them.
clang_format() {
    local files
    files=$(cxx_format --dry-run 2>&1 | grep -o '^[^: ]*:' | sort -u)
    [ -z "$files" ] || { printf '%s not as .clang-format says: make format\n' $files; return 1; }
}

if [ "${1:-}" = format ]; then
    cxx_format -i
    exec .venv/bin/ruff format .
fi

step layers .venv/bin/python tools/check_layers.py
step imports .venv/bin/python tools/check_imports.py
step names .venv/bin/python tools/check_names.py
step vocabulary .venv/bin/python tools/check_vocabulary.py
step prose .venv/bin/python tools/check_prose.py
step licences .venv/bin/python tools/spdx.py
step clang-format clang_format
step ruff .venv/bin/ruff check --quiet .
step ruff-format .venv/bin/ruff format --quiet --check .
step mypy .venv/bin/mypy
if [ "${1:-}" != quick ]; then
    step stubtest .venv/bin/python tools/check_stubs.py build/dev
    step documentation .venv/bin/python tools/build_docs.py ${changed:+--changed}
fi
if [ "${1:-}" != quick ]; then
    cmake --preset lint >/dev/null
    step clang-tidy .venv/bin/python tools/run_clang_tidy.py ${changed:+--changed} build/lint
fi
if [ "${1:-}" != quick ] && [ "${1:-}" != ci ]; then
    step "headers of tests" cmake --build build/lint --target CMakeFiles/pccl_base_test.dir/cmake_pch.hxx.gch
    step alone .venv/bin/python tools/check_alone.py build/lint
fi

if [ ${#failed[@]} -ne 0 ]; then
    echo "lint: failed: ${failed[*]}"
    exit 1
fi
echo "lint: ok"
