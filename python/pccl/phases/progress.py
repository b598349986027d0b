# SPDX-License-Identifier: Apache-2.0
"""Display of the progress of a switch of phases that takes longer than one second.

>>> def show(progress):
...     print(progress)
>>> cluster.switch("pairs", progress=show)
pairs, 1.0 s: ocs0 prepared, ocs1 locking
pairs, 1.4 s: ocs0 settling, ocs1 settling
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from pccl._core import ProgressBoard
from pccl.results.table import Table, html_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pccl._core.cluster import _NetworkProgress, _SwitchState
    from pccl.results.table import Fields

__all__ = ["PhaseProgress", "SwitchProgress", "Tell", "watched"]

SOON_S = 1.0  # a shorter switch displays nothing
_PAUSE_S = 0.1  # between two updates

# Words for a step in progress, and for the completed step.
_WORDS = {
    "": ("waiting", "waiting"),
    "connect": ("connecting", "connected"),
    "lock": ("locking", "locked"),
    "read": ("reading", "read"),
    "prepare": ("preparing", "prepared"),
    "commit": ("committing", "committed"),
    "settle": ("settling", "settled"),
    "light": ("looking for light", "has light"),
    "confirm": ("confirming", "confirmed"),
    "cancel": ("cancelling", "cancelled"),
    "wait": ("left alone, to take back what was not confirmed", "taken back"),
    "write": ("writing", "written"),
    "release": ("unlocking", "unlocked"),
}
_PARTS = {"drain": "waiting for ranks", "roll back": "rolling back"}


@dataclasses.dataclass(frozen=True)
class SwitchProgress:
    """Progress of one switch: ``"preparing"``, then ``"prepared"``; ``fault`` is its error."""

    name: str
    state: str
    fault: str

    def row(self) -> Fields:
        """Return its fields, as for a data frame."""
        return {"switch": self.name, "state": self.state, "fault": self.fault}


@dataclasses.dataclass(frozen=True)
class PhaseProgress:
    """Progress of a switch of phases, ``seconds`` after its start.

    ``part`` is ``"prepare"``, ``"drain"`` (the ranks of a job complete their operations),
    ``"commit"``, ``"confirm"``, ``"roll back"`` or ``"release"``.
    """

    phase: str
    part: str
    seconds: float
    switches: Table[SwitchProgress]

    def __str__(self) -> str:
        states = ", ".join(
            f"{each.name} {each.state}" + (f" ({each.fault})" if each.fault else "")
            for each in self.switches
        )
        return f"{self.headline}: {states or 'nothing to change'}"

    @property
    def headline(self) -> str:
        """The phase and the seconds, ``"pairs, 1.2 s"``, and a wait for ranks or a rollback."""
        what = _PARTS.get(self.part)
        return f"{self.phase}, {self.seconds:.1f} s" + (f", {what}" if what else "")

    def _repr_html_(self) -> str:
        return html_table(self.switches.rows, caption=self.headline)


Tell: TypeAlias = "Callable[[PhaseProgress], None]"


class _Viewer(Protocol):
    """Display of the progress; a context manager, which removes the display at its end."""

    def __enter__(self) -> Tell: ...
    def __exit__(self, *error: object) -> None: ...


class _Terminal:
    """Table on stderr that is removed at the end."""

    def __init__(self) -> None:
        self._live: Any = None

    def __enter__(self) -> Tell:
        from rich.console import Console  # imported here, because few switches need it
        from rich.live import Live

        self._live = Live(
            console=Console(stderr=True),
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()
        return self._show

    def _show(self, progress: PhaseProgress) -> None:
        from rich.table import Table as Rows
        from rich.text import Text

        rows = Rows("switch", "state", "fault", title=Text(progress.headline), box=None)
        for each in progress.switches:
            rows.add_row(*map(Text, (each.name, each.state, each.fault)))
        self._live.update(rows, refresh=True)

    def __exit__(self, *error: object) -> None:
        self._live.stop()


class _Notebook:
    """Table below the cell that is cleared at the end."""

    def __init__(self) -> None:
        self._handle: Any = None

    def __enter__(self) -> Tell:
        return self._show

    def _show(self, progress: PhaseProgress) -> None:
        if self._handle is None:
            self._handle = _display().display(progress, display_id=True)
        else:
            self._handle.update(progress)

    def __exit__(self, *error: object) -> None:
        if self._handle is not None:
            self._handle.update(_display().HTML(""))


def _display() -> Any:
    return importlib.import_module("IPython.display")


def _viewer_for(progress: Tell | None) -> contextlib.AbstractContextManager[Tell] | None:
    if progress is not None:
        return contextlib.nullcontext(progress)
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is not None:
        return _Notebook()
    return _Terminal() if sys.stderr.isatty() else None


def _progress_of(phase: str, seconds: float, reported: _NetworkProgress) -> PhaseProgress:
    def state_of(each: _SwitchState) -> str:
        state = _WORDS[each["doing"]][each["done"]]
        return "read back" if state == "read" and reported["part"] != "prepare" else state

    return PhaseProgress(
        phase,
        reported["part"],
        seconds,
        Table(
            SwitchProgress(each["name"], state_of(each), each["fault"])
            for each in reported["switches"]
        ),
    )


@contextlib.contextmanager
def watched(phase: str, progress: Tell | None) -> Iterator[ProgressBoard | None]:
    """Yield the board for a transaction's progress; None if the progress is not displayed.

    Parameters
    ----------
    phase
        Target phase.
    progress
        Function that is called from a separate thread, about ten times per second, after the first
        second; None for a terminal or a notebook, if there is one.
    """
    viewer = _viewer_for(progress)
    if viewer is None:
        yield None
        return
    board, over = ProgressBoard(), threading.Event()
    thread = threading.Thread(
        target=_show, args=(viewer, phase, board, over), name="pccl-progress", daemon=True
    )
    thread.start()
    try:
        yield board
    finally:
        over.set()
        thread.join()


def _show(
    viewer: contextlib.AbstractContextManager[Tell],
    phase: str,
    board: ProgressBoard,
    over: threading.Event,
) -> None:
    began = time.monotonic()
    if over.wait(SOON_S):
        return
    with viewer as show:
        while True:
            is_over = over.wait(_PAUSE_S)
            show(_progress_of(phase, time.monotonic() - began, board.read()))
            if is_over:
                return
