# SPDX-License-Identifier: Apache-2.0
"""Names of the last release still work, and a warning names the present ones."""

from __future__ import annotations

import builtins

import pytest

import pccl
from pccl import errors, p2p


@pytest.mark.parametrize("module", [pccl, errors])
def test_the_former_class_of_timeouts_is_the_present_one(module: object) -> None:
    with pytest.warns(DeprecationWarning, match=r"now called pccl\.TimeoutError"):
        former = module.CollectiveTimeoutError  # type: ignore[attr-defined]
    assert former is pccl.TimeoutError
    assert issubclass(pccl.TimeoutError, builtins.TimeoutError)


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
