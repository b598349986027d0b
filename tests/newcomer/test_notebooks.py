# SPDX-License-Identifier: Apache-2.0
"""Notebooks of examples/: kept with what they show, which an installed wheel shows, too."""

from __future__ import annotations

import base64
import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cairosvg
import matplotlib.image
import numpy as np
import pytest

from support import notebook as driver

if TYPE_CHECKING:
    from support.wheel import Environment

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
PICTURES = {"p2p": 1}  # of the others, 5 at least
MOST_PIXELS = 2000
SIZE = re.compile(r'<svg [^>]*width="([0-9.]+)pt" height="([0-9.]+)pt"')


def pixels_of(picture: str) -> Any:
    """Give the pixels of a picture, by rows: of an SVG as another program than ours draws it."""
    if SIZE.search(picture):
        png = cairosvg.svg2png(picture.encode(), background_color="white")
    else:
        png = base64.b64decode(picture)
    return matplotlib.image.imread(io.BytesIO(png))


def ink_of(picture: str) -> Any:
    """Give which pixels of a picture are not white."""
    return pixels_of(picture)[:, :, :3].min(axis=2) < 0.8


def kept(path: Path) -> list[dict[str, Any]]:
    """Give what each cell of code shows in the file."""
    cells = json.loads(path.read_text())["cells"]
    return [driver.shown_by(cell) for cell in cells if cell["cell_type"] == "code"]


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=lambda path: path.stem)
def shown(request: pytest.FixtureRequest, fresh: Environment, tmp_path_factory: Any) -> Any:
    """What the file keeps, and what its code shows with an installed wheel, cell by cell."""
    folder = tmp_path_factory.mktemp("notebook")
    command = [fresh.python, "-P", driver.__file__, request.param]
    done = fresh.run(*command, cwd=folder)
    assert done.returncode == 0, done.stderr
    return list(zip(kept(request.param), json.loads(done.stdout), strict=True))


def test_the_outputs_are_those_of_an_installed_wheel(shown: Any) -> None:
    for before, now in shown:
        assert before["printed"] == now["printed"]
        assert (before["text"] or "").split() == (now["text"] or "").split()


def test_pictures_are_kept_as_they_are_drawn(shown: Any, request: pytest.FixtureRequest) -> None:
    pictures = [(before["picture"], now["picture"]) for before, now in shown]
    name = request.node.callspec.params["shown"].stem
    assert len([before for before, _ in pictures if before]) >= PICTURES.get(name, 5)
    for before, now in pictures:
        assert bool(before) == bool(now)
        if before:
            for was, is_now in zip(pixels_of(before).shape, pixels_of(now).shape, strict=True):
                assert was == pytest.approx(is_now, rel=0.05)


def test_pictures_have_ink_and_are_whole(shown: Any) -> None:
    for _, now in shown:
        if now["picture"]:
            ink = ink_of(now["picture"])
            assert max(ink.shape) < MOST_PIXELS
            assert 0.003 < ink.mean() < 0.6, "blank, or black"
            rows, columns = np.flatnonzero(ink.any(axis=1)), np.flatnonzero(ink.any(axis=0))
            assert np.ptp(rows) > 0.7 * ink.shape[0], "most of it is empty"
            assert np.ptp(columns) > 0.25 * ink.shape[1], "most of it is empty"


@pytest.mark.parametrize("shown", [EXAMPLES / "topology.ipynb"], indirect=True)
def test_it_shows_a_broken_link_and_its_price(shown: Any) -> None:
    texts = [now["text"] or "" for _, now in shown]
    assert any(text.startswith("[missing_nvlinks: gpu 0") for text in texts)
    assert any(float(text) > 7 for text in texts if re.fullmatch(r"\d+\.\d+", text))


@pytest.mark.parametrize("shown", [EXAMPLES / "capsules.ipynb"], indirect=True)
def test_it_shows_a_mistake_at_its_line_and_runs_what_is_mended(shown: Any) -> None:
    printed = [now["printed"] for _, now in shown]
    assert any("x = x.reduce_to(1)\n" in text and "a second time" in text for text in printed)
    assert "[6.0, 6.0, 6.0, 6.0]" in [now["text"] for _, now in shown]


@pytest.mark.parametrize("shown", [EXAMPLES / "phases.ipynb"], indirect=True)
def test_it_switches_under_a_job_and_shows_what_is_refused(shown: Any) -> None:
    texts = [" ".join((now["text"] or "").split()) for _, now in shown]
    assert str([("ring", "switched", 8.0)] * 4) in texts
    printed = "".join(now["printed"] for _, now in shown)
    assert "phase one_pair leaves rank 2 without a way" in printed
    assert "phase tree of the network has no ring" in printed


@pytest.mark.parametrize("shown", [EXAMPLES / "p2p.ipynb"], indirect=True)
def test_it_loses_a_server_and_reads_from_its_successor(shown: Any) -> None:
    printed = [now["printed"] for _, now in shown if now["printed"]]
    assert printed[-2] == "True True\n"  # the error names session and process
    assert "another incarnation" in printed[-1]
    assert [now["text"] for _, now in shown].count("True") == 3  # of the comparisons of bytes
