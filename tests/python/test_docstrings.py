# SPDX-License-Identifier: Apache-2.0
"""``help(...)`` on what the extension modules bring: the texts of their stubs."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import operator
import pydoc
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pccl
from support.client_stubs import module_with_client
from support.stubs import read_stub

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "python" / "pccl"
MODULES = ["pccl._core", "pccl._torch"]
PUBLIC_MODULES = [
    "pccl",
    "pccl.capsule",
    "pccl.communicator",
    "pccl.diagnostics",
    "pccl.explanation",
    "pccl.gpu",
    "pccl.lang",
    "pccl.launch",
    "pccl.p2p",
    "pccl.phases",
    "pccl.schedule",
    "pccl.simulator",
    "pccl.timeline",
    "pccl.topology",
    "pccl.torch",
]
# Those, with what users call below them.
PYTHON_MODULES = [
    *(*PUBLIC_MODULES, "pccl.bench", "pccl.phase_costs"),
    *("pccl.ray", "pccl.torchft"),
]


def definitions(
    node: ast.AST, name: str = ""
) -> Iterator[tuple[str, ast.ClassDef | ast.FunctionDef]]:
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.ClassDef | ast.FunctionDef):
            inner = f"{name}.{part.name}".lstrip(".")
            yield inner, part
            yield from definitions(part, inner)


@cache
def stub_of(module: str) -> ast.Module:
    return read_stub(PACKAGE / module.removeprefix("pccl."))


def imported(module: str) -> ModuleType:
    importlib.import_module("torch")
    return module_with_client(module)


def documented() -> Iterator[tuple[str, str, str]]:
    """Give module, name and docstring."""
    for module in MODULES:
        for name, node in definitions(stub_of(module)):
            if text := ast.get_docstring(node):
                yield module, name, text


def public_names() -> list[tuple[str, str]]:
    """Give module and name, in its stub, of what users reach without an underscore."""
    found = []
    for public in map(imported, PUBLIC_MODULES):
        for value in (getattr(public, name) for name in public.__all__):
            if getattr(value, "__module__", None) in MODULES:
                found.append((value.__module__, value.__name__))
    return found


@pytest.mark.parametrize(
    ("module", "name", "text"), [pytest.param(*d, id=d[1]) for d in documented()]
)
def test_help_shows_the_text_of_the_stub(module: str, name: str, text: str) -> None:
    shown = inspect.getdoc(operator.attrgetter(name)(imported(module)))
    assert shown is not None
    assert text in shown


@pytest.mark.parametrize("module", MODULES)
def test_modules_are_described_as_in_their_stubs(module: str) -> None:
    assert inspect.getdoc(imported(module)) == ast.get_docstring(stub_of(module))


def test_everything_public_is_described() -> None:
    names = public_names()
    assert ("pccl._core", "Communicator") in names
    described = {(module, name) for module, name, _ in documented()}
    missing = [
        f"{module}.{inner}"
        for module, name in names
        for inner, _ in definitions(stub_of(module))
        if inner.split(".")[0] == name
        and "._" not in f".{inner}"
        and (module, inner) not in described
    ]
    assert missing == []


# What users reach through pccl.topology alone, whose classes of the same methods describe them.
HANDED_ON = {"Topology", "TopologyPlan", "JobTopology", "JobHost"}
# torch's own, which stands in the stub since torch's stubs leave it out.
INHERITED = {"ProcessGroupPCCL.monitored_barrier"}
# They look at what is known, or give up without a word.
NEVER_RAISE = {
    "_core.Capsule.cost",
    "_core.Communicator.__enter__",
    "_core.Communicator.abort",
    "_core.Communicator.capsules",
    "_core.Communicator.links_counted_on",
    "_core.DeviceGroup.abort",
    "_core.DoneQueue.expect",
    "_core.DoneQueue.take",
    "_core.Event.is_done",
    "_core.Event.record",
    "_core.GpuMemory.__dlpack__",
    "_core.GpuMemory.__dlpack_device__",
    "_core.GpuWorkspace.__enter__",
    "_core.GpuWorkspace.__exit__",
    "_core.GpuWorkspace.release",
    "_core.PhaseNetwork.handle",
    "_core.ProgressBoard.read",
    "_core.Piece.of_capsule",
    "_core.Piece.parts_of_capsule",
    "_core.Schedule.renamed",
    "_core.Workspace.__enter__",
    "_core.calibration_path",
    "_core.costs_path",
    "_core.flight_record_json",
    "_core.gpu_path",
    "_core.gpus_measured_for",
    "_core.load_calibration",
    "_core.machine_costs",
    "_core.memory_speed",
    "_core.one_machine",
    "_core.one_switch",
    "_core.programs_of",
    "_core.ring_of_circuits",
    "_core.this_machine",
    "_core.topology_hash",
    "_core.tuning_path",
    "_core.two_levels",
    "_core.usable_cores",
    "_torch.Options.__copy__",
    "_torch.Options.__deepcopy__",
    "_torch.ProcessGroupPCCL.get_error",
    "_torch.ProcessGroupPCCL.links_counted_on",
    "_torch.ProcessGroupPCCL.loaded_capsules",
    "_torch.ProcessGroupPCCL.perform_nocolor_split",
    "pccl.Cluster.audit",
    "pccl.capsule.LoadedCapsule.row",
    "pccl.results.peer_health.PeerHealth.row",
    "pccl.phase_costs.Cost.row",
    "pccl.bench.Job.cases",
    "pccl.bench.Job.expected_seconds",
    "pccl.bench.Row.line",
    "pccl.bench.Row.of",
    "pccl.bench.Row.row",
    "pccl.phases.results.Sight.row",
    "pccl.phases.results.SwitchPlan.row",
    "pccl.phases.results.SwitchTimes.row",
    "pccl.phases.watch.Drift.row",
    "pccl.phases.watch.StepMedian.row",
    "pccl.diagnostics.flight_record",
    "pccl.ray.register",
    "pccl.torchft.ProcessGroupPCCL.abort",
    "pccl.torchft.ProcessGroupPCCL.errored",
    "pccl.torchft.ProcessGroupPCCL.getBackendName",
    "pccl.torchft.ProcessGroupPCCL.set_timeout",
    "pccl.torchft.ProcessGroupPCCL.shutdown",
    "pccl.p2p.Descriptor.serialize",
    "pccl.p2p.Memory.descriptor",
    "pccl.p2p.Message.cancel",
    "pccl.p2p.Message.release",
    "pccl.p2p.Session.close",
    "pccl.p2p.Session.connection_info",
    "pccl.p2p.Session.disconnect",
    "pccl.p2p.Session.notifications",
    "pccl.p2p.Session.peers",
    "pccl.p2p.Session.withdraw",
    "pccl.p2p.Transfer.is_complete",
    "pccl.p2p.Transfer.cancel",
    "pccl.p2p.Transfer.release",
    "pccl.p2p.Work.cancel",
    "pccl.p2p.Work.release",
    "pccl.p2p.Work.stats",
    "pccl.phase_costs.Circuits.over_a_circuit",
    "pccl.phase_costs.Circuits.step",
    "pccl.phase_costs.all_to_all_on_ring",
    "pccl.phase_costs.all_to_all_rotating",
    "pccl.phase_costs.group_on_ring",
    "pccl.phase_costs.group_switched",
    "pccl.phase_costs.ring_all_reduce",
    "pccl.register",
    "pccl.results.schedule_steps.Step.row",
    "pccl.simulator.Replay.row",
    "pccl.simulator.StepTime.row",
    "pccl.simulator.switched_replay.PhaseReplay.row",
    "pccl.timeline.Hop.row",
    "pccl.timeline.MeasuredStep.row",
    "pccl.timeline.Timeline.of_call",
    "pccl.timeline.Timeline.row",
    "pccl.topology.Topology.to_networkx",
    "pccl.topology.examples",
}


@dataclass(frozen=True)
class Described:
    """A function that users call, and what is said of it."""

    name: str
    parameters: tuple[str, ...]
    returns: bool
    text: str

    def section(self, title: str) -> str:
        """Give the text below a heading; empty without it."""
        parts = re.split(r"\n(\w+)\n-{3,}\n", "\n" + self.text)
        found = dict(zip(parts[1::2], parts[2::2], strict=True))
        return found.get(title, "")

    @property
    def described_parameters(self) -> set[str]:
        """The names in "Parameters", where several may share a line."""
        heads = re.findall(r"^(\w.*)$", self.section("Parameters"), re.MULTILINE)
        return {name.strip() for head in heads for name in head.split(",")}


def is_property(node: ast.FunctionDef) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "property" for each in node.decorator_list)


def arguments_of(node: ast.FunctionDef) -> tuple[str, ...]:
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return tuple(arg.arg for arg in every if arg.arg != "self")


def stub_functions() -> Iterator[tuple[str, str, ast.FunctionDef]]:
    """Give module, name and the first overload of every function that has a line in a stub."""
    known = set()
    for module in MODULES:
        for name, node in definitions(stub_of(module)):
            is_hidden = any(part.startswith("_") and part[1] != "_" for part in name.split("."))
            is_other = (
                name.split(".")[0] in HANDED_ON
                or name in INHERITED
                or name.endswith(("__init__", "__eq__"))
            )
            if isinstance(node, ast.FunctionDef) and not (
                is_hidden or is_other or is_property(node) or (module, name) in known
            ):
                known.add((module, name))
                yield module, name, node


def described_in_stubs() -> Iterator[Described]:
    for module, name, node in stub_functions():
        yield Described(
            f"{module.removeprefix('pccl.')}.{name}",
            arguments_of(node),
            node.returns is not None and ast.unparse(node.returns) != "None",
            ast.get_docstring(node) or "",
        )


def is_python(value: object) -> bool:
    module = getattr(value, "__module__", None) or ""
    return module.startswith("pccl.") and module not in MODULES


@cache
def results() -> list[type]:
    """Give the classes that calls return, which docs/site/python.md lists; without stubs' ones."""
    page = (Path(__file__).parents[2] / "docs/site/python.md").read_text()
    places = [place.rpartition(".") for place in re.findall(r"autoclass:: (\S+)", page)]
    found = [getattr(imported(module), name) for module, _, name in places]
    return [value for value in found if is_python(value)]


