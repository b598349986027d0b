"""Runs a function, or a script, as the ranks of a job on this machine: ``pccl.run``, ``pccl run``.

Each rank is a process of its own that knows its place from the environment, as torchrun sets it
(``RANK``, ``LOCAL_RANK``, ``WORLD_SIZE``, ``MASTER_ADDR``, ``MASTER_PORT``), so that
``torch.distributed`` finds its way, too. What ranks print is passed on line by line, behind the
number of the rank. No rank outlives its starter, however that ends.
"""

from __future__ import annotations

import dataclasses
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from pccl.errors import CollectiveTimeoutError, InvalidArgumentError, PeerLostError
from pccl.time_limits import limit_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pccl.cluster import Cluster

__all__ = ["RankError", "run", "run_script"]

Value = TypeVar("Value")

# Ranks that lose a peer say so themselves before they are ended.
LAST_WORDS_S = 5.0
LOOK_S = 0.02
LEAVE_S = 2.0


class RankError(RuntimeError):
    """A rank of ``pccl.run`` has failed; the text ends with its traceback.

    Attributes
    ----------
    rank
        The first that failed, but for those that failed because they had lost another.
    """

    rank: int

    def __init__(self, rank: int, what: str) -> None:
        super().__init__(f"rank {rank} {what}")
        self.rank = rank


