# SPDX-License-Identifier: Apache-2.0
"""Backend for torch.distributed; import torch before this module."""

from datetime import timedelta
from typing import Any, Literal, Protocol

from torch._C._distributed_c10d import Backend, ErrorType, Store

class _Cluster(Protocol):  # pccl.Cluster
    @property
    def ranks(self) -> int: ...

class Options(Backend.Options):
    """Options for ``init_process_group(pg_options=...)`` and ``new_group(pg_options=...)``.

    Parameters
    ----------
    transports
        Transports that the group may use, for example ``"shm,tcp"``; empty for all that
        ``PCCL_TRANSPORTS`` permits.
    algorithm
        Algorithm of each named collective, for CPU and CUDA tensors, for example
        ``"all_reduce=ring,all_gather=pat"``; empty for the value of ``PCCL_ALGORITHM``. All ranks
        must pass the same value; otherwise the collective raises ``pccl.MismatchError``. An
        algorithm for other collectives raises ``ValueError`` here. An unknown name causes a warning
        when the group is created, because a capsule of that name may be loaded later.
    copy_engines
        Whether copy engines execute large all_gathers and all_to_alls of CUDA tensors, which leaves
        all multiprocessors to other kernels; None for the value of ``PCCL_GPU_COPY_ENGINES``. Rank
        0's value applies.
    max_blocks
        Maximum number of blocks of a launch for CUDA tensors, 1 to 128. Each block occupies one
        multiprocessor. Every message uses at least one block, even above this limit. None for the
        fastest number. All ranks must pass the same value, as for ``protocol``; otherwise the first
        collective of CUDA tensors raises ``pccl.MismatchError``. A number out of range raises
        ``ValueError``.
    protocol
        Preferred protocol of collectives of CUDA tensors: ``"ll"``, ``"ll128"``, ``"direct"``,
        ``"staggered"`` or ``"copy_engine"`` (docs/reference/gpus.md); it is used for collectives
        that support it. Empty for the fastest. ``pccl.explain`` shows the effect. Another name
        raises ``ValueError``.
    least
        Minimum number of ranks that ``torch.distributed.shrink_group``, which also takes these
        options, may leave in the group; None for the default of ``pccl.shrink``.
    timeline
        Capacity, in steps, of a timeline that the group records from its creation, as
        ``pccl.timeline.record`` does later; 0 for no recording. A value above 4,194,304 raises
        ``pccl.InvalidArgumentError`` when the group is created.
    cluster
        Cluster whose phases the default group switches by ``pccl.switch_phase``; it has one device
        for each rank. None: the cluster of ``PCCL_CLUSTER``, or no cluster. Other groups follow the
        same phases.
    """

    transports: str
    algorithm: str
    copy_engines: bool | None
    max_blocks: int | None
    protocol: str
    least: int | None
    timeline: int
    def __init__(
        self,
        *,
        transports: str = "",
        algorithm: str = "",
        copy_engines: bool | None = None,
        max_blocks: int | None = None,
        protocol: str = "",
        least: int | None = None,
        timeline: int = 0,
        cluster: _Cluster | None = None,
    ) -> None: ...
    def _follow(self, leading: Options) -> None:
        """Follow the phases of the default group.

        Parameters
        ----------
        leading
            Options of the default group.
        """
    def __copy__(self) -> Options:
        """Return a copy."""
    def __deepcopy__(self, memo: dict[int, object]) -> Options:
        """Return a copy.

        Parameters
        ----------
        memo
            Memo of ``copy.deepcopy``.
        """

