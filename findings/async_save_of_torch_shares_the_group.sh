#!/usr/bin/env bash
# torch.distributed.checkpoint.async_save beside a training loop, with its defaults.
#
# Library: torch 2.13.0, CPU, gloo, two ranks of one host.
# Guess:   the thread that saves has a group of its own, or takes turns with the program's collectives.
# Seen:    it runs its collectives on the default group, while the program runs all_reduce there: calls of both threads
#          pair up across ranks in the order in which they come. Three of three runs hang. With
#          process_group=dist.new_group() three of three end, and what they saved and computed is right.
# Exit:    0 as seen (at least one of three goes wrong), 1 it has changed, 77 torch 2.13.0 cannot be installed here.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy || { echo "torch 2.13.0 was not installed"; exit 77; }
cat >"$folder/save.py" <<'PYTHON'
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

dist.init_process_group("gloo")
own = dist.new_group() if sys.argv[1] == "own" else None
state = {f"weight{index}": torch.full((1000,), float(index)) for index in range(20)}
for turn in range(3):
    saved = dcp.async_save(state, checkpoint_id=f"{sys.argv[2]}/{turn}", process_group=own)
    for _ in range(200):
        x = torch.ones(1000)
        dist.all_reduce(x)
        assert x.eq(2).all(), x
    saved.result(timeout=30)
    read = {name: torch.zeros_like(weight) for name, weight in state.items()}
    dcp.load(read, checkpoint_id=f"{sys.argv[2]}/{turn}")
    assert all(read[name].equal(state[name]) for name in state)
dist.destroy_process_group()
PYTHON
"$folder/venv/bin/python" -c 'import torch; print("torch", torch.__version__)'
wrong=0
for group in own own own default default default; do
    result=0
    timeout 60 "$folder/venv/bin/python" -m torch.distributed.run --standalone --nproc-per-node 2 "$folder/save.py" \
        "$group" "$folder/$group-$RANDOM" >"$folder/log" 2>&1 || result=$?
    echo "$group group: exit status $result (124: it hung for 60 s)"
    grep -h -o -E '[A-Za-z]*Error: .{0,150}' "$folder/log" | grep -v ChildFailed | head -n 1 || true
    [ $result -eq 0 ] || [ $group = default ] || { echo "a group of its own went wrong, too"; exit 1; }
    [ $result -eq 0 ] || wrong=$((wrong + 1))
done
[ $wrong -gt 0 ] || { echo "all runs on the default group were right"; exit 1; }
