# SPDX-License-Identifier: Apache-2.0
"""Report of an examination."""

from __future__ import annotations

import dataclasses
import typing

from pccl._version import __version__

if typing.TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pccl.diagnostics.doctor.finding import Finding
    from pccl.diagnostics.doctor.job.path import Path
    from pccl.diagnostics.doctor.job.speed import Speed

__all__ = ["HostRow", "Report", "each_other", "merged"]

HEALTHY, FAULTY = 0, 1


@dataclasses.dataclass(frozen=True)
class HostRow:
    """A host of the report: its name, its ranks, and the speed of its shared memory."""

    name: str
    ranks: list[int]
    speed: Speed | None = None
    clock_s: float | None = None  # ahead of the clocks of most hosts


@dataclasses.dataclass(frozen=True)
class Report:
    """All findings, and the figures of hosts and paths; a host alone has no figures."""

    findings: list[Finding]
    hosts: list[HostRow] = dataclasses.field(default_factory=list)
    paths: list[Path] = dataclasses.field(default_factory=list)
    seconds: float = 0.0
    paths_left_out: int = 0
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)  # of rank 0

    @property
    def status(self) -> int:
        """The exit status of the command: 1 with a finding of severity error."""
        return FAULTY if any(each.severity == "error" for each in self.findings) else HEALTHY

    def as_json(self) -> dict[str, typing.Any]:
        """Return the report for programs."""
        return {
            "pccl": __version__,
            "healthy": not self.findings,
            "status": self.status,
            "seconds": self.seconds,
            "versions": dict(self.versions),
            "findings": [{**dataclasses.asdict(each), "line": each.line} for each in self.findings],
            "hosts": [dataclasses.asdict(each) for each in self.hosts],
            "paths": [each.as_json() for each in self.paths],
            "paths_left_out": self.paths_left_out,
        }


def each_other(host: str) -> str:
    """Return the place of a fault that all paths of a host have."""
    return f"{host} to each other host"


def merged(findings: Sequence[Finding], hosts: Sequence[str]) -> list[Finding]:
    """Return the findings, errors first, with one for a fault that all paths of a host have."""
    result = list(findings)
    for host in hosts:
        own: dict[str, list[Finding]] = {}
        for each in result:
            if host in each.where.split(" to "):
                own.setdefault(each.check, []).append(each)
        for check, same in own.items():
            if check.startswith("path.") and len(same) == len(hosts) - 1 > 1:
                result = [each for each in result if each not in same]
                result.append(same[0].at(f"{each_other(host)}, as {same[0].where}"))
    return sorted(_once(result), key=lambda each: each.severity != "error")


def _once(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings without repetitions of one line."""
    return list({each.line: each for each in findings}.values())
