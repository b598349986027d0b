# SPDX-License-Identifier: Apache-2.0
"""One rank of ``pccl.run`` or ``pccl run``: a script, ``_rank.py call FOLDER RANK``.

It imports nothing of pccl before ``sys.path`` is that of the process that started it.
"""

from __future__ import annotations

import os
import sys

# Python looks for modules beside a script, where links lead, too; here these are parts of pccl.
if sys.path and os.path.realpath(sys.path[0]) == os.path.dirname(os.path.realpath(__file__)):  # noqa: PTH120
    del sys.path[0]

import ctypes
import json
import signal
from pathlib import Path

PR_SET_PDEATHSIG = 1


def end_with(starter: int) -> None:
    """Have the kernel end this process when its starter ends, in whatever way."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != starter:
        sys.exit(1)


def call(folder: str, rank: int) -> int:
    """Call the function in FOLDER/job, and leave what it gives, or raises, beside it."""
    sys.path[:] = json.loads(Path(folder, "path").read_text())
    import cloudpickle

    from pccl._core import Communicator
    from pccl.launch import Failure

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
    """End a child of the rank that has come out of the function, too: it is no rank."""
    if os.getpid() != process:
        os._exit(0)


def leave(result: Path, data: bytes) -> None:
    """Write a file that is there as a whole, or not at all."""
    part = result.with_suffix(".part")
    part.write_bytes(data)
    part.replace(result)


def main() -> None:
    """Be a rank, as the command line says."""
    end_with(int(os.environ.pop("PCCL_STARTER_PID")))
    kind, *rest = sys.argv[1:]
    if kind == "call":
        folder, rank = rest
        sys.exit(call(folder, int(rank)))
    os.execv(sys.executable, [sys.executable, *rest])


if __name__ == "__main__":
    main()