@dataclasses.dataclass(frozen=True)
class Failure:
    """What a rank raised."""

    error: str  # "ValueError: no such shape"
    traceback: str
    is_consequence: bool  # of another rank's end

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Describe what a function has raised."""
        return cls(
            error="".join(traceback.format_exception_only(error)).strip(),
            traceback="".join(traceback.format_exception(error)),
            is_consequence=isinstance(error, PeerLostError),
        )


def run(
    fn: Callable[..., Value],
    *args: object,
    ranks: int,
    timeout: float | None = None,
    cluster: Cluster | None = None,
    **kwargs: Any,
) -> list[Value]:
    """Call ``fn(comm, *args, **kwargs)`` as every rank of a new group.

    Parameters
    ----------
    fn
        Any function, of a notebook's cell, too: it is copied to the ranks, with the globals that it
        uses. Its first argument is the ``pccl.Communicator`` of all ranks.
    args, kwargs
        The same for all ranks; copied to them. The results are copied back.
    ranks
        How many processes to start, 1 or more.
    timeout
        Seconds after which all ranks are ended; None for no limit.
    cluster
        Whose phases the ranks switch, by ``pccl.switch_phase``; each gets a copy.

    Returns
    -------
    list
        What ``fn`` returned, by rank.

    Raises
    ------
    RankError
        ``fn`` raised an exception in a rank, or the rank's process ended. The others are ended.
    pccl.CollectiveTimeoutError
        The ranks have taken too long.
    pccl.InvalidArgumentError
        ``timeout`` is negative, or ``ranks`` less than 1.
    """
    from pccl import copies

    limit = None if timeout is None else limit_of(timeout)
    with tempfile.TemporaryDirectory(prefix="pccl-run-") as folder:
        job = Path(folder, "job")
        job.write_bytes(copies.dumps((fn, args, kwargs, cluster)))
        command = [sys.executable, "-m", "pccl._rank", "call", folder]
        # What can be imported here can be there, whatever has been done to sys.path.
        path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
        with _Job(lambda rank: [*command, str(rank)], ranks, PYTHONPATH=path) as started:
            failed = started.wait(limit)
        outcomes = [_outcome_of(Path(folder, f"result-{rank}")) for rank in range(ranks)]
    if failed or any(isinstance(outcome, Failure) for outcome in outcomes):
        raise _why(outcomes, failed)
    return outcomes


def run_script(command: Sequence[str], ranks: int) -> int:
    """Run a script with its arguments as every rank; give the exit code of the first that failed.

    ``command`` is what follows ``python``: ``["train.py", "--steps", "10"]``.
    """
    wrapped = [sys.executable, "-m", "pccl._rank", "exec", *command]
    with _Job(lambda _: wrapped, ranks) as started:
        failed = started.wait(None)
    return abs(failed[0][1]) if failed else 0


class _Job:
    """The processes of all ranks; leaving the context ends those that still run."""

    def __init__(self, command: Callable[[int], list[str]], ranks: int, **variables: str) -> None:
        if ranks < 1:
            raise InvalidArgumentError(f"{ranks} ranks; start 1 or more")
        self._lock = threading.Lock()
        self._processes: list[subprocess.Popen[str]] = []
        self._threads: list[threading.Thread] = []
        self._held = _held_port()
        try:
            for rank in range(ranks):
                place = _environment(rank, ranks, self._held.getsockname()[1])
                self._start(command(rank), rank, {**os.environ, **place, **variables})
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> _Job:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def wait(self, timeout: float | None) -> list[tuple[int, int]]:
        """Wait until all have ended, or one has failed; give the ranks that did, first ones first.

        The second numbers are exit codes.
        """
        began = time.monotonic()
        failed: list[tuple[int, int]] = []
        first = None
        while any(process.poll() is None for process in self._processes):
            now = time.monotonic()
            self._note_failures(failed)
            first = first or (now if failed else None)
            if first is not None and now - first > LAST_WORDS_S:
                return failed
            if timeout is not None and now - began > timeout:
                running = [i for i, one in enumerate(self._processes) if one.poll() is None]
                names = ", ".join(map(str, running))
                raise CollectiveTimeoutError(f"ranks {names} still ran after {timeout} s")
            time.sleep(LOOK_S)
        self._note_failures(failed)
        return failed

    def _note_failures(self, failed: list[tuple[int, int]]) -> None:
        known = {rank for rank, _ in failed}
        for rank, process in enumerate(self._processes):
            if rank not in known and process.poll():
                failed.append((rank, process.returncode))

    def _start(self, command: list[str], rank: int, environment: dict[str, str]) -> None:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=environment,
            start_new_session=True,  # Ctrl-C is for the starter, which ends all
        )
        self._processes.append(process)
        for source, sink in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
            assert source is not None
            thread = threading.Thread(target=self._pass_on, args=(source, sink, rank), daemon=True)
            thread.start()
            self._threads.append(thread)

    def _pass_on(self, source: IO[str], sink: IO[str], rank: int) -> None:
        for line in source:
            text = line.removesuffix("\n")
            with self._lock:
                sink.write(f"[{rank}] {text}\n")
                sink.flush()

    def _end(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.terminate()
        deadline = time.monotonic() + LEAVE_S
        for process in self._processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for thread in self._threads:
            thread.join(LEAVE_S)
        self._held.close()


def _environment(rank: int, ranks: int, port: int) -> dict[str, str]:
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "PYTHONUNBUFFERED": "1",
        "PCCL_STARTER_PID": str(os.getpid()),
    }


def _held_port() -> socket.socket:
    """Bind a port that the kernel then gives to nobody who asks for any.

    Whoever asks for this one by ``SO_REUSEADDR``, as stores do, may listen at it.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held


def _outcome_of(result: Path) -> Any:
    import cloudpickle

    return cloudpickle.loads(result.read_bytes()) if result.exists() else None


def _why(outcomes: Sequence[Any], failed: Sequence[tuple[int, int]]) -> RankError:
    """Choose the rank to blame: one that raised something of its own, else one that just ended."""
    order = [rank for rank, _ in failed]
    order += [rank for rank, one in enumerate(outcomes) if isinstance(one, Failure)]
    told = [rank for rank in order if isinstance(outcomes[rank], Failure)]
    own = [rank for rank in told if not outcomes[rank].is_consequence]
    silent = [(rank, code) for rank, code in failed if rank not in told]
    if not own and silent:
        rank, code = silent[0]
        return RankError(rank, f"ended with exit code {code}, and said nothing")
    rank = (own or told)[0]
    failure = outcomes[rank]
    return RankError(rank, f"raised {failure.error}\n\n{failure.traceback.rstrip()}")
