# SPDX-License-Identifier: Apache-2.0
"""Switches of phases by all ranks of a job."""

from __future__ import annotations

import contextlib
import functools
import json
import os
from typing import TYPE_CHECKING, Any

from pccl.errors import Error, InvalidArgumentError, UnavailableError
from pccl.phases.cluster import Cluster
from pccl.phases.results import raise_unless_done

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import timedelta

    from pccl._core import Communicator, PhaseNetwork
    from pccl.phases.progress import Tell
    from pccl.phases.results import Switched

__all__ = ["current_phase", "phase", "switch_phase"]

_MOST_TOLD = 3072  # bytes of a result for other ranks (Switching::kLongestReport)
_joined: list[Cluster] = []  # clusters of this process's groups, the latest last


def switch_phase(
    phase: str,
    *,
    dry_run: bool = False,
    timeout: float | timedelta = 5.0,
    discard_candidate: bool = False,
    progress: Tell | None = None,
) -> Switched:
    """Switch the network of a job to another phase; a collective call of all its ranks.

    Collectives and messages that a rank has called before complete first; calls of its other
    threads wait. Rank 0 switches all devices or none; then all ranks continue over the links of the
    new phase. Groups that were split off use the same phase.

    Parameters
    ----------
    phase
        Name of the phase, the same on all ranks.
    dry_run
        Only let the switches check the configuration.
    timeout
        Maximum seconds until all ranks have called this and completed their operations, and maximum
        seconds of each step on all switches.
    discard_candidate
        Rank 0 only: discard uncommitted edits of others in the candidate configuration of a switch.
        Otherwise such edits cause a refusal, and the error lists them.
    progress
        Rank 0 only: function that is called with the progress of each switch, from another thread,
        about ten times per second, if the switch takes more than one second. None displays the
        progress on a terminal or in a notebook.

    Returns
    -------
    Switched
        Times of each switch; only rank 0's result contains the circuits that were read.

    Raises
    ------
    InvalidArgumentError
        The phase does not exist, or a rank has no route in it.
    SwitchError
        The switch was refused or rolled back, and all ranks continue in the old phase; or the
        cluster is degraded.
    TimeoutError
        A rank did not call it in time; the message names the rank and its current operation.
        Nothing is switched.
    MismatchError
        Ranks passed different phases, or a rank called a collective instead. Nothing was switched.
    PeerLostError
        A rank is lost. If it is rank 0, the remaining ranks first read the state of the network,
        and agree on one phase, or on none if no rank can read the switches.
    UnavailableError
        This process has no group with a cluster; or messages have not been received yet.
    """
    return _switch(
        _cluster(),
        phase,
        dry_run=dry_run,
        timeout=timeout,
        discard_candidate=discard_candidate,
        progress=progress,
    )


def ensure(group: Communicator, phase: str) -> None:
    """Switch the network of a group to a phase, as ``switch_phase`` does, unless it is current.

    Parameters
    ----------
    group
        Group of all ranks of its cluster.
    phase
        Name of the phase, the same on all ranks.
    """
    (cluster,) = (each for each in _joined if each._network is group._network)
    if cluster._network.phase != phase:
        _switch(cluster, phase, dry_run=False, timeout=5.0)


def _switch(
    cluster: Cluster,
    phase: str,
    *,
    dry_run: bool,
    timeout: float | timedelta,
    discard_candidate: bool = False,
    progress: Tell | None = None,
) -> Switched:
    network = _network_of(cluster)
    if phase not in cluster.phases:
        cluster.plan(None, phase)  # its error names the most similar phase
    kept: list[str] = []
    switch = functools.partial(
        cluster._switch_text,
        phase,
        timeout=timeout,
        dry_run=dry_run,
        discard_candidate=discard_candidate,
        progress=progress,
    )
    transact = _transaction(switch, dry_run=dry_run, kept=kept)
    read_back = _reader(cluster, phase, network.phase, timeout=timeout, dry_run=dry_run)
    is_done, told = network.switch_phase(phase, timeout, dry_run, transact, read_back)
    text = kept[0] if kept else told
    return raise_unless_done(phase, json.loads(text) if text else _untold(is_done, dry_run))


@contextlib.contextmanager
def phase(name: str, *, timeout: float | timedelta = 5.0) -> Iterator[Switched]:
    """Switch the phase of the job for the duration of a block, ``with pccl.phase("pairs"):``.

    All ranks must execute the block. At its end, the network is switched back to the old phase. An
    exception in the block leaves the phase unchanged, because other ranks might not switch back.

    Parameters
    ----------
    name
        Name of the phase.
    timeout
        Timeout of ``switch_phase``, for each of the two switches.

    Yields
    ------
    Switched
        Result of the first switch.

    Raises
    ------
    InvalidArgumentError
        The job has no current phase to return to.
    SwitchError, TimeoutError, MismatchError, PeerLostError, UnavailableError
        As for ``switch_phase``.
    """
    before = current_phase()
    if before is None:
        raise InvalidArgumentError(
            f"phase {name}: there is none to come back to at the end of the block: "
            "call pccl.switch_phase first"
        )
    yield switch_phase(name, timeout=timeout)
    switch_phase(before, timeout=timeout)


