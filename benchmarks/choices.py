# SPDX-License-Identifier: Apache-2.0
"""What groups choose by themselves, against the best algorithm that they could be told to use.

    python benchmarks/choices.py --ranks 2 4 --json choices.json
    sudo python benchmarks/choices.py --transports hosts --ranks 8
    sudo python benchmarks/choices.py --transports hosts --hosts 16 --ranks 16 --apart

One set of processes has a group for each algorithm, and one that chooses by itself. For each
collective and size they take turns, back to back on random data, so that all of them meet the same
machine: the cores of a virtual one move, and others come and go. The fastest is the winner, and a
second run, of new processes in which it and the default alone take turns, says by how much, so that
luck does not count; there, each cell has groups of its own, for a connection that has sent many
megabytes may take short messages otherwise than a new one. A cell is good where the default takes
at most 15 % or 0.5 us more than the winner. Each call sends what the one before sent, which others'
caches may still hold; with ``--write`` ranks write it again before each, within the time that is
taken. With ``--apart`` all ranks meet before each call, outside of it: back to back a root that
waits for nobody is a call ahead of the others. ``--torch`` measures tensors and process groups;
numpy's arrays need numpy and pccl alone. Over ``hosts`` each half of the ranks (with
``--hosts`` each part) is in a network namespace, a host of its own to PCCL; the hierarchical
algorithm is compared with the best flat one besides.
Exits with status 1 where fewer than 95 % of the cells are good, or one loses more than 40 %.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import functools
import json
import os
import platform
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from common.namespaces import INTERFACE, MOST_HOSTS, enter, joined_namespaces
from common.timing import random_numbers
from common.told_groups import GROUPS, Groups, Seat, join

from pccl._internal.local_ranks import run_ranks
from pccl.bench import bytes_of, sizes_between
from pccl.bench.cases import COLLECTIVES, Case

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pccl.bench.cases import ReduceOp

DEFAULT = "default"
HOSTS = "hosts"
HIERARCHICAL = "hierarchical"
TRANSPORTS = {"shm": "", "tcp": "tcp", HOSTS: ""}
GOOD_RATIO = 1.15
GOOD_US = 0.5
GOOD_SHARE = 0.95
WORST_RATIO = 1.4
WARM_UP_CALLS = 3
LEAST_TURNS = 8
LEAST_CALLS = 4  # in a turn
BATCH_SECONDS = 5e-4  # so long that looking at the clock takes nothing of it

Key = tuple[str, int]  # collective, bytes


@dataclass(frozen=True)
class Place:
    """Where cells are measured."""

    ranks: int
    transport: str
    hosts: tuple[str, ...] = ()  # network namespaces; none: all ranks are where this process is

    def enter(self, rank: int) -> None:
        """Go to the host of a rank."""
        if self.hosts:
            os.environ["PCCL_SOCKET_IFNAME"] = f"={INTERFACE}"
            enter(self.hosts[rank * len(self.hosts) // self.ranks])


@dataclass(frozen=True)
class Ways:
    """What can make a cell, with predicted microseconds, and what groups choose."""

    predicted_us: dict[str, float]
    chosen: str


@dataclass(frozen=True)
class Cell:
    """What was found; ``us`` has the times of the first run, the rest those of the second."""

    ranks: int
    transport: str
    collective: str
    bytes: int
    chosen: str
    default_us: float
    best: str
    best_us: float
    us: dict[str, float]
    predicted_us: dict[str, float]

    @property
    def loss(self) -> float:
        """The default's time over the winner's."""
        return self.default_us / self.best_us

    @property
    def is_good(self) -> bool:
        return self.loss <= GOOD_RATIO or self.default_us - self.best_us <= GOOD_US


def main() -> int:
    options = parse_options()
    start = time.monotonic()
    cells: list[Cell] = []
    for ranks in options.ranks:
        for transport in options.transports:
            begun = time.monotonic()
            is_joined = transport == HOSTS
            joined = joined_namespaces(options.hosts) if is_joined else contextlib.nullcontext(())
            with joined as hosts:
                found = compare(Place(ranks, transport, hosts), options)
            cells += found
            spent = time.monotonic() - begun
            print(f"\n{ranks} ranks over {transport}, us ({spent:.0f} s)")
            show(found)
    summary = summarise(cells) | {"seconds": round(time.monotonic() - start)}
    print("\n" + "\n".join(f"{name}: {value}" for name, value in summary.items()))
    if options.json:
        content = {
            "benchmark": "choices",
            "through": options.through,
            "apart": options.apart,
            "machine": machine(),
            "summary": summary,
        }
        rows = [asdict(cell) | {"loss": cell.loss, "is_good": cell.is_good} for cell in cells]
        options.json.write_text(json.dumps(content | {"cells": rows}, indent=1) + "\n")
    return 0 if summary["good"] >= GOOD_SHARE and summary["worst"] <= WORST_RATIO else 1


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--ranks", type=int, nargs="+", default=[2, 4])
    add("--transports", nargs="+", choices=TRANSPORTS, default=["shm", "tcp"])
    add("--hosts", type=int, default=2, help="network namespaces, of --transports hosts")
    add("--collectives", nargs="+", choices=COLLECTIVES, default=list(COLLECTIVES))
    sizes = list(sizes_between(1 << 10, 64 << 20, 4))
    add("--sizes", type=bytes_of, nargs="+", default=sizes, help="bytes, as 64K")
    add("--seconds", type=float, default=0.02, help="of a cell in one turn")
    add("--write", action="store_true", help="write the input again before each call")
    add("--apart", action="store_true", help="let all ranks meet before each call")
    add("--torch", dest="through", action="store_const", const="torch", default="numpy")
    add("--no-pin", dest="pin", action="store_false", help="do not bind rank i to core i mod cores")
    add("--json", type=Path)
    options = parser.parse_args()
    if not 2 <= options.hosts <= MOST_HOSTS:
        parser.error(f"--hosts {options.hosts}: from 2 to {MOST_HOSTS}")
    return options


def compare(place: Place, options: argparse.Namespace) -> list[Cell]:
    """Measure all algorithms and the default in turns; then the winners and the default again."""
    keys = [(name, size) for name in options.collectives for size in options.sizes]
    ways: dict[Key, Ways] = dict(run_ranks(functools.partial(_explain, place, keys), place.ranks))
    first = _run(place, [{key: list(ways[key].predicted_us) for key in keys}], options)
    best = {key: min(us, key=us.__getitem__) for key, us in _without_default(first).items()}
    second = _run(place, [{key: [best[key]]} for key in keys], options)
    return [
        Cell(
            ranks=place.ranks,
            transport=place.transport,
            collective=key[0],
            bytes=key[1],
            chosen=ways[key].chosen,
            default_us=second[key][DEFAULT],
            best=best[key],
            best_us=second[key][best[key]],
            us=us,
            predicted_us=ways[key].predicted_us,
        )
        for key, us in _without_default(first).items()
    ]


def _without_default(times: dict[Key, dict[str, float]]) -> dict[Key, dict[str, float]]:
    return {key: {name: us[name] for name in us if name != DEFAULT} for key, us in times.items()}


def _run(
    place: Place, parts: list[dict[Key, list[str]]], options: argparse.Namespace
) -> dict[Key, dict[str, float]]:
    """Return the median microseconds of the default and the named algorithms.

    By new processes, in which each part has groups of its own.
    """
    work = functools.partial(_work, place, parts, options)
    return {
        key: {name: statistics.median(us) for name, us in turns.items()}
        for key, turns in run_ranks(work, place.ranks)
    }


def _seat(place: Place, rank: int, rendezvous: str) -> Seat:
    return Seat(rank, place.ranks, TRANSPORTS[place.transport], rendezvous)


def _explain(
    place: Place, keys: list[Key], rank: int, rendezvous: str, send: Callable[[object], None]
) -> None:
    place.enter(rank)
    comm = join(_seat(place, rank, rendezvous), "explains")
    for collective, size in keys if rank == 0 else ():
        ways = comm.explain(collective, size)
        chosen = next((way.algorithm for way in ways if way.is_chosen), "")
        predicted_us = {way.algorithm: way.seconds * 1e6 for way in ways}
        send(((collective, size), Ways(predicted_us, chosen)))
    comm.barrier()


def _work(
    place: Place,
    parts: list[dict[Key, list[str]]],
    options: argparse.Namespace,
    rank: int,
    rendezvous: str,
    send: Callable[[object], None],
) -> None:
    place.enter(rank)
    if options.pin:
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[rank % len(cores)]})
    referee = join(_seat(place, rank, rendezvous), "referee")
    for number, names in enumerate(parts):
        seat = _seat(place, rank, f"{rendezvous}-{number}")
        groups = GROUPS[options.through](seat, _reported(names))
        for key, turns in _turns_of(names, groups, referee, options):
            if rank == 0:
                send((key, turns))
        referee.barrier()
        groups.close()


def _turns_of(
    names: dict[Key, list[str]], groups: Groups, referee: Any, options: argparse.Namespace
) -> Iterator[tuple[Key, dict[str, list[float]]]]:
    for key, able in names.items():
        case, x, out = _buffers(Case.of_bytes(key[0], referee.world_size, key[1]), referee.rank)
        calls = {name: groups.call(name, case, x, out) for name in (DEFAULT, *able)}
        if options.write:
            calls = {name: _after_writing(x, call) for name, call in calls.items()}
        meet = referee.barrier if options.apart else None
        yield key, _take_turns(referee, calls, options.seconds, meet)


def _reported(names: dict[Key, list[str]]) -> dict[str, str]:
    """Return what each group is told: an algorithm for all that it is to make, or nothing."""
    able: dict[str, set[str]] = collections.defaultdict(set)
    for (collective, _), some in names.items():
        for name in some:
            able[name].add(collective)
    reported = {name: ",".join(f"{each}={name}" for each in sorted(able[name])) for name in able}
    return {DEFAULT: ""} | reported


def _buffers(case: Case, rank: int) -> tuple[Case, Any, Any]:
    x, out = case.buffers()
    x[:] = random_numbers(rank, x.size)
    # In place, sums would grow call by call until they are infinite.
    op: ReduceOp = "max" if case.is_in_place else "sum"
    return Case(case.collective, case.ranks, case.count, op=op), x, out


def _after_writing(x: Any, call: Callable[[], object]) -> Callable[[], object]:
    content = x.copy()

    def write_and_call() -> object:
        np.copyto(x, content)
        return call()

    return write_and_call


def _take_turns(
    comm: Any,
    calls: dict[str, Callable[[], object]],
    seconds: float,
    meet: Callable[[], object] | None,
) -> dict[str, list[float]]:
    """Return the slowest rank's microseconds for a call, by algorithm and turn."""
    batches = {}
    for name, call in calls.items():
        for _ in range(WARM_UP_CALLS):
            once = _slowest(comm, _seconds_of(call, 1, meet))
        batches[name] = max(LEAST_CALLS, int(BATCH_SECONDS / once))
    turns = max(LEAST_TURNS, int(seconds / max(BATCH_SECONDS, once)))
    times = np.zeros((turns, len(calls)))
    for turn in range(turns):
        for i, (name, call) in enumerate(calls.items()):
            _seconds_of(call, WARM_UP_CALLS, meet)  # the turn before has left others in the caches
            comm.barrier()  # who begins late finds there what it would have waited for
            times[turn, i] = _seconds_of(call, batches[name], meet) / batches[name]
    comm.all_reduce(times, "max")
    return {name: (times[:, i] * 1e6).tolist() for i, name in enumerate(calls)}


