# SPDX-License-Identifier: Apache-2.0
"""Conversion of programs to capsules: parallel copies, verification, and error locations."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from pccl import _core
from pccl.capsule import Capsule
from pccl.errors import InvalidArgumentError
from pccl.lang.geometry import FORMER_PROTOCOLS, PROTOCOLS
from pccl.lang.lowering import Lowered
from pccl.lang.origin import ProgramError, blame

if TYPE_CHECKING:
    from pccl.lang.geometry import Geometry, Protocol
    from pccl.lang.origin import Line

__all__ = ["About", "capsule_of", "check_protocol", "replicated"]

MOST_INSTANCES = 64


class About(NamedTuple):
    """Metadata of a capsule, besides its programs."""

    name: str
    author: str = ""
    licence: str = ""
    note: str = ""
    sizes: str = ".."
    protocol: str = ""


def check_protocol(protocol: Protocol) -> Protocol:
    """Return the current name of a protocol; raise InvalidArgumentError for an unknown one."""
    if protocol in FORMER_PROTOCOLS:
        name = FORMER_PROTOCOLS[protocol]
        text = f"protocol '{protocol}' is now called '{name}'"
        warnings.warn(text, DeprecationWarning, stacklevel=3)
        return name
    if protocol not in PROTOCOLS:
        names = ", ".join(filter(None, PROTOCOLS))
        raise InvalidArgumentError(f"'{protocol}' is no protocol of messages; there are {names}")
    return protocol


def capsule_of(
    lowered: Lowered, geometry: Geometry, slots: int, about: About, definition: Line
) -> Capsule:
    """Verify programs and return their capsule.

    Raises
    ------
    ProgramError
        The programs are wrong. The line is that of the faulty step, or ``definition`` where the
        verifier names no step.
    """
    schedule = _core.schedule_of(
        about.name,
        geometry.collective,
        geometry.ranks,
        geometry.root,
        geometry.chunks,
        slots,
        lowered.programs,
        lowered.phases,
    )
    try:
        return Capsule.of(
            schedule,
            author=about.author,
            licence=about.licence,
            note=about.note,
            sizes=about.sizes,
            protocol=about.protocol,
        )
    except InvalidArgumentError as error:
        raise blame(str(error), schedule, lowered.origins, definition) from None


def replicated(lowered: Lowered, chunks: int, instances: int, definition: Line) -> Lowered:
    """Return a program that runs ``instances`` times side by side, each over a part of each block.

    Chunk ``c`` of a block becomes the ``instances`` chunks ``k * chunks + c``. Each instance has
    its own lanes and channels.
    """
    if not 1 <= instances <= MOST_INSTANCES:
        raise ProgramError(definition, f"instances is {instances}; it must be 1 to 64")
    if instances == 1:
        return lowered
    channels = 1 + max(
        (
            port[1]
            for _, lanes in lowered.programs
            for lane in lanes
            for step in lane
            for port in step[3:5]
            if port
        ),
        default=0,
    )
    result = Lowered([], {}, lowered.phases)
    for rank, (scratch, lanes) in enumerate(lowered.programs):
        copies = []
        for part in range(instances):
            move = _Move(part, instances, chunks, channels, len(lanes))
            for index, lane in enumerate(lanes):
                copies.append([move.step(step) for step in lane])
                for number in range(len(lane)):
                    result.origins[rank, part * len(lanes) + index, number] = lowered.origins[
                        rank, index, number
                    ]
        rows = -(-scratch // chunks)
        result.programs.append((rows * chunks * instances, copies))
    return result


class _Move(NamedTuple):
    """Mapping of a step to one of several parts of each block."""

    part: int
    parts: int
    chunks: int
    channels: int
    lanes: int

    def step(self, step: Any) -> Any:
        action, src, dst, source, target, after = step
        return (
            action,
            self._slices(src),
            self._slices(dst),
            self._port(source),
            self._port(target),
            [(lane + self.part * self.lanes, number) for lane, number in after],
        )

    def _port(self, port: tuple[int, int] | None) -> tuple[int, int] | None:
        return port and (port[0], port[1] + self.part * self.channels)

    def _slices(self, slices: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
        moved = []
        for buffer, offset, count in slices:
            end = offset + count
            while offset < end:
                block, chunk = divmod(offset, self.chunks)
                length = min(end - offset, self.chunks - chunk)
                place = (block * self.parts + self.part) * self.chunks + chunk
                moved.append((buffer, place, length))
                offset += length
        return moved
