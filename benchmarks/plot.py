# SPDX-License-Identifier: Apache-2.0
"""Draws the newest results of a benchmark as docs/images/<name>.svg.

python benchmarks/plot.py cpu_torch
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
from common.cells import KIB, MIB, Cell
from common.report import RESULTS
from matplotlib import pyplot as plt

if TYPE_CHECKING:
    from matplotlib.axes import Axes

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
COLORS = {"pccl": "#0a6e5c", "gloo": "#c8652a", "mpi": "#5a6b9a"}
LABELS = {"pccl": "PCCL", "gloo": "Gloo", "mpi": "Open MPI"}


def newest(name: str) -> Path:
    """Return the newest results; their file names start with the date."""
    found = sorted(RESULTS.glob(f"*-{name}-*.json"))
    if not found:
        sys.exit(f"no results of {name} in benchmarks/results: run it first")
    return found[-1]


def size_name(size: int) -> str:
    return f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB"


def draw_panel(axes: Axes, cells: list[Cell]) -> None:
    """Draw the times of one collective on one number of ranks."""
    cells = sorted(cells, key=lambda cell: cell.bytes)
    sizes = [cell.bytes for cell in cells]
    for library in cells[0].us:
        times = [cell.us[library] for cell in cells]
        style = {"color": COLORS[library], "label": LABELS[library]}
        axes.loglog(sizes, times, marker="o", markersize=3, **style)
    axes.set_xticks(sizes[::3], [size_name(size) for size in sizes[::3]])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def draw(cells: list[Cell], title: str, path: Path) -> None:
    """Draw a panel for each collective (columns) and number of ranks (rows)."""
    ranks = list(dict.fromkeys(cell.ranks for cell in cells))
    collectives = list(dict.fromkeys(cell.collective for cell in cells))
    size = (2.4 * len(collectives), 0.6 + 2.1 * len(ranks))
    figure, grid = plt.subplots(
        len(ranks), len(collectives), squeeze=False, sharex=True, sharey=True, figsize=size
    )
    for row, axes_of_row in zip(ranks, grid, strict=True):
        for column, axes in zip(collectives, axes_of_row, strict=True):
            draw_panel(axes, [c for c in cells if c.ranks == row and c.collective == column])
        axes_of_row[0].set_ylabel(f"{row} ranks: us a call")
    for axes, column in zip(grid[0], collectives, strict=True):
        axes.set_title(column)
    grid[0][0].legend(frameon=False)
    figure.suptitle(title, fontsize=9)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", default="cpu_torch", help="cpu_torch, cpu_numpy, ...")
    name = parser.parse_args().name
    source = newest(name)
    content = json.loads(source.read_text())
    machine = content["machine"]
    title = f"{source.stem}: {machine['cores']} cores, float32, lower is better"
    IMAGES.mkdir(parents=True, exist_ok=True)
    # One file for one set of results, whenever it is drawn; text stays text.
    mpl.rcParams.update({"svg.hashsalt": "pccl", "svg.fonttype": "none", "font.size": 9})
    draw([Cell.from_json(cell) for cell in content["cells"]], title, IMAGES / f"{name}.svg")
    print(f"drawn: docs/images/{name}.svg from {source.name}")


if __name__ == "__main__":
    main()
