# SPDX-License-Identifier: Apache-2.0
"""Execution of a function as the ranks of a job on this machine: ``pccl.run``."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from pccl._internal.arguments import require, require_int, shown
from pccl._internal.time_limits import limit_of
from pccl.errors import PeerLostError
from pccl.launch.processes import (
    GRACE_S,
    End,
    RankProcesses,
    rank_command,
    shortage_named,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta

    from pccl.phases.cluster import Cluster

__all__ = ["Failure", "RankError", "run"]

_Value = TypeVar("_Value")


class RankError(RuntimeError):
    """Error of a failed rank of ``pccl.run``; the text ends with its traceback.

    Attributes
    ----------
    rank
        The failed rank. ``pccl.run`` raises the error of the first failed rank; ranks that failed
        only because they lost another rank come last.
    """

    rank: int

    def __init__(self, rank: int, what: str) -> None:
        super().__init__(f"rank {rank} {what}")
        self.rank = rank


@dataclasses.dataclass(frozen=True)
class Failure:
    """Exception of a rank."""

    error: str  # "ValueError: no such shape"
    traceback: str
    is_consequence: bool  # whether it follows from another rank's end

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Return the description of an exception."""
        return cls(
            error="".join(traceback.format_exception_only(error)).strip(),
            traceback="".join(traceback.format_exception(error)),
            is_consequence=isinstance(error, PeerLostError),
        )


@overload
def run(
    fn: Callable[..., _Value],
    *args: object,
    ranks: int,
    timeout: float | timedelta | None = None,
    cluster: Cluster | None = None,
    keep_going: Literal[False] = False,
    **kwargs: Any,
) -> list[_Value]: ...


@overload
def run(
    fn: Callable[..., _Value],
    *args: object,
    ranks: int,
    timeout: float | timedelta | None = None,
    cluster: Cluster | None = None,
    keep_going: bool,
    **kwargs: Any,
) -> list[_Value | RankError]: ...


def run(
    fn: Callable[..., _Value],
    *args: object,
    ranks: int,
    timeout: float | timedelta | None = None,
    cluster: Cluster | None = None,
    keep_going: bool = False,
    **kwargs: Any,
) -> list[_Value] | list[_Value | RankError]:
    """Call ``fn(comm, *args, **kwargs)`` as every rank of a new group.

    A rank ends successfully only when ``fn`` returns: a process that ends before that has failed,
    even with exit code 0. After a failure, the other ranks have 5 s to end by themselves and raise
    their own errors; then they receive SIGTERM, and SIGKILL 2 s later. Processes that a rank has
    started end with it, unless they created their own session. Ctrl-C is passed on as SIGINT, and
    gives the ranks the same time.

    Parameters
    ----------
    fn
        Any function, also from a notebook's cell. It is copied to the ranks, together with the
        globals that it uses. Its first argument is the ``pccl.Communicator`` of all ranks.
    args, kwargs
        Arguments, the same for all ranks; they are copied to the ranks, and the results are copied
        back.
    ranks
        Number of processes to start, 1 or more.
    timeout
        Seconds after which all ranks are ended; None: no limit.
    cluster
        Cluster whose phases the ranks switch by ``pccl.switch_phase``; each rank gets a copy.
    keep_going
        Whether the other ranks continue without a time limit after a rank has failed, for example
        after ``comm.shrink()``.

    Returns
    -------
    list
        Results of ``fn``, by rank. With ``keep_going``, the entry of a failed rank is its
        :class:`RankError`.

    Raises
    ------
    RankError
        ``fn`` raised an exception in a rank, or a rank's process failed; with ``keep_going``,
        only if all ranks failed.
    pccl.TimeoutError
        The ranks did not end within ``timeout``.
    pccl.InvalidArgumentError
        ``timeout`` is negative, or ``ranks`` is less than 1.
    TypeError
        ``fn`` is not a function, or another argument has a wrong type; nothing was started.
    pccl.UnavailableError
        This host has no loopback address.
    pccl.ResourceExhaustedError
        This process lacks descriptors.
    """
    from pccl.launch import copies

    _check(fn, ranks, cluster)
    limit = None if timeout is None else limit_of(timeout)
    with shortage_named(), tempfile.TemporaryDirectory(prefix="pccl-run-") as folder:
        Path(folder, "job").write_bytes(copies.dumps((fn, args, kwargs, cluster)))
        # The ranks get this process's sys.path, so that they can import exactly the same modules.
        path = [str(entry or Path.cwd()) for entry in sys.path]
        Path(folder, "path").write_text(json.dumps(path))
        with RankProcesses(lambda rank: rank_command("call", folder, str(rank)), ranks) as started:
            _wait_for_results(started, Path(folder), limit, keep_going=keep_going)
            ends = {end.rank: end for end in started.ends}
        outcomes = [_outcome_of(_result(Path(folder), rank)) for rank in range(ranks)]
    return _values_of(outcomes, ends, keep_going=keep_going)


