# SPDX-License-Identifier: Apache-2.0
"""The process: its flight record, log and files of measurements."""

from datetime import timedelta
from typing import Literal

def flight_record_json() -> str:
    """Return the flight record that ``pccl.diagnostics.flight_record`` returns, as JSON text."""

def request_history(door: str, group: bytes, first: int, timeout_s: float | timedelta) -> bytes:
    """Request the history of a rank's counters in a group, as ``pccl why`` does.

    Parameters
    ----------
    door
        Address at which the process listens, as for ``request_status``.
    group
        Key (16 bytes) of the group.
    first
        Second since 1970 from which on to list: the ``"next"`` of the previous answer, or 0 for the
        first request.
    timeout_s
        Seconds to wait for the answer.

    Returns
    -------
    bytes
        JSON: ``"windows"`` (docs/reference/failure.md) and ``"next"``.

    Raises
    ------
    InvalidArgumentError
        The process has another secret, or an argument has no meaning.
    PeerLostError
        No process listens there.
    TimeoutError
        The process does not answer.
    """

def request_status(door: str, group: bytes, first: int, timeout_s: float | timedelta) -> bytes:
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

def usable_cores() -> int:
    """Return the number of cores that this process may use.

    Returns
    -------
    int
        The cores of its affinity, or fewer where its CPU quota (cgroups) allows less time; at least
        1.
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
