#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Measures PCCL's plugin for NCCL beside another one, between two network namespaces whose paths have these rates:
#
#     tests/netplugin/compare.sh LIBRARY MBIT...     # 400 200, or 1000 1000 1000 1000
#     tests/netplugin/compare.sh LIBRARY             # over loopback
#
# LIBRARY is NCCL's socket transport (nccl_socket.sh). Needs root, iproute2 and build/dev (BUILD).
set -euo pipefail
[ $# -ge 1 ] || { sed -n '4,9s/^# \?//p' "$0"; exit 2; }
other=$(realpath "$1")
shift
build=$(realpath "${BUILD:-$(dirname "$0")/../../build/dev}")
names=("pccl-compare-a-$$" "pccl-compare-b-$$")
folder=$(mktemp -d)
trap 'rm -rf "$folder"; for name in "${names[@]}"; do ip netns delete "$name" 2>/dev/null || true; done' EXIT

for name in "${names[@]}"; do
    ip netns add "$name"
    ip -n "$name" link set lo up
done
path=0
for mbit in "$@"; do
    ip link add "path$path" netns "${names[0]}" type veth peer name "path$path" netns "${names[1]}"
    for end in 0 1; do
        ip -n "${names[end]}" address add "10.114.$path.$((end + 1))/24" dev "path$path"
        ip -n "${names[end]}" link set "path$path" up
        tc -n "${names[end]}" qdisc add dev "path$path" root tbf rate "${mbit}mbit" burst 256kb latency 50ms
    done
    path=$((path + 1))
done
sleep 2 # the kernel tells of a new link's state up to a second later

# run PLUGIN OPTIONS...
run() {
    rm -f "$folder"/*
    local far="${names[1]}"
    [ "$path" -gt 0 ] || far="${names[0]}"
    ip netns exec "${names[0]}" "$build/net_harness" "$1" sender "$folder" "${@:2}" &
    ip netns exec "$far" "$build/net_harness" "$1" receiver "$folder" "${@:2}"
    wait $!
}
export NCCL_SOCKET_IFNAME=path
[ "$path" -gt 0 ] || export NCCL_SOCKET_IFNAME=lo
for round in 1 2 3; do
    for plugin in "$build/python/pccl/libnccl-net-pccl.so" "$other"; do
        echo "round $round: $(basename "$plugin")"
        if [ "$path" -gt 0 ]; then
            run "$plugin" --throughput --sizes 1048576,67108864 --bytes 268435456
        else
            run "$plugin" --latency --sizes 8 --bytes 80000
            run "$plugin" --throughput --sizes 1024,16384,262144,4194304,67108864 --bytes 67108864
        fi
    done
done
