# SPDX-License-Identifier: Apache-2.0
"""Check C++ against layers.toml: who includes whom, and which calls live in one module only.

Nothing includes itself by detours: no unit (x.h with x.cc), and no folder. Public headers
(include/pccl) and examples include public headers alone, besides those of the system.

    check_layers.py [repository]

Prints one line per violation (file:line: rule: what would be right); exits with 1 if there is any.
"""

from __future__ import annotations

import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from circles import circles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SOURCES = {".h", ".cc", ".cuh", ".cu"}
HEADERS = {".h", ".cuh"}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]*)"', re.MULTILINE)
PUBLIC = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<pccl/([^>]*)\.h>", re.MULTILINE)
# Strings come first, so that a // inside a string does not start a comment.
LITERAL_OR_COMMENT = re.compile(
    r'(?P<literal>R"(?P<tag>\w*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*")'
    r"|(?P<comment>//[^\n]*|/\*.*?\*/)",
    re.DOTALL,
)
# At the beginning of a line: the definition of a member, and its class.
MEMBER = re.compile(r"^(?! )[^\n;{}()#/]*?\b(\w+)::~?\w+\(", re.MULTILINE)
CMAKE_MODULE = re.compile(r"^pccl_module\(NAME (\w+) DEPS([^)]*)\)", re.MULTILINE)


@dataclass(frozen=True)
class Violation:
    """One broken rule, with its place and the way out."""

    path: Path
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.text}"


@dataclass(frozen=True)
class Source:
    """One file of csrc/, its comments blanked out (lines keep their numbers)."""

    path: Path  # from the repository root
    text: str

    @property
    def inside(self) -> str:
        """The path below csrc/."""
        return self.path.relative_to("csrc").as_posix()

    def line_of(self, offset: int) -> int:
        return self.text.count("\n", 0, offset) + 1


def blanked(match: re.Match[str], groups: tuple[str, ...]) -> str:
    hit = any(match.group(group) is not None for group in groups)
    return re.sub(r"[^\n]", " ", match.group()) if hit else match.group()


def read_source(root: Path, path: Path) -> Source:
    text = (root / path).read_text(encoding="utf-8")
    text = LITERAL_OR_COMMENT.sub(lambda match: blanked(match, ("comment",)), text)
    return Source(path, text)


def code_of(source: Source) -> str:
    """Give the text with string literals blanked out too."""
    return LITERAL_OR_COMMENT.sub(lambda match: blanked(match, ("literal",)), source.text)


def covers(place: str, path: str) -> bool:
    """Return whether ``place``, a module, folder or file, is or holds ``path``."""
    return path == place or path.startswith(f"{place}/")


def module_of(inside: str, modules: dict[str, list[str]]) -> str | None:
    """Name the module that holds ``inside`` (a path below csrc/): the longest one."""
    return max((module for module in modules if covers(module, inside)), key=len, default=None)


def sibling_of(inside: str, table: dict[str, Any]) -> str | None:
    """Name the implementation folder, such as transport/tcp, that ``inside`` lies in."""
    parts = inside.split("/")
    folder = "/".join(parts[:2])
    siblings = table["siblings"]
    is_implementation = len(parts) > 2 and parts[0] in siblings["modules"]
    return folder if is_implementation and folder not in siblings.get("shared", []) else None


def check_include(source: Source, target: str, table: dict[str, Any]) -> tuple[str, str] | None:
    """Judge one #include "target"; give the broken rule and its text, if any."""
    if not target.startswith("csrc/"):
        return "spelling", f'write "{target}" from the repository root, as in "csrc/base/fork.h"'
    module = module_of(source.inside, table["modules"])
    if module is None:
        return "module", f"{source.path.parent} is not in layers.toml: add it or move the file"
    inside = target.removeprefix("csrc/")
    allowed = [module, *table["modules"][module]]
    if not any(covers(place, inside) for place in allowed):
        names = ", ".join(allowed)
        return "layer", f"{module} may not include {target}; it may include {names}"
    ours, theirs = sibling_of(source.inside, table), sibling_of(inside, table)
    parent = ours.split("/")[0] if ours else module
    if ours and theirs and ours != theirs and theirs.startswith(f"{parent}/"):
        return "sibling", f"{ours} may not know {theirs}; share through a file of csrc/{parent}"
    return None


