# SPDX-License-Identifier: Apache-2.0
"""Read the stub of an extension module: a file, or a folder of files by subject."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

FACE = "__init__"


def read_stub(stub: Path) -> ast.Module:
    """Return a stub as one module: ``<name>.pyi``, or the files of the folder ``<name>``.

    In a folder, ``__init__.pyi`` has the module's docstring and exports what the other files
    define. A private base class in such a file holds a part of a class that is too long for one
    file; the extension module has no such base, and its members become those of the class.
    """
    file = stub.with_suffix(".pyi")
    if file.exists():
        return ast.parse(file.read_text(encoding="utf-8"))
    files = {path.stem: ast.parse(path.read_text(encoding="utf-8")) for path in stub.glob("*.pyi")}
    body = files[FACE].body[:1]  # the docstring
    for name in _in_order(files):
        body += [part for part in files[name].body[1:] if not _subject_of(part, files)]
    imports = [part for part in body if isinstance(part, ast.Import | ast.ImportFrom)]
    rest = [part for part in body[1:] if part not in imports]
    return ast.Module([body[0], *imports, *_without_parts(rest)], type_ignores=[])


def _subject_of(part: ast.stmt, files: dict[str, ast.Module]) -> str | None:
    """Return the file of the same folder that ``part`` imports from."""
    if not isinstance(part, ast.ImportFrom) or part.module is None:
        return None
    package, _, name = part.module.rpartition(".")
    return name if package.startswith("pccl._") and name in files else None


def _in_order(files: dict[str, ast.Module]) -> list[str]:
    """Return the names of the files, each behind those that it imports from."""
    found: list[str] = []

    def add(name: str) -> None:
        for part in files[name].body:
            if subject := _subject_of(part, files):
                add(subject)
        if name not in found:
            found.append(name)

    for name in sorted(files):
        add(name)
    return [name for name in found if name != FACE]


def _without_parts(body: list[ast.stmt]) -> list[ast.stmt]:
    """Move the members of private base classes into the classes that derive from them."""
    classes = {part.name: part for part in body if isinstance(part, ast.ClassDef)}
    parts = set()
    for each in classes.values():
        bases = [base.id for base in each.bases if isinstance(base, ast.Name)]
        for base in bases:
            if base.startswith("_") and base in classes:
                each.bases = [other for other in each.bases if getattr(other, "id", "") != base]
                each.body += classes[base].body[1:]
                parts.add(base)
    return [each for each in body if getattr(each, "name", None) not in parts]
