#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Whether a machine of tools/rdma_machine.py is fit for tests: its RDMA devices are active, rdma-core's programs reach
# them, and rdma-core's own tests have the results that gate_expected.txt lists. Runs inside the machine.
set -euo pipefail
cd "$(dirname "$0")"

fail() { echo "gate: $*"; exit 1; }

for device in rxe0 rxe1; do
    ibv_devinfo -d $device | grep -q PORT_ACTIVE || fail "port 1 of $device is not active"
    # GID 1 is that of the IPv4 address.
    ibv_rc_pingpong -d $device -g 1 -n 100 >/dev/null &
    server=$!
    for ((tries = 0; ; tries++)); do
        result=$(timeout 20 ibv_rc_pingpong -d $device -g 1 -n 100 localhost 2>&1) && break
        # It may not listen yet.
        [[ $result == *connect* && $tries -lt 20 ]] || fail "ibv_rc_pingpong on $device: $result"
        sleep 0.2
    done
    echo "ibv_rc_pingpong on $device: $(tail -1 <<<"$result")"
    wait $server || fail "ibv_rc_pingpong on $device, server"
done

# Debian's python3, whose packages contain pyverbs.
/usr/bin/python3 gate.py gate_expected.txt "$@"
