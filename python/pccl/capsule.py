# SPDX-License-Identifier: Apache-2.0
"""Capsules: programs of collectives in files, and groups that load them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from pccl import _core, given_file, table, whole_file
from pccl.arguments import require
from pccl.capsule_results import LoadedCapsule

if TYPE_CHECKING:
    from collections.abc import Iterable

    import matplotlib.figure
    from torch.distributed import ProcessGroup

    from pccl._core import Communicator, Operator, Schedule
    from pccl.capsule_simulation import Simulation
    from pccl.replay_results import Replay
    from pccl.simulator import Network
    from pccl.switched_replay import SwitchedReplay
    from pccl.table import Table
    from pccl.topology import Job, Topology

__all__ = ["Capsule", "capsules", "load_capsule", "unload_capsule"]


MOST_TEXT = 8 << 20
MOST_BYTES = 33 << 20  # above what a capsule may have, which is checked where it is read


class Capsule:
    """The programs of one collective, verified, as a file has them.

    ``pccl.lang`` makes them; ``load_capsule`` lets a group use one. Equal capsules have equal
    bytes. In a notebook it shows itself as a table of its steps.

    A capsule may have programs for several numbers of ranks. What one of them says, its schedule,
    say, is then that of ``for_ranks(8)``; groups, networks and jobs take those for their own ranks.
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
        """Return the capsule of a schedule, verified.

        Parameters
        ----------
        schedule
            Its name becomes the capsule's: 1 to 64 letters a to z, digits and ``_``.
        author, licence, note
            For people.
        sizes
            For which it is meant, as for ``load_capsule``.
        protocol
            How its messages travel between GPUs, where they can, and the group's options ask for
            nothing else: ``"ll"``, ``"ll128"`` or ``"direct"`` (LL, LL128 and Simple of NCCL);
            empty: as their lengths suggest. CPUs have one way.

        Raises
        ------
        InvalidArgumentError
            The schedule is wrong, or it has no such name, or there is no such protocol; the message
            says rank, lane and step.
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
        """Return one capsule with the programs of several, each for other numbers of ranks.

        Parameters
        ----------
        capsules
            In any order, of one name, collective and root, with the same sizes, protocol, author,
            licence and note; for 1 to 1,024 numbers of ranks, together within the limits of a file.

        Returns
        -------
        Capsule
            Of one number of ranks, the same as it was; nobody has signed it.

        Raises
        ------
        InvalidArgumentError
            Two are for as many ranks, or say different things, or there is none, or too much.
        """
        return Capsule(_core.Capsule.join([each._core for each in capsules]))

    @staticmethod
    def parse(data: bytes) -> Capsule:
        """Return the capsule of some bytes, verified.

        Parameters
        ----------
        data
            Of any origin.

        Raises
        ------
        InvalidArgumentError
            They are no capsule, or damaged, or its programs are wrong.
        """
        return Capsule(_core.Capsule.parse(data))

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Capsule:
        """Return the capsule of a file, verified.

        Parameters
        ----------
        path
            The file's.

        Raises
        ------
        UnavailableError
            There is no such file.
        InvalidArgumentError
            It is no capsule, or damaged, or its programs are wrong.
        """
        return Capsule(_core.Capsule.read(os.fspath(path)))

    @staticmethod
    def from_msccl(
        path: str | os.PathLike[str], *, name: str = "", collective: str = "", root: int = 0
    ) -> Capsule:
        """Return the capsule of a file with MSCCL's XML, verified.

        Attributes that came later (``minBytes``, ``maxBytes``, ``outofplace``) may be there or not;
        its ``proto`` becomes the capsule's ``protocol``. A program that writes its input works on a
        copy of it.

        Parameters
        ----------
        path
            The file's.
        name
            The capsule's; empty for that of the algorithm.
        collective
            What a program with ``coll="custom"`` does, ``"broadcast"`` say: synthesisers write that
            for collectives with a root. Empty for any other, which names its own.
        root
            The rank of that collective's root.

        Raises
        ------
        InvalidArgumentError
            It is no such XML, or its program is wrong; the message names the line. Or it has more
            than 8 MiB, or needs no ``collective``.
        UnsupportedError
            It says what capsules cannot; the message names the line.
        UnavailableError
            It is no regular file.
        OSError
            It cannot be opened.
        """
        text = given_file.text_of(path, MOST_TEXT)
        return Capsule(_core.import_msccl(text, str(path), name, collective, root))

    @staticmethod
    def from_mscclpp(path: str | os.PathLike[str], *, name: str = "") -> Capsule:
        """Return the capsule of a file with an execution plan of MSCCL++, verified.

        What a GPU of a plan writes into another's memory is sent, and received where that waits to
        be told; what it reads there is sent where that says it may; packets are received where they
        are read first. Each thread block of a group gets its part of the operations that they
        share, and a pipeline is run once, over all of its chunks. The plan's ``protocol``, LL or
        Simple, becomes the capsule's.

        Parameters
        ----------
        path
            The file's, JSON.
        name
            The capsule's; empty for that of the plan.

        Raises
        ------
        InvalidArgumentError
            It is no such plan, or its program is wrong; the message names line, GPU, thread block
            and operation. Or it has more than 8 MiB.
        UnsupportedError
            It says what capsules cannot; the message names the same.
        UnavailableError
            It is no regular file.
        OSError
            It cannot be opened.
        """
        return Capsule(_core.import_mscclpp(given_file.text_of(path, MOST_TEXT), str(path), name))

    def to_msccl(self) -> str:
        """Return MSCCL's XML for it.

        Returns
        -------
        str
            What ``from_msccl`` makes a capsule of that gives the same results; its lanes may be
            more, since a thread block has one peer to send to and one to receive from. Where the
            capsule asks for no protocol, it says ``Simple``, as MSCCL does.

        Raises
        ------
        UnsupportedError
            The XML cannot say it; the message names the step.
        InvalidArgumentError
            It is for several numbers of ranks.
        """
        return _core.export_msccl(self._core)

    @property
    def name(self) -> str:
        """By which it is asked for, as in ``PCCL_ALGORITHM=all_reduce=name``."""
        return str(self.manifest["name"])

    @property
    def ranks(self) -> tuple[int, ...]:
        """For which numbers of ranks it is, ascending; mostly one."""
        return self._core.ranks

    def for_ranks(self, ranks: int) -> Capsule:
        """Return the capsule of one number of ranks alone.

        Parameters
        ----------
        ranks
            One of ``ranks``.

        Returns
        -------
        Capsule
            With a digest of its own, and signed by nobody where this one has others, too.

        Raises
        ------
        InvalidArgumentError
            It is for others; the message names them.
        """
        return Capsule(self._core.for_ranks(ranks))

    @property
    def sizes(self) -> str:
        """For which it is meant: ``"1MB.."``."""
        return str(self.manifest["sizes"])

    @property
    def protocol(self) -> str:
        """By which its messages should travel between GPUs, as for ``of``; mostly empty."""
        return self._core.protocol

    @property
    def digest(self) -> str:
        """SHA-256 of its bytes, in hexadecimal digits."""
        return self._core.digest

    @property
    def manifest(self) -> dict[str, Any]:
        """What its file says of it for people: all that the verifier found is in it."""
        return self._core.manifest

    @property
    def phases(self) -> tuple[str, ...]:
        """To which its programs switch the network, one after the other; mostly none.

        Raises
        ------
        InvalidArgumentError
            It is for several numbers of ranks.
        """
        return self.schedule.phases

    @property
    def schedule(self) -> Schedule:
        """Its programs.

        Raises
        ------
        InvalidArgumentError
            It is for several numbers of ranks.
        """
        return self._core.schedule

    @property
    def data(self) -> bytes:
        """The bytes of its file."""
        return self._core.data

    @property
    def signer(self) -> str | None:
        """The public key of who signed it, 64 hexadecimal digits; None where nobody did."""
        return self._core.signer

    def signed(self, key: str | os.PathLike[str]) -> Capsule:
        """Return the same, signed: a line behind its bytes, which says who vouches for them.

        Parameters
        ----------
        key
            A file with a private Ed25519 key in PEM: ``openssl genpkey -algorithm ed25519``.

        Returns
        -------
        Capsule
            Its digest is the same, whoever signed it.

        Raises
        ------
        InvalidArgumentError
            The file has no such key, or a password.
        UnavailableError
            It is no regular file.
        OSError
            It cannot be opened.
        """
        return Capsule(self._core.signed_with(given_file.text_of(key, MOST_TEXT)))

    def check_signer(self, keys: str | os.PathLike[str]) -> None:
        """Raise InvalidArgumentError unless one of the keys of a file has signed it.

        Parameters
        ----------
        keys
            A file as ``PCCL_TRUSTED_KEYS`` names: a public key a line.

        Raises
        ------
        InvalidArgumentError
            Nobody signed it, or somebody else; or a line of the file is no key.
        UnavailableError
            There is no such file.
        """
        self._core.check_signer(os.fspath(keys))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file, whole or not at all.

        Parameters
        ----------
        path
            The file's, ``"name.capsule"`` by custom.

        Raises
        ------
        OSError
            It cannot be written.
        """
        whole_file.write_whole(Path(path), self.data)

    def plot(self) -> matplotlib.figure.Figure:
        """Draw its messages, as ``Schedule.plot`` does.

        Returns
        -------
        matplotlib.figure.Figure
            Ranks over rounds.

        Raises
        ------
        ImportError
            matplotlib is missing (``pip install matplotlib``).
        InvalidArgumentError
            It is for several numbers of ranks.
        """
        return self.schedule.plot()

    def simulate(
        self, topology: Job | Topology | None = None, nbytes: int | str = "64MB"
    ) -> Simulation:
        """Predict what its collective takes on the links of a job, beside the built-in ways.

        It is the cost model by which groups choose: rounds, messages, bytes, and the links that
        ranks of a host share; ``replay`` plays single messages through.

        Parameters
        ----------
        topology
            A ``pccl.topology.Job`` with as many ranks; or a machine that all of them share; None
            for this machine. Of a capsule for several numbers of ranks, a job says for which.
        nbytes
            Of the largest buffer: ``65536``, ``"64KB"``.

        Returns
        -------
        Simulation
            It shows itself as a table, and plots itself.

        Raises
        ------
        InvalidArgumentError
            The job has other ranks, or it is none and this is for several numbers of ranks.
        ValueError
            ``nbytes`` is no size.
        """
        from pccl.capsule_simulation import ranks_of, simulate

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
        """Play its messages through, one by one, on a network that need not exist.

        Parameters
        ----------
        network
            A ``pccl.simulator.Network`` of as many ranks, which says for which where the capsule
            has programs for several; for a capsule that switches phases one for each, by name, and
            by ``""`` for what comes before the first switch.
        nbytes
            Of the largest buffer: ``65536``, ``"64KB"``.
        reconfiguration
            Seconds that the network takes to go to another phase.

        Returns
        -------
        Replay
            Time, rounds, the busiest link, the critical path; it plots itself.
        SwitchedReplay
            Time of each part and of all, where there is a network for each phase.

        Raises
        ------
        InvalidArgumentError
            The network has other ranks, or a phase has none.
        ValueError
            ``nbytes`` is no size.
        """
        from pccl.simulator import Network, replay_capsule
        from pccl.switched_replay import replay_switched

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
        """Return what it has for so many ranks, where it has programs for several."""
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


