# SPDX-License-Identifier: Apache-2.0
"""Pictures of schedules, capsules, replays, timelines, mistakes and plans of phases."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import matplotlib.figure
import pytest

import pccl
import pccl.lang as pl
from pccl import simulator
from pccl.timeline.plot import draw_timeline
from support.drawn import Drawn, Subject

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SPEED = simulator.Speed(2.0**33, 2.0**-18, 2.0**-20)


class Timeline:
    """As ``Timeline.plot()`` draws it, without a group that measures one."""

    def plot(self) -> Figure:
        step = functools.partial(Step, rank=0, moved=2e-6)
        measured: Any = [step(begin=0.0, end=4e-6), step(rank=1, begin=1e-6, end=5e-6)]
        simulated: Any = [step(begin=0.0, end=3e-6), step(rank=1, begin=0.5e-6, end=4e-6)]
        return draw_timeline("ring all_reduce, 2 ranks", measured, simulated, None)


class Step:
    def __init__(self, rank: int, begin: float, moved: float, end: float) -> None:
        self.rank, self.begin, self.moved, self.end, self.done = rank, begin, moved, end, end


def mistake() -> Subject:
    steps = pl.Steps("broadcast", ranks=2)
    steps.lane(1).recv(0, pl.Slice("output", 0))
    for lane in (steps.lane(0), steps.lane(0)):
        lane.copy(pl.Slice("input", 0), pl.Slice("output", 0))
    steps.lane(0).send(pl.Slice("output", 0), 1)
    with pytest.raises(pl.ProgramError) as raised:
        steps.build("race")
    return raised.value


def plan(before: str | None, after: str) -> Subject:
    return pccl.Cluster(
        {
            "devices": [{"name": name} for name in "abcdefgh"],
            "phases": {
                "ring": {"links": "ring", "duplex": True},
                "pairs": {"links": [[0, 1], [2, 3], [4, 5], [6, 7]], "duplex": True},
            },
        }
    ).plan(before, after)


def replay(name: str, ranks: int) -> Subject:
    network = simulator.Network.hosts(ranks, 2, SPEED, SPEED)
    return simulator.replay(name, "all_gather", network, 1 << 20)


def generate(name: str, collective: str, ranks: int) -> Subject:
    return pccl.schedule.generate(name, collective, ranks)


def ring() -> pccl.Capsule:
    return pl.from_generator("ring", "all_reduce", 4, name="mine")


SUBJECTS = {
    "ring of 4": functools.partial(generate, "ring", "all_reduce", 4),
    "pat of 16": functools.partial(generate, "pat", "all_gather", 16),
    "ring of 64": functools.partial(generate, "ring", "all_reduce", 64),
    "two ranks": functools.partial(generate, "ring", "broadcast", 2),
    "a replay": functools.partial(replay, "ring", 4),
    "a replay of one for all": lambda: simulator.replay(
        "ring", "all_gather", simulator.Network.switch(8, SPEED), 1 << 20
    ),
    "a replay of 64": functools.partial(replay, "ring", 64),
    "a capsule": ring,
    "ways beside a capsule": lambda: ring().simulate(nbytes="1MB"),
    "a timeline": Timeline,
    "a mistake": mistake,
    "a phase at first": functools.partial(plan, None, "ring"),
    "a phase after another": functools.partial(plan, "ring", "pairs"),
}


@pytest.fixture(scope="module", params=SUBJECTS)
def drawn(request: pytest.FixtureRequest) -> Drawn:
    return Drawn(SUBJECTS[request.param]())


def test_it_shows_something_and_all_of_it_is_inside_the_frame(drawn: Drawn) -> None:
    drawn.check_ink()


def test_letters_are_inside_and_not_over_each_other(drawn: Drawn) -> None:
    drawn.check_letters()


def test_a_notebook_shows_it_without_a_backend(drawn: Drawn) -> None:
    assert isinstance(drawn.figure, matplotlib.figure.Figure)
    picture = drawn.figure._repr_svg_()  # type: ignore[attr-defined]
    assert picture.lstrip().startswith("<?xml")
    assert "<path" in picture
