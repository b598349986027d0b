# SPDX-License-Identifier: Apache-2.0
"""Print two results of examples/train_ddp.py side by side and check that they agree.

    compare_demo.py first.json second.json

Exits with 1 when the losses differ by more than float rounding explains.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

# Ranks add the same gradients in another order at most; training carries that along.
TOLERANCE = 1e-4


def relative_difference(left: list[float], right: list[float]) -> float:
    """Give the largest |a - b| / max(|a|, |b|) over the epochs."""
    pairs = zip(left, right, strict=True)
    return max(abs(a - b) / max(abs(a), abs(b), 1e-12) for a, b in pairs)


def rows(run: dict[str, Any]) -> dict[str, str]:
    share = run["communication_seconds"] / run["training_seconds"]
    return {
        "first epoch's loss": f"{run['losses'][0]:.9f}",
        "last epoch's loss": f"{run['losses'][-1]:.9f}",
        "test accuracy": f"{run['test_accuracy']:.2%}",
        "all_reduce calls": f"{run['all_reduces']} ({run['megabytes']:.0f} MB)",
        "time in communication": f"{run['communication_seconds']:.3f} s ({share:.0%})",
        "training time": f"{run['training_seconds']:.2f} s",
    }


def main() -> int:
    """Run with the two files as arguments."""
    runs = [json.loads(Path(name).read_text()) for name in sys.argv[1:]]
    left, right = (rows(run) for run in runs)
    table = Table("", *(run["backend"] for run in runs))
    for name, value in left.items():
        table.add_row(name, value, right[name])
    Console(width=80).print(table)
    difference = relative_difference(runs[0]["losses"], runs[1]["losses"])
    verdict = "equal to float rounding" if difference <= TOLERANCE else "DIFFERENT"
    print(f"losses: {verdict} (largest relative difference over the epochs {difference:.1e})")
    return 0 if difference <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
