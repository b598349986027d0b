#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Sets up everything that PCCL needs on Debian 12: packages, .venv, torch, the pinned tools, and the
# headers of NIXL where its repository is reached.
#
#   tools/setup.sh            all of it; what is there already is left alone
#   tools/setup.sh demo       what make demo needs: the wheel and its example, no tools for developers
#   PYTHON=python3.12         the interpreter for .venv (default python3; 3.11 or newer)
#   PCCL_TORCH_SPEC=torch==…  another torch than 2.13.0
#
# Debian packages need root or a sudo that asks no password; otherwise the line to run is printed.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
torch_spec=${PCCL_TORCH_SPEC:-torch==2.13.0}
# shellcheck source=tools/debian_packages.sh
source tools/debian_packages.sh

packages=(
    ca-certificates ccache cmake g++ iproute2 libfmt-dev libhwloc15 libibverbs-dev libpugixml-dev librdmacm-dev
    libspdlog-dev libssl-dev make ninja-build nlohmann-json3-dev
)
tools='' # of the extra "dev" in pyproject.toml, all where none is named
if [ "${1:-}" = demo ]; then
    tools='scikit-build-core scikit-learn'
else
    packages+=(libbenchmark-dev libcairo2 libgmock-dev libgtest-dev libssh-4 libxml2)
fi

# A python3 from elsewhere than Debian brings venv and headers itself.
python_needs() {
    command -v "$python" >/dev/null || { echo python3 python3-venv python3-dev; return; }
    "$python" -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
    "$python" -c 'import pathlib, sys, sysconfig
sys.exit(not pathlib.Path(sysconfig.get_path("include"), "Python.h").exists())' || echo python3-dev
}

make_venv() {
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
        say "$python is older than 3.11: set PYTHON to a newer one"
        exit 1
    }
    [ -x .venv/bin/python ] || { say "making .venv"; "$python" -m venv .venv; }
}

install_torch() {
    local wanted=${torch_spec#torch==}
    .venv/bin/python -c "import sys; from importlib.metadata import version
sys.exit(version('torch').split('+')[0] != '$wanted')" 2>/dev/null && return
    say "pip install $torch_spec"
    .venv/bin/python -m pip install --no-compile "$torch_spec"
}

# The pins are those of the extra "dev" in pyproject.toml, with what the package itself needs.
install_tools() {
    # shellcheck disable=SC2086  # several words
    .venv/bin/python - $tools <<'PYTHON' >.venv/requirements.txt
import sys
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
wanted = sys.argv[1:]
pins = [
    pin for pin in project["optional-dependencies"]["dev"] if not wanted or pin.split("==")[0] in wanted
]
print(*project["dependencies"], *pins, sep="\n")
PYTHON
    say "pip install ${tools:-the tools pinned in pyproject.toml}"
    .venv/bin/python -m pip install --quiet --no-compile -r .venv/requirements.txt
}

# What pip does on one core. Templates among the packages' files are no Python.
compile_packages() {
    .venv/bin/python -m compileall -qq --workers 0 .venv/lib || true
}

# shellcheck disable=SC2046  # names of packages
install_packages "${packages[@]}" $(python_needs)
[ "${1:-}" = demo ] || (install_packages etcd-server iperf3) ||
    say "goes on without etcd and iperf3: tests that need them are skipped"
make_venv
install_torch
install_tools
compile_packages
[ "${1:-}" = demo ] || tools/setup_nixl.sh ||
    say "goes on without NIXL's headers: its plugin is not built, and the tests of it are skipped"
say "done"
