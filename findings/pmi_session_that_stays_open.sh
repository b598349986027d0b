#!/usr/bin/env bash
# What mpiexec of MPICH permits a program that uses its PMI-1 server (PMI_FD) and is no MPI program.
#
# Library: mpich 5.0.2 of PyPI (Hydra), on one host; ranks are Python programs that write PMI-1 by hand.
# Guess:   a session is begun by cmd=init once and ended by cmd=finalize; a program that ends well with exit code 0 needs no
#          cmd=finalize, because mpiexec sees the end of the process; and a library that comes later, as MPI_Init of mpi4py
#          does, can begin a session of its own.
# Seen:    a second cmd=init in an open session is answered like the first, so that two libraries may share one session.
#          After cmd=finalize the server closes the descriptor: a later cmd=init fails with a broken pipe. A rank that ends
#          with exit code 0 and an open session counts as failed: mpiexec kills the other ranks and exits with 9. So a
#          library that leaves room for MPI_Init must keep its session open until the process ends, and end it then.
# Exit:    0 as seen, 1 it has changed, 77 mpich 5.0.2 cannot be installed here (the reason is printed).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet mpich==5.0.2 || { echo "mpich 5.0.2 was not installed"; exit 77; }
mpiexec=$folder/venv/bin/mpiexec
"$mpiexec" --version | grep "Version:"

cat >"$folder/pmi.py" <<'PYTHON'
import os
import socket
import sys
import time

server = socket.socket(fileno=int(os.environ["PMI_FD"]))


def ask(request):
    try:
        server.sendall(f"{request}\n".encode())
        answer = server.recv(4096).decode().strip() or "closed"
    except BrokenPipeError:
        answer = "broken pipe"
    print(f"{request} -> {answer}", flush=True)


INIT = "cmd=init pmi_version=1 pmi_subversion=1"
if sys.argv[1] == "sessions":
    for request in (INIT, INIT, "cmd=finalize", INIT):
        ask(request)
elif os.environ["PMI_RANK"] == "0":
    ask(INIT)  # and ends with exit code 0
else:
    time.sleep(60)
PYTHON

timeout 60 "$mpiexec" -n 1 python3 "$folder/pmi.py" sessions >"$folder/sessions" 2>&1 || true
cat "$folder/sessions"
code=0
timeout 50 "$mpiexec" -n 2 python3 "$folder/pmi.py" open >"$folder/open" 2>&1 || code=$?
grep -E "cmd|EXIT" "$folder/open"
echo "mpiexec exited with $code"

if [ "$(grep -c -- "-> cmd=response_to_init" "$folder/sessions")" = 2 ] && grep -q "finalize_ack" "$folder/sessions" &&
    tail -1 "$folder/sessions" | grep -qE "broken pipe|closed" && [ "$code" = 9 ]; then
    echo "as seen"
else
    echo "it has changed"
    exit 1
fi
