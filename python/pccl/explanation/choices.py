# SPDX-License-Identifier: Apache-2.0
"""Explanation of a group's choice of algorithm, with the predicted time of each algorithm."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, overload

from pccl._internal.sizes import bytes_of
from pccl.results import table
from pccl.results.named import LinksCountedOn

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

    from pccl._core import Communicator, DeviceGroup, Prediction
    from pccl.explanation.gpus import GpuExplanation, Gpus
    from pccl.topology import Job

__all__ = ["Explanation", "Way", "explain"]

MOST_LINKS_SHOWN = 8
ChosenBy: TypeAlias = Literal["", "request", "capsule", "tuning", "prediction"]
# Reasons to choose an algorithm that is not predicted to be the fastest.
REASONS = {
    "request": "PCCL_ALGORITHM, or the call, requests {chosen}",
    "capsule": "{chosen} was loaded for this size",
    "tuning": "pccl tune measured {chosen} as the fastest",
    "prediction": "the difference is too small to count on",
}
# A rank has only its own lengths in these collectives, so one algorithm serves all lengths.
ONE_CHOICE = ("all_to_all",)
OTHER_GROUPS = (  # beside process groups of torch
    "a pccl.Communicator",
    "a pccl.topology.Job",
    "a pccl.gpu.DeviceGroup",
    "a pccl.explanation.Gpus",
)


class Way(NamedTuple):
    """One algorithm for a collective, with its predicted time.

    Attributes
    ----------
    algorithm
        Name, as in ``PCCL_ALGORITHM``.
    over
        ``"shm"`` for the shared memory of one host, or ``"links"``.
    seconds
        Time that the cost model predicts.
    busiest
        Shared link of a host that takes longest for its bytes, with its GB/s: ``"eth0 of node7,
        1.25 GB/s"``; empty where ranks use shared memory only.
    is_chosen
        Whether the group uses it. The order of precedence is: the user's request; a capsule that
        was loaded for the size; the measurements of ``pccl tune``, for ranks on one host; the
        predicted time. The prediction does not always select the least time. In shared memory the
        group uses the first of ``shm_one_shot``, ``shm_two_shot`` and ``shm_direct`` unless a later
        one saves 15 %. Except in an all_reduce, ``shm_direct``, which moves bytes once, may instead
        take up to 5 % longer. Links must save 15 % of the time of shared memory; among algorithms
        over links within 10 % of the fastest, the group uses the one with the fewest messages.
    chosen_by
        Reason for the choice: ``"request"`` (``PCCL_ALGORITHM``, or the ``algorithm`` of the call),
        ``"capsule"`` (loaded for the size), ``"tuning"`` (measured by ``pccl tune``) or
        ``"prediction"``; empty where ``is_chosen`` is False.
    """

    algorithm: str
    over: str
    seconds: float
    busiest: str
    is_chosen: bool
    chosen_by: ChosenBy = ""


@dataclass(frozen=True, repr=False)
class Explanation:
    """All algorithms of a group for one collective, as a table with a star at the choice.

    ``polars.DataFrame(explanation.rows)`` and ``pandas.DataFrame(explanation.rows)`` accept its
    rows.

    Attributes
    ----------
    links
        Basis of the predictions: the network of each host, with its GB/s and whether that was
        measured, declared or assumed; or the memory of the single host.
    order
        Ranks by position in rings and trees.
    lanes
        Number of concurrent rings.
    costs_from
        Source of the costs of single steps: ``"measured 2026-11-25T21:40:03Z in 30 ms, load 0.1"``,
        or ``"defaults, nothing was measured"``. For a group on several hosts, also the costs of TCP
        between them: ``"...; between hosts TCP takes 24.1 us and 0.85 ns a byte, measured
        2026-11-27T08:00:00Z to node0"``, or ``"...; between hosts TCP as on loopback"``.
    costs
        The costs, each with its own source.
    helpers
        Maximum number of this rank's helper threads by purpose, with the reason: ``"copies in
        shared memory: up to 7 helper threads, as 2 ranks share 16 cores"``; empty for a job that
        need not exist. Shorter calls use none, and a group uses fewer where they gain nothing.
    """

    collective: str
    nbytes: int
    ranks: int
    ways: tuple[Way, ...]
    links: tuple[str, ...]
    order: tuple[int, ...]
    lanes: int
    costs_from: str
    costs: tuple[str, ...]
    helpers: tuple[str, ...] = ()

    @property
    def chosen(self) -> Way:
        """Algorithm that the group uses."""
        return next(way for way in self.ways if way.is_chosen)

    @property
    def rows(self) -> list[table.Fields]:
        """Dictionary for each algorithm: its fields, with the collective, bytes and ranks."""
        call = {"collective": self.collective, "nbytes": self.nbytes, "ranks": self.ranks}
        return [call | table.fields_of(way) for way in self.ways]

    def __repr__(self) -> str:
        """Return a heading and a line for each algorithm."""
        lines = self._heading()
        for way in self.ways:
            mark = "*" if way.is_chosen else " "
            line = f"{mark} {way.algorithm:<20} {way.over:<6} {way.seconds * 1e6:>12.1f} us"
            lines.append(f"{line}  {way.busiest}".rstrip())
        return "\n".join([*lines, *self._remark()])

    def _repr_html_(self) -> str:
        rows = [table.fields_of(way) for way in self.ways]
        caption = "\n".join([*self._heading(), *self._remark()])
        return table.html_table(rows, caption=caption, marked=self.ways.index(self.chosen))

    def _heading(self) -> list[str]:
        lines = [f"{self.collective} of {self.nbytes} bytes, {self.ranks} ranks"]
        kinds = _alike(self.links)
        lines += [f"  counting on {kind}" for kind in kinds[:MOST_LINKS_SHOWN]]
        if len(kinds) > MOST_LINKS_SHOWN:
            lines.append(f"  and {len(kinds) - MOST_LINKS_SHOWN} more kinds of networks")
        lines.append(f"  costs: {self.costs_from}")
        lines += [f"  {limit}" for limit in self.helpers]
        if self.order != tuple(range(self.ranks)):
            lines.append(f"  in the order {_in_runs(self.order)}")
        return lines

    def _remark(self) -> list[str]:
        least = min(self.ways, key=lambda way: way.seconds)
        if self.chosen.seconds <= least.seconds:
            return []
        reason = REASONS[self.chosen.chosen_by or "prediction"].format(chosen=self.chosen.algorithm)
        if self.chosen.chosen_by == "prediction" and self.collective in ONE_CHOICE:
            reason = "one way is taken for all lengths"
        return [f"  ({least.algorithm} is predicted to be faster, but {reason})"]


def _alike(links: tuple[str, ...]) -> list[str]:
    """Return one entry for all hosts with equal links: ``"eth0 of a and 7 like it: 12.5 GB/s"``."""
    hosts: dict[tuple[str, str], list[str]] = {}
    for link in links:
        place, _, speed = link.partition(": ")
        network, _, host = place.rpartition(" of ")
        hosts.setdefault((network, speed), []).append(host)
    return [
        f"{network} of {first}{f' and {len(others)} like it' if others else ''}: {speed}"
        for (network, speed), (first, *others) in hosts.items()
    ]


def _in_runs(ranks: tuple[int, ...]) -> str:
    """Return ranks with consecutive ones as a range: ``"0 3 2 1 4-63"``."""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


@overload
def explain(
    collective: str,
    nbytes: int | str,
    group: Communicator | ProcessGroup | Job | None = None,
    *,
    device: Literal["cpu"] = "cpu",
) -> Explanation: ...
@overload
def explain(collective: str, nbytes: int | str, group: Gpus | DeviceGroup) -> GpuExplanation: ...
@overload
def explain(
    collective: str,
    nbytes: int | str,
    group: ProcessGroup | None = None,
    *,
    device: Literal["cuda"],
) -> GpuExplanation: ...
def explain(
    collective: str,
    nbytes: int | str,
    group: Communicator | ProcessGroup | Job | Gpus | DeviceGroup | None = None,
    *,
    device: str = "cpu",
) -> Explanation | GpuExplanation:
    """Predict the time of each algorithm of a collective, or explain its launch on GPUs.

    Parameters
    ----------
    collective
        ``"all_reduce"``, ``"all_gather"``, ``"reduce_scatter"``, ``"broadcast"``, ``"reduce"``,
        ``"gather"``, ``"scatter"`` or ``"all_to_all"``.
    nbytes
        Bytes of the largest buffer, such as the output of an ``all_gather``: ``65536``, ``"64KB"``.
    group
        A communicator, or a process group of torch with the backend "pccl"; None for torch's
        default group. A ``pccl.topology.Job``, which need not exist (``Job.of``), shows the choice
        of its ranks if each had its own core and only the networks had been measured. A
        ``pccl.gpu.DeviceGroup``, or a ``pccl.explanation.Gpus``, which need not exist, shows the
        kernel, the protocol and the number of blocks.
    device
        ``"cpu"``, or ``"cuda"`` for the CUDA tensors of a process group of torch, which must have
        run a collective on them before.

    Returns
    -------
    Explanation or GpuExplanation
        Table with a star at the choice. GPUs have no predicted times.

    Raises
    ------
    ValueError
        The collective does not exist, ``nbytes`` is not a size, ``group`` has no backend "pccl",
        the ranks of the job are not numbered from 0, the number or architecture of the GPUs is not
        supported, or ``device`` is neither "cpu" nor "cuda" or does not fit the group.
    pccl.UnavailableError
        The process group has not yet run a collective on CUDA tensors.
    pccl.UnsupportedError
        The GPUs have no peer access: CUDA tensors go through host memory.
    """
    from pccl._core import Communicator, DeviceGroup
    from pccl.explanation.gpus import Gpus, explain_gpus, explain_torch_gpus
    from pccl.topology import Job

    if device not in ("cpu", "cuda"):
        raise ValueError(f"device {device!r}: it must be 'cpu' or 'cuda'")
    nbytes = bytes_of(nbytes) if nbytes != 0 else 0
    if device == "cuda":
        if isinstance(group, Communicator | Job | Gpus | DeviceGroup):
            raise ValueError("device='cuda' is for process groups of torch.distributed")
        return explain_torch_gpus(collective, nbytes, group)
    if isinstance(group, Gpus | DeviceGroup):
        return explain_gpus(collective, nbytes, group)
    return _explain_host(collective, nbytes, group)


def _explain_host(
    collective: str, nbytes: int, group: Communicator | ProcessGroup | Job | None
) -> Explanation:
    from pccl._core import Communicator
    from pccl.topology import Job

    if isinstance(group, Job):
        ways, counted_on = group._core.explain(collective, nbytes)
        return _explanation(collective, nbytes, _ways(ways), counted_on)
    if isinstance(group, Communicator):
        ways = group.explain(collective, nbytes)
        return _explanation(collective, nbytes, _ways(ways), group.links_counted_on())
    if group is None and not _has_default_group():
        raise ValueError(
            "explain of which group? give a pccl.Communicator, a process group of torch, or a"
            " pccl.topology.Job, which need not exist"
        )
    from pccl.torch import backend as torch_backend

    backend = torch_backend.require_backend(group, "explain", OTHER_GROUPS)
    of_torch = [Way(*way) for way in backend.explain(collective, nbytes)]
    return _explanation(collective, nbytes, of_torch, LinksCountedOn(*backend.links_counted_on()))


def _has_default_group() -> bool:
    """Return whether torch is imported and has a default group."""
    return "torch.distributed" in sys.modules and sys.modules["torch.distributed"].is_initialized()


def _ways(predictions: list[Prediction]) -> list[Way]:
    return [
        Way(way.algorithm, way.over, way.seconds, way.busiest, way.is_chosen, way.chosen_by)
        for way in predictions
    ]


def _explanation(
    collective: str, nbytes: int, ways: list[Way], counted_on: LinksCountedOn
) -> Explanation:
    return Explanation(
        collective=collective,
        nbytes=nbytes,
        ranks=len(counted_on.order),
        ways=tuple(ways),
        links=tuple(counted_on.links),
        order=tuple(counted_on.order),
        lanes=counted_on.lanes,
        costs_from=counted_on.costs_from,
        costs=tuple(counted_on.costs),
        helpers=tuple(counted_on.helpers),
    )