def _seconds_of(call: Callable[[], object], calls: int, meet: Callable[[], object] | None) -> float:
    """Return what the calls take, without what ranks wait for each other before each."""
    waited = 0.0
    start = time.perf_counter()
    for _ in range(calls):
        if meet:
            before = time.perf_counter()
            meet()
            waited += time.perf_counter() - before
        call()
    return time.perf_counter() - start - waited


def _slowest(comm: Any, seconds: float) -> float:
    time_of_all = np.array([seconds])
    comm.all_reduce(time_of_all, "max")
    return float(time_of_all[0])


def show(cells: list[Cell]) -> None:
    print(
        f"{'collective':<15}{'bytes':>10} {'default':>12} {'':<20}{'best':>12} {'':<20}{'loss':>7}"
    )
    for cell in cells:
        print(
            f"{cell.collective:<15}{cell.bytes:>10} {cell.default_us:>12.1f} {cell.chosen:<20}"
            f"{cell.best_us:>12.1f} {cell.best:<20}{cell.loss - 1:>7.0%}"
            f"{'' if cell.is_good else ' !'}"
        )


def summarise(cells: list[Cell]) -> dict[str, Any]:
    worst = max(cells, key=lambda cell: 1 if cell.is_good else cell.loss)
    shares: dict[str, list[bool]] = collections.defaultdict(list)
    for cell in cells:
        shares[f"good, {cell.ranks} ranks over {cell.transport}"].append(cell.is_good)
    return {
        "good": round(sum(cell.is_good for cell in cells) / len(cells), 3),
        **{name: f"{sum(good)} of {len(good)}" for name, good in shares.items()},
        "worst": round(1 if worst.is_good else worst.loss, 3),
        "worst cell": f"{worst.collective} of {worst.bytes} bytes, {worst.ranks} ranks over "
        f"{worst.transport}: {worst.chosen} {worst.default_us:.1f} us, "
        f"{worst.best} {worst.best_us:.1f} us",
        "load": os.getloadavg()[0],
        **hierarchy(cells),
    }


def hierarchy(cells: list[Cell]) -> dict[str, Any]:
    """Return the hierarchical algorithm's time over that of the best flat one, in the first run."""
    ratios = {
        f"{cell.collective} of {cell.bytes} bytes": cell.us[HIERARCHICAL]
        / min(us for name, us in cell.us.items() if name != HIERARCHICAL)
        for cell in cells
        if HIERARCHICAL in cell.us
    }
    return (
        {HIERARCHICAL: {name: round(ratio, 3) for name, ratio in ratios.items()}} if ratios else {}
    )


def machine() -> dict[str, Any]:
    from pccl import _core

    models = _lines_of("/proc/cpuinfo", "model name")
    source, costs = _core.machine_costs()
    return {
        "cpu": next(models, platform.machine()),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "costs": source,
        "figures": costs,
    }


def _lines_of(path: str, name: str) -> Iterator[str]:
    for line in Path(path).read_text().splitlines():
        if line.startswith(name):
            yield line.partition(":")[2].strip()


if __name__ == "__main__":
    sys.exit(main())
