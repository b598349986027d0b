#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Builds netopeer2 from folders of sources, and runs the tests of phases on its servers, as they run
# on netconfd. Not a part of `make test`: nothing of netopeer2 is in this repository.
#
#   tools/netopeer2.sh SOURCES [ARGUMENTS OF PYTEST]
#
# SOURCES has the folders libyang, sysrepo, libnetconf2 and netopeer2, of tags that fit each other:
# v3.13.6, v3.7.11, v3.7.10, v2.4.5. What is built goes to PCCL_NETOPEER2 (default: a folder in
# TMPDIR, which stays for the next time).
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tools/debian_packages.sh
source tools/debian_packages.sh

sources=${1:-}
parts=(libyang sysrepo libnetconf2 netopeer2)
for part in "${parts[@]}"; do
    if [ ! -f "$sources/$part/CMakeLists.txt" ]; then
        say "netopeer2 is not tested: ${sources:-(no folder named)} has no $part; tags are in tools/netopeer2.sh"
        exit 77
    fi
done
shift
sources=$(realpath "$sources")
prefix=$(realpath -m "${PCCL_NETOPEER2:-${TMPDIR:-/tmp}/pccl-netopeer2-$(id -u)}")

# build PART [ARGUMENTS OF CMAKE]: configures, builds and installs one of them into the prefix.
build() {
    local part=$1
    shift
    say "$part: $prefix"
    cmake -S "$sources/$part" -B "$prefix/build/$part" -DCMAKE_BUILD_TYPE=Release -DENABLE_TESTS=OFF \
        -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_PREFIX_PATH="$prefix" \
        -DCMAKE_INSTALL_RPATH="$prefix/lib" "$@" >"$prefix/$part.log" 2>&1 &&
        cmake --build "$prefix/build/$part" --parallel "${JOBS:-$(nproc)}" >>"$prefix/$part.log" 2>&1 &&
        cmake --install "$prefix/build/$part" >>"$prefix/$part.log" 2>&1 ||
        { tail -n 30 "$prefix/$part.log"; say "$part was not built: $prefix/$part.log"; exit 1; }
}

if [ ! -x "$prefix/sbin/netopeer2-server" ]; then
    install_packages cmake gcc make libpcre2-dev libssh-dev libssl-dev libcurl4-openssl-dev \
        openssh-client openssh-server openssl
    mkdir -p "$prefix"
    build libyang
    build sysrepo -DREPO_PATH="$prefix/repository" -DENABLE_EXAMPLES=OFF -DENABLE_SYSREPO_PLUGIND=OFF
    build libnetconf2 -DENABLE_EXAMPLES=OFF
    # Each server of a test gets a repository of its own, with what setup.sh puts there.
    build netopeer2 -DBUILD_CLI=OFF -DSYSREPO_SETUP=OFF -DPIDFILE_PREFIX="$prefix" \
        -DSERVER_DIR="$prefix/server"
    cp "$sources/libyang/tests/modules/yang/iana-if-type@2014-05-08.yang" "$prefix/share/yang/modules/"
fi
export PCCL_NETOPEER2=$prefix PYTHONPATH=${PYTHONPATH:-$PWD/build/dev/python}
exec .venv/bin/python -m pytest tests/python/test_netconf_servers.py -q "$@"
