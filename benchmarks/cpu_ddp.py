# SPDX-License-Identifier: Apache-2.0
"""A step of DistributedDataParallel with 10 million parameters on one host: pccl against Gloo.

    python benchmarks/cpu_ddp.py --ranks 2 --runs 3

Three figures, each the median over steps of the slowest rank:

- step: forward, backward and optimizer, with DDP as it is: all_reduce overlaps the backward pass.
- communication: what the training thread spends in all_reduce of gradient buckets in a step. A
  communication hook times it, as examples/train_ddp.py does, and does not overlap: waiting for a
  slower rank's gradients counts. Both backends are timed by the same hook.
- step of the hook: the step that this communication is a part of.

Both backends train one model each in the same processes, in turns.
"""

import gc
import time
from itertools import pairwise
from statistics import median

import torch
import torch.distributed as dist
from common import report, torch_peers
from common.cells import Cell
from common.launch import Findings, Seat, run_ranks, run_script
from common.timing import Budget, Team
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

WIDTHS = [784, 2048, 2048, 2048, 10]
BATCH = 16
WARM_UP_STEPS = 3


def make_model() -> nn.Module:
    torch.manual_seed(20)
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(WIDTHS):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Trainer:
    """A model that trains over one group.

    Attributes
    ----------
    in_communication
        Seconds in all_reduce since it was last set; stays as it is where buckets overlap.
    """

    def __init__(self, group: dist.ProcessGroup, *, overlaps: bool) -> None:
        self.in_communication = 0.0
        self._group = group
        self._model = DistributedDataParallel(make_model(), process_group=group)
        if not overlaps:
            self._model.register_comm_hook(None, self._average)
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=0.01)
        generator = torch.Generator().manual_seed(group.rank())
        self._images = torch.randn(BATCH, WIDTHS[0], generator=generator)
        self._labels = torch.randint(WIDTHS[-1], (BATCH,), generator=generator)

    def step(self) -> None:
        self._optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self._model(self._images), self._labels)
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()

    def gradients(self) -> Tensor:
        return torch.cat([p.grad.flatten() for p in self._model.parameters() if p.grad is not None])

    # DDP looks for this annotation, which a name in quotes would not be.
    def _average(
        self,
        _state: object,
        bucket: dist.GradBucket,  # type: ignore[name-defined]
    ) -> torch.futures.Future[Tensor]:
        gradients = bucket.buffer().div_(self._group.size())
        start = time.perf_counter()
        dist.all_reduce(gradients, group=self._group)
        self.in_communication += time.perf_counter() - start
        done: torch.futures.Future[Tensor] = torch.futures.Future()
        done.set_result(gradients)
        return done


def time_steps(trainer: Trainer, team: Team, steps: int) -> tuple[list[float], list[float]]:
    """Return the seconds of each step, and those in communication; the slowest rank's of each."""
    whole, inside = [], []
    for _ in range(steps):
        trainer.in_communication = 0.0
        team.barrier()
        start = time.perf_counter()
        trainer.step()
        whole.append(time.perf_counter() - start)
        inside.append(trainer.in_communication)
    return team.slowest(whole), team.slowest(inside)


def take_turns(trainers: dict[str, Trainer], team: Team, budget: Budget) -> dict[str, list[float]]:
    """Return the median microseconds of a step and of its communication, by backend."""
    found: dict[str, list[tuple[float, float]]] = {backend: [] for backend in trainers}
    for turn in range(budget.rounds):
        for backend in list(trainers)[:: -1 if turn % 2 else 1]:
            warm_up, _ = time_steps(trainers[backend], team, WARM_UP_STEPS)
            steps = time_steps(trainers[backend], team, budget.calls(min(warm_up)))
            found[backend].append((median(steps[0]) * 1e6, median(steps[1]) * 1e6))
    return {backend: [*map(median, zip(*turns, strict=True))] for backend, turns in found.items()}


def check(trainers: dict[str, Trainer]) -> int:
    """Compare the averaged gradients of the first step; return how many there are."""
    for trainer in trainers.values():
        trainer.step()
    gradients = {backend: trainer.gradients() for backend, trainer in trainers.items()}
    if not torch.allclose(gradients["pccl"], gradients["gloo"], rtol=1e-4, atol=1e-7):
        raise ArithmeticError("pccl and Gloo average gradients differently")
    return gradients["pccl"].numel()


def worker(seat: Seat) -> Findings:
    groups = torch_peers.open_groups(seat)
    team, budget = torch_peers.make_team(groups), Budget.of(seat.options)
    times, parameters = {}, 0
    for overlaps in (True, False):
        trainers = {name: Trainer(group, overlaps=overlaps) for name, group in groups.items()}
        parameters = check(trainers)
        times[overlaps] = take_turns(trainers, team, budget)
        # DDP's reference cycles hold the groups.
        del trainers
        gc.collect()
    dist.destroy_process_group()
    step = {backend: found[0] for backend, found in times[True].items()}
    blocking_step = {backend: found[0] for backend, found in times[False].items()}
    communication = {backend: found[1] for backend, found in times[False].items()}
    kinds = {"step": step, "communication": communication, "step of the hook": blocking_step}
    return {"cells": [Cell(kind, seat.ranks, 4 * parameters, us) for kind, us in kinds.items()]}


def main() -> int:
    parser = report.make_parser(__doc__, ranks=[2], seconds=2.0)
    options = parser.parse_args()
    findings = report.repeat(options, lambda ranks: run_ranks(options, ranks))
    report.show(findings["cells"], "bytes of gradients")
    report.write("cpu_ddp", options, findings, {})
    return 0


if __name__ == "__main__":
    run_script(main, worker)
