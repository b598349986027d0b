# SPDX-License-Identifier: Apache-2.0
"""PCCL without torch: the communicator over buffers, and the programs of collectives.

A *buffer* is an object that exposes C-contiguous host memory: a numpy array, an ``array.array``, a
``bytearray``, a ``memoryview``; by DLPack a CPU tensor of torch, or an array of another library; or
what has ``__array_interface__``. Element types are bool, integers, float16, bfloat16 (of torch, or
ml_dtypes), float32, float64, complex64 and complex128; float8_e4m3fn, float8_e5m2, strings, void
and longdouble can be moved, but not reduced. Others (objects, fields, packed structures, times,
another byte order) are refused. All buffers of one call have one type.

What a rank only gives may be read-only, a broadcast's root's ``x``, too. A collective's buffer that
is read-only, strided, or one memory for two outputs is refused on all ranks: with
InvalidArgumentError on those whose buffer it is, else with MismatchError, and nothing is written.
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

from pccl.capsule_results import LoadedCapsule
from pccl.named import Charge, LinksCountedOn, Ports
from pccl.peer_health import PeerHealth
from pccl.schedule_steps import Step
from pccl.table import Table

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

# The stubs of numpy say only from Python 3.12 on that an array is a Buffer.
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
    """Return what ``pccl.flight_record`` does, as text."""

def ask_status(door: str, group: bytes, first: int, timeout_s: float | timedelta) -> bytes:
    """Ask a process in what its groups are, as ``pccl status`` does.

    Parameters
    ----------
    door
        Where it listens: ``"10.0.0.1:4567"``, ``"[fd00::1]:4567"`` or ``"unix:@name"``.
    group
        Whose members are asked for: the 16 bytes of its key. Empty: all groups of the process.
    first
        Where the list goes on that did not fit the last answer: its ``"next"``; else 0.
    timeout_s
        How long to wait for the answer, in seconds.

    Returns
    -------
    bytes
        JSON: a part of a flight record (docs/failure.md), or ``"members"``; and ``"next"``.

    Raises
    ------
    InvalidArgumentError
        The process does not prove the job's secret (``PCCL_SECRET_FILE``), or it is no address.
    PeerLostError
        Nobody listens there.
    TimeoutError
        The answer did not come in time.
    """

def set_log_level(
    level: Literal["trace", "debug", "info", "warning", "error", "off"],
) -> None:
    """Choose what goes to stderr; overrides ``PCCL_LOG_LEVEL``.

    Parameters
    ----------
    level
        The least that is written: ``"trace"``, ``"debug"``, ``"info"``, ``"warning"``, ``"error"``
        or ``"off"``.

    Raises
    ------
    InvalidArgumentError
        There is no such level.
    """

def tuning_path() -> str:
    """Return the file that rank 0 of a group reads the measured choices from; empty without one."""

def topology_hash() -> str:
    """Return 16 digits, alike on machines on which collectives take as long: by what is known.

    That is the model and number of processors, those that this process may use, caches and nodes of
    memory.
    """

def costs_path() -> str:
    """Return the file that keeps what this machine's steps cost; empty without one."""

def machine_costs() -> tuple[str, list[str]]:
    """Return where this process has the costs of single steps from, and a line for each.

    Where no file has them, they are measured, in some 30 ms, unless ``PCCL_COSTS_FILE=off``.
    """

class Event:
    """An asynchronous operation. Its buffers must not be touched until it is done."""

    def wait(self, timeout: float | timedelta | None = None) -> None:
        """Wait until the operation is done, and raise if it failed.

        Parameters
        ----------
        timeout
            Seconds to wait at most. The operation goes on if they pass.

        Raises
        ------
        TimeoutError
            ``timeout`` passed, or the operation's own.
        PeerLostError, MismatchError, AbortedError
            The operation failed.
        """
    def flush(self) -> None:
        """Wait until all that this rank has to send is handed to its links.

        Raises
        ------
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The operation failed before.
        """
    def is_done(self) -> bool:
        """Tell whether the operation has ended, with success or without; returns at once."""
    def record(self) -> _Times:
        """Return when the operation passed which point, in seconds of the monotonic clock.

        Returns
        -------
        dict
            ``issued``, ``started``, and ``finished``, which is None until it is done.
        """
    def add_done_callback(self, callback: Callable[[Event], object]) -> None:
        """Have a function called when the operation is done, with success or without.

        Callbacks run one after the other on a thread of the library's own, in the order in which
        operations end: one that waits holds the others up. What they raise goes to the log "pccl"
        of ``logging``.

        Parameters
        ----------
        callback
            Called once, with the event; soon, where the operation is done already.

        Raises
        ------
        ResourceExhaustedError
            There is no descriptor left (at the first callback of a process).
        """
    def __await__(self) -> Generator[Any]:
        """Let other tasks of the event loop run until the operation is done: ``await event``.

        A task that is cancelled meanwhile leaves the operation on its way.

        Returns
        -------
        generator
            For the event loop; ``await`` gives None.

        Raises
        ------
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The operation failed.
        """
    @property
    def source(self) -> int | None:
        """The rank that sent what this receive got; None until done, and for collectives."""

class DoneQueue:
    """Numbers of events that are done, for the thread of ``pccl.callbacks``."""

    def __init__(self) -> None: ...
    @property
    def descriptor(self) -> int:
        """Can be read while there are numbers to take."""
    def expect(self, event: Event, number: int) -> None:
        """Have a number come when an event is done.

        Parameters
        ----------
        event
            Of any communicator.
        number
            0 or more.
        """
    def take(self) -> list[int]:
        """Return the numbers that have come, in the order of events' ends."""

class PremulSum:
    """The reduction that sums every rank's elements times that rank's factor.

    As ``PREMUL_SUM`` of torch and ``ncclRedOpCreatePreMulSum``: the factor may differ from rank to
    rank. What a rank gives stays as it is, but where the result takes its place; the products take
    memory of their own while the collective runs.
    """

    def __init__(self, factor: float) -> None:
        """Make one.

        Parameters
        ----------
        factor
            Of this rank's elements, which are floating-point or complex numbers; in their type.
        """
    @property
    def factor(self) -> float:
        """Of this rank's elements."""

class Prediction:
    """One way to make a collective, as the cost model sees it. Prints as a line."""

    @property
    def algorithm(self) -> str:
        """As ``PCCL_ALGORITHM`` has it."""
    @property
    def over(self) -> str:
        """``"shm"``: memory that the ranks of one host share; or ``"links"``."""
    @property
    def seconds(self) -> float:
        """What one call takes."""
    @property
    def busiest(self) -> str:
        """The link that ranks of a host share most, and its GB/s; empty for none."""
    @property
    def aggregation(self) -> int:
        """Most blocks in one message, where the algorithm has a choice (PAT); else 0: all that can.

        As ``pccl.schedule.generate`` takes it.
        """
    @property
    def is_chosen(self) -> bool:
        """Whether calls of this length go this way."""
    @property
    def chosen_by(self) -> Literal["", "request", "capsule", "tuning", "prediction"]:
        """What made the group choose it, as ``pccl.explanation.Way`` has it; else empty."""

class _Cluster(Protocol):  # pccl.Cluster
    @property
    def ranks(self) -> int: ...

