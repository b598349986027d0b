# SPDX-License-Identifier: Apache-2.0
"""PCCL without torch: the communicator over buffers, and the programs of collectives.

A *buffer* is an object that exposes C-contiguous host memory: a numpy array, an ``array.array``, a
``bytearray``, a ``memoryview``; by DLPack a CPU tensor of torch, or an array of another library; or
an object with ``__array_interface__``. Element types are bool, integers, float16, bfloat16 (of
torch, or ml_dtypes), float32, float64, complex64 and complex128; float8_e4m3fn, float8_e5m2,
strings, void and longdouble can be moved, but not reduced. Other types (objects, fields, packed
structures, times, another byte order) are refused. All buffers of one call have one type.

A buffer that a rank only sends may be read-only; this includes the ``x`` of a broadcast's root. If
a collective's buffer is strided, if an output is read-only, or if two outputs share memory, all
ranks refuse the call and nothing is written: the rank with the bad buffer raises
InvalidArgumentError, and the other ranks raise MismatchError.
"""

from collections.abc import Callable, Generator, Sequence
from datetime import timedelta
from os import PathLike
from types import TracebackType
from typing import Any, Literal, Protocol, TypeAlias, TypedDict, overload

import matplotlib.figure
import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer, Self

from pccl.results.loaded_capsule import LoadedCapsule
from pccl.results.named import Charge, LinksCountedOn, Ports
from pccl.results.peer_health import PeerHealth
from pccl.results.schedule_steps import Step
from pccl.results.table import Table

_ReduceOp: TypeAlias = Literal["sum", "avg", "product", "prod", "min", "max", "band", "bor", "bxor"]
_Collective: TypeAlias = Literal[
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "all_to_all",
]

class _DLPack(Protocol):
    def __dlpack__(self) -> object: ...
    def __dlpack_device__(self) -> tuple[Any, int]: ...

class _ArrayInterface(Protocol):
    @property
    def __array_interface__(self) -> dict[str, Any]: ...

# The stubs of numpy declare an array as a Buffer only from Python 3.12 on.
_Buffer: TypeAlias = Buffer | NDArray[Any] | _DLPack | _ArrayInterface
_Blocks: TypeAlias = _Buffer | Sequence[_Buffer]

class _Store(Protocol):
    def set(self, key: str, value: bytes, /) -> object: ...
    def get(self, key: str, /) -> bytes | str | None: ...
    def add(self, key: str, amount: int, /) -> int: ...

class _Capsule(Protocol):
    _core: Capsule

class _Times(TypedDict):
    issued: float
    started: float
    finished: float | None

class _Verdict(TypedDict):
    rounds: int
    bit_identical: bool

def flight_record_json() -> str:
    """Return the flight record that ``pccl.diagnostics.flight_record`` returns, as JSON text."""

def ask_status(door: str, group: bytes, first: int, timeout_s: float | timedelta) -> bytes:
    """Request the status of a process's groups, as ``pccl status`` does.

    Parameters
    ----------
    door
        Address at which the process listens: ``"10.0.0.1:4567"``, ``"[fd00::1]:4567"`` or
        ``"unix:@name"``.
    group
        Key (16 bytes) of the group whose members are requested. Empty: all groups of the process.
    first
        Index at which the list continues: the ``"next"`` of the previous answer, or 0 for the first
        request.
    timeout_s
        Seconds to wait for the answer.

    Returns
    -------
    bytes
        JSON: a part of a flight record (docs/reference/failure.md), or ``"members"``; and
        ``"next"``.

    Raises
    ------
    InvalidArgumentError
        ``door`` is not an address, or the process does not prove the job's secret
        (``PCCL_SECRET_FILE``).
    PeerLostError
        No process listens at the address.
    TimeoutError
        No answer arrived in time.
    """

def set_log_level(
    level: Literal["trace", "debug", "info", "warning", "error", "off"],
) -> None:
    """Set the log level of stderr; overrides ``PCCL_LOG_LEVEL``.

    Parameters
    ----------
    level
        Lowest level that is written: ``"trace"``, ``"debug"``, ``"info"``, ``"warning"``,
        ``"error"`` or ``"off"``.

    Raises
    ------
    InvalidArgumentError
        The level does not exist.
    """

def tuning_path() -> str:
    """Return the path of the tuning file that rank 0 of a group reads; empty if there is none."""

def topology_hash() -> str:
    """Return a 16-digit hash that is equal on machines with equal properties.

    The hash covers the model and number of processors, the processors that this process may use,
    the caches, and the memory nodes. Collectives are expected to take the same time on machines
    with the same hash.
    """

def costs_path() -> str:
    """Return the path of the file with this machine's step costs; empty if there is none."""

def machine_costs() -> tuple[str, list[str]]:
    """Return the origin of this process's step costs, and one line for each cost.

    If no file contains the costs, they are measured, which takes about 30 ms, unless
    ``PCCL_COSTS_FILE=off``.
    """

class Event:
    """An asynchronous operation. The caller must not touch its buffers until it is done."""

    def wait(self, timeout: float | timedelta | None = None) -> None:
        """Wait until the operation is done; raise its error if it failed.

        Parameters
        ----------
        timeout
            Maximum wait in seconds. The operation continues after a timeout. None: no limit.

        Raises
        ------
        TimeoutError
            ``timeout`` or the operation's own timeout expired.
        PeerLostError, MismatchError, AbortedError
            The operation failed.
        """
    def flush(self) -> None:
        """Wait until this rank has passed all data that it sends to its links.

        Raises
        ------
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The operation failed before that.
        """
    def is_done(self) -> bool:
        """Return whether the operation has ended, successfully or not. Does not block."""
    def record(self) -> _Times:
        """Return the timestamps of the operation, in seconds of the monotonic clock.

        Returns
        -------
        dict
            ``issued``, ``started``, and ``finished``, which is None until the operation is done.
        """
    def add_done_callback(self, callback: Callable[[Event], object]) -> None:
        """Register a function that is called when the operation has ended, successfully or not.

        Callbacks run one after the other on a thread of the library, in the order in which
        operations end; a callback that blocks delays the others. Exceptions of callbacks are
        written to the logger "pccl" of ``logging``.

        Parameters
        ----------
        callback
            Called once, with the event. If the operation is already done, it is called soon.

        Raises
        ------
        ResourceExhaustedError
            The process has no file descriptor left (at its first callback only).
        """
    def __await__(self) -> Generator[Any]:
        """Suspend the task until the operation is done: ``await event``.

        Other tasks of the event loop run meanwhile. Cancelling the task does not cancel the
        operation.

        Returns
        -------
        generator
            Generator for the event loop; ``await`` returns None.

        Raises
        ------
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The operation failed.
        """
    @property
    def source(self) -> int | None:
        """The rank that sent the received message; None until done, and for collectives."""

class DoneQueue:
    """Queue of the numbers of completed events, for ``pccl.communicator.callbacks``."""

    def __init__(self) -> None: ...
    @property
    def descriptor(self) -> int:
        """File descriptor that is readable while the queue contains numbers."""
    def expect(self, event: Event, number: int) -> None:
        """Add a number to the queue when an event is done.

        Parameters
        ----------
        event
            Event of any communicator.
        number
            0 or more.
        """
    def take(self) -> list[int]:
        """Return and remove the queued numbers, in the order in which the events ended."""

class PremulSum:
    """Reduction that multiplies each rank's elements by that rank's factor, and sums them.

    It corresponds to ``PREMUL_SUM`` of torch and ``ncclRedOpCreatePreMulSum``: the factor may
    differ between ranks. The input of a rank is unchanged unless the collective is in place. The
    products take temporary memory while the collective runs.
    """

    def __init__(self, factor: float) -> None:
        """Create the reduction.

        Parameters
        ----------
        factor
            Factor for this rank's elements, which must be floating-point or complex numbers. It is
            converted to their type.
        """
    @property
    def factor(self) -> float:
        """The factor for this rank's elements."""

class Prediction:
    """Predicted time of one way to run a collective. Prints as one line."""

    @property
    def algorithm(self) -> str:
        """Name of the algorithm, as in ``PCCL_ALGORITHM``."""
    @property
    def over(self) -> str:
        """``"shm"`` (shared memory of one host) or ``"links"``."""
    @property
    def seconds(self) -> float:
        """Predicted time of one call, in seconds."""
    @property
    def busiest(self) -> str:
        """The most shared link of the ranks of one host, and its GB/s; empty if there is none."""
    @property
    def aggregation(self) -> int:
        """Most blocks in one message, if the algorithm has a choice (PAT); 0: no limit.

        ``pccl.schedule.generate`` takes the same value.
        """
    @property
    def is_chosen(self) -> bool:
        """Whether the group uses this way for calls of this length."""
    @property
    def chosen_by(self) -> Literal["", "request", "capsule", "tuning", "prediction"]:
        """The reason of the choice, as in ``pccl.explanation.Way``; empty if it is not chosen."""

