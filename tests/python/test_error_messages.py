# SPDX-License-Identifier: Apache-2.0
"""What errors say to those who meet them first: what is wrong, where, and what would be right."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import pccl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

COLLECTIVES = "all_reduce, all_gather, reduce_scatter, broadcast, reduce, gather, scatter"


@pytest.fixture(scope="module")
def alone() -> Iterator[pccl.Communicator]:
    """Give a group of one rank."""
    comm = pccl.Communicator(timeout=20.0)
    yield comm
    comm.shutdown()


def errors_of_two(
    folder: Path, body: Callable[[pccl.Communicator], None]
) -> list[pccl.Error | None]:
    """Run ``body`` as ranks 0 and 1 of a group, and give what each raised."""

    def be_rank(rank: int) -> pccl.Error | None:
        comm = pccl.Communicator(
            rank=rank, world_size=2, rendezvous=f"file://{folder}/store", timeout=20.0
        )
        try:
            body(comm)
        except pccl.Error as error:
            return error
        return None

    with ThreadPoolExecutor(2) as pool:
        return [one.result(timeout=60) for one in [pool.submit(be_rank, i) for i in range(2)]]


@pytest.mark.parametrize(
    ("calls", "field", "sides"),
    [
        (
            (lambda c: c.all_reduce(np.ones(8)), lambda c: c.all_reduce(np.ones(9))),
            "the number of elements",
            ("all_reduce #1 (sum of 8 float64)", "all_reduce #1 (sum of 9 float64)"),
        ),
        (
            (lambda c: c.all_reduce(np.ones(8)), lambda c: c.all_reduce(np.ones(8, np.float32))),
            "the element type",
            ("all_reduce #1 (sum of 8 float64)", "all_reduce #1 (sum of 8 float32)"),
        ),
        (
            (lambda c: c.all_reduce(np.ones(8)), lambda c: c.all_reduce(np.ones(8), "max")),
            "the operator",
            ("all_reduce #1 (sum of 8 float64)", "all_reduce #1 (max of 8 float64)"),
        ),
        (
            (lambda c: c.all_reduce(np.ones(8)), lambda c: c.broadcast(np.ones(8))),
            "the collective",
            ("all_reduce #1 (sum of 8 float64)", "broadcast #1 (8 float64, root 0)"),
        ),
        (
            (lambda c: c.barrier(), lambda c: c.all_reduce(np.ones(1, np.uint8), "max")),
            "the collective",
            ("barrier #1", "all_reduce #1 (max of 1 uint8)"),
        ),
    ],
)
def test_a_mismatch_names_the_field_and_both_sides_once(
    tmp_path: Path,
    calls: tuple[Callable[[pccl.Communicator], Any], ...],
    field: str,
    sides: tuple[str, str],
) -> None:
    for error in errors_of_two(tmp_path, lambda comm: calls[comm.rank](comm)):
        assert isinstance(error, pccl.MismatchError)
        text = str(error)
        assert "\n" not in text
        assert f"ranks disagree about {field}: rank " in text
        for side in sides:
            assert text.count(side) == 1, text


def test_a_barrier_fails_as_a_barrier(tmp_path: Path) -> None:
    def body(comm: pccl.Communicator) -> None:
        comm.barrier()
        if comm.rank == 0:
            comm.barrier(timeout=0.5)

    error, _ = errors_of_two(tmp_path, body)
    assert isinstance(error, (pccl.TimeoutError, pccl.PeerLostError))
    assert "barrier #2" in str(error)
    assert "all_reduce" not in str(error)


def test_types_of_a_message_must_agree(tmp_path: Path) -> None:
    def body(comm: pccl.Communicator) -> None:
        if comm.rank == 0:
            comm.send(np.ones(4, np.float32), 1)
        else:
            comm.recv(np.ones(4, np.int32), 0)

    _, error = errors_of_two(tmp_path, body)
    assert isinstance(error, pccl.MismatchError)
    assert "rank 0 sent float32, this rank receives int32" in str(error)


def test_a_message_to_oneself_needs_its_other_half(alone: pccl.Communicator) -> None:
    x, y = np.arange(4.0), np.zeros(4)
    with pytest.raises(pccl.InvalidArgumentError, match=r"post recv\(..., async_op=True\) first"):
        alone.send(x, 0)
    with pytest.raises(pccl.InvalidArgumentError, match=r"post send\(..., async_op=True\) first"):
        alone.recv(y, 0)
    received = alone.recv(y, 0, async_op=True)
    alone.send(x, 0)
    received.wait()
    assert np.array_equal(x, y)
    sent = alone.send(x + 1, 0, 7, async_op=True)
    alone.recv(y, 0, 7)
    sent.wait()
    assert np.array_equal(x + 1, y)


def read_only(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    x.flags.writeable = False
    return x


@pytest.mark.parametrize(
    ("x", "complaint"),
    [
        (np.ones(8)[::2], "it is strided: pass numpy.ascontiguousarray(x), and copy the result"),
        (read_only(np.ones(8)), "it is read-only: pass x.copy()"),
        (b"12345678", "it is read-only: pass bytearray(x)"),
        ([1.0, 2.0], "got list; pass a numpy array that you keep: a = numpy.asarray(x)"),
        (3, "got int; pass a numpy array"),
    ],
)
def test_an_unusable_array_is_refused_with_the_reason(
    alone: pccl.Communicator, x: Any, complaint: str
) -> None:
    with pytest.raises(pccl.InvalidArgumentError) as raised:
        alone.all_reduce(x)
    assert complaint in str(raised.value)


def test_what_is_only_read_may_be_read_only(alone: pccl.Communicator) -> None:
    out = np.empty(8)
    alone.all_gather(out, read_only(np.arange(8.0)))
    assert np.array_equal(out, np.arange(8.0))
    with pytest.raises(pccl.InvalidArgumentError, match=r"pass numpy.ascontiguousarray\(x\)$"):
        alone.all_gather(np.empty(4), np.ones(8)[::2])


@pytest.mark.parametrize(
    ("call", "listed"),
    [
        (lambda c: c.explain("foo", 8), f"'foo' is no collective; there are {COLLECTIVES}"),
        (lambda _: pccl.schedule.algorithms("foo"), f"there are {COLLECTIVES}"),
        (
            lambda _: pccl.schedule.generate("foo", "all_reduce", 4),
            "'foo' is no algorithm; there are ring, ",
        ),
        (lambda c: c.all_reduce(np.ones(1), "foo"), "'foo' is no reduction: sum, avg"),
        (lambda _: pccl.Communicator(transports="nvlink"), "there are shm,tcp"),
        (lambda _: pccl.Communicator(transports="foo"), "there are shm,tcp"),
        (lambda _: pccl.Communicator(algorithm="foo"), "as in all_reduce=ring,all_gather=bruck"),
    ],
)
def test_a_name_that_there_is_not_lists_what_there_is(
    alone: pccl.Communicator, call: Callable[[pccl.Communicator], Any], listed: str
) -> None:
    with pytest.raises(pccl.InvalidArgumentError) as raised:
        call(alone)
    assert listed in str(raised.value)


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        (
            "rendezvous",
            29500,
            "rendezvous=29500 is no store; give 'auto', 'tcp://host:port', 'file:///path', "
            "'env://', or",
        ),
        ("timeout", -1, "timeout is -1: give seconds from 0 on, or infinity for no limit"),
        ("timeout", float("nan"), "timeout is nan: give seconds from 0 on"),
    ],
)
def test_what_no_group_can_be_made_of_is_refused_at_once(
    option: str, value: Any, reason: str
) -> None:
    with pytest.raises(pccl.InvalidArgumentError) as raised:
        pccl.Communicator(rank=0, world_size=2, **{option: value})
    assert reason in str(raised.value)


@pytest.mark.parametrize(
    ("name", "value"), [("PCCL_ALGORITHM", "foo"), ("PCCL_TRANSPORTS", "nvlink")]
)
def test_a_setting_that_names_nothing_raises_as_documented(name: str, value: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import pccl; pccl.Communicator()"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, name: value},
    )
    last = done.stderr.splitlines()[-1]
    assert last.startswith("pccl.errors.InvalidArgumentError: "), done.stderr
    assert value in last


def test_explain_requires_a_group() -> None:
    code = """import pccl, sys
