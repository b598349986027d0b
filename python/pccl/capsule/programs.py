# SPDX-License-Identifier: Apache-2.0
"""Capsules: files with programs of collectives, and functions that load them into groups."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from pccl import _core
from pccl._internal import given_file, whole_file
from pccl._internal.arguments import require
from pccl.results import table

if TYPE_CHECKING:
    from collections.abc import Iterable

    import matplotlib.figure

    from pccl._core import Schedule
    from pccl.simulator import Network
    from pccl.simulator.replay_results import Replay
    from pccl.simulator.simulation import Simulation
    from pccl.simulator.switched_replay import SwitchedReplay
    from pccl.topology import Job, Topology

__all__ = ["MOST_BYTES", "MOST_TEXT", "Capsule"]


MOST_TEXT = 8 << 20
MOST_BYTES = 33 << 20  # above the limit of a capsule, which the parser checks


class Capsule:
    """Verified programs of one collective, in the form of a file.

    ``pccl.lang`` builds capsules; ``load_capsule`` loads one into a group. Equal capsules have
    equal bytes. A notebook displays a capsule as a table of its steps.

    A capsule may contain programs for several numbers of ranks. Properties of one program, such as
    the schedule, are then available from ``for_ranks(8)``. Groups, networks and jobs use the
    programs for their own number of ranks.
    """

    def __init__(self, core: _core.Capsule) -> None:
        self._core = core

    @staticmethod
    def of(
        schedule: Schedule,
        *,
        author: str = "",
        licence: str = "",
        note: str = "",
        sizes: str = "..",
        protocol: str = "",
    ) -> Capsule:
        """Return the verified capsule of a schedule.

        Parameters
        ----------
        schedule
            Schedule whose name becomes the name of the capsule: 1 to 64 characters of a to z,
            digits and ``_``.
        author, licence, note
            Text for human readers.
        sizes
            Sizes for which the capsule is intended, as for ``load_capsule``.
        protocol
            Protocol of messages between GPUs, where the GPUs support it and the options of the
            group select no other: ``"ll"``, ``"ll128"`` or ``"direct"`` (LL, LL128 and Simple of
            NCCL); empty: chosen by message length. CPUs have one protocol.

        Raises
        ------
        InvalidArgumentError
            The schedule is wrong, its name is invalid, or the protocol does not exist. For a wrong
            schedule the message names the rank, lane and step.
        """
        return Capsule(
            _core.Capsule.make(
                schedule,
                author=author,
                licence=licence,
                note=note,
                sizes=sizes,
                protocol=protocol,
            )
        )

    @staticmethod
    def join(capsules: Iterable[Capsule]) -> Capsule:
        """Return one capsule with the programs of several, each for different numbers of ranks.

        Parameters
        ----------
        capsules
            Capsules in any order, with equal name, collective, root, sizes, protocol, author,
            licence and note; for 1 to 1,024 numbers of ranks, together within the limits of a file.

        Returns
        -------
        Capsule
            Capsule without a signature. The join of one capsule has the same programs.

        Raises
        ------
        InvalidArgumentError
            Two capsules are for the same number of ranks, their metadata differ, there is no
            capsule, or a limit is exceeded.
        """
        return Capsule(_core.Capsule.join([each._core for each in capsules]))

    @staticmethod
    def parse(data: bytes) -> Capsule:
        """Return the verified capsule of some bytes.

        Parameters
        ----------
        data
            Bytes of a capsule; the source need not be trusted.

        Raises
        ------
        InvalidArgumentError
            The bytes are not a capsule or are damaged, or the programs are wrong.
        """
        return Capsule(_core.Capsule.parse(data))

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Capsule:
        """Return the verified capsule of a file.

        Parameters
        ----------
        path
            Path of the file.

        Raises
        ------
        UnavailableError
            There is no such file.
        InvalidArgumentError
            The file is not a capsule or is damaged, or its programs are wrong.
        """
        return Capsule(_core.Capsule.read(os.fspath(path)))

    @staticmethod
    def from_msccl(
        path: str | os.PathLike[str], *, name: str = "", collective: str = "", root: int = 0
    ) -> Capsule:
        """Return the verified capsule of an MSCCL XML file.

        Attributes of later versions (``minBytes``, ``maxBytes``, ``outofplace``) are optional.
        ``proto`` becomes the ``protocol`` of the capsule. A program that writes its input uses a
        copy of the input.

        Parameters
        ----------
        path
            Path of the file.
        name
            Name of the capsule; empty for the name of the algorithm.
        collective
            Collective of a program with ``coll="custom"``, such as ``"broadcast"``: synthesisers
            write ``custom`` for collectives with a root. Empty for any other program, which names
            its collective.
        root
            Rank of the root of that collective.

        Raises
        ------
        InvalidArgumentError
            The file is not MSCCL XML, or its program is wrong; the message names the line. Or the
            file is larger than 8 MiB, or ``collective`` is given for a program that names its own.
        UnsupportedError
            Capsules cannot express the program, or ``coll="custom"`` needs a ``collective``; the
            message names the line.
        UnavailableError
            The path is not a regular file.
        OSError
            The file cannot be opened.
        """
        text = given_file.text_of(path, MOST_TEXT)
        return Capsule(_core.import_msccl(text, str(path), name, collective, root))

    @staticmethod
    def from_mscclpp(path: str | os.PathLike[str], *, name: str = "") -> Capsule:
        """Return the verified capsule of a file with an MSCCL++ execution plan.

        A write of a GPU into the memory of a peer becomes a send; the matching receive is at the
        peer's wait. A read from the memory of a peer becomes a send at the peer's signal. Packets
        are received at their first read. Each thread block of a group executes its part of the
        shared operations, and a pipeline runs once, over all of its chunks. The ``protocol`` of the
        plan, LL or Simple, becomes the protocol of the capsule.

        Parameters
        ----------
        path
            Path of the JSON file.
        name
            Name of the capsule; empty for the name of the plan.

        Raises
        ------
        InvalidArgumentError
            The file is not such a plan, or its program is wrong; the message names the line, GPU,
            thread block and operation. Or the file is larger than 8 MiB.
        UnsupportedError
            Capsules cannot express the program; the message names the same items.
        UnavailableError
            The path is not a regular file.
        OSError
            The file cannot be opened.
        """
        return Capsule(_core.import_mscclpp(given_file.text_of(path, MOST_TEXT), str(path), name))

    def to_msccl(self) -> str:
        """Return the capsule as MSCCL XML.

        Returns
        -------
        str
            XML that ``from_msccl`` converts to a capsule with the same results. That capsule may
            have more lanes, because a thread block has one peer to send to and one to receive from.
            A capsule without a protocol has ``proto="Simple"``, the default of MSCCL.

        Raises
        ------
        UnsupportedError
            The XML cannot express the program; the message names the step.
        InvalidArgumentError
            The capsule is for several numbers of ranks.
        """
        return _core.export_msccl(self._core)

    @property
    def name(self) -> str:
        """Name that selects the capsule, as in ``PCCL_ALGORITHM=all_reduce=name``."""
        return str(self.manifest["name"])

    @property
    def ranks(self) -> tuple[int, ...]:
        """Numbers of ranks of the programs, in ascending order; usually one."""
        return self._core.ranks

    def for_ranks(self, ranks: int) -> Capsule:
        """Return the capsule of one number of ranks only.

        Parameters
        ----------
        ranks
            One of the numbers in ``ranks``.

        Returns
        -------
        Capsule
            Capsule with its own digest. It has no signature where this capsule has other numbers
            too.

        Raises
        ------
        InvalidArgumentError
            The capsule is for other numbers of ranks; the message names them.
        """
        return Capsule(self._core.for_ranks(ranks))

    @property
    def sizes(self) -> str:
        """Sizes for which the capsule is intended, such as ``"1MB.."``."""
        return str(self.manifest["sizes"])

    @property
    def protocol(self) -> str:
        """Protocol of its messages between GPUs, as for ``of``; usually empty."""
        return self._core.protocol

    @property
    def digest(self) -> str:
        """SHA-256 of its bytes, in hexadecimal digits."""
        return self._core.digest

    @property
    def manifest(self) -> dict[str, Any]:
        """Description of the capsule for human readers, with all results of the verifier."""
        return self._core.manifest

    @property
    def phases(self) -> tuple[str, ...]:
        """Phases to which its programs switch the network, in order; usually empty.

        Raises
        ------
        InvalidArgumentError
            The capsule is for several numbers of ranks.
        """
        return self.schedule.phases

    @property
    def schedule(self) -> Schedule:
        """Schedule with the programs.

        Raises
        ------
        InvalidArgumentError
            The capsule is for several numbers of ranks.
        """
        return self._core.schedule

    @property
    def data(self) -> bytes:
        """The bytes of its file."""
        return self._core.data

    @property
    def signer(self) -> str | None:
        """Public key of the signer, 64 hexadecimal digits; None without a signature."""
        return self._core.signer

    def signed(self, key: str | os.PathLike[str]) -> Capsule:
        """Return a signed copy: a line after the bytes contains the signature.

        Parameters
        ----------
        key
            Path of a file with a private Ed25519 key in PEM: ``openssl genpkey -algorithm
            ed25519``.

        Returns
        -------
        Capsule
            Capsule with the same digest, which is independent of the signature.

        Raises
        ------
        InvalidArgumentError
            The file has no such key, or the key is encrypted.
        UnavailableError
            The path is not a regular file.
        OSError
            The file cannot be opened.
        """
        return Capsule(self._core.signed_with(given_file.text_of(key, MOST_TEXT)))

    def check_signer(self, keys: str | os.PathLike[str]) -> None:
        """Raise InvalidArgumentError unless one of the keys in a file signed the capsule.

        Parameters
        ----------
        keys
            Path of a file in the format of ``PCCL_TRUSTED_KEYS``: one public key per line.

        Raises
        ------
        InvalidArgumentError
            The capsule has no signature or one of another key, or a line of the file is not a key.
        UnavailableError
            There is no such file.
        """
        self._core.check_signer(os.fspath(keys))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the capsule to a file atomically.

        Parameters
        ----------
        path
            Path of the file, ``"name.capsule"`` by convention.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        whole_file.write_whole(Path(path), self.data)

    def plot(self) -> matplotlib.figure.Figure:
        """Draw the messages, as ``Schedule.plot`` does.

        Returns
        -------
        matplotlib.figure.Figure
            Figure of ranks over rounds.

        Raises
        ------
        ImportError
            matplotlib is missing (``pip install matplotlib``).
        InvalidArgumentError
            The capsule is for several numbers of ranks.
        """
        return self.schedule.plot()

    def simulate(
        self, topology: Job | Topology | None = None, nbytes: int | str = "64MB"
    ) -> Simulation:
        """Predict the time of the collective on the links of a job, beside the built-in algorithms.

        The prediction uses the cost model by which groups select algorithms: rounds, messages,
        bytes, and the links that ranks of a host share. ``replay`` simulates individual messages.

        Parameters
        ----------
        topology
            A ``pccl.topology.Job`` with as many ranks, or a machine that all ranks share; None for
            this machine. A capsule for several numbers of ranks requires a job, which selects the
            number.
        nbytes
            Bytes of the largest buffer: ``65536``, ``"64KB"``.

        Returns
        -------
        Simulation
            Result with a table and a plot.

        Raises
        ------
        InvalidArgumentError
            The job has another number of ranks, or there is no job and the capsule is for several
            numbers of ranks.
        ValueError
            ``nbytes`` is not a size.
        """
        from pccl.simulator.simulation import ranks_of, simulate

        return simulate(self._meant_for(ranks_of(topology))._core, topology, nbytes)

    @overload
    def replay(self, network: Network, nbytes: int | str = "64MB") -> Replay: ...
    @overload
    def replay(
        self,
        network: Mapping[str, Network],
        nbytes: int | str = "64MB",
        *,
        reconfiguration: float = 0.0,
    ) -> SwitchedReplay: ...
    def replay(
        self,
        network: Network | Mapping[str, Network],
        nbytes: int | str = "64MB",
        *,
        reconfiguration: float = 0.0,
    ) -> Replay | SwitchedReplay:
        """Simulate the individual messages on a network, which need not exist.

        Parameters
        ----------
        network
            A ``pccl.simulator.Network`` of as many ranks; it selects the programs where the capsule
            has several numbers of ranks. A capsule that switches phases requires a dictionary of
            networks by phase; the key ``""`` is the network before the first switch.
        nbytes
            Bytes of the largest buffer: ``65536``, ``"64KB"``.
        reconfiguration
            Seconds that a switch of the network to another phase takes.

        Returns
        -------
        Replay
            Time, rounds, busiest link and critical path, with a plot.
        SwitchedReplay
            Time of each part and of the whole, where there is a network for each phase.

        Raises
        ------
        InvalidArgumentError
            The network has another number of ranks, or a phase has no network.
        ValueError
            ``nbytes`` is not a size.
        """
        from pccl.simulator import Network, replay_capsule
        from pccl.simulator.switched_replay import replay_switched

        if not isinstance(network, Network):
            right = "a pccl.simulator.Network, or a dict of one for each phase"
            require(network, Mapping, "network", right)
            own = self._meant_for(next((each.ranks for each in network.values()), None))
            return replay_switched(own._core, network, nbytes, reconfiguration)
        own = self._meant_for(network.ranks)
        if own.phases:
            return replay_switched(own._core, {"": network}, nbytes, reconfiguration)
        return replay_capsule(own._core, network, nbytes)

    def _meant_for(self, ranks: int | None) -> Capsule:
        """Return the capsule for ``ranks`` where it has programs for several numbers of ranks."""
        return self if ranks is None or len(self.ranks) == 1 else self.for_ranks(ranks)

    def __repr__(self) -> str:
        manifest = self.manifest
        rounds = f"{manifest['rounds']} rounds, " if "rounds" in manifest else ""
        return (
            f"<pccl.Capsule {self.name}: {manifest['collective']}, {manifest['ranks']} ranks, "
            f"{rounds}sizes {self.sizes}, {self.digest[:12]}>"
        )

    def _repr_html_(self) -> str:
        if len(self.ranks) == 1:
            return self.schedule._repr_html_()
        keys = ("ranks", "chunks", "lanes", "steps", "rounds", "links")
        manifests = [self.for_ranks(ranks).manifest for ranks in self.ranks]
        return table.html_table(
            [{key: each.get(key, "all") for key in keys} for each in manifests], caption=repr(self)
        )

    def __reduce__(self) -> tuple[object, ...]:
        return Capsule.parse, (self.data,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Capsule) and self.data == other.data

    def __hash__(self) -> int:
        return hash(self.data)
