# SPDX-License-Identifier: Apache-2.0
"""The victim gives up a call and has another use for its buffers at once; the others come before,
meanwhile or afterwards. What they get is right, or an error.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from faults.forced import FROM_ROOT, MESSAGES, TO_ROOT, Call, Place, Pool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from faults.cells import Cell

PATIENCE = timedelta(milliseconds=200)  # of a victim that times out
HOURS = timedelta(hours=1)
LONGEST_CALL_S = {"1KiB": 0.001, "256KiB": 0.003, "8MiB": 0.03}
GIVEN_UP = "given up"  # a key in the store


@dataclass(frozen=True)
class Plan:
    """How it comes about: all of it follows from the cell.

    Attributes
    ----------
    manner
        ``timeout``; or what another thread does to the victim after ``delay_s``: ``abort``,
        ``shutdown``, ``interrupt`` (as Ctrl-C).
    late
        The ranks that come when the victim has given up. With none, all call again and again, and
        the victim gives up in the middle.
    """

    manner: str
    is_asynchronous: bool
    delay_s: float
    late: frozenset[int]
    centre: int

    @staticmethod
    def of(cell: Cell) -> Plan:
        draw = random.Random(f"{cell} plan")
        survivors = [rank for rank in range(cell.ranks) if rank != cell.victim]
        late: list[int] = []
        if draw.random() < 0.6:
            late = draw.sample(survivors, draw.randint(1, len(survivors)))
        manners = ["abort", "shutdown"]
        if late:
            manners += ["timeout", "timeout"]
            # Ctrl-C interrupts the wait for a message, not the message.
            manners += ["interrupt"] if cell.forced.collective != MESSAGES else []
        manner = draw.choice(manners)
        longest_s = 0.05 if late else LONGEST_CALL_S[cell.forced.size]
        return Plan(
            manner=manner,
            # The same goes for calls that run by themselves.
            is_asynchronous=manner != "interrupt" and draw.random() < 0.3,
            delay_s=draw.uniform(0, longest_s),
            late=frozenset(late),
            centre=_centre(cell, survivors, draw),
        )


def _centre(cell: Cell, survivors: list[int], draw: random.Random) -> int:
    """Return the root: mostly such that the victim gives what others take."""
    usually = draw.random() < 0.75
    collective = cell.forced.collective
    if collective == MESSAGES or (collective in FROM_ROOT and usually):
        return cell.victim
    if collective in TO_ROOT and usually:
        return draw.choice(survivors)
    return draw.randrange(cell.ranks)


class Caller:
    """A rank that calls the collective of its cell, each time with other data."""

    def __init__(self, cell: Cell, rank: int, store: dist.Store) -> None:
        self.plan = Plan.of(cell)
        self._cell = cell
        self._store = store
        self._place = Place(rank, cell.ranks, self.plan.centre)
        self._pool = Pool(cell.forced, cell.ranks, str(cell))
        self._number = 0

    def next_call(self) -> Call:
        self._number += 1
        return Call(self._cell.forced, self._place, self._pool, self._number)

    def operate(self) -> None:
        """Make one call, and look at what came of it."""
        is_due = self._number == self._cell.iteration
        call = self.next_call()
        if is_due and self._place.rank in self.plan.late:
            self._store.wait([GIVEN_UP])
        for work in call.start(async_op=False):
            work.wait()
        self.finish(call)

    @staticmethod
    def finish(call: Call) -> None:
        """Look at what came of it; a rank that needs nobody would not notice who is gone."""
        call.check()
        dist.barrier()


def check_algorithm(cell: Cell) -> None:
    """Raise unless the group goes the way that the cell is about."""
    import pccl

    forced = cell.forced
    if forced.collective != MESSAGES:
        chosen = pccl.explain(forced.collective, 1 << 20).chosen.algorithm
        assert chosen == forced.algorithm, f"{chosen} was chosen"


def give_up(caller: Caller, store: dist.Store) -> int | None:
    """Call until the call ends in an error, use its buffers for something else, and return the rank
    that the error blames.
    """
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    plan = caller.plan
    backend.set_timeout(PATIENCE if plan.manner == "timeout" else HOURS)
    errors: list[BaseException] = []
    end = End(plan, backend)
    while not errors:
        call = caller.next_call()
        with end.allowed(), _kept(errors):
            errors += _outcome(call, plan)
        if errors or plan.late:
            call.reuse_buffers()
            break
        with _kept(errors):
            caller.finish(call)
    store.set(GIVEN_UP, "")
    end.join()
    # A call that needs nobody has ended well; then the victim ends the group.
    backend.abort()
    return next((error.rank for error in errors if hasattr(error, "rank")), None)


def _outcome(call: Call, plan: Plan) -> list[BaseException]:
    """Return why it failed, once nothing of it goes on."""
    errors: list[BaseException] = []
    works: list[dist.Work] = []
    with _kept(errors):
        works = call.start(async_op=plan.is_asynchronous)
    for work in works:
        with _kept(errors):
            work.wait()
    return errors


@contextlib.contextmanager
def _kept(errors: list[BaseException]) -> Iterator[None]:
    try:
        yield
    except (RuntimeError, KeyboardInterrupt) as error:
        errors.append(error)


class End:
    """How calls are ended by another thread, from now on; a signal, only while one is under way."""

    _AGAIN_S = 0.01  # a signal that comes between two calls is lost

    def __init__(self, plan: Plan, backend: Any) -> None:
        self._plan = plan
        self._is_over = threading.Event()
        self._is_allowed = False
        signal.signal(signal.SIGINT, self._interrupt)
        self._thread = threading.Thread(target=self._end, args=(backend,))
        self._thread.start()

    @contextlib.contextmanager
    def allowed(self) -> Iterator[None]:
        self._is_allowed = True
        try:
            yield
        finally:
            self._is_allowed = False

    def join(self) -> None:
        self._is_over.set()
        self._thread.join()

    def _end(self, backend: Any) -> None:
        if self._plan.manner == "timeout" or self._is_over.wait(self._plan.delay_s):
            return
        if self._plan.manner != "interrupt":
            getattr(backend, self._plan.manner)()
            return
        os.kill(os.getpid(), signal.SIGINT)
        while not self._is_over.wait(self._AGAIN_S):
            os.kill(os.getpid(), signal.SIGINT)

    def _interrupt(self, *_: object) -> None:
        if self._is_allowed:
            raise KeyboardInterrupt
