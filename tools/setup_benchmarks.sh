#!/usr/bin/env bash
# Sets up what the benchmarks need besides PCCL, after tools/setup.sh: Open MPI and mpi4py, the peer
# of cpu_numpy and cpu_scale, and matplotlib for plot.py. What is there already is left alone.
#
# Debian packages need root or a sudo that asks no password; otherwise the line to run is printed.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(openmpi-bin libopenmpi-dev)
modules=(mpi4py==4.1.2 matplotlib==3.11.2)

# shellcheck source=tools/debian_packages.sh
source tools/debian_packages.sh

[ -x .venv/bin/python ] || { say ".venv is missing: run make venv first"; exit 1; }
install_packages "${packages[@]}"
.venv/bin/python -m pip install --quiet "${modules[@]}"
say "done"
