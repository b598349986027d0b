# SPDX-License-Identifier: Apache-2.0
"""Execution of a script as the ranks of a job on this machine, for ``pccl run``."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

from pccl.launch.processes import (
    GRACE_S,
    End,
    RankProcesses,
    rank_command,
    shortage_named,
    signal_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

__all__ = ["run_script"]

_OWN_END_S = 0.5  # for a rank that fails after it has written its last output


def run_script(
    command: Sequence[str], ranks: int, *, keep_going: bool = False, grace: float = GRACE_S
) -> int:
    """Run a script with its arguments on every rank; return the exit code for the shell.

    ``command`` contains the arguments of ``python``: ``["train.py", "--steps", "10"]``. Failures of
    ranks are reported on stderr.
    """
    report = ""
    try:
        with (
            shortage_named(),
            _signals_as_exceptions(),
            RankProcesses(
                lambda _: rank_command("exec", *command), ranks, needs_output=True
            ) as started,
        ):
            try:
                wait = _wait_while_any_goes_on if keep_going else _wait_for_all
                code, report = wait(started, grace)
            except _Interrupted as interruption:
                code, report = _pass_on(interruption.number, started, grace)
            except OSError as error:
                code, report = _without_output(started, error)
        if code == 0:
            started.require_output()
    except _Interrupted as again:
        code = 128 + again.number
    except BrokenPipeError:  # as of `pccl run ... | head`
        _drop_output()
        code = 128 + signal.SIGPIPE
    finally:
        if report:
            _report(report)
    return code


class _Interrupted(KeyboardInterrupt):
    """Signal that ends the job."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextlib.contextmanager
def _signals_as_exceptions() -> Iterator[None]:
    """Raise for Ctrl-C and signals of schedulers, except ignored ones, as under nohup."""

    def interrupt(number: int, _: FrameType | None) -> None:
        raise _Interrupted(number)

    former = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                former[number] = signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _wait_for_all(started: RankProcesses, grace: float) -> tuple[int, str]:
    """Wait for all ranks, or ``grace`` seconds after a failure; return the code and a text."""
    started.wait(math.inf, lambda end: end.is_failure)
    failed = next((end for end in started.ends if end.is_failure), None)
    if failed is None:
        return 0, ""
    started.wait(grace)
    return failed.code, _named(failed) + _fate_of_others(started, grace)


def _wait_while_any_goes_on(started: RankProcesses, _grace: float) -> tuple[int, str]:
    """Wait until all ranks have ended, and report failures; return the code and a text."""

    def show(end: End) -> bool:
        if end.is_failure:
            _report(_named(end) + ("; the others go on" if started.running else ""))
        return False

    started.wait(math.inf, show)
    failed = [end for end in started.ends if end.is_failure]
    return (failed[0].code if started.ends[-1].is_failure else 0), ""


def _without_output(started: RankProcesses, error: OSError) -> tuple[int, str]:
    """Return code and text of a rank that fails by itself; otherwise raise the output's error."""
    started.stop_requiring_output()
    started.wait(_OWN_END_S, lambda end: end.is_failure)
    failed = next((end for end in started.ends if end.is_failure), None)
    if failed is None:
        raise error
    if isinstance(error, BrokenPipeError):
        _drop_output()
    return failed.code, f"{_named(failed)}; its output cannot be written: {error.strerror}"


def _pass_on(number: int, started: RankProcesses, grace: float) -> tuple[int, str]:
    """Forward the signal to the ranks, and wait ``grace`` seconds for their end."""
    started.signal(number)
    started.wait(grace)
    left = _fate_of_others(started, grace) if started.running else ""
    name = signal_name(number)
    return 128 + number, f"{name} was passed on to all ranks{left}" if left else ""


def _named(end: End) -> str:
    return f"rank {end.rank} (pid {end.pid}) {end}"


def _fate_of_others(started: RankProcesses, grace: float) -> str:
    left = started.running
    if not left:
        by_itself = ["", "", "; the other ended by itself"]
        ended = len(started.ends)
        return by_itself[ended] if ended < len(by_itself) else "; the others ended by themselves"
    names = "ranks " + ", ".join(map(str, left)) if len(left) > 1 else f"rank {left[0]}"
    who = "the others" if len(started.ends) == 1 < len(left) else names
    return f"; {who} {'were' if len(left) > 1 else 'was'} ended {grace:g} s later"


def _report(text: str) -> None:
    with contextlib.suppress(OSError):
        print(f"pccl run: {text}", file=sys.stderr, flush=True)


def _drop_output() -> None:
    """Redirect stdout to /dev/null, so that the final flush of Python succeeds."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
