# SPDX-License-Identifier: Apache-2.0
"""Groups of one name that come about again and again at one store, also after a kill."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.launch import new_store, not_on_gloo, run_ranks, warm_processes
from support.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

pytestmark = [pytest.mark.multiproc, not_on_gloo("does not come up at every store that was used")]

TURNS = 5
KILLS = 6  # rounds of a test; each has an attempt that is killed, and one that must come up
LIMIT_S = 60.0


class FolderStore:
    """The least that a store in Python may have: entries are files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, key: str) -> Path:
        return self.folder / key.replace("/", "%")

    def set(self, key: str, value: bytes) -> None:
        draft = self.folder / f"{key.replace('/', '%')}.{os.getpid()}"
        draft.write_bytes(value)
        draft.rename(self.path(key))

    def get(self, key: str) -> bytes | None:
        with contextlib.suppress(FileNotFoundError):
            return self.path(key).read_bytes()
        return None

    def add(self, key: str, amount: int) -> int:
        raise NotImplementedError


def torch_stores(folder: str) -> dict[str, Any]:
    """Give stores of torch, all ranks the same, by kind."""
    import torch.distributed as dist

    stores: Any = dist  # which hides them from type checkers
    tcp: Any = new_store()

    class InPython(dist.Store):
        """With what a store must have, and nothing more."""

        def set(self, key: str, value: bytes) -> None:
            tcp.set(f"python/{key}", value)

        def get(self, key: str) -> bytes:
            return bytes(tcp.get(f"python/{key}"))

        def add(self, key: str, amount: int) -> int:
            return int(tcp.add(f"python/{key}", amount))

        def wait(self, keys: list[str], *timeout: timedelta) -> None:
            tcp.wait([f"python/{key}" for key in keys], *timeout)

        def check(self, keys: list[str]) -> bool:
            return bool(tcp.check([f"python/{key}" for key in keys]))

    return {
        "tcp": tcp,
        "prefix": stores.PrefixStore("a", stores.PrefixStore("b", tcp)),
        "file": stores.FileStore(f"{folder}/store", -1),
        "python": InPython(),
    }


def init_and_destroy(rank: int, size: int, folder: str) -> None:
    import torch
    import torch.distributed as dist

    for store in torch_stores(folder).values():
        for turn in range(TURNS):
            if turn == 2 and rank == 0:
                store.set("default_pg/0//cpu//pccl/incarnation", b"a stranger's")
            dist.init_process_group("pccl", store=store, rank=rank, world_size=size)
            x = torch.full((4,), rank + 1.0)
            dist.all_reduce(x)
            assert x[0] == size * (size + 1) / 2
            pair = dist.new_group([0, 1])
            if rank < 2:
                dist.all_reduce(x, group=pair)
            dist.destroy_process_group()


def test_torch_groups_come_about_again(tmp_path: Path) -> None:
    run_ranks(init_and_destroy, 3, arguments=(str(tmp_path),), backend=None)


def use_group(rank: int, size: int, where: Any, steps: int) -> None:
    import pccl

    with pccl.Communicator(rank=rank, world_size=size, rendezvous=where, timeout=LIMIT_S) as comm:
        for _ in range(steps):
            x = np.full(4, rank + 1.0)
            comm.all_reduce(x)
            assert x[0] == size * (size + 1) / 2


def where_of(kind: str, folder: Path, port: int) -> str | FolderStore:
    if kind == "python":
        return FolderStore(folder)
    return {"tcp": f"tcp://127.0.0.1:{port}", "file": f"file://{folder}/store", "env": "env://"}[
        kind
    ]


def come_again(rank: int, size: int, folder: str, port: int) -> None:
    os.environ.update(
        RANK=str(rank), WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)
    )
    for kind in ("tcp", "file", "python", "env"):  # the last one keeps the port
        for _ in range(TURNS):
            use_group(rank, size, where_of(kind, Path(folder), port), 1)


def test_communicators_come_about_again(tmp_path: Path) -> None:
    """And no rank waits for another between two of them."""
    run_ranks(come_again, 3, arguments=(str(tmp_path), free_port()), backend=None)


class Attempt:
    """Ranks that are processes, of one attempt at a job."""

    def __init__(self, ranks: int, body: Callable[..., None], *arguments: object) -> None:
        context = warm_processes()
        self.ranks = [
            context.Process(target=body, args=(rank, ranks, *arguments)) for rank in range(ranks)
        ]
        for process in self.ranks:
            process.start()

    def kill(self, process: Any) -> None:
        process.kill()
        process.join()

    def end_by_kill(self, chance: random.Random) -> None:
        """Kill one at any time, the others some time after."""
        time.sleep(chance.uniform(0.0, 0.15))
        self.kill(chance.choice(self.ranks))
        time.sleep(chance.uniform(0.0, 0.05))
        for process in self.ranks:
            self.kill(process)

    def codes(self) -> list[int | None]:
        deadline = time.monotonic() + LIMIT_S
        for process in self.ranks:
            process.join(max(0.0, deadline - time.monotonic()))
        codes = [process.exitcode for process in self.ranks]
        for process in self.ranks:
            self.kill(process)
        return codes


