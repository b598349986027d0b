# SPDX-License-Identifier: Apache-2.0
"""Report of an examination in Prometheus' text format."""

from __future__ import annotations

import typing
from collections import Counter

from pccl.diagnostics.doctor.job.path import expected_bytes_per_s
from pccl.diagnostics.exposition import Metric, text_of

if typing.TYPE_CHECKING:
    from collections.abc import Iterator

    from pccl.diagnostics.doctor.job.path import Path
    from pccl.diagnostics.doctor.job.report import Report
    from pccl.diagnostics.exposition import Sample

__all__ = ["prometheus"]

_FINDINGS = Metric("pccl_doctor_findings", "gauge", "Findings of pccl doctor.")
_STATUS = Metric("pccl_doctor_status", "gauge", "Exit status of pccl doctor.")
_SECONDS = Metric("pccl_doctor_seconds", "gauge", "Duration of the examination.")
_BANDWIDTH = Metric(
    "pccl_doctor_path_bytes_per_second", "gauge", "Measured bandwidth of each direction."
)
_EXPECTED = Metric("pccl_doctor_path_expected_bytes_per_second", "gauge", "Expected bandwidth.")
_LATENCY = Metric(
    "pccl_doctor_path_all_reduce_seconds", "gauge", "Time of an all_reduce of 8 bytes."
)
_ROUND_TRIP = Metric(
    "pccl_doctor_path_round_trip_seconds", "gauge", "Shortest round trip of a ping."
)
_LOST = Metric("pccl_doctor_path_lost_ratio", "gauge", "Share of pings that were lost.")
_METRICS = (
    *(_FINDINGS, _STATUS, _SECONDS),
    *(_BANDWIDTH, _EXPECTED, _LATENCY, _ROUND_TRIP, _LOST),
)


def prometheus(report: Report) -> str:
    """Return the report in Prometheus' text format."""
    return text_of(_METRICS, _samples_of(report))


def _samples_of(report: Report) -> Iterator[Sample]:
    counts = Counter((each.check, each.severity, each.where) for each in report.findings)
    for (check, severity, where), count in counts.items():
        yield _FINDINGS, {"check": check, "severity": severity, "where": where}, count
    yield _STATUS, {}, report.status
    yield _SECONDS, {}, report.seconds
    names = [host.name for host in report.hosts]
    for path in report.paths:
        yield from _samples_of_path(path, {"a": names[path.a], "b": names[path.b]})


def _samples_of_path(path: Path, labels: dict[str, str]) -> Iterator[Sample]:
    if path.speed is not None:
        yield _BANDWIDTH, labels, path.speed.bytes_per_s
        yield _LATENCY, labels, path.speed.small_s
    expected = expected_bytes_per_s(path)
    if expected is not None:
        yield _EXPECTED, labels, expected
    if path.rtt_s is not None:
        yield _ROUND_TRIP, labels, path.rtt_s
        yield _LOST, labels, path.lost
