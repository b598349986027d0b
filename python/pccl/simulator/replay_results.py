# SPDX-License-Identifier: Apache-2.0
"""Result of a replay, with a table, a plot and a trace file."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pccl._internal import whole_file
from pccl.results import table
from pccl.simulator import replay_steps, trace

if TYPE_CHECKING:
    import os

    import matplotlib.figure

    from pccl import _core

__all__ = ["Replay"]


@dataclass(frozen=True, repr=False)
class Replay:
    """Result of a simulated collective, shown as text, and as a table in notebooks.

    Attributes
    ----------
    name, collective, ranks
        Name, collective and number of ranks of the algorithm or capsule.
    nbytes
        Bytes of the largest buffer.
    seconds
        Time until the end of the last step.
    rounds
        Length of the longest chain of messages that depend on each other.
    messages, bytes_sent
        Totals over all ranks.
    busiest, busiest_bytes, busiest_seconds
        Name, bytes and seconds of the link that takes longest for its bytes at its full bandwidth;
        with ``one_for_all``, one of several such links.
    peak_chunks
        Maximum over ranks and time of the chunks in messages in flight to a rank or in their slots,
        plus the chunks of scratch that are still to be read.
    critical_path
        Steps from the first to the last; each step waited for the previous one.
    one_for_all
        Whether only rank 0 was simulated, because all ranks have the same times.
    windows
        Number of consecutive windows of the data, where links cannot buffer all of it.
    """

    name: str
    collective: str
    ranks: int
    nbytes: int
    seconds: float
    rounds: int
    messages: int
    bytes_sent: float
    busiest: str
    busiest_bytes: float
    busiest_seconds: float
    peak_chunks: int
    one_for_all: bool
    windows: int
    critical_path: table.Table[replay_steps.StepTime] = field(compare=False)
    _core: _core.Replay = field(compare=False)

    @property
    def steps(self) -> table.Table[replay_steps.StepTime]:
        """Times of each step: of rank 0 with ``one_for_all``, otherwise of all ranks."""
        return table.Table(replay_steps.StepTime(*each) for each in self._core.steps)

    def row(self) -> table.Fields:
        """Return all figures as one flat dictionary."""
        names = (
            "name collective ranks nbytes seconds rounds messages bytes_sent busiest "
            "busiest_bytes busiest_seconds peak_chunks one_for_all windows"
        )
        return {name: getattr(self, name) for name in names.split()}

    @property
    def rows(self) -> list[table.Fields]:
        """List with one dictionary, for ``polars.DataFrame(replay.rows)``."""
        return [self.row()]

    def plot(self) -> matplotlib.figure.Figure:
        """Draw the departure and arrival of messages, with the critical path in a colour.

        Returns
        -------
        matplotlib.figure.Figure
            Figure that is not displayed yet: a notebook displays it, ``savefig`` writes it.

        Raises
        ------
        ImportError
            matplotlib is missing (``pip install matplotlib``).
        """
        from pccl.simulator.replay_plot import draw_replay

        title = f"{self.name}: {self.collective} of {self.nbytes} bytes, {self.ranks} ranks"
        return draw_replay(title, self.steps, self.critical_path, one_for_all=self.one_for_all)

    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """Write a trace for https://ui.perfetto.dev: a process per rank, a thread per lane.

        Parameters
        ----------
        path
            Path of the file, ``"name.json"`` by convention.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        events = [event for step in self.steps for event in trace.events_of_replay(step, step.rank)]
        text = json.dumps({"traceEvents": events, "displayTimeUnit": "ns"})
        whole_file.write_whole(Path(path), text.encode())

    def __repr__(self) -> str:
        """Return a heading and the figures."""
        lines = [
            f"{self.name}: {self.collective} of {self.nbytes} bytes, {self.ranks} ranks"
            + (", each like rank 0" if self.one_for_all else "")
            + (f", {self.windows} windows" if self.windows > 1 else ""),
            f"  {self.seconds * 1e6:.3f} us, {self.rounds} rounds, {self.messages} messages, "
            f"{self.bytes_sent:.0f} bytes sent",
            f"  at most {self.peak_chunks} chunks under way and in scratch at a rank",
        ]
        if self.busiest:
            share = self.busiest_seconds / self.seconds if self.seconds else 0.0
            lines.append(
                f"  busiest link: {self.busiest}, {self.busiest_bytes:.0f} bytes, "
                f"{share:.0%} of the time"
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return table.html_table(self.rows)