def check_includes(source: Source, table: dict[str, Any]) -> Iterator[Violation]:
    for match in INCLUDE.finditer(source.text):
        broken = check_include(source, match.group(1), table)
        if broken:
            yield Violation(source.path, source.line_of(match.start(1)), *broken)


def check_public_includes(source: Source, table: dict[str, Any]) -> Iterator[Violation]:
    """A module includes the public headers of values, and those that layers.toml gives to it."""
    module = module_of(source.inside, table["modules"]) or ""
    for match in PUBLIC.finditer(source.text):
        users = table["public"].get(match.group(1), [])
        if "*" not in users and top_module_of(module) not in users:
            text = f"{module} may not include <pccl/{match.group(1)}.h>: {', '.join(users)} may"
            yield Violation(source.path, source.line_of(match.start(1)), "public", text)


def check_outside(root: Path, table: dict[str, Any]) -> Iterator[Violation]:
    """Public headers are listed, and include nothing of csrc/; nor do examples."""
    headers = sorted((root / "include").rglob("*.h"))
    for file in [*headers, *sorted((root / "examples").glob("*.cc"))]:
        source = read_source(root, file.relative_to(root))
        for match in INCLUDE.finditer(source.text):
            text = f'"{match.group(1)}" is internal: include public headers, as <pccl/status.h>'
            yield Violation(source.path, source.line_of(match.start(1)), "public", text)
        yield from check_guard(source)
    listed, found = set(table["public"]), {header.stem for header in headers}
    for name in sorted(found - listed):
        text = f"say in [public] which modules may include <pccl/{name}.h>"
        yield Violation(Path("layers.toml"), 1, "public", text)


def check_own_header(root: Path, source: Source) -> Iterator[Violation]:
    """An x.cc includes its x.h before anything else: that proves the header self-contained."""
    own = source.path.with_suffix(".h")
    if source.path.suffix != ".cc" or not (root / own).exists():
        return
    first = re.search(r"^[ \t]*#[ \t]*include[ \t]*(.*?)[ \t]*$", source.text, re.MULTILINE)
    if first is None or first.group(1) != f'"{own.as_posix()}"':
        line = source.line_of(first.start(1)) if first else 1
        yield Violation(source.path, line, "own-header", f'include "{own.as_posix()}" first')


def check_guard(source: Source) -> Iterator[Violation]:
    if source.path.suffix in HEADERS and "#pragma once" not in source.text:
        yield Violation(source.path, 1, "guard", "start the header with #pragma once")


def check_bans(source: Source, table: dict[str, Any]) -> Iterator[Violation]:
    code = code_of(source)
    for ban in table["bans"]:
        if any(covers(place, source.path.as_posix()) for place in ban["allowed"]):
            continue
        for match in re.finditer(ban["pattern"], code):
            homes = ", ".join(ban["allowed"])
            text = f"'{match.group().strip()}' belongs to {homes}; {ban['instead']}"
            yield Violation(source.path, source.line_of(match.start()), ban["name"], text)


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def top_module_of(place: str) -> str:
    """Name the module that a module, submodule or folder is in."""
    return place.split("/")[0]


def modules_below(module: str, table: dict[str, Any]) -> set[str]:
    """Name the modules that ``module`` and its submodules may include."""
    used = [uses for name, uses in table["modules"].items() if top_module_of(name) == module]
    return {top_module_of(place) for uses in used for place in uses} - {module}


