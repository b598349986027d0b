# SPDX-License-Identifier: Apache-2.0
"""Objects whose ``__init__`` has not run: every method, property and function refuses them."""

from __future__ import annotations

import subprocess
import sys

import pytest

SWEEP = """
import faulthandler, importlib, inspect, sys

faulthandler.enable()
module = importlib.import_module(sys.argv[1])
classes = [each for each in vars(module).values() if isinstance(each, type)]
bound = [each for each in classes if type(each).__name__ == "pybind11_type"]
MAKES_A_VALUE = {"__init__", "__new__", "__setstate__", "__init_subclass__", "__subclasshook__"}


def parameters_of(function):
    try:
        return [
            each for each in inspect.signature(function).parameters.values()
            if each.default is each.empty and each.kind is not each.VAR_KEYWORD
        ]
    except (TypeError, ValueError):
        return []


def is_derived(made):
    return any(type(each).__name__ == "pybind11_type" and each.__module__ not in
               (module.__name__, "pybind11_builtins") for each in made.__mro__)


def empty_of(made):
    # None where __new__ alone is refused
    try:
        return made.__new__(made)
    except TypeError as error:
        assert is_derived(made) and "__new__() alone makes no object: call " in str(error)
        return None


def try_call(what, function, *arguments, **named):
    print(what, flush=True)  # the last line names what ended the process
    try:
        function(*arguments, **named)
    except Exception as error:
        return error
    return None


def call_all(what, function, value, before=()):
    arguments, named = list(before), {}
    for each in parameters_of(function)[len(arguments):]:
        if each.kind is each.KEYWORD_ONLY:
            named[each.name] = value
        elif each.kind is not each.VAR_POSITIONAL:
            arguments.append(value)
    return try_call(what, function, *arguments, **named)


own, told, refused = 0, 0, 0
for made in bound:
    if is_derived(made):
        assert empty_of(made) is None, made
        refused += 1
        continue
    for name in dir(made):
        member = inspect.getattr_static(made, name)
        if name in MAKES_A_VALUE or isinstance(member, staticmethod):
            continue
        empty, what = made.__new__(made), f"{made.__name__}.{name}"
        if isinstance(member, property):
            error = try_call(what, getattr, empty, name)
        elif callable(getattr(made, name)):
            error = call_all(what, getattr(made, name), None, [empty])
        else:
            continue
        if name in vars(made) and not name.startswith("_"):
            own += 1
            told += isinstance(error, TypeError) and "__init__() has not run" in str(error)
            if error is None:
                print("TAKEN", what)
for made in bound:  # as arguments
    for name, function in vars(module).items():
        if is_derived(made):
            break
        if inspect.isbuiltin(function) or isinstance(function, type):
            if parameters_of(function):
                call_all(f"{name}({made.__name__})", function, made.__new__(made))
                call_all(f"{name}([{made.__name__}])", function, [made.__new__(made)])
print("SWEPT", len(bound), refused, own, told)
"""


@pytest.mark.parametrize(
    ("module", "least_classes", "derived", "least_members"),
    [("pccl._core", 40, 0, 250), ("pccl._torch", 2, 2, 0)],
)
def test_every_member_of_every_class_refuses(
    module: str, least_classes: int, derived: int, least_members: int
) -> None:
    if module == "pccl._torch":
        pytest.importorskip("torch")
    done = subprocess.run(
        [sys.executable, "-c", SWEEP, module],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"after {lines[-1:]}: {done.stderr[-2000:]}"
    assert [line for line in lines if line.startswith("TAKEN")] == []
    _, classes, refused, members, reported = lines[-1].split()
    assert int(refused) == derived
    assert int(classes) >= least_classes
    assert int(members) >= least_members
    assert int(reported) >= 0.9 * int(members)  # the others refuse another argument first


def test_classes_of_torch_are_made_by_a_call_and_by_subclasses() -> None:
    pytest.importorskip("torch")
    code = """
import copy, pccl

class Mine(pccl.Options):
    pass

assert pccl.Options(timeline=3).timeline == 3
assert Mine(timeline=4).timeline == 4
assert copy.copy(pccl.Options(timeline=5)).timeline == 5
try:
    pccl.Options.__new__(pccl.Options)
except TypeError as error:
    assert str(error) == (
        "pccl._torch.Options.__new__() alone makes no object: call pccl.Options()"
    ), error
else:
    raise AssertionError
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr


CASES = {
    "a call before super().__init__()": """
class C(pccl.Communicator):
    def __init__(self):
        self.all_reduce(np.ones(3))
C()
""",
    "__new__ alone, by a quick call": """
pccl.Communicator.__new__(pccl.Communicator).all_reduce(np.ones(3), op="max")
""",
    "after another method has tried": """
empty = pccl.Communicator.__new__(pccl.Communicator)
try:
    empty.rank
except TypeError:
    empty.all_reduce(np.ones(3))
""",
    "the second of two bases": """
from pccl import _core
class Both(_core._P2pSession, pccl.Communicator):
    def __init__(self):
        _core._P2pSession.__init__(self, "x")
Both.all_reduce(Both.__new__(Both), np.ones(3))
""",
}


@pytest.mark.parametrize("code", CASES.values(), ids=CASES)
def test_quick_calls_refuse(code: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import numpy as np, pccl\n{code}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("TypeError: pccl._core.Communicator.__init__() has not run"), last


@pytest.mark.parametrize("how", ["pickle.dumps(x, 0)", "pickle.dumps(x)", "copy.copy(x)"])
def test_objects_refuse_to_be_pickled(how: str) -> None:
    code = f"import copy, pickle, pccl\nx = pccl.Communicator(rank=0, world_size=1)\n{how}"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1, done.stderr
    assert "TypeError: cannot pickle" in done.stderr


def test_one_object_of_two_classes_has_both_values() -> None:
    code = """
import numpy as np, pccl
from pccl import _core

class Both(_core._P2pSession, pccl.Communicator):
    def __init__(self):
        _core._P2pSession.__init__(self, "x")
        pccl.Communicator.__init__(self, rank=0, world_size=1)

x = np.ones(3)
both = Both()
both.all_reduce(x)
both.barrier()
assert both.id[0] == "x" and both.world_size == 1 and x.sum() == 3
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
