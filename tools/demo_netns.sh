#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Trains examples/train_ddp.py on two "hosts": network namespaces joined by a veth pair, one rank each.
#
#   BACKEND=gloo tools/demo_netns.sh     with another backend than pccl
#
# Needs root. The namespaces are removed at the end, however it ends.
set -euo pipefail
cd "$(dirname "$0")/.."

backend=${BACKEND:-pccl}
names=("pccl-$$-0" "pccl-$$-1")
addresses=(10.111.0.1 10.111.0.2)

if [ "$(id -u)" -ne 0 ]; then
    echo "demo-netns: making network namespaces needs root: sudo make demo-netns" >&2
    exit 1
fi
if ! ip netns add "${names[0]}"; then
    echo "demo-netns: this machine does not let us make network namespaces (a container?)" >&2
    exit 1
fi

running=()
cleanup() {
    [ ${#running[@]} -eq 0 ] || kill "${running[@]}" 2>/dev/null || true
    wait
    ip netns delete "${names[0]}" || true
    ip netns delete "${names[1]}" 2>/dev/null || true
}
trap cleanup EXIT

ip netns add "${names[1]}"
ip link add veth0 netns "${names[0]}" type veth peer name veth0 netns "${names[1]}"
for i in 0 1; do
    ip -n "${names[$i]}" address add "${addresses[$i]}/24" dev veth0
    ip -n "${names[$i]}" link set veth0 up
    ip -n "${names[$i]}" link set lo up
done

# TCP is named because both "hosts" are one machine, where ranks could otherwise share memory.
export OMP_NUM_THREADS=1 PCCL_TRANSPORTS=tcp PCCL_SOCKET_IFNAME=veth0 GLOO_SOCKET_IFNAME=veth0
train() {
    exec ip netns exec "${names[$1]}" .venv/bin/torchrun --nnodes 2 --node-rank "$1" \
        --nproc-per-node 1 --master-addr "${addresses[0]}" --master-port 29500 \
        examples/train_ddp.py --backend "$backend"
}
train 0 & running+=($!)
train 1 & running+=($!)
for process in "${running[@]}"; do
    wait "$process"
done
running=()
