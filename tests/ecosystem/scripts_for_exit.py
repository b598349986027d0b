# SPDX-License-Identifier: Apache-2.0
"""Programs that leave a job in the ways users do; test_processes.py runs them as torchrun does."""

import os
import sys
import time

import numpy as np
import torch
import torch.distributed as dist


def ends_without_destroying() -> None:
    """Return from main with a live process group."""


def ends_with_work_in_flight() -> None:
    """Leave collectives that nobody waits for."""
    for _ in range(10):
        dist.all_reduce(torch.ones(1000), async_op=True)


class SlowToGo(np.ndarray):
    """Memory whose end is code of the user: it runs on the thread that drops it last."""

    def __del__(self) -> None:
        time.sleep(0.5)


def ends_while_another_thread_drops_memory() -> None:
    """Leave when a collective that nobody waits for has ended, and its tensor is being dropped."""
    if dist.get_rank() == 1:
        time.sleep(0.3)  # so that the operation ends in the background on rank 0
    memory = np.ones(1000, dtype=np.float32).view(SlowToGo)
    dist.all_reduce(torch.from_numpy(memory), async_op=True)
    del memory
    time.sleep(0.5)


def ends_while_a_callback_runs() -> None:
    """Leave what another thread does at the end of a collective to that thread."""
    work = dist.all_reduce(torch.ones(1000), async_op=True)
    work.get_future().then(lambda _: time.sleep(0.5) or print("callback returns"))


def ends_with_an_unwaited_functional_collective() -> None:
    """Leave it to torch's own registry, which outlives the backend."""
    torch.ops._c10d_functional.all_reduce(torch.ones(10), "sum", dist.group.WORLD.group_name)


def ends_with_a_live_thread_of_groups() -> None:
    """Leave several groups, one of them destroyed, one whose last reference is a global."""
    groups = [dist.new_group() for _ in range(3)]
    dist.destroy_process_group(groups[1])
    dist.all_reduce(torch.ones(3), group=groups[2])
    globals()["kept"] = groups[2]


def fails_between_collectives() -> None:
    """Raise on rank 1 while the others wait in a collective."""
    if dist.get_rank() == 1:
        raise ValueError("rank 1 gives up")
    dist.all_reduce(torch.ones(1000))
    dist.all_reduce(torch.ones(1000))


def main() -> None:
    dist.init_process_group(os.environ["PCCL_TEST_BACKEND"])
    dist.all_reduce(torch.ones(10))
    globals()[sys.argv[1]]()
    print("main returns")


if __name__ == "__main__":
    main()
