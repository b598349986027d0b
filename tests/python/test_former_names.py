# SPDX-License-Identifier: Apache-2.0
"""Names of the last release still work, and a warning names the present ones."""

from __future__ import annotations

import builtins
import importlib
import subprocess
import sys

import pytest

import pccl
from pccl import errors, p2p
from pccl.former_names import FORMER_MODULES, FORMER_VALUES


@pytest.mark.parametrize("module", [pccl, errors])
def test_the_former_class_of_timeouts_is_the_present_one(module: object) -> None:
    with pytest.warns(DeprecationWarning, match=r"now called pccl\.(errors\.)?TimeoutError"):
        former = module.CollectiveTimeoutError  # type: ignore[attr-defined]
    assert former is pccl.TimeoutError
    assert issubclass(pccl.TimeoutError, builtins.TimeoutError)


@pytest.mark.parametrize("former", sorted(FORMER_MODULES))
def test_modules_are_imported_under_their_former_names(
    former: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    importlib.import_module("torch")
    present = importlib.import_module(FORMER_MODULES[former])
    monkeypatch.delitem(sys.modules, former, raising=False)
    with pytest.warns(DeprecationWarning, match=f"^{former} is now called {present.__name__}$"):
        assert importlib.import_module(former) is present
    assert present.__spec__ is not None
    assert present.__spec__.name == present.__name__


@pytest.mark.parametrize("former", sorted(FORMER_VALUES))
def test_values_are_found_under_their_former_names(former: str) -> None:
    importlib.import_module("torch")
    home, _, name = former.rpartition(".")
    present, _, present_name = FORMER_VALUES[former].rpartition(".")
    with pytest.warns(DeprecationWarning, match=f"^{former} is now called {present}"):
        found = getattr(importlib.import_module(home), name)
    assert found is getattr(importlib.import_module(present), present_name)
    assert name not in importlib.import_module(home).__all__


def test_the_line_that_uses_a_former_name_is_warned() -> None:
    lines = {
        "import pccl.given_file": "pccl._internal.given_file",
        "from pccl.table import Table": "pccl.results.table",
        "from pccl import sizes": "pccl._internal.sizes",
        "from pccl import RankError": "pccl.launch.RankError",
        "import pccl; pccl.flight": "pccl.diagnostics.flight",
    }
    for line, present in lines.items():
        done = subprocess.run(
            [sys.executable, "-c", line], capture_output=True, text=True, check=False, timeout=120
        )
        # Python shows these warnings for the main program alone.
        assert done.returncode == 0
        assert "<string>:1: DeprecationWarning: pccl." in done.stderr, line
        assert f"is now called {present}" in done.stderr, line


def test_a_notification_has_its_former_field() -> None:
    notification = p2p.Notification("a", b"block 7")
    assert notification.payload == b"block 7"
    with pytest.warns(DeprecationWarning, match=r"Notification\.payload"):
        assert notification.word == b"block 7"


def test_transfers_are_cancelled_and_notified_under_former_names_too() -> None:
    with p2p.Session("a") as a, p2p.Session("b") as b:
        b.load(a.connection_info())
        a.load(b.connection_info())
        message = b.transfer("a").post_recv(b.allocate(64), 0, 64, tag=1)
        with pytest.warns(DeprecationWarning, match=r"now called Message\.cancel\(\)") as warned:
            message.release()
        assert warned[0].filename == __file__
        with pytest.raises(pccl.AbortedError):
            message.wait(20)
        with pytest.warns(DeprecationWarning, match=r"now called notify\(payload=\)") as warned:
            b.notify("a", word=b"block 7")  # type: ignore[call-arg]
        assert warned[0].filename == __file__
        assert a.notifications(20) == [p2p.Notification("b", b"block 7")]
        with pytest.raises(TypeError, match="payload"):
            b.notify("a")  # type: ignore[call-arg]
