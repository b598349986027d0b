#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Builds against every release of torch that is promised, and runs the tests of its process groups on it:
# from 2.11 on, the newest of each, as pip finds them. Not part of make test: each takes minutes.
#
#   tools/torch_versions.sh             all of them; what is listed, but does not install here, is left out
#   tools/torch_versions.sh 2.14.1      these
#   TESTS="tests/multiproc" JOBS=2      other tests; compilers at a time
#
# Ends with a line for each. Environments stay in build/torch-versions for the next time: up to 5.5 GB
# each, for torch of PyPI brings the libraries of CUDA.
set -uo pipefail
cd "$(dirname "$0")/.."
export PIP_NO_CACHE_DIR=1

oldest=2.11
tests=${TESTS:-tests/python/test_import.py tests/multiproc/test_torch_groups.py tests/multiproc/test_torch_messages.py
    tests/multiproc/test_torch_movement.py tests/multiproc/test_torch_reductions.py tests/multiproc/test_torch_work.py}
jobs=${JOBS:-$(nproc)}
not_installed=99
table=()
failed=
tested=

# "2.14.1 2.13.0 ...": of each minor release the newest, from $oldest on.
releases() {
    .venv/bin/python -m pip index versions torch 2>/dev/null | sed -n 's/^Available versions: //p' | tr -d ' ' |
        tr ',' '\n' | grep -v + | .venv/bin/python -c '
import sys

def key(version):
    return tuple(int(part) for part in version.split("."))

newest = {}
for version in sorted(sys.stdin.read().split(), key=key):
    newest[key(version)[:2]] = version
print(*(version for minor, version in newest.items() if minor >= key(sys.argv[1])))' "$oldest"
}

has_torch() { "$1" -c 'import sys, torch; sys.exit(torch.__version__.partition("+")[0] != sys.argv[1])' "$2" 2>/dev/null; }

# One environment for each; torch first, that nothing brings another.
environment() {
    local version=$1 folder=$2
    [ -x "$folder/bin/python" ] || .venv/bin/python -m venv "$folder" || return
    has_torch "$folder/bin/python" "$version" || "$folder/bin/python" -m pip install --quiet "torch==$version" || return
    .venv/bin/python -c '
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
tools = [pin for pin in project["optional-dependencies"]["dev"] if pin.startswith(("pytest", "expecttest", "hypothesis"))]
print(*project["dependencies"], *tools, sep="\n")' >"$folder/requirements.txt"
    "$folder/bin/python" -m pip install --quiet -r "$folder/requirements.txt"
}

# As make dev builds, in a folder as deep, so that ccache has all but what includes torch or pybind11.
build() {
    local python=$1 folder=$2
    cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O2 -g1" \
        -DPCCL_DEVELOPER=ON -DPCCL_WITH_CUDA=OFF -DPCCL_UNITY_MODULES=ON -DPython_EXECUTABLE="$python" &&
        cmake --build "$folder" --parallel "$jobs"
}

check() {
    local version=$1 folder=$PWD/build/torch-versions/$1 built=$PWD/build/torch-$1
    mkdir -p "$folder"
    environment "$version" "$folder/venv" >"$folder/pip.log" 2>&1 ||
        { outcome="does not install: $folder/pip.log"; return $not_installed; }
    build "$folder/venv/bin/python" "$built" >"$folder/build.log" 2>&1 ||
        { outcome="does not build: $folder/build.log"; return 1; }
    # shellcheck disable=SC2086  # several files
    PYTHONPATH=$built/python "$folder/venv/bin/python" -m pytest -q $tests >"$folder/tests.log" 2>&1
    local status=$?
    outcome=$(tail -1 "$folder/tests.log")
    return $status
}

for version in ${*:-$(releases)}; do
    echo "== torch $version"
    outcome=
    check "$version"
    case $? in
    0) tested="$tested $version" ;;
    "$not_installed") [ $# -eq 0 ] || failed="$failed $version" ;;
    *) failed="$failed $version" ;;
    esac
    echo "$outcome"
    table+=("torch $version: $outcome")
done
printf '\n'
[ ${#table[@]} -eq 0 ] || printf '%s\n' "${table[@]}"
[ -z "$failed" ] || { echo "torch_versions: failed:$failed"; exit 1; }
[ -n "$tested" ] || { echo "torch_versions: pip installs no torch from $oldest on"; exit 1; }
