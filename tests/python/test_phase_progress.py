# SPDX-License-Identifier: Apache-2.0
"""What a switch of phases shows while it takes longer than a second."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
import types
from typing import TYPE_CHECKING, Any

import pytest

import pccl
from pccl.phases import progress as cluster_progress

if TYPE_CHECKING:
    from pathlib import Path

    from pccl.phases.progress import PhaseProgress

PHASES = {"ring": {"links": "ring"}, "star": {"links": [[0, 1], [0, 2]]}}


def described(settle_ms: int) -> dict[str, Any]:
    """Two fabrics of this process, whose light takes a while; the star needs both."""
    slow = {"settle_ms": settle_ms, "confirm_timeout_s": 3600}
    return {
        "switches": [{"name": name} | slow for name in ("ocs0", "ocs1")],
        "devices": [{"ports": {"ocs0": n, "ocs1": n}} for n in range(1, 5)],
        "phases": PHASES,
    }


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A switch of phases of two seconds and a half is slow enough by far."""
    monkeypatch.setattr(cluster_progress, "SOON_S", 0.05)


@pytest.mark.usefixtures("soon")
def test_a_slow_switch_shows_the_progress_of_each_device() -> None:
    reported: list[PhaseProgress] = []
    result = pccl.Cluster(described(2500)).switch("star", progress=reported.append)
    assert result.outcome == "switched"
    settling = next(each for each in reported if each.switches[0].state == "settling")
    assert settling.part == "commit"
    assert [each.name for each in settling.switches] == ["ocs0", "ocs1"]
    assert [each.seconds for each in reported] == sorted(each.seconds for each in reported)
    assert str(settling).startswith("star, ")
    assert str(settling).endswith(" s: ocs0 settling, ocs1 settling")
    # The end is told, too.
    assert reported[-1].part == "release"
    assert {each.state for each in reported[-1].switches} == {"unlocked"}


def test_a_quick_switch_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_progress, "SOON_S", 600.0)
    reported: list[PhaseProgress] = []
    pccl.Cluster(described(300)).switch("ring", progress=reported.append)
    assert reported == []


@pytest.mark.usefixtures("soon")
def test_a_roll_back_is_reported() -> None:
    reported: list[PhaseProgress] = []

    def interrupt(progress: PhaseProgress) -> None:
        if not reported and progress.part == "commit":
            signal.raise_signal(signal.SIGINT)
        reported.append(progress)

    with pytest.raises(KeyboardInterrupt):
        pccl.Cluster(described(600_000)).switch("star", progress=interrupt)
    assert reported[-1].part == "release"
    assert {each.fault for each in reported[-1].switches} == {""}


@pytest.mark.usefixtures("soon")
def test_progress_that_fails_does_not_end_the_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    failed: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", failed.append)

    def show(_progress: PhaseProgress) -> None:
        raise ZeroDivisionError

    assert pccl.Cluster(described(2500)).switch("ring", progress=show).outcome == "switched"
    assert [each.exc_type for each in failed] == [ZeroDivisionError]


def command(folder: Path, settle_ms: int) -> list[str]:
    file = folder / "cluster.json"
    file.write_text(json.dumps(described(settle_ms)))
    return [sys.executable, "-m", "pccl", "phase", "switch", str(file), "star"]


def read_all(terminal: int) -> bytes:
    shown = b""
    with contextlib.suppress(OSError):  # at its end
        while chunk := os.read(terminal, 4096):
            shown += chunk
    return shown


def test_the_command_shows_it_on_a_terminal_until_ctrl_c(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command(tmp_path, 600_000), stdout=subprocess.PIPE, stderr=theirs
    ) as process:
        os.close(theirs)
        shown = b""
        while b"settling" not in shown:
            shown += os.read(ours, 4096)
        process.send_signal(signal.SIGINT)
        after = read_all(ours)
        os.close(ours)
        assert process.stdout is not None
        printed = process.stdout.read()
        assert process.wait(timeout=60) != 0
    assert re.search(rb"star, \d+\.\d s", shown)
    assert b"ocs0" in shown
    assert b"\x1b[2K" in after, "the table is taken away"
    assert printed == b"", "that is for results"


def test_the_command_shows_nothing_elsewhere(tmp_path: Path) -> None:
    slow = command(tmp_path, 1500)
    done = subprocess.run(slow, capture_output=True, text=True, check=True, timeout=120)
    (reported,) = done.stderr.splitlines()
    assert "its fabric is in this process" in reported
    assert done.stdout.startswith("star: switched, ")


@pytest.mark.usefixtures("soon")
def test_a_notebook_shows_it_below_the_cell_and_clears_it(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, value: Any) -> None:
            shown.append(value._repr_html_())

    def display(value: Any, *, display_id: bool) -> Handle:
        assert display_id
        handle = Handle()
        handle.update(value)
        return handle

    def html(text: str) -> Any:
        return types.SimpleNamespace(_repr_html_=lambda: text)

    ipython: Any = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    ipython.display = types.ModuleType("IPython.display")
    ipython.display.display, ipython.display.HTML = display, html
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    pccl.Cluster(described(2500)).switch("star")
    assert any("<td>ocs1</td><td>settling</td>" in each for each in shown)
    assert shown[-1] == ""


def test_a_job_shows_that_ranks_are_waited_for(tmp_path: Path) -> None:
    was_shown = tmp_path / "shown"

    def body(comm: pccl.Communicator) -> list[str]:
        waiting: list[str] = []

        def show(progress: PhaseProgress) -> None:
            if progress.part == "drain":
                waiting.append(str(progress))
                was_shown.touch()

        while comm.rank == 1 and not was_shown.exists():
            time.sleep(0.01)
        pccl.switch_phase("ring", timeout=60.0, progress=show)
        return waiting

    cluster = pccl.Cluster({"devices": [{}] * 2, "phases": {"ring": {"links": "ring"}}})
    first, second = pccl.run(body, ranks=2, cluster=cluster, timeout=120)
    assert all(" s, waiting for ranks: fabric prepared" in each for each in first)
    assert first
    assert second == [], "rank 0 alone speaks to the switches"
