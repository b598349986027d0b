# SPDX-License-Identifier: Apache-2.0
"""What a replay found: a value that shows, plots and writes itself."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pccl import replay_steps, table, timeline_trace, whole_file

if TYPE_CHECKING:
    import os

    import matplotlib.figure

    from pccl import _core

__all__ = ["Replay"]


@dataclass(frozen=True, repr=False)
class Replay:
    """A collective that was played through; shows itself as text, and as a table in notebooks.

    Attributes
    ----------
    name, collective, ranks
        Of the algorithm or capsule.
    nbytes
        Of the largest buffer.
    seconds
        Until the last step is done.
    rounds
        The longest chain of messages each of which is sent after the one before has arrived.
    messages, bytes_sent
        Of all ranks together.
    busiest, busiest_bytes, busiest_seconds
        The link that takes longest for its bytes, at its full bandwidth; where ``one_for_all``, one
        of several.
    peak_chunks
        Of the rank with the most at a time: chunks of messages on their way to it or in their
        slots, and of scratch that is read again.
    critical_path
        Steps from the first to the last, each of which began when the one before let it.
    one_for_all
        The times are rank 0's, which are those of all ranks.
    windows
        Of the data, which follow each other where links do not hold all of it at once.
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
        """When each step happens: of rank 0 where ``one_for_all``, else of all ranks."""
        return table.Table(replay_steps.StepTime(*each) for each in self._core.steps)

    def row(self) -> table.Fields:
        """Return all figures, flat."""
        names = (
            "name collective ranks nbytes seconds rounds messages bytes_sent busiest "
            "busiest_bytes busiest_seconds peak_chunks one_for_all windows"
        )
        return {name: getattr(self, name) for name in names.split()}

    @property
    def rows(self) -> list[table.Fields]:
        """One dictionary: ``polars.DataFrame(replay.rows)``."""
        return [self.row()]

    def plot(self) -> matplotlib.figure.Figure:
        """Draw when each rank's messages leave and arrive, the critical path in a colour.

        Returns
        -------
        matplotlib.figure.Figure
            It is not shown yet: a notebook does that, or ``savefig``.

        Raises
        ------
        ImportError
            matplotlib is missing (``pip install matplotlib``).
        """
        from pccl.replay_plot import draw_replay

        title = f"{self.name}: {self.collective} of {self.nbytes} bytes, {self.ranks} ranks"
        return draw_replay(title, self.steps, self.critical_path, one_for_all=self.one_for_all)

    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the steps for https://ui.perfetto.dev: a process for each rank, a thread a lane.

        Parameters
        ----------
        path
            A file, ``"name.json"`` by custom.

        Raises
        ------
        OSError
            It cannot be written.
        """
        events = [
            event
            for step in self.steps
            for event in timeline_trace.events_of_replay(step, step.rank)
        ]
        text = json.dumps({"traceEvents": events, "displayTimeUnit": "ns"})
        whole_file.write_whole(Path(path), text.encode())

    def __repr__(self) -> str:
        """Return a heading, and the figures."""
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
