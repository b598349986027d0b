# SPDX-License-Identifier: Apache-2.0
"""Status of a running job in Prometheus' text format."""

from __future__ import annotations

import typing

from pccl.diagnostics.exposition import Metric, text_of

if typing.TYPE_CHECKING:
    from collections.abc import Iterator

    from pccl.diagnostics.exposition import Sample
    from pccl.diagnostics.job_status import Job, Process, Seat
    from pccl.diagnostics.usage import Launches, Messages, Usage

__all__ = ["exposition"]


_UP = Metric("pccl_up", "gauge", "1 for a process that answered, 0 for one that did not.")
_RUN = Metric("pccl_cpu_seconds_total", "counter", "Time of the process on cores.")
_QUEUED = Metric(
    "pccl_cpu_queued_seconds_total", "counter", "Time in which its threads waited for a core."
)
_FAILED = Metric("pccl_group_failed", "gauge", "1 where the group has failed at this rank.")
_RUNNING = Metric(
    "pccl_operation_seconds", "gauge", "Time since the start of the operation in progress."
)
_CALLS = Metric("pccl_collectives_total", "counter", "Collectives that have ended.")
_BYTES = Metric(
    "pccl_collective_bytes_total", "counter", "Bytes of the longer of the caller's two buffers."
)
_WITHIN = Metric("pccl_collective_seconds_total", "counter", "Time in collectives.")
_PREDICTED = Metric(
    "pccl_collective_predicted_seconds_total", "counter", "Time predicted by the cost model."
)
_BETWEEN = Metric(
    "pccl_between_collectives_seconds_total", "counter", "Time from a collective to the next call."
)
_WAITED = Metric(
    "pccl_wait_seconds_total", "counter", "Time in collectives in which the peer had to act."
)
_SENT = Metric(
    "pccl_path_bytes_total", "counter", "Bytes over TCP that the peer's host has acknowledged."
)
_RESENT = Metric("pccl_path_resent_bytes_total", "counter", "Bytes that TCP has sent again.")
_ROUND_TRIP = Metric("pccl_path_round_trip_seconds", "gauge", "TCP's smoothed round trip.")
_MESSAGES = Metric("pccl_messages_total", "counter", "Messages that have ended.")
_MESSAGE_BYTES = Metric("pccl_message_bytes_total", "counter", "Bytes of messages.")
_MESSAGE_TIME = Metric(
    "pccl_message_seconds_total", "counter", "Time with a message of the rank under way."
)
_MESSAGE_WAITED = Metric(
    "pccl_message_wait_seconds_total",
    "counter",
    "Time in which a message was waited for and the peer had to act.",
)
_LAUNCHES = Metric(
    "pccl_launches_total", "counter", "Collectives and messages launched on the GPU."
)
_LAUNCH_BYTES = Metric("pccl_launch_bytes_total", "counter", "Bytes of launches on the GPU.")
_LAUNCH_TIME = Metric("pccl_launch_seconds_total", "counter", "Time of the host in launches.")
_METRICS = (
    _UP,
    _RUN,
    _QUEUED,
    _FAILED,
    _RUNNING,
    _CALLS,
    _BYTES,
    _WITHIN,
    _PREDICTED,
    _BETWEEN,
    _WAITED,
    _SENT,
    _RESENT,
    _ROUND_TRIP,
    _MESSAGES,
    _MESSAGE_BYTES,
    _MESSAGE_TIME,
    _MESSAGE_WAITED,
    _LAUNCHES,
    _LAUNCH_BYTES,
    _LAUNCH_TIME,
)


def exposition(job: Job) -> str:
    """Return the job's counters and states; each metric has one HELP and one TYPE line."""
    return text_of(_METRICS, _samples_of(job))


def _samples_of(job: Job) -> Iterator[Sample]:
    for process in job.processes:
        where = {"host": process.host, "pid": str(process.pid)}
        yield _UP, where, 1
        if process.cpu is not None:
            yield _RUN, where, process.cpu.run_s
            yield _QUEUED, where, process.cpu.queued_s
        for seat in process.seats:
            yield from _samples_of_seat(seat, process)
    for silent in job.unheard:
        yield _UP, {"process": silent.name}, 0


def _samples_of_seat(seat: Seat, process: Process) -> Iterator[Sample]:
    labels = {
        "group": seat.group,
        "group_id": seat.key[:8],
        "device": seat.device,
        "rank": str(seat.rank),
        "host": process.host,
    }
    yield _FAILED, labels, int(bool(seat.broken))
    if seat.operation and seat.seconds is not None:
        yield _RUNNING, labels, seat.seconds
    if seat.usage is not None:
        yield from _samples_of_usage(seat.usage, labels)
        yield from _samples_of_messages(seat.usage.messages, labels)
    if seat.launches is not None:
        yield from _samples_of_launches(seat.launches, labels)


def _samples_of_usage(usage: Usage, labels: dict[str, str]) -> Iterator[Sample]:
    for path, counts in usage.by_path.items():
        by_path = labels | {"path": path}
        yield _CALLS, by_path, counts.calls
        yield _BYTES, by_path, counts.bytes
        yield _WITHIN, by_path, counts.seconds
        yield _PREDICTED, by_path, counts.predicted_s
    yield _BETWEEN, labels, usage.between_s
    for wait in usage.waits:
        yield _WAITED, labels | {"peer": str(wait.rank), "act": wait.act}, wait.seconds
    for link in usage.network:
        to_peer = labels | {"peer": str(link.peer), "interface": link.interface}
        yield _SENT, to_peer, link.bytes
        yield _RESENT, to_peer, link.resent
        yield _ROUND_TRIP, to_peer, link.round_trip_s


def _samples_of_messages(messages: Messages, labels: dict[str, str]) -> Iterator[Sample]:
    for direction, totals in (("sent", messages.sent), ("received", messages.received)):
        yield _MESSAGES, labels | {"direction": direction}, totals.calls
        yield _MESSAGE_BYTES, labels | {"direction": direction}, totals.bytes
    yield _MESSAGE_TIME, labels, messages.seconds
    for wait in messages.waits:
        yield _MESSAGE_WAITED, labels | {"peer": str(wait.rank), "act": wait.act}, wait.seconds


def _samples_of_launches(launches: Launches, labels: dict[str, str]) -> Iterator[Sample]:
    counts = {
        "collective": launches.calls,
        "message": launches.messages,
        "captured": launches.captured,
    }
    for kind, count in counts.items():
        yield _LAUNCHES, labels | {"kind": kind}, count
    moved = {
        "collective": launches.bytes,
        "sent": launches.sent_bytes,
        "received": launches.received_bytes,
    }
    for kind, size in moved.items():
        yield _LAUNCH_BYTES, labels | {"kind": kind}, size
    yield _LAUNCH_TIME, labels, launches.launch_s
