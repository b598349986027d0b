#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compares csrc/abi/net_plugin with the headers of NCCL's example of a net plug-in: sizes, offsets, and
# the parameters of every function.
#
#   tests/netplugin/check_abi.sh FOLDER    # a clone of NVIDIA/nccl
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
[ $# = 1 ] || { sed -n 's/^#   //p' "$0" >&2; exit 2; }
for folder in "$1/plugins/net/example" "$1/ext-net/example"; do
    [ -e "$folder/nccl/net.h" ] && headers=$folder
done
[ -n "${headers:-}" ] || { echo "check_abi.sh: $1 has no plugins/net/example/nccl/net.h" >&2; exit 2; }

options=""
for version in 6 7 8 9 10 11 12; do
    if [ -e "$headers/nccl/net_v$version.h" ]; then
        options="$options -DHAS_V$version"
    else
        echo "v$version: not in $headers"
    fi
done
# shellcheck disable=SC2086 # several options
"${CXX:-c++}" -std=c++20 $options -fsyntax-only -I "$root" -I "$headers/nccl" "$root/tests/netplugin/check_abi.cc"
echo "the declarations agree with $headers"
