# SPDX-License-Identifier: Apache-2.0
"""A collective whose program switches phases of the network, run part by part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from pccl import phases
from pccl._core import Operator
from pccl.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from pccl._core import Communicator

__all__ = ["SwitchedOperator"]


class SwitchedOperator(Operator):
    """What ``Communicator.load`` returns for a capsule that switches phases.

    ``run`` is a collective call. At every switch all ranks have done what comes before; then the
    network goes to the phase, as by ``pccl.switch_phase``, unless it is there. In the end it stays
    in the last one.
    """

    def __init__(
        self,
        group: Communicator,
        name: str,
        collective: str,
        root: int,
        parts: Sequence[tuple[str, Operator | None]],
    ) -> None:
        super().__init__(group, name, collective, root)
        self._group = group
        self._parts = tuple(parts)

    @property
    def phases(self) -> tuple[str, ...]:
        """Where the network goes, one after the other."""
        return tuple(phase for phase, _ in self._parts if phase)

    def run(
        self,
        x: Any = None,
        out: Any = None,
        *,
        op: str = "sum",
        timeout: float | timedelta | None = None,
    ) -> None:
        """Execute the collective, and return when its buffers are ready.

        Where it fails between two parts, because a switch was refused, say, the group goes on in
        the phase in which it is then, and ``out`` holds neither the old nor the result.

        Parameters
        ----------
        x, out, op
            As for ``Operator.execute``.
        timeout
            In seconds, of each part; None for that of the group. A switch has 5 seconds.

        Raises
        ------
        InvalidArgumentError, PeerLostError, TimeoutError, MismatchError, AbortedError
            As ``Operator.run``.
        UnsupportedError
            It is an average, or adds halves of more than two ranks, which need the whole sum before
            they are divided and rounded.
        SwitchError, UnavailableError
            As ``pccl.switch_phase``.
        """
        x = _aside(x, out)
        for phase, part in self._parts:
            if phase:
                phases.ensure(self._group, phase)
            if part is not None:
                part.run(x, out, op=op, timeout=timeout)

    def bind(self, *_buffers: Any, **_options: Any) -> NoReturn:
        """Raise UnsupportedError.

        Raises
        ------
        UnsupportedError
            Always: what fits is looked at in each phase.
        """
        raise UnsupportedError(f"{self.name} switches phases: give run() its buffers")

    def execute(self, *_buffers: Any, **_options: Any) -> NoReturn:
        """Raise UnsupportedError.

        Raises
        ------
        UnsupportedError
            Always: who switches phases waits.
        """
        raise UnsupportedError(f"{self.name} switches phases, for which all ranks wait: run() it")

    def __repr__(self) -> str:
        return f"<pccl.SwitchedOperator {self.name}: {self.collective}, {', '.join(self.phases)}>"


def _aside(x: Any, out: Any) -> Any:
    """Return a copy of an input that lies on the output otherwise than as the same memory.

    The first part would overwrite what later ones read.
    """
    if x is None or out is None or x is out:
        return x
    if not isinstance(x, np.ndarray) or not isinstance(out, np.ndarray):
        return x
    is_same = x.ctypes.data == out.ctypes.data and x.nbytes == out.nbytes
    return x if is_same or not np.may_share_memory(x, out) else x.copy()
