# SPDX-License-Identifier: Apache-2.0
"""Train with DistributedDataParallel on a network whose phase is switched at every epoch.

    pccl run -n 4 examples/train_phases.py
    PCCL_CLUSTER=cluster.yaml torchrun ... examples/train_phases.py --phases ring reverse
    pccl run -n 4 examples/train_phases.py --stay

Without PCCL_CLUSTER the switch is a fabric in the process of rank 0, so this runs anywhere. With
--stay the phase is switched once: the losses are the same up to float rounding. At the end rank 0
prints what each switch took.
"""

import argparse
import gc
import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import pccl

SEED = 20


def description(ranks: int) -> dict[str, object]:
    """Describe rings one way, and the other."""
    backwards = [[rank, (rank - 1) % ranks] for rank in range(ranks)]
    return {
        "devices": [{}] * ranks,
        "phases": {"ring": {"links": "ring"}, "reverse": {"links": backwards}},
    }


def load_batches(images_a_step: int) -> DataLoader[tuple[torch.Tensor, ...]]:
    digits = load_digits()
    data = TensorDataset(
        torch.from_numpy(digits.data / 16).float(), torch.from_numpy(digits.target)
    )
    sampler: DistributedSampler[tuple[torch.Tensor, ...]] = DistributedSampler(data, seed=SEED)
    return DataLoader(data, batch_size=images_a_step, sampler=sampler)


def train_epoch(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: DataLoader[tuple[torch.Tensor, ...]],
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


def train(options: argparse.Namespace) -> tuple[list[float], list[dict[str, object]]]:
    """Return the loss of each epoch, and what each switch took."""
    torch.manual_seed(SEED)
    batches = load_batches(options.batch)
    switches: list[dict[str, object]] = []

    def switch(phase: str) -> None:
        start = time.perf_counter()
        result = pccl.switch_phase(phase)
        seen = 1e3 * (time.perf_counter() - start)
        switches.append(
            {
                "phase": phase,
                "switches_ms": result.total_ms,
                "dark_ms": result.dark_ms,
                "job_ms": seen,
            }
        )

    switch(options.phases[0])
    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for epoch in range(options.epochs):
        if epoch > 0 and not options.stay:
            switch(options.phases[epoch % len(options.phases)])
        batches.sampler.set_epoch(epoch)  # type: ignore[attr-defined]
        losses.append(train_epoch(model, optimizer, batches))
    return losses, switches


def report(losses: list[float], switches: list[dict[str, object]]) -> None:
    print(f"final loss {losses[-1]:.6f} after {len(losses)} epochs")
    print(f"{'phase':<12}{'switches ms':>12}{'dark ms':>10}{'job ms':>10}")
    for each in switches:
        print(
            f"{each['phase']:<12}{each['switches_ms']:>12.1f}"
            f"{each['dark_ms']:>10.1f}{each['job_ms']:>10.1f}"
        )


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train on a network that is switched.")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=64, help="images a rank and step")
    parser.add_argument("--phases", nargs="+", default=["ring", "reverse"])
    parser.add_argument("--stay", action="store_true", help="in the first phase")
    parser.add_argument(
        "--json", type=Path, default=os.environ.get("RESULT"), help="where rank 0 writes its result"
    )
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    if "WORLD_SIZE" not in os.environ:
        sys.exit("this trains as ranks: pccl run -n 4 examples/train_phases.py, or by torchrun")
    torch.set_num_threads(1)
    given = None
    if "PCCL_CLUSTER" not in os.environ:
        given = pccl.Options(cluster=pccl.Cluster(description(int(os.environ["WORLD_SIZE"]))))
    dist.init_process_group("pccl", pg_options=given)
    losses, switches = train(options)
    if dist.get_rank() == 0:
        report(losses, switches)
        if options.json:
            options.json.write_text(json.dumps({"losses": losses, "switches": switches}) + "\n")
    gc.collect()  # DDP's reference cycles hold the group
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
