# SPDX-License-Identifier: Apache-2.0
"""Evaluation of what the ranks of a job found."""

from __future__ import annotations

import operator
import typing

from pccl.diagnostics.doctor.finding import Finding, error, warning
from pccl.diagnostics.doctor.job import agreement, clocks, paths, placement
from pccl.diagnostics.doctor.job.hosts import JobHost, listed
from pccl.diagnostics.doctor.job.path import Path
from pccl.diagnostics.doctor.job.plan import is_crowded, share_of
from pccl.diagnostics.doctor.job.probe import Probe
from pccl.diagnostics.doctor.job.report import HostRow, Report, merged
from pccl.diagnostics.doctor.job.speed import Speed

if typing.TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Result: typing.TypeAlias = dict[str, typing.Any]

__all__ = ["paths_of", "report"]

SLOW_MEMORY = 20  # times as long as predicted


def report(
    hosts: list[JobHost],
    results: dict[int, Result],
    *,
    missing: Sequence[int],
    silent: Sequence[int],
) -> Report:
    """Return the report of a job from the results of its ranks."""
    found_paths = paths_of(hosts, results)
    names = [host.name for host in hosts]
    facts = [rank for host in hosts for rank in host.ranks]
    findings = [
        *_absent(missing, silent),
        *_own_findings(hosts, results),
        *agreement.check(facts),
        *placement.check(hosts),
        *_local(hosts, results),
        *paths.check(found_paths, names, one_machine=is_crowded(hosts)),
        *clocks.check(found_paths, names),
    ]
    offsets = clocks.offsets_of(found_paths)
    rows = [
        HostRow(
            host.name,
            [rank.rank for rank in host.ranks],
            _speed_of(host, results),
            offsets.get(number),
        )
        for number, host in enumerate(hosts)
    ]
    versions = facts[0].versions if facts else {}
    return Report(merged(findings, names), rows, found_paths, versions=versions)


def paths_of(hosts: list[JobHost], results: dict[int, Result]) -> list[Path]:
    """Return the paths that the first ranks of both hosts have probed."""
    found: dict[tuple[int, int], list[tuple[int, Result]]] = {}
    agents = [results.get(host.ranks[0].rank, {}) for host in hosts]
    for number, result in enumerate(agents):
        for part in filter(operator.itemgetter("probe"), result.get("paths", [])):
            found.setdefault((part["a"], part["b"]), []).append((number, part))
    return [
        _path(pair, dict(parts), agents, share_of(hosts))
        for pair, parts in sorted(found.items())
        if len(parts) == len(pair)
    ]


def _path(
    pair: tuple[int, int], parts: dict[int, Result], agents: Sequence[Result], share: float
) -> Path:
    a, b = pair
    there, back = (parts[number] for number in pair)
    speed = there.get("speed") or back.get("speed")
    speeds = [agents[at]["tcp_bytes_per_s"] for at in pair if "tcp_bytes_per_s" in agents[at]]
    arrived = (
        int(agents[b].get("received", {}).get(str(a), 0)),
        int(agents[a].get("received", {}).get(str(b), 0)),
    )
    return Path(
        a,
        b,
        there=Probe(**there["probe"]),
        back=Probe(**back["probe"]),
        arrived=arrived,
        speed=Speed(**speed) if speed else None,
        interface=there.get("interface", ""),
        failure=there.get("failure") or back.get("failure") or "",
        tcp_bytes_per_s=min(speeds, default=None),
        share=share,
    )


def _absent(missing: Sequence[int], silent: Sequence[int]) -> Iterator[Finding]:
    if missing:
        yield error(
            "job.missing",
            f"{listed(missing)} did not come to the store",
            "look at the launcher's output for these ranks, let them reach MASTER_ADDR and"
            " MASTER_PORT, or pass a longer --timeout",
            ranks=list(missing),
        ).at("job")
    if silent:
        yield error(
            "job.silent",
            f"{listed(silent)} ended, or did not answer, during the examination",
            "look at the launcher's output for these ranks (memory limit, signals)",
            ranks=list(silent),
        ).at("job")


def _own_findings(hosts: Sequence[JobHost], results: dict[int, Result]) -> Iterator[Finding]:
    """Return the findings of ranks about themselves, once for each host."""
    for host in hosts:
        for rank in host.ranks:
            for found in rank.found():
                yield found.at(host.name)
        result = results.get(host.ranks[0].rank, {})
        for value in result.get("findings", []):
            yield Finding(**value).at(host.name)
        for rank in host.ranks:
            if failure := results.get(rank.rank, {}).get("failure"):
                yield error(
                    "job.failure",
                    f"rank {rank.rank} could not take part: {failure}",
                    "correct this and run `pccl doctor` again",
                ).at(host.name)


def _local(hosts: Sequence[JobHost], results: dict[int, Result]) -> Iterator[Finding]:
    """Find hosts whose ranks share no memory, or whose memory is slow."""
    for host in hosts:
        parts = [results.get(rank.rank, {}).get("local") or {} for rank in host.ranks]
        failures = [part["failure"] for part in parts if part.get("failure")]
        speed = _speed_of(host, results)
        if failures:
            yield error(
                "host.shared_memory",
                f"the ranks of this host share no memory: {failures[0]}",
                "correct this, or set PCCL_TRANSPORTS=tcp to use sockets within the host",
            ).at(host.name)
        elif speed is not None and len(host.ranks) <= len(host.cores) and share_of(hosts) == 1:
            yield from _slow_memory(host, speed)


def _slow_memory(host: JobHost, speed: Speed) -> Iterator[Finding]:
    if speed.large_s * (1 - speed.waited) > SLOW_MEMORY * speed.predicted_large_s:
        yield warning(
            "host.slow_memory",
            f"an all_reduce of {speed.nbytes >> 10} KiB takes {speed.large_s * 1e3:.2g} ms,"
            f" {speed.large_s / speed.predicted_large_s:.0f} times as long as predicted",
            "end other processes on its cores, bind each rank to a core of its own, and run"
            " `pccl tune`",
            seconds=speed.large_s,
            predicted=speed.predicted_large_s,
        ).at(host.name)


def _speed_of(host: JobHost, results: dict[int, Result]) -> Speed | None:
    part = results.get(host.ranks[0].rank, {}).get("local") or {}
    return Speed(**part["speed"]) if part.get("speed") else None
