# SPDX-License-Identifier: Apache-2.0
"""Switch the phases of a job many times, with faults of its switch: one command with a seed.

    PYTHONPATH=tests python -m support.phase_soak --seed 7 --switches 200

Ranks are processes (phase_rank.py) that reach each other by TCP; their switch is a stand-in
(optical_switch.py) behind sshd, which rejects, hangs, drops, lies, dies and loses light as the seed
says, and which somebody else changes while a switch of phases begins, and mends again. After every
switch, whatever came of it, ranks are in one phase, a sum is right, and the switch shows what is
meant, or rank 0 knows that it is degraded.

At some turns a rank is killed: when rank 0 has just asked the switch for something, a commit and
its confirmation among it, or when it tells others how it ended. Those that are left name the rank,
were in one phase, or in none, and go on; then all ranks are started anew.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import dataclasses
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support import netconf_servers as servers
from support.optical_switch import Device, serving
from support.phase_rank import RANKS, Job, description
from support.ports import free_port
from support.termination import ended_by_sigterm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_TESTS = Path(__file__).parents[1]
_PROGRAM = Path(__file__).with_name("optical_switch.py")
_FAULTS = ("reject", "hang", "drop", "lie", "die")
_FAULTY = ("lock", "edit-config", "commit", "get-config")  # operations
# Where a rank is killed: at an operation of rank 0, or so many seconds after its last one.
_MOMENTS = ("lock", "edit-config", "commit", "confirm", "unlock", 0.0, 0.001, 0.003, 0.01)
_LONGEST_S = 120  # that a job of this many ranks needs to start, or to go on without one
_PER_TURN_S = 20


@dataclasses.dataclass(frozen=True)
class Soak:
    """What is to be done; chances are those of a fault for each operation, of a kill a turn."""

    seed: int = 1
    switches: int = 30
    chance: float = 0.01
    kills: float = 0.01


def missing() -> str:
    """Say what is not installed; empty: nothing."""
    if Path(servers.SSHD).exists():
        return ""
    return "not installed: openssh-server (tools/setup_netconf_servers.sh)"


class Disturbance:
    """What goes wrong with a device, one operation after the other, and whom that kills."""

    def __init__(self, soak: Soak, device: Device) -> None:
        self.seen: collections.Counter[str] = collections.Counter()
        self._soak, self._device = soak, device
        self._dice = random.Random(soak.seed)
        self._meant: dict[int, int] = {}  # before somebody else changed it; empty: nobody has
        self._last = ""  # operation
        self._kill: Callable[[], None] | None = None
        self._moment: str | float = 0.0
        device.pick_fault = self._pick

    def arm(self, moment: str | float, kill: Callable[[], None]) -> None:
        """Have somebody killed at the next such moment; there are no other faults until then."""
        self._moment, self._kill = moment, kill

    def calm(self) -> None:
        """Mend what somebody else has changed, and leave it at that."""
        self._kill = None
        self._device.dark.clear()
        self._mend()

    def _pick(self, operation: str) -> str:
        if self._kill is not None:
            self._kill_at(operation)
            return ""
        is_locked = (self._last, operation) == ("lock", "discard-changes")
        self._last = operation
        if operation == "commit":
            self._lose_light()
        if operation in {"unlock", "lock"}:
            self._device.dark.clear()
            self._mend()
        elif is_locked and self._device.running and self._dice.random() < self._soak.chance:
            self._meant = dict(self._device.running)
            self._device.running = _turned(self._meant)
            self.seen["edit by somebody else"] += 1
        return self._pick_fault(operation)

    def _kill_at(self, operation: str) -> None:
        assert self._kill is not None
        is_confirming = operation == "commit" and self._device.is_unsure
        if self._moment == ("confirm" if is_confirming else operation):
            self._kill()
        elif isinstance(self._moment, float) and operation == "unlock":
            threading.Timer(self._moment, self._kill).start()

    def _pick_fault(self, operation: str) -> str:
        if operation not in _FAULTY or self._dice.random() >= self._soak.chance:
            return ""
        fault = self._dice.choice(_FAULTS)
        # Who only says that it has confirmed takes the commit back later, when nobody looks: no ok
        # can tell (docs/reference/phases.md): the next switch finds it.
        if fault == "lie" and (operation == "get-config" or self._device.is_unsure):
            return ""
        self.seen[f"{operation} {fault}"] += 1
        return fault

    def _lose_light(self) -> None:
        """Let no light come in at some port once there is a commit to be confirmed."""
        if not self._device.is_unsure and self._dice.random() < self._soak.chance:
            self._device.dark = {self._dice.randrange(1, 2 * RANKS + 1)}
            self.seen["light lost"] += 1

    def _mend(self) -> None:
        if self._meant:
            assert self._device.running == _turned(self._meant), "it was overwritten"
            self._device.running, self._meant = self._meant, {}


def _turned(circuits: dict[int, int]) -> dict[int, int]:
    """Give each ingress the egress of the next."""
    outwards = list(circuits.values())
    return dict(zip(circuits, [*outwards[1:], outwards[0]], strict=True))


@contextlib.contextmanager
def _switch(device: Device, folder: Path) -> Iterator[dict[str, Any]]:
    """Serve the switch, and give the description of the cluster."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(ended_by_sigterm())
        path, port = folder / "device.sock", free_port()
        servers.make_keys(folder)
        stack.enter_context(serving(device, path))
        subsystem = f"{sys.executable} {_PROGRAM} {path}"
        stack.enter_context(servers.sshd(folder, ports=[port], subsystem=subsystem))
        yield description(
            {
                "name": "ocs",
                "address": f"netconf://{servers.user()}@127.0.0.1:{port}",
                "host_key": servers.fingerprint(folder / "host_key.pub"),
                "key_file": str(folder / "user_key"),
                "confirm_timeout_s": 1,
            }
        )


