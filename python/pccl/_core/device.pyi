# SPDX-License-Identifier: Apache-2.0
"""Collectives of GPUs."""

from datetime import timedelta

from pccl._core.types import _Buffer

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

def gpu_path() -> str:
    """Return where kernels of the GPUs of this process meet, and why; empty without GPUs."""

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
        The build has no CUDA, or the GPUs have neither peer access nor host memory that all of them
        map.
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
        """The group's part, in bytes, of the memory that the groups of this process share."""
    @property
    def architecture(self) -> int:
        """The compute capability of rank 0's GPU (90 for sm_90), on which launch choices depend."""
    @property
    def path(self) -> str:
        """``"peer"`` or, over PCIe, ``"pcie"`` if kernels meet in the GPUs' memory; ``"host"``."""
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
        UnsupportedError
            The GPUs have no peer access; nothing was launched.
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
