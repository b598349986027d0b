#!/usr/bin/env bash
# datetime.timedelta.max, which programs give for "no limit", as a timeout of torch.distributed.
#
# Library: torch 2.13.0, CPU; a HashStore, and a process group of gloo with one rank.
# Guess:   it counts as the longest timeout there is, or is refused by words that name it.
# Seen:    a store takes it for -5833720368547758 ms, and each timeout of 106751992 days and more (2^63 microseconds)
#          for another negative number, without an error: microseconds are counted in 64 bits before they become
#          milliseconds, which would fit. gloo refuses what comes out with "timeout.count() >= 0. Invalid timeout", without the
#          number; another backend gets the negative timeout, and must take it for what it is. 106751991 days arrive as given.
# Exit:    0 as seen, 1 it has changed, 77 torch 2.13.0 cannot be installed here (the reason is printed).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 || { echo "torch 2.13.0 was not installed"; exit 77; }
cat >"$folder/timeouts.py" <<'PYTHON'
import datetime
import sys

import torch
import torch.distributed as dist

print("torch", torch.__version__)
MILLISECOND = datetime.timedelta(milliseconds=1)


def arrives(timeout):
    """Return what a store and gloo make of it: milliseconds, and an error."""
    store = dist.HashStore()
    store.set_timeout(timeout)
    error = ""
    try:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1, timeout=timeout)
        dist.destroy_process_group()
    except RuntimeError as refused:
        error = str(refused)
    found = store.timeout // MILLISECOND
    print(f"{timeout}: {found} ms; gloo: {error or 'takes it'}")
    return found, error


most, refused = arrives(datetime.timedelta.max)
beyond, refused_too = arrives(datetime.timedelta(days=106751992))
fits, taken = arrives(datetime.timedelta(days=106751991))
as_seen = (
    most == -5833720368547758
    and beyond < 0
    and fits == 106751991 * 86400 * 1000
    and all("Invalid timeout" in error and "58337" not in error for error in (refused, refused_too))
    and not taken
)
print("as seen" if as_seen else "it has changed")
sys.exit(not as_seen)
PYTHON
cd "$folder"
timeout 120 "$folder/venv/bin/python" "$folder/timeouts.py"