class _Ranks:
    """The processes of a job, and what they say."""

    def __init__(self, job: Job, folder: Path, reported: Callable[[int], None]) -> None:
        file = folder / f"job-{job.first}.json"
        file.write_text(json.dumps(dataclasses.asdict(job)))
        self._reported = reported
        self._last: dict[int, dict[str, Any]] = {}
        path = os.pathsep.join([str(_TESTS), *sys.path])
        self._processes = [
            subprocess.Popen(
                [sys.executable, "-m", "support.phase_rank", str(file), str(rank)],
                env={**os.environ, "PYTHONPATH": path, "PCCL_TRANSPORTS": "tcp"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(RANKS)
        ]
        self._readers = [
            threading.Thread(target=self._read, args=(rank,), daemon=True) for rank in range(RANKS)
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, rank: int) -> None:
        output = self._processes[rank].stdout
        assert output is not None
        for line in output:
            printed = json.loads(line)
            if "turn" in printed:
                self._reported(printed["turn"])
            else:
                self._last[rank] = printed

    def kill(self, rank: int) -> None:
        self._processes[rank].kill()

    def wait(self, limit_s: float) -> dict[int, dict[str, Any]]:
        """Give the last words of all that have ended well, and end all."""
        try:
            for process in self._processes:
                process.wait(limit_s)
        finally:
            for process in self._processes:
                process.kill()
                process.wait()
        for reader in self._readers:
            reader.join()
        failed = [rank for rank, each in enumerate(self._processes) if each.returncode > 0]
        assert not failed, f"ranks {failed} failed, and said why"
        return self._last


@dataclasses.dataclass(frozen=True)
class _Kill:
    """Who is to be killed in which turn, and when in it."""

    turn: int
    rank: int
    moment: str | float

    def __str__(self) -> str:
        when = self.moment if isinstance(self.moment, str) else "the verdict"
        return f"kill of rank {'0' if self.rank == 0 else 'n'} at {when}"


def _kill_after(first: int, soak: Soak, dice: random.Random) -> _Kill | None:
    for turn in range(first, soak.switches):
        if dice.random() < soak.kills:
            rank = 0 if dice.random() < 0.5 else dice.randrange(1, RANKS)
            return _Kill(turn, rank, dice.choice(_MOMENTS))
    return None


def _run_job(
    job: Job, folder: Path, disturbance: Disturbance, kill: _Kill | None
) -> tuple[collections.Counter[str], int]:
    """Run turns until a rank is killed; return how they ended, and how many there were."""
    turns = 0

    def reported(turn: int) -> None:
        nonlocal turns
        turns = turn - job.first + 1
        if kill is not None and turn == kill.turn:
            disturbance.arm(kill.moment, lambda: _end(kill))

    def _end(kill: _Kill) -> None:
        disturbance.calm()
        disturbance.seen[str(kill)] += 1
        ranks.kill(kill.rank)

    ranks = _Ranks(job, folder, reported)
    printed = ranks.wait(_LONGEST_S + _PER_TURN_S * job.turns)
    outcomes = [collections.Counter(each["outcomes"]) for each in printed.values()]
    if len(printed) < RANKS:
        assert kill is not None
        assert set(printed) == set(range(RANKS)) - {kill.rank}, printed
        phases = {each.get("phase") for each in printed.values()}
        assert len(phases) == 1, f"{kill}: {printed}"
        for each in printed.values():
            assert f"rank {kill.rank}" in each["lost"], f"{kill}: {each}"
        disturbance.seen[f"left in {'no known' if None in phases else 'a'} phase"] += 1
        return outcomes[0], turns
    assert all(each == outcomes[0] for each in outcomes), outcomes
    return outcomes[0], turns


def run(soak: Soak) -> tuple[collections.Counter[str], collections.Counter[str]]:
    """Return how switches ended, and which faults there were.

    Raises
    ------
    AssertionError
        Something was not as it must be; ranks have said what on standard error.
    """
    ended: collections.Counter[str] = collections.Counter()
    dice = random.Random(soak.seed + 1)
    device = Device(lambda _before, _after: None)
    disturbance = Disturbance(soak, device)
    with tempfile.TemporaryDirectory(prefix="pccl-soak-") as name:
        folder, done = Path(name), 0
        with _switch(device, folder) as cluster:
            while done < soak.switches:
                kill = _kill_after(done, soak, dice)
                turns = (soak.switches if kill is None else kill.turn + 1) - done
                store = f"file://{folder}/store-{done}"
                job = Job(cluster, store, soak.seed + 2, done, turns)
                outcomes, taken = _run_job(job, folder, disturbance, kill)
                disturbance.calm()
                ended += outcomes
                done += taken
    return ended, disturbance.seen


def main() -> None:
    """Run as the command line says, and print what came of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--switches", type=int, default=200)
    parser.add_argument("--chance", type=float, default=0.01, help="of a fault, for an operation")
    parser.add_argument("--kills", type=float, default=0.01, help="chance of one, for a switch")
    wanted = parser.parse_args()
    ended, faults = run(Soak(wanted.seed, wanted.switches, wanted.chance, wanted.kills))
    for what, counted in [("switches", ended), ("faults", faults)]:
        print(
            f"{what}: " + (", ".join(f"{n} {key}" for key, n in sorted(counted.items())) or "none")
        )


if __name__ == "__main__":
    if why := missing():
        sys.exit(why)
    main()
