# SPDX-License-Identifier: Apache-2.0
"""Arguments of wrong types: one line names the argument, its value and what would be right."""

from __future__ import annotations

import contextlib
import datetime
import inspect
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import pccl
from pccl import p2p
from pccl._internal.arguments import refusal
from pccl.topology import Job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BARE = (
    "incompatible function arguments",
    "incompatible constructor arguments",
    "pccl._core",
    "has no attribute '_",
    "argument types are supported",
    "not supported between",
)
X = np.ones(4)


@pytest.fixture
def comm() -> Iterator[pccl.Communicator]:
    with pccl.Communicator(rank=0, world_size=1) as group:
        yield group


def message_of(call: Callable[[], object]) -> str:
    with pytest.raises((TypeError, pccl.InvalidArgumentError, ValueError)) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    assert not any(bare in text for bare in BARE), text
    return text


WRONG: dict[str, tuple[Callable[[Any], object], str]] = {
    "a timeout of text": (
        lambda comm: comm.all_reduce(X, timeout="5s"),
        "Communicator.all_reduce(): timeout is '5s' (str): it must be a number of seconds, a "
        "datetime.timedelta or None",
    ),
    "a root of text": (
        lambda comm: comm.broadcast(X, "0"),
        "Communicator.broadcast(): root is '0' (str): it must be an int",
    ),
    "a root that is too large": (
        lambda comm: comm.broadcast(X, 2**40),
        "Communicator.broadcast(): root is 1099511627776: it is too large",
    ),
    "an operation of a number": (
        lambda comm: comm.all_reduce(X, op=3),
        "Communicator.all_reduce(): op is 3 (int): it must be a str or a PremulSum",
    ),
    "an unknown name": (
        lambda comm: comm.all_reduce(X, ops="sum"),
        "Communicator.all_reduce() has no parameter ops; it has: x, op, async_op, timeout",
    ),
    "an argument too many": (
        lambda comm: comm.all_reduce(X, "sum", 3),
        "Communicator.all_reduce() takes at most 2 positional arguments, and 3 were given",
    ),
    "an argument too few": (
        lambda comm: comm.all_reduce(),
        "Communicator.all_reduce() lacks the argument x",
    ),
    "an argument twice": (
        lambda comm: comm.all_reduce(X, x=X),
        "Communicator.all_reduce() got x twice: by its place and by its name",
    ),
    "a size below 0": (
        lambda comm: comm.explain("all_reduce", -5),
        "Communicator.explain(): nbytes is -5: it must be 0 or more",
    ),
    "a size below 0 of pccl.explain": (
        lambda comm: pccl.explain("all_reduce", -5, comm),
        "no size: -5",
    ),
    "a list with something else": (
        lambda comm: comm.shrink([0, "a"]),
        "Communicator.shrink(): ranks_to_exclude is [0, 'a'] (list): it must be None or a sequence "
        "of which each is an int",
    ),
    "a constructor's argument": (
        lambda _: pccl.Communicator(rank="0", world_size=1),  # type: ignore[arg-type]
        "Communicator(): rank is '0' (str): it must be an int or None",
    ),
    "a constructor's argument without a name": (
        lambda _: pccl.Communicator(0, 1),  # type: ignore[misc]
        "Communicator() takes at most 0 positional arguments, and 2 were given",
    ),
    "half a rank": (
        lambda _: pccl.schedule.generate("ring", "all_reduce", 3.5),  # type: ignore[arg-type]
        "generate(): ranks is 3.5 (float): it must be an int",
    ),
    "ranks of text": (
        lambda _: pccl.run(print, ranks="2"),  # type: ignore[arg-type]
        "ranks is '2' (str): it must be an int",
    ),
    "a script for a function": (
        lambda _: pccl.run("x.py", ranks=2),  # type: ignore[arg-type]
        "fn is 'x.py' (str): it must be a function; pccl run starts scripts",
    ),
    "a timeout of text for a job": (
        lambda _: pccl.run(print, ranks=1, timeout="5s"),  # type: ignore[arg-type]
        "timeout is '5s' (str): it must be a number of seconds or a datetime.timedelta",
    ),
    "the name of a machine": (
        lambda _: Job.of([("a", range(4), "dgx1v")]),  # type: ignore[list-item]
        "the machine of host 'a' (str) is 'dgx1v' (str): it must be a pccl.topology.Topology",
    ),
    "a long value": (
        lambda comm: comm.barrier(timeout="x" * 1000),
        f"Communicator.barrier(): timeout is '{'x' * 56}... (str): it must be",
    ),
}