class _Cluster(Protocol):  # pccl.Cluster
    @property
    def ranks(self) -> int: ...

class Communicator:
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
        Rank of this process, 0 <= rank < world_size. The default is the environment's rank for
        ``"env://"``, and 0 otherwise. Several ranks may be threads of one process.
    world_size
        Number of ranks. The default is the environment's number for ``"env://"``, and 1 otherwise.
        If srun or mpiexec started this process together with others, the caller must pass rank,
        world_size or rendezvous, or RANK must be set; otherwise the call is refused.
    rendezvous
        Place where the ranks meet: ``"env://"`` (RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT,
        which torchrun sets; its store is used), ``"tcp://host:port"`` (rank 0 listens, only at the
        addresses of that host), ``"file:///path"`` (on a file system that all ranks share), or a
        store object. A single process needs none. Groups with the same name may meet there one
        after the other, also after a restart of the job: entries of earlier groups do no harm.
        docs/reference/security.md describes its protection.
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
        rendezvous: str | _Store | None = None,
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
    @overload
    def all_reduce(
        self,
        x: _Buffer,
        op: _ReduceOp | PremulSum = "sum",
        *,
        async_op: Literal[False] = False,
        timeout: float | timedelta | None = None,
    ) -> None:
        """Reduce ``x`` over all ranks, in place on each rank.

        Parameters
        ----------
        x
            Buffer with the same number of elements and the same type on every rank. The result
            replaces its content.
        op
            ``"sum"``, ``"avg"`` (integers: exact, towards zero), ``"product"`` (or ``"prod"``),
            ``"min"``, ``"max"``; for integers and bool also ``"band"``, ``"bor"``, ``"bxor"``.
            Complex numbers support sum, avg and product; bool supports all but avg. Or a
            ``PremulSum``.
        async_op
            Return an ``Event`` at once; the caller must not touch the buffers until it is done.
        timeout
            Maximum seconds of the operation; None for the group's timeout.

        Returns
        -------
        None
            With ``async_op``, an ``Event``.

        Raises
        ------
        InvalidArgumentError
            ``x`` is not a valid buffer, or ``op`` does not exist; nothing was sent.
        UnsupportedError
            The element type does not support ``op``; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The operation failed, here or on another rank; every later operation of the group raises
            the same error.
        """
    @overload
    def all_reduce(
        self,
        x: _Buffer,
        op: _ReduceOp | PremulSum = "sum",
        *,
        async_op: Literal[True],
        timeout: float | timedelta | None = None,
    ) -> Event: ...
    @overload
    def all_reduce(
        self,
        x: _Buffer,
        op: _ReduceOp | PremulSum = "sum",
        *,
        async_op: bool,
        timeout: float | timedelta | None = None,
    ) -> Event | None: ...
    @overload
    def broadcast(
        self,
        x: _Buffer,
        root: int = 0,
        *,
        async_op: Literal[False] = False,
        timeout: float | timedelta | None = None,
    ) -> None:
        """Copy the root's ``x`` to all ranks.

        Parameters
        ----------
        x
            Buffer with the same number of elements and the same type on every rank.
        root
            Rank that sends its ``x`` and only reads it, 0 <= root < world_size; the same on all
            ranks.
        async_op
            Return an ``Event`` at once; the caller must not touch the buffers until it is done.
        timeout
            Maximum seconds of the operation; None for the group's timeout.

        Returns
        -------
        None
            With ``async_op``, an ``Event``.

        Raises
        ------
        InvalidArgumentError
            ``x`` or ``root`` is invalid; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The operation failed, here or on another rank; every later operation of the group raises
            the same error.
        """
    @overload
    def broadcast(
        self,
        x: _Buffer,
        root: int = 0,
        *,
        async_op: Literal[True],
        timeout: float | timedelta | None = None,
    ) -> Event: ...
    @overload
    def broadcast(
        self,
        x: _Buffer,
        root: int = 0,
        *,
        async_op: bool,
        timeout: float | timedelta | None = None,
    ) -> Event | None: ...
    @overload
    def reduce(
        self,
        x: _Buffer,
        root: int = 0,
        op: _ReduceOp | PremulSum = "sum",
        *,
        async_op: Literal[False] = False,
        timeout: float | timedelta | None = None,
    ) -> None:
        """Reduce ``x`` over all ranks, in place on the root; other ranks keep their ``x``.

        Parameters
        ----------
        x
            Buffer with the same number of elements and the same type on every rank.
        root
            Rank that receives the result, 0 <= root < world_size; the same on all ranks.
        op
            ``"sum"``, ``"avg"`` (integers: exact, towards zero), ``"product"`` (or ``"prod"``),
            ``"min"``, ``"max"``; for integers and bool also ``"band"``, ``"bor"``, ``"bxor"``.
            Complex numbers support sum, avg and product; bool supports all but avg. Or a
            ``PremulSum``.
        async_op
            Return an ``Event`` at once; the caller must not touch the buffers until it is done.
        timeout
            Maximum seconds of the operation; None for the group's timeout.

        Returns
        -------
        None
            With ``async_op``, an ``Event``.

        Raises
        ------
        InvalidArgumentError
            ``x``, ``root`` or ``op`` is invalid; nothing was sent.
        UnsupportedError
            The element type does not support ``op``; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The operation failed, here or on another rank; every later operation of the group raises
            the same error.
        """
    @overload
    def reduce(
        self,
        x: _Buffer,
        root: int = 0,
        op: _ReduceOp | PremulSum = "sum",
        *,
        async_op: Literal[True],
        timeout: float | timedelta | None = None,
    ) -> Event: ...
    @overload
    def reduce(
        self,
        x: _Buffer,
        root: int = 0,
        op: _ReduceOp | PremulSum = "sum",
        *,
        async_op: bool,
        timeout: float | timedelta | None = None,
    ) -> Event | None: ...
    @overload
    def all_gather(
        self,
        out: _Blocks,
        x: _Buffer,
        *,
        async_op: Literal[False] = False,
        timeout: float | timedelta | None = None,
    ) -> None:
        """Gather the ``x`` of all ranks on every rank.

        Parameters
        ----------
        out
            One block for each rank, as long as that rank's ``x``.
        x
            Input of this rank.
        async_op
            Return an ``Event`` at once; the caller must not touch the buffers until it is done.
        timeout
            Maximum seconds of the operation; None for the group's timeout.

        Returns
        -------
        None
            With ``async_op``, an ``Event``.

        Raises
        ------
        InvalidArgumentError
            ``out`` or ``x`` is invalid; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The operation failed, here or on another rank; every later operation of the group raises
            the same error.
        """
    @overload
    def all_gather(
        self,
        out: _Blocks,
        x: _Buffer,
        *,
        async_op: Literal[True],
        timeout: float | timedelta | None = None,
    ) -> Event: ...
    @overload
    def all_gather(
        self,
        out: _Blocks,
        x: _Buffer,
        *,
        async_op: bool,
        timeout: float | timedelta | None = None,
    ) -> Event | None: ...
    @overload
    def reduce_scatter(
        self,
        out: _Buffer,
        x: _Blocks,
        op: _ReduceOp | PremulSum = "sum",
        *,
        async_op: Literal[False] = False,
        timeout: float | timedelta | None = None,
    ) -> None:
        """Reduce ``x`` over all ranks; each rank receives its own block of the result.

        Parameters
        ----------
        out
            Buffer as long as this rank's block.
        x
            One block for each rank. The block for a given rank has the same length on all ranks.
        op
            ``"sum"``, ``"avg"`` (integers: exact, towards zero), ``"product"`` (or ``"prod"``),
            ``"min"``, ``"max"``; for integers and bool also ``"band"``, ``"bor"``, ``"bxor"``.
            Complex numbers support sum, avg and product; bool supports all but avg. Or a
            ``PremulSum``.
        async_op
            Return an ``Event`` at once; the caller must not touch the buffers until it is done.
        timeout
            Maximum seconds of the operation; None for the group's timeout.

        Returns
        -------
        None
            With ``async_op``, an ``Event``.

        Raises
        ------
        InvalidArgumentError
            ``out``, ``x`` or ``op`` is invalid; nothing was sent.
        UnsupportedError
            The element type does not support ``op``; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The operation failed, here or on another rank; every later operation of the group raises
            the same error.
        """
    @overload
    def reduce_scatter(
        self,
        out: _Buffer,
        x: _Blocks,
        op: _ReduceOp | PremulSum = "sum",
        *,
        async_op: Literal[True],
        timeout: float | timedelta | None = None,
    ) -> Event: ...
    @overload
    def reduce_scatter(
        self,
        out: _Buffer,
        x: _Blocks,
        op: _ReduceOp | PremulSum = "sum",
        *,
        async_op: bool,
        timeout: float | timedelta | None = None,
    ) -> Event | None: ...
    @overload
    def gather(
        self,
        out: _Blocks | None,
        x: _Buffer,
        root: int = 0,
        *,
        async_op: Literal[False] = False,
        timeout: float | timedelta | None = None,
    ) -> None:
        """Gather the ``x`` of all ranks on the root.

        Parameters
        ----------
        out
            On the root: one block for each rank, as long as that rank's ``x``. Other ranks may pass
            None.
        x
            Input of this rank.
        root
            Rank that receives all blocks, 0 <= root < world_size; the same on all ranks.
        async_op
            Return an ``Event`` at once; the caller must not touch the buffers until it is done.
        timeout
            Maximum seconds of the operation; None for the group's timeout.

        Returns
        -------
        None
            With ``async_op``, an ``Event``.

        Raises
        ------
        InvalidArgumentError
            ``out``, ``x`` or ``root`` is invalid; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The operation failed, here or on another rank; every later operation of the group raises
            the same error.
        """
    @overload
    def gather(
        self,
        out: _Blocks | None,
        x: _Buffer,
        root: int = 0,
        *,
        async_op: Literal[True],
        timeout: float | timedelta | None = None,
    ) -> Event: ...
    @overload
    def gather(
        self,
        out: _Blocks | None,
        x: _Buffer,
        root: int = 0,
        *,
        async_op: bool,
        timeout: float | timedelta | None = None,
    ) -> Event | None: ...
    @overload
    def scatter(
        self,
        out: _Buffer,
        x: _Blocks | None,
        root: int = 0,
        *,
        async_op: Literal[False] = False,
        timeout: float | timedelta | None = None,
    ) -> None:
        """Send each rank its block of the root's ``x``.

        Parameters
        ----------
        out
            Buffer as long as this rank's block.
        x
            On the root: one block for each rank. Other ranks may pass None.
        root
            Rank that sends the blocks, 0 <= root < world_size; the same on all ranks.
        async_op
            Return an ``Event`` at once; the caller must not touch the buffers until it is done.
        timeout
            Maximum seconds of the operation; None for the group's timeout.

        Returns
        -------
        None
            With ``async_op``, an ``Event``.

        Raises
        ------
        InvalidArgumentError
            ``out``, ``x`` or ``root`` is invalid; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The operation failed, here or on another rank; every later operation of the group raises
            the same error.
        """
    @overload
    def scatter(
        self,
        out: _Buffer,
        x: _Blocks | None,
        root: int = 0,
        *,
        async_op: Literal[True],
        timeout: float | timedelta | None = None,
    ) -> Event: ...
    @overload
    def scatter(
        self,
        out: _Buffer,
        x: _Blocks | None,
        root: int = 0,
        *,
        async_op: bool,
        timeout: float | timedelta | None = None,
    ) -> Event | None: ...
    @overload
    def all_to_all(
        self,
        out: _Blocks,
        x: _Blocks,
        *,
        async_op: Literal[False] = False,
        timeout: float | timedelta | None = None,
    ) -> None:
        """Send block i of ``x`` to rank i, which stores it in its ``out`` block for this rank.

        Parameters
        ----------
        out
            One block for each rank, as long as the block that this rank sends here.
        x
            One block for each rank. ``out`` and ``x`` are either arrays on all ranks, with blocks
            of equal length, or lists on all ranks, with blocks that may differ in length.
        async_op
            Return an ``Event`` at once; the caller must not touch the buffers until it is done.
        timeout
            Maximum seconds of the operation; None for the group's timeout.

        Returns
        -------
        None
            With ``async_op``, an ``Event``.

        Raises
        ------
        InvalidArgumentError
            ``out`` or ``x`` is invalid; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The operation failed, here or on another rank; every later operation of the group raises
            the same error.
        """
    @overload
    def all_to_all(
        self,
        out: _Blocks,
        x: _Blocks,
        *,
        async_op: Literal[True],
        timeout: float | timedelta | None = None,
    ) -> Event: ...
    @overload
    def all_to_all(
        self,
        out: _Blocks,
        x: _Blocks,
        *,
        async_op: bool,
        timeout: float | timedelta | None = None,
    ) -> Event | None: ...
    @overload
    def send(
        self,
        x: _Buffer,
        peer: int,
        tag: int = 0,
        *,
        async_op: Literal[False] = False,
        timeout: float | timedelta | None = None,
    ) -> None:
        """Send ``x`` to one rank.

        Parameters
        ----------
        x
            Message. The receiver's buffer must have the same number of bytes and the same element
            type.
        peer
            Rank of the receiver, 0 <= peer < world_size.
        tag
            Tag of the message, 0 <= tag < 2**30. Messages with the same tag between two ranks keep
            their order; messages with different tags may be received in any order.
        async_op
            Return an ``Event`` at once; the caller must not touch the buffers until it is done.
        timeout
            Maximum seconds of the operation; None for the group's timeout.

        Returns
        -------
        None
            With ``async_op``, an ``Event``.

        Raises
        ------
        InvalidArgumentError
            ``x``, ``peer`` or ``tag`` is invalid, or this rank would wait for itself; nothing was
            sent.
        MismatchError
            The two sides differ in number of bytes or in element type.
        PeerLostError, TimeoutError, AbortedError
            The operation failed; every later operation of the group raises the same error.
        """
    @overload
    def send(
        self,
        x: _Buffer,
        peer: int,
        tag: int = 0,
        *,
        async_op: Literal[True],
        timeout: float | timedelta | None = None,
    ) -> Event: ...
    @overload
    def send(
        self,
        x: _Buffer,
        peer: int,
        tag: int = 0,
        *,
        async_op: bool,
        timeout: float | timedelta | None = None,
    ) -> Event | None: ...
    @overload
    def recv(
        self,
        x: _Buffer,
        peer: int | None = None,
        tag: int = 0,
        *,
        async_op: Literal[False] = False,
        timeout: float | timedelta | None = None,
    ) -> None:
        """Receive a message into ``x``.

        Parameters
        ----------
        x
            Buffer with the same number of bytes and the same element type as the message.
        peer
            Rank of the sender; None for any rank (``Event.source`` returns the sender).
        tag
            Tag that the sender uses.
        async_op
            Return an ``Event`` at once; the caller must not touch the buffers until it is done.
        timeout
            Maximum seconds of the operation; None for the group's timeout.

        Returns
        -------
        None
            With ``async_op``, an ``Event``.

        Raises
        ------
        InvalidArgumentError
            ``x``, ``peer`` or ``tag`` is invalid, or this rank would wait for itself; nothing was
            sent.
        MismatchError
            The two sides differ in number of bytes or in element type.
        PeerLostError, TimeoutError, AbortedError
            The operation failed; every later operation of the group raises the same error.
        """
    @overload
    def recv(
        self,
        x: _Buffer,
        peer: int | None = None,
        tag: int = 0,
        *,
        async_op: Literal[True],
        timeout: float | timedelta | None = None,
    ) -> Event: ...
    @overload
    def recv(
        self,
        x: _Buffer,
        peer: int | None = None,
        tag: int = 0,
        *,
        async_op: bool,
        timeout: float | timedelta | None = None,
    ) -> Event | None: ...
    def send_object(
        self, value: object, peer: int, tag: int = 0, *, timeout: float | timedelta | None = None
    ) -> None:
        """Send an object, pickled; ``recv_object`` receives it.

        Parameters
        ----------
        value
            Object that pickle supports, at most 2 GiB when pickled.
        peer
            Rank of the receiver, not this rank.
        tag
            Tag as for ``send``. Use different tags for objects and for arrays.
        timeout
            Maximum seconds of the operation; None for the group's timeout.

        Raises
        ------
        InvalidArgumentError
            ``peer`` or ``tag`` is invalid, or the object is too large; nothing was sent.
        pickle.PicklingError, TypeError, AttributeError
            pickle does not support the object; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The operation failed; every later operation of the group raises the same error.
        """
    def recv_object(
        self, peer: int | None = None, tag: int = 0, *, timeout: float | timedelta | None = None
    ) -> Any:
        """Receive an object from another rank's ``send_object``.

        **pickle runs code that the sender chooses.** Use it only if you trust all ranks as you
        trust this program; docs/reference/security.md describes how a group is protected from
        strangers. Only one thread at a time may receive objects of one peer and tag.

        Parameters
        ----------
        peer
            Rank of the sender; None for any rank.
        tag
            Tag that the sender uses.
        timeout
            Maximum seconds of the operation; None for the group's timeout.

        Returns
        -------
        object
            A copy of the sent object.

        Raises
        ------
        InvalidArgumentError
            ``peer`` or ``tag`` is invalid.
        MismatchError
            The other side sent a message that is not an object.
        PeerLostError, TimeoutError, AbortedError
            The operation failed; every later operation of the group raises the same error.
        Exception
            Any error of unpickling; for example, the class of the object is missing here.
        """
    def broadcast_object(
        self, value: object, root: int = 0, *, timeout: float | timedelta | None = None
    ) -> Any:
        """Copy the root's object to all ranks, by pickle.

        **pickle runs code that the root chooses.** Use it only if you trust all ranks as you trust
        this program; docs/reference/security.md describes how a group is protected from strangers.

        Parameters
        ----------
        value
            On the root: object of at most 2 GiB when pickled. Other ranks may pass None.
        root
            Rank that sends its object; the same on all ranks.
        timeout
            Maximum seconds of each of the two broadcasts; None for the group's timeout.

        Returns
        -------
        object
            ``value`` itself on the root, a copy on the other ranks.

        Raises
        ------
        InvalidArgumentError
            ``root`` is invalid, or the object is too large; nothing was sent.
        pickle.PicklingError, TypeError, AttributeError
            pickle does not support the object; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The operation failed; every later operation of the group raises the same error.
        Exception
            Any error of unpickling; for example, the class of the object is missing here.
        """
    def barrier(self, timeout: float | timedelta | None = None) -> None:
        """Wait until all ranks have called it.

        Parameters
        ----------
        timeout
            Maximum seconds of the operation; None for the group's timeout.

        Raises
        ------
        TimeoutError
            A rank did not call it in time.
        PeerLostError, MismatchError, AbortedError
            A rank is lost, or called another operation; every later operation raises the same
            error.
        """
    def monitored_barrier(
        self, timeout: float | timedelta, *, wait_all_ranks: bool = False
    ) -> None:
        """Wait until all ranks have called it; rank 0 names the missing ranks.

        Parameters
        ----------
        timeout
            Seconds that rank 0 waits for the other ranks.
        wait_all_ranks
            Whether rank 0 names all missing ranks instead of the first one.

        Raises
        ------
        TimeoutError
            A rank did not call it in time; rank 0 reports this to the other ranks.
        PeerLostError, MismatchError, AbortedError
            A rank is lost, or called another operation; every later operation raises the same
            error.
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

class Workspace:
    """Host memory that every rank of a group allocates under one name; also a context manager.

    Its arrays stay valid during their lifetime: after ``release``, after the group has ended, and
    after the owning peer has exited. A rank must synchronize before it reads data that another rank
    writes, for example by a ``barrier`` after the write. The end of a ``with`` block releases it.
    """

    @property
    def name(self) -> str:
        """The name of the workspace, the same on all ranks."""
    @property
    def nbytes(self) -> int:
        """Bytes of each rank's part."""
    @property
    def local(self) -> NDArray[np.uint8]:
        """The part of this rank: ``nbytes`` shared elements, initially zero, page-aligned.

        ``local.view(np.float32)`` returns other element types, and ``torch.from_dlpack(local)`` a
        tensor of the same memory.

        Raises
        ------
        InvalidArgumentError
            This rank has released the workspace.
        """
    def peer(self, rank: int) -> NDArray[np.uint8]:
        """Return the part of another rank of this host, readable and writable.

        Parameters
        ----------
        rank
            Rank of the owner, 0 <= rank < world_size; this rank's own number returns ``local``.

        Returns
        -------
        numpy.ndarray
            ``nbytes`` elements of uint8. The first call maps the memory; the peer must be alive
            then.

        Raises
        ------
        InvalidArgumentError
            The rank does not exist, or this rank has released the workspace.
        UnsupportedError
            The part cannot be mapped: the rank is on another host, has released the workspace, or
            has exited. Use ``send`` and ``recv``, or a collective, to transfer the content.
        """
    def release(self) -> None:
        """Release this rank's part; arrays of it, here and at peers, stay valid.

        Ranks may release at different times. It may be called again. The name may be allocated
        again when all ranks have released it.

        Raises
        ------
        UnavailableError
            The rendezvous store, in which the workspace is published, is lost.
        """
    def __enter__(self) -> Self:
        """Return the workspace: ``with comm.memory.allocate("halo", 4096) as halo:``."""
    def __exit__(
        self,
        type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Release the workspace.

        Parameters
        ----------
        type, error, traceback
            The exception that ends the block; None if there is none.

        Raises
        ------
        UnavailableError
            As for ``release``.
        """

class GpuMemory:
    """GPU memory with array protocols, for ``torch.from_dlpack(memory)`` and ``cupy.asarray``.

    The memory stays mapped during the lifetime of this object and of the arrays made from it.
    """

    @property
    def address(self) -> int:
        """The address of the first byte, for kernels of this process."""
    @property
    def nbytes(self) -> int:
        """The length in bytes."""
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The memory as elements of uint8, by version 3 of Numba's protocol."""
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: Any = None,
    ) -> Any:
        """Return a capsule ``"dltensor"`` of uint8 (DLPack 0.8).

        Parameters
        ----------
        stream, max_version, dl_device, copy
            Arguments of the protocol; all are ignored. The library has no pending writes to the
            memory; the writers order their own accesses.

        Returns
        -------
        object
            Capsule for ``from_dlpack`` of any library.
        """
    def __dlpack_device__(self) -> tuple[int, ...]:
        """Return DLPack's number for CUDA, 2, and the index of the GPU.

        Returns
        -------
        tuple of int
            Device type and device index of the protocol.
        """

