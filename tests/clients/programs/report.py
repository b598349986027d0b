# SPDX-License-Identifier: Apache-2.0
"""What a rank of a client's program reports to its test."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

MARK = "FOUND "


def calls_of_pccl() -> int:
    """Return how many operations of this process PCCL has completed."""
    from pccl.diagnostics import flight_record

    return sum(entry["state"] == "completed" for entry in flight_record()["entries"])


def found(rank: int, world_size: int, backend: str, values: Iterable[Any]) -> dict[str, Any]:
    """Return the rank, its backend, PCCL's operations, and losses and weights to compare."""
    return {
        "rank": rank,
        "world_size": world_size,
        "backend": backend,
        "calls": calls_of_pccl() if "pccl" in backend.lower() else 0,
        "values": [float(value) for value in values],
    }


def show(result: dict[str, Any]) -> None:
    """Print a rank's result as one line."""
    sys.stdout.write(f"{MARK}{json.dumps(result)}\n")
    sys.stdout.flush()


def report(rank: int, world_size: int, backend: str, values: Iterable[Any]) -> None:
    """Print this rank's result."""
    show(found(rank, world_size, backend, values))
