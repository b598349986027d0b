# SPDX-License-Identifier: Apache-2.0
"""Start and end of the processes of a job on this machine.

Each rank is a process with the environment variables of torchrun (``RANK``, ``LOCAL_RANK``,
``WORLD_SIZE``, ``MASTER_ADDR``, ``MASTER_PORT``), so that ``torch.distributed`` works too. The
output of ranks is forwarded line by line, with the rank as prefix. All ranks end with their
starter, for any reason of its end.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pccl import errors
from pccl.errors import InvalidArgumentError, ResourceExhaustedError, UnavailableError
from pccl.launch import output, sessions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "GRACE_S",
    "LEAVE_S",
    "End",
    "RankProcesses",
    "rank_command",
    "shortage_named",
    "signal_name",
]

# Time for ranks that lose a peer to report it before they are terminated.
GRACE_S = 5.0
LEAVE_S = 2.0  # between SIGTERM and SIGKILL
_LOOK_S = 0.05
_SHORTAGES = (errno.EMFILE, errno.ENFILE)  # of descriptors of this process, and of the machine
_LOOPBACKS = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))


@dataclasses.dataclass(frozen=True)
class End:
    """End of the process of a rank."""

    rank: int
    pid: int
    status: int  # exit code, or the negative number of a signal

    @property
    def is_failure(self) -> bool:
        """Whether the exit code is not 0."""
        return self.status != 0

    @property
    def code(self) -> int:
        """Exit code in the convention of shells."""
        return self.status if self.status >= 0 else 128 - self.status

    def __str__(self) -> str:
        if self.status >= 0:
            return f"ended with exit code {self.status}"
        return f"was killed by {signal_name(-self.status)}"


@contextlib.contextmanager
def shortage_named() -> Iterator[None]:
    """Raise ResourceExhaustedError, with advice, for a lack of descriptors."""
    try:
        yield
    except OSError as error:
        if error.errno not in _SHORTAGES:
            raise
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        raise ResourceExhaustedError(
            f"ranks cannot be started and watched: {error.strerror}; this process may have {limit} "
            "(ulimit -n): raise the limit, or start fewer ranks"
        ) from None


def signal_name(number: int) -> str:
    """Return, for example, ``signal 9 (SIGKILL)``."""
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


class RankProcesses:
    """Processes of all ranks; the exit of the context ends the remaining processes.

    Each rank leads a session. Its descendants end with it, except processes that have created their
    own session. All sessions end with this process, for any reason of its end.
    """

    def __init__(
        self, command: Callable[[int], list[str]], ranks: int, *, needs_output: bool = False
    ) -> None:
        if ranks < 1:
            raise InvalidArgumentError(f"{ranks} ranks; start 1 or more")
        self.ends: list[End] = []  # in order of occurrence
        self._needs_output = needs_output
        self._processes: list[subprocess.Popen[bytes]] = []
        self._pidfds: dict[int, int] = {}  # by rank, of running processes
        self._leaving: dict[int, float] = {}  # kill times of sessions with an ended leader
        with contextlib.ExitStack() as undo:
            self._held = undo.enter_context(_held_port())
            self._output = output.RankOutput()
            undo.pop_all()
        self._poll = select.poll()
        self._guard: subprocess.Popen[bytes] | None = None
        try:
            for rank in range(ranks):
                place = _environment(rank, ranks, self._held.getsockname())
                self._start(command(rank), {**os.environ, **place})
            self._guard = _start_guard([process.pid for process in self._processes])
            self._output.start()
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> RankProcesses:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._end(at_once=kind is not None and issubclass(kind, KeyboardInterrupt))

    @property
    def running(self) -> list[int]:
        """Ranks with running processes."""
        ended = {end.rank for end in self.ends}
        return [rank for rank in range(len(self._processes)) if rank not in ended]

    def pid_of(self, rank: int) -> int:
        """Return the process id of a rank."""
        return self._processes[rank].pid

    def require_output(self) -> None:
        """Raise the error after which stdout or stderr was no longer writable, if there is one."""
        if self._output.fault is not None:
            raise self._output.fault

    def stop_requiring_output(self) -> None:
        """Let ``wait`` go on although stdout or stderr is no longer writable."""
        self._needs_output = False

    def wait(self, seconds: float, is_enough: Callable[[End], bool] = lambda _: False) -> bool:
        """Wait until all processes have ended, or ``is_enough`` returns True for an end.

        The result is False if the time expired first. If the job needs its output, the error of an
        unwritable stdout or stderr is raised.
        """
        deadline = time.monotonic() + seconds
        while True:
            enough = [is_enough(end) for end in self._take_ends()]
            if self._needs_output:
                self.require_output()
            if any(enough) or not self.running:
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._poll.poll(min(left, _LOOK_S) * 1000)

    def signal(self, number: int) -> None:
        """Signal the process groups of all running ranks, as a terminal does."""
        for rank in self.running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid_of(rank), number)

    def raise_late(self, seconds: float) -> None:
        """Raise a TimeoutError that names the ranks that still run after ``seconds``."""
        names = ", ".join(map(str, self.running))
        raise errors.TimeoutError(f"ranks {names} still ran after {seconds} s")

    def _start(self, command: list[str], environment: dict[str, str]) -> None:
        rank = len(self._processes)
        process = subprocess.Popen(
            command,
            bufsize=0,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,  # the starter receives Ctrl-C and forwards it
        )
        self._processes.append(process)
        with contextlib.suppress(OSError, AttributeError):  # otherwise polling finds its end
            self._pidfds[rank] = os.pidfd_open(process.pid)
            self._poll.register(self._pidfds[rank], select.POLLIN)
        for source, sink in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
            assert source is not None
            self._output.add(rank, source, sink)

    def _take_ends(self) -> list[End]:
        """Record the ended ranks, killed ones first, and terminate their descendants."""
        found = [end for rank in self.running if (end := self._end_of(rank)) is not None]
        found.sort(key=lambda end: end.status >= 0)
        self.ends += found
        if found:
            sessions.signal_all({end.pid for end in found}, signal.SIGTERM)
        for end in found:
            self._leaving[end.pid] = time.monotonic() + LEAVE_S
            self._forget(end.rank)
        self._end_sessions()
        return found

    def _end_of(self, rank: int) -> End | None:
        """Return the end of a rank without reaping it, so that its session id is not reused."""
        pid = self.pid_of(rank)
        try:
            state = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:  # the program reaps its children itself
            return End(rank, pid, 0)
        if state is None:
            return None
        is_exit = state.si_code == os.CLD_EXITED
        return End(rank, pid, state.si_status if is_exit else -state.si_status)

    def _forget(self, rank: int) -> None:
        if rank in self._pidfds:
            self._poll.unregister(self._pidfds[rank])
            os.close(self._pidfds.pop(rank))

    def _end_sessions(self) -> None:
        """Kill the sessions whose time to exit has expired."""
        now = time.monotonic()
        late = {session for session, until in self._leaving.items() if now >= until}
        if late:
            sessions.signal_all(late, signal.SIGKILL)
            for session in late:
                del self._leaving[session]

    def _end(self, *, at_once: bool = False) -> None:
        with contextlib.ExitStack() as last:  # an error of one step skips no other
            last.callback(self._held.close)
            last.callback(self._output.finish, LEAVE_S)
            last.callback(self._reap)
            last.callback(self._kill)
            if not at_once:
                self._leave()

    def _leave(self) -> None:
        """Request all ranks to exit, and wait for their end or the timeout."""
        self.signal(signal.SIGTERM)
        self.stop_requiring_output()
        self.wait(LEAVE_S)
        while self._leaving and sessions.members_of(set(self._leaving)):
            self._end_sessions()
            time.sleep(_LOOK_S)

    def _kill(self) -> None:
        for rank in self.running:
            self._processes[rank].kill()
        leaders = {process.pid for process in self._processes}
        until = time.monotonic() + LEAVE_S  # processes of other users remain
        while sessions.signal_all(leaders, signal.SIGKILL) and time.monotonic() < until:
            time.sleep(_LOOK_S / 10)

    def _reap(self) -> None:
        for rank, process in enumerate(self._processes):
            process.wait()
            self._forget(rank)
        if self._guard is not None:
            self._guard.kill()
            self._guard.communicate()


def _start_guard(leaders: list[int]) -> subprocess.Popen[bytes]:
    """Start a process that kills the sessions after this process has ended for any reason."""
    guard = subprocess.Popen(
        [sys.executable, "-I", "-S", sessions.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert guard.stdin is not None
    guard.stdin.write("".join(f"{session}\n" for session in leaders).encode())
    guard.stdin.flush()
    return guard


def _environment(rank: int, ranks: int, address: tuple[str, int]) -> dict[str, str]:
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks),
        "MASTER_ADDR": address[0],
        "MASTER_PORT": str(address[1]),
        "PYTHONUNBUFFERED": "1",
        "PCCL_STARTER_PID": str(os.getpid()),
    }


def _held_port() -> socket.socket:
    """Reserve a loopback port, of IPv4 or else IPv6, which the kernel then does not assign.

    Processes that bind this port with ``SO_REUSEADDR``, as stores do, may listen at it.
    """
    faults = []
    for family, address in _LOOPBACKS:
        try:
            held = socket.socket(family)
        except OSError as error:
            if error.errno in _SHORTAGES:
                raise
            faults.append(f"{address}: {error.strerror}")
            continue
        try:
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.bind((address, 0))
        except OSError as error:
            held.close()
            faults.append(f"{address}: {error.strerror}")
        else:
            return held
    raise UnavailableError(
        f"ranks cannot connect: this host has no loopback address ({'; '.join(faults)}); "
        "bring the interface lo up"
    )


def rank_command(*arguments: str) -> list[str]:
    """Return the command of a rank: a script, because ``-m`` imports from the working directory."""
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return [sys.executable, *flags, str(Path(__file__).with_name("rank.py")), *arguments]
