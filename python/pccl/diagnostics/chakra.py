# SPDX-License-Identifier: Apache-2.0
"""Export of flight records as MLCommons Chakra execution traces for network simulators.

A trace is a file of length-prefixed protocol buffer messages: one ``GlobalMetadata``, then a
``Node`` for each operation (Sridharan et al., "Chakra: Advancing Performance Benchmarking and
Co-design using Standardized Execution Traces", 2023; ``schema/protobuf/et_def.proto`` there).
"""

from __future__ import annotations

import typing

from pccl.diagnostics.flight_files import MOST_RANKS, errors_of_fields

if typing.TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["trace_of", "write"]

_Json: typing.TypeAlias = "dict[str, typing.Any]"

SCHEMA = "1.1.1-chakra.0.0.4"
# NodeType
COMP_NODE, COMM_SEND_NODE, COMM_RECV_NODE, COMM_COLL_NODE = 4, 5, 6, 7
# CollectiveCommType
COLLECTIVES = {
    "all_reduce": 0,
    "reduce": 1,
    "all_gather": 2,
    "gather": 3,
    "scatter": 4,
    "broadcast": 5,
    "all_to_all": 6,
    "reduce_scatter": 7,
    "barrier": 9,
}
# The input of these has one block per rank; ``count`` is the number of elements per block.
INPUT_BLOCKS = {"all_to_all", "reduce_scatter", "scatter"}


def write(records: Iterable[_Json], folder: Path) -> list[Path]:
    """Write a trace for each record to ``folder``, created if missing; return the files.

    Parameters
    ----------
    records
        Results of ``pccl.diagnostics.flight_record()``, one per process.

    Raises
    ------
    ValueError
        A record has no group, a field is missing or malformed, or two records have the same rank.
    OSError
        A file cannot be written.
    """
    traces: dict[int, bytes] = {}
    for record in records:
        try:
            with errors_of_fields():
                rank, trace = _rank_of(record), trace_of(record)
        except ValueError as error:
            raise ValueError(
                f"no trace of a flight record: {error} (earlier releases wrote fewer fields)"
            ) from None
        if rank in traces:
            raise ValueError(f"two records are of rank {rank}: give those of one run")
        traces[rank] = trace
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for rank, trace in sorted(traces.items()):
        files.append(folder / f"chakra.{rank}.et")
        files[-1].write_bytes(trace)
    return files


def trace_of(record: _Json) -> bytes:
    """Return the trace of one process, with times in microseconds since its first operation."""
    groups = {group["id"]: group for group in record["groups"]}
    entries = sorted(record["entries"], key=lambda entry: entry["issued_ns"])
    first = entries[0]["issued_ns"] if entries else 0
    nodes = _Nodes(first)
    for entry in entries:
        nodes.add(entry, groups[entry["group"]])
    head = _text(1, "") + _attribute(2, "schema", _text(29, SCHEMA))
    return b"".join(_number(len(each)) + each for each in [head, *nodes.encoded])


class _Span(typing.NamedTuple):
    """Name and type of a node, and its begin and end in nanoseconds of the steady clock."""

    name: str
    node_type: int
    begin: int
    end: int


class _Nodes:
    """Nodes of one process: its operations, computation in the gaps, and dependencies."""

    def __init__(self, first_ns: int) -> None:
        self.encoded: list[bytes] = []
        self._first_ns = first_ns
        self._ended_ns = first_ns  # latest end of all operations so far
        self._ended_last: list[int] = []  # the node with that end
        self._last_of: dict[int, list[int]] = {}  # latest node by group

    def add(self, entry: _Json, group: _Json) -> None:
        begin = entry["issued_ns"]
        end = entry["finished_ns"] or begin
        before = self._last_of.get(group["id"], [])
        if begin > self._ended_ns:
            gap = _Span("compute", COMP_NODE, self._ended_ns, begin)
            is_cpu = _attribute(10, "is_cpu_op", _flag(27, True))
            before = [*before, self._append(gap, self._ended_last, is_cpu)]
        span = _Span(entry["operation"], _node_type(entry["kind"]), begin, end)
        number = self._append(span, before, _communication(entry, group))
        self._last_of[group["id"]] = [number]
        if end >= self._ended_ns:
            self._ended_ns, self._ended_last = end, [number]

    def _append(self, span: _Span, before: list[int], attributes: bytes) -> int:
        number = len(self.encoded) + 1
        begin, end = ((at - self._first_ns) // 1000 for at in (span.begin, span.end))
        self.encoded.append(
            _integer(1, number)
            + _text(2, span.name)
            + _integer(3, span.node_type)
            + _bytes(5, b"".join(map(_number, before)))
            + _integer(6, begin)
            + _integer(7, end - begin)
            + attributes
        )
        return number


def _rank_of(record: _Json) -> int:
    """Return the rank of a process in its job, from its first group."""
    for group in record["groups"]:
        return _global_rank(group, group["rank"])
    raise ValueError("it has no group: its process has no rank")


def _global_rank(group: _Json, rank: int) -> int:
    if rank < 0:
        raise IndexError
    found = int(group["global_ranks"][rank])
    if 0 <= found < MOST_RANKS:
        return found
    raise ValueError(f"its global rank is not from 0 to {MOST_RANKS - 1}")


def _node_type(kind: str) -> int:
    return {"send": COMM_SEND_NODE, "receive": COMM_RECV_NODE}.get(kind, COMM_COLL_NODE)


def _communication(entry: _Json, group: _Json) -> bytes:
    """Return the attributes of an operation, named as in Chakra's converters and ASTRA-sim."""
    own = _global_rank(group, group["rank"])
    parts = {
        "is_cpu_op": _flag(27, group["device"] == "cpu"),
        "pg_name": _text(29, group["name"]),
        "comm_size": _integer(9, _bytes_of(entry, group["size"])),
    }
    if entry["kind"] in ("send", "receive"):
        peer = _global_rank(group, entry["peer"]) if entry["peer"] >= 0 else 0
        source, target = (own, peer) if entry["kind"] == "send" else (peer, own)
        parts |= {
            "comm_src": _integer(7, source),
            "comm_dst": _integer(7, target),
            "comm_tag": _integer(7, entry["tag"]),
        }
    else:
        parts["comm_type"] = _integer(9, COLLECTIVES[entry["kind"]])
        if "root" in entry:
            parts["root_rank"] = _integer(7, _global_rank(group, entry["root"]))
    return b"".join(_attribute(10, name, value) for name, value in parts.items())


def _bytes_of(entry: _Json, ranks: int) -> int:
    """Return the bytes of a message, or of a rank's input to a collective."""
    if "bytes" in entry:
        return int(entry["bytes"])
    blocks = ranks if entry["kind"] in INPUT_BLOCKS else 1
    return int(entry.get("count", 0)) * int(entry.get("element_bytes", 0)) * blocks


# Encoding of protocol buffer fields (see "Encoding" in their documentation).


def _number(value: int) -> bytes:
    """Return a varint; negative numbers are encoded as 64 bits."""
    value &= (1 << 64) - 1
    text = bytearray()
    while value > 0x7F:
        text.append(value & 0x7F | 0x80)
        value >>= 7
    text.append(value)
    return bytes(text)


def _integer(field: int, value: int) -> bytes:
    return _number(field << 3) + _number(value)


def _flag(field: int, value: bool) -> bytes:
    return _integer(field, int(value))


def _bytes(field: int, value: bytes) -> bytes:
    return _number(field << 3 | 2) + _number(len(value)) + value


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _attribute(field: int, name: str, value: bytes) -> bytes:
    return _bytes(field, _text(1, name) + value)
