# SPDX-License-Identifier: Apache-2.0
"""Collectives on circuits, switched and not: measured on namespaces beside the model.

    sudo PYTHONPATH=tests python benchmarks/phases_table.py --mbit 1000 --mib 64

Eight network namespaces are joined by an optical switch (tests/support/circuit_hosts.py), their
ports limited to a rate by a token bucket. Each case is what pccl.phase_costs predicts: an
all_reduce round the ring, and by halving and doubling over pairs that are switched for each step;
an all_to_all forwarded round the ring, and over seven rotations; the all_reduce of two strided
groups, forwarded and switched. Prints medians of the slowest rank's times beside the predictions,
for which what a switch costs is measured before: by how much an exchange takes longer behind one.
Exits with status 1 where a case is more than 15 % off, or the winners differ.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from common import phase_cases

from pccl import phase_costs
from support.circuit_hosts import circuit_hosts, missing

MOST_APART = 0.15
PAYLOAD = 0.92  # of the rate, as iperf3 finds it: the rest are headers
ALPHA = 1e-4  # seconds of a step over TCP between processes
PAIRS = [
    ("ring all_reduce", "switched halving and doubling"),
    ("forwarded all_to_all", "rotating all_to_all"),
    ("forwarded groups", "switched groups"),
]


def predicted(nbytes: int, mbit: float, reconfiguration: float) -> dict[str, float]:
    """Return seconds by case."""
    ranks = phase_cases.RANKS
    on = phase_costs.Circuits(ranks, PAYLOAD * mbit * 1e6 / 8, alpha=ALPHA, delta=0)
    size = ranks // 2
    return {
        "ring all_reduce": phase_costs.ring_all_reduce(on, nbytes),
        "switched halving and doubling": phase_costs.halving_doubling_switched(
            on, nbytes, reconfiguration
        ).seconds,
        "forwarded all_to_all": phase_costs.all_to_all_on_ring(on, nbytes),
        "rotating all_to_all": phase_costs.all_to_all_rotating(on, nbytes, reconfiguration),
        "forwarded groups": phase_costs.group_on_ring(on, nbytes, size=size, stride=2),
        "switched groups": reconfiguration + phase_costs.group_switched(on, nbytes, size=size),
    }


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """Return what rank 0 found."""
    with circuit_hosts(phase_cases.RANKS) as bed:
        bed.settle_ms = options.settle_ms
        bed.limit(options.mbit)
        command = (sys.executable, str(Path(phase_cases.__file__)))
        arguments = (str(options.mib << 20), str(options.rounds))
        found: dict[str, Any] = bed.run(phase_cases.PHASES, *command, *arguments)[0]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mbit", type=float, default=1000, help="of each port")
    parser.add_argument("--mib", type=int, default=64, help="of each rank's buffer")
    parser.add_argument("--settle-ms", type=int, default=25)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if why := missing():
        print(f"phases_table: {why}", file=sys.stderr)
        return 2
    found = measured(options)
    reconfiguration = statistics.median(found["switches"])
    model = predicted(options.mib << 20, options.mbit, reconfiguration)
    seconds = {name: statistics.median(found["seconds"][name]) for name in model}
    print(f"a switch costs {reconfiguration * 1e3:.1f} ms, median of {len(found['switches'])}")
    print(f"{'':<32}{'measured':>10}{'predicted':>11}{'apart':>8}   ms")
    for name, expected in model.items():
        apart = seconds[name] / expected - 1
        print(f"{name:<32}{seconds[name] * 1e3:>10.1f}{expected * 1e3:>11.1f}{apart:>8.0%}")
    if options.json:
        content = {"benchmark": "phases_table", "measured": found, "predicted": model}
        options.json.write_text(json.dumps(content, indent=1) + "\n")
    is_close = all(abs(seconds[name] / model[name] - 1) <= MOST_APART for name in model)
    winners = all((seconds[a] < seconds[b]) == (model[a] < model[b]) for a, b in PAIRS)
    return 0 if is_close and winners else 1


if __name__ == "__main__":
    sys.exit(main())
