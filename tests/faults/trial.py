# SPDX-License-Identifier: Apache-2.0
"""One cell, run in processes of its own, and judged."""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch.distributed as dist

from faults import network
from faults.cells import GIVES_UP, OWN_PLUGIN, PEER_TIMEOUT_S, STRICT_PLUGIN, Cell
from faults.rank import Fault, Outcome, Seat, run
from pccl.cli import nccl_plugin
from support import fake_net_plugin
from support.launch import PRELOADED

if TYPE_CHECKING:
    from collections.abc import Iterable

HANG_S = 16
HANG_OF_HEAVY_S = 60  # where many compute at once
GLANCE_S = 0.25  # how soon cells end when the runner is told to
stopping = threading.Event()
_PLUGINS = {OWN_PLUGIN: nccl_plugin.plugin, STRICT_PLUGIN: fake_net_plugin.shared_object}


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
    if cell.setting in _PLUGINS:
        environment |= {
            "PCCL_TRANSPORTS": "netplugin",
            "PCCL_NET_PLUGIN": str(_PLUGINS[cell.setting]()),
        }
    if cell.fault == GIVES_UP:
        environment |= cell.forced.environment
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
    fault: Fault | None = None
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    ended: dict[int, int | None] = field(default_factory=dict)  # exit codes without a word
    hung: list[int] = field(default_factory=list)


def _await(cell: Cell, ranks: list[Any], names: tuple[str, str] | None) -> _Seen:
    seen = _Seen()
    open_pipes = {pipe: rank for rank, (_, pipe) in enumerate(ranks)}
    survivors = set(range(cell.ranks)) - {cell.victim}
    deadline = time.monotonic() + (HANG_OF_HEAVY_S if cell.is_heavy else HANG_S)
    while time.monotonic() < deadline:
        has_failed = seen.fault or {cell.victim} & (set(seen.outcomes) | set(seen.ended))
        if has_failed and not survivors - set(seen.outcomes) - set(seen.ended):
            break
        if stopping.is_set():
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
                seen.fault = word
                if cell.fault == "link_down" and names:
                    network.pull_link(names[1])
                    pipe.send("pulled")
    seen.hung = sorted(survivors - set(seen.outcomes) - set(seen.ended))
    for rank in seen.hung:
        with contextlib.suppress(ProcessLookupError):  # it has just ended
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
    if seen.fault is None and not report.complaints:
        report.complaints.append("the fault never happened")
    fault = seen.fault or Fault(0)
    for rank, outcome in sorted(seen.outcomes.items()):
        passed = outcome.at_s - fault.at_s
        report.slowest_s = max(report.slowest_s, passed)
        texts = _faults_of(cell, outcome, _culprits_for(cell, rank, outcome, fault), passed)
        report.complaints += [f"rank {rank} {text}" for text in texts]
    return report


def _culprits_for(cell: Cell, rank: int, outcome: Outcome, fault: Fault) -> set[int]:
    """Whom a survivor may blame."""
    if cell.fault == GIVES_UP and rank == fault.blamed:
        return set(range(cell.ranks)) - {rank}  # all waited for it in vain: any of them is gone
    if cell.fault == GIVES_UP and outcome.error == "TimeoutError":
        return {rank for rank in [fault.blamed] if rank is not None}  # as the victim told it
    return {cell.victim}


def _faults_of(cell: Cell, outcome: Outcome, culprits: set[int], passed: float) -> Iterable[str]:
    output = f"{outcome.error}: {outcome.message}"
    if outcome.error not in cell.expected:
        yield f"raised {output!r}; expected {' or '.join(cell.expected)}"
        return
    if outcome.rank not in culprits or f"rank {outcome.rank}" not in outcome.message:
        yield f"blames {outcome.rank}, not {culprits}: {output!r}"
    if not outcome.is_torch_error:
        yield f"raised what is no DistBackendError: {output!r}"
    if passed > cell.limit_s(outcome.error):
        yield f"knew after {passed:.2f} s: {output!r}"
    if outcome.left_behind:
        yield f"left behind {', '.join(outcome.left_behind)}"
