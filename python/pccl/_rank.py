"""One rank of ``pccl.run`` or ``pccl run``: ``python -m pccl._rank call FOLDER RANK``."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

from pccl.launch import Failure

PR_SET_PDEATHSIG = 1


def end_with(starter: int) -> None:
    """Have the kernel end this process when its starter ends, in whatever way."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != starter:
        sys.exit(1)


def call(folder: str, rank: int) -> int:
    """Call the function in FOLDER/job, and leave what it gives, or raises, beside it."""
    import cloudpickle

    from pccl._core import Communicator

    result = Path(folder, f"result-{rank}")
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
        result.write_bytes(cloudpickle.dumps(Failure.of(error)))
        return 1
    result.write_bytes(value)
    comm.shutdown()
    return 0


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
