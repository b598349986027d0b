# SPDX-License-Identifier: Apache-2.0
"""Find what is undocumented in the public headers, include/pccl.

    python tools/public_headers.py [HEADER...]

Documented is a declaration with a comment: ``///`` lines before it, or ``//`` behind it. That
holds for macros, for all that namespaces contain, and for the public members of classes;
enumerators are described with their enum. It parses the style of this repository, not C++: see
.clang-format.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path("include/pccl")
# A comment or a string; the latter keeps its length, without braces and semicolons.
NOISE = re.compile(r'//[^\n]*|"(?:\\.|[^"\\\n])*"')
MACRO = re.compile(r"^#define (\w+)", re.MULTILINE)
DIRECTIVE = re.compile(r"^#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
ACCESS = re.compile(r"\s*(public|protected|private):")
SCOPE = re.compile(r"^(?:template <.*>\s*)?(namespace|class|struct|enum|union)\b")
# Special members, and names of classes elsewhere, need no words.
PLAIN = re.compile(r"^(?:friend )?(?:class|struct) \w+;|= delete;|~\w+\(\) = default;")


@dataclass(frozen=True)
class Declaration:
    """A declaration: its first line, its last one but for a body, and its text up to there."""

    line: int
    end: int
    text: str


def headers(root: Path = ROOT) -> list[Path]:
    """Give the public headers."""
    return sorted((root / FOLDER).glob("*.h"))


def blanked(text: str) -> str:
    """Replace comments, strings and directives by blanks; lines keep their numbers."""
    for noise in (NOISE, DIRECTIVE):
        text = noise.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    return text


def closing(code: str, at: int) -> int:
    """Give the place of the bracket that closes the one at ``at``."""
    depth = 0
    for place in range(at, len(code)):
        depth += (code[place] in "({") - (code[place] in ")}")
        if depth == 0:
            return place
    raise ValueError(f"nothing closes {code[at : at + 40]!r}")


def declarations(code: str, begin: int, end: int, *, is_class: bool) -> Iterator[Declaration]:
    """Give the declarations of a scope and of those in it, from blanked text."""
    at, start, is_public = begin, -1, True
    while at < end:
        label = ACCESS.match(code, at) if is_class and start < 0 else None
        if label:
            is_public, at = label[1] == "public", label.end()
            continue
        if start < 0 and not code[at].isspace():
            start = at
        if start < 0 or code[at] not in "({;":
            at += 1
            continue
        head = " ".join(code[start:at].split())
        scope = SCOPE.match(head) if code[at] == "{" else None
        last = at if code[at] == ";" else closing(code, at)
        if code[at] == "(":  # arguments
            at = last + 1
            continue
        if is_public and not (scope and scope[1] == "namespace"):
            yield Declaration(
                code.count("\n", 0, start) + 1, code.count("\n", 0, at) + 1, head + code[at]
            )
        if scope and scope[1] != "enum" and is_public:
            yield from declarations(code, at + 1, last, is_class=scope[1] == "class")
        at, start = last + 1, -1
        rest = re.match(r"\s*;", code[at:])
        if rest:
            at += rest.end()


def lines_with_comments(text: str) -> set[int]:
    """Give the numbers of the lines that end with a comment, or are one; notes to linters aside."""
    return {
        text.count("\n", 0, noise.start()) + 1
        for noise in NOISE.finditer(text)
        if noise[0].startswith("//") and not re.fullmatch(r"// NOLINT.*", noise[0])
    }


def undocumented(path: Path) -> Iterator[str]:
    """Give a line for each declaration of a header that no comment describes."""
    text = path.read_text()
    lines = ["", *text.splitlines()]
    commented = lines_with_comments(text)
    for macro in MACRO.finditer(text):
        line = text.count("\n", 0, macro.start()) + 1
        if not lines[line - 1].startswith("///"):
            yield f"{path.name}:{line}: {macro[1]}"
    code = blanked(text)
    for found in declarations(code, 0, len(code), is_class=False):
        is_behind = not commented.isdisjoint(range(found.line, found.end + 1))
        is_before = lines[found.line - 1].lstrip().startswith("///")
        if not (is_before or is_behind or PLAIN.search(found.text)):
            yield f"{path.name}:{found.line}: {found.text[:-1].rstrip()}"


def main() -> int:
    """Print what is undocumented, and fail where something is."""
    found = [line for path in map(Path, sys.argv[1:] or headers()) for line in undocumented(path)]
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
