# SPDX-License-Identifier: Apache-2.0
"""Which kernel GPUs launch for a collective, by which protocol, on how many blocks, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pccl import _core, table

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

    from pccl._core import DeviceGroup, PlannedLaunch

__all__ = ["GpuExplanation", "GpuLaunch", "Gpus"]


@dataclass(frozen=True)
class Gpus:
    """GPUs of one host that reach each other over NVLink, and need not exist.

    Attributes
    ----------
    count
        2 to 8.
    architecture
        Their compute capability without the dot: 90 for sm_90, which is that of H100 and H200.
    """

    count: int
    architecture: int = 90


class GpuLaunch(NamedTuple):
    """One launch of a collective on all GPUs.

    Attributes
    ----------
    kernel
        ``"all_reduce"``, as its file in csrc/kernels is called; ``"copy engines"``; ``"copy"``, of
        a group of one; or ``"program of ring"``, where the group was asked to run that schedule.
    protocol
        ``"ll"``, ``"ll128"``, ``"direct"``, ``"staggered"`` or ``"copy_engine"``, as docs/gpus.md
        explains them.
    blocks
        Of threads, that the kernel has on each GPU.
    threads
        Of each block.
    nbytes
        Of the longest block of memory that it moves.
    why
        What made the choice.
    """

    kernel: str
    protocol: str
    blocks: int
    threads: int
    nbytes: int
    why: str


@dataclass(frozen=True, repr=False)
class GpuExplanation:
    """How GPUs make one collective; shows itself as a table.

    ``polars.DataFrame(explanation.rows)`` and ``pandas.DataFrame(explanation.rows)`` take its rows.

    Attributes
    ----------
    measured_on
        The GPUs whose measured thresholds count: those of the nearest architecture.
    launches
        In their order: one, or the two that a very large all_reduce is made of.
    """

    collective: str
    nbytes: int
    gpus: Gpus
    measured_on: str
    launches: tuple[GpuLaunch, ...]

    @property
    def rows(self) -> list[table.Fields]:
        """A dictionary for each launch: its fields, beside the collective, its bytes and GPUs."""
        call = {"collective": self.collective, "of": self.nbytes, "gpus": self.gpus.count}
        return [call | table.fields_of(launch) for launch in self.launches]

    def __repr__(self) -> str:
        """Return a line for each launch below a heading."""
        lines = self._heading()
        for each in self.launches:
            shape = f"{each.blocks} x {each.threads} threads"
            lines.append(f"* {each.kernel:<16} {each.protocol:<11} {shape:<20} {each.why}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [table.fields_of(launch) for launch in self.launches]
        return table.html_table(rows, caption="\n".join(self._heading()))

    def _heading(self) -> list[str]:
        lines = [
            f"{self.collective} of {self.nbytes} bytes, {self.gpus.count} GPUs of "
            f"sm_{self.gpus.architecture}, by what was measured on {self.measured_on}"
        ]
        if len(self.launches) > 1:
            lines.append("  in two launches, which take less time than one kernel")
        return lines


def explain_torch_gpus(collective: str, nbytes: int, group: ProcessGroup | None) -> GpuExplanation:
    """Return what `pccl.explain` does of the CUDA tensors of a process group."""
    from pccl import torch_backend

    backend = torch_backend.require_backend(group, "explain")
    architecture, launches = backend.explain_gpus(collective, nbytes)
    return GpuExplanation(
        collective=collective,
        nbytes=nbytes,
        gpus=Gpus(backend.size(), architecture),
        measured_on=_core.gpus_measured_for(architecture),
        launches=tuple(GpuLaunch(*launch) for launch in launches),
    )


def explain_gpus(collective: str, nbytes: int, of: Gpus | DeviceGroup) -> GpuExplanation:
    """Return what `pccl.explain` does of GPUs."""
    if isinstance(of, Gpus):
        launches = _core.planned_launches(collective, nbytes, of.count, of.architecture)
        gpus = of
    else:
        launches = of.explain(collective, nbytes)
        gpus = Gpus(of.world_size, of.architecture)
    return GpuExplanation(
        collective=collective,
        nbytes=nbytes,
        gpus=gpus,
        measured_on=_core.gpus_measured_for(gpus.architecture),
        launches=tuple(map(_launch, launches)),
    )


def _launch(planned: PlannedLaunch) -> GpuLaunch:
    plan = planned.plan
    return GpuLaunch(
        planned.kernel, plan.protocol, plan.blocks, plan.threads, planned.nbytes, planned.why
    )
