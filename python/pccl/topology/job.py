# SPDX-License-Identifier: Apache-2.0
"""Hosts of a job and the links between them."""

from __future__ import annotations

import typing
from collections.abc import Iterable
from typing import Any

from pccl import _core
from pccl._internal.arguments import require, shown
from pccl.topology import figure, job_plot
from pccl.topology.host import Host
from pccl.topology.machine import Topology
from pccl.topology.words import counted

if typing.TYPE_CHECKING:
    from collections.abc import Sequence

    import matplotlib.figure
    from torch.distributed import ProcessGroup

    from pccl.topology.machine import Plan
    from pccl.topology.values import HostLink, Pattern, Rail, Warning

__all__ = ["Job", "job"]


class Job:
    """Hosts of a job and the links between them; see ``job``. It is equal on all ranks.

    A notebook displays the job as a picture.
    """

    def __init__(self, core: _core.JobTopology) -> None:
        self._core = core

    @staticmethod
    def of(hosts: Sequence[tuple[str, Sequence[int], Topology]]) -> Job:
        """Return a hypothetical job.

        ``pccl.explain`` predicts the choice of its ranks for a collective, and the cost::

            node = pccl.topology.load("node.xml")
            job = Job.of([(f"node{i}", range(8 * i, 8 * i + 8), node) for i in range(8)])
            print(pccl.explain("all_reduce", 1 << 20, job))

        Parameters
        ----------
        hosts
            Name, ranks and machine of each host.

        Raises
        ------
        InvalidArgumentError
            There is no host, or two hosts have the same rank.
        TypeError
            A host is not such a triple.
        """
        parts = [_part_of(*each) for each in _triples(hosts)]
        return Job(_core.JobTopology.decode(_core.JobTopology.encode(parts)))

    @property
    def hosts(self) -> list[Host]:
        """Hosts, in the order of their first ranks."""
        return [
            Host(
                name=host.name,
                ranks=host.ranks,
                numa=host.numa,
                topology=Topology(host.topology),
                interface=host.interface,
                subnet=host.subnet,
                bandwidth=self._core.network_bandwidth(index),
                provenance=self._core.network_provenance(index),
                is_measured=host.is_measured,
            )
            for index, host in enumerate(self._core.hosts)
        ]

    @property
    def links(self) -> list[HostLink]:
        """Links between each pair of hosts."""
        return self._core.links

    @property
    def rails(self) -> list[Rail]:
        """Rails: ports that exist on every host and share one network."""
        return self._core.rails

    @property
    def warnings(self) -> list[Warning]:
        """Warnings of all hosts, and differences between hosts."""
        return self._core.warnings

    @property
    def order(self) -> list[int]:
        """Ranks in the order of rings and trees, in which neighbours are close to each other."""
        return self._core.order()

    @property
    def lanes(self) -> int:
        """Number of concurrent rings between hosts."""
        return self._core.lanes

    @property
    def digest(self) -> str:
        """Digest of the job: 16 hexadecimal digits, equal for equal jobs."""
        return self._core.digest

    @property
    def is_uniform(self) -> bool:
        """Whether all machines are equal."""
        return self._core.is_uniform

    def host_of(self, rank: int) -> Host:
        """Return the host of a rank.

        Parameters
        ----------
        rank
            Rank in the group.

        Raises
        ------
        IndexError
            The job has no such rank.
        """
        index = self._core.host_of(rank)
        if index < 0:
            raise IndexError(f"rank {rank} is not in the job")
        return self.hosts[index]

    def search(self, pattern: Pattern = "ring") -> list[Plan]:
        """Return a plan for each host: different machines keep their own channels.

        Parameters
        ----------
        pattern
            Pattern, as for ``Topology.search``.

        Raises
        ------
        UnsupportedError
            A machine does not support the pattern; the message states the reason.
        """
        hosts = self.hosts
        return [host.topology.search(pattern, nodes=len(hosts)) for host in hosts]

    def plot(self) -> matplotlib.figure.Figure:
        """Draw hosts, ranks and networks.

        Returns
        -------
        matplotlib.figure.Figure
            Figure that is not displayed yet: a notebook displays it, ``savefig`` writes it.

        Raises
        ------
        ImportError
            matplotlib is missing (``pip install matplotlib``).
        """
        return job_plot.draw_job(self.hosts, self.order, title=repr(self))

    def __repr__(self) -> str:
        ranks = sum(len(host.ranks) for host in self.hosts)
        slowest = min((link.bandwidth for link in self.links), default=None)
        between = "" if slowest is None else f", {slowest:g} GB/s between hosts"
        rails = f", {counted(len(self.rails), 'rail')}" if slowest is not None else ""
        return f"{counted(len(self.hosts), 'host')}, {counted(ranks, 'rank')}{between}{rails}"

    def _repr_svg_(self) -> str | None:
        return figure.svg(self.plot)


def _triples(hosts: Sequence[tuple[str, Sequence[int], Topology]]) -> list[Any]:
    require(hosts, Iterable, "hosts", "a sequence of (name, ranks, machine)")
    triples = list(hosts)
    for each in triples:
        if not (isinstance(each, tuple | list) and len(each) == 3):
            raise TypeError(f"hosts has {shown(each)}: each must be (name, ranks, machine)")
    return triples


def _part_of(
    name: str, ranks: Sequence[int], machine: Topology
) -> tuple[str, list[int], _core.Topology]:
    require(machine, Topology, f"the machine of host {shown(name)}", "a pccl.topology.Topology")
    require(ranks, Iterable, f"ranks of host {shown(name)}", "a sequence of ints")
    return name, list(ranks), machine._core


def job(group: _core.Communicator | ProcessGroup | None = None) -> Job:
    """Return the hosts of a group, their machines, and the links and rails between them.

    The call needs no communication. The ranks of a group on several hosts exchanged the
    descriptions when the group was created; on one host each rank detects the machine itself, at
    the first call.

    Parameters
    ----------
    group
        A communicator, or a process group of torch with the backend "pccl"; None for torch's
        default group.

    Raises
    ------
    ValueError
        ``group`` has no backend "pccl".
    UnavailableError
        The detection of this machine failed.
    """
    if isinstance(group, _core.Communicator):
        return Job(_core.JobTopology.decode(group.describe_job()))
    from pccl.torch import backend as torch_backend

    backend = torch_backend.require_backend(group, "topology.job", ["a pccl.Communicator"])
    return Job(_core.JobTopology.decode(backend.describe_job()))
