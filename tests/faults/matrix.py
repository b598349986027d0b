# SPDX-License-Identifier: Apache-2.0
"""The fault matrix: every fault, over every transport, during every operation.

    make faults                                        one round, a few minutes
    make faults FAULTS="--rounds 20 --seed 7"          twenty rounds, each with a seed of its own
    make faults FAULTS="--rounds 20 --record F --seconds 150"   so long of it; again: the next part
    make faults FAULTS="--cell kill/tcp/barrier/3/1"   one cell again, as it was printed
    make faults FAULTS="--fault gives_up --algorithm shm_direct"

Every survivor must raise the right class, which names the right rank, in time,
and leave nothing behind; nothing may hang or crash.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import math
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from faults import network
from faults.cells import FAULTS, GIVES_UP, OPERATIONS, SETTINGS, Cell, cells
from faults.forced import COLLECTIVES, MESSAGES, algorithms_of
from faults.trial import Report, run_cell, stopping

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

# A rank of most cells computes for 0.1 s and waits for seconds.
CORES = len(os.sched_getaffinity(0))
AT_ONCE = 6 * CORES
UNFINISHED = 75  # exit status, as of sysexits.h: go on later


def run_cells(
    chosen: list[Cell], until: float = math.inf, record: Path | None = None
) -> list[Report]:
    """Run cells side by side, as most of their time is waiting; print each that fails.

    None is started after ``until``, of ``time.monotonic()``. Each is written to ``record``.
    """
    reports: list[Report] = []
    waiting = iter(chosen)
    lock = threading.Lock()
    heavy = threading.Semaphore(CORES)

    def work() -> None:
        while time.monotonic() < until:
            with lock:
                cell = next(waiting, None)
            if cell is None:
                return
            with heavy if cell.is_heavy else contextlib.nullcontext():
                report = run_cell(cell)
            if stopping.is_set():
                return
            with lock:
                reports.append(report)
                _write(report, record)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            for worker in [pool.submit(work) for _ in range(AT_ONCE)]:
                worker.result()
        except BaseException:  # a signal: what the cells under way hold is released
            stopping.set()
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


def _table(reports: list[Report], rows: Sequence[str], columns: Sequence[str]) -> str:
    lines = [f"{'':20}" + "".join(f"{name:>16}" for name in columns)]
    for row in rows:
        line = f"{row:20}"
        for column in columns:
            mine = [report for report in reports if {row, column} <= report.cell.traits]
            good = sum(not report.complaints for report in mine)
            slowest = max((report.slowest_s for report in mine), default=0)
            line += f"{f'{good}/{len(mine)}, {slowest:.2f} s' if mine else '-':>16}"
        lines.append(line)
    return "\n".join(lines)


def _tables(reports: list[Report]) -> str:
    """By fault and setting; and where ranks gave up, by algorithm and collective."""
    gave_up = [report for report in reports if report.cell.fault == GIVES_UP]
    algorithms = list(dict.fromkeys(way for name in COLLECTIVES for way in algorithms_of(name)))
    tables = [_table(reports, FAULTS, SETTINGS)]
    if gave_up:
        tables.append(_table(gave_up, [*algorithms, "link"], [*COLLECTIVES, MESSAGES]))
    return "\n\n".join(tables)


def _chosen(options: argparse.Namespace, can_pull_links: bool) -> list[Cell]:
    if options.cell:
        return [Cell.parse(text) for text in options.cell]
    return [
        cell
        for seed in range(options.seed, options.seed + options.rounds)
        for cell in cells(seed, can_pull_links)
        if all(
            not wanted or cell.traits & set(wanted)
            for wanted in (options.fault, options.setting, options.operation, options.algorithm)
        )
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--cell", action="append", help="only this one; may be repeated")
    parser.add_argument("--record", type=Path, help="results; the cells in it are not run again")
    parser.add_argument("--seconds", type=float, default=math.inf, help="start none after that")
    operations = dict.fromkeys((*OPERATIONS, *COLLECTIVES, MESSAGES))
    for name, choices in (("fault", FAULTS), ("setting", SETTINGS), ("operation", operations)):
        parser.add_argument(f"--{name}", action="append", choices=choices)
    parser.add_argument("--algorithm", action="append", help="where ranks give up")
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
    print(_tables(reports))
    failed = sum(bool(report.complaints) for report in reports)
    print(f"{len(reports) - failed} of {len(reports)} cells passed; {len(chosen)} in all")
    sys.exit(1 if failed else UNFINISHED if len(reports) < len(chosen) else 0)


if __name__ == "__main__":
    main()
