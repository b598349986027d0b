"""The fault matrix: every fault, over every transport, during every operation.

    make faults                                        one round, a few minutes
    make faults FAULTS="--rounds 20 --seed 7"          twenty rounds, each with a seed of its own
    make faults FAULTS="--rounds 20 --record F --seconds 150"   so long of it; again: the next part
    make faults FAULTS="--cell kill/tcp/barrier/3/1"   one cell again, as it was printed

Every survivor must raise the right class, which names the right rank, in time,
and leave nothing behind; nothing may hang or crash.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import math
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch.distributed as dist

from faults import network
from faults.cells import FAULTS, OPERATIONS, PEER_TIMEOUT_S, SETTINGS, Cell, cells
from faults.rank import Outcome, Seat, run
from support.launch import PRELOADED

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType

HANG_S = 16
GLANCE_S = 0.25  # how soon cells end when the runner is told to
# A rank of a cell computes for 0.1 s and waits for seconds.
AT_ONCE = 6 * len(os.sched_getaffinity(0))
UNFINISHED = 75  # exit status, as of sysexits.h: go on later
_stopping = threading.Event()


@dataclass
class Report:
    """What came of a cell; it passed when there are no complaints."""

    cell: Cell
    complaints: list[str] = field(default_factory=list)
    slowest_s: float = 0.0


def run_cell(cell: Cell) -> Report:
    """Run one cell in processes of its own."""
    with contextlib.ExitStack() as stack:
        names = None
        if cell.fault == "link_down":
            names = stack.enter_context(network.joined_namespaces())
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        ranks = [
            _start(_seat(cell, rank, store.port, names, scratch)) for rank in range(cell.ranks)
        ]
        stack.callback(_end, [process for process, _ in ranks])
        return _judge(cell, _await(cell, ranks, names), scratch)


def _seat(cell: Cell, rank: int, port: int, names: tuple[str, str] | None, scratch: Path) -> Seat:
    environment = {"PCCL_PEER_TIMEOUT_MS": str(round(PEER_TIMEOUT_S * 1000))}
    namespace = None
    if names:
        namespace = names[rank == cell.victim]
        environment["PCCL_SOCKET_IFNAME"] = network.INTERFACE
    elif cell.setting == "mixed" and rank == cell.ranks - 1:
        environment["PCCL_TRANSPORTS"] = "tcp"
    if cell.setting == "tcp":
        environment["PCCL_TRANSPORTS"] = "tcp"
    return Seat(str(cell), rank, port, environment, namespace, str(scratch / str(rank)))


def _start(seat: Seat) -> tuple[Any, multiprocessing.connection.Connection]:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*PRELOADED, "faults.rank"])
    ours, theirs = context.Pipe()
    process = context.Process(target=run, args=(seat, theirs), daemon=True)
    process.start()
    theirs.close()
    return process, ours


@dataclass
class _Seen:
    fault_s: float | None = None
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    ended: dict[int, int | None] = field(default_factory=dict)  # exit codes without a word
    hung: list[int] = field(default_factory=list)


def _await(cell: Cell, ranks: list[Any], names: tuple[str, str] | None) -> _Seen:
    seen = _Seen()
    open_pipes = {pipe: rank for rank, (_, pipe) in enumerate(ranks)}
    survivors = set(range(cell.ranks)) - {cell.victim}
    deadline = time.monotonic() + HANG_S
    while survivors - set(seen.outcomes) - set(seen.ended) and time.monotonic() < deadline:
        if _stopping.is_set():
            return seen
        for pipe in multiprocessing.connection.wait(list(open_pipes), GLANCE_S):
            rank = open_pipes[pipe]
            try:
                word = pipe.recv()
            except (EOFError, ConnectionError):
                del open_pipes[pipe]
                ranks[rank][0].join(1)
                seen.ended[rank] = ranks[rank][0].exitcode
                continue
            if isinstance(word, Outcome):
                seen.outcomes[rank] = word
            else:
                seen.fault_s = word
                if cell.fault == "link_down" and names:
                    network.pull_link(names[1])
                    pipe.send("pulled")
    seen.hung = sorted(survivors - set(seen.outcomes) - set(seen.ended))
    for rank in seen.hung:
        os.kill(ranks[rank][0].pid, signal.SIGUSR1)
        time.sleep(0.3)
    return seen


def _end(processes: list[Any]) -> None:
    for process in processes:
        process.join(0.5 if process.exitcode is None else 0)
        process.kill()
        process.join()


def _judge(cell: Cell, seen: _Seen, scratch: Path) -> Report:
    report = Report(cell)
    for rank in seen.hung:
        stacks = (scratch / str(rank)).read_text()
        report.complaints.append(f"rank {rank} hung:\n{stacks}")
    for rank, code in seen.ended.items():
        if rank != cell.victim and rank not in seen.outcomes:
            stacks = (scratch / str(rank)).read_text()
            report.complaints.append(f"rank {rank} ended with {code} and no word:\n{stacks}")
    if seen.fault_s is None and not report.complaints:
        report.complaints.append("the fault never happened")
    for rank, outcome in sorted(seen.outcomes.items()):
        passed = outcome.at_s - (seen.fault_s or 0)
        report.slowest_s = max(report.slowest_s, passed)
        report.complaints += [f"rank {rank} {text}" for text in _faults_of(cell, outcome, passed)]
    return report


def _faults_of(cell: Cell, outcome: Outcome, passed: float) -> Iterable[str]:
    said = f"{outcome.error}: {outcome.message}"
    if outcome.error not in cell.expected:
        yield f"raised {said!r}; expected {' or '.join(cell.expected)}"
        return
    if outcome.rank != cell.victim or f"rank {cell.victim}" not in outcome.message:
        yield f"blames {outcome.rank}, not {cell.victim}: {said!r}"
    if not outcome.is_torch_error:
        yield f"raised what is no DistBackendError: {said!r}"
    if passed > cell.limit_s(outcome.error):
        yield f"knew after {passed:.2f} s: {said!r}"
    if outcome.left_behind:
        yield f"left behind {', '.join(outcome.left_behind)}"


def run_cells(
    chosen: list[Cell], until: float = math.inf, record: Path | None = None
) -> list[Report]:
    """Run cells side by side, as most of their time is waiting; print each that fails.

    None is started after ``until``, of ``time.monotonic()``. Each is written to ``record``.
    """
    reports: list[Report] = []
    waiting = iter(chosen)
    lock = threading.Lock()

    def work() -> None:
        while time.monotonic() < until:
            with lock:
                cell = next(waiting, None)
            if cell is None:
                return
            report = run_cell(cell)
            if _stopping.is_set():
                return
            with lock:
                reports.append(report)
                _write(report, record)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            for worker in [pool.submit(work) for _ in range(AT_ONCE)]:
                worker.result()
        except BaseException:  # a signal: what the cells under way hold is released
            _stopping.set()
            raise
    return reports


def _stop(number: int, _frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # the first one is being obeyed
    sys.exit(128 + number)


def _write(report: Report, record: Path | None) -> None:
    for complaint in report.complaints:
        print(f"FAILED {report.cell}: {complaint}", flush=True)
    if record:
        values = {**dataclasses.asdict(report), "cell": str(report.cell)}
        with record.open("a") as file:
            file.write(json.dumps(values) + "\n")


def _read(record: Path | None) -> list[Report]:
    if record is None or not record.exists():
        return []
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    return [Report(Cell.parse(v["cell"]), v["complaints"], v["slowest_s"]) for v in lines]


def _table(reports: list[Report]) -> str:
    lines = [f"{'':12}" + "".join(f"{name:>18}" for name in SETTINGS)]
    for fault in FAULTS:
        row = f"{fault:12}"
        for setting in SETTINGS:
            mine = [r for r in reports if (r.cell.fault, r.cell.setting) == (fault, setting)]
            good = sum(not report.complaints for report in mine)
            slowest = max((report.slowest_s for report in mine), default=0)
            row += f"{f'{good}/{len(mine)}, {slowest:.2f} s' if mine else '-':>18}"
        lines.append(row)
    return "\n".join(lines)


def _chosen(options: argparse.Namespace, can_pull_links: bool) -> list[Cell]:
    if options.cell:
        return [Cell.parse(text) for text in options.cell]
    return [
        cell
        for seed in range(options.seed, options.seed + options.rounds)
        for cell in cells(seed, can_pull_links)
        if cell.fault in (options.fault or FAULTS)
        and cell.setting in (options.setting or SETTINGS)
        and cell.operation in (options.operation or OPERATIONS)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--cell", action="append", help="only this one; may be repeated")
    parser.add_argument("--record", type=Path, help="results; the cells in it are not run again")
    parser.add_argument("--seconds", type=float, default=math.inf, help="start none after that")
    for name, choices in (("fault", FAULTS), ("setting", SETTINGS), ("operation", OPERATIONS)):
        parser.add_argument(f"--{name}", action="append", choices=choices)
    options = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, _stop)
    reason = network.why_no_namespaces()
    if reason:
        print(f"links are not pulled: {reason}")
    chosen = _chosen(options, reason is None)
    reports = [report for report in _read(options.record) if report.cell in chosen]
    done = {report.cell for report in reports}
    missing = [cell for cell in chosen if cell not in done]
    reports += run_cells(missing, time.monotonic() + options.seconds, options.record)
    print(_table(reports))
    failed = sum(bool(report.complaints) for report in reports)
    print(f"{len(reports) - failed} of {len(reports)} cells passed; {len(chosen)} in all")
    sys.exit(1 if failed else UNFINISHED if len(reports) < len(chosen) else 0)


if __name__ == "__main__":
    main()
