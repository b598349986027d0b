# SPDX-License-Identifier: Apache-2.0
"""Capsules and the formats that they are imported from."""

from collections.abc import Sequence
from typing import Any, Protocol

from pccl._core.prediction import Prediction
from pccl._core.schedule import Schedule
from pccl._core.simulator import Network, Replay
from pccl._core.topology import JobTopology
from pccl.results.named import LinksCountedOn

class _Capsule(Protocol):
    _core: Capsule

class Piece:
    """Algorithm with its ranks, for the simulator."""

    @staticmethod
    def built_in(
        algorithm: str, collective: str, ranks: int, aggregation: int, order: Sequence[int]
    ) -> Piece:
        """Return the piece of a built-in algorithm.

        Parameters
        ----------
        algorithm, collective, ranks, aggregation, order
            As for ``pccl.simulator.replay``.

        Raises
        ------
        InvalidArgumentError
            The algorithm does not exist.
        UnsupportedError
            The algorithm is for another collective.
        """
    @staticmethod
    def of_capsule(capsule: Capsule) -> Piece:
        """Return the piece of a capsule.

        Parameters
        ----------
        capsule
            Capsule for one number of ranks.
        """
    @staticmethod
    def parts_of_capsule(capsule: Capsule) -> list[tuple[str, Piece | None]]:
        """Return the part of a capsule in each phase of the network, with the phase's name.

        Parameters
        ----------
        capsule
            Capsule for one number of ranks. A capsule without phases has one part, with an empty
            name.
        """
    @property
    def name(self) -> str:
        """The name of the algorithm."""
    @property
    def collective(self) -> str:
        """The name of the collective."""
    @property
    def ranks(self) -> int:
        """The number of ranks."""
    def replay(self, network: Network, nbytes: float) -> Replay:
        """Simulate the piece on a network.

        Parameters
        ----------
        network
            Network with the same number of ranks.
        nbytes
            Bytes of the largest buffer.

        Raises
        ------
        InvalidArgumentError
            The network has another number of ranks, or the algorithm does not support it.
        UnsupportedError
            The piece has more steps than the simulator supports.
        """
    def rounds(self, network: Network, nbytes: float) -> list[tuple[float, float, list[int]]]:
        """Return the seconds, the bytes of the longest message and the receivers of each round.

        Messages of a round begin together, when all messages of the previous round have arrived.

        Parameters
        ----------
        network, nbytes
            As for ``replay``.

        Raises
        ------
        InvalidArgumentError, UnsupportedError
            As for ``replay``.
        """

def import_mscclpp(json: str, file: str, name: str) -> Capsule:
    """Return the capsule for an execution plan of MSCCL++.

    Parameters
    ----------
    json
        Text of the plan; it may be untrusted.
    file
        Name of the source in messages.
    name
        Name of the capsule; empty for the name in the plan.

    Raises
    ------
    InvalidArgumentError
        The text is not such a plan, or its program is wrong; the message names the operation.
    UnsupportedError
        The plan contains an operation that capsules do not support; the message names it.
    """

def export_msccl(capsule: Capsule) -> str:
    """Return the MSCCL XML of a capsule, as ``pccl.Capsule.to_msccl`` does.

    Parameters
    ----------
    capsule
        Any capsule.

    Raises
    ------
    UnsupportedError
        MSCCL's XML cannot express a step; the message names it.
    """

def import_msccl(xml: str, file: str, name: str, collective: str, root: int) -> Capsule:
    """Return the capsule for MSCCL's XML.

    Parameters
    ----------
    xml
        Text of the XML; it may be untrusted.
    file
        Name of the source in messages.
    name
        Name of the capsule; empty for the name of the algorithm.
    collective, root
        Collective and root of a program with ``coll="custom"``; empty for other programs.

    Raises
    ------
    InvalidArgumentError, UnsupportedError
        The XML is wrong, or capsules do not support it; the message names the line.
    """

def unproven_schedule(data: bytes, ranks: int) -> Schedule:
    """Return the schedule of a capsule without verification, to display its errors.

    Parameters
    ----------
    data
        Bytes of the capsule's file.
    ranks
        Number of ranks, if the capsule is for several numbers; 0 if it is for one.

    Raises
    ------
    InvalidArgumentError
        The input has an error outside its steps.
    """

def unproven_msccl(xml: str, file: str) -> Schedule:
    """Return the schedule of MSCCL's XML without verification, to display its errors.

    Parameters
    ----------
    xml, file
        As for ``import_msccl``.

    Raises
    ------
    InvalidArgumentError, UnsupportedError
        The input has an error outside its steps.
    """

