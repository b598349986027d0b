# SPDX-License-Identifier: Apache-2.0
"""Lets pccl be imported without a build: a stub stands for each module that a build makes."""

from __future__ import annotations

import ast
import importlib.abc
import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NewType

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "pccl"

sys.path.insert(0, str(ROOT / "cmake"))
from read_stub import read_stub  # noqa: E402


def _is_overload(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and any(
        isinstance(decorator, ast.Name) and decorator.id == "overload"
        for decorator in node.decorator_list
    )


class _FoldOverloads(ast.NodeTransformer):
    """Makes one function of overloads: with the first's defaults and text, and the last's types."""

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        first: dict[str, ast.FunctionDef] = {}
        body: list[ast.stmt] = []
        for part in node.body:
            if not isinstance(part, ast.FunctionDef) or not _is_overload(part):
                body.append(part)
            elif part.name in first:
                self._take_types(first[part.name], part)
            else:
                part.decorator_list = []
                first[part.name] = part
                body.append(part)
        node.body = body
        return node

    @staticmethod
    def _take_types(function: ast.FunctionDef, other: ast.FunctionDef) -> None:
        function.returns = other.returns
        for name in ("args", "kwonlyargs"):
            setattr(function.args, name, getattr(other.args, name))


class _StubLoader(importlib.abc.SourceLoader):
    def __init__(self, stub: Path) -> None:
        self.stub = stub

    def get_filename(self, fullname: str) -> str:
        return str(self.stub.with_suffix(".pyi"))

    def is_package(self, fullname: str) -> bool:
        return False

    def get_data(self, path: str | bytes) -> bytes:
        """Give the stub as Python can run it: annotations may name what comes later."""
        tree = read_stub(self.stub)
        tree.body.insert(1, ast.parse("from __future__ import annotations").body[0])
        return ast.unparse(_FoldOverloads().visit(tree)).encode()


class _StubFinder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        stub = PACKAGE / fullname.removeprefix("pccl.")
        files = (stub.with_suffix(".pyi"), stub / "__init__.pyi")
        if not fullname.startswith("pccl.") or not any(file.exists() for file in files):
            return None
        return importlib.util.spec_from_loader(fullname, _StubLoader(stub))


def imported() -> ModuleType:
    """Import pccl from its sources, now and later; not one that is installed, as torch would."""
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    sys.path.insert(0, str(PACKAGE.parent))
    sys.meta_path.insert(0, _StubFinder())
    _complete()
    return importlib.import_module("pccl")


def _complete() -> None:
    """Give stubs what importing the package, or showing it, takes."""
    build = importlib.import_module("pccl._build_info")
    build.TORCH_VERSION = importlib.import_module("torch").__version__  # type: ignore
    core = importlib.import_module("pccl._core")
    for alias in ("_Buffer", "_Blocks"):  # shown by name, not as the unions that they are
        setattr(core, alias, NewType(alias, object))
