# SPDX-License-Identifier: Apache-2.0
"""What ``pccl capsule reproduce`` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pccl.bench import capsules as benchmark
from pccl.cli import terminal
from pccl.published import reproductions

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["print_names", "reproduce"]

SIZES = (4 << 10, 256 << 10, 4 << 20)


def print_names(*, as_json: bool) -> None:
    """Print what there is to reproduce."""
    if as_json:
        terminal.print_json({"names": reproductions.names()})
        return
    print("\n".join(reproductions.names()))


def reproduce(names: Sequence[str], *, measures: bool, as_json: bool) -> None:
    """Print papers' figures, the simulator's, and times on this machine."""
    made = [reproductions.reproduce(name) for name in names]
    reports = [_report(each, measures=measures, is_shown=not as_json) for each in made]
    if as_json:
        terminal.print_json(reports[0] if len(reports) == 1 else {"reproductions": reports})


def _report(found: reproductions.Reproduction, *, measures: bool, is_shown: bool) -> dict[str, Any]:
    if is_shown:
        print(found, flush=True)
    rows = []
    if measures and found.capsule:
        for row in benchmark.measured(found.capsule.data, SIZES):
            predicted = found.capsule.simulate(nbytes=row.size).seconds * 1e6
            rows.append(row.row() | {"predicted_us": predicted})
            if is_shown:
                print(
                    f"  {found.capsule.schedule.ranks} processes of this machine, {row.size} "
                    f"bytes: predicted {predicted:.1f} us, measured {row.capsule_us:.1f} us; "
                    f"{row.chosen} {row.chosen_us:.1f} us",
                    flush=True,
                )
    claims = [claim.row() for claim in found.claims]
    return {"name": found.name, "paper": found.paper, "claims": claims, "rows": rows}
