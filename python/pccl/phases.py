# SPDX-License-Identifier: Apache-2.0
"""Phases of a job: all ranks finish what they have called, then the network is switched.

>>> def halves(comm):
...     x = numpy.ones(4)
...     pccl.switch_phase("ring")
...     comm.all_reduce(x)
...     with pccl.phase("pairs"):
...         part = comm.split(comm.rank % 2)
...         part.all_reduce(x)
...     return x[0]
>>> cluster = pccl.Cluster({
...     "devices": [{}] * 4,
...     "phases": {"ring": {"links": "ring"}, "pairs": {"links": [[0, 2], [1, 3]], "duplex": True}},
... })
>>> pccl.run(halves, ranks=4, cluster=cluster)
[8.0, 8.0, 8.0, 8.0]
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
from typing import TYPE_CHECKING, Any

from pccl.cluster import Cluster
from pccl.cluster_results import raise_unless_done
from pccl.errors import Error, InvalidArgumentError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import timedelta

    from pccl._core import Communicator, PhaseNetwork
    from pccl.cluster_progress import Tell
    from pccl.cluster_results import Switched

__all__ = ["current_phase", "phase", "switch_phase"]

_MOST_TOLD = 3072  # bytes of a result that other ranks get (Switching::kLongestReport)
_joined: list[Cluster] = []  # that groups of this process are on, the latest last


def switch_phase(
    phase: str,
    *,
    dry_run: bool = False,
    timeout: float | timedelta = 5.0,
    discard_candidate: bool = False,
    progress: Tell | None = None,
) -> Switched:
    """Switch the network of a job to another phase: a collective call of all of its ranks.

    Collectives and messages that a rank has called come first; calls of its other threads wait.
    Rank 0 switches the devices, all or none; then all ranks go on over the links of the new phase.
    Groups that were split off follow.

    Parameters
    ----------
    phase
        Which one, the same on all ranks.
    dry_run
        Only have the switches check it.
    timeout
        In seconds: for all ranks to call this and finish what they have called, and for each step
        on all switches.
    discard_candidate
        Of rank 0: throw away edits that somebody has left in the candidate of a switch without
        committing them. Without it the switch is refused, and the error names the edits.
    progress
        Of rank 0: called from another thread, about ten times a second once it takes more than a
        second, with how far each switch is. None shows that on a terminal or in a notebook.

    Returns
    -------
    Switched
        How long it took, on each switch; which circuits were read, rank 0 alone knows.

    Raises
    ------
    InvalidArgumentError
        There is no such phase, or it leaves a rank without a way.
    SwitchError
        It was refused or rolled back: all ranks go on in the old phase. Or it is degraded.
    TimeoutError
        A rank did not come in time: the message says which, and what it does. Nothing is switched.
    MismatchError
        Ranks ask for different phases, or one of them for a collective. Nothing was switched.
    PeerLostError
        A rank is gone. If that is rank 0, those that are left first find out what has become of the
        network, and are in one phase then; or in none, if nobody can read the switches.
    UnavailableError
        There is no group here whose cluster could be switched; or messages are not received yet.
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
    """Switch the network of a group to a phase, as ``switch_phase`` does, unless it is there.

    Parameters
    ----------
    group
        That has all ranks of its cluster.
    phase
        Which one, the same on all ranks.
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
        cluster.plan(None, phase)  # it names the nearest
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
    """Give the job another phase for a block, ``with pccl.phase("pairs"):``, and the old one back.

    All ranks must come through it alike. An exception in the block leaves the phase as it is: other
    ranks may not come to switch back.

    Parameters
    ----------
    name
        Which one.
    timeout
        As that of ``switch_phase``, for each way.

    Yields
    ------
    Switched
        How long it took to get there.

    Raises
    ------
    InvalidArgumentError
        No phase was switched to before, to come back to.
    SwitchError, TimeoutError, MismatchError, PeerLostError, UnavailableError
        As ``switch_phase``.
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
    """Return the phase that this job was last switched to; None before, and if nobody knows.

    Raises
    ------
    UnavailableError
        There is no group here on a cluster.
    """
    return _network_of(_cluster()).phase or None


def _untold(is_done: bool, dry_run: bool) -> dict[str, Any]:
    """Return a result of which rank 0 has told no more, as when it was interrupted."""
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
    """Return what rank 0 does once it is its turn; the whole result is kept for it."""

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
    """Return what the lowest rank that is left does where rank 0 is gone."""

    def read_back() -> bool:
        shown = "" if dry_run else cluster._inherit(timeout)
        if shown not in {"", before, wanted}:
            raise UnavailableError(f"the switches show phase {shown}")
        return shown == wanted

    return read_back


def _shortened(told: dict[str, Any]) -> str:
    """Return a result as other ranks get it: times, without what was asked of each switch."""
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
    """Return the network of a group to be made; of the cluster of ``PCCL_CLUSTER`` for the first.

    Raises
    ------
    InvalidArgumentError
        The cluster is another group's already.
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
    """Return what ``network_for`` does, for ``pccl._torch``."""
    network = network_for(cluster, world_size)
    return None if network is None else network.handle()


@functools.cache
def from_environment() -> Cluster | None:
    """Return the cluster that ``PCCL_CLUSTER`` names; None: none.

    Raises
    ------
    Error
        What ``Cluster.load`` says, with the variable's name.
    """
    path = os.environ.get("PCCL_CLUSTER", "").strip()
    try:
        return Cluster.load(path) if path else None
    except OSError as error:
        raise UnavailableError(f"PCCL_CLUSTER: {path}: {error.strerror}") from None
    except Error as error:
        raise type(error)(f"PCCL_CLUSTER: {error}") from None
