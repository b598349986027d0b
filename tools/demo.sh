#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Trains examples/train_ddp.py with pccl, then with gloo, and compares the two runs.
#
#   RANKS=4 tools/demo.sh     with another number of processes than 2
set -euo pipefail
cd "$(dirname "$0")/.."

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
export OMP_NUM_THREADS=1
for backend in pccl gloo; do
    .venv/bin/torchrun --nproc-per-node "${RANKS:-2}" examples/train_ddp.py \
        --backend "$backend" --json "$results/$backend.json"
done
.venv/bin/python tools/compare_demo.py "$results/pccl.json" "$results/gloo.json"
