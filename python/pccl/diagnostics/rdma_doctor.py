# SPDX-License-Identifier: Apache-2.0
"""Examination of RDMA, step by step: of one port, and of the way to a port of another host."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Literal

from pccl import _core
from pccl.diagnostics.rdma_channel import ChannelError, PeerChannel
from pccl.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["STEPS", "ExaminedStep", "examine"]

STEPS = (
    "library",
    "device",
    "port",
    "gid",
    "memory",
    "connection",
    "mtu",
    "reach",
    "loopback",
    "write",
    "gpu",
)
_WITH_PEER = {"connection", "reach", "write"}
# Both hosts begin the next step together.
_TOGETHER = {"reach", "write"}
_PATIENCE_S = 10.0


@dataclasses.dataclass(frozen=True)
class ExaminedStep:
    """A step with what it found, why it failed, or why it was skipped."""

    name: str
    outcome: Literal["ok", "failed", "skipped"]
    text: str


class _Examination:
    def __init__(self, meet: Callable[[bytes | None], PeerChannel] | None, timeout: float) -> None:
        self._meet = meet
        self._timeout = timeout
        self._doctor: Any = None
        self._channel: PeerChannel | None = None
        self._peer = b""

    def run(self, name: str) -> ExaminedStep:
        if name in _WITH_PEER and self._meet is None:
            return ExaminedStep(name, "skipped", "no --peer and no --listen")
        try:
            text = self._connect() if name == "connection" else self._step(name)
        except ChannelError as error:
            return ExaminedStep(name, "failed", str(error))
        except Error as error:
            self._report(name, str(error))
            return ExaminedStep(name, "failed", str(error))
        return ExaminedStep(name, "ok", text)

    def close(self) -> None:
        if self._channel is not None:
            self._channel.__exit__()

    def _step(self, name: str) -> str:
        if self._doctor is None:
            self._doctor = _core._RdmaDoctor()
        text: str = self._doctor.run(name, self._peer, self._timeout)
        if name in _TOGETHER:
            self._exchange(name, "")
        return text

    def _connect(self) -> str:
        assert self._meet is not None
        secret = _core._doctor_secret()
        end = self._doctor.end()
        self._channel = self._meet(secret)
        self._channel.limit(2 * self._timeout + _PATIENCE_S)
        try:
            self._peer = bytes.fromhex(self._exchange("connection", end.hex()))
        except ValueError as error:
            raise ChannelError("the peer describes no end of its examination") from error
        proof = "with" if secret else "without"
        return f"both hosts are connected, {proof} a proof of PCCL_SECRET_FILE"

    def _exchange(self, step: str, end: str) -> str:
        """Report to the peer that this host has done a step; wait until the peer has done it."""
        assert self._channel is not None
        self._channel.send({"step": step, "end": end})
        answer = self._channel.receive()
        if failure := answer.get("failure"):
            raise ChannelError(f"the peer fails at its step {answer.get('step')}: {failure}")
        if answer.get("step") != step or not isinstance(answer.get("end"), str):
            raise ChannelError(f"the peer is at another step, {answer.get('step')!r}")
        return str(answer["end"])

    def _report(self, step: str, failure: str) -> None:
        if self._channel is None:
            return
        try:
            self._channel.send({"step": step, "failure": failure})
        except ChannelError:
            return  # the failure of this host is what counts


def examine(
    meet: Callable[[bytes | None], PeerChannel] | None,
    timeout: float,
    shown: Callable[[ExaminedStep], None] = lambda _: None,
) -> list[ExaminedStep]:
    """Run the steps until one fails, and return them.

    Parameters
    ----------
    meet
        Connects to the other host, given the secret; None for an examination of this host alone.
    timeout
        Seconds for each write; the peer may take twice as long for a step, and 10 s more.
    shown
        Called after each step.
    """
    examination = _Examination(meet, timeout)
    steps = []
    try:
        for name in STEPS:
            steps.append(examination.run(name))
            shown(steps[-1])
            if steps[-1].outcome == "failed":
                break
    finally:
        examination.close()
    return steps
