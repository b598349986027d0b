# SPDX-License-Identifier: Apache-2.0
"""Operators of loaded capsules and of preselected algorithms."""

from datetime import timedelta
from typing import Any

from pccl._core.events import Event
from pccl._core.types import _Blocks, _Collective

class Operator:
    """Collective for repeated execution, from ``Communicator.operator`` or a capsule.

    If it has buffers, an execution reads no arguments and costs less than the method of a
    ``Communicator``. The rules of collectives apply: all ranks execute theirs, in the same order.

    Parameters
    ----------
    group
        A communicator, or a process group of torch, for which an operator can be described but not
        executed.
    name
        Name of an algorithm or of a loaded capsule; empty for the group's choice.
    collective
        Collective, as for ``Communicator.operator``.
    root
        Root rank of broadcast, reduce, gather and scatter.

    Raises
    ------
    InvalidArgumentError
        The collective does not exist.
    """

    def __init__(self, group: object, name: str, collective: str, root: int = 0) -> None: ...
    @property
    def group(self) -> Any:
        """The communicator or process group of torch."""
    @property
    def name(self) -> str:
        """The name of the algorithm or capsule; empty for the group's choice."""
    @property
    def collective(self) -> _Collective:
        """The name of the collective."""
    @property
    def root(self) -> int:
        """The root rank; 0 if the collective has none."""
    def bind(
        self, x: _Blocks | None = None, out: _Blocks | None = None, *, op: str = "sum"
    ) -> Operator:
        """Return a copy of this operator with buffers; nothing is sent.

        Parameters
        ----------
        x, out, op
            As for ``Communicator.operator``.

        Raises
        ------
        InvalidArgumentError
            The buffers do not fit, or ``op`` does not exist.
        UnsupportedError
            Elements of that type have no such ``op``, or the group is one of torch.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The group has already failed.
        """
    def execute(
        self,
        x: _Blocks | None = None,
        out: _Blocks | None = None,
        *,
        op: str = "sum",
        timeout: float | timedelta | None = None,
    ) -> Event:
        """Start the collective; the caller must not touch its buffers until it is done.

        Parameters
        ----------
        x, out, op
            As for ``bind``, for this execution only; without ``x`` and ``out``, the bound buffers.
        timeout
            Maximum seconds of the operation; None for the group's timeout.

        Returns
        -------
        Event
            Event to wait for: ``event.wait()``, ``await event``.

        Raises
        ------
        InvalidArgumentError
            The operator has no buffers, or they do not fit; nothing was sent.
        UnsupportedError
            As for ``bind``; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The group has already failed. The event raises errors of this execution.
        """
    def run(
        self,
        x: _Blocks | None = None,
        out: _Blocks | None = None,
        *,
        op: str = "sum",
        timeout: float | timedelta | None = None,
    ) -> None:
        """Execute the collective, and wait until its buffers are ready.

        Parameters
        ----------
        x, out, op, timeout
            As for ``execute``.

        Raises
        ------
        InvalidArgumentError
            The operator has no buffers, or they do not fit; nothing was sent.
        UnsupportedError
            As for ``bind``; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The operation failed, here or on another rank; every later operation of the group raises
            the same error.
        """
