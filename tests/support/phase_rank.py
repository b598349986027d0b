# SPDX-License-Identifier: Apache-2.0
"""A rank of the soak of phases: it switches and sums, and goes on with those that are left.

    python -m support.phase_rank JOB RANK

JOB is a file with a ``Job``, as JSON. On standard output there is an object for each turn that
begins, of rank 0, and one at the end.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import pccl

RANKS = 4
PHASES: dict[str, Any] = {
    "ring": {"links": "ring", "duplex": True, "forward": True},
    "reverse": {"links": [[0, 3], [3, 2], [2, 1], [1, 0]]},
    "crossed": {
        "links": [[0, 2], [2, 1], [1, 3], [3, 0]],
        "duplex": True,
        "forward": True,
    },
}
_REST_S = 0.3  # a switch that hangs holds its lock for a while
_MOST_TRIES = 10


@dataclasses.dataclass(frozen=True)
class Job:
    """Turns from ``first`` on of a soak."""

    cluster: dict[str, Any]
    store: str
    seed: int
    first: int
    turns: int


def circuits(phase: str) -> list[tuple[int, int]]:
    """Return what a switch with two ports for each rank shows in the phase."""
    reported = pccl.Cluster(description({"name": "ocs"})).plan(None, phase)
    return sorted(pair for each in reported.switches for pair in each.add)


def description(switch: dict[str, Any]) -> dict[str, Any]:
    """Return a cluster around one switch, with two ports for each rank."""
    return {
        "switches": [switch],
        "devices": [{"ports": {"ocs": [2 * rank + 1, 2 * rank + 2]}} for rank in range(RANKS)],
        "phases": PHASES,
    }


def _report(**what: object) -> None:
    print(json.dumps(what), flush=True)


def _check_switch(cluster: pccl.Cluster, phase: str | None) -> None:
    """Compare what the switch shows with what is meant; only a degraded one may differ."""
    if cluster.degraded or phase is None:
        return
    (sight,) = cluster.show(timeout=1.0)
    assert sight.fault or sorted(sight.circuits) == circuits(phase), (phase, sight)


def _switch(wanted: str) -> str:
    before = pccl.phases.current_phase()
    try:
        outcome = pccl.switch_phase(wanted, timeout=2.0).outcome
        assert pccl.phases.current_phase() == wanted
    except pccl.phases.SwitchError as error:
        time.sleep(_REST_S)
        assert pccl.phases.current_phase() == before
        return error.result.outcome
    except pccl.UnavailableError:
        return "refused"
    except pccl.TimeoutError:
        # A busy machine keeps ranks from coming in time: all hear so, and nothing is switched.
        assert pccl.phases.current_phase() == before
        return "late"
    return outcome


def _take_turn(comm: pccl.Communicator, turn: int, wanted: str) -> str:
    if comm.rank == 0:
        _report(turn=turn)
    outcome = _switch(wanted)
    x = np.full(1000, float(comm.rank + turn))
    comm.all_reduce(x)
    assert x[0] == x[-1] == 6.0 + RANKS * turn
    if comm.rank == 0:
        cluster = pccl.phases.switching._cluster()
        _check_switch(cluster, pccl.phases.current_phase())
        if cluster.degraded:
            with contextlib.suppress(pccl.Error):
                cluster.adopt(timeout=1.0)
    comm.barrier()
    return outcome


def _come_to_ring() -> None:
    """Switch, with those that are left; what somebody has left half done takes its time."""
    for tries in range(_MOST_TRIES):
        try:
            pccl.switch_phase("ring", timeout=2.0)
        except (
            pccl.phases.SwitchError,
            pccl.UnavailableError,
            pccl.MismatchError,
            pccl.TimeoutError,
        ):
            if tries + 1 == _MOST_TRIES:
                raise
            time.sleep(_REST_S)
        else:
            return


def _outlive(comm: pccl.Communicator) -> str | None:
    """Go on without the rank that is gone; all that are left were in one phase, or in none."""
    phase = pccl.phases.current_phase()
    left = comm.shrink()
    if left.rank == 0:
        _check_switch(pccl.phases.switching._cluster(), phase)
    _come_to_ring()
    phases = np.empty(left.world_size, dtype=np.int64)
    left.all_gather(phases, np.array([-1 if phase is None else list(PHASES).index(phase)]))
    assert len(set(phases.tolist())) == 1, f"phases of those that are left: {phases}"
    x = np.ones(1000)
    left.all_reduce(x)
    assert x[0] == x[-1] == left.world_size
    left.barrier()
    return phase


def main() -> None:
    """Be a rank of a job."""
    file, rank = Path(sys.argv[1]), int(sys.argv[2])
    job = Job(**json.loads(file.read_text()))
    dice = random.Random(job.seed)  # alike on all ranks
    wanted = [dice.choice(list(PHASES)) for _ in range(job.first + job.turns)]
    outcomes: collections.Counter[str] = collections.Counter()
    comm = pccl.Communicator(
        rank=rank, world_size=RANKS, rendezvous=job.store, cluster=pccl.Cluster(job.cluster)
    )
    try:
        for turn in range(job.first, job.first + job.turns):
            outcomes[_take_turn(comm, turn, wanted[turn])] += 1
    except pccl.PeerLostError as error:
        lost, phase = str(error), _outlive(comm)
        _report(outcomes=outcomes, lost=lost, phase=phase)
    else:
        _report(outcomes=outcomes)


if __name__ == "__main__":
    main()