def unproven_mscclpp(json: str, file: str) -> Schedule:
    """Return the schedule of an execution plan without verification, to display its errors.

    Parameters
    ----------
    json, file
        As for ``import_mscclpp``.

    Raises
    ------
    InvalidArgumentError, UnsupportedError
        The input has an error outside its steps.
    """

def check_sizes(sizes: str) -> str:
    """Return a range of sizes in the format of capsules.

    Parameters
    ----------
    sizes
        Range of sizes, as for ``Communicator.load``.

    Raises
    ------
    InvalidArgumentError
        ``sizes`` is not a range of sizes.
    """

class Capsule:
    """Core object of ``pccl.Capsule``."""

    @staticmethod
    def make(
        schedule: Schedule, *, author: str, licence: str, note: str, sizes: str, protocol: str
    ) -> Capsule:
        """Return the capsule of a schedule, as ``pccl.Capsule.of`` does.

        Parameters
        ----------
        schedule, author, licence, note, sizes, protocol
            As for that method.

        Raises
        ------
        InvalidArgumentError
            The schedule is wrong, its name is invalid, or the protocol does not exist.
        """
    @staticmethod
    def join(capsules: Sequence[Capsule]) -> Capsule:
        """Return one capsule for several numbers of ranks, as ``pccl.Capsule.join`` does.

        Parameters
        ----------
        capsules
            As for that method.

        Raises
        ------
        InvalidArgumentError
            Two capsules are for the same number of ranks or have different properties, or there is
            no capsule, or the result is too large.
        """
    @property
    def ranks(self) -> tuple[int, ...]:
        """The supported numbers of ranks, ascending."""
    def for_ranks(self, ranks: int) -> Capsule:
        """Return the capsule for one number of ranks.

        Parameters
        ----------
        ranks
            One of ``ranks``.

        Raises
        ------
        InvalidArgumentError
            The capsule is for other numbers of ranks.
        """
    @property
    def protocol(self) -> str:
        """The preferred protocol of messages between GPUs; usually empty."""
    @staticmethod
    def parse(data: bytes) -> Capsule:
        """Return the capsule that the bytes hold, as ``pccl.Capsule.parse`` does.

        Parameters
        ----------
        data
            Bytes of the capsule; they may be untrusted.

        Raises
        ------
        InvalidArgumentError
            The bytes are not a capsule, are damaged, or contain wrong programs.
        """
    @staticmethod
    def read(path: str) -> Capsule:
        """Read a capsule from a file, as ``pccl.Capsule.load`` does.

        Parameters
        ----------
        path
            Path of the file.

        Raises
        ------
        UnavailableError
            The file does not exist.
        InvalidArgumentError
            The file is not a capsule, is damaged, or contains wrong programs.
        """
    @property
    def digest(self) -> str:
        """The SHA-256 of the capsule's bytes, in hexadecimal digits."""
    @property
    def manifest(self) -> dict[str, Any]:
        """The descriptive fields of the file."""
    @property
    def schedule(self) -> Schedule:
        """The programs."""
    @property
    def data(self) -> bytes:
        """The bytes of the file."""
    @property
    def signer(self) -> str | None:
        """The public key of the signer, in hexadecimal digits; None if it is not signed."""
    def signed_with(self, pem: str) -> Capsule:
        """Return a signed copy of the capsule.

        Parameters
        ----------
        pem
            A private Ed25519 key.

        Returns
        -------
        Capsule
            Signed capsule with the same digest.

        Raises
        ------
        InvalidArgumentError
            ``pem`` is not a private Ed25519 key.
        """
    def check_signer(self, keys: str) -> None:
        """Raise InvalidArgumentError if no key of a file has signed the capsule.

        Parameters
        ----------
        keys
            Path of the file with public keys.

        Raises
        ------
        InvalidArgumentError
            No key of the file has signed the capsule, or a line of the file is not a key.
        UnavailableError
            The file does not exist.
        """
    def cost(self, nbytes: int) -> tuple[int, int, float, float]:
        """Return rounds, messages, bytes sent and bytes reduced of the rank with the most.

        Parameters
        ----------
        nbytes
            Bytes of the largest buffer.
        """
    def predict(self, job: JobTopology, nbytes: int) -> tuple[list[Prediction], LinksCountedOn]:
        """Return the predictions for a job that has loaded the capsule for all sizes.

        Parameters
        ----------
        job
            Job with the same number of ranks.
        nbytes
            Bytes of the largest buffer.

        Raises
        ------
        InvalidArgumentError
            The job has another number of ranks.
        """