@pytest.mark.parametrize(("call", "text"), WRONG.values(), ids=WRONG)
def test_wrong_argument_is_named(
    comm: pccl.Communicator, call: Callable[[Any], object], text: str
) -> None:
    assert text in message_of(lambda: call(comm))


def test_group_is_whole_after_a_refused_call(comm: pccl.Communicator) -> None:
    message_of(lambda: comm.all_reduce(X, timeout="5s"))  # type: ignore[call-overload]
    x = np.ones(4)
    comm.all_reduce(x)
    assert x.sum() == 4


def test_errors_of_a_call_itself_stay(comm: pccl.Communicator) -> None:
    with pytest.raises(pccl.InvalidArgumentError, match="a numpy array that you keep"):
        comm.all_reduce([1.0, 2.0])  # type: ignore[call-overload]


def test_values_that_cannot_be_shown_are_named_by_their_type(comm: pccl.Communicator) -> None:
    class Shy:
        def __repr__(self) -> str:
            raise RuntimeError

    assert "(Shy): it must be an int" in message_of(lambda: comm.broadcast(X, Shy()))  # type: ignore[call-overload]


def test_sizes_are_taken_as_text(comm: pccl.Communicator) -> None:
    assert pccl.explain("all_reduce", "1MB", comm).nbytes == 1 << 20


def test_timedeltas_are_taken_for_timeouts() -> None:
    second = datetime.timedelta(seconds=1)
    with pccl.Communicator(rank=0, world_size=1, timeout=second) as comm:
        comm.all_reduce(X.copy(), timeout=second)
        comm.barrier(timeout=datetime.timedelta.max)
        comm.monitored_barrier(second)
        assert len(comm.health(second)) == 1
        with pytest.raises(pccl.InvalidArgumentError, match="timeout is -1"):
            comm.barrier(timeout=-second)
        event = comm.all_reduce(X.copy(), async_op=True)
        event.wait(second)
    with p2p.Session("alone", connect_timeout=second) as session:
        assert session.notifications(datetime.timedelta()) == []
        with pytest.raises(pccl.TimeoutError):
            session.accept(timeout=datetime.timedelta(milliseconds=1))
    with pytest.raises(pccl.TimeoutError):
        pccl.run(lambda _: input(), ranks=1, timeout=datetime.timedelta(milliseconds=1))


@pytest.mark.parametrize(
    ("line", "arguments", "named", "text"),
    [
        ("(x: int, y: str = 'a, b')", ("1",), {}, "f(): x is '1' (str): it must be an int"),
        ("(*args, y: int)", (), {"y": ""}, "f(): y is '' (str): it must be an int"),
        (
            "(x: list[tuple[int, str]])",
            ([(1, 2)],),
            {},
            "of which each is a tuple of an int, a str",
        ),
        ("(x: pccl._core._P2pMemory)", (1,), {}, "it must be a pccl.P2pMemory"),
        ("(x: typing.Optional[dict[str, int]])", ([],), {}, "it must be a dict or None"),
        ("(x: Unheard)", (1,), {}, "it must be a Unheard"),
        ("(x: int)", (5,), {}, "f(): it does not take x=5 (int)"),
        ("(x: object)", (1, 2), {}, "f() takes at most 1 positional arguments, and 2 were given"),
    ],
)
def test_signatures_are_understood(
    line: str, arguments: tuple[object, ...], named: dict[str, object], text: str
) -> None:
    given = f"f(): incompatible function arguments. The following ...:\n    1. {line} -> None\n"
    assert text in str(refusal(given, arguments, named))


def test_the_overload_that_was_meant_is_explained() -> None:
    overloads = "    1. (x: int) -> None\n    2. (x: str, y: int) -> None\n"
    given = f"f(): incompatible function arguments. ...:\n{overloads}"
    assert str(refusal(given, ("a", "b"), {})) == "f(): y is 'b' (str): it must be an int"


