"""What ``pccl capsule reproduce`` does."""

from __future__ import annotations

from pccl import reproductions
from pccl.bench import capsules as benchmark
from pccl.cli import terminal

__all__ = ["print_names", "reproduce"]

SIZES = (4 << 10, 256 << 10, 4 << 20)


def print_names(*, as_json: bool) -> None:
    """Print what there is to reproduce."""
    if as_json:
        terminal.print_json({"names": reproductions.names()})
        return
    print("\n".join(reproductions.names()))


def reproduce(name: str, *, measures: bool, as_json: bool) -> None:
    """Print the paper's figures, the simulator's, and times on this machine."""
    found = reproductions.reproduce(name)
    if not as_json:
        print(found, flush=True)
    rows = []
    if measures and found.capsule:
        for row in benchmark.measured(found.capsule.data, SIZES):
            predicted = found.capsule.simulate(nbytes=row.size).seconds * 1e6
            rows.append(row.row() | {"predicted_us": predicted})
            if not as_json:
                print(
                    f"  {found.capsule.schedule.ranks} processes of this machine, {row.size} "
                    f"bytes: predicted {predicted:.1f} us, measured {row.capsule_us:.1f} us; "
                    f"{row.chosen} {row.chosen_us:.1f} us",
                    flush=True,
                )
    if as_json:
        claims = [claim.row() for claim in found.claims]
        terminal.print_json({"name": name, "paper": found.paper, "claims": claims, "rows": rows})