@pytest.mark.parametrize("kind", ["tcp", "file", "python"])
def test_a_job_comes_up_after_a_rank_was_killed(kind: str, tmp_path: Path) -> None:
    """Wherever in joining, or behind it, that was; at the same store each time."""
    where = where_of(kind, tmp_path, free_port())
    chance = random.Random(7)
    for turn in range(KILLS):
        Attempt(3, use_group, where, 1_000_000).end_by_kill(chance)
        assert Attempt(3, use_group, where, 3).codes() == [0, 0, 0], turn


WORKER = """
import os, signal
import torch, torch.distributed as dist
import numpy as np, pccl
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
dist.init_process_group("pccl")
comm = pccl.Communicator(rendezvous="env://")
for step in range(20):
    x = torch.ones(4)
    dist.all_reduce(x)
    comm.all_reduce(x.numpy())
    if attempt == 0 and dist.get_rank() == 1 and step == 10:
        os.kill(os.getpid(), signal.SIGKILL)
print(f"attempt {attempt} rank {dist.get_rank()} has {x[0].item()}", flush=True)
"""


def test_torchrun_starts_a_job_again(tmp_path: Path) -> None:
    """Its agent hands the store of the first attempt, and all that is in it, to the second."""
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--max-restarts", "1"),
            *("--nproc-per-node", "2", "--monitor-interval", "0.1", script),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    for rank in range(2):
        assert f"attempt 1 rank {rank} has 4.0" in done.stdout
    assert f"exitcode: -{signal.SIGKILL:d}" in done.stderr, "nobody was killed"


def announce_and_wait(rank: int, size: int, where: Any) -> None:
    with contextlib.suppress(Exception):
        use_group(rank, size, where, 1)


def test_ranks_meet_though_one_of_the_attempt_before_was_still_there(tmp_path: Path) -> None:
    """It takes the place of a rank of the new attempt, and is killed then."""
    where = FolderStore(tmp_path)
    context = warm_processes()
    old = context.Process(target=announce_and_wait, args=(1, 3, where))
    old.start()
    await_entry(tmp_path, "presence%1")
    new = Attempt(0, use_group)
    for rank in (0, 1, 2):
        if rank == 2:
            # The old rank 1 has answered, and the new one waits for its turn.
            await_entry(tmp_path, "endpoint%1")
            time.sleep(0.5)
            old.kill()
            old.join()
        process = context.Process(target=use_group, args=(rank, 3, where, 3))
        process.start()
        new.ranks.append(process)
        if rank == 0:
            await_entry(tmp_path, "endpoint%1")
    assert new.codes() == [0, 0, 0]


def await_entry(folder: Path, end: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not any(path.name.endswith(end) for path in folder.iterdir()):
        assert time.monotonic() < deadline, end
        time.sleep(0.01)


def refuse_own_setting(rank: int, size: int, folder: str, odd: int, key: str, value: str) -> None:
    if rank == odd:
        os.environ[key] = value  # before the first use of pccl, which reads it once
    import pccl

    # An announcement from before a rank's start would be of an earlier attempt.
    (Path(folder) / f"started-{rank}").touch()
    while len(list(Path(folder).glob("started-*"))) < size:
        time.sleep(0.01)
    with pytest.raises(pccl.Error) as caught:
        pccl.Communicator(
            rank=rank, world_size=size, rendezvous=f"file://{folder}/store", timeout=LIMIT_S
        )
    if rank == odd:
        assert isinstance(caught.value, pccl.InvalidArgumentError)
    else:
        assert isinstance(caught.value, pccl.PeerLostError)
        assert f"rank {odd} cannot join: " in str(caught.value)
    assert key in str(caught.value)


@pytest.mark.parametrize(
    ("odd", "key", "value"),
    [
        (0, "PCCL_COSTS_FILE", "."),  # rank 0 alone uses the file
        (0, "PCCL_TRANSPORTS", "carrier_pigeon"),
        (1, "PCCL_TRANSPORTS", "carrier_pigeon"),
    ],
)
def test_the_others_learn_which_rank_refuses_its_setting(
    tmp_path: Path, odd: int, key: str, value: str
) -> None:
    run_ranks(refuse_own_setting, 3, arguments=(str(tmp_path), odd, key, value), backend=None)
