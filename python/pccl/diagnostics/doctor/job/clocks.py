# SPDX-License-Identifier: Apache-2.0
"""Differences of the hosts' clocks, from the times in answers to pings."""

from __future__ import annotations

import statistics
import typing

from pccl.diagnostics.doctor.finding import Finding, warning

if typing.TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pccl.diagnostics.doctor.job.path import Path

__all__ = ["check", "offsets_of"]

MOST_S = 0.25


def offsets_of(paths: Sequence[Path]) -> dict[int, float]:
    """Return how far each host's clock is ahead of those of most hosts, in seconds.

    Where there are two hosts, the clock of the first one counts as right. Hosts to which no chain
    of answered pings leads from the first one are left out.
    """
    ahead: dict[int, dict[int, float]] = {}
    for path in paths:
        for near, far, probe in ((path.a, path.b, path.there), (path.b, path.a, path.back)):
            if probe.offset_s is not None:
                ahead.setdefault(near, {})[far] = probe.offset_s
                ahead.setdefault(far, {}).setdefault(near, -probe.offset_s)
    if not ahead:
        return {}
    first = min(ahead)
    found = {first: 0.0}
    order = [first]
    for near in order:
        for far, offset in ahead[near].items():
            if far not in found:
                found[far] = found[near] + offset
                order.append(far)
    usual = statistics.median_low(found.values()) if len(found) > 2 else 0.0
    return {number: offset - usual for number, offset in found.items()}


def check(paths: Sequence[Path], names: Sequence[str]) -> Iterator[Finding]:
    """Find hosts whose clocks differ from those of most hosts."""
    for number, offset in sorted(offsets_of(paths).items()):
        if abs(offset) > MOST_S:
            yield warning(
                "clocks.skew",
                f"the clock is {abs(offset):.3g} s {'ahead of' if offset > 0 else 'behind'} those"
                " of the other hosts, so that times in logs and flight records do not match",
                "start chronyd or systemd-timesyncd there (`chronyc makestep` corrects at once)",
                offset_s=offset,
            ).at(names[number])
