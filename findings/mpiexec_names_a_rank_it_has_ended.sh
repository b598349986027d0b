#!/usr/bin/env bash
# What mpiexec of MPICH tells of a rank that a signal has ended, and of exit codes that differ.
#
# Library: mpich 5.0.2 of PyPI (Hydra), on one host; ranks are Python programs that know of MPI only PMI_RANK.
# Guess:   the message of a bad termination has the process and the exit code of the rank that failed first, and the exit
#          code of mpiexec is that of a rank.
# Seen:    rank 2 of 4 ends by SIGTERM, while the others sleep. "PID ... RUNNING AT" has the process of rank 0, which mpiexec
#          itself has ended, and "EXIT CODE: 9" is the signal that ended that one; only "EXIT STRING: Terminated
#          (signal 15)" and mpiexec's exit code, 15, are of rank 2. Ranks that exit with 1, 2 and 4 make mpiexec exit with 7, the
#          bitwise or of all codes. So neither the process named nor the exit code tells which rank failed.
# Exit:    0 as seen, 1 it has changed, 77 mpich 5.0.2 cannot be installed here (the reason is printed).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet mpich==5.0.2 || { echo "mpich 5.0.2 was not installed"; exit 77; }
mpiexec=$folder/venv/bin/mpiexec
"$mpiexec" --version | grep "Version:"

cat >"$folder/ended.py" <<'PYTHON'
import os
import signal
import sys
import time
from pathlib import Path

folder, rank, ranks = Path(sys.argv[1]), int(os.environ["PMI_RANK"]), int(os.environ["PMI_SIZE"])
(folder / f"writing.{rank}").write_text(str(os.getpid()))
(folder / f"writing.{rank}").rename(folder / f"process.{rank}")
while rank == 2 and len(list(folder.glob("process.*"))) < ranks:
    time.sleep(0.01)
if rank == 2:
    os.kill(os.getpid(), signal.SIGTERM)
time.sleep(60)
PYTHON

code=0
timeout 120 "$mpiexec" -n 4 python3 "$folder/ended.py" "$folder" >"$folder/output" 2>&1 || code=$?
grep -E "PID|EXIT" "$folder/output" || true
echo "rank 0 was process $(cat "$folder/process.0"), rank 2 process $(cat "$folder/process.2"); mpiexec exited with $code"
codes=0
timeout 120 "$mpiexec" -n 3 python3 -c 'import os, sys; sys.exit(1 << int(os.environ["PMI_RANK"]))' || codes=$?
echo "ranks exited with 1, 2 and 4, mpiexec with $codes"

if grep -q "PID $(cat "$folder/process.0") RUNNING AT" "$folder/output" && grep -q "EXIT CODE: 9$" "$folder/output" &&
    grep -q "EXIT STRING: Terminated (signal 15)" "$folder/output" && [ "$code" = 15 ] && [ "$codes" = 7 ]; then
    echo "as seen"
else
    echo "it has changed"
    exit 1
fi
