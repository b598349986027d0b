# SPDX-License-Identifier: Apache-2.0
"""Recording of the steps of a group, and the timeline of all ranks."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pccl._internal import whole_file
from pccl.results import table
from pccl.simulator.trace import simulated_events
from pccl.timeline import trace
from pccl.timeline._group import ranks_of
from pccl.timeline.ranks import steps_of_all
from pccl.timeline.steps import (
    Hop,
    MeasuredStep,
    call_of,
    hops_of,
    slowest_of,
)

if TYPE_CHECKING:
    import os

    import matplotlib.figure
    from torch.distributed import ProcessGroup

    from pccl._core import Communicator
    from pccl.simulator.replay_results import Replay

__all__ = ["Hop", "MeasuredStep", "Timeline", "gather", "record"]


USUAL_ROOM = 1 << 18  # steps


@dataclass(frozen=True, repr=False)
class Timeline:
    """Steps of all ranks on one clock, shown as text, and as a table in notebooks.

    Attributes
    ----------
    group, ranks
        Name and size of the group.
    steps
        Steps of each rank, in the order of their ends.
    lost
        Number of steps that exceeded the buffer.
    clock_error
        Maximum error in seconds between the clocks of hosts, and of a GPU and its host; 0 on one
        host without GPUs, which has one clock.
    simulated
        Simulation that ``beside`` attached.
    """

    group: str
    ranks: int
    steps: table.Table[MeasuredStep]
    lost: int = 0
    clock_error: float = 0.0
    simulated: Replay | None = field(default=None, compare=False)

    @property
    def seconds(self) -> float:
        """Seconds from the beginning of the first step to the end of the last."""
        if not self.steps:
            return 0.0
        return max(step.end for step in self.steps) - min(step.begin for step in self.steps)

    @property
    def hops(self) -> table.Table[Hop]:
        """Messages between ranks, in the order of their beginnings."""
        return table.Table(hops_of(self.steps))

    @property
    def slowest(self) -> Hop | None:
        """Slowest message; None without messages.

        Pipelined bytes take equally long on every hop. Therefore, among the hops within 10 % of the
        slowest, this is the hop that began first.
        """
        return slowest_of(self.hops)

    def of_call(self, call: int, on_gpu: bool | None = None) -> Timeline:
        """Return the steps of one collective.

        Parameters
        ----------
        call
            Number of the call, as in ``steps``; -1 for the last one.
        on_gpu
            Whether the call is a schedule on GPUs or one over links, which have separate counts;
            None selects GPUs if they have steps.
        """
        gpus = any(step.is_on_gpu for step in self.steps) if on_gpu is None else on_gpu
        steps = [step for step in self.steps if step.is_on_gpu == gpus]
        wanted = call if call >= 0 else max((step.call for step in steps), default=0)
        return dataclasses.replace(self, steps=table.Table(call_of(steps, wanted)))

    def beside(self, simulated: Replay) -> Timeline:
        """Return a copy of the timeline with a simulation of the measured collective.

        Parameters
        ----------
        simulated
            Replay with as many ranks: ``capsule.replay(network, nbytes)``.

        Raises
        ------
        ValueError
            The replay has another number of ranks.
        """
        if simulated.ranks != self.ranks:
            raise ValueError(f"{simulated.ranks} ranks were simulated, {self.ranks} measured")
        return dataclasses.replace(self, simulated=simulated)

    def plot(self) -> matplotlib.figure.Figure:
        """Draw measured above simulated steps, with the slowest hop marked.

        Returns
        -------
        matplotlib.figure.Figure
            Figure with a bar for each step, by rank.

        Raises
        ------
        ImportError
            matplotlib is missing (``pip install matplotlib``).
        """
        from pccl.timeline.plot import draw_timeline

        simulated = self.simulated.steps if self.simulated else []
        return draw_timeline(self._title, self.steps, simulated, self.slowest)

    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """Write measured and simulated steps for https://ui.perfetto.dev and chrome://tracing.

        The trace has a process for each rank, one for its GPU if that has steps, one for the
        simulation below them, and a thread for each lane. Arrows represent messages.

        Parameters
        ----------
        path
            Path of the file, ``"name.json"`` by convention.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        events = trace.measured_events(self.ranks, self.steps, self.hops, self.slowest)
        if self.simulated:
            events += simulated_events(self.ranks, self.simulated.steps)
        text = json.dumps({"traceEvents": events, "displayTimeUnit": "ns"})
        whole_file.write_whole(Path(path), text.encode())

    @property
    def _title(self) -> str:
        text = f"{self.group}: measured, {self.seconds * 1e6:.1f} us"
        if self.simulated:
            text += f"; simulated below, {self.simulated.seconds * 1e6:.1f} us"
        return text + (f"\nthe slowest hop in red: {self.slowest}" if self.slowest else "")

    def row(self) -> table.Fields:
        """Return the figures as one flat dictionary."""
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
        """Dictionary for each step, for ``polars.DataFrame(timeline.rows)``."""
        return [step.row() for step in self.steps]

    def __repr__(self) -> str:
        """Return a heading and the figures."""
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
    """Start recording the times of this rank's steps in its following collectives.

    For CUDA tensors, the steps of capsules and other schedules are recorded; the call waits for
    earlier launches. A CUDA graph that is captured during the recording records its last replay.

    Parameters
    ----------
    group
        A communicator, or a process group with the backend "pccl"; None for the default one.
    steps
        Capacity in steps, up to 4,194,304; 0 stops the recording. On a GPU a step counts once for
        each block that shares its lane. See ``Communicator.record_timeline``.

    Raises
    ------
    ValueError
        ``group`` has no backend "pccl".
    InvalidArgumentError
        ``steps`` exceeds the maximum.
    """
    ranks_of(group).record(steps)


def gather(group: Communicator | ProcessGroup | None = None) -> Timeline:
    """Return the recording of all ranks on one clock; all ranks must call this function.

    The call ends the recording. The ranks of one host share a clock. Messages measure the offset of
    clocks of other hosts to the clock of rank 0; the clocks of GPUs are compared with the clock of
    their host. ``clock_error`` is the error of these comparisons.

    Parameters
    ----------
    group
        Group whose ranks called ``record``; None for the default group of ``torch.distributed``.

    Returns
    -------
    Timeline
        Timeline with the steps of all ranks, equal on all ranks.

    Raises
    ------
    ValueError
        ``group`` has no backend "pccl".
    PeerLostError, TimeoutError, MismatchError, AbortedError
        As for ``all_gather``; a process group raises the corresponding errors of
        ``torch.distributed``.
    """
    ranks = ranks_of(group)
    steps, lost, error = steps_of_all(ranks)
    return Timeline(ranks.name, ranks.size, table.Table(steps), lost, error)