class Communicator:
    """The collectives and messages of one group of processes.

    Collectives run in the order in which they are called, which must be the same on every rank.
    Without ``async_op`` a call returns when its buffers are ready, and returns None. ``timeout``
    is in seconds, and replaces the group's own; ``float("inf")`` is no limit, and so is whatever is
    longer than 292 years.

    Where a collective has one block for each rank, ``out`` or ``x`` is one buffer that holds them
    all, equally long and in the order of ranks, or a list of buffers, which may differ in length.

    Parameters
    ----------
    rank
        This process, 0 <= rank < world_size: of ``"env://"`` the environment's, otherwise 0, unless
        given. Several ranks may be threads of one process.
    world_size
        How many ranks there are; the environment's, otherwise 1, unless given. A process that srun
        or an mpiexec has started beside others must give a place, or have RANK set: it is refused
        where it gives neither rank, world_size nor rendezvous.
    rendezvous
        Where they meet: ``"env://"`` (as RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say, which
        torchrun sets; its store is used), ``"tcp://host:port"`` (rank 0 listens, at that host's
        addresses alone), ``"file:///path"`` (on a disk that all see), or a store object. Not needed
        by one process alone. Groups of one name may meet there one after the other, also after a
        restart of the job: what earlier ones have left is of no harm. docs/security.md says what
        protects it.
    timeout
        Seconds that an operation, or the rendezvous, may take; above 0. Infinite: no limit.
    name
        For messages.
    transports
        Restricts the group, for example to ``"shm,tcp"``; empty for all.
    algorithm
        As the environment's ``PCCL_ALGORITHM``, which counts where this is empty: for example
        ``"all_reduce=ring,all_gather=bruck"``. The same on all ranks. A name that neither an
        algorithm nor a capsule of ``PCCL_CAPSULES`` has is warned about: until a capsule of that
        name is loaded, calls raise.
    gpu
        Bus id of the GPU that this rank uses (``"0000:0d:00.0"``), where the job's topology should
        know; empty for none.
    cluster
        Whose phases the group switches, by ``pccl.switch_phase``: one device for each rank. None
        for that of the environment's ``PCCL_CLUSTER``, where it has as many, or for none. Groups
        that are split off follow. Ranks that are threads of one process need one each.

    Raises
    ------
    InvalidArgumentError
        An argument does not fit; nothing was sent.
    UnsupportedError
        The element type cannot be reduced so; nothing was sent.
    PeerLostError, TimeoutError, MismatchError, AbortedError
        The operation failed; every later one of the group raises the same.
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
        """The number of this process, 0 <= rank < world_size."""
    @property
    def world_size(self) -> int:
        """How many processes there are."""
    @property
    def name(self) -> str:
        """As messages have it."""
    @property
    def _network(self) -> PhaseNetwork | None:
        """That of its cluster."""
    @property
    def sequence(self) -> int:
        """Collectives started so far."""
    @property
    def memory(self) -> Memory:
        """Workspaces: memory that all ranks have under one name."""
    def explain(self, collective: str, nbytes: int) -> list[Prediction]:
        """Predict the time of every way to make a collective; one of them is chosen.

        Parameters
        ----------
        collective
            ``"all_reduce"``, ``"all_gather"``, ``"reduce_scatter"``, ``"broadcast"``, ``"reduce"``,
            ``"gather"``, ``"scatter"`` or ``"all_to_all"``.
        nbytes
            Of the largest buffer: what all ranks have together after an ``all_gather``.

        Returns
        -------
        list of Prediction
            ``pccl.explain`` shows them as a table.

        Raises
        ------
        InvalidArgumentError
            There is no such collective, or PCCL_ALGORITHM names an algorithm that does not fit.
        """
    def load(
        self,
        capsule: _Capsule | Capsule | str | PathLike[str],
        sizes: str | None = None,
        *,
        timeout: float | timedelta | None = None,
    ) -> Operator:
        """Load a capsule on all ranks: from now on, its collective runs by it.

        All ranks must call it with the same capsule and sizes; the programs for so many ranks are
        verified again on each.

        Parameters
        ----------
        capsule
            One, or the path of its file.
        sizes
            Bytes of the largest buffer for which the group takes it before others, ``"1MB.."``,
            ``"..64KB"``, ``"64KB..1MB"``, ``".."`` for any, ``"by name"`` for none; None for those
            that the capsule states. Of gather, scatter and all_to_all of lists, of whose sizes only
            pairs of ranks know, it is taken by name alone.
        timeout
            Seconds until the others must have come; None for that of the group.

        Returns
        -------
        Operator
            It runs the collective by this capsule, whatever the size, and has no buffers yet.
            For a capsule that switches phases of the network, which needs the group of all ranks of
            a cluster, a ``pccl.switched_operator.SwitchedOperator``.

        Raises
        ------
        InvalidArgumentError
            It is no capsule, or wrong, or for other numbers of ranks; or there is one of its name;
            or the phase in which the network is has no link for what a rank sends.
        UnsupportedError
            It switches phases of the network, and this is not the group of all ranks of a cluster.
        MismatchError
            Ranks have other bytes or sizes; the message names them.
        """
    def unload(self, name: str, *, timeout: float | timedelta | None = None) -> None:
        """Forget a capsule on all ranks, which must all call it.

        Parameters
        ----------
        name
            The capsule's.
        timeout
            Seconds until the others must have come; None for that of the group.

        Raises
        ------
        InvalidArgumentError
            No such capsule was loaded.
        """
    def capsules(self) -> Table[LoadedCapsule]:
        """Return the capsules that are loaded: a list, which notebooks show as a table."""
    def record_timeline(self, steps: int = 262144) -> None:
        """Record when the steps of this rank happen, in the collectives that it calls from now on.

        Those over links are made of steps, which loaded capsules always are; over the memory of one
        host there are none. It takes 100 bytes a step, and 2 reads of a clock.

        Parameters
        ----------
        steps
            For so many there is room, up to 4,194,304; 0 ends it.

        Raises
        ------
        InvalidArgumentError
            ``steps`` is more than that.
        """
    def _take_timeline(self) -> tuple[list[tuple[Any, ...]], int, int]:
        """Return what this rank has recorded; ends the recording.

        Returns
        -------
        tuple
            Steps, how many had no room, and by how many nanoseconds their times may be off.
            ``pccl.timeline.gather`` gives that of all ranks, with names. Steps are tuples: call,
            window, lane, index, action, sender and its channel, receiver and its channel, bytes,
            whether a GPU did it, and nanoseconds of ``time.monotonic_ns``: begin, moved, end.
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
        """Bind a collective to its buffers, to execute it again and again. Nothing is sent.

        Arguments are read, and shapes checked, here and now, and not at each execution.

        Parameters
        ----------
        collective
            ``"all_reduce"``, ``"all_gather"``, ``"reduce_scatter"``, ``"broadcast"``, ``"reduce"``,
            ``"gather"``, ``"scatter"`` or ``"all_to_all"``.
        x, out
            As the method of that name takes them: ``x`` is what this rank gives, ``out`` what it
            gets; broadcast and reduce have ``x`` alone, and so has all_reduce, unless ``x`` is to
            stay as it is. None where this rank has none: a gather's ``out`` beside its root. They
            are held, and must keep their size, as long as the operator lives.
        op
            Of reductions.
        root
            Of broadcast, reduce, gather and scatter.
        algorithm
            By which to run it, the same on all ranks, as ``PCCL_ALGORITHM`` names it; empty for
            the one that the group chooses for its size.

        Returns
        -------
        Operator
            All ranks must execute theirs, in the same order among all calls of the group.

        Raises
        ------
        InvalidArgumentError
            There is no such collective, ``op``, ``root`` or algorithm, or the buffers do not fit.
        UnsupportedError
            Elements of that type have no such ``op``.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The group has ended before.
        """
    def links_counted_on(self) -> LinksCountedOn:
        """Return what predictions rest on: links, order of ranks, rings side by side, and costs."""
    def describe_job(self) -> bytes:
        """Return what ``pccl.topology.job`` shows.

        Raises
        ------
        UnavailableError
            This machine cannot be looked at, or the process is a child of the one that made the
            group.
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
        """Reduce ``x`` over all ranks, in place on each.

        Parameters
        ----------
        x
            As many elements, of one type, on every rank; replaced by the result.
        op
            ``"sum"``, ``"avg"`` (integers: exact, towards zero), ``"product"`` (or ``"prod"``),
            ``"min"``, ``"max"``; of integers and bool ``"band"``, ``"bor"``, ``"bxor"``, too.
            Complex numbers have sum, avg and product; bool has all but avg. Or a ``PremulSum``.
        async_op
            Return an ``Event`` at once; the buffers must not be touched until it is done.
        timeout
            Seconds that it may take; None for the group's.

        Returns
        -------
        None
            Or an ``Event``, with ``async_op``.

        Raises
        ------
        InvalidArgumentError
            ``x`` is no such buffer, or there is no such ``op``; nothing was sent.
        UnsupportedError
            Elements of that type have no such ``op``; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            It failed, here or on another rank; every later operation of the group raises the same.
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
        """Copy the root's ``x`` into everybody's.

        Parameters
        ----------
        x
            As many elements, of one type, on every rank.
        root
            The rank whose ``x`` all get, and who only reads it, 0 <= root < world_size; the same on
            all ranks.
        async_op
            Return an ``Event`` at once; the buffers must not be touched until it is done.
        timeout
            Seconds that it may take; None for the group's.

        Returns
        -------
        None
            Or an ``Event``, with ``async_op``.

        Raises
        ------
        InvalidArgumentError
            ``x`` or ``root`` does not fit; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            It failed, here or on another rank; every later operation of the group raises the same.
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
        """Reduce ``x`` over all ranks, in place on the root; the others keep theirs.

        Parameters
        ----------
        x
            As many elements, of one type, on every rank.
        root
            The rank that gets the result, 0 <= root < world_size; the same on all ranks.
        op
            ``"sum"``, ``"avg"`` (integers: exact, towards zero), ``"product"`` (or ``"prod"``),
            ``"min"``, ``"max"``; of integers and bool ``"band"``, ``"bor"``, ``"bxor"``, too.
            Complex numbers have sum, avg and product; bool has all but avg. Or a ``PremulSum``.
        async_op
            Return an ``Event`` at once; the buffers must not be touched until it is done.
        timeout
            Seconds that it may take; None for the group's.

        Returns
        -------
        None
            Or an ``Event``, with ``async_op``.

        Raises
        ------
        InvalidArgumentError
            ``x`` or ``root`` does not fit, or there is no such ``op``; nothing was sent.
        UnsupportedError
            Elements of that type have no such ``op``; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            It failed, here or on another rank; every later operation of the group raises the same.
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
        """Gather everybody's ``x``, on every rank.

        Parameters
        ----------
        out
            A block for each rank, as long as that rank's ``x``.
        x
            What this rank gives.
        async_op
            Return an ``Event`` at once; the buffers must not be touched until it is done.
        timeout
            Seconds that it may take; None for the group's.

        Returns
        -------
        None
            Or an ``Event``, with ``async_op``.

        Raises
        ------
        InvalidArgumentError
            ``out`` or ``x`` does not fit; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            It failed, here or on another rank; every later operation of the group raises the same.
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
        """Reduce ``x`` over all ranks; each gets its own block of the result.

        Parameters
        ----------
        out
            As long as this rank's block.
        x
            A block for each rank; blocks for one rank are equally long on all.
        op
            ``"sum"``, ``"avg"`` (integers: exact, towards zero), ``"product"`` (or ``"prod"``),
            ``"min"``, ``"max"``; of integers and bool ``"band"``, ``"bor"``, ``"bxor"``, too.
            Complex numbers have sum, avg and product; bool has all but avg. Or a ``PremulSum``.
        async_op
            Return an ``Event`` at once; the buffers must not be touched until it is done.
        timeout
            Seconds that it may take; None for the group's.

        Returns
        -------
        None
            Or an ``Event``, with ``async_op``.

        Raises
        ------
        InvalidArgumentError
            ``out`` or ``x`` does not fit, or there is no such ``op``; nothing was sent.
        UnsupportedError
            Elements of that type have no such ``op``; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            It failed, here or on another rank; every later operation of the group raises the same.
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
        """Gather everybody's ``x`` on the root.

        Parameters
        ----------
        out
            On the root a block for each rank, as long as that rank's ``x``; others may pass None.
        x
            What this rank gives.
        root
            The rank that gets all, 0 <= root < world_size; the same on all ranks.
        async_op
            Return an ``Event`` at once; the buffers must not be touched until it is done.
        timeout
            Seconds that it may take; None for the group's.

        Returns
        -------
        None
            Or an ``Event``, with ``async_op``.

        Raises
        ------
        InvalidArgumentError
            ``out``, ``x`` or ``root`` does not fit; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            It failed, here or on another rank; every later operation of the group raises the same.
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
        """Give each rank its block of the root's ``x``.

        Parameters
        ----------
        out
            As long as this rank's block.
        x
            On the root a block for each rank; the others may pass None.
        root
            The rank that gives, 0 <= root < world_size; the same on all ranks.
        async_op
            Return an ``Event`` at once; the buffers must not be touched until it is done.
        timeout
            Seconds that it may take; None for the group's.

        Returns
        -------
        None
            Or an ``Event``, with ``async_op``.

        Raises
        ------
        InvalidArgumentError
            ``out``, ``x`` or ``root`` does not fit; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            It failed, here or on another rank; every later operation of the group raises the same.
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
        """Send block i of ``x`` to rank i, which puts it into its block of this rank.

        Parameters
        ----------
        out
            A block for each rank, as long as what that one sends here.
        x
            A block for each rank. ``out`` and ``x`` are arrays on all ranks, whose blocks are all
            of one length then; or lists on all, whose blocks may differ.
        async_op
            Return an ``Event`` at once; the buffers must not be touched until it is done.
        timeout
            Seconds that it may take; None for the group's.

        Returns
        -------
        None
            Or an ``Event``, with ``async_op``.

        Raises
        ------
        InvalidArgumentError
            ``out`` or ``x`` does not fit; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            It failed, here or on another rank; every later operation of the group raises the same.
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
            The receiver's buffer must have as many bytes, and elements of the same type.
        peer
            Who receives it, 0 <= peer < world_size.
        tag
            0 <= tag < 2**30. Messages of one tag between two ranks keep their order; different tags
            may be received in any order.
        async_op
            Return an ``Event`` at once; the buffers must not be touched until it is done.
        timeout
            Seconds that it may take; None for the group's.

        Returns
        -------
        None
            Or an ``Event``, with ``async_op``.

        Raises
        ------
        InvalidArgumentError
            ``x``, ``peer`` or ``tag`` does not fit, or this rank waits for itself; nothing was
            sent.
        MismatchError
            The two sides differ in bytes or element type.
        PeerLostError, TimeoutError, AbortedError
            It failed; every later operation of the group raises the same.
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
        """Receive into ``x``.

        Parameters
        ----------
        x
            As many bytes as the message has, and elements of the same type.
        peer
            Who sends it; None for any rank (``Event.source`` tells whose it was).
        tag
            As the sender has it.
        async_op
            Return an ``Event`` at once; the buffers must not be touched until it is done.
        timeout
            Seconds that it may take; None for the group's.

        Returns
        -------
        None
            Or an ``Event``, with ``async_op``.

        Raises
        ------
        InvalidArgumentError
            ``x``, ``peer`` or ``tag`` does not fit, or this rank waits for itself; nothing was
            sent.
        MismatchError
            The two sides differ in bytes or element type.
        PeerLostError, TimeoutError, AbortedError
            It failed; every later operation of the group raises the same.
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
        """Send any object that pickle takes, to be received by ``recv_object``.

        Parameters
        ----------
        value
            At most 2 GiB, pickled.
        peer
            Another rank.
        tag
            As for ``send``; keep tags of objects and of arrays apart.
        timeout
            Seconds that it may take; None for the group's.

        Raises
        ------
        InvalidArgumentError
            ``peer`` or ``tag`` does not fit, or the object is too large; nothing was sent.
        pickle.PicklingError, TypeError, AttributeError
            pickle does not take the object; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            It failed; every later operation of the group raises the same.
        """
    def recv_object(
        self, peer: int | None = None, tag: int = 0, *, timeout: float | timedelta | None = None
    ) -> Any:
        """Receive an object that another rank sends by ``send_object``.

        **pickle runs code that the sender chooses.** Use it only where you trust all ranks as you
        trust this program; docs/security.md says what keeps others out of a group. One thread at a
        time may receive objects of one peer and tag.

        Parameters
        ----------
        peer
            Who sends it; None for any rank.
        tag
            As the sender has it.
        timeout
            Seconds that it may take; None for the group's.

        Returns
        -------
        object
            A copy of what was sent.

        Raises
        ------
        InvalidArgumentError
            ``peer`` or ``tag`` does not fit.
        MismatchError
            The other side has sent something else than an object.
        PeerLostError, TimeoutError, AbortedError
            It failed; every later operation of the group raises the same.
        Exception
            Whatever unpickling raises: the class of the object may be missing here.
        """
    def broadcast_object(
        self, value: object, root: int = 0, *, timeout: float | timedelta | None = None
    ) -> Any:
        """Copy the root's object to all ranks, by pickle.

        **pickle runs code that the root chooses.** Use it only where you trust all ranks as you
        trust this program; docs/security.md says what keeps others out of a group.

        Parameters
        ----------
        value
            On the root: at most 2 GiB, pickled. The others may pass None.
        root
            The rank whose object all get; the same on all ranks.
        timeout
            Seconds that each of its two broadcasts may take; None for the group's.

        Returns
        -------
        object
            On the root ``value`` itself, elsewhere a copy.

        Raises
        ------
        InvalidArgumentError
            ``root`` does not fit, or the object is too large; nothing was sent.
        pickle.PicklingError, TypeError, AttributeError
            pickle does not take the object; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            It failed; every later operation of the group raises the same.
        Exception
            Whatever unpickling raises: the class of the object may be missing here.
        """
    def barrier(self, timeout: float | timedelta | None = None) -> None:
        """Return when all ranks have called it.

        Parameters
        ----------
        timeout
            Seconds that it may take; None for the group's.

        Raises
        ------
        TimeoutError
            A rank did not come.
        PeerLostError, MismatchError, AbortedError
            A rank is gone, or called something else; every later operation raises the same.
        """
    def monitored_barrier(
        self, timeout: float | timedelta, *, wait_all_ranks: bool = False
    ) -> None:
        """Return when all ranks have called it; rank 0 names those that do not come.

        Parameters
        ----------
        timeout
            Seconds that rank 0 waits for the others.
        wait_all_ranks
            Whether it names all that are missing, instead of the first.

        Raises
        ------
        TimeoutError
            A rank did not come; on the others, rank 0 says so.
        PeerLostError, MismatchError, AbortedError
            A rank is gone, or called something else; every later operation raises the same.
        """
    def abort(self, reason: str = "abort was called") -> None:
        """Make every operation in flight, and every later one, raise AbortedError. Raises nothing.

        Parameters
        ----------
        reason
            What the error says, on the other ranks, too.
        """
    def health(self, timeout: float | timedelta = 1.0) -> Table[PeerHealth]:
        """Ask every rank how it fares, now, whatever its user does; as ``pccl.health``.

        Parameters
        ----------
        timeout
            Seconds that each rank may take to answer.

        Returns
        -------
        Table of PeerHealth
            By rank, this one among them: a list, which notebooks show as a table.

        Raises
        ------
        UnavailableError
            This process is a child of the one that made the group.
        """
    def shrink(
        self, ranks_to_exclude: Sequence[int] | None = None, *, least: int | None = None
    ) -> Communicator:
        """Go on with the ranks that are left, in the same order; as ``pccl.shrink``.

        Operations in flight are aborted. Every rank that stays must call it, within a minute; it
        returns when all have confirmed that they go on with the same ranks. After an error it may
        be called again, with the same ranks or more.

        Parameters
        ----------
        ranks_to_exclude
            None for those that are gone, or silent for ``PCCL_PEER_TIMEOUT_MS``.
        least
            The fewest ranks that may go on; None for more than half of them, or half with rank 0.

        Returns
        -------
        Communicator
            The smaller group.

        Raises
        ------
        InvalidArgumentError
            Nobody is to be left out.
        UnavailableError
            Too few would be left, or others have gone on without this rank.
        TimeoutError
            A rank that should stay did not call it.
        MismatchError
            It leaves out others.
        PeerLostError
            It is gone. This and the last are raised only where ranks are named.
        """
    def split(
        self, color: int | None, key: int = 0, *, timeout: float | timedelta | None = None
    ) -> Communicator | None:
        """Make smaller groups, one of the ranks of each color; as ``MPI_Comm_split`` does.

        All ranks must call it, as a collective. This group stays as it is, and its store must be
        there: after a ``shrink`` without the rank that kept it, there is none to meet at.

        Parameters
        ----------
        color
            0 or more, the same for those who want to be in one group; None to be in none.
        key
            The new ranks are in the order of this, and of the old ranks where it is equal.
        timeout
            Seconds that asking all ranks may take; None for the group's. A new group then meets as
            long as the group's timeout allows.

        Returns
        -------
        Communicator or None
            Named ``"<name>/<color>"``, with this one's options. None where ``color`` is.

        Raises
        ------
        InvalidArgumentError
            ``color`` is negative.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            It failed; if while the ranks were asked, every later operation of this group raises the
            same.
        """
    def shutdown(self) -> None:
        """Close the group; operations in flight raise AbortedError. May be called again.

        Raises
        ------
        MismatchError
            The last collective was not the same on all ranks, and none of them had to notice: two
            roots of one broadcast. The group is closed all the same.
        """
    def __enter__(self) -> Self:
        """Return the communicator: ``with pccl.Communicator(...) as comm:``."""
    def __exit__(
        self,
        type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Shut down; where an exception ends the block, abort, so that peers hear its name.

        Parameters
        ----------
        type, error, traceback
            Of the exception; None where there is none.

        Raises
        ------
        MismatchError
            As ``shutdown``, where no exception ends the block.
        """

class Workspace:
    """Memory that every rank of a group has under one name; also a context manager, that releases.

    Arrays of it stay valid for as long as they live: after ``release``, after the group has ended,
    and when the peer that owns the memory has gone. Who reads what another rank writes must know
    that it has written: a ``barrier`` after it will do.
    """

    @property
    def name(self) -> str:
        """The same on all ranks."""
    @property
    def nbytes(self) -> int:
        """Of each rank's part."""
    @property
    def local(self) -> NDArray[np.uint8]:
        """The part of this rank, ``nbytes`` elements that others see; zero at first, page-aligned.

        ``local.view(np.float32)`` gives other elements, ``torch.from_dlpack(local)`` a tensor of
        the same memory.

        Raises
        ------
        InvalidArgumentError
            The workspace was released.
        """
    def peer(self, rank: int) -> NDArray[np.uint8]:
        """Return the part of another rank of this host, to be read and written.

        Parameters
        ----------
        rank
            0 <= rank < world_size; of this rank it is ``local``.

        Returns
        -------
        numpy.ndarray
            ``nbytes`` elements of uint8. Mapped at the first call, for which the peer must live.

        Raises
        ------
        InvalidArgumentError
            There is no such rank, or the workspace was released here.
        UnsupportedError
            The part cannot be mapped: the rank is on another host, or has released it, or is gone.
            ``send`` and ``recv``, or a collective, bring its content.
        """
    def release(self) -> None:
        """Give this rank's part back; arrays of it, here and at peers, stay as they are.

        Others need not do so at the same time. May be called again. When all have, the name may be
        allocated again.

        Raises
        ------
        UnavailableError
            The rendezvous store is gone, for workspaces that were told there.
        """
    def __enter__(self) -> Self:
        """Return the workspace: ``with comm.memory.allocate("halo", 4096) as halo:``."""
    def __exit__(
        self,
        type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Release it.

        Parameters
        ----------
        type, error, traceback
            Of an exception; None where there is none.

        Raises
        ------
        UnavailableError
            As ``release``.
        """

class GpuMemory:
    """Bytes of a GPU, by the protocols of arrays: ``torch.from_dlpack(memory)``, ``cupy.asarray``.

    It stays mapped as long as this object, and arrays made of it, live.
    """

    @property
    def address(self) -> int:
        """Of its first byte, as kernels of this process see it."""
    @property
    def nbytes(self) -> int:
        """Length."""
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Elements of uint8, by version 3 of Numba's protocol."""
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
            As consumers give them; none counts. The library writes nothing here, so that there is
            nothing to wait for: who writes orders it.

        Returns
        -------
        object
            For ``from_dlpack`` of any library.
        """
    def __dlpack_device__(self) -> tuple[int, ...]:
        """Return DLPack's number for CUDA, 2, and the GPU.

        Returns
        -------
        tuple of int
            As the protocol demands.
        """

class GpuWorkspace:
    """GPU memory that every rank of a group has under one name, for kernels of your own.

    A kernel, of CUDA, Triton or another language, reads and writes what ``local`` and ``peer``
    give over NVLink. Kernels on several GPUs order their accesses themselves, or by a collective
    between them. Also a context manager, that releases. End the kernels that use a workspace, on
    all ranks, before all its memory is dropped.
    """

    @property
    def name(self) -> str:
        """The same on all ranks."""
    @property
    def nbytes(self) -> int:
        """Of each rank's part."""
    @property
    def device(self) -> str:
        """Where this rank's part is: ``"cuda:0"``."""
    @property
    def local(self) -> GpuMemory:
        """The part of this rank; zero at first.

        Raises
        ------
        InvalidArgumentError
            The workspace was released.
        """
    def peer(self, rank: int) -> GpuMemory:
        """Return the part of another rank, at an address for kernels of this rank's GPU.

        Parameters
        ----------
        rank
            0 <= rank < world_size; of this rank it is ``local``.

        Returns
        -------
        GpuMemory
            ``nbytes`` long. ``torch.from_dlpack`` gives it as a tensor of this rank's GPU.

        Raises
        ------
        InvalidArgumentError
            There is no such rank, or the workspace was released here.
        """
    def release(self) -> None:
        """Give it back here, as soon as no array of it is left; may be called again."""
    def __enter__(self) -> Self:
        """Return the workspace."""
    def __exit__(
        self,
        type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Release it.

        Parameters
        ----------
        type, error, traceback
            Of an exception; None where there is none.
        """

class Memory:
    """The workspaces of a communicator; prints as a list of them."""

    @overload
    def allocate(  # type: ignore[overload-overlap]  # any other string is a GPU
        self,
        name: str,
        nbytes: int,
        device: Literal["cpu"] = "cpu",
        *,
        timeout: float | timedelta | None = None,
    ) -> Workspace:
        """Allocate memory on every rank, together; it lasts until it is released.

        A collective: all ranks call it with the same name and size, and all get theirs, or none
        does.

        Parameters
        ----------
        name
            1 to 128 bytes that do not start with ``"pccl/"``, and in use by no other workspace.
        nbytes
            Of each rank's part, 1 or more. Memory of the host is taken where it is touched.
        device
            ``"cpu"``: memory of the host. ``"cuda"``: of the only GPU that this process sees;
            ``"cuda:1"``: of the one of that number. Then the ranks are on one host, 8 at most, and
            their GPUs reach each other.
        timeout
            Seconds until the others must have come; None for that of the group.

        Returns
        -------
        Workspace or GpuWorkspace
            Its ``local`` is full of zeros.

        Raises
        ------
        InvalidArgumentError
            The name is in use, or none, or ``nbytes`` is 0.
        MismatchError
            Ranks have other names or sizes, or cannot allocate: the message says which, and what.
            The group goes on, and no rank has the workspace.
        ResourceExhaustedError
            There is no room here.
        UnsupportedError
            ``device`` is another one; raised before anything is sent.
        PeerLostError, TimeoutError, AbortedError
            It failed; every later operation of the group raises the same.
        """
    @overload
    def allocate(
        self, name: str, nbytes: int, device: str, *, timeout: float | timedelta | None = None
    ) -> GpuWorkspace: ...
    @property
    def names(self) -> list[str]:
        """Of the workspaces that this rank has, in alphabetical order."""

class Operator:
    """A collective that is executed many times: of ``Communicator.operator``, or of a capsule.

    Where it has its buffers, an execution reads no arguments: it costs less than the call of a
    ``Communicator``. It is a collective as any other: all ranks execute theirs, in one order.

    Parameters
    ----------
    group
        A communicator; of a process group of torch, an operator can be described, not executed.
    name
        An algorithm's, or a loaded capsule's; empty for the one that the group chooses.
    collective
        As for ``Communicator.operator``.
    root
        Of broadcast, reduce, gather and scatter.

    Raises
    ------
    InvalidArgumentError
        There is no such collective.
    """

    def __init__(self, group: object, name: str, collective: str, root: int = 0) -> None: ...
    @property
    def group(self) -> Any:
        """A communicator, or a process group of torch."""
    @property
    def name(self) -> str:
        """The algorithm's or capsule's; empty for the one that the group chooses."""
    @property
    def collective(self) -> _Collective:
        """What all ranks do together."""
    @property
    def root(self) -> int:
        """The rank that all data comes from or goes to; 0 where there is none."""
    def bind(
        self, x: _Blocks | None = None, out: _Blocks | None = None, *, op: str = "sum"
    ) -> Operator:
        """Return the same with buffers; nothing is sent.

        Parameters
        ----------
        x, out, op
            As for ``Communicator.operator``.

        Raises
        ------
        InvalidArgumentError
            The buffers do not fit, or there is no such ``op``.
        UnsupportedError
            Elements of that type have no such ``op``, or the group is one of torch.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The group has ended before.
        """
    def execute(
        self,
        x: _Blocks | None = None,
        out: _Blocks | None = None,
        *,
        op: str = "sum",
        timeout: float | timedelta | None = None,
    ) -> Event:
        """Start the collective; its buffers must not be touched until it is done.

        Parameters
        ----------
        x, out, op
            As for ``bind``, for this time alone; without ``x`` and ``out``, those that it has.
        timeout
            Seconds that it may take; None for the group's.

        Returns
        -------
        Event
            To wait for: ``event.wait()``, ``await event``.

        Raises
        ------
        InvalidArgumentError
            It has no buffers, or these do not fit; nothing was sent.
        UnsupportedError
            As for ``bind``; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The group has ended before. Failures of this execution are raised by its event.
        """
    def run(
        self,
        x: _Blocks | None = None,
        out: _Blocks | None = None,
        *,
        op: str = "sum",
        timeout: float | timedelta | None = None,
    ) -> None:
        """Execute the collective, and return when its buffers are ready.

        Parameters
        ----------
        x, out, op, timeout
            As for ``execute``.

        Raises
        ------
        InvalidArgumentError
            It has no buffers, or these do not fit; nothing was sent.
        UnsupportedError
            As for ``bind``; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            It failed, here or on another rank; every later operation of the group raises the same.
        """

class Schedule:
    """The program of a collective: what each rank does."""

    @property
    def name(self) -> str:
        """The algorithm's."""
    @property
    def collective(self) -> _Collective:
        """What all ranks do together."""
    @property
    def ranks(self) -> int:
        """How many there are, each with a program of its own."""
    @property
    def root(self) -> int:
        """The rank that all data comes from or goes to; 0 where there is none."""
    @property
    def chunks(self) -> int:
        """Pieces that each block is cut into."""
    @property
    def slots(self) -> int:
        """Messages that may wait between two ranks."""
    @property
    def aggregation(self) -> int:
        """The most blocks that travel in one message; 0 where nothing was asked for."""
    @property
    def phases(self) -> tuple[str, ...]:
        """Where the network goes at each ``switch_phase`` of a lane; mostly none."""
    @property
    def steps(self) -> Table[Step]:
        """The steps of all ranks: a list, which notebooks show as a table."""
    def renamed(self, name: str) -> Schedule:
        """Return the same schedule by another name.

        Parameters
        ----------
        name
            Any.
        """
    def plot(self) -> matplotlib.figure.Figure:
        """Draw ranks over rounds, with an arrow for each message.

        Returns
        -------
        matplotlib.figure.Figure
            A message takes one round; those that the receiver adds to its data have another colour.

        Raises
        ------
        ImportError
            matplotlib is missing (``pip install matplotlib``).
        """
    def _repr_html_(self) -> str: ...
    def verify(self, *, in_place: bool = False) -> _Verdict:
        """Prove that the schedule does what its collective promises.

        Parameters
        ----------
        in_place
            Whether input and output are to be one memory.

        Returns
        -------
        dict
            ``rounds``, the longest chain of dependent messages, and ``bit_identical``, whether all
            ranks reduce in the same order.

        Raises
        ------
        InvalidArgumentError
            It does not; the message names rank, lane, step and chunk.
        """
    def __eq__(self, other: object) -> bool: ...

def algorithms(collective: _Collective) -> list[str]:
    """Return the names of the algorithms that make a collective.

    Parameters
    ----------
    collective
        ``"all_reduce"``, ``"all_gather"``, ``"reduce_scatter"``, ``"broadcast"``, ``"reduce"``,
        ``"gather"``, ``"scatter"`` or ``"all_to_all"``.

    Raises
    ------
    InvalidArgumentError
        There is no such collective.
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
        As for ``algorithms``.
    ranks
        How many there are.
    root
        Of broadcast, reduce, gather and scatter.
    chunks
        Pieces of each block; None for the fewest that the algorithm takes.
    slots
        Messages that may wait between two ranks; None for the fewest that it needs.
    aggregation
        Of pat, the most blocks that travel in one message, rounded down to a power of two; 0 for
        as many as there are. Fewer mean more messages and less scratch.

    Returns
    -------
    Schedule
        It is not verified yet.

    Raises
    ------
    InvalidArgumentError
        There is no such algorithm or collective, or it takes no such shape.
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
        Any.
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
    """Return the schedule of steps that are given as tuples, unverified.

    Parameters
    ----------
    name, collective, ranks, root, chunks, slots
        As ``Schedule`` has them.
    programs
        By rank: chunks of scratch, and lanes of steps (action, src, dst, from, to, after). Slices
        are (buffer, offset, count), ports (peer, channel), what comes before (lane, step).
    phases
        To which the network goes at each ``switch_phase`` of a lane.

    Raises
    ------
    InvalidArgumentError
        There is no such collective, buffer or action.
    """

# Seconds of a message, seconds of a hop, bytes a second.
_Speed: TypeAlias = tuple[float, float, float]

class Network:
    """What ``pccl.simulator.Network`` stands on."""

    reduce_seconds_per_byte: float
    capacity: int
    @property
    def ranks(self) -> int:
        """How many it joins."""
    @property
    def turns(self) -> bool:
        """Whether it is the same seen from each rank."""

def ring_of_circuits(ranks: int, ports: int, speed: _Speed) -> Network:
    """Return what ``pccl.simulator.Network.ring`` does.

    Parameters
    ----------
    ranks, ports, speed
        As there, not checked.
    """

def one_switch(ranks: int, speed: _Speed) -> Network:
    """Return what ``pccl.simulator.Network.switch`` does.

    Parameters
    ----------
    ranks, speed
        As there, not checked.
    """

def two_levels(ranks: int, ranks_per_host: int, within: _Speed, across: _Speed) -> Network:
    """Return what ``pccl.simulator.Network.hosts`` does.

    Parameters
    ----------
    ranks, ranks_per_host, within, across
        As there, not checked.
    """

def memory_speed(ranks_on_host: int) -> tuple[float, float, float]:
    """Return what a message through memory costs: seconds of it, of a hop, and bytes a second.

    Parameters
    ----------
    ranks_on_host
        That share the memory.
    """

def this_machine(ranks: int, cores: int, by_shared_memory: bool) -> Network:
    """Return what ``pccl.simulator.Network.machine`` does.

    Parameters
    ----------
    ranks, cores
        As there, not checked.
    by_shared_memory
        Else by TCP over loopback.
    """

# Seconds of a message, until its receiver goes on, and of a byte; whether they are the receiver's,
# too; seconds of a byte that is added, of a run of chunks and of a look; bytes that a link holds.
_Work: TypeAlias = tuple[float, float, float, bool, float, float, float, float, float, int]

def one_machine(ranks: int, cores: int, work: _Work) -> Network:
    """Return a machine whose costs are given.

    Parameters
    ----------
    ranks, cores
        Not checked.
    work
        Of messages.
    """

# rank, lane, index, action, sender, receiver, bytes, begin, start, done, arrival, window
_StepTime: TypeAlias = tuple[int, int, int, str, int, int, float, float, float, float, float, int]

class Replay:
    """What ``pccl.simulator.Replay`` stands on."""

    @property
    def seconds(self) -> float:
        """As there."""
    @property
    def rounds(self) -> int:
        """As there."""
    @property
    def messages(self) -> int:
        """As there."""
    @property
    def bytes_sent(self) -> float:
        """As there."""
    @property
    def busiest(self) -> str:
        """As there."""
    @property
    def busiest_bytes(self) -> float:
        """As there."""
    @property
    def busiest_seconds(self) -> float:
        """As there."""
    @property
    def peak_chunks(self) -> int:
        """As there."""
    @property
    def windows(self) -> int:
        """As there."""
    @property
    def one_for_all(self) -> bool:
        """As there."""
    @property
    def critical_path(self) -> list[_StepTime]:
        """As there."""
    @property
    def steps(self) -> list[_StepTime]:
        """As there."""

class Piece:
    """An algorithm with the ranks that play it."""

    @staticmethod
    def built_in(
        algorithm: str, collective: str, ranks: int, aggregation: int, order: Sequence[int]
    ) -> Piece:
        """Return what a generator makes.

        Parameters
        ----------
        algorithm, collective, ranks, aggregation, order
            As for ``pccl.simulator.replay``.

        Raises
        ------
        InvalidArgumentError
            There is no such algorithm.
        UnsupportedError
            It makes another collective.
        """
    @staticmethod
    def of_capsule(capsule: Capsule) -> Piece:
        """Return a capsule's.

        Parameters
        ----------
        capsule
            Of one number of ranks.
        """
    @staticmethod
    def parts_of_capsule(capsule: Capsule) -> list[tuple[str, Piece | None]]:
        """Return what a capsule does in each phase of the network, with its name.

        Parameters
        ----------
        capsule
            Of one number of ranks; one that switches nothing has one part, of no name.
        """
    @property
    def name(self) -> str:
        """The algorithm's."""
    @property
    def collective(self) -> str:
        """What it makes."""
    @property
    def ranks(self) -> int:
        """How many."""
    def replay(self, network: Network, nbytes: float) -> Replay:
        """Return what playing it through finds.

        Parameters
        ----------
        network
            Of as many ranks.
        nbytes
            Of the largest buffer.

        Raises
        ------
        InvalidArgumentError
            The network has other ranks, or the algorithm takes no such ranks.
        UnsupportedError
            It has more steps than are played.
        """
    def rounds(self, network: Network, nbytes: float) -> list[tuple[float, float, list[int]]]:
        """Return seconds, bytes of the longest message and receivers of each round.

        Messages of a round begin together, when all of the round before have arrived.

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
    """Return the capsule of an execution plan of MSCCL++.

    Parameters
    ----------
    json
        Of any origin.
    file
        Stands for it in messages.
    name
        The capsule's; empty for that of the plan.

    Raises
    ------
    InvalidArgumentError
        It is no such plan, or its program is wrong; the message names the operation.
    UnsupportedError
        It says what capsules cannot; the message names the operation.
    """

def export_msccl(capsule: Capsule) -> str:
    """Return what ``pccl.Capsule.to_msccl`` does.

    Parameters
    ----------
    capsule
        Any.

    Raises
    ------
    UnsupportedError
        MSCCL's XML cannot say it; the message names the step.
    """

def import_msccl(xml: str, file: str, name: str, collective: str, root: int) -> Capsule:
    """Return the capsule of MSCCL's XML.

    Parameters
    ----------
    xml
        Of any origin.
    file
        Stands for it in messages.
    name
        The capsule's; empty for that of the algorithm.
    collective, root
        What the program does where it has ``coll="custom"``; empty where it has not.

    Raises
    ------
    InvalidArgumentError, UnsupportedError
        It is wrong, or cannot be said; the message names the line.
    """

def unproven_schedule(data: bytes, ranks: int) -> Schedule:
    """Return the schedule of a capsule, unproven: to show what is wrong with it.

    Parameters
    ----------
    data
        Of its file.
    ranks
        For how many, where it is for several numbers; 0 where it is for one.

    Raises
    ------
    InvalidArgumentError
        It is wrong in another way than its steps are.
    """

def unproven_msccl(xml: str, file: str) -> Schedule:
    """Return the schedule of MSCCL's XML, unproven: to show what is wrong with it.

    Parameters
    ----------
    xml, file
        As for ``import_msccl``.

    Raises
    ------
    InvalidArgumentError, UnsupportedError
        It is wrong in another way than its steps are.
    """

def unproven_mscclpp(json: str, file: str) -> Schedule:
    """Return the schedule of an execution plan, unproven: to show what is wrong with it.

    Parameters
    ----------
    json, file
        As for ``import_mscclpp``.

    Raises
    ------
    InvalidArgumentError, UnsupportedError
        It is wrong in another way than its steps are.
    """

def check_sizes(sizes: str) -> str:
    """Return a range of sizes as capsules state it.

    Parameters
    ----------
    sizes
        As for ``Communicator.load``.

    Raises
    ------
    InvalidArgumentError
        It is none.
    """

class Capsule:
    """What ``pccl.Capsule`` stands on."""

    @staticmethod
    def make(
        schedule: Schedule, *, author: str, licence: str, note: str, sizes: str, protocol: str
    ) -> Capsule:
        """Return what ``pccl.Capsule.of`` does.

        Parameters
        ----------
        schedule, author, licence, note, sizes, protocol
            As there.

        Raises
        ------
        InvalidArgumentError
            The schedule is wrong, or it has no such name, or there is no such protocol.
        """
    @staticmethod
    def join(capsules: Sequence[Capsule]) -> Capsule:
        """Return what ``pccl.Capsule.join`` does.

        Parameters
        ----------
        capsules
            As there.

        Raises
        ------
        InvalidArgumentError
            Two are for as many ranks, or say different things, or there is none, or too much.
        """
    @property
    def ranks(self) -> tuple[int, ...]:
        """For which numbers of ranks it is, ascending."""
    def for_ranks(self, ranks: int) -> Capsule:
        """Return the capsule of one number of ranks alone.

        Parameters
        ----------
        ranks
            One of ``ranks``.

        Raises
        ------
        InvalidArgumentError
            It is for others.
        """
    @property
    def protocol(self) -> str:
        """By which its messages should travel between GPUs; mostly empty."""
    @staticmethod
    def parse(data: bytes) -> Capsule:
        """Return what ``pccl.Capsule.parse`` does.

        Parameters
        ----------
        data
            Of any origin.

        Raises
        ------
        InvalidArgumentError
            They are no capsule, or damaged, or its programs are wrong.
        """
    @staticmethod
    def read(path: str) -> Capsule:
        """Return what ``pccl.Capsule.load`` does.

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
    @property
    def digest(self) -> str:
        """SHA-256 of its bytes, in hexadecimal digits."""
    @property
    def manifest(self) -> dict[str, Any]:
        """What its file says of it for people."""
    @property
    def schedule(self) -> Schedule:
        """Its programs."""
    @property
    def data(self) -> bytes:
        """The bytes of its file."""
    @property
    def signer(self) -> str | None:
        """The public key of who signed it, in hexadecimal digits."""
    def signed_with(self, pem: str) -> Capsule:
        """Return the same, signed.

        Parameters
        ----------
        pem
            A private Ed25519 key.

        Returns
        -------
        Capsule
            With the same digest.

        Raises
        ------
        InvalidArgumentError
            ``pem`` is none.
        """
    def check_signer(self, keys: str) -> None:
        """Raise InvalidArgumentError where none of the keys of a file has signed it.

        Parameters
        ----------
        keys
            The file's path.

        Raises
        ------
        InvalidArgumentError
            Or a line of the file is no key.
        UnavailableError
            There is no such file.
        """
    def cost(self, nbytes: int) -> tuple[int, int, float, float]:
        """Return rounds, messages, bytes sent and bytes added up, of the rank with the most.

        Parameters
        ----------
        nbytes
            Of the largest buffer.
        """
    def predict(self, job: JobTopology, nbytes: int) -> tuple[list[Prediction], LinksCountedOn]:
        """Return the ways of a job that has loaded it for all sizes, and what they count on.

        Parameters
        ----------
        job
            With as many ranks.
        nbytes
            Of the largest buffer.

        Raises
        ------
        InvalidArgumentError
            The job has other ranks.
        """

_PathType: TypeAlias = Literal[
    "LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS"
]

class TopologyWarning:
    """What looks wrong about a machine. Prints as a line."""

    @property
    def name(self) -> str:
        """Stable; docs/topology.md lists them."""
    @property
    def subject(self) -> str:
        """The device that it is about: ``"gpu3"``, a bus id; or a line of a file."""
    @property
    def message(self) -> str:
        """What is wrong, and what it costs."""
    @property
    def repair(self) -> str:
        """What was assumed instead; empty if nothing could be done."""

class TopologyFact:
    """One attribute of one device, and who said it. Prints as a line."""

    @property
    def device(self) -> str:
        """Bus id, NUMA node (``"cpu 0"``), or name of the port."""
    @property
    def attribute(self) -> str:
        """As NCCL's topology XML names it."""
    @property
    def value(self) -> str:
        """As NCCL's topology XML has it."""
    @property
    def source(self) -> str:
        """file, vendor file, nvml, verbs, sysfs, hwloc, assumption, default or repair."""
    @property
    def provenance(self) -> Literal["measured", "declared", "assumed"]:
        """What to make of ``source``."""

class TopologyNode:
    """A device of the machine's graph."""

    @property
    def name(self) -> str:
        """Unique: ``"gpu0"``."""
    @property
    def label(self) -> str:
        """PCI bus id, NUMA node, or name of the port."""
    @property
    def type(self) -> Literal["gpu", "pci", "nvs", "cpu", "nic", "net"]:
        """What it is; ``pci`` is a PCIe switch, ``nvs`` an NVSwitch, ``net`` a port of a NIC."""
    @property
    def host(self) -> int:
        """Index of the host that it is in."""
    @property
    def sm(self) -> int:
        """Of a GPU: 10 x compute capability."""
    @property
    def dev(self) -> int:
        """Of a GPU or a port: its number in NVML or in the network's plugin."""
    @property
    def rank(self) -> int:
        """Of the process that uses the GPU; -1 if that is not known."""
    @property
    def gdr(self) -> bool:
        """Of a GPU or a port: whether NICs access GPU memory directly."""
    @property
    def usable(self) -> bool:
        """False for a port that plans leave out, as a warning says."""

class TopologyPath:
    """The best path between two devices. Prints as a line."""

    @property
    def type(self) -> _PathType:
        """The worst that it crosses; docs/topology.md lists the types."""
    @property
    def bandwidth(self) -> float:
        """GB/s of the narrowest link."""
    @property
    def hops(self) -> int:
        """How many links it takes."""
    @property
    def nodes(self) -> list[str]:
        """Names of the nodes that it visits, with both ends."""
    @property
    def charges(self) -> list[Charge]:
        """What a GB/s on the path takes of each link."""

class TopologyChannel:
    """One ring, tree or head of a plan, through all GPUs of a machine."""

    @property
    def bandwidth(self) -> float:
        """GB/s."""
    @property
    def order(self) -> list[int]:
        """Of GPUs; for ``"heads"`` the head, then the others."""
    @property
    def nets(self) -> Ports | None:
        """Ports by which data of other nodes comes and leaves; None for one node."""

class TopologyPlan:
    """What a search found. ``pccl.topology.Plan`` describes the properties."""

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
    """A machine. ``pccl.topology`` describes it."""

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
        """Source, target, type and GB/s."""
    @property
    def digest(self) -> str: ...
    def path(self, source: str, target: str) -> TopologyPath: ...
    def search(self, pattern: str, *, nodes: int, max_channels: int) -> TopologyPlan: ...
    def read_plans(self, text: str, name: str) -> list[TopologyPlan]: ...
    def xml(self) -> str: ...
    def __eq__(self, other: object) -> bool: ...

def calibration_path(digest: str) -> str:
    """Name the file with the measurements of a machine; empty where there is no place for it.

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
        Bus ids of source and target, seconds of a small copy, and GB/s of a large one.

    Raises
    ------
    UnavailableError
        There is no CUDA, or no GPU.
    """

def load_calibration(digest: str) -> str:
    """Return what that file holds; empty without one, or where it cannot be used.

    Parameters
    ----------
    digest
        As for ``calibration_path``.
    """

class JobHost:
    """A host of a job; see ``pccl.topology.Host``."""

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
    """The way between two hosts of a job."""

    @property
    def source(self) -> int:
        """Index of the host at one end."""
    @property
    def target(self) -> int:
        """Index of the host at the other end."""
    @property
    def bandwidth(self) -> float:
        """GB/s: measured between the two, or else of the slower end."""
    @property
    def latency(self) -> float:
        """Seconds that a message takes; 0 where it was not measured."""
    @property
    def same_subnet(self) -> bool:
        """Whether both ends are known to be on one subnet."""

class JobRail:
    """Ports on one network: the same one of each host."""

    @property
    def ports(self) -> list[int]:
        """By host: index of the port."""
    @property
    def bandwidth(self) -> float:
        """GB/s of the slowest."""

class JobTopology:
    """The hosts of a job; see ``pccl.topology.Job``."""

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
        """Predict what a group of these ranks would choose: see ``pccl.explain``."""

class DevicePlan:
    """How a collective runs on GPUs: by what protocol, in how many blocks.

    ``"ll"`` for small messages, ``"direct"``, ``"staggered"`` for large ones, and
    ``"copy_engine"`` for large all_gathers and all_to_alls that leave multiprocessors to others
    (the last two are the same as direct where there is no such kernel). Of schedules, ``"ll"``
    and ``"direct"``, and between them ``"ll128"`` of 120 bytes with their arrival flag (NCCL's
    LL128), where GPUs and links keep these whole.

    Parameters
    ----------
    protocol
        One of these.
    blocks
        Blocks of threads on each GPU: up to 128, and up to 64 for ``"ll"``.
    threads
        Threads of a block, in warps of 32: up to 512, and up to 256 for ``"ll"``.

    Raises
    ------
    InvalidArgumentError
        There is no such protocol. ``DeviceGroup.launch`` finds what else does not fit.
    """

    def __init__(self, *, protocol: str, blocks: int, threads: int = 512) -> None: ...
    @property
    def protocol(self) -> str:
        """``"ll"``, ``"ll128"``, ``"direct"``, ``"staggered"`` or ``"copy_engine"``."""
    @property
    def blocks(self) -> int:
        """Blocks of threads on each GPU."""
    @property
    def threads(self) -> int:
        """Threads of a block."""
    @property
    def why(self) -> str:
        """What made the library choose it; empty for plans of users."""

class PlannedLaunch:
    """One launch of a collective on all GPUs; ``pccl.explain`` shows it."""

    @property
    def kernel(self) -> str:
        """As its file in csrc/kernels is called, or what stands for a kernel."""
    @property
    def nbytes(self) -> int:
        """Of the longest block."""
    @property
    def plan(self) -> DevicePlan:
        """Its protocol, blocks and threads, and why these."""
    @property
    def why(self) -> str:
        """What made the choice, of the kernel, too."""

def planned_launches(
    collective: str, nbytes: int, world_size: int, architecture: int
) -> list[PlannedLaunch]:
    """Return what GPUs would launch, in its order.

    Parameters
    ----------
    collective
        Its name, as in ``DeviceGroup.launch``.
    nbytes
        Of the largest buffer.
    world_size
        2 to 8.
    architecture
        Compute capability, 90 for sm_90.

    Raises
    ------
    InvalidArgumentError
        There is no such collective, or no such group.
    """

def gpus_measured_for(architecture: int) -> str:
    """Return the GPUs whose measured thresholds count for an architecture: ``"4 x H200"``.

    Parameters
    ----------
    architecture
        Compute capability, 90 for sm_90.
    """

def device_plan(collective: str, nbytes: int, world_size: int) -> DevicePlan:
    """Give the plan that the library chooses for blocks of one length.

    Parameters
    ----------
    collective
        Its name, as in ``DeviceGroup.launch``.
    nbytes
        Of one rank's block: the whole tensor for all_reduce, reduce and broadcast.
    world_size
        2 to 8.

    Raises
    ------
    InvalidArgumentError
        There is no such collective, or no such group.
    """

class DeviceGroup:
    """Collectives among up to 8 GPUs of one host, on raw addresses and streams.

    Every rank has one GPU and makes the group at the same time. Launches return at once; those of
    one group must come in the same order on all ranks, with the same plan or algorithm: where they
    differ, all ranks raise MismatchError.

    When the group is destroyed it waits up to a second for what it has launched; what still waits
    for peers then is ended, and they raise PeerLostError. The streams it has used last must be
    there until then.

    Parameters
    ----------
    rank
        This process, 0 <= rank < world_size; as for ``Communicator`` where it is left out.
    world_size
        How many processes there are, 1 to 8; as for ``Communicator`` where it is left out.
    rendezvous
        Where they meet, as for ``Communicator``; of this group alone.
    device
        The GPU, as CUDA numbers it in this process.
    timeout
        Seconds that the ranks may take to meet, and a launch to wait for its peers.
    algorithm
        Schedules to run instead of the kernels made for a collective, as in PCCL_ALGORITHM:
        ``"all_reduce=ring,all_gather=pat"``. Rank 0's counts.
    name
        For flight records; another one for each group of a process.

    Raises
    ------
    UnsupportedError
        A build without CUDA, or GPUs that do not reach each other.
    UnavailableError
        A machine without a driver or GPU.
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
        """The number of this process, 0 <= rank < world_size."""
    @property
    def world_size(self) -> int:
        """How many processes there are."""
    @property
    def heap_bytes(self) -> int:
        """The group's part, in bytes, of the GPU memory that groups of this process share."""
    @property
    def architecture(self) -> int:
        """Compute capability of rank 0's GPU, 90 for sm_90: what launches are chosen by."""
    def explain(self, collective: str, nbytes: int) -> list[PlannedLaunch]:
        """Return what a call would launch, in its order; as ``pccl.explain``.

        Parameters
        ----------
        collective
            As for ``launch``.
        nbytes
            Of the largest buffer.

        Raises
        ------
        InvalidArgumentError
            There is no such collective.
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

        The first use of an allocation waits until the peers have mapped it.

        Parameters
        ----------
        collective
            all_reduce, all_gather, reduce_scatter, broadcast, reduce, gather, scatter or
            all_to_all.
        input, output
            Addresses of GPU memory; several blocks lie one after the other. The memory must live
            until ``stream`` has passed the launch.
        count
            Elements in one rank's block: in the whole tensor for all_reduce, reduce and broadcast.
        dtype
            uint8, int8, uint16, int16, uint32, int32, uint64, int64, float16, bfloat16, float32,
            float64, complex64, complex128, bool, float8_e4m3fn, float8_e5m2; or bytes, which can
            be moved, but not reduced.
        op
            sum, avg, product, min, max, band, bor or bxor, for what reduces.
        root
            Of broadcast, reduce, gather and scatter.
        stream
            A ``cudaStream_t``; 0 is the default stream.
        plan
            The same on all ranks; None for what ``device_plan`` says. Of a schedule, how many
            blocks it may take (one for each of its lanes, at least), of how many threads (192 at
            least), by protocol ``"ll"``, ``"ll128"`` or ``"direct"``.
        algorithm
            A schedule (``pccl.schedule``) to run instead of the kernel made for the collective.
            Its first launch allocates, so it comes before the capture of a graph.

        Raises
        ------
        InvalidArgumentError
            A name, an address or the plan does not fit; nothing was launched.
        UnsupportedError
            GPUs do not reduce the type so, no schedule takes such blocks, or lines do not come
            whole between the GPUs; nothing was launched.
        ResourceExhaustedError
            There is no memory left.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            This launch or an earlier one failed; every later one of the group raises the same.
        """

    def exchange(
        self,
        *,
        sends: list[tuple[int, int, int]],
        receives: list[tuple[int, int, int]],
        stream: int = 0,
    ) -> None:
        """Launch messages, all at once.

        Those from one rank to another meet in the order in which they are launched.

        Parameters
        ----------
        sends, receives
            Each is (peer, address, nbytes); memory as for ``launch``.
        stream
            As for ``launch``.

        Raises
        ------
        InvalidArgumentError
            There is no such peer, or no GPU memory at an address; nothing was launched.
        ResourceExhaustedError
            There is no memory left.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            This launch or an earlier one failed; every later one of the group raises the same.
        """

    def check(self) -> None:
        """Raise why the group is over, as far as that is known, if it is.

        Raises
        ------
        PeerLostError, TimeoutError, MismatchError, AbortedError
            A launch failed; see ``launch``.
        """

    def abort(self) -> None:
        """Make kernels that wait end, and later launches fail. Raises nothing."""

class DeviceMemory:
    """A buffer on a GPU, zero-filled, for programs that have no other library for it.

    Only the thread that made it may use it. Copies go by the default stream, behind the launches
    that it has got.

    Parameters
    ----------
    device
        The GPU, as CUDA numbers it in this process.
    nbytes
        Its length.

    Raises
    ------
    UnavailableError
        A build without CUDA, or a machine without a driver or GPU.
    ResourceExhaustedError
        There is no such memory left.
    """

    def __init__(self, *, device: int, nbytes: int) -> None: ...
    @property
    def address(self) -> int:
        """Where it is, for ``DeviceGroup.launch``."""
    @property
    def nbytes(self) -> int:
        """Its length in bytes."""
    def write(self, source: _Buffer) -> None:
        """Copy an array to its beginning, and wait for that.

        Parameters
        ----------
        source
            A buffer in host memory.

        Raises
        ------
        InvalidArgumentError
            The array is longer, or not contiguous.
        """
    def read(self, target: _Buffer) -> None:
        """Copy its beginning into an array, and wait for that.

        Parameters
        ----------
        target
            A writable buffer in host memory.

        Raises
        ------
        InvalidArgumentError
            The array is longer, not contiguous, or read-only.
        """
    def wait(self) -> None:
        """Wait until the default stream has done what it has got.

        Raises
        ------
        InternalError
            A launch there has failed.
        """

class PhaseNetwork:
    """The network of a job, as the groups of this process share it; see ``pccl.phases``."""

    def __init__(
        self,
        ranks: int,
        phases: Sequence[tuple[str, Sequence[tuple[int, int]], bool]],
        has_hosts: bool,
    ) -> None:
        """Make the network of a group to come.

        Parameters
        ----------
        ranks
            How many there are.
        phases
            Name, links, and whether ranks pass on what is not theirs.
        has_hosts
            Whether ranks that share memory reach each other in every phase.
        """
    @property
    def phase(self) -> str:
        """The phase that was last switched to; empty before, and where it is not known."""
    @property
    def generation(self) -> int:
        """The number of the switch that led to it."""
    @property
    def is_in_use(self) -> bool:
        """Whether a group of this process can switch it."""
    @property
    def is_controller(self) -> bool:
        """Whether this is rank 0 of that."""
    def switch_phase(
        self,
        phase: str,
        timeout: float | timedelta,
        dry_run: bool,
        transact: Callable[[Callable[[], None]], tuple[bool, str]],
        read_back: Callable[[], bool],
    ) -> tuple[bool, str]:
        """Switch with all other ranks.

        Parameters
        ----------
        phase
            Which one.
        timeout
            For all ranks to come, with nothing under way; in seconds.
        dry_run
            Go on in the old phase, whatever comes of it.
        transact
            What rank 0 does on the switches; it calls what it is given once all are prepared.
        read_back
            What another rank does where rank 0 is gone: tells whether they have that phase.

        Returns
        -------
        tuple
            Whether it was switched, or prepared in a dry run; and rank 0's report.

        Raises
        ------
        InvalidArgumentError
            It leaves a rank without a way.
        TimeoutError, MismatchError, PeerLostError, UnavailableError, AbortedError
            See ``pccl.switch_phase``.
        """
    def handle(self) -> object:
        """Return it for ``pccl._torch``. Raises nothing."""

class ProgressBoard:
    """How far a switch of phases is, as the thread that switches writes it."""

    def __init__(self) -> None: ...
    @property
    def text(self) -> str:
        """JSON: the part of it, and what each switch does."""

class Controller:
    """Reads a cluster file and speaks to its switches; results are JSON, see ``pccl.cluster``."""

    def __init__(self, text: str, name: str) -> None:
        """Read a cluster file, and open its audit log; no switch is spoken to yet.

        Parameters
        ----------
        text
            The file, as JSON.
        name
            What stands for it in messages.

        Raises
        ------
        InvalidArgumentError
            Something in it is wrong; the message says where, and what would be right.
        """
    @property
    def description(self) -> str:
        """Devices, switches and phases."""
    @property
    def current(self) -> str:
        """The phase that was last proven; empty before one was."""
    @property
    def generation(self) -> int:
        """How often circuits have changed."""
    @property
    def degraded(self) -> str:
        """Which switch could not be proven, and what to do; empty: none."""
    def plan(self, source: str, target: str) -> str:
        """Return what changes between two phases.

        Parameters
        ----------
        source
            A phase; empty: nothing is connected.
        target
            Another one.

        Raises
        ------
        InvalidArgumentError
            There is no such phase.
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
        """Switch all devices, or none; return what became of it.

        Parameters
        ----------
        phase
            Which one.
        timeout
            Of each step, in seconds; an hour at most, also where more is given.
        dry_run
            Only have the switches check it.
        adopt
            Take what they show for what is meant, whatever that is.
        discard_candidate
            Throw away what others have left in the candidates of switches.
        drain
            Called once all are prepared; what it raises ends that.
        progress
            Written to while it goes on.

        Returns
        -------
        str
            How it ended, why, and what each switch did.

        Raises
        ------
        InvalidArgumentError
            There is no such phase, or the timeout is not above 0 s.
        MismatchError
            The switches show circuits of no phase.
        UnavailableError
            A switch is degraded, or cannot be reached.
        """
    def inspect(self, timeout: float | timedelta) -> str:
        """Read all switches, and return what they show.

        Parameters
        ----------
        timeout
            In seconds.

        Raises
        ------
        InvalidArgumentError
            The timeout is not above 0 s.
        """
    def adopt(self, timeout: float | timedelta) -> None:
        """Take the phase that all switches show for the current one.

        Parameters
        ----------
        timeout
            In seconds.

        Raises
        ------
        MismatchError
            They show circuits of no phase.
        """
    def inherit(self, timeout: float | timedelta) -> str:
        """Adopt what the switches show once they have undone what a lost controller began.

        Parameters
        ----------
        timeout
            In seconds, an hour at most; that of waiting before is the switches'.

        Returns
        -------
        str
            The phase; empty: nothing is connected.

        Raises
        ------
        MismatchError
            They show circuits of no phase.
        UnavailableError, PeerLostError, TimeoutError
            One of them cannot be read.
        """
    def audit(self) -> list[str]:
        """Return what was done, a JSON object in each line."""

def _echo(descriptor: int) -> None:
    """Send what a blocking socket brings back over it, until its other end is closed."""

def _time_round_trips(descriptor: int, nbytes: int, rounds: int) -> list[float]:
    """Return the seconds of each round trip to an ``_echo``."""

class _RendezvousStore:
    """What ``pccl.p2p.RendezvousStore`` is made of."""

    def __init__(self, url: str, hosts: bool, timeout: float | timedelta) -> None: ...
    def set(self, key: str, value: bytes) -> None: ...
    def look_up(self, key: str) -> bytes | None: ...
    def add(self, key: str, delta: int) -> int: ...
    def remove(self, key: str) -> None: ...

class _P2pSession:
    """What ``pccl.p2p.Session`` is made of."""

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
        """Name and incarnation."""
    @property
    def refused_requests(self) -> int:
        """Of peers, so far."""
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
    """Registered with a session, which keeps it."""

    @property
    def nbytes(self) -> int:
        """Of the memory."""
    @property
    def device(self) -> int:
        """Its GPU; -1 where it is of the host."""
    def descriptor(self) -> bytes: ...
    def array(self) -> NDArray[Any]: ...

class _P2pRemoteMemory:
    """What a session knows of a peer's memory."""

    @property
    def nbytes(self) -> int:
        """Of the memory."""
    @property
    def owner(self) -> tuple[str, int]:
        """Name and incarnation."""

class _P2pPlan:
    """Pairs of blocks."""

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
        """Of all blocks."""

class _P2pTransfer:
    """What goes to and from one peer, within a window."""

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
    """One of them."""

    @property
    def nbytes(self) -> int:
        """Of one that is done, else 0."""
    @property
    def tag(self) -> int:
        """As it was posted."""
    @property
    def stage(self) -> str:
        """How far it has come."""
    def done(self) -> bool: ...
    def wait(self, timeout: float | timedelta | None) -> None: ...
    def release(self) -> None: ...
    def __str__(self) -> str: ...

class _P2pWork:
    """A transfer."""

    def done(self) -> bool: ...
    def wait(self, timeout: float | timedelta | None) -> None: ...
    def release(self) -> None: ...
    def stats(self) -> dict[str, Any]: ...
