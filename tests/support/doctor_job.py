# SPDX-License-Identifier: Apache-2.0
"""The job part of ``pccl doctor`` on ranks in network namespaces, which meet at a file."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from typing import TYPE_CHECKING, Any

from faults.network import enter
from pccl import _core
from pccl.diagnostics.doctor.job import examination, rank_facts
from pccl.diagnostics.doctor.job.exchange import Exchange
from pccl.diagnostics.doctor.job.meeting import Meeting
from pccl.diagnostics.doctor.job.options import Options
from pccl.diagnostics.doctor.root import Root
from support.launch import die_with_parent, warm_processes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from multiprocessing.connection import Connection
    from pathlib import Path

    from pccl.diagnostics.doctor.finding import Finding
    from pccl.diagnostics.doctor.job.report import Report

LIMIT_S = 120.0


@dataclasses.dataclass(frozen=True)
class Odd:
    """In which respects a rank differs from the others."""

    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    facts: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # fields of RankFacts
    clock_s: float = 0.0  # how far its clock is ahead
    cores: frozenset[int] = frozenset()  # to which it is bound
    is_absent: bool = False
    dies: bool = False  # when paths are examined


@dataclasses.dataclass(frozen=True)
class _Place:
    rank: int
    size: int
    store: str
    namespace: str
    timeout_s: float
    silence_s: float
    odd: Odd


def examine(
    namespaces: Sequence[str],
    folder: Path,
    odd: Mapping[int, Odd] | None = None,
    timeout_s: float = 60.0,
    silence_s: float = 45.0,
) -> tuple[Report, list[int]]:
    """Examine a job with a rank in each of ``namespaces``; return the report and all statuses.

    An empty name leaves the rank in the network of the test.
    """
    context = warm_processes()
    places = [
        _Place(
            rank,
            len(namespaces),
            f"file://{folder}/store",
            namespace,
            timeout_s,
            silence_s,
            (odd or {}).get(rank, Odd()),
        )
        for rank, namespace in enumerate(namespaces)
    ]
    with contextlib.ExitStack() as stack:
        ends = []
        ready = context.Barrier(sum(not place.odd.is_absent for place in places))
        for place in places:
            if place.odd.is_absent:
                continue
            here, there = context.Pipe(duplex=False)
            process = context.Process(target=_be_rank, args=(place, ready, there), daemon=True)
            process.start()
            stack.callback(process.join, 30)
            stack.callback(process.kill)
            there.close()
            if not place.odd.dies:
                ends.append(here)
        answers = [_received(end) for end in ends]
    report = answers[0]
    return report, [report.status, *answers[1:]]


def about_job(report: Report) -> list[Finding]:
    """Return the findings about the job; those about the machine of the test may be true."""
    own = ("agreement.", "clocks.", "job.", "path.")
    return [each for each in report.findings if each.check.startswith(own)]


def _received(end: Connection) -> Any:
    assert end.poll(LIMIT_S), "a rank of the doctor does not end"
    answer = end.recv()
    if isinstance(answer, BaseException):
        raise answer
    return answer


def _be_rank(place: _Place, ready: Any, to: Connection) -> None:
    die_with_parent()
    os.environ.update(place.odd.environment)
    if place.namespace:
        enter(place.namespace)
    if place.odd.cores:
        os.sched_setaffinity(0, place.odd.cores)
    if place.odd.dies:
        examination.Agent = lambda *_: os._exit(1)
    if place.odd.facts:
        _replace_facts(place.odd.facts)
    try:
        store = _core._RendezvousStore(place.store, place.rank == 0, 60.0)
        meeting = Meeting(place.rank, place.size, Exchange(store, "doctor"))
        options = Options(
            timeout_s=place.timeout_s,
            silence_s=place.silence_s,
            clock=lambda: time.time() + place.odd.clock_s,
        )
        ready.wait(60)
        to.send(examination.examine(meeting, Root(), options))
    except BaseException as error:
        to.send(error)


def _replace_facts(changes: Mapping[str, Any]) -> None:
    read = rank_facts.read
    rank_facts.read = lambda root, rank: dataclasses.replace(read(root, rank), **changes)
