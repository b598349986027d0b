#!/usr/bin/env bash
# TORCHELASTIC_RESTART_COUNT in the workers of one attempt that two agents (hosts) of torchrun have started.
#
# Library: torch 2.13.0, CPU; two agents of torchrun on loopback, rendezvous by c10d, one worker each, --max-restarts 3.
# Guess:   the variable has one value in all workers that meet, so that it can be a part of the name under which they meet.
# Seen:    the worker of agent a fails once, and both agents start their workers again. The two meet, and the one of agent a
#          has a count of 1, the one of agent b 0: an agent counts restarts for its own workers' failures alone, and not those for
#          a change of members, as which the other one takes it. What is named by the count is looked for under two names.
# Exit:    0 as seen, 1 it has changed, 77 torch 2.13.0 cannot be installed here (the reason is printed).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 || { echo "torch 2.13.0 was not installed"; exit 77; }
cat >"$folder/worker.py" <<'PYTHON'
import datetime
import os
import sys
import time
from pathlib import Path

from torch.distributed import TCPStore

agent, folder = sys.argv[1], Path(sys.argv[2])
starts = folder / f"starts.{agent}"
start = len(starts.read_text()) if starts.exists() else 0
with starts.open("a") as file:
    file.write("+")

# Workers meet on the store that the agents name, by how often each of them has been started.
limit = datetime.timedelta(seconds=60)
store = TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False, timeout=limit)
store.set(f"{start}/{agent}", os.environ["TORCHELASTIC_RESTART_COUNT"])
counts = [store.get(f"{start}/{each}").decode() for each in "ab"]
store.set(f"{start}/{agent} has seen", "")
store.wait([f"{start}/{each} has seen" for each in "ab"], limit)
if agent == "a":
    with (folder / "met").open("a") as met:
        print("counts of agents a and b:", *counts, file=met)
if start == 0 and agent == "a":
    sys.exit(1)
if start == 0:
    time.sleep(60)  # ended by its agent
time.sleep(1 if os.environ["RANK"] == "0" else 0)  # its agent may have the store
PYTHON
cd "$folder"
port=$("$folder/venv/bin/python" -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
agents=()
for agent in a b; do
    OMP_NUM_THREADS=1 timeout 100 "$folder/venv/bin/python" -m torch.distributed.run --nnodes 2 --nproc-per-node 1 \
        --max-restarts 3 --rdzv-backend c10d --rdzv-endpoint "127.0.0.1:$port" --rdzv-id job \
        worker.py "$agent" "$folder" >"$folder/output.$agent" 2>&1 &
    agents+=($!)
done
for agent in "${agents[@]}"; do wait "$agent" || tail -n 5 "$folder"/output.*; done
cat met
if [ "$(cat met)" = $'counts of agents a and b: 0 0\ncounts of agents a and b: 1 0' ]; then
    echo "as seen"
else
    echo "it has changed"
    exit 1
fi
