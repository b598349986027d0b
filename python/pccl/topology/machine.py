# SPDX-License-Identifier: Apache-2.0
"""Topology of a machine, and plans of channels for it."""

from __future__ import annotations

import math
import typing
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import TypeAlias

from pccl import _core
from pccl._internal import given_file
from pccl._internal.arguments import require
from pccl._internal.whole_file import write_whole
from pccl.errors import InvalidArgumentError
from pccl.topology import figure, plan_plot, plot
from pccl.topology.values import Link
from pccl.topology.words import counted

if typing.TYPE_CHECKING:
    import matplotlib.figure
    import networkx

    from pccl.topology.values import Channel, Fact, Node, Path, Pattern, Warning

__all__ = [
    "Plan",
    "Topology",
    "detect",
    "example",
    "examples",
    "load",
    "parse",
]

_FileName: TypeAlias = str | FilePath

_MOST_XML = 8 << 20
_MACHINES = FilePath(__file__).with_name("machines")


class Topology:
    """Immutable topology of a machine; see ``detect`` and ``load``.

    Equal topologies describe equal machines; the sources of their facts may differ. A notebook
    displays a topology as a picture.
    """

    def __init__(self, core: _core.Topology) -> None:
        self._core = core

    @property
    def warnings(self) -> list[Warning]:
        """Warnings about implausible data, with the values that are assumed instead."""
        return self._core.warnings

    @property
    def facts(self) -> list[Fact]:
        """All known attributes, with their source: measured, declared or assumed."""
        return self._core.facts

    @property
    def nodes(self) -> list[Node]:
        """GPUs (gpu0, ...), ports of NICs (net0, ...), CPUs, PCIe switches, NICs and NVSwitches."""
        return self._core.nodes

    @property
    def links(self) -> list[Link]:
        """Links by their index in ``Path.charges``; a link and its reverse are adjacent."""
        return [Link(*link) for link in self._core.links]

    @property
    def gpus(self) -> list[Node]:
        """GPUs, in the numbering of plans."""
        return self._of_type("gpu")

    @property
    def nets(self) -> list[Node]:
        """Ports of NICs, in the numbering of plans."""
        return self._of_type("net")

    @property
    def digest(self) -> str:
        """Digest of the topology: 16 hexadecimal digits, equal for equal machines."""
        return self._core.digest

    def _of_type(self, kind: str) -> list[Node]:
        found = [node for node in self.nodes if node.type == kind]
        return sorted(found, key=lambda node: int(node.name.removeprefix(kind)))

    def path(self, source: str, target: str) -> Path:
        """Return the best path between two GPUs, ports or CPUs.

        Parameters
        ----------
        source, target
            Names (``"gpu0"``, ``"net3"``) or labels (``"0000:0d:00.0"``, ``"mlx5_0"``).

        Raises
        ------
        InvalidArgumentError
            No device or several devices match.
        """
        return self._core.path(source, target)

    def search(self, pattern: Pattern = "ring", *, nodes: int = 1, max_channels: int = 32) -> Plan:
        """Return the channels with the most bandwidth.

        Parameters
        ----------
        pattern
            ``"ring"``, ``"tree"`` or ``"heads"`` (reduction and multicast in NVSwitches).
        nodes
            Number of equal machines in the job: 1 to 2**20.
        max_channels
            Maximum number of channels: 1 to 64.

        Raises
        ------
        UnsupportedError
            The machine does not support the pattern; the message states the reason.
        """
        return Plan(self._core.search(pattern, nodes=nodes, max_channels=max_channels), self)

    def load_plans(self, path: _FileName) -> list[Plan]:
        """Read plans from NCCL graph XML.

        Parameters
        ----------
        path
            Path of the file, at most 8 MiB.

        Raises
        ------
        InvalidArgumentError
            The file is not such XML, or describes another machine; the message names the position.
        UnavailableError
            The path is not a regular file.
        OSError
            The file cannot be read.
        """
        text = given_file.text_of(path, _MOST_XML)
        return [Plan(plan, self) for plan in self._core.read_plans(text, str(path))]

    def to_xml(self, path: _FileName | None = None) -> str:
        """Return NCCL topology XML with assumptions and repairs, and write it to ``path``.

        Parameters
        ----------
        path
            Path of the file to write; None to write no file.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        return _written(self._core.xml(), path)

    def to_networkx(self) -> networkx.DiGraph:
        """Return the graph: nodes by name, links with ``type`` and ``bandwidth`` (GB/s)."""
        return plot.network(self.nodes, self.links)

    def plot(self) -> matplotlib.figure.Figure:
        """Draw the machine.

        Returns
        -------
        matplotlib.figure.Figure
            Figure that is not displayed yet: a notebook displays it, ``savefig`` writes it.

        Raises
        ------
        ImportError
            matplotlib or networkx is missing (``pip install matplotlib networkx``).
        """
        return plot.draw_machine(self.nodes, self.links, title=repr(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Topology) and self._core == other._core

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return ", ".join(
            (
                counted(len(self.gpus), "GPU"),
                counted(len(self.nets), "NIC port"),
                counted(len(self._of_type("cpu")), "CPU"),
                counted(len(self.warnings), "warning"),
            )
        )

    def _repr_svg_(self) -> str | None:
        return figure.svg(self.plot)


class Plan:
    """Channels for a machine; the result of ``Topology.search``.

    A notebook displays a plan as a picture.
    """

    def __init__(self, core: _core.TopologyPlan, topology: Topology) -> None:
        self._core = core
        self.topology = topology

    @property
    def pattern(self) -> str:
        """``"ring"``, ``"tree"`` or ``"heads"``."""
        return self._core.pattern

    @property
    def nodes(self) -> int:
        """Number of machines in the job."""
        return self._core.nodes

    @property
    def channels(self) -> list[Channel]:
        """Channels: ``bandwidth`` (GB/s), ``order`` (of GPUs), ``nets`` (port in, port out)."""
        return self._core.channels

    @property
    def type_intra(self) -> str:
        """Worst type of path between GPUs."""
        return self._core.type_intra

    @property
    def type_inter(self) -> str:
        """Worst type of path between GPUs and NICs; LOC for one node."""
        return self._core.type_inter

    @property
    def bandwidth(self) -> float:
        """Total bandwidth of all channels in GB/s."""
        return self._core.bandwidth

    @property
    def bound(self) -> float:
        """Upper bound in GB/s for plans with these path types; infinite for plans from a file."""
        return self._core.bound

    @property
    def optimal(self) -> bool:
        """Whether ``bandwidth`` reaches ``bound``."""
        return self._core.optimal

    @property
    def seconds(self) -> float:
        """Duration of the search in seconds."""
        return self._core.seconds

    def to_xml(self, path: _FileName | None = None) -> str:
        """Return NCCL graph XML, and write it to ``path``.

        Parameters
        ----------
        path
            Path of the file to write; None to write no file.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        return _written(self._core.xml(), path)

    def plot(self) -> matplotlib.figure.Figure:
        """Draw the channels.

        Returns
        -------
        matplotlib.figure.Figure
            Figure that is not displayed yet: a notebook displays it, ``savefig`` writes it.

        Raises
        ------
        ImportError
            matplotlib is missing (``pip install matplotlib``).
        """
        return plan_plot.draw_plan(
            self.channels,
            gpus=len(self.topology.gpus),
            pattern=self.pattern,
            nodes=self.nodes,
            title=repr(self),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self._core == other._core

    def __hash__(self) -> int:
        return hash((self.pattern, self.nodes, self.type_intra, self.type_inter))

    def __repr__(self) -> str:
        types = self.type_intra if self.nodes == 1 else f"{self.type_intra} / {self.type_inter}"
        place = "one node" if self.nodes == 1 else f"{self.nodes} nodes"
        proof = "optimal" if self.optimal else f"at most {self.bound:g} GB/s"
        if math.isinf(self.bound):
            proof = "from a file"
        return (
            f"{self.pattern} for {place}: {counted(len(self.channels), 'channel')}, "
            f"{self.bandwidth:g} GB/s, {types}, {proof}"
        )

    def _repr_svg_(self) -> str | None:
        return figure.svg(self.plot)


def _written(text: str, path: _FileName | None) -> str:
    if path is not None:
        write_whole(FilePath(path), text)
    return text


def _assumed(assume: Mapping[str, int] | None) -> dict[str, int]:
    if assume is None:
        return {}
    require(assume, Mapping, "assume", "a mapping of names to ints, or None")
    return dict(assume)


def detect(*, assume: Mapping[str, int] | None = None, strict: bool = False) -> Topology:
    """Detect the topology of this machine.

    The file in ``PCCL_TOPO_FILE`` takes precedence over detected data. The result is written to
    ``PCCL_TOPO_DUMP_FILE``.

    Parameters
    ----------
    assume
        Values for undetected attributes; see ``load``.
    strict
        Raise InvalidArgumentError if there are warnings.

    Returns
    -------
    Topology
        Detected topology; its warnings name the data that could not be detected.

    Raises
    ------
    InvalidArgumentError
        ``assume`` or PCCL_TOPO_FILE is invalid, or ``strict`` is set and there are warnings.
    """
    return Topology(_core.Topology.detect(assume=_assumed(assume), strict=strict))


def load(
    path: _FileName, *, assume: Mapping[str, int] | None = None, strict: bool = False
) -> Topology:
    """Load the topology of a machine from NCCL topology XML (version 1) or hwloc XML.

    Parameters
    ----------
    path
        Path of the file, at most 8 MiB.
    assume
        Values for attributes that the file lacks: ``sm`` (10 x compute capability), ``nvlinks``
        (per GPU, to an NVSwitch), ``net_speed`` (Mb/s per port), ``p2p`` (0: GPUs reach each other
        through the CPU only), ``mnnvl`` (1: one switch connects the NVLinks of all hosts).
    strict
        Raise InvalidArgumentError if there are warnings.

    Raises
    ------
    InvalidArgumentError
        The file has neither format; the message names the line and the expected content.
    UnavailableError
        The file cannot be read.
    UnsupportedError
        The NCCL XML has another version.
    """
    core = _core.Topology.load(str(path), assume=_assumed(assume), strict=strict)
    return Topology(core)


def examples() -> list[str]:
    """Return the names of the machines that ``example`` provides."""
    return sorted(file.name.removesuffix(".xml") for file in _MACHINES.glob("*.xml"))


def example(
    name: str, *, assume: Mapping[str, int] | None = None, strict: bool = False
) -> Topology:
    """Load an example machine, for experiments without GPUs.

    Parameters
    ----------
    name
        ``"dgx1v"`` (8 V100, a mesh of NVLinks), ``"dgx2"`` (16 V100, NVSwitches), ``"gb200"`` (two
        trays of an NVL72), ``"h200_vm"`` (8 H200 in a virtual machine), ``"l40s"`` (8 L40S, PCIe
        alone) or ``"p4d"`` (AWS's 8 A100; its file names PCI devices only, the rest is assumed).
    assume, strict
        As for ``load``.

    Raises
    ------
    InvalidArgumentError
        The name does not exist.
    """
    if name not in examples():
        there_are = ", ".join(examples())
        raise InvalidArgumentError(f"no example is called {name!r}; there are {there_are}")
    return load(_MACHINES / f"{name}.xml", assume=assume, strict=strict)


def parse(
    text: str,
    *,
    name: str = "text",
    assume: Mapping[str, int] | None = None,
    strict: bool = False,
) -> Topology:
    """Load the topology of a machine from XML in memory.

    Parameters
    ----------
    text
        Content of a file for ``load``.
    name
        Name of the text in messages.
    assume, strict
        As for ``load``.

    Raises
    ------
    InvalidArgumentError
        The text has none of the formats that ``load`` accepts.
    UnsupportedError
        The NCCL XML has another version.
    """
    core = _core.Topology.parse(text, name, assume=_assumed(assume), strict=strict)
    return Topology(core)