try:
    pccl.explain("all_reduce", 1 << 20)
except ValueError as error:
    print(error, "torch" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == (
        "explain of which group? give a pccl.Communicator, a process group of torch, or a"
        " pccl.topology.Job, which need not exist False\n"
    )


def _lines_of_making(code: str, **environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import pccl; {code}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, **environment},
    )
    return done.stderr.splitlines()


@pytest.mark.parametrize(
    ("asked", "makers"),
    [
        ("all_gather=shm_two_shot", "shm_one_shot, shm_direct, ring, "),
        ("all_reduce=ring,broadcast=pat", "shm_one_shot, shm_direct, ring, "),
    ],
)
def test_an_algorithm_that_makes_other_collectives_is_refused_where_it_is_given(
    asked: str, makers: str
) -> None:
    collective, algorithm = asked.split(",")[-1].split("=")
    wanted = f"{algorithm} does not make {collective}; there are {makers}"
    with pytest.raises(pccl.InvalidArgumentError, match=wanted):
        pccl.Communicator(algorithm=asked)
    assert wanted in _lines_of_making("pccl.Communicator()", PCCL_ALGORITHM=asked)[-1]


def test_an_unknown_algorithm_is_warned_about_when_the_group_is_made() -> None:
    lines = _lines_of_making("pccl.Communicator()", PCCL_ALGORITHM="all_reduce=rimg")
    assert len(lines) == 1, lines
    assert "warning" in lines[0]
    assert "no algorithm is called rimg (did you mean ring?)" in lines[0]
    assert "for all_reduce there are shm_one_shot, shm_two_shot, shm_direct, ring, " in lines[0]
    assert lines[0].endswith("; calls raise until a capsule of that name is loaded")


def test_one_rank_alone_warns_for_all_and_the_call_raises() -> None:
    code = """
import numpy

def add(comm):
    group = comm.split(0, 0)
    try:
        comm.all_reduce(numpy.ones(4))
    except pccl.InvalidArgumentError as error:
        return str(error)

for said in pccl.run(add, ranks=2):
    assert "the requested algorithm, foo, cannot make this all_reduce" in said, said
"""
    lines = _lines_of_making(code, PCCL_ALGORITHM="all_reduce=foo")
    assert sum("no algorithm is called foo; for all_reduce" in line for line in lines) == 2, lines
    assert all("warning" in line for line in lines), lines
