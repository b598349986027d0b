"""Pictures of machines, plans and jobs: their pixels, and where their letters are."""

from __future__ import annotations

import functools
import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from pccl import topology

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.text import Text

DATA = Path(__file__).resolve().parents[1] / "data" / "topology" / "nccl"
P4D = {"sm": 80, "nvlinks": 12, "net_speed": 100_000}
POINTS = 72  # an inch
DPI = 80

Subject: TypeAlias = topology.Topology | topology.Plan | topology.Job
Pixels: TypeAlias = "np.ndarray[Any, np.dtype[np.int_]]"


@functools.cache
def machine(name: str) -> topology.Topology:
    if name == "here":
        return topology.detect()
    if name == "one_gpu":
        return topology.load(DATA / "h100_1gpu_1nic.xml")
    if name == "72_gpus":
        return topology.load(DATA / "gb200_nvl72_18trays.xml", assume={"mnnvl": 1})
    return topology.example(name, assume=P4D if name == "p4d" else None)


def job(name: str) -> topology.Job:
    p4d, here = machine("p4d"), machine("here")
    host = "node{}.some-rack.some-cluster.example.org"
    hosts = {
        "one_host": [("here", range(4), here)],
        "in_turns": [("a", range(0, 16, 2), p4d), ("b", range(1, 16, 2), p4d)],
        "uneven": [("a", range(1000), here), ("b", [1000], p4d)],
        "many_hosts": [(host.format(i), range(i, 1200, 12), p4d) for i in range(12)],
    }
    return topology.Job.of(hosts[name])


MACHINES = [*topology.examples(), "one_gpu", "72_gpus", "here"]
PLANS = [
    "dgx1v ring 1",
    "dgx1v ring 2",
    "dgx1v tree 1",
    "dgx1v tree 4",
    "dgx2 ring 1",
    "h200_vm ring 1",
    "h200_vm heads 1",
    "h200_vm heads 2",
    "l40s tree 2",
    "p4d ring 2",
    "one_gpu ring 1",
    "one_gpu tree 2",
    "72_gpus ring 1",
]
JOBS = ["one_host", "in_turns", "uneven", "many_hosts"]


def subject_of(name: str) -> Subject:
    if name in JOBS:
        return job(name)
    if name in MACHINES:
        return machine(name)
    of, pattern, nodes = name.split()
    return machine(of).search(pattern, nodes=int(nodes))  # type: ignore[arg-type]


class Drawn:
    """A picture, and what it shows of itself, no more and no less: rows, columns, colours."""

    def __init__(self, name: str) -> None:
        self.subject = subject_of(name)
        self.figure: Figure = self.subject.plot()
        self.figure.set_dpi(DPI)
        self.canvas = FigureCanvasAgg(self.figure)
        self.canvas.draw()
        self.pixels: Pixels = np.asarray(self.canvas.buffer_rgba())[:, :, :3].astype(int)
        (self.axes,) = self.figure.axes

    @property
    def below_the_heading(self) -> Pixels:
        """The pixels of what is drawn, without heading and legend."""
        rows, columns = self.pixels.shape[:2]
        box = self.axes.get_position()
        top, bottom = int((1 - box.y1) * rows), int((1 - box.y0) * rows)
        return self.pixels[top:bottom, int(box.x0 * columns) : int(box.x1 * columns)]

    def letters(self) -> list[tuple[str, Any]]:
        """Each text with the box around its letters, in pixels."""
        legend = self.axes.get_legend()
        texts: list[Text] = [*self.axes.texts, *(legend.get_texts() if legend else [])]
        texts += [
            self.axes.title,
            *(getattr(self.axes, f"_{side}_title") for side in ("left", "right")),
        ]
        renderer = self.canvas.get_renderer()
        return [(t.get_text(), t.get_window_extent(renderer)) for t in texts if t.get_text()]


@pytest.fixture(scope="module", params=[*MACHINES, *PLANS, *JOBS])
def drawn(request: pytest.FixtureRequest) -> Drawn:
    return Drawn(request.param)


def test_it_shows_something_and_all_of_it_is_inside_the_frame(drawn: Drawn) -> None:
    ink = drawn.pixels.min(axis=2) < 200
    assert 0.005 < ink.mean() < 0.5
    inside = drawn.below_the_heading.min(axis=2) < 200
    assert inside.sum() > 100
    assert min(np.ptp(np.flatnonzero(inside.any(axis=axis))) for axis in (0, 1)) > 15
    frame = np.ones_like(ink)
    frame[2:-2, 2:-2] = False
    assert not (ink & frame).any(), "something is cut off"


def test_letters_are_inside_and_not_over_each_other(drawn: Drawn) -> None:
    height, width = drawn.pixels.shape[:2]
    letters = drawn.letters()
    assert letters
    for text, box in letters:
        assert box.x0 >= 0, text
        assert box.y0 >= 0, text
        assert box.x1 <= width, text
        assert box.y1 <= height, text
    for (one, a), (other, b) in itertools.combinations(letters, 2):
        overlap = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        assert min(overlap) <= 1, (one, other)


def test_a_notebook_shows_it_at_its_size(drawn: Drawn) -> None:
    picture = drawn.subject._repr_svg_()
    assert picture is not None
    size = re.search(r'<svg [^>]*width="([0-9.]+)pt" height="([0-9.]+)pt"', picture)
    assert size is not None
    for shown, wanted in zip(size.groups(), drawn.figure.get_size_inches(), strict=True):
        assert 0.3 * wanted * POINTS < float(shown) < 1.1 * wanted * POINTS


@pytest.mark.parametrize("name", [name for name in PLANS if not name.startswith("one_gpu")])
def test_every_channel_is_drawn_in_its_colour(name: str) -> None:
    drawn = Drawn(name)
    plan = drawn.subject
    assert isinstance(plan, topology.Plan)
    lines = drawn.axes.get_legend().get_lines()
    colours = [line.get_color() for line in lines if line.get_linestyle() == "-"]
    kinds = {(tuple(c.order), c.nets, round(c.bandwidth, 3)) for c in plan.channels}
    assert len(colours) == min(16, len(kinds))
    for colour in colours:
        near = np.abs(drawn.below_the_heading - 255 * np.array(colour[:3])).max(axis=2) < 60
        assert near.sum() > 20, colour


def test_gpus_and_hosts_are_named() -> None:
    said = {text for text, _ in Drawn("dgx1v ring 2").letters()}
    assert {str(gpu) for gpu in range(8)} <= said
    assert any("net0 in" in text for text in said)
    said = {text for text, _ in Drawn("dgx1v").letters()}
    assert {"gpu0", "gpu7", "nic3", "net3", "cpu1", "NVL 20 to 40"} <= said
    said = {text for text, _ in Drawn("many_hosts").letters()}
    assert any("12 hosts, 1200 ranks" in text and "4 hosts not shown" in text for text in said)
