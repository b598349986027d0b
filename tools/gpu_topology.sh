#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# On a machine with several NVIDIA GPUs of one host and torch: detects the machine, prints its tree, warnings and plan,
# and lets NCCL run with the XML that comes of it.
#
#   tools/gpu_topology.sh            after "tools/gpu_suite.sh build", or with pccl installed
#
# Checks that NCCL read the file, that it found the GPUs and NVLinks in it, that its sums are right, and that the plan
# has no less than NCCL's channels x GB/s. Files go to $OUT, by default build/gpu/topology. The last line says
# "topology: passed", or what failed.
set -uo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
out=${OUT:-build/gpu/topology}
[ ! -d build/gpu/python ] || export PYTHONPATH=$PWD/build/gpu/python
mkdir -p "$out"
# A file that the environment names would be read instead of the machine.
unset PCCL_TOPO_FILE NCCL_TOPO_FILE PCCL_GRAPH_FILE NCCL_GRAPH_FILE
export NCCL_NVLS_ENABLE=0 PYTHONUNBUFFERED=1

echo "== what NVIDIA's tools say"
nvidia-smi topo -m 2>&1 | head -40
echo "== what PCCL detects"
"$python" tools/gpu_topology.py detect "$out" || { echo "topology: detection failed"; exit 1; }

# NCCL once by itself and once with our file; each writes the topology and the graphs that it works with.
run_nccl() {
    local name=$1
    shift
    env NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,ENV NCCL_DEBUG_FILE="$out/$name.%p.log" \
        NCCL_TOPO_DUMP_FILE="$out/$name.topo.xml" NCCL_GRAPH_DUMP_FILE="$out/$name.graph.xml" "$@" \
        timeout 120 "$python" tools/gpu_topology.py reduce >"$out/$name.out" 2>&1 ||
        { tail -20 "$out/$name.out"; echo "topology: NCCL failed ($name)"; exit 1; }
}
rm -f "$out"/nccl_*.log
echo "== NCCL by itself"
run_nccl nccl_alone
echo "== NCCL with our XML"
run_nccl nccl_ours NCCL_TOPO_FILE="$(realpath "$out/pccl.xml")"
"$python" tools/gpu_topology.py compare "$out"