# The sweep: values by the names of parameters, so that a call gets far enough to meet the one that
# is wrong. What starts processes, waits for somebody, or ends the object is left out.
PLAUSIBLE: dict[str, Callable[[], object]] = {
    "algorithm": lambda: "ring",
    "block": lambda: 1024,
    "collective": lambda: "all_reduce",
    "content": lambda: b"",
    "device": lambda: "cpu",
    "level": lambda: "warning",
    "name": lambda: "a",
    "nbytes": lambda: 1024,
    "op": lambda: "sum",
    "out": lambda: np.ones(4),
    "path": lambda: "/nonexistent",
    "peer": lambda: 0,
    "phase": lambda: "a",
    "ranks": lambda: 4,
    "root": lambda: 0,
    "schedule": lambda: pccl.schedule.generate("ring", "all_reduce", 4),
    "size": lambda: 1024,
    "sizes": lambda: "1K..",
    "steps": lambda: 8,
    "tag": lambda: 0,
    "timeout": lambda: 0.01,
    "value": lambda: 1,
    "x": lambda: np.ones(4),
}
LEFT_OUT = {
    "abort": "it ends the group",
    "accept": "it waits",
    "close": "it ends the session",
    "register": "torch is asked for it once",
    "serve": "it waits",
    "shutdown": "it ends the group",
    "watch": "it waits",
}
MODULES = ("lang", "p2p", "phase_costs", "published", "schedule", "simulator", "topology")


def callables_of(owner: object, where: str) -> Iterator[tuple[str, Callable[..., object]]]:
    names = [name for name in dir(owner) if not name.startswith("_") and name not in LEFT_OUT]
    for name in names:
        with contextlib.suppress(Exception):
            member = getattr(owner, name)
            if callable(member):
                yield f"{where}.{name}", member


def public_surface(comm: pccl.Communicator) -> Iterator[tuple[str, Callable[..., object]]]:
    schedule = pccl.schedule.generate("ring", "all_reduce", 4)
    for name in pccl.__all__:
        with contextlib.suppress(ImportError):  # of torch
            member = getattr(pccl, name)
            if callable(member) and name not in LEFT_OUT:
                yield f"pccl.{name}", member
                yield from callables_of(member, f"pccl.{name}")
    for name in MODULES:
        for where, member in callables_of(getattr(pccl, name), f"pccl.{name}"):
            yield where, member
            if isinstance(member, type):
                yield from callables_of(member, where)
    objects = {
        "comm": comm,
        "memory": comm.memory,
        "event": comm.all_reduce(np.ones(4), async_op=True),
        "operator": comm.operator("all_reduce", np.ones(4)),
        "schedule": schedule,
        "capsule": pccl.Capsule.of(schedule.renamed("swept")),
        "session": p2p.Session("swept"),
        "cluster": pccl.Cluster({"devices": [{}] * 2, "phases": {"a": {"links": "ring"}}}),
    }
    for where, each in objects.items():
        yield from callables_of(each, where)


def calls_of(
    function: Callable[..., object],
) -> Iterator[tuple[tuple[object, ...], dict[str, object]]]:
    """Give arguments with an object() for each parameter in turn, and for all at once."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return
    if parameters and parameters[0].name == "self":
        return  # a method of a class, which objects have, too
    named = [
        each for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    needed = [each for each in named if each.default is each.empty]
    for wrong in [*named, *([None] if needed else [])]:
        positional: list[object] = []
        keywords: dict[str, object] = {}
        for each in named:
            if each not in needed and each is not wrong:
                continue
            is_wrong = wrong in (each, None) or each.name not in PLAUSIBLE
            value = object() if is_wrong else PLAUSIBLE[each.name]()
            if each.kind is each.KEYWORD_ONLY or each not in needed:
                keywords[each.name] = value
            else:
                positional.append(value)
        yield tuple(positional), keywords


def test_no_public_call_answers_in_the_words_of_its_bindings(comm: pccl.Communicator) -> None:
    count, faults = 0, []
    for where, function in public_surface(comm):
        for arguments, named in calls_of(function):
            count += 1
            print(where, arguments, named)
            try:
                function(*arguments, **named)
            except Exception as error:
                text = str(error)
                if any(bare in text for bare in BARE) or "'object' object has no attribute" in text:
                    faults.append(f"{where}({arguments}, {named}): {type(error).__name__}: {text}")
    assert count > 400
    assert faults == []
