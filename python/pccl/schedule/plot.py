# SPDX-License-Identifier: Apache-2.0
"""Space-time diagrams of schedules, with matplotlib."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

from pccl.results.schedule_steps import rounds_of
from pccl.topology.figure import new_figure, number_whole

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

    from pccl._core import Schedule
    from pccl.results.schedule_steps import Step

__all__ = ["draw_schedule"]

MOST_INCHES = 20.0
COPIES = "#4477aa"
REDUCTIONS = "#ee6677"


def draw_schedule(schedule: Schedule) -> matplotlib.figure.Figure:
    """Draw ranks from top to bottom, rounds from left to right, and each message as an arrow.

    Messages that the receiver adds to its data have a different colour from messages that it
    stores. A message takes one round; see ``pccl.results.schedule_steps.rounds_of``.
    """
    rounds = rounds_of(schedule.steps)
    last = max(rounds.values(), default=0)
    figure = new_figure(
        min(2 + 1.2 * (last + 1), MOST_INCHES), min(1.2 + 0.5 * schedule.ranks, MOST_INCHES)
    )
    axes = figure.add_subplot()
    _draw_frame(axes, schedule, last)
    arrows: dict[str, list[tuple[int, int, int]]] = {COPIES: [], REDUCTIONS: []}
    for sent, received in _messages(rounds):
        colour = REDUCTIONS if "reduce" in received.action else COPIES
        arrows[colour].append((rounds[sent], sent.rank, received.rank))
    for colour, each in arrows.items():
        _draw_arrows(axes, each, colour)
    for rank in range(schedule.ranks):
        axes.plot(range(last + 1), [rank] * (last + 1), "o", color="black", markersize=3)
    _add_legend(axes)
    return figure


def _draw_arrows(
    axes: matplotlib.axes.Axes, arrows: list[tuple[int, int, int]], colour: str
) -> None:
    """Draw from (round, sender) to (next round, receiver), in one artist for speed."""
    if arrows:
        axes.quiver(
            [begin for begin, _, _ in arrows],
            [sender for _, sender, _ in arrows],
            [1] * len(arrows),
            [receiver - sender for _, sender, receiver in arrows],
            angles="xy",
            scale_units="xy",
            scale=1,
            units="dots",
            width=1.4,
            headwidth=5,
            headlength=6,
            color=colour,
        )


def _messages(rounds: dict[Step, int]) -> list[tuple[Step, Step]]:
    """Return the sending and the receiving step of each message; queues are in order."""
    sent: dict[tuple[int, int, int], list[Step]] = collections.defaultdict(list)
    received: dict[tuple[int, int, int], list[Step]] = collections.defaultdict(list)
    for step in rounds:
        if step.sends:
            message = (step.rank, *step.sends)
            sent[message].append(step)
        if step.receives:
            received[step.receives.peer, step.rank, step.receives.channel].append(step)
    return [pair for queue in sent for pair in zip(sent[queue], received[queue], strict=True)]


def _draw_frame(axes: matplotlib.axes.Axes, schedule: Schedule, last: int) -> None:
    # matplotlib ignores arrows in its automatic limits.
    axes.set_xlim(-0.3, last + 0.3)
    axes.set_ylim(schedule.ranks - 0.5, -0.5)
    number_whole(axes.xaxis, last + 1, most=int(2 * MOST_INCHES))
    number_whole(axes.yaxis, schedule.ranks, most=int(4 * MOST_INCHES))
    axes.set_xlabel("round")
    axes.set_ylabel("rank")
    axes.set_title(
        f"{schedule.name} {schedule.collective}, {schedule.ranks} ranks", fontsize=9, loc="left"
    )


def _add_legend(axes: matplotlib.axes.Axes) -> None:
    from matplotlib.lines import Line2D

    axes.legend(
        handles=[
            Line2D([], [], color=REDUCTIONS, label="added to the receiver's data"),
            Line2D([], [], color=COPIES, label="kept as it is"),
        ],
        fontsize=7,
        frameon=False,
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
    )
