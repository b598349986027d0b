# SPDX-License-Identifier: Apache-2.0
"""Lose one of four ranks in the middle of training, and finish with three, in the same processes.

    python examples/train_through_failure.py

One rank is killed. The others get pccl.PeerLostError, which says who; pccl.shrink() makes a group
of those that are left, and training goes on from the parameters of the first of them. No process is
started again, nothing is loaded from a disk, and the store of the rendezvous is not asked.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import pccl

SEED = 20
RANKS = 4
VICTIM = 2


def load_data() -> tuple[Tensor, Tensor]:
    """Return images of [n, 64] pixels in [0, 1] and labels of [n]."""
    digits = load_digits()
    return torch.from_numpy(digits.data).float() / 16, torch.from_numpy(digits.target)


def make_model() -> nn.Module:
    torch.manual_seed(SEED)
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))


class Training:
    """What survives the loss of a rank: the parameters, the optimizer, and the step."""

    def __init__(self) -> None:
        self.images, self.labels = load_data()
        self.model = make_model()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.2, momentum=0.9)
        self.step = 0
        self.losses: list[float] = []

    def join(self) -> None:
        """Take part in the present group: its first rank's parameters and step hold for all."""
        step = torch.tensor([self.step])
        dist.broadcast(step, 0)
        self.step = int(step)
        self.replica = DistributedDataParallel(self.model)

    def run_step(self) -> None:
        rank, ranks = dist.get_rank(), dist.get_world_size()
        torch.manual_seed(SEED + self.step)
        batch = torch.randperm(len(self.labels))[:256][rank::ranks]
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.replica(self.images[batch]), self.labels[batch])
        loss.backward()
        self.optimizer.step()
        mean = loss.detach() / ranks
        dist.all_reduce(mean)
        self.step += 1
        self.losses.append(float(mean))


def train(rank: int, folder: str, options: argparse.Namespace) -> None:
    dist.init_process_group(
        "pccl", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=RANKS
    )
    torch.set_num_threads(1)
    training = Training()
    training.join()
    resumed_s = 0.0
    while training.step < options.steps:
        try:
            if rank == VICTIM and training.step == options.fails_at:
                os.kill(os.getpid(), signal.SIGKILL)
            training.run_step()
        except pccl.PeerLostError as error:
            began = time.monotonic()
            print(f"rank {rank}: lost rank {error.rank} at step {training.step}", flush=True)
            pccl.shrink()
            training.join()
            resumed_s = time.monotonic() - began
    if dist.get_rank() == 0:
        report(training, resumed_s, options)
    dist.destroy_process_group()


def report(training: Training, resumed_s: float, options: argparse.Namespace) -> None:
    first, last = training.losses[0], training.losses[-1]
    print(
        f"finished with {dist.get_world_size()} of {RANKS} ranks: loss {first:.3f} -> {last:.3f};"
        f" training went on {resumed_s * 1e3:.0f} ms after the error"
    )
    if options.json:
        found = {"ranks": dist.get_world_size(), "losses": training.losses, "resumed_s": resumed_s}
        options.json.write_text(json.dumps(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--fails-at", type=int, default=20, help="step at which a rank is killed")
    parser.add_argument("--json", type=Path, help="file for the losses")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        context = mp.get_context("spawn")
        ranks = [context.Process(target=train, args=(r, folder, options)) for r in range(RANKS)]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join()
    survivors = [process.exitcode for r, process in enumerate(ranks) if r != VICTIM]
    raise SystemExit(max(survivors))


if __name__ == "__main__":
    main()
