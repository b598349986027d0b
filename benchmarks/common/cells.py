# SPDX-License-Identifier: Apache-2.0
"""What benchmarks find: times by cell, medians over runs, geometric means by class of size."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

KIB = 1024
MIB = KIB * KIB
SIZES = [KIB * 4**power for power in range(9)]
# Lowest and highest size of each class, in bytes.
CLASSES = {
    "<= 16 KiB": (0, 16 * KIB),
    "64 KiB - 1 MiB": (64 * KIB, MIB),
    ">= 4 MiB": (4 * MIB, math.inf),
}
SUFFIX = "_us"


@dataclass
class Cell:
    """The times of all libraries for one collective at one size.

    Attributes
    ----------
    us
        Microseconds by library: the median over calls of the slowest rank's time.
    runs
        The same for each run, when ``us`` is the median over several.
    """

    collective: str
    ranks: int
    bytes: int
    us: dict[str, float]
    dtype: str = "float32"
    runs: list[dict[str, float]] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, int, int, str]:
        """What is measured, without what was found."""
        return self.collective, self.ranks, self.bytes, self.dtype

    @property
    def ratio(self) -> float | None:
        """How many times faster pccl is than the fastest other library; None without one."""
        others = [us for library, us in self.us.items() if library != "pccl"]
        return min(others) / self.us["pccl"] if others and "pccl" in self.us else None

    def to_json(self) -> dict[str, Any]:
        """Return it as one flat record: ``pccl_us``, ``gloo_us`` and so on."""
        record = {"collective": self.collective, "ranks": self.ranks, "bytes": self.bytes}
        record |= {"dtype": self.dtype, "ratio": self.ratio}
        record |= {f"{library}{SUFFIX}": us for library, us in self.us.items()}
        return record | ({"runs": self.runs} if len(self.runs) > 1 else {})

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Cell:
        """Return the cell that `to_json` wrote."""
        names = [name for name in record if name.endswith(SUFFIX)]
        return cls(
            collective=record["collective"],
            ranks=record["ranks"],
            bytes=record["bytes"],
            us={name.removesuffix(SUFFIX): record[name] for name in names},
            dtype=record.get("dtype", "float32"),
            runs=record.get("runs", []),
        )


def merge_runs(runs: list[list[Cell]]) -> list[Cell]:
    """Return the cells of the first run, with medians over all runs."""
    by_key: dict[object, list[Cell]] = {}
    for cell in (cell for run in runs for cell in run):
        by_key.setdefault(cell.key, []).append(cell)
    return [_median(cells) for cells in by_key.values()]


def _median(cells: list[Cell]) -> Cell:
    first = cells[0]
    us = {lib: statistics.median(cell.us[lib] for cell in cells) for lib in first.us}
    runs = [cell.us for cell in cells]
    return Cell(first.collective, first.ranks, first.bytes, us, first.dtype, runs)


def geometric_mean(values: Iterable[float]) -> float:
    return math.exp(statistics.fmean(math.log(value) for value in values))


def summary(cells: list[Cell]) -> dict[str, dict[str, float]]:
    """Return the geometric mean and the least of the ratios in each class of size."""
    found = {}
    for name, (low, high) in CLASSES.items():
        inside = [cell.ratio for cell in cells if low <= cell.bytes <= high]
        ratios = [ratio for ratio in inside if ratio is not None]
        if ratios:
            found[name] = {"mean": geometric_mean(ratios), "worst": min(ratios)}
    return found