def _check(fn: object, ranks: object, cluster: object) -> None:
    if not callable(fn):
        script = "; pccl run starts scripts" if isinstance(fn, str | os.PathLike) else ""
        raise TypeError(f"fn is {shown(fn)}: it must be a function{script}")
    require_int(ranks, "ranks")
    if cluster is not None:
        from pccl.phases.cluster import Cluster

        require(cluster, Cluster, "cluster", "a pccl.Cluster or None")


def _result(folder: Path, rank: int) -> Path:
    return folder / f"result-{rank}"


def _wait_for_results(
    started: RankProcesses, folder: Path, timeout: float | None, *, keep_going: bool
) -> None:
    def is_enough(end: End) -> bool:
        has_failed = end.is_failure or not _result(folder, end.rank).exists()
        return has_failed and not keep_going

    limit = math.inf if timeout is None else timeout
    deadline = time.monotonic() + limit
    try:
        is_in_time = started.wait(limit, is_enough)
        if is_in_time and started.running:
            started.wait(min(GRACE_S, deadline - time.monotonic()))
    except KeyboardInterrupt:
        started.signal(signal.SIGINT)
        started.wait(GRACE_S)
        raise
    if not is_in_time:
        started.raise_late(limit)


@dataclasses.dataclass(frozen=True)
class _Returned:
    """Result of a function."""

    value: Any


def _outcome_of(result: Path) -> _Returned | Failure | None:
    """Read the result file of a rank; None if there is none."""
    import cloudpickle

    if not result.exists():
        return None
    value = cloudpickle.loads(result.read_bytes())
    return value if isinstance(value, Failure) else _Returned(value)


def _values_of(
    outcomes: Sequence[_Returned | Failure | None], ends: dict[int, End], *, keep_going: bool
) -> list[Any]:
    """Return the results by rank, or raise the error of a failed rank."""
    values = [one.value for one in outcomes if isinstance(one, _Returned)]
    has_failed = any(end.is_failure for end in ends.values())
    if len(values) == len(outcomes) and (keep_going or not has_failed):
        return values
    if not keep_going or not values:
        raise _why(outcomes, ends)
    return [
        one.value if isinstance(one, _Returned) else _error_of(rank, one, ends)
        for rank, one in enumerate(outcomes)
    ]


def _why(outcomes: Sequence[_Returned | Failure | None], ends: dict[int, End]) -> RankError:
    """Return the error of a rank with its own exception, or else of a rank that just ended."""
    failed = [r for r in ends if ends[r].is_failure or not isinstance(outcomes[r], _Returned)]
    own = [rank for rank in failed if _is_of_its_own(outcomes[rank])]
    silent = [rank for rank in failed if not isinstance(outcomes[rank], Failure)]
    rank = (own or silent or failed)[0]
    return _error_of(rank, outcomes[rank], ends)


def _is_of_its_own(outcome: object) -> bool:
    return isinstance(outcome, Failure) and not outcome.is_consequence


def _error_of(rank: int, outcome: object, ends: dict[int, End]) -> RankError:
    if isinstance(outcome, Failure):
        return RankError(rank, f"raised {outcome.error}\n\n{outcome.traceback.rstrip()}")
    when = "before" if outcome is None else "after"
    end = ends[rank]
    return RankError(rank, f"{end} {when} its function returned (it was process {end.pid})")