def check_table(table: dict[str, Any]) -> Iterator[Violation]:
    """The modules form layers: no circle, and no dependency on a module that does not exist."""
    path = Path("layers.toml")
    modules = {top_module_of(module) for module in table["modules"]}
    layers = {module: modules_below(module, table) for module in modules}
    for module, uses in sorted(layers.items()):
        for unknown in sorted(uses - modules):
            yield Violation(path, 1, "table", f"{module} uses {unknown}, which is no module")
    for circle in circles(layers):
        yield Violation(path, 1, "table", f"the modules form a circle: {', '.join(circle)}")


def unit_at(target: str) -> str:
    return Path(target).with_suffix("").as_posix()


def unit_of(source: Source) -> str:
    """Name the unit that a file is part of: x.h, x.cc, x_cuda.cc and x.cu are one.

    A file without a header of its own implements the public one of its name, or one of its folder:
    whose class it defines, or else the first that it includes.
    """
    path = source.path
    own = path.with_name(re.sub(r"_(no_)?cuda$", "", path.stem)).as_posix()
    near = [t for t in INCLUDE.findall(source.text) if Path(t).parent == path.parent]
    is_public = path.stem in PUBLIC.findall(source.text)
    if path.suffix in HEADERS or not near or is_public or own in map(unit_at, near):
        return own
    defined = MEMBER.search(source.text)
    named = snake_case(defined.group(1)) if defined else ""
    return next((unit_at(t) for t in near if named.endswith(Path(t).stem)), unit_at(near[0]))


def folder_of(source: Source) -> str:
    return source.path.parent.as_posix()


def folder_at(target: str) -> str:
    return Path(target).parent.as_posix()


def check_circles(
    sources: list[Source], what: str, of: Callable[[Source], str], at: Callable[[str], str]
) -> Iterator[Violation]:
    """Nothing reaches itself through what it includes; an error for each step of a circle."""
    steps: dict[tuple[str, str], tuple[Path, int]] = {}
    for source in sources:
        for match in INCLUDE.finditer(source.text):
            step = of(source), at(match.group(1))
            if step[0] != step[1]:
                steps.setdefault(step, (source.path, source.line_of(match.start(1))))
    graph: dict[str, set[str]] = {}
    for start, end in steps:
        graph.setdefault(start, set()).add(end)
    for circle in circles(graph):
        names = ", ".join(circle)
        for (start, end), (path, line) in sorted(steps.items()):
            if {start, end} <= set(circle):
                text = f"{start} includes {end}; of the {what} {names} none may reach itself"
                yield Violation(path, line, "circle", text)


def check_cmake(root: Path, table: dict[str, Any]) -> Iterator[Violation]:
    """CMakeLists.txt links every module to just those that it and its submodules may include."""
    path = root / "CMakeLists.txt"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    for match in CMAKE_MODULE.finditer(text):
        module, linked = match.group(1), set(match.group(2).split(" LIBRARIES")[0].split())
        wanted = modules_below(module, table)
        if linked != wanted:
            line = text.count("\n", 0, match.start()) + 1
            names = " ".join(sorted(wanted))
            yield Violation(path.relative_to(root), line, "cmake", f"{module} needs DEPS {names}")


def check(root: Path) -> list[Violation]:
    """Give every violation in the repository at ``root``, in the order of the files."""
    table = tomllib.loads((root / "layers.toml").read_text(encoding="utf-8"))
    files = [file for file in sorted((root / "csrc").rglob("*")) if file.suffix in SOURCES]
    sources = [read_source(root, file.relative_to(root)) for file in files]
    violations = [*check_table(table), *check_cmake(root, table)]
    for source in sources:
        violations += check_includes(source, table)
        violations += check_public_includes(source, table)
        violations += check_own_header(root, source)
        violations += check_guard(source)
        violations += check_bans(source, table)
    violations += check_outside(root, table)
    violations += check_circles(sources, "units", unit_of, unit_at)
    violations += check_circles(sources, "folders", folder_of, folder_at)
    return violations


def main() -> int:
    """Run with the repository as the only argument; the default is the one this file is in."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    violations = check(root)
    for violation in violations:
        print(violation)
    print(f"check_layers: {len(violations)} violation(s)" if violations else "check_layers: ok")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
