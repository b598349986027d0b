# SPDX-License-Identifier: Apache-2.0
"""Draw the pictures of README and docs, from output of the library.

    PYTHONPATH=build/dev/python python tools/draw_images.py [FOLDER]

FOLDER is docs/images unless given. The picture of the benchmark, cpu_torch.svg, is
benchmarks/README.md's.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl

import pccl
from pccl import schedule, topology
from terminal_picture import drawn

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
HOST = "node7"  # for the name of the machine that draws

EXPLAIN = """
node = pccl.topology.example("dgx1v")
job = pccl.topology.Job.of([(f"node{i}", range(8 * i, 8 * i + 8), node) for i in range(8)])
pccl.explain("all_reduce", 64 << 20, job)
"""

LOST_RANK = """
import os

import numpy as np
import pccl

comm = pccl.Communicator(rendezvous="env://", timeout=60)
x = np.ones(1000, np.float32)
for step in range(10):
    if comm.rank == 1 and step == 5:
        os.abort()
    comm.all_reduce(x)
"""


def schedule_picture() -> Figure:
    """Return the ring of four ranks."""
    return schedule.generate("ring", "all_reduce", 4).plot()


def plan_picture() -> Figure:
    """Return what a search finds for two DGX-1."""
    return topology.example("dgx1v").search("ring", nodes=2).plot()


def explain_picture() -> str:
    """Return a session in which a job is explained."""
    lines = EXPLAIN.strip().splitlines()
    scope: dict[str, object] = {"pccl": pccl}
    exec("\n".join(lines[:-1]), scope)
    shown = repr(eval(lines[-1], scope))
    return drawn("\n".join([f">>> {line}" for line in lines] + [shown]))


def lost_rank_picture() -> str:
    """Return what is left of three ranks when one has gone, without their tracebacks."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "train.py").write_text(LOST_RANK)
        command = ["-m", "pccl", "run", "-n", "3", "train.py"]
        done = subprocess.run(
            [sys.executable, *command], cwd=folder, capture_output=True, text=True, check=False
        )
    errors = [line for line in done.stderr.splitlines() if "PeerLostError: " in line]
    assert len(errors) == 2, done.stderr
    shown = sorted(line.replace(socket.gethostname(), HOST) for line in errors)
    return drawn("\n".join(["$ pccl run -n 3 train.py", "...", *shown, "..."]))


FIGURES: dict[str, Callable[[], Figure]] = {
    "schedule_ring": schedule_picture,
    "plan_dgx1v": plan_picture,
}
TEXTS = {"explain": explain_picture, "lost_rank": lost_rank_picture}


def main() -> None:
    """Write all of them."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    mpl.rcParams["svg.hashsalt"] = "pccl"  # the same picture has the same bytes
    for name, draw in FIGURES.items():
        draw().savefig(folder / f"{name}.svg", bbox_inches="tight", metadata={"Date": None})
    for name, show in TEXTS.items():
        (folder / f"{name}.svg").write_text(show())


if __name__ == "__main__":
    main()
