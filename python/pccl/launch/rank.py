# SPDX-License-Identifier: Apache-2.0
"""One rank of ``pccl.run`` or ``pccl run``: a script, ``rank.py call FOLDER RANK``.

The script imports pccl only after it has set ``sys.path`` to that of its starter.
"""

from __future__ import annotations

import os
import sys

# Python adds the folder of a script to the path, also through links; this one has parts of pccl.
if sys.path and os.path.realpath(sys.path[0]) == os.path.dirname(os.path.realpath(__file__)):  # noqa: PTH120
    del sys.path[0]

import ctypes
import json
import signal
from pathlib import Path

PR_SET_PDEATHSIG = 1


def end_with(starter: int) -> None:
    """Let the kernel kill this process when its starter ends for any reason."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != starter:
        sys.exit(1)


def call(folder: str, rank: int) -> int:
    """Call the function in FOLDER/job, and write its result or exception to that folder."""
    sys.path[:] = json.loads(Path(folder, "path").read_text())
    import cloudpickle

    from pccl._core import Communicator
    from pccl.launch.job import Failure

    result = Path(folder, f"result-{rank}")
    process = os.getpid()
    try:
        fn, args, kwargs, cluster = cloudpickle.loads(Path(folder, "job").read_bytes())
        comm = Communicator(
            rank=rank,
            world_size=int(os.environ["WORLD_SIZE"]),
            rendezvous=f"file://{folder}/store",
            cluster=cluster,
        )
        value = cloudpickle.dumps(fn(comm, *args, **kwargs))
    except BaseException as error:
        end_if_forked(process)
        leave(result, cloudpickle.dumps(Failure.of(error)))
        return 1
    end_if_forked(process)
    leave(result, value)
    comm.shutdown()
    return 0


def end_if_forked(process: int) -> None:
    """Exit in a forked child of the rank that has returned from the function too."""
    if os.getpid() != process:
        os._exit(0)


def leave(result: Path, data: bytes) -> None:
    """Write a file atomically."""
    part = result.with_suffix(".part")
    part.write_bytes(data)
    part.replace(result)


def main() -> None:
    """Run as a rank, as specified by the command line."""
    end_with(int(os.environ.pop("PCCL_STARTER_PID")))
    kind, *rest = sys.argv[1:]
    if kind == "call":
        folder, rank = rest
        sys.exit(call(folder, int(rank)))
    os.execv(sys.executable, [sys.executable, *rest])


if __name__ == "__main__":
    main()
