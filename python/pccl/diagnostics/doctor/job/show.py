# SPDX-License-Identifier: Apache-2.0
"""Report of an examination as text."""

from __future__ import annotations

import typing

from pccl.diagnostics.doctor.job.path import expected_bytes_per_s
from pccl.diagnostics.doctor.job.report import each_other

if typing.TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pccl.diagnostics.doctor.job.path import Path
    from pccl.diagnostics.doctor.job.report import HostRow, Report

__all__ = ["text"]


_BUSY = 0.2  # of the time of long calls


def text(report: Report) -> Iterator[str]:
    """Return the lines of a report."""
    if report.hosts:
        yield from _table(_host_rows(report.hosts))
        yield ""
    if report.paths:
        yield from _table(_path_rows(report))
        yield ""
    if report.paths_left_out:
        yield f"{report.paths_left_out} paths were not examined: --rounds, or a host that was late"
    for each in report.findings:
        yield f"{each.severity}: {each.line} [{each.check}]"
    if report.versions:
        yield "versions: " + ", ".join(
            f"{name.replace('_', ' ')} {value}" for name, value in report.versions.items() if value
        )
    ranks = sum(len(host.ranks) for host in report.hosts)
    where = f"{ranks} ranks on {len(report.hosts)} hosts" if report.hosts else "this host"
    count = len(report.findings)
    found = f"{count} finding{'' if count == 1 else 's'}" if count else "no findings"
    yield f"{found} on {where}, {report.seconds:.1f} s"


def _host_rows(hosts: Sequence[HostRow]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        ("host", "ranks", "clock", "all_reduce 8 B", "expected", "GB/s", "expected")
    ]
    for host in hosts:
        speed = host.speed
        figures: tuple[str, ...] = ("-",) * 4
        if speed is not None:
            figures = (
                _us(speed.small_s),
                _us(speed.predicted_small_s),
                _gigabytes(speed.bytes_per_s),
                _gigabytes(speed.predicted_bytes_per_s),
            )
        clock = "-" if host.clock_s is None else f"{host.clock_s:+.3f} s"
        rows.append((host.name, str(len(host.ranks)), clock, *figures))
    return rows


def _path_rows(report: Report) -> list[tuple[str, ...]]:
    names = [host.name for host in report.hosts]
    rows: list[tuple[str, ...]] = [
        ("path", "interface", "MTU", "ping", "lost", "8 B", "expected", "GB/s", "expected", "")
    ]
    for path in report.paths:
        where = f"{names[path.a]} to {names[path.b]}"
        places = (where, *(each_other(names[end]) for end in (path.a, path.b)))
        faults = [each.check for each in report.findings if each.where.startswith(places)]
        rows.append((where, *_path_cells(path), ", ".join(faults) or _verdict(path)))
    return rows


def _verdict(path: Path) -> str:
    if path.speed is not None and path.speed.waited > _BUSY:
        return f"ok: cores were busy ({path.speed.waited:.0%})"
    return "ok"


def _path_cells(path: Path) -> tuple[str, ...]:
    probe, speed, expected = path.there, path.speed, expected_bytes_per_s(path)
    mtu = min(each.largest_mtu or each.mtu for each in (path.there, path.back))
    return (
        path.interface or probe.interface or "-",
        str(mtu) if mtu else "-",
        "-" if path.rtt_s is None else _us(path.rtt_s),
        f"{path.lost:.1%}" if probe.answered else "-",
        "-" if speed is None else _us(speed.small_s),
        "-" if speed is None else _us(speed.predicted_small_s),
        "-" if speed is None else _gigabytes(speed.bytes_per_s),
        "-" if expected is None else _gigabytes(expected),
    )


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{cell:<{wide}}" for cell, wide in zip(row, widths, strict=True)).rstrip()


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} us"


def _gigabytes(bytes_per_s: float) -> str:
    return f"{bytes_per_s / 1e9:.3g}"