def load_capsule(
    capsule: Capsule | str | os.PathLike[str],
    group: Communicator | ProcessGroup | None = None,
    sizes: str | None = None,
) -> Operator:
    """Load a capsule on all ranks of a group: from now on, its collective runs by it.

    Parameters
    ----------
    capsule
        One, or the path of its file.
    group
        A communicator, or a process group of torch with the backend "pccl"; None for torch's
        default group. The group's CUDA tensors go by the capsule, too, where its GPUs reach each
        other and can run it; elsewhere by kernels, or through host memory, by the capsule.
    sizes
        As for ``Communicator.load``: ``"1MB.."``.

    Returns
    -------
    Operator
        It runs the collective by this capsule, whatever the size, where the group is a
        communicator. Of a process group it can only be described: ``dist.all_reduce`` and the like
        take the capsule for its sizes, and ``PCCL_ALGORITHM`` names it for all others.

    Raises
    ------
    InvalidArgumentError
        It is no capsule, or wrong, or for other numbers of ranks, which the message names; or there
        is one of its name; or the phase in which the network is has no link for what a rank sends.
    MismatchError
        Ranks have other bytes or sizes; the message names them.
    ValueError
        ``group`` has no backend "pccl".
    """
    if isinstance(group, _core.Communicator):
        return group.load(capsule, sizes)
    from pccl import torch_backend

    backend = torch_backend.require_backend(group, "load_capsule")
    if isinstance(capsule, Capsule):
        loaded = backend.load_capsule(capsule.data, False, sizes)
    else:
        loaded = backend.load_capsule(os.fsencode(capsule), True, sizes)
    return _core.Operator(group, *loaded)


def unload_capsule(name: str, group: Communicator | ProcessGroup | None = None) -> None:
    """Forget a capsule on all ranks of a group, which must all call it.

    Parameters
    ----------
    name
        The capsule's.
    group
        As for ``load_capsule``.

    Raises
    ------
    InvalidArgumentError
        No such capsule was loaded.
    """
    if isinstance(group, _core.Communicator):
        return group.unload(name)
    from pccl import torch_backend

    return torch_backend.require_backend(group, "unload_capsule").unload_capsule(name)


def capsules(group: Communicator | ProcessGroup | None = None) -> Table[LoadedCapsule]:
    """Return the capsules that a group has loaded, by itself or for ``PCCL_CAPSULES``.

    Parameters
    ----------
    group
        As for ``load_capsule``.

    Returns
    -------
    Table of LoadedCapsule
        A list, which notebooks show as a table.

    Raises
    ------
    ValueError
        ``group`` has no backend "pccl".
    """
    if isinstance(group, _core.Communicator):
        return group.capsules()
    from pccl import torch_backend

    backend = torch_backend.require_backend(group, "capsules")
    return table.Table(LoadedCapsule(*each) for each in backend.loaded_capsules())
