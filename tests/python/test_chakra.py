# SPDX-License-Identifier: Apache-2.0
"""Flight records as Chakra traces, read back by the fields of its schema alone."""

from __future__ import annotations

import copy
import itertools
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import pccl
from pccl.diagnostics import chakra, flight, flight_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

VARINT, BYTES = 0, 2
# Name and wire type by number, of the messages that are written.
METADATA = {1: ("version", BYTES), 2: ("attr", BYTES)}
NODE = {
    1: ("id", VARINT),
    2: ("name", BYTES),
    3: ("type", VARINT),
    5: ("data_deps", BYTES),
    6: ("start_time_micros", VARINT),
    7: ("duration_micros", VARINT),
    10: ("attr", BYTES),
}
VALUES = {7: VARINT, 9: VARINT, 27: VARINT, 29: BYTES}  # int32, int64, bool, string


def varint(text: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = text[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(text: bytes) -> Iterator[tuple[int, int, Any]]:
    at = 0
    while at < len(text):
        key, at = varint(text, at)
        value: Any
        if key & 7 == VARINT:
            value, at = varint(text, at)
        else:
            assert key & 7 == BYTES
            length, at = varint(text, at)
            value, at = text[at : at + length], at + length
            assert len(value) == length
        yield key >> 3, key & 7, value


def message(text: bytes, schema: dict[int, tuple[str, int]]) -> dict[str, Any]:
    read: dict[str, Any] = {"attr": {}, "data_deps": []}
    for number, wire, value in fields(text):
        name, wanted = schema[number]
        assert wire == wanted, name
        if name == "attr":
            (_, _, key), (kind, of_wire, content) = fields(value)
            assert VALUES[kind] == of_wire
            read["attr"][key.decode()] = content.decode() if kind == 29 else content
        elif name == "data_deps":
            at = 0
            while at < len(value):
                number, at = varint(value, at)
                read["data_deps"].append(number)
        else:
            read[name] = value.decode() if wire == BYTES else value
    return read


def read_trace(text: bytes) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    at, parts = 0, []
    while at < len(text):
        length, at = varint(text, at)
        parts.append(text[at : at + length])
        at += length
    assert at == len(text)
    return message(parts[0], METADATA), [message(part, NODE) for part in parts[1:]]


def entry(ticket: int, group: int, begin_us: int, end_us: int, **call: Any) -> dict[str, Any]:
    return {
        "ticket": ticket,
        "group": group,
        "operation": call["kind"],
        "state": "completed",
        "issued_ns": 5_000_000_000 + begin_us * 1000,
        "started_ns": None,
        "finished_ns": 5_000_000_000 + end_us * 1000,
        **call,
    }


def group(number: int, name: str, rank: int, ranks: list[int], device: str) -> dict[str, Any]:
    size = len(ranks)
    own = {"id": number, "name": name, "rank": rank, "size": size}
    return own | {"global_ranks": ranks, "device": device}


def of(data_type: str, count: int, element_bytes: int, **call: Any) -> dict[str, Any]:
    return {"type": data_type, "count": count, "element_bytes": element_bytes, **call}


RECORD = {
    "version": 1,
    "host": "a",
    "pid": 1,
    "wall_ms": 0,
    "steady_ns": 0,
    "reason": "asked for",
    "groups": [
        group(1, "world", 1, [0, 1, 2, 3], "cpu"),
        group(2, "tp", 0, [1, 3], "cuda"),
    ],
    "entries": [
        entry(1, 1, 0, 10, kind="all_reduce", sequence=1, **of("float32", 1000, 4)),
        entry(2, 2, 30, 45, kind="reduce_scatter", sequence=1, **of("bfloat16", 50, 2)),
        entry(3, 1, 45, 46, kind="broadcast", sequence=2, **of("int8", 7, 1, root=2)),
        entry(4, 2, 46, 50, kind="send", peer=1, tag=9, bytes=300),
        entry(5, 1, 50, 51, kind="barrier", sequence=3),
    ],
}


def test_every_operation_is_a_node_behind_its_length() -> None:
    head, nodes = read_trace(chakra.trace_of(RECORD))
    assert head["attr"]["schema"].startswith("1.1.1-chakra")
    assert [
        (node["type"], node["start_time_micros"], node["duration_micros"]) for node in nodes
    ] == [
        (7, 0, 10),
        (4, 10, 20),
        (7, 30, 15),
        (7, 45, 1),
        (5, 46, 4),
        (7, 50, 1),
    ]
    assert [node["id"] for node in nodes] == [1, 2, 3, 4, 5, 6]


def test_nodes_have_the_calls() -> None:
    _, (reduce, compute, scatter, broadcast, send, barrier) = read_trace(chakra.trace_of(RECORD))
    assert reduce["attr"] == {"is_cpu_op": 1, "pg_name": "world", "comm_size": 4000, "comm_type": 0}
    assert compute["attr"] == {"is_cpu_op": 1}
    assert scatter["attr"] == {"is_cpu_op": 0, "pg_name": "tp", "comm_size": 200, "comm_type": 7}
    assert broadcast["attr"] == {
        "is_cpu_op": 1,
        "pg_name": "world",
        "comm_size": 7,
        "comm_type": 5,
        "root_rank": 2,
    }
    assert send["attr"] == {
        "is_cpu_op": 0,
        "pg_name": "tp",
        "comm_size": 300,
        "comm_src": 1,
        "comm_dst": 3,
        "comm_tag": 9,
    }
    assert barrier["attr"] == {"is_cpu_op": 1, "pg_name": "world", "comm_size": 0, "comm_type": 9}


def test_operations_of_a_group_depend_on_each_other_and_on_computation_before() -> None:
    _, nodes = read_trace(chakra.trace_of(RECORD))
    assert [node["data_deps"] for node in nodes] == [[], [1], [2], [1], [3], [4]]


def test_what_groups_really_did_is_written_for_each_rank(tmp_path: Path) -> None:
    code = """
import numpy as np, pccl
comm = pccl.Communicator(rendezvous="env://")
x = np.ones(1000, np.float32)
comm.all_reduce(x)
comm.broadcast(x, root=1)
out = np.empty(500 * 2, np.float64)
comm.all_gather(out, np.ones(500))
comm.barrier()
import json, pathlib, sys
record = json.dumps(pccl.diagnostics.flight_record())
pathlib.Path(sys.argv[1], f"flight-a-{comm.rank}.json").write_text(record)
"""
    program = tmp_path / "job.py"
    program.write_text(code)
    records = tmp_path / "records"
    records.mkdir()
    run = [sys.executable, "-m", "pccl"]
    subprocess.run([*run, "run", "-n", "2", program, records], check=True, timeout=120)
    traces = tmp_path / "traces"
    subprocess.run([*run, "debug", records, "--chakra", traces], check=True, timeout=60)
    for rank in range(2):
        _, nodes = read_trace((traces / f"chakra.{rank}.et").read_bytes())
        calls = [node["attr"] for node in nodes if node["type"] == 7]
        assert [call["comm_type"] for call in calls] == [0, 5, 2, 9]
        assert [call["comm_size"] for call in calls] == [4000, 4000, 4000, 0]
        assert {call["pg_name"] for call in calls} == {"world"}
        numbers = {node["id"] for node in nodes}
        assert all(set(node["data_deps"]) < numbers for node in nodes)


def test_flight_records_have_fields_of_what_was_called() -> None:
    import numpy as np

    comm = pccl.Communicator(rank=0, world_size=1)
    comm.all_reduce(np.ones(3, np.int16), op="max")
    record = pccl.diagnostics.flight_record()
    group = record["groups"][-1]
    assert group["global_ranks"] == [0]
    last = record["entries"][-1]
    assert {
        key: last[key] for key in ("kind", "op", "type", "count", "element_bytes", "calls")
    } == {
        "kind": "all_reduce",
        "op": "max",
        "type": "int16",
        "count": 3,
        "element_bytes": 2,
        "calls": 1,
    }
    assert "root" not in last
    json.dumps(record)


def test_two_records_of_one_rank_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="two records are of rank 1"):
        chakra.write([RECORD, RECORD], tmp_path)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Return the path of every field, at any depth."""
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in parts:
        yield (*path, key)
        if isinstance(part, dict | list):
            yield from places(part, (*path, key))


OTHER_VALUES: list[Any] = [
    None,
    "x",
    "\ud800",
    "",
    -1,
    1 << 70,
    1.5,
    1e308,
    float("nan"),
    True,
    [],
    {},
    [[]],
    [None],
    {"id": 1},
]


SESSIONS = {
    "events": [
        {"session": "s", "event": "lost", "at_ns": 1, "peer": "p", "text": "ended", "times": 2}
    ],
    "transfers": [
        {
            "number": 1,
            "session": "s",
            "peer": "p",
            "operation": "read",
            "bytes": 4096,
            "state": "posted",
            "posted_ns": 17,
            "ended_ns": None,
        }
    ],
}
WAITS = [{"operation": "all_reduce #1", "ticket": 1, "peer": 2, "seconds": 1.5}]


def readings(file: Path) -> Iterator[Callable[[], object]]:
    """Return what `pccl debug` does with a file."""
    yield lambda: flight.explain(flight_files.load(file).groups)
    yield lambda: flight.explain_sessions(flight_files.load(file).sessions)
    yield lambda: chakra.write([flight_files.load_raw(file)], file.parent / "traces")


def test_a_field_of_any_other_value_is_read_or_refused_in_one_line(tmp_path: Path) -> None:
    """Records may come from other machines, and from files that somebody has changed."""
    record: dict[str, Any] = copy.deepcopy(RECORD) | {"sessions": SESSIONS}
    record["groups"][0]["waits"] = WAITS
    file = tmp_path / "flight-here-0.json"
    file.write_text(json.dumps(record))
    for read in readings(file):
        read()
    refused = 0
    for path, value in itertools.product(places(record), OTHER_VALUES):
        changed = copy.deepcopy(record)
        part = changed
        for step in path[:-1]:
            part = part[step]
        part[path[-1]] = value
        file.write_text(json.dumps(changed))
        for read in readings(file):
            error = ""
            try:
                read()
            except ValueError as found:
                error = str(found)
            refused += bool(error)
            assert "\n" not in error, (path, value)
    assert refused > 100
