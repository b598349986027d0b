# SPDX-License-Identifier: Apache-2.0
"""Machines and jobs."""

from typing import Literal, TypeAlias

from pccl._core.prediction import Prediction
from pccl.results.named import Charge, LinksCountedOn, Ports

_PathType: TypeAlias = Literal[
    "LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS"
]

class TopologyWarning:
    """Warning about a machine's topology. Prints as one line."""

    @property
    def name(self) -> str:
        """The name of the warning, which is stable; docs/reference/topology.md lists all names."""
    @property
    def subject(self) -> str:
        """The device concerned (``"gpu3"`` or a bus id), or a line of a file."""
    @property
    def message(self) -> str:
        """The fault and its effect."""
    @property
    def repair(self) -> str:
        """The value that was assumed instead; empty if there is none."""

class TopologyFact:
    """Attribute of a device, with its source. Prints as one line."""

    @property
    def device(self) -> str:
        """The bus id, NUMA node (``"cpu 0"``), or name of the port."""
    @property
    def attribute(self) -> str:
        """The name of the attribute in NCCL's topology XML."""
    @property
    def value(self) -> str:
        """The value in NCCL's topology XML."""
    @property
    def source(self) -> str:
        """The source: file, vendor file, nvml, verbs, sysfs, hwloc, assumption, default, repair."""
    @property
    def provenance(self) -> Literal["measured", "declared", "assumed"]:
        """How reliable ``source`` is."""

class TopologyNode:
    """Device of the machine's graph."""

    @property
    def name(self) -> str:
        """The unique name, for example ``"gpu0"``."""
    @property
    def label(self) -> str:
        """The PCI bus id, NUMA node, or name of the port."""
    @property
    def type(self) -> Literal["gpu", "pci", "nvs", "cpu", "nic", "net"]:
        """The type; ``pci`` is a PCIe switch, ``nvs`` an NVSwitch, ``net`` a port of a NIC."""
    @property
    def host(self) -> int:
        """The index of its host."""
    @property
    def sm(self) -> int:
        """For a GPU: 10 x compute capability."""
    @property
    def dev(self) -> int:
        """For a GPU or a port: its number in NVML or in the network plugin."""
    @property
    def rank(self) -> int:
        """The rank of the process that uses the GPU; -1 if unknown."""
    @property
    def gdr(self) -> bool:
        """For a GPU or a port: whether NICs access GPU memory directly."""
    @property
    def usable(self) -> bool:
        """False for a port that plans do not use; a warning gives the reason."""

class TopologyPath:
    """Best path between two devices. Prints as one line."""

    @property
    def type(self) -> _PathType:
        """The worst link type on the path; docs/reference/topology.md lists the types."""
    @property
    def bandwidth(self) -> float:
        """The bandwidth of the narrowest link, in GB/s."""
    @property
    def hops(self) -> int:
        """The number of links."""
    @property
    def nodes(self) -> list[str]:
        """The names of the nodes on the path, including both ends."""
    @property
    def charges(self) -> list[Charge]:
        """The load of each link for 1 GB/s on the path."""

class TopologyChannel:
    """Ring, tree or head of a plan, through all GPUs of a machine."""

    @property
    def bandwidth(self) -> float:
        """The bandwidth in GB/s."""
    @property
    def order(self) -> list[int]:
        """The order of GPUs; for ``"heads"`` the head, then the others."""
    @property
    def nets(self) -> Ports | None:
        """The ports by which data enters and leaves the node; None for one node."""

class TopologyPlan:
    """Result of a search. ``pccl.topology.Plan`` describes the properties."""

    @property
    def pattern(self) -> Literal["ring", "tree", "heads"]: ...
    @property
    def nodes(self) -> int: ...
    @property
    def channels(self) -> list[TopologyChannel]: ...
    @property
    def type_intra(self) -> _PathType: ...
    @property
    def type_inter(self) -> _PathType: ...
    @property
    def bandwidth(self) -> float: ...
    @property
    def bound(self) -> float: ...
    @property
    def optimal(self) -> bool: ...
    @property
    def seconds(self) -> float: ...
    def xml(self) -> str: ...
    def __eq__(self, other: object) -> bool: ...

