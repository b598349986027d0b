# SPDX-License-Identifier: Apache-2.0
"""The path between two hosts, with all that was measured of it."""

from __future__ import annotations

import dataclasses
import typing

if typing.TYPE_CHECKING:
    from pccl.diagnostics.doctor.job.probe import Probe
    from pccl.diagnostics.doctor.job.speed import Speed

__all__ = ["Path", "expected_bytes_per_s"]


@dataclasses.dataclass
class Path:
    """The path between hosts ``a`` and ``b``, by their numbers; ``there`` is a's probe.

    ``arrived`` are the pings of a that b received, and those of b that a received.
    """

    a: int
    b: int
    there: Probe
    back: Probe
    arrived: tuple[int, int] = (0, 0)
    speed: Speed | None = None
    interface: str = ""  # of host a, as PCCL's connection uses it
    failure: str = ""  # of PCCL's group of two ranks
    tcp_bytes_per_s: float | None = None  # of loopback on the slower host
    share: float = 1.0  # of its cores that a host has, where hosts are on one machine

    @property
    def is_reached(self) -> bool:
        """Whether connections are made from both hosts."""
        return self.there.is_reached and self.back.is_reached

    @property
    def lost(self) -> float:
        """The share of pings without an answer, of both directions."""
        sent = self.there.sent + self.back.sent
        return 1 - (self.there.answered + self.back.answered) / sent if sent else 0.0

    @property
    def rtt_s(self) -> float | None:
        """The shortest round trip."""
        times = [each.rtt_s for each in (self.there, self.back) if each.rtt_s is not None]
        return min(times, default=None)

    def as_json(self) -> dict[str, typing.Any]:
        """Return all values, for programs."""
        return {**dataclasses.asdict(self), "expected_bytes_per_s": expected_bytes_per_s(self)}


def expected_bytes_per_s(path: Path) -> float | None:
    """Return the lower one of the speeds of the link and of loopback; None if there is neither.

    PCCL's own prediction is no measure, as it contains a measurement of the same path.
    """
    limits = []
    if path.there.mbit:
        limits.append(path.there.mbit * 1e6 / 8)
    if path.tcp_bytes_per_s is not None:
        limits.append(path.tcp_bytes_per_s * path.share)
    return min(limits, default=None)
