# SPDX-License-Identifier: Apache-2.0
"""Process groups of torch on a network whose phases are switched."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import pccl
from support import fake_verbs
from support.launch import new_store, not_on_gloo, run_ranks

pytestmark = not_on_gloo("has no phases")

DESCRIPTION: dict[str, Any] = {
    "devices": [{}] * 4,
    "phases": {
        "ring": {"links": "ring"},
        "both_ways": {"links": "ring", "duplex": True},
        "pairs": {"links": [[0, 2], [1, 3]], "duplex": True},
    },
}
RANKS = 4
EXAMPLE = Path(__file__).parents[2] / "examples/train_phases.py"


def init(rank: int, options: Any) -> None:
    dist.init_process_group(
        "pccl", store=new_store(), rank=rank, world_size=RANKS, pg_options=options
    )


def switch_between_collectives(rank: int, world_size: int) -> list[Any]:
    init(rank, pccl.Options(cluster=pccl.Cluster(DESCRIPTION)))
    assert pccl.phases.current_phase() is None
    x = torch.full((1000,), float(rank))
    sums = [torch.ones(5000) for _ in range(4)]
    works = [dist.all_reduce(ones, async_op=True) for ones in sums]
    pccl.switch_phase("ring")
    # Another thread may have ended an operation and still be completing its work.
    assert all(torch.equal(ones, torch.full_like(ones, RANKS)) for ones in sums)
    for work in works:
        work.wait()
    dist.all_reduce(x)
    others = dist.new_group([0, 2]), dist.new_group([1, 3])
    mine = others[rank % 2]
    with pccl.phase("pairs"):
        y = torch.full((10,), float(rank))
        dist.all_reduce(y, group=mine)
        try:
            dist.all_reduce(x)
        except NotImplementedError as error:
            refused = str(error)
    z = torch.ones(3)
    dist.all_reduce(z)
    ways = {way.over for way in pccl.explain("all_reduce", 4000).ways}
    dist.destroy_process_group()
    return [x[0].item(), y[0].item(), refused, z.tolist(), ways]


@pytest.mark.parametrize("transports", ["shm,tcp", "tcp", "verbs"])
def test_process_groups_follow_phases(tmp_path: Path, transports: str) -> None:
    results = run_ranks(
        switch_between_collectives,
        RANKS,
        backend=None,
        environment=fake_verbs.ranks_over(transports, tmp_path),
    )
    for rank, (x, y, refused, z, ways) in enumerate(results):
        assert x == 6.0
        assert y == [2.0, 4.0][rank % 2]
        assert "phase pairs of the network takes group" in refused
        assert z == [4.0] * 3
        assert ways == {"links"}


def losses(rank: int, switches: bool) -> list[float]:
    torch.manual_seed(20)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    data = torch.Generator().manual_seed(rank)
    seen = []
    for epoch in range(6):
        if switches:
            pccl.switch_phase(["ring", "both_ways"][epoch % 2])
        for _ in range(5):
            images = torch.randn(8, 16, generator=data)
            optimizer.zero_grad()
            loss = model(images).square().mean()
            loss.backward()
            optimizer.step()
        whole = loss.detach().clone()
        dist.all_reduce(whole)
        seen.append(whole.item())
    return seen


def train(rank: int, world_size: int) -> list[list[float]]:
    init(rank, pccl.Options(cluster=pccl.Cluster(DESCRIPTION)))
    pccl.switch_phase("ring")
    result = [losses(rank, switches=False), losses(rank, switches=True)]
    dist.destroy_process_group()
    return result


def test_training_does_not_notice() -> None:
    for stayed, switched in run_ranks(train, RANKS, backend=None):
        torch.testing.assert_close(stayed, switched, rtol=1e-5, atol=1e-6)


def find_cluster_in_environment(rank: int, world_size: int) -> str | None:
    init(rank, None)
    pccl.switch_phase("ring")
    phase = pccl.phases.current_phase()
    dist.destroy_process_group()
    return phase


def test_the_environment_names_a_cluster(tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(DESCRIPTION))
    found = run_ranks(
        find_cluster_in_environment, RANKS, backend=None, environment={"PCCL_CLUSTER": str(file)}
    )
    assert found == ["ring"] * RANKS


def example(folder: Path, *arguments: str) -> dict[str, Any]:
    """Run examples/train_phases.py on four ranks, and return what it wrote."""
    result = folder / "result.json"
    subprocess.run(
        [
            *(sys.executable, "-m", "pccl", "run", "-n", str(RANKS), str(EXAMPLE)),
            *("--epochs", "4", "--json", str(result), *arguments),
        ],
        check=True,
        timeout=120,
    )
    found: dict[str, Any] = json.loads(result.read_text())
    return found


def test_the_example_trains_as_without_switching(tmp_path: Path) -> None:
    switched, stayed = example(tmp_path), example(tmp_path, "--stay")
    phases = [each["phase"] for each in switched["switches"]]
    assert phases == ["ring", "reverse", "ring", "reverse"]
    assert len(stayed["switches"]) == 1
    assert switched["losses"][-1] < switched["losses"][0] / 2
    torch.testing.assert_close(switched["losses"], stayed["losses"], rtol=1e-4, atol=1e-5)
