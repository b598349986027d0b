"""``help(...)`` on what the extension modules bring: the texts of their stubs."""

from __future__ import annotations

import ast
import importlib
import inspect
import operator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pccl

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

PACKAGE = Path(pccl.__file__).parent
MODULES = ["pccl._core", "pccl._torch"]
PUBLIC_MODULES = ["pccl", "pccl.schedule", "pccl.topology"]


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
    return ast.parse((PACKAGE / f"{module.removeprefix('pccl.')}.pyi").read_text())


def imported(module: str) -> ModuleType:
    importlib.import_module("torch")
    return importlib.import_module(module)


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
def test_help_shows_what_the_stub_says(module: str, name: str, text: str) -> None:
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
