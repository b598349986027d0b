# SPDX-License-Identifier: Apache-2.0
"""The communicator of a group of processes."""

from collections.abc import Sequence
from datetime import timedelta
from os import PathLike
from types import TracebackType
from typing import Any, Protocol

from typing_extensions import Self

from pccl._core.capsule import Capsule, _Capsule
from pccl._core.cluster import PhaseNetwork
from pccl._core.collectives import _Collectives
from pccl._core.memory import Memory
from pccl._core.operator import Operator
from pccl._core.prediction import Prediction
from pccl._core.types import _Blocks, _Collective, _ReduceOp, _Store
from pccl.results.loaded_capsule import LoadedCapsule
from pccl.results.named import LinksCountedOn
from pccl.results.peer_health import PeerHealth
from pccl.results.table import Table

class _Cluster(Protocol):  # pccl.Cluster
    @property
    def ranks(self) -> int: ...

class Communicator(_Collectives):
    """Communicator for the collectives and messages of one group of processes.

    Collectives run in the order in which they are called, which must be the same on every rank.
    Without ``async_op`` a call returns None when its buffers are ready. ``timeout`` is in seconds,
    and replaces the group's own timeout; ``float("inf")`` and every value above 292 years mean no
    limit.

    If a collective has one block for each rank, ``out`` or ``x`` is either one buffer that contains
    all blocks, equally long and in rank order, or a list of buffers, which may differ in length.

    Parameters
    ----------
    rank
        Rank of this process, 0 <= rank < world_size. The default is the launcher's rank for
        ``"auto"``, the environment's for ``"env://"``, and 0 otherwise. Several ranks may be
        threads of one process.
    world_size
        Number of ranks. The default is the launcher's number for ``"auto"``, the environment's for
        ``"env://"``, and 1 otherwise. With 1, the process is alone.
    rendezvous
        Place where the ranks meet: ``"auto"`` (where the launcher that started this process leads:
        torchrun, srun, mpiexec and others, docs/guide/launchers.md; one rank without a launcher),
        ``"none"`` or None (one rank alone; None is refused where a launcher has started several
        processes, unless rank or world_size is passed or RANK is set), ``"env://"`` (RANK,
        WORLD_SIZE, MASTER_ADDR and MASTER_PORT, which torchrun sets; its store is used),
        ``"tcp://host:port"`` (rank 0 listens, only at the addresses of that host),
        ``"file:///path"`` (on a file system that all ranks share), or a store object. Groups with
        the same name may meet there one after the other, also after a restart of the job: entries
        of earlier groups do no harm. docs/reference/security.md describes its protection.
    timeout
        Maximum seconds of an operation or of the rendezvous; above 0. Infinite: no limit.
    name
        Name of the group in messages.
    transports
        Transports that the group may use, for example ``"shm,tcp"``; empty for all.
    algorithm
        Algorithm of each collective, for example ``"all_reduce=ring,all_gather=bruck"``, in the
        format of ``PCCL_ALGORITHM``, which applies if this is empty. All ranks must pass the same
        value. If neither an algorithm nor a capsule of ``PCCL_CAPSULES`` has a given name, a
        warning is logged, and calls raise until a capsule of that name is loaded.
    gpu
        Bus id of the GPU that this rank uses (``"0000:0d:00.0"``), for the job's topology; empty
        for none.
    cluster
        Cluster whose phases the group switches by ``pccl.switch_phase``; it has one device for each
        rank. None: the cluster of ``PCCL_CLUSTER`` if it has as many devices as the group has
        ranks, otherwise no cluster. Groups that are split off follow the same phases. Ranks that
        are threads of one process need one cluster object each.

    Raises
    ------
    InvalidArgumentError
        An argument is invalid; nothing was sent.
    UnsupportedError
        The element type does not support the reduction; nothing was sent.
    PeerLostError, TimeoutError, MismatchError, AbortedError
        The operation failed; every later operation of the group raises the same error.
    """

    def __init__(
        self,
        *,
        rank: int | None = None,
        world_size: int | None = None,
        rendezvous: str | _Store | None = "auto",
        timeout: float | timedelta = 1800.0,
        name: str = "world",
        transports: str = "",
        algorithm: str = "",
        gpu: str = "",
        cluster: _Cluster | None = None,
    ) -> None: ...
    @property
    def rank(self) -> int:
        """The rank of this process, 0 <= rank < world_size."""
    @property
    def world_size(self) -> int:
        """The number of processes."""
    @property
    def name(self) -> str:
        """The name of the group, as messages contain it."""
    @property
    def _network(self) -> PhaseNetwork | None:
        """The network of the group's cluster; None without a cluster."""
    @property
    def sequence(self) -> int:
        """The number of collectives started so far."""
    @property
    def memory(self) -> Memory:
        """The workspaces of the group: memory that all ranks allocate under one name."""
    def explain(self, collective: str, nbytes: int) -> list[Prediction]:
        """Predict the time of every way to run a collective; one of them is chosen.

        Parameters
        ----------
        collective
            ``"all_reduce"``, ``"all_gather"``, ``"reduce_scatter"``, ``"broadcast"``, ``"reduce"``,
            ``"gather"``, ``"scatter"`` or ``"all_to_all"``.
        nbytes
            Bytes of the largest buffer; for an ``all_gather`` this is the gathered result.

        Returns
        -------
        list of Prediction
            One prediction for each way; ``pccl.explain`` shows them as a table.

        Raises
        ------
        InvalidArgumentError
            The collective does not exist, or PCCL_ALGORITHM names an algorithm that does not fit.
        """
    def load(
        self,
        capsule: _Capsule | Capsule | str | PathLike[str],
        sizes: str | None = None,
        *,
        timeout: float | timedelta | None = None,
    ) -> Operator:
        """Load a capsule on all ranks; its collective uses it from now on.

        All ranks must call it with the same capsule and sizes. Each rank verifies the programs for
        this number of ranks again.

        Parameters
        ----------
        capsule
            A capsule, or the path of its file.
        sizes
            Range of the largest buffer's bytes for which the group prefers the capsule:
            ``"1MB.."``, ``"..64KB"``, ``"64KB..1MB"``, ``".."`` for any size, ``"by name"`` for
            none; None for the range in the capsule. For gather, scatter and all_to_all of lists, a
            capsule is only used by name, because only pairs of ranks have the sizes.
        timeout
            Maximum seconds to wait for the other ranks; None for the group's timeout.

        Returns
        -------
        Operator
            Operator that runs the collective by this capsule for every size; it has no buffers yet.
            A capsule that switches phases of the network requires the group of all ranks of a
            cluster, and returns a ``pccl.phases.switched_operator.SwitchedOperator``.

        Raises
        ------
        InvalidArgumentError
            The capsule is malformed, its programs are wrong, or it is for other numbers of ranks; a
            capsule of that name is already loaded; or the current phase of the network has no link
            for a message of the capsule.
        UnsupportedError
            The capsule switches phases of the network, and this is not the group of all ranks of a
            cluster.
        MismatchError
            Ranks passed different capsules or sizes; the message names these ranks.
        """
    def unload(self, name: str, *, timeout: float | timedelta | None = None) -> None:
        """Unload a capsule on all ranks; all ranks must call it.

        Parameters
        ----------
        name
            Name of the capsule.
        timeout
            Maximum seconds to wait for the other ranks; None for the group's timeout.

        Raises
        ------
        InvalidArgumentError
            No capsule of that name is loaded.
        """
    def capsules(self) -> Table[LoadedCapsule]:
        """Return the loaded capsules: a list, which notebooks show as a table."""
    def record_timeline(self, steps: int = 262144) -> None:
        """Record the times of this rank's steps, in the collectives that it calls from now on.

        Collectives over links consist of steps, and loaded capsules always do; collectives over
        shared memory have none. The recording takes 100 bytes and 2 clock reads for each step.

        Parameters
        ----------
        steps
            Capacity of the recording in steps, at most 4,194,304; 0 ends the recording.

        Raises
        ------
        InvalidArgumentError
            ``steps`` is above 4,194,304.
        """
    def _take_timeline(self) -> tuple[list[tuple[Any, ...]], int, int]:
        """Return the recorded steps of this rank, and end the recording.

        Returns
        -------
        tuple
            Steps, number of steps that were dropped for lack of room, and maximum error of the
            times in nanoseconds. ``pccl.timeline.gather`` returns the steps of all ranks, with
            names. A step is a tuple: call, window, lane, index, action, sender and its channel,
            receiver and its channel, bytes, whether a GPU executed it, and nanoseconds of
            ``time.monotonic_ns``: begin, moved, end.
        """
    def operator(
        self,
        collective: _Collective,
        x: _Blocks | None = None,
        out: _Blocks | None = None,
        *,
        op: _ReduceOp = "sum",
        root: int = 0,
        algorithm: str = "",
    ) -> Operator:
        """Bind a collective to its buffers, for repeated execution. Nothing is sent.

        This call reads the arguments and checks the shapes; executions do not repeat it.

        Parameters
        ----------
        collective
            ``"all_reduce"``, ``"all_gather"``, ``"reduce_scatter"``, ``"broadcast"``, ``"reduce"``,
            ``"gather"``, ``"scatter"`` or ``"all_to_all"``.
        x, out
            Input ``x`` and output ``out`` of this rank, as for the method of that name. Broadcast
            and reduce have ``x`` alone; all_reduce has ``x`` alone if it is in place. None if this
            rank has no such buffer, for example a gather's ``out`` on ranks other than the root.
            The operator holds references to the buffers, which must keep their size during its
            lifetime.
        op
            Reduction operation.
        root
            Root rank of broadcast, reduce, gather and scatter.
        algorithm
            Name of the algorithm, as in ``PCCL_ALGORITHM``, the same on all ranks; empty for the
            group's choice for the size.

        Returns
        -------
        Operator
            Operator with buffers. All ranks must execute theirs, in the same order relative to all
            other calls of the group.

        Raises
        ------
        InvalidArgumentError
            The collective, ``op``, ``root`` or algorithm does not exist, or the buffers do not fit.
        UnsupportedError
            The element type does not support ``op``.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The group has already failed.
        """
    def links_counted_on(self) -> LinksCountedOn:
        """Return the basis of predictions: links, order of ranks, parallel rings, and costs."""
    def describe_job(self) -> bytes:
        """Return the job's topology, encoded, for ``pccl.topology.job``.

        Raises
        ------
        UnavailableError
            The topology of this machine cannot be read, or this process is a fork of the process
            that made the group.
        """
    def abort(self, reason: str = "abort was called") -> None:
        """Abort the group: operations in flight and later ones raise AbortedError. Raises nothing.

        Parameters
        ----------
        reason
            Reason in the error text, also on the other ranks.
        """
    def health(self, timeout: float | timedelta = 1.0) -> Table[PeerHealth]:
        """Query the state of every rank, whose program makes no call, as ``pccl.health`` does.

        Parameters
        ----------
        timeout
            Maximum seconds to wait for the answer of each rank.

        Returns
        -------
        Table of PeerHealth
            State of every rank, including this one, by rank: a list, which notebooks show as a
            table.

        Raises
        ------
        UnavailableError
            This process is a fork of the process that made the group.
        """
    def shrink(
        self, ranks_to_exclude: Sequence[int] | None = None, *, least: int | None = None
    ) -> Communicator:
        """Return a group of the remaining ranks, in the same order, as ``pccl.shrink`` does.

        Operations in flight are aborted. Every remaining rank must call it within a minute. It
        returns when all of them have confirmed the same list of ranks. After an error it may be
        called again, with the same excluded ranks or more.

        Parameters
        ----------
        ranks_to_exclude
            Ranks to exclude; None for the ranks that are lost, or silent for
            ``PCCL_PEER_TIMEOUT_MS``.
        least
            Minimum number of remaining ranks; None: more than half of the ranks, or half with rank
            0.

        Returns
        -------
        Communicator
            The smaller group.

        Raises
        ------
        InvalidArgumentError
            No rank is to be excluded.
        UnavailableError
            Too few ranks would remain, or the other ranks have excluded this rank.
        TimeoutError
            A remaining rank did not call it in time.
        MismatchError
            A remaining rank excludes other ranks.
        PeerLostError
            A remaining rank is lost. MismatchError and PeerLostError are raised only if
            ``ranks_to_exclude`` is given.
        """
    def split(
        self, color: int | None, key: int = 0, *, timeout: float | timedelta | None = None
    ) -> Communicator | None:
        """Split the group into one group for each color, as ``MPI_Comm_split`` does.

        It is a collective: all ranks must call it. This group remains usable. Its store must still
        exist: after a ``shrink`` that excluded the rank with the store, the new groups cannot meet.

        Parameters
        ----------
        color
            Color of this rank, 0 or more; ranks with the same color form one group. None: no group.
        key
            Sort key of the new ranks; ranks with equal keys keep their old order.
        timeout
            Maximum seconds for the exchange of colors; None for the group's timeout. The rendezvous
            of a new group then has the group's timeout.

        Returns
        -------
        Communicator or None
            New group, named ``"<name>/<color>"``, with the options of this group. None if ``color``
            is None.

        Raises
        ------
        InvalidArgumentError
            ``color`` is negative.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The split failed; if the exchange of colors failed, every later operation of this group
            raises the same error.
        """
    def shutdown(self) -> None:
        """Close the group; operations in flight raise AbortedError. May be called again.

        Raises
        ------
        MismatchError
            The last collective differed between ranks without an earlier error on any rank, for
            example two roots of one broadcast. The group is closed nevertheless.
        """
    def __enter__(self) -> Self:
        """Return the communicator: ``with pccl.Communicator(...) as comm:``."""
    def __exit__(
        self,
        type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Shut down, or abort if an exception ends the block; peers receive the exception's name.

        Parameters
        ----------
        type, error, traceback
            The exception that ends the block; None if there is none.

        Raises
        ------
        MismatchError
            As for ``shutdown``, if no exception ends the block.
        """
