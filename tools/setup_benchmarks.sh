#!/usr/bin/env bash
# Sets up what the benchmarks need besides PCCL, after tools/setup.sh: Open MPI and mpi4py, the peer
# of cpu_numpy and cpu_scale, and matplotlib for plot.py. What is there already is left alone.
#
# Debian packages need root or a sudo that asks no password; otherwise the line to run is printed.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(openmpi-bin libopenmpi-dev)
modules=(mpi4py==4.1.2 matplotlib==3.11.2)

say() { printf 'setup: %s\n' "$*"; }

is_installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }

install_packages() {
    local missing=() name
    for name in "${packages[@]}"; do
        is_installed "$name" || missing+=("$name")
    done
    [ ${#missing[@]} -eq 0 ] && return
    local line="apt-get install -y --no-install-recommends ${missing[*]}"
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        if ! sudo -n true 2>/dev/null; then
            say "Debian packages are missing. Run this, then the same command again:"
            echo "    sudo $line"
            exit 1
        fi
        as_root=(sudo -n)
    fi
    say "$line"
    "${as_root[@]}" apt-get update -qq
    # shellcheck disable=SC2086  # the line is a list of words
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive $line
}

[ -x .venv/bin/python ] || { say ".venv is missing: run make venv first"; exit 1; }
install_packages
.venv/bin/python -m pip install --quiet "${modules[@]}"
say "done"