@cache
def public_values() -> list[tuple[str, object]]:
    """Give name and value of what is public and written in Python, but for methods."""
    found = {}
    for module in map(imported, PYTHON_MODULES):
        for name in module.__all__:
            if is_python(value := getattr(module, name)):
                found.setdefault(value, f"{module.__name__}.{name}")
    for value in results():
        found.setdefault(value, f"{value.__module__}.{value.__name__}")
    return [(name, value) for value, name in found.items()]


def python_functions() -> Iterator[tuple[str, Callable[..., object]]]:
    """Give name and function of what is public and written in Python, methods included."""
    for name, value in public_values():
        if inspect.isfunction(value):
            yield name, value
        if inspect.isclass(value) and not issubclass(value, Exception):
            for inner, method in inspect.getmembers(value, inspect.isroutine):
                if inner in vars(value) and not inner.startswith("_"):
                    yield f"{name}.{inner}", method


def described_in_python() -> Iterator[Described]:
    for name, function in python_functions():
        signature = inspect.signature(function)
        yield Described(
            name,
            tuple(each for each in signature.parameters if each != "self"),
            signature.return_annotation != "None",
            inspect.getdoc(function) or "",
        )


def every_function() -> list[Described]:
    return [*described_in_stubs(), *described_in_python()]


