# SPDX-License-Identifier: Apache-2.0
"""The pictures of README and docs are what ``tools/draw_images.py`` draws today."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

REPOSITORY = Path(__file__).resolve().parents[2]
IMAGES = REPOSITORY / "docs" / "images"


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(REPOSITORY / "tools"))
    return importlib.import_module("draw_images")


def shown(name: str) -> str:
    text: str = sys.modules["terminal_picture"].text_of((IMAGES / f"{name}.svg").read_text())
    return text


def test_explain_is_up_to_date(tools: ModuleType) -> None:
    """The choice and its rivals, in their order; predicted times may move a little."""
    now = sys.modules["terminal_picture"].text_of(tools.explain_picture())
    times = re.compile(r" +[\d.]+ us")
    assert times.sub(" us", shown("explain")) == times.sub(" us", now)
    assert "* hierarchical " in shown("explain")


@pytest.mark.multiproc
def test_what_a_lost_rank_leaves_is_up_to_date(tools: ModuleType) -> None:
    """Both name the rank, and say what to do; the rest depends on the machine and on chance."""
    blame = r"rank 1 has ended \(rank 1 is process \d+ on node7\); this group is over: go on"
    for text in (
        shown("lost_rank"),
        sys.modules["terminal_picture"].text_of(tools.lost_rank_picture()),
    ):
        assert text.startswith(
            "$ pccl run -n 3 train.py\n...\n[0] pccl.errors.PeerLostError: group world"
        )
        assert len(re.findall(blame, " ".join(text.split()))) == 2


@pytest.mark.parametrize("name", ["schedule_ring", "plan_dgx1v"])
def test_figures_are_up_to_date(tools: ModuleType, name: str, tmp_path: Path) -> None:
    tools.FIGURES[name]().savefig(
        tmp_path / "now.svg", bbox_inches="tight", metadata={"Date": None}
    )
    # Letters are shapes, whose names depend on the run.
    shapes = [
        re.findall(r' d="([^"]*)"', file.read_text())
        for file in (IMAGES / f"{name}.svg", tmp_path / "now.svg")
    ]
    assert len(shapes[0]) > 20
    assert shapes[0] == shapes[1]


def test_every_picture_is_shown_by_some_page() -> None:
    pages = [
        REPOSITORY / "README.md",
        *REPOSITORY.glob("docs/**/*.md"),
        *REPOSITORY.glob("benchmarks/*.md"),
    ]
    text = "\n".join(page.read_text() for page in pages)
    assert [image.name for image in IMAGES.iterdir() if f"images/{image.name}" not in text] == []


def test_letters_of_terminals_are_inside_the_picture(tools: ModuleType) -> None:
    for name in tools.TEXTS:
        picture = (IMAGES / f"{name}.svg").read_text()
        width, height = map(int, re.findall(r'(?:width|height)="(\d+)"', picture)[:2])
        lines = shown(name).splitlines()
        assert max(map(len, lines)) * sys.modules["terminal_picture"].CHARACTER < width
        assert max(map(int, re.findall(r' y="(\d+)"', picture))) < height