class Topology:
    """Topology of a machine. ``pccl.topology`` describes it."""

    @staticmethod
    def load(path: str, *, assume: dict[str, int], strict: bool) -> Topology: ...
    @staticmethod
    def parse(text: str, name: str, *, assume: dict[str, int], strict: bool) -> Topology: ...
    @staticmethod
    def detect(*, assume: dict[str, int], strict: bool) -> Topology: ...
    @property
    def warnings(self) -> list[TopologyWarning]: ...
    @property
    def facts(self) -> list[TopologyFact]: ...
    @property
    def nodes(self) -> list[TopologyNode]: ...
    @property
    def links(self) -> list[tuple[str, str, str, float, bool]]:
        """The links: source, target, type, GB/s, and whether the bandwidth is measured."""
    @property
    def digest(self) -> str: ...
    def path(self, source: str, target: str) -> TopologyPath: ...
    def search(self, pattern: str, *, nodes: int, max_channels: int) -> TopologyPlan: ...
    def read_plans(self, text: str, name: str) -> list[TopologyPlan]: ...
    def xml(self) -> str: ...
    def __eq__(self, other: object) -> bool: ...

def calibration_path(digest: str) -> str:
    """Return the path of the file with a machine's measurements; empty if there is no place for it.

    Parameters
    ----------
    digest
        ``Topology.digest`` of the machine.
    """

def measure_gpu_copies() -> list[tuple[str, str, float, float]]:
    """Time copies between any two GPUs of this machine.

    Returns
    -------
    list of tuple
        Bus ids of source and target, seconds of a small copy, and GB/s of a large copy.

    Raises
    ------
    UnavailableError
        This build has no CUDA, or the machine has no GPU.
    """

def load_calibration(digest: str) -> str:
    """Return the content of the calibration file; empty if it is missing or unusable.

    Parameters
    ----------
    digest
        Digest of the machine, as for ``calibration_path``.
    """

class JobHost:
    """Host of a job; see ``pccl.topology.Host``."""

    @property
    def name(self) -> str: ...
    @property
    def ranks(self) -> list[int]: ...
    @property
    def numa(self) -> list[int]: ...
    @property
    def topology(self) -> Topology: ...
    @property
    def interface(self) -> str: ...
    @property
    def subnet(self) -> str: ...
    @property
    def is_measured(self) -> bool: ...

class JobLink:
    """Network path between two hosts of a job."""

    @property
    def source(self) -> int:
        """The index of the host at one end."""
    @property
    def target(self) -> int:
        """The index of the host at the other end."""
    @property
    def bandwidth(self) -> float:
        """The bandwidth in GB/s: measured between the two, or otherwise of the slower end."""
    @property
    def latency(self) -> float:
        """The latency of a message in seconds; 0 if it was not measured."""
    @property
    def same_subnet(self) -> bool:
        """Whether both ends are on one subnet, as far as this is known."""

class JobRail:
    """Ports on one network, one of each host."""

    @property
    def ports(self) -> list[int]:
        """The index of the port, by host."""
    @property
    def bandwidth(self) -> float:
        """The bandwidth of the slowest port, in GB/s."""

class JobTopology:
    """Hosts of a job; see ``pccl.topology.Job``."""

    @staticmethod
    def decode(blob: bytes) -> JobTopology: ...
    @staticmethod
    def encode(hosts: list[tuple[str, list[int], Topology]]) -> bytes: ...
    @property
    def hosts(self) -> list[JobHost]: ...
    @property
    def rails(self) -> list[JobRail]: ...
    @property
    def warnings(self) -> list[TopologyWarning]: ...
    @property
    def links(self) -> list[JobLink]: ...
    @property
    def lanes(self) -> int: ...
    @property
    def digest(self) -> str: ...
    @property
    def is_uniform(self) -> bool: ...
    def order(self) -> list[int]: ...
    def host_of(self, rank: int) -> int: ...
    def network_bandwidth(self, host: int) -> float: ...
    def network_provenance(self, host: int) -> str: ...
    def explain(self, collective: str, nbytes: int) -> tuple[list[Prediction], LinksCountedOn]:
        """Predict the choice of a group of these ranks; see ``pccl.explain``."""
