# SPDX-License-Identifier: Apache-2.0
"""A collective whose program switches phases of the network, executed part by part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from pccl._core import Operator
from pccl.errors import UnsupportedError
from pccl.phases import switching

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from pccl._core import Communicator

__all__ = ["SwitchedOperator"]


class SwitchedOperator(Operator):
    """Operator from ``Communicator.load`` for a capsule that switches phases.

    ``run`` is a collective call. At every switch, all ranks first complete the preceding part; then
    the network is switched to the phase, as by ``pccl.switch_phase``, unless it is the current
    phase. At the end, the network stays in the last phase.
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
        """The phases of the program, in order."""
        return tuple(phase for phase, _ in self._parts if phase)

    def run(
        self,
        x: Any = None,
        out: Any = None,
        *,
        op: str = "sum",
        timeout: float | timedelta | None = None,
    ) -> None:
        """Execute the collective, and wait until its buffers are ready.

        If it fails between two parts, for example because a switch was refused, the group remains
        usable in the phase that is current then, and the content of ``out`` is undefined.

        Parameters
        ----------
        x, out, op
            As for ``Operator.execute``.
        timeout
            Maximum seconds of each part; None for the group's timeout. A switch has 5 seconds.

        Raises
        ------
        InvalidArgumentError, PeerLostError, TimeoutError, MismatchError, AbortedError
            As for ``Operator.run``.
        UnsupportedError
            ``op`` is an average, or a sum or product of float16 or bfloat16 over more than two
            ranks; these require the complete result before the division or rounding.
        SwitchError, UnavailableError
            As for ``pccl.switch_phase``.
        """
        x = _aside(x, out)
        for phase, part in self._parts:
            if phase:
                switching.ensure(self._group, phase)
            if part is not None:
                part.run(x, out, op=op, timeout=timeout)

    def bind(self, *_buffers: Any, **_options: Any) -> NoReturn:
        """Raise UnsupportedError.

        Raises
        ------
        UnsupportedError
            Always: the buffers are checked in each phase.
        """
        raise UnsupportedError(f"{self.name} switches phases: give run() its buffers")

    def execute(self, *_buffers: Any, **_options: Any) -> NoReturn:
        """Raise UnsupportedError.

        Raises
        ------
        UnsupportedError
            Always: a switch of phases blocks the caller.
        """
        raise UnsupportedError(f"{self.name} switches phases, for which all ranks wait: run() it")

    def __repr__(self) -> str:
        return f"<pccl.SwitchedOperator {self.name}: {self.collective}, {', '.join(self.phases)}>"


def _aside(x: Any, out: Any) -> Any:
    """Return a copy of an input that partially overlaps the output; otherwise the input itself.

    Without the copy, the first part would overwrite the input of later parts.
    """
    if x is None or out is None or x is out:
        return x
    if not isinstance(x, np.ndarray) or not isinstance(out, np.ndarray):
        return x
    is_same = x.ctypes.data == out.ctypes.data and x.nbytes == out.nbytes
    return x if is_same or not np.may_share_memory(x, out) else x.copy()
