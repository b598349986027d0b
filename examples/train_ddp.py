# SPDX-License-Identifier: Apache-2.0
"""Train a small network on scikit-learn's digits with DistributedDataParallel.

    torchrun --nproc-per-node 2 examples/train_ddp.py --backend pccl
    torchrun --nproc-per-node 2 examples/train_ddp.py --backend gloo

The seeds are fixed, so both backends see the same batches and should give the same losses up to
float rounding. Communication is timed the same way for both: what the training thread spends in
all_reduce of gradient buckets, waiting for slower ranks included. For that, the all_reduce of a
bucket is not overlapped with the rest of the backward pass, as it is when DDP has no hook.
"""

import argparse
import gc
import json
import os
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
import torch.distributed as dist
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

SEED = 20


class CommunicationTimer:
    """A DDP communication hook: averages gradients, as DDP does by itself, and times it."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.calls = 0
        self.bytes = 0

    def average(self, _state: object, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:
        gradients = bucket.buffer().div_(dist.get_world_size())
        start = time.perf_counter()
        dist.all_reduce(gradients)
        self.seconds += time.perf_counter() - start
        self.calls += 1
        self.bytes += gradients.nbytes
        done: torch.futures.Future[Tensor] = torch.futures.Future()
        done.set_result(gradients)
        return done


@dataclass
class Outcome:
    """What a run reports; written as JSON with --json."""

    backend: str
    world_size: int
    torch: str
    losses: list[float] = field(default_factory=list)
    test_accuracy: float = 0.0
    communication_seconds: float = 0.0
    all_reduces: int = 0
    megabytes: float = 0.0
    training_seconds: float = 0.0


def load_data() -> tuple[TensorDataset, TensorDataset]:
    """Split the 1797 images of 8 x 8 pixels into training and test sets, pixels in [0, 1]."""
    digits = load_digits()
    split = train_test_split(
        digits.data / 16, digits.target, test_size=0.2, random_state=SEED, stratify=digits.target
    )
    train_x, test_x, train_y, test_y = (torch.from_numpy(part) for part in split)
    return TensorDataset(train_x.float(), train_y), TensorDataset(test_x.float(), test_y)


def make_model() -> nn.Module:
    torch.manual_seed(SEED)
    return nn.Sequential(
        nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
    )


def train_epoch(
    model: nn.Module, optimizer: torch.optim.Optimizer, batches: DataLoader[tuple[Tensor, ...]]
) -> float:
    """Run one epoch; give the mean loss over all ranks."""
    total = torch.zeros(2)
    for images, labels in batches:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        total += torch.tensor([loss.item() * len(labels), len(labels)])
    dist.all_reduce(total)
    return float(total[0] / total[1])


def measure_accuracy(model: nn.Module, test: TensorDataset) -> float:
    """Let each rank judge its share of the test images; give the accuracy over all of them."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    images, labels = test.tensors
    with torch.no_grad():
        hits = model(images[rank::world_size]).argmax(1) == labels[rank::world_size]
    total = torch.tensor([int(hits.sum()), len(hits)])
    dist.all_reduce(total)
    return float(total[0] / total[1])


def train(options: argparse.Namespace) -> Outcome:
    train_set, test_set = load_data()
    sampler: DistributedSampler[tuple[Tensor, ...]] = DistributedSampler(train_set, seed=SEED)
    batches = DataLoader(train_set, batch_size=options.batch, sampler=sampler)
    model = DistributedDataParallel(make_model())
    timer = CommunicationTimer()
    model.register_comm_hook(None, timer.average)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    outcome = Outcome(dist.get_backend(), dist.get_world_size(), torch.__version__)
    with progress_bar() as bar:
        task = bar.add_task(f"{outcome.backend}: training", total=options.epochs, loss="")
        start = time.perf_counter()
        for epoch in range(options.epochs):
            sampler.set_epoch(epoch)
            outcome.losses.append(train_epoch(model, optimizer, batches))
            bar.update(task, advance=1, loss=f"loss {outcome.losses[-1]:.5f}")
        outcome.training_seconds = time.perf_counter() - start
    outcome.test_accuracy = measure_accuracy(model.module, test_set)
    outcome.communication_seconds = timer.seconds
    outcome.all_reduces, outcome.megabytes = timer.calls, timer.bytes / 1e6
    return outcome


def progress_bar() -> Progress:
    """Make a bar that only rank 0 shows."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[loss]}"),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=Console(), disable=dist.get_rank() != 0)


def report(outcome: Outcome, path: Path | None) -> None:
    print(
        f"{outcome.backend}: {outcome.world_size} ranks, final loss {outcome.losses[-1]:.6f}, "
        f"test accuracy {outcome.test_accuracy:.2%}, communication "
        f"{outcome.communication_seconds:.3f} s of {outcome.training_seconds:.2f} s "
        f"({outcome.all_reduces} all_reduces, {outcome.megabytes:.0f} MB)"
    )
    if path:
        path.write_text(json.dumps(asdict(outcome), indent=1) + "\n")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train on the digits data set with DDP.")
    parser.add_argument("--backend", default="pccl")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=32, help="images a rank and step")
    parser.add_argument("--json", type=Path, help="where rank 0 writes its result")
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    if "WORLD_SIZE" not in os.environ:
        sys.exit("this trains as ranks: pccl run -n 2 examples/train_ddp.py, or by torchrun")
    torch.set_num_threads(1)
    dist.init_process_group(options.backend)
    outcome = train(options)
    if dist.get_rank() == 0:
        report(outcome, options.json)
    # DDP's reference cycles hold the group. A Gloo group that outlives the interpreter may abort
    # the process, when one of its threads lets go of a tensor.
    gc.collect()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