def current_phase() -> str | None:
    """Return the current phase of this job; None before the first switch, or if it is unknown.

    Raises
    ------
    UnavailableError
        This process has no group with a cluster.
    """
    return _network_of(_cluster()).phase or None


def _untold(is_done: bool, dry_run: bool) -> dict[str, Any]:
    """Return a result without details, for a rank 0 that was interrupted before it sent them."""
    done = "prepared" if dry_run else "switched"
    return {
        "outcome": done if is_done else "rolled back",
        "code": "ok" if is_done else "aborted",
        "reason": "" if is_done else "rank 0 was interrupted, or failed: it says why",
        "total_ms": 0.0,
        "dark_ms": 0.0,
        "unrecorded": "",
        "switches": [],
    }


def _transaction(
    switch: Callable[..., str], *, dry_run: bool, kept: list[str]
) -> Callable[[Callable[[], None]], tuple[bool, str]]:
    """Return the function for the switch on rank 0; it appends the full result to ``kept``."""

    def transact(drain: Callable[[], None]) -> tuple[bool, str]:
        try:
            text = switch(adopt=False, drain=drain)
        except Error as error:
            failed = {"outcome": "refused", "code": error.code, "reason": str(error)}
            text = json.dumps({**_untold(is_done=False, dry_run=dry_run), **failed})
        kept.append(text)
        told = json.loads(text)
        return told["outcome"] in {"switched", "prepared"}, _shortened(told)

    return transact


def _reader(
    cluster: Cluster, wanted: str, before: str, *, timeout: float | timedelta, dry_run: bool
) -> Callable[[], bool]:
    """Return the function that the lowest remaining rank executes if rank 0 is lost."""

    def read_back() -> bool:
        shown = "" if dry_run else cluster._inherit(timeout)
        if shown not in {"", before, wanted}:
            raise UnavailableError(f"the switches show phase {shown}")
        return shown == wanted

    return read_back


def _shortened(told: dict[str, Any]) -> str:
    """Return a shortened result for other ranks: the times, without the requests to each switch."""
    steps = ("name", "fault", "steps", "discarded", "startup")
    switches = [{key: each[key] for key in steps} | {"found": []} for each in told["switches"]]
    text = json.dumps({**told, "switches": switches}, separators=(",", ":"))
    if len(text) <= _MOST_TOLD:
        return text
    reason = told["reason"][: _MOST_TOLD // 2]
    return json.dumps({**told, "reason": reason, "switches": []})


def _cluster() -> Cluster:
    in_use = [each for each in _joined if each._network.is_in_use]
    if in_use:
        return in_use[-1]
    if _joined:
        return _joined[-1]
    raise UnavailableError(
        "no group of this process is on a cluster: give it one (cluster=), or set PCCL_CLUSTER"
    )


def _network_of(cluster: Cluster) -> PhaseNetwork:
    return cluster._network


def network_for(cluster: Cluster | None, world_size: int) -> PhaseNetwork | None:
    """Return the network for a new group; the first group uses the cluster of ``PCCL_CLUSTER``.

    Raises
    ------
    InvalidArgumentError
        Another group already uses the cluster.
    """
    if cluster is None:
        cluster = from_environment()
        is_free = cluster is not None and not cluster._network.is_in_use
        if cluster is None or not is_free or cluster.ranks != world_size:
            return None
    if not isinstance(cluster, Cluster):
        raise TypeError(f"cluster must be a pccl.Cluster, not {type(cluster).__name__}")
    if cluster._network.is_in_use:
        raise InvalidArgumentError(
            f"{cluster!r} is another group's of this process already: split that one"
        )
    if cluster in _joined:
        _joined.remove(cluster)
    _joined.append(cluster)
    return cluster._network


def handle_for(cluster: Cluster | None, world_size: int) -> object | None:
    """Return the handle of the network of ``network_for``, for ``pccl._torch``."""
    network = network_for(cluster, world_size)
    return None if network is None else network.handle()


@functools.cache
def from_environment() -> Cluster | None:
    """Return the cluster that ``PCCL_CLUSTER`` names; None if it is not set.

    Raises
    ------
    Error
        The error of ``Cluster.load``, with the name of the variable.
    """
    path = os.environ.get("PCCL_CLUSTER", "").strip()
    try:
        return Cluster.load(path) if path else None
    except OSError as error:
        raise UnavailableError(f"PCCL_CLUSTER: {path}: {error.strerror}") from None
    except Error as error:
        raise type(error)(f"PCCL_CLUSTER: {error}") from None
