# SPDX-License-Identifier: Apache-2.0
"""When the steps of collectives happened, on all ranks, beside when they should have.

>>> timeline.record(group)
>>> dist.all_reduce(x)
>>> found = timeline.gather(group)
>>> found.beside(capsule.replay(network, x.nbytes)).save_trace("ring.json")
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pccl import table, timeline_trace, whole_file
from pccl._timeline_group import ranks_of
from pccl.timeline_ranks import steps_of_all
from pccl.timeline_steps import Hop, MeasuredStep, call_of, hops_of, slowest_of

if TYPE_CHECKING:
    import os

    import matplotlib.figure
    from torch.distributed import ProcessGroup

    from pccl._core import Communicator
    from pccl.replay_results import Replay

__all__ = ["Hop", "MeasuredStep", "Timeline", "gather", "record"]


def __dir__() -> list[str]:
    return sorted(__all__)


USUAL_ROOM = 1 << 18  # steps


@dataclass(frozen=True, repr=False)
class Timeline:
    """The steps of all ranks, on one clock; shows itself as text, and as a table in notebooks.

    Attributes
    ----------
    group, ranks
        Name and size of the group.
    steps
        Of each rank in the order in which they ended.
    lost
        Steps for which there was no room.
    clock_error
        Seconds by which the clocks of two hosts, and of a GPU and its host, may be off; 0 on one
        host without GPUs, which has one clock.
    simulated
        What ``beside`` was given.
    """

    group: str
    ranks: int
    steps: table.Table[MeasuredStep]
    lost: int = 0
    clock_error: float = 0.0
    simulated: Replay | None = field(default=None, compare=False)

    @property
    def seconds(self) -> float:
        """From the beginning of the first step to the end of the last."""
        if not self.steps:
            return 0.0
        return max(step.end for step in self.steps) - min(step.begin for step in self.steps)

    @property
    def hops(self) -> table.Table[Hop]:
        """The messages between ranks, in the order in which they began."""
        return table.Table(hops_of(self.steps))

    @property
    def slowest(self) -> Hop | None:
        """The message that took longest; None without messages.

        Bytes that are passed on while they come take as long on every hop: of hops about as slow,
        within a tenth, it is the one that began first.
        """
        return slowest_of(self.hops)

    def of_call(self, call: int, on_gpu: bool | None = None) -> Timeline:
        """Return the steps of one collective.

        Parameters
        ----------
        call
            As ``steps`` count them; -1 for the last one.
        on_gpu
            Of a schedule on GPUs, or of one over links, which are counted apart; None for GPUs
            where these have steps.
        """
        gpus = any(step.is_on_gpu for step in self.steps) if on_gpu is None else on_gpu
        steps = [step for step in self.steps if step.is_on_gpu == gpus]
        wanted = call if call >= 0 else max((step.call for step in steps), default=0)
        return dataclasses.replace(self, steps=table.Table(call_of(steps, wanted)))

    def beside(self, simulated: Replay) -> Timeline:
        """Return the same with a simulation of what was measured.

        Parameters
        ----------
        simulated
            Of as many ranks: ``capsule.replay(network, nbytes)``.

        Raises
        ------
        ValueError
            It has other ranks.
        """
        if simulated.ranks != self.ranks:
            raise ValueError(f"{simulated.ranks} ranks were simulated, {self.ranks} measured")
        return dataclasses.replace(self, simulated=simulated)

    def plot(self) -> matplotlib.figure.Figure:
        """Draw both, measured above simulated; the slowest hop is marked.

        Returns
        -------
        matplotlib.figure.Figure
            A bar for each step, by rank and lane.

        Raises
        ------
        ImportError
            matplotlib is missing (``pip install matplotlib``).
        """
        from pccl.timeline_plot import draw_timeline

        simulated = self.simulated.steps if self.simulated else []
        return draw_timeline(self._title, self.steps, simulated, self.slowest)

    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """Write both for https://ui.perfetto.dev and chrome://tracing.

        A process for each rank, one for its GPU where that has steps, below them one for the
        simulation, and a thread for each lane; arrows are messages.

        Parameters
        ----------
        path
            A file, ``"name.json"`` by custom.

        Raises
        ------
        OSError
            It cannot be written.
        """
        events = timeline_trace.measured_events(self.ranks, self.steps, self.hops, self.slowest)
        if self.simulated:
            events += timeline_trace.simulated_events(self.ranks, self.simulated.steps)
        text = json.dumps({"traceEvents": events, "displayTimeUnit": "ns"})
        whole_file.write_whole(Path(path), text.encode())

    @property
    def _title(self) -> str:
        text = f"{self.group}: measured, {self.seconds * 1e6:.1f} us"
        if self.simulated:
            text += f"; simulated below, {self.simulated.seconds * 1e6:.1f} us"
        return text + (f"\nthe slowest hop in red: {self.slowest}" if self.slowest else "")

    def row(self) -> table.Fields:
        """Return the figures, flat."""
        slowest = self.slowest
        return {
            "group": self.group,
            "ranks": self.ranks,
            "steps": len(self.steps),
            "lost": self.lost,
            "seconds": self.seconds,
            "simulated_seconds": self.simulated.seconds if self.simulated else None,
            "slowest": str(slowest) if slowest else None,
            "clock_error": self.clock_error,
        }

    @property
    def rows(self) -> list[table.Fields]:
        """A dictionary for each step: ``polars.DataFrame(timeline.rows)``."""
        return [step.row() for step in self.steps]

    def __repr__(self) -> str:
        """Return a heading, and the figures."""
        lines = [
            f"{self.group}: {len(self.steps)} steps of {self.ranks} ranks, "
            f"{self.seconds * 1e6:.1f} us"
            + (f", simulated {self.simulated.seconds * 1e6:.1f} us" if self.simulated else "")
        ]
        if slowest := self.slowest:
            lines.append(f"  slowest hop: {slowest}")
        if self.lost:
            lines.append(f"  {self.lost} steps had no room: record_timeline() can have more")
        if self.clock_error:
            lines.append(f"  clocks may be off by {self.clock_error * 1e6:.1f} us")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return table.html_table([self.row()])


def record(group: Communicator | ProcessGroup | None = None, steps: int = USUAL_ROOM) -> None:
    """Record when the steps of this rank happen, in the collectives that it calls from now on.

    Of CUDA tensors, those of capsules and other schedules; what was launched before is waited for.
    A CUDA graph that is captured meanwhile records its last replay.

    Parameters
    ----------
    group
        A communicator, or a process group with the backend "pccl"; None for the default one.
    steps
        For so many there is room, up to 4,194,304; 0 ends it. On a GPU a step counts once for each
        block that shares its lane. See ``Communicator.record_timeline``.

    Raises
    ------
    ValueError
        ``group`` has no backend "pccl".
    InvalidArgumentError
        ``steps`` is more than that.
    """
    ranks_of(group).record(steps)


def gather(group: Communicator | ProcessGroup | None = None) -> Timeline:
    """Return what all ranks have recorded, on one clock; all of them must call it.

    Ends the recording. Ranks of one host have one clock; the clocks of others are compared with
    rank 0's by messages, those of GPUs with their host's, and ``clock_error`` says how well.

    Parameters
    ----------
    group
        Whose ranks called ``record``; None for the default one of ``torch.distributed``.

    Returns
    -------
    Timeline
        The same on all ranks.

    Raises
    ------
    ValueError
        ``group`` has no backend "pccl".
    PeerLostError, TimeoutError, MismatchError, AbortedError
        As ``all_gather``; of a process group what ``torch.distributed`` raises for them.
    """
    ranks = ranks_of(group)
    steps, lost, error = steps_of_all(ranks)
    return Timeline(ranks.name, ranks.size, table.Table(steps), lost, error)
