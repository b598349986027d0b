# SPDX-License-Identifier: Apache-2.0
"""Replicas of a model train under torchft, each a process; one of them may fail on the way.

What happens at step 3: "whole" nothing, "killed" the last replica ends by SIGKILL, "aborted" the
last replica aborts its group, so that all of them repeat the step, "left" the last replica ends
before the step.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
import torchft
from report import report
from torchft.coordination import LighthouseServer

STEPS, EVENT_STEP = 8, 3
LIMIT = timedelta(seconds=30)


def process_group(backend: str) -> torchft.ProcessGroup:
    if backend == "gloo":
        return torchft.ProcessGroupGloo(timeout=LIMIT)
    import pccl.torchft

    return pccl.torchft.ProcessGroupPCCL(timeout=LIMIT)


def replica(backend: str, world_size: int, event: str, rank: int, lighthouse: str) -> None:
    torch.manual_seed(3)
    model = torch.nn.Linear(16, 1)
    sgd = torch.optim.SGD(model.parameters(), lr=0.05)

    def save() -> dict[str, Any]:
        return {"model": model.state_dict(), "sgd": sgd.state_dict()}

    def load(state: dict[str, Any]) -> None:
        model.load_state_dict(state["model"])
        sgd.load_state_dict(state["sgd"])

    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    group = process_group(backend)
    manager = torchft.Manager(
        pg=group,
        load_state_dict=load,
        state_dict=save,
        min_replica_size=1,
        init_sync=False,  # the seed is the same
        use_async_quorum=False,
        timeout=LIMIT,
        quorum_timeout=LIMIT,
        connect_timeout=LIMIT,
        rank=0,
        world_size=1,
        store_addr="127.0.0.1",
        store_port=store.port,
        lighthouse_addr=lighthouse,
        replica_id=f"replica{rank}",
    )
    optimizer = torchft.Optimizer(manager, sgd)
    print("ready", file=sys.stderr, flush=True)
    sys.stdin.readline()
    losses: list[float] = []
    is_last, due = rank == world_size - 1, event
    while manager.current_step() < STEPS:
        step = manager.current_step()
        if is_last and step == EVENT_STEP and due == "left":
            manager.shutdown()
            return
        optimizer.zero_grad()  # begins the quorum
        samples = torch.Generator().manual_seed(100 * step + rank)
        source = torch.randn(8, 16, generator=samples)
        loss = torch.nn.functional.mse_loss(model(source), source.sum(1, keepdim=True))
        loss.backward()
        if is_last and step == EVENT_STEP and due == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if is_last and step == EVENT_STEP and due == "aborted":
            group.abort()
            due = ""
        # Its DistributedDataParallel asserts that no operation fails.
        for parameter in model.parameters():
            manager.allreduce(parameter.grad).wait()
        optimizer.step()
        if manager.current_step() > step:
            losses.append(loss.item())
    weights = model.weight.detach().flatten()
    report(rank, world_size, group.getBackendName(), [*losses, *weights])
    manager.shutdown()
    group.shutdown()


def main(backend: str, world_size: int, event: str) -> None:
    lighthouse = LighthouseServer(
        bind="127.0.0.1:0", min_replicas=1, join_timeout_ms=25000, heartbeat_timeout_ms=10000
    )
    places = [str(rank) for rank in range(world_size)]
    address = lighthouse.address().replace("http://localhost", "http://127.0.0.1")
    replicas = [
        subprocess.Popen(
            [sys.executable, __file__, backend, str(world_size), event, rank, address],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for rank in places
    ]
    for each in replicas:  # all have a manager before the first asks for a quorum
        while b"ready" not in (line := each.stderr.readline()):
            assert line, "a replica ended"
            sys.stderr.buffer.write(line)
    for each in replicas:
        each.stdin.write(b"begin\n")
        each.stdin.flush()
    statuses = []
    for each in replicas:
        _, errors = each.communicate(timeout=180)
        sys.stderr.buffer.write(errors)
        statuses.append(each.returncode)
    lighthouse.shutdown()
    killed = -signal.SIGKILL if event == "killed" else 0
    assert statuses == [*(0 for _ in places[1:]), killed], statuses


if __name__ == "__main__":
    if len(sys.argv) > 4:
        replica(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5])
    else:
        main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
