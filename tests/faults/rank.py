# SPDX-License-Identifier: Apache-2.0
"""What one rank of a cell does, in a process of its own."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import torch
import torch.distributed as dist

from faults import damage, network
from faults.cells import GIVES_UP, LONGEST_LOOP, Cell
from faults.giving_up import Caller, check_algorithm, give_up
from faults.operations import operation_of
from support.background import threads_of_pccl
from support.launch import die_with_parent

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection


@dataclass(frozen=True)
class Seat:
    """A rank's place in a cell."""

    cell: str
    rank: int
    store_port: int
    environment: dict[str, str]
    namespace: str | None
    stacks: str


@dataclass(frozen=True)
class Fault:
    """What a victim says of itself."""

    at_s: float  # time.monotonic()
    blamed: int | None = None  # where its own call ended in an error that names a rank


@dataclass(frozen=True)
class Outcome:
    """What a survivor saw; or a victim, where that should not be."""

    error: str  # class in pccl.errors; "" when all went well
    rank: int | None
    message: str
    is_torch_error: bool  # also what programs for torch's backends catch
    at_s: float  # time.monotonic() of the error
    left_behind: tuple[str, ...]


def run(seat: Seat, pipe: Connection) -> None:
    die_with_parent()
    stacks = Path(seat.stacks).open("w")  # noqa: SIM115 (open until the process ends)
    faulthandler.register(signal.SIGUSR1, stacks)
    faulthandler.enable(stacks)
    os.environ.update(seat.environment)
    torch.set_num_threads(1)
    cell = Cell.parse(seat.cell)
    store = dist.TCPStore("127.0.0.1", seat.store_port, is_master=False)
    if seat.namespace:
        network.enter(seat.namespace)
    damage.spare_open_sockets()
    _meet(store, cell.ranks, seat.rank)
    if seat.rank != cell.victim:
        pipe.send(_survive(cell, seat.rank, store))
    elif cell.fault == GIVES_UP:
        _give_up(cell, store, pipe)
    else:
        _fail(cell, store, pipe)


def _meet(store: dist.Store, ranks: int, rank: int) -> None:
    import pccl

    _ = pccl.Options  # loads the libraries, so that they are not part of any time
    pccl._core.net_plugin_report()  # starts the plug-in of the cell, which stays
    store.set(f"ready/{rank}", "")
    store.wait([f"ready/{other}" for other in range(ranks)])


def _init(cell: Cell, store: dist.Store, rank: int) -> None:
    dist.init_process_group(
        "pccl",
        store=store,
        rank=rank,
        world_size=cell.ranks,
        timeout=timedelta(seconds=cell.timeout_s),
    )


def _survive(cell: Cell, rank: int, store: dist.Store) -> Outcome:
    before = _belongings()
    outcome = _observe(cell, rank, store)
    if dist.is_initialized():
        dist.destroy_process_group()
    deadline = time.monotonic() + 1  # a thread that was joined shows for a moment
    while (left := _belongings() - before) and time.monotonic() < deadline:
        time.sleep(0.01)
    return Outcome(**{**vars(outcome), "left_behind": tuple(sorted(left))})


def _observe(cell: Cell, rank: int, store: dist.Store) -> Outcome:
    try:
        _init(cell, store, rank)
        if cell.fault == GIVES_UP:
            check_algorithm(cell)
        operate = operation_of(cell, rank, store)
        for _ in range(LONGEST_LOOP):
            operate()
    except Exception as error:
        return _outcome_of(error)
    return Outcome("", None, "no error", False, time.monotonic(), ())


def _outcome_of(error: Exception) -> Outcome:
    at = time.monotonic()
    import pccl

    name = type(error).__name__ if isinstance(error, pccl.Error) else repr(type(error))
    is_torch_error = isinstance(error, dist.DistBackendError)
    blamed = getattr(error, "rank", None)
    return Outcome(name, blamed, str(error), is_torch_error, at, ())


def _belongings() -> set[str]:
    """Descriptors, threads and shared memory that the library could leave behind."""
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            target = str(entry.readlink())
        except OSError:
            continue
        if target.startswith(("socket:", "anon_inode:", "/memfd:")):
            found.add(f"descriptor {entry.name} ({target.split(':')[0]})")
    found |= {f"thread {name}" for name in threads_of_pccl()}
    maps = Path("/proc/self/maps").read_text().splitlines()
    found |= {line.split()[-2] for line in maps if "/memfd:pccl" in line}
    return found


def _give_up(cell: Cell, store: dist.Store, pipe: Connection) -> None:
    """Take part, and give up a call when it is time. Alone the group is lost."""
    try:
        _init(cell, store, cell.victim)
        caller = Caller(cell, cell.victim, store)
        for _ in range(cell.iteration):
            caller.operate()
        blamed = give_up(caller, store)
        pipe.send(Fault(time.monotonic(), blamed))
    except Exception as error:
        pipe.send(_outcome_of(error))
    time.sleep(3600)


def _fail(cell: Cell, store: dist.Store, pipe: Connection) -> None:
    """Take part, and fail when it is time."""

    def fault() -> None:
        pipe.send(Fault(time.monotonic()))
        if cell.fault == "link_down":
            pipe.recv()  # the parent pulls it
        elif cell.damages_the_store:
            own_store.is_harmless = False
        else:
            damage.DAMAGE[cell.fault](cell)

    def fault_now_or_soon() -> None:
        if cell.delay_s is None:
            fault()
        else:
            threading.Timer(cell.delay_s, fault).start()

    own_store = VictimsStore(store, cell, fault)
    fails_while_joining = cell.operation == "init" and cell.fault != "link_down"
    try:
        if fails_while_joining and cell.step in (None, "absent"):
            fault()
        _init(cell, own_store if cell.damages_the_store or cell.step else store, cell.victim)
        operate = operation_of(cell, cell.victim, store)
        for _ in range(cell.iteration):
            operate()
        if not fails_while_joining:
            fault_now_or_soon()
        for _ in range(LONGEST_LOOP):
            operate()
    except Exception as error:  # what its own fault does to it is its own affair
        if os.environ.get("PCCL_TEST_VERBOSE"):
            print(f"victim of {cell}: {error}", file=sys.stderr)
    time.sleep(3600)


class VictimsStore(dist.Store):
    """Publishes a damaged endpoint and roster, once told to; or fails once something is said."""

    _LAST_WORDS: ClassVar = {"announced": "pccl/presence", "present": "/endpoint/"}

    def __init__(self, store: dist.Store, cell: Cell, fault: Callable[[], None]) -> None:
        super().__init__()
        self._store = store
        self._cell = cell
        self._fault = fault
        self.is_harmless = True

    def set(self, key: str, value: bytes) -> None:
        is_ours = "/endpoint/" in key or "/roster/" in key
        if is_ours and not self.is_harmless:
            damaged = os.urandom(len(value))
            value = damaged if self._cell.fault == "garbage" else value[: len(value) // 2]
        self._store.set(key, value)
        if self._cell.step and self._LAST_WORDS[self._cell.step] in key:
            self._fault()

    def get(self, key: str) -> bytes:
        return self._store.get(key)

    def check(self, keys: list[str]) -> bool:
        return self._store.check(keys)

    def wait(self, keys: list[str], *timeout: timedelta) -> None:
        self._store.wait(keys, *timeout)

    def add(self, key: str, value: int) -> int:
        return self._store.add(key, value)

    def delete_key(self, key: str) -> bool:
        return self._store.delete_key(key)
