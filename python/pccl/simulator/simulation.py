# SPDX-License-Identifier: Apache-2.0
"""Predicted time of a capsule's collective on the links of a job, by the cost model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pccl._internal.sizes import bytes_of
from pccl.explanation import Way
from pccl.results import table

if TYPE_CHECKING:
    import matplotlib.figure

    from pccl._core import Capsule
    from pccl.topology import Job, Topology

__all__ = ["Simulation", "ranks_of", "simulate"]


@dataclass(frozen=True, repr=False)
class Simulation:
    """Predicted time of a capsule's collective beside the built-in algorithms, as a table.

    Attributes
    ----------
    name, collective, ranks
        Name, collective and number of ranks of the capsule.
    nbytes
        Bytes of the largest buffer.
    seconds
        Predicted time.
    rounds
        Length of the longest chain of messages that depend on each other.
    messages, bytes_sent, bytes_reduced
        Maximum over ranks of each.
    busiest
        Shared link that takes longest for its bytes; empty where ranks use shared memory only.
    others
        Built-in algorithms over links, in ascending order of time.
    """

    name: str
    collective: str
    ranks: int
    nbytes: int
    seconds: float
    rounds: int
    messages: int
    bytes_sent: float
    bytes_reduced: float
    busiest: str
    others: tuple[Way, ...]

    @property
    def rows(self) -> list[table.Fields]:
        """Dictionary for each algorithm, the capsule first."""
        call = {"collective": self.collective, "nbytes": self.nbytes, "ranks": self.ranks}
        times = [(self.name, self.seconds), *((way.algorithm, way.seconds) for way in self.others)]
        return [call | {"algorithm": name, "seconds": seconds} for name, seconds in times]

    def plot(self) -> matplotlib.figure.Figure:
        """Draw a bar for each algorithm, the capsule in a different colour.

        Returns
        -------
        matplotlib.figure.Figure
            Figure with bars of the predicted microseconds.

        Raises
        ------
        ImportError
            matplotlib is missing (``pip install matplotlib``).
        """
        from pccl.topology.figure import new_figure

        figure = new_figure(6.0, 1.2 + 0.3 * len(self.rows))
        axes = figure.add_subplot()
        names = [str(row["algorithm"]) for row in self.rows]
        times = [self.seconds * 1e6, *(way.seconds * 1e6 for way in self.others)]
        colours = ["#ee6677"] + ["#4477aa"] * len(self.others)
        axes.barh(range(len(names)), times, color=colours)
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.set_xlabel("predicted microseconds")
        axes.set_title(
            f"{self.collective} of {self.nbytes} bytes, {self.ranks} ranks", fontsize=9, loc="left"
        )
        return figure

    def __repr__(self) -> str:
        """Return a heading, and a line for each algorithm."""
        lines = [
            f"{self.name}: {self.collective} of {self.nbytes} bytes, {self.ranks} ranks",
            f"  {self.rounds} rounds; of the rank with the most: {self.messages} messages, "
            f"{self.bytes_sent:.0f} bytes sent, {self.bytes_reduced:.0f} added up",
            *([f"  busiest link: {self.busiest}"] if self.busiest else []),
            f"> {self.name:<20} {self.seconds * 1e6:>12.1f} us",
            *(f"  {way.algorithm:<20} {way.seconds * 1e6:>12.1f} us" for way in self.others),
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return table.html_table(self.rows, caption="\n".join(repr(self).splitlines()[:2]), marked=0)


def ranks_of(topology: Job | Topology | None) -> int | None:
    """Return the number of ranks of a job; None for a machine, which has no fixed number."""
    from pccl.topology import Job

    return sum(len(host.ranks) for host in topology.hosts) if isinstance(topology, Job) else None


def simulate(
    capsule: Capsule, topology: Job | Topology | None = None, nbytes: int | str = "64MB"
) -> Simulation:
    """Predict the time of a capsule's collective; see ``Capsule.simulate``."""
    schedule = capsule.schedule
    size = bytes_of(nbytes)
    ways, _ = capsule.predict(_job(schedule.ranks, topology)._core, size)
    own = next(way for way in ways if way.algorithm == schedule.name)
    rounds, messages, sent, reduced = capsule.cost(size)
    return Simulation(
        name=schedule.name,
        collective=schedule.collective,
        ranks=schedule.ranks,
        nbytes=size,
        seconds=own.seconds,
        rounds=rounds,
        messages=messages,
        bytes_sent=sent,
        bytes_reduced=reduced,
        busiest=own.busiest,
        others=tuple(
            Way(way.algorithm, way.over, way.seconds, way.busiest, way.is_chosen, way.chosen_by)
            for way in ways
            if way.over == "links" and way.algorithm != schedule.name
        ),
    )


def _job(ranks: int, where: Job | Topology | None) -> Job:
    from pccl.topology import Job, Topology, detect

    if isinstance(where, Job):
        return where
    if where is not None and not isinstance(where, Topology):
        raise TypeError(f"{where!r} is neither a pccl.topology.Job nor a pccl.topology.Topology")
    return Job.of([("one host", range(ranks), where or detect())])