class ProcessGroupPCCL(Backend):
    """Backend of one process group. torch creates it; the ranks meet through ``store``."""

    def __init__(
        self,
        store: Store,
        rank: int,
        size: int,
        *,
        timeout: timedelta,
        name: str,
        global_ranks: list[int],
        gpu: str = "",
        options: Options | None = None,
    ) -> None: ...
    @property
    def options(self) -> Options:
        """A copy of the group's options."""
    @property
    def mem_allocator(self) -> Any:
        """The allocator for ``torch.cuda.MemPool``, of GPU memory that peers can map."""
    def get_error(self) -> ErrorType:
        """Return the kind of error that ended the group, or success if it is usable."""
    def explain(
        self, collective: str, nbytes: int
    ) -> list[
        tuple[str, str, float, str, bool, Literal["", "request", "capsule", "tuning", "prediction"]]
    ]:
        """Return the fields of every ``pccl.explanation.Way``, for ``pccl.explain``.

        Parameters
        ----------
        collective, nbytes
            Collective and bytes, as for ``pccl.explain``.

        Raises
        ------
        ValueError
            The collective does not exist, or PCCL_ALGORITHM names an algorithm that does not fit.
        """
    def explain_gpus(
        self, collective: str, nbytes: int
    ) -> tuple[int, list[tuple[str, str, int, int, int, str]]]:
        """Return the GPUs' architecture and the fields of each ``GpuLaunch``, for ``pccl.explain``.

        Parameters
        ----------
        collective, nbytes
            Collective and bytes, as for ``pccl.explain``.

        Raises
        ------
        ValueError
            The collective does not exist.
        pccl.UnavailableError
            No collective of CUDA tensors has run yet.
        pccl.UnsupportedError
            The GPUs have no peer access.
        """
    def links_counted_on(self) -> tuple[list[str], list[int], int, str, list[str], list[str]]:
        """Return the fields of ``pccl.results.named.LinksCountedOn``, for ``pccl.explain``."""
    def describe_job(self) -> bytes:
        """Return the job's topology, encoded, for ``pccl.topology.job``.

        Raises
        ------
        pccl.UnavailableError
            The topology of this machine cannot be read, or this process is a fork of the process
            that made the group.
        """
    def load_capsule(
        self, content: bytes, is_path: bool, sizes: str | None
    ) -> tuple[str, str, int]:
        """Load a capsule on all ranks, for ``pccl.capsule.load_capsule``.

        Parameters
        ----------
        content
            Bytes of the capsule, or the path of its file.
        is_path
            Whether ``content`` is a path.
        sizes
            Range of sizes for which it is used; None for the range in the capsule.

        Returns
        -------
        tuple of str, str, int
            Name, collective and root of the capsule.

        Raises
        ------
        pccl.InvalidArgumentError
            The capsule is malformed, its programs are wrong, or it is for another number of ranks.
        pccl.MismatchError
            Ranks passed different capsules or sizes.
        """
    def unload_capsule(self, name: str) -> None:
        """Unload a capsule on all ranks, for ``pccl.capsule.unload_capsule``.

        Parameters
        ----------
        name
            Name of the capsule.

        Raises
        ------
        pccl.InvalidArgumentError
            No capsule of that name is loaded.
        """
    def loaded_capsules(self) -> list[tuple[str, str, str, str]]:
        """Return name, collective, sizes and digest of each capsule of the group."""
    def record_timeline(self, steps: int) -> None:
        """Record the times of steps over links and on GPUs, for ``pccl.timeline.record``.

        Parameters
        ----------
        steps
            Capacity of the recording in steps; 0 ends the recording.

        Raises
        ------
        pccl.InvalidArgumentError
            ``steps`` is above 4,194,304.
        """
    def _take_timeline(self) -> tuple[list[tuple[Any, ...]], int, int]:
        """Return the recorded steps, for ``pccl.timeline.gather``."""
    def health(
        self, timeout: timedelta
    ) -> list[tuple[str, str, float | None, int, str, list[int], str, list[int]]]:
        """Query the current state of every rank, for ``pccl.health``.

        Parameters
        ----------
        timeout
            Maximum time to wait for the answer of each rank.

        Returns
        -------
        list of tuple
            By rank: the fields of ``pccl.results.peer_health.PeerHealth`` without the rank.

        Raises
        ------
        pccl.UnavailableError
            This process is a fork of the process that made the group.
        """
    def missing(self) -> list[int]:
        """Return the ranks that ``pccl.shrink`` excludes.

        Raises
        ------
        pccl.UnavailableError
            The other ranks have excluded this rank.
        """
    def monitored_barrier(self, timeout: timedelta, wait_all_ranks: bool = False) -> None: ...
    def perform_nocolor_split(self, device: object) -> None:
        """Do nothing; torch calls it on the ranks that are not in a new group.

        Parameters
        ----------
        device
            Ignored.
        """
    def _enable_collectives_timing(self) -> None: ...