class GpuWorkspace:
    """GPU memory that every rank of a group allocates under one name, for user kernels.

    Kernels (CUDA, Triton or another language) read and write the memory of ``local`` and ``peer``,
    over NVLink. Kernels on several GPUs must order their accesses themselves, or by a collective
    between them. All kernels that use a workspace must have ended, on all ranks, before its memory
    is dropped. The workspace is also a context manager; the end of a ``with`` block releases it.
    """

    @property
    def name(self) -> str:
        """The name of the workspace, the same on all ranks."""
    @property
    def nbytes(self) -> int:
        """Bytes of each rank's part."""
    @property
    def device(self) -> str:
        """The device of this rank's part, for example ``"cuda:0"``."""
    @property
    def local(self) -> GpuMemory:
        """The part of this rank, initially zero.

        Raises
        ------
        InvalidArgumentError
            This rank has released the workspace.
        """
    def peer(self, rank: int) -> GpuMemory:
        """Return the part of another rank, mapped for kernels of this rank's GPU.

        Parameters
        ----------
        rank
            Rank of the owner, 0 <= rank < world_size; this rank's own number returns ``local``.

        Returns
        -------
        GpuMemory
            Memory of ``nbytes`` bytes. ``torch.from_dlpack`` returns a tensor of this rank's GPU
            for it.

        Raises
        ------
        InvalidArgumentError
            The rank does not exist, or this rank has released the workspace.
        """
    def release(self) -> None:
        """Release the workspace here when its last array is dropped; may be called again."""
    def __enter__(self) -> Self:
        """Return the workspace."""
    def __exit__(
        self,
        type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Release the workspace.

        Parameters
        ----------
        type, error, traceback
            The exception that ends the block; None if there is none.
        """

class Memory:
    """Workspaces of a communicator; prints as a list."""

    @overload
    def allocate(  # type: ignore[overload-overlap]  # any other string is a GPU
        self,
        name: str,
        nbytes: int,
        device: Literal["cpu"] = "cpu",
        *,
        timeout: float | timedelta | None = None,
    ) -> Workspace:
        """Allocate memory on every rank; it lasts until it is released.

        It is a collective: all ranks call it with the same name and size. Either all ranks get the
        workspace, or none.

        Parameters
        ----------
        name
            Name of 1 to 128 bytes that does not start with ``"pccl/"`` and that no other workspace
            uses.
        nbytes
            Bytes of each rank's part, 1 or more. Pages of host memory are allocated when they are
            first touched.
        device
            ``"cpu"``: host memory. ``"cuda"``: memory of the only GPU visible to this process;
            ``"cuda:1"``: memory of GPU 1. GPU memory requires at most 8 ranks, on one host, whose
            GPUs have peer access.
        timeout
            Maximum seconds to wait for the other ranks; None for the group's timeout.

        Returns
        -------
        Workspace or GpuWorkspace
            Workspace whose ``local`` is zeroed.

        Raises
        ------
        InvalidArgumentError
            The name is invalid or in use, or ``nbytes`` is 0.
        MismatchError
            Ranks passed different names or sizes, or a rank cannot allocate; the message names the
            rank and the cause. The group remains usable, and no rank has the workspace.
        ResourceExhaustedError
            This host has not enough memory.
        UnsupportedError
            ``device`` is not supported; raised before anything is sent.
        PeerLostError, TimeoutError, AbortedError
            The operation failed; every later operation of the group raises the same error.
        """
    @overload
    def allocate(
        self, name: str, nbytes: int, device: str, *, timeout: float | timedelta | None = None
    ) -> GpuWorkspace: ...
    @property
    def names(self) -> list[str]:
        """The names of this rank's workspaces, in alphabetical order."""

class Operator:
    """Collective for repeated execution, from ``Communicator.operator`` or a capsule.

    If it has buffers, an execution reads no arguments and costs less than the method of a
    ``Communicator``. The rules of collectives apply: all ranks execute theirs, in the same order.

    Parameters
    ----------
    group
        A communicator, or a process group of torch, for which an operator can be described but not
        executed.
    name
        Name of an algorithm or of a loaded capsule; empty for the group's choice.
    collective
        Collective, as for ``Communicator.operator``.
    root
        Root rank of broadcast, reduce, gather and scatter.

    Raises
    ------
    InvalidArgumentError
        The collective does not exist.
    """

    def __init__(self, group: object, name: str, collective: str, root: int = 0) -> None: ...
    @property
    def group(self) -> Any:
        """The communicator or process group of torch."""
    @property
    def name(self) -> str:
        """The name of the algorithm or capsule; empty for the group's choice."""
    @property
    def collective(self) -> _Collective:
        """The name of the collective."""
    @property
    def root(self) -> int:
        """The root rank; 0 if the collective has none."""
    def bind(
        self, x: _Blocks | None = None, out: _Blocks | None = None, *, op: str = "sum"
    ) -> Operator:
        """Return a copy of this operator with buffers; nothing is sent.

        Parameters
        ----------
        x, out, op
            As for ``Communicator.operator``.

        Raises
        ------
        InvalidArgumentError
            The buffers do not fit, or ``op`` does not exist.
        UnsupportedError
            Elements of that type have no such ``op``, or the group is one of torch.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The group has already failed.
        """
    def execute(
        self,
        x: _Blocks | None = None,
        out: _Blocks | None = None,
        *,
        op: str = "sum",
        timeout: float | timedelta | None = None,
    ) -> Event:
        """Start the collective; the caller must not touch its buffers until it is done.

        Parameters
        ----------
        x, out, op
            As for ``bind``, for this execution only; without ``x`` and ``out``, the bound buffers.
        timeout
            Maximum seconds of the operation; None for the group's timeout.

        Returns
        -------
        Event
            Event to wait for: ``event.wait()``, ``await event``.

        Raises
        ------
        InvalidArgumentError
            The operator has no buffers, or they do not fit; nothing was sent.
        UnsupportedError
            As for ``bind``; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The group has already failed. The event raises errors of this execution.
        """
    def run(
        self,
        x: _Blocks | None = None,
        out: _Blocks | None = None,
        *,
        op: str = "sum",
        timeout: float | timedelta | None = None,
    ) -> None:
        """Execute the collective, and wait until its buffers are ready.

        Parameters
        ----------
        x, out, op, timeout
            As for ``execute``.

        Raises
        ------
        InvalidArgumentError
            The operator has no buffers, or they do not fit; nothing was sent.
        UnsupportedError
            As for ``bind``; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The operation failed, here or on another rank; every later operation of the group raises
            the same error.
        """

class Schedule:
    """Program of a collective: the steps of each rank."""

    @property
    def name(self) -> str:
        """The name of the algorithm."""
    @property
    def collective(self) -> _Collective:
        """The name of the collective."""
    @property
    def ranks(self) -> int:
        """The number of ranks, each of which has its own program."""
    @property
    def root(self) -> int:
        """The root rank; 0 if the collective has none."""
    @property
    def chunks(self) -> int:
        """The number of pieces of each block."""
    @property
    def slots(self) -> int:
        """The number of messages that may be in flight between two ranks."""
    @property
    def aggregation(self) -> int:
        """The requested limit of blocks in one message; 0 if none was requested."""
    @property
    def phases(self) -> tuple[str, ...]:
        """The target phase of each ``switch_phase`` of a lane; usually empty."""
    @property
    def steps(self) -> Table[Step]:
        """The steps of all ranks: a list, which notebooks show as a table."""
    def renamed(self, name: str) -> Schedule:
        """Return the same schedule by another name.

        Parameters
        ----------
        name
            New name; any string.
        """
    def plot(self) -> matplotlib.figure.Figure:
        """Draw ranks over rounds, with an arrow for each message.

        Returns
        -------
        matplotlib.figure.Figure
            Figure in which a message takes one round. Messages that the receiver reduces have
            another colour.

        Raises
        ------
        ImportError
            matplotlib is missing (``pip install matplotlib``).
        """
    def _repr_html_(self) -> str: ...
    def verify(self, *, in_place: bool = False) -> _Verdict:
        """Verify that the schedule computes its collective.

        Parameters
        ----------
        in_place
            Whether input and output are the same buffer.

        Returns
        -------
        dict
            ``rounds``, the length of the longest chain of dependent messages, and
            ``bit_identical``, whether all ranks reduce in the same order.

        Raises
        ------
        InvalidArgumentError
            The schedule is wrong; the message names rank, lane, step and chunk.
        """
    def __eq__(self, other: object) -> bool: ...

def algorithms(collective: _Collective) -> list[str]:
    """Return the names of the algorithms for a collective.

    Parameters
    ----------
    collective
        ``"all_reduce"``, ``"all_gather"``, ``"reduce_scatter"``, ``"broadcast"``, ``"reduce"``,
        ``"gather"``, ``"scatter"`` or ``"all_to_all"``.

    Raises
    ------
    InvalidArgumentError
        The collective does not exist.
    """

def generate(
    algorithm: str,
    collective: _Collective,
    ranks: int,
    *,
    root: int = 0,
    chunks: int | None = None,
    slots: int | None = None,
    aggregation: int = 0,
) -> Schedule:
    """Generate the programs of all ranks.

    Parameters
    ----------
    algorithm
        One of ``algorithms(collective)``.
    collective
        Collective, as for ``algorithms``.
    ranks
        Number of ranks.
    root
        Root rank of broadcast, reduce, gather and scatter.
    chunks
        Number of pieces of each block; None for the algorithm's minimum.
    slots
        Number of messages in flight between two ranks; None for the algorithm's minimum.
    aggregation
        For pat: maximum number of blocks in one message, rounded down to a power of two; 0 for no
        limit. A lower value means more messages and less scratch memory.

    Returns
    -------
    Schedule
        Schedule, not verified yet.

    Raises
    ------
    InvalidArgumentError
        The algorithm or collective does not exist, or does not support these values.
    """

_RawSlices: TypeAlias = list[tuple[str, int, int]]
_RawPort: TypeAlias = tuple[int, int] | None
_RawStep: TypeAlias = tuple[str, _RawSlices, _RawSlices, _RawPort, _RawPort, list[tuple[int, int]]]
_RawProgram: TypeAlias = tuple[int, list[list[_RawStep]]]

def programs_of(schedule: Schedule) -> list[_RawProgram]:
    """Return the steps of a schedule as tuples, as ``schedule_of`` takes them.

    Parameters
    ----------
    schedule
        Any schedule.
    """

def schedule_of(
    name: str,
    collective: str,
    ranks: int,
    root: int,
    chunks: int,
    slots: int,
    programs: list[_RawProgram],
    phases: list[str] = ...,
) -> Schedule:
    """Return the schedule of steps that are given as tuples, without verification.

    Parameters
    ----------
    name, collective, ranks, root, chunks, slots
        Properties of the ``Schedule``.
    programs
        By rank: chunks of scratch, and lanes of steps (action, src, dst, from, to, after). Slices
        are (buffer, offset, count), ports (peer, channel), dependencies (lane, step).
    phases
        Target phase of each ``switch_phase`` of a lane.

    Raises
    ------
    InvalidArgumentError
        The collective, a buffer or an action does not exist.
    """

# Seconds of a message, seconds of a hop, bytes a second.
_Speed: TypeAlias = tuple[float, float, float]

class Network:
    """Core object of ``pccl.simulator.Network``."""

    reduce_seconds_per_byte: float
    capacity: int
    @property
    def ranks(self) -> int:
        """The number of ranks."""
    @property
    def turns(self) -> bool:
        """Whether the network is symmetric: identical from each rank's point of view."""

def ring_of_circuits(ranks: int, ports: int, speed: _Speed) -> Network:
    """Return the network of ``pccl.simulator.Network.ring``.

    Parameters
    ----------
    ranks, ports, speed
        As for that method; not checked.
    """

def one_switch(ranks: int, speed: _Speed) -> Network:
    """Return the network of ``pccl.simulator.Network.switch``.

    Parameters
    ----------
    ranks, speed
        As for that method; not checked.
    """

def two_levels(ranks: int, ranks_per_host: int, within: _Speed, across: _Speed) -> Network:
    """Return the network of ``pccl.simulator.Network.hosts``.

    Parameters
    ----------
    ranks, ranks_per_host, within, across
        As for that method; not checked.
    """

def memory_speed(ranks_on_host: int) -> tuple[float, float, float]:
    """Return the costs of messages through memory: seconds of a message and of a hop, bytes/s.

    Parameters
    ----------
    ranks_on_host
        Number of ranks that share the memory.
    """

def this_machine(ranks: int, cores: int, by_shared_memory: bool) -> Network:
    """Return the network of ``pccl.simulator.Network.machine``.

    Parameters
    ----------
    ranks, cores
        As for that method; not checked.
    by_shared_memory
        Whether messages use shared memory; otherwise TCP over loopback.
    """

# Seconds of a message, of the receiver's wake-up, and of a byte; whether these costs also occupy
# the receiver; seconds of a reduced byte, of a run of chunks and of a poll; capacity of a link in
# bytes.
_Work: TypeAlias = tuple[float, float, float, bool, float, float, float, float, float, int]

def one_machine(ranks: int, cores: int, work: _Work) -> Network:
    """Return the network of one machine with the given costs.

    Parameters
    ----------
    ranks, cores
        Number of ranks and of cores; not checked.
    work
        Costs of messages.
    """

# rank, lane, index, action, sender, receiver, bytes, begin, start, done, arrival, window
_StepTime: TypeAlias = tuple[int, int, int, str, int, int, float, float, float, float, float, int]

class Replay:
    """Core object of ``pccl.simulator.Replay``, which describes the properties."""

    @property
    def seconds(self) -> float:
        """See ``pccl.simulator.Replay.seconds``."""
    @property
    def rounds(self) -> int:
        """See ``pccl.simulator.Replay.rounds``."""
    @property
    def messages(self) -> int:
        """See ``pccl.simulator.Replay.messages``."""
    @property
    def bytes_sent(self) -> float:
        """See ``pccl.simulator.Replay.bytes_sent``."""
    @property
    def busiest(self) -> str:
        """See ``pccl.simulator.Replay.busiest``."""
    @property
    def busiest_bytes(self) -> float:
        """See ``pccl.simulator.Replay.busiest_bytes``."""
    @property
    def busiest_seconds(self) -> float:
        """See ``pccl.simulator.Replay.busiest_seconds``."""
    @property
    def peak_chunks(self) -> int:
        """See ``pccl.simulator.Replay.peak_chunks``."""
    @property
    def windows(self) -> int:
        """See ``pccl.simulator.Replay.windows``."""
    @property
    def one_for_all(self) -> bool:
        """See ``pccl.simulator.Replay.one_for_all``."""
    @property
    def critical_path(self) -> list[_StepTime]:
        """See ``pccl.simulator.Replay.critical_path``."""
    @property
    def steps(self) -> list[_StepTime]:
        """See ``pccl.simulator.Replay.steps``."""

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

class DevicePlan:
    """Launch parameters of a collective on GPUs: protocol, blocks and threads.

    The protocols are ``"ll"`` for small messages, ``"direct"``, ``"staggered"`` for large messages,
    and ``"copy_engine"`` for large all_gathers and all_to_alls that leave the multiprocessors to
    other kernels. The last two are equivalent to direct if the collective has no such kernel.
    Schedules support ``"ll"``, ``"direct"`` and, for sizes between them, ``"ll128"`` (lines of 120
    bytes with an arrival flag, NCCL's LL128), if GPUs and links deliver such lines whole.

    Parameters
    ----------
    protocol
        One of these protocols.
    blocks
        Thread blocks on each GPU: 1 to 128, for ``"ll"`` 1 to 64.
    threads
        Threads of a block, a multiple of 32: at most 512, for ``"ll"`` at most 256.

    Raises
    ------
    InvalidArgumentError
        The protocol does not exist. ``DeviceGroup.launch`` checks the other values.
    """

    def __init__(self, *, protocol: str, blocks: int, threads: int = 512) -> None: ...
    @property
    def protocol(self) -> str:
        """``"ll"``, ``"ll128"``, ``"direct"``, ``"staggered"`` or ``"copy_engine"``."""
    @property
    def blocks(self) -> int:
        """The number of thread blocks on each GPU."""
    @property
    def threads(self) -> int:
        """The number of threads of a block."""
    @property
    def why(self) -> str:
        """The reason of the library's choice; empty for plans of users."""

class PlannedLaunch:
    """Launch of a collective on all GPUs; ``pccl.explain`` shows it."""

    @property
    def kernel(self) -> str:
        """The name of the kernel's file in csrc/kernels, or of the mechanism without a kernel."""
    @property
    def nbytes(self) -> int:
        """The bytes of the longest block."""
    @property
    def plan(self) -> DevicePlan:
        """The protocol, blocks and threads, and the reason of their choice."""
    @property
    def why(self) -> str:
        """The reason of the choice, including the choice of the kernel."""

def planned_launches(
    collective: str, nbytes: int, world_size: int, architecture: int
) -> list[PlannedLaunch]:
    """Return the launches of a call on GPUs, in their order.

    Parameters
    ----------
    collective
        Name of the collective, as in ``DeviceGroup.launch``.
    nbytes
        Bytes of the largest buffer.
    world_size
        Number of GPUs, 2 to 8.
    architecture
        Compute capability, 90 for sm_90.

    Raises
    ------
    InvalidArgumentError
        The collective does not exist, or ``world_size`` is out of range.
    """

def gpus_measured_for(architecture: int) -> str:
    """Return the GPUs with the measured thresholds of an architecture, as ``"4 x H200"``.

    Parameters
    ----------
    architecture
        Compute capability, 90 for sm_90.
    """

def device_plan(collective: str, nbytes: int, world_size: int) -> DevicePlan:
    """Return the plan that the library chooses for blocks of one length.

    Parameters
    ----------
    collective
        Name of the collective, as in ``DeviceGroup.launch``.
    nbytes
        Bytes of one rank's block; the whole tensor for all_reduce, reduce and broadcast.
    world_size
        Number of GPUs, 2 to 8.

    Raises
    ------
    InvalidArgumentError
        The collective does not exist, or ``world_size`` is out of range.
    """

class DeviceGroup:
    """Collectives among up to 8 GPUs of one host, on raw addresses and streams.

    Every rank has one GPU, and all ranks create the group at the same time. Launches return at
    once. All ranks must launch in the same order, with the same plan or algorithm; if they differ,
    all ranks raise MismatchError.

    The destructor waits at most one second for launched kernels. Kernels that still wait for peers
    are then ended, and the peers raise PeerLostError. The streams of the last launches must exist
    until the group is destroyed.

    Parameters
    ----------
    rank
        Rank of this process, 0 <= rank < world_size; default as for ``Communicator``.
    world_size
        Number of processes, 1 to 8; default as for ``Communicator``.
    rendezvous
        Place where the ranks meet, as for ``Communicator``; it must belong to this group alone.
    device
        CUDA's index of the GPU in this process.
    timeout
        Maximum seconds of the rendezvous, and of a launch's wait for its peers.
    algorithm
        Schedules that replace the kernels of collectives, in the format of PCCL_ALGORITHM:
        ``"all_reduce=ring,all_gather=pat"``. Rank 0's value applies.
    name
        Name in flight records; unique among the groups of a process.

    Raises
    ------
    UnsupportedError
        The build has no CUDA, or the GPUs have no peer access.
    UnavailableError
        The machine has no driver or no GPU.
    """

    def __init__(
        self,
        *,
        rank: int | None = None,
        world_size: int | None = None,
        rendezvous: object = None,
        device: int,
        timeout: float | timedelta = 1800.0,
        algorithm: str = "",
        name: str = "world",
    ) -> None: ...
    @property
    def rank(self) -> int:
        """The rank of this process, 0 <= rank < world_size."""
    @property
    def world_size(self) -> int:
        """The number of processes."""
    @property
    def heap_bytes(self) -> int:
        """The group's part, in bytes, of the GPU memory that the groups of this process share."""
    @property
    def architecture(self) -> int:
        """The compute capability of rank 0's GPU (90 for sm_90), on which launch choices depend."""
    def explain(self, collective: str, nbytes: int) -> list[PlannedLaunch]:
        """Return the launches of a call, in their order, as ``pccl.explain`` does.

        Parameters
        ----------
        collective
            Collective, as for ``launch``.
        nbytes
            Bytes of the largest buffer.

        Raises
        ------
        InvalidArgumentError
            The collective does not exist.
        """
    def launch(
        self,
        collective: str,
        *,
        input: int,
        output: int,
        count: int,
        dtype: str,
        op: str = "sum",
        root: int = 0,
        stream: int = 0,
        plan: DevicePlan | None = None,
        algorithm: str | None = None,
    ) -> None:
        """Launch a collective on ``stream``, and return.

        The first launch with an allocation waits until the peers have mapped it.

        Parameters
        ----------
        collective
            all_reduce, all_gather, reduce_scatter, broadcast, reduce, gather, scatter or
            all_to_all.
        input, output
            Addresses of GPU memory; several blocks are contiguous. The memory must exist until the
            launch has completed on ``stream``.
        count
            Elements of one rank's block; of the whole tensor for all_reduce, reduce and broadcast.
        dtype
            uint8, int8, uint16, int16, uint32, int32, uint64, int64, float16, bfloat16, float32,
            float64, complex64, complex128, bool, float8_e4m3fn, float8_e5m2; or bytes, which can be
            moved but not reduced.
        op
            Reduction: sum, avg, product, min, max, band, bor or bxor.
        root
            Root rank of broadcast, reduce, gather and scatter.
        stream
            A ``cudaStream_t``; 0 is the default stream.
        plan
            Launch parameters, the same on all ranks; None for the result of ``device_plan``. For a
            schedule: the maximum number of blocks (at least one for each lane), the threads of a
            block (at least 192), and the protocol ``"ll"``, ``"ll128"`` or ``"direct"``.
        algorithm
            Schedule (``pccl.schedule``) that replaces the kernel of the collective. Its first
            launch allocates memory; run it before the capture of a graph.

        Raises
        ------
        InvalidArgumentError
            A name, an address or the plan is invalid; nothing was launched.
        UnsupportedError
            The reduction does not support the type on GPUs, the schedule does not support such
            blocks, or the GPUs do not deliver whole lines for ``"ll128"``; nothing was launched.
        ResourceExhaustedError
            Memory is exhausted.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            This launch or an earlier one failed; every later launch of the group raises the same
            error.
        """

    def exchange(
        self,
        *,
        sends: list[tuple[int, int, int]],
        receives: list[tuple[int, int, int]],
        stream: int = 0,
    ) -> None:
        """Launch messages to and from peers, all at once.

        Messages from one rank to another match in launch order.

        Parameters
        ----------
        sends, receives
            Lists of (peer, address, nbytes); the memory must exist as for ``launch``.
        stream
            Stream, as for ``launch``.

        Raises
        ------
        InvalidArgumentError
            A peer does not exist, or an address is not GPU memory; nothing was launched.
        ResourceExhaustedError
            Memory is exhausted.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            This launch or an earlier one failed; every later launch of the group raises the same
            error.
        """

    def check(self) -> None:
        """Raise the group's error if the group has failed.

        Raises
        ------
        PeerLostError, TimeoutError, MismatchError, AbortedError
            A launch failed; see ``launch``.
        """

    def abort(self) -> None:
        """Abort the group: waiting kernels end, and later launches fail. Raises nothing."""

class DeviceMemory:
    """Zeroed buffer on a GPU, for programs without another library for GPU memory.

    Only the thread that created it may use it. Copies run on the default stream, after the launches
    that are already queued there.

    Parameters
    ----------
    device
        CUDA's index of the GPU in this process.
    nbytes
        Length in bytes.

    Raises
    ------
    UnavailableError
        The build has no CUDA, or the machine has no driver or no GPU.
    ResourceExhaustedError
        The GPU's memory is exhausted.
    """

    def __init__(self, *, device: int, nbytes: int) -> None: ...
    @property
    def address(self) -> int:
        """The address, for ``DeviceGroup.launch``."""
    @property
    def nbytes(self) -> int:
        """The length in bytes."""
    def write(self, source: _Buffer) -> None:
        """Copy an array to the beginning of the buffer, and wait for the copy.

        Parameters
        ----------
        source
            Array in host memory.

        Raises
        ------
        InvalidArgumentError
            The array is longer than the buffer, or not contiguous.
        """
    def read(self, target: _Buffer) -> None:
        """Copy the beginning of the buffer into an array, and wait for the copy.

        Parameters
        ----------
        target
            Writable array in host memory.

        Raises
        ------
        InvalidArgumentError
            The array is longer than the buffer, not contiguous, or read-only.
        """
    def wait(self) -> None:
        """Wait until the default stream has completed all queued work.

        Raises
        ------
        InternalError
            A launch on the default stream has failed.
        """

class PhaseNetwork:
    """Switched network of a job, shared by the groups of this process; see ``pccl.phases``."""

    def __init__(
        self,
        ranks: int,
        phases: Sequence[tuple[str, Sequence[tuple[int, int]], bool]],
        has_hosts: bool,
    ) -> None:
        """Create the network for a group.

        Parameters
        ----------
        ranks
            Number of ranks.
        phases
            Name and links of each phase, and whether ranks forward messages in it.
        has_hosts
            Whether ranks that share memory are connected in every phase.
        """
    @property
    def phase(self) -> str:
        """The current phase; empty before the first switch, or if it is unknown."""
    @property
    def generation(self) -> int:
        """The number of the switch that led to the current phase."""
    @property
    def is_in_use(self) -> bool:
        """Whether a group of this process can switch it."""
    @property
    def is_controller(self) -> bool:
        """Whether this process is rank 0 of that group."""
    def switch_phase(
        self,
        phase: str,
        timeout: float | timedelta,
        dry_run: bool,
        transact: Callable[[Callable[[], None]], tuple[bool, str]],
        read_back: Callable[[], bool],
    ) -> tuple[bool, str]:
        """Switch the network to another phase, with all other ranks.

        Parameters
        ----------
        phase
            Name of the phase.
        timeout
            Maximum seconds until all ranks have called it and no operation is in flight.
        dry_run
            Only prepare the switch, and stay in the old phase.
        transact
            Function that reconfigures the switches, on rank 0. It calls its argument when all
            switches are prepared.
        read_back
            Function for another rank if rank 0 is lost: returns whether the switches have that
            phase.

        Returns
        -------
        tuple
            Whether the network was switched (or, in a dry run, prepared), and rank 0's report.

        Raises
        ------
        InvalidArgumentError
            A rank has no route in the phase.
        TimeoutError, MismatchError, PeerLostError, UnavailableError, AbortedError
            See ``pccl.switch_phase``.
        """
    def handle(self) -> object:
        """Return a handle of the network for ``pccl._torch``. Raises nothing."""

class ProgressBoard:
    """Progress of a switch of phases, written by the switching thread."""

    def __init__(self) -> None: ...
    @property
    def text(self) -> str:
        """The progress as JSON: the current step, and the state of each switch."""

class Controller:
    """Controller of the switches of a cluster file. ``pccl.Cluster`` reads its results, JSON."""

    def __init__(self, text: str, name: str) -> None:
        """Read a cluster file, and open its audit log, without connecting to a switch.

        Parameters
        ----------
        text
            Content of the file, as JSON.
        name
            Name of the file in messages.

        Raises
        ------
        InvalidArgumentError
            The file has an error; the message names the place and a correct value.
        """
    @property
    def description(self) -> str:
        """The devices, switches and phases, as JSON."""
    @property
    def current(self) -> str:
        """The phase that was last verified; empty before the first."""
    @property
    def generation(self) -> int:
        """The number of changes of circuits."""
    @property
    def degraded(self) -> str:
        """The switch that could not be verified, and the remedy; empty if there is none."""
    def plan(self, source: str, target: str) -> str:
        """Return the changes between two phases.

        Parameters
        ----------
        source
            Old phase; empty: nothing is connected.
        target
            New phase.

        Raises
        ------
        InvalidArgumentError
            The phase does not exist.
        """
    def switch_to(
        self,
        phase: str,
        timeout: float | timedelta,
        dry_run: bool,
        adopt: bool,
        discard_candidate: bool,
        drain: Callable[[], None] | None = None,
        progress: ProgressBoard | None = None,
    ) -> str:
        """Switch all devices or none, and return the outcome.

        Parameters
        ----------
        phase
            Name of the phase.
        timeout
            Maximum seconds of each step; values above one hour are reduced to one hour.
        dry_run
            Only let the switches check the configuration.
        adopt
            Accept the current circuits of the switches as the old state, whatever they are.
        discard_candidate
            Discard changes that others have left in the candidate configurations of switches.
        drain
            Function that is called when all switches are prepared. Its exception ends the switch.
        progress
            Object that receives the progress.

        Returns
        -------
        str
            Outcome, reason, and the actions of each switch, as JSON.

        Raises
        ------
        InvalidArgumentError
            The phase does not exist, or the timeout is not above 0.
        MismatchError
            The circuits of the switches match no phase.
        UnavailableError
            A switch is degraded, or cannot be reached.
        """
    def inspect(self, timeout: float | timedelta) -> str:
        """Read all switches, and return their circuits.

        Parameters
        ----------
        timeout
            Maximum seconds to read the switches, above 0.

        Raises
        ------
        InvalidArgumentError
            The timeout is not above 0.
        """
    def adopt(self, timeout: float | timedelta) -> None:
        """Set the current phase to the phase that all switches have.

        Parameters
        ----------
        timeout
            Maximum seconds to read the switches.

        Raises
        ------
        MismatchError
            The circuits of the switches match no phase.
        """
    def inherit(self, timeout: float | timedelta) -> str:
        """Adopt the phase of the switches after they have rolled back a lost controller's changes.

        Parameters
        ----------
        timeout
            Maximum seconds of each step, at most one hour. The switches determine the time of the
            wait before it.

        Returns
        -------
        str
            Adopted phase; empty: nothing is connected.

        Raises
        ------
        MismatchError
            The circuits of the switches match no phase.
        UnavailableError, PeerLostError, TimeoutError
            A switch cannot be read.
        """
    def audit(self) -> list[str]:
        """Return the audit log, one JSON object in each line."""

def _echo(descriptor: int) -> None:
    """Echo all data of a blocking socket until its other end is closed."""

def _time_round_trips(descriptor: int, nbytes: int, rounds: int) -> list[float]:
    """Measure round trips to an ``_echo``, and return the seconds of each."""

class _RendezvousStore:
    """Core object of ``pccl.p2p.RendezvousStore``."""

    def __init__(self, url: str, hosts: bool, timeout: float | timedelta) -> None: ...
    def set(self, key: str, value: bytes) -> None: ...
    def look_up(self, key: str) -> bytes | None: ...
    def add(self, key: str, delta: int) -> int: ...
    def remove(self, key: str) -> None: ...

class _P2pSession:
    """Core object of ``pccl.p2p.Session``."""

    def __init__(
        self,
        name: str,
        listen: str = "",
        transports: str = "",
        tcp_sockets: int = 0,
        connect_timeout: float | timedelta = 10.0,
    ) -> None: ...
    @property
    def id(self) -> tuple[str, int]:
        """The name and the incarnation of the session."""
    @property
    def refused_requests(self) -> int:
        """The number of refused requests of peers so far."""
    def connection_info(self) -> bytes: ...
    def load(self, info: bytes) -> tuple[str, int]: ...
    @staticmethod
    def read_entry(info: bytes, descriptors: list[bytes]) -> tuple[str, list[_P2pRemoteMemory]]: ...
    def connect(self, peer: str, timeout: float | timedelta | None) -> None: ...
    def accept(self, peer: str, timeout: float | timedelta | None) -> str: ...
    def disconnect(self, peer: str) -> None: ...
    def peers(self) -> list[tuple[str, int]]: ...
    def register(self, buffer: object) -> _P2pMemory: ...
    def register_address(self, address: int, nbytes: int) -> _P2pMemory: ...
    def register_gpu(self, address: int, nbytes: int, device: int, owner: object) -> _P2pMemory: ...
    def allocate(self, nbytes: int) -> _P2pMemory: ...
    def deregister(self, memory: _P2pMemory) -> None: ...
    def import_memory(self, peer: str, descriptor: bytes) -> _P2pRemoteMemory: ...
    def publish(self, name: str, memory: _P2pMemory) -> None: ...
    def withdraw(self, name: str) -> None: ...
    def fetch(
        self, peer: str, name: str, timeout: float | timedelta | None
    ) -> _P2pRemoteMemory: ...
    def transfer(
        self,
        writes: bool,
        local: tuple[_P2pMemory, int],
        remote: tuple[_P2pRemoteMemory, int],
        nbytes: int,
        notify: bytes,
        stream: tuple[int, int] | None,
    ) -> _P2pWork: ...
    def post(
        self,
        writes: bool,
        plan: _P2pPlan,
        indices: NDArray[Any] | None,
        notify: bytes,
        stream: tuple[int, int] | None,
    ) -> _P2pWork: ...
    def read_in_order(
        self,
        plan: _P2pPlan,
        indices: NDArray[Any] | None,
        notify: bytes,
        stream: tuple[int, int],
        timeout: float | timedelta,
    ) -> _P2pWork: ...
    def create_transfer(self, peer: str, window: int, chunk: int) -> _P2pTransfer: ...
    def time_posts(self, writes: bool, plan: _P2pPlan, rounds: int) -> list[float]: ...
    def notify(self, peer: str, payload: bytes) -> None: ...
    def notifications(self, timeout: float | timedelta | None) -> list[tuple[str, bytes]]: ...
    def close(self) -> None: ...

class _P2pMemory:
    """Memory that is registered with a session, which keeps a reference to it."""

    @property
    def nbytes(self) -> int:
        """The length in bytes."""
    @property
    def device(self) -> int:
        """The index of the GPU; -1 for host memory."""
    def descriptor(self) -> bytes: ...
    def array(self) -> NDArray[Any]: ...

class _P2pRemoteMemory:
    """Memory of a peer, imported by a session."""

    @property
    def nbytes(self) -> int:
        """The length in bytes."""
    @property
    def owner(self) -> tuple[str, int]:
        """The name and the incarnation of the session."""

class _P2pPlan:
    """Pairs of local and remote blocks."""

    def __init__(
        self,
        local: _P2pMemory,
        local_blocks: tuple[int, int, int, int] | NDArray[Any],
        remote: _P2pRemoteMemory,
        remote_blocks: tuple[int, int, int, int] | NDArray[Any],
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def nbytes(self) -> int:
        """The total bytes of all blocks."""

class _P2pTransfer:
    """Messages and transfers to and from one peer, within a window."""

    def post_send(
        self,
        memory: _P2pMemory,
        offset: int,
        nbytes: int,
        tag: int,
        timeout: float | timedelta | None,
    ) -> _P2pMessage: ...
    def post_recv(
        self,
        memory: _P2pMemory,
        offset: int,
        nbytes: int,
        tag: int,
        timeout: float | timedelta | None,
    ) -> _P2pMessage: ...
    def post_read(
        self,
        local: tuple[_P2pMemory, int],
        remote: tuple[_P2pRemoteMemory, int],
        nbytes: int,
        notify: bytes,
        timeout: float | timedelta | None,
    ) -> _P2pWork: ...
    def post_write(
        self,
        local: tuple[_P2pMemory, int],
        remote: tuple[_P2pRemoteMemory, int],
        nbytes: int,
        notify: bytes,
        timeout: float | timedelta | None,
    ) -> _P2pWork: ...
    def is_complete(self) -> bool: ...
    def wait(self, timeout: float | timedelta | None) -> None: ...
    def release(self) -> None: ...

class _P2pMessage:
    """Message of a ``_P2pTransfer``."""

    @property
    def nbytes(self) -> int:
        """The bytes of a completed message, otherwise 0."""
    @property
    def tag(self) -> int:
        """The tag with which it was posted."""
    @property
    def stage(self) -> str:
        """The stage of the message's progress."""
    def done(self) -> bool: ...
    def wait(self, timeout: float | timedelta | None) -> None: ...
    def release(self) -> None: ...
    def __str__(self) -> str: ...

class _P2pWork:
    """One-sided transfer."""

    def done(self) -> bool: ...
    def wait(self, timeout: float | timedelta | None) -> None: ...
    def release(self) -> None: ...
    def stats(self) -> dict[str, Any]: ...
