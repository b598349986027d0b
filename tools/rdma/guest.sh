#!/bin/bash
# SPDX-License-Identifier: Apache-2.0

# Second part of init, in the root that the machine shares with its host: sets up the links and RDMA devices, runs the
# command, and writes its exit status where tools/rdma_machine.py finds it, which then ends the machine.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
# project= node= peer= timeout=
# shellcheck source=/dev/null
source /run/machine/settings

# The inner of two watchdogs, for the case that nobody is left on the host.
(
    sleep $((timeout + 30))
    echo o >/proc/sysrq-trigger
) &

hostname "node$node"
echo "10.77.0.1 node1
10.77.0.2 node2" >>/etc/hosts
sysctl -qw kernel.panic_on_oops=1
ip link set lo up
ip link set eth0 mtu 4500 up
ip addr add "10.77.0.$node/24" dev eth0
ip link add dummy0 type dummy 2>/dev/null
ip link set dummy0 mtu 4500 up
ip addr add "10.77.1.$node/24" dev dummy0
rdma link add rxe0 type rxe netdev eth0
rdma link add rxe1 type rxe netdev dummy0
for ((tries = 0; tries < 300; tries++)); do
    busybox ping -c 1 -W 1 "$peer" >/dev/null 2>&1 && break
    sleep 0.2
done
ulimit -l unlimited
cd "$project" || exit

port=$(grep -lx output /sys/class/virtio-ports/*/name)
port=/dev/$(basename "$(dirname "$port")")
exec 3> >(exec cat >"$port")
writer=$!
touch /run/machine/started
NODE=$node PEER=$peer ADDRESS=10.77.0.$node bash /run/machine/command </dev/null >&3 2>&3
status=$?
exec 3>&-
# Processes that the command left behind may hold the pipe open.
for ((i = 0; i < 20; i++)); do
    kill -0 $writer 2>/dev/null || break
    sleep 0.05
done
echo $status >/run/machine/status.new
mv /run/machine/status.new /run/machine/status
sleep infinity
