# SPDX-License-Identifier: Apache-2.0
"""``Communicator.operator`` against numpy: bound once, executed many times."""

from __future__ import annotations

import asyncio
import threading
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import pccl
from support.thread_ranks import run_threads

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.multiproc

RANKS = 3
COUNT = 50
COLLECTIVES = [
    "all_reduce",
    "reduce",
    "broadcast",
    "all_gather",
    "gather",
    "reduce_scatter",
    "scatter",
    "all_to_all",
]
Array = np.ndarray[Any, Any]


def inputs_of(round_: int, ranks: int = RANKS) -> Array:
    """What all ranks give: a row for each, of a block for each."""
    return np.random.default_rng(round_).integers(-99, 99, (ranks, ranks * COUNT))


def expected(collective: str, inputs: Array, me: int, root: int) -> Array | None:
    """What numpy makes of it on this rank; None where it gets nothing."""
    ranks = len(inputs)
    blocks = inputs.reshape(ranks, ranks, COUNT)
    if collective in ("reduce", "gather") and me != root:
        return None
    return {
        "all_reduce": inputs.max(axis=0),
        "reduce": inputs.max(axis=0),
        "broadcast": inputs[root],
        "all_gather": inputs[:, :COUNT].ravel(),
        "gather": inputs[:, :COUNT].ravel(),
        "reduce_scatter": blocks.max(axis=0)[me],
        "scatter": blocks[root, me],
        "all_to_all": blocks[:, me].ravel(),
    }[collective]


def rounds_are_right(
    comm: pccl.Communicator, collective: str, rounds: int, algorithm: str = ""
) -> bool:
    """Whether one operator gives what numpy does, with other numbers each time."""
    me, ranks = comm.rank, comm.world_size
    root = ranks - 1
    gives_a_block = collective in ("all_gather", "gather")
    gets_a_block = collective in ("reduce_scatter", "scatter")
    x = np.zeros(COUNT if gives_a_block else ranks * COUNT, np.int64)
    in_place = collective in ("reduce", "broadcast")
    out = None if in_place else np.zeros(COUNT if gets_a_block else ranks * COUNT, np.int64)
    if collective == "gather" and me != root:
        out = None
    gives = None if collective == "scatter" and me != root else x
    operator = comm.operator(
        collective,  # type: ignore[arg-type]
        gives,
        out,
        op="max",
        root=root,
        algorithm=algorithm,
    )
    right = []
    for round_ in range(rounds):
        inputs = inputs_of(round_, ranks)
        x[:] = inputs[me, : x.size]
        if round_ % 2:
            operator.run()
        else:
            operator.execute().wait()
        wanted = expected(collective, inputs, me, root)
        got = x if in_place else out
        right.append(wanted is None or np.array_equal(got, wanted))
    return all(right)


@pytest.mark.parametrize("transports", ["shm", "tcp"])
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_every_collective_is_executed_again_and_again(
    tmp_path: Path, collective: str, transports: str
) -> None:
    def body(comm: pccl.Communicator) -> bool:
        return rounds_are_right(comm, collective, rounds=4)

    assert run_threads(tmp_path, RANKS, body, transports=transports) == [True] * RANKS


@pytest.mark.parametrize("ranks", [3, 4])
@pytest.mark.parametrize("transports", ["shm", "tcp"])
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_every_algorithm_can_be_chosen(
    tmp_path: Path, collective: str, transports: str, ranks: int
) -> None:
    """Those of the catalogue, over links, and over shared memory those that it has besides."""
    algorithms = pccl.schedule.algorithms(collective)  # type: ignore[arg-type]
    if transports == "shm":
        algorithms += ["shm_one_shot", "shm_direct"]
        algorithms += ["shm_two_shot"] if collective == "all_reduce" else []

    def body(comm: pccl.Communicator) -> dict[str, bool]:
        return {name: rounds_are_right(comm, collective, 2, name) for name in algorithms}

    found = run_threads(tmp_path, ranks, body, transports=transports)
    assert found == [dict.fromkeys(algorithms, True)] * ranks


def test_all_reduce_in_place_and_beside_its_input(tmp_path: Path) -> None:
    def body(comm: pccl.Communicator) -> tuple[float, float, float]:
        x, out = np.ones(10), np.zeros(10)
        comm.operator("all_reduce", x, out).run()
        kept = x[0]
        comm.operator("all_reduce", x, op="avg").run()
        return float(kept), float(out[0]), float(x[0])

    assert run_threads(tmp_path, 2, body) == [(1.0, 2.0, 1.0)] * 2