def test_every_parameter_is_described() -> None:
    missing = {
        each.name: names
        for each in every_function()
        if (names := sorted(set(each.parameters) - each.described_parameters))
    }
    assert missing == {}


def test_every_parameter_that_is_described_exists() -> None:
    unknown = {
        each.name: names
        for each in every_function()
        if (names := sorted(each.described_parameters - set(each.parameters)))
    }
    assert unknown == {}


def test_functions_document_their_results() -> None:
    verbs = ("Return ", "Yield ", "Simulate ", "Name ", "Find ", "Load ", "Read ")
    silent = [
        each.name
        for each in every_function()
        if each.returns
        and not each.section("Returns")
        and not each.section("Yields")
        and not each.text.startswith(verbs)
    ]
    assert silent == []


def test_functions_document_their_errors() -> None:
    silent = {each.name for each in every_function() if not each.section("Raises")}
    assert silent - NEVER_RAISE == set()
    assert NEVER_RAISE - silent == set()


def test_classes_and_properties_in_python_are_described() -> None:
    silent = []
    for name, value in public_values():
        if inspect.isclass(value):
            parts = {name: value} | {
                f"{name}.{inner}": each
                for inner, each in vars(value).items()
                if isinstance(each, property) and not inner.startswith("_")
            }
            silent += [part for part, each in parts.items() if not each.__doc__]
    assert silent == []


