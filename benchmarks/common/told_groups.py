# SPDX-License-Identifier: Apache-2.0
"""Groups of the same ranks that are told different algorithms: of numpy's arrays, or torch's.

pccl reads the environment when it is imported, so each worker sets it first, and imports here.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pccl.bench.cases import make_call

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pccl.bench.cases import Case

TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Seat:
    """One rank of them, and where all ranks meet; ``transports`` is empty for all of them."""

    rank: int
    ranks: int
    transports: str
    rendezvous: str


def join(seat: Seat, name: str, algorithm: str = "") -> Any:
    """Return a communicator, whose ranks give the same name."""
    os.environ["PCCL_TUNING_FILE"] = os.devnull  # what this machine was tuned to does not count
    import pccl

    return pccl.Communicator(
        rank=seat.rank,
        world_size=seat.ranks,
        rendezvous=f"{seat.rendezvous}-{name}",
        timeout=TIMEOUT_S,
        transports=seat.transports,
        algorithm=algorithm,
    )


class NumpyGroups:
    """A communicator for each algorithm that is told: ``{"ring": "all_reduce=ring"}``."""

    def __init__(self, seat: Seat, reported: Mapping[str, str]) -> None:
        self._comms = {name: join(seat, f"told-{name}", reported[name]) for name in reported}

    def call(self, name: str, case: Case, x: Any, out: Any) -> Callable[[], object]:
        """Return a function that runs ``case`` once, on numpy arrays."""
        return make_call(self._comms[name], case, x, out)

    def close(self) -> None:
        """End the communicators, once all ranks are through with them."""
        for comm in self._comms.values():
            comm.shutdown()


class TorchGroups:
    """The same as process groups of torch."""

    def __init__(self, seat: Seat, reported: Mapping[str, str]) -> None:
        import torch
        import torch.distributed as dist

        import pccl

        torch.set_num_threads(1)
        if not dist.is_initialized():
            dist.init_process_group(
                "pccl",
                init_method=f"{seat.rendezvous}-torch",
                rank=seat.rank,
                world_size=seat.ranks,
                timeout=timedelta(seconds=TIMEOUT_S),
            )
        self._groups = {
            name: dist.new_group(
                backend="pccl",
                pg_options=pccl.Options(transports=seat.transports, algorithm=reported[name]),
            )
            for name in reported
        }

    def call(self, name: str, case: Case, x: Any, out: Any) -> Callable[[], object]:
        """Return a function that runs ``case`` once, on tensors that lie where the arrays do."""
        import torch
        import torch.distributed as dist

        from . import torch_peers

        group = self._groups[name]
        op = dist.ReduceOp.MAX if case.op == "max" else dist.ReduceOp.SUM
        into, of = torch.from_numpy(out), torch.from_numpy(x)
        if case.collective == "all_reduce":
            return lambda: dist.all_reduce(into, op, group=group)
        return torch_peers.make_call(group, case, of, into)

    def close(self) -> None:
        """End the process groups but torch's own, once all ranks are through with them."""
        import torch.distributed as dist

        for group in self._groups.values():
            dist.destroy_process_group(group)


Groups = NumpyGroups | TorchGroups
GROUPS: dict[str, type[Groups]] = {"numpy": NumpyGroups, "torch": TorchGroups}
