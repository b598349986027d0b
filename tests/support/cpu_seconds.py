# SPDX-License-Identifier: Apache-2.0
"""What tests cost: CPU seconds of a test and all processes it has started, however busy others are.

    pytest --numprocesses 4 --cpu-seconds 40

The summary then has the 40 tests and the 40 files that took most. What is made once a session is
part of the first test that wants it. A process whose parent did not wait for it is not counted.
"""

from __future__ import annotations

import collections
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

PROPERTY = "cpu_seconds"
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def _processes() -> Iterator[tuple[int, int, int]]:
    """Yield number, parent and clock ticks of each process, with those of children that ended."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        yield int(entry.name), int(fields[1]), sum(map(int, fields[11:15]))


def seconds_of_family() -> float:
    """CPU seconds of this process and its descendants so far."""
    ticks, children = {}, collections.defaultdict(list)
    for process, parent, taken in _processes():
        ticks[process] = taken
        children[parent].append(process)
    family = [os.getpid()]
    for process in family:
        family += children[process]
    return sum(ticks[process] for process in family) / TICKS_PER_S


class CpuSeconds:
    """Adds what each phase of a test took to its report, and shows the sums in the summary."""

    def __init__(self, shown: int) -> None:
        self._shown = shown
        self._before = seconds_of_family()
        self._by_test: collections.Counter[str] = collections.Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now = seconds_of_family()
        report.user_properties = [*report.user_properties, (PROPERTY, now - self._before)]
        self._before = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._by_test[report.nodeid] += dict(report.user_properties).get(PROPERTY, 0.0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        by_file: collections.Counter[str] = collections.Counter()
        for test, seconds in self._by_test.items():
            by_file[test.partition("::")[0]] += seconds
        for kind, counts in (("test", self._by_test), ("file", by_file)):
            terminalreporter.section(f"CPU seconds by {kind}, {counts.total():.0f} in all")
            for name, seconds in counts.most_common(self._shown):
                terminalreporter.write_line(f"{seconds:8.2f} {name}")