def test_events_are_awaited_beside_each_other(tmp_path: Path) -> None:
    def body(comm: pccl.Communicator) -> list[float]:
        arrays = [np.full(1000, float(number)) for number in range(3)]
        operators = [comm.operator("all_reduce", each) for each in arrays]

        async def all_of_them() -> None:
            await asyncio.gather(*(operator.execute() for operator in operators))

        asyncio.run(all_of_them())
        return [float(each[0]) for each in arrays]

    assert run_threads(tmp_path, 2, body) == [[0.0, 2.0, 4.0]] * 2


def test_buffers_live_as_long_as_an_execution(tmp_path: Path) -> None:
    looked = threading.Event()

    def body(comm: pccl.Communicator) -> tuple[bool, bool, bool]:
        x = np.ones(1000)
        array = weakref.ref(x)
        operator = comm.operator("all_reduce", x)
        del x
        held_by_operator = array() is not None
        if comm.rank == 1:
            looked.wait()
        event = operator.execute()
        del operator
        held_by_execution = array() is not None or comm.rank == 1
        looked.set()
        event.wait()
        return held_by_operator, held_by_execution, array() is None

    assert run_threads(tmp_path, 2, body) == [(True, True, True)] * 2


def test_a_capsule_and_an_operator_are_of_one_class(tmp_path: Path) -> None:
    import pccl.lang as pl

    @pl.algorithm("all_reduce", ranks=2)
    def exchange(c: pl.Program) -> None:
        c.input(0).reduce_to(1).copy_to(0)

    capsule = exchange.build("exchange")

    def body(comm: pccl.Communicator) -> tuple[list[float], str]:
        loaded = comm.load(capsule, "by name")
        x = np.ones(4)
        bound = loaded.bind(x)
        bound.run()
        loaded.run(x)
        comm.operator("all_reduce", x, algorithm="exchange").run()
        loaded.execute(x).wait()
        assert type(loaded) is type(bound) is pccl.Operator
        return x.tolist(), repr(loaded)

    wanted = "<pccl.Operator all_reduce by exchange, without buffers>"
    assert run_threads(tmp_path, 2, body) == [([16.0] * 4, wanted)] * 2


def refusals() -> list[tuple[str, type[pccl.Error], str, dict[str, Any]]]:
    x, bytes_ = np.ones(4, np.float32), np.ones(4, np.dtype("V8"))
    return [
        ("all_sum", pccl.InvalidArgumentError, "'all_sum' is no collective", {"x": x}),
        ("all_reduce", pccl.InvalidArgumentError, "NoneType", {}),
        ("all_reduce", pccl.InvalidArgumentError, "'plus' is no reduction", {"x": x, "op": "plus"}),
        ("all_reduce", pccl.InvalidArgumentError, "4", {"x": x, "out": np.ones(3, np.float32)}),
        ("all_reduce", pccl.InvalidArgumentError, "one type", {"x": x, "out": np.ones(4)}),
        ("all_reduce", pccl.UnsupportedError, "band", {"x": x, "op": "band"}),
        ("all_reduce", pccl.UnsupportedError, "moved, and not reduced", {"x": bytes_}),
        ("all_reduce", pccl.InvalidArgumentError, "no_such", {"x": x, "algorithm": "no_such"}),
        ("all_gather", pccl.InvalidArgumentError, "block", {"x": x, "out": np.ones(6, "f4")}),
        ("broadcast", pccl.InvalidArgumentError, "give no out", {"x": x, "out": x}),
        ("broadcast", pccl.InvalidArgumentError, "root", {"x": x, "root": 2}),
    ]


@pytest.mark.parametrize(("collective", "error", "words", "arguments"), refusals())
def test_a_wrong_call_is_refused_before_anything_is_sent(
    tmp_path: Path,
    collective: str,
    error: type[pccl.Error],
    words: str,
    arguments: dict[str, Any],
) -> None:
    def body(comm: pccl.Communicator) -> int:
        with pytest.raises(error, match=words):
            comm.operator(collective, **arguments)
        return comm.sequence

    assert run_threads(tmp_path, 2, body) == [0, 0]


def test_an_operator_without_buffers_names_the_missing_ones() -> None:
    with pytest.raises(pccl.InvalidArgumentError, match="give x"):
        pccl.Operator(pccl.Communicator(), "ring", "all_reduce").run()


def test_an_operator_of_a_group_that_has_ended_reports_the_reason(tmp_path: Path) -> None:
    def body(comm: pccl.Communicator) -> None:
        x = np.ones(3)
        operator = comm.operator("all_reduce", x)
        operator.run()
        comm.barrier()
        comm.abort("enough for today")
        for call in (operator.run, operator.execute, lambda: operator.bind(x)):
            with pytest.raises(pccl.AbortedError, match="enough for today"):
                call()

    with pytest.raises(pccl.AbortedError, match="enough for today"):  # of the helper's barrier
        run_threads(tmp_path, 2, body)
