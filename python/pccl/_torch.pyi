# SPDX-License-Identifier: Apache-2.0
"""The torch.distributed backend; import torch first."""

from datetime import timedelta
from typing import Any, Literal, Protocol

from torch._C._distributed_c10d import Backend, ErrorType, Store

class _Cluster(Protocol):  # pccl.Cluster
    @property
    def ranks(self) -> int: ...

class Options(Backend.Options):
    """What ``init_process_group(pg_options=...)`` and ``new_group(pg_options=...)`` take.

    Parameters
    ----------
    transports
        Restricts the group to these transports, for example ``"shm,tcp"``; empty for all that
        ``PCCL_TRANSPORTS`` permits.
    algorithm
        For each collective that it names, the algorithm of CPU and CUDA tensors, for example
        ``"all_reduce=ring,all_gather=pat"``; empty for what ``PCCL_ALGORITHM`` says. All ranks give
        the same: a collective whose ranks differ raises ``pccl.MismatchError``. An algorithm that
        makes other collectives raises ``ValueError`` here; a name that no algorithm has is warned
        about when the group is made, for a capsule of that name may be loaded later.
    copy_engines
        Whether copy engines do large all_gathers and all_to_alls of CUDA tensors, which leaves all
        multiprocessors to what runs beside them; None for what ``PCCL_GPU_COPY_ENGINES`` says. Rank
        0's counts.
    max_blocks
        The most blocks, 1 to 128, that a launch for CUDA tensors has, each of which takes one
        multiprocessor (but one for each message); None for as many as are the fastest. All ranks
        give the same, as of ``protocol``: else the first collective of CUDA tensors raises
        ``pccl.MismatchError``. Another number raises ``ValueError``.
    protocol
        ``"ll"``, ``"ll128"``, ``"direct"``, ``"staggered"`` or ``"copy_engine"``: how collectives
        of CUDA tensors go, where they can (docs/gpus.md); empty for the fastest. ``pccl.explain``
        shows what comes of it. Another name raises ``ValueError``.
    least
        The fewest ranks that may be left of the group by ``torch.distributed.shrink_group``, which
        takes these options, too; None for those that ``pccl.shrink`` asks for.
    timeline
        For how many steps the group has room that it records from its beginning, as
        ``pccl.timeline.record`` does later; 0 records none. More than 4,194,304 raise
        ``pccl.InvalidArgumentError`` when the group is made.
    cluster
        Whose phases the default group switches, by ``pccl.switch_phase``: one device for each rank.
        None for that of the environment's ``PCCL_CLUSTER``, or none. Other groups follow.
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
            That group's options.
        """
    def __copy__(self) -> Options:
        """Return a copy."""
    def __deepcopy__(self, memo: dict[int, object]) -> Options:
        """Return a copy.

        Parameters
        ----------
        memo
            Of ``copy.deepcopy``.
        """

class ProcessGroupPCCL(Backend):
    """One group's backend. Made by torch; meets the other ranks through ``store``."""

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
        """For ``torch.cuda.MemPool``: GPU memory that peers can map."""
    def get_error(self) -> ErrorType:
        """Return whether the group can be used, or what kind of error ended it."""
    def explain(
        self, collective: str, nbytes: int
    ) -> list[
        tuple[str, str, float, str, bool, Literal["", "request", "capsule", "tuning", "prediction"]]
    ]:
        """Return the fields of every ``pccl.explanation.Way``, for ``pccl.explain``.

        Parameters
        ----------
        collective, nbytes
            As for ``pccl.explain``.

        Raises
        ------
        ValueError
            There is no such collective, or PCCL_ALGORITHM names an algorithm that does not fit.
        """
    def explain_gpus(
        self, collective: str, nbytes: int
    ) -> tuple[int, list[tuple[str, str, int, int, int, str]]]:
        """Return the GPUs' architecture and the fields of each ``GpuLaunch``, for ``pccl.explain``.

        Parameters
        ----------
        collective, nbytes
            As for ``pccl.explain``.

        Raises
        ------
        ValueError
            There is no such collective.
        pccl.UnavailableError
            No collective of CUDA tensors has run yet.
        pccl.UnsupportedError
            The GPUs do not reach each other.
        """
    def links_counted_on(self) -> tuple[list[str], list[int], int, str, list[str]]:
        """Return the fields of ``pccl.named.LinksCountedOn``, for ``pccl.explain``."""
    def describe_job(self) -> bytes:
        """Return what ``pccl.topology.job`` shows.

        Raises
        ------
        pccl.UnavailableError
            This machine cannot be looked at, or the process is a child of the one that made the
            group.
        """
    def load_capsule(
        self, content: bytes, is_path: bool, sizes: str | None
    ) -> tuple[str, str, int]:
        """Load a capsule on all ranks, for ``pccl.load_capsule``.

        Parameters
        ----------
        content
            Its bytes, or the path of its file.
        is_path
            Which of the two ``content`` is.
        sizes
            For which it is used; None for those that it states.

        Returns
        -------
        tuple of str, str, int
            Its name, its collective and its root.

        Raises
        ------
        pccl.InvalidArgumentError
            It is no capsule, or wrong, or for another number of ranks.
        pccl.MismatchError
            Ranks have other bytes or sizes.
        """
    def unload_capsule(self, name: str) -> None:
        """Undo ``load_capsule``, for ``pccl.unload_capsule``.

        Parameters
        ----------
        name
            The capsule's.

        Raises
        ------
        pccl.InvalidArgumentError
            No such capsule was loaded.
        """
    def loaded_capsules(self) -> list[tuple[str, str, str, str]]:
        """Return name, collective, sizes and digest of each, for ``pccl.capsules``."""
    def record_timeline(self, steps: int) -> None:
        """Record when steps happen, over links and on GPUs, for ``pccl.timeline.record``.

        Parameters
        ----------
        steps
            For so many there is room; 0 ends it.

        Raises
        ------
        pccl.InvalidArgumentError
            ``steps`` is above 4,194,304.
        """
    def _take_timeline(self) -> tuple[list[tuple[Any, ...]], int, int]:
        """Return what was recorded, for ``pccl.timeline.gather``."""
    def health(
        self, timeout: timedelta
    ) -> list[tuple[str, str, float | None, int, str, list[int], str, list[int]]]:
        """Ask every rank how it fares, for ``pccl.health``.

        Parameters
        ----------
        timeout
            How long each rank may take to answer.

        Returns
        -------
        list of tuple
            By rank: the fields of ``pccl.PeerHealth``, but for the rank.

        Raises
        ------
        pccl.UnavailableError
            This process is a child of the one that made the group.
        """
    def missing(self) -> list[int]:
        """Return the ranks that ``pccl.shrink`` leaves out.

        Raises
        ------
        pccl.UnavailableError
            Others have gone on without this rank.
        """
    def monitored_barrier(self, timeout: timedelta, wait_all_ranks: bool = False) -> None: ...
    def perform_nocolor_split(self, device: object) -> None:
        """Do nothing; torch calls it on the ranks that are not in a new group.

        Parameters
        ----------
        device
            Not looked at.
        """
    def _enable_collectives_timing(self) -> None: ...
