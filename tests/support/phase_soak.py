"""Switch the phases of a job many times, with faults of its switch: one command with a seed.

    PYTHONPATH=tests python -m support.phase_soak --seed 7 --switches 200

Ranks are processes that reach each other by TCP; their switch is a stand-in (optical_switch.py)
behind sshd, which rejects, hangs, drops and lies as the seed says, and which somebody else changes
while a switch of phases begins, and mends again. After every switch, whatever
came of it, the ranks are in one phase, a sum is right, and the switch shows what is meant, or rank
0 knows that it is degraded. In the end a rank is killed in the middle of a switch, and named.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import dataclasses
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import pccl
from support import netconf_servers as servers
from support.optical_switch import Device, serving
from support.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PROGRAM = Path(__file__).with_name("optical_switch.py")
_FAULTS = ("reject", "hang", "drop", "lie")
_FAULTY = ("lock", "edit-config", "commit", "get-config")  # operations
_PHASES: dict[str, Any] = {
    "ring": {"links": "ring"},
    "reverse": {"links": [[0, 3], [3, 2], [2, 1], [1, 0]]},
    "crossed": {"links": [[0, 2], [2, 1], [1, 3], [3, 0]]},
}
RANKS = 4
_REST_S = 0.3  # a switch that hangs holds its lock for a while


@dataclasses.dataclass(frozen=True)
class Soak:
    """What is to be done; ``chance`` is that of a fault, for each operation."""

    seed: int = 1
    switches: int = 30
    chance: float = 0.01
    kills: bool = True


def missing() -> str:
    """Say what is not installed; empty: nothing."""
    if Path(servers.SSHD).exists():
        return ""
    return "not installed: openssh-server (tools/setup_netconf_servers.sh)"


class _Meddler:
    """Somebody else who changes circuits once the switch is locked, and mends them after that."""

    def __init__(
        self,
        device: Device,
        dice: random.Random,
        chance: float,
        seen: collections.Counter[str],
        pick: Callable[[str], str],
    ) -> None:
        self._device, self._dice, self._chance, self._seen = device, dice, chance, seen
        self._pick = pick
        self._meant: dict[int, int] = {}  # before it was changed; empty: it is not
        self._last = ""  # operation

    def __call__(self, operation: str) -> str:
        is_locked = (self._last, operation) == ("lock", "discard-changes")
        self._last = operation
        if operation in {"unlock", "lock"}:
            self._mend()
        elif is_locked and self._device.running and self._dice.random() < self._chance:
            self._meant = dict(self._device.running)
            self._device.running = _turned(self._meant)
            self._seen["edit by somebody else"] += 1
        return self._pick(operation)

    def _mend(self) -> None:
        if self._meant:
            assert self._device.running == _turned(self._meant), "it was overwritten"
            self._device.running, self._meant = self._meant, {}


@contextlib.contextmanager
def _switch(soak: Soak, seen: collections.Counter[str]) -> Iterator[dict[str, Any]]:
    """Run the switch, and give the description of the cluster."""
    dice = random.Random(soak.seed)

    def pick(operation: str) -> str:
        if operation not in _FAULTY or dice.random() >= soak.chance:
            return ""
        fault = dice.choice(_FAULTS)
        # Who only says that it has confirmed takes the commit back later, when nobody looks: no ok
        # can tell (docs/phases.md): the next switch finds it.
        if fault == "lie" and (operation == "get-config" or device.is_unsure):
            return ""
        seen[f"{operation} {fault}"] += 1
        return fault

    device = Device(lambda _before, _after: None)

    device.pick_fault = _Meddler(device, dice, soak.chance, seen, pick)
    with tempfile.TemporaryDirectory(prefix="pccl-soak-") as name, contextlib.ExitStack() as stack:
        folder, port = Path(name), free_port()
        path = folder / "device.sock"
        servers.make_keys(folder)
        stack.enter_context(serving(device, path))
        subsystem = f"{sys.executable} {_PROGRAM} {path}"
        stack.enter_context(servers.sshd(folder, ports=[port], subsystem=subsystem))
        yield {
            "switches": [
                {
                    "name": "ocs",
                    "address": f"netconf://{servers.user()}@127.0.0.1:{port}",
                    "host_key": servers.fingerprint(folder / "host_key.pub"),
                    "key_file": str(folder / "user_key"),
                    "confirm_timeout_s": 1,
                }
            ],
            "devices": [{"ports": {"ocs": rank + 1}} for rank in range(RANKS)],
            "phases": _PHASES,
        }


def _turned(circuits: dict[int, int]) -> dict[int, int]:
    """Give each ingress the egress of the next."""
    outwards = list(circuits.values())
    return dict(zip(circuits, [*outwards[1:], outwards[0]], strict=True))


def _circuits(phase: str) -> list[tuple[int, int]]:
    links = _PHASES[phase]["links"]
    pairs = [(rank, (rank + 1) % RANKS) for rank in range(RANKS)] if links == "ring" else links
    return sorted((first + 1, second + 1) for first, second in pairs)


def _check_switch(cluster: pccl.Cluster, phase: str | None) -> None:
    """Compare what the switch shows with what is meant; only a degraded one may differ."""
    if cluster.degraded or phase is None:
        return
    (sight,) = cluster.show(timeout=1.0)
    assert sight.fault or sorted(sight.circuits) == _circuits(phase), (phase, sight)


def _be_rank(comm: pccl.Communicator, soak: Soak) -> collections.Counter[str]:
    dice = random.Random(soak.seed + 1)  # alike on all ranks
    outcomes: collections.Counter[str] = collections.Counter()
    cluster = pccl.phases._cluster()
    for turn in range(soak.switches):
        wanted = dice.choice(list(_PHASES))
        before = pccl.current_phase()
        try:
            outcomes[pccl.switch_phase(wanted, timeout=1.0).outcome] += 1
            assert pccl.current_phase() == wanted
        except pccl.SwitchError as error:
            outcomes[error.result.outcome] += 1
            time.sleep(_REST_S)
            assert pccl.current_phase() == before
        except pccl.UnavailableError:
            outcomes["refused"] += 1
        x = np.full(1000, float(comm.rank + turn))
        comm.all_reduce(x)
        assert x[0] == x[-1] == 6.0 + RANKS * turn
        if comm.rank == 0:
            _check_switch(cluster, pccl.current_phase())
            if cluster.degraded:
                with contextlib.suppress(pccl.Error):
                    cluster.adopt(timeout=1.0)
        comm.barrier()
    if soak.kills:
        _lose_rank(comm)
    return outcomes


def _lose_rank(comm: pccl.Communicator) -> None:
    """Rank 2 is killed when the others switch; they hear which one it was."""
    if comm.rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    reason = "a phase was switched"
    with contextlib.suppress(pccl.PeerLostError):
        try:
            pccl.switch_phase("ring", timeout=20.0)
        except pccl.PeerLostError as error:
            reason = str(error)
            raise
    if "rank 2" not in reason:
        raise AssertionError(f"{reason}; but rank 2 was killed")


def run(soak: Soak) -> tuple[collections.Counter[str], collections.Counter[str]]:
    """Return how switches ended, and which faults there were.

    Raises
    ------
    pccl.RankError
        Something was not as it must be.
    """
    faults: collections.Counter[str] = collections.Counter()
    with _switch(soak, faults) as told:
        alive = dataclasses.replace(soak, kills=False)
        cluster = pccl.Cluster(told)
        ended = pccl.run(_be_rank, alive, ranks=RANKS, cluster=cluster, timeout=3600)
        assert all(each == ended[0] for each in ended), ended
    if soak.kills:
        calm = dataclasses.replace(soak, switches=0, chance=0)
        with _switch(calm, faults) as told:
            _run_killing(calm, pccl.Cluster(told))
    return ended[0], faults


def _run_killing(soak: Soak, cluster: pccl.Cluster) -> None:
    try:
        pccl.run(_be_rank, soak, ranks=RANKS, cluster=cluster, timeout=120)
    except pccl.RankError as error:
        if error.rank != 2:
            raise
    else:
        raise AssertionError("rank 2 was not killed")


def main() -> None:
    """Run as the command line says, and print what came of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--switches", type=int, default=200)
    parser.add_argument("--chance", type=float, default=0.01, help="of a fault, for an operation")
    wanted = parser.parse_args()
    os.environ["PCCL_TRANSPORTS"] = "tcp"
    ended, faults = run(Soak(wanted.seed, wanted.switches, wanted.chance))
    for what, counted in [("switches", ended), ("faults", faults)]:
        print(
            f"{what}: " + (", ".join(f"{n} {key}" for key, n in sorted(counted.items())) or "none")
        )


if __name__ == "__main__":
    if why := missing():
        sys.exit(why)
    main()
