# SPDX-License-Identifier: Apache-2.0
"""Run batches of upstream tests in suite processes, a few side by side, and collect outcomes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LOG_LINES = 60
SUITE = Path(__file__).with_name("suite.py")


@dataclass(frozen=True)
class Outcome:
    """How one test ended: ``pass``, ``skip`` or ``fail``, after how long, and why."""

    outcome: str
    seconds: float
    reason: str = ""

    @property
    def passed(self) -> bool:
        return self.outcome == "pass"

    @property
    def failed(self) -> bool:
        return self.outcome == "fail"


@dataclass(frozen=True)
class Batch:
    """Tests that one suite process runs in turn; no names means all of them."""

    backend: str
    world_size: int
    tests: Sequence[str] = ()
    library_monitored_barrier: bool = False

    def split(self, parts: int, seconds: Mapping[str, float]) -> list[Batch]:
        """Deal the tests out over ``parts`` batches of about equal duration."""
        slowest_first = sorted(self.tests, key=lambda name: -seconds.get(name, 0.0))
        hands = [slowest_first[part::parts] for part in range(parts)]
        return [
            Batch(self.backend, self.world_size, hand, self.library_monitored_barrier)
            for hand in hands
            if hand
        ]


def run_batch(batch: Batch) -> dict[str, Outcome]:
    """Run one batch and return each test's outcome; a test that left none has failed."""
    with tempfile.TemporaryDirectory() as scratch:
        results, log = Path(scratch) / "results", Path(scratch) / "log"
        results.touch()
        command = [sys.executable, str(SUITE), "--backend", batch.backend]
        command += ["--world-size", str(batch.world_size), "--results", str(results)]
        command += ["--library-monitored-barrier"] * batch.library_monitored_barrier
        environment = os.environ | {"PYTHONUNBUFFERED": "1"}
        with log.open("w") as stream:
            done = subprocess.run(
                [*command, *batch.tests],
                stdout=stream,
                stderr=subprocess.STDOUT,
                check=False,
                env=environment,
            )
        output = log.read_text(errors="replace")
        outcomes = add_output(read_results(results), output)
        end_of_log = last_lines(output)
    if done.returncode and not batch.tests:
        raise RuntimeError(f"the suite ended with {done.returncode}:\n{end_of_log}")
    lost = Outcome("fail", 0.0, f"the suite ended with {done.returncode}:\n{end_of_log}")
    return dict.fromkeys(batch.tests, lost) | outcomes


def read_results(path: Path) -> dict[str, Outcome]:
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return {
        record["test"]: Outcome(record["outcome"], record["seconds"], record["reason"])
        for record in records
    }


def last_lines(text: str) -> str:
    return "\n".join(text.splitlines()[-LOG_LINES:])


def add_output(outcomes: dict[str, Outcome], output: str) -> dict[str, Outcome]:
    """Give each failed test what its ranks printed: an error outside the test is only there."""
    for section in output.split("=== ")[1:]:
        name, _, printed = section.partition("\n")
        if name in outcomes and outcomes[name].failed:
            reason = f"{outcomes[name].reason}\n{last_lines(printed)}"
            outcomes[name] = replace(outcomes[name], reason=reason)
    return outcomes


def run_batches(batches: Sequence[Batch], jobs: int) -> list[dict[str, Outcome]]:
    """Run ``jobs`` batches at a time; the results are in the order of ``batches``."""
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(run_batch, batches))
