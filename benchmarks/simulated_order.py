# SPDX-License-Identifier: Apache-2.0
"""In which order the simulator ranks algorithms, against the order in which they are measured.

    python benchmarks/simulated_order.py --ranks 2 4 8
    sudo python benchmarks/simulated_order.py --places shaped --ranks 4 8 --rate 200
    python benchmarks/simulated_order.py --json order.json
    python benchmarks/simulated_order.py --replay order.json

Ranks meet over TCP: on loopback, where they share the cores of this machine, as pccl.simulator's
Network.machine has it by measured costs; or each in a network namespace with a port of a given rate
at one switch, Network.switch. Every algorithm over links makes the collective by name, turn and
turn about in the same processes; a figure is the least of the slowest rank's times, what the place
can while nothing else disturbs it. What a message costs at a shaped port is measured first, between
all pairs at once, for their ranks share cores. Of algorithms that are the same program for so many
ranks, one is measured.

A cell is a pair of algorithms at one size whose measured times have an order: they differ by at
least 10 %, and the same way in every turn. It is right where the simulated times differ that way,
too. Exits with status 1 where fewer than 90 % of the cells are right.

``--json`` keeps the measured times, and the costs of the machine and speeds of ports that they were
simulated by: ``--replay`` of that file measures nothing, anywhere, and simulates them anew.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from common.link_speed import measured_speed
from common.namespaces import INTERFACE, enter, joined_namespaces

from pccl import _core, schedule, simulator
from pccl._internal.local_ranks import run_ranks
from pccl.bench import bytes_of
from pccl.bench.cases import Case, make_call_by, time_calls
from pccl.bench.collectives import slowest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pccl._core import Communicator

LOOPBACK, SHAPED = "loopback", "shaped"
CLEAR = 1.1  # measured times that differ by less have no order
GOAL = 0.9
TIMEOUT_S = 120.0
CAPACITY = 256 << 10  # bytes that a TCP link holds at least
TURNS = 5


@dataclass(frozen=True)
class Place:
    """Where ranks are; rate is of a port in Mbit/s, 0 on loopback."""

    kind: str
    ranks: int
    rate: int = 0
    speed: tuple[float, ...] = ()  # of a shaped port, as measured

    def network(self, cores: int) -> simulator.Network:
        """Return what it looks like to the simulator, on so many cores."""
        if self.kind == LOOPBACK:
            return simulator.Network.machine(self.ranks, transport="tcp", cores=cores)
        speed = simulator.Speed(*self.speed)
        print(f"{self.ranks} shaped ports: {speed}", flush=True)
        return simulator.Network.switch(self.ranks, speed, capacity=CAPACITY)


@dataclass(frozen=True)
class Time:
    """Seconds of one algorithm at one size: the least measured in each turn, and simulated."""

    place: Place
    collective: str
    size: int
    algorithm: str
    turns: list[float]
    simulated: float

    @property
    def measured(self) -> float:
        return min(self.turns)

    def is_before(self, other: Time) -> bool:
        """Tell whether it is faster, clearly."""
        return other.measured >= CLEAR * self.measured and all(
            own < theirs for own, theirs in zip(self.turns, other.turns, strict=True)
        )


def main() -> int:
    options = parser().parse_args()
    if options.replay:
        report = json.loads(options.replay.read_text())
        times = replayed(report)
    else:
        report = {
            "machine": platform.processor() or platform.machine(),
            "cores": len(os.sched_getaffinity(0)),
        }
        times = measured(options, report["cores"])
        report["costs"] = Path(_core.costs_path()).read_text()
    show(times)
    share = share_of_right(times)
    for kind in dict.fromkeys(each.place.kind for each in times):
        own = [each for each in times if each.place.kind == kind]
        errors = [abs(each.simulated / each.measured - 1) for each in own]
        print(
            f"{kind}: {share_of_right(own):.1%} of {len(cells(own))} cells in order; the time is "
            f"off by {statistics.median(errors):.0%} (median)"
        )
    if options.json:
        report |= {"share": share, "times": [asdict(each) for each in times]}
        options.json.write_text(json.dumps(report, indent=1))
    return 0 if share >= GOAL else 1


def measured(options: argparse.Namespace, cores: int) -> list[Time]:
    times = []
    for place in places(options):
        begin = time.monotonic()
        times += measure(place, options, cores)
        print(f"{place.kind}, {place.ranks} ranks: {time.monotonic() - begin:.0f} s", flush=True)
    return times


def replayed(report: dict[str, Any]) -> list[Time]:
    """Return the measured times of a report, simulated anew by what it has kept."""
    with use_costs(report["costs"]):
        times = [
            Time(**each | {"place": Place(**each["place"] | {"speed": (*each["place"]["speed"],)})})
            for each in report["times"]
        ]
        networks = {place: place.network(report["cores"]) for place in {t.place for t in times}}
        return [
            replace(
                each,
                simulated=simulated(
                    each.algorithm, each.collective, each.size, networks[each.place]
                ),
            )
            for each in times
        ]


@contextlib.contextmanager
def use_costs(text: str) -> Iterator[None]:
    """Have this process, which must not have asked for its costs yet, use those of a text."""
    lines = [line for line in text.splitlines() if line.split()[:1] not in (["boot"], ["machine"])]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "costs.txt"
        file.write_text("\n".join(lines) + "\n")
        os.environ["PCCL_COSTS_FILE"] = str(file)
        yield


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    made.add_argument("--places", nargs="+", default=[LOOPBACK], choices=[LOOPBACK, SHAPED])
    made.add_argument("--ranks", type=int, nargs="+", default=[2, 4, 8])
    made.add_argument("--collectives", nargs="+", default=["all_reduce", "all_gather"])
    made.add_argument("--sizes", type=bytes_of, nargs="+", default=[4 << 10, 256 << 10, 4 << 20])
    made.add_argument("--rate", type=int, default=200, help="Mbit/s of a shaped port")
    made.add_argument("--seconds", type=float, default=0.3, help="of an algorithm in a cell")
    made.add_argument("--json", type=Path)
    made.add_argument("--replay", type=Path, help="a report of --json: simulate, measure nothing")
    return made


def places(options: argparse.Namespace) -> Iterator[Place]:
    for kind in options.places:
        for ranks in options.ranks:
            yield Place(kind, ranks, options.rate if kind == SHAPED else 0)


def measure(place: Place, options: argparse.Namespace, cores: int) -> list[Time]:
    """Start the ranks of a place and time all algorithms."""
    cases = [
        Case.of_bytes(collective, place.ranks, size)
        for collective in options.collectives
        for size in options.sizes
    ]
    is_shaped = place.kind == SHAPED
    joined = joined_namespaces(place.ranks, place.rate) if is_shaped else contextlib.nullcontext(())
    with joined as names:
        worker = functools.partial(be_rank, cases, names, options.seconds)
        words = run_ranks(worker, place.ranks)
        if is_shaped:
            place = replace(place, speed=next(words))
        network = place.network(cores)
        return [
            Time(
                place,
                case.collective,
                case.size,
                name,
                turns,
                simulated(name, case.collective, case.size, network),
            )
            for case, found in words
            for name, turns in found.items()
        ]


def simulated(algorithm: str, collective: str, size: int, network: simulator.Network) -> float:
    return simulator.replay(algorithm, collective, network, size).seconds


def be_rank(
    cases: list[Case],
    names: tuple[str, ...],
    seconds: float,
    rank: int,
    rendezvous: str,
    send: Callable[[object], None],
) -> None:
    os.environ["PCCL_TRANSPORTS"] = "tcp"
    if names:
        os.environ["PCCL_SOCKET_IFNAME"] = f"={INTERFACE}"
        enter(names[rank])
    from pccl._core import Communicator

    comm = Communicator(
        rank=rank,
        world_size=cases[0].ranks,
        rendezvous=rendezvous,
        timeout=TIMEOUT_S,
    )
    if names:
        speed = measured_speed(comm, by_all=True)
        if rank == 0:
            send(speed)
    for case in cases:
        found = time_all(comm, case, seconds)
        if rank == 0:
            send((case, found))
    comm.barrier()


def time_all(comm: Communicator, case: Case, seconds: float) -> dict[str, list[float]]:
    """Return the least seconds of each program over links, in each turn."""
    x, out = case.buffers()
    names = distinct(
        case, sorted(way.algorithm for way in comm.explain(case.collective, case.size))
    )
    calls = {name: make_call_by(name, comm, case, x, out) for name in names}
    times: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(TURNS):
        for name in reversed(names) if turn % 2 else names:
            once = max(slowest(comm, time_calls(calls[name], comm.barrier, 1)))
            repeats = int(np.clip(seconds / TURNS / once, 1, 100))
            found = slowest(comm, time_calls(calls[name], comm.barrier, repeats))
            times[name].append(min(found))
    return times


def distinct(case: Case, names: list[str]) -> list[str]:
    """Return the first name of each program."""
    programs = {
        tuple(schedule.generate(name, cast("Any", case.collective), case.ranks).steps): name
        for name in reversed(names)
    }
    return sorted(programs.values())


def cells(times: list[Time]) -> list[bool]:
    """Tell of each pair with a clear order whether the simulator has the same."""
    groups: dict[tuple[object, ...], list[Time]] = {}
    for each in times:
        groups.setdefault((each.place, each.collective, each.size), []).append(each)
    return [
        a.simulated < b.simulated
        for group in groups.values()
        for a, b in itertools.permutations(group, 2)
        if a.is_before(b)
    ]


def share_of_right(times: list[Time]) -> float:
    found = cells(times)
    return sum(found) / max(len(found), 1)


def show(times: list[Time]) -> None:
    print(f"{'':<40} {'measured us':>12} {'simulated us':>12} {'ratio':>6}")
    for each in sorted(
        times, key=lambda t: (t.place.kind, t.place.ranks, t.collective, t.size, t.measured)
    ):
        what = f"{each.place.kind} {each.place.ranks} {each.collective} {each.size}"
        print(
            f"{what:<40} {each.measured * 1e6:>12.1f} {each.simulated * 1e6:>12.1f} "
            f"{each.simulated / each.measured:>6.2f}  {each.algorithm}"
        )


if __name__ == "__main__":
    sys.exit(main())
