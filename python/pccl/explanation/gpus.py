# SPDX-License-Identifier: Apache-2.0
"""Explanation of GPU launches for a collective: kernel, protocol, blocks, and reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pccl import _core
from pccl.results import table

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

    from pccl._core import DeviceGroup, PlannedLaunch

__all__ = ["GpuExplanation", "GpuLaunch", "Gpus"]


@dataclass(frozen=True)
class Gpus:
    """GPUs of one host with peer access over NVLink, which need not exist.

    Attributes
    ----------
    count
        Number of GPUs: 2 to 8.
    architecture
        Compute capability without the dot: 90 for sm_90 (H100 and H200).
    """

    count: int
    architecture: int = 90


class GpuLaunch(NamedTuple):
    """One launch of a collective on all GPUs.

    Attributes
    ----------
    kernel
        ``"all_reduce"``, the name of its file in csrc/kernels; ``"copy engines"``; ``"copy"``, for
        a group of one; ``"pairs"``, for lengths that only pairs of ranks have, through the host; or
        ``"program of ring"``, where that schedule runs.
    protocol
        ``"ll"``, ``"ll128"``, ``"direct"``, ``"staggered"`` or ``"copy_engine"``; see
        docs/reference/gpus.md.
    blocks
        Thread blocks of the kernel on each GPU.
    threads
        Threads per block.
    nbytes
        Bytes of the longest memory block that it moves.
    why
        Reason for the choice.
    """

    kernel: str
    protocol: str
    blocks: int
    threads: int
    nbytes: int
    why: str


@dataclass(frozen=True, repr=False)
class GpuExplanation:
    """Launches of GPUs for one collective, shown as a table.

    ``polars.DataFrame(explanation.rows)`` and ``pandas.DataFrame(explanation.rows)`` accept its
    rows.

    Attributes
    ----------
    measured_on
        GPUs whose measured thresholds apply: those of the nearest architecture.
    launches
        Launches in order: one, or two for a very large all_reduce.
    """

    collective: str
    nbytes: int
    gpus: Gpus
    measured_on: str
    launches: tuple[GpuLaunch, ...]

    @property
    def rows(self) -> list[table.Fields]:
        """Dictionary for each launch: its fields, with the collective, its bytes and GPUs."""
        call = {"collective": self.collective, "of": self.nbytes, "gpus": self.gpus.count}
        return [call | table.fields_of(launch) for launch in self.launches]

    def __repr__(self) -> str:
        """Return a heading and a line for each launch."""
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
    """Return the result of `pccl.explain` for the CUDA tensors of a process group."""
    from pccl.torch import backend as torch_backend

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
    """Return the result of `pccl.explain` for GPUs."""
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