def fields_in_attributes(value: type) -> tuple[set[str], set[str]]:
    """Give the fields of a result, and those that "Attributes" describes."""
    fields = getattr(value, "_fields", None) or [each.name for each in dataclasses.fields(value)]
    text = Described("", (), False, inspect.getdoc(value) or "").section("Attributes")
    heads = re.findall(r"^(\w.*)$", text, re.MULTILINE)
    return set(fields), {name.strip() for head in heads for name in head.split(",")}


def test_attributes_that_results_describe_are_theirs() -> None:
    for value in results():
        if hasattr(value, "_fields"):
            fields, described = fields_in_attributes(value)
            assert fields == described, value


def nameless_in(name: str, annotation: str) -> Iterator[str]:
    """Give the function or field where its type has a tuple of parts that have no names."""
    try:
        tree = ast.parse(annotation, mode="eval")
    except SyntaxError:  # a class, as a signature prints it
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Subscript) or ast.unparse(node.value) != "tuple":
            continue
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
        if len(parts) > 1 and ast.unparse(parts[-1]) != "...":
            yield f"{name}: {annotation}"


def test_what_returns_several_things_names_them() -> None:
    nameless = [
        found
        for name, function in python_functions()
        for found in nameless_in(name, str(inspect.signature(function).return_annotation))
    ]
    nameless += [
        found
        for name, value in public_values()
        for field, annotation in getattr(value, "__annotations__", {}).items()
        if inspect.isclass(value)
        for found in nameless_in(f"{name}.{field}", str(annotation))
    ]
    users = {(module, name) for module, name in public_names()}
    nameless += [
        found
        for module, name, node in stub_functions()
        if (module, name.split(".")[0]) in users and node.returns is not None
        for found in nameless_in(name, ast.unparse(node.returns))
    ]
    assert nameless == []


@pytest.mark.parametrize(
    ("module", "name", "node"), [pytest.param(*each, id=each[1]) for each in stub_functions()]
)
def test_signatures_are_those_of_the_stub(module: str, name: str, node: ast.FunctionDef) -> None:
    function = operator.attrgetter(name)(imported(module))
    signature = inspect.signature(function)
    parameters = {each.name: each for each in signature.parameters.values() if each.name != "self"}
    assert tuple(parameters) == arguments_of(node)
    keywords = {arg.arg for arg in node.args.kwonlyargs}
    assert {each.name for each in parameters.values() if each.kind is each.KEYWORD_ONLY} == keywords
    positional = [*node.args.posonlyargs, *node.args.args]
    defaults = dict(
        zip([arg.arg for arg in positional][::-1], node.args.defaults[::-1], strict=False)
    ) | {
        arg.arg: default
        for arg, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        if default is not None
    }
    assert {
        each.name: each.default for each in parameters.values() if each.default is not each.empty
    } == {each: ast.literal_eval(default) for each, default in defaults.items()}


@pytest.mark.parametrize("name", ["all_reduce", "recv", "barrier", "shrink"])
def test_bound_methods_have_their_signature_without_self(name: str) -> None:
    comm = pccl.Communicator()
    of_class = inspect.signature(getattr(pccl.Communicator, name))
    bound = inspect.signature(getattr(comm, name))
    assert list(bound.parameters) == [each for each in of_class.parameters if each != "self"]


def test_help_has_operators_parameters_and_errors() -> None:
    text = pydoc.render_doc(pccl.Communicator.all_reduce, renderer=pydoc.plaintext)
    assert "all_reduce(self, /, x, op='sum', *, async_op=False, timeout=None)" in text
    for word in ("band", "avg", "async_op", "timeout", "Raises", "MismatchError"):
        assert word in text


def test_the_constructor_has_a_signature() -> None:
    signature = inspect.signature(pccl.Communicator)
    assert signature.parameters["timeout"].default == 1800.0
    assert all(each.kind is each.KEYWORD_ONLY for each in signature.parameters.values())
