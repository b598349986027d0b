# SPDX-License-Identifier: Apache-2.0
"""Check python/: no module, and no folder, imports itself through others.

    check_imports.py [repository]

Imports inside functions and under TYPE_CHECKING count. An ``__init__.py`` is the face of its
package: it hands names on, and stands in no circle itself. What is imported from a face counts as
imported from the module that the face has it from; nothing inside a package imports from its face.

A module beside the outermost face is a part of its own, as is each package there. Further in, files
of a folder may import from its folders, or the reverse, not both.

Prints one line per violation (file:line: rule: what would be right); exits with 1 if there is any.
"""

from __future__ import annotations

import ast
import itertools
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from check_layers import Violation
from circles import circles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SOURCES = {".py", ".pyi"}
FACE = "__init__"


@dataclass(frozen=True)
class Import:
    """``from base import name as bound``; the name of ``import base`` is empty."""

    base: str
    name: str
    bound: str
    line: int


@dataclass(frozen=True)
class Module:
    """A file below python/, by its name in an import."""

    name: str
    path: Path  # from the repository root
    is_face: bool
    imports: tuple[Import, ...]


@dataclass(frozen=True)
class Edge:
    """One module imports from another."""

    source: str
    target: str
    path: Path
    line: int

    def __str__(self) -> str:
        return f"{self.source} -> {self.target} ({self.path}:{self.line})"


Modules = dict[str, Module]


def base_of(node: ast.ImportFrom, package: str) -> str:
    """Spell out a relative import."""
    parts = package.split(".")
    above = parts[: len(parts) + 1 - node.level] if node.level else []
    return ".".join([*above, *filter(None, [node.module])])


def imports_in(tree: ast.Module, package: str) -> Iterator[Import]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, "", alias.asname or alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            base = base_of(node, package)
            for alias in node.names:
                yield Import(base, alias.name, alias.asname or alias.name, node.lineno)


def read_module(root: Path, path: Path) -> Module:
    *package, stem = path.relative_to("python").with_suffix("").parts
    is_face = stem == FACE
    name = ".".join(package if is_face else [*package, stem])
    tree = ast.parse((root / path).read_text(encoding="utf-8"))
    return Module(name, path, is_face, tuple(imports_in(tree, ".".join(package))))


def read_modules(root: Path) -> Modules:
    files = sorted(file for file in (root / "python").rglob("*") if file.suffix in SOURCES)
    modules = (read_module(root, file.relative_to(root)) for file in files)
    return {module.name: module for module in modules}


def imported_by(one: Import, modules: Modules) -> Module | None:
    """Give the module that ``one`` names, else the one it takes a name from; None if not ours."""
    return modules.get(f"{one.base}.{one.name}") or modules.get(one.base)


def targets_of(one: Import, modules: Modules, faces: frozenset[str] = frozenset()) -> set[str]:
    """Name the modules that ``one`` gets something from, through ``faces`` and further ones."""
    requested = imported_by(one, modules)
    if requested is None or requested.name in faces:
        return set()
    if not requested.is_face:
        return {requested.name}
    name = one.name if requested.name == one.base else ""
    handed_on = [each for each in requested.imports if each.bound == name] or requested.imports
    return {
        target
        for each in handed_on
        for target in targets_of(each, modules, faces | {requested.name})
    }


def is_of_own_face(one: Import, module: Module, modules: Modules) -> bool:
    requested = imported_by(one, modules)
    return (
        requested is not None and requested.is_face and module.name.startswith(f"{requested.name}.")
    )


def check_faces(modules: Modules) -> Iterator[Violation]:
    for module in modules.values():
        for one in module.imports:
            if is_of_own_face(one, module, modules):
                homes = " or ".join(sorted(targets_of(one, modules))) if one.name else ""
                text = f"{module.name} is inside: import from {homes or 'the module meant'}"
                yield Violation(module.path, one.line, "face", text)


def edges_of(modules: Modules) -> list[Edge]:
    return [
        Edge(module.name, target, module.path, one.line)
        for module in modules.values()
        if not module.is_face
        for one in module.imports
        if not is_of_own_face(one, module, modules)
        for target in sorted(targets_of(one, modules))
    ]


def folder_of(name: str, depth: int) -> str:
    """Name the folder of a module, cut to ``depth`` below the outermost; there, the module."""
    folders = name.split(".")[:-1]
    return ".".join(folders[: depth + 1]) if len(folders) > 1 else name


def check_circles(
    edges: list[Edge], place_of: Callable[[str], str], rule: str, advice: str
) -> Iterator[Violation]:
    """Look for circles of places, among which imports lead as ``edges`` do among modules."""
    ways: dict[tuple[str, str], Edge] = {}
    for edge in edges:
        ends = place_of(edge.source), place_of(edge.target)
        if ends[0] != ends[1]:
            ways.setdefault(ends, edge)
    graph: dict[str, set[str]] = {}
    for source, target in ways:
        graph.setdefault(source, set()).add(target)
    for circle in circles(graph):
        inside = [ways[ends] for ends in itertools.permutations(circle, 2) if ends in ways]
        text = f"{', '.join(map(str, inside))}: {advice.format(' and '.join(circle))}"
        yield Violation(inside[0].path, inside[0].line, rule, text)


def check_modules(edges: list[Edge]) -> list[Violation]:
    advice = "move what {} share into a module before them"
    return list(check_circles(edges, str, "circle", advice))


def check_folders(edges: list[Edge]) -> list[Violation]:
    """Look at parts first; then, in each part, at its files and folders; and so on."""
    advice = "among {}, let all imports lead one way"
    depths = range(1, max((edge.source.count(".") for edge in edges), default=0))
    found = (
        violation
        for depth in depths
        for violation in check_circles(edges, partial(folder_of, depth=depth), "folder", advice)
    )
    return list(dict.fromkeys(found))  # a circle of parts without folders is one at each depth


def check(root: Path) -> list[Violation]:
    """Give every violation in the repository at ``root``."""
    modules = read_modules(root)
    edges = edges_of(modules)
    # A circle of modules is one of their folders, too, and is reported once.
    return [*check_faces(modules), *(check_modules(edges) or check_folders(edges))]


def main() -> int:
    """Run with the repository as the only argument; the default is the one this file is in."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    violations = check(root)
    for violation in violations:
        print(violation)
    print(f"check_imports: {len(violations)} violation(s)" if violations else "check_imports: ok")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
